-- call_site_window — what did each call site cost in each steady window?
--
-- Kernels count where they start, their time is clipped. The time of a gap goes to the call site
-- of the kernel that ends it: that launch came late, or that kernel had to wait.
--
-- @grain  one row per device, steady window and call site, NULL for none
-- @reads  nsys.op, nsys.call_site_op, nsys.gap_cut, nsys.segment, nsys.steady
-- @column device            BIGINT  -  physical GPU
-- @column iteration         BIGINT  -  ordinal of the window
-- @column call_site         VARCHAR -  call site, NULL for kernels without one
-- @column launches          BIGINT  -  kernels that start in the window
-- @column work_ns           BIGINT  ns sum of their time in it: work volume
-- @column launch_starved_ns BIGINT  ns in gaps that end with its kernels
-- @column blocking_ns       BIGINT  ns in gaps that end with its kernels
-- @pitfall 1, 22
WITH kernel AS (
    SELECT o.op_id, o.device, o.start_ns, o.end_ns, s.call_site
    FROM nsys.op AS o
    LEFT JOIN nsys.call_site_op AS s ON s.op_id = o.op_id
    WHERE o.kind = 'kernel'
),
cut AS (
    SELECT c.device, c.start_ns, c.issued_ns, c.unblocked_ns, s.call_site
    FROM nsys.gap_cut AS c
    LEFT JOIN nsys.call_site_op AS s ON s.op_id = c.op_id
    WHERE c.unblocked_ns > c.start_ns
),
placed AS (
    SELECT k.device, s.segment, k.call_site, 1 AS launches,
        least(k.end_ns, s.end_ns) - k.start_ns AS work_ns, 0 AS starved_ns, 0 AS blocking_ns
    FROM kernel AS k
    ASOF JOIN nsys.segment AS s ON s.device = k.device AND s.start_ns <= k.start_ns
    UNION ALL
    SELECT c.device, s.segment, c.call_site, 0, 0,
        least(c.issued_ns, s.end_ns) - c.start_ns,
        greatest(0, least(c.unblocked_ns, s.end_ns) - c.issued_ns)
    FROM cut AS c
    ASOF JOIN nsys.segment AS s ON s.device = c.device AND s.start_ns <= c.start_ns
    -- what lies behind a border that it crosses
    UNION ALL
    SELECT k.device, s.segment, k.call_site, 0, least(k.end_ns, s.end_ns) - s.start_ns, 0, 0
    FROM nsys.segment AS s
    INNER JOIN kernel AS k
        ON k.device = s.device AND k.start_ns < s.start_ns AND k.end_ns > s.start_ns
    UNION ALL
    SELECT c.device, s.segment, c.call_site, 0, 0,
        greatest(0, least(c.issued_ns, s.end_ns) - s.start_ns),
        greatest(0, least(c.unblocked_ns, s.end_ns) - greatest(c.issued_ns, s.start_ns))
    FROM nsys.segment AS s
    INNER JOIN cut AS c
        ON c.device = s.device AND c.start_ns < s.start_ns AND c.unblocked_ns > s.start_ns
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
FROM nsys.steady AS w
INNER JOIN nsys.segment AS s
    ON s.device = w.device AND s.start_ns >= w.start_ns AND s.end_ns <= w.end_ns
INNER JOIN summed AS p ON p.device = s.device AND p.segment = s.segment
GROUP BY w.device, w.iteration, p.call_site;
