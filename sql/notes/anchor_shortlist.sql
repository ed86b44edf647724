-- anchor_shortlist — how many recurring ranges and kernels are not among the candidates?
--
-- Only the most promising are looked at; any other can be given by name.
--
-- @reads   nsys.nvtx_pattern, nsys.kernel_family, nsys.stream_item
WITH kernel_name AS (
    SELECT DISTINCT o.name_id
    FROM nsys.stream_item AS o
    WHERE o.kind = 0
    GROUP BY o.device, o.name_id
    HAVING count(*) >= 3
),
total AS (
    SELECT
        (SELECT count(*) FROM nsys.nvtx_pattern) AS ranges,
        (SELECT count(*) FROM nsys.nvtx_pattern WHERE left_out IS NULL) AS ranges_tried,
        (
            SELECT string_agg(DISTINCT left_out, ' and ' ORDER BY left_out)
            FROM nsys.nvtx_pattern
        ) AS ranges_left_out,
        (SELECT count(*) FROM kernel_name) AS kernels,
        (SELECT count(DISTINCT pattern) FROM nsys.kernel_family) AS kernels_tried
)
SELECT note
FROM (
    SELECT 1 AS position,
        format(
            '{} of {} recurring names of NVTX ranges were tried, those named like a step before '
            || 'those that span most time: {}; any other can be given as --anchor nvtx:PATTERN',
            ranges_tried, ranges, ranges_left_out
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
