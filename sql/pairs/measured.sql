-- measured — what are the median and the range of every quantity on both sides?
--
-- Medians in whole nanoseconds, so that differences of them add up exactly. What only one side has
-- (a period needs two windows in a row) is not compared.
--
-- @grain  one row per pair and item
-- @reads  pair.sample
SELECT
    pair,
    item,
    any_value(parent) AS parent,
    any_value(class) AS class,
    count(*) FILTER (WHERE side = 'base') AS base_n,
    count(*) FILTER (WHERE side = 'new') AS new_n,
    nsys.padded_middle(list(value_ns) FILTER (WHERE side = 'base'), base_n) AS base_ns,
    nsys.padded_middle(list(value_ns) FILTER (WHERE side = 'new'), new_n) AS new_ns,
    min(value_ns) FILTER (WHERE side = 'base') AS base_min_ns,
    max(value_ns) FILTER (WHERE side = 'base') AS base_max_ns,
    min(value_ns) FILTER (WHERE side = 'new') AS new_min_ns,
    max(value_ns) FILTER (WHERE side = 'new') AS new_max_ns,
    list_sort(list(value_ns) FILTER (WHERE side = 'base'))
        = list_sort(list(value_ns) FILTER (WHERE side = 'new')) AS is_identical,
    avg(value_ns) FILTER (WHERE side = 'base') AS base_mean_ns,
    avg(value_ns) FILTER (WHERE side = 'new') AS new_mean_ns,
FROM pair.sample
GROUP BY pair, item
HAVING base_n > 0 AND new_n > 0;
