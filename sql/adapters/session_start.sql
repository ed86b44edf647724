-- session_start — at which wall-clock time does the session begin?
--
-- Merged reports hold several rows, and nothing ties a row to a process.
--
-- @grain    one row per session
-- @optional TARGET_INFO_SESSION_START_TIME
-- @optional TARGET_INFO_SESSION_START_TIME.utcEpochNs BIGINT
-- @materialize
-- @column   utc_ns BIGINT ns session start since the Unix epoch
SELECT
    t."utcEpochNs" AS utc_ns
FROM trace."TARGET_INFO_SESSION_START_TIME" AS t;
