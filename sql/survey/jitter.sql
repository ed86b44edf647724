-- jitter — how long does each rank wait for others in its collectives?
--
-- Sums over the matched instances of a window: work volume. A rank that waits little while others
-- wait long is the one they wait for. A window without such an operation counts 0; what matches
-- nothing says nothing, and its window is left out.
--
-- @grain  one row per rank, kind of group and type of collective
-- @reads  rank.member, rank.matched, rank.instance, rank.member_window
-- @column rank BIGINT - rank as declared, NULL unknown
-- @column label VARCHAR - rank, or what stands for it where it is unknown
-- @column kind VARCHAR - kind of the group
-- @column name VARCHAR - the group
-- @column collective VARCHAR - type
-- @column matched_count BIGINT count matched instances
-- @column unmatched_count BIGINT count instances without a match
-- @column duration_work_ms DOUBLE ms time in matched instances per iteration, median
-- @column transfer_proxy_work_ms DOUBLE ms of it transfer proxy, median
-- @column jitter_wait_work_ms DOUBLE ms of it jitter wait, median
-- @column jitter_wait_min_ms DOUBLE ms least
-- @column jitter_wait_max_ms DOUBLE ms greatest
-- @column jitter_pct DOUBLE pct jitter wait by time in matched instances
-- @column n BIGINT - steady iterations, without those in which it matches nothing
-- @pitfall 1, 6, 24
WITH windows AS (
    SELECT member_id, count(*) AS n FROM rank.member_window GROUP BY member_id
),
total AS (
    SELECT
        member_id, kind, name, collective, count(*) AS n, count(DISTINCT iteration) AS held_windows,
    FROM rank.instance
    GROUP BY member_id, kind, name, collective
),
per_window AS (
    SELECT
        member_id,
        kind,
        name,
        collective,
        iteration,
        count(*) AS n,
        sum(duration_ns)::BIGINT AS duration_ns,
        sum(transfer_proxy_ns)::BIGINT AS proxy_ns,
        sum(jitter_wait_ns)::BIGINT AS jitter_ns,
    FROM rank.matched
    GROUP BY member_id, kind, name, collective, iteration
),
listed AS (
    SELECT
        member_id,
        kind,
        name,
        collective,
        sum(n)::BIGINT AS n,
        count(*) AS windows,
        list(duration_ns) AS duration,
        list(proxy_ns) AS proxy,
        list(jitter_ns) AS jitter,
        100 * sum(jitter_ns) / nullif(sum(duration_ns), 0) AS jitter_pct,
    FROM per_window
    GROUP BY member_id, kind, name, collective
),
told AS (
    SELECT
        t.* EXCLUDE (held_windows),
        l.* EXCLUDE (member_id, kind, name, collective, n, windows),
        coalesce(l.n, 0) AS matched_count,
        w.n - (t.held_windows - coalesce(l.windows, 0)) AS windows,
    FROM total AS t
    INNER JOIN windows AS w ON w.member_id = t.member_id
    LEFT JOIN listed AS l
        ON
            l.member_id = t.member_id AND l.kind = t.kind AND l.name = t.name
            AND l.collective = t.collective
)
SELECT
    m.rank,
    m.label,
    t.kind,
    t.name,
    t.collective,
    t.matched_count,
    t.n - t.matched_count AS unmatched_count,
    nsys.padded_median(t.duration, t.windows) / 1e6 AS duration_work_ms,
    nsys.padded_median(t.proxy, t.windows) / 1e6 AS transfer_proxy_work_ms,
    nsys.padded_median(t.jitter, t.windows) / 1e6 AS jitter_wait_work_ms,
    CASE WHEN t.matched_count > 0 THEN nsys.padded_min(t.jitter, t.windows) / 1e6 END
        AS jitter_wait_min_ms,
    CASE WHEN t.matched_count > 0 THEN nsys.padded_max(t.jitter, t.windows) / 1e6 END
        AS jitter_wait_max_ms,
    t.jitter_pct,
    t.windows AS n,
FROM told AS t
INNER JOIN rank.member AS m ON m.member_id = t.member_id
ORDER BY m.member_id, t.kind, t.name, t.collective;
