-- memcpy — which copies ran on the devices?
--
-- One row per copy as exported. Source and destination devices are filled for peer copies only; a
-- copy between devices without peer access appears as a pair of DtoH and HtoD rows whose kinds of
-- memory both say device.
--
-- @grain    one row per copy
-- @optional CUPTI_ACTIVITY_KIND_MEMCPY
-- @optional CUPTI_ACTIVITY_KIND_MEMCPY.contextId BIGINT
-- @optional CUPTI_ACTIVITY_KIND_MEMCPY.correlationId BIGINT
-- @optional CUPTI_ACTIVITY_KIND_MEMCPY.globalPid BIGINT
-- @optional CUPTI_ACTIVITY_KIND_MEMCPY.bytes BIGINT
-- @optional CUPTI_ACTIVITY_KIND_MEMCPY.copyKind BIGINT
-- @optional CUPTI_ACTIVITY_KIND_MEMCPY.srcKind BIGINT
-- @optional CUPTI_ACTIVITY_KIND_MEMCPY.dstKind BIGINT
-- @optional CUPTI_ACTIVITY_KIND_MEMCPY.srcDeviceId BIGINT
-- @optional CUPTI_ACTIVITY_KIND_MEMCPY.dstDeviceId BIGINT
-- @optional CUPTI_ACTIVITY_KIND_MEMCPY.graphNodeId BIGINT
-- @column   row_id BIGINT - row number in the source table
-- @column   start_ns BIGINT ns start on the device
-- @column   end_ns BIGINT ns end on the device
-- @column   process BIGINT - process key, globalPid >> 24
-- @column   device_ordinal BIGINT - CUDA ordinal inside the process, not a physical device
-- @column   context_id BIGINT - CUDA context
-- @column   stream_id BIGINT - CUDA stream, unique only inside its process and context
-- @column   correlation_id BIGINT - joins the API call, unique only inside the process
-- @column   bytes BIGINT bytes bytes copied
-- @column   copy_kind BIGINT - 1 HtoD, 2 DtoH, 8 DtoD, 9 HtoH, 10 peer to peer
-- @column   src_kind BIGINT - 0 pageable, 1 pinned, 2 device, 4 managed
-- @column   dst_kind BIGINT - as src_kind
-- @column   src_device BIGINT - source device of a peer copy
-- @column   dst_device BIGINT - destination device of a peer copy
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
    m."copyKind" AS copy_kind,
    m."srcKind" AS src_kind,
    m."dstKind" AS dst_kind,
    m."srcDeviceId" AS src_device,
    m."dstDeviceId" AS dst_device,
    m."graphNodeId" AS graph_node_id
FROM trace."CUPTI_ACTIVITY_KIND_MEMCPY" AS m;
