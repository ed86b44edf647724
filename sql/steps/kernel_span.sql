-- kernel_span — which windows would each kernel candidate give each device?
--
-- A kernel that runs k times per step comes in bursts of k: the pause between bursts is longer
-- than three times the usual distance. Where at least four in five bursts have the same size on
-- every device, that size is the number of occurrences per iteration; else it is one.
--
-- @grain   one row per pattern, device, window
-- @reads   nsys.kernel_family, nsys.op
-- @column  kind           VARCHAR  -   nccl or kernel
-- @column  pattern        VARCHAR  -   anchor pattern
-- @column  strength       BIGINT   -   see nsys.kernel_family
-- @column  per_iteration  BIGINT   -   occurrences per iteration
-- @column  device         BIGINT   -   device
-- @column  start_ns       BIGINT   ns  start of the window
-- @column  end_ns         BIGINT   ns  end of the window
WITH occurrence AS (
    SELECT
        f.kind,
        f.pattern,
        f.strength,
        o.device,
        o.start_ns,
        row_number() OVER occurrence_order - 1 AS occurrence,
        o.start_ns - lag(o.start_ns) OVER occurrence_order AS distance_ns
    FROM nsys.op AS o
    INNER JOIN nsys.kernel_family AS f ON o.name_id = f.name_id
    WHERE o.kind = 'kernel'
    WINDOW occurrence_order AS (
        PARTITION BY f.kind, f.pattern, o.device ORDER BY o.start_ns, o.op_id
    )
),
usual AS (
    SELECT
        o.kind,
        o.pattern,
        o.device,
        quantile_disc(o.distance_ns, 0.5) AS usual_ns
    FROM occurrence AS o
    GROUP BY o.kind, o.pattern, o.device
),
burst_start AS (
    SELECT
        o.kind,
        o.pattern,
        o.device,
        lead(o.occurrence) OVER (
            PARTITION BY o.kind, o.pattern, o.device ORDER BY o.occurrence
        ) - o.occurrence AS burst_size
    FROM occurrence AS o
    INNER JOIN usual AS u USING (kind, pattern, device)
    WHERE o.distance_ns IS NULL OR o.distance_ns > 3 * u.usual_ns
),
burst AS (
    SELECT
        b.kind,
        b.pattern,
        b.burst_size,
        count(*) AS size_count,
        sum(count(*)) OVER (PARTITION BY b.kind, b.pattern) AS burst_count,
        count(DISTINCT b.device) AS device_count
    FROM burst_start AS b
    WHERE b.burst_size IS NOT NULL
    GROUP BY b.kind, b.pattern, b.burst_size
),
grouping AS (
    SELECT
        b.kind,
        b.pattern,
        max(b.burst_size) AS per_iteration
    FROM burst AS b
    WHERE 5 * b.size_count >= 4 * b.burst_count AND b.size_count >= 2 * b.device_count
    GROUP BY b.kind, b.pattern
),
kept AS (
    SELECT
        c.*,
        coalesce(g.per_iteration, 1) AS per_iteration
    FROM occurrence AS c
    LEFT JOIN grouping AS g ON c.kind = g.kind AND c.pattern = g.pattern
    WHERE c.occurrence % coalesce(g.per_iteration, 1) = 0
)
SELECT
    k.kind,
    k.pattern,
    k.strength,
    k.per_iteration,
    k.device,
    k.start_ns,
    lead(k.start_ns) OVER (
        PARTITION BY k.kind, k.pattern, k.device ORDER BY k.occurrence
    ) AS end_ns
FROM kept AS k
QUALIFY end_ns IS NOT NULL;
