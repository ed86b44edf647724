-- queue_window — how many kernels were launched and had not started yet, over time?
--
-- A kernel is in the queue from the end of its call (its own start at the latest) until it starts.
-- The number is constant between two such times, so each depth gets the time it lasted. Only
-- kernels with a call of their own count: the kernels of a graph wait for each other, not for
-- the host. The median of a window is weighted by time.
--
-- @grain  one row per steady window of a device
-- @reads  nsys.window_segment, nsys.steady, nsys.segment, nsys.kernel_launch
-- @column device       BIGINT - physical GPU
-- @column iteration    BIGINT - ordinal of the window on its device
-- @column median_depth BIGINT - least depth that the queue does not exceed for half of the window
-- @column max_depth    BIGINT - greatest depth
-- @column empty_ns     BIGINT ns time with nothing in the queue
-- One running sum counts both, kernels in its low 40 bits and borders above: each change of either
-- is sorted once. A kernel enters before it leaves, so the low part is never negative.
WITH change AS (
    SELECT device, call_end_ns AS at_ns, 1 AS change
    FROM nsys.kernel_launch
    WHERE launch = 'one' AND call_end_ns < start_ns
    UNION ALL
    SELECT device, start_ns, -1
    FROM nsys.kernel_launch
    WHERE launch = 'one' AND call_end_ns < start_ns
    UNION ALL
    SELECT device, start_ns, 1::BIGINT << 40 FROM nsys.segment WHERE segment > 0
),
swept AS (
    SELECT
        device,
        (sum(change) OVER in_time)::BIGINT AS state,
        lead(at_ns) OVER in_time - at_ns AS length_ns,
    FROM change
    WINDOW in_time AS (
        PARTITION BY device ORDER BY at_ns ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    )
),
told AS (
    SELECT device, state >> 40 AS segment, state & ((1::BIGINT << 40) - 1) AS depth, length_ns
    FROM swept
    WHERE length_ns > 0
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
    FROM told
    GROUP BY ALL
),
lasted AS (
    SELECT w.device, w.iteration, p.depth, max(p.max_depth) AS max_depth,
        sum(p.length_ns) AS length_ns, any_value(t.end_ns - t.start_ns) AS window_ns
    FROM nsys.window_segment AS w
    INNER JOIN nsys.steady AS t ON t.device = w.device AND t.iteration = w.iteration
    INNER JOIN part AS p ON p.device = w.device AND p.segment = w.segment
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
