-- reference_step — how long did the steps of the same run take without the profiler?
--
-- Empty unless the option --reference-steps gives them: a list, or the trainer's own log.
--
-- @grain  one row per unprofiled step
-- @column step        BIGINT -  number of the step in the log, else its position in the list
-- @column duration_ns BIGINT ns what the trainer measured
SELECT NULL::BIGINT AS step, NULL::BIGINT AS duration_ns
WHERE false;
