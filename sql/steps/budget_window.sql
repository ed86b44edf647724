-- budget_window — how does each steady window split into what the device did and did not do?
--
-- A window takes the sum of the stretches between its borders, as the difference of two running
-- sums, so windows may overlap. Time after the last compute of a device has no kernel that ends
-- it and is unattributed; so is the whole window of a device that never computes.
--
-- @grain  one row per steady window of a device
-- @reads  nsys.steady, nsys.segment, nsys.segment_union, nsys.segment_cause, nsys.sweep
-- @column device                     BIGINT -  physical GPU
-- @column iteration                  BIGINT -  ordinal of the window on its device
-- @column start_ns                   BIGINT ns begin of the window
-- @column end_ns                     BIGINT ns end of the window
-- @column iteration_ns               BIGINT ns length of the window
-- @column device_busy_ns             BIGINT ns union of all device operations
-- @column device_idle_ns             BIGINT ns iteration less device busy
-- @column noncomm_busy_ns            BIGINT ns union of kernels and graphs that are not comm
-- @column comm_busy_ns               BIGINT ns union of kernels that are comm
-- @column compute_busy_ns            BIGINT ns union of kernels and graphs that compute
-- @column compute_absent_ns          BIGINT ns iteration less compute busy
-- @column occupied_not_computing_ns  BIGINT ns device busy less compute busy
-- @column launch_starved_ns          BIGINT ns the next kernel was not launched yet
-- @column blocking_ns                BIGINT ns launched, and its producer still ran
-- @column dependency_stalled_ns      BIGINT ns launched, and no producer explains the delay
-- @column unattributed_ns            BIGINT ns after the last compute of the device
-- @column comm_exposed_ns            BIGINT ns comm while no other operation ran
-- @column comm_blocking_ns           BIGINT ns blocking that a comm kernel is to blame for
-- @column comm_overlapped_ns         BIGINT ns comm busy less exposed
-- @column launch_starved_shadowed_ns BIGINT ns launch-starved while the producer ran
-- @pitfall 1, 7
WITH passed AS (
    SELECT
        s.device,
        s.start_ns AS at_ns,
        coalesce(sum(u.device_busy_ns) OVER before, 0) AS device_busy_ns,
        coalesce(sum(u.noncomm_busy_ns) OVER before, 0) AS noncomm_busy_ns,
        coalesce(sum(u.comm_busy_ns) OVER before, 0) AS comm_busy_ns,
        coalesce(sum(u.compute_busy_ns) OVER before, 0) AS compute_busy_ns,
        coalesce(sum(u.comm_exposed_ns) OVER before, 0) AS comm_exposed_ns,
        coalesce(sum(c.launch_starved_ns) OVER before, 0) AS launch_starved_ns,
        coalesce(sum(c.blocking_ns) OVER before, 0) AS blocking_ns,
        coalesce(sum(c.comm_blocking_ns) OVER before, 0) AS comm_blocking_ns,
        coalesce(sum(c.dependency_stalled_ns) OVER before, 0) AS dependency_stalled_ns,
        coalesce(sum(c.shadowed_ns) OVER before, 0) AS shadowed_ns,
    FROM nsys.segment AS s
    LEFT JOIN nsys.segment_union AS u ON u.device = s.device AND u.segment = s.segment
    LEFT JOIN nsys.segment_cause AS c ON c.device = s.device AND c.segment = s.segment
    WINDOW before AS (
        PARTITION BY s.device ORDER BY s.segment
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
),
last_compute AS (
    SELECT device, max(end_ns) AS end_ns
    FROM nsys.sweep
    WHERE role = 'compute'
    GROUP BY device
),
measured AS (
    SELECT
        w.device,
        w.iteration,
        w.start_ns,
        w.end_ns,
        w.end_ns - w.start_ns AS iteration_ns,
        z.device_busy_ns - a.device_busy_ns AS device_busy_ns,
        z.noncomm_busy_ns - a.noncomm_busy_ns AS noncomm_busy_ns,
        z.comm_busy_ns - a.comm_busy_ns AS comm_busy_ns,
        z.compute_busy_ns - a.compute_busy_ns AS compute_busy_ns,
        z.comm_exposed_ns - a.comm_exposed_ns AS comm_exposed_ns,
        z.launch_starved_ns - a.launch_starved_ns AS launch_starved_ns,
        z.blocking_ns - a.blocking_ns AS blocking_ns,
        z.comm_blocking_ns - a.comm_blocking_ns AS comm_blocking_ns,
        z.dependency_stalled_ns - a.dependency_stalled_ns AS dependency_stalled_ns,
        z.shadowed_ns - a.shadowed_ns AS shadowed_ns,
        w.end_ns - least(w.end_ns, greatest(w.start_ns, coalesce(l.end_ns, w.start_ns)))
            AS unattributed_ns,
    FROM nsys.steady AS w
    INNER JOIN passed AS a ON a.device = w.device AND a.at_ns = w.start_ns
    INNER JOIN passed AS z ON z.device = w.device AND z.at_ns = w.end_ns
    LEFT JOIN last_compute AS l ON l.device = w.device
)
SELECT
    device,
    iteration,
    start_ns,
    end_ns,
    iteration_ns::BIGINT AS iteration_ns,
    device_busy_ns::BIGINT AS device_busy_ns,
    (iteration_ns - device_busy_ns)::BIGINT AS device_idle_ns,
    noncomm_busy_ns::BIGINT AS noncomm_busy_ns,
    comm_busy_ns::BIGINT AS comm_busy_ns,
    compute_busy_ns::BIGINT AS compute_busy_ns,
    (iteration_ns - compute_busy_ns)::BIGINT AS compute_absent_ns,
    (device_busy_ns - compute_busy_ns)::BIGINT AS occupied_not_computing_ns,
    launch_starved_ns::BIGINT AS launch_starved_ns,
    blocking_ns::BIGINT AS blocking_ns,
    dependency_stalled_ns::BIGINT AS dependency_stalled_ns,
    unattributed_ns::BIGINT AS unattributed_ns,
    comm_exposed_ns::BIGINT AS comm_exposed_ns,
    comm_blocking_ns::BIGINT AS comm_blocking_ns,
    (comm_busy_ns - comm_exposed_ns)::BIGINT AS comm_overlapped_ns,
    shadowed_ns::BIGINT AS launch_starved_shadowed_ns,
FROM measured;
