-- groups — among ranks that do the same work, who is slow, by how much, and always the same one?
--
-- Ranks compare inside one declared stage and one fingerprint only (pitfall 4). In a synchronous
-- run all iterations take equally long, so the time without communication is compared beside the
-- iteration: there a slow rank shows. It repeats where the same ranks, one or several, are slower
-- than the fastest in most iterations that they have in common with it (repeat_pct, 75 %).
--
-- @grain  one row per group and metric
-- @reads  rank.member, rank.fingerprint, rank.member_window, rank.slower
-- @param  threshold_pct DOUBLE = 1 [0, 100] share of the metric from which a spread counts
-- @column group VARCHAR - ranks of one stage and one fingerprint
-- @column stage BIGINT - declared stage
-- @column metric VARCHAR - iteration, noncomm_busy, compute_busy or launch_starved
-- @column rank_count BIGINT count ranks in the group
-- @column ranks VARCHAR - which
-- @column median_ms DOUBLE ms median of the ranks' medians
-- @column fastest VARCHAR - rank with the least median
-- @column fastest_ms DOUBLE ms its median
-- @column slowest VARCHAR - rank with the greatest median, NULL where all have the same
-- @column slowest_ms DOUBLE ms greatest median
-- @column spread_ms DOUBLE ms slowest less fastest
-- @column spread_pct DOUBLE pct of the fastest iteration of the group
-- @column slow VARCHAR - ranks slower than the fastest by the threshold, again and again
-- @column slowest_in_pct DOUBLE pct iterations in which nobody is slower than the slowest
-- @column n BIGINT - iterations that the slowest rank and another have
-- @column pattern VARCHAR - repeats, rotates, no spread or alone
-- @pitfall 3, 4
WITH params AS (
    SELECT coalesce(getvariable('threshold_pct'), 1)::DOUBLE AS threshold_pct
),
valued AS (
    SELECT
        w.member_id,
        w.iteration,
        w.iteration_ns,
        unnest([
            {'seq': 0, 'metric': 'iteration', 'ns': w.iteration_ns},
            {'seq': 1, 'metric': 'noncomm_busy', 'ns': w.noncomm_busy_ns},
            {'seq': 2, 'metric': 'compute_busy', 'ns': w.compute_busy_ns},
            {'seq': 3, 'metric': 'launch_starved', 'ns': w.launch_starved_ns}
        ]) AS v,
    FROM rank.member_window AS w
),
per_rank AS (
    SELECT
        f.group_id,
        f.stage,
        v.v.seq AS seq,
        v.v.metric AS metric,
        v.member_id,
        median(v.v.ns) AS ns,
        median(v.iteration_ns) AS iteration_ns,
    FROM valued AS v
    INNER JOIN rank.fingerprint AS f ON f.member_id = v.member_id
    GROUP BY f.group_id, f.stage, v.v.seq, v.v.metric, v.member_id
),
per_group AS (
    SELECT
        r.group_id,
        r.stage,
        r.seq,
        r.metric,
        count(*) AS rank_count,
        string_agg(m.label, ', ' ORDER BY m.member_id) AS ranks,
        median(r.ns) AS median_ns,
        arg_min(r.member_id, (r.ns, r.member_id)) AS fastest_id,
        min(r.ns) AS fastest_ns,
        arg_max(r.member_id, (r.ns, -r.member_id)) AS slowest_id,
        max(r.ns) AS slowest_ns,
        min(r.iteration_ns) AS iteration_ns,
    FROM per_rank AS r
    INNER JOIN rank.member AS m ON m.member_id = r.member_id
    GROUP BY r.group_id, r.stage, r.seq, r.metric
),
per_iteration AS (
    SELECT
        f.group_id,
        v.v.seq AS seq,
        v.member_id,
        v.iteration,
        v.v.ns AS ns,
        max(v.v.ns) OVER together AS most_ns,
        count(*) OVER together AS ranks,
    FROM valued AS v
    INNER JOIN rank.fingerprint AS f ON f.member_id = v.member_id
    WINDOW together AS (PARTITION BY f.group_id, v.v.seq, v.iteration)
),
repeated AS (
    SELECT
        g.group_id,
        g.seq,
        count(*) AS n,
        100 * avg((i.ns = i.most_ns)::BIGINT) AS slowest_in_pct,
    FROM per_group AS g
    INNER JOIN per_iteration AS i
        ON i.seq = g.seq AND i.member_id = g.slowest_id
    WHERE i.ranks > 1
    GROUP BY g.group_id, g.seq
),
slow AS (
    SELECT w.group_id, w.metric, string_agg(m.label, ', ' ORDER BY m.member_id) AS ranks
    FROM rank.slower AS w
    INNER JOIN rank.member AS m ON m.member_id = w.member_id
    GROUP BY w.group_id, w.metric
)
SELECT
    'G' || g.group_id AS "group",
    g.stage,
    g.metric,
    g.rank_count,
    g.ranks,
    g.median_ns / 1e6 AS median_ms,
    f.label AS fastest,
    g.fastest_ns / 1e6 AS fastest_ms,
    -- of equals none is the slowest
    CASE WHEN g.slowest_ns > g.fastest_ns THEN s.label END AS slowest,
    g.slowest_ns / 1e6 AS slowest_ms,
    (g.slowest_ns - g.fastest_ns) / 1e6 AS spread_ms,
    100 * (g.slowest_ns - g.fastest_ns) / nullif(g.iteration_ns, 0) AS spread_pct,
    w.ranks AS slow,
    CASE WHEN g.slowest_ns > g.fastest_ns THEN r.slowest_in_pct END AS slowest_in_pct,
    coalesce(r.n, 0) AS n,
    CASE
        WHEN g.rank_count = 1 THEN 'alone'
        WHEN 100 * (g.slowest_ns - g.fastest_ns) < p.threshold_pct * g.iteration_ns THEN 'no spread'
        WHEN w.ranks IS NOT NULL THEN 'repeats'
        ELSE 'rotates'
    END AS pattern,
FROM per_group AS g
CROSS JOIN params AS p
LEFT JOIN repeated AS r ON r.group_id = g.group_id AND r.seq = g.seq
LEFT JOIN slow AS w ON w.group_id = g.group_id AND w.metric = g.metric
INNER JOIN rank.member AS f ON f.member_id = g.fastest_id
INNER JOIN rank.member AS s ON s.member_id = g.slowest_id
ORDER BY g.group_id, g.seq;
