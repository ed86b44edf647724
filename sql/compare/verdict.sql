-- verdict — did an iteration become slower or faster, and what carries the difference?
--
-- Where windows are ranges that do not touch, time between them is in no iteration. Where the
-- period changed by what the iteration did not, `between_ns` tells by how much.
--
-- The verdict is by medians, which iterations far off do not move. Where these move the mean,
-- `outliers_ns` tells by how much. Where the grids of the kernels tell that the work is another
-- one, `work_factor` tells how many times the threads a launch typically has.
--
-- @grain  one row per pair
-- @reads  pair.noise, pair.label, pair.member, pair.outlier, pair.launch_change
-- @column pair BIGINT - devices or ranks that were compared, see members
-- @column before VARCHAR - device or rank of the base
-- @column after VARCHAR - device or rank of the new side
-- @column base_ns BIGINT ns iteration of the base, median
-- @column new_ns BIGINT ns iteration of the new side, median
-- @column delta_ns BIGINT ns new less base
-- @column delta_pct DOUBLE pct delta as a share of the base
-- @column low_ns BIGINT ns lower bound of the shift
-- @column high_ns BIGINT ns upper bound of the shift
-- @column p_value DOUBLE - probability of such a difference where nothing changed
-- @column base_n BIGINT - steady windows of the base
-- @column new_n BIGINT - steady windows of the new side
-- @column verdict VARCHAR - slower, faster, small, no change or cannot tell
-- @column basis VARCHAR - what the verdict rests on: p, ranges far apart, bounds, ...; drift where
--     windows are alike, so that p and the bounds are wider
-- @column carrier VARCHAR - part of the iteration with the largest delta in that direction that
--     stands out
-- @column carrier_ns BIGINT ns its delta
-- @column inside VARCHAR - class with the largest delta in that direction inside the carrier
-- @column inside_ns BIGINT ns its delta
-- @column base_period_ns BIGINT ns from the start of an iteration to the next one's, base, median
-- @column new_period_ns BIGINT ns the same of the new side
-- @column between_ns BIGINT ns change of the period less that of the iteration; NULL where it does
--     not matter
-- @column base_mean_ns DOUBLE ns iteration of the base, mean
-- @column new_mean_ns DOUBLE ns iteration of the new side, mean
-- @column base_outliers BIGINT - iterations of the base that are far off; NULL where one side has
--     less than five
-- @column new_outliers BIGINT - iterations of the new side that are far off
-- @column outliers_ns DOUBLE ns what those add to the mean, new less base; NULL where it does not
--     matter
-- @column work_factor DOUBLE - threads of a launch, as a multiple of the base's, where that tells
--     other work; else NULL
-- @column label VARCHAR - what both sides do not have in common, or that the comparison was forced
WITH whole AS (
    SELECT *, new_ns - base_ns AS delta_ns FROM pair.noise WHERE item = 'iteration'
),
part AS (
    SELECT n.pair, n.item, n.new_ns - n.base_ns AS delta_ns,
        row_number() OVER (
            PARTITION BY n.pair ORDER BY (n.new_ns - n.base_ns) * sign(w.delta_ns) DESC, n.item
        ) AS place
    FROM pair.noise AS n
    INNER JOIN whole AS w ON w.pair = n.pair
    WHERE n.item IN ('compute_busy', 'launch_starved', 'blocking', 'dependency_stalled',
            'unattributed')
        AND n.stands_out
        AND sign(n.new_ns - n.base_ns) = sign(w.delta_ns)
),
inner_part AS (
    SELECT n.pair, n.class, n.new_ns - n.base_ns AS delta_ns,
        row_number() OVER (
            PARTITION BY n.pair ORDER BY (n.new_ns - n.base_ns) * sign(p.delta_ns) DESC, n.item
        ) AS place
    FROM part AS p
    INNER JOIN pair.noise AS n ON n.pair = p.pair AND n.parent = p.item
    WHERE p.place = 1
        AND sign(n.new_ns - n.base_ns) = sign(p.delta_ns)
        -- what outdoes the whole is one side of an exchange: kernels that moved into a graph
        AND abs(n.new_ns - n.base_ns) <= 2 * abs(p.delta_ns)
)
SELECT
    w.pair,
    b.label AS before,
    m.label AS after,
    w.base_ns,
    w.new_ns,
    w.delta_ns,
    100 * w.delta_ns / nullif(w.base_ns, 0) AS delta_pct,
    w.low_ns,
    w.high_ns,
    w.p_value,
    w.base_n,
    w.new_n,
    w.verdict,
    w.basis,
    p.item AS carrier,
    p.delta_ns AS carrier_ns,
    i.class AS inside,
    i.delta_ns AS inside_ns,
    n.base_ns AS base_period_ns,
    n.new_ns AS new_period_ns,
    CASE
        WHEN n.verdict IN ('slower', 'faster')
            AND abs(n.new_ns - n.base_ns - w.delta_ns) >= n.material_ns
            THEN n.new_ns - n.base_ns - w.delta_ns
    END AS between_ns,
    w.base_mean_ns,
    w.new_mean_ns,
    CASE WHEN least(w.base_n, w.new_n) >= 5 THEN o.base_far END AS base_outliers,
    CASE WHEN least(w.base_n, w.new_n) >= 5 THEN o.new_far END AS new_outliers,
    CASE WHEN o.is_told THEN o.new_adds_ns - o.base_adds_ns END AS outliers_ns,
    CASE WHEN g.is_other_work THEN g.factor END AS work_factor,
    l.label,
FROM whole AS w
INNER JOIN pair.member AS b ON b.pair = w.pair AND b.side = 'base'
INNER JOIN pair.member AS m ON m.pair = w.pair AND m.side = 'new'
LEFT JOIN part AS p
    ON p.pair = w.pair AND p.place = 1 AND w.verdict NOT IN ('no change', 'cannot tell')
LEFT JOIN pair.noise AS n ON n.pair = w.pair AND n.item = 'period'
LEFT JOIN inner_part AS i ON i.pair = p.pair AND i.place = 1
LEFT JOIN pair.outlier AS o ON o.pair = w.pair
LEFT JOIN pair.launch_change AS g ON g.pair = w.pair
LEFT JOIN pair.label AS l ON l.pair = w.pair
ORDER BY w.pair;
