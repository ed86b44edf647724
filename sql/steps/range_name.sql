-- range_name — what are the NVTX ranges called, once their numbers are taken off?
--
-- @grain  one row per stem of a range's text
-- @reads  nsys.nvtx
-- @column stem     VARCHAR - see nsys.range_stem
-- @column name_no  BIGINT  - number of the name, from 1, below 2^24
-- @column name     VARCHAR - the name, with `*` for each number
WITH stemmed AS (
    SELECT DISTINCT nsys.range_stem(text) AS stem
    FROM nsys.nvtx
    WHERE event_type IN (59, 60, 70, 71)
)
SELECT
    stem,
    dense_rank() OVER (ORDER BY nsys.range_fold(stem)) AS name_no,
    nsys.range_fold(stem) AS name,
FROM stemmed;
