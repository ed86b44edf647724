-- label — what has to be said beside every delta of a pair?
--
-- Refusals that were overridden, then what differs. NULL where nothing is to be said.
--
-- @grain  one row per pair
-- @reads  pair.condition, pair.window
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
    pair,
    nullif(
        concat_ws(
            '; ',
            'FORCED, not comparable: ' || refused,
            'differs: ' || differs
        ),
        ''
    ) AS label,
FROM told;
