-- capture_row — how many rows does each table have, and how many of them are invalid?
--
-- Invalid is a row that ends before it starts, or that lacks one of the two times. Such rows take
-- part in no measure, but for event waits: these order their stream whatever their times are. An
-- NVTX range without an end is open, not invalid, and is counted elsewhere.
--
-- @grain  one row per relation, process and device ordinal
-- @reads  nsys.kernel, nsys.memcpy, nsys.memset, nsys.graph_exec, nsys.api_call, nsys.sync
-- @reads  nsys.nvtx, nsys.osrt_call
-- @column relation       VARCHAR - canonical relation
-- @column process        BIGINT  - process key, for operations of a device
-- @column device_ordinal BIGINT  - CUDA ordinal in the process, for operations of a device
-- @column rows           BIGINT  - rows
-- @column invalid_rows   BIGINT  - those that are invalid
SELECT 'kernel' AS relation, process, device_ordinal, count(*) AS rows,
    count(*) FILTER (WHERE (end_ns >= start_ns) IS NOT TRUE) AS invalid_rows
FROM nsys.kernel
GROUP BY process, device_ordinal
UNION ALL
SELECT 'memcpy', process, device_ordinal, count(*),
    count(*) FILTER (WHERE (end_ns >= start_ns) IS NOT TRUE)
FROM nsys.memcpy
GROUP BY process, device_ordinal
UNION ALL
SELECT 'memset', process, device_ordinal, count(*),
    count(*) FILTER (WHERE (end_ns >= start_ns) IS NOT TRUE)
FROM nsys.memset
GROUP BY process, device_ordinal
UNION ALL
SELECT 'graph_exec', process, device_ordinal, count(*),
    count(*) FILTER (WHERE (end_ns >= start_ns) IS NOT TRUE)
FROM nsys.graph_exec
GROUP BY process, device_ordinal
UNION ALL
SELECT 'api_call', NULL, NULL, count(*), count(*) FILTER (WHERE (end_ns >= start_ns) IS NOT TRUE)
FROM nsys.api_call
UNION ALL
SELECT 'sync', NULL, NULL, count(*), count(*) FILTER (WHERE (end_ns >= start_ns) IS NOT TRUE)
FROM nsys.sync
UNION ALL
SELECT 'osrt_call', NULL, NULL, count(*), count(*) FILTER (WHERE (end_ns >= start_ns) IS NOT TRUE)
FROM nsys.osrt_call
UNION ALL
SELECT 'nvtx', NULL, NULL, count(*), count(*) FILTER (WHERE start_ns IS NULL OR end_ns < start_ns)
FROM nsys.nvtx
WHERE event_type IN (59, 60, 70, 71);
