-- range_ancestor — which paths does a path lie in?
--
-- @grain  one row per path and each path that it begins with, itself included
-- @reads  nsys.range_path
-- @column path_no  BIGINT - the path
-- @column outer_no BIGINT - path that it lies in
SELECT p.path_no, o.path_no AS outer_no
FROM (SELECT path_no, name_nos, unnest(range(1, depth + 1)) AS depth
    FROM nsys.range_path WHERE NOT is_free) AS p
INNER JOIN nsys.range_path AS o
    ON o.depth = p.depth AND o.name_nos = p.name_nos[1:p.depth] AND NOT o.is_free
UNION ALL
SELECT path_no, path_no FROM nsys.range_path WHERE is_free;
