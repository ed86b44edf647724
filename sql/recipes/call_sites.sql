-- call-sites — which lines of the program launch the work, and which of them come late or wait?
--
-- Launches of this trace joined to a call-stack capture of the same workload by (rank, thread,
-- launch ordinal): option --callsites names its file, Parquet or CSV, --param rank=N this trace's
-- rank in it. The two must agree on the launches of every thread, else the recipe refuses. Time
-- of a gap goes to the call site of the kernel that ends it. The share of kernels that have a call
-- site at all stands beside every row: what a low one leaves out, CUDA graphs foremost, is the row
-- without a call site (pitfalls 21 and 22).
--
-- @grain   one row per device and call site
-- @reads   nsys.call_site_window, nsys.call_site_op, nsys.steady
-- @needs   kernel, api_call, call_site
-- @param   rank BIGINT = 0 [0,) rank of this trace in the file
-- @column  device BIGINT - physical GPU of the report
-- @column  call_site VARCHAR - where the launch is made, NULL for kernels without a call site
-- @column  stack VARCHAR - its most frequent stack, NULL where the file has none
-- @column  launches BIGINT - kernels that start in steady iterations
-- @column  work_ms DOUBLE ms median work in an iteration: work volume
-- @column  launch_starved_ms DOUBLE ms median in an iteration, in gaps before its kernels
-- @column  launch_starved_min_ms DOUBLE ms least
-- @column  launch_starved_max_ms DOUBLE ms greatest
-- @column  blocking_ms DOUBLE ms median in an iteration, in gaps before its kernels
-- @column  blocking_min_ms DOUBLE ms least
-- @column  blocking_max_ms DOUBLE ms greatest
-- @column  n BIGINT - steady iterations
-- @column  link_rate_pct DOUBLE pct share of the device's kernels there that have a call site
-- @invariant link_rate link_rate_pct BETWEEN 0 AND 100
-- @pitfall 21, 22
WITH windows AS (
    SELECT device, count(*) AS n FROM nsys.steady GROUP BY device
),
commonest AS (
    SELECT call_site, arg_max(stack, {'n': n, 's': stack}) AS stack
    FROM (
        SELECT call_site, stack, count(*) AS n FROM nsys.call_site_op GROUP BY call_site, stack
    ) AS counted
    GROUP BY call_site
),
site AS (
    SELECT
        device,
        call_site,
        sum(launches)::BIGINT AS launches,
        list(work_ns) AS work_list,
        list(launch_starved_ns) AS starved_list,
        list(blocking_ns) AS blocking_list,
    FROM nsys.call_site_window
    GROUP BY device, call_site
),
linked AS (
    SELECT
        device,
        100 * coalesce(sum(launches) FILTER (WHERE call_site IS NOT NULL), 0)
        / nullif(sum(launches), 0) AS link_rate_pct,
    FROM site
    GROUP BY device
)
SELECT
    s.device,
    s.call_site,
    c.stack,
    s.launches,
    nsys.padded_median(s.work_list, w.n) / 1e6 AS work_ms,
    nsys.padded_median(s.starved_list, w.n) / 1e6 AS launch_starved_ms,
    nsys.padded_min(s.starved_list, w.n) / 1e6 AS launch_starved_min_ms,
    nsys.padded_max(s.starved_list, w.n) / 1e6 AS launch_starved_max_ms,
    nsys.padded_median(s.blocking_list, w.n) / 1e6 AS blocking_ms,
    nsys.padded_min(s.blocking_list, w.n) / 1e6 AS blocking_min_ms,
    nsys.padded_max(s.blocking_list, w.n) / 1e6 AS blocking_max_ms,
    w.n,
    l.link_rate_pct,
FROM site AS s
INNER JOIN windows AS w ON w.device = s.device
INNER JOIN linked AS l ON l.device = s.device
LEFT JOIN commonest AS c ON c.call_site = s.call_site
ORDER BY s.device, launch_starved_ms + blocking_ms DESC, s.launches DESC, s.call_site;
