-- report_start — when does the report begin?
--
-- The earliest start of any device operation, CUDA call or NVTX range: a device's first compute
-- gap begins there. Marks, names and domains are no ranges and may lie minutes before.
--
-- @grain  one row
-- @reads  nsys.stream_item, nsys.call, nsys.nvtx
-- @column start_ns BIGINT ns earliest start, NULL in a report without any
SELECT min(start_ns) AS start_ns
FROM (
    SELECT min(start_ns) AS start_ns FROM nsys.stream_item
    UNION ALL
    SELECT min(start_ns) FROM nsys.call
    UNION ALL
    SELECT min(start_ns)
    FROM nsys.nvtx
    WHERE event_type IN (59, 60, 70, 71) AND (end_ns IS NULL OR end_ns >= start_ns)
) AS earliest;
