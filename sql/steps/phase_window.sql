-- phase_window — what did each phase cost in each steady window?
--
-- @grain  one row per device, steady window and phase with anything in it
-- @reads  nsys.window_segment, nsys.phase_device, nsys.phase_host
-- @column device         BIGINT  -  physical GPU
-- @column iteration      BIGINT  -  ordinal of the window on its device
-- @column phase          VARCHAR -  phase, or unattributed
-- @column count          BIGINT  -  outermost ranges that start in the window
-- @column host_ns        BIGINT  ns union of its ranges on the host
-- @column op_count       BIGINT  -  operations that start in the window
-- @column borrowed_count BIGINT  -  those placed by a range of another thread
-- @column busy_ns        BIGINT  ns union of its operations
-- @column compute_ns     BIGINT  ns union of those that compute
-- @column comm_ns        BIGINT  ns comm while none of those computes
-- @column copy_ns        BIGINT  ns copies, sets and waiting kernels while none of the others runs
-- @pitfall 1
WITH in_segment AS (
    SELECT device, segment, phase, count, host_ns, 0 AS op_count, 0 AS borrowed_count,
        0 AS busy_ns, 0 AS compute_ns, 0 AS compute_comm_ns
    FROM nsys.phase_host
    UNION ALL
    SELECT device, segment, phase, 0, 0, op_count, borrowed_count, busy_ns, compute_ns,
        compute_comm_ns
    FROM nsys.phase_device
)
SELECT
    w.device,
    w.iteration,
    p.phase,
    sum(p.count)::BIGINT AS count,
    sum(p.host_ns)::BIGINT AS host_ns,
    sum(p.op_count)::BIGINT AS op_count,
    sum(p.borrowed_count)::BIGINT AS borrowed_count,
    sum(p.busy_ns)::BIGINT AS busy_ns,
    sum(p.compute_ns)::BIGINT AS compute_ns,
    sum(p.compute_comm_ns - p.compute_ns)::BIGINT AS comm_ns,
    sum(p.busy_ns - p.compute_comm_ns)::BIGINT AS copy_ns,
FROM nsys.window_segment AS w
INNER JOIN in_segment AS p ON p.device = w.device AND p.segment = w.segment
GROUP BY w.device, w.iteration, p.phase;
