-- gpu_metric — which hardware counters were sampled?
--
-- Metric ids change from file to file: join gpu_metric_info by name.
--
-- @grain    one row per sample
-- @optional GPU_METRICS
-- @optional GPU_METRICS.timestamp BIGINT
-- @column   time_ns BIGINT ns time of the sample
-- @column   type_id BIGINT - source of the sample
-- @column   metric_id BIGINT - metric, see gpu_metric_info
-- @column   gpu_id BIGINT - physical GPU, the low byte of the type
-- @column   value BIGINT - value; percent for throughput metrics
SELECT
    m."timestamp" AS time_ns,
    m."typeId" AS type_id,
    m."metricId" AS metric_id,
    m."typeId" & 255 AS gpu_id,
    m."value" AS value
FROM trace."GPU_METRICS" AS m;
