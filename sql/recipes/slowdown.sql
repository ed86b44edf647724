-- slowdown — how much did the profiler slow the step, against unprofiled steps of the same run?
--
-- The steady iterations of the trace beside what the trainer logged for steps without the
-- profiler (option --reference-steps). Both must be the same workload on the same machines, and
-- the iteration must be what the trainer calls a step. A slowdown beyond the natural spread of the
-- unprofiled steps, their greatest less their least without outliers, is material: absolute times
-- and gain ceilings of the trace are then perturbed. Outliers are steps like the first one or those
-- under the profiler, which a log holds as well: more than three times the range of the middle
-- half, and 1 % of the median, away from it. Where the profiled step is the shorter one, by more
-- than that spread and 2 %, a note says that the iteration is probably not the trainer's step. The
-- overhead that the profiler recorded about itself is not used, since it is not what the step lost
-- (pitfall 25).
--
-- @grain   one row per device
-- @reads   nsys.step_slowdown
-- @needs   reference_step
-- @param   reference_from BIGINT = NULL [0,) first unprofiled step to use, by its number in the log
-- @param   reference_to BIGINT = NULL [1,) first unprofiled step not to use again
-- @column  device BIGINT - physical GPU of the report
-- @column  profiled_median_ms DOUBLE ms median steady iteration
-- @column  profiled_min_ms DOUBLE ms shortest
-- @column  profiled_max_ms DOUBLE ms longest
-- @column  profiled_n BIGINT - steady iterations
-- @column  unprofiled_median_ms DOUBLE ms median unprofiled step
-- @column  unprofiled_min_ms DOUBLE ms shortest
-- @column  unprofiled_max_ms DOUBLE ms longest
-- @column  unprofiled_n BIGINT - unprofiled steps
-- @column  unprofiled_outliers BIGINT - of them so far off that the natural spread leaves them out
-- @column  slowdown_ms DOUBLE ms profiled median less unprofiled median
-- @column  slowdown_pct DOUBLE pct of the unprofiled median
-- @column  natural_spread_ms DOUBLE ms range of the others, NULL for a single step
-- @column  is_material BOOLEAN - slowdown beyond that spread; NULL for a single step
-- @warning reference_typical NOT coalesce(unprofiled_max_ms > 1.5 * unprofiled_median_ms, false)
-- @pitfall 25, 26
SELECT
    device,
    profiled_median_ns / 1e6 AS profiled_median_ms,
    profiled_min_ns / 1e6 AS profiled_min_ms,
    profiled_max_ns / 1e6 AS profiled_max_ms,
    profiled_n,
    unprofiled_median_ns / 1e6 AS unprofiled_median_ms,
    unprofiled_min_ns / 1e6 AS unprofiled_min_ms,
    unprofiled_max_ns / 1e6 AS unprofiled_max_ms,
    unprofiled_n,
    unprofiled_outliers,
    slowdown_ns / 1e6 AS slowdown_ms,
    100 * slowdown_ns / unprofiled_median_ns AS slowdown_pct,
    natural_spread_ns / 1e6 AS natural_spread_ms,
    is_material,
FROM nsys.step_slowdown
ORDER BY device;
