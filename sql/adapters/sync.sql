-- sync — which waits did the host ask for?
--
-- One row per synchronisation record. The numbering of syncType changed three times while its enum
-- table stayed the same, and the device number is wrong in real exports: neither is taken over.
--
-- @grain    one row per synchronisation record
-- @optional CUPTI_ACTIVITY_KIND_SYNCHRONIZATION
-- @optional CUPTI_ACTIVITY_KIND_SYNCHRONIZATION.contextId BIGINT
-- @optional CUPTI_ACTIVITY_KIND_SYNCHRONIZATION.correlationId BIGINT
-- @optional CUPTI_ACTIVITY_KIND_SYNCHRONIZATION.globalPid BIGINT
-- @optional CUPTI_ACTIVITY_KIND_SYNCHRONIZATION.eventSyncId BIGINT
-- @column   row_id BIGINT - row number in the source table
-- @column   start_ns BIGINT ns start of the wait
-- @column   end_ns BIGINT ns end of the wait
-- @column   process BIGINT - process key, globalPid >> 24
-- @column   context_id BIGINT - CUDA context
-- @column   stream_id BIGINT - CUDA stream, 4294967295 for none
-- @column   correlation_id BIGINT - joins the API call, unique only inside the process
-- @column   event_id BIGINT - event handle, reused over time; 4294967295 for none
-- @column   sync_id BIGINT - id that pairs the wait with its record; NULL, 0, 4294967295 are none
SELECT
    s.rowid AS row_id,
    s."start" AS start_ns,
    s."end" AS end_ns,
    s."globalPid" >> 24 AS process,
    s."contextId" AS context_id,
    s."streamId" AS stream_id,
    s."correlationId" AS correlation_id,
    s."eventId" AS event_id,
    s."eventSyncId" AS sync_id
FROM trace."CUPTI_ACTIVITY_KIND_SYNCHRONIZATION" AS s;
