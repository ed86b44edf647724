-- blocking_bound — is the blocking time exact or a lower bound, and on what evidence does it rest?
--
-- Blocking is only claimed for a dependency that the trace shows. Where a wait has no record, was
-- paired by inference, or where the kernel that ends a gap has no launch or belongs to a graph,
-- more of the time may be blocking. Where a launch is missing nothing counts as launch-starved, so
-- what the host was late with stands in blocking and dependency-stalled, and those may be less as
-- well. The shares are of the time without compute in gaps that touch a steady window. They speak
-- of the waits that are in the trace; a call that made a stream wait may have left none.
--
-- @reads   nsys.gap_cut, nsys.steady, nsys.unseen_wait
-- @pitfall 8, 18, 21
WITH span AS (
    SELECT device, min(start_ns) AS start_ns, max(end_ns) AS end_ns
    FROM nsys.steady
    GROUP BY device
),
evidence AS (
    SELECT c.device, c.evidence, count(*) AS gaps, sum(c.end_ns - c.start_ns) AS time_ns
    FROM nsys.gap_cut AS c
    INNER JOIN span AS s
        ON s.device = c.device AND c.start_ns < s.end_ns AND c.end_ns > s.start_ns
    GROUP BY c.device, c.evidence
),
share AS (
    SELECT
        e.device,
        e.evidence,
        e.gaps,
        100 * e.time_ns / sum(e.time_ns) OVER (PARTITION BY e.device) AS pct,
        u.calls,
        coalesce(u.unseen, 0) AS unseen,
    FROM evidence AS e
    LEFT JOIN nsys.unseen_wait AS u ON u.device = e.device
)
SELECT
    'device ' || device || ': blocking is '
    || CASE
        WHEN bool_or(evidence IN ('unresolved', 'inferred', 'no_launch', 'graph'))
            OR max(unseen) > 0
            THEN 'a lower bound'
        ELSE 'resolved: every gap has a launch and known dependencies'
    END
    || CASE
        WHEN max(unseen) > 0
            THEN format(': {} of {} calls that make a stream wait left no wait in the trace, so '
                || 'what they held up is unknown; evidence by time without compute, of the waits '
                || 'that are in it: ', max(unseen), max(calls))
        ELSE '; evidence by time without compute: '
    END
    || string_agg(
        format('{} {:.1f} % ({} gaps)', evidence, pct, gaps), ', ' ORDER BY pct DESC, evidence
    )
    || '; implicit synchronisation of the default stream is not modelled'
    || CASE
        WHEN bool_or(evidence = 'no_launch')
            THEN '. In the gaps without a launch launch_starved is a lower bound as well: what the '
                || 'host was late with stands in blocking and dependency_stalled there'
        ELSE ''
    END AS note,
FROM share
GROUP BY device
ORDER BY device;
