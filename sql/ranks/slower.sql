-- slower — which ranks are slower than the fastest of their group again and again, and in what?
--
-- Inside one declared stage and one fingerprint only (pitfall 4), where the medians of the slowest
-- and the fastest lie at least the threshold apart. Whether anybody waits for them is another
-- question.
--
-- @grain  one row per rank and metric in which it is
-- @reads  rank.fingerprint, rank.member_window
-- @param  threshold_pct DOUBLE = 1 [0, 100] share of the iteration from which a spread counts
-- @param  repeat_pct DOUBLE = 75 [0, 100] share of the iterations from which a slow rank repeats
-- @pitfall 3, 4
WITH params AS (
    SELECT
        coalesce(getvariable('threshold_pct'), 1)::DOUBLE AS threshold_pct,
        coalesce(getvariable('repeat_pct'), 75)::DOUBLE AS repeat_pct,
),
valued AS (
    SELECT
        f.group_id,
        w.member_id,
        w.iteration,
        w.iteration_ns,
        unnest([
            {'metric': 'iteration', 'ns': w.iteration_ns},
            {'metric': 'noncomm_busy', 'ns': w.noncomm_busy_ns},
            {'metric': 'compute_busy', 'ns': w.compute_busy_ns},
            {'metric': 'launch_starved', 'ns': w.launch_starved_ns}
        ], recursive := true),
    FROM rank.member_window AS w
    INNER JOIN rank.fingerprint AS f ON f.member_id = w.member_id
),
per_rank AS (
    SELECT
        group_id,
        metric,
        member_id,
        median(ns) AS ns,
        median(iteration_ns) AS iteration_ns,
    FROM valued
    GROUP BY group_id, metric, member_id
),
per_group AS (
    SELECT
        group_id,
        metric,
        arg_min(member_id, (ns, member_id)) AS fastest_id,
        min(ns) AS fastest_ns,
        max(ns) AS slowest_ns,
        min(iteration_ns) AS iteration_ns,
    FROM per_rank
    GROUP BY group_id, metric
)
SELECT
    i.group_id,
    i.metric,
    i.member_id,
    median(i.ns - z.ns) AS longer_ns,
FROM per_group AS g
CROSS JOIN params AS p
INNER JOIN valued AS i ON i.group_id = g.group_id AND i.metric = g.metric
INNER JOIN valued AS z
    ON
        z.group_id = g.group_id AND z.metric = g.metric
        AND z.member_id = g.fastest_id AND z.iteration = i.iteration
WHERE i.member_id <> g.fastest_id
  AND 100 * (g.slowest_ns - g.fastest_ns) >= p.threshold_pct * g.iteration_ns
GROUP BY i.group_id, i.metric, i.member_id, p.repeat_pct
HAVING
    100 * avg((100 * (i.ns - z.ns) >= p.threshold_pct * g.iteration_ns)::BIGINT) >= p.repeat_pct;
