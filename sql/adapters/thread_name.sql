-- thread_name — what are the threads called?
--
-- A thread can have several names.
--
-- @grain    one row per name of a thread
-- @optional ThreadNames
-- @optional ThreadNames.globalTid BIGINT
-- @optional ThreadNames.priority BIGINT
-- @optional ThreadNames.nameId BIGINT
-- @optional StringIds
-- @materialize
-- @column   thread BIGINT - globalTid of the thread
-- @column   process BIGINT - process key, globalTid >> 24
-- @column   priority BIGINT - rank of the name among the names of the thread
-- @column   name VARCHAR - thread name
SELECT
    t."globalTid" AS thread,
    t."globalTid" >> 24 AS process,
    t."priority" AS priority,
    s."value" AS name
FROM trace."ThreadNames" AS t
LEFT JOIN trace."StringIds" AS s
    ON s."id" = t."nameId";
