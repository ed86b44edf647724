-- graph_node_event — when were the nodes of CUDA graphs created?
--
-- The table was called CUDA_GRAPH_EVENTS until schema 3.7, a name that means whole graphs since:
-- the column graphNodeId tells the two apart.
--
-- @grain    one row per node creation
-- @when     CUDA_GRAPH_EVENTS.graphNodeId present
-- @optional CUDA_GRAPH_EVENTS
-- @optional CUDA_GRAPH_EVENTS.eventClass BIGINT
-- @optional CUDA_GRAPH_EVENTS.globalTid BIGINT
-- @optional CUDA_GRAPH_EVENTS.nameId BIGINT
-- @optional CUDA_GRAPH_EVENTS.graphNodeId BIGINT
-- @optional CUDA_GRAPH_EVENTS.originalGraphNodeId BIGINT
-- @column   start_ns BIGINT ns time on the host, may be negative
-- @column   event_class BIGINT - 77 graph node
-- @column   process BIGINT - process key, globalTid >> 24
-- @column   thread BIGINT - globalTid of the calling thread
-- @column   name_id BIGINT - string id of the function name
-- @column   graph_node_id BIGINT - node, as the operations of the graph carry it
-- @column   original_graph_node_id BIGINT - node it was cloned from
SELECT
    g."start" AS start_ns,
    g."eventClass" AS event_class,
    g."globalTid" >> 24 AS process,
    g."globalTid" AS thread,
    g."nameId" AS name_id,
    g."graphNodeId" AS graph_node_id,
    g."originalGraphNodeId" AS original_graph_node_id
FROM trace."CUDA_GRAPH_EVENTS" AS g;
