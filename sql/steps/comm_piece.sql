-- comm_piece — how do communication operations fall into the stretches between window borders?
--
-- An operation that crosses a border is cut there, so that each stretch adds up by itself.
--
-- @grain  one row per operation of nsys.comm_op and stretch that it touches
-- @reads  nsys.comm_op, nsys.comm_rival, nsys.segment
-- @column device         BIGINT  -  physical GPU
-- @column segment        BIGINT  -  stretch of nsys.segment
-- @column name_id        BIGINT  -  name of nsys.comm_group
-- @column is_start       BOOLEAN -  the operation starts here, and is counted here
-- @column start_ns       BIGINT  ns begin of the piece
-- @column end_ns         BIGINT  ns end of the piece
-- @column rival_start_ns BIGINT  ns time covered by other roles up to start_ns
-- @column rival_end_ns   BIGINT  ns time covered by other roles up to end_ns
-- @pitfall 1, 2
WITH placed AS (
    SELECT
        o.device,
        s.segment,
        o.name_id,
        o.role,
        o.start_ns,
        o.end_ns,
        s.end_ns AS border_ns,
    FROM nsys.comm_op AS o
    ASOF JOIN nsys.segment AS s ON s.device = o.device AND s.start_ns <= o.start_ns
),
piece AS (
    SELECT device, segment, name_id, role, true AS is_start, start_ns,
        least(end_ns, border_ns) AS end_ns
    FROM placed
    UNION ALL
    SELECT p.device, s.segment, p.name_id, p.role, false, s.start_ns, least(p.end_ns, s.end_ns)
    FROM (SELECT * FROM placed WHERE end_ns > border_ns) AS p
    INNER JOIN nsys.segment AS s
        ON s.device = p.device AND s.start_ns >= p.border_ns AND s.start_ns < p.end_ns
),
started AS (
    SELECT
        p.*,
        coalesce(r.before_ns + least(p.start_ns, r.end_ns) - r.start_ns, 0) AS rival_start_ns,
    FROM piece AS p
    ASOF LEFT JOIN nsys.comm_rival AS r
        ON r.device = p.device AND r.role = p.role AND r.start_ns <= p.start_ns
)
SELECT
    p.device,
    p.segment,
    p.name_id,
    p.is_start,
    p.start_ns,
    p.end_ns,
    p.rival_start_ns,
    coalesce(r.before_ns + least(p.end_ns, r.end_ns) - r.start_ns, 0) AS rival_end_ns,
FROM started AS p
ASOF LEFT JOIN nsys.comm_rival AS r
    ON r.device = p.device AND r.role = p.role AND r.start_ns <= p.end_ns;
