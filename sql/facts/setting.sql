-- setting — on what, with what and how was the report captured?
--
-- What two captures must have in common before their times are compared. Only the names that the
-- adapters let through are here: no users, hosts, paths, command lines or environments.
--
-- @grain  one row per property
-- @reads  nsys.gpu, nsys.system_env, nsys.export_info, nsys.capture_info, nsys.capability,
--         nsys.op, nsys.graph_op, nsys.control_call
-- @column name  VARCHAR - property
-- @column value VARCHAR - value, NULL where the report does not tell
-- @pitfall 21, 25, 27
WITH board AS (
    SELECT
        name,
        concat_ws(
            ', ',
            sm_count || ' SM',
            format('{:.0f} MHz', clock_hz / 1e6),
            format('{:.0f} MiB', memory_bytes / 1048576)
        ) AS size,
    FROM nsys.gpu
    WHERE sm_count IS NOT NULL
)
SELECT 'GPU' AS name, string_agg(DISTINCT name || ' (' || size || ')', '; ' ORDER BY name || ' ('
    || size || ')') AS value
FROM board
UNION ALL
SELECT 'NVIDIA driver', max(value) FILTER (WHERE name = 'NvDriverVersion') FROM nsys.system_env
UNION ALL
SELECT 'CUDA driver', max(value) FILTER (WHERE name = 'CudaDriverVersion') FROM nsys.system_env
UNION ALL
SELECT 'CPU', max(value) FILTER (WHERE name = 'CpuDescription') FROM nsys.system_env
UNION ALL
SELECT 'operating system', max(value) FILTER (WHERE name = 'OsDescription') FROM nsys.system_env
UNION ALL
SELECT 'nsys capture', max(nullif(value, '')) FILTER (WHERE name = 'CaptureVersion')
FROM nsys.system_env
UNION ALL
SELECT 'nsys export', max(value) FILTER (WHERE name = 'EXPORT_PRODUCT_VERSION')
FROM nsys.export_info
UNION ALL
SELECT 'recorded', string_agg(relation, ', ' ORDER BY relation)
FROM nsys.capability
WHERE is_present
  AND relation IN (
      'api_call', 'cuda_event', 'cuda_overhead', 'gpu_metric', 'graph_exec', 'kernel', 'memcpy',
      'memset', 'nvtx', 'osrt_call', 'overhead', 'sched_event', 'sync'
  )
UNION ALL
SELECT 'CUDA graphs', CASE
    WHEN EXISTS (FROM nsys.op WHERE kind = 'graph') AND EXISTS (FROM nsys.graph_op)
        THEN 'by node and as a whole'
    WHEN EXISTS (FROM nsys.op WHERE kind = 'graph') THEN 'as a whole'
    WHEN EXISTS (FROM nsys.graph_op) THEN 'by node'
    ELSE 'none'
END
UNION ALL
SELECT 'profiler range', CASE
    WHEN EXISTS (FROM nsys.control_call WHERE control LIKE 'profiler%') THEN 'by calls'
    ELSE 'whole run'
END
UNION ALL
SELECT lower(replace(replace(name, '_', ' '), ':', ' ')), string_agg(value, ', ' ORDER BY value)
FROM nsys.capture_info
WHERE name NOT IN ('START_DELAY_MS', 'RUN_DURATION_MS')
GROUP BY name;
