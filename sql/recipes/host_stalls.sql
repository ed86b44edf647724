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
-- down to the eighth level.
--
-- @grain   one row per device, activity, function and path
-- @reads   nsys.steady, nsys.stall_window, nsys.range_path
-- @needs   kernel, api_call
-- @column  device BIGINT - physical GPU that starved
-- @column  activity VARCHAR - synchronise, memory, launch, call, os_runtime, host_code, unknown
-- @column  function VARCHAR - outermost call that the thread was in, NULL for host_code
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
WITH windows AS (
    SELECT device, count(*) AS n, median(end_ns - start_ns) AS median_ns
    FROM nsys.steady
    GROUP BY device
),
stall AS (
    SELECT device, activity, name, path_no, list(count) AS counts,
        sum(starved_ns)::BIGINT AS total_ns, list(starved_ns) AS in_windows,
        list(starved_ns - busy_ns) AS idle_in_windows
    FROM nsys.stall_window
    GROUP BY device, activity, name, path_no
),
measured AS (
    SELECT
        s.device,
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
ORDER BY device, total_ns DESC, activity, function, path_no;
