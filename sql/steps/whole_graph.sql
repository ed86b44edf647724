-- whole_graph — how many CUDA graph executions were traced as a whole?
--
-- @grain  one row per device with such executions
-- @reads  nsys.stream_item
-- @column device BIGINT - physical GPU
-- @column count  BIGINT - executions of which only the whole was traced
-- @pitfall 21
SELECT device, count(*) AS count
FROM nsys.stream_item -- pitfall 21: what ran inside them is not in the trace
WHERE kind = 3
GROUP BY device;
