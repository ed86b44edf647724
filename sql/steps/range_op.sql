-- range_op — in which range was each operation launched?
--
-- By its API call: the innermost push/pop range that was open on the calling thread when the call
-- began. Of several calls with one id the outermost is the call. An operation without a call
-- belongs to no range.
--
-- @grain  one row per operation of a device that has steady windows
-- @reads  nsys.op_launch, nsys.range_state, nsys.segment
-- @narrow
-- @column op_id     BIGINT  -  the operation
-- @column device    BIGINT  -  its device
-- @column segment   BIGINT  -  stretch of nsys.segment in which it starts
-- @column start_ns  BIGINT  ns its start
-- @column end_ns    BIGINT  ns its end
-- @column kind      INTEGER -  1 compute, 2 comm, 3 copies, sets and waiting kernels
-- @column process   BIGINT  -  its process
-- @column thread    BIGINT  -  thread of the call, NULL without one
-- @column launch_ns BIGINT  ns begin of the call
-- @column range_no  BIGINT  -  innermost range of level 1 to 8, NULL for none
-- @column path_no   BIGINT  -  its path
-- @pitfall 22
SELECT
    l.op_id,
    l.device,
    l.segment,
    l.start_ns,
    l.end_ns,
    CASE l.role WHEN 'compute' THEN 1 WHEN 'comm' THEN 2 ELSE 3 END AS kind,
    l.process,
    l.thread,
    l.call_start_ns AS launch_ns,
    r.range_no,
    r.path_no,
FROM nsys.op_launch AS l
SEMI JOIN nsys.segment AS s ON s.device = l.device
ASOF LEFT JOIN nsys.range_state AS r ON r.thread = l.thread AND r.start_ns <= l.call_start_ns;
