-- blame — which rank held the others up most in each window?
--
-- A window in which nobody did so for more than the threshold has no culprit.
--
-- @grain  one row per window with matched collectives
-- @reads  rank.delay
-- @param  threshold_pct DOUBLE = 1 [0, 100] share of an iteration from which a delay counts
WITH params AS (
    SELECT coalesce(getvariable('threshold_pct'), 1)::DOUBLE / 100 AS threshold
),
worst AS (
    SELECT
        iteration,
        median(iteration_ns) AS iteration_ns,
        max(caused_ns) AS caused_ns,
        arg_max(member_id, (caused_ns, -member_id)) AS member_id,
        bool_and(is_timed) AS is_timed,
    FROM rank.delay
    GROUP BY iteration
)
SELECT
    w.iteration,
    CASE WHEN w.caused_ns > p.threshold * w.iteration_ns THEN w.member_id END AS member_id,
    w.caused_ns,
    w.is_timed,
FROM worst AS w
CROSS JOIN params AS p;
