-- arrivals — in which order do the members come to the longest-awaited collectives?
--
-- Of each kind of group and type the matched instances with the greatest time between the first and
-- the last member, every member a row: what a picture of the order of arrival is made of.
--
-- @grain  one row per instance and member
-- @reads  rank.member, rank.arrival_instance
-- @param  instances BIGINT = 5 [1,) how many instances of each kind and type
-- @column kind VARCHAR - kind of the group
-- @column name VARCHAR - the group
-- @column collective VARCHAR - type
-- @column iteration BIGINT - ordinal of the window
-- @column ordinal BIGINT - ordinal of the instance in its window
-- @column rank BIGINT - rank as declared, NULL unknown
-- @column label VARCHAR - rank, or what stands for it where it is unknown
-- @column place BIGINT - order of arrival, 1 comes first
-- @column after_first_us DOUBLE us its arrival after the first member's
-- @column jitter_wait_us DOUBLE us its jitter wait
-- @column transfer_proxy_us DOUBLE us transfer proxy of the instance
-- @column order_from VARCHAR - aligned starts, or durations: the order is inferred
-- @pitfall 23
WITH params AS (
    SELECT coalesce(getvariable('instances'), 5)::BIGINT AS instances
),
spread AS (
    SELECT
        kind,
        name,
        collective,
        iteration,
        ordinal,
        row_number() OVER (
            PARTITION BY kind, collective
            ORDER BY max(after_first_ns) DESC, name, iteration, ordinal
        ) AS place,
    FROM rank.arrival_instance
    GROUP BY kind, name, collective, iteration, ordinal
)
SELECT
    a.kind,
    a.name,
    a.collective,
    a.iteration,
    a.ordinal,
    m.rank,
    m.label,
    row_number() OVER (
        PARTITION BY s.kind, s.collective, s.place ORDER BY a.after_first_ns, a.member_id
    ) AS place,
    a.after_first_ns / 1e3 AS after_first_us,
    a.jitter_wait_ns / 1e3 AS jitter_wait_us,
    a.transfer_proxy_ns / 1e3 AS transfer_proxy_us,
    CASE WHEN a.is_timed THEN 'aligned starts' ELSE 'durations' END AS order_from,
FROM spread AS s
CROSS JOIN params AS p
INNER JOIN rank.arrival_instance AS a
    ON
        a.kind = s.kind AND a.name = s.name AND a.collective = s.collective
        AND a.iteration = s.iteration AND a.ordinal = s.ordinal
INNER JOIN rank.member AS m ON m.member_id = a.member_id
WHERE s.place <= p.instances
ORDER BY s.kind, s.collective, s.place, a.after_first_ns, a.member_id;
