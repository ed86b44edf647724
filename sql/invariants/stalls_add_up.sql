-- stalls_add_up — is all launch-starved time of the budget laid to something the host did?
--
-- @reads   nsys.budget_window, nsys.stall_window
-- @pitfall 11
WITH stalled AS (
    SELECT device, iteration, sum(starved_ns) AS starved_ns
    FROM nsys.stall_window
    GROUP BY device, iteration
)
SELECT w.device, w.iteration, w.launch_starved_ns, s.starved_ns
FROM nsys.budget_window AS w
LEFT JOIN stalled AS s ON s.device = w.device AND s.iteration = w.iteration
WHERE w.launch_starved_ns <> coalesce(s.starved_ns, 0)
ORDER BY w.device, w.iteration;
