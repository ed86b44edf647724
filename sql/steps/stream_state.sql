-- stream_state — what must an operation wait for that comes right behind a run of events?
--
-- The state of a stream at the end of a run: the operation before the run, bettered by what each
-- wait of the run brought, relays included.
--
-- @grain  one row per run of events
-- @reads  nsys.event_run, nsys.event_wait, nsys.event_relay
-- @column item_id           BIGINT  -  last event of the run
-- @column producer_id       BIGINT  -  operation that the state names, NULL for none
-- @column producer_start_ns BIGINT  ns its start
-- @column producer_end_ns   BIGINT  ns its end
-- @column producer_name_id  BIGINT  -  its name
-- @column is_lost           BOOLEAN -  a wait or a relay that went into the state is unresolved
-- @column is_waited         BOOLEAN -  a resolved wait went into the state
-- @pitfall 8
WITH waited AS (
    SELECT
        w.run,
        max(greatest(w.rank, coalesce(y.rank, 0))) AS rank,
        bool_or(NOT w.is_found OR coalesce(y.is_lost, false)) AS is_lost,
        bool_or(w.is_found) AS is_waited,
    FROM nsys.event_wait AS w
    LEFT JOIN nsys.event_relay AS y ON y.item_id = w.before_id
    GROUP BY w.run
),
best AS (
    SELECT
        r.last_id,
        greatest(r.rank, coalesce(w.rank, 0)) AS rank,
        coalesce(w.is_lost, false) AS is_lost,
        coalesce(w.is_waited, false) AS is_waited,
    FROM nsys.event_run AS r
    LEFT JOIN waited AS w ON w.run = r.run
),
ranked AS (
    -- equal ranks are the same operation
    SELECT
        rank,
        any_value(op_id) AS op_id,
        any_value(op_start_ns) AS op_start_ns,
        any_value(op_end_ns) AS op_end_ns,
        any_value(op_name_id) AS op_name_id,
    FROM nsys.event_run
    WHERE rank > 0
    GROUP BY rank
)
SELECT
    b.last_id AS item_id,
    o.op_id AS producer_id,
    o.op_start_ns AS producer_start_ns,
    o.op_end_ns AS producer_end_ns,
    o.op_name_id AS producer_name_id,
    b.is_lost,
    b.is_waited,
FROM best AS b
LEFT JOIN ranked AS o ON o.rank = b.rank;
