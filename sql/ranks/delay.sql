-- delay — how much does each rank hold others up in each window, beyond what held it up itself?
--
-- Lateness at collectives less the rank's own jitter wait: whoever was kept by another group and is
-- late only therefore is no cause. One delay is seen again in every group that follows, so of the
-- groups of a rank only the one counts in which it is latest. Stages of a pipeline come to their
-- hand-overs at different times however even they are: a group across stages tells what held a rank
-- up, never that it is late. A window that starts later than usual explains lateness, too, unless it
-- ends later as well: start skew is no straggling (pitfall 23). And whoever waits for members whose
-- windows merely began early waits for nobody's fault: so much of a group's lateness, once in a
-- window, is as the early start of the member that lateness is measured from. Instances whose
-- members cannot have met say nothing.
--
-- @grain  one row per rank and window with matched collectives of a group inside one stage
-- @reads  rank.arrival_instance, rank.aligned_window, rank.member
-- @pitfall 23
WITH staged AS (
    SELECT i.*, m.stage
    FROM rank.arrival_instance AS i
    INNER JOIN rank.member AS m ON m.member_id = i.member_id
    WHERE NOT i.is_apart
),
spanned AS (
    SELECT kind, name, coalesce(min(stage) < max(stage), false) AS is_across
    FROM staged
    GROUP BY kind, name
),
inside AS (
    SELECT DISTINCT i.member_id
    FROM staged AS i
    INNER JOIN spanned AS g ON g.kind = i.kind AND g.name = i.name
    WHERE NOT g.is_across
),
typical AS (
    SELECT
        w.iteration,
        quantile_disc(w.start_ns, 0.5) AS start_ns,
        quantile_disc(w.end_ns, 0.5) AS end_ns,
    FROM rank.aligned_window AS w
    WHERE w.member_id IN (SELECT member_id FROM inside)
    GROUP BY w.iteration
),
-- a window that starts early and does not end so much earlier; in the order of arrivals
head_start AS (
    SELECT
        a.kind,
        a.name,
        a.iteration,
        -- greatest skips NULLs: 0 where clocks are not aligned and nothing is known
        -quantile_disc(
            -greatest(0, (t.start_ns - w.start_ns) - greatest(0, t.end_ns - w.end_ns)), 0.5
        ) AS early_ns,
    FROM (SELECT DISTINCT kind, name, iteration, member_id FROM staged) AS a
    INNER JOIN rank.aligned_window AS w
        ON w.member_id = a.member_id AND w.iteration = a.iteration
    LEFT JOIN typical AS t ON t.iteration = a.iteration
    GROUP BY a.kind, a.name, a.iteration
),
per_group AS (
    SELECT
        i.member_id,
        i.iteration,
        g.is_across,
        CASE
            WHEN g.is_across THEN 0
            ELSE greatest(0, sum(i.late_ns) - any_value(h.early_ns))
        END::BIGINT AS late_ns,
        sum(i.jitter_wait_ns)::BIGINT AS jitter_wait_ns,
        count(*) AS instances,
        count(*) FILTER (WHERE i.is_last) AS last_count,
        bool_and(i.is_timed) AS is_timed,
    FROM staged AS i
    INNER JOIN spanned AS g ON g.kind = i.kind AND g.name = i.name
    LEFT JOIN head_start AS h
        ON h.kind = i.kind AND h.name = i.name AND h.iteration = i.iteration
    GROUP BY i.member_id, i.iteration, i.kind, i.name, g.is_across
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
    HAVING bool_or(NOT is_across)
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
    greatest(0, (w.start_ns - t.start_ns) - greatest(0, w.end_ns - t.end_ns)) AS late_start_ns,
    s.late_ns - s.jitter_wait_ns - late_start_ns AS caused_ns,
FROM summed AS s
INNER JOIN rank.aligned_window AS w ON w.member_id = s.member_id AND w.iteration = s.iteration
LEFT JOIN typical AS t ON t.iteration = s.iteration;
