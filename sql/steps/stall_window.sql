-- stall_window — how long did each activity of the host starve the device in each steady window?
--
-- Windows may overlap; each takes the stretches between its own borders.
--
-- @grain  one row per device, steady window, activity, function and path
-- @reads  nsys.window_segment, nsys.starved_host
-- @column device     BIGINT  -  physical GPU that starved
-- @column iteration  BIGINT  -  ordinal of the window on its device
-- @column activity   VARCHAR -  see nsys.starved_host
-- @column name       VARCHAR -  function, NULL for host code
-- @column path_no    BIGINT  -  path of nsys.range_path, NULL outside all ranges
-- @column count      BIGINT  -  stretches that begin in the window
-- @column starved_ns BIGINT  ns launch-starved time
-- @column busy_ns    BIGINT  ns of it with any operation on the device
-- @pitfall 11
WITH in_segment AS (
    SELECT device, segment, activity, name, path_no, count(*) AS count,
        sum(end_ns - start_ns) AS starved_ns, sum(busy_ns) AS busy_ns
    FROM nsys.starved_host
    GROUP BY device, segment, activity, name, path_no
)
SELECT
    w.device,
    w.iteration,
    h.activity,
    h.name,
    h.path_no,
    sum(h.count)::BIGINT AS count,
    sum(h.starved_ns)::BIGINT AS starved_ns,
    sum(h.busy_ns)::BIGINT AS busy_ns,
FROM nsys.window_segment AS w
INNER JOIN in_segment AS h ON h.device = w.device AND h.segment = w.segment
GROUP BY w.device, w.iteration, h.activity, h.name, h.path_no;
