-- delay — how much does each rank hold others up in each window, beyond what held it up itself?
--
-- Two figures bound it, and the lesser counts. One is its lateness at the collectives of a group,
-- summed: right where each of them holds compute up, too much where they run beside compute and
-- one delay is seen again in all that follow. The other is what the usual member of the group
-- loses more than it does: time in which communication runs alone, or that compute spends waiting
-- for it. What all of them have, as the transfer and the bubble of a pipeline, cancels out, and so
-- does what a rank lost itself and only passed on. What it waited itself, beyond the least that a
-- member loses, is taken off. What its collectives take longer than those of the usual member,
-- other than as matched waits (a slow link, members that are not known), is not known to have held
-- it up. Of its groups the one counts in which it causes most.
--
-- Stages of a pipeline come to their hand-overs at different times however even they are: a group
-- across stages tells what held a rank up, never that it is late. A window that starts later than
-- usual explains lateness, too, unless it ends later as well: start skew is no straggling (pitfall
-- 23). And whoever waits for members whose windows merely began early waits for nobody's fault: so
-- much less is a group late, once in a window, as the member began early that lateness is measured
-- from, and so much less each of them lost. Instances whose members cannot have met say nothing.
--
-- @grain  one row per rank and window with matched collectives of a group inside one stage
-- @reads  rank.arrival_instance, rank.instance, rank.aligned_window, rank.member_window,
--         rank.member
-- @pitfall 1, 7, 23
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
worked AS (
    SELECT member_id, iteration, sum(duration_ns)::BIGINT AS ns
    FROM rank.instance
    GROUP BY member_id, iteration
),
waited AS (
    SELECT
        member_id,
        iteration,
        sum(jitter_wait_ns)::BIGINT AS jitter_wait_ns,
        count(*) AS instances,
        count(*) FILTER (WHERE is_last) AS last_count,
        bool_and(is_timed) AS is_timed,
    FROM staged
    GROUP BY member_id, iteration
),
per_window AS (
    SELECT
        w.member_id,
        w.iteration,
        w.iteration_ns,
        x.jitter_wait_ns,
        x.instances,
        x.last_count,
        x.is_timed,
        -- greatest skips NULLs: 0 where clocks are not aligned and nothing is known
        greatest(0, (w.start_ns - t.start_ns) - greatest(0, w.end_ns - t.end_ns)) AS late_start_ns,
        -- a window that starts early and does not end so much earlier
        greatest(0, (t.start_ns - w.start_ns) - greatest(0, t.end_ns - w.end_ns)) AS early_ns,
        greatest(0, greatest(b.comm_exposed_ns, b.comm_blocking_ns) - early_ns) AS lost_ns,
        k.ns - x.jitter_wait_ns AS other_ns,
    FROM waited AS x
    INNER JOIN worked AS k ON k.member_id = x.member_id AND k.iteration = x.iteration
    INNER JOIN rank.aligned_window AS w ON w.member_id = x.member_id AND w.iteration = x.iteration
    INNER JOIN rank.member_window AS b ON b.member_id = x.member_id AND b.iteration = x.iteration
    LEFT JOIN typical AS t ON t.iteration = x.iteration
),
per_group AS (
    SELECT
        i.member_id,
        i.iteration,
        i.kind,
        i.name,
        sum(i.late_ns)::BIGINT AS late_ns,
    FROM staged AS i
    INNER JOIN spanned AS g ON g.kind = i.kind AND g.name = i.name
    WHERE NOT g.is_across
    GROUP BY i.member_id, i.iteration, i.kind, i.name
),
beside AS (
    SELECT
        w.*,
        g.kind,
        g.name,
        -- in the order of arrivals: of the lower middle one, as it comes
        greatest(0, g.late_ns + quantile_disc(-w.early_ns, 0.5) OVER mates) AS late_ns,
        min(w.lost_ns) OVER mates AS least_ns,
        -- of an even number the upper middle: of two that is the other one
        -quantile_disc(-w.lost_ns, 0.5) OVER mates AS usual_ns,
        greatest(0, w.lost_ns - greatest(
            0, w.other_ns - quantile_disc(w.other_ns, 0.5) OVER mates
        )) AS own_ns,
    FROM per_group AS g
    INNER JOIN per_window AS w ON w.member_id = g.member_id AND w.iteration = g.iteration
    WINDOW mates AS (PARTITION BY g.kind, g.name, g.iteration)
),
weighed AS (
    SELECT
        *,
        greatest(0, usual_ns - own_ns) AS lost_more_ns,
        greatest(0, least(jitter_wait_ns, own_ns - least_ns)) AS held_ns,
        least(late_ns, lost_more_ns) - held_ns - late_start_ns AS caused_ns,
    FROM beside
),
most AS (
    SELECT
        member_id,
        iteration,
        max(late_ns) AS late_ns,
        arg_max(
            {'lost': lost_more_ns, 'held': held_ns, 'caused': caused_ns},
            (caused_ns, late_ns, kind, name)
        ) AS told,
    FROM weighed
    GROUP BY member_id, iteration
)
SELECT
    w.member_id,
    w.iteration,
    w.iteration_ns,
    m.late_ns::BIGINT AS late_ns,
    w.jitter_wait_ns,
    w.instances,
    w.last_count,
    w.is_timed,
    w.late_start_ns,
    m.told.lost::BIGINT AS lost_ns,
    m.told.held::BIGINT AS held_ns,
    m.told.caused::BIGINT AS caused_ns,
FROM most AS m
INNER JOIN per_window AS w ON w.member_id = m.member_id AND w.iteration = m.iteration;
