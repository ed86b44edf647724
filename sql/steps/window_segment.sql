-- window_segment — which stretches does each steady window consist of?
--
-- Windows may overlap, so a stretch may belong to several, or to none. Stretches are numbered
-- without holes and every border of a window begins one: those of a window are listed from its
-- first to its last, not searched for among all of them.
--
-- @grain  one row per device, steady window and stretch in it
-- @reads  nsys.steady, nsys.segment
-- @column device    BIGINT - physical GPU
-- @column iteration BIGINT - ordinal of the window on its device
-- @column segment   BIGINT - stretch of nsys.segment
-- @pitfall 1
SELECT
    w.device,
    w.iteration,
    unnest(range(a.segment, z.segment)) AS segment,
FROM nsys.steady AS w
INNER JOIN nsys.segment AS a ON a.device = w.device AND a.start_ns = w.start_ns
INNER JOIN nsys.segment AS z ON z.device = w.device AND z.start_ns = w.end_ns;
