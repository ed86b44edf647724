-- launches — how far ahead of the device does the host launch, and which kernels does it hold up?
--
-- One row per metric, each over kernels or over iterations, told by `per`. Latency runs from the
-- call that launched a kernel to the start of the kernel, over the kernels of steady iterations
-- that have a call of their own. Most of it is time in the queue: long latency is a host that is
-- ahead, and short latency with an empty queue is a launch-bound device. Kernels of CUDA graphs
-- (one call, many kernels, pitfall 21), those without a call in the trace, and those whose call
-- starts after them (skewed clocks) have no latency; they are counted apart.
--
-- The queue holds what is launched and has not started; its depth is a median over the time of
-- an iteration. A launch-bound kernel ends a stretch without compute that had begun before its
-- call returned; launch_starved is the time lost so, of which the shadowed part would be lost
-- anyway, as the producer of the kernel was still running.
--
-- @grain   one row per device and metric
-- @reads   nsys.window_segment, nsys.steady, nsys.kernel_launch, nsys.launch_window,
--          nsys.queue_window, nsys.budget_window
-- @needs   kernel, api_call
-- @column  device BIGINT - physical GPU of the report
-- @column  metric VARCHAR - what is measured
-- @column  unit VARCHAR - unit of the values: us, ms or count
-- @column  per VARCHAR - kernel: over all kernels with a call of their own; iteration: over
--          iterations
-- @column  min DOUBLE - least
-- @column  median DOUBLE - median
-- @column  p90 DOUBLE - 90th percentile, of kernels only
-- @column  p99 DOUBLE - 99th percentile, of kernels only
-- @column  max DOUBLE - greatest
-- @column  n BIGINT - kernels, or steady iterations
-- @invariant ordered n = 0 OR (min <= median AND median <= max)
-- @invariant not_negative n = 0 OR min >= 0
-- @pitfall 21
WITH inside AS (
    SELECT DISTINCT device, segment FROM nsys.window_segment
),
latency AS (
    SELECT
        k.device,
        k.start_ns - k.call_start_ns AS from_start_ns,
        -- a kernel may start while its call still runs: that is no time at all, not a negative one
        greatest(0, k.start_ns - k.call_end_ns) AS from_end_ns,
    FROM nsys.kernel_launch AS k
    INNER JOIN inside AS s ON s.device = k.device AND s.segment = k.segment
    WHERE k.launch = 'one'
),
measured AS (
    SELECT
        device,
        count(*) AS n,
        min(from_start_ns) AS start_min,
        quantile_cont(from_start_ns, [0.5, 0.9, 0.99]) AS start_at,
        max(from_start_ns) AS start_max,
        min(from_end_ns) AS end_min,
        quantile_cont(from_end_ns, [0.5, 0.9, 0.99]) AS end_at,
        max(from_end_ns) AS end_max,
    FROM latency
    GROUP BY device
),
kernel_metric AS (
    SELECT d.device, 0 AS position, 'latency_from_call_start' AS metric, 'us' AS unit,
        m.start_min / 1e3 AS min, m.start_at[1] / 1e3 AS median, m.start_at[2] / 1e3 AS p90,
        m.start_at[3] / 1e3 AS p99, m.start_max / 1e3 AS max, coalesce(m.n, 0) AS n,
    FROM (SELECT DISTINCT device FROM nsys.steady) AS d
    LEFT JOIN measured AS m ON m.device = d.device
    UNION ALL
    SELECT d.device, 1, 'latency_from_call_end', 'us',
        m.end_min / 1e3, m.end_at[1] / 1e3, m.end_at[2] / 1e3,
        m.end_at[3] / 1e3, m.end_max / 1e3, coalesce(m.n, 0),
    FROM (SELECT DISTINCT device FROM nsys.steady) AS d
    LEFT JOIN measured AS m ON m.device = d.device
),
value AS (
    -- in this order
    SELECT l.device, unnest(range(2, 17)) AS position, unnest([
        {'metric': 'queue_depth_median', 'unit': 'count', 'value': q.median_depth},
        {'metric': 'queue_depth_max', 'unit': 'count', 'value': q.max_depth},
        {'metric': 'queue_empty', 'unit': 'ms', 'value': q.empty_ns},
        {'metric': 'launch_bound_kernels', 'unit': 'count', 'value': l.bound_count},
        {'metric': 'launch_starved', 'unit': 'ms', 'value': b.launch_starved_ns},
        {'metric': 'launch_starved_shadowed', 'unit': 'ms', 'value': b.launch_starved_shadowed_ns},
        {'metric': 'api_calls', 'unit': 'count', 'value': l.call_count},
        {'metric': 'kernel_launch_calls', 'unit': 'count', 'value': l.launch_call_count},
        {'metric': 'graph_launch_calls', 'unit': 'count', 'value': l.graph_launch_count},
        {'metric': 'kernels', 'unit': 'count', 'value': l.kernel_count},
        {'metric': 'kernels_with_own_call', 'unit': 'count', 'value': l.one_count},
        {'metric': 'kernels_started_before_call_returned', 'unit': 'count', 'value': l.early_count},
        {'metric': 'kernels_of_shared_call', 'unit': 'count', 'value': l.many_count},
        {'metric': 'kernels_without_call', 'unit': 'count', 'value': l.unknown_count},
        {'metric': 'kernels_before_call', 'unit': 'count', 'value': l.skewed_count},
    ], recursive := true)
    FROM nsys.launch_window AS l
    INNER JOIN nsys.queue_window AS q ON q.device = l.device AND q.iteration = l.iteration
    INNER JOIN nsys.budget_window AS b ON b.device = l.device AND b.iteration = l.iteration
),
iteration_metric AS (
    SELECT
        device,
        position,
        metric,
        unit,
        min(value) / CASE unit WHEN 'ms' THEN 1e6 ELSE 1 END AS min,
        median(value) / CASE unit WHEN 'ms' THEN 1e6 ELSE 1 END AS median,
        max(value) / CASE unit WHEN 'ms' THEN 1e6 ELSE 1 END AS max,
        count(*) AS n,
    FROM value
    GROUP BY device, position, metric, unit
),
row_of AS (
    SELECT device, position, metric, unit, 'kernel' AS per, min, median, p90, p99, max, n
    FROM kernel_metric
    UNION ALL
    SELECT device, position, metric, unit, 'iteration', min, median, NULL, NULL, max, n
    FROM iteration_metric
)
SELECT
    device,
    metric,
    unit,
    per,
    min::DOUBLE AS min,
    median::DOUBLE AS median,
    p90::DOUBLE AS p90,
    p99::DOUBLE AS p99,
    max::DOUBLE AS max,
    n,
FROM row_of
ORDER BY device, position;
