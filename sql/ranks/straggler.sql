-- straggler — which ranks hold the others up again and again?
--
-- Those that are a culprit in most windows, of those windows that have matched collectives inside a
-- stage. How much is the median over the windows in which they are.
--
-- @grain  one row per rank that does so
-- @reads  rank.blame
-- @param  repeat_pct DOUBLE = 75 [0, 100] share of the windows from which a straggler repeats
WITH params AS (
    SELECT coalesce(getvariable('repeat_pct'), 75)::DOUBLE AS repeat_pct
),
windows AS (
    SELECT count(DISTINCT iteration) AS n FROM rank.blame
)
SELECT b.member_id, w.n AS windows, count(*) AS n, median(b.caused_ns) AS caused_ns
FROM rank.blame AS b
CROSS JOIN windows AS w
CROSS JOIN params AS p
WHERE b.member_id IS NOT NULL
GROUP BY b.member_id, w.n, p.repeat_pct
HAVING 100 * count(*) >= p.repeat_pct * w.n;
