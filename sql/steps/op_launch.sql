-- op_launch — who launched each operation, and when?
--
-- The operations of nsys.sweep, in the stretch in which they start, with the call that carries
-- their correlation id, and those of no length, which nsys.sweep leaves out. One join for whatever
-- asks who launched what. Calls are joined on process and correlation id, since ids repeat across
-- processes; of several calls with one id the outermost is the one.
--
-- @grain  one row per device operation
-- @reads  nsys.sweep, nsys.op, nsys.segment, nsys.outermost_call
-- @column op_id          BIGINT -  operation of nsys.op
-- @column device         BIGINT -  physical GPU
-- @column segment        BIGINT -  stretch of nsys.segment in which it starts, 0 without windows
-- @column start_ns       BIGINT ns its start
-- @column end_ns         BIGINT ns its end
-- @column role           ENUM   -  its role
-- @column process        BIGINT -  its process
-- @column correlation_id BIGINT -  its correlation id
-- @column thread         BIGINT -  globalTid of the thread that made the call, NULL without one
-- @column call_start_ns  BIGINT ns the host enters the call
-- @column call_end_ns    BIGINT ns the host leaves it
-- @pitfall 22
WITH item AS (
    SELECT item_id, device, segment, start_ns, end_ns, role, process, correlation_id
    FROM nsys.sweep
    WHERE item_id IS NOT NULL
    UNION ALL
    SELECT o.op_id, o.device, coalesce(s.segment, 0), o.start_ns, o.end_ns, o.role, o.process,
        o.correlation_id
    FROM (
        SELECT op_id, device, start_ns, end_ns, role, process, correlation_id
        FROM nsys.op
        WHERE end_ns = start_ns
    ) AS o
    ASOF LEFT JOIN nsys.segment AS s ON s.device = o.device AND s.start_ns <= o.start_ns
)
SELECT
    i.item_id AS op_id,
    i.device,
    i.segment,
    i.start_ns,
    i.end_ns,
    i.role,
    i.process,
    i.correlation_id,
    c.thread,
    c.start_ns AS call_start_ns,
    c.end_ns AS call_end_ns,
FROM item AS i
LEFT JOIN nsys.outermost_call AS c
    ON c.correlation_id = i.correlation_id AND c.process = i.process;
