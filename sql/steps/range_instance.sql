-- range_instance — which path does each range belong to, and which ranges does it lie in?
--
-- Ranges of level 1 to 8; deeper ones are told by the range of level 8 that they lie in.
--
-- @grain  one row per range
-- @reads  nsys.range_nest, nsys.range_path, nsys.range_name, nsys.nvtx, nsys.op
-- @column range_no  BIGINT   -  number of the range, negative for start/end ranges
-- @column path_no   BIGINT   -  path of nsys.range_path
-- @column process   BIGINT   -  process of the range
-- @column thread    BIGINT   -  thread that opened it
-- @column start_ns  BIGINT   ns start
-- @column end_ns    BIGINT   ns end, of an open range the end of the report
-- @column outer_nos BIGINT[] -  ranges that it lies in, outermost first, itself last
WITH open_until AS (
    SELECT greatest(
        (SELECT max(greatest(start_ns, coalesce(end_ns, start_ns))) FROM nsys.nvtx
        WHERE event_type IN (60, 71)),
        (SELECT max(end_ns) FROM nsys.op)
    ) AS end_ns
),
leveled AS (
    SELECT
        range_no,
        process,
        thread,
        at_ns,
        end_ns,
        [level_1, level_2, level_3, level_4, level_5, level_6, level_7, level_8][1:depth]
            AS levels,
    FROM nsys.range_nest
    WHERE kind > 0 AND depth BETWEEN 1 AND 8
)
SELECT
    n.range_no,
    p.path_no,
    n.process,
    n.thread,
    n.at_ns AS start_ns,
    n.end_ns,
    list_transform(n.levels, LAMBDA x: x >> 24) AS outer_nos,
FROM leveled AS n
INNER JOIN nsys.range_path AS p
    ON p.name_nos = list_transform(n.levels, LAMBDA x: x % 16777216) AND NOT p.is_free
UNION ALL
SELECT
    -row_number() OVER (ORDER BY n.row_id),
    p.path_no,
    n.process,
    n.thread,
    n.start_ns,
    coalesce(n.end_ns, u.end_ns),
    [],
FROM nsys.nvtx AS n
INNER JOIN nsys.range_name AS m ON m.stem = nsys.range_stem(n.text)
INNER JOIN nsys.range_path AS p ON p.is_free AND p.name_nos = [m.name_no]
CROSS JOIN open_until AS u
WHERE n.event_type IN (60, 71) AND coalesce(n.end_ns, u.end_ns) >= n.start_ns;
