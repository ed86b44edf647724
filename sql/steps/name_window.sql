-- name_window — how much work of each name does each steady window hold?
--
-- Windows may overlap; each takes the sum of its stretches.
--
-- @grain  one row per device, steady window and name
-- @reads  nsys.window_segment, nsys.name_segment
-- @column device      BIGINT -  physical GPU
-- @column iteration   BIGINT -  ordinal of the window on its device
-- @column name_id     BIGINT -  name of nsys.op_name
-- @column count       BIGINT -  operations that start in the window
-- @column work_ns     BIGINT ns sum of clipped durations: work volume, not wall time
-- @column duration_ns BIGINT ns sum of the whole durations of the counted ones
-- @column min_ns      BIGINT ns shortest of the counted ones
-- @column max_ns      BIGINT ns longest of the counted ones
-- @pitfall 1
SELECT
    w.device,
    w.iteration,
    n.name_id,
    sum(n.count)::BIGINT AS count,
    sum(n.work_ns)::BIGINT AS work_ns,
    sum(n.duration_ns)::BIGINT AS duration_ns,
    min(n.min_ns) AS min_ns,
    max(n.max_ns) AS max_ns,
FROM nsys.window_segment AS w
INNER JOIN nsys.name_segment AS n ON n.device = w.device AND n.segment = w.segment
GROUP BY w.device, w.iteration, n.name_id;
