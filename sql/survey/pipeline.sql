-- pipeline — how unevenly are the stages loaded, and how long does each rank wait for its turn?
--
-- The bubble of a rank is the part of its iteration in which no kernel but communication runs:
-- waiting for other stages, for collectives and for the host, all together. A stage that is busier
-- than the mean makes the others wait. Send/recv figures are those of collective SendRecv.
--
-- @grain  one row per sampled rank
-- @reads  rank.member, rank.member_window, rank.comm, rank.instance, rank.matched
-- @column rank BIGINT - rank as declared, NULL unknown
-- @column label VARCHAR - rank, or what stands for it where it is unknown
-- @column stage BIGINT - declared stage, NULL unknown
-- @column iteration_ms DOUBLE ms iteration, median
-- @column noncomm_busy_ms DOUBLE ms union of kernels that are no communication, median
-- @column bubble_ms DOUBLE ms iteration less that, median
-- @column bubble_pct DOUBLE pct of the iteration, median
-- @column stage_busy_ms DOUBLE ms median of the stage's ranks
-- @column stage_load_pct DOUBLE pct that by the mean of all stages; 100 is even
-- @column sendrecv_count DOUBLE count SendRecv operations in an iteration, median
-- @column sendrecv_busy_ms DOUBLE ms union of SendRecv, median
-- @column sendrecv_exposed_ms DOUBLE ms of it while nothing else runs, median
-- @column sendrecv_blocking_ms DOUBLE ms of it that compute waited for, median
-- @column sendrecv_jitter_work_ms DOUBLE ms jitter wait in matched SendRecv, median; NULL unmatched
-- @column n BIGINT - steady iterations
-- @pitfall 3, 6
WITH per_rank AS (
    SELECT
        m.member_id,
        m.stage,
        count(*) AS n,
        median(w.iteration_ns) AS iteration_ns,
        median(w.noncomm_busy_ns) AS busy_ns,
        median(w.iteration_ns - w.noncomm_busy_ns) AS bubble_ns,
        median(100 * (w.iteration_ns - w.noncomm_busy_ns) / nullif(w.iteration_ns, 0))
            AS bubble_pct,
    FROM rank.member AS m
    INNER JOIN rank.member_window AS w ON w.member_id = m.member_id
    GROUP BY m.member_id, m.stage
),
per_stage AS (
    SELECT stage, median(busy_ns) AS busy_ns
    FROM per_rank
    WHERE stage IS NOT NULL
    GROUP BY stage
),
even AS (
    SELECT avg(busy_ns) AS busy_ns FROM per_stage
),
sent AS (
    SELECT
        m.member_id,
        list(c.count) AS count,
        list(c.busy_ns) AS busy,
        list(c.exposed_ns) AS exposed,
        list(c.blocking_ns) AS blocking,
    FROM rank.member AS m
    INNER JOIN rank.comm AS c ON c.part = m.part AND c.device = m.device
    WHERE c.scope = 'collective' AND c.collective = 'SendRecv'
    GROUP BY m.member_id
),
-- a window whose SendRecv match nothing says nothing, one without any counts 0
waited AS (
    SELECT w.member_id, list(w.jitter_ns) AS jitter, any_value(h.n) - count(*) AS unseen
    FROM (
        SELECT member_id, iteration, sum(jitter_wait_ns)::BIGINT AS jitter_ns
        FROM rank.matched
        WHERE collective = 'SendRecv'
        GROUP BY member_id, iteration
    ) AS w
    INNER JOIN (
        SELECT member_id, count(DISTINCT iteration) AS n
        FROM rank.instance
        WHERE collective = 'SendRecv'
        GROUP BY member_id
    ) AS h ON h.member_id = w.member_id
    GROUP BY w.member_id
)
SELECT
    m.rank,
    m.label,
    m.stage,
    r.iteration_ns / 1e6 AS iteration_ms,
    r.busy_ns / 1e6 AS noncomm_busy_ms,
    r.bubble_ns / 1e6 AS bubble_ms,
    r.bubble_pct,
    s.busy_ns / 1e6 AS stage_busy_ms,
    100 * s.busy_ns / nullif(e.busy_ns, 0) AS stage_load_pct,
    nsys.padded_median(coalesce(x.count, []), r.n)::DOUBLE AS sendrecv_count,
    nsys.padded_median(coalesce(x.busy, []), r.n) / 1e6 AS sendrecv_busy_ms,
    nsys.padded_median(coalesce(x.exposed, []), r.n) / 1e6 AS sendrecv_exposed_ms,
    nsys.padded_median(coalesce(x.blocking, []), r.n) / 1e6 AS sendrecv_blocking_ms,
    nsys.padded_median(w.jitter, r.n - w.unseen) / 1e6 AS sendrecv_jitter_work_ms,
    r.n,
FROM rank.member AS m
INNER JOIN per_rank AS r ON r.member_id = m.member_id
CROSS JOIN even AS e
LEFT JOIN per_stage AS s ON s.stage = m.stage
LEFT JOIN sent AS x ON x.member_id = m.member_id
LEFT JOIN waited AS w ON w.member_id = m.member_id
ORDER BY m.stage NULLS LAST, m.member_id;
