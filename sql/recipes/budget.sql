-- budget — where does the wall time of an iteration go on each device?
--
-- One row per metric: median, least, greatest and mean over the steady iterations of a device,
-- and their number. Each metric is taken per iteration from interval unions first (pitfall 1);
-- a median of parts need not add up to the median of the whole, the parts of each iteration do
-- (recipe budget-windows).
--
-- @grain     one row per device and metric
-- @reads     nsys.budget_window
-- @needs     kernel | graph_exec
-- @column    device BIGINT - physical GPU of the report
-- @column    metric VARCHAR - name of the metric, in the order of the budget
-- @column    median_ms DOUBLE ms median over the steady iterations
-- @column    min_ms DOUBLE ms least
-- @column    max_ms DOUBLE ms greatest
-- @column    mean_ms DOUBLE ms mean
-- @column    pct_of_iteration DOUBLE pct median of the metric by median of the iteration
-- @column    n BIGINT - steady iterations
-- @pitfall   1, 2, 7
WITH metric AS (
    -- in this order
    SELECT device, unnest(range(15)) AS position, unnest([
        {'metric': 'iteration', 'value_ns': iteration_ns},
        {'metric': 'device_busy', 'value_ns': device_busy_ns},
        {'metric': 'device_idle', 'value_ns': device_idle_ns},
        {'metric': 'noncomm_busy', 'value_ns': noncomm_busy_ns},
        {'metric': 'comm_busy', 'value_ns': comm_busy_ns},
        {'metric': 'compute_busy', 'value_ns': compute_busy_ns},
        {'metric': 'compute_absent', 'value_ns': compute_absent_ns},
        {'metric': 'occupied_not_computing', 'value_ns': occupied_not_computing_ns},
        {'metric': 'launch_starved', 'value_ns': launch_starved_ns},
        {'metric': 'blocking', 'value_ns': blocking_ns},
        {'metric': 'dependency_stalled', 'value_ns': dependency_stalled_ns},
        {'metric': 'unattributed', 'value_ns': unattributed_ns},
        {'metric': 'comm_exposed', 'value_ns': comm_exposed_ns},
        {'metric': 'comm_blocking', 'value_ns': comm_blocking_ns},
        {'metric': 'comm_overlapped', 'value_ns': comm_overlapped_ns},
    ], recursive := true)
    FROM nsys.budget_window
),
-- medians of an even number are the mean of the middle two
summary AS (
    SELECT
        device,
        position,
        metric,
        median(value_ns) AS median_ns,
        min(value_ns) AS min_ns,
        max(value_ns) AS max_ns,
        sum(value_ns) / count(*) AS mean_ns,
        count(*) AS n,
    FROM metric
    GROUP BY device, position, metric
)
SELECT
    s.device,
    s.metric,
    s.median_ns / 1e6 AS median_ms,
    s.min_ns / 1e6 AS min_ms,
    s.max_ns / 1e6 AS max_ms,
    s.mean_ns / 1e6 AS mean_ms,
    100 * s.median_ns / w.median_ns AS pct_of_iteration,
    s.n,
FROM summary AS s
INNER JOIN summary AS w ON w.device = s.device AND w.metric = 'iteration'
ORDER BY s.device, s.position;
