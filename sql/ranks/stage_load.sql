-- stage_load — how much does each stage compute, and how long does it wait for other stages?
--
-- What is waited is the jitter wait in matched collectives of groups across stages, no more than
-- what is exposed or holds compute up: the rest is hidden and nobody's loss. Each rank of a
-- pipeline has a bubble however even the stages are, so only a difference between stages says
-- something. It is not known where such a group has operations that match nothing, or where a rank
-- has none that match. Medians over all windows of the stage's ranks.
--
-- @grain  one row per declared stage
-- @reads  rank.member, rank.member_window, rank.instance, rank.arrival_instance, rank.blind
-- @pitfall 3, 7
WITH across AS (
    SELECT i.kind, i.name
    FROM (SELECT DISTINCT member_id, kind, name FROM rank.instance) AS i
    INNER JOIN rank.member AS m ON m.member_id = i.member_id
    GROUP BY i.kind, i.name
    HAVING min(m.stage) < max(m.stage)
),
-- of a kind that spans stages elsewhere: members that were not sampled may be of another stage
unseen AS (
    SELECT DISTINCT member_id FROM rank.blind WHERE kind IN (SELECT kind FROM across)
),
waited AS (
    SELECT i.member_id, i.iteration, sum(i.jitter_wait_ns)::BIGINT AS ns
    FROM rank.arrival_instance AS i
    INNER JOIN across AS g ON g.kind = i.kind AND g.name = i.name
    WHERE NOT i.is_apart AND i.member_id NOT IN (SELECT member_id FROM unseen)
    GROUP BY i.member_id, i.iteration
),
met AS (
    SELECT DISTINCT member_id FROM waited
)
SELECT
    m.stage,
    median(w.iteration_ns) AS iteration_ns,
    median(w.noncomm_busy_ns) AS busy_ns,
    CASE WHEN bool_and(k.member_id IS NOT NULL) THEN
        median(least(coalesce(x.ns, 0), greatest(w.comm_exposed_ns, w.comm_blocking_ns)))
    END AS wait_ns,
FROM rank.member AS m
INNER JOIN rank.member_window AS w ON w.member_id = m.member_id
LEFT JOIN met AS k ON k.member_id = m.member_id
LEFT JOIN waited AS x ON x.member_id = m.member_id AND x.iteration = w.iteration
WHERE m.stage IS NOT NULL
GROUP BY m.stage;
