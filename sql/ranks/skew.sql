-- skew — is a longer window one that ends later, or one that starts earlier?
--
-- Each rank against the fastest of its own stage and fingerprint, over the windows that both have.
-- What a window is longer is exactly its earlier start plus its later end (pitfall 23).
--
-- @grain  one row per rank whose group has a faster one
-- @reads  rank.aligned_window, rank.fingerprint, rank.aligned
-- @param  threshold_pct DOUBLE = 1 [0, 100] share of an iteration from which a difference counts
-- @pitfall 4, 23
WITH params AS (
    SELECT coalesce(getvariable('threshold_pct'), 1)::DOUBLE / 100 AS threshold
),
typical AS (
    SELECT f.group_id, w.member_id, median(w.iteration_ns) AS iteration_ns
    FROM rank.aligned_window AS w
    INNER JOIN rank.fingerprint AS f ON f.member_id = w.member_id
    GROUP BY f.group_id, w.member_id
),
fastest AS (
    SELECT
        group_id,
        arg_min(member_id, (iteration_ns, member_id)) AS member_id,
        min(iteration_ns) AS iteration_ns,
    FROM typical
    GROUP BY group_id
),
compared AS (
    SELECT
        t.member_id,
        f.member_id AS peer_id,
        f.iteration_ns AS peer_ns,
        count(*) AS n,
        median(w.iteration_ns - z.iteration_ns) AS longer_ns,
        median(z.start_ns - w.start_ns) AS earlier_start_ns,
        median(w.end_ns - z.end_ns) AS later_end_ns,
    FROM typical AS t
    INNER JOIN fastest AS f ON f.group_id = t.group_id AND f.member_id <> t.member_id
    INNER JOIN rank.aligned_window AS w ON w.member_id = t.member_id
    INNER JOIN rank.aligned_window AS z
        ON z.member_id = f.member_id AND z.iteration = w.iteration
    GROUP BY t.member_id, f.member_id, f.iteration_ns
),
judged AS (
    SELECT
        c.*,
        greatest(
            p.threshold * c.peer_ns, 2 * coalesce(a.p95_ns, 0), 2 * coalesce(z.p95_ns, 0)
        ) AS tolerance_ns,
    FROM compared AS c
    CROSS JOIN params AS p
    INNER JOIN rank.aligned AS a ON a.member_id = c.member_id
    INNER JOIN rank.aligned AS z ON z.member_id = c.peer_id
)
SELECT
    *,
    CASE
        WHEN longer_ns <= tolerance_ns THEN 'as long'
        WHEN later_end_ns IS NULL THEN 'longer, clocks not aligned'
        WHEN later_end_ns <= greatest(tolerance_ns, longer_ns / 10) THEN 'start_skew'
        WHEN earlier_start_ns <= greatest(tolerance_ns, longer_ns / 10) THEN 'late_finish'
        ELSE 'start_skew and late_finish'
    END AS judgement,
FROM judged;
