-- call_sites_add_up — do the call sites share out all launch-starved and blocking time?
--
-- @reads  nsys.budget_window, nsys.call_site_window
-- @column device        BIGINT -  physical GPU
-- @column iteration     BIGINT -  window that does not add up
-- @column budget_ns     BIGINT ns launch-starved and blocking time of the budget
-- @column call_sites_ns BIGINT ns the same, summed over call sites
WITH shared AS (
    SELECT device, iteration, sum(launch_starved_ns + blocking_ns)::BIGINT AS time_ns
    FROM nsys.call_site_window
    GROUP BY device, iteration
)
SELECT
    b.device,
    b.iteration,
    b.launch_starved_ns + b.blocking_ns AS budget_ns,
    coalesce(s.time_ns, 0) AS call_sites_ns,
FROM nsys.budget_window AS b
LEFT JOIN shared AS s ON s.device = b.device AND s.iteration = b.iteration
WHERE b.launch_starved_ns + b.blocking_ns <> coalesce(s.time_ns, 0)
ORDER BY b.device, b.iteration;
