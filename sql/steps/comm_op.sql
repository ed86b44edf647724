-- comm_op — which operations carry data between devices?
--
-- Kernels of role comm, GEMMs that communicate inside, and copies from one device to another.
--
-- @grain  one row per such operation
-- @reads  nsys.op, nsys.copy_op
-- @column op_id    BIGINT  -  operation of nsys.op
-- @column device   BIGINT  -  physical GPU
-- @column name_id  BIGINT  -  name of nsys.comm_group; -11 peer copy, -12 staged through the host
-- @column role     ENUM    -  its role
-- @column start_ns BIGINT  ns start
-- @column end_ns   BIGINT  ns end
-- @pitfall 5
SELECT op_id, device, name_id, role, start_ns, end_ns
FROM nsys.op
WHERE role = 'comm' OR class = 'fused_gemm_comm'
UNION ALL
SELECT
    op_id,
    device,
    CASE way WHEN 'peer' THEN -11 ELSE -12 END,
    'memcpy'::ENUM('compute', 'comm', 'wait', 'memcpy', 'memset'),
    start_ns,
    end_ns,
FROM nsys.copy_op
WHERE way IN ('peer', 'staged peer');
