-- op — what ran on which device, and when?
--
-- Every valid device operation: kernels, copies, sets and, where only whole graphs were traced,
-- graph executions. A row whose end lies before its start takes part in nothing. The device is
-- the physical GPU: CUDA ordinals belong to a process, so two processes that both say device 0
-- may drive two GPUs. The mapping of the trace decides where it has one, else the ordinal stands.
--
-- @grain  one row per device operation
-- @reads  nsys.kernel, nsys.memcpy, nsys.memset, nsys.graph_exec, nsys.device_map, nsys.kernel_name
-- @column op_id          BIGINT  -  unique: kind in the bits from 40 on, row of the source below
-- @column kind           ENUM    -  kernel, memcpy, memset or graph
-- @column start_ns       BIGINT  ns start on the device
-- @column end_ns         BIGINT  ns end on the device, never before the start
-- @column device         BIGINT  -  physical GPU of the report, else the CUDA ordinal
-- @column process        BIGINT  -  process key, globalPid >> 24
-- @column context_id     BIGINT  -  CUDA context
-- @column stream_id      BIGINT  -  CUDA stream, unique inside process and context only
-- @column lane           BIGINT  -  context and stream as one number, for sorting
-- @column correlation_id BIGINT  -  joins the API call inside the process
-- @column name_id        BIGINT  -  name of a kernel; -1 memcpy, -2 memset, -3 graph, -4 unnamed
-- @column class          VARCHAR -  class of the taxonomy
-- @column role           ENUM    -  compute, comm, wait, memcpy or memset
-- @column is_node        BOOLEAN -  operation of a CUDA graph, told by its node id
-- @pitfall 1, 20, 21
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
    SELECT row_id AS op_id, 'kernel' AS kind, start_ns, end_ns, device_ordinal, process, context_id,
        stream_id, correlation_id, coalesce(name_id, -4) AS name_id,
        coalesce(graph_node_id, 0) <> 0 AS is_node
    FROM nsys.kernel
    WHERE end_ns >= start_ns
    UNION ALL
    SELECT row_id + (1::BIGINT << 40), 'memcpy', start_ns, end_ns, device_ordinal, process,
        context_id, stream_id, correlation_id, -1, coalesce(graph_node_id, 0) <> 0
    FROM nsys.memcpy
    WHERE end_ns >= start_ns
    UNION ALL
    SELECT row_id + (2::BIGINT << 40), 'memset', start_ns, end_ns, device_ordinal, process,
        context_id, stream_id, correlation_id, -2, coalesce(graph_node_id, 0) <> 0
    FROM nsys.memset
    WHERE end_ns >= start_ns
    UNION ALL
    SELECT row_id + (3::BIGINT << 40), 'graph', start_ns, end_ns, device_ordinal, process,
        context_id, stream_id, correlation_id, -3, false
    FROM whole_graph
)
SELECT
    o.op_id,
    o.kind::ENUM('kernel', 'memcpy', 'memset', 'graph') AS kind,
    o.start_ns,
    o.end_ns,
    coalesce(m.gpu_id, o.device_ordinal) AS device,
    o.process,
    o.context_id,
    o.stream_id,
    -- two 30-bit halves in one sort key: partitioning by three columns costs twice the time
    (coalesce(o.context_id, -1) + 1) % 1073741824 * 8589934592
    + (coalesce(o.stream_id, -1) + 1) % 8589934592 AS lane,
    o.correlation_id,
    o.name_id,
    CASE WHEN o.kind = 'kernel' THEN coalesce(n.class, 'other') ELSE o.kind END AS class,
    CASE
        WHEN o.kind = 'kernel' THEN coalesce(n.role, 'compute')
        WHEN o.kind = 'graph' THEN 'compute'
        ELSE o.kind
    END::ENUM('compute', 'comm', 'wait', 'memcpy', 'memset') AS role,
    o.is_node,
FROM every_op AS o
LEFT JOIN nsys.kernel_name AS n ON n.name_id = o.name_id
LEFT JOIN mapped AS m
    ON m.process_pid = (o.process & 16777215) AND m.device_ordinal = o.device_ordinal;
