-- nvtx — which NVTX ranges, marks and names did the program emit?
--
-- The text of a registered string is kept in the string table, any other text in the row itself.
-- A domain is identified inside one process only.
--
-- @grain    one row per NVTX event
-- @optional NVTX_EVENTS
-- @optional NVTX_EVENTS.end BIGINT
-- @optional NVTX_EVENTS.rangeId BIGINT
-- @optional NVTX_EVENTS.category BIGINT
-- @optional NVTX_EVENTS.text VARCHAR
-- @optional NVTX_EVENTS.globalTid BIGINT
-- @optional NVTX_EVENTS.endGlobalTid BIGINT
-- @optional NVTX_EVENTS.textId BIGINT
-- @optional NVTX_EVENTS.domainId BIGINT
-- @optional StringIds
-- @optional StringIds.value VARCHAR
-- @materialize
-- @column   row_id BIGINT - row number in the source table
-- @column   start_ns BIGINT ns start on the host
-- @column   end_ns BIGINT ns end on the host, NULL for events without one
-- @column   event_type BIGINT - 34 mark, 59 push/pop, 60 start/end, 39 thread, 75 domain
-- @column   range_id BIGINT - id of a start/end range
-- @column   thread BIGINT - globalTid of the thread that opened the range
-- @column   end_thread BIGINT - globalTid of the thread that closed it, where another one
-- @column   process BIGINT - process key, globalTid >> 24
-- @column   domain_id BIGINT - NVTX domain, unique only inside the process
-- @column   category BIGINT - NVTX category
-- @column   text VARCHAR - message of the range
SELECT
    e.rowid AS row_id,
    e."start" AS start_ns,
    e."end" AS end_ns,
    e."eventType" AS event_type,
    e."rangeId" AS range_id,
    e."globalTid" AS thread,
    e."endGlobalTid" AS end_thread,
    e."globalTid" >> 24 AS process,
    e."domainId" AS domain_id,
    e."category" AS category,
    coalesce(e."text", s."value") AS text
FROM trace."NVTX_EVENTS" AS e
LEFT JOIN trace."StringIds" AS s
    ON s."id" = e."textId";
