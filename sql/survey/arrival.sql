-- arrival — who comes last to the collectives of each group, how often and how late?
--
-- Lateness counts from the typical arrival of the group in each instance, the lower middle one.
-- Where clocks are not aligned the order follows from durations, and is inferred.
--
-- @grain  one row per rank, group and type of collective
-- @reads  rank.member, rank.arrival_instance
-- @column rank BIGINT - rank as declared, NULL unknown
-- @column label VARCHAR - rank, or what stands for it where it is unknown
-- @column kind VARCHAR - kind of the group
-- @column name VARCHAR - the group
-- @column collective VARCHAR - type
-- @column instance_count BIGINT count matched instances
-- @column last_count BIGINT count instances in which it comes last
-- @column last_pct DOUBLE pct of them
-- @column after_first_us DOUBLE us its arrival after the first member's, median
-- @column late_us DOUBLE us its lateness, median
-- @column late_max_us DOUBLE us greatest
-- @column late_work_ms DOUBLE ms lateness per iteration, summed over its instances, mean
-- @column order_from VARCHAR - aligned starts, or durations: the order is inferred
-- @pitfall 23, 24
SELECT
    m.rank,
    m.label,
    a.kind,
    a.name,
    a.collective,
    count(*) AS instance_count,
    count(*) FILTER (WHERE a.is_last) AS last_count,
    100 * avg(a.is_last::BIGINT) AS last_pct,
    median(a.after_first_ns) / 1e3 AS after_first_us,
    median(a.late_ns) / 1e3 AS late_us,
    max(a.late_ns) / 1e3 AS late_max_us,
    sum(a.late_ns) / count(DISTINCT a.iteration) / 1e6 AS late_work_ms,
    CASE WHEN bool_and(a.is_timed) THEN 'aligned starts' ELSE 'durations' END AS order_from,
FROM rank.arrival_instance AS a
INNER JOIN rank.member AS m ON m.member_id = a.member_id
GROUP BY m.member_id, m.rank, m.label, a.kind, a.name, a.collective
ORDER BY m.member_id, a.kind, a.name, a.collective;
