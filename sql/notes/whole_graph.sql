-- whole_graph — were CUDA graphs traced as a whole?
--
-- @reads   nsys.whole_graph
-- @pitfall 21
SELECT
    format(
        'device {}: {} CUDA graph executions were traced as a whole; they count as compute and '
        || 'what ran inside cannot be told (capture with --cuda-graph-trace=node to see it)',
        device, count
    ) AS note,
FROM nsys.whole_graph
ORDER BY device;
