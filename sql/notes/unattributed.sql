-- unattributed — how much time lies after the last compute of a device?
--
-- @reads   nsys.budget_window
SELECT
    format(
        'device {}: up to {:.3f} ms of a window lie after the last compute kernel of the device '
        || 'and stay unattributed',
        device, max(unattributed_ns) / 1e6
    ) AS note,
FROM nsys.budget_window
GROUP BY device
HAVING max(unattributed_ns) > 0
ORDER BY device;
