-- range_path — which paths of nested ranges are there?
--
-- A path is the names of the ranges that are open on a thread, outermost first, down to the eighth
-- level. Start/end ranges may overlap and nest in nothing: each has a path of one name.
--
-- @grain  one row per path
-- @reads  nsys.range_nest, nsys.range_name, nsys.nvtx
-- @column path_no  BIGINT  -  number of the path, in the order of a tree
-- @column is_free  BOOLEAN -  start/end ranges
-- @column depth    BIGINT  -  number of names, at most 8
-- @column name_nos BIGINT[] - numbers of the names
-- @column path     VARCHAR -  the names, joined by ' / '
WITH leveled AS (
    SELECT DISTINCT
        depth,
        [
            level_1 % 16777216, level_2 % 16777216, level_3 % 16777216, level_4 % 16777216,
            level_5 % 16777216, level_6 % 16777216, level_7 % 16777216, level_8 % 16777216
        ] AS name_nos,
    FROM nsys.range_nest
    WHERE kind > 0 AND depth BETWEEN 1 AND 8
),
keyed AS (
    SELECT false AS is_free, depth, name_nos[1:depth] AS name_nos FROM leveled
    UNION ALL
    SELECT DISTINCT true, 1, [m.name_no]
    FROM nsys.nvtx AS n
    INNER JOIN nsys.range_name AS m ON m.stem = nsys.range_stem(n.text)
    WHERE n.event_type IN (60, 71)
),
numbered AS (
    SELECT row_number() OVER (ORDER BY is_free, name_nos) AS path_no, is_free, depth, name_nos
    FROM keyed
),
named AS (
    SELECT DISTINCT name_no, name FROM nsys.range_name
),
spelled AS (
    SELECT s.path_no, string_agg(n.name, ' / ' ORDER BY s.position) AS path
    FROM (
        SELECT path_no, unnest(name_nos) AS name_no, generate_subscripts(name_nos, 1) AS position
        FROM numbered
    ) AS s
    INNER JOIN named AS n ON n.name_no = s.name_no
    GROUP BY s.path_no
)
SELECT n.path_no, n.is_free, n.depth, n.name_nos, s.path
FROM numbered AS n
INNER JOIN spelled AS s ON s.path_no = n.path_no;
