-- outside_ranges — how much device work was launched outside all push/pop ranges of its thread?
--
-- @reads   nsys.range_op, nsys.segment, nsys.steady
-- @pitfall 22
WITH inside AS (
    SELECT DISTINCT s.device, s.segment
    FROM nsys.segment AS s
    INNER JOIN nsys.steady AS w
        ON w.device = s.device AND s.start_ns >= w.start_ns AND s.end_ns <= w.end_ns
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
