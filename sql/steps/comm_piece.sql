-- comm_piece — how do communication operations fall into the steady windows?
--
-- An operation that crosses a border of a window is cut there, so that each stretch between two
-- borders adds up by itself. Stretches that belong to no window are left out.
--
-- @grain  one row per operation of nsys.comm_op and stretch that it touches
-- @reads  nsys.comm_op, nsys.segment, nsys.window_segment
-- @column piece_id BIGINT  -  number of the piece
-- @column device   BIGINT  -  physical GPU
-- @column segment  BIGINT  -  stretch of nsys.segment
-- @column name_id  BIGINT  -  name of nsys.comm_group
-- @column role     ENUM    -  role of the operation
-- @column is_start BOOLEAN -  the operation starts here, and is counted here
-- @column start_ns BIGINT  ns begin of the piece
-- @column end_ns   BIGINT  ns end of the piece
-- @pitfall 1, 2
WITH op AS NOT MATERIALIZED (
    SELECT device, name_id, role, start_ns, end_ns FROM nsys.comm_op
),
placed AS (
    FROM nsys.iv_place('op', 'nsys.segment')
),
-- the stretches behind the border that it reaches into
crossing AS (
    SELECT p.*, unnest(range(p.segment + 1, z.segment + 1)) AS later
    FROM (SELECT * FROM placed WHERE end_ns > border_ns) AS p
    ASOF JOIN nsys.segment AS z ON z.device = p.device AND z.start_ns < p.end_ns
),
piece AS (
    SELECT device, segment, name_id, role, true AS is_start, start_ns,
        least(end_ns, border_ns) AS end_ns
    FROM placed
    UNION ALL
    SELECT p.device, s.segment, p.name_id, p.role, false, s.start_ns, least(p.end_ns, s.end_ns)
    FROM crossing AS p
    INNER JOIN nsys.segment AS s ON s.device = p.device AND s.segment = p.later
),
inside AS (
    SELECT DISTINCT device, segment FROM nsys.window_segment
)
SELECT
    row_number() OVER () AS piece_id,
    p.device,
    p.segment,
    p.name_id,
    p.role,
    p.is_start,
    p.start_ns,
    p.end_ns,
FROM piece AS p
INNER JOIN inside AS i ON i.device = p.device AND i.segment = p.segment;
