-- metrics — how busy did the hardware counters see the GPU while each operator ran?
--
-- Work by class and by kernel, with the means of the samples taken while it was on the device. The
-- counters are those of the whole device, so a row says how many samples it has and in what share
-- of them nothing else was resident; rows of low exclusivity are contaminated by others and are
-- marked, not corrected (pitfall 14). SM Issue and Tensor Active speak for compute throughput, SMs
-- Active only for residency (pitfall 15). NVLink is the user data of responses of the whole
-- device, and names no peer (pitfall 16). An operator without a sample is unknown, never zero
-- (pitfall 18). A sample averages over the period before it, so operators shorter than some
-- periods share theirs with what ran before.
--
-- Sampling belongs into a capture of its own: --metrics-from names it, and its samples are joined
-- to the work of this trace by name of the operator.
--
-- @grain   one row per scope, device and operator
-- @reads   nsys.metric_operator, nsys.metric_given, nsys.op, nsys.op_name, nsys.steady
-- @reads   nsys.name_window
-- @needs   kernel|memcpy|memset|graph_exec
-- @needs   gpu_metric|generic_event|metric_given
-- @windows optional
-- @param   exclusive_pct DOUBLE = 90 [0, 100] least share of exclusive samples of a clean row
-- @column  scope VARCHAR - class or kernel
-- @column  device BIGINT - physical GPU of the report
-- @column  operator VARCHAR - class, or name of the kernel
-- @column  class VARCHAR - class of the taxonomy
-- @column  role VARCHAR - role of the class
-- @column  count BIGINT - executions in steady iterations, else in the trace
-- @column  work_ms DOUBLE ms sum of their time there: work volume
-- @column  samples BIGINT - samples in which it was resident; 0 is unsampled
-- @column  exclusivity_pct DOUBLE pct share of them in which nothing else was resident
-- @column  is_contaminated BOOLEAN - exclusivity below exclusive_pct
-- @column  sm_issue_pct DOUBLE pct mean SM Issue
-- @column  tensor_active_pct DOUBLE pct mean Tensor Active
-- @column  dram_read_pct DOUBLE pct mean DRAM read bandwidth, of its peak
-- @column  dram_write_pct DOUBLE pct mean DRAM write bandwidth, of its peak
-- @column  nvlink_rx_pct DOUBLE pct mean NVLink responses received, user data
-- @column  nvlink_tx_pct DOUBLE pct mean NVLink responses sent, user data
-- @column  sms_active_pct DOUBLE pct mean SMs Active: residency, not throughput
-- @column  samples_of VARCHAR - this trace, or other capture
-- @invariant exclusive_share coalesce(exclusivity_pct, 0) BETWEEN 0 AND 100
-- @invariant unsampled_unknown samples > 0 OR coalesce(sm_issue_pct, tensor_active_pct) IS NULL
-- @pitfall 14, 15, 16, 17, 18
WITH params AS (
    SELECT
        getvariable('device')::BIGINT AS device,
        coalesce(getvariable('exclusive_pct')::DOUBLE, 90) AS exclusive_pct
),
done AS (
    SELECT device, name_id, count, work_ns FROM nsys.name_window
    UNION ALL
    SELECT device, name_id, count(*), sum(end_ns - start_ns)
    FROM nsys.op
    WHERE NOT EXISTS (SELECT 1 FROM nsys.steady)
    GROUP BY device, name_id
),
work AS (
    SELECT 'class' AS scope, d.device, n.class AS name, n.class, n.role,
        sum(d.count)::BIGINT AS count, sum(d.work_ns)::BIGINT AS work_ns
    FROM done AS d
    INNER JOIN nsys.op_name AS n ON n.name_id = d.name_id
    GROUP BY d.device, n.class, n.role
    UNION ALL
    SELECT 'kernel', d.device, n.name, n.class, n.role, sum(d.count)::BIGINT,
        sum(d.work_ns)::BIGINT
    FROM done AS d
    INNER JOIN nsys.op_name AS n ON n.name_id = d.name_id
    WHERE d.name_id NOT IN (-1, -2)
    GROUP BY d.device, n.name, n.class, n.role
),
given AS (
    SELECT count(*) > 0 AS is_given FROM nsys.metric_given
),
sampled AS (
    SELECT
        o.device, o.scope, o.name, o.samples, o.exclusive_samples, o.metric, o.value_sum,
        o.value_count
    FROM nsys.metric_operator AS o
    CROSS JOIN given AS g
    WHERE NOT g.is_given
    UNION ALL
    SELECT w.device, m.scope, m.name, m.samples, m.exclusive_samples, m.metric, m.value_sum,
        m.value_count
    FROM nsys.metric_given AS m
    INNER JOIN work AS w ON w.scope = m.scope AND w.name = m.name
),
measured AS (
    SELECT
        device,
        scope,
        name,
        max(samples) AS samples,
        max(exclusive_samples) AS exclusive_samples,
        max(value_sum / nullif(value_count, 0)) FILTER (WHERE metric = 'sm_issue') AS sm_issue,
        max(value_sum / nullif(value_count, 0)) FILTER (WHERE metric = 'tensor_active')
            AS tensor_active,
        max(value_sum / nullif(value_count, 0)) FILTER (WHERE metric = 'dram_read') AS dram_read,
        max(value_sum / nullif(value_count, 0)) FILTER (WHERE metric = 'dram_write')
            AS dram_write,
        max(value_sum / nullif(value_count, 0)) FILTER (WHERE metric = 'nvlink_rx') AS nvlink_rx,
        max(value_sum / nullif(value_count, 0)) FILTER (WHERE metric = 'nvlink_tx') AS nvlink_tx,
        max(value_sum / nullif(value_count, 0)) FILTER (WHERE metric = 'sms_active')
            AS sms_active,
    FROM sampled
    GROUP BY device, scope, name
)
SELECT
    w.scope,
    w.device,
    coalesce(w.name, '(unnamed kernel)') AS operator,
    w.class,
    w.role,
    w.count,
    w.work_ns / 1e6 AS work_ms,
    coalesce(m.samples, 0) AS samples,
    100 * m.exclusive_samples / m.samples AS exclusivity_pct,
    100 * m.exclusive_samples / m.samples < p.exclusive_pct AS is_contaminated,
    m.sm_issue AS sm_issue_pct,
    m.tensor_active AS tensor_active_pct,
    m.dram_read AS dram_read_pct,
    m.dram_write AS dram_write_pct,
    m.nvlink_rx AS nvlink_rx_pct,
    m.nvlink_tx AS nvlink_tx_pct,
    m.sms_active AS sms_active_pct,
    CASE WHEN g.is_given THEN 'other capture' ELSE 'this trace' END AS samples_of,
FROM work AS w
CROSS JOIN params AS p
CROSS JOIN given AS g
LEFT JOIN measured AS m
    ON m.scope = w.scope
    AND m.device IS NOT DISTINCT FROM w.device
    AND m.name IS NOT DISTINCT FROM w.name
WHERE p.device IS NULL OR p.device = w.device
ORDER BY w.scope, w.device, work_ms DESC, operator, w.class;
