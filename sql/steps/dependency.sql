-- dependency — which operations follow something else than the operation right before them?
--
-- Nearly every operation follows the one before it on its stream. The others stand here: those
-- behind event records and waits (the state of the stream decides), those launched together by
-- one call (each follows what the first of them follows), and the later operations of a CUDA
-- graph launch, which have no producer that a trace can show (pitfall 21). For the walk that
-- labels blocking time alone, a later graph operation follows the operation of its launch with
-- the latest end at or before its start; one of no length follows nothing.
--
-- @grain  one row per such operation
-- @reads  nsys.stream_item, nsys.stream_state, nsys.graph_op
-- @column op_id             BIGINT  -  the operation
-- @column producer_id       BIGINT  -  what it may not start before, NULL for nothing
-- @column producer_start_ns BIGINT  ns start of the producer
-- @column producer_end_ns   BIGINT  ns end of the producer
-- @column producer_name_id  BIGINT  -  name of the producer
-- @column is_later          BOOLEAN -  later operation of a graph launch
-- @column is_lost           BOOLEAN -  a wait or a relay that went into the state is unresolved
-- @column is_waited         BOOLEAN -  a resolved wait went into the state
-- @column follows_id        BIGINT  -  what it follows in the walk of labels
-- @column follows_start_ns  BIGINT  ns its start
-- @column follows_end_ns    BIGINT  ns its end
-- @column follows_name_id   BIGINT  -  its name
-- @pitfall 8, 21
WITH sibling AS (
    SELECT item_id, process, lane, correlation_id
    FROM nsys.stream_item
    WHERE kind < 4 AND prev_correlation_id = correlation_id AND prev_id < 4::BIGINT << 40
),
leader AS (
    SELECT h.process, h.lane, h.correlation_id, h.prev_id, h.prev_start_ns, h.prev_end_ns,
        h.prev_name_id
    FROM nsys.stream_item AS h
    WHERE h.kind < 4
      AND h.correlation_id IN (SELECT correlation_id FROM sibling)
      AND (h.prev_correlation_id IS NULL OR h.prev_correlation_id <> h.correlation_id)
),
behind AS (
    SELECT item_id AS op_id, prev_id, prev_start_ns, prev_end_ns, prev_name_id
    FROM nsys.stream_item
    WHERE kind < 4 AND prev_id >= 4::BIGINT << 40
    UNION ALL
    SELECT s.item_id, l.prev_id, l.prev_start_ns, l.prev_end_ns, l.prev_name_id
    FROM sibling AS s
    INNER JOIN leader AS l
        ON l.correlation_id = s.correlation_id
        AND l.lane = s.lane
        AND l.process IS NOT DISTINCT FROM s.process
),
resolved AS (
    SELECT
        b.op_id,
        CASE WHEN s.item_id IS NULL THEN b.prev_id ELSE s.producer_id END AS producer_id,
        CASE WHEN s.item_id IS NULL THEN b.prev_start_ns ELSE s.producer_start_ns END
            AS producer_start_ns,
        CASE WHEN s.item_id IS NULL THEN b.prev_end_ns ELSE s.producer_end_ns END
            AS producer_end_ns,
        CASE WHEN s.item_id IS NULL THEN b.prev_name_id ELSE s.producer_name_id END
            AS producer_name_id,
        coalesce(s.is_lost, false) AS is_lost,
        coalesce(s.is_waited, false) AS is_waited,
    FROM behind AS b
    LEFT JOIN nsys.stream_state AS s ON s.item_id = b.prev_id
),
graph_end AS (
    -- one operation for each end of a launch: of equal ends the earliest start
    SELECT process, correlation_id, end_ns,
        arg_min(
            {'id': op_id, 'start_ns': start_ns, 'name_id': name_id}, {'s': start_ns, 'i': op_id}
        ) AS ended
    FROM nsys.graph_op
    GROUP BY process, correlation_id, end_ns
),
later AS (
    SELECT k.op_id, e.ended.id AS follows_id, e.ended.start_ns AS follows_start_ns,
        e.end_ns AS follows_end_ns, e.ended.name_id AS follows_name_id
    FROM (SELECT * FROM nsys.graph_op WHERE is_later AND end_ns > start_ns) AS k
    ASOF LEFT JOIN graph_end AS e
        ON e.process = k.process
        AND e.correlation_id = k.correlation_id
        AND e.end_ns <= k.start_ns
    UNION ALL
    SELECT op_id, NULL, NULL, NULL, NULL
    FROM nsys.graph_op
    WHERE is_later AND end_ns = start_ns
)
SELECT op_id, producer_id, producer_start_ns, producer_end_ns, producer_name_id, false AS is_later,
    is_lost, is_waited, producer_id AS follows_id, producer_start_ns AS follows_start_ns,
    producer_end_ns AS follows_end_ns, producer_name_id AS follows_name_id
FROM resolved
WHERE op_id NOT IN (SELECT op_id FROM later)
UNION ALL
SELECT op_id, NULL, NULL, NULL, NULL, true, false, false, follows_id, follows_start_ns,
    follows_end_ns, follows_name_id
FROM later;
