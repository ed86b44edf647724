-- diagnostic — what did the profiler say about the capture?
--
-- Messages of the profiler, for instance about lost events. Paths in them are replaced, since they
-- name users and hosts.
--
-- @grain    one row per message
-- @optional DIAGNOSTIC_EVENT
-- @optional DIAGNOSTIC_EVENT.timestamp BIGINT
-- @optional DIAGNOSTIC_EVENT.source BIGINT
-- @optional DIAGNOSTIC_EVENT.severity BIGINT
-- @optional DIAGNOSTIC_EVENT.text VARCHAR
-- @optional DIAGNOSTIC_EVENT.globalPid BIGINT
-- @materialize
-- @column   time_ns BIGINT ns time of the message
-- @column   source BIGINT - component that wrote it
-- @column   severity BIGINT - 1 information, 2 warning, 3 error, 4 verbose
-- @column   process BIGINT - process key, globalPid >> 24
-- @column   text VARCHAR - message, with paths replaced by <path>
SELECT
    d."timestamp" AS time_ns,
    d."source" AS source,
    d."severity" AS severity,
    d."globalPid" >> 24 AS process,
    regexp_replace(
        d."text",
        '([A-Za-z]:)?[/\\][^\s''":,;]*[/\\][^\s''":,;]*',
        '<path>',
        'g'
    ) AS text
FROM trace."DIAGNOSTIC_EVENT" AS d;
