-- heatmap — ranks by iterations: the figure behind each tile of a picture
--
-- @grain  one row per rank, steady window and metric
-- @reads  rank.member, rank.metric
-- @param  heatmap VARCHAR = 'iteration,jitter_wait_work,noncomm_busy' metrics, or all
-- @column metric VARCHAR - metric of the budget, or jitter_wait_work
-- @column rank BIGINT - rank as declared, NULL unknown
-- @column label VARCHAR - rank, or what stands for it where it is unknown
-- @column stage BIGINT - declared stage, NULL unknown
-- @column iteration BIGINT - ordinal of the window
-- @column value_ms DOUBLE ms the figure
WITH params AS (
    SELECT coalesce(
        getvariable('heatmap')::VARCHAR, 'iteration,jitter_wait_work,noncomm_busy'
    ) AS wanted
)
SELECT x.metric, m.rank, m.label, m.stage, x.iteration, x.ns / 1e6 AS value_ms
FROM rank.metric AS x
INNER JOIN rank.member AS m ON m.member_id = x.member_id
CROSS JOIN params AS p
WHERE p.wanted = 'all' OR list_contains(string_split(p.wanted, ','), x.metric)
ORDER BY x.seq, m.member_id, x.iteration;
