-- range_extent — from when to when do ranges reach, on the host and on the device?
--
-- The projection of a range reaches from the start of the first operation that was launched inside
-- it to the end of the last one.
--
-- @grain  one row per device, side and range
-- @reads  nsys.range_instance, nsys.range_op, nsys.range_free_op, nsys.drive, nsys.steady
-- @column device    BIGINT  -  physical GPU
-- @column path_no   BIGINT  -  path of nsys.range_path
-- @column is_device BOOLEAN -  the projection, else the range itself
-- @column start_ns  BIGINT  ns begin
-- @column end_ns    BIGINT  ns end
WITH measured_device AS (
    SELECT DISTINCT device FROM nsys.steady
),
inner_extent AS (
    SELECT device, range_no, min(start_ns) AS start_ns, max(end_ns) AS end_ns
    FROM nsys.range_op
    WHERE range_no IS NOT NULL
    GROUP BY device, range_no
    UNION ALL
    SELECT o.device, f.range_no, min(o.start_ns), max(o.end_ns)
    FROM nsys.range_free_op AS f
    INNER JOIN nsys.range_op AS o ON o.op_id = f.op_id
    GROUP BY o.device, f.range_no
),
outer_extent AS (
    SELECT e.device, e.start_ns, e.end_ns,
        unnest(CASE WHEN i.range_no < 0 THEN [i.range_no] ELSE i.outer_nos END) AS range_no
    FROM inner_extent AS e
    INNER JOIN nsys.range_instance AS i ON i.range_no = e.range_no
),
projected AS (
    SELECT device, range_no, min(start_ns) AS start_ns, max(end_ns) AS end_ns
    FROM outer_extent
    GROUP BY device, range_no
)
SELECT p.device, i.path_no, true AS is_device, p.start_ns, p.end_ns
FROM projected AS p
INNER JOIN nsys.range_instance AS i ON i.range_no = p.range_no
UNION ALL
SELECT d.device, i.path_no, false, i.start_ns, i.end_ns
FROM nsys.range_instance AS i
INNER JOIN nsys.drive AS d ON d.process IS NOT DISTINCT FROM i.process
INNER JOIN measured_device AS m ON m.device = d.device;
