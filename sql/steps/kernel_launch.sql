-- kernel_launch — which call launched each kernel, and did it launch that kernel alone?
--
-- A call that launched several operations is a CUDA graph launch in nearly all cases (pitfall 21):
-- the time from it to a later kernel of the graph is no latency of a launch. A kernel that starts
-- before its call starts has skewed clocks. Whether a call launched others is asked of the whole
-- trace: they may run before the first window, behind the last, or on a device without windows.
--
-- @grain  one row per kernel that starts or is launched from the first steady window of its device
--         to its last
-- @reads  nsys.op_launch, nsys.graph_op, nsys.steady
-- @column device        BIGINT  -  physical GPU
-- @column segment       BIGINT  -  stretch of nsys.segment in which the kernel starts
-- @column op_id         BIGINT  -  operation of nsys.op
-- @column start_ns      BIGINT  ns start of the kernel
-- @column call_start_ns BIGINT  ns the host enters the call; NULL unless launch is one
-- @column call_end_ns   BIGINT  ns the host leaves the call; NULL unless launch is one
-- @column launch        VARCHAR -  one, many (one call, several operations), unknown or skewed
-- @pitfall 21
WITH extent AS (
    SELECT device, min(start_ns) AS start_ns, max(end_ns) AS end_ns
    FROM nsys.steady
    GROUP BY device
),
kernel AS (
    SELECT l.*, e.start_ns AS from_ns, e.end_ns AS until_ns
    FROM nsys.op_launch AS l
    INNER JOIN extent AS e ON e.device = l.device
    WHERE l.op_id >> 40 = 0 AND l.start_ns >= e.start_ns
),
-- one call, several kernels, and no graph: launches on several devices
shared AS (
    SELECT process, correlation_id
    FROM nsys.op_launch
    WHERE op_id >> 40 = 0 AND correlation_id IS NOT NULL
    GROUP BY process, correlation_id
    HAVING count(*) > 1
),
told AS (
    SELECT
        k.device,
        k.segment,
        k.op_id,
        k.start_ns,
        k.call_start_ns,
        k.call_end_ns,
        CASE
            WHEN g.op_id IS NOT NULL OR s.correlation_id IS NOT NULL THEN 'many'
            WHEN k.call_start_ns IS NULL THEN 'unknown'
            WHEN k.call_start_ns > k.start_ns THEN 'skewed'
            ELSE 'one'
        END AS launch,
    FROM kernel AS k
    LEFT JOIN nsys.graph_op AS g ON g.op_id = k.op_id
    LEFT JOIN shared AS s
        ON s.process IS NOT DISTINCT FROM k.process AND s.correlation_id = k.correlation_id
    WHERE k.start_ns < k.until_ns OR k.call_end_ns < k.until_ns
)
SELECT
    device,
    segment,
    op_id,
    start_ns,
    CASE WHEN launch = 'one' THEN call_start_ns END AS call_start_ns,
    CASE WHEN launch = 'one' THEN call_end_ns END AS call_end_ns,
    launch,
FROM told;
