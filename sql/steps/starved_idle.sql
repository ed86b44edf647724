-- starved_idle — how long was a device idle while its next kernel was not launched?
--
-- Launch-starved time without compute may hold copies, communication or spinning kernels. Where one
-- ran, an earlier launch might have had to wait for it; what stands here is the rest.
--
-- @grain  one row per device and stretch that holds such time
-- @reads  nsys.starved_piece, nsys.op
-- @column device  BIGINT -  physical GPU
-- @column segment BIGINT -  stretch of nsys.segment
-- @column idle_ns BIGINT ns launch-starved time without any operation on the device
-- @pitfall 11
WITH piece AS (
    SELECT device AS part, start_ns, end_ns, segment FROM nsys.starved_piece
),
running AS (
    SELECT device AS part, start_ns, end_ns, op_id AS label FROM nsys.op WHERE role <> 'compute'
)
SELECT p.part AS device, p.segment, sum(c.end_ns - c.start_ns)::BIGINT AS idle_ns
FROM nsys.iv_cover('piece', 'running') AS c
INNER JOIN piece AS p ON p.part = c.part AND p.start_ns = c.stretch_ns
WHERE c.label IS NULL
GROUP BY p.part, p.segment;
