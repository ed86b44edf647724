-- blocking_window — how long did each producer block each kernel in each steady window?
--
-- Windows may overlap; each takes the stretches between its own borders.
--
-- @grain  one row per device, steady window, producer, its stream, waiting kernel and evidence
-- @reads  nsys.steady, nsys.segment, nsys.blocking_segment
-- @column device       BIGINT  -  physical GPU
-- @column iteration    BIGINT  -  ordinal of the window on its device
-- @column name_id      BIGINT  -  producer, a name of nsys.op_name
-- @column process      BIGINT  -  process of the producer
-- @column context_id   BIGINT  -  its context
-- @column stream_id    BIGINT  -  its stream
-- @column waiting_id   BIGINT  -  kernel that waited, a name of nsys.op_name
-- @column evidence     VARCHAR -  evidence of the gap, see nsys.gap_cut
-- @column count        BIGINT  -  parts of blocking time that begin in the window
-- @column blocking_ns  BIGINT  ns blocking time
-- @pitfall 7, 8
SELECT
    w.device,
    w.iteration,
    b.name_id,
    b.process,
    b.context_id,
    b.stream_id,
    b.waiting_id,
    b.evidence,
    sum(b.count)::BIGINT AS count,
    sum(b.blocking_ns)::BIGINT AS blocking_ns,
FROM nsys.steady AS w
INNER JOIN nsys.segment AS s
    ON s.device = w.device AND s.start_ns >= w.start_ns AND s.end_ns <= w.end_ns
INNER JOIN nsys.blocking_segment AS b ON b.device = s.device AND b.segment = s.segment
GROUP BY w.device, w.iteration, b.name_id, b.process, b.context_id, b.stream_id, b.waiting_id,
    b.evidence;
