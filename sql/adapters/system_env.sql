-- system_env — which drivers and which machine was it captured on?
--
-- The source table holds the whole environment of the target. Only the names listed here are read;
-- of the installation folder only the version of the profiler that captured.
--
-- @grain    one row per property
-- @optional TARGET_INFO_SYSTEM_ENV
-- @optional TARGET_INFO_SYSTEM_ENV.name VARCHAR
-- @optional TARGET_INFO_SYSTEM_ENV.value VARCHAR
-- @materialize
-- @column   name VARCHAR - property
-- @column   value VARCHAR - value
SELECT DISTINCT
    CASE e."name" WHEN 'TargetInstallDir' THEN 'CaptureVersion' ELSE e."name" END AS name,
    CASE e."name"
        WHEN 'TargetInstallDir' THEN regexp_extract(e."value", '20[0-9][0-9]\.[0-9]+\.[0-9]+')
        ELSE e."value"
    END AS value
FROM trace."TARGET_INFO_SYSTEM_ENV" AS e
WHERE
    e."name" IN (
        'CpuArchitecture',
        'CpuDescription',
        'CudaDriverVersion',
        'HardwarePlatform',
        'NvDriverVersion',
        'OsDescription',
        'TargetInstallDir'
    );
