-- alone — which kernels and copies ran while no compute did, and on which stream?
--
-- Every operation that is not compute, cut to the steady iterations, less the time in which a
-- compute kernel ran on any stream of its device (pitfall 1: on any stream, so the compute is a
-- union). What runs alone is where overlap is missing; whether anything waited for it is another
-- question (pitfall 7), which recipe blockers answers.
--
-- @grain     one row per device, process, context, stream and name
-- @reads     nsys.op, nsys.op_name, nsys.steady
-- @needs     kernel
-- @key       stream_id, name, role
-- @param     min_us DOUBLE = 0  leave out what runs alone for less, per iteration
-- @column    device BIGINT - physical GPU of the report
-- @column    pid BIGINT - operating system process id
-- @column    context_id BIGINT - CUDA context
-- @column    stream_id BIGINT - CUDA stream
-- @column    name VARCHAR - kernel, or the kind of operation
-- @column    role VARCHAR - comm, wait, memcpy or memset
-- @column    alone_work_ms DOUBLE ms sum of its time without compute in an iteration, median
-- @column    alone_work_max_ms DOUBLE ms greatest
-- @column    work_ms DOUBLE ms sum of its time in an iteration, median
-- @column    n BIGINT - steady iterations; one without the operation counts 0
-- @invariant part_of_work alone_work_ms <= work_ms
-- @pitfall   1, 7
WITH params AS (
    SELECT coalesce(getvariable('min_us'), 0)::DOUBLE AS min_us
),
compute AS (
    SELECT device AS part, start_ns, end_ns
    FROM nsys.op
    WHERE role = 'compute'
),
-- every other operation is a window, and the question is how much of it compute covers
candidate AS (
    SELECT
        o.device AS part,
        {'op_id': o.op_id, 'iteration': w.iteration} AS window_id,
        greatest(o.start_ns, w.start_ns) AS start_ns,
        least(o.end_ns, w.end_ns) AS end_ns,
    FROM nsys.op AS o
    INNER JOIN nsys.steady AS w
        ON w.device = o.device AND o.start_ns < w.end_ns AND o.end_ns > w.start_ns
    WHERE o.role <> 'compute'
),
covered AS (
    SELECT window_id, measure_ns
    FROM nsys.iv_measure_in('compute', 'candidate')
),
summed AS (
    SELECT
        o.device,
        o.process & 16777215 AS pid,
        o.context_id,
        o.stream_id,
        o.name_id,
        c.window_id.iteration AS iteration,
        sum(c.end_ns - c.start_ns)::BIGINT AS work_ns,
        sum(c.end_ns - c.start_ns - v.measure_ns)::BIGINT AS alone_ns,
    FROM candidate AS c
    INNER JOIN covered AS v ON v.window_id = c.window_id
    INNER JOIN nsys.op AS o ON o.op_id = c.window_id.op_id
    GROUP BY o.device, pid, o.context_id, o.stream_id, o.name_id, iteration
),
counted AS (
    SELECT device, count(*) AS n
    FROM nsys.steady
    GROUP BY device
)
SELECT
    s.device,
    s.pid,
    s.context_id,
    s.stream_id,
    coalesce(k.name, '(unnamed kernel)') AS name,
    k.role,
    nsys.padded_median(list(s.alone_ns), any_value(c.n)) / 1e6 AS alone_work_ms,
    max(s.alone_ns) / 1e6 AS alone_work_max_ms,
    nsys.padded_median(list(s.work_ns), any_value(c.n)) / 1e6 AS work_ms,
    any_value(c.n) AS n,
FROM summed AS s
INNER JOIN counted AS c ON c.device = s.device
LEFT JOIN nsys.op_name AS k ON k.name_id = s.name_id
GROUP BY s.device, s.pid, s.context_id, s.stream_id, s.name_id, k.name, k.role
HAVING max(s.alone_ns) > 0
    AND nsys.padded_median(list(s.alone_ns), any_value(c.n)) / 1e3 >= (SELECT min_us FROM params)
ORDER BY s.device, alone_work_ms DESC, s.pid, s.context_id, s.stream_id, name, s.name_id;
