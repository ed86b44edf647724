-- arrival_instance — when does each member come to each matched collective?
--
-- Lateness is counted from the typical arrival of the group, the lower middle one. Where clocks
-- are not aligned, the order of arrival follows from durations: members end together, so who has
-- the shortest came last. That order is inferred. Members on one clock whose ends lie more than half
-- an iteration apart cannot have been in one collective: their ordinals count other steps.
--
-- @grain  one row per rank and matched instance
-- @reads  rank.matched, rank.aligned, rank.clock, rank.member_window
-- @pitfall 23
WITH timed AS (
    SELECT
        m.member_id,
        m.kind,
        m.name,
        m.iteration,
        m.collective,
        m.ordinal,
        m.members,
        m.duration_ns,
        m.transfer_proxy_ns,
        m.jitter_wait_ns,
        bool_and(a.is_aligned) OVER instance AS is_timed,
        m.start_ns + a.offset_ns AS start_ns,
        CASE WHEN NOT a.is_aligned THEN c.clock END AS own_clock,
        CASE WHEN a.is_aligned THEN m.end_ns + a.offset_ns ELSE m.end_ns END AS end_ns,
    FROM rank.matched AS m
    INNER JOIN rank.aligned AS a ON a.member_id = m.member_id
    INNER JOIN rank.clock AS c ON c.member_id = m.member_id
    WINDOW instance AS (PARTITION BY m.kind, m.name, m.iteration, m.collective, m.ordinal)
),
arrived AS (
    SELECT *, CASE WHEN is_timed THEN start_ns ELSE -duration_ns END AS arrival_ns FROM timed
),
typical AS (
    SELECT
        kind,
        name,
        iteration,
        collective,
        ordinal,
        quantile_disc(arrival_ns, 0.5) AS typical_ns,
        arg_max(member_id, (arrival_ns, -member_id)) AS last_id,
        min(arrival_ns) AS first_ns,
    FROM arrived
    GROUP BY kind, name, iteration, collective, ordinal
),
ended AS (
    SELECT
        kind, name, iteration, collective, ordinal, own_clock, max(end_ns) - min(end_ns) AS apart_ns,
    FROM timed
    GROUP BY kind, name, iteration, collective, ordinal, own_clock
),
usual AS (
    SELECT iteration, quantile_disc(iteration_ns, 0.5) AS iteration_ns
    FROM rank.member_window
    GROUP BY iteration
),
apart AS (
    SELECT DISTINCT e.kind, e.name, e.iteration, e.collective, e.ordinal
    FROM ended AS e
    INNER JOIN usual AS u ON u.iteration = e.iteration
    WHERE 2 * e.apart_ns > u.iteration_ns
)
SELECT
    a.* EXCLUDE (start_ns, arrival_ns, own_clock, end_ns),
    a.arrival_ns - t.first_ns AS after_first_ns,
    greatest(0, a.arrival_ns - t.typical_ns) AS late_ns,
    a.member_id = t.last_id AS is_last,
    p.kind IS NOT NULL AS is_apart,
FROM arrived AS a
INNER JOIN typical AS t
    ON
        t.kind = a.kind AND t.name = a.name AND t.iteration = a.iteration
        AND t.collective = a.collective AND t.ordinal = a.ordinal
LEFT JOIN apart AS p
    ON
        p.kind = a.kind AND p.name = a.name AND p.iteration = a.iteration
        AND p.collective = a.collective AND p.ordinal = a.ordinal;
