-- devices — which GPUs did any work, and which processes used them?
--
-- One row per physical GPU with device operations. The GPU's name is given only where it is
-- certain: through the trace's own device mapping, or because all GPUs of the host are alike;
-- the CUDA ordinal alone does not tell it. A count of what was not captured is NULL (pitfall 18).
--
-- @grain   one row per device
-- @reads   nsys.op, nsys.gpu, nsys.device_map, nsys.capability
-- @needs   kernel|memcpy|memset|graph_exec
-- @column  device BIGINT - physical GPU of the report, else the CUDA ordinal
-- @column  gpu VARCHAR - name of the GPU
-- @column  pids VARCHAR - operating system ids of the processes with work on it
-- @column  kernel_count BIGINT count kernels
-- @column  copy_count BIGINT count memory copies
-- @column  set_count BIGINT count memory sets
-- @column  graph_count BIGINT count CUDA graph executions that were traced as a whole
-- @column  first_start_ns BIGINT ns start of its first operation
-- @column  last_end_ns BIGINT ns end of its last operation
-- @pitfall 18
WITH alike AS (
    SELECT CASE WHEN count(DISTINCT name) = 1 THEN max(name) END AS name
    FROM nsys.gpu
),
mapped AS (
    SELECT gpu_id, max(name) AS name
    FROM nsys.gpu
    WHERE gpu_id IN (SELECT gpu_id FROM nsys.device_map)
    GROUP BY gpu_id
),
-- pitfall 18: what was not captured is unknown, not zero
captured AS (
    SELECT relation FROM nsys.capability WHERE is_present
),
work AS (
    SELECT
        device,
        string_agg(DISTINCT process & 16777215, ', ' ORDER BY process & 16777215) AS pids,
        count(*) FILTER (WHERE kind = 'kernel') AS kernel_count,
        count(*) FILTER (WHERE kind = 'memcpy') AS copy_count,
        count(*) FILTER (WHERE kind = 'memset') AS set_count,
        count(*) FILTER (WHERE kind = 'graph') AS graph_count,
        min(start_ns) AS first_start_ns,
        max(end_ns) AS last_end_ns,
    FROM nsys.op
    GROUP BY device
)
SELECT
    w.device,
    coalesce(m.name, a.name) AS gpu,
    w.pids,
    CASE WHEN 'kernel' IN (FROM captured) THEN w.kernel_count END AS kernel_count,
    CASE WHEN 'memcpy' IN (FROM captured) THEN w.copy_count END AS copy_count,
    CASE WHEN 'memset' IN (FROM captured) THEN w.set_count END AS set_count,
    CASE WHEN 'graph_exec' IN (FROM captured) THEN w.graph_count END AS graph_count,
    w.first_start_ns,
    w.last_end_ns,
FROM work AS w
CROSS JOIN alike AS a
LEFT JOIN mapped AS m ON m.gpu_id = w.device
ORDER BY w.device NULLS LAST;
