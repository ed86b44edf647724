-- comm — how much communication of each kind does each steady window hold?
--
-- The sets of recipe communication: scope all, class, collective, fused_compute or peer_copy.
-- Busy is the union of the set, exposed what no other role covers, blocking what it is to blame
-- for; sets overlap, so rows do not add up (pitfalls 6 and 7).
--
-- @grain  one row per device, steady window and set that occurs in it; `all` in every window
-- @reads  nsys.comm_window, nsys.comm_group
-- @column device      BIGINT  -     physical GPU of the report
-- @column iteration   BIGINT  -     ordinal of the window
-- @column scope       VARCHAR -     kind of the set
-- @column class       VARCHAR -     class of the taxonomy; NULL for all
-- @column collective  VARCHAR -     type of the collective, NULL where the set holds several
-- @column count       BIGINT  count operations that start in the window
-- @column work_ns     BIGINT  ns    sum of clipped durations: work volume
-- @column busy_ns     BIGINT  ns    union
-- @column exposed_ns  BIGINT  ns    union without what runs beside it
-- @column blocking_ns BIGINT  ns    blocking time
-- @pitfall 1, 5, 6, 7
WITH labelled AS (
    SELECT DISTINCT set_id, scope, class, collective FROM nsys.comm_group
)
SELECT
    w.device,
    w.iteration,
    g.scope,
    g.class,
    g.collective,
    w.count,
    w.work_ns,
    w.busy_ns,
    w.exposed_ns,
    w.blocking_ns,
FROM nsys.comm_window AS w
INNER JOIN labelled AS g ON g.set_id = w.set_id;
