-- stream_item — in which order did the host give work to each stream?
--
-- Every valid device operation (kernels, copies, sets and, where only whole graphs were traced,
-- graph executions), event record and event wait of a stream in host issue order, which is the
-- order of correlation ids, each with the item right before it. Under one id the order is
-- operation, record, wait. The operations of one call sort by their ends, so that whoever comes
-- next sees the one that ends last (of equal ends the earlier start). What has no correlation id
-- has no place in the order: it follows nothing and precedes nothing.
--
-- A row whose end lies before its start takes part in nothing. The device is the physical GPU:
-- CUDA ordinals belong to a process, so two processes that both say device 0 may drive two GPUs.
-- The mapping of the trace decides where it has one, else the ordinal stands. A wait is a row
-- whose stream and event are both not 4294967295; syncType has several numberings and is not read.
-- Nothing else of an event is used: its time stamp may be zero (pitfall 10).
--
-- The trace is read straight into this order: a table of operations in between would cost as
-- much time and memory again. nsys.op shows the operations alone, with their classes.
--
-- @grain  one row per device operation, event record or event wait
-- @reads  nsys.kernel, nsys.memcpy, nsys.memset, nsys.graph_exec, nsys.device_map,
--         nsys.cuda_event, nsys.sync, nsys.event_pairing
-- @narrow
-- @column item_id        BIGINT  -  unique: kind in the bits from 40 on, row of the source below
-- @column kind           UTINYINT - 0 kernel, 1 memcpy, 2 memset, 3 graph, 4 record, 5 wait
-- @column start_ns       BIGINT  ns start of an operation on the device
-- @column end_ns         BIGINT  ns end of an operation, never before the start
-- @column device         BIGINT  -  of an operation: physical GPU, else the CUDA ordinal
-- @column process        BIGINT  -  process key, globalPid >> 24
-- @column context_id     BIGINT  -  CUDA context
-- @column stream_id      BIGINT  -  CUDA stream, unique inside process and context only
-- @column lane           BIGINT  -  context and stream as one number, for sorting
-- @column correlation_id BIGINT  -  host issue order; joins the API call inside the process
-- @column name_id        BIGINT  -  of a kernel; -1 memcpy, -2 memset, -3 graph, -4 unnamed
-- @column is_node        BOOLEAN -  operation of a CUDA graph, told by its node id
-- @column event_key      BIGINT  -  what pairs a wait with its record; NULL is no id
-- @column prev_id        BIGINT  -  item before it on its stream
-- @column prev_start_ns  BIGINT  ns its start
-- @column prev_end_ns    BIGINT  ns its end
-- @column prev_name_id   BIGINT  -  its name
-- @column prev_correlation_id BIGINT - its correlation id
-- @pitfall 1, 8, 9, 10, 20, 21
WITH mapped AS (
    SELECT process_pid, device_ordinal, max(gpu_id) AS gpu_id
    FROM nsys.device_map
    WHERE gpu_id IS NOT NULL
    GROUP BY process_pid, device_ordinal
),
-- pitfall 21: a whole-graph row counts only where none of its operations were traced
traced_launch AS (
    SELECT process, correlation_id FROM nsys.kernel
    WHERE end_ns >= start_ns
      AND correlation_id IN (SELECT correlation_id FROM nsys.graph_exec)
    UNION ALL
    SELECT process, correlation_id FROM nsys.memcpy
    WHERE end_ns >= start_ns
      AND correlation_id IN (SELECT correlation_id FROM nsys.graph_exec)
    UNION ALL
    SELECT process, correlation_id FROM nsys.memset
    WHERE end_ns >= start_ns
      AND correlation_id IN (SELECT correlation_id FROM nsys.graph_exec)
),
whole_graph AS (
    SELECT g.row_id, g.start_ns, g.end_ns, g.device_ordinal, g.process, g.context_id, g.stream_id,
        g.correlation_id
    FROM nsys.graph_exec AS g
    WHERE g.end_ns >= g.start_ns
      AND NOT EXISTS (
        SELECT 1 FROM traced_launch AS t
        WHERE t.correlation_id = g.correlation_id AND t.process IS NOT DISTINCT FROM g.process
    )
),
every_op AS (
    SELECT row_id, 0 AS kind, start_ns, end_ns, device_ordinal, process, context_id, stream_id,
        correlation_id, coalesce(name_id, -4) AS name_id,
        coalesce(graph_node_id, 0) <> 0 AS is_node
    FROM nsys.kernel
    WHERE end_ns >= start_ns
    UNION ALL
    SELECT row_id, 1, start_ns, end_ns, device_ordinal, process, context_id, stream_id,
        correlation_id, -1, coalesce(graph_node_id, 0) <> 0
    FROM nsys.memcpy
    WHERE end_ns >= start_ns
    UNION ALL
    SELECT row_id, 2, start_ns, end_ns, device_ordinal, process, context_id, stream_id,
        correlation_id, -2, coalesce(graph_node_id, 0) <> 0
    FROM nsys.memset
    WHERE end_ns >= start_ns
    UNION ALL
    SELECT row_id, 3, start_ns, end_ns, device_ordinal, process, context_id, stream_id,
        correlation_id, -3, false
    FROM whole_graph
),
every_event AS (
    SELECT row_id, 4 AS kind, process, context_id, stream_id, correlation_id, event_id, sync_id
    FROM nsys.cuda_event
    WHERE correlation_id IS NOT NULL
    UNION ALL
    SELECT row_id, 5, process, context_id, stream_id, correlation_id, event_id, sync_id
    FROM nsys.sync
    WHERE correlation_id IS NOT NULL
      AND stream_id IS DISTINCT FROM 4294967295
      AND event_id IS DISTINCT FROM 4294967295
),
item AS (
    SELECT o.row_id, o.kind, o.start_ns, o.end_ns,
        coalesce(m.gpu_id, o.device_ordinal) AS device, o.process, o.context_id, o.stream_id,
        o.correlation_id, o.name_id, o.is_node, NULL::BIGINT AS event_key
    FROM every_op AS o
    LEFT JOIN mapped AS m
        ON m.process_pid = (o.process & 16777215) AND m.device_ordinal = o.device_ordinal
    UNION ALL
    SELECT e.row_id, e.kind, NULL, NULL, NULL, e.process, e.context_id, e.stream_id,
        e.correlation_id, NULL, NULL,
        CASE
            WHEN p.is_inferred THEN e.event_id
            WHEN e.sync_id NOT IN (0, 4294967295) THEN e.sync_id
        END
    FROM every_event AS e, nsys.event_pairing AS p
),
keyed AS (
    SELECT
        (kind::BIGINT << 40) + row_id AS item_id,
        kind::UTINYINT AS kind,
        start_ns,
        end_ns,
        device,
        process,
        context_id,
        stream_id,
        -- two 30-bit halves in one sort key: partitioning by three columns costs twice the time
        (coalesce(context_id, -1) + 1) % 1073741824 * 8589934592
        + (coalesce(stream_id, -1) + 1) % 8589934592 AS lane,
        correlation_id,
        name_id,
        is_node,
        event_key,
    FROM item
)
SELECT
    item_id,
    kind,
    start_ns,
    end_ns,
    device,
    process,
    context_id,
    stream_id,
    lane,
    correlation_id,
    name_id,
    is_node,
    event_key,
    lag(CASE WHEN correlation_id IS NOT NULL THEN item_id END) OVER item_order AS prev_id,
    lag(CASE WHEN correlation_id IS NOT NULL THEN start_ns END) OVER item_order AS prev_start_ns,
    lag(CASE WHEN correlation_id IS NOT NULL THEN end_ns END) OVER item_order AS prev_end_ns,
    lag(CASE WHEN correlation_id IS NOT NULL THEN name_id END) OVER item_order AS prev_name_id,
    lag(correlation_id) OVER item_order AS prev_correlation_id,
FROM keyed
WINDOW item_order AS (
    PARTITION BY process, lane
    ORDER BY correlation_id NULLS FIRST, greatest(kind, 3), end_ns, start_ns DESC, item_id DESC
);
