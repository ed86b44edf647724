-- cuda_context — which CUDA contexts existed?
--
-- Until schema 3.4 only the null stream of each context was exported.
--
-- @grain    one row per process and context
-- @when     TARGET_INFO_CUDA_NULL_STREAM present
-- @when     TARGET_INFO_CUDA_CONTEXT_INFO absent
-- @optional TARGET_INFO_CUDA_NULL_STREAM
-- @materialize
-- @column   process_pid BIGINT - operating system process id
-- @column   device_ordinal BIGINT - CUDA ordinal inside the process
-- @column   context_id BIGINT - CUDA context
-- @column   parent_context_id BIGINT - context a green context belongs to
-- @column   is_green BIGINT - 1 for a green context
-- @column   null_stream_id BIGINT - the null stream of the context
-- @column   sm_count BIGINT - streaming multiprocessors the context may use
SELECT
    c."processId" AS process_pid,
    c."deviceId" AS device_ordinal,
    c."contextId" AS context_id,
    CAST(NULL AS BIGINT) AS parent_context_id,
    CAST(NULL AS BIGINT) AS is_green,
    c."streamId" AS null_stream_id,
    CAST(NULL AS BIGINT) AS sm_count
FROM trace."TARGET_INFO_CUDA_NULL_STREAM" AS c;
