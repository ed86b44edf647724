-- anchor_candidate — which anchors could give the iterations, and how good is each?
--
-- A candidate has two closed windows or more. It is plausible when
-- - an NVTX range is named like a step and device work starts in it, or
-- - an NVTX range of any other name recurs three times or more with a steady period, its windows
--   hold four fifths of the device work of their time, and that is a third of all, or
-- - a kernel recurs with a steady period through at least half of the device work.
-- A period is steady when four in five lie within a tenth of the median (NVTX: three in five) and
-- the mean is no further off; a mean that is says that the kernel runs several times per step. Of
-- three periods or more the first is left out of that: first steps are slow.
--
-- Preference: NVTX ranges named like a step, other NVTX ranges, collectives, optimizer kernels,
-- other kernels. Among equals those that hold more of the work (in quarters), then the longer
-- period (in steps of 5 %): what recurs inside a step recurs more often than the step; then those
-- that need no count per iteration.
--
-- @grain   one row per kind, pattern, device
-- @reads   nsys.anchor_span, nsys.anchor_work
-- @column  kind              VARCHAR  -   nvtx, nccl or kernel
-- @column  pattern           VARCHAR  -   anchor pattern
-- @column  per_iteration     BIGINT   -   occurrences per iteration
-- @column  device            BIGINT   -   device
-- @column  count             BIGINT   -   closed windows
-- @column  median_period_ns  BIGINT   ns  median of the periods, start to start
-- @column  min_period_ns     BIGINT   ns  shortest period
-- @column  max_period_ns     BIGINT   ns  longest period
-- @column  variation_pct     DOUBLE   pct  median absolute deviation of the periods / their median
-- @column  steady_pct        DOUBLE   pct  periods within a tenth of the median / those looked at
-- @column  share_pct         DOUBLE   pct  work that starts in the windows / all work of the device
-- @column  first_ns          BIGINT   ns  first start
-- @column  last_ns           BIGINT   ns  last end
-- @column  step_ns           BIGINT   ns  step time it implies: the median over the devices
-- @column  rank              BIGINT   -   order in which auto would take it, from 1
-- @column  is_plausible      BOOLEAN  -   auto may take it
-- @column  is_check          BOOLEAN  -   another kind may be checked against it
-- @column  reason            VARCHAR  -   why not, or NULL
WITH span AS (
    SELECT
        s.kind,
        s.pattern,
        s.strength,
        s.per_iteration,
        s.device,
        s.start_ns,
        s.end_ns,
        row_number() OVER start_order AS place,
        -- The last window of a kernel has a period too: it ends where the next one starts.
        CASE
            WHEN s.kind = 'nvtx' THEN lead(s.start_ns) OVER start_order - s.start_ns
            ELSE s.end_ns - s.start_ns
        END AS period_ns
    FROM nsys.anchor_span AS s
    WINDOW start_order AS (
        PARTITION BY s.kind, s.pattern, s.device ORDER BY s.start_ns, s.end_ns
    )
),
usual AS (
    SELECT
        p.kind,
        p.pattern,
        p.strength,
        p.per_iteration,
        p.device,
        count(*) AS window_count,
        count(p.period_ns) >= 3 AS is_first_left_out,
        min(p.start_ns) AS first_ns,
        max(p.end_ns) AS last_ns,
        quantile_disc(p.period_ns, 0.5) AS median_ns,
        min(p.period_ns) AS min_ns,
        max(p.period_ns) AS max_ns
    FROM span AS p
    GROUP BY p.kind, p.pattern, p.strength, p.per_iteration, p.device
),
spread AS (
    SELECT
        p.kind,
        p.pattern,
        p.device,
        quantile_disc(abs(p.period_ns - u.median_ns), 0.5) AS deviation_ns,
        sum(p.period_ns)::BIGINT AS sum_ns,
        count(*) AS period_count,
        count(*) FILTER (10 * abs(p.period_ns - u.median_ns) <= u.median_ns) AS steady_count
    FROM span AS p
    INNER JOIN usual AS u
        ON p.kind = u.kind AND p.pattern = u.pattern AND p.device = u.device
    WHERE p.period_ns IS NOT NULL AND NOT (u.is_first_left_out AND p.place = 1)
    GROUP BY p.kind, p.pattern, p.device
),
-- A pattern is taken for all devices or for none.
whole AS (
    SELECT
        u.kind,
        u.pattern,
        u.strength,
        any_value(u.per_iteration) AS per_iteration,
        max(u.window_count) AS window_count,
        quantile_disc(u.median_ns, 0.5) AS step_ns,
        100.0 * sum(s.steady_count) / nullif(sum(s.period_count), 0) AS steady_pct,
        100.0 * abs(sum(s.sum_ns) - sum(s.period_count * u.median_ns))
            / nullif(sum(s.period_count * u.median_ns), 0) AS mean_off_pct,
        100.0 * sum(w.window_work_ns) / nullif(sum(w.extent_work_ns), 0) AS extent_pct,
        100.0 * sum(w.window_work_ns) / nullif(any_value(t.work_ns), 0) AS share_pct
    FROM usual AS u
    LEFT JOIN spread AS s ON u.kind = s.kind AND u.pattern = s.pattern AND u.device = s.device
    INNER JOIN nsys.anchor_work AS w
        ON u.kind = w.kind AND u.pattern = w.pattern AND u.device = w.device
    CROSS JOIN (
        SELECT sum(d.device_work_ns) AS work_ns
        FROM (SELECT DISTINCT a.device, a.device_work_ns FROM nsys.anchor_work AS a) AS d
    ) AS t
    GROUP BY u.kind, u.pattern, u.strength
    HAVING max(u.window_count) >= 2
),
judged AS (
    SELECT
        w.*,
        coalesce(
            w.steady_pct >= CASE WHEN w.kind = 'nvtx' THEN 60 ELSE 80 END
            AND w.mean_off_pct <= 10,
            false
        ) AS is_steady,
        CASE
            WHEN w.strength = 9 THEN 'range of a library'
            WHEN coalesce(w.step_ns, 0) = 0 THEN 'its windows start together'
            WHEN coalesce(w.share_pct, 0) = 0 THEN 'no device work starts in it'
            WHEN w.strength <= 1 THEN NULL
            WHEN w.kind = 'nvtx' AND w.window_count < 3 THEN 'recurs too seldom'
            WHEN w.kind = 'nvtx' AND (w.extent_pct < 80 OR w.share_pct < 33)
                THEN 'covers too little of the device work'
            WHEN w.kind <> 'nvtx' AND w.share_pct < 50
                THEN 'spans too little of the device work'
            WHEN NOT is_steady THEN 'its period is not steady'
        END AS reason
    FROM whole AS w
),
-- Kernels that imply the same step time support each other.
supported AS (
    SELECT
        j.kind,
        j.pattern,
        count(*) > 1 AS is_supported
    FROM judged AS j
    INNER JOIN judged AS o
        ON j.kind = o.kind AND o.reason IS NULL AND 50 * abs(j.step_ns - o.step_ns) <= j.step_ns
    GROUP BY j.kind, j.pattern
),
ranked AS (
    SELECT
        j.*,
        row_number() OVER (
            ORDER BY
                j.reason IS NOT NULL,
                j.strength,
                CASE WHEN j.kind = 'nvtx' THEN floor(j.extent_pct / 25) END DESC,
                coalesce(s.is_supported, false) DESC,
                CASE WHEN j.step_ns > 0 THEN floor(ln(j.step_ns) / 0.05) END DESC NULLS LAST,
                j.per_iteration,
                j.steady_pct DESC,
                j.share_pct DESC,
                j.kind,
                j.pattern
        ) AS rank
    FROM judged AS j
    LEFT JOIN supported AS s ON j.kind = s.kind AND j.pattern = s.pattern
)
SELECT
    u.kind,
    u.pattern,
    u.per_iteration,
    u.device,
    u.window_count AS count,
    u.median_ns AS median_period_ns,
    u.min_ns AS min_period_ns,
    u.max_ns AS max_period_ns,
    100.0 * s.deviation_ns / nullif(u.median_ns, 0) AS variation_pct,
    100.0 * s.steady_count / nullif(s.period_count, 0) AS steady_pct,
    100.0 * w.window_work_ns / nullif(w.device_work_ns, 0) AS share_pct,
    u.first_ns,
    u.last_ns,
    r.step_ns,
    r.rank,
    r.reason IS NULL AS is_plausible,
    coalesce(r.reason = 'spans too little of the device work', true) AND r.is_steady AS is_check,
    r.reason
FROM ranked AS r
INNER JOIN usual AS u ON r.kind = u.kind AND r.pattern = u.pattern
LEFT JOIN spread AS s ON u.kind = s.kind AND u.pattern = s.pattern AND u.device = s.device
INNER JOIN nsys.anchor_work AS w
    ON u.kind = w.kind AND u.pattern = w.pattern AND u.device = w.device;
