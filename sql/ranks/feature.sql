-- feature — what does an iteration of each rank consist of?
--
-- Median counts over the steady windows; a window without counts 0. Three kinds: operations of each
-- class of compute kernels, of each type of collective, and of each compute kernel.
--
-- @grain  one row per rank, kind and key with a median above 0
-- @reads  rank.member, rank.work, rank.member_window
WITH counted AS (
    SELECT m.member_id, 'class' AS kind, w.class AS key, w.iteration, sum(w.count) AS n
    FROM rank.member AS m
    INNER JOIN rank.work AS w ON w.part = m.part AND w.device = m.device
    WHERE w.role = 'compute'
    GROUP BY m.member_id, w.class, w.iteration
    UNION ALL
    SELECT m.member_id, 'collective', coalesce(w.collective, 'other'), w.iteration, sum(w.count)
    FROM rank.member AS m
    INNER JOIN rank.work AS w ON w.part = m.part AND w.device = m.device
    WHERE w.role = 'comm'
    GROUP BY m.member_id, coalesce(w.collective, 'other'), w.iteration
    UNION ALL
    SELECT m.member_id, 'kernel', w.name, w.iteration, sum(w.count)
    FROM rank.member AS m
    INNER JOIN rank.work AS w ON w.part = m.part AND w.device = m.device
    WHERE w.role = 'compute'
    GROUP BY m.member_id, w.name, w.iteration
),
windows AS (
    SELECT member_id, count(*) AS n FROM rank.member_window GROUP BY member_id
),
listed AS (
    SELECT member_id, kind, key, list(n::BIGINT) AS counts
    FROM counted
    GROUP BY member_id, kind, key
)
SELECT
    l.member_id,
    l.kind,
    l.key,
    nsys.padded_median(l.counts, w.n)::DOUBLE AS count,
FROM listed AS l
INNER JOIN windows AS w ON w.member_id = l.member_id
WHERE nsys.padded_median(l.counts, w.n) > 0;
