-- collective — which operations of communication start in each steady window?
--
-- What is needed to find the same instance on other ranks: its type, its place in host issue
-- order (correlation_id within a process, then the start) and its times on the report's clock.
-- Communicator and bytes are those of the NCCL range in which it was launched, where the export
-- holds the payloads of NVTX ranges; a launch at the end of an NCCL group lies in none.
--
-- @grain  one row per operation of role comm and steady window in which it starts
-- @reads  nsys.op, nsys.op_name, nsys.segment, nsys.window_segment, nsys.outermost_call, nsys.nvtx,
--         nsys.nvtx_payload
-- @column device         BIGINT  -     physical GPU of the report
-- @column iteration      BIGINT  -     ordinal of the window
-- @column op_id          BIGINT  -     operation of the report
-- @column process        BIGINT  -     process key
-- @column context_id     BIGINT  -     CUDA context
-- @column stream_id      BIGINT  -     CUDA stream
-- @column correlation_id BIGINT  -     place in host issue order
-- @column collective     VARCHAR -     AllReduce, ..., dispatch, combine or other
-- @column class          VARCHAR -     nccl, transport, dispatch or fused_comm
-- @column name           VARCHAR -     name of the kernel
-- @column start_ns       BIGINT  ns    start, report clock
-- @column end_ns         BIGINT  ns    end, report clock
-- @column communicator   VARCHAR -     communicator, NULL where the export does not tell
-- @column bytes          BIGINT  bytes size of the message, NULL where the export does not tell
-- @pitfall 5, 23
WITH op AS NOT MATERIALIZED (
    SELECT
        op_id,
        device,
        process,
        context_id,
        stream_id,
        correlation_id,
        class,
        name_id,
        start_ns,
        end_ns,
    FROM nsys.op
    WHERE role = 'comm'
),
comm AS (
    FROM nsys.iv_place('op', 'nsys.segment')
),
payload AS (
    SELECT
        e.thread,
        e.start_ns,
        e.end_ns,
        nullif(
            regexp_extract(p.payload, '(?i)"[^"]*communicator[^"]*"\s*:\s*"?([^",}\s]+)', 1), ''
        ) AS communicator,
        try_cast(
            regexp_extract(
                p.payload, '(?i)"[^"]*(?:message size|bytes)[^"]*"\s*:\s*"?(\d{1,18})', 1
            ) AS BIGINT
        ) AS bytes,
    FROM nsys.nvtx_payload AS p
    INNER JOIN nsys.nvtx AS e ON e.row_id = p.row_id
    WHERE e.event_type IN (59, 60) AND e.end_ns >= e.start_ns
),
launch AS (
    SELECT c.process, c.correlation_id, c.thread, c.start_ns, c.end_ns
    FROM nsys.outermost_call AS c
    WHERE EXISTS (FROM payload)
      AND c.correlation_id IN (SELECT correlation_id FROM comm)
),
told AS (
    SELECT l.process, l.correlation_id, p.communicator, p.bytes
    FROM launch AS l
    ASOF JOIN payload AS p ON p.thread = l.thread AND p.start_ns <= l.start_ns
    WHERE p.end_ns >= l.end_ns
)
SELECT
    w.device,
    w.iteration,
    c.op_id,
    c.process,
    c.context_id,
    c.stream_id,
    c.correlation_id,
    coalesce(n.collective, 'other') AS collective,
    c.class,
    n.name,
    c.start_ns,
    c.end_ns,
    t.communicator,
    t.bytes,
FROM nsys.window_segment AS w
INNER JOIN comm AS c ON c.device = w.device AND c.segment = w.segment
LEFT JOIN nsys.op_name AS n ON n.name_id = c.name_id
LEFT JOIN told AS t ON t.process = c.process AND t.correlation_id = c.correlation_id;
