-- delay — how much does each rank hold others up in each window, beyond what held it up itself?
--
-- Lateness at collectives less the rank's own jitter wait: whoever was kept by another group and is
-- late only therefore is no cause. One delay is seen again in every group that follows, so of the
-- groups of a rank only the one counts in which it is latest. A window that starts later than usual explains lateness, too,
-- unless it ends later as well: start skew is no straggling (pitfall 23).
--
-- @grain  one row per rank and window with matched collectives
-- @reads  rank.arrival_instance, rank.aligned_window
-- @pitfall 23
WITH per_group AS (
    SELECT
        member_id,
        iteration,
        sum(late_ns)::BIGINT AS late_ns,
        sum(jitter_wait_ns)::BIGINT AS jitter_wait_ns,
        count(*) AS instances,
        count(*) FILTER (WHERE is_last) AS last_count,
        bool_and(is_timed) AS is_timed,
    FROM rank.arrival_instance
    GROUP BY member_id, iteration, kind, name
),
summed AS (
    SELECT
        member_id,
        iteration,
        max(late_ns) AS late_ns,
        sum(jitter_wait_ns)::BIGINT AS jitter_wait_ns,
        sum(instances)::BIGINT AS instances,
        sum(last_count)::BIGINT AS last_count,
        bool_and(is_timed) AS is_timed,
    FROM per_group
    GROUP BY member_id, iteration
),
typical AS (
    SELECT
        w.iteration,
        quantile_disc(w.start_ns, 0.5) AS start_ns,
        quantile_disc(w.end_ns, 0.5) AS end_ns,
    FROM rank.aligned_window AS w
    WHERE w.member_id IN (SELECT member_id FROM summed)
    GROUP BY w.iteration
)
SELECT
    s.member_id,
    s.iteration,
    w.iteration_ns,
    s.late_ns,
    s.jitter_wait_ns,
    s.instances,
    s.last_count,
    s.is_timed,
    coalesce(
        greatest(0, (w.start_ns - t.start_ns) - greatest(0, w.end_ns - t.end_ns)), 0
    ) AS late_start_ns,
    s.late_ns - s.jitter_wait_ns - coalesce(
        greatest(0, (w.start_ns - t.start_ns) - greatest(0, w.end_ns - t.end_ns)), 0
    ) AS caused_ns,
FROM summed AS s
INNER JOIN rank.aligned_window AS w ON w.member_id = s.member_id AND w.iteration = s.iteration
LEFT JOIN typical AS t ON t.iteration = s.iteration;
