-- launch_call — which kernel launches did each thread make, in which order?
--
-- API calls that launch kernels, numbered on their thread in the order of the host. Launches of
-- CUDA graphs are none: a graph has no call site for each of its kernels (pitfall 21). Of nested
-- calls with one correlation id only the outermost counts.
--
-- @grain  one row per launch
-- @reads  nsys.call, nsys.string
-- @column process        BIGINT -  process key
-- @column thread         BIGINT -  globalTid of the calling thread
-- @column ordinal        BIGINT -  number of the launch on its thread, from 0
-- @column correlation_id BIGINT -  joins the kernel inside the process
-- @column start_ns       BIGINT ns the host enters the call
-- @pitfall 21
WITH launch_name AS (
    SELECT string_id
    FROM nsys.string
    WHERE value LIKE 'cu%Launch%' AND regexp_matches(value, '^cu(da)?Launch')
        AND NOT contains(value, 'HostFunc')
),
launch AS (
    SELECT process, thread, correlation_id, start_ns, end_ns
    FROM nsys.call
    WHERE name_id IN (SELECT string_id FROM launch_name)
),
outermost AS (
    SELECT
        process,
        correlation_id,
        arg_min(thread, {'s': start_ns, 'e': -end_ns}) AS thread,
        min(start_ns) AS start_ns,
    FROM launch
    WHERE correlation_id IS NOT NULL
    GROUP BY process, correlation_id
    UNION ALL
    SELECT process, correlation_id, thread, start_ns FROM launch WHERE correlation_id IS NULL
)
SELECT
    process,
    thread,
    row_number() OVER (PARTITION BY thread ORDER BY start_ns, correlation_id) - 1 AS ordinal,
    correlation_id,
    start_ns,
FROM outermost;
