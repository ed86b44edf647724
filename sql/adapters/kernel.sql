-- kernel — which kernels ran on the devices?
--
-- One row per kernel execution as exported, invalid rows included: steps decide what counts.
-- The demangled name is the name; the short name stands in only where the former is missing.
--
-- @grain    one row per kernel execution
-- @optional CUPTI_ACTIVITY_KIND_KERNEL
-- @optional CUPTI_ACTIVITY_KIND_KERNEL.correlationId BIGINT
-- @optional CUPTI_ACTIVITY_KIND_KERNEL.globalPid BIGINT
-- @optional CUPTI_ACTIVITY_KIND_KERNEL.contextId BIGINT
-- @optional CUPTI_ACTIVITY_KIND_KERNEL.demangledName BIGINT
-- @optional CUPTI_ACTIVITY_KIND_KERNEL.shortName BIGINT
-- @optional CUPTI_ACTIVITY_KIND_KERNEL.graphNodeId BIGINT
-- @optional CUPTI_ACTIVITY_KIND_KERNEL.graphId BIGINT
-- @optional CUPTI_ACTIVITY_KIND_KERNEL.gridX BIGINT
-- @optional CUPTI_ACTIVITY_KIND_KERNEL.gridY BIGINT
-- @optional CUPTI_ACTIVITY_KIND_KERNEL.gridZ BIGINT
-- @optional CUPTI_ACTIVITY_KIND_KERNEL.blockX BIGINT
-- @optional CUPTI_ACTIVITY_KIND_KERNEL.blockY BIGINT
-- @optional CUPTI_ACTIVITY_KIND_KERNEL.blockZ BIGINT
-- @optional CUPTI_ACTIVITY_KIND_KERNEL.registersPerThread BIGINT
-- @optional CUPTI_ACTIVITY_KIND_KERNEL.staticSharedMemory BIGINT
-- @optional CUPTI_ACTIVITY_KIND_KERNEL.dynamicSharedMemory BIGINT
-- @optional CUPTI_ACTIVITY_KIND_KERNEL.launchType BIGINT
-- @column   row_id BIGINT - row number in the source table
-- @column   start_ns BIGINT ns start on the device
-- @column   end_ns BIGINT ns end on the device
-- @column   process BIGINT - process key, globalPid >> 24
-- @column   device_ordinal BIGINT - CUDA ordinal inside the process, not a physical device
-- @column   context_id BIGINT - CUDA context
-- @column   stream_id BIGINT - CUDA stream, unique only inside its process and context
-- @column   correlation_id BIGINT - joins the API call, unique only inside the process
-- @column   name_id BIGINT - string id of the demangled name, else of the short one
-- @column   short_name_id BIGINT - string id of the short name
-- @column   graph_node_id BIGINT - node of a CUDA graph, NULL or 0 outside graphs
-- @column   graph_id BIGINT - CUDA graph, NULL outside graphs
-- @column   grid_x BIGINT - blocks of the grid along x
-- @column   grid_y BIGINT - blocks of the grid along y
-- @column   grid_z BIGINT - blocks of the grid along z
-- @column   block_x BIGINT - threads of a block along x
-- @column   block_y BIGINT - threads of a block along y
-- @column   block_z BIGINT - threads of a block along z
-- @column   registers_per_thread BIGINT - registers of a thread
-- @column   static_shared_bytes BIGINT bytes static shared memory of a block
-- @column   dynamic_shared_bytes BIGINT bytes dynamic shared memory of a block
-- @column   launch_type BIGINT - 1 regular, 2 and 3 cooperative, 0 unknown
SELECT
    k.rowid AS row_id,
    k."start" AS start_ns,
    k."end" AS end_ns,
    k."globalPid" >> 24 AS process,
    k."deviceId" AS device_ordinal,
    k."contextId" AS context_id,
    k."streamId" AS stream_id,
    k."correlationId" AS correlation_id,
    coalesce(k."demangledName", k."shortName") AS name_id,
    k."shortName" AS short_name_id,
    k."graphNodeId" AS graph_node_id,
    k."graphId" AS graph_id,
    k."gridX" AS grid_x,
    k."gridY" AS grid_y,
    k."gridZ" AS grid_z,
    k."blockX" AS block_x,
    k."blockY" AS block_y,
    k."blockZ" AS block_z,
    k."registersPerThread" AS registers_per_thread,
    k."staticSharedMemory" AS static_shared_bytes,
    k."dynamicSharedMemory" AS dynamic_shared_bytes,
    k."launchType" AS launch_type
FROM trace."CUPTI_ACTIVITY_KIND_KERNEL" AS k;
