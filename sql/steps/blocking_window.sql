-- blocking_window — how long did each producer block each kernel in each steady window?
--
-- Windows may overlap; each takes the stretches between its own borders.
--
-- @grain  one row per device, steady window, producer, its stream, waiting kernel and evidence
-- @reads  nsys.window_segment, nsys.blocking_segment
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
FROM nsys.window_segment AS w
INNER JOIN nsys.blocking_segment AS b ON b.device = w.device AND b.segment = w.segment
GROUP BY w.device, w.iteration, b.name_id, b.process, b.context_id, b.stream_id, b.waiting_id,
    b.evidence;
