-- copy_op — what did each copy and each set move, from where to where, and by which way?
--
-- Numbers of copy and memory kinds become names; a kind that the trace does not tell is NULL. The
-- direction is what the trace calls the copy. The way says what it was: a copy between device and
-- host whose both sides are device memory is one half of a copy between two devices without peer
-- access, staged through the host, and no transfer of the program between host and device.
--
-- @grain  one row per copy or set of nsys.op
-- @reads  nsys.op, nsys.memcpy, nsys.memset
-- @column op_id          BIGINT  -  operation of nsys.op
-- @column device         BIGINT  -  physical GPU
-- @column process        BIGINT  -  process key
-- @column context_id     BIGINT  -  CUDA context
-- @column stream_id      BIGINT  -  CUDA stream
-- @column correlation_id BIGINT  -  joins the API call inside the process
-- @column start_ns       BIGINT  ns start
-- @column end_ns         BIGINT  ns end
-- @column bytes          BIGINT  bytes bytes copied or set
-- @column direction      VARCHAR -  HtoD, DtoH, DtoD, PtoP, ... or memset
-- @column way            VARCHAR -  host, device, peer, staged peer, memset or unknown
-- @column source         VARCHAR -  kind of memory read, NULL unknown or a set
-- @column destination    VARCHAR -  kind of memory written, NULL unknown
-- @pitfall 12
WITH moved AS (
    SELECT
        m.row_id + (1::BIGINT << 40) AS op_id,
        m.bytes,
        m.copy_kind,
        m.src_kind,
        m.dst_kind,
        m.src_device <> m.dst_device AS is_between_devices,
    FROM nsys.memcpy AS m
    UNION ALL
    SELECT s.row_id + (2::BIGINT << 40), s.bytes, NULL, NULL, s.mem_kind, NULL
    FROM nsys.memset AS s
)
SELECT
    o.op_id,
    o.device,
    o.process,
    o.context_id,
    o.stream_id,
    o.correlation_id,
    o.start_ns,
    o.end_ns,
    m.bytes,
    CASE
        WHEN o.kind = 'memset' THEN 'memset'
        ELSE coalesce(
            [
                'HtoD', 'DtoH', 'HtoA', 'AtoH', 'AtoA', 'AtoD', 'DtoA', 'DtoD', 'HtoH', 'PtoP',
                'unified HtoD', 'unified DtoH', 'unified DtoD'
            ][nullif(m.copy_kind, 0)],
            'unknown'
        )
    END AS direction,
    CASE
        WHEN o.kind = 'memset' THEN 'memset'
        WHEN m.copy_kind = 10 OR (m.copy_kind IN (8, 13) AND m.is_between_devices) THEN 'peer'
        WHEN m.copy_kind IN (1, 2) AND m.src_kind IN (2, 5) AND m.dst_kind IN (2, 5)
            THEN 'staged peer'
        WHEN m.copy_kind IN (1, 2, 3, 4, 9, 11, 12) THEN 'host'
        WHEN m.copy_kind IN (5, 6, 7, 8, 13) THEN 'device'
        ELSE 'unknown'
    END AS way,
    nsys.memory_kind(m.src_kind) AS source,
    nsys.memory_kind(m.dst_kind) AS destination,
FROM nsys.op AS o
INNER JOIN moved AS m ON m.op_id = o.op_id
WHERE o.kind IN ('memcpy', 'memset');
