-- anchor_shortlist — how many recurring ranges and kernels are not among the candidates?
--
-- Only the most promising are looked at; any other can be given by name.
--
-- @reads   nsys.nvtx_family, nsys.kernel_family, nsys.stream_item
-- @param   device BIGINT = NULL the only device to report
WITH params AS (
    SELECT getvariable('device')::BIGINT AS device
),
range_name AS (
    SELECT pattern, sum(range_count) AS range_count
    FROM nsys.nvtx_family
    GROUP BY pattern
    HAVING sum(range_count) >= 2
),
kernel_name AS (
    SELECT DISTINCT o.name_id
    FROM nsys.stream_item AS o
    INNER JOIN params AS p ON p.device IS NULL OR o.device = p.device
    WHERE o.kind = 0
    GROUP BY o.device, o.name_id
    HAVING count(*) >= 3
),
total AS (
    SELECT
        (SELECT count(*) FROM range_name) AS ranges,
        (
            SELECT least(count(*) FILTER (WHERE range_count <= 100000), 60)
            FROM range_name
        ) AS ranges_tried,
        (SELECT count(*) FROM kernel_name) AS kernels,
        (SELECT count(DISTINCT pattern) FROM nsys.kernel_family) AS kernels_tried
)
SELECT note
FROM (
    SELECT 1 AS position,
        format(
            '{} of {} recurring names of NVTX ranges were tried: at most 60, those named like a '
            || 'step before those that span most time, and none with over 100 000 ranges; any '
            || 'other can be given as --anchor nvtx:PATTERN', ranges_tried, ranges
        ) AS note
    FROM total
    WHERE ranges > ranges_tried
    UNION ALL
    SELECT 2,
        format(
            '{} of {} recurring kernels were tried: those that run 3 to 10 000 times through half '
            || 'of the trace, of equal counts two, at most 8 collectives, 8 optimizer kernels and '
            || '24 others; any other can be given as --anchor kernel:PATTERN or nccl:PATTERN',
            kernels_tried, kernels
        )
    FROM total
    WHERE kernels > kernels_tried
) AS remark
ORDER BY position;
