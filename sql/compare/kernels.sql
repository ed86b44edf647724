-- kernels — which compute kernels became slower, faster, more, fewer, or others?
--
-- Median work per iteration of each compute kernel, matched by its name. The delta has two parts
-- that add up: `count_ns`, the change of the number of launches at the base's time per launch, and
-- `speed_ns`, the change of the time per launch at the new number. A kernel of one side only is all
-- count. Where a class has exactly one kernel on either side only, with the same count, the two are
-- named as counterparts: probably one kernel renamed or re-tuned. The same goes for what is then
-- left of all classes, since a new name may bring a new class. The last row of a class is what
-- the medians of its kernels leave of the median of the class, so that its rows add up to the class
-- in the reconciliation.
--
-- @grain  one row per pair, class and kernel, and one remainder per class
-- @reads  pair.content_pair, pair.measured, pair.label
-- @column pair BIGINT - devices or ranks that were compared, see members
-- @column class VARCHAR - class of the taxonomy
-- @column kernel VARCHAR - name; NULL for the remainder
-- @column match VARCHAR - both, only base, only new, or residual
-- @column base_count DOUBLE - launches per iteration of the base, median
-- @column new_count DOUBLE - launches per iteration of the new side, median
-- @column base_avg_us DOUBLE us work per launch of the base
-- @column new_avg_us DOUBLE us work per launch of the new side
-- @column avg_pct DOUBLE pct change of the work per launch
-- @column base_work_ns BIGINT ns work per iteration of the base, median
-- @column new_work_ns BIGINT ns work per iteration of the new side, median
-- @column delta_ns BIGINT ns new less base
-- @column speed_ns BIGINT ns part of delta_ns: time per launch
-- @column count_ns BIGINT ns part of delta_ns: number of launches
-- @column counterpart VARCHAR - kernel of the other side that probably replaced it, or that it
--     replaced
-- @column label VARCHAR - what both sides do not have in common, or that the comparison was forced
-- @invariant parts_add_up speed_ns + count_ns = delta_ns
-- @pitfall 1, 20
WITH kernel AS (
    SELECT
        pair,
        class,
        key AS kernel,
        CASE
            WHEN new_count = 0 AND new_work_ns = 0 THEN 'only base'
            WHEN base_count = 0 AND base_work_ns = 0 THEN 'only new'
            ELSE 'both'
        END AS match,
        base_count,
        new_count,
        base_work_ns,
        new_work_ns,
        new_work_ns - base_work_ns AS delta_ns,
    FROM pair.content_pair
    WHERE kind = 'kernel'
        AND greatest(base_count, new_count, base_work_ns, new_work_ns) > 0
),
alone AS (
    SELECT pair, class, kernel, match, greatest(base_count, new_count) AS count
    FROM kernel
    WHERE match IN ('only base', 'only new')
),
in_class AS (
    SELECT
        pair,
        max(kernel) FILTER (WHERE match = 'only base') AS old_kernel,
        max(kernel) FILTER (WHERE match = 'only new') AS new_kernel,
    FROM alone
    GROUP BY pair, class, count
    HAVING count(*) FILTER (WHERE match = 'only base') = 1
        AND count(*) FILTER (WHERE match = 'only new') = 1
),
in_any_class AS (
    SELECT
        a.pair,
        max(a.kernel) FILTER (WHERE a.match = 'only base') AS old_kernel,
        max(a.kernel) FILTER (WHERE a.match = 'only new') AS new_kernel,
    FROM alone AS a
    LEFT JOIN in_class AS i ON i.pair = a.pair AND a.kernel IN (i.old_kernel, i.new_kernel)
    WHERE i.pair IS NULL
    GROUP BY a.pair, a.count
    HAVING count(*) FILTER (WHERE a.match = 'only base') = 1
        AND count(*) FILTER (WHERE a.match = 'only new') = 1
),
counterpart AS (
    SELECT * FROM in_class
    UNION ALL
    SELECT * FROM in_any_class
),
split AS (
    SELECT
        k.*,
        CASE
            WHEN k.match <> 'both' OR k.base_count = 0 OR k.new_count = 0 THEN k.delta_ns
            ELSE round(
                (k.new_count - k.base_count) * (k.base_work_ns / k.base_count)
            )::BIGINT
        END AS count_ns,
        CASE k.match WHEN 'only base' THEN a.new_kernel WHEN 'only new' THEN a.old_kernel END
            AS counterpart,
    FROM kernel AS k
    LEFT JOIN counterpart AS a
        ON a.pair = k.pair
        AND k.kernel = CASE k.match
            WHEN 'only base' THEN a.old_kernel
            WHEN 'only new' THEN a.new_kernel
        END
),
remainder AS (
    SELECT
        m.pair,
        m.class,
        any_value(m.new_ns) - any_value(m.base_ns) - coalesce(sum(s.delta_ns), 0)::BIGINT
            AS delta_ns,
    FROM pair.measured AS m
    LEFT JOIN split AS s ON s.pair = m.pair AND s.class = m.class
    WHERE m.parent = 'compute_busy'
    GROUP BY m.pair, m.class
),
listed AS (
    SELECT
        pair, class, kernel, match, base_count, new_count, base_work_ns, new_work_ns, delta_ns,
        delta_ns - count_ns AS speed_ns, count_ns, counterpart,
    FROM split
    UNION ALL BY NAME
    SELECT pair, class, 'residual' AS match, delta_ns, delta_ns AS speed_ns, 0::BIGINT AS count_ns
    FROM remainder
)
SELECT
    l.pair,
    l.class,
    l.kernel,
    l.match,
    l.base_count,
    l.new_count,
    l.base_work_ns / nullif(l.base_count, 0) / 1e3 AS base_avg_us,
    l.new_work_ns / nullif(l.new_count, 0) / 1e3 AS new_avg_us,
    100 * (new_avg_us / nullif(base_avg_us, 0) - 1) AS avg_pct,
    l.base_work_ns,
    l.new_work_ns,
    l.delta_ns,
    l.speed_ns,
    l.count_ns,
    l.counterpart,
    b.label,
FROM listed AS l
LEFT JOIN pair.label AS b ON b.pair = l.pair
ORDER BY l.pair, l.match = 'residual', abs(l.delta_ns) DESC, l.class, l.kernel;
