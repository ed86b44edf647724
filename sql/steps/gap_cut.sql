-- gap_cut — why did the device not compute during each gap?
--
-- The gaps, each once, cut at two points. Until the call that launched its kernel has returned,
-- the host is what is missing: launch-starved is [start, issued). From there until the kernel's
-- producer ends, the producer blocks: [issued, unblocked). The rest is dependency-stalled,
-- [unblocked, end): issued, and no resolved producer explains the delay. A kernel without a call,
-- or whose call starts after it (skewed clocks), has no issue time.
--
-- @grain  one row per gap of a device
-- @reads  nsys.gap_call
-- @view
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
-- @pitfall 7, 8, 21
WITH issue AS (
    SELECT
        *,
        CASE WHEN call_start_ns <= end_ns THEN least(call_end_ns, end_ns) END AS issue_ns,
    FROM nsys.gap_call
),
issued AS (
    SELECT *, greatest(start_ns, coalesce(issue_ns, start_ns)) AS issued_ns FROM issue
)
SELECT
    device,
    segment,
    start_ns,
    issued_ns,
    -- least and greatest skip NULLs: without a producer they would claim the whole piece
    CASE
        WHEN producer_id IS NULL THEN issued_ns
        ELSE greatest(issued_ns, least(producer_end_ns, end_ns))
    END AS unblocked_ns,
    end_ns,
    op_id,
    call_start_ns,
    call_end_ns,
    issue_ns,
    producer_id,
    producer_start_ns,
    producer_end_ns,
    producer_role,
    CASE
        WHEN producer_id IS NULL THEN 0
        ELSE greatest(
            0, least(issued_ns, producer_end_ns) - greatest(start_ns, producer_start_ns)
        )
    END AS shadowed_ns,
    evidence,
FROM issued;
