-- outlier — which iterations lie far from the others, and what do they add to the mean?
--
-- Verdicts are by medians, which a few iterations of any length do not move: a pause for garbage
-- collection, an evaluation, a checkpoint. With s the standard deviation as the median deviation of
-- both sides together tells it (1.4826 times that, were times spread normally), an iteration is far
-- off where it differs from its side's median by more than 8 s, and by more than min_change_pct of
-- the base's iteration. What those add is their excess over the median, shared by all iterations of
-- the side. It is told where it changed by at least min_change_pct of the base's iteration, by a
-- quarter of what the median changed, and by 6 s over the root of the number of iterations; below
-- five iterations of a side it is not. Of pairs of the same, with eight windows each, that tells
-- one in 2000 where times are normal, one in 80 where they have the long tail of an exponential.
--
-- @grain  one row per pair
-- @reads  pair.sample, pair.measured, pair.window
-- @param  min_change_pct DOUBLE = 1.0 [0, 1000] Share of the base's iteration from which a change
--     matters.
WITH params AS (
    SELECT coalesce(getvariable('min_change_pct'), 1.0)::DOUBLE AS min_change_pct
),
deviating AS (
    SELECT
        s.pair,
        s.side,
        s.value_ns - CASE s.side WHEN 'base' THEN m.base_ns ELSE m.new_ns END AS off_ns,
        median(abs(off_ns)) OVER (PARTITION BY s.pair) AS typical_ns,
        p.min_change_pct / 100 * w.iteration_ns AS material_ns,
    FROM pair.sample AS s
    INNER JOIN pair.measured AS m ON m.pair = s.pair AND m.item = s.item
    INNER JOIN pair.window AS w ON w.pair = s.pair AND w.side = 'base'
    CROSS JOIN params AS p
    WHERE s.item = 'iteration'
),
summed AS (
    SELECT
        pair,
        side,
        any_value(material_ns) AS material_ns,
        any_value(1.4826 * typical_ns) AS spread_ns,
        count(*) AS n,
        count(*) FILTER (WHERE is_far) AS far,
        coalesce(sum(off_ns) FILTER (WHERE is_far), 0) / count(*) AS adds_ns,
    FROM (
        SELECT *, abs(off_ns) > greatest(8 * 1.4826 * typical_ns, material_ns) AS is_far
        FROM deviating
    ) AS judged
    GROUP BY pair, side
)
SELECT
    b.pair,
    b.n AS base_n,
    n.n AS new_n,
    b.far AS base_far,
    n.far AS new_far,
    b.adds_ns AS base_adds_ns,
    n.adds_ns AS new_adds_ns,
    n.adds_ns <> b.adds_ns
        AND least(b.n, n.n) >= 5
        AND abs(n.adds_ns - b.adds_ns) >= b.material_ns
        AND abs(n.adds_ns - b.adds_ns) >= 0.25 * abs(m.new_ns - m.base_ns)
        AND abs(n.adds_ns - b.adds_ns) >= 6 * b.spread_ns / sqrt(least(b.n, n.n)) AS is_told,
FROM summed AS b
INNER JOIN summed AS n ON n.pair = b.pair AND n.side = 'new'
INNER JOIN pair.measured AS m ON m.pair = b.pair AND m.item = 'iteration'
WHERE b.side = 'base';
