-- clock_offset — what has to be added to each clock to reach the reference's?
--
-- The median of the differences between two clocks; clocks that never meet the reference's in a
-- collective are reached through others, in as few steps as possible.
--
-- @grain  one row per clock that is reached
-- @reads  rank.end_pair, rank.clock
-- @pitfall 23
WITH RECURSIVE edge AS (
    SELECT
        lead_clock,
        clock,
        round(median(ahead_ns))::BIGINT AS ahead_ns,
        count(*) AS n,
    FROM rank.end_pair
    WHERE lead_clock <> clock
    GROUP BY lead_clock, clock
),
both_ways AS (
    SELECT lead_clock AS origin, clock AS target, ahead_ns, n FROM edge
    UNION ALL
    SELECT clock, lead_clock, -ahead_ns, n FROM edge
),
reached (clock, offset_ns, hops) USING KEY (clock) AS (
    SELECT clock, 0::BIGINT, 0
    FROM (SELECT clock FROM rank.clock ORDER BY member_id LIMIT 1) AS reference
    UNION
    SELECT e.target, arg_max(r.offset_ns + e.ahead_ns, (e.n, e.origin)), min(r.hops) + 1
    FROM reached AS r
    INNER JOIN both_ways AS e ON e.origin = r.clock
    WHERE e.target NOT IN (SELECT clock FROM recurring.reached)
    GROUP BY e.target
)
SELECT clock, offset_ns, hops FROM reached;
