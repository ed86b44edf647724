-- device_map — which physical GPU does a process mean by a CUDA ordinal?
--
-- Ordinals are per process. Exports before 2025 do not have this table.
--
-- @grain    one row per process and CUDA ordinal
-- @optional TARGET_INFO_CUDA_DEVICE
-- @materialize
-- @column   process_pid BIGINT - operating system process id
-- @column   device_ordinal BIGINT - CUDA ordinal inside the process
-- @column   gpu_id BIGINT - physical GPU
SELECT DISTINCT
    d."pid" AS process_pid,
    d."cudaId" AS device_ordinal,
    d."gpuId" AS gpu_id
FROM trace."TARGET_INFO_CUDA_DEVICE" AS d;
