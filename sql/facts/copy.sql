-- copy — what did each steady window copy, and by which way?
--
-- A copy counts in the window in which it starts, its time is clipped to windows: one that runs
-- past a border has work in both, and its whole duration, for bandwidth, where it starts.
--
-- @grain  one row per device, steady window, direction, way and kinds of memory
-- @reads  nsys.copy_piece, nsys.window_segment
-- @column device      BIGINT  -     physical GPU of the report
-- @column iteration   BIGINT  -     ordinal of the window
-- @column direction   VARCHAR -     HtoD, DtoH, DtoD, PtoP, ... or memset
-- @column way         VARCHAR -     host, device, peer, staged peer, memset or unknown
-- @column source      VARCHAR -     kind of memory read, NULL unknown or a set
-- @column destination VARCHAR -     kind of memory written, NULL unknown
-- @column count       BIGINT  count copies that start in the window
-- @column bytes       BIGINT  bytes bytes copied or set by them
-- @column duration_ns BIGINT  ns    sum of their whole durations
-- @column work_ns     BIGINT  ns    sum of clipped durations: work volume
-- @pitfall 1, 12
SELECT
    w.device,
    w.iteration,
    p.direction,
    p.way,
    p.source,
    p.destination,
    sum(p.count)::BIGINT AS count,
    sum(p.bytes)::BIGINT AS bytes,
    sum(p.duration_ns)::BIGINT AS duration_ns,
    sum(p.work_ns)::BIGINT AS work_ns,
FROM nsys.window_segment AS w
INNER JOIN nsys.copy_piece AS p ON p.device = w.device AND p.segment = w.segment
GROUP BY w.device, w.iteration, p.direction, p.way, p.source, p.destination;
