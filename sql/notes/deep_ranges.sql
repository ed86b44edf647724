-- deep_ranges — which ranges count for another one because they nest too deep, or never end?
--
-- @reads   nsys.range_nest, nsys.nvtx, nsys.session_end
SELECT note
FROM (
    SELECT 1 AS position,
        format(
            '{} NVTX ranges nest deeper than eight levels (up to {}) and count for the range of '
            || 'level eight around them', count(*), max(depth)
        ) AS note
    FROM nsys.range_nest
    WHERE kind > 0 AND depth > 8
    HAVING count(*) > 0
    UNION ALL
    SELECT 2,
        format(
            '{} NVTX ranges were still open when the capture ended and count until then',
            -- of equal ranges one counts
            count(DISTINCT (n.process, n.thread, n.start_ns, n.end_ns, n.text))
        )
    FROM nsys.nvtx AS n, nsys.session_end AS s
    WHERE n.event_type IN (59, 60, 70, 71) AND nsys.is_unclosed(n.end_ns, s.session_end_ns)
    HAVING count(*) > 0
) AS remark
ORDER BY position;
