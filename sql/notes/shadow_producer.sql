-- shadow_producer — how much launch-starved time could only another way of its producer recover?
--
-- Where the producer of the next kernel was still running, launching earlier alone recovers
-- nothing, so such time is in no bound. It is told from 1 % of the iteration on, with what the
-- producers were: often the host itself waited for them.
--
-- @reads   nsys.budget_window, nsys.shadow_producer
-- @pitfall 7
WITH step AS (
    SELECT
        device,
        median(launch_starved_shadowed_ns) AS shadowed_ns,
        median(iteration_ns) AS step_ns,
    FROM nsys.budget_window
    GROUP BY device
),
share AS (
    SELECT
        device,
        producer,
        100 * shadowed_ns / sum(shadowed_ns) OVER (PARTITION BY device) AS pct,
    FROM nsys.shadow_producer
),
listed AS (
    SELECT
        device,
        string_agg(format('{} {:.0f} %', producer, pct), ', ' ORDER BY pct DESC, producer)
            AS producers,
    FROM share
    WHERE pct >= 1
    GROUP BY device
)
SELECT
    format(
        'device {}: {} of {} per iteration (medians) are launch-starved while the producer of the '
        || 'next kernel ran anyway{}. That is in no bound: launching earlier alone cannot recover '
        || 'it; making that operation asynchronous or shorter might, up to that much',
        s.device,
        nsys.duration_text(s.shadowed_ns),
        nsys.duration_text(s.step_ns),
        coalesce(' (' || l.producers || ')', '')
    ) AS note,
FROM step AS s
LEFT JOIN listed AS l ON l.device = s.device
WHERE s.shadowed_ns >= 0.01 * s.step_ns
ORDER BY s.device;
