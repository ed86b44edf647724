-- event_wait — for which record does each wait wait?
--
-- The record has the same process and id, ids repeat across processes, and was issued before
-- the wait; of several it is the last. A wait whose record is not in the trace stays unresolved.
--
-- @grain  one row per event wait
-- @reads  nsys.stream_event, nsys.event_run
-- @column item_id   BIGINT  - the wait in nsys.stream_item
-- @column run       BIGINT  - run of the wait
-- @column position  BIGINT  - place of the wait in the order of all streams
-- @column is_found  BOOLEAN - its record is in the trace
-- @column rank      BIGINT  - rank of the operation before the record's run, 0 if none
-- @column before_id BIGINT  - event right before the record in its run, if any
-- @pitfall 8, 9
WITH record AS (
    SELECT e.item_id, e.process, e.event_key, e.correlation_id, r.rank,
        CASE WHEN NOT e.is_first THEN e.prev_id END AS before_id
    FROM nsys.stream_event AS e
    INNER JOIN nsys.event_run AS r ON r.run = e.run
    WHERE NOT e.is_wait AND e.event_key IS NOT NULL
    -- an ASOF join takes any one of equal keys, so there must be one
    QUALIFY row_number() OVER (
        PARTITION BY e.process, e.event_key, e.correlation_id ORDER BY e.item_id DESC
    ) = 1
),
wait AS (
    SELECT item_id, run, position, process, event_key, correlation_id
    FROM nsys.stream_event
    WHERE is_wait
)
SELECT
    w.item_id,
    w.run,
    w.position,
    r.item_id IS NOT NULL AS is_found,
    coalesce(r.rank, 0) AS rank,
    r.before_id,
FROM wait AS w
ASOF LEFT JOIN record AS r
    ON r.process = w.process
    AND r.event_key = w.event_key
    AND r.correlation_id < w.correlation_id;
