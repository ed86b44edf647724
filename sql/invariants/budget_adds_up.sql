-- budget_adds_up — does every window of the budget reconcile, to the nanosecond?
--
-- The invariants of recipe budget-windows, on the windows that stand behind the medians.
--
-- @reads   nsys.budget_window
-- @pitfall 1
SELECT device, iteration, start_ns, end_ns
FROM nsys.budget_window
WHERE (
    compute_busy_ns <= noncomm_busy_ns
    AND noncomm_busy_ns <= device_busy_ns
    AND device_busy_ns <= iteration_ns
    AND device_busy_ns + device_idle_ns = iteration_ns
    AND compute_busy_ns + compute_absent_ns = iteration_ns
    AND occupied_not_computing_ns + device_idle_ns = compute_absent_ns
    AND launch_starved_ns + blocking_ns + dependency_stalled_ns + unattributed_ns
        = compute_absent_ns
    AND comm_exposed_ns BETWEEN 0 AND comm_busy_ns
    AND comm_blocking_ns BETWEEN 0 AND blocking_ns
    AND launch_starved_shadowed_ns BETWEEN 0 AND launch_starved_ns
) IS NOT TRUE
ORDER BY device, iteration;
