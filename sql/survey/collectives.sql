-- collectives — what of each group's collectives is transfer, and what is waiting for others?
--
-- Instances match by group, type and ordinal in host issue order, only where every sampled member
-- has as many; all others are counted as unmatched with the reason. Per matched instance the
-- shortest member is the transfer proxy and the rest of each member is jitter wait. Sums over the
-- instances of a window are work volume. One sampled member allows no such claim. Where not all
-- members were sampled the proxy is an upper bound.
--
-- @grain  one row per group and type of collective
-- @reads  rank.match_set, rank.matched, rank.arrival_instance, rank.member
-- @column kind VARCHAR - kind of the group, tp, dp, ...; communicator where the export tells it
-- @column name VARCHAR - the group
-- @column collective VARCHAR - type
-- @column member_count BIGINT count sampled members
-- @column matched_count BIGINT count matched instances
-- @column operation_count BIGINT count operations of all members
-- @column unmatched_count BIGINT count operations that match nothing
-- @column reason VARCHAR - why not, the most frequent reason
-- @column transfer_proxy_us DOUBLE us transfer proxy of an instance, median
-- @column jitter_wait_us DOUBLE us jitter wait of a member in an instance, median
-- @column jitter_wait_max_us DOUBLE us greatest
-- @column transfer_proxy_work_ms DOUBLE ms per iteration, sum over the instances, median
-- @column jitter_wait_work_ms DOUBLE ms per iteration, mean of the members, median
-- @column jitter_pct DOUBLE pct jitter wait by time in matched instances
-- @column last VARCHAR - member that comes last most often, of equals the later one in sum
-- @column last_pct DOUBLE pct instances in which it does
-- @column order_from VARCHAR - aligned starts, or durations: the order is inferred
-- @column bytes BIGINT bytes size of a message, median, where the export tells it
-- @invariant all_counted matched_count * member_count + unmatched_count = operation_count
-- @invariant parts_of_durations jitter_pct IS NULL OR (jitter_pct >= 0 AND jitter_pct <= 100)
-- @pitfall 6, 23, 24
WITH set_total AS (
    SELECT
        kind,
        name,
        collective,
        max(members) AS members,
        sum(operations)::BIGINT AS operations,
        coalesce(sum(operations) FILTER (WHERE reason IS NOT NULL), 0)::BIGINT AS unmatched,
        mode(reason ORDER BY reason) AS reason,
    FROM rank.match_set
    GROUP BY kind, name, collective
),
matched AS (
    SELECT
        kind,
        name,
        collective,
        count(DISTINCT (iteration, ordinal)) AS instances,
        median(transfer_proxy_ns) AS proxy_ns,
        median(jitter_wait_ns) AS jitter_ns,
        max(jitter_wait_ns) AS jitter_max_ns,
        100 * sum(jitter_wait_ns) / nullif(sum(duration_ns), 0) AS jitter_pct,
        median(bytes) AS bytes,
    FROM rank.matched
    GROUP BY kind, name, collective
),
per_window AS (
    SELECT
        kind,
        name,
        collective,
        iteration,
        sum(transfer_proxy_ns) / count(DISTINCT member_id) AS proxy_ns,
        sum(jitter_wait_ns) / count(DISTINCT member_id) AS jitter_ns,
    FROM rank.matched
    GROUP BY kind, name, collective, iteration
),
typical AS (
    SELECT kind, name, collective, median(proxy_ns) AS proxy_ns, median(jitter_ns) AS jitter_ns
    FROM per_window
    GROUP BY kind, name, collective
),
last_of AS (
    SELECT
        kind,
        name,
        collective,
        member_id,
        count(*) FILTER (WHERE is_last) AS n,
        100 * avg(is_last::BIGINT) AS pct,
        sum(late_ns) AS late_ns,
        bool_and(is_timed) AS is_timed,
    FROM rank.arrival_instance
    GROUP BY kind, name, collective, member_id
),
most_last AS (
    SELECT
        kind,
        name,
        collective,
        arg_max(member_id, (n, late_ns, -member_id)) AS member_id,
        max(pct) AS pct,
        bool_and(is_timed) AS is_timed,
    FROM last_of
    GROUP BY kind, name, collective
)
SELECT
    s.kind,
    s.name,
    s.collective,
    s.members AS member_count,
    coalesce(m.instances, 0) AS matched_count,
    s.operations AS operation_count,
    s.unmatched AS unmatched_count,
    s.reason,
    m.proxy_ns / 1e3 AS transfer_proxy_us,
    m.jitter_ns / 1e3 AS jitter_wait_us,
    m.jitter_max_ns / 1e3 AS jitter_wait_max_us,
    t.proxy_ns / 1e6 AS transfer_proxy_work_ms,
    t.jitter_ns / 1e6 AS jitter_wait_work_ms,
    m.jitter_pct,
    r.label AS last,
    l.pct AS last_pct,
    CASE WHEN l.is_timed THEN 'aligned starts' WHEN NOT l.is_timed THEN 'durations' END
        AS order_from,
    m.bytes::BIGINT AS bytes,
FROM set_total AS s
LEFT JOIN matched AS m ON m.kind = s.kind AND m.name = s.name AND m.collective = s.collective
LEFT JOIN typical AS t ON t.kind = s.kind AND t.name = s.name AND t.collective = s.collective
LEFT JOIN most_last AS l ON l.kind = s.kind AND l.name = s.name AND l.collective = s.collective
LEFT JOIN rank.member AS r ON r.member_id = l.member_id
ORDER BY s.kind, s.name, s.collective;
