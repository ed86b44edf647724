-- control_call — which calls start or stop the profiler, or open or close a stream capture?
--
-- The names carry suffixes (`_v4000`, `_v2`, `_ptsz`) that change with the release.
--
-- @grain   one row per call
-- @reads   nsys.cuda_call, nsys.string
-- @column  control   VARCHAR  -   profiler_start, profiler_stop, capture_begin or capture_end
-- @column  process   BIGINT   -   calling process
-- @column  thread    BIGINT   -   calling thread
-- @column  start_ns  BIGINT   ns  start of the call
-- @column  end_ns    BIGINT   ns  end of the call
WITH control_name AS (
    SELECT
        s.string_id AS name_id,
        CASE
            WHEN regexp_matches(s.value, '^cu(da)?ProfilerStart(_.*)?$') THEN 'profiler_start'
            WHEN regexp_matches(s.value, '^cu(da)?ProfilerStop(_.*)?$') THEN 'profiler_stop'
            WHEN regexp_matches(s.value, '^cu(da)?StreamBeginCapture') THEN 'capture_begin'
            WHEN regexp_matches(s.value, '^cu(da)?StreamEndCapture') THEN 'capture_end'
        END AS control
    FROM nsys.string AS s
    WHERE s.value LIKE 'cu%'
)
SELECT
    n.control,
    c.process,
    c.thread,
    c.start_ns,
    c.end_ns
FROM nsys.cuda_call AS c
INNER JOIN control_name AS n ON c.name_id = n.name_id
WHERE n.control IS NOT NULL;
