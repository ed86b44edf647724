-- range_window — what did each path of ranges cost in each steady window?
--
-- @grain  one row per device, steady window and path with anything in it
-- @reads  nsys.window_segment, nsys.range_segment, nsys.range_device
-- @column device       BIGINT -  physical GPU
-- @column iteration    BIGINT -  ordinal of the window on its device
-- @column path_no      BIGINT -  path of nsys.range_path
-- @column count        BIGINT -  ranges that start in the window
-- @column host_ns      BIGINT ns union of the ranges on the host
-- @column host_work_ns BIGINT ns sum of the ranges on the host
-- @column op_count     BIGINT -  operations launched inside them that start in the window
-- @column span_ns      BIGINT ns union of their projections onto the device
-- @column busy_ns      BIGINT ns union of the operations launched inside them
-- @column compute_ns   BIGINT ns union of those that compute
-- @column comm_ns      BIGINT ns comm while none of those computes
-- @column copy_ns      BIGINT ns copies, sets and waiting kernels while none of the others runs
-- @column idle_ns      BIGINT ns rest of the projection: nothing launched inside them runs
-- @pitfall 1
WITH in_segment AS (
    SELECT device, segment, path_no, count, host_ns, host_work_ns, span_ns, 0 AS op_count,
        0 AS busy_ns, 0 AS compute_ns, 0 AS compute_comm_ns
    FROM nsys.range_segment
    UNION ALL
    SELECT device, segment, path_no, 0, 0, 0, 0, op_count, busy_ns, compute_ns, compute_comm_ns
    FROM nsys.range_device
)
SELECT
    w.device,
    w.iteration,
    r.path_no,
    sum(r.count)::BIGINT AS count,
    sum(r.host_ns)::BIGINT AS host_ns,
    sum(r.host_work_ns)::BIGINT AS host_work_ns,
    sum(r.op_count)::BIGINT AS op_count,
    sum(r.span_ns)::BIGINT AS span_ns,
    sum(r.busy_ns)::BIGINT AS busy_ns,
    sum(r.compute_ns)::BIGINT AS compute_ns,
    sum(r.compute_comm_ns - r.compute_ns)::BIGINT AS comm_ns,
    sum(r.busy_ns - r.compute_comm_ns)::BIGINT AS copy_ns,
    sum(r.span_ns - r.busy_ns)::BIGINT AS idle_ns,
FROM nsys.window_segment AS w
INNER JOIN in_segment AS r ON r.device = w.device AND r.segment = w.segment
GROUP BY w.device, w.iteration, r.path_no;
