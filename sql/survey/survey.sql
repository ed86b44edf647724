-- survey — what does an iteration of each rank look like?
--
-- One row for every rank that was sampled, before anything is concluded. Medians over its steady
-- windows. A rank is what the mapping says; without a mapping it stays unknown. Communication is
-- shown apart and together: NCCL, the transfers and synchronisation of a dispatcher, its packing
-- and control, and the union of all (pitfalls 5 and 6).
--
-- @grain  one row per sampled rank
-- @reads  rank.member, rank.part, rank.clock, rank.fingerprint, rank.member_window, rank.comm,
--         rank.copy
-- @column rank BIGINT - rank as declared, NULL unknown
-- @column stage BIGINT - pipeline stage as declared, NULL unknown
-- @column host VARCHAR - host as declared, else a hash of its name, NULL unknown
-- @column group VARCHAR - ranks of one stage and one fingerprint: these compare
-- @column n BIGINT - steady iterations
-- @column iteration_ms DOUBLE ms iteration, median
-- @column iteration_min_ms DOUBLE ms least
-- @column iteration_max_ms DOUBLE ms greatest
-- @column noncomm_busy_ms DOUBLE ms union of kernels that are no communication, median
-- @column compute_busy_ms DOUBLE ms union of compute kernels, median
-- @column nccl_busy_ms DOUBLE ms union of NCCL kernels, median
-- @column transport_busy_ms DOUBLE ms union of dispatcher transfers and synchronisation, median
-- @column dispatch_busy_ms DOUBLE ms union of packing, routing and control, median
-- @column comm_busy_ms DOUBLE ms union of all communication, median
-- @column comm_exposed_ms DOUBLE ms of it while nothing else runs: an upper bound, median
-- @column comm_blocking_ms DOUBLE ms of it that compute waited for, median
-- @column memcpy_work_ms DOUBLE ms sum of copies and sets, clipped: work volume, median
-- @column launch_starved_ms DOUBLE ms the host was late, median
-- @column idle_ms DOUBLE ms no device operation, median
-- @column collectives VARCHAR - types with their count in an iteration, median
-- @column fingerprint VARCHAR - of compute classes, collectives and compute kernels
-- @column gpu VARCHAR - name of the GPU
-- @column device BIGINT - device number in its report
-- @column trace VARCHAR - report it comes from
-- @pitfall 3, 4, 5, 6
WITH per_window AS (
    SELECT
        member_id,
        count(*) AS n,
        median(iteration_ns) / 1e6 AS iteration_ms,
        min(iteration_ns) / 1e6 AS iteration_min_ms,
        max(iteration_ns) / 1e6 AS iteration_max_ms,
        median(noncomm_busy_ns) / 1e6 AS noncomm_busy_ms,
        median(compute_busy_ns) / 1e6 AS compute_busy_ms,
        median(comm_busy_ns) / 1e6 AS comm_busy_ms,
        median(comm_exposed_ns) / 1e6 AS comm_exposed_ms,
        median(comm_blocking_ns) / 1e6 AS comm_blocking_ms,
        median(launch_starved_ns) / 1e6 AS launch_starved_ms,
        median(device_idle_ns) / 1e6 AS idle_ms,
    FROM rank.member_window
    GROUP BY member_id
),
per_class AS (
    SELECT
        m.member_id,
        list(c.busy_ns) FILTER (WHERE c.class = 'nccl') AS nccl,
        list(c.busy_ns) FILTER (WHERE c.class = 'transport') AS transport,
        list(c.busy_ns) FILTER (WHERE c.class = 'dispatch') AS dispatch,
    FROM rank.member AS m
    INNER JOIN rank.comm AS c ON c.part = m.part AND c.device = m.device
    WHERE c.scope = 'class'
    GROUP BY m.member_id
),
copied AS (
    SELECT member_id, list(work_ns) AS work
    FROM (
        SELECT m.member_id, c.iteration, sum(c.work_ns)::BIGINT AS work_ns
        FROM rank.member AS m
        INNER JOIN rank.copy AS c ON c.part = m.part AND c.device = m.device
        GROUP BY m.member_id, c.iteration
    ) AS per_iteration
    GROUP BY member_id
)
SELECT
    m.rank,
    m.stage,
    c.host,
    'G' || f.group_id AS "group",
    w.n,
    w.iteration_ms,
    w.iteration_min_ms,
    w.iteration_max_ms,
    w.noncomm_busy_ms,
    w.compute_busy_ms,
    nsys.padded_median(coalesce(k.nccl, []), w.n) / 1e6 AS nccl_busy_ms,
    nsys.padded_median(coalesce(k.transport, []), w.n) / 1e6 AS transport_busy_ms,
    nsys.padded_median(coalesce(k.dispatch, []), w.n) / 1e6 AS dispatch_busy_ms,
    w.comm_busy_ms,
    w.comm_exposed_ms,
    w.comm_blocking_ms,
    nsys.padded_median(coalesce(x.work, []), w.n) / 1e6 AS memcpy_work_ms,
    w.launch_starved_ms,
    w.idle_ms,
    f.collectives,
    f.fingerprint,
    m.gpu,
    m.device,
    p.trace,
FROM rank.member AS m
INNER JOIN rank.part AS p ON p.part = m.part
INNER JOIN rank.clock AS c ON c.member_id = m.member_id
INNER JOIN rank.fingerprint AS f ON f.member_id = m.member_id
INNER JOIN per_window AS w ON w.member_id = m.member_id
LEFT JOIN per_class AS k ON k.member_id = m.member_id
LEFT JOIN copied AS x ON x.member_id = m.member_id
ORDER BY m.member_id;
