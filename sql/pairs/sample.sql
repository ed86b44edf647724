-- sample — what did each steady window measure of every quantity that is compared?
--
-- The metrics of the budget, blocking time by the class of its producer, and the work of each class
-- of compute kernels. A class that does not occur in a window counts 0 there, on both sides.
--
-- `period` is the time from the start of a window to that of the next. What happens between two
-- windows, such as a data loader outside of the range that marks a step, is in it and in no metric
-- of the budget. The last window has none, and one whose successor is not steady neither.
--
-- @grain  one row per pair, side, window and item
-- @reads  pair.budget, pair.blocking, pair.work
-- @pitfall 1, 7, 8
WITH metric AS (
    UNPIVOT (
        SELECT
            pair,
            side,
            iteration AS number,
            iteration_ns AS iteration,
            device_busy_ns AS device_busy,
            device_idle_ns AS device_idle,
            noncomm_busy_ns AS noncomm_busy,
            comm_busy_ns AS comm_busy,
            compute_busy_ns AS compute_busy,
            compute_absent_ns AS compute_absent,
            occupied_not_computing_ns AS occupied_not_computing,
            launch_starved_ns AS launch_starved,
            blocking_ns AS blocking,
            dependency_stalled_ns AS dependency_stalled,
            unattributed_ns AS unattributed,
            comm_exposed_ns AS comm_exposed,
            comm_blocking_ns AS comm_blocking,
            comm_overlapped_ns AS comm_overlapped,
            launch_starved_shadowed_ns AS launch_starved_shadowed,
        FROM pair.budget
    )
    ON COLUMNS(* EXCLUDE (pair, side, number))
    INTO NAME item VALUE value_ns
),
follower AS (
    SELECT
        pair,
        side,
        iteration AS number,
        lead(iteration) OVER w AS next_number,
        lead(start_ns) OVER w - start_ns AS value_ns,
    FROM pair.budget
    WINDOW w AS (PARTITION BY pair, side ORDER BY iteration)
),
class_window AS (
    SELECT
        pair,
        side,
        iteration AS number,
        'blocking' AS parent,
        class,
        sum(blocking_ns)::BIGINT AS value_ns,
    FROM pair.blocking
    GROUP BY pair, side, iteration, class
    UNION ALL
    SELECT pair, side, iteration, 'compute_busy', class, sum(work_ns)::BIGINT
    FROM pair.work
    WHERE role = 'compute'
    GROUP BY pair, side, iteration, class
),
class_name AS (
    SELECT DISTINCT pair, parent, class FROM class_window
)
SELECT pair, side, number, NULL AS parent, NULL AS class, item, value_ns FROM metric
UNION ALL
SELECT pair, side, number, NULL, NULL, 'period', value_ns
FROM follower
WHERE next_number = number + 1
UNION ALL
SELECT
    b.pair,
    b.side,
    b.iteration AS number,
    n.parent,
    n.class,
    n.parent || ':' || n.class AS item,
    coalesce(w.value_ns, 0) AS value_ns,
FROM pair.budget AS b
INNER JOIN class_name AS n ON n.pair = b.pair
LEFT JOIN class_window AS w
    ON w.pair = b.pair
    AND w.side = b.side
    AND w.number = b.iteration
    AND w.parent = n.parent
    AND w.class = n.class;
