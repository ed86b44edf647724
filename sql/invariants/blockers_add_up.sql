-- blockers_add_up — is all blocking time of the budget laid to some producer, and no more?
--
-- @reads   nsys.budget_window, nsys.blocking_window, nsys.op_name
-- @pitfall 8
WITH blamed AS (
    SELECT
        b.device,
        b.iteration,
        sum(b.blocking_ns) AS blocking_ns,
        sum(CASE WHEN n.role = 'comm' THEN b.blocking_ns ELSE 0 END) AS comm_blocking_ns,
    FROM nsys.blocking_window AS b
    INNER JOIN nsys.op_name AS n ON n.name_id = b.name_id
    GROUP BY b.device, b.iteration
)
SELECT w.device, w.iteration, w.blocking_ns, b.blocking_ns AS blamed_ns
FROM nsys.budget_window AS w
LEFT JOIN blamed AS b ON b.device = w.device AND b.iteration = w.iteration
WHERE w.blocking_ns <> coalesce(b.blocking_ns, 0)
    OR w.comm_blocking_ns <> coalesce(b.comm_blocking_ns, 0)
ORDER BY w.device, w.iteration;
