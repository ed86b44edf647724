-- skew — do kernels start before their own launch?
--
-- @reads   nsys.gap_cut
WITH skewed AS (
    SELECT device, count(*) AS n, max(call_start_ns - end_ns) AS worst_ns
    FROM nsys.gap_cut
    WHERE call_start_ns > end_ns
    GROUP BY device
)
SELECT
    format(
        'device {}: {} kernels that end a gap start before their own launch call, by up to '
        || '{:.3f} ms: the clocks of host and device are skewed and their issue time is unknown',
        device, n, worst_ns / 1e6
    ) AS note,
FROM skewed
ORDER BY device;
