-- name_window — how much work of each name does each steady window hold?
--
-- Windows may overlap; each takes the stretches between its own borders. These are numbered
-- without holes, so they are listed and not searched for.
--
-- @grain  one row per device, steady window and name
-- @reads  nsys.steady, nsys.segment, nsys.name_segment
-- @column device      BIGINT -  physical GPU
-- @column iteration   BIGINT -  ordinal of the window on its device
-- @column name_id     BIGINT -  name of nsys.op_name
-- @column count       BIGINT -  operations that start in the window
-- @column work_ns     BIGINT ns sum of clipped durations: work volume, not wall time
-- @column duration_ns BIGINT ns sum of the whole durations of the counted ones
-- @column min_ns      BIGINT ns shortest of the counted ones
-- @column max_ns      BIGINT ns longest of the counted ones
-- @pitfall 1
WITH covered AS (
    SELECT w.device, w.iteration, unnest(range(a.segment, z.segment)) AS segment
    FROM nsys.steady AS w
    INNER JOIN nsys.segment AS a ON a.device = w.device AND a.start_ns = w.start_ns
    INNER JOIN nsys.segment AS z ON z.device = w.device AND z.start_ns = w.end_ns
)
SELECT
    c.device,
    c.iteration,
    n.name_id,
    sum(n.count)::BIGINT AS count,
    sum(n.work_ns)::BIGINT AS work_ns,
    sum(n.duration_ns)::BIGINT AS duration_ns,
    min(n.min_ns) AS min_ns,
    max(n.max_ns) AS max_ns,
FROM covered AS c
INNER JOIN nsys.name_segment AS n ON n.device = c.device AND n.segment = c.segment
GROUP BY c.device, c.iteration, n.name_id;
