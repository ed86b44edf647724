-- gpu_metric_info — what are the hardware counters called?
--
-- Ids hold inside one file only.
--
-- @grain    one row per metric of a source
-- @optional TARGET_INFO_GPU_METRICS
-- @optional TARGET_INFO_GPU_METRICS.sourceId BIGINT
-- @optional TARGET_INFO_GPU_METRICS.typeName VARCHAR
-- @optional TARGET_INFO_GPU_METRICS.metricName VARCHAR
-- @materialize
-- @column   type_id BIGINT - source of the samples
-- @column   source_id BIGINT - group of sources
-- @column   type_name VARCHAR - name of the source
-- @column   metric_id BIGINT - metric
-- @column   metric_name VARCHAR - name of the metric
SELECT
    m."typeId" AS type_id,
    m."sourceId" AS source_id,
    m."typeName" AS type_name,
    m."metricId" AS metric_id,
    m."metricName" AS metric_name
FROM trace."TARGET_INFO_GPU_METRICS" AS m;
