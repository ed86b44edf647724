-- comm_rival — when did operations of another role run, and for how long before that?
--
-- What other roles cover is made islands, once for each role that communicates. With the running
-- total the cover before any instant is a look-up, so that the exposed part of any stretch is its
-- length less what the total grows by over it. What compute covers lies between the gaps, and
-- those are known already: only the few operations of other roles have to be added.
--
-- @grain  one row per island of a device and role
-- @reads  nsys.op, nsys.gap, nsys.comm_op
-- @column device    BIGINT  -  physical GPU
-- @column role      VARCHAR -  the role that the operations of the island do not have
-- @column start_ns  BIGINT  ns begin of the island
-- @column end_ns    BIGINT  ns end of the island
-- @column before_ns BIGINT  ns cover of all islands before it
-- @pitfall 1, 7
WITH asked AS (
    SELECT DISTINCT device, role::VARCHAR AS role FROM nsys.comm_op
),
compute_extent AS (
    SELECT device, min(start_ns) AS start_ns, max(end_ns) AS end_ns
    FROM nsys.op
    WHERE role = 'compute' AND end_ns > start_ns
    GROUP BY device
),
-- An island of compute begins where a gap ends, or with the first operation where no gap does.
compute_begin AS (
    SELECT device, end_ns AS start_ns, start_ns AS gap_start_ns FROM nsys.gap
    UNION ALL
    SELECT e.device, e.start_ns, NULL
    FROM compute_extent AS e
    WHERE NOT EXISTS (
        SELECT 1 FROM nsys.gap AS g WHERE g.device = e.device AND g.end_ns = e.start_ns
    )
),
compute_island AS (
    SELECT
        b.device,
        b.start_ns,
        coalesce(
            lead(b.gap_start_ns) OVER (PARTITION BY b.device ORDER BY b.start_ns), e.end_ns
        ) AS end_ns,
    FROM compute_begin AS b
    INNER JOIN compute_extent AS e ON e.device = b.device
),
other AS (
    SELECT a.device, a.role, i.start_ns, i.end_ns
    FROM compute_island AS i
    INNER JOIN asked AS a ON a.device = i.device AND a.role <> 'compute'
    UNION ALL
    SELECT a.device, a.role, o.start_ns, o.end_ns
    FROM nsys.op AS o
    INNER JOIN asked AS a ON a.device = o.device AND a.role <> o.role::VARCHAR
    WHERE o.role <> 'compute' AND o.end_ns > o.start_ns
),
reached AS (
    SELECT
        device,
        role,
        start_ns,
        end_ns,
        max(end_ns) OVER (
            PARTITION BY device, role
            ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reached_ns,
    FROM other
),
-- What was reached before the next island opens is the end of an island.
island AS (
    SELECT
        r.device,
        r.role,
        r.start_ns,
        coalesce(lead(r.reached_ns) OVER in_time, l.end_ns) AS end_ns,
    FROM reached AS r
    INNER JOIN (
        SELECT device, role, max(end_ns) AS end_ns FROM other GROUP BY device, role
    ) AS l ON l.device = r.device AND l.role = r.role
    WHERE r.reached_ns IS NULL OR r.start_ns > r.reached_ns
    WINDOW in_time AS (PARTITION BY r.device, r.role ORDER BY r.start_ns)
)
SELECT
    device,
    role,
    start_ns,
    end_ns,
    coalesce(sum(end_ns - start_ns) OVER (
        PARTITION BY device, role
        ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ), 0)::BIGINT AS before_ns,
FROM island;
