-- gap — when does a device compute nothing, and which kernel ends that?
--
-- The maximal intervals before each compute operation in which no compute operation of the
-- device runs, over the whole report. An interval's end is known by the running maximum of the
-- ends before it (pitfall 1: across all streams). Of several operations that start together the
-- lowest correlation id ends the gap; the order makes the others start inside the first one.
-- Operations of no length end no gap. What follows a device's last compute is no gap.
--
-- @grain  one row per gap of a device
-- @reads  nsys.stream_item, nsys.report_start
-- @column device         BIGINT  -  physical GPU
-- @column start_ns       BIGINT  ns begin of the gap
-- @column end_ns         BIGINT  ns start of the operation that ends it
-- @column op_id          BIGINT  -  that operation
-- @column process        BIGINT  -  its process
-- @column correlation_id BIGINT  -  its correlation id
-- @column prev_id        BIGINT  -  item before it on its stream
-- @column prev_start_ns  BIGINT  ns start of that item
-- @column prev_end_ns    BIGINT  ns end of that item
-- @column prev_role      VARCHAR -  role of that item
-- @pitfall 1, 2
WITH compute AS (
    SELECT
        device,
        max(end_ns) OVER (
            PARTITION BY device
            ORDER BY start_ns, correlation_id NULLS LAST, process NULLS LAST, lane, item_id
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS last_end_ns,
        start_ns,
        item_id,
        process,
        correlation_id,
        prev_id,
        prev_start_ns,
        prev_end_ns,
        prev_role,
    FROM nsys.stream_item
    WHERE role = 'compute' AND end_ns > start_ns
)
SELECT
    c.device,
    coalesce(c.last_end_ns, r.start_ns) AS start_ns,
    c.start_ns AS end_ns,
    c.item_id AS op_id,
    c.process,
    c.correlation_id,
    c.prev_id,
    c.prev_start_ns,
    c.prev_end_ns,
    c.prev_role,
FROM compute AS c, nsys.report_start AS r
WHERE c.start_ns > coalesce(c.last_end_ns, r.start_ns);
