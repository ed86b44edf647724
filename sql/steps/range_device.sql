-- range_device — how long did the operations of each path run in each stretch of time?
--
-- The operations launched inside the ranges of a path, on any stream; those of an inner path count
-- for every path around it. In one pass in start order an operation adds what it covers beyond
-- those before it, once for all operations, once for compute alone, and once for compute and comm.
--
-- @grain  one row per device, stretch and path
-- @reads  nsys.range_op, nsys.range_ancestor, nsys.range_free_op, nsys.segment
-- @column device          BIGINT -  physical GPU
-- @column segment         BIGINT -  stretch of nsys.segment
-- @column path_no         BIGINT -  path of nsys.range_path
-- @column op_count        BIGINT -  operations that start in the stretch
-- @column busy_ns         BIGINT ns union of its operations
-- @column compute_ns      BIGINT ns union of those that compute
-- @column compute_comm_ns BIGINT ns union of those that compute or communicate
-- @pitfall 1
WITH counted AS (
    SELECT o.device, a.outer_no AS path_no, o.segment, o.start_ns, o.end_ns, o.kind
    FROM nsys.range_op AS o
    INNER JOIN nsys.range_ancestor AS a ON a.path_no = o.path_no
    UNION ALL
    SELECT o.device, f.path_no, o.segment, o.start_ns, o.end_ns, o.kind
    FROM nsys.range_free_op AS f
    INNER JOIN nsys.range_op AS o ON o.op_id = f.op_id
),
reached AS (
    SELECT
        device,
        path_no,
        segment,
        end_ns,
        kind,
        greatest(start_ns, max(end_ns) OVER before) AS busy_from_ns,
        greatest(start_ns, max(CASE WHEN kind = 1 THEN end_ns END) OVER before)
            AS compute_from_ns,
        greatest(start_ns, max(CASE WHEN kind <= 2 THEN end_ns END) OVER before)
            AS compute_comm_from_ns,
    FROM counted
    WINDOW before AS (
        PARTITION BY device, path_no ORDER BY start_ns
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
),
cut AS (
    SELECT r.*, s.end_ns AS border_ns
    FROM reached AS r
    INNER JOIN nsys.segment AS s ON s.device = r.device AND s.segment = r.segment
),
-- the stretches behind the border that it reaches into
crossing AS (
    SELECT c.*, unnest(range(c.segment + 1, z.segment + 1)) AS later
    FROM (SELECT * FROM cut WHERE end_ns > border_ns) AS c
    ASOF JOIN nsys.segment AS z ON z.device = c.device AND z.start_ns < c.end_ns
),
piece AS (
    SELECT
        device,
        segment,
        path_no,
        1 AS op_count,
        greatest(0, least(end_ns, border_ns) - busy_from_ns) AS busy_ns,
        CASE WHEN kind = 1 THEN greatest(0, least(end_ns, border_ns) - compute_from_ns) ELSE 0 END
            AS compute_ns,
        CASE WHEN kind <= 2 THEN greatest(0, least(end_ns, border_ns) - compute_comm_from_ns)
            ELSE 0 END AS compute_comm_ns,
    FROM cut
    UNION ALL
    -- what an operation adds behind the border that it crosses
    SELECT
        c.device,
        s.segment,
        c.path_no,
        0,
        greatest(0, least(c.end_ns, s.end_ns) - greatest(c.busy_from_ns, s.start_ns)),
        CASE WHEN c.kind = 1
            THEN greatest(0, least(c.end_ns, s.end_ns) - greatest(c.compute_from_ns, s.start_ns))
            ELSE 0 END,
        CASE WHEN c.kind <= 2
            THEN greatest(
                0, least(c.end_ns, s.end_ns) - greatest(c.compute_comm_from_ns, s.start_ns)
            )
            ELSE 0 END,
    FROM crossing AS c
    INNER JOIN nsys.segment AS s ON s.device = c.device AND s.segment = c.later
)
SELECT
    device,
    segment,
    path_no,
    sum(op_count)::BIGINT AS op_count,
    sum(busy_ns)::BIGINT AS busy_ns,
    sum(compute_ns)::BIGINT AS compute_ns,
    sum(compute_comm_ns)::BIGINT AS compute_comm_ns,
FROM piece
GROUP BY device, segment, path_no;
