-- metric — every figure of every steady window of each rank, one a row
--
-- The metrics of the budget in their order, then the time a rank waits in matched collectives: 0 in
-- a window in which none of its groups has a collective, nothing where those that are match nothing.
--
-- @grain  one row per rank, steady window and metric
-- @reads  rank.member_window, rank.instance, rank.matched
WITH held AS (
    SELECT DISTINCT member_id, iteration FROM rank.instance
),
waited AS (
    SELECT member_id, iteration, sum(jitter_wait_ns)::BIGINT AS ns
    FROM rank.matched
    GROUP BY member_id, iteration
    UNION ALL
    SELECT w.member_id, w.iteration, 0
    FROM rank.member_window AS w
    ANTI JOIN held AS h ON h.member_id = w.member_id AND h.iteration = w.iteration
    WHERE w.member_id IN (SELECT member_id FROM rank.matched)
),
valued AS (
    SELECT
        w.member_id,
        w.iteration,
        unnest([
            {'seq': 0, 'metric': 'iteration', 'ns': w.iteration_ns},
            {'seq': 1, 'metric': 'device_busy', 'ns': w.device_busy_ns},
            {'seq': 2, 'metric': 'device_idle', 'ns': w.device_idle_ns},
            {'seq': 3, 'metric': 'noncomm_busy', 'ns': w.noncomm_busy_ns},
            {'seq': 4, 'metric': 'comm_busy', 'ns': w.comm_busy_ns},
            {'seq': 5, 'metric': 'compute_busy', 'ns': w.compute_busy_ns},
            {'seq': 6, 'metric': 'compute_absent', 'ns': w.compute_absent_ns},
            {'seq': 7, 'metric': 'occupied_not_computing', 'ns': w.occupied_not_computing_ns},
            {'seq': 8, 'metric': 'launch_starved', 'ns': w.launch_starved_ns},
            {'seq': 9, 'metric': 'blocking', 'ns': w.blocking_ns},
            {'seq': 10, 'metric': 'dependency_stalled', 'ns': w.dependency_stalled_ns},
            {'seq': 11, 'metric': 'unattributed', 'ns': w.unattributed_ns},
            {'seq': 12, 'metric': 'comm_exposed', 'ns': w.comm_exposed_ns},
            {'seq': 13, 'metric': 'comm_blocking', 'ns': w.comm_blocking_ns},
            {'seq': 14, 'metric': 'comm_overlapped', 'ns': w.comm_overlapped_ns},
            {'seq': 15, 'metric': 'launch_starved_shadowed', 'ns': w.launch_starved_shadowed_ns}
        ]) AS v,
    FROM rank.member_window AS w
)
SELECT member_id, iteration, v.seq AS seq, v.metric AS metric, v.ns AS ns FROM valued
UNION ALL
SELECT member_id, iteration, 16, 'jitter_wait_work', ns FROM waited;
