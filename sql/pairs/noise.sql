-- noise — does each difference stand out of the spread of the windows?
--
-- Mann and Whitney's U test: ranks, no assumption about how the times are spread. p is exact up to
-- 400 in the product of both numbers of windows where no value repeats, and where all of one side
-- lie beyond all of the other (then repeats within a side change nothing); else the normal
-- approximation with correction for ties. A difference is called one only when it stands out (p at
-- most alpha) and matters (at least min_change_pct of the base's iteration); one that stands out
-- and is smaller is `small`. Where the windows are too few for any p at most alpha, it stands out
-- when both ranges lie apart by three times the wider one. `no change` takes more than the lack of
-- a difference: the interval of the shift must lie within the material change. Three windows of
-- each side, or three and four, are too few for an interval at 0.05; there all differences of a
-- window of either side must lie within it, which is the interval at 0.1 (of three and four at
-- 0.06) and so two one-sided tests at 0.05. Where both sides have the very same figures nothing
-- changed, however few they are. What is left cannot be told.
--
-- Of many quantities some stand out by chance. So the iteration is asked first: where it does not
-- stand out, a part of it does only at alpha divided by the number of quantities, or, where the
-- windows are too few for that, when both ranges lie apart as above.
--
-- Windows that follow each other may be alike (see drift). There U is spread wider and p is that of
-- the normal approximation; ranges far apart stand out all the same, above alpha too. `basis` tells
-- what a verdict rests on, so that no p beside it is read for what it is not.
--
-- Windows of one run say nothing about the next run: clocks, neighbours and inputs change too.
--
-- @grain  one row per pair and item
-- @reads  pair.sample, pair.measured, pair.window, pair.drift, pair.u_exact, pair.shift
-- @param  alpha DOUBLE = 0.01 (0, 1) A change stands out when it is less probable than this
--     without one.
-- @param  min_change_pct DOUBLE = 1.0 [0, 1000] Share of the base's iteration from which a change
--     matters.
WITH params AS (
    SELECT
        coalesce(getvariable('alpha'), 0.01)::DOUBLE AS alpha,
        coalesce(getvariable('min_change_pct'), 1.0)::DOUBLE AS min_change_pct,
),
ranked AS (
    SELECT
        pair,
        item,
        side,
        rank() OVER (PARTITION BY pair, item ORDER BY value_ns) AS first_rank,
        count(*) OVER (PARTITION BY pair, item, value_ns) AS tied,
    FROM pair.sample
),
summed AS (
    SELECT
        pair,
        item,
        sum(first_rank + (tied - 1) / 2.0) FILTER (WHERE side = 'base') AS rank_sum,
        -- each of t equal values brings t^2 - 1: together t^3 - t
        sum((tied * tied - 1)::DOUBLE) AS ties,
    FROM ranked
    GROUP BY pair, item
),
scored AS (
    SELECT
        m.*,
        s.ties,
        d.is_drifting,
        s.rank_sum - m.base_n * (m.base_n + 1) / 2.0 AS u,
        m.base_n * m.new_n / 2.0 AS mean_u,
        sqrt(
            m.base_n * m.new_n / 12.0
            * (m.base_n + m.new_n + 1
                - s.ties / ((m.base_n + m.new_n) * (m.base_n + m.new_n - 1)))
            * d.widening
        ) AS deviation,
        w.iteration_ns,
    FROM pair.measured AS m
    INNER JOIN summed AS s ON s.pair = m.pair AND s.item = m.item
    INNER JOIN pair.drift AS d ON d.pair = m.pair AND d.item = m.item
    INNER JOIN pair.window AS w ON w.pair = m.pair AND w.side = 'base'
),
standard AS (
    SELECT
        *,
        CASE
            WHEN deviation > 0 THEN greatest(abs(u - mean_u) - 0.5, 0) / deviation / sqrt(2)
            ELSE 0
        END AS y,
    FROM scored
),
tested AS (
    SELECT
        s.*,
        -- the least p that so many windows can give
        coalesce(2 * least_p.at_most, 0) AS attainable_p,
        CASE
            WHEN s.y = 0 THEN 1.0
            WHEN NOT s.is_drifting
                AND s.u IN (0, s.base_n * s.new_n)
                AND least_p.at_most IS NOT NULL
                THEN least(2 * least_p.at_most, 1.0)
            WHEN NOT s.is_drifting AND s.ties = 0 AND exact.at_most IS NOT NULL
                THEN least(2 * exact.at_most, 1.0)
            -- Abramowitz and Stegun 7.1.26: the complementary error function, to 1.5e-7
            ELSE list_sum(
                list_transform(
                    [0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429],
                    LAMBDA a, i: a * (1 / (1 + 0.3275911 * s.y)) ** i
                )
            ) * exp(-s.y * s.y)
        END AS p_value,
    FROM standard AS s
    LEFT JOIN pair.u_exact AS exact
        ON exact.base_n = s.base_n
        AND exact.new_n = s.new_n
        AND exact.u = least(s.u, s.base_n * s.new_n - s.u)
    LEFT JOIN pair.u_exact AS least_p
        ON least_p.base_n = s.base_n AND least_p.new_n = s.new_n AND least_p.u = 0
),
alone AS (
    SELECT
        t.*,
        p.alpha,
        p.min_change_pct / 100 * t.iteration_ns AS material_ns,
        greatest(t.base_min_ns - t.new_max_ns, t.new_min_ns - t.base_max_ns)
            > 3 * greatest(t.base_max_ns - t.base_min_ns, t.new_max_ns - t.new_min_ns) AS is_apart,
        CASE
            WHEN least(t.base_n, t.new_n) < 3 THEN false
            WHEN t.attainable_p <= p.alpha
                THEN t.p_value <= p.alpha OR (t.is_drifting AND is_apart)
            ELSE is_apart
        END AS stands_out_alone,
    FROM tested AS t
    CROSS JOIN params AS p
),
judged AS (
    SELECT
        a.*,
        f.low_ns,
        f.high_ns,
        count(*) OVER w AS quantities,
        -- a part of an iteration that does not stand out is one of many quantities
        CASE
            WHEN bool_or(a.stands_out_alone AND a.item = 'iteration') OVER w THEN a.alpha
            ELSE a.alpha / quantities
        END AS own_alpha,
        a.stands_out_alone
            AND (
                own_alpha = a.alpha
                OR a.p_value <= own_alpha
                OR (a.is_apart AND a.attainable_p > own_alpha)
            ) AS stands_out,
        -- with enough equal values ranks may stand out while the medians are the same
        stands_out AND a.new_ns <> a.base_ns AS is_changed,
        greatest(a.new_max_ns - a.base_min_ns, a.base_max_ns - a.new_min_ns) <= a.material_ns
            AND least(a.base_n, a.new_n) >= 3 AS is_all_within,
    FROM alone AS a
    LEFT JOIN pair.shift AS f ON f.pair = a.pair AND f.item = a.item
    WINDOW w AS (PARTITION BY a.pair)
),
told AS (
    SELECT
        *,
        CASE
            WHEN is_changed AND abs(new_ns - base_ns) >= material_ns
                THEN CASE
                    WHEN item IN ('iteration', 'period')
                        THEN CASE WHEN new_ns > base_ns THEN 'slower' ELSE 'faster' END
                    ELSE CASE WHEN new_ns > base_ns THEN 'more' ELSE 'less' END
                END
            WHEN is_changed THEN 'small'
            WHEN is_identical THEN 'no change'
            WHEN low_ns >= -material_ns AND high_ns <= material_ns THEN 'no change'
            WHEN low_ns IS NULL AND is_all_within THEN 'no change'
            ELSE 'cannot tell'
        END AS verdict,
    FROM judged
)
SELECT
    pair,
    item,
    parent,
    class,
    base_n,
    new_n,
    base_ns,
    new_ns,
    base_min_ns,
    base_max_ns,
    new_min_ns,
    new_max_ns,
    base_mean_ns,
    new_mean_ns,
    u,
    p_value,
    low_ns,
    high_ns,
    stands_out,
    material_ns,
    verdict,
    CASE
        WHEN is_identical THEN 'same figures'
        WHEN is_changed AND p_value <= own_alpha AND attainable_p <= alpha THEN 'p'
        WHEN is_changed THEN 'ranges far apart'
        WHEN verdict = 'no change' AND low_ns IS NULL THEN 'ranges'
        WHEN verdict = 'no change' THEN 'bounds'
        WHEN stands_out_alone AND NOT stands_out THEN 'p above alpha / ' || quantities
        WHEN least(base_n, new_n) < 3 OR attainable_p > alpha THEN 'too few windows'
        ELSE 'p and bounds'
    END || CASE WHEN is_drifting AND NOT is_identical THEN ', drift' ELSE '' END AS basis,
FROM told;
