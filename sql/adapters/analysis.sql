-- analysis — how long was the session?
--
-- Start and stop are left out: they are on another clock than the events.
--
-- @grain    one row per session
-- @optional ANALYSIS_DETAILS
-- @optional ANALYSIS_DETAILS.duration BIGINT
-- @materialize
-- @column   duration_ns BIGINT ns length of the session
SELECT
    a."duration" AS duration_ns
FROM trace."ANALYSIS_DETAILS" AS a;
