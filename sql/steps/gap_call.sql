-- gap_call — why did the device not compute during each gap, by the call of its kernel?
--
-- A gap is a maximal interval without compute on the device, over the whole report, before a
-- compute operation. It is cut at two points. Until the call that launched its kernel has
-- returned, the host is what is missing: launch-starved. From there until the kernel's producer
-- ends, the producer blocks. The rest is dependency-stalled: issued, and no resolved producer
-- explains the delay. A kernel without a call, or whose call starts after it (skewed clocks), has
-- no issue time. What follows a device's last compute is no gap.
--
-- Calls are joined on process and correlation id, since ids repeat across processes. Where a
-- runtime call and the driver call inside it carry one id, a gap stands here once for each;
-- nsys.gap_cut holds the right one of them.
--
-- @grain  one row per gap and call of its kernel
-- @reads  nsys.sweep, nsys.op_name, nsys.report_start, nsys.call, nsys.dependency,
--         nsys.event_pairing
-- @narrow
-- @column device            BIGINT  -  physical GPU
-- @column segment           BIGINT  -  stretch of nsys.segment in which the gap ends
-- @column start_ns          BIGINT  ns begin of the gap
-- @column issued_ns         BIGINT  ns end of launch-starved, begin of blocking
-- @column unblocked_ns      BIGINT  ns end of blocking, begin of dependency-stalled
-- @column end_ns            BIGINT  ns end of the gap
-- @column op_id             BIGINT  -  operation that ends the gap
-- @column call_start_ns     BIGINT  ns the host enters its API call
-- @column call_end_ns       BIGINT  ns the host leaves it
-- @column issue_ns          BIGINT  ns end of the call, its start at the latest; NULL unknown
-- @column producer_id       BIGINT  -  operation it had to wait for
-- @column producer_start_ns BIGINT  ns start of the producer
-- @column producer_end_ns   BIGINT  ns end of the producer
-- @column producer_role     VARCHAR -  role of the producer
-- @column shadowed_ns       BIGINT  ns launch-starved time in which the producer itself ran
-- @column evidence          VARCHAR -  no_launch, graph, unresolved, inferred, resolved or none
-- @pitfall 1, 7, 8, 21
WITH gap AS (
    SELECT s.*, coalesce(s.compute_until_ns, r.start_ns) AS gap_start_ns
    FROM nsys.sweep AS s, nsys.report_start AS r
    WHERE s.role = 'compute' AND s.start_ns > coalesce(s.compute_until_ns, r.start_ns)
),
explained AS (
    SELECT
        g.device,
        g.segment,
        g.gap_start_ns AS start_ns,
        g.start_ns AS end_ns,
        g.item_id AS op_id,
        c.start_ns AS call_start_ns,
        c.end_ns AS call_end_ns,
        CASE WHEN c.start_ns <= g.start_ns THEN least(c.end_ns, g.start_ns) END AS issue_ns,
        CASE WHEN d.op_id IS NULL THEN g.prev_id ELSE d.producer_id END AS producer_id,
        CASE WHEN d.op_id IS NULL THEN g.prev_start_ns ELSE d.producer_start_ns END
            AS producer_start_ns,
        CASE WHEN d.op_id IS NULL THEN g.prev_end_ns ELSE d.producer_end_ns END
            AS producer_end_ns,
        CASE WHEN d.op_id IS NULL THEN g.prev_name_id ELSE d.producer_name_id END
            AS producer_name_id,
        coalesce(d.is_later, false) AS is_later,
        coalesce(d.is_lost, false) AS is_lost,
        coalesce(d.is_waited, false) AS is_waited,
    FROM gap AS g
    LEFT JOIN nsys.call AS c
        ON c.correlation_id = g.correlation_id AND c.process = g.process
    LEFT JOIN nsys.dependency AS d ON d.op_id = g.item_id
),
issued AS (
    SELECT *, greatest(start_ns, coalesce(issue_ns, start_ns)) AS issued_ns FROM explained
)
SELECT
    i.device,
    i.segment,
    i.start_ns,
    i.issued_ns,
    CASE
        WHEN i.producer_id IS NULL THEN i.issued_ns
        ELSE greatest(i.issued_ns, least(i.producer_end_ns, i.end_ns))
    END AS unblocked_ns,
    i.end_ns,
    i.op_id,
    i.call_start_ns,
    i.call_end_ns,
    i.issue_ns,
    i.producer_id,
    i.producer_start_ns,
    i.producer_end_ns,
    n.role_code AS producer_role,
    -- least and greatest skip NULLs: without a producer they would claim the whole piece
    CASE
        WHEN i.producer_id IS NULL THEN 0
        ELSE greatest(
            0, least(i.issued_ns, i.producer_end_ns) - greatest(i.start_ns, i.producer_start_ns)
        )
    END AS shadowed_ns,
    CASE
        WHEN i.issue_ns IS NULL THEN 'no_launch'
        WHEN i.is_later THEN 'graph'
        WHEN i.is_lost THEN 'unresolved'
        WHEN i.is_waited AND p.is_inferred THEN 'inferred'
        WHEN i.producer_id IS NOT NULL THEN 'resolved'
        ELSE 'none'
    END::ENUM('no_launch', 'graph', 'unresolved', 'inferred', 'resolved', 'none') AS evidence,
FROM issued AS i
CROSS JOIN nsys.event_pairing AS p
LEFT JOIN nsys.op_name AS n ON n.name_id = i.producer_name_id;
