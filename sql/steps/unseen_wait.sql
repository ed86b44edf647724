-- unseen_wait — how many calls made a stream wait without leaving a wait in the trace?
--
-- An event wait is known by its row of the synchronisation table. Where that table was not
-- captured, or lacks rows, the calls are still there: their streams waited for something, and no
-- gap shows it. So nothing that a trace without these rows says of dependencies is complete
-- (pitfall 8). A wait on a value in memory never leaves a row. Of a call and the call inside it
-- one counts, and none while a stream capture is open: it becomes a node of the graph instead.
--
-- @grain  one row per device whose processes made such calls
-- @reads  nsys.call, nsys.string, nsys.stream_event, nsys.drive, nsys.capture_span
-- @column device BIGINT - physical GPU
-- @column calls  BIGINT - calls that make a stream wait, of the processes that drive the device
-- @column unseen BIGINT - those without a wait of the same correlation id
-- @pitfall 8, 18
WITH wait_name AS (
    SELECT string_id
    FROM nsys.string
    WHERE value LIKE 'cu%' AND regexp_matches(value, '^cu(da)?StreamWait(Event|Value)')
),
asked AS (
    SELECT process, correlation_id, min(start_ns) AS start_ns
    FROM nsys.call
    WHERE name_id IN (SELECT string_id FROM wait_name) AND correlation_id IS NOT NULL
    GROUP BY process, correlation_id
),
placed AS (
    SELECT a.process, a.correlation_id, a.start_ns, d.device
    FROM asked AS a
    INNER JOIN nsys.drive AS d ON d.process = a.process
),
kept AS (
    SELECT p.device, p.process, p.correlation_id
    FROM placed AS p
    ASOF LEFT JOIN nsys.capture_span AS c ON c.device = p.device AND c.start_ns <= p.start_ns
    WHERE c.end_ns IS NULL OR c.end_ns <= p.start_ns
),
seen AS (
    SELECT DISTINCT process, correlation_id FROM nsys.stream_event WHERE is_wait
)
SELECT
    k.device,
    count(*) AS calls,
    count(*) FILTER (WHERE s.correlation_id IS NULL) AS unseen,
FROM kept AS k
LEFT JOIN seen AS s ON s.process = k.process AND s.correlation_id = k.correlation_id
GROUP BY k.device;
