-- opportunity_bound — what may be done with the bounds of the opportunities, and what not?
--
-- @reads   nsys.opportunity
-- @pitfall 29, 31, 32
SELECT note
FROM (
    VALUES
        (
            1,
            'bounds are ceilings, not forecasts; the rows of a device are disjoint pieces of its '
            || 'time without compute, so bounds may be added only where the changes are '
            || 'independent; a shorter device step shortens the job only where this device holds '
            || 'it up'
        ),
        (
            2,
            'actions follow from the class of the cause; the mechanism in source and '
            || 'configuration is unverified'
        ),
) AS fixed (position, note)
WHERE EXISTS (SELECT 1 FROM nsys.opportunity)
UNION ALL
SELECT 'no launch-starved and no blocking time was found: nothing here is recoverable by launching '
    || 'earlier or by hiding communication or copies'
WHERE NOT EXISTS (SELECT 1 FROM nsys.opportunity)
ORDER BY note;
