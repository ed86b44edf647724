-- ranges_in_budget — does no range claim more of the device than the device did?
--
-- Ranges overlap and need not cover the device, so they do not add up to its busy time; but each
-- of them lies in it, and its parts add up.
--
-- @reads   nsys.budget_window, nsys.range_window
-- @pitfall 1
SELECT r.device, r.iteration, r.path_no
FROM nsys.range_window AS r
INNER JOIN nsys.budget_window AS w ON w.device = r.device AND w.iteration = r.iteration
WHERE (
    r.busy_ns BETWEEN 0 AND w.device_busy_ns
    AND r.compute_ns BETWEEN 0 AND w.compute_busy_ns
    AND r.comm_ns BETWEEN 0 AND w.comm_busy_ns
    AND r.copy_ns >= 0
    AND r.idle_ns >= 0
    AND r.compute_ns + r.comm_ns + r.copy_ns + r.idle_ns = r.span_ns
    AND r.span_ns <= w.iteration_ns
    AND r.host_ns BETWEEN 0 AND least(r.host_work_ns, w.iteration_ns)
) IS NOT TRUE
ORDER BY r.device, r.iteration, r.path_no;
