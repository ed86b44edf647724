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
-- @reads  nsys.stream_item, nsys.op_name, nsys.segment
-- @narrow
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
-- @column prev_name_id     BIGINT  -  name of that item
-- @column compute_until_ns BIGINT  ns latest end of compute before it
-- @column comm_until_ns    BIGINT  ns latest end of communication
-- @column other_until_ns   BIGINT  ns latest end of anything but communication
-- @pitfall 1
WITH moment AS (
    SELECT i.device, i.start_ns, i.end_ns, n.role_code AS role, i.item_id, i.process, i.lane,
        i.correlation_id, i.prev_id, i.prev_start_ns, i.prev_end_ns, i.prev_name_id, 0 AS border
    FROM nsys.stream_item AS i
    LEFT JOIN nsys.op_name AS n ON n.name_id = i.name_id
    WHERE i.end_ns > i.start_ns
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
    prev_name_id,
    max(CASE WHEN role = 'compute' THEN end_ns END) OVER earlier AS compute_until_ns,
    max(CASE WHEN role = 'comm' THEN end_ns END) OVER earlier AS comm_until_ns,
    max(CASE WHEN role <> 'comm' THEN end_ns END) OVER earlier AS other_until_ns,
FROM moment
WINDOW earlier AS (
    PARTITION BY device
    ORDER BY start_ns, border DESC, correlation_id NULLS LAST, process NULLS LAST, lane, item_id
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
);
