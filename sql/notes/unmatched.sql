-- unmatched — which material kernels does no rule of the taxonomy know?
--
-- @reads   nsys.kernel_name, nsys.name_window
-- @pitfall 20
WITH total AS (
    SELECT sum(work_ns) AS work_ns FROM nsys.name_window WHERE name_id NOT IN (-1, -2, -3)
),
unknown AS (
    SELECT n.name, 100 * sum(m.work_ns) / any_value(t.work_ns) AS pct
    FROM nsys.name_window AS m
    INNER JOIN nsys.kernel_name AS n ON n.name_id = m.name_id
    CROSS JOIN total AS t
    WHERE NOT n.is_matched
    GROUP BY n.name
    HAVING pct >= 1
)
SELECT
    format(
        'no taxonomy rule knows {} ({:.1f} % of kernel work); it counts as compute, class other',
        coalesce(left(name, 120), '(unnamed kernel)'), pct
    ) AS note,
FROM unknown
ORDER BY pct DESC, name;
