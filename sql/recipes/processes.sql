-- processes — which processes were traced, and what did each of them do?
--
-- One row per process with CUDA calls, device operations or NVTX ranges. Processes are told by
-- their operating system id; program names, users and command lines are not shown. A count of what
-- was not captured is NULL, not 0 (pitfall 18).
--
-- @grain   one row per process
-- @reads   nsys.op, nsys.call, nsys.nvtx, nsys.capability
-- @column  pid BIGINT - operating system process id
-- @column  devices VARCHAR - devices it drives
-- @column  kernel_count BIGINT count kernels
-- @column  copy_count BIGINT count memory copies
-- @column  set_count BIGINT count memory sets
-- @column  graph_count BIGINT count CUDA graph executions that were traced as a whole
-- @column  call_count BIGINT count CUDA API calls
-- @column  range_count BIGINT count NVTX rows
-- @column  thread_count BIGINT count threads with CUDA API calls
-- @pitfall 18
WITH work AS (
    SELECT
        process & 16777215 AS pid,
        string_agg(DISTINCT device, ', ' ORDER BY device) AS devices,
        count(*) FILTER (WHERE kind = 'kernel') AS kernel_count,
        count(*) FILTER (WHERE kind = 'memcpy') AS copy_count,
        count(*) FILTER (WHERE kind = 'memset') AS set_count,
        count(*) FILTER (WHERE kind = 'graph') AS graph_count,
    FROM nsys.op
    GROUP BY process & 16777215
),
calls AS (
    SELECT
        process & 16777215 AS pid,
        count(*) AS call_count,
        count(DISTINCT thread) AS thread_count,
    FROM nsys.call
    GROUP BY process & 16777215
),
ranges AS (
    SELECT process & 16777215 AS pid, count(*) AS range_count
    FROM nsys.nvtx
    GROUP BY process & 16777215
),
traced AS (
    SELECT pid FROM work
    UNION
    SELECT pid FROM calls
    UNION
    SELECT pid FROM ranges
),
-- pitfall 18: what was not captured is unknown, not zero
captured AS (
    SELECT relation FROM nsys.capability WHERE is_present
)
SELECT
    t.pid,
    w.devices,
    CASE WHEN 'kernel' IN (FROM captured) THEN coalesce(w.kernel_count, 0) END AS kernel_count,
    CASE WHEN 'memcpy' IN (FROM captured) THEN coalesce(w.copy_count, 0) END AS copy_count,
    CASE WHEN 'memset' IN (FROM captured) THEN coalesce(w.set_count, 0) END AS set_count,
    CASE WHEN 'graph_exec' IN (FROM captured) THEN coalesce(w.graph_count, 0) END AS graph_count,
    CASE WHEN 'api_call' IN (FROM captured) THEN coalesce(c.call_count, 0) END AS call_count,
    CASE WHEN 'nvtx' IN (FROM captured) THEN coalesce(r.range_count, 0) END AS range_count,
    CASE WHEN 'api_call' IN (FROM captured) THEN coalesce(c.thread_count, 0) END AS thread_count,
FROM traced AS t
-- rows of an export without process ids keep a NULL pid
LEFT JOIN work AS w ON w.pid IS NOT DISTINCT FROM t.pid
LEFT JOIN calls AS c ON c.pid IS NOT DISTINCT FROM t.pid
LEFT JOIN ranges AS r ON r.pid IS NOT DISTINCT FROM t.pid
ORDER BY t.pid NULLS LAST;
