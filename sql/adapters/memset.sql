-- memset — which memory fills ran on the devices?
--
-- One row per memset as exported.
--
-- @grain    one row per memset
-- @optional CUPTI_ACTIVITY_KIND_MEMSET
-- @optional CUPTI_ACTIVITY_KIND_MEMSET.contextId BIGINT
-- @optional CUPTI_ACTIVITY_KIND_MEMSET.correlationId BIGINT
-- @optional CUPTI_ACTIVITY_KIND_MEMSET.globalPid BIGINT
-- @optional CUPTI_ACTIVITY_KIND_MEMSET.bytes BIGINT
-- @optional CUPTI_ACTIVITY_KIND_MEMSET.memKind BIGINT
-- @optional CUPTI_ACTIVITY_KIND_MEMSET.graphNodeId BIGINT
-- @column   row_id BIGINT - row number in the source table
-- @column   start_ns BIGINT ns start on the device
-- @column   end_ns BIGINT ns end on the device
-- @column   process BIGINT - process key, globalPid >> 24
-- @column   device_ordinal BIGINT - CUDA ordinal inside the process, not a physical device
-- @column   context_id BIGINT - CUDA context
-- @column   stream_id BIGINT - CUDA stream, unique only inside its process and context
-- @column   correlation_id BIGINT - joins the API call, unique only inside the process
-- @column   bytes BIGINT bytes bytes set
-- @column   mem_kind BIGINT - 0 pageable, 1 pinned, 2 device, 4 managed
-- @column   graph_node_id BIGINT - node of a CUDA graph, NULL or 0 outside graphs
SELECT
    m.rowid AS row_id,
    m."start" AS start_ns,
    m."end" AS end_ns,
    m."globalPid" >> 24 AS process,
    m."deviceId" AS device_ordinal,
    m."contextId" AS context_id,
    m."streamId" AS stream_id,
    m."correlationId" AS correlation_id,
    m."bytes" AS bytes,
    m."memKind" AS mem_kind,
    m."graphNodeId" AS graph_node_id
FROM trace."CUPTI_ACTIVITY_KIND_MEMSET" AS m;
