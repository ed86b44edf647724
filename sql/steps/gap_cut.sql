-- gap_cut — why did the device not compute during each gap?
--
-- The gaps with their three pieces (see nsys.gap_call), each once: launch-starved is
-- [start, issued), blocking [issued, unblocked), dependency-stalled [unblocked, end).
--
-- @grain  one row per gap of a device
-- @reads  nsys.gap_call, nsys.gap_outermost
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
SELECT
    device,
    segment,
    start_ns,
    issued_ns,
    unblocked_ns,
    end_ns,
    op_id,
    call_start_ns,
    call_end_ns,
    issue_ns,
    producer_id,
    producer_start_ns,
    producer_end_ns,
    producer_role,
    shadowed_ns,
    evidence,
FROM nsys.gap_call
WHERE NOT EXISTS (SELECT 1 FROM nsys.gap_outermost)
UNION ALL
SELECT
    device,
    segment,
    start_ns,
    issued_ns,
    unblocked_ns,
    end_ns,
    op_id,
    call_start_ns,
    call_end_ns,
    issue_ns,
    producer_id,
    producer_start_ns,
    producer_end_ns,
    producer_role,
    shadowed_ns,
    evidence,
FROM nsys.gap_outermost;
