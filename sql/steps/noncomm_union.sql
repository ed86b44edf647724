-- noncomm_union — how long did compute, or kernels that wait, run in each stretch of time?
--
-- Kernels that only wait are rare, and without them this is the union of compute that
-- nsys.segment_union has anyway. So this is empty where no kernel waits, and costs a sort of its
-- own where some do.
--
-- @grain  none, or one row per device and stretch with such a kernel
-- @reads  nsys.sweep
-- @column device          BIGINT -  physical GPU
-- @column segment         BIGINT -  stretch of nsys.segment
-- @column noncomm_busy_ns BIGINT ns union of compute and waiting kernels
-- @pitfall 1
WITH has_wait AS (
    SELECT 1 AS one FROM nsys.sweep WHERE role = 'wait' LIMIT 1
),
swept AS (
    SELECT
        s.device,
        s.segment,
        s.start_ns,
        s.end_ns,
        coalesce(max(s.end_ns) OVER noncomm_before, s.start_ns) AS until_ns,
    FROM nsys.sweep AS s, has_wait
    WHERE s.item_id IS NULL OR s.role IN ('compute', 'wait')
    WINDOW noncomm_before AS (
        PARTITION BY s.device ORDER BY s.start_ns, s.item_id IS NULL DESC
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
),
change AS (
    SELECT device, segment, greatest(0, end_ns - greatest(start_ns, until_ns)) AS length_ns
    FROM swept
    WHERE end_ns IS NOT NULL
    UNION ALL
    -- a border hands what reaches over it on to the next stretch
    SELECT device, segment, -greatest(0, until_ns - start_ns) FROM swept WHERE end_ns IS NULL
    UNION ALL
    SELECT device, segment + 1, greatest(0, until_ns - start_ns) FROM swept WHERE end_ns IS NULL
)
SELECT device, segment, sum(length_ns)::BIGINT AS noncomm_busy_ns
FROM change
GROUP BY device, segment;
