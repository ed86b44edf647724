-- launch_window — how many calls and launches does each steady window hold?
--
-- Calls are those of the processes that drive the device. A kernel is launch-bound where it ends a
-- stretch without compute that began before its call had returned.
--
-- @grain  one row per steady window of a device
-- @reads  nsys.window_segment, nsys.segment, nsys.drive, nsys.call, nsys.string,
--         nsys.kernel_launch, nsys.gap_cut
-- @column device             BIGINT - physical GPU
-- @column iteration          BIGINT - ordinal of the window on its device
-- @column call_count         BIGINT - CUDA API calls that start in the window
-- @column launch_call_count  BIGINT - those that launch a kernel
-- @column graph_launch_count BIGINT - those that launch a CUDA graph
-- @column kernel_count       BIGINT - kernels that start in the window
-- @column one_count          BIGINT - kernels with a call of their own
-- @column many_count         BIGINT - kernels whose call launched several
-- @column unknown_count      BIGINT - kernels without a call in the trace
-- @column skewed_count       BIGINT - kernels that start before their call
-- @column early_count        BIGINT - kernels that start before their call returned
-- @column bound_count        BIGINT - launch-bound kernels
-- @pitfall 21
WITH launch_name AS (
    SELECT
        string_id AS name_id,
        regexp_matches(value, '^cu(da)?GraphLaunch') AS is_graph,
    FROM nsys.string
    WHERE value LIKE 'cu%'
      AND regexp_matches(value, '^cu(da)?(GraphLaunch|Launch(Kernel|Cooperative|Grid|_|$))')
),
call AS NOT MATERIALIZED (
    SELECT d.device, c.start_ns, c.name_id
    FROM nsys.call AS c
    INNER JOIN nsys.drive AS d ON d.process = c.process
),
called AS (
    SELECT
        c.device,
        c.segment,
        count(*) AS call_count,
        count(*) FILTER (WHERE NOT n.is_graph) AS launch_call_count,
        count(*) FILTER (WHERE n.is_graph) AS graph_launch_count,
    FROM nsys.iv_place('call', 'nsys.segment') AS c
    LEFT JOIN launch_name AS n ON n.name_id = c.name_id
    GROUP BY c.device, c.segment
),
started AS (
    SELECT
        device,
        segment,
        count(*) AS kernel_count,
        count(*) FILTER (WHERE launch = 'one') AS one_count,
        count(*) FILTER (WHERE launch = 'many') AS many_count,
        count(*) FILTER (WHERE launch = 'unknown') AS unknown_count,
        count(*) FILTER (WHERE launch = 'skewed') AS skewed_count,
        count(*) FILTER (WHERE call_end_ns > start_ns) AS early_count,
    FROM nsys.kernel_launch
    GROUP BY device, segment
),
bound AS (
    SELECT device, segment, count(*) AS bound_count
    FROM nsys.gap_cut
    WHERE issued_ns > start_ns
    GROUP BY device, segment
)
SELECT
    w.device,
    w.iteration,
    coalesce(sum(c.call_count), 0)::BIGINT AS call_count,
    coalesce(sum(c.launch_call_count), 0)::BIGINT AS launch_call_count,
    coalesce(sum(c.graph_launch_count), 0)::BIGINT AS graph_launch_count,
    coalesce(sum(k.kernel_count), 0)::BIGINT AS kernel_count,
    coalesce(sum(k.one_count), 0)::BIGINT AS one_count,
    coalesce(sum(k.many_count), 0)::BIGINT AS many_count,
    coalesce(sum(k.unknown_count), 0)::BIGINT AS unknown_count,
    coalesce(sum(k.skewed_count), 0)::BIGINT AS skewed_count,
    coalesce(sum(k.early_count), 0)::BIGINT AS early_count,
    coalesce(sum(b.bound_count), 0)::BIGINT AS bound_count,
FROM nsys.window_segment AS w
LEFT JOIN called AS c ON c.device = w.device AND c.segment = w.segment
LEFT JOIN started AS k ON k.device = w.device AND k.segment = w.segment
LEFT JOIN bound AS b ON b.device = w.device AND b.segment = w.segment
GROUP BY w.device, w.iteration;
