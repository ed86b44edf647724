-- blind — in which groups may a rank have waited for somebody without its being seen?
--
-- Operations that match nothing, because other members were not sampled, lack the window or count
-- otherwise, and those whose members cannot have met: how long they took says nothing about who was
-- waited for. A group whose only sampled member it is has members that were not sampled, unless all
-- ranks of the run were.
--
-- @grain  one row per rank and group with such operations
-- @reads  rank.instance, rank.match_set, rank.arrival_instance, rank.member_window, rank.scope
-- @pitfall 24
WITH unseen AS (
    SELECT i.member_id, i.kind, i.name, i.duration_ns, s.members = 1 AS is_alone
    FROM rank.instance AS i
    INNER JOIN rank.match_set AS s
        ON
            s.kind = i.kind AND s.name = i.name
            AND s.iteration = i.iteration AND s.collective = i.collective
    WHERE s.reason IS NOT NULL
    UNION ALL
    SELECT member_id, kind, name, duration_ns, false
    FROM rank.arrival_instance
    WHERE is_apart
),
windows AS (
    SELECT member_id, count(*) AS n FROM rank.member_window GROUP BY member_id
)
SELECT
    u.member_id,
    u.kind,
    u.name,
    bool_and(u.is_alone) AS is_alone,
    sum(u.duration_ns) / any_value(w.n) AS ns,
FROM unseen AS u
INNER JOIN windows AS w ON w.member_id = u.member_id
WHERE NOT (u.is_alone AND (SELECT coalesce(max(world_size = sampled), false) FROM rank.scope))
GROUP BY u.member_id, u.kind, u.name;
