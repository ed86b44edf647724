-- between_windows — how much time lies between the windows, and so in no budget?
--
-- @reads   nsys.window_period
SELECT
    format(
        'device {}: {:.0f} % of the time lies between the steady windows and is in no budget: a '
        || 'window takes {}, from its start to that of the next it is {} (medians); shares and '
        || 'ceilings are those of the window',
        device, 100 * between_ns / span_ns, nsys.duration_text(window_ns),
        nsys.duration_text(period_ns)
    ) AS note,
FROM nsys.window_period
WHERE between_ns >= 0.05 * span_ns
ORDER BY device;
