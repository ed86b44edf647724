-- call_site_window — what did each call site cost in each steady window?
--
-- Kernels count where they start, their time is clipped. The time of a gap goes to the call site
-- of the kernel that ends it: that launch came late, or that kernel had to wait.
--
-- @grain  one row per device, steady window and call site, NULL for none
-- @reads  nsys.op, nsys.call_site_op, nsys.gap_cut, nsys.segment, nsys.window_segment
-- @column device            BIGINT  -  physical GPU
-- @column iteration         BIGINT  -  ordinal of the window
-- @column call_site         VARCHAR -  call site, NULL for kernels without one
-- @column launches          BIGINT  -  kernels that start in the window
-- @column work_ns           BIGINT  ns sum of their time in it: work volume
-- @column launch_starved_ns BIGINT  ns in gaps that end with its kernels
-- @column blocking_ns       BIGINT  ns in gaps that end with its kernels
-- @pitfall 1, 22
WITH launched AS NOT MATERIALIZED (
    SELECT op_id, device, start_ns, end_ns FROM nsys.op WHERE kind = 'kernel'
),
gap AS NOT MATERIALIZED (
    SELECT op_id, device, start_ns, issued_ns, unblocked_ns
    FROM nsys.gap_cut
    WHERE unblocked_ns > start_ns
),
kernel AS (
    SELECT k.* EXCLUDE (op_id), c.call_site
    FROM nsys.iv_place('launched', 'nsys.segment') AS k
    LEFT JOIN nsys.call_site_op AS c ON c.op_id = k.op_id
),
cut AS (
    SELECT g.* EXCLUDE (op_id), c.call_site
    FROM nsys.iv_place('gap', 'nsys.segment') AS g
    LEFT JOIN nsys.call_site_op AS c ON c.op_id = g.op_id
),
-- the stretches behind the border that they reach into
crossing_kernel AS (
    SELECT k.*, unnest(range(k.segment + 1, z.segment + 1)) AS later
    FROM (SELECT * FROM kernel WHERE end_ns > border_ns) AS k
    ASOF JOIN nsys.segment AS z ON z.device = k.device AND z.start_ns < k.end_ns
),
crossing_cut AS (
    SELECT c.*, unnest(range(c.segment + 1, z.segment + 1)) AS later
    FROM (SELECT * FROM cut WHERE unblocked_ns > border_ns) AS c
    ASOF JOIN nsys.segment AS z ON z.device = c.device AND z.start_ns < c.unblocked_ns
),
placed AS (
    SELECT device, segment, call_site, 1 AS launches,
        least(end_ns, border_ns) - start_ns AS work_ns, 0 AS starved_ns, 0 AS blocking_ns
    FROM kernel
    UNION ALL
    SELECT device, segment, call_site, 0, 0,
        least(issued_ns, border_ns) - start_ns,
        greatest(0, least(unblocked_ns, border_ns) - issued_ns)
    FROM cut
    UNION ALL
    SELECT k.device, s.segment, k.call_site, 0, least(k.end_ns, s.end_ns) - s.start_ns, 0, 0
    FROM crossing_kernel AS k
    INNER JOIN nsys.segment AS s ON s.device = k.device AND s.segment = k.later
    UNION ALL
    SELECT c.device, s.segment, c.call_site, 0, 0,
        greatest(0, least(c.issued_ns, s.end_ns) - s.start_ns),
        greatest(0, least(c.unblocked_ns, s.end_ns) - greatest(c.issued_ns, s.start_ns))
    FROM crossing_cut AS c
    INNER JOIN nsys.segment AS s ON s.device = c.device AND s.segment = c.later
),
summed AS (
    SELECT device, segment, call_site, sum(launches) AS launches, sum(work_ns) AS work_ns,
        sum(starved_ns) AS starved_ns, sum(blocking_ns) AS blocking_ns
    FROM placed
    GROUP BY device, segment, call_site
)
SELECT
    w.device,
    w.iteration,
    p.call_site,
    sum(p.launches)::BIGINT AS launches,
    sum(p.work_ns)::BIGINT AS work_ns,
    sum(p.starved_ns)::BIGINT AS launch_starved_ns,
    sum(p.blocking_ns)::BIGINT AS blocking_ns,
FROM nsys.window_segment AS w
INNER JOIN summed AS p ON p.device = w.device AND p.segment = w.segment
GROUP BY w.device, w.iteration, p.call_site;
