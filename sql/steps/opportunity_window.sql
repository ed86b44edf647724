-- opportunity_window — which recoverable time does each steady window hold, by what causes it?
--
-- Two kinds of time without compute are on the critical path and have a known cause: launch-starved
-- time in which no producer ran anyway, and blocking time, by the operation to blame. They are
-- disjoint pieces of the same gaps, so the rows of a window add up. Collectives are told
-- apart by type and copies by direction, since different changes help against them.
--
-- @grain  one row per steady window of a device and cause that occurs in it
-- @reads  nsys.budget_window, nsys.blame_segment, nsys.window_segment, nsys.op, nsys.op_name,
--         nsys.copy_op, nsys.starved_idle
-- @column device         BIGINT  -  physical GPU that did not compute
-- @column iteration      BIGINT  -  ordinal of the window on its device
-- @column cause          VARCHAR -  launch or blocking
-- @column class          VARCHAR -  class of the operation to blame, `launch` for launch-starved
-- @column role           VARCHAR -  its role, NULL for launch-starved
-- @column detail         VARCHAR -  type of the collective, direction of the copy; NULL neither
-- @column recoverable_ns BIGINT  ns time without compute
-- @column beside_ns      BIGINT  ns of launch-starved time, that with another operation running
-- @pitfall 1, 7, 8
WITH blamed AS (
    SELECT
        b.device,
        b.segment,
        o.class,
        o.role::VARCHAR AS role,
        CASE WHEN o.role = 'memcpy' THEN c.direction ELSE n.collective END AS detail,
        sum(b.blocking_ns) AS blocking_ns,
    FROM nsys.blame_segment AS b
    INNER JOIN nsys.op AS o ON o.op_id = b.op_id
    LEFT JOIN nsys.op_name AS n ON n.name_id = o.name_id
    LEFT JOIN nsys.copy_op AS c ON c.op_id = b.op_id
    GROUP BY ALL
),
idle AS (
    SELECT w.device, w.iteration, sum(i.idle_ns) AS idle_ns
    FROM nsys.window_segment AS w
    INNER JOIN nsys.starved_idle AS i ON i.device = w.device AND i.segment = w.segment
    GROUP BY w.device, w.iteration
)
SELECT
    w.device,
    w.iteration,
    'blocking' AS cause,
    b.class,
    b.role,
    b.detail,
    sum(b.blocking_ns)::BIGINT AS recoverable_ns,
    0::BIGINT AS beside_ns,
FROM nsys.window_segment AS w
INNER JOIN blamed AS b ON b.device = w.device AND b.segment = w.segment
GROUP BY w.device, w.iteration, b.class, b.role, b.detail
UNION ALL
SELECT
    w.device,
    w.iteration,
    'launch',
    'launch',
    NULL,
    NULL,
    -- while the producer itself runs, launching faster recovers nothing
    w.launch_starved_ns - w.launch_starved_shadowed_ns,
    -- a producer on another device is no operation of this one
    greatest(
        0, w.launch_starved_ns - w.launch_starved_shadowed_ns - coalesce(i.idle_ns, 0)
    )::BIGINT,
FROM nsys.budget_window AS w
LEFT JOIN idle AS i ON i.device = w.device AND i.iteration = w.iteration
WHERE w.launch_starved_ns > w.launch_starved_shadowed_ns;
