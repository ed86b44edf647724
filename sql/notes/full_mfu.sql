-- full_mfu — can the given MFU and the bounds be true at once?
--
-- @reads   nsys.opportunity
-- @param   mfu DOUBLE = NULL (0, 100]  model FLOPS utilisation of the profiled step
-- @pitfall 29
WITH params AS (
    -- up to 1 it is a fraction
    SELECT mfu, CASE WHEN mfu <= 1 THEN 1 ELSE 100 END AS full_mfu
    FROM (SELECT getvariable('mfu')::DOUBLE AS mfu) AS given
)
SELECT
    format(
        'device {}: without the time of {} an MFU of {:.1f} % would be {:.1f} %: above 100 % the '
        || 'given MFU and this bound cannot both hold; the one is not that of this step, or not '
        || 'all of the other can be recovered',
        o.device,
        o.opportunity,
        100 * p.mfu / p.full_mfu,
        100 * p.mfu / p.full_mfu * o.step_ns / (o.step_ns - o.median_ns)
    ) AS note,
FROM nsys.opportunity AS o
CROSS JOIN params AS p
WHERE o.rank = 1 AND p.mfu * o.step_ns / nullif(o.step_ns - o.median_ns, 0) > p.full_mfu
ORDER BY o.device;
