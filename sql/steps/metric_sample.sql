-- metric_sample — what did the hardware counters read at each time they were sampled?
--
-- Metrics are found by name in each report (pitfall 17). Old exports keep a sample as JSON, with
-- its values as text under the names of the metrics. Samples outside the steady windows take part
-- in nothing; where a report has no steady window, all count.
--
-- @grain  one row per device and time
-- @reads  nsys.gpu_metric, nsys.gpu_metric_info, nsys.generic_event, nsys.segment,
--         nsys.window_segment, nsys.steady
-- @column number        BIGINT -  place in the order of devices and times
-- @column device        BIGINT -  physical GPU that was sampled
-- @column time_ns       BIGINT ns time of the sample
-- @column sm_issue      DOUBLE pct
-- @column tensor_active DOUBLE pct
-- @column dram_read     DOUBLE pct
-- @column dram_write    DOUBLE pct
-- @column nvlink_rx     DOUBLE pct
-- @column nvlink_tx     DOUBLE pct
-- @column sms_active    DOUBLE pct
-- @pitfall 16, 17
WITH known AS (
    SELECT type_id, metric_id, any_value(nsys.metric_kind(metric_name)) AS kind
    FROM nsys.gpu_metric_info
    WHERE nsys.metric_kind(metric_name) IS NOT NULL
    GROUP BY type_id, metric_id
),
document AS (
    SELECT type_id & 255 AS device, time_ns, data
    FROM nsys.generic_event
    WHERE contains(data, 'SM') AND json_valid(data)
        AND NOT EXISTS (SELECT 1 FROM nsys.gpu_metric)
),
entry AS (
    SELECT
        device,
        time_ns,
        unnest(map_entries(json_transform(data, '"MAP(VARCHAR, VARCHAR)"')), recursive := true),
    FROM document
),
reading AS (
    SELECT m.gpu_id AS device, m.time_ns, k.kind, m.value::DOUBLE AS value
    FROM nsys.gpu_metric AS m
    INNER JOIN known AS k ON k.type_id = m.type_id AND k.metric_id = m.metric_id
    UNION ALL
    SELECT device, time_ns, nsys.metric_kind(key), try_cast(value AS DOUBLE)
    FROM entry
),
sample AS (
    SELECT
        device,
        time_ns,
        avg(value) FILTER (WHERE kind = 'sm_issue') AS sm_issue,
        avg(value) FILTER (WHERE kind = 'tensor_active') AS tensor_active,
        avg(value) FILTER (WHERE kind = 'dram_read') AS dram_read,
        avg(value) FILTER (WHERE kind = 'dram_write') AS dram_write,
        avg(value) FILTER (WHERE kind = 'nvlink_rx') AS nvlink_rx,
        avg(value) FILTER (WHERE kind = 'nvlink_tx') AS nvlink_tx,
        avg(value) FILTER (WHERE kind = 'sms_active') AS sms_active,
    FROM reading
    WHERE kind IS NOT NULL AND time_ns IS NOT NULL
    GROUP BY device, time_ns
),
covered AS (
    SELECT DISTINCT s.device, s.start_ns, s.end_ns
    FROM nsys.window_segment AS w
    INNER JOIN nsys.segment AS s ON s.device = w.device AND s.segment = w.segment
),
chosen AS (
    SELECT s.*
    FROM sample AS s
    ASOF JOIN covered AS c ON c.device = s.device AND c.start_ns <= s.time_ns
    WHERE s.time_ns < c.end_ns
    UNION ALL
    SELECT s.* FROM sample AS s WHERE NOT EXISTS (SELECT 1 FROM nsys.steady)
)
SELECT
    row_number() OVER (ORDER BY device, time_ns) AS number,
    device,
    time_ns,
    sm_issue,
    tensor_active,
    dram_read,
    dram_write,
    nvlink_rx,
    nvlink_tx,
    sms_active,
FROM chosen;
