-- starved_host — what did the launching thread do while the device starved?
--
-- Each launch-starved piece is cut by what its thread was in: a CUDA call, else a call of the
-- operating system runtime, else neither, which is host code. Of nested calls the outermost
-- counts: it is what the program asked for. Each cut belongs to the range that was open on the
-- thread at that very time. Each also knows for how long the device was not idle, since a call
-- that waits for a copy or a collective is no loss of its own.
--
-- @grain  one row per stretch of time in which nothing of this changes
-- @reads  nsys.starved_piece, nsys.call, nsys.osrt_call, nsys.range_state, nsys.string, nsys.op
-- @column part         BIGINT  -  number of the device and thread
-- @column device       BIGINT  -  physical GPU that starved
-- @column segment      BIGINT  -  stretch of nsys.segment
-- @column thread       BIGINT  -  globalTid of the launching thread, NULL where unknown
-- @column gap_start_ns BIGINT  ns begin of the gap
-- @column start_ns     BIGINT  ns begin of the stretch
-- @column end_ns       BIGINT  ns end of the stretch
-- @column busy_ns      BIGINT  ns time in it with any operation on the device: none is compute
-- @column activity     VARCHAR -  synchronise, memory, launch, call, os_runtime, host_code, unknown
-- @column name         VARCHAR -  function that it was in, NULL for host code
-- @column path_no      BIGINT  -  path of nsys.range_path, NULL outside all ranges
-- @pitfall 11
WITH owner AS (
    SELECT DISTINCT part, device, thread FROM nsys.starved_piece
),
piece AS (
    SELECT part, start_ns, end_ns FROM nsys.starved_piece
),
cuda AS (
    SELECT o.part, c.start_ns, c.end_ns, c.name_id AS label
    FROM nsys.call AS c
    INNER JOIN owner AS o ON o.thread = c.thread
),
cut_by_cuda AS (
    SELECT part, stretch_ns AS piece_ns, start_ns, end_ns, label
    FROM nsys.iv_cover('piece', 'cuda')
),
free AS (
    SELECT part, start_ns, end_ns, piece_ns FROM cut_by_cuda WHERE label IS NULL
),
runtime AS (
    SELECT o.part, c.start_ns, c.end_ns, c.name_id AS label
    FROM nsys.osrt_call AS c
    INNER JOIN owner AS o ON o.thread = c.thread
),
cut AS (
    SELECT part, piece_ns, start_ns, end_ns, label AS name_id, 'cuda' AS layer
    FROM cut_by_cuda
    WHERE label IS NOT NULL
    UNION ALL
    SELECT f.part, f.piece_ns, r.start_ns, r.end_ns, r.label,
        CASE WHEN r.label IS NULL THEN 'host_code' ELSE 'os_runtime' END
    FROM nsys.iv_cover('free', 'runtime') AS r
    INNER JOIN free AS f ON f.part = r.part AND f.start_ns = r.stretch_ns
),
in_range AS (
    SELECT o.part, s.start_ns, s.end_ns, s.path_no AS label
    FROM nsys.range_state AS s
    INNER JOIN owner AS o ON o.thread = s.thread
    WHERE s.path_no IS NOT NULL
),
stretch AS (
    SELECT part, stretch_ns AS cut_ns, start_ns, end_ns, label AS path_no
    FROM nsys.iv_cover('cut', 'in_range')
),
running AS (
    SELECT w.part, o.start_ns, o.end_ns, o.op_id AS label
    FROM nsys.op AS o
    INNER JOIN owner AS w ON w.device = o.device
    WHERE o.role <> 'compute'
),
busy AS (
    SELECT part, stretch_ns, sum(end_ns - start_ns)::BIGINT AS busy_ns
    FROM nsys.iv_cover('stretch', 'running')
    WHERE label IS NOT NULL
    GROUP BY part, stretch_ns
),
called AS (
    SELECT string_id, nsys.call_text(value) AS name, nsys.call_activity(value) AS activity
    FROM nsys.string
    WHERE string_id IN (SELECT name_id FROM cut)
)
SELECT
    p.part,
    p.device,
    p.segment,
    p.thread,
    p.gap_start_ns,
    r.start_ns,
    r.end_ns,
    coalesce(b.busy_ns, 0) AS busy_ns,
    CASE
        WHEN p.thread IS NULL THEN 'unknown'
        WHEN c.layer = 'cuda' THEN coalesce(n.activity, 'call')
        ELSE c.layer
    END AS activity,
    CASE WHEN c.name_id IS NOT NULL THEN coalesce(n.name, '(unnamed)') END AS name,
    r.path_no,
FROM stretch AS r
INNER JOIN cut AS c ON c.part = r.part AND c.start_ns = r.cut_ns
INNER JOIN nsys.starved_piece AS p ON p.part = c.part AND p.start_ns = c.piece_ns
LEFT JOIN called AS n ON n.string_id = c.name_id
LEFT JOIN busy AS b ON b.part = r.part AND b.stretch_ns = r.start_ns;
