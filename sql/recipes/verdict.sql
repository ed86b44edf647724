-- verdict — what does an iteration of each device mostly consist of, and what limits that answer?
--
-- The iteration is split into disjoint shares: time with compute, launch-starved time with and
-- without a producer that ran anyway, blocking time by the operation to blame, dependency-stalled
-- and unattributed time. The largest share by median is the dominant cost. Volume and exposed
-- time of communication and copies take no part in it: only what compute waited for does
-- (pitfalls 1 and 7). An opportunity is material from 1 % of the iteration on.
--
-- Launch-starved time in which a producer ran anyway is in no opportunity: launching earlier alone
-- cannot recover it. Making that producer shorter or asynchronous might, so it is told beside.
--
-- @grain   one row per device
-- @reads   nsys.budget_window, nsys.opportunity, nsys.name_window, nsys.op_name,
--          nsys.gap_cut, nsys.step_slowdown, nsys.iteration, nsys.unseen_wait,
--          nsys.shadow_producer, nsys.window_period
-- @needs   kernel | graph_exec
-- @column  device BIGINT - physical GPU of the report
-- @column  n BIGINT - steady iterations
-- @column  iteration_ms DOUBLE ms iteration, median
-- @column  iteration_min_ms DOUBLE ms least
-- @column  iteration_max_ms DOUBLE ms greatest
-- @column  dominant_cost VARCHAR - the largest share of the iteration
-- @column  dominant_ms DOUBLE ms that share, median
-- @column  dominant_pct DOUBLE pct of the iteration
-- @column  compute_busy_ms DOUBLE ms time with compute, median
-- @column  compute_busy_pct DOUBLE pct of the iteration
-- @column  compute_class VARCHAR - class with the most compute work
-- @column  compute_class_pct DOUBLE pct of the compute work that is of this class
-- @column  compute_absent_ms DOUBLE ms time without compute, median
-- @column  unexplained_ms DOUBLE ms dependency-stalled and unattributed time, median
-- @column  comm_busy_ms DOUBLE ms union of communication, median
-- @column  comm_exposed_ms DOUBLE ms of it with no operation of another role beside, median
-- @column  comm_blocking_ms DOUBLE ms of it that compute waited for, median
-- @column  shadowed_ms DOUBLE ms launch-starved time in which the producer ran anyway, median
-- @column  shadowed_pct DOUBLE pct of the iteration
-- @column  shadowed_by VARCHAR - what those producers were, with shares; NULL where none is known
-- @column  is_shadowed_material BOOLEAN - it is 1 % of the iteration or more
-- @column  is_lower_bound BOOLEAN - more may be blocking than is known, see limits
-- @column  opportunity VARCHAR - the most recoverable time; NULL where there is none
-- @column  recoverable_ms DOUBLE ms of it, median
-- @column  recoverable_min_ms DOUBLE ms least
-- @column  recoverable_max_ms DOUBLE ms greatest
-- @column  throughput_gain_ceiling_pct DOUBLE pct (T / (T - R) - 1) * 100
-- @column  bound_kind VARCHAR - how the bound may err
-- @column  confidence VARCHAR - high, medium or low
-- @column  is_material BOOLEAN - the opportunity is at least 1 % of the iteration
-- @column  limits VARCHAR - what limits the answer, NULL nothing found
-- @pitfall 1, 7, 8, 24, 31
WITH step AS (
    SELECT
        device,
        count(*) AS n,
        median(iteration_ns) AS step_ns,
        min(iteration_ns) AS min_ns,
        max(iteration_ns) AS max_ns,
        median(compute_busy_ns) AS compute_busy_ns,
        median(compute_absent_ns) AS compute_absent_ns,
        median(dependency_stalled_ns + unattributed_ns) AS unexplained_ns,
        median(comm_busy_ns) AS comm_busy_ns,
        median(comm_exposed_ns) AS comm_exposed_ns,
        median(comm_blocking_ns) AS comm_blocking_ns,
        median(launch_starved_shadowed_ns) AS shadowed_ns,
        median(dependency_stalled_ns) AS stalled_ns,
        median(unattributed_ns) AS unattributed_ns,
        min(start_ns) AS start_ns,
        max(end_ns) AS end_ns,
    FROM nsys.budget_window
    GROUP BY device
),
share AS (
    SELECT device, 0 AS position, 'compute' AS cost, compute_busy_ns AS cost_ns FROM step
    UNION ALL
    SELECT device, rank, opportunity, median_ns FROM nsys.opportunity
    UNION ALL
    SELECT device, 1000, 'launch-starved while the producer ran anyway', shadowed_ns FROM step
    UNION ALL
    SELECT device, 1001, 'dependency-stalled', stalled_ns FROM step
    UNION ALL
    SELECT device, 1002, 'unattributed', unattributed_ns FROM step
),
dominant AS (
    SELECT device, cost, cost_ns
    FROM share
    QUALIFY row_number() OVER (PARTITION BY device ORDER BY cost_ns DESC, position) = 1
),
class_work AS (
    SELECT
        m.device,
        n.class,
        sum(m.work_ns) AS work_ns,
        100 * sum(m.work_ns) / nullif(sum(sum(m.work_ns)) OVER (PARTITION BY m.device), 0) AS pct,
    FROM nsys.name_window AS m
    INNER JOIN nsys.op_name AS n ON n.name_id = m.name_id
    WHERE n.role = 'compute'
    GROUP BY m.device, n.class
),
top_class AS (
    SELECT device, class, pct
    FROM class_work
    QUALIFY row_number() OVER (PARTITION BY device ORDER BY work_ns DESC, class) = 1
),
evidence AS (
    SELECT
        s.device,
        100 * sum(c.end_ns - c.start_ns) FILTER (
            WHERE c.evidence IN ('unresolved', 'inferred', 'no_launch', 'graph')
        ) / sum(c.end_ns - c.start_ns) AS unknown_pct,
        100 * sum(c.end_ns - c.start_ns) FILTER (WHERE c.evidence = 'no_launch')
            / sum(c.end_ns - c.start_ns) AS no_launch_pct,
    FROM nsys.gap_cut AS c
    INNER JOIN step AS s
        ON s.device = c.device AND c.start_ns < s.end_ns AND c.end_ns > s.start_ns
    GROUP BY s.device
),
shadow AS (
    SELECT
        device,
        string_agg(
            format('{} {:.0f} %', producer, 100 * shadowed_ns / total_ns), ', '
            ORDER BY shadowed_ns DESC, producer
        ) AS producers,
    FROM (
        SELECT *, sum(shadowed_ns) OVER (PARTITION BY device) AS total_ns
        FROM nsys.shadow_producer
    ) AS s
    WHERE shadowed_ns >= 0.01 * total_ns
    GROUP BY device
),
limit_text AS (
    SELECT device, 0 AS position, format('only {} steady iteration{}', n,
        CASE WHEN n = 1 THEN '' ELSE 's' END) AS text
    FROM step
    WHERE n < 3
    UNION ALL
    SELECT device, 0, format('the ranges that mark iterations are named as warmup ({})',
        any_value(anchor))
    FROM nsys.iteration
    WHERE status = 'steady' AND regexp_matches(anchor, 'warm[ _-]?up', 'i')
        AND device IN (SELECT device FROM step)
    GROUP BY device
    UNION ALL
    SELECT device, 1, format('iterations differ by {:.0f} % of their median',
        100 * (max_ns - min_ns) / step_ns)
    FROM step
    WHERE max_ns - min_ns > 0.2 * step_ns
    UNION ALL
    SELECT device, 1, format('{:.0f} % of the time lies between the windows and is in no budget: a '
        || 'window takes {}, from its start to that of the next it is {} (medians)',
        100 * between_ns / span_ns, nsys.duration_text(window_ns),
        nsys.duration_text(period_ns))
    FROM nsys.window_period
    WHERE between_ns >= 0.05 * span_ns AND device IN (SELECT device FROM step)
    UNION ALL
    SELECT device, 2, format('blocking is a lower bound: {:.0f} % of the time without compute lies '
        || 'in gaps whose launch or dependencies are not fully known', unknown_pct)
    FROM evidence
    WHERE unknown_pct > 0
    UNION ALL
    SELECT device, 2, format('blocking is a lower bound: {} of {} calls that make a stream wait '
        || 'left no wait in the trace, so what they held up is unknown', unseen, calls)
    FROM nsys.unseen_wait
    WHERE unseen > 0 AND device IN (SELECT device FROM step)
    UNION ALL
    SELECT device, 2, format('launch-starved is a lower bound: {:.0f} % of the time without compute '
        || 'lies in gaps without a launch, and what the host was late with there stands in '
        || 'blocking and dependency-stalled', no_launch_pct)
    FROM evidence
    WHERE no_launch_pct > 0
    UNION ALL
    SELECT device, 3, 'whole CUDA graphs count as compute, what ran inside is not in the trace'
    FROM top_class
    WHERE class = 'graph'
    UNION ALL
    SELECT device, 4, format('{:.0f} % of the compute work is of kernels of class other', pct)
    FROM class_work
    WHERE class = 'other' AND pct >= 10
    UNION ALL
    SELECT device, 5, format('{:.3f} ms are dependency-stalled or unattributed, without a known '
        || 'cause', unexplained_ns / 1e6)
    FROM step
    WHERE unexplained_ns >= 0.01 * step_ns
    UNION ALL
    SELECT device, 6, format('perturbed: the profiled step is {:.1f} % slower than the unprofiled '
        || 'one', 100 * slowdown_ns / unprofiled_median_ns)
    FROM nsys.step_slowdown
    WHERE coalesce(is_material, slowdown_ns > 0)
    UNION ALL
    SELECT device, 6, format('the iteration is {:.1f} % shorter than the unprofiled step, so it is '
        || 'probably not what the trainer calls a step', -100 * slowdown_ns / unprofiled_median_ns)
    FROM nsys.step_slowdown
    WHERE is_other_step
),
limiting AS (
    SELECT device, string_agg(text, '; ' ORDER BY position, text) AS limits
    FROM limit_text
    GROUP BY device
)
SELECT
    s.device,
    s.n,
    s.step_ns / 1e6 AS iteration_ms,
    s.min_ns / 1e6 AS iteration_min_ms,
    s.max_ns / 1e6 AS iteration_max_ms,
    d.cost AS dominant_cost,
    d.cost_ns / 1e6 AS dominant_ms,
    100 * d.cost_ns / s.step_ns AS dominant_pct,
    s.compute_busy_ns / 1e6 AS compute_busy_ms,
    100 * s.compute_busy_ns / s.step_ns AS compute_busy_pct,
    t.class AS compute_class,
    t.pct AS compute_class_pct,
    s.compute_absent_ns / 1e6 AS compute_absent_ms,
    s.unexplained_ns / 1e6 AS unexplained_ms,
    s.comm_busy_ns / 1e6 AS comm_busy_ms,
    s.comm_exposed_ns / 1e6 AS comm_exposed_ms,
    s.comm_blocking_ns / 1e6 AS comm_blocking_ms,
    s.shadowed_ns / 1e6 AS shadowed_ms,
    100 * s.shadowed_ns / s.step_ns AS shadowed_pct,
    w.producers AS shadowed_by,
    s.shadowed_ns >= 0.01 * s.step_ns AS is_shadowed_material,
    coalesce(e.unknown_pct > 0, false) OR coalesce(u.unseen > 0, false) AS is_lower_bound,
    o.opportunity,
    o.median_ns / 1e6 AS recoverable_ms,
    o.min_ns / 1e6 AS recoverable_min_ms,
    o.max_ns / 1e6 AS recoverable_max_ms,
    (s.step_ns / nullif(s.step_ns - o.median_ns, 0) - 1) * 100 AS throughput_gain_ceiling_pct,
    o.bound_kind,
    o.confidence,
    coalesce(o.is_material, false) AS is_material,
    l.limits,
FROM step AS s
INNER JOIN dominant AS d ON d.device = s.device
LEFT JOIN top_class AS t ON t.device = s.device
LEFT JOIN nsys.opportunity AS o ON o.device = s.device AND o.rank = 1
LEFT JOIN limiting AS l ON l.device = s.device
LEFT JOIN shadow AS w ON w.device = s.device
LEFT JOIN evidence AS e ON e.device = s.device
LEFT JOIN nsys.unseen_wait AS u ON u.device = s.device
ORDER BY s.device;
