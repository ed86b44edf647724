-- overhead — where did the profiler itself take time?
--
-- Spans on host threads in which the profiler worked, loading libraries included.
--
-- @grain    one row per span
-- @optional PROFILER_OVERHEAD
-- @optional PROFILER_OVERHEAD.globalTid BIGINT
-- @optional PROFILER_OVERHEAD.nameId BIGINT
-- @optional PROFILER_OVERHEAD.overheadType BIGINT
-- @column   row_id BIGINT - row number in the source table
-- @column   start_ns BIGINT ns start on the host
-- @column   end_ns BIGINT ns end on the host
-- @column   process BIGINT - process key, globalTid >> 24
-- @column   thread BIGINT - globalTid of the calling thread
-- @column   name_id BIGINT - string id of the kind of work
-- @column   overhead_type BIGINT - CUPTI overhead type, newer exports only
SELECT
    o.rowid AS row_id,
    o."start" AS start_ns,
    o."end" AS end_ns,
    o."globalTid" >> 24 AS process,
    o."globalTid" AS thread,
    o."nameId" AS name_id,
    o."overheadType" AS overhead_type
FROM trace."PROFILER_OVERHEAD" AS o;
