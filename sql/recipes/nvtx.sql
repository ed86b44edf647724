-- nvtx — what does each NVTX range cost, on the host and on the device?
--
-- One row per path: the names of the ranges open on a thread, outermost first, with `*` for their
-- numbers, down to the eighth level; deeper ranges count for the range of the eighth level around
-- them. Start/end ranges may overlap and stand on their own.
--
-- The host runs ahead, so a range does not span its own device work. Its projection does: the
-- operations whose API call began inside the range on its thread, on any stream, from the first
-- start to the last end (span). Operations of inner ranges count for the outer ones too. Work that
-- another thread launches, as autograd does, is not in the range: recipe phases looks across
-- threads. busy, compute, comm, copy and idle split the span; comm is what no compute of the range
-- hides, copy holds sets and waiting kernels too, and in idle nothing of this range runs, though
-- other work may.
--
-- @grain   one row per device and path
-- @reads   nsys.steady, nsys.range_window, nsys.range_path
-- @needs   nvtx
-- @column  device BIGINT - physical GPU that the process of the range drives
-- @column  path VARCHAR - names of the ranges, outermost first
-- @column  kind VARCHAR - push_pop, or start_end
-- @column  depth BIGINT - number of names in the path
-- @column  count DOUBLE - ranges in an iteration, median
-- @column  host_ms DOUBLE ms union of the ranges on the host, median
-- @column  host_min_ms DOUBLE ms least
-- @column  host_max_ms DOUBLE ms greatest
-- @column  host_work_ms DOUBLE ms sum of the ranges, median: work volume where they overlap
-- @column  op_count DOUBLE - device operations launched inside, median
-- @column  span_ms DOUBLE ms union of the projections onto the device, median
-- @column  busy_ms DOUBLE ms union of the operations launched inside, median
-- @column  busy_min_ms DOUBLE ms least
-- @column  busy_max_ms DOUBLE ms greatest
-- @column  compute_ms DOUBLE ms those that compute, median
-- @column  comm_ms DOUBLE ms comm beside none of these, median
-- @column  copy_ms DOUBLE ms copies, sets and waiting beside none of the others, median
-- @column  idle_ms DOUBLE ms none of them runs, median
-- @column  pct_of_iteration DOUBLE pct median busy by median of the iteration
-- @column  n BIGINT - steady iterations
-- @pitfall 1, 22
WITH windows AS (
    SELECT device, count(*) AS n, median(end_ns - start_ns) AS median_ns
    FROM nsys.steady
    GROUP BY device
),
path AS (
    SELECT
        device,
        path_no,
        list(count) AS counts,
        list(host_ns) AS hosts,
        list(host_work_ns) AS host_works,
        list(op_count) AS op_counts,
        list(span_ns) AS spans,
        list(busy_ns) AS busies,
        list(compute_ns) AS computes,
        list(comm_ns) AS comms,
        list(copy_ns) AS copies,
        list(idle_ns) AS idles,
    FROM nsys.range_window
    GROUP BY device, path_no
)
SELECT
    p.device,
    r.path,
    CASE WHEN r.is_free THEN 'start_end' ELSE 'push_pop' END AS kind,
    r.depth,
    nsys.padded_median(p.counts, w.n)::DOUBLE AS count,
    nsys.padded_median(p.hosts, w.n) / 1e6 AS host_ms,
    nsys.padded_min(p.hosts, w.n) / 1e6 AS host_min_ms,
    nsys.padded_max(p.hosts, w.n) / 1e6 AS host_max_ms,
    nsys.padded_median(p.host_works, w.n) / 1e6 AS host_work_ms,
    nsys.padded_median(p.op_counts, w.n)::DOUBLE AS op_count,
    nsys.padded_median(p.spans, w.n) / 1e6 AS span_ms,
    nsys.padded_median(p.busies, w.n) / 1e6 AS busy_ms,
    nsys.padded_min(p.busies, w.n) / 1e6 AS busy_min_ms,
    nsys.padded_max(p.busies, w.n) / 1e6 AS busy_max_ms,
    nsys.padded_median(p.computes, w.n) / 1e6 AS compute_ms,
    nsys.padded_median(p.comms, w.n) / 1e6 AS comm_ms,
    nsys.padded_median(p.copies, w.n) / 1e6 AS copy_ms,
    nsys.padded_median(p.idles, w.n) / 1e6 AS idle_ms,
    100 * nsys.padded_median(p.busies, w.n) / w.median_ns AS pct_of_iteration,
    w.n,
FROM path AS p
INNER JOIN windows AS w ON w.device = p.device
INNER JOIN nsys.range_path AS r ON r.path_no = p.path_no
ORDER BY p.device, p.path_no;
