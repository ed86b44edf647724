-- shadowed — would launching faster alone recover the launch-starved time?
--
-- @reads   nsys.budget_window
SELECT
    format(
        'device {}: {:.1f} % of launch_starved is shadowed: the producer itself was still '
        || 'running, so faster launching alone cannot recover it',
        device, 100 * sum(launch_starved_shadowed_ns) / sum(launch_starved_ns)
    ) AS note,
FROM nsys.budget_window
GROUP BY device
-- what rounds to 0.0 % is nothing to be told of
HAVING sum(launch_starved_shadowed_ns) >= 0.0005 * sum(launch_starved_ns)
    AND sum(launch_starved_shadowed_ns) > 0
ORDER BY device;
