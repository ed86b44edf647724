-- osrt_call — which operating system calls were traced?
--
-- Blocking calls of the C library and the like; nested calls carry their depth.
--
-- @grain    one row per call
-- @optional OSRT_API
-- @optional OSRT_API.globalTid BIGINT
-- @optional OSRT_API.nameId BIGINT
-- @optional OSRT_API.returnValue BIGINT
-- @optional OSRT_API.nestingLevel BIGINT
-- @optional OSRT_API.callchainId BIGINT
-- @column   row_id BIGINT - row number in the source table
-- @column   start_ns BIGINT ns start on the host
-- @column   end_ns BIGINT ns end on the host
-- @column   process BIGINT - process key, globalTid >> 24
-- @column   thread BIGINT - globalTid of the calling thread
-- @column   name_id BIGINT - string id of the function name
-- @column   return_value BIGINT - return value
-- @column   nesting_level BIGINT - depth of nested calls
-- @column   callchain_id BIGINT - call chain, NULL or 0 for none
SELECT
    o.rowid AS row_id,
    o."start" AS start_ns,
    o."end" AS end_ns,
    o."globalTid" >> 24 AS process,
    o."globalTid" AS thread,
    o."nameId" AS name_id,
    o."returnValue" AS return_value,
    o."nestingLevel" AS nesting_level,
    o."callchainId" AS callchain_id
FROM trace."OSRT_API" AS o;
