-- graph_event — when were CUDA graphs created?
--
-- Graphs, their clones and executable instances as they were made on the host.
--
-- @grain    one row per creation
-- @optional CUDA_GRAPH_EVENTS
-- @optional CUDA_GRAPH_EVENTS.eventClass BIGINT
-- @optional CUDA_GRAPH_EVENTS.globalTid BIGINT
-- @optional CUDA_GRAPH_EVENTS.nameId BIGINT
-- @optional CUDA_GRAPH_EVENTS.graphId BIGINT
-- @optional CUDA_GRAPH_EVENTS.originalGraphId BIGINT
-- @optional CUDA_GRAPH_EVENTS.graphExecId BIGINT
-- @column   start_ns BIGINT ns time on the host, may be negative
-- @column   event_class BIGINT - 94 executable graph, 95 graph, 96 clone
-- @column   process BIGINT - process key, globalTid >> 24
-- @column   thread BIGINT - globalTid of the calling thread
-- @column   name_id BIGINT - string id of the function name
-- @column   graph_id BIGINT - CUDA graph
-- @column   original_graph_id BIGINT - graph it was made from
-- @column   graph_exec_id BIGINT - executable instance
SELECT
    g."start" AS start_ns,
    g."eventClass" AS event_class,
    g."globalTid" >> 24 AS process,
    g."globalTid" AS thread,
    g."nameId" AS name_id,
    g."graphId" AS graph_id,
    g."originalGraphId" AS original_graph_id,
    g."graphExecId" AS graph_exec_id
FROM trace."CUDA_GRAPH_EVENTS" AS g;
