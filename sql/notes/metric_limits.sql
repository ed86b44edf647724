-- metric_limits — what do the sampled metrics rest on, and what do they not tell?
--
-- @reads   nsys.metric_sample, nsys.metric_given, nsys.device_map, nsys.op_name, nsys.op
-- @pitfall 14, 16, 18
WITH period AS (
    SELECT device, count(*) AS samples, median(step_ns) AS step_ns
    FROM (
        SELECT
            device,
            lead(time_ns) OVER (PARTITION BY device ORDER BY time_ns) - time_ns AS step_ns,
        FROM nsys.metric_sample
    ) AS spaced
    GROUP BY device
),
used AS (
    SELECT DISTINCT n.name
    FROM nsys.op AS o
    INNER JOIN nsys.op_name AS n ON n.name_id = o.name_id
),
strange AS (
    SELECT count(DISTINCT name) AS n
    FROM nsys.metric_given
    WHERE scope = 'kernel' AND name NOT IN (SELECT name FROM used WHERE name IS NOT NULL)
),
said AS (
    SELECT 1 AS position, device, format(
            'device {}: {} samples, one every {}; they are taken device-wide, and an operator that '
            || 'no sample met is unknown, not idle',
            device, samples, coalesce(nsys.duration_text(step_ns), '?')
        ) AS note
    FROM period
    WHERE NOT EXISTS (SELECT 1 FROM nsys.metric_given)
    UNION ALL
    SELECT 2, NULL, 'samples are those of another capture, joined by name of the operator and '
        || 'never to a single launch; work is that of this trace'
    WHERE EXISTS (SELECT 1 FROM nsys.metric_given)
    UNION ALL
    SELECT 3, NULL, n || ' kernels of the other capture do not run in this trace: is it the same '
        || 'workload?'
    FROM strange
    WHERE n > 0
    UNION ALL
    SELECT 4, NULL, 'no sample of a known metric falls into the windows shown'
    WHERE NOT EXISTS (SELECT 1 FROM nsys.metric_given)
        AND NOT EXISTS (SELECT 1 FROM nsys.metric_sample)
    UNION ALL
    SELECT 5, NULL, 'metrics name physical GPUs while this trace tells devices only by CUDA '
        || 'ordinal: that device 0 is GPU 0 is an assumption'
    WHERE EXISTS (SELECT 1 FROM nsys.metric_sample) AND NOT EXISTS (SELECT 1 FROM nsys.device_map)
)
SELECT note FROM said ORDER BY position, device;
