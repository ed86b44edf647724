-- capture_info — what was the capture told to record?
--
-- Command line and environment of the target stand in the same table: only the names listed here
-- are read. A name that stood in the options of a process loses the number of the process.
--
-- @grain    one row per property and value
-- @optional META_DATA_CAPTURE
-- @optional META_DATA_CAPTURE.name VARCHAR
-- @optional META_DATA_CAPTURE.value VARCHAR
-- @materialize
-- @column   name VARCHAR - property, repeated for lists
-- @column   value VARCHAR - value
SELECT DISTINCT
    regexp_replace(m."name", '^PROCESS_[0-9]+:', '') AS name,
    m."value" AS value
FROM trace."META_DATA_CAPTURE" AS m
WHERE
    regexp_replace(m."name", '^PROCESS_[0-9]+:', '') IN (
        'CAPTURE_EVENT_TYPE',
        'COLLECT_CUDA_TRACE',
        'COLLECT_GPU_MEMORY_USAGE',
        'COLLECT_NVTX_TRACE',
        'CUDA_FLUSH_ON_CUDA_PROFILER_STOP',
        'CUDA_GRAPH_TRACE_OPTIONS:MODE',
        'CUDA_GRAPH_TRACE_OPTIONS:TRACE_DEVICE_GRAPH_LAUNCH',
        'CUDA_SKIP_SOME_API_CALLS',
        'CUDA_TRACE_SCOPE',
        'LINUX_PERF_OPTIONS:COLLECTION_MODE',
        'LINUX_PERF_OPTIONS:COLLECT_CPU_CTXSW_TRACE',
        'LINUX_PERF_OPTIONS:COLLECT_IP_BACKTRACE_SAMPLES',
        'LINUX_PERF_OPTIONS:SAMPLES_PER_BACKTRACE',
        'LINUX_PERF_OPTIONS:SAMPLING_PERIOD',
        'MPI_TRACE_OPTIONS:COLLECT_MPI_TRACE',
        'MPI_TRACE_OPTIONS:MPI_IMPLEMENTATION',
        'NVTX_OPTIONS:NVTX_DOMAIN_FILTER_MODE_INCLUDE',
        'OS_RUNTIME_OPTIONS:DURATION_THRESHOLD_NS',
        'RUN_DURATION_MS',
        'START_DELAY_MS',
        'START_TRIGGER',
        'STOP_TRIGGER'
    );
