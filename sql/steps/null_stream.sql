-- null_stream — which stream is the default one of each context?
--
-- Copies and kernels on it wait for the other streams of the context, and these for them. The
-- trace names it in the table of contexts or of streams. Where it does not, it is stream 7 in the
-- first context of a process and unknown in the others.
--
-- @grain  one row per process and context that has operations and a known default stream
-- @reads  nsys.op, nsys.cuda_context, nsys.cuda_stream
-- @column process    BIGINT - process key
-- @column context_id BIGINT - CUDA context
-- @column stream_id  BIGINT - its default stream
-- @pitfall 13
WITH told AS (
    SELECT process_pid, context_id, null_stream_id AS stream_id
    FROM nsys.cuda_context
    WHERE null_stream_id IS NOT NULL
    UNION
    SELECT process_pid, context_id, stream_id FROM nsys.cuda_stream WHERE flag = 3
),
used AS (
    SELECT DISTINCT process, context_id FROM nsys.op
)
SELECT u.process, u.context_id, coalesce(min(t.stream_id), 7) AS stream_id
FROM used AS u
LEFT JOIN told AS t
    ON t.process_pid = (u.process & 16777215) AND t.context_id = u.context_id
GROUP BY u.process, u.context_id
HAVING min(t.stream_id) IS NOT NULL OR u.context_id = 1;
