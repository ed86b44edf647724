-- blame_segment — how much blocking time does each operation answer for in each stretch?
--
-- The parts of blocking time, cut at window borders. Parts of a device are disjoint, so their
-- sum is a measure of time.
--
-- @grain  one row per operation to blame, device that waited and stretch
-- @reads  nsys.blocking_part, nsys.segment
-- @column device      BIGINT  -  device that did not compute
-- @column segment     BIGINT  -  stretch of nsys.segment
-- @column op_id       BIGINT  -  operation to blame
-- @column role        VARCHAR -  its role
-- @column blocking_ns BIGINT  ns blocking time it answers for
-- @pitfall 7, 8
WITH placed AS (
    SELECT p.device, s.segment, p.op_id, p.role, p.start_ns, p.end_ns, s.end_ns AS border_ns
    FROM nsys.blocking_part AS p
    ASOF JOIN nsys.segment AS s ON s.device = p.device AND s.start_ns <= p.start_ns
),
-- the stretches behind the border that it reaches into
crossing AS (
    SELECT p.*, unnest(range(p.segment + 1, z.segment + 1)) AS later
    FROM (SELECT * FROM placed WHERE end_ns > border_ns) AS p
    ASOF JOIN nsys.segment AS z ON z.device = p.device AND z.start_ns < p.end_ns
),
piece AS (
    SELECT device, segment, op_id, role, least(end_ns, border_ns) - start_ns AS blocking_ns
    FROM placed
    UNION ALL
    SELECT p.device, s.segment, p.op_id, p.role, least(p.end_ns, s.end_ns) - s.start_ns
    FROM crossing AS p
    INNER JOIN nsys.segment AS s ON s.device = p.device AND s.segment = p.later
)
SELECT device, segment, op_id, role, sum(blocking_ns)::BIGINT AS blocking_ns
FROM piece
GROUP BY device, segment, op_id, role;
