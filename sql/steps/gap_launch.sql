-- gap_launch — which API call launched the kernel that ends each gap?
--
-- Joined on process and correlation id, since ids repeat across processes. Where a runtime call
-- and the driver call inside it carry one id, a gap stands here once for each of them;
-- nsys.gap_cut then takes the outermost.
--
-- @grain  one row per gap and call of its kernel; one row without a call where there is none
-- @reads  nsys.gap, nsys.call
-- @column device         BIGINT  -  physical GPU
-- @column start_ns       BIGINT  ns begin of the gap
-- @column end_ns         BIGINT  ns start of the operation that ends it
-- @column op_id          BIGINT  -  that operation
-- @column call_start_ns  BIGINT  ns the host enters the call
-- @column call_end_ns    BIGINT  ns the host leaves the call
-- @column thread         BIGINT  -  globalTid of the calling thread
-- @column prev_id        BIGINT  -  item before the operation on its stream
-- @column prev_start_ns  BIGINT  ns start of that item
-- @column prev_end_ns    BIGINT  ns end of that item
-- @column prev_role      VARCHAR -  role of that item
SELECT
    g.device,
    g.start_ns,
    g.end_ns,
    g.op_id,
    c.start_ns AS call_start_ns,
    c.end_ns AS call_end_ns,
    c.thread,
    g.prev_id,
    g.prev_start_ns,
    g.prev_end_ns,
    g.prev_role,
FROM nsys.gap AS g
LEFT JOIN nsys.call AS c
    ON c.correlation_id = g.correlation_id AND c.process = g.process;
