-- kernels — which kernels make up the work, and how much of an iteration is each?
--
-- Work volume by kernel name over the steady iterations. A sum of durations is no wall time:
-- kernels of different streams overlap (pitfall 1), and a long kernel need not delay anything
-- (pitfall 7); recipe budget tells what does. Where a trace has no steady iteration, the whole
-- trace stands in and pct_of_iteration is NULL. Executions of CUDA graphs that were traced as a
-- whole are listed as `graph`: what ran inside them is not in the trace (pitfall 21).
--
-- @grain   one row per kernel name
-- @reads   nsys.op, nsys.op_name, nsys.steady, nsys.name_window
-- @needs   kernel | graph_exec
-- @windows optional
-- @column  kernel VARCHAR - demangled name, else the short one
-- @column  class VARCHAR - class of the taxonomy
-- @column  role VARCHAR - compute, comm or wait
-- @column  count BIGINT - executions that start in a steady iteration; where iterations overlap,
--          one counts once for each in which it starts
-- @column  work_ms DOUBLE ms sum of their time inside the iterations: work volume
-- @column  avg_us DOUBLE us mean duration
-- @column  min_us DOUBLE us shortest
-- @column  max_us DOUBLE us longest
-- @column  pct_of_iteration DOUBLE pct median work in an iteration by median iteration
-- @pitfall 1, 7, 21
WITH params AS (
    SELECT getvariable('device')::BIGINT AS device
),
windows AS (
    SELECT count(*) AS n, median(end_ns - start_ns) AS median_ns FROM nsys.steady
),
in_windows AS (
    SELECT
        m.name_id,
        sum(m.count)::BIGINT AS count,
        sum(m.work_ns)::BIGINT AS work_ns,
        sum(m.duration_ns)::BIGINT AS duration_ns,
        min(m.min_ns) AS min_ns,
        max(m.max_ns) AS max_ns,
        list(m.work_ns) AS work_list,
    FROM nsys.name_window AS m
    GROUP BY m.name_id
),
in_trace AS (
    SELECT
        o.name_id,
        count(*) AS count,
        sum(o.end_ns - o.start_ns)::BIGINT AS work_ns,
        sum(o.end_ns - o.start_ns)::BIGINT AS duration_ns,
        min(o.end_ns - o.start_ns) AS min_ns,
        max(o.end_ns - o.start_ns) AS max_ns,
        NULL::BIGINT[] AS work_list,
    FROM nsys.op AS o
    INNER JOIN params AS p ON p.device IS NULL OR p.device = o.device
    WHERE NOT EXISTS (SELECT 1 FROM nsys.steady)
    GROUP BY o.name_id
),
measured AS (
    SELECT * FROM in_windows
    UNION ALL
    SELECT * FROM in_trace
),
named AS (
    SELECT
        coalesce(n.name, '(unnamed kernel)') AS kernel,
        n.class,
        n.role,
        m.count,
        m.work_ns / 1e6 AS work_ms,
        m.duration_ns / nullif(m.count, 0) / 1e3 AS avg_us,
        m.min_ns / 1e3 AS min_us,
        m.max_ns / 1e3 AS max_us,
        100 * nsys.padded_median(m.work_list, w.n) / w.median_ns AS pct_of_iteration,
        m.name_id,
    FROM measured AS m
    INNER JOIN nsys.op_name AS n ON n.name_id = m.name_id
    CROSS JOIN windows AS w
    WHERE m.name_id NOT IN (-1, -2)
)
SELECT kernel, class, role, count, work_ms, avg_us, min_us, max_us, pct_of_iteration
FROM named
ORDER BY work_ms DESC, kernel, name_id;
