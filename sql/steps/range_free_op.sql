-- range_free_op — which operations were launched inside start/end ranges?
--
-- Such ranges may overlap, so an operation may lie in several. The launches of a thread are
-- numbered in time, and each stretch of a path covers a run of those numbers.
--
-- @grain  one row per operation and start/end path that it was launched in
-- @reads  nsys.range_op, nsys.range_instance
-- @column path_no  BIGINT  -  path of nsys.range_path
-- @column range_no BIGINT  -  first range of the stretch: ranges of a path that overlap are one
-- @column op_id    BIGINT  -  the operation
WITH free AS (
    SELECT i.path_no, i.thread, i.range_no, i.start_ns, i.end_ns
    FROM nsys.range_instance AS i
    WHERE i.range_no < 0 AND i.end_ns > i.start_ns
),
reached AS (
    SELECT *, max(end_ns) OVER (
        PARTITION BY path_no, thread ORDER BY start_ns, range_no DESC
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS reached_ns
    FROM free
),
counted AS (
    SELECT *, count(CASE WHEN reached_ns IS NULL OR start_ns > reached_ns THEN 1 END) OVER (
        PARTITION BY path_no, thread ORDER BY start_ns, range_no DESC
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS island
    FROM reached
),
stretch AS (
    SELECT path_no, thread, max(range_no) AS range_no, min(start_ns) AS start_ns,
        max(end_ns) AS end_ns
    FROM counted
    GROUP BY path_no, thread, island
),
launch AS (
    SELECT op_id, thread, launch_ns,
        row_number() OVER (PARTITION BY thread ORDER BY launch_ns, op_id) AS position
    FROM nsys.range_op
    WHERE thread IN (SELECT thread FROM free)
),
-- the last launch at each time
ladder AS (
    SELECT thread, launch_ns, max(position) AS position FROM launch GROUP BY thread, launch_ns
),
run AS (
    SELECT s.path_no, s.range_no, s.thread,
        coalesce(a.position, 0) + 1 AS from_position, z.position AS to_position
    FROM stretch AS s
    ASOF JOIN ladder AS z ON z.thread = s.thread AND z.launch_ns < s.end_ns
    ASOF LEFT JOIN ladder AS a ON a.thread = s.thread AND a.launch_ns < s.start_ns
)
SELECT r.path_no, r.range_no, l.op_id
FROM (
    SELECT path_no, range_no, thread, unnest(range(from_position, to_position + 1)) AS position
    FROM run
) AS r
INNER JOIN launch AS l ON l.thread = r.thread AND l.position = r.position;
