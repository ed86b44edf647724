-- comm_window — how much communication of each kind does each steady window hold?
--
-- The pieces of a set are walked in time order; what a piece reaches beyond all pieces before it
-- adds to the union of its stretch, and that addition less what other roles cover of it adds to
-- the exposed time. No piece crosses a border, so one walk over the report serves all stretches.
-- A window takes the sum of its stretches.
--
-- @grain  one row per steady window of a device and set that occurs in it; `all` in every window
-- @reads  nsys.window_segment, nsys.steady, nsys.comm_group, nsys.comm_op, nsys.comm_piece,
--         nsys.comm_rival, nsys.blame_segment
-- @column device      BIGINT -  physical GPU
-- @column iteration   BIGINT -  ordinal of the window on its device
-- @column set_id      BIGINT -  set of nsys.comm_group
-- @column count       BIGINT -  operations that start in the window
-- @column work_ns     BIGINT ns sum of clipped durations: work volume, not wall time
-- @column busy_ns     BIGINT ns union of the set
-- @column exposed_ns  BIGINT ns the set runs, and no operation of another role
-- @column blocking_ns BIGINT ns blocking time that an operation of the set is to blame for
-- @pitfall 1, 7, 8
WITH member AS (
    SELECT
        p.device,
        p.segment,
        g.set_id,
        p.is_start,
        p.start_ns,
        p.end_ns,
        r.rival_start_ns,
        r.rival_end_ns,
        max(p.end_ns) OVER comm_before AS reached_ns,
        max(r.rival_end_ns) OVER comm_before AS rival_reached_ns,
    FROM nsys.comm_piece AS p
    INNER JOIN nsys.comm_rival AS r ON r.piece_id = p.piece_id
    INNER JOIN nsys.comm_group AS g ON g.name_id = p.name_id AND g.set_id = g.same_id
    WINDOW comm_before AS (
        PARTITION BY p.device, g.set_id
        ORDER BY p.start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
),
-- greatest() skips the NULL of the first piece; cover only grows, so it is monotone like time
added AS (
    SELECT
        device,
        segment,
        set_id,
        is_start,
        end_ns - start_ns AS work_ns,
        greatest(0, end_ns - greatest(start_ns, reached_ns)) AS busy_ns,
        greatest(0, rival_end_ns - greatest(rival_start_ns, rival_reached_ns)) AS rival_ns,
    FROM member
),
part AS (
    SELECT
        device,
        segment,
        set_id,
        count(*) FILTER (WHERE is_start) AS count,
        sum(work_ns) AS work_ns,
        sum(busy_ns) AS busy_ns,
        sum(busy_ns - rival_ns) AS exposed_ns,
        0 AS blocking_ns,
    FROM added
    GROUP BY device, segment, set_id
    UNION ALL
    SELECT b.device, b.segment, g.set_id, 0, 0, 0, 0, sum(b.blocking_ns)
    FROM nsys.blame_segment AS b
    INNER JOIN nsys.comm_op AS o ON o.op_id = b.op_id
    INNER JOIN nsys.comm_group AS g ON g.name_id = o.name_id AND g.set_id = g.same_id
    GROUP BY b.device, b.segment, g.set_id
),
same AS (
    SELECT DISTINCT set_id, same_id FROM nsys.comm_group
),
window_part AS (
    SELECT w.device, w.iteration, g.set_id, p.count, p.work_ns, p.busy_ns, p.exposed_ns,
        p.blocking_ns
    FROM nsys.window_segment AS w
    INNER JOIN part AS p ON p.device = w.device AND p.segment = w.segment
    INNER JOIN same AS g ON g.same_id = p.set_id
    UNION ALL
    SELECT device, iteration, 0, 0, 0, 0, 0, 0 FROM nsys.steady
)
SELECT
    device,
    iteration,
    set_id,
    sum(count)::BIGINT AS count,
    sum(work_ns)::BIGINT AS work_ns,
    sum(busy_ns)::BIGINT AS busy_ns,
    sum(exposed_ns)::BIGINT AS exposed_ns,
    sum(blocking_ns)::BIGINT AS blocking_ns,
FROM window_part
GROUP BY device, iteration, set_id;
