-- u_exact — how probable is each value of Mann and Whitney's U where nothing changed?
--
-- Counted, not approximated: of the ranks 1 to N, in how many ways can those of one side be chosen
-- so that they have a given sum? One rank after the other is taken or left. Only for numbers of
-- windows up to 400 in product; above, the normal approximation is as good.
--
-- @grain  one row per pair of numbers of windows and U
-- @reads  pair.measured
WITH RECURSIVE shape AS (
    SELECT DISTINCT base_n, new_n
    FROM pair.measured
    WHERE base_n * new_n BETWEEN 1 AND 400
),
chosen AS (
    SELECT
        base_n,
        new_n,
        0::BIGINT AS rank,
        0::BIGINT AS taken,
        0::BIGINT AS total,
        1.0::DOUBLE AS ways,
    FROM shape
    UNION ALL
    SELECT
        c.base_n,
        c.new_n,
        c.rank + 1 AS rank,
        c.taken + t.step AS taken,
        c.total + t.step * (c.rank + 1) AS total,
        sum(c.ways) AS ways,
    FROM chosen AS c
    CROSS JOIN (VALUES (0::BIGINT), (1::BIGINT)) AS t (step)
    WHERE c.rank < c.base_n + c.new_n AND c.taken + t.step <= c.base_n
    GROUP BY c.base_n, c.new_n, c.rank, c.taken + t.step, c.total + t.step * (c.rank + 1)
),
counted AS (
    SELECT base_n, new_n, total - base_n * (base_n + 1) // 2 AS u, ways
    FROM chosen
    WHERE rank = base_n + new_n AND taken = base_n
)
SELECT
    base_n,
    new_n,
    u,
    sum(ways) OVER (PARTITION BY base_n, new_n ORDER BY u)
        / sum(ways) OVER (PARTITION BY base_n, new_n) AS at_most,
FROM counted;
