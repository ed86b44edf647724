-- unmatched — which collectives of a group found no match, and why?
--
-- Only the windows of groups with a rule are looked at. An operation that belongs to no group of
-- the mapping is listed without one.
--
-- @grain  one row per group, type of collective and reason
-- @reads  rank.match_set, rank.member, rank.collective, rank.instance
-- @column kind VARCHAR - kind of the group, NULL of no group
-- @column name VARCHAR - the group
-- @column collective VARCHAR - type
-- @column reason VARCHAR - why they do not match
-- @column window_count BIGINT count windows concerned
-- @column operation_count BIGINT count operations of all members in them
-- @column iterations VARCHAR - the first ordinals concerned
WITH found AS (
    SELECT
        kind,
        name,
        collective,
        reason,
        count(*) AS window_count,
        sum(operations)::BIGINT AS operation_count,
        list_sort(list(iteration))[:8] AS iterations,
    FROM rank.match_set
    WHERE reason IS NOT NULL
    GROUP BY kind, name, collective, reason
    UNION ALL
    SELECT
        NULL,
        NULL,
        c.collective,
        'belongs to no group with a rule',
        count(DISTINCT c.iteration),
        count(*),
        list_sort(list(DISTINCT c.iteration))[:8],
    FROM rank.member AS m
    INNER JOIN rank.collective AS c ON c.part = m.part AND c.device = m.device
    INNER JOIN rank.trace AS t ON t.part = m.part
    LEFT JOIN (SELECT DISTINCT member_id, iteration, collective, start_ns FROM rank.instance) AS i
        ON
            i.member_id = m.member_id AND i.iteration = c.iteration
            AND i.collective = c.collective
            AND i.start_ns = c.start_ns + coalesce(t.session_start_ns, 0)
    WHERE i.member_id IS NULL
    GROUP BY c.collective
)
SELECT
    kind,
    name,
    collective,
    reason,
    window_count,
    operation_count,
    array_to_string(iterations, ', ') AS iterations,
FROM found
ORDER BY kind NULLS LAST, name, collective, reason;
