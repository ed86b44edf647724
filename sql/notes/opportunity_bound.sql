-- opportunity_bound — what may be done with the bounds of the opportunities, and what not?
--
-- The bound of all causes together is the median of each iteration's sum: medians of parts do not
-- add up to it.
--
-- @reads   nsys.opportunity, nsys.opportunity_window, nsys.budget_window
-- @pitfall 29, 31, 32
WITH whole AS (
    SELECT
        b.device,
        b.iteration,
        any_value(b.iteration_ns) AS iteration_ns,
        coalesce(sum(w.recoverable_ns), 0)::BIGINT AS recoverable_ns,
    FROM nsys.budget_window AS b
    LEFT JOIN nsys.opportunity_window AS w ON w.device = b.device AND w.iteration = b.iteration
    GROUP BY b.device, b.iteration
),
together AS (
    SELECT
        device,
        format(
            'device {} {} of {}',
            device,
            nsys.duration_text(median(recoverable_ns)),
            nsys.duration_text(median(iteration_ns))
        ) AS text,
    FROM whole
    WHERE device IN (SELECT device FROM nsys.opportunity GROUP BY device HAVING count(*) > 1)
    GROUP BY device
)
SELECT note
FROM (
    VALUES
        (
            1,
            'bounds are ceilings, not forecasts: the time that the trace attributes to the cause, '
            || 'and the step without exactly that; what else would move because of a change is not '
            || 'in them, in either direction. The rows of a device are disjoint pieces of its time '
            || 'without compute: they add up in each iteration, their medians need not, and '
            || 'changes must be independent. Step and bound are medians taken separately: look at '
            || 'the range of each. A shorter device step shortens the job only where this device '
            || 'holds it up'
        ),
        (
            2,
            'actions follow from the class of the cause; the mechanism in source and '
            || 'configuration is unverified'
        ),
) AS fixed (position, note)
WHERE EXISTS (SELECT 1 FROM nsys.opportunity)
UNION ALL
SELECT 'bounds of all rows together, the median of each iteration''s sum: '
    || string_agg(text, ', ' ORDER BY device)
FROM together
HAVING count(*) > 0
UNION ALL
SELECT 'no launch-starved time that an earlier launch could recover and no known blocking time was '
    || 'found; where blocking is a lower bound there may be some all the same'
WHERE NOT EXISTS (SELECT 1 FROM nsys.opportunity)
ORDER BY note;
