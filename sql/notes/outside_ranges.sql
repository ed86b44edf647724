-- outside_ranges — how much device work was launched outside all push/pop ranges of its thread?
--
-- @reads   nsys.range_op, nsys.window_segment
-- @pitfall 22
WITH inside AS (
    SELECT DISTINCT device, segment FROM nsys.window_segment
)
SELECT
    format(
        'device {}: {:.1f} % of the operations were launched outside all push/pop ranges of their '
        || 'thread{}',
        o.device,
        100 * count(CASE WHEN o.path_no IS NULL THEN 1 END) / count(*),
        CASE
            WHEN count(CASE WHEN o.launch_ns IS NULL THEN 1 END) > 0
                THEN format(
                    ', {:.1f} % have no launch call',
                    100 * count(CASE WHEN o.launch_ns IS NULL THEN 1 END) / count(*)
                )
            ELSE ''
        END
    ) AS note,
FROM nsys.range_op AS o
INNER JOIN inside AS i ON i.device = o.device AND i.segment = o.segment
GROUP BY o.device
HAVING count(CASE WHEN o.path_no IS NULL THEN 1 END) > 0
ORDER BY o.device;
