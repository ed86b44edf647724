-- drift — are windows that follow each other alike, and by how much does that widen a spread?
--
-- Clocks and temperatures drift, so that a window tells less than one that owes nothing to the one
-- before. Neighbours are alike where they correlate by more than chance allows: 1.64 over the root
-- of the number of windows. The variance of U then grows by (1 + r) / (1 - r). With few windows
-- this catches a part of all drift only.
--
-- @grain  one row per pair and item
-- @reads  pair.sample
WITH neighbour AS (
    SELECT
        pair,
        item,
        value_ns - avg(value_ns) OVER (PARTITION BY pair, item, side) AS off_ns,
        lag(value_ns) OVER (PARTITION BY pair, item, side ORDER BY number)
            - avg(value_ns) OVER (PARTITION BY pair, item, side) AS before_ns,
    FROM pair.sample
),
correlated AS (
    SELECT
        pair,
        item,
        count(*) AS n,
        sum(off_ns * before_ns) / nullif(sum(off_ns * off_ns), 0) AS alike,
    FROM neighbour
    GROUP BY pair, item
)
SELECT
    pair,
    item,
    coalesce(alike > 1.64 / sqrt(n), false) AS is_drifting,
    CASE WHEN is_drifting THEN (1 + alike) / (1 - least(alike, 0.9)) ELSE 1 END AS widening,
FROM correlated;
