-- blocking — which producers kept compute waiting in each steady window?
--
-- @grain  one row per device, steady window and class of the producer
-- @reads  nsys.blocking_window, nsys.op_name
-- @column device      BIGINT  -     physical GPU of the report
-- @column iteration   BIGINT  -     ordinal of the window
-- @column class       VARCHAR -     class of the producer
-- @column role        VARCHAR -     its role
-- @column collective  VARCHAR -     type of the collective, NULL where it is none
-- @column count       BIGINT  count parts of blocking time that begin in the window
-- @column blocking_ns BIGINT  ns    blocking time
-- @pitfall 7, 8
SELECT
    b.device,
    b.iteration,
    n.class,
    n.role::VARCHAR AS role,
    n.collective,
    sum(b.count)::BIGINT AS count,
    sum(b.blocking_ns)::BIGINT AS blocking_ns,
FROM nsys.blocking_window AS b
INNER JOIN nsys.op_name AS n ON n.name_id = b.name_id
GROUP BY b.device, b.iteration, n.class, n.role, n.collective;
