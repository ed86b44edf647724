-- reconciliation — where did the difference of an iteration come from?
--
-- The difference of the median iterations, split without a remainder: the rows under a parent add
-- up to the parent's delta in whole nanoseconds. An iteration is compute_busy + launch_starved +
-- blocking + dependency_stalled + unattributed in every window; medians of parts do not add up to
-- the median of the whole, and that remainder is a row of its own. Blocking is split by the class
-- of the operation to blame. Under compute_busy stands the work of each class: volume, not wall
-- time (pitfall 1), so its last row also holds what compute kernels overlap each other.
--
-- @grain  one row per pair and item
-- @reads  pair.noise, pair.label
-- @column pair BIGINT - devices or ranks that were compared, see members
-- @column level BIGINT - depth: 0 the iteration, 1 its parts, 2 the parts of a part
-- @column item VARCHAR - what the row is
-- @column parent VARCHAR - row that it is a part of
-- @column base_ns BIGINT ns median of the base; NULL for a remainder
-- @column new_ns BIGINT ns median of the new side; NULL for a remainder
-- @column delta_ns BIGINT ns new less base
-- @column pct_of_base DOUBLE pct delta as a share of the base's own value
-- @column pct_of_iteration DOUBLE pct delta as a share of the base's iteration
-- @column low_ns BIGINT ns lower bound of the shift between the windows of both sides
-- @column high_ns BIGINT ns upper bound
-- @column p_value DOUBLE - Mann and Whitney's U test over the windows
-- @column verdict VARCHAR - more, less (slower, faster of an iteration and a period), small (stands
--     out, too small to matter), no change, cannot tell
-- @column basis VARCHAR - what the verdict rests on: p, ranges far apart, bounds, ...; drift where
--     windows are alike, so that p and the bounds are wider
-- @column base_min_ns BIGINT ns least of the base's windows
-- @column base_max_ns BIGINT ns greatest of the base's windows
-- @column new_min_ns BIGINT ns least of the new side's windows
-- @column new_max_ns BIGINT ns greatest of the new side's windows
-- @column base_n BIGINT - steady windows of the base
-- @column new_n BIGINT - steady windows of the new side
-- @column label VARCHAR - what both sides do not have in common, or that the comparison was forced
-- @invariant parts_add_up coalesce((SELECT sum(c.delta_ns) FROM result_reconciliation AS c
--     WHERE c.pair = result_reconciliation.pair AND c.parent = result_reconciliation.item),
--     delta_ns) = delta_ns
-- @pitfall 1, 7, 8
WITH tree AS (
    SELECT
        n.*,
        list_position(
            ['iteration', 'compute_busy', 'launch_starved', 'blocking', 'dependency_stalled',
                'unattributed'],
            coalesce(n.parent, n.item)
        ) AS place,
        CASE WHEN n.item = 'iteration' THEN 0 WHEN n.parent IS NULL THEN 1 ELSE 2 END AS level,
        n.new_ns - n.base_ns AS delta_ns,
    FROM pair.noise AS n
    WHERE n.parent IS NOT NULL
        OR n.item IN ('iteration', 'compute_busy', 'launch_starved', 'blocking',
            'dependency_stalled', 'unattributed')
),
remainder AS (
    SELECT
        t.pair,
        CASE WHEN t.level = 0 THEN 9 ELSE t.place END AS place,
        t.level + 1 AS level,
        t.item AS parent,
        CASE
            WHEN t.level = 0 THEN 'residual of medians'
            WHEN t.item = 'compute_busy' THEN 'compute_busy:overlap and residual'
            ELSE t.item || ':residual of medians'
        END AS item,
        t.delta_ns - coalesce(sum(c.delta_ns), 0)::BIGINT AS delta_ns,
        t.base_n,
        t.new_n,
    FROM tree AS t
    LEFT JOIN tree AS c
        ON c.pair = t.pair
        AND (c.parent = t.item OR (t.level = 0 AND c.level = 1))
    WHERE t.item IN ('iteration', 'compute_busy', 'blocking')
    GROUP BY t.pair, t.place, t.level, t.item, t.delta_ns, t.base_n, t.new_n
),
listed AS (
    SELECT
        pair, place, level, 0 AS is_remainder, item,
        CASE level WHEN 1 THEN 'iteration' ELSE parent END AS parent,
        base_ns, new_ns, delta_ns, low_ns, high_ns, p_value, verdict, basis,
        base_min_ns, base_max_ns, new_min_ns, new_max_ns, base_n, new_n,
    FROM tree
    UNION ALL BY NAME
    SELECT pair, place, level, 1 AS is_remainder, item, parent, delta_ns, base_n, new_n
    FROM remainder
),
whole AS (
    SELECT pair, base_ns AS iteration_ns FROM tree WHERE level = 0
)
SELECT
    l.pair,
    l.level::BIGINT AS level,
    l.item,
    l.parent,
    l.base_ns,
    l.new_ns,
    l.delta_ns,
    100 * l.delta_ns / nullif(l.base_ns, 0) AS pct_of_base,
    100 * l.delta_ns / nullif(w.iteration_ns, 0) AS pct_of_iteration,
    l.low_ns,
    l.high_ns,
    l.p_value,
    l.verdict,
    l.basis,
    l.base_min_ns,
    l.base_max_ns,
    l.new_min_ns,
    l.new_max_ns,
    l.base_n,
    l.new_n,
    b.label,
FROM listed AS l
INNER JOIN whole AS w ON w.pair = l.pair
LEFT JOIN pair.label AS b ON b.pair = l.pair
ORDER BY l.pair, l.place, l.level, l.is_remainder, abs(l.delta_ns) DESC, l.item;
