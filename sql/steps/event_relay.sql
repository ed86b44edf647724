-- event_relay — what do records see that themselves stand behind waits?
--
-- A record behind a wait on its own stream passes on what that wait waited for, so dependencies
-- travel through streams that run no operation between. Each round lets every wait look once at
-- the running maximum in front of its record; the rounds end when nothing changed, after as many
-- as relays are deep. Only runs with a record that some wait looks into take part.
--
-- @grain  one row per event of a run that relays
-- @reads  nsys.stream_event, nsys.event_wait
-- @column item_id BIGINT  - the event in nsys.stream_item
-- @column rank    BIGINT  - best rank that waits of the run brought up to this event
-- @column is_lost BOOLEAN - a wait up to this event, or one it looks at, is unresolved
-- @pitfall 8
WITH RECURSIVE
looked_at AS (
    SELECT e.item_id, e.run
    FROM nsys.stream_event AS e
    WHERE e.item_id IN (SELECT before_id FROM nsys.event_wait)
),
relaying AS (
    SELECT w.item_id, w.position, w.run, w.rank, w.before_id, (NOT w.is_found)::INTEGER AS lost
    FROM nsys.event_wait AS w
    WHERE w.run IN (SELECT run FROM looked_at)
    UNION ALL
    SELECT e.item_id, e.position, e.run, 0, NULL, 0
    FROM nsys.stream_event AS e
    WHERE NOT e.is_wait AND e.item_id IN (SELECT item_id FROM looked_at)
),
round AS (
    SELECT 0 AS number, item_id, position, run, rank, before_id, lost FROM relaying
    UNION ALL
    SELECT number + 1, item_id, position, run, new_rank, before_id, new_lost
    FROM (
        SELECT
            r.number,
            r.item_id,
            r.position,
            r.run,
            r.before_id,
            greatest(r.rank, coalesce(s.rank, 0)) AS new_rank,
            greatest(r.lost, coalesce(s.lost, 0)) AS new_lost,
            bool_or(r.rank < coalesce(s.rank, 0) OR r.lost < coalesce(s.lost, 0)) OVER ()
                AS is_changed,
        FROM round AS r
        LEFT JOIN (
            -- run number above the value: one running maximum that starts anew with each run
            SELECT
                item_id,
                (max((run << 32) + rank) OVER relay_round) & 4294967295 AS rank,
                (max(run * 2 + lost) OVER relay_round) & 1 AS lost,
            FROM round
            WINDOW relay_round AS (
                ORDER BY position ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
            )
        ) AS s ON s.item_id = r.before_id
    ) AS looked
    WHERE is_changed
),
settled AS (
    SELECT item_id, position, run, max(rank) AS rank, max(lost) AS lost
    FROM round
    GROUP BY item_id, position, run
)
SELECT
    item_id,
    (max((run << 32) + rank) OVER relay_order) & 4294967295 AS rank,
    (max(run * 2 + lost) OVER relay_order) & 1 = 1 AS is_lost,
FROM settled
WINDOW relay_order AS (ORDER BY position ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW);
