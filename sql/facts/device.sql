-- device — which process drives which device, and which GPU is it?
--
-- @grain  one row per device and process that drives it
-- @reads  nsys.op, nsys.gpu, nsys.gpu_identity, nsys.device_map, nsys.steady
-- @column device         BIGINT  -     physical GPU of the report
-- @column process        BIGINT  -     process key
-- @column pid            BIGINT  -     operating system process id
-- @column gpu            VARCHAR -     name of the GPU, where it is certain
-- @column board          VARCHAR -     hash of the board's UUID, where the mapping is certain
-- @column op_count       BIGINT  count device operations
-- @column compute_count  BIGINT  count compute operations among them
-- @column comm_count     BIGINT  count communication kernels among them
-- @column steady_count   BIGINT  count steady windows of the device
-- @column first_start_ns BIGINT  ns    start of the first operation
-- @column last_end_ns    BIGINT  ns    end of the last operation
WITH alike AS (
    SELECT CASE WHEN count(DISTINCT name) = 1 THEN max(name) END AS name
    FROM nsys.gpu
),
named AS (
    SELECT g.gpu_id, max(g.name) AS name, max(b.board) AS board
    FROM nsys.gpu AS g
    LEFT JOIN nsys.gpu_identity AS b ON b.gpu_id = g.gpu_id
    WHERE g.gpu_id IN (SELECT gpu_id FROM nsys.device_map)
    GROUP BY g.gpu_id
),
windows AS (
    SELECT device, count(*) AS n FROM nsys.steady GROUP BY device
),
driven AS (
    SELECT
        device,
        process,
        count(*) AS op_count,
        count(*) FILTER (WHERE role = 'compute') AS compute_count,
        count(*) FILTER (WHERE role = 'comm') AS comm_count,
        min(start_ns) AS first_start_ns,
        max(end_ns) AS last_end_ns,
    FROM nsys.op
    GROUP BY device, process
)
SELECT
    d.device,
    d.process,
    d.process & 16777215 AS pid,
    coalesce(n.name, a.name) AS gpu,
    n.board,
    d.op_count,
    d.compute_count,
    d.comm_count,
    coalesce(w.n, 0) AS steady_count,
    d.first_start_ns,
    d.last_end_ns,
FROM driven AS d
CROSS JOIN alike AS a
LEFT JOIN named AS n ON n.gpu_id = d.device
LEFT JOIN windows AS w ON w.device = d.device;
