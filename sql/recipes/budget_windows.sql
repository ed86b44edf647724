-- budget-windows — how does each steady iteration split into what the device did and did not do?
--
-- Every number is clipped to the window and comes from interval unions over all streams of the
-- device (pitfalls 1 and 2), in whole nanoseconds. The splits add up exactly; the invariants
-- below are checked on every window of every run. comm_blocking may exceed comm_exposed: a copy
-- can run beside the collective that blocks (pitfall 7).
--
-- @grain     one row per device and steady iteration
-- @reads     nsys.budget_window
-- @needs     kernel | graph_exec
-- @column    device BIGINT - physical GPU of the report
-- @column    iteration BIGINT - ordinal over all windows of the device, from 0
-- @column    start_ns BIGINT ns begin of the window on the report's clock
-- @column    end_ns BIGINT ns end of the window
-- @column    iteration_ns BIGINT ns length of the window
-- @column    device_busy_ns BIGINT ns union of all device operations
-- @column    device_idle_ns BIGINT ns iteration less device_busy
-- @column    noncomm_busy_ns BIGINT ns union of kernels and graphs whose role is not comm
-- @column    comm_busy_ns BIGINT ns union of kernels whose role is comm
-- @column    compute_busy_ns BIGINT ns union of kernels and graphs whose role is compute
-- @column    compute_absent_ns BIGINT ns iteration less compute_busy
-- @column    occupied_not_computing_ns BIGINT ns device_busy less compute_busy
-- @column    launch_starved_ns BIGINT ns compute absent, the kernel that ends it was not yet launched
-- @column    blocking_ns BIGINT ns compute absent, launched, and the kernel's producer still ran
-- @column    dependency_stalled_ns BIGINT ns compute absent, launched, and no producer explains the delay
-- @column    unattributed_ns BIGINT ns compute absent after the last compute of the device
-- @column    comm_exposed_ns BIGINT ns comm, and no device operation of another role
-- @column    comm_blocking_ns BIGINT ns part of blocking that a comm kernel is to blame for
-- @column    comm_overlapped_ns BIGINT ns comm_busy less comm_exposed
-- @column    launch_starved_shadowed_ns BIGINT ns launch-starved while the producer itself ran
-- @invariant busy_nested compute_busy_ns <= noncomm_busy_ns AND noncomm_busy_ns <= device_busy_ns AND device_busy_ns <= iteration_ns
-- @invariant busy_and_idle device_busy_ns + device_idle_ns = iteration_ns AND device_idle_ns >= 0
-- @invariant compute_splits compute_busy_ns + compute_absent_ns = iteration_ns
-- @invariant absent_splits occupied_not_computing_ns + device_idle_ns = compute_absent_ns
-- @invariant causes_add_up launch_starved_ns + blocking_ns + dependency_stalled_ns + unattributed_ns = compute_absent_ns
-- @invariant exposed_in_comm comm_exposed_ns <= comm_busy_ns AND comm_exposed_ns >= 0
-- @invariant comm_in_blocking comm_blocking_ns <= blocking_ns AND comm_blocking_ns >= 0
-- @invariant shadow_in_starved launch_starved_shadowed_ns <= launch_starved_ns AND launch_starved_shadowed_ns >= 0
-- @warning   nothing_unattributed unattributed_ns <= 500000
-- @pitfall   1, 2, 7
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
FROM nsys.budget_window
ORDER BY device, iteration;
