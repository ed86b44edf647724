-- geometry — how many blocks and threads does each steady window launch of each kernel?
--
-- Kernels that compute and whose launch the export tells, each in the window in which it starts.
--
-- @grain  one row per device, steady window and name of a kernel that computes
-- @reads  nsys.launch_segment, nsys.op_name, nsys.window_segment
-- @column device    BIGINT  -     physical GPU of the report
-- @column iteration BIGINT  -     ordinal of the window
-- @column name      VARCHAR -     demangled name, else the short one
-- @column count     BIGINT  count kernels that start in the window and tell their launch
-- @column blocks    BIGINT  count blocks of their grids
-- @column threads   BIGINT  count threads of their grids
SELECT
    w.device,
    w.iteration,
    n.name,
    sum(s.count)::BIGINT AS count,
    sum(s.blocks)::BIGINT AS blocks,
    sum(s.threads)::BIGINT AS threads,
FROM nsys.window_segment AS w
INNER JOIN nsys.launch_segment AS s ON s.device = w.device AND s.segment = w.segment
INNER JOIN nsys.op_name AS n ON n.name_id = s.name_id
WHERE n.role = 'compute'
GROUP BY w.device, w.iteration, n.name;
