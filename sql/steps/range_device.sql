-- range_device — how long did the operations of each path run in each stretch of time?
--
-- The operations launched inside the ranges of a path, on any stream; those of an inner path count
-- for every path around it.
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
WITH device AS (
    SELECT device, row_number() OVER () - 1 AS number
    FROM (SELECT DISTINCT device FROM nsys.segment) AS d
),
path AS (
    SELECT max(outer_no) + 1 AS paths FROM nsys.range_ancestor
),
scale AS (
    SELECT
        (SELECT count(*) FROM device) * any_value(p.paths) AS parts,
        min(o.start_ns) AS from_ns,
        max(o.end_ns) AS to_ns,
    FROM nsys.range_op AS o
    CROSS JOIN path AS p
),
counted AS NOT MATERIALIZED (
    SELECT d.number * p.paths + a.outer_no AS part, o.device, o.segment, o.start_ns, o.end_ns,
        o.kind, 0 AS borrowed
    FROM nsys.range_op AS o
    INNER JOIN nsys.range_ancestor AS a ON a.path_no = o.path_no
    INNER JOIN device AS d ON d.device = o.device
    CROSS JOIN path AS p
    UNION ALL
    SELECT d.number * p.paths + f.path_no, o.device, o.segment, o.start_ns, o.end_ns, o.kind, 0
    FROM nsys.range_free_op AS f
    INNER JOIN nsys.range_op AS o ON o.op_id = f.op_id
    INNER JOIN device AS d ON d.device = o.device
    CROSS JOIN path AS p
)
SELECT
    b.device,
    b.segment,
    b.part % p.paths AS path_no,
    b.op_count,
    b.busy_ns,
    b.compute_ns,
    b.compute_comm_ns,
FROM nsys.iv_busy('counted', 'nsys.segment', 'scale') AS b
CROSS JOIN path AS p;
