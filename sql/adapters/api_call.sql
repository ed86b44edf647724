-- api_call — which CUDA API calls did the host make?
--
-- Every row of the API table, copies kept for backtraces (event class 67) included: steps choose.
--
-- @grain    one row per exported API row
-- @optional CUPTI_ACTIVITY_KIND_RUNTIME
-- @optional CUPTI_ACTIVITY_KIND_RUNTIME.eventClass BIGINT
-- @optional CUPTI_ACTIVITY_KIND_RUNTIME.globalTid BIGINT
-- @optional CUPTI_ACTIVITY_KIND_RUNTIME.correlationId BIGINT
-- @optional CUPTI_ACTIVITY_KIND_RUNTIME.nameId BIGINT
-- @optional CUPTI_ACTIVITY_KIND_RUNTIME.returnValue BIGINT
-- @optional CUPTI_ACTIVITY_KIND_RUNTIME.callchainId BIGINT
-- @column   row_id BIGINT - row number in the source table
-- @column   start_ns BIGINT ns start on the host
-- @column   end_ns BIGINT ns end on the host
-- @column   process BIGINT - process key, globalTid >> 24
-- @column   thread BIGINT - globalTid of the calling thread
-- @column   correlation_id BIGINT - joins the device operation, unique only inside the process
-- @column   name_id BIGINT - string id of the function name
-- @column   event_class BIGINT - 0 runtime, 1 driver, 67 backtrace copy
-- @column   return_value BIGINT - 0 is success
-- @column   callchain_id BIGINT - call chain, NULL or 0 for none
SELECT
    r.rowid AS row_id,
    r."start" AS start_ns,
    r."end" AS end_ns,
    r."globalTid" >> 24 AS process,
    r."globalTid" AS thread,
    r."correlationId" AS correlation_id,
    r."nameId" AS name_id,
    r."eventClass" AS event_class,
    r."returnValue" AS return_value,
    r."callchainId" AS callchain_id
FROM trace."CUPTI_ACTIVITY_KIND_RUNTIME" AS r;
