-- call_site_op — which kernel has which call site?
--
-- Kernels of CUDA graphs, and those whose launch is missing from the trace or from the file, have
-- no row: they stay without a call site and lower the link rate.
--
-- @grain  one row per kernel with a call site
-- @reads  nsys.op, nsys.launch_call, nsys.call_site_thread, nsys.call_site
-- @param  rank BIGINT = 0 [0,) rank of this trace in the file
-- @column op_id     BIGINT  - kernel
-- @column call_site VARCHAR - where its launch was made
-- @column stack     VARCHAR - the stack above it
-- @pitfall 21, 22
WITH params AS (
    SELECT coalesce(getvariable('rank')::BIGINT, 0) AS rank
)
SELECT o.op_id, s.call_site, s.stack
FROM nsys.op AS o
INNER JOIN nsys.launch_call AS l
    ON l.process = o.process AND l.correlation_id = o.correlation_id
INNER JOIN nsys.call_site_thread AS t ON t.thread = l.thread
INNER JOIN nsys.call_site AS s ON s.thread = t.file_thread AND s.ordinal = l.ordinal
INNER JOIN params AS p ON p.rank = s.rank
WHERE o.kind = 'kernel' AND s.call_site IS NOT NULL;
