-- phases — how long do forward, backward, optimizer and the rest of a step take on the device?
--
-- Phases are recognised by the names of NVTX ranges (the list is in sql/steps/range_phase.sql). An
-- operation belongs to the phase in which its thread launched it; else to the one pass that its
-- process had open at that time on another thread, as with the backward pass of autograd. What lies
-- in no phase is `unattributed`, and where no range is named like a phase that is all.
--
-- Phases overlap on the device, so their times may add up to more than the busy time; compute, comm
-- and copy of a phase add up to its own busy time.
--
-- @grain     one row per device and phase
-- @reads     nsys.steady, nsys.phase_window
-- @needs     nvtx
-- @column    device BIGINT - physical GPU of the report
-- @column    phase VARCHAR - forward, backward, grad_sync, optimizer, data, evaluation, checkpoint
--            or unattributed
-- @column    count DOUBLE - outermost ranges in an iteration, median
-- @column    host_ms DOUBLE ms union of its ranges on the host, median
-- @column    op_count DOUBLE - device operations, median
-- @column    borrowed_pct DOUBLE pct share of the operations placed by a range of another thread
-- @column    busy_ms DOUBLE ms union of its operations on the device, median
-- @column    busy_min_ms DOUBLE ms least
-- @column    busy_max_ms DOUBLE ms greatest
-- @column    compute_ms DOUBLE ms those that compute, median
-- @column    comm_ms DOUBLE ms comm beside no compute of the phase, median
-- @column    copy_ms DOUBLE ms copies, sets and waiting kernels beside none of the others, median
-- @column    pct_of_iteration DOUBLE pct median busy by median of the iteration
-- @column    n BIGINT - steady iterations
-- @pitfall   1, 22
WITH windows AS (
    SELECT device, count(*) AS n, median(end_ns - start_ns) AS median_ns
    FROM nsys.steady
    GROUP BY device
),
phase AS (
    SELECT
        device,
        phase,
        list(count) AS counts,
        list(host_ns) AS hosts,
        list(op_count) AS op_counts,
        sum(borrowed_count) AS borrowed_count,
        sum(op_count) AS op_count,
        list(busy_ns) AS busies,
        list(compute_ns) AS computes,
        list(comm_ns) AS comms,
        list(copy_ns) AS copies,
    FROM nsys.phase_window
    GROUP BY device, phase
)
SELECT
    p.device,
    p.phase,
    nsys.padded_median(p.counts, w.n)::DOUBLE AS count,
    nsys.padded_median(p.hosts, w.n) / 1e6 AS host_ms,
    nsys.padded_median(p.op_counts, w.n)::DOUBLE AS op_count,
    100 * p.borrowed_count / nullif(p.op_count, 0) AS borrowed_pct,
    nsys.padded_median(p.busies, w.n) / 1e6 AS busy_ms,
    nsys.padded_min(p.busies, w.n) / 1e6 AS busy_min_ms,
    nsys.padded_max(p.busies, w.n) / 1e6 AS busy_max_ms,
    nsys.padded_median(p.computes, w.n) / 1e6 AS compute_ms,
    nsys.padded_median(p.comms, w.n) / 1e6 AS comm_ms,
    nsys.padded_median(p.copies, w.n) / 1e6 AS copy_ms,
    100 * nsys.padded_median(p.busies, w.n) / w.median_ns AS pct_of_iteration,
    w.n,
FROM phase AS p
INNER JOIN windows AS w ON w.device = p.device
ORDER BY
    p.device,
    list_position(
        [
            'data', 'forward', 'backward', 'grad_sync', 'optimizer', 'evaluation', 'checkpoint',
            'unattributed'
        ],
        p.phase
    );
