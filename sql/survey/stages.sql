-- stages — how do the budgets of the stages compare?
--
-- Every metric of the budget, the median of the medians of the stage's sampled ranks. Stages hold
-- different parts of a model: side by side, not better or worse (pitfall 4).
--
-- @grain  one row per stage and metric
-- @reads  rank.member, rank.metric
-- @column stage BIGINT - declared stage, NULL unknown
-- @column metric VARCHAR - metric of the budget, or jitter_wait_work
-- @column rank_count BIGINT count sampled ranks of the stage
-- @column median_ms DOUBLE ms median of the ranks' medians
-- @column min_ms DOUBLE ms least median of a rank
-- @column max_ms DOUBLE ms greatest median of a rank
-- @pitfall 3, 4
WITH per_rank AS (
    SELECT m.stage, m.member_id, x.seq, x.metric, median(x.ns) AS ns
    FROM rank.member AS m
    INNER JOIN rank.metric AS x ON x.member_id = m.member_id
    GROUP BY m.stage, m.member_id, x.seq, x.metric
)
SELECT
    stage,
    metric,
    count(*) AS rank_count,
    median(ns) / 1e6 AS median_ms,
    min(ns) / 1e6 AS min_ms,
    max(ns) / 1e6 AS max_ms,
FROM per_rank
GROUP BY stage, seq, metric
ORDER BY stage NULLS LAST, seq;
