-- blame — which ranks held the others up in each window?
--
-- All that did so for more than the threshold: of two that are equally slow neither is to be missed.
-- Nobody holds others up for longer than the longest window lasts: such a figure comes of windows
-- that count other steps, and blames nobody.
--
-- @grain  one row per window with matched collectives and culprit, one without where it has none
-- @reads  rank.delay
-- @param  threshold_pct DOUBLE = 1 [0, 100] share of an iteration from which a delay counts
WITH params AS (
    SELECT coalesce(getvariable('threshold_pct'), 1)::DOUBLE / 100 AS threshold
),
whole AS (
    SELECT
        iteration,
        median(iteration_ns) AS iteration_ns,
        max(iteration_ns) AS longest_ns,
        bool_and(is_timed) AS is_timed,
    FROM rank.delay
    GROUP BY iteration
)
SELECT w.iteration, d.member_id, d.caused_ns, w.is_timed
FROM whole AS w
CROSS JOIN params AS p
LEFT JOIN rank.delay AS d
    ON
        d.iteration = w.iteration
        AND d.caused_ns > p.threshold * w.iteration_ns
        AND d.caused_ns <= w.longest_ns;
