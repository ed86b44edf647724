-- window_period — how much time lies between the steady windows of a device?
--
-- A range around the step need not hold everything that a step costs: what the job does between two
-- ranges (data loading, logging, evaluation) is in no window, and so in no budget. Looked at is the
-- time from one steady window to the next one, where no window was dropped between the two.
--
-- @grain  one row per device with two such windows
-- @reads  nsys.steady
-- @column device     BIGINT -  physical GPU
-- @column pairs      BIGINT -  windows that the next one follows
-- @column window_ns  DOUBLE ns length of a window, median over these
-- @column period_ns  DOUBLE ns from its start to the start of the next, median
-- @column span_ns    BIGINT ns all these periods
-- @column between_ns BIGINT ns of them in no window
WITH paired AS (
    SELECT
        device,
        iteration,
        start_ns,
        end_ns,
        max(end_ns) OVER so_far AS covered_ns,
        lead(iteration) OVER in_order AS next_iteration,
        lead(start_ns) OVER in_order AS next_ns,
    FROM nsys.steady
    WINDOW
        in_order AS (PARTITION BY device ORDER BY iteration),
        so_far AS (PARTITION BY device ORDER BY iteration ROWS UNBOUNDED PRECEDING)
)
SELECT
    device,
    count(*) AS pairs,
    median(end_ns - start_ns)::DOUBLE AS window_ns,
    median(next_ns - start_ns)::DOUBLE AS period_ns,
    sum(next_ns - start_ns)::BIGINT AS span_ns,
    sum(greatest(0, next_ns - covered_ns))::BIGINT AS between_ns,
FROM paired
WHERE next_iteration = iteration + 1
GROUP BY device;
