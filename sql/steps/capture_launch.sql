-- capture_launch — do kernels find their API call, do the clocks agree, is there a call stack?
--
-- Three different questions: a kernel can have its CUDA call without any line of the program
-- behind it (pitfall 22), and it can seem to start before it was launched, where the clocks of host
-- and device are skewed.
--
-- @grain  one row per process with kernels
-- @reads  nsys.stream_item, nsys.outermost_call, nsys.api_call
-- @column process  BIGINT -  process key
-- @column kernels  BIGINT -  valid kernels
-- @column linked   BIGINT -  kernels with a call of the same correlation id
-- @column chained  BIGINT -  kernels whose call has a call chain
-- @column skewed   BIGINT -  kernels that start before their call
-- @column worst_ns BIGINT ns the earliest of them starts this much before it
-- @pitfall 21, 22
WITH kernel AS (
    SELECT item_id, process, correlation_id, start_ns FROM nsys.stream_item WHERE kind = 0
),
counted AS (
    SELECT
        k.process,
        count(*) AS kernels,
        count(c.start_ns) AS linked,
        count(*) FILTER (WHERE c.start_ns > k.start_ns) AS skewed,
        max(c.start_ns - k.start_ns) FILTER (WHERE c.start_ns > k.start_ns) AS worst_ns,
    FROM kernel AS k
    LEFT JOIN nsys.outermost_call AS c
        ON c.correlation_id = k.correlation_id AND c.process = k.process
    GROUP BY k.process
),
-- backtrace copies of a call (class 67) hold its chain
chain AS (
    SELECT DISTINCT process, correlation_id
    FROM nsys.api_call
    WHERE callchain_id > 0 AND correlation_id IS NOT NULL
),
chained AS (
    SELECT k.process, count(*) AS kernels
    FROM kernel AS k
    INNER JOIN chain AS c ON c.process = k.process AND c.correlation_id = k.correlation_id
    GROUP BY k.process
)
SELECT
    t.process,
    t.kernels,
    t.linked,
    coalesce(c.kernels, 0) AS chained,
    t.skewed,
    t.worst_ns,
FROM counted AS t
LEFT JOIN chained AS c ON c.process = t.process;
