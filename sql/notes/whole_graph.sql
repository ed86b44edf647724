-- whole_graph — were CUDA graphs traced as a whole?
--
-- @reads   nsys.op
-- @pitfall 21
SELECT
    format(
        'device {}: {} CUDA graph executions were traced as a whole; they count as compute and '
        || 'what ran inside cannot be told (capture with --cuda-graph-trace=node to see it)',
        device, count(*)
    ) AS note,
FROM nsys.op
WHERE kind = 'graph'
GROUP BY device
ORDER BY device;
