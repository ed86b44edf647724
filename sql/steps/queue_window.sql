-- queue_window — how many kernels were launched and had not started yet, over time?
--
-- A kernel is in the queue from the end of its call (its own start at the latest) until it starts.
-- The number is constant between two such times, so each depth gets the time it lasted. Only
-- kernels with a call of their own count: the kernels of a graph wait for each other, not for
-- the host. The median of a window is weighted by time.
--
-- @grain  one row per steady window of a device
-- @reads  nsys.steady, nsys.segment, nsys.kernel_launch
-- @column device       BIGINT - physical GPU
-- @column iteration    BIGINT - ordinal of the window on its device
-- @column median_depth BIGINT - least depth that the queue does not exceed for half of the window
-- @column max_depth    BIGINT - greatest depth
-- @column empty_ns     BIGINT ns time with nothing in the queue
WITH change AS (
    SELECT device, least(call_end_ns, start_ns) AS at_ns, 1 AS step, 0 AS border
    FROM nsys.kernel_launch
    WHERE launch = 'one' AND call_end_ns < start_ns
    UNION ALL
    SELECT device, start_ns, -1, 0
    FROM nsys.kernel_launch
    WHERE launch = 'one' AND call_end_ns < start_ns
    UNION ALL
    SELECT device, start_ns, 0, 1 FROM nsys.segment WHERE segment > 0
),
swept AS (
    SELECT
        device,
        (sum(step) OVER in_time)::BIGINT AS depth,
        (sum(border) OVER in_time)::BIGINT AS segment,
        lead(at_ns) OVER in_time - at_ns AS length_ns,
    FROM change
    WINDOW in_time AS (
        PARTITION BY device ORDER BY at_ns ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    )
),
-- Depths from 8192 on are kept to one part in 4096: a host that is millions of kernels ahead would
-- else leave as many depths as kernels.
part AS (
    SELECT
        device,
        segment,
        depth - depth % (1::BIGINT << greatest(0, floor(log2(greatest(depth, 1)))::INTEGER - 12))
            AS depth,
        max(depth) AS max_depth,
        sum(length_ns) AS length_ns,
    FROM swept
    WHERE length_ns > 0
    GROUP BY ALL
),
lasted AS (
    SELECT w.device, w.iteration, p.depth, max(p.max_depth) AS max_depth,
        sum(p.length_ns) AS length_ns, any_value(w.end_ns - w.start_ns) AS window_ns
    FROM nsys.steady AS w
    INNER JOIN nsys.segment AS s
        ON s.device = w.device AND s.start_ns >= w.start_ns AND s.end_ns <= w.end_ns
    INNER JOIN part AS p ON p.device = s.device AND p.segment = s.segment
    GROUP BY w.device, w.iteration, p.depth
),
passed AS (
    SELECT
        *,
        2 * sum(length_ns) OVER (
            PARTITION BY device, iteration
            ORDER BY depth ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) >= window_ns AS is_half,
    FROM lasted
)
SELECT
    device,
    iteration,
    min(depth) FILTER (WHERE is_half) AS median_depth,
    max(max_depth) AS max_depth,
    coalesce(sum(length_ns) FILTER (WHERE depth = 0), 0)::BIGINT AS empty_ns,
FROM passed
GROUP BY device, iteration;
