-- communication — what became of volume, exposed and blocking time of each kind of communication?
--
-- Side by side, medians per iteration. Volume is the sum of durations (work), exposed what nothing
-- else covers, blocking what compute waited for: neither stands for another (pitfall 7). Sets
-- overlap, so rows do not add up.
--
-- @grain  one row per pair, scope, class and collective
-- @reads  pair.comm, pair.window, pair.label
-- @column pair BIGINT - devices or ranks that were compared, see members
-- @column scope VARCHAR - all, class, collective, fused_compute or peer_copy
-- @column class VARCHAR - class of the taxonomy
-- @column collective VARCHAR - type of the collective
-- @column base_count DOUBLE - operations per iteration of the base
-- @column new_count DOUBLE - operations per iteration of the new side
-- @column base_work_ns BIGINT ns volume of the base
-- @column new_work_ns BIGINT ns volume of the new side
-- @column delta_work_ns BIGINT ns new less base
-- @column base_exposed_ns BIGINT ns exposed time of the base
-- @column new_exposed_ns BIGINT ns exposed time of the new side
-- @column delta_exposed_ns BIGINT ns new less base
-- @column base_blocking_ns BIGINT ns blocking time of the base
-- @column new_blocking_ns BIGINT ns blocking time of the new side
-- @column delta_blocking_ns BIGINT ns new less base
-- @column label VARCHAR - what both sides do not have in common, or that the comparison was forced
-- @pitfall 5, 6, 7
WITH typical AS (
    SELECT
        c.pair,
        c.side,
        c.scope,
        c.class,
        c.collective,
        nsys.padded_median(list(c.count), any_value(w.n))::DOUBLE AS count,
        nsys.padded_middle(list(c.work_ns), any_value(w.n)) AS work_ns,
        nsys.padded_middle(list(c.exposed_ns), any_value(w.n)) AS exposed_ns,
        nsys.padded_middle(list(c.blocking_ns), any_value(w.n)) AS blocking_ns,
    FROM pair.comm AS c
    INNER JOIN pair.window AS w ON w.pair = c.pair AND w.side = c.side
    GROUP BY c.pair, c.side, c.scope, c.class, c.collective
),
beside AS (
    SELECT
        pair,
        scope,
        class,
        collective,
        coalesce(max(count) FILTER (WHERE side = 'base'), 0) AS base_count,
        coalesce(max(count) FILTER (WHERE side = 'new'), 0) AS new_count,
        coalesce(max(work_ns) FILTER (WHERE side = 'base'), 0) AS base_work_ns,
        coalesce(max(work_ns) FILTER (WHERE side = 'new'), 0) AS new_work_ns,
        coalesce(max(exposed_ns) FILTER (WHERE side = 'base'), 0) AS base_exposed_ns,
        coalesce(max(exposed_ns) FILTER (WHERE side = 'new'), 0) AS new_exposed_ns,
        coalesce(max(blocking_ns) FILTER (WHERE side = 'base'), 0) AS base_blocking_ns,
        coalesce(max(blocking_ns) FILTER (WHERE side = 'new'), 0) AS new_blocking_ns,
    FROM typical
    GROUP BY pair, scope, class, collective
)
SELECT
    s.pair,
    s.scope,
    s.class,
    s.collective,
    s.base_count,
    s.new_count,
    s.base_work_ns,
    s.new_work_ns,
    s.new_work_ns - s.base_work_ns AS delta_work_ns,
    s.base_exposed_ns,
    s.new_exposed_ns,
    s.new_exposed_ns - s.base_exposed_ns AS delta_exposed_ns,
    s.base_blocking_ns,
    s.new_blocking_ns,
    s.new_blocking_ns - s.base_blocking_ns AS delta_blocking_ns,
    b.label,
FROM beside AS s
LEFT JOIN pair.label AS b ON b.pair = s.pair
WHERE greatest(s.base_count, s.new_count, s.base_work_ns, s.new_work_ns) > 0
ORDER BY
    s.pair,
    list_position(['all', 'class', 'collective', 'fused_compute', 'peer_copy'], s.scope),
    s.class,
    s.collective;
