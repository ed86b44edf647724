-- content — what does an iteration of each side consist of?
--
-- Medians over the steady windows of counts, bytes and work; a window without counts 0. Kinds:
-- class and kernel (compute only), collective, copy (by direction), launch.
--
-- @grain  one row per pair, side, kind and key
-- @reads  pair.work, pair.copy, pair.launch, pair.window
WITH counted AS (
    SELECT pair, side, iteration, 'class' AS kind, class AS key, class,
        sum(count) AS n, sum(work_ns) AS work_ns, NULL AS bytes
    FROM pair.work
    WHERE role = 'compute'
    GROUP BY pair, side, iteration, class
    UNION ALL
    SELECT pair, side, iteration, 'kernel', coalesce(name, '(no name)'), class,
        sum(count), sum(work_ns), NULL
    FROM pair.work
    WHERE role = 'compute'
    GROUP BY pair, side, iteration, coalesce(name, '(no name)'), class
    UNION ALL
    SELECT pair, side, iteration, 'collective', class || ' ' || coalesce(collective, 'other'),
        class, sum(count), sum(work_ns), NULL
    FROM pair.work
    WHERE role = 'comm'
    GROUP BY pair, side, iteration, class, coalesce(collective, 'other')
    UNION ALL
    SELECT pair, side, iteration, 'copy', direction, NULL, sum(count), sum(work_ns), sum(bytes)
    FROM pair.copy
    GROUP BY pair, side, iteration, direction
    UNION ALL
    SELECT pair, side, iteration, 'launch', u.key, NULL, u.n, NULL, NULL
    FROM pair.launch
    CROSS JOIN LATERAL (
        VALUES
            ('kernels', kernel_count),
            ('kernel launches', launch_call_count),
            ('graph launches', graph_launch_count),
            ('CUDA API calls', call_count),
    ) AS u (key, n)
),
listed AS (
    SELECT
        pair,
        side,
        kind,
        key,
        any_value(class) AS class,
        list(n::BIGINT) AS counts,
        list(coalesce(work_ns, 0)::BIGINT) AS works,
        list(coalesce(bytes, 0)::BIGINT) AS sizes,
    FROM counted
    GROUP BY pair, side, kind, key
)
SELECT
    l.pair,
    l.side,
    l.kind,
    l.key,
    l.class,
    nsys.padded_median(l.counts, w.n)::DOUBLE AS count,
    nsys.padded_middle(l.works, w.n) AS work_ns,
    nsys.padded_middle(l.sizes, w.n) AS bytes,
    nsys.padded_min(l.counts, w.n)::BIGINT AS min_count,
    nsys.padded_max(l.counts, w.n)::BIGINT AS max_count,
FROM listed AS l
INNER JOIN pair.window AS w ON w.pair = l.pair AND w.side = l.side;
