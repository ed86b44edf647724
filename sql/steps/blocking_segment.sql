-- blocking_segment — how long did each producer block each kernel in each stretch of time?
--
-- The parts of blocking time by the operation to blame: its name and its stream. A part is
-- counted in the stretch in which it begins; one that crosses a border gives time to both sides.
--
-- @grain  one row per device, stretch, producer, its stream, waiting kernel and evidence
-- @reads  nsys.blocking_part, nsys.gap_cut, nsys.segment, nsys.op
-- @column device       BIGINT  -  physical GPU
-- @column segment      BIGINT  -  stretch of nsys.segment
-- @column name_id      BIGINT  -  producer, a name of nsys.op_name
-- @column process      BIGINT  -  process of the producer
-- @column context_id   BIGINT  -  its context
-- @column stream_id    BIGINT  -  its stream
-- @column waiting_id   BIGINT  -  kernel that waited, a name of nsys.op_name
-- @column evidence     VARCHAR -  evidence of the gap, see nsys.gap_cut
-- @column count        BIGINT  -  parts that begin in the stretch
-- @column blocking_ns  BIGINT  ns blocking time
-- @pitfall 7, 8
WITH placed AS (
    SELECT p.device, p.gap_start_ns, p.gap_op_id, p.op_id, p.start_ns, p.end_ns, s.segment,
        s.end_ns AS segment_end_ns
    FROM nsys.blocking_part AS p
    ASOF JOIN nsys.segment AS s ON s.device = p.device AND s.start_ns <= p.start_ns
),
-- the stretches behind the border that it reaches into
crossing AS (
    SELECT p.*, unnest(range(p.segment + 1, z.segment + 1)) AS later
    FROM (SELECT * FROM placed WHERE end_ns > segment_end_ns) AS p
    ASOF JOIN nsys.segment AS z ON z.device = p.device AND z.start_ns < p.end_ns
),
cut AS (
    SELECT device, gap_start_ns, gap_op_id, op_id, segment, 1 AS count,
        least(end_ns, segment_end_ns) - start_ns AS blocking_ns
    FROM placed
    UNION ALL
    SELECT p.device, p.gap_start_ns, p.gap_op_id, p.op_id, s.segment, 0,
        least(p.end_ns, s.end_ns) - s.start_ns
    FROM crossing AS p
    INNER JOIN nsys.segment AS s ON s.device = p.device AND s.segment = p.later
)
SELECT
    c.device,
    c.segment,
    b.name_id,
    b.process,
    b.context_id,
    b.stream_id,
    w.name_id AS waiting_id,
    g.evidence,
    sum(c.count)::BIGINT AS count,
    sum(c.blocking_ns)::BIGINT AS blocking_ns,
FROM cut AS c
INNER JOIN nsys.gap_cut AS g ON g.device = c.device AND g.start_ns = c.gap_start_ns
INNER JOIN nsys.op AS b ON b.op_id = c.op_id
INNER JOIN nsys.op AS w ON w.op_id = c.gap_op_id
GROUP BY c.device, c.segment, b.name_id, b.process, b.context_id, b.stream_id, w.name_id,
    g.evidence;
