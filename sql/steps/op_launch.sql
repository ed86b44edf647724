-- op_launch — who launched each operation, and when?
--
-- The operations with their calls (see nsys.op_call), each once.
--
-- @grain  one row per device operation
-- @reads  nsys.op_call, nsys.op_outermost
-- @view
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
SELECT op_id, device, segment, start_ns, end_ns, role, process, correlation_id, thread,
    call_start_ns, call_end_ns
FROM nsys.op_call
WHERE NOT EXISTS (SELECT 1 FROM nsys.op_outermost)
UNION ALL
SELECT op_id, device, segment, start_ns, end_ns, role, process, correlation_id, thread,
    call_start_ns, call_end_ns
FROM nsys.op_outermost;
