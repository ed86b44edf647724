-- stream_item — in which order did the host give work to each stream?
--
-- Operations, event records and event waits of a stream in host issue order, which is the order
-- of correlation ids, each with the item right before it. Under one id the order is operation,
-- record, wait. The operations of one call sort by their ends, so that whoever comes next sees
-- the one that ends last (of equal ends the earlier start). What has no correlation id has no
-- place in the order: it follows nothing and precedes nothing.
--
-- A wait is a row that names a stream and an event; syncType has several numberings and is not
-- read. Nothing else of an event is used: its time stamp may be zero (pitfall 10).
--
-- @grain  one row per device operation, event record or event wait
-- @reads  nsys.op, nsys.cuda_event, nsys.sync, nsys.event_pairing
-- @column item_id        BIGINT  -  op_id; records start at 4 << 40, waits at 5 << 40
-- @column kind           INTEGER -  0 operation, 1 record, 2 wait
-- @column device         BIGINT  -  device of an operation
-- @column process        BIGINT  -  process key
-- @column lane           BIGINT  -  context and stream as one number
-- @column correlation_id BIGINT  -  host issue order inside the process
-- @column start_ns       BIGINT  ns start of an operation
-- @column end_ns         BIGINT  ns end of an operation
-- @column role           VARCHAR -  role of an operation
-- @column event_key      BIGINT  -  what pairs a wait with its record; NULL is no id
-- @column prev_id        BIGINT  -  item before it on its stream
-- @column prev_start_ns  BIGINT  ns its start
-- @column prev_end_ns    BIGINT  ns its end
-- @column prev_role      VARCHAR -  its role
-- @column prev_correlation_id BIGINT - its correlation id
-- @pitfall 8, 9, 10
WITH item AS (
    SELECT op_id AS item_id, 0 AS kind, device, process, lane, correlation_id, start_ns, end_ns,
        role, NULL::BIGINT AS event_key
    FROM nsys.op
    UNION ALL
    SELECT e.row_id + (4::BIGINT << 40), 1, NULL, e.process,
        (coalesce(e.context_id, -1) + 1) % 1073741824 * 8589934592
        + (coalesce(e.stream_id, -1) + 1) % 8589934592,
        e.correlation_id, NULL, NULL, NULL,
        CASE
            WHEN p.is_inferred THEN e.event_id
            WHEN e.sync_id NOT IN (0, 4294967295) THEN e.sync_id
        END
    FROM nsys.cuda_event AS e, nsys.event_pairing AS p
    WHERE e.correlation_id IS NOT NULL
    UNION ALL
    SELECT s.row_id + (5::BIGINT << 40), 2, NULL, s.process,
        (coalesce(s.context_id, -1) + 1) % 1073741824 * 8589934592
        + (coalesce(s.stream_id, -1) + 1) % 8589934592,
        s.correlation_id, NULL, NULL, NULL,
        CASE
            WHEN p.is_inferred THEN s.event_id
            WHEN s.sync_id NOT IN (0, 4294967295) THEN s.sync_id
        END
    FROM nsys.sync AS s, nsys.event_pairing AS p
    WHERE s.correlation_id IS NOT NULL
      AND s.stream_id <> 4294967295
      AND s.event_id <> 4294967295
)
SELECT
    item_id,
    kind,
    device,
    process,
    lane,
    correlation_id,
    start_ns,
    end_ns,
    role,
    event_key,
    lag(CASE WHEN correlation_id IS NOT NULL THEN item_id END) OVER item_order AS prev_id,
    lag(CASE WHEN correlation_id IS NOT NULL THEN start_ns END) OVER item_order AS prev_start_ns,
    lag(CASE WHEN correlation_id IS NOT NULL THEN end_ns END) OVER item_order AS prev_end_ns,
    lag(CASE WHEN correlation_id IS NOT NULL THEN role END) OVER item_order AS prev_role,
    lag(correlation_id) OVER item_order AS prev_correlation_id,
FROM item
WINDOW item_order AS (
    PARTITION BY process, lane
    ORDER BY correlation_id NULLS FIRST, kind, end_ns, start_ns DESC, item_id DESC
);
