-- copy — what did each steady window copy, and by which way?
--
-- A copy counts in the window in which it starts; its work is its whole duration.
--
-- @grain  one row per device, steady window, direction, way and kinds of memory
-- @reads  nsys.copy_op, nsys.segment, nsys.window_segment
-- @column device      BIGINT  -     physical GPU of the report
-- @column iteration   BIGINT  -     ordinal of the window
-- @column direction   VARCHAR -     HtoD, DtoH, DtoD, PtoP, ... or memset
-- @column way         VARCHAR -     host, device, peer, staged peer, memset or unknown
-- @column source      VARCHAR -     kind of memory read, NULL unknown or a set
-- @column destination VARCHAR -     kind of memory written, NULL unknown
-- @column count       BIGINT  count copies
-- @column bytes       BIGINT  bytes bytes copied or set
-- @column work_ns     BIGINT  ns    sum of durations: work volume
-- @pitfall 1, 12
WITH placed AS (
    SELECT
        c.device,
        s.segment,
        c.direction,
        c.way,
        c.source,
        c.destination,
        count(*) AS count,
        sum(c.bytes)::BIGINT AS bytes,
        sum(c.end_ns - c.start_ns)::BIGINT AS work_ns,
    FROM nsys.copy_op AS c
    ASOF JOIN nsys.segment AS s ON s.device = c.device AND s.start_ns <= c.start_ns
    GROUP BY c.device, s.segment, c.direction, c.way, c.source, c.destination
)
SELECT
    w.device,
    w.iteration,
    p.direction,
    p.way,
    p.source,
    p.destination,
    sum(p.count)::BIGINT AS count,
    sum(p.bytes)::BIGINT AS bytes,
    sum(p.work_ns)::BIGINT AS work_ns,
FROM nsys.window_segment AS w
INNER JOIN placed AS p ON p.device = w.device AND p.segment = w.segment
GROUP BY w.device, w.iteration, p.direction, p.way, p.source, p.destination;
