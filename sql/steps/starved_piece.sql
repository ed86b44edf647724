-- starved_piece — when was a device without compute because its next kernel was not launched?
--
-- The launch-starved piece of each gap, cut at the borders of the steady windows, with the thread
-- that was to launch the kernel. Only what lies in a steady window stands here.
--
-- @grain  one row per gap and stretch
-- @reads  nsys.gap_cut, nsys.segment, nsys.window_segment, nsys.stream_item,
--         nsys.outermost_call
-- @column part         BIGINT -  number of the device and thread
-- @column device       BIGINT -  physical GPU
-- @column segment      BIGINT -  stretch of nsys.segment
-- @column thread       BIGINT -  globalTid of the launching thread, NULL where unknown
-- @column gap_start_ns BIGINT ns begin of the gap
-- @column start_ns     BIGINT ns begin of the piece
-- @column end_ns       BIGINT ns end of the piece
-- @pitfall 11
WITH gap AS NOT MATERIALIZED (
    SELECT device, op_id, call_start_ns, call_end_ns, start_ns, issued_ns
    FROM nsys.gap_cut
    WHERE issued_ns > start_ns
),
placed AS (
    FROM nsys.iv_place('gap', 'nsys.segment')
),
-- the stretches behind the border that it reaches into
crossing AS (
    SELECT p.*, unnest(range(p.segment + 1, z.segment + 1)) AS later
    FROM (SELECT * FROM placed WHERE issued_ns > border_ns) AS p
    ASOF JOIN nsys.segment AS z ON z.device = p.device AND z.start_ns < p.issued_ns
),
piece AS (
    SELECT device, segment, op_id, call_start_ns, call_end_ns, start_ns AS gap_start_ns, start_ns,
        least(issued_ns, border_ns) AS end_ns
    FROM placed
    UNION ALL
    SELECT p.device, s.segment, p.op_id, p.call_start_ns, p.call_end_ns, p.start_ns, s.start_ns,
        least(p.issued_ns, s.end_ns)
    FROM crossing AS p
    INNER JOIN nsys.segment AS s ON s.device = p.device AND s.segment = p.later
),
inside AS (
    SELECT DISTINCT device, segment FROM nsys.window_segment
),
kept AS (
    SELECT p.*
    FROM piece AS p
    INNER JOIN inside AS i ON i.device = p.device AND i.segment = p.segment
),
caller AS (
    SELECT k.op_id, c.thread
    FROM (SELECT DISTINCT op_id FROM kept WHERE call_start_ns IS NOT NULL) AS k
    INNER JOIN nsys.stream_item AS o ON o.item_id = k.op_id
    INNER JOIN nsys.outermost_call AS c
        ON c.correlation_id = o.correlation_id AND c.process = o.process
)
SELECT
    dense_rank() OVER (ORDER BY k.device, c.thread) AS part,
    k.device,
    k.segment,
    c.thread,
    k.gap_start_ns,
    k.start_ns,
    k.end_ns,
FROM kept AS k
LEFT JOIN caller AS c ON c.op_id = k.op_id;
