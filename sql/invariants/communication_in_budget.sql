-- communication_in_budget — does all communication agree with the budget, window by window?
--
-- Two different computations of the same thing: the budget sweeps all operations at once, recipe
-- communication subtracts islands. They must agree to the nanosecond in every window.
--
-- @reads   nsys.budget_window, nsys.comm_window
-- @pitfall 7
SELECT b.device, b.iteration, b.start_ns, b.end_ns
FROM nsys.budget_window AS b
LEFT JOIN nsys.comm_window AS c
    ON c.device = b.device AND c.iteration = b.iteration AND c.set_id = 0
WHERE (
    b.comm_busy_ns = c.busy_ns
    AND b.comm_exposed_ns = c.exposed_ns
    AND b.comm_blocking_ns = c.blocking_ns
) IS NOT TRUE
ORDER BY b.device, b.iteration;
