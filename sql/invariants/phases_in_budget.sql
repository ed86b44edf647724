-- phases_in_budget — do the phases together cover what the device did, and none of them more?
--
-- @reads   nsys.budget_window, nsys.phase_window
-- @pitfall 1
WITH phased AS (
    SELECT device, iteration, max(busy_ns) AS longest_ns, sum(busy_ns) AS all_ns,
        max(compute_ns) AS longest_compute_ns, sum(compute_ns) AS all_compute_ns,
        bool_and(compute_ns >= 0 AND comm_ns >= 0 AND copy_ns >= 0) AS is_valid
    FROM nsys.phase_window
    GROUP BY device, iteration
)
SELECT w.device, w.iteration, w.device_busy_ns, p.longest_ns, p.all_ns
FROM nsys.budget_window AS w
LEFT JOIN phased AS p ON p.device = w.device AND p.iteration = w.iteration
WHERE (
    coalesce(p.is_valid, true)
    AND coalesce(p.longest_ns, 0) <= w.device_busy_ns
    AND coalesce(p.all_ns, 0) >= w.device_busy_ns
    AND coalesce(p.longest_compute_ns, 0) <= w.compute_busy_ns
    AND coalesce(p.all_compute_ns, 0) >= w.compute_busy_ns
) IS NOT TRUE
ORDER BY w.device, w.iteration;
