-- range_state — in which push/pop range was each thread at any time?
--
-- Between two neighbouring starts or ends of a thread the open ranges stay the same. Stretches of
-- a thread are disjoint; before its first range there is none.
--
-- @grain  one row per stretch of a thread
-- @reads  nsys.range_nest, nsys.range_instance
-- @column thread   BIGINT -  globalTid of the thread
-- @column process  BIGINT -  its process
-- @column start_ns BIGINT ns begin
-- @column end_ns   BIGINT ns end, the greatest integer for the last stretch
-- @column range_no BIGINT -  innermost open range of level 1 to 8, NULL for none
-- @column path_no  BIGINT -  its path
WITH stretch AS (
    SELECT
        thread,
        process,
        at_ns AS start_ns,
        coalesce(next_ns, 9223372036854775807) AS end_ns,
        -- a range of no length opens nothing
        [level_1, level_2, level_3, level_4, level_5, level_6, level_7, level_8][
            least(8, depth - CASE WHEN kind = 2 THEN 1 ELSE 0 END)
        ] >> 24 AS range_no,
    FROM nsys.range_nest
    WHERE next_ns IS NULL OR next_ns > at_ns
)
SELECT s.thread, s.process, s.start_ns, s.end_ns, i.range_no, i.path_no
FROM stretch AS s
LEFT JOIN nsys.range_instance AS i ON i.range_no = s.range_no;
