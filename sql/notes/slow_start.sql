-- slow_start — do the first iterations take so much longer that they are a warm-up?
--
-- Compilation, tuning and first allocations happen in the first iterations of a run. Where those,
-- and no others, take twice the median of the rest or more, that is said with the option that
-- leaves them out. Nothing is left out by itself: a median hardly sees them, the greatest and the
-- mean do.
--
-- @reads   nsys.steady
WITH split AS (
    -- every iteration as the last of a warm-up: those up to it, and those behind it
    SELECT
        device,
        iteration,
        row_number() OVER so_far AS place,
        count(*) OVER (PARTITION BY device) AS n,
        first(iteration) OVER so_far AS first_iteration,
        min(end_ns - start_ns) OVER so_far AS least_ns,
        max(end_ns - start_ns) OVER so_far AS greatest_ns,
        median(end_ns - start_ns) OVER later AS rest_ns,
        max(end_ns - start_ns) OVER later AS rest_greatest_ns,
    FROM nsys.steady
    WINDOW
        so_far AS (PARTITION BY device ORDER BY iteration ROWS UNBOUNDED PRECEDING),
        later AS (
            PARTITION BY device ORDER BY iteration
            ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING
        )
)
SELECT
    CASE
        WHEN place = 1
            THEN format(
                'device {}: iteration {} takes {:.1f} times the median of the others: '
                || '--skip-first {} leaves it out',
                device, iteration, greatest_ns / rest_ns, iteration + 1
            )
        ELSE format(
            'device {}: iterations {} to {} take {:.1f} to {:.1f} times the median of the others: '
            || '--skip-first {} leaves them out',
            device, first_iteration, iteration, least_ns / rest_ns, greatest_ns / rest_ns,
            iteration + 1
        )
    END AS note,
FROM split
WHERE least_ns >= 2 * rest_ns
    AND rest_greatest_ns < 2 * rest_ns
    AND n - place >= 3
    AND 2 * place < n
QUALIFY row_number() OVER (PARTITION BY device ORDER BY place) = 1
ORDER BY device;
