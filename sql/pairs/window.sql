-- window — how many steady windows has each side of each pair?
--
-- @grain  one row per pair and side
-- @reads  pair.budget
SELECT
    pair,
    side,
    count(*) AS n,
    nsys.padded_middle(list(iteration_ns), count(*)) AS iteration_ns,
FROM pair.budget
GROUP BY pair, side;
