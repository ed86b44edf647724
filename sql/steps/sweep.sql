-- sweep — what had run on the device up to the start of each operation?
--
-- The operations of a device in the order of their starts, each with the latest end so far of
-- each kind of work. Where the latest end lies before the start, that kind was absent in between;
-- where it lies behind it, the operation overlaps (pitfall 1: across all streams). Gaps and every
-- union of the budget are read off this one order. Borders of windows stand in it as rows of
-- their own, in front of what starts with them, and count the stretches between them.
--
-- Of operations that start together the lowest correlation id comes first and so ends a gap.
-- Operations of no length neither end a gap nor cover time.
--
-- @grain  one row per device operation with a length, and per border of a device
-- @reads  nsys.stream_item, nsys.segment
-- @column device           BIGINT  -  physical GPU
-- @column segment          BIGINT  -  stretch of nsys.segment; of a border: the one it closes
-- @column start_ns         BIGINT  ns start of the operation, or the border
-- @column end_ns           BIGINT  ns end of the operation, NULL for a border
-- @column role             VARCHAR -  role of the operation, NULL for a border
-- @column item_id          BIGINT  -  operation, NULL for a border
-- @column process          BIGINT  -  its process
-- @column correlation_id   BIGINT  -  its correlation id
-- @column prev_id          BIGINT  -  item before it on its stream
-- @column prev_start_ns    BIGINT  ns start of that item
-- @column prev_end_ns      BIGINT  ns end of that item
-- @column prev_role        VARCHAR -  role of that item
-- @column compute_until_ns BIGINT  ns latest end of compute before it
-- @column wait_until_ns    BIGINT  ns latest end of kernels that wait
-- @column comm_until_ns    BIGINT  ns latest end of communication
-- @column copy_until_ns    BIGINT  ns latest end of copies and sets
-- @pitfall 1
WITH moment AS (
    SELECT device, start_ns, end_ns, role, item_id, process, lane, correlation_id, prev_id,
        prev_start_ns, prev_end_ns, prev_role, 0 AS border
    FROM nsys.stream_item
    WHERE kind = 0 AND end_ns > start_ns
    UNION ALL
    SELECT device, start_ns, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1
    FROM nsys.segment
    WHERE segment > 0
)
SELECT
    device,
    coalesce(sum(border) OVER earlier, 0)::BIGINT AS segment,
    start_ns,
    end_ns,
    role,
    item_id,
    process,
    correlation_id,
    prev_id,
    prev_start_ns,
    prev_end_ns,
    prev_role,
    max(CASE WHEN role = 'compute' THEN end_ns END) OVER earlier AS compute_until_ns,
    max(CASE WHEN role = 'wait' THEN end_ns END) OVER earlier AS wait_until_ns,
    max(CASE WHEN role = 'comm' THEN end_ns END) OVER earlier AS comm_until_ns,
    max(CASE WHEN role IN ('memcpy', 'memset') THEN end_ns END) OVER earlier AS copy_until_ns,
FROM moment
WINDOW earlier AS (
    PARTITION BY device
    ORDER BY start_ns, border DESC, correlation_id NULLS LAST, process NULLS LAST, lane, item_id
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
);
