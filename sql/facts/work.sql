-- work — how much work of which name does each steady window hold?
--
-- Work is the sum of clipped durations, volume and not wall time (pitfall 1).
--
-- @grain  one row per device, steady window and name that occurs in it
-- @reads  nsys.name_window, nsys.op_name
-- @column device     BIGINT  -     physical GPU of the report
-- @column iteration  BIGINT  -     ordinal of the window
-- @column name       VARCHAR -     demangled name, else the short one; memcpy, memset or graph
-- @column class      VARCHAR -     class of the taxonomy
-- @column role       VARCHAR -     compute, comm, wait, memcpy or memset
-- @column collective VARCHAR -     type of the collective, NULL where it is none
-- @column count      BIGINT  count operations that start in the window
-- @column work_ns    BIGINT  ns    sum of clipped durations
-- @pitfall 1
SELECT
    w.device,
    w.iteration,
    n.name,
    n.class,
    n.role::VARCHAR AS role,
    n.collective,
    sum(w.count)::BIGINT AS count,
    sum(w.work_ns)::BIGINT AS work_ns,
FROM nsys.name_window AS w
INNER JOIN nsys.op_name AS n ON n.name_id = w.name_id
GROUP BY w.device, w.iteration, n.name, n.class, n.role, n.collective;
