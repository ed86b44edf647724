-- label — what has to be said beside every delta of a pair?
--
-- Refusals that were overridden, what differs, and iterations far off that medians do not see. NULL
-- where nothing is to be said.
--
-- @grain  one row per pair
-- @reads  pair.condition, pair.window, pair.outlier
WITH told AS (
    SELECT
        w.pair,
        string_agg(DISTINCT c.aspect, ', ' ORDER BY c.aspect) FILTER (WHERE c.status = 'refused')
            AS refused,
        string_agg(DISTINCT c.topic, ', ' ORDER BY c.topic) FILTER (WHERE c.status = 'differs')
            AS differs,
    FROM pair.window AS w
    LEFT JOIN pair.condition AS c ON c.pair IS NULL OR c.pair = w.pair
    WHERE w.side = 'base'
    GROUP BY w.pair
)
SELECT
    t.pair,
    nullif(
        concat_ws(
            '; ',
            'FORCED, not comparable: ' || t.refused,
            'differs: ' || t.differs,
            CASE
                WHEN o.is_told
                    THEN printf('outliers: %d of %d and %d of %d iterations, ', o.base_far,
                        o.base_n, o.new_far, o.new_n)
                        || CASE
                            WHEN abs(o.new_adds_ns - o.base_adds_ns) < 1e5
                                THEN printf('%+.3g us', (o.new_adds_ns - o.base_adds_ns) / 1e3)
                            ELSE printf('%+.3g ms', (o.new_adds_ns - o.base_adds_ns) / 1e6)
                        END
                        || ' per iteration'
            END
        ),
        ''
    ) AS label,
FROM told AS t
LEFT JOIN pair.outlier AS o ON o.pair = t.pair;
