-- graph_op — which operations belong to a CUDA graph launch?
--
-- Those with a graph node id, and those whose call is a graph launch. Whole-graph rows are an
-- operation of their own and no part of a launch here.
--
-- @grain  one row per operation of a graph launch
-- @reads  nsys.stream_item, nsys.outermost_call, nsys.string
-- @column op_id          BIGINT  -  operation
-- @column process        BIGINT  -  process key
-- @column correlation_id BIGINT  -  the launch
-- @column start_ns       BIGINT  ns its start
-- @column end_ns         BIGINT  ns its end
-- @column name_id        BIGINT  -  its name
-- @column is_later       BOOLEAN -  started after another operation of the launch had ended
-- @pitfall 21
WITH launch_name AS (
    SELECT string_id FROM nsys.string WHERE value LIKE '%GraphLaunch%'
),
launch AS (
    SELECT process, correlation_id
    FROM nsys.outermost_call
    WHERE name_id IN (SELECT string_id FROM launch_name)
),
member AS (
    SELECT item_id, process, correlation_id, start_ns, end_ns, name_id
    FROM nsys.stream_item
    WHERE is_node AND correlation_id IS NOT NULL
    UNION ALL
    SELECT o.item_id, o.process, o.correlation_id, o.start_ns, o.end_ns, o.name_id
    FROM nsys.stream_item AS o
    INNER JOIN launch AS l ON l.process = o.process AND l.correlation_id = o.correlation_id
    WHERE NOT o.is_node AND o.kind < 3
),
span AS (
    SELECT process, correlation_id, min(start_ns) AS first_start_ns, min(end_ns) AS first_end_ns
    FROM member
    GROUP BY process, correlation_id
)
SELECT
    m.item_id AS op_id,
    m.process,
    m.correlation_id,
    m.start_ns,
    m.end_ns,
    m.name_id,
    m.start_ns >= s.first_end_ns AND m.start_ns <> s.first_start_ns AS is_later,
FROM member AS m
INNER JOIN span AS s
    ON s.process IS NOT DISTINCT FROM m.process AND s.correlation_id = m.correlation_id;
