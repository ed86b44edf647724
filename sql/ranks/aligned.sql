-- aligned — on which common clock does each rank stand, and how well is that known?
--
-- Same-host ranks need no offset; what matched ends say about them is shown all the same. A clock
-- is judged by the ends that it shares with the clock through which it is reached: what it shares
-- with clocks that are reached through it was fitted to it and proves nothing. A link is weak where
-- too few ends match or the residual is too large, and a rank is aligned only where no link on the
-- way to the reference is weak: starts and ends are else not compared. Residuals are absolute
-- differences that the offset leaves.
--
-- @grain  one row per rank
-- @reads  rank.clock, rank.clock_offset, rank.end_pair
-- @param  residual_limit_us BIGINT = 1000 [0, 1000000000] p95 of the residual from which an
--     alignment is weak
-- @param  min_matches BIGINT = 10 [1,) matched ends below which an alignment is weak
-- @pitfall 23
WITH RECURSIVE params AS (
    SELECT
        coalesce(getvariable('residual_limit_us'), 1000)::BIGINT * 1000 AS residual_limit_ns,
        coalesce(getvariable('min_matches'), 10)::BIGINT AS min_matches,
),
residual AS (
    SELECT
        p.lead_id,
        p.lead_clock,
        p.member_id,
        p.clock,
        o.origin,
        z.origin AS lead_origin,
        abs(p.ahead_ns + z.offset_ns - o.offset_ns) AS residual_ns,
    FROM rank.end_pair AS p
    INNER JOIN rank.clock_offset AS o ON o.clock = p.clock
    INNER JOIN rank.clock_offset AS z ON z.clock = p.lead_clock
),
-- each end under the rank whose clock it places
placed AS (
    SELECT member_id, clock, residual_ns, true AS is_link
    FROM residual
    WHERE origin = lead_clock
    UNION ALL
    SELECT lead_id, lead_clock, residual_ns, true
    FROM residual
    WHERE lead_origin = clock
    UNION ALL
    SELECT member_id, clock, residual_ns, false
    FROM residual
    WHERE clock = lead_clock
),
by_rank AS (
    SELECT
        member_id,
        is_link,
        count(*) AS n,
        median(residual_ns) AS median_ns,
        quantile_cont(residual_ns, 0.95) AS p95_ns,
        max(residual_ns) AS max_ns,
    FROM placed
    GROUP BY member_id, is_link
),
-- a rank that never meets another clock itself stands as well as its clock does
by_clock AS (
    SELECT
        clock,
        count(*) AS n,
        median(residual_ns) AS median_ns,
        quantile_cont(residual_ns, 0.95) AS p95_ns,
        max(residual_ns) AS max_ns,
    FROM placed
    WHERE is_link
    GROUP BY clock
),
firm (clock) AS (
    SELECT clock FROM rank.clock_offset WHERE hops = 0
    UNION ALL
    SELECT o.clock
    FROM firm AS f
    INNER JOIN rank.clock_offset AS o ON o.origin = f.clock
    INNER JOIN by_clock AS k ON k.clock = o.clock
    CROSS JOIN params AS p
    WHERE k.n >= p.min_matches AND k.p95_ns <= p.residual_limit_ns
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
    c.clock IN (SELECT clock FROM firm) AS is_aligned,
FROM rank.clock AS c
CROSS JOIN reference AS r
LEFT JOIN rank.clock_offset AS o ON o.clock = c.clock
LEFT JOIN by_rank AS m ON m.member_id = c.member_id AND m.is_link = (c.clock <> r.clock)
LEFT JOIN by_clock AS k ON k.clock = c.clock;
