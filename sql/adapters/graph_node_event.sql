-- graph_node_event — when were the nodes of CUDA graphs created?
--
-- Nodes as they were made on the host; operations of a graph traced by nodes carry the same id.
--
-- @grain    one row per node creation
-- @optional CUDA_GRAPH_NODE_EVENTS
-- @optional CUDA_GRAPH_NODE_EVENTS.eventClass BIGINT
-- @optional CUDA_GRAPH_NODE_EVENTS.globalTid BIGINT
-- @optional CUDA_GRAPH_NODE_EVENTS.nameId BIGINT
-- @optional CUDA_GRAPH_NODE_EVENTS.graphNodeId BIGINT
-- @optional CUDA_GRAPH_NODE_EVENTS.originalGraphNodeId BIGINT
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
FROM trace."CUDA_GRAPH_NODE_EVENTS" AS g;
