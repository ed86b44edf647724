-- cuda_overhead — where did CUPTI and the CUDA driver take time?
--
-- Since 2026 the overhead of CUDA tracing has a table of its own.
--
-- @grain    one row per span
-- @optional CUPTI_ACTIVITY_KIND_OVERHEAD
-- @optional CUPTI_ACTIVITY_KIND_OVERHEAD.globalTid BIGINT
-- @optional CUPTI_ACTIVITY_KIND_OVERHEAD.correlationId BIGINT
-- @optional CUPTI_ACTIVITY_KIND_OVERHEAD.nameId BIGINT
-- @optional CUPTI_ACTIVITY_KIND_OVERHEAD.overheadType BIGINT
-- @column   row_id BIGINT - row number in the source table
-- @column   start_ns BIGINT ns start on the host
-- @column   end_ns BIGINT ns end on the host
-- @column   process BIGINT - process key, globalTid >> 24
-- @column   thread BIGINT - globalTid of the calling thread
-- @column   correlation_id BIGINT - joins the API call it fell into, unique only inside the process
-- @column   name_id BIGINT - string id of the kind of work
-- @column   overhead_type BIGINT - 2 JIT, 3 flush, 4 instrumentation, 6 module load, 7 lazy load
SELECT
    o.rowid AS row_id,
    o."start" AS start_ns,
    o."end" AS end_ns,
    o."globalTid" >> 24 AS process,
    o."globalTid" AS thread,
    o."correlationId" AS correlation_id,
    o."nameId" AS name_id,
    o."overheadType" AS overhead_type
FROM trace."CUPTI_ACTIVITY_KIND_OVERHEAD" AS o;
