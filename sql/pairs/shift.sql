-- shift — between which bounds lies the difference of the two sides?
--
-- Hodges and Lehmann's interval: of all differences of a window of the new side and one of the
-- base, those at the places that belong to U at this confidence: of the exact U up to a product of
-- 400 windows, else of the normal approximation with a correction for continuity. Of more than 200
-- windows of a side, 200 spread evenly are taken, and then the places of so many. No interval where
-- there are too few windows for it. Windows that are alike (see drift) spread U wider, and so lie
-- the bounds further out.
--
-- @grain  one row per pair and item
-- @reads  pair.sample, pair.measured, pair.drift, pair.u_exact
-- @param  interval_alpha DOUBLE = 0.05 (0, 1) The interval of a shift misses it with
--     this probability.
WITH params AS (
    SELECT coalesce(getvariable('interval_alpha'), 0.05)::DOUBLE AS alpha
),
thinned AS (
    SELECT s.pair, s.side, s.item, s.value_ns
    FROM (
        SELECT
            *,
            row_number() OVER (PARTITION BY pair, side, item ORDER BY number) AS place,
            count(*) OVER (PARTITION BY pair, side, item) AS n,
        FROM pair.sample
    ) AS s
    -- of up to 200 that is every one
    WHERE (s.place * 200) // s.n <> ((s.place - 1) * 200) // s.n
),
shape AS (
    SELECT
        s.pair,
        s.item,
        s.base_n,
        s.new_n,
        least(s.base_n, 200) AS m,
        least(s.new_n, 200) AS k,
        sqrt(-2 * ln(p.alpha / 2)) AS t,
        p.alpha,
        d.is_drifting,
        d.widening,
    FROM pair.measured AS s
    INNER JOIN pair.drift AS d ON d.pair = s.pair AND d.item = s.item
    CROSS JOIN params AS p
),
-- Abramowitz and Stegun 26.2.23: the quantile of the normal distribution, to 4.5e-4
quantile AS (
    SELECT
        *,
        t - (2.515517 + 0.802853 * t + 0.010328 * t * t)
            / (1 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t * t * t) AS z,
    FROM shape
),
bound AS (
    SELECT
        q.pair,
        q.item,
        q.m * q.k AS total,
        CASE
            WHEN q.base_n * q.new_n <= 400 AND greatest(q.base_n, q.new_n) <= 200
                AND NOT q.is_drifting
                THEN (
                    SELECT max(u.u)
                    FROM pair.u_exact AS u
                    WHERE u.base_n = q.base_n AND u.new_n = q.new_n AND u.at_most <= q.alpha / 2
                )
            ELSE floor(
                q.m * q.k / 2 - 0.5
                - q.z * sqrt(q.m * q.k * (q.m + q.k + 1) / 12 * q.widening)
            )::BIGINT
        END AS below,
    FROM quantile AS q
),
difference AS (
    SELECT
        b.pair,
        b.item,
        w.value_ns - b.value_ns AS value_ns,
        row_number() OVER (
            PARTITION BY b.pair, b.item ORDER BY w.value_ns - b.value_ns
        ) AS place,
    FROM thinned AS b
    INNER JOIN thinned AS w ON w.pair = b.pair AND w.item = b.item AND w.side = 'new'
    WHERE b.side = 'base'
)
SELECT
    d.pair,
    d.item,
    any_value(d.value_ns) FILTER (WHERE d.place = o.below + 1) AS low_ns,
    any_value(d.value_ns) FILTER (WHERE d.place = o.total - o.below) AS high_ns,
FROM difference AS d
INNER JOIN bound AS o ON o.pair = d.pair AND o.item = d.item
WHERE o.below >= 0 AND o.below + 1 <= o.total - o.below
GROUP BY d.pair, d.item;
