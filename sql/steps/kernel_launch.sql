-- kernel_launch — which call launched each kernel, and did it launch that kernel alone?
--
-- Joined on process and correlation id; where a runtime call and the driver call inside it carry
-- one id, the outermost is the call. A call that launched several operations is a CUDA graph
-- launch in nearly all cases (pitfall 21): the time from it to a later kernel of the graph is no
-- latency of a launch. A kernel that starts before its call starts has skewed clocks.
--
-- @grain  one row per kernel that starts or is launched from the first steady window of its device
--         to its last
-- @reads  nsys.op, nsys.call, nsys.drive, nsys.graph_op, nsys.steady, nsys.segment
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
-- Ids grow in host issue order, so no kernel behind this one was launched inside the extent.
last_call AS (
    SELECT e.device, c.process, max(c.correlation_id) AS correlation_id
    FROM nsys.call AS c
    INNER JOIN nsys.drive AS d ON d.process = c.process
    INNER JOIN extent AS e ON e.device = d.device
    WHERE c.end_ns < e.end_ns
    GROUP BY e.device, c.process
),
kernel AS (
    SELECT o.device, o.op_id, o.process, o.correlation_id, o.start_ns, e.end_ns AS until_ns
    FROM nsys.op AS o
    INNER JOIN extent AS e ON e.device = o.device AND o.start_ns >= e.start_ns
    LEFT JOIN last_call AS l ON l.device = o.device AND l.process = o.process
    WHERE o.kind = 'kernel'
      AND (o.start_ns < e.end_ns OR o.correlation_id <= l.correlation_id)
),
called AS (
    SELECT k.*, c.start_ns AS call_start_ns, c.end_ns AS call_end_ns
    FROM kernel AS k
    LEFT JOIN nsys.call AS c
        ON c.correlation_id = k.correlation_id AND c.process = k.process
),
-- Looking for doubled calls costs a pass over all kernels, so it is done only where there are any.
has_doubles AS (
    SELECT 1 AS one WHERE (SELECT count(*) FROM called) > (SELECT count(*) FROM kernel)
),
doubled AS (
    SELECT c.op_id FROM called AS c, has_doubles GROUP BY c.op_id HAVING count(*) > 1
),
launched AS (
    SELECT * FROM called WHERE op_id NOT IN (SELECT op_id FROM doubled)
    UNION ALL
    SELECT c.*
    FROM called AS c
    INNER JOIN doubled AS d ON d.op_id = c.op_id
    QUALIFY row_number() OVER (
        PARTITION BY c.op_id ORDER BY c.call_start_ns, c.call_end_ns DESC
    ) = 1
),
-- one call, several kernels, and no graph: launches on several devices
shared AS (
    SELECT process, correlation_id
    FROM kernel
    WHERE correlation_id IS NOT NULL
    GROUP BY process, correlation_id
    HAVING count(*) > 1
),
told AS (
    SELECT
        l.device,
        l.op_id,
        l.start_ns,
        l.until_ns,
        l.call_start_ns,
        l.call_end_ns,
        CASE
            WHEN g.op_id IS NOT NULL OR s.correlation_id IS NOT NULL THEN 'many'
            WHEN l.call_start_ns IS NULL THEN 'unknown'
            WHEN l.call_start_ns > l.start_ns THEN 'skewed'
            ELSE 'one'
        END AS launch,
    FROM launched AS l
    LEFT JOIN nsys.graph_op AS g ON g.op_id = l.op_id
    LEFT JOIN shared AS s
        ON s.process IS NOT DISTINCT FROM l.process AND s.correlation_id = l.correlation_id
)
SELECT
    t.device,
    s.segment,
    t.op_id,
    t.start_ns,
    CASE WHEN t.launch = 'one' THEN t.call_start_ns END AS call_start_ns,
    CASE WHEN t.launch = 'one' THEN t.call_end_ns END AS call_end_ns,
    t.launch,
FROM told AS t
ASOF JOIN nsys.segment AS s ON s.device = t.device AND s.start_ns <= t.start_ns
WHERE t.start_ns < t.until_ns OR t.call_end_ns < t.until_ns;
