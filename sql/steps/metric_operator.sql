-- metric_operator — what was sampled while each operator was on the device, and how purely?
--
-- A sample belongs to every operation that is resident at its time, since the counters are those
-- of the whole device (pitfall 14). It is exclusive to a class, or to a kernel, when no other
-- class, or no other name, is resident. An operator that no sample met has no row: unknown, not
-- zero (pitfall 18). Each operation spans a run of consecutive samples, found by its two ends.
--
-- @grain  one row per device, scope, operator and metric
-- @reads  nsys.metric_sample, nsys.op, nsys.op_name
-- @column device            BIGINT  - physical GPU
-- @column scope             VARCHAR - class or kernel
-- @column name              VARCHAR - class, or name of the kernel
-- @column samples           BIGINT  - samples in which it was resident
-- @column exclusive_samples BIGINT  - those in which nothing else was
-- @column metric            VARCHAR - metric, as nsys.metric_kind names it
-- @column value_sum         DOUBLE  - sum of the sampled values
-- @column value_count       BIGINT  - number of sampled values
-- @pitfall 14, 15, 18
WITH span AS (
    SELECT o.name_id, o.class, f.number AS first_number, l.number AS last_number
    FROM nsys.op AS o
    ASOF JOIN nsys.metric_sample AS f ON f.device = o.device AND f.time_ns >= o.start_ns
    ASOF JOIN nsys.metric_sample AS l ON l.device = o.device AND l.time_ns < o.end_ns
),
resident AS (
    SELECT DISTINCT name_id, class, unnest(range(first_number, last_number + 1)) AS number
    FROM span
    WHERE first_number <= last_number
),
company AS (
    SELECT number, count(*) AS names, count(DISTINCT class) AS classes
    FROM resident
    GROUP BY number
),
member AS (
    SELECT DISTINCT
        'class' AS scope, r.class AS name, NULL::BIGINT AS name_id, r.number,
        c.classes = 1 AS is_alone
    FROM resident AS r
    INNER JOIN company AS c ON c.number = r.number
    UNION ALL
    SELECT 'kernel', n.name, r.name_id, r.number, c.names = 1
    FROM resident AS r
    INNER JOIN company AS c ON c.number = r.number
    LEFT JOIN nsys.op_name AS n ON n.name_id = r.name_id
    WHERE r.name_id NOT IN (-1, -2)
)
SELECT
    s.device,
    m.scope,
    m.name,
    count(*) AS samples,
    count(*) FILTER (WHERE m.is_alone) AS exclusive_samples,
    unnest([
        {'metric': 'sm_issue', 'value_sum': sum(s.sm_issue), 'value_count': count(s.sm_issue)},
        {
            'metric': 'tensor_active',
            'value_sum': sum(s.tensor_active),
            'value_count': count(s.tensor_active)
        },
        {'metric': 'dram_read', 'value_sum': sum(s.dram_read), 'value_count': count(s.dram_read)},
        {
            'metric': 'dram_write',
            'value_sum': sum(s.dram_write),
            'value_count': count(s.dram_write)
        },
        {'metric': 'nvlink_rx', 'value_sum': sum(s.nvlink_rx), 'value_count': count(s.nvlink_rx)},
        {'metric': 'nvlink_tx', 'value_sum': sum(s.nvlink_tx), 'value_count': count(s.nvlink_tx)},
        {
            'metric': 'sms_active',
            'value_sum': sum(s.sms_active),
            'value_count': count(s.sms_active)
        },
    ], recursive := true),
FROM member AS m
INNER JOIN nsys.metric_sample AS s ON s.number = m.number
GROUP BY s.device, m.scope, m.name, m.name_id;
