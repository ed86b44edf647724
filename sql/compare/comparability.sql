-- comparability — may the two sides be compared, and what differs besides the times?
--
-- Told before any delta. `refused` forbids a comparison (unless forced), `differs` labels every
-- delta, `unknown` is what at least one side does not tell: never taken for the same.
--
-- @grain  one row per topic, aspect and pair of values
-- @reads  pair.condition, pair.window
-- @column topic VARCHAR - what it is about
-- @column aspect VARCHAR - what is compared
-- @column status VARCHAR - same, differs, refused or unknown
-- @column base VARCHAR - value of the base
-- @column new VARCHAR - value of the new side
-- @column pairs VARCHAR - pairs it holds for, `all` where for every one
-- @column detail VARCHAR - what it means, or what was looked at; NULL where the same says it all
-- @invariant known_status status IN ('same', 'differs', 'refused', 'unknown')
-- @pitfall 3, 4, 25, 27
SELECT
    topic,
    aspect,
    status,
    base,
    new,
    CASE
        WHEN bool_or(pair IS NULL)
            OR count(DISTINCT pair) = (SELECT count(*) FROM pair.window WHERE side = 'base')
            THEN 'all'
        ELSE array_to_string(list_sort(list(DISTINCT pair)), ', ')
    END AS pairs,
    detail,
FROM pair.condition
GROUP BY position, topic, aspect, status, base, new, detail
ORDER BY
    list_position(['refused', 'differs', 'unknown', 'same'], status),
    position,
    topic,
    aspect,
    base,
    new,
    detail;
