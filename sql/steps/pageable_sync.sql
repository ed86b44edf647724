-- pageable_sync — on which streams do copies of pageable memory hold up the host?
--
-- Such a copy is asynchronous by name only. It counts here on the default stream, on a stream
-- that the host waits for by name, and where its own call returned no earlier than the copy ended.
--
-- @grain  one row per process, context and stream
-- @reads  nsys.copy_op, nsys.null_stream, nsys.sync, nsys.outermost_call
-- @column process    BIGINT - process key
-- @column context_id BIGINT - CUDA context
-- @column stream_id  BIGINT - CUDA stream
-- @pitfall 13
WITH pageable AS (
    SELECT process, context_id, stream_id, correlation_id, end_ns
    FROM nsys.copy_op
    WHERE source = 'pageable' OR destination = 'pageable'
),
used AS (
    SELECT DISTINCT process, context_id, stream_id FROM pageable
),
synchronous AS (
    SELECT process, context_id, stream_id FROM nsys.null_stream
    UNION
    -- a row that names a stream and no event is the host waiting for the stream
    SELECT process, context_id, stream_id
    FROM nsys.sync
    WHERE stream_id <> 4294967295 AND event_id = 4294967295
    UNION
    SELECT p.process, p.context_id, p.stream_id
    FROM nsys.outermost_call AS c
    INNER JOIN pageable AS p
        ON p.process = c.process AND p.correlation_id = c.correlation_id
    WHERE c.end_ns >= p.end_ns
)
SELECT u.process, u.context_id, u.stream_id
FROM used AS u
WHERE EXISTS (
    SELECT 1 FROM synchronous AS s
    WHERE s.process IS NOT DISTINCT FROM u.process
      AND s.context_id IS NOT DISTINCT FROM u.context_id
      AND s.stream_id = u.stream_id
);
