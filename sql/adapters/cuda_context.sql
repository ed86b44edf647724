-- cuda_context — which CUDA contexts existed?
--
-- Every context with its null stream; green contexts name their parent.
--
-- @grain    one row per process and context
-- @optional TARGET_INFO_CUDA_CONTEXT_INFO
-- @optional TARGET_INFO_CUDA_CONTEXT_INFO.parentContextId BIGINT
-- @optional TARGET_INFO_CUDA_CONTEXT_INFO.isGreenContext BIGINT
-- @optional TARGET_INFO_CUDA_CONTEXT_INFO.nullStreamId BIGINT
-- @optional TARGET_INFO_CUDA_CONTEXT_INFO.numMultiprocessors BIGINT
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
    c."parentContextId" AS parent_context_id,
    c."isGreenContext" AS is_green,
    c."nullStreamId" AS null_stream_id,
    c."numMultiprocessors" AS sm_count
FROM trace."TARGET_INFO_CUDA_CONTEXT_INFO" AS c;
