-- setting — on what, with what and how was the report captured?
--
-- What two captures must have in common before their times are compared. Only the names that the
-- adapters let through are here: no users, hosts, paths, command lines or environments.
--
-- A GPU is told by its name, multiprocessors, clock and memory, with a question mark for what the
-- report does not know: exports before 2021 know little more than the name. Adapters that run no
-- CUDA may be listed beside the GPUs; they are left out where any row is known to run it, by its
-- multiprocessors or by the device mapping.
--
-- @grain  one row per property
-- @reads  nsys.gpu, nsys.device_map, nsys.system_env, nsys.export_info, nsys.capture_info,
--         nsys.capability, nsys.op, nsys.graph_op, nsys.control_call
-- @column name  VARCHAR - property
-- @column value VARCHAR - value, NULL where the report does not tell
-- @pitfall 21, 25, 27
WITH adapter AS (
    SELECT
        coalesce(name, chip_name, '?') AS name,
        CASE
            WHEN coalesce(sm_count, clock_hz, memory_bytes) IS NULL THEN '?'
            ELSE coalesce(sm_count::VARCHAR, '?') || ' SM, '
                || coalesce(format('{:.0f}', clock_hz / 1e6), '?') || ' MHz, '
                || coalesce(format('{:.0f}', memory_bytes / 1048576), '?') || ' MiB'
        END AS size,
        sm_count IS NOT NULL OR coalesce(gpu_id IN (SELECT gpu_id FROM nsys.device_map), false)
            AS is_cuda,
    FROM nsys.gpu
    WHERE coalesce(name, chip_name, sm_count::VARCHAR, clock_hz::VARCHAR, memory_bytes::VARCHAR)
        IS NOT NULL
),
board AS (
    SELECT DISTINCT name || ' (' || size || ')' AS board
    FROM adapter
    WHERE is_cuda OR NOT EXISTS (SELECT 1 FROM adapter WHERE is_cuda)
)
SELECT 'GPU' AS name, string_agg(board, '; ' ORDER BY board) AS value
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
    WHEN has_whole AND has_nodes THEN 'by node and as a whole'
    WHEN has_whole THEN 'as a whole'
    WHEN has_nodes THEN 'by node'
    ELSE 'none'
END
FROM (
    SELECT
        EXISTS (FROM nsys.op WHERE kind = 'graph') AS has_whole,
        -- a node without a correlation id is in no launch
        EXISTS (FROM nsys.graph_op) OR EXISTS (FROM nsys.op WHERE is_node) AS has_nodes,
) AS graphs
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
