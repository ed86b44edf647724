-- budget — how does each steady window of each device split up?
--
-- The rows of nsys.budget_window as they are.
--
-- @grain  one row per device and steady window
-- @reads  nsys.budget_window
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
SELECT
    device,
    iteration,
    start_ns,
    end_ns,
    iteration_ns,
    device_busy_ns,
    device_idle_ns,
    noncomm_busy_ns,
    comm_busy_ns,
    compute_busy_ns,
    compute_absent_ns,
    occupied_not_computing_ns,
    launch_starved_ns,
    blocking_ns,
    dependency_stalled_ns,
    unattributed_ns,
    comm_exposed_ns,
    comm_blocking_ns,
    comm_overlapped_ns,
    launch_starved_shadowed_ns,
FROM nsys.budget_window;
