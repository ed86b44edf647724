-- gate — which thresholds were crossed?
--
-- Medians are compared with the threshold as they are: a crossing counts whether or not it stands
-- out of the spread, and the verdict says if it does. From a base of 0 every increase is more than
-- any percentage.
--
-- A metric that a capture could not measure has no row: without API calls nothing says how long the
-- host took, and without kernels nothing says what computed. What is absent is never 0.
--
-- @grain  one row per threshold and pair
-- @reads  pair.threshold, pair.noise, pair.setting, pair.label
-- @column threshold VARCHAR - as it was given
-- @column pair BIGINT - devices or ranks that were compared, see members
-- @column metric VARCHAR - metric of the budget
-- @column base_ns BIGINT ns median of the base
-- @column new_ns BIGINT ns median of the new side
-- @column delta_ns BIGINT ns new less base
-- @column delta_pct DOUBLE pct delta as a share of the base, NULL where that is 0
-- @column is_crossed BOOLEAN - whether the threshold is crossed
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
        t.comparison,
        t.amount,
        n.pair,
        n.base_ns,
        n.new_ns,
        n.new_ns - n.base_ns AS delta_ns,
        n.verdict,
        CASE t.kind
            WHEN 'level' THEN n.new_ns::DOUBLE
            WHEN 'change' THEN (n.new_ns - n.base_ns)::DOUBLE
            ELSE CASE
                WHEN n.base_ns > 0 THEN 100 * (n.new_ns - n.base_ns) / n.base_ns
                WHEN n.new_ns > 0 THEN 'infinity'::DOUBLE
                ELSE 0
            END
        END AS measured,
    FROM pair.threshold AS t
    INNER JOIN pair.noise AS n ON n.item = t.metric
    LEFT JOIN recorded AS r ON r.pair = n.pair
    WHERE (
        t.metric IN ('iteration', 'period') OR coalesce(r.has_kernels, true)
    ) AND (
        t.metric NOT IN (
            'launch_starved', 'launch_starved_shadowed', 'blocking', 'comm_blocking',
            'dependency_stalled'
        ) OR coalesce(r.has_calls, true)
    )
)
SELECT
    c.threshold,
    c.pair,
    c.metric,
    c.base_ns,
    c.new_ns,
    c.delta_ns,
    100 * c.delta_ns / nullif(c.base_ns, 0) AS delta_pct,
    CASE c.comparison
        WHEN '>' THEN c.measured > c.amount
        WHEN '>=' THEN c.measured >= c.amount
        WHEN '<' THEN c.measured < c.amount
        ELSE c.measured <= c.amount
    END AS is_crossed,
    c.verdict,
    b.label,
FROM compared AS c
LEFT JOIN pair.label AS b ON b.pair = c.pair
ORDER BY c.position, c.pair;
