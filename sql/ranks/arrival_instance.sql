-- arrival_instance — when does each member come to each matched collective?
--
-- Lateness is counted from the typical arrival of the group, the lower middle one. Where clocks
-- are not aligned, the order of arrival follows from durations: members end together, so who has
-- the shortest came last. That order is inferred.
--
-- @grain  one row per rank and matched instance
-- @reads  rank.matched, rank.aligned
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
    FROM rank.matched AS m
    INNER JOIN rank.aligned AS a ON a.member_id = m.member_id
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
)
SELECT
    a.* EXCLUDE (start_ns, arrival_ns),
    a.arrival_ns - t.first_ns AS after_first_ns,
    greatest(0, a.arrival_ns - t.typical_ns) AS late_ns,
    a.member_id = t.last_id AS is_last,
FROM arrived AS a
INNER JOIN typical AS t
    ON
        t.kind = a.kind AND t.name = a.name AND t.iteration = a.iteration
        AND t.collective = a.collective AND t.ordinal = a.ordinal;
