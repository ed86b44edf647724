-- copy_window — how much was copied and set in each steady window, and what did it block?
--
-- @grain  one row per steady window of a device and row of recipe copies that occurs in it
-- @reads  nsys.window_segment, nsys.copy_op, nsys.copy_piece, nsys.blame_segment
-- @column device          BIGINT  -  physical GPU
-- @column iteration       BIGINT  -  ordinal of the window on its device
-- @column process         BIGINT  -  process key
-- @column context_id      BIGINT  -  CUDA context
-- @column stream_id       BIGINT  -  CUDA stream
-- @column direction       VARCHAR -  direction of nsys.copy_op
-- @column way             VARCHAR -  way of nsys.copy_op
-- @column source          VARCHAR -  kind of memory read
-- @column destination     VARCHAR -  kind of memory written
-- @column count           BIGINT  -  operations that start in the window
-- @column bytes           BIGINT  bytes their bytes
-- @column duration_ns     BIGINT  ns sum of their whole durations
-- @column work_ns         BIGINT  ns sum of clipped durations: work volume, not wall time
-- @column busy_ns         BIGINT  ns union of the row
-- @column engine_added_ns BIGINT  ns its share of the union of its direction
-- @column blocking_ns     BIGINT  ns blocking time that an operation of the row is to blame for
-- @pitfall 1, 7, 12
WITH part AS (
    SELECT * EXCLUDE (added_ns), added_ns AS busy_ns, 0 AS blocking_ns FROM nsys.copy_piece
    UNION ALL BY NAME
    SELECT
        b.device,
        b.segment,
        o.process,
        o.context_id,
        o.stream_id,
        o.direction,
        o.way,
        o.source,
        o.destination,
        0 AS count,
        0 AS bytes,
        0 AS duration_ns,
        0 AS work_ns,
        0 AS engine_added_ns,
        0 AS busy_ns,
        b.blocking_ns,
    FROM nsys.blame_segment AS b
    INNER JOIN nsys.copy_op AS o ON o.op_id = b.op_id
    WHERE b.role IN ('memcpy', 'memset')
)
SELECT
    w.device,
    w.iteration,
    p.process,
    p.context_id,
    p.stream_id,
    p.direction,
    p.way,
    p.source,
    p.destination,
    sum(p.count)::BIGINT AS count,
    sum(p.bytes)::BIGINT AS bytes,
    sum(p.duration_ns)::BIGINT AS duration_ns,
    sum(p.work_ns)::BIGINT AS work_ns,
    sum(p.busy_ns)::BIGINT AS busy_ns,
    sum(p.engine_added_ns)::BIGINT AS engine_added_ns,
    sum(p.blocking_ns)::BIGINT AS blocking_ns,
FROM nsys.window_segment AS w
INNER JOIN part AS p ON p.device = w.device AND p.segment = w.segment
GROUP BY ALL;
