-- gpu — which GPUs does the target have?
--
-- Adapters of other vendors can be listed too. Identifiers of the very board are left out.
--
-- @grain    one row per GPU
-- @optional TARGET_INFO_GPU
-- @optional TARGET_INFO_GPU.name VARCHAR
-- @optional TARGET_INFO_GPU.chipName VARCHAR
-- @optional TARGET_INFO_GPU.busLocation VARCHAR
-- @optional TARGET_INFO_GPU.isDiscrete BIGINT
-- @optional TARGET_INFO_GPU.cuDevice BIGINT
-- @optional TARGET_INFO_GPU.smCount BIGINT
-- @optional TARGET_INFO_GPU.clockRate BIGINT
-- @optional TARGET_INFO_GPU.totalMemory BIGINT
-- @optional TARGET_INFO_GPU.memoryBandwidth BIGINT
-- @optional TARGET_INFO_GPU.l2CacheSize BIGINT
-- @optional TARGET_INFO_GPU.computeMajor BIGINT
-- @optional TARGET_INFO_GPU.computeMinor BIGINT
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
SELECT
    g."id" AS gpu_id,
    g."name" AS name,
    g."chipName" AS chip_name,
    g."busLocation" AS bus_location,
    g."isDiscrete" AS is_discrete,
    g."cuDevice" AS cuda_ordinal,
    g."smCount" AS sm_count,
    g."clockRate" AS clock_hz,
    g."totalMemory" AS memory_bytes,
    g."memoryBandwidth" AS memory_bytes_per_second,
    g."l2CacheSize" AS l2_cache_bytes,
    g."computeMajor" AS compute_major,
    g."computeMinor" AS compute_minor
FROM trace."TARGET_INFO_GPU" AS g;
