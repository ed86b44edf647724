-- device_window — where do the NVTX windows lie on the device, by the work launched inside them?
--
-- Only for `window_mode = device`. The host runs ahead of the device, so a range need not span
-- its own work. Here each closed range starts with the first operation that was launched inside
-- it, by any thread of its process, and ends where the next such range of the process starts;
-- the last one ends with its last operation. A range that launched nothing keeps its times and
-- is `is_workless`; an unclosed one keeps its end. Launched inside: the call began inside.
--
-- Ranges of several threads may overlap, so the host time of a process is cut at every edge of
-- a range; a call belongs to one piece, a range to all pieces from its start to its end.
--
-- @grain   one row per device, matching range
-- @reads   nsys.nvtx_window, nsys.drive, nsys.op, nsys.cuda_call
-- @param   window_mode  VARCHAR = 'range'  range, or device
-- @column  device       BIGINT   -   device
-- @column  row_id       BIGINT   -   row of nsys.nvtx
-- @column  start_ns     BIGINT   ns  start on the device
-- @column  end_ns       BIGINT   ns  end on the device, or NULL
-- @column  is_workless  BOOLEAN  -   nothing was launched inside the range
WITH params AS (
    SELECT coalesce(getvariable('window_mode')::VARCHAR, 'range') AS window_mode
),
host_range AS (
    SELECT
        n.row_id,
        n.process,
        n.start_ns,
        n.end_ns,
        n.is_unclosed,
        CASE WHEN NOT n.is_unclosed THEN n.end_ns END AS closed_ns
    FROM params AS p
    INNER JOIN nsys.nvtx_window AS n ON p.window_mode = 'device'
),
edge AS (
    SELECT
        u.process,
        u.edge_ns,
        row_number() OVER (PARTITION BY u.process ORDER BY u.edge_ns) AS edge,
        count(*) OVER (PARTITION BY u.process) AS edges
    FROM (
        SELECT h.process, h.start_ns AS edge_ns FROM host_range AS h
        UNION
        SELECT h.process, h.closed_ns AS edge_ns FROM host_range AS h WHERE h.closed_ns IS NOT NULL
    ) AS u
),
-- the pieces of a range are numbered from its first edge to its last, or to the end
held AS (
    SELECT
        h.row_id,
        h.process,
        unnest(range(a.edge, coalesce(z.edge, a.edges + 1))) AS edge
    FROM host_range AS h
    INNER JOIN edge AS a ON h.process = a.process AND h.start_ns = a.edge_ns
    LEFT JOIN edge AS z ON h.process = z.process AND h.closed_ns = z.edge_ns
),
-- Of several calls with one id the outermost, which starts first, is the launch.
launch AS (
    SELECT
        c.process,
        c.correlation_id,
        min(c.start_ns) AS launch_ns
    FROM nsys.cuda_call AS c
    SEMI JOIN host_range AS h ON c.process = h.process
    GROUP BY c.process, c.correlation_id
),
piece AS (
    SELECT
        o.device,
        l.process,
        e.edge,
        min(o.start_ns) AS first_ns,
        max(o.end_ns) AS last_ns
    FROM launch AS l
    ASOF INNER JOIN edge AS e ON l.process = e.process AND l.launch_ns >= e.edge_ns
    INNER JOIN nsys.op AS o ON l.process = o.process AND l.correlation_id = o.correlation_id
    GROUP BY o.device, l.process, e.edge
),
work AS (
    SELECT
        p.device,
        h.row_id,
        min(p.first_ns) AS first_ns,
        max(p.last_ns) AS last_ns
    FROM held AS h
    INNER JOIN piece AS p ON h.process = p.process AND h.edge = p.edge
    GROUP BY p.device, h.row_id
),
moved AS (
    SELECT
        w.device,
        w.row_id,
        w.first_ns,
        w.last_ns,
        lead(w.first_ns) OVER (
            PARTITION BY w.device, h.process
            ORDER BY w.first_ns, h.start_ns, w.last_ns, w.row_id
        ) AS next_ns
    FROM work AS w
    INNER JOIN host_range AS h ON w.row_id = h.row_id
)
SELECT
    d.device,
    h.row_id,
    coalesce(m.first_ns, h.start_ns) AS start_ns,
    CASE
        WHEN h.is_unclosed AND m.first_ns > h.end_ns THEN NULL
        WHEN h.is_unclosed OR m.row_id IS NULL THEN h.end_ns
        ELSE coalesce(m.next_ns, m.last_ns)
    END AS end_ns,
    m.row_id IS NULL AS is_workless
FROM host_range AS h
INNER JOIN nsys.drive AS d ON h.process IS NOT DISTINCT FROM d.process
LEFT JOIN moved AS m ON d.device = m.device AND h.row_id = m.row_id;
