-- cuda_event — which CUDA events were recorded?
--
-- One row per event record. Event handles are reused over time; the sync id, where there is one,
-- names one record. The device number is wrong in real exports and is not taken over.
--
-- @grain    one row per event record
-- @optional CUPTI_ACTIVITY_KIND_CUDA_EVENT
-- @optional CUPTI_ACTIVITY_KIND_CUDA_EVENT.contextId BIGINT
-- @optional CUPTI_ACTIVITY_KIND_CUDA_EVENT.correlationId BIGINT
-- @optional CUPTI_ACTIVITY_KIND_CUDA_EVENT.globalPid BIGINT
-- @optional CUPTI_ACTIVITY_KIND_CUDA_EVENT.eventSyncId BIGINT
-- @column   row_id BIGINT - row number in the source table
-- @column   process BIGINT - process key, globalPid >> 24
-- @column   context_id BIGINT - CUDA context
-- @column   stream_id BIGINT - CUDA stream, unique only inside its process and context
-- @column   correlation_id BIGINT - joins the API call, unique only inside the process
-- @column   event_id BIGINT - event handle, reused over time
-- @column   sync_id BIGINT - id that pairs the record with its waits; NULL, 0, 4294967295 are none
SELECT
    e.rowid AS row_id,
    e."globalPid" >> 24 AS process,
    e."contextId" AS context_id,
    e."streamId" AS stream_id,
    e."correlationId" AS correlation_id,
    e."eventId" AS event_id,
    e."eventSyncId" AS sync_id
FROM trace."CUPTI_ACTIVITY_KIND_CUDA_EVENT" AS e;
