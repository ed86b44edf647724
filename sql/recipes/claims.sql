-- claims — which statements of a report are measured, which inferred, and which unverified?
--
-- `measured`: read off the rows of the trace by the rule named as the basis. `inferred`: it follows
-- from what was measured by a rule that can err. `unverified`: the trace cannot tell.
-- `source-verified` needs the source and configuration of the profiled revision: no statement
-- made from a trace alone has it (pitfall 32). Blocking time is inferred as soon as part of the
-- gaps is not fully known, and unverified where nearly all are not, or where waits were called for
-- and none is in the trace.
--
-- @grain   one row per device and claim
-- @reads   nsys.budget_window, nsys.opportunity, nsys.gap_cut, nsys.iteration, nsys.name_window,
--          nsys.kernel_name, nsys.step_slowdown, nsys.unseen_wait, nsys.shadow_producer
-- @needs   kernel | graph_exec
-- @column  device BIGINT - physical GPU of the report
-- @column  position BIGINT - order of the claims of a device
-- @column  claim VARCHAR - what is said
-- @column  status VARCHAR - source-verified, measured, inferred or unverified
-- @column  basis VARCHAR - why
-- @pitfall 8, 18, 20, 24, 30, 31, 32
WITH step AS (
    SELECT
        device,
        count(*) AS n,
        min(start_ns) AS start_ns,
        max(end_ns) AS end_ns,
        median(iteration_ns) AS step_ns,
        median(launch_starved_shadowed_ns) AS shadowed_ns,
    FROM nsys.budget_window
    GROUP BY device
),
anchored AS (
    SELECT device, any_value(anchor) AS anchor FROM nsys.iteration GROUP BY device
),
evidence AS (
    SELECT
        s.device,
        coalesce(100 * sum(c.end_ns - c.start_ns) FILTER (WHERE c.evidence = 'inferred')
            / sum(c.end_ns - c.start_ns), 0) AS inferred_pct,
        coalesce(100 * sum(c.end_ns - c.start_ns) FILTER (
            WHERE c.evidence IN ('unresolved', 'no_launch', 'graph')
        ) / sum(c.end_ns - c.start_ns), 0) AS unknown_pct,
        coalesce(100 * sum(c.end_ns - c.start_ns) FILTER (
            WHERE c.evidence IN ('no_launch', 'graph')
        ) / sum(c.end_ns - c.start_ns), 0) AS launchless_pct,
    FROM nsys.gap_cut AS c
    INNER JOIN step AS s
        ON s.device = c.device AND c.start_ns < s.end_ns AND c.end_ns > s.start_ns
    GROUP BY s.device
),
named AS (
    SELECT
        m.device,
        coalesce(100 * sum(m.work_ns) FILTER (WHERE k.is_matched) / sum(m.work_ns), 0)
            AS matched_pct,
    FROM nsys.name_window AS m
    INNER JOIN nsys.kernel_name AS k ON k.name_id = m.name_id
    GROUP BY m.device
),
claim AS (
    SELECT s.device, 10 AS position, 'iterations and their times' AS claim, 'measured' AS status,
        format('anchor {}, n = {}', coalesce(a.anchor, 'unknown'), s.n) AS basis
    FROM step AS s
    LEFT JOIN anchored AS a ON a.device = s.device
    UNION ALL
    SELECT device, 20, 'time with and without compute, idle and busy time', 'measured',
        'unions of the intervals of all operations, clipped to the iterations'
    FROM step
    UNION ALL
    SELECT device, 30, 'classes of kernels, and with them what is compute and what communication',
        'inferred', format('rules on kernel names; {:.1f} % of kernel work matched one',
            matched_pct)
    FROM named
    UNION ALL
    SELECT device, 40, 'launch-starved time',
        CASE WHEN launchless_pct > 0 THEN 'inferred' ELSE 'measured' END,
        format('end of the launch call of the kernel that ends a gap; {:.1f} % of the time without '
            || 'compute lies in gaps without one', launchless_pct)
    FROM evidence
    UNION ALL
    SELECT e.device, 50, 'blocking time and the operation to blame',
        CASE
            -- pitfall 18: without waits nothing says that none was waited for
            WHEN e.unknown_pct >= 95 OR u.unseen = u.calls THEN 'unverified'
            WHEN e.inferred_pct > 0 OR e.unknown_pct > 0 OR u.unseen > 0 THEN 'inferred'
            ELSE 'measured'
        END,
        format('stream order and event waits; of the time without compute {:.1f} % rests on pairs '
            || 'that were inferred and {:.1f} % lies in gaps that are not fully known{}',
            e.inferred_pct, e.unknown_pct,
            CASE
                WHEN u.unseen > 0
                    THEN format('; {} of {} calls that make a stream wait left no wait in the '
                        || 'trace', u.unseen, u.calls)
                ELSE ''
            END)
    FROM evidence AS e
    LEFT JOIN nsys.unseen_wait AS u ON u.device = e.device
    UNION ALL
    SELECT s.device, 45, 'what is recoverable of launch-starved time while the producer ran anyway',
        'unverified',
        format('{} of {} per iteration (medians{}), in no bound: an earlier launch alone cannot '
            || 'recover it, another way to do that operation may',
            nsys.duration_text(s.shadowed_ns), nsys.duration_text(s.step_ns),
            coalesce(', most of it beside ' || p.producer, ''))
    FROM step AS s
    LEFT JOIN (
        SELECT device, arg_max(producer, (shadowed_ns, producer)) AS producer
        FROM nsys.shadow_producer
        GROUP BY device
    ) AS p ON p.device = s.device
    WHERE s.shadowed_ns >= 0.01 * s.step_ns
    UNION ALL
    SELECT device, 60, 'cause of dependency-stalled time', 'unverified',
        'no dependency in the trace explains it'
    FROM nsys.budget_window
    GROUP BY device
    HAVING max(dependency_stalled_ns) > 0
    UNION ALL
    SELECT device, 100 + rank, format('bound of opportunity {}: {}', rank, opportunity),
        CASE WHEN certain_pct >= 50 THEN 'measured' ELSE 'inferred' END,
        format('{}, confidence {}; {:.0f} % of it with known launch and dependencies', bound_kind,
            confidence, floor(certain_pct))
    FROM nsys.opportunity
    UNION ALL
    SELECT device, 900, 'ceilings of throughput and MFU', 'inferred',
        'arithmetic on the measured step and bound; no forecast'
    FROM nsys.opportunity
    GROUP BY device
    UNION ALL
    SELECT device, 910, 'mechanism in source or configuration, and that an action helps',
        'unverified', 'no source was read and no comparable run measured'
    FROM step
    UNION ALL
    SELECT device, 920, 'which rank holds the job up', 'unverified',
        'one trace says nothing of ranks that it did not capture'
    FROM step
    UNION ALL
    SELECT
        s.device,
        930,
        'slowdown by the profiler',
        CASE WHEN p.device IS NULL THEN 'unverified' ELSE 'measured' END,
        CASE
            WHEN p.device IS NULL THEN 'no unprofiled reference steps were given'
            ELSE format(
                '{:.1f} % against {} unprofiled steps; that they are the same workload is taken '
                || 'on trust',
                100 * p.slowdown_ns / p.unprofiled_median_ns, p.unprofiled_n
            )
        END,
    FROM step AS s
    LEFT JOIN nsys.step_slowdown AS p ON p.device = s.device
)
SELECT device, position, claim, status, basis
FROM claim
ORDER BY device, position;
