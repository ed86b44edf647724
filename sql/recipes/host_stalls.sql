-- host-stalls — what did the host do while the device had no kernel to run?
--
-- Launch-starved time of each device, split by what the thread that launched the next kernel did
-- in it, and where in the program. `synchronise` waits for the device (copies that are not
-- asynchronous too), `memory` allocates, frees or pins, `launch` launches this or another kernel,
-- `call` is any other CUDA call, `os_runtime` a traced call of the operating system runtime,
-- `host_code` all the rest: the program itself, or calls that were not traced; `unknown` has no
-- launching thread. Where these overlap a CUDA call comes before a runtime call, and of nested
-- calls the outermost counts.
--
-- Only time in which the device starved is looked at: a synchronising call beside compute stalls
-- nothing (pitfall 11). Copies, communication and spinning kernels may still run in it, and a call
-- that waits for them is no stall of the host: device_idle_ms is the part in which nothing ran.
-- Devices starve apart, so rows of two devices must not be added. The
-- rows of a device add up to `launch_starved` of its budget in every iteration.
--
-- nvtx_path is the path of push/pop ranges open on that thread at the time, numbers folded to `*`,
-- down to the eighth level. Rows that hold less than `min_pct` of the launch-starved time of their
-- device are one row, `rest`, the last of the device; its figures are those of their sum.
--
-- @grain   one row per device, activity, function and path
-- @reads   nsys.steady, nsys.stall_window, nsys.range_path
-- @needs   kernel, api_call
-- @param   min_pct DOUBLE = 1 [0, 100] share of the launch-starved time of the device from which
--     a row stands by itself; 0 for all
-- @column  device BIGINT - physical GPU that starved
-- @column  activity VARCHAR - synchronise, memory, launch, call, os_runtime, host_code, unknown;
--     rest: all that is small
-- @column  function VARCHAR - outermost call that the thread was in, NULL for host_code and rest
-- @column  nvtx_path VARCHAR - NVTX ranges open on the thread, NULL outside all ranges
-- @column  count DOUBLE count stretches of such time that begin in an iteration, median
-- @column  median_ms DOUBLE ms launch-starved time in an iteration, median
-- @column  min_ms DOUBLE ms least
-- @column  max_ms DOUBLE ms greatest
-- @column  device_idle_ms DOUBLE ms of it with no operation at all on the device, median
-- @column  pct_of_iteration DOUBLE pct median by median of the iteration
-- @column  pct_of_starved DOUBLE pct share of all launch-starved time of the device
-- @column  n BIGINT - steady iterations
-- @invariant idle_in_starved device_idle_ms <= median_ms
-- @pitfall 11
WITH params AS (
    SELECT coalesce(getvariable('min_pct')::DOUBLE, 1) AS min_pct
),
windows AS (
    SELECT device, count(*) AS n, median(end_ns - start_ns) AS median_ns
    FROM nsys.steady
    GROUP BY device
),
share AS (
    SELECT device, activity, name, path_no,
        100 * sum(starved_ns) / sum(sum(starved_ns)) OVER (PARTITION BY device) AS pct
    FROM nsys.stall_window
    GROUP BY device, activity, name, path_no
),
-- one small row may as well stand by itself
kept AS (
    SELECT s.*,
        s.pct < p.min_pct
        AND sum((s.pct < p.min_pct)::BIGINT) OVER (PARTITION BY s.device) > 1 AS is_small
    FROM share AS s
    CROSS JOIN params AS p
),
-- what is small in one row of each window, so that medians are those of the sum
stalled AS (
    SELECT
        s.device,
        s.iteration,
        k.is_small,
        CASE WHEN k.is_small THEN 'rest' ELSE s.activity END AS activity,
        CASE WHEN NOT k.is_small THEN s.name END AS name,
        CASE WHEN NOT k.is_small THEN s.path_no END AS path_no,
        sum(s.count)::BIGINT AS count,
        sum(s.starved_ns)::BIGINT AS starved_ns,
        sum(s.busy_ns)::BIGINT AS busy_ns,
    FROM nsys.stall_window AS s
    INNER JOIN kept AS k
        ON k.device = s.device
        AND k.activity = s.activity
        AND k.name IS NOT DISTINCT FROM s.name
        AND k.path_no IS NOT DISTINCT FROM s.path_no
    GROUP BY ALL
),
stall AS (
    SELECT device, is_small, activity, name, path_no, list(count) AS counts,
        sum(starved_ns)::BIGINT AS total_ns, list(starved_ns) AS in_windows,
        list(starved_ns - busy_ns) AS idle_in_windows
    FROM stalled
    GROUP BY device, is_small, activity, name, path_no
),
measured AS (
    SELECT
        s.device,
        s.is_small,
        s.activity,
        s.name AS function,
        p.path AS nvtx_path,
        nsys.padded_median(s.counts, w.n)::DOUBLE AS count,
        nsys.padded_median(s.in_windows, w.n) AS median_ns,
        nsys.padded_min(s.in_windows, w.n) AS min_ns,
        nsys.padded_max(s.in_windows, w.n) AS max_ns,
        nsys.padded_median(s.idle_in_windows, w.n) AS idle_ns,
        w.median_ns AS window_ns,
        s.total_ns,
        sum(s.total_ns) OVER (PARTITION BY s.device) AS device_ns,
        w.n,
        s.path_no,
    FROM stall AS s
    INNER JOIN windows AS w ON w.device = s.device
    LEFT JOIN nsys.range_path AS p ON p.path_no = s.path_no
)
SELECT
    device,
    activity,
    function,
    nvtx_path,
    count,
    median_ns / 1e6 AS median_ms,
    min_ns / 1e6 AS min_ms,
    max_ns / 1e6 AS max_ms,
    idle_ns / 1e6 AS device_idle_ms,
    100 * median_ns / window_ns AS pct_of_iteration,
    100 * total_ns / device_ns AS pct_of_starved,
    n,
FROM measured
ORDER BY device, is_small, total_ns DESC, activity, function, path_no;
