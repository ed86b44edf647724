-- blocking_part — which operation is to blame for each stretch of blocking time?
--
-- An operation that itself waited is not the cause: a copy of 2 us behind a collective of 5 ms
-- must not carry 5 ms. From the producer x of a gap's kernel the blame walks back: as long as
-- x has not started, whatever x itself followed and that still ran is blamed instead. So the
-- stretch falls into a few parts, each with one operation (pitfall 8: the producer is blamed,
-- never what happens to occupy the gap).
--
-- Each step of the walk holds x with the time [from_ns, to_ns) that it answers for and the
-- operation y that x followed. After its start, and after y's end, x keeps the time; before
-- both, y is next.
--
-- @grain  one row per part; parts of a gap are disjoint and cover its blocking time
-- @reads  nsys.gap_cut, nsys.stream_item, nsys.dependency, nsys.op_name
-- @column device       BIGINT  -  physical GPU
-- @column gap_start_ns BIGINT  ns begin of the gap
-- @column gap_op_id    BIGINT  -  operation that ends the gap and waited
-- @column start_ns     BIGINT  ns begin of the part
-- @column end_ns       BIGINT  ns end of the part
-- @column op_id        BIGINT  -  the operation to blame
-- @column role         VARCHAR -  its role
-- @pitfall 8
WITH RECURSIVE
step AS (
    SELECT
        c.device,
        c.start_ns AS gap_start_ns,
        c.op_id AS gap_op_id,
        c.issued_ns AS from_ns,
        c.unblocked_ns AS to_ns,
        c.producer_id AS op_id,
        c.producer_start_ns AS op_start_ns,
        i.name_id,
        CASE WHEN d.op_id IS NULL THEN i.prev_id ELSE d.follows_id END AS follows_id,
        CASE WHEN d.op_id IS NULL THEN i.prev_start_ns ELSE d.follows_start_ns END
            AS follows_start_ns,
        CASE WHEN d.op_id IS NULL THEN i.prev_end_ns ELSE d.follows_end_ns END AS follows_end_ns,
        CASE WHEN d.op_id IS NULL THEN i.prev_name_id ELSE d.follows_name_id END AS follows_name_id,
    FROM (
        SELECT device, start_ns, op_id, issued_ns, unblocked_ns, producer_id, producer_start_ns
        FROM nsys.gap_cut
        WHERE unblocked_ns > issued_ns AND producer_start_ns > issued_ns
    ) AS c
    INNER JOIN nsys.stream_item AS i ON i.item_id = c.producer_id
    LEFT JOIN nsys.dependency AS d ON d.op_id = c.producer_id
    UNION ALL
    SELECT
        s.device,
        s.gap_start_ns,
        s.gap_op_id,
        s.from_ns,
        least(s.to_ns, s.op_start_ns, s.follows_end_ns),
        s.follows_id,
        s.follows_start_ns,
        s.follows_name_id,
        CASE WHEN d.op_id IS NULL THEN i.prev_id ELSE d.follows_id END,
        CASE WHEN d.op_id IS NULL THEN i.prev_start_ns ELSE d.follows_start_ns END,
        CASE WHEN d.op_id IS NULL THEN i.prev_end_ns ELSE d.follows_end_ns END,
        CASE WHEN d.op_id IS NULL THEN i.prev_name_id ELSE d.follows_name_id END,
    FROM step AS s
    INNER JOIN nsys.stream_item AS i ON i.item_id = s.follows_id
    LEFT JOIN nsys.dependency AS d ON d.op_id = s.follows_id
    WHERE least(s.to_ns, s.op_start_ns) > s.from_ns AND s.follows_end_ns > s.from_ns
),
walked AS (
    SELECT s.*, n.role_code AS role
    FROM step AS s
    LEFT JOIN nsys.op_name AS n ON n.name_id = s.name_id
),
part AS (
    SELECT device, start_ns AS gap_start_ns, op_id AS gap_op_id, issued_ns AS start_ns,
        unblocked_ns AS end_ns, producer_id AS op_id, producer_role AS role
    FROM nsys.gap_cut
    WHERE unblocked_ns > issued_ns AND producer_start_ns <= issued_ns
    UNION ALL
    SELECT device, gap_start_ns, gap_op_id, greatest(from_ns, op_start_ns), to_ns, op_id, role
    FROM walked
    UNION ALL
    SELECT device, gap_start_ns, gap_op_id, greatest(from_ns, coalesce(follows_end_ns, from_ns)),
        least(to_ns, op_start_ns), op_id, role
    FROM walked
)
SELECT device, gap_start_ns, gap_op_id, start_ns, end_ns, op_id, role
FROM part
WHERE end_ns > start_ns;
