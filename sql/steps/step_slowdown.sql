-- step_slowdown — did the profiler slow the step by more than steps differ anyway?
--
-- Profiled steps are the steady windows, unprofiled ones what the trainer logged (pitfall 25: the
-- overhead table of the trace is no end-to-end slowdown and is not read). The natural spread is
-- the range of the unprofiled steps, greatest less least; a slowdown beyond it is material. One
-- step alone has no spread, and then nothing is said.
--
-- A log holds steps that are no measure of nature: the first, those with a checkpoint, and those
-- under the profiler (pitfall 26). Steps that lie outside the middle half by more than three times
-- its range, and by 1 % of the median or more, are outliers: they count in the median, least,
-- greatest and n, and not in the spread. Where more than a quarter is of that kind they pass for
-- natural: reference_from and reference_to choose.
--
-- A profiler makes nothing faster. Windows that are shorter than the unprofiled step by more than
-- steps differ anyway, and by more than 2 %, are then not what the trainer calls a step: a range
-- that leaves out loading of data or the optimizer, or other work. One step alone has no spread,
-- and there the 2 % decide.
--
-- @grain  one row per device; none without unprofiled steps
-- @reads  nsys.reference_step, nsys.steady
-- @param  reference_from BIGINT = NULL [0,) first unprofiled step to use, by its number
-- @param  reference_to   BIGINT = NULL [1,) first one not to use again
-- @column device                BIGINT  -   physical GPU
-- @column profiled_median_ns    DOUBLE  ns  median steady window
-- @column profiled_min_ns       BIGINT  ns  shortest
-- @column profiled_max_ns       BIGINT  ns  longest
-- @column profiled_n            BIGINT  -   steady windows
-- @column unprofiled_median_ns  DOUBLE  ns  median unprofiled step
-- @column unprofiled_min_ns     BIGINT  ns  shortest
-- @column unprofiled_max_ns     BIGINT  ns  longest
-- @column unprofiled_n          BIGINT  -   unprofiled steps
-- @column unprofiled_outliers   BIGINT  -   of them outliers
-- @column natural_spread_ns     BIGINT  ns  range of the others, NULL for one step
-- @column middle_spread_ns      DOUBLE  ns  range of their middle half, NULL for one step
-- @column slowdown_ns           DOUBLE  ns  median against median
-- @column is_material           BOOLEAN -   slowdown beyond the natural spread
-- @column is_other_step         BOOLEAN -   so much shorter that it is not the trainer's step
-- @pitfall 25, 26
WITH params AS (
    SELECT
        getvariable('reference_from')::BIGINT AS reference_from,
        getvariable('reference_to')::BIGINT AS reference_to
),
chosen AS (
    SELECT r.duration_ns
    FROM nsys.reference_step AS r
    CROSS JOIN params AS p
    WHERE
        (p.reference_from IS NULL OR r.step >= p.reference_from)
        AND (p.reference_to IS NULL OR r.step < p.reference_to)
),
middle AS (
    SELECT
        median(duration_ns) AS median_ns,
        quantile_cont(duration_ns, 0.25) AS low_ns,
        quantile_cont(duration_ns, 0.75) AS high_ns,
        greatest(3 * (high_ns - low_ns), 0.01 * median_ns) AS reach_ns,
    FROM chosen
),
unprofiled AS (
    SELECT
        any_value(m.median_ns) AS median_ns,
        min(c.duration_ns) AS min_ns,
        max(c.duration_ns) AS max_ns,
        count(*) AS n,
        count(*) FILTER (
            WHERE c.duration_ns NOT BETWEEN m.low_ns - m.reach_ns AND m.high_ns + m.reach_ns
        ) AS outliers,
        max(c.duration_ns) FILTER (WHERE c.duration_ns <= m.high_ns + m.reach_ns)
        - min(c.duration_ns) FILTER (WHERE c.duration_ns >= m.low_ns - m.reach_ns) AS spread_ns,
        any_value(m.high_ns - m.low_ns) AS middle_ns,
    FROM chosen AS c
    CROSS JOIN middle AS m
),
profiled AS (
    SELECT
        device,
        median(end_ns - start_ns) AS median_ns,
        min(end_ns - start_ns) AS min_ns,
        max(end_ns - start_ns) AS max_ns,
        count(*) AS n,
    FROM nsys.steady
    GROUP BY device
)
SELECT
    p.device,
    p.median_ns AS profiled_median_ns,
    p.min_ns AS profiled_min_ns,
    p.max_ns AS profiled_max_ns,
    p.n AS profiled_n,
    u.median_ns AS unprofiled_median_ns,
    u.min_ns AS unprofiled_min_ns,
    u.max_ns AS unprofiled_max_ns,
    u.n AS unprofiled_n,
    u.outliers AS unprofiled_outliers,
    CASE WHEN u.n > 1 THEN u.spread_ns END AS natural_spread_ns,
    CASE WHEN u.n > 1 THEN u.middle_ns END AS middle_spread_ns,
    p.median_ns - u.median_ns AS slowdown_ns,
    CASE WHEN u.n > 1 THEN p.median_ns - u.median_ns > u.spread_ns END AS is_material,
    u.median_ns - p.median_ns
        > greatest(CASE WHEN u.n > 1 THEN u.spread_ns ELSE 0 END, 0.02 * u.median_ns)
        AS is_other_step,
FROM profiled AS p
CROSS JOIN unprofiled AS u
WHERE u.n > 0;
