-- stream_event — which records and waits stand together between two operations of a stream?
--
-- A run is the longest stretch of records and waits with no operation between them. All events
-- of a run start from the same operation before it, so what happens inside a run can be told
-- by running maxima over the few events instead of walking the stream.
--
-- @grain  one row per event record or event wait
-- @reads  nsys.stream_item
-- @column item_id        BIGINT  - id of the event in nsys.stream_item
-- @column is_wait        BOOLEAN - a wait, else a record
-- @column process        BIGINT  - process key
-- @column event_key      BIGINT  - pairs a wait with its record
-- @column correlation_id BIGINT  - host issue order inside the process
-- @column run            BIGINT  - number of the run
-- @column position       BIGINT  - place in the order of all streams
-- @column is_first       BOOLEAN - first event of its run
-- @column prev_id        BIGINT  - item right before it on its stream
-- @column prev_start_ns  BIGINT  ns its start, where it is an operation
-- @column prev_end_ns    BIGINT  ns its end
-- @column prev_name_id   BIGINT  - its name
-- @column prev_correlation_id BIGINT - its correlation id
WITH event AS (
    SELECT
        item_id,
        kind = 5 AS is_wait,
        process,
        lane,
        event_key,
        correlation_id,
        coalesce(prev_id, 0) < 4::BIGINT << 40 AS is_first,
        prev_id,
        prev_start_ns,
        prev_end_ns,
        prev_name_id,
        prev_correlation_id,
    FROM nsys.stream_item
    WHERE kind > 3
)
SELECT
    item_id,
    is_wait,
    process,
    event_key,
    correlation_id,
    (sum(is_first::INTEGER) OVER event_order)::BIGINT AS run,
    row_number() OVER event_order AS position,
    is_first,
    prev_id,
    prev_start_ns,
    prev_end_ns,
    prev_name_id,
    prev_correlation_id,
FROM event
WINDOW event_order AS (
    ORDER BY process, lane, correlation_id, is_wait, item_id DESC
    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
);
