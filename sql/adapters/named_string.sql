-- named_string — which strings of the trace name something that it recorded?
--
-- The strings of a trace also hold what its programs were told: command lines, settings, whatever a
-- later profiler keeps there. A string that no kernel, call, range, thread or sample points at is
-- not a name, so it is in no database that is built of the trace and in no answer of a query.
--
-- @grain    one row per string id
-- @optional StringIds
-- @optional CUPTI_ACTIVITY_KIND_KERNEL
-- @optional CUPTI_ACTIVITY_KIND_KERNEL.demangledName BIGINT
-- @optional CUPTI_ACTIVITY_KIND_KERNEL.shortName BIGINT
-- @optional CUPTI_ACTIVITY_KIND_KERNEL.mangledName BIGINT
-- @optional CUPTI_ACTIVITY_KIND_RUNTIME
-- @optional CUPTI_ACTIVITY_KIND_RUNTIME.nameId BIGINT
-- @optional CUPTI_ACTIVITY_KIND_OVERHEAD
-- @optional CUPTI_ACTIVITY_KIND_OVERHEAD.nameId BIGINT
-- @optional PROFILER_OVERHEAD
-- @optional PROFILER_OVERHEAD.nameId BIGINT
-- @optional CUDA_GRAPH_EVENTS
-- @optional CUDA_GRAPH_EVENTS.nameId BIGINT
-- @optional CUDA_GRAPH_NODE_EVENTS
-- @optional CUDA_GRAPH_NODE_EVENTS.nameId BIGINT
-- @optional OSRT_API
-- @optional OSRT_API.nameId BIGINT
-- @optional CUBLAS_EVENTS
-- @optional CUBLAS_EVENTS.nameId BIGINT
-- @optional CUDNN_EVENTS
-- @optional CUDNN_EVENTS.nameId BIGINT
-- @optional NVTX_EVENTS
-- @optional NVTX_EVENTS.textId BIGINT
-- @optional ThreadNames
-- @optional ThreadNames.nameId BIGINT
-- @optional CUDA_CALLCHAINS
-- @optional CUDA_CALLCHAINS.symbol BIGINT
-- @optional OSRT_CALLCHAINS
-- @optional OSRT_CALLCHAINS.symbol BIGINT
-- @optional SAMPLING_CALLCHAINS
-- @optional SAMPLING_CALLCHAINS.symbol BIGINT
-- @materialize
-- @column   string_id BIGINT - id in nsys.string
SELECT s."id" AS string_id
FROM trace."StringIds" AS s
WHERE s."id" IN (
    SELECT k."demangledName" FROM trace."CUPTI_ACTIVITY_KIND_KERNEL" AS k
    UNION
    SELECT ks."shortName" FROM trace."CUPTI_ACTIVITY_KIND_KERNEL" AS ks
    UNION
    SELECT km."mangledName" FROM trace."CUPTI_ACTIVITY_KIND_KERNEL" AS km
    UNION
    SELECT r."nameId" FROM trace."CUPTI_ACTIVITY_KIND_RUNTIME" AS r
    UNION
    SELECT co."nameId" FROM trace."CUPTI_ACTIVITY_KIND_OVERHEAD" AS co
    UNION
    SELECT po."nameId" FROM trace."PROFILER_OVERHEAD" AS po
    UNION
    SELECT g."nameId" FROM trace."CUDA_GRAPH_EVENTS" AS g
    UNION
    SELECT gn."nameId" FROM trace."CUDA_GRAPH_NODE_EVENTS" AS gn
    UNION
    SELECT o."nameId" FROM trace."OSRT_API" AS o
    UNION
    SELECT b."nameId" FROM trace."CUBLAS_EVENTS" AS b
    UNION
    SELECT d."nameId" FROM trace."CUDNN_EVENTS" AS d
    UNION
    SELECT e."textId" FROM trace."NVTX_EVENTS" AS e
    UNION
    SELECT t."nameId" FROM trace."ThreadNames" AS t
    UNION
    SELECT cc."symbol" FROM trace."CUDA_CALLCHAINS" AS cc
    UNION
    SELECT oc."symbol" FROM trace."OSRT_CALLCHAINS" AS oc
    UNION
    SELECT sc."symbol" FROM trace."SAMPLING_CALLCHAINS" AS sc
);
