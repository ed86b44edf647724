-- unattributed — how much time lies after the last compute of a device?
--
-- Where that is all of it, nothing tells computing nothing from kernels that were not captured.
--
-- @reads   nsys.budget_window
SELECT
    CASE
        WHEN sum(unattributed_ns) = sum(iteration_ns)
            THEN format(
                'device {}: no compute kernel is in the trace from its first window on, so all of '
                || 'their time stays unattributed; whether none ran or none was captured is unknown',
                device
            )
        ELSE format(
            'device {}: up to {:.3f} ms of a window lie after the last compute kernel of the '
            || 'device and stay unattributed',
            device, max(unattributed_ns) / 1e6
        )
    END AS note,
FROM nsys.budget_window
GROUP BY device
HAVING max(unattributed_ns) > 0
ORDER BY device;
