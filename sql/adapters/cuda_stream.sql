-- cuda_stream — which CUDA streams existed?
--
-- The process is its plain number here, not the process key.
--
-- @grain    one row per process, context and stream
-- @optional TARGET_INFO_CUDA_STREAM
-- @optional TARGET_INFO_CUDA_STREAM.priority BIGINT
-- @optional TARGET_INFO_CUDA_STREAM.flag BIGINT
-- @materialize
-- @column   process_pid BIGINT - operating system process id
-- @column   context_id BIGINT - CUDA context
-- @column   stream_id BIGINT - CUDA stream, unique only inside its process and context
-- @column   priority BIGINT - lower runs first; exported as unsigned
-- @column   flag BIGINT - 1 default, 2 non-blocking, 3 null stream, 0 unknown
SELECT
    s."processId" AS process_pid,
    s."contextId" AS context_id,
    s."streamId" AS stream_id,
    CASE
        WHEN s."priority" >= 2147483648 THEN s."priority" - 4294967296
        ELSE s."priority"
    END AS priority,
    s."flag" AS flag
FROM trace."TARGET_INFO_CUDA_STREAM" AS s;
