-- graph_event — when were CUDA graphs created?
--
-- Until schema 3.7 the table of this name holds graph nodes: see graph_node_event. The creation of
-- graphs was not exported.
--
-- @grain    one row per creation
-- @when     CUDA_GRAPH_EVENTS.graphNodeId present
-- @column   start_ns BIGINT ns time on the host, may be negative
-- @column   event_class BIGINT - 94 executable graph, 95 graph, 96 clone
-- @column   process BIGINT - process key, globalTid >> 24
-- @column   thread BIGINT - globalTid of the calling thread
-- @column   name_id BIGINT - string id of the function name
-- @column   graph_id BIGINT - CUDA graph
-- @column   original_graph_id BIGINT - graph it was made from
-- @column   graph_exec_id BIGINT - executable instance
SELECT
    CAST(NULL AS BIGINT) AS start_ns,
    CAST(NULL AS BIGINT) AS event_class,
    CAST(NULL AS BIGINT) AS process,
    CAST(NULL AS BIGINT) AS thread,
    CAST(NULL AS BIGINT) AS name_id,
    CAST(NULL AS BIGINT) AS graph_id,
    CAST(NULL AS BIGINT) AS original_graph_id,
    CAST(NULL AS BIGINT) AS graph_exec_id
WHERE false;
