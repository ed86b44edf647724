-- capture_graph — were CUDA graphs traced by node, as a whole, or not at all?
--
-- A graph launch whose work appears neither as operations nor as a whole execution is blind: the
-- device seems idle while the graph runs. Old exporters have no table for whole graphs, so a
-- capture at graph level loses them there (pitfall 21).
--
-- @grain  one row
-- @reads  nsys.op, nsys.graph_op, nsys.stream_item, nsys.call, nsys.string
-- @column launches   BIGINT - calls that launch a graph
-- @column blind      BIGINT - those without any device operation
-- @column node_ops   BIGINT - operations of traced nodes
-- @column whole_ops  BIGINT - graph executions traced as a whole
-- @pitfall 21
WITH launch AS (
    SELECT DISTINCT process, correlation_id
    FROM nsys.call
    WHERE name_id IN (SELECT string_id FROM nsys.string WHERE value LIKE 'cu%GraphLaunch%')
),
seen AS (
    SELECT DISTINCT l.process, l.correlation_id
    FROM launch AS l
    INNER JOIN nsys.op AS o ON o.process = l.process AND o.correlation_id = l.correlation_id
)
SELECT
    (SELECT count(*) FROM launch) AS launches,
    (SELECT count(*) FROM launch) - (SELECT count(*) FROM seen) AS blind,
    -- one without a correlation id belongs to no launch, and is an operation of a node all the same
    (SELECT count(*) FROM nsys.graph_op)
    + (SELECT count(*) FROM nsys.stream_item WHERE is_node AND correlation_id IS NULL)
        AS node_ops,
    (SELECT count(*) FROM nsys.op WHERE kind = 'graph') AS whole_ops;
