-- budget — how does each metric of the budget compare, and does its change stand out?
--
-- Every metric by itself: medians of parts need not add up (see reconciliation). The test is Mann
-- and Whitney's U over the windows; the bounds are Hodges and Lehmann's interval of the shift.
-- `period` is no part of the budget: it is the time from the start of a window to that of the next,
-- so it also holds what happens between windows.
--
-- @grain  one row per pair and metric
-- @reads  pair.noise, pair.label
-- @column pair BIGINT - devices or ranks that were compared, see members
-- @column metric VARCHAR - metric of the budget, or period
-- @column base_ns BIGINT ns median of the base
-- @column new_ns BIGINT ns median of the new side
-- @column delta_ns BIGINT ns new less base
-- @column delta_pct DOUBLE pct delta as a share of the base
-- @column low_ns BIGINT ns lower bound of the shift
-- @column high_ns BIGINT ns upper bound of the shift
-- @column p_value DOUBLE - probability of such a difference where nothing changed
-- @column verdict VARCHAR - more, less (slower, faster of an iteration and a period), small (stands
--     out, too small to matter), no change, cannot tell
-- @column basis VARCHAR - what the verdict rests on: p, ranges far apart, bounds, ...; drift where
--     windows are alike, so that p and the bounds are wider
-- @column base_min_ns BIGINT ns least of the base's windows
-- @column base_max_ns BIGINT ns greatest of the base's windows
-- @column new_min_ns BIGINT ns least of the new side's windows
-- @column new_max_ns BIGINT ns greatest of the new side's windows
-- @column base_mean_ns DOUBLE ns mean of the base: means of parts add up, medians do not
-- @column new_mean_ns DOUBLE ns mean of the new side
-- @column base_n BIGINT - figures of the base: steady windows, of period pairs of neighbours
-- @column new_n BIGINT - figures of the new side
-- @column label VARCHAR - what both sides do not have in common, or that the comparison was forced
SELECT
    n.pair,
    n.item AS metric,
    n.base_ns,
    n.new_ns,
    n.new_ns - n.base_ns AS delta_ns,
    100 * (n.new_ns - n.base_ns) / nullif(n.base_ns, 0) AS delta_pct,
    n.low_ns,
    n.high_ns,
    n.p_value,
    n.verdict,
    n.basis,
    n.base_min_ns,
    n.base_max_ns,
    n.new_min_ns,
    n.new_max_ns,
    n.base_mean_ns,
    n.new_mean_ns,
    n.base_n,
    n.new_n,
    b.label,
FROM pair.noise AS n
LEFT JOIN pair.label AS b ON b.pair = n.pair
WHERE n.parent IS NULL
ORDER BY
    n.pair,
    list_position(
        ['iteration', 'period', 'device_busy', 'device_idle', 'noncomm_busy', 'comm_busy',
            'compute_busy', 'compute_absent', 'occupied_not_computing', 'launch_starved',
            'blocking', 'dependency_stalled', 'unattributed', 'comm_exposed', 'comm_blocking',
            'comm_overlapped', 'launch_starved_shadowed'],
        n.item
    );
