-- communication — how much communication is there, how much is exposed, and how much blocks?
--
-- Three different quantities, always side by side. Work is volume: the sum of durations, which
-- overlap. Exposed is the time in which an operation of the row runs and no device operation of
-- another role does, whether or not anything waits for it. Blocking is the time without compute
-- whose resolved dependency leads to an operation of the row: compute is known to have waited for
-- it. Only blocking time is on the critical path (pitfall 7). Either may be the larger: exposed
-- where nothing waits, blocking where a copy runs beside the collective that blocks. Neither limits
-- what a change gives.
--
-- A row covers one set of operations, told by scope:
--
--     collective     one collective of one class (AllReduce of nccl, dispatch of transport, ...)
--     class          one class: nccl; transport and its synchronisation; dispatch, the packing
--                    and control of a dispatcher; fused_comm, a collective with a norm inside
--     nccl_only      class nccl once more, for comparison with figures that know nothing else
--     all            all kernels of role comm: the comm_* of recipe budget
--     fused_compute  GEMMs that communicate inside: computation, never part of `all`
--     peer_copy      copies between devices: `peer` directly, `staged peer` through the host
--
-- Busy time of sets that run at once overlaps, so rows do not add up. Exposed is the row's own
-- union without the operations of another role, so two classes that run at once are both exposed.
-- The time of a dispatcher holds packing, waiting and control, not transfer alone (pitfall 6),
-- and that of a collective holds the wait for its last member: no row is a time of the network.
--
-- Compute of this device may wait for an operation of another one, by an event that both share.
-- Blocking time is where compute was absent, all else where the operation ran: such a set has a row
-- of this device with blocking time, and count, work and busy of 0.
--
-- @grain   one row per device and set
-- @reads   nsys.steady, nsys.comm_group, nsys.comm_window
-- @needs   kernel
-- @column  device BIGINT - physical GPU of the report
-- @column  scope VARCHAR - kind of the set: collective, class, nccl_only, all, fused_compute,
--          peer_copy
-- @column  class VARCHAR - class of the taxonomy; peer or staged peer; NULL for all
-- @column  collective VARCHAR - type of the collective, NULL where the set holds several
-- @column  count DOUBLE count operations that start in an iteration, median
-- @column  work_ms DOUBLE ms sum of clipped durations, median: work volume
-- @column  busy_ms DOUBLE ms union of the set, median
-- @column  exposed_ms DOUBLE ms the set runs and no operation of another role, median
-- @column  blocking_ms DOUBLE ms blocking time that an operation of the set is to blame for, median
-- @column  overlapped_ms DOUBLE ms busy less exposed, median
-- @column  overlap_pct DOUBLE pct overlapped by busy, of the medians
-- @column  work_min_ms DOUBLE ms least work
-- @column  work_max_ms DOUBLE ms greatest work
-- @column  busy_min_ms DOUBLE ms least union
-- @column  busy_max_ms DOUBLE ms greatest union
-- @column  exposed_min_ms DOUBLE ms least exposed time
-- @column  exposed_max_ms DOUBLE ms greatest exposed time
-- @column  blocking_min_ms DOUBLE ms least blocking time
-- @column  blocking_max_ms DOUBLE ms greatest blocking time
-- @column  n BIGINT - steady iterations; one without such an operation counts 0
-- @invariant exposed_in_busy exposed_max_ms <= busy_max_ms AND exposed_min_ms >= 0
-- @invariant busy_in_work busy_max_ms <= work_max_ms AND busy_ms <= work_ms
-- @pitfall 1, 5, 6, 7, 20
WITH windows AS (
    SELECT device, count(*) AS n FROM nsys.steady GROUP BY device
),
labelled AS (
    SELECT DISTINCT set_id, scope, class, collective FROM nsys.comm_group
    UNION ALL
    SELECT DISTINCT set_id, 'nccl_only', class, NULL
    FROM nsys.comm_group
    WHERE scope = 'class' AND class = 'nccl'
),
listed AS (
    SELECT
        device,
        set_id,
        list(count) AS count,
        list(work_ns) AS work,
        list(busy_ns) AS busy,
        list(exposed_ns) AS exposed,
        list(blocking_ns) AS blocking,
        list(busy_ns - exposed_ns) AS overlapped,
    FROM nsys.comm_window
    GROUP BY device, set_id
)
SELECT
    m.device,
    g.scope,
    g.class,
    g.collective,
    nsys.padded_median(m.count, w.n)::DOUBLE AS count,
    nsys.padded_median(m.work, w.n) / 1e6 AS work_ms,
    nsys.padded_median(m.busy, w.n) / 1e6 AS busy_ms,
    nsys.padded_median(m.exposed, w.n) / 1e6 AS exposed_ms,
    nsys.padded_median(m.blocking, w.n) / 1e6 AS blocking_ms,
    nsys.padded_median(m.overlapped, w.n) / 1e6 AS overlapped_ms,
    100 * nsys.padded_median(m.overlapped, w.n) / nullif(nsys.padded_median(m.busy, w.n), 0)
        AS overlap_pct,
    nsys.padded_min(m.work, w.n) / 1e6 AS work_min_ms,
    nsys.padded_max(m.work, w.n) / 1e6 AS work_max_ms,
    nsys.padded_min(m.busy, w.n) / 1e6 AS busy_min_ms,
    nsys.padded_max(m.busy, w.n) / 1e6 AS busy_max_ms,
    nsys.padded_min(m.exposed, w.n) / 1e6 AS exposed_min_ms,
    nsys.padded_max(m.exposed, w.n) / 1e6 AS exposed_max_ms,
    nsys.padded_min(m.blocking, w.n) / 1e6 AS blocking_min_ms,
    nsys.padded_max(m.blocking, w.n) / 1e6 AS blocking_max_ms,
    w.n,
FROM listed AS m
INNER JOIN labelled AS g ON g.set_id = m.set_id
INNER JOIN windows AS w ON w.device = m.device
ORDER BY
    m.device,
    list_position(
        ['all', 'nccl_only', 'class', 'collective', 'fused_compute', 'peer_copy'], g.scope
    ),
    work_ms DESC,
    g.class NULLS FIRST,
    g.collective NULLS FIRST;
