-- clock_offset — what has to be added to each clock to reach the reference's?
--
-- The median of the differences between two clocks, whichever of them leads; clocks that never meet
-- the reference's in a collective are reached through others, in as few steps as possible, of those
-- through the one that is met most often. In whole nanoseconds: of clocks that lie decades apart a
-- DOUBLE would lose some.
--
-- @grain  one row per clock that is reached
-- @reads  rank.end_pair, rank.clock
-- @pitfall 23
WITH RECURSIVE met AS (
    SELECT
        least(lead_clock, clock) AS one,
        greatest(lead_clock, clock) AS other,
        CASE WHEN lead_clock < clock THEN ahead_ns ELSE -ahead_ns END AS ahead_ns,
    FROM rank.end_pair
    WHERE lead_clock <> clock
),
middle AS (
    SELECT
        one,
        other,
        count(*) AS n,
        -- the lower and the upper middle one
        quantile_disc(ahead_ns, 0.5)::HUGEINT - quantile_disc(-ahead_ns, 0.5) AS twice_ns,
    FROM met
    GROUP BY one, other
),
edge AS (
    -- half a nanosecond goes away from 0, so that both ways are the same
    SELECT one, other, n, (sign(twice_ns)::BIGINT * ((abs(twice_ns) + 1) // 2))::BIGINT AS ahead_ns
    FROM middle
),
both_ways AS (
    SELECT one AS origin, other AS target, ahead_ns, n FROM edge
    UNION ALL
    SELECT other, one, -ahead_ns, n FROM edge
),
reached (clock, origin, offset_ns, hops) USING KEY (clock) AS (
    SELECT clock, NULL::VARCHAR, 0::BIGINT, 0
    FROM (SELECT clock FROM rank.clock ORDER BY member_id LIMIT 1) AS reference
    UNION
    SELECT
        e.target,
        arg_max(e.origin, (e.n, e.origin)),
        arg_max(r.offset_ns + e.ahead_ns, (e.n, e.origin)),
        min(r.hops) + 1,
    FROM reached AS r
    INNER JOIN both_ways AS e ON e.origin = r.clock
    WHERE e.target NOT IN (SELECT clock FROM recurring.reached)
    GROUP BY e.target
)
SELECT clock, origin, offset_ns, hops FROM reached;
