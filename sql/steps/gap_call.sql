-- gap_call — which call launched the kernel that ends each gap, and what did it wait for?
--
-- A gap is a maximal interval without compute on the device, over the whole report, before a
-- compute operation. What follows a device's last compute is no gap.
--
-- Calls are joined on process and correlation id, since ids repeat across processes. These are the
-- facts alone, and nsys.gap_cut cuts the gap: what follows from them would be a third of the
-- largest table of a run.
--
-- @grain  one row per gap of a device
-- @reads  nsys.sweep, nsys.op_name, nsys.report_start, nsys.outermost_call, nsys.dependency,
--         nsys.event_pairing
-- @narrow
-- @column device            BIGINT  -  physical GPU
-- @column segment           BIGINT  -  stretch of nsys.segment in which the gap ends
-- @column start_ns          BIGINT  ns begin of the gap
-- @column end_ns            BIGINT  ns end of the gap
-- @column op_id             BIGINT  -  operation that ends the gap
-- @column call_start_ns     BIGINT  ns the host enters its API call
-- @column call_end_ns       BIGINT  ns the host leaves it
-- @column producer_id       BIGINT  -  operation it had to wait for
-- @column producer_start_ns BIGINT  ns start of the producer
-- @column producer_end_ns   BIGINT  ns end of the producer
-- @column producer_role     VARCHAR -  role of the producer
-- @column evidence          VARCHAR -  no_launch, graph, unresolved, inferred, resolved or none
-- @pitfall 1, 7, 8, 21, 22
WITH gap AS (
    SELECT s.device, s.segment, s.start_ns, s.item_id, s.process, s.correlation_id, s.prev_id,
        s.prev_start_ns, s.prev_end_ns, s.prev_name_id,
        coalesce(s.compute_until_ns, r.start_ns) AS gap_start_ns
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
    LEFT JOIN nsys.outermost_call AS c
        ON c.correlation_id = g.correlation_id AND c.process = g.process
    LEFT JOIN nsys.dependency AS d ON d.op_id = g.item_id
)
SELECT
    e.device,
    e.segment,
    e.start_ns,
    e.end_ns,
    e.op_id,
    e.call_start_ns,
    e.call_end_ns,
    e.producer_id,
    e.producer_start_ns,
    e.producer_end_ns,
    n.role_code AS producer_role,
    CASE
        WHEN e.call_start_ns IS NULL OR e.call_start_ns > e.end_ns THEN 'no_launch'
        WHEN e.is_later THEN 'graph'
        WHEN e.is_lost THEN 'unresolved'
        WHEN e.is_waited AND p.is_inferred THEN 'inferred'
        WHEN e.producer_id IS NOT NULL THEN 'resolved'
        ELSE 'none'
    END::ENUM('no_launch', 'graph', 'unresolved', 'inferred', 'resolved', 'none') AS evidence,
FROM explained AS e
CROSS JOIN nsys.event_pairing AS p
LEFT JOIN nsys.op_name AS n ON n.name_id = e.producer_name_id;
