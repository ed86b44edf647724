-- aligned — on which common clock does each rank stand, and how well is that known?
--
-- Same-host ranks need no offset; what matched ends say about them is shown all the same. An
-- alignment is weak, and starts and ends are then not compared, where too few ends match or the
-- residual is too large. Residuals are absolute differences that the offset leaves.
--
-- @grain  one row per rank
-- @reads  rank.member, rank.clock, rank.clock_offset, rank.end_pair
-- @param  residual_limit_us BIGINT = 1000 [0, 1000000000] p95 of the residual from which an
--     alignment is weak
-- @param  min_matches BIGINT = 10 [1,) matched ends below which an alignment is weak
-- @pitfall 23
WITH params AS (
    SELECT
        coalesce(getvariable('residual_limit_us'), 1000)::BIGINT * 1000 AS residual_limit_ns,
        coalesce(getvariable('min_matches'), 10)::BIGINT AS min_matches,
),
residual AS (
    SELECT
        p.lead_clock,
        p.member_id,
        p.clock,
        p.lead_clock <> p.clock AS is_across,
        abs(p.ahead_ns + z.offset_ns - o.offset_ns) AS residual_ns,
    FROM rank.end_pair AS p
    INNER JOIN rank.clock_offset AS o ON o.clock = p.clock
    INNER JOIN rank.clock_offset AS z ON z.clock = p.lead_clock
),
by_rank AS (
    SELECT
        member_id,
        is_across,
        count(*) AS n,
        median(residual_ns) AS median_ns,
        quantile_cont(residual_ns, 0.95) AS p95_ns,
        max(residual_ns) AS max_ns,
    FROM residual
    GROUP BY member_id, is_across
),
-- a rank that never meets another clock itself stands as well as its clock does
by_clock AS (
    SELECT
        clock,
        count(*) AS n,
        median(residual_ns) AS median_ns,
        quantile_cont(residual_ns, 0.95) AS p95_ns,
        max(residual_ns) AS max_ns,
    FROM (
        SELECT clock, residual_ns FROM residual WHERE is_across
        UNION ALL
        SELECT lead_clock, residual_ns FROM residual WHERE is_across
    ) AS across
    GROUP BY clock
),
reference AS (
    SELECT member_id, clock FROM rank.clock ORDER BY member_id LIMIT 1
)
SELECT
    c.member_id,
    c.host,
    c.session_start_ns,
    CASE
        WHEN c.member_id = r.member_id THEN 'reference'
        WHEN c.clock = r.clock THEN 'same clock'
        WHEN o.clock IS NULL THEN 'none'
        WHEN o.hops > 1 THEN 'matched ends, through other hosts'
        ELSE 'matched ends'
    END AS method,
    o.offset_ns,
    coalesce(m.n, k.n, 0) AS n,
    coalesce(m.median_ns, k.median_ns) AS median_ns,
    coalesce(m.p95_ns, k.p95_ns) AS p95_ns,
    coalesce(m.max_ns, k.max_ns) AS max_ns,
    c.clock = r.clock
    OR (
        o.clock IS NOT NULL AND coalesce(k.n >= p.min_matches, false)
        AND k.p95_ns <= p.residual_limit_ns
    ) AS is_aligned,
FROM rank.clock AS c
CROSS JOIN params AS p
CROSS JOIN reference AS r
LEFT JOIN rank.clock_offset AS o ON o.clock = c.clock
LEFT JOIN by_rank AS m ON m.member_id = c.member_id AND m.is_across = (c.clock <> r.clock)
LEFT JOIN by_clock AS k ON k.clock = c.clock AND c.clock <> r.clock;
