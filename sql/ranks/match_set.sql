-- match_set — in which windows do all members of a group have the same collectives?
--
-- Instances match only where every sampled member of the group has the window and an equal count
-- of the type in it; all others are unmatched, for the first reason that applies.
--
-- @grain  one row per group, window and type of collective that any member has
-- @reads  rank.membership, rank.instance, rank.member_window
WITH size AS (
    SELECT kind, name, count(*) AS members FROM rank.membership GROUP BY kind, name
),
counted AS (
    SELECT member_id, kind, name, iteration, collective, count(*) AS n
    FROM rank.instance
    GROUP BY member_id, kind, name, iteration, collective
),
kept AS (
    SELECT g.kind, g.name, w.iteration, count(*) AS windows
    FROM rank.membership AS g
    INNER JOIN rank.member_window AS w ON w.member_id = g.member_id
    GROUP BY g.kind, g.name, w.iteration
)
SELECT
    c.kind,
    c.name,
    c.iteration,
    c.collective,
    s.members,
    count(*) AS present,
    min(c.n) AS least,
    max(c.n) AS most,
    sum(c.n)::BIGINT AS operations,
    CASE
        WHEN s.members < 2 THEN 'only one member was sampled'
        WHEN any_value(k.windows) < s.members THEN 'a member has no such steady window'
        WHEN count(*) < s.members OR min(c.n) <> max(c.n) THEN 'the counts of the members differ'
    END AS reason,
FROM counted AS c
INNER JOIN size AS s ON s.kind = c.kind AND s.name = c.name
INNER JOIN kept AS k ON k.kind = c.kind AND k.name = c.name AND k.iteration = c.iteration
GROUP BY c.kind, c.name, c.iteration, c.collective, s.members;
