-- blockers — which operations kept compute waiting, and for how long?
--
-- Blocking time by the operation to blame. A kernel was launched and could not start, because
-- what its stream waited for still ran: that operation is the producer, followed through event
-- waits and relays, and never what happens to occupy the gap (pitfalls 7 and 8). An operation
-- that itself waited passes the blame on, so a short copy behind a long collective carries only
-- its own time. The rows of a device add up to `blocking` of its budget in every iteration.
--
-- Evidence is that of the gaps: `resolved` followed known events, `inferred` paired events by
-- their handle, in `unresolved` gaps another wait was lost, and in `no_launch` gaps the launch of
-- the waiting kernel is unknown, so part of the time may have been launch-starved.
--
-- @grain     one row per device, producer name and stream
-- @reads     nsys.steady, nsys.blocking_window, nsys.op_name
-- @needs     kernel | graph_exec
-- @column    device BIGINT - physical GPU of the report
-- @column    producer VARCHAR - operation that compute waited for
-- @column    class VARCHAR - its class in the taxonomy
-- @column    role VARCHAR - compute, comm, wait, memcpy or memset
-- @column    pid BIGINT - process that issued it
-- @column    context_id BIGINT - CUDA context it ran in
-- @column    stream_id BIGINT - CUDA stream it ran on, unique inside the context only
-- @column    count DOUBLE count stretches of waiting that begin in an iteration, median
-- @column    median_ms DOUBLE ms blocking time in an iteration, median
-- @column    min_ms DOUBLE ms least
-- @column    max_ms DOUBLE ms greatest
-- @column    pct_of_iteration DOUBLE pct median by median of the iteration
-- @column    pct_of_blocking DOUBLE pct share of all blocking time of the device
-- @column    resolved_pct DOUBLE pct share of its time in gaps with resolved evidence
-- @column    inferred_pct DOUBLE pct share in gaps with inferred evidence
-- @column    unresolved_pct DOUBLE pct share in gaps with an unresolved wait
-- @column    no_launch_pct DOUBLE pct share in gaps whose kernel has no known launch
-- @column    waiting_kernel VARCHAR - kernel that waited longest for it
-- @column    waiting_class VARCHAR - class of that kernel
-- @column    waiting_pct DOUBLE pct share of its time that this kernel waited
-- @column    n BIGINT - steady iterations
-- @invariant evidence_adds_up abs(resolved_pct + inferred_pct + unresolved_pct + no_launch_pct - 100) < 1e-6
-- @pitfall   7, 8, 9
WITH windows AS (
    SELECT device, count(*) AS n, median(end_ns - start_ns) AS median_ns
    FROM nsys.steady
    GROUP BY device
),
in_window AS (
    SELECT device, iteration, name_id, process, context_id, stream_id,
        sum(count) AS count, sum(blocking_ns)::BIGINT AS blocking_ns
    FROM nsys.blocking_window
    GROUP BY device, iteration, name_id, process, context_id, stream_id
),
by_waiting AS (
    SELECT device, name_id, process, context_id, stream_id, waiting_id,
        sum(blocking_ns) AS blocking_ns
    FROM nsys.blocking_window
    GROUP BY device, name_id, process, context_id, stream_id, waiting_id
),
top_waiting AS (
    SELECT b.device, b.name_id, b.process, b.context_id, b.stream_id,
        coalesce(n.name, '(unnamed kernel)') AS kernel, n.class, b.blocking_ns
    FROM by_waiting AS b
    INNER JOIN nsys.op_name AS n ON n.name_id = b.waiting_id
    QUALIFY row_number() OVER (
        PARTITION BY b.device, b.name_id, b.process, b.context_id, b.stream_id
        ORDER BY b.blocking_ns DESC, kernel, b.waiting_id
    ) = 1
),
evidence AS (
    SELECT
        device,
        name_id,
        process,
        context_id,
        stream_id,
        sum(CASE WHEN evidence = 'resolved' THEN blocking_ns ELSE 0 END) AS resolved_ns,
        sum(CASE WHEN evidence = 'inferred' THEN blocking_ns ELSE 0 END) AS inferred_ns,
        sum(CASE WHEN evidence = 'unresolved' THEN blocking_ns ELSE 0 END) AS unresolved_ns,
        sum(CASE WHEN evidence = 'no_launch' THEN blocking_ns ELSE 0 END) AS no_launch_ns,
    FROM nsys.blocking_window
    GROUP BY device, name_id, process, context_id, stream_id
),
producer AS (
    SELECT
        device,
        name_id,
        process,
        context_id,
        stream_id,
        list(count) AS counts,
        sum(blocking_ns)::BIGINT AS total_ns,
        list(blocking_ns) AS in_windows,
    FROM in_window
    GROUP BY device, name_id, process, context_id, stream_id
),
measured AS (
    SELECT
        p.device,
        coalesce(m.name, '(unnamed kernel)') AS producer,
        m.class,
        m.role,
        p.process,
        p.context_id,
        p.stream_id,
        nsys.padded_median(p.counts, w.n)::DOUBLE AS count,
        p.total_ns,
        nsys.padded_median(p.in_windows, w.n) AS median_ns,
        nsys.padded_min(p.in_windows, w.n) AS min_ns,
        nsys.padded_max(p.in_windows, w.n) AS max_ns,
        w.median_ns AS window_ns,
        sum(p.total_ns) OVER (PARTITION BY p.device) AS device_ns,
        e.resolved_ns,
        e.inferred_ns,
        e.unresolved_ns,
        e.no_launch_ns,
        t.kernel AS waiting_kernel,
        t.class AS waiting_class,
        t.blocking_ns AS waiting_ns,
        w.n,
        p.name_id,
    FROM producer AS p
    INNER JOIN windows AS w ON w.device = p.device
    INNER JOIN nsys.op_name AS m ON m.name_id = p.name_id
    -- exports without process ids have NULLs among the keys
    INNER JOIN evidence AS e
        ON e.device = p.device
        AND e.name_id = p.name_id
        AND e.process IS NOT DISTINCT FROM p.process
        AND e.context_id IS NOT DISTINCT FROM p.context_id
        AND e.stream_id IS NOT DISTINCT FROM p.stream_id
    INNER JOIN top_waiting AS t
        ON t.device = p.device
        AND t.name_id = p.name_id
        AND t.process IS NOT DISTINCT FROM p.process
        AND t.context_id IS NOT DISTINCT FROM p.context_id
        AND t.stream_id IS NOT DISTINCT FROM p.stream_id
)
SELECT
    device,
    producer,
    class,
    role,
    process & 16777215 AS pid,
    context_id,
    stream_id,
    count,
    median_ns / 1e6 AS median_ms,
    min_ns / 1e6 AS min_ms,
    max_ns / 1e6 AS max_ms,
    100 * median_ns / window_ns AS pct_of_iteration,
    100 * total_ns / device_ns AS pct_of_blocking,
    100 * resolved_ns / total_ns AS resolved_pct,
    100 * inferred_ns / total_ns AS inferred_pct,
    100 * unresolved_ns / total_ns AS unresolved_pct,
    100 * no_launch_ns / total_ns AS no_launch_pct,
    waiting_kernel,
    waiting_class,
    100 * waiting_ns / total_ns AS waiting_pct,
    n,
FROM measured
ORDER BY device, total_ns DESC, producer, process, context_id, stream_id, name_id;
