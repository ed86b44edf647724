-- gap_cut — why did the device not compute during each gap?
--
-- A gap is cut at two points. Until the call that launched its kernel has returned, the host is
-- what is missing: launch-starved. From there until the kernel's producer ends, the producer
-- blocks. The rest is dependency-stalled: issued, and no resolved producer explains the delay.
-- A kernel without a call, or whose call starts after it (skewed clocks), has no issue time.
--
-- @grain  one row per gap of a device
-- @reads  nsys.gap, nsys.gap_launch, nsys.dependency, nsys.event_pairing
-- @column device            BIGINT  -  physical GPU
-- @column start_ns          BIGINT  ns begin of the gap
-- @column issued_ns         BIGINT  ns end of launch-starved, begin of blocking
-- @column unblocked_ns      BIGINT  ns end of blocking, begin of dependency-stalled
-- @column end_ns            BIGINT  ns end of the gap
-- @column op_id             BIGINT  -  operation that ends the gap
-- @column issue_ns          BIGINT  ns end of its API call, its start at the latest; NULL unknown
-- @column thread            BIGINT  -  globalTid of the thread of the call; NULL unknown
-- @column producer_id       BIGINT  -  operation it had to wait for
-- @column producer_start_ns BIGINT  ns start of the producer
-- @column producer_end_ns   BIGINT  ns end of the producer
-- @column producer_role     VARCHAR -  role of the producer
-- @column shadowed_ns       BIGINT  ns launch-starved time in which the producer itself ran
-- @column evidence          VARCHAR -  no_launch, graph, unresolved, inferred, resolved or none
-- @pitfall 7, 8, 21
WITH
-- Looking for doubled calls costs a pass over all gaps, so it is done only where there are any.
has_doubles AS (
    SELECT 1 AS one
    WHERE (SELECT count(*) FROM nsys.gap_launch) > (SELECT count(*) FROM nsys.gap)
),
doubled AS (
    SELECT l.op_id
    FROM nsys.gap_launch AS l, has_doubles
    GROUP BY l.op_id
    HAVING count(*) > 1
),
launched AS (
    SELECT * FROM nsys.gap_launch WHERE op_id NOT IN (SELECT op_id FROM doubled)
    UNION ALL
    SELECT l.*
    FROM nsys.gap_launch AS l
    INNER JOIN doubled AS d ON d.op_id = l.op_id
    QUALIFY row_number() OVER (
        PARTITION BY l.op_id ORDER BY l.call_start_ns, l.call_end_ns DESC
    ) = 1
),
explained AS (
    SELECT
        l.device,
        l.start_ns,
        l.end_ns,
        l.op_id,
        CASE WHEN l.call_start_ns <= l.end_ns THEN least(l.call_end_ns, l.end_ns) END AS issue_ns,
        l.thread,
        CASE WHEN d.op_id IS NULL THEN l.prev_id ELSE d.producer_id END AS producer_id,
        CASE WHEN d.op_id IS NULL THEN l.prev_start_ns ELSE d.producer_start_ns END
            AS producer_start_ns,
        CASE WHEN d.op_id IS NULL THEN l.prev_end_ns ELSE d.producer_end_ns END
            AS producer_end_ns,
        CASE WHEN d.op_id IS NULL THEN l.prev_role ELSE d.producer_role END AS producer_role,
        coalesce(d.is_later, false) AS is_later,
        coalesce(d.is_lost, false) AS is_lost,
        coalesce(d.is_waited, false) AS is_waited,
    FROM launched AS l
    LEFT JOIN nsys.dependency AS d ON d.op_id = l.op_id
),
issued AS (
    SELECT *, greatest(start_ns, coalesce(issue_ns, start_ns)) AS issued_ns FROM explained
)
SELECT
    i.device,
    i.start_ns,
    i.issued_ns,
    CASE
        WHEN i.producer_id IS NULL THEN i.issued_ns
        ELSE greatest(i.issued_ns, least(i.producer_end_ns, i.end_ns))
    END AS unblocked_ns,
    i.end_ns,
    i.op_id,
    i.issue_ns,
    i.thread,
    i.producer_id,
    i.producer_start_ns,
    i.producer_end_ns,
    i.producer_role,
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
    END AS evidence,
FROM issued AS i, nsys.event_pairing AS p;
