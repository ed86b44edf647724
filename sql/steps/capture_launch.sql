-- capture_launch — do kernels find their API call, do the clocks agree, is there a call stack?
--
-- Three different questions: a kernel can have its CUDA call without any line of the program
-- behind it (pitfall 22), and it can seem to start before it was launched, where the clocks of host
-- and device are skewed.
--
-- @grain  one row per process with kernels
-- @reads  nsys.op, nsys.call, nsys.api_call
-- @column process  BIGINT -  process key
-- @column kernels  BIGINT -  valid kernels
-- @column linked   BIGINT -  kernels with a call of the same correlation id
-- @column chained  BIGINT -  kernels whose call has a call chain
-- @column skewed   BIGINT -  kernels that start before their call
-- @column worst_ns BIGINT ns the earliest of them starts this much before it
-- @pitfall 21, 22
WITH launch AS (
    SELECT process, correlation_id, min(start_ns) AS start_ns
    FROM nsys.call
    WHERE correlation_id IS NOT NULL
    GROUP BY process, correlation_id
),
-- backtrace copies of a call (class 67) hold its chain
chain AS (
    SELECT DISTINCT process, correlation_id
    FROM nsys.api_call
    WHERE callchain_id > 0 AND correlation_id IS NOT NULL
)
SELECT
    k.process,
    count(*) AS kernels,
    count(l.correlation_id) AS linked,
    count(c.correlation_id) AS chained,
    count(*) FILTER (WHERE l.start_ns > k.start_ns) AS skewed,
    max(l.start_ns - k.start_ns) FILTER (WHERE l.start_ns > k.start_ns) AS worst_ns,
FROM nsys.op AS k
LEFT JOIN launch AS l ON l.process = k.process AND l.correlation_id = k.correlation_id
LEFT JOIN chain AS c ON c.process = k.process AND c.correlation_id = k.correlation_id
WHERE k.kind = 'kernel'
GROUP BY k.process;
