-- gate — which thresholds were crossed?
--
-- Medians are compared with the threshold as they are, or means where the metric ends in `_mean`: a
-- crossing counts whether or not it stands out of the spread, and the verdict (by medians) says if
-- it does. From a base of 0 every increase is more than any percentage.
--
-- A metric that a capture could not measure has no row: without API calls nothing says how long the
-- host took, and without kernels nothing says what computed. What is absent is never 0.
--
-- @grain  one row per threshold and pair
-- @reads  pair.threshold, pair.noise, pair.setting, pair.label
-- @column threshold VARCHAR - as it was given
-- @column pair BIGINT - devices or ranks that were compared, see members
-- @column metric VARCHAR - metric of the budget, with `_mean` for its mean
-- @column base_ns BIGINT ns median of the base, or mean
-- @column new_ns BIGINT ns median of the new side, or mean
-- @column delta_ns BIGINT ns new less base
-- @column delta_pct DOUBLE pct delta as a share of the base, NULL where that is 0
-- @column is_crossed BOOLEAN - whether the threshold is crossed
-- @column is_mean_crossed BOOLEAN - whether the means cross it
-- @column verdict VARCHAR - whether the change stands out, see budget
-- @column label VARCHAR - what both sides do not have in common, or that the comparison was forced
-- @invariant told is_crossed IS NOT NULL
WITH recorded AS (
    SELECT
        pair,
        bool_and(list_contains(string_split(coalesce(value, ''), ', '), 'api_call')) AS has_calls,
        bool_and(
            list_has_any(string_split(coalesce(value, ''), ', '), ['kernel', 'graph_exec'])
        ) AS has_kernels,
    FROM pair.setting
    WHERE name = 'recorded'
    GROUP BY pair
),
compared AS (
    SELECT
        t.position,
        t.threshold,
        t.metric,
        t.kind,
        t.comparison,
        t.amount,
        n.pair,
        CASE WHEN is_mean THEN round(n.base_mean_ns)::BIGINT ELSE n.base_ns END AS base_ns,
        CASE WHEN is_mean THEN round(n.new_mean_ns)::BIGINT ELSE n.new_ns END AS new_ns,
        n.base_mean_ns,
        n.new_mean_ns,
        n.verdict,
    FROM (SELECT *, suffix(metric, '_mean') AS is_mean FROM pair.threshold) AS t
    INNER JOIN pair.noise AS n ON n.item = regexp_replace(t.metric, '_mean$', '')
    LEFT JOIN recorded AS r ON r.pair = n.pair
    WHERE (
        n.item IN ('iteration', 'period') OR coalesce(r.has_kernels, true)
    ) AND (
        n.item NOT IN (
            'launch_starved', 'launch_starved_shadowed', 'blocking', 'comm_blocking',
            'dependency_stalled'
        ) OR coalesce(r.has_calls, true)
    )
),
measured AS (
    SELECT
        c.*,
        u.is_mean,
        CASE c.kind
            WHEN 'level' THEN u.new
            WHEN 'change' THEN u.new - u.base
            ELSE CASE
                WHEN u.base > 0 THEN 100 * (u.new - u.base) / u.base
                WHEN u.new > 0 THEN 'infinity'::DOUBLE
                ELSE 0
            END
        END AS measured,
    FROM compared AS c
    CROSS JOIN LATERAL (
        VALUES (false, base_ns::DOUBLE, new_ns::DOUBLE), (true, base_mean_ns, new_mean_ns)
    ) AS u (is_mean, base, new)
),
judged AS (
    SELECT
        *,
        CASE comparison
            WHEN '>' THEN measured > amount
            WHEN '>=' THEN measured >= amount
            WHEN '<' THEN measured < amount
            ELSE measured <= amount
        END AS is_crossed,
    FROM measured
)
SELECT
    c.threshold,
    c.pair,
    c.metric,
    c.base_ns,
    c.new_ns,
    c.new_ns - c.base_ns AS delta_ns,
    100 * (c.new_ns - c.base_ns) / nullif(c.base_ns, 0) AS delta_pct,
    c.is_crossed,
    m.is_crossed AS is_mean_crossed,
    c.verdict,
    b.label,
FROM judged AS c
INNER JOIN judged AS m
    ON m.pair = c.pair AND m.position = c.position AND m.is_mean
LEFT JOIN pair.label AS b ON b.pair = c.pair
WHERE NOT c.is_mean
ORDER BY c.position, c.pair;
