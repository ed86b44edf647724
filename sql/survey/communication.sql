-- communication — how much communication of each kind has each rank, exposed and blocking?
--
-- As recipe communication of one report, side by side: the parts of a dispatcher and NCCL apart,
-- and all together. Busy times of sets that run at once overlap, so rows do not add up.
--
-- @grain  one row per rank and set
-- @reads  rank.member, rank.comm, rank.member_window
-- @column rank BIGINT - rank as declared, NULL unknown
-- @column label VARCHAR - rank, or what stands for it where it is unknown
-- @column scope VARCHAR - all, class, collective, fused_compute or peer_copy
-- @column class VARCHAR - class of the taxonomy, NULL for all
-- @column collective VARCHAR - type of the collective, NULL where the set holds several
-- @column count DOUBLE count operations that start in an iteration, median
-- @column work_ms DOUBLE ms sum of clipped durations, median: work volume
-- @column busy_ms DOUBLE ms union of the set, median
-- @column exposed_ms DOUBLE ms the set runs and no operation of another role, median
-- @column blocking_ms DOUBLE ms blocking time that an operation of the set is to blame for, median
-- @column n BIGINT - steady iterations; one without such an operation counts 0
-- @pitfall 5, 6, 7
WITH windows AS (
    SELECT member_id, count(*) AS n FROM rank.member_window GROUP BY member_id
),
listed AS (
    SELECT
        m.member_id,
        c.scope,
        c.class,
        c.collective,
        list(c.count) AS count,
        list(c.work_ns) AS work,
        list(c.busy_ns) AS busy,
        list(c.exposed_ns) AS exposed,
        list(c.blocking_ns) AS blocking,
    FROM rank.member AS m
    INNER JOIN rank.comm AS c ON c.part = m.part AND c.device = m.device
    GROUP BY m.member_id, c.scope, c.class, c.collective
)
SELECT
    m.rank,
    m.label,
    l.scope,
    l.class,
    l.collective,
    nsys.padded_median(l.count, w.n)::DOUBLE AS count,
    nsys.padded_median(l.work, w.n) / 1e6 AS work_ms,
    nsys.padded_median(l.busy, w.n) / 1e6 AS busy_ms,
    nsys.padded_median(l.exposed, w.n) / 1e6 AS exposed_ms,
    nsys.padded_median(l.blocking, w.n) / 1e6 AS blocking_ms,
    w.n,
FROM listed AS l
INNER JOIN rank.member AS m ON m.member_id = l.member_id
INNER JOIN windows AS w ON w.member_id = l.member_id
ORDER BY
    m.member_id,
    list_position(['all', 'class', 'collective', 'fused_compute', 'peer_copy'], l.scope),
    l.class NULLS FIRST,
    l.collective NULLS FIRST;
