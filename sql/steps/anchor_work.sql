-- anchor_work — how much device work starts in the windows of each candidate anchor?
--
-- Work is the summed time of operations, each counted where it starts; windows that overlap
-- count once. Operations are first added up in buckets of about a millisecond. The work before
-- an edge of a window is then the buckets before its own, and the operations of its own bucket
-- that start before it: two passes over the operations, however many candidates there are.
--
-- @grain   one row per kind, pattern, device
-- @reads   nsys.anchor_span, nsys.stream_item
-- @column  kind            VARCHAR  -   nvtx, nccl or kernel
-- @column  pattern         VARCHAR  -   anchor pattern
-- @column  device          BIGINT   -   device
-- @column  window_work_ns  BIGINT   ns  work that starts inside the windows
-- @column  extent_work_ns  BIGINT   ns  work from the first start to the last end of the windows
-- @column  device_work_ns  BIGINT   ns  all work of the device
WITH bucket AS (
    SELECT
        b.device,
        b.bucket,
        sum(b.work_ns) OVER (
            PARTITION BY b.device ORDER BY b.bucket
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        )::BIGINT AS work_ns
    FROM (
        SELECT
            o.device,
            o.start_ns >> 20 AS bucket,
            sum(o.end_ns - o.start_ns) AS work_ns
        FROM nsys.stream_item AS o
        WHERE o.kind < 4
        GROUP BY o.device, bucket
    ) AS b
),
total AS (
    SELECT
        b.device,
        max(b.work_ns) AS work_ns
    FROM bucket AS b
    GROUP BY b.device
),
-- What an earlier window covers already is cut off.
piece AS (
    SELECT
        s.kind,
        s.pattern,
        s.device,
        least(
            s.end_ns,
            greatest(s.start_ns, coalesce(max(s.end_ns) OVER ended_before, s.start_ns))
        ) AS start_ns,
        s.end_ns
    FROM nsys.anchor_span AS s
    WINDOW ended_before AS (
        PARTITION BY s.kind, s.pattern, s.device ORDER BY s.start_ns, s.end_ns
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
),
edge AS (
    SELECT p.device, p.start_ns AS edge_ns FROM piece AS p
    UNION
    SELECT p.device, p.end_ns AS edge_ns FROM piece AS p
),
in_bucket AS (
    SELECT
        e.device,
        e.edge_ns,
        sum(o.end_ns - o.start_ns)::BIGINT AS work_ns
    FROM edge AS e
    INNER JOIN nsys.stream_item AS o
        ON
            e.device = o.device
            AND e.edge_ns >> 20 = o.start_ns >> 20
            AND o.start_ns < e.edge_ns
    GROUP BY e.device, e.edge_ns
),
before_edge AS (
    SELECT
        e.device,
        e.edge_ns,
        coalesce(b.work_ns, 0) + coalesce(i.work_ns, 0) AS work_ns
    FROM edge AS e
    ASOF LEFT JOIN bucket AS b ON e.device = b.device AND e.edge_ns >> 20 > b.bucket
    LEFT JOIN in_bucket AS i ON e.device = i.device AND e.edge_ns = i.edge_ns
)
SELECT
    p.kind,
    p.pattern,
    p.device,
    sum(b.work_ns - a.work_ns)::BIGINT AS window_work_ns,
    max(b.work_ns) - min(a.work_ns) AS extent_work_ns,
    any_value(t.work_ns) AS device_work_ns
FROM piece AS p
INNER JOIN before_edge AS a ON p.device = a.device AND p.start_ns = a.edge_ns
INNER JOIN before_edge AS b ON p.device = b.device AND p.end_ns = b.edge_ns
INNER JOIN total AS t ON p.device = t.device
GROUP BY p.kind, p.pattern, p.device;
