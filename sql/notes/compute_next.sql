-- compute_next — which kernels should Nsight Compute look at?
--
-- Time in which a device computes is no opportunity here: Nsight Systems shows where and how long
-- a kernel runs, not why it is not faster. Named are the classes with at least a tenth of the work
-- of role compute, and the kernel with the most work in each. A whole CUDA graph is no kernel: its
-- share is told, and that its nodes have to be seen first (pitfall 21).
--
-- @reads   nsys.budget_window, nsys.name_window, nsys.op_name
-- @pitfall 21
WITH busy AS (
    SELECT device, 100 * median(compute_busy_ns) / median(iteration_ns) AS pct
    FROM nsys.budget_window
    GROUP BY device
),
work AS (
    SELECT m.device, n.class, n.name, sum(m.work_ns) AS work_ns
    FROM nsys.name_window AS m
    INNER JOIN nsys.op_name AS n ON n.name_id = m.name_id
    WHERE n.role = 'compute'
    GROUP BY m.device, n.class, n.name
),
class_work AS (
    SELECT
        device,
        class,
        arg_max(name, (work_ns, name)) AS name,
        100 * sum(work_ns) / sum(sum(work_ns)) OVER (PARTITION BY device) AS pct,
    FROM work
    GROUP BY device, class
)
SELECT
    format(
        'device {}: compute is busy {:.1f} % of the iteration; for its kernels Nsight Compute is '
        || 'next: {}',
        b.device,
        any_value(b.pct),
        string_agg(
            CASE
                WHEN c.class = 'graph'
                    THEN format('whole CUDA graphs {:.0f} % of compute work, whose kernels a capture '
                        || 'with --cuda-graph-trace=node has to show first', c.pct)
                ELSE format('{} {:.0f} % of compute work, most of it in {}', c.class, c.pct,
                    coalesce(left(c.name, 80), '(unnamed kernel)'))
            END,
            '; ' ORDER BY c.pct DESC, c.class
        )
    ) AS note,
FROM busy AS b
INNER JOIN class_work AS c ON c.device = b.device
WHERE c.pct >= 10
GROUP BY b.device
ORDER BY b.device;
