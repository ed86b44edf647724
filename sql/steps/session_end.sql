-- session_end — from what time on does an NVTX end mean that the range was never closed?
--
-- Exporters write the duration of the session into ranges that were still open. An export with
-- a time shift or with normalised times has moved its rows but not the duration, so there the
-- rule cannot be applied and only a missing end says that a range is open.
--
-- @grain   one row
-- @reads   nsys.analysis, nsys.export_info
-- @column  session_end_ns  BIGINT  ns  end of the session on the clock of the rows, or NULL
WITH moved AS (
    -- The prefix of the names changed over the years (EXPORT_, EXPORT_PARAM_, EXPORT_CONFIG_).
    SELECT count(*) > 0 AS is_moved
    FROM nsys.export_info AS i
    WHERE
        (i.name LIKE '%TIME!_SHIFT' ESCAPE '!' AND regexp_matches(i.value, '[1-9]'))
        OR (
            i.name LIKE '%TIME!_NORMALIZE' ESCAPE '!'
            AND regexp_matches(lower(i.value), 'true|yes|[1-9]')
        )
)
SELECT CASE WHEN NOT m.is_moved THEN (SELECT max(a.duration_ns) FROM nsys.analysis AS a) END
    ::BIGINT AS session_end_ns
FROM moved AS m;
