-- graph_exec — which CUDA graphs ran as a whole?
--
-- Whole-graph tracing writes one row per launch, and no kernels for what runs inside it.
--
-- @grain    one row per traced graph execution
-- @optional CUPTI_ACTIVITY_KIND_GRAPH_TRACE
-- @optional CUPTI_ACTIVITY_KIND_GRAPH_TRACE.contextId BIGINT
-- @optional CUPTI_ACTIVITY_KIND_GRAPH_TRACE.correlationId BIGINT
-- @optional CUPTI_ACTIVITY_KIND_GRAPH_TRACE.globalPid BIGINT
-- @optional CUPTI_ACTIVITY_KIND_GRAPH_TRACE.graphId BIGINT
-- @optional CUPTI_ACTIVITY_KIND_GRAPH_TRACE.graphExecId BIGINT
-- @column   row_id BIGINT - row number in the source table
-- @column   start_ns BIGINT ns start on the device
-- @column   end_ns BIGINT ns end on the device
-- @column   process BIGINT - process key, globalPid >> 24
-- @column   device_ordinal BIGINT - CUDA ordinal inside the process, not a physical device
-- @column   context_id BIGINT - CUDA context
-- @column   stream_id BIGINT - CUDA stream, unique only inside its process and context
-- @column   correlation_id BIGINT - joins the API call, unique only inside the process
-- @column   graph_id BIGINT - CUDA graph
-- @column   graph_exec_id BIGINT - executable instance of the graph
SELECT
    g.rowid AS row_id,
    g."start" AS start_ns,
    g."end" AS end_ns,
    g."globalPid" >> 24 AS process,
    g."deviceId" AS device_ordinal,
    g."contextId" AS context_id,
    g."streamId" AS stream_id,
    g."correlationId" AS correlation_id,
    g."graphId" AS graph_id,
    g."graphExecId" AS graph_exec_id
FROM trace."CUPTI_ACTIVITY_KIND_GRAPH_TRACE" AS g;
