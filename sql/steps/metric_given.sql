-- metric_given — which metrics did a separate capture sample for each operator?
--
-- Empty unless the option --metrics-from names that capture. Sampling slows and swells a capture,
-- so its times are not used; operators are joined by name.
--
-- @grain  one row per scope, operator and metric
-- @column scope             VARCHAR - class or kernel
-- @column name              VARCHAR - class, or name of the kernel
-- @column samples           BIGINT  - samples in which it was resident, over all devices
-- @column exclusive_samples BIGINT  - those in which nothing else was
-- @column metric            VARCHAR - metric, as nsys.metric_kind names it
-- @column value_sum         DOUBLE  - sum of the sampled values
-- @column value_count       BIGINT  - number of sampled values
SELECT
    NULL::VARCHAR AS scope,
    NULL::VARCHAR AS name,
    NULL::BIGINT AS samples,
    NULL::BIGINT AS exclusive_samples,
    NULL::VARCHAR AS metric,
    NULL::DOUBLE AS value_sum,
    NULL::BIGINT AS value_count
WHERE false;
