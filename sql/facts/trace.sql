-- trace — what clock and which anchor does the report have?
--
-- @grain  one row
-- @reads  nsys.session_start, nsys.report_start, nsys.iteration
-- @column session_start_ns BIGINT  ns wall clock at the report's time zero; NULL where not told
-- @column session_count    BIGINT  -  sessions in the report; a merged one has several
-- @column report_start_ns  BIGINT  ns earliest start of any event, report clock
-- @column anchor           VARCHAR -  anchor of the windows, kind:pattern
-- @column window_count     BIGINT  -  windows of all devices
-- @column steady_count     BIGINT  -  steady ones among them, whatever --device says
-- @pitfall 23
SELECT
    (SELECT min(utc_ns) FROM nsys.session_start) AS session_start_ns,
    (SELECT count(*) FROM nsys.session_start) AS session_count,
    (SELECT start_ns FROM nsys.report_start) AS report_start_ns,
    max(anchor) AS anchor,
    count(*) AS window_count,
    count(*) FILTER (WHERE status = 'steady') AS steady_count,
FROM nsys.iteration;
