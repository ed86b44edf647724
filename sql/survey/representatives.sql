-- representatives — which ranks should be looked at one by one?
--
-- Declared, not chosen silently: the rank with the slowest iteration of all, and of every stage
-- and fingerprint the rank whose iteration lies closest to the median of its group. A straggler is
-- typical only where there is nobody else: in a synchronous run all iterations are as long as its
-- own. Rank 0 is not representative by itself (pitfall 3).
--
-- @grain  one row per reason
-- @reads  rank.member, rank.fingerprint, rank.member_window, rank.part, rank.straggler
-- @column rank BIGINT - rank as declared, NULL unknown
-- @column label VARCHAR - rank, or what stands for it where it is unknown
-- @column reason VARCHAR - why this one
-- @column group VARCHAR - its group
-- @column iteration_ms DOUBLE ms its iteration, median
-- @column device BIGINT - device number in its report
-- @column trace VARCHAR - report it comes from
-- @pitfall 3, 24
WITH typical AS (
    SELECT f.group_id, f.stage, w.member_id, median(w.iteration_ns) AS ns
    FROM rank.member_window AS w
    INNER JOIN rank.fingerprint AS f ON f.member_id = w.member_id
    GROUP BY f.group_id, f.stage, w.member_id
),
middle AS (
    SELECT group_id, median(ns) AS ns FROM typical GROUP BY group_id
),
chosen AS (
    SELECT 0 AS seq, NULL::BIGINT AS group_id, 'slowest iteration of all sampled ranks' AS reason,
        arg_max(member_id, (ns, -member_id)) AS member_id
    FROM typical
    UNION ALL
    SELECT
        1,
        t.group_id,
        'typical of stage ' || coalesce(any_value(t.stage)::VARCHAR, '(unknown)')
        || ', fingerprint group G' || t.group_id,
        arg_min(t.member_id, (s.member_id IS NOT NULL, abs(t.ns - m.ns), t.member_id)),
    FROM typical AS t
    INNER JOIN middle AS m ON m.group_id = t.group_id
    LEFT JOIN rank.straggler AS s ON s.member_id = t.member_id
    GROUP BY t.group_id
)
SELECT
    m.rank,
    m.label,
    c.reason,
    'G' || t.group_id AS "group",
    t.ns / 1e6 AS iteration_ms,
    m.device,
    p.trace,
FROM chosen AS c
INNER JOIN rank.member AS m ON m.member_id = c.member_id
INNER JOIN rank.part AS p ON p.part = m.part
INNER JOIN typical AS t ON t.member_id = c.member_id
ORDER BY c.seq, c.group_id;
