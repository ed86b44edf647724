-- gpu — which GPUs does the target have?
--
-- Until 2020.4 the properties stood in a second table, which has one row per process that used the
-- GPU; the two meet in the PCI bus location.
--
-- @grain    one row per GPU
-- @when     TARGET_INFO_GPU.deviceId present
-- @optional TARGET_INFO_GPU
-- @optional TARGET_INFO_GPU.name VARCHAR
-- @optional TARGET_INFO_GPU.busLocation VARCHAR
-- @optional TARGET_INFO_GPU.isDiscrete BIGINT
-- @optional TARGET_INFO_CUDA_GPU
-- @optional TARGET_INFO_CUDA_GPU.pciBusId VARCHAR
-- @optional TARGET_INFO_CUDA_GPU.numMultiprocessors BIGINT
-- @optional TARGET_INFO_CUDA_GPU.coreClockRate BIGINT
-- @optional TARGET_INFO_CUDA_GPU.globalMemorySize BIGINT
-- @optional TARGET_INFO_CUDA_GPU.globalMemoryBandwidth BIGINT
-- @optional TARGET_INFO_CUDA_GPU.l2CacheSize BIGINT
-- @optional TARGET_INFO_CUDA_GPU.computeCapabilityMajor BIGINT
-- @optional TARGET_INFO_CUDA_GPU.computeCapabilityMinor BIGINT
-- @materialize
-- @column   gpu_id BIGINT - physical GPU, as device_map names it
-- @column   name VARCHAR - marketing name
-- @column   chip_name VARCHAR - chip
-- @column   bus_location VARCHAR - PCI bus location
-- @column   is_discrete BIGINT - 1 for a discrete GPU
-- @column   cuda_ordinal BIGINT - CUDA ordinal at capture; unreliable, see device_map
-- @column   sm_count BIGINT - streaming multiprocessors
-- @column   clock_hz BIGINT Hz clock rate
-- @column   memory_bytes BIGINT bytes device memory
-- @column   memory_bytes_per_second BIGINT bytes/s peak memory bandwidth
-- @column   l2_cache_bytes BIGINT bytes second-level cache
-- @column   compute_major BIGINT - compute capability, major
-- @column   compute_minor BIGINT - compute capability, minor
SELECT DISTINCT
    g."deviceId" AS gpu_id,
    g."name" AS name,
    CAST(NULL AS VARCHAR) AS chip_name,
    g."busLocation" AS bus_location,
    g."isDiscrete" AS is_discrete,
    c."deviceId" AS cuda_ordinal,
    c."numMultiprocessors" AS sm_count,
    c."coreClockRate" AS clock_hz,
    c."globalMemorySize" AS memory_bytes,
    c."globalMemoryBandwidth" AS memory_bytes_per_second,
    c."l2CacheSize" AS l2_cache_bytes,
    c."computeCapabilityMajor" AS compute_major,
    c."computeCapabilityMinor" AS compute_minor
FROM trace."TARGET_INFO_GPU" AS g
LEFT JOIN trace."TARGET_INFO_CUDA_GPU" AS c
    ON lower(c."pciBusId") = lower(g."busLocation");
