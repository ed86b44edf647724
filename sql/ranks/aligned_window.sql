-- aligned_window — when does each window start and end on the common clock?
--
-- @grain  one row per rank and steady window; times are NULL where the alignment is weak
-- @reads  rank.member_window, rank.aligned
SELECT
    w.member_id,
    w.iteration,
    w.iteration_ns,
    CASE WHEN a.is_aligned THEN w.start_ns + a.offset_ns END AS start_ns,
    CASE WHEN a.is_aligned THEN w.end_ns + a.offset_ns END AS end_ns,
FROM rank.member_window AS w
INNER JOIN rank.aligned AS a ON a.member_id = w.member_id;
