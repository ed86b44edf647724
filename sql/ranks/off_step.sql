-- off_step — whose windows count other steps than those of the other ranks on the same clock?
--
-- Windows that start and end more than half an iteration away from the typical one of their ordinal.
-- A window that only starts elsewhere is start skew, and one that is late as a whole may be so by
-- its rank's own fault: where matched collectives end together the steps are the same. A rank that
-- is alone on a clock that is not aligned cannot be checked.
--
-- @grain  one row per rank that does so
-- @reads  rank.member_window, rank.aligned, rank.clock, rank.arrival_instance
-- @pitfall 23
WITH placed AS (
    SELECT
        w.member_id,
        w.iteration,
        w.iteration_ns,
        a.is_aligned,
        CASE WHEN a.is_aligned THEN '' ELSE c.clock END AS place,
        w.start_ns + CASE WHEN a.is_aligned THEN a.offset_ns ELSE 0 END AS start_ns,
        w.end_ns + CASE WHEN a.is_aligned THEN a.offset_ns ELSE 0 END AS end_ns,
    FROM rank.member_window AS w
    INNER JOIN rank.aligned AS a ON a.member_id = w.member_id
    INNER JOIN rank.clock AS c ON c.member_id = w.member_id
),
typical AS (
    SELECT
        place,
        iteration,
        quantile_disc(start_ns, 0.5) AS start_ns,
        quantile_disc(end_ns, 0.5) AS end_ns,
    FROM placed
    GROUP BY place, iteration
),
off AS (
    SELECT
        p.member_id,
        p.is_aligned,
        median(p.start_ns - t.start_ns) AS start_off_ns,
        median(p.end_ns - t.end_ns) AS end_off_ns,
        median(p.iteration_ns) AS iteration_ns,
    FROM placed AS p
    INNER JOIN typical AS t ON t.place = p.place AND t.iteration = p.iteration
    GROUP BY p.member_id, p.is_aligned
),
met AS (
    SELECT member_id, bool_or(is_apart) AS is_apart FROM rank.arrival_instance GROUP BY member_id
)
SELECT
    o.member_id,
    CASE WHEN o.start_off_ns > 0 THEN least(o.start_off_ns, o.end_off_ns)
        ELSE greatest(o.start_off_ns, o.end_off_ns) END AS off_ns,
FROM off AS o
LEFT JOIN met AS m ON m.member_id = o.member_id
WHERE sign(o.start_off_ns) = sign(o.end_off_ns)
  AND 2 * least(abs(o.start_off_ns), abs(o.end_off_ns)) > o.iteration_ns
  AND (m.is_apart OR m.member_id IS NULL OR NOT o.is_aligned);
