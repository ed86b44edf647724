-- end_pair — how far apart do the ends of matched collectives lie on two clocks?
--
-- All members of a collective end together. In each instance one member leads: of the clock of the
-- reference rank where it takes part, else the least one. Every other member gives one difference.
--
-- @grain  one row per matched instance and member that does not lead it
-- @reads  rank.matched, rank.clock
-- @pitfall 23
WITH reference AS (
    SELECT clock FROM rank.clock ORDER BY member_id LIMIT 1
),
placed AS (
    SELECT
        m.kind,
        m.name,
        m.iteration,
        m.collective,
        m.ordinal,
        m.member_id,
        m.end_ns,
        c.clock,
        c.clock <> r.clock AS is_other,
    FROM rank.matched AS m
    INNER JOIN rank.clock AS c ON c.member_id = m.member_id
    CROSS JOIN reference AS r
),
led AS (
    SELECT
        kind,
        name,
        iteration,
        collective,
        ordinal,
        arg_min(member_id, (is_other, member_id)) AS lead_id,
        arg_min(clock, (is_other, member_id)) AS lead_clock,
        arg_min(end_ns, (is_other, member_id)) AS lead_end_ns,
    FROM placed
    GROUP BY kind, name, iteration, collective, ordinal
)
SELECT
    l.lead_id,
    l.lead_clock,
    p.member_id,
    p.clock,
    l.lead_end_ns - p.end_ns AS ahead_ns,
FROM placed AS p
INNER JOIN led AS l
    ON
        l.kind = p.kind AND l.name = p.name AND l.iteration = p.iteration
        AND l.collective = p.collective AND l.ordinal = p.ordinal
WHERE p.member_id <> l.lead_id;
