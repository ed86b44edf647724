-- step-timeline — what does a typical iteration look like on each stream, and why does it pause?
--
-- The steady iteration whose length is nearest the median, one for each device: every operation
-- clipped to it, by stream, and in the lane `cause` the pieces of its time without compute. Where
-- that makes more than max_marks rows, neighbours in a lane are merged into one mark: the window
-- is cut into as many slots per lane as the cap allows, what starts in one slot and is shorter
-- than it becomes one mark from its first start to its last end, with the class that takes most
-- of its time. Longer ones keep a mark of their own, as many as there are slots: where more
-- overlap in a stream, the longest.
--
-- @grain   one row per mark
-- @reads   nsys.steady, nsys.op, nsys.op_name, nsys.gap_cut
-- @needs   kernel | graph_exec
-- @param   max_marks BIGINT = 5000 [1,)  most marks of all devices; a lane has one in any case
-- @column  device BIGINT - physical GPU of the report
-- @column  iteration BIGINT - ordinal of the iteration shown
-- @column  iteration_ms DOUBLE ms its length
-- @column  lane VARCHAR - cause, or the stream; with process or context where they are several
-- @column  lane_number BIGINT - order of the lanes of a device; 0 is cause
-- @column  class VARCHAR - class of the operations, or the cause
-- @column  start_ms DOUBLE ms begin, from the start of the iteration
-- @column  duration_ms DOUBLE ms length of the mark
-- @column  busy_ms DOUBLE ms sum of what it merges: work volume
-- @column  merged BIGINT - operations or pieces in it
-- @column  name VARCHAR - what it is, NULL where several were merged
-- @column  mark BIGINT - number of the mark
-- @pitfall 1, 7, 8
WITH params AS (
    SELECT greatest(coalesce(getvariable('max_marks'), 5000), 1)::BIGINT AS max_marks
),
shown AS (
    SELECT s.device, s.iteration, s.start_ns, s.end_ns
    FROM nsys.steady AS s
    INNER JOIN (
        SELECT device, median(end_ns - start_ns) AS median_ns FROM nsys.steady GROUP BY device
    ) AS m ON m.device = s.device
    QUALIFY row_number() OVER (
        PARTITION BY s.device
        ORDER BY abs(s.end_ns - s.start_ns - m.median_ns), s.iteration
    ) = 1
),
placed AS (
    SELECT
        w.device,
        o.process,
        o.context_id,
        o.stream_id,
        o.lane,
        o.class,
        o.name_id,
        greatest(o.start_ns, w.start_ns) AS start_ns,
        least(o.end_ns, w.end_ns) AS end_ns,
    FROM nsys.op AS o
    INNER JOIN shown AS w
        ON w.device = o.device AND o.start_ns < w.end_ns AND o.end_ns > w.start_ns
),
stream AS (
    SELECT
        device,
        process,
        lane,
        any_value(stream_id) AS stream_id,
        any_value(context_id) AS context_id,
        row_number() OVER (
            PARTITION BY device ORDER BY process, any_value(context_id), any_value(stream_id), lane
        ) AS lane_number,
    FROM placed
    GROUP BY device, process, lane
),
labelled AS (
    SELECT
        device,
        process,
        lane,
        lane_number,
        concat_ws(
            ' ',
            CASE
                WHEN min(process) OVER devices <> max(process) OVER devices
                    THEN 'process ' || (process & 16777215)
            END,
            CASE WHEN count(*) OVER same_number > 1 THEN 'context ' || context_id END,
            'stream ' || coalesce(stream_id::VARCHAR, '?')
        ) AS label,
    FROM stream
    WINDOW
        devices AS (PARTITION BY device),
        same_number AS (PARTITION BY device, process, stream_id)
),
last_compute AS (
    SELECT device, max(end_ns) AS end_ns
    FROM nsys.op
    WHERE role = 'compute' AND end_ns > start_ns
    GROUP BY device
),
cause AS (
    SELECT c.device, 'launch-starved' AS cause, c.start_ns, c.issued_ns AS end_ns
    FROM nsys.gap_cut AS c
    SEMI JOIN shown AS w ON w.device = c.device
    UNION ALL
    SELECT c.device, 'blocking', c.issued_ns, c.unblocked_ns
    FROM nsys.gap_cut AS c
    SEMI JOIN shown AS w ON w.device = c.device
    UNION ALL
    SELECT c.device, 'dependency-stalled', c.unblocked_ns, c.end_ns
    FROM nsys.gap_cut AS c
    SEMI JOIN shown AS w ON w.device = c.device
    UNION ALL
    SELECT w.device, 'unattributed', greatest(w.start_ns, coalesce(l.end_ns, w.start_ns)), w.end_ns
    FROM shown AS w
    LEFT JOIN last_compute AS l ON l.device = w.device
),
item AS (
    SELECT
        w.device,
        'cause' AS lane,
        0::BIGINT AS lane_number,
        c.cause AS class,
        c.cause AS name,
        greatest(c.start_ns, w.start_ns) AS start_ns,
        least(c.end_ns, w.end_ns) AS end_ns,
    FROM cause AS c
    INNER JOIN shown AS w
        ON w.device = c.device AND c.start_ns < w.end_ns AND c.end_ns > w.start_ns
    WHERE c.end_ns > c.start_ns
    UNION ALL
    SELECT p.device, l.label, l.lane_number, p.class, coalesce(n.name, '(unnamed kernel)'),
        p.start_ns, p.end_ns
    FROM placed AS p
    INNER JOIN labelled AS l
        ON l.device = p.device
        AND l.lane = p.lane
        AND l.process IS NOT DISTINCT FROM p.process
    LEFT JOIN nsys.op_name AS n ON n.name_id = p.name_id
),
numbered AS (
    SELECT
        *,
        row_number() OVER (ORDER BY device, lane_number, start_ns, end_ns, name) AS number,
        row_number() OVER (
            PARTITION BY device, lane_number
            ORDER BY end_ns - start_ns DESC, start_ns, name
        ) AS size_rank,
    FROM item
),
-- half of the marks for what is long, half for the slots of what is short
cap AS (
    SELECT
        count(*) <= any_value(p.max_marks) AS is_whole,
        any_value(p.max_marks) // (2 * count(DISTINCT (i.device, i.lane))) AS longest,
        greatest(1, longest) AS slots,
    FROM numbered AS i
    CROSS JOIN params AS p
),
slotted AS (
    SELECT
        i.*,
        i.end_ns - i.start_ns AS length_ns,
        w.start_ns AS window_ns,
        CASE
            WHEN c.is_whole THEN i.number
            WHEN i.size_rank <= c.longest
                AND (i.end_ns - i.start_ns) * c.slots >= w.end_ns - w.start_ns
                THEN i.number
            ELSE -1 - (i.start_ns - w.start_ns) * c.slots // (w.end_ns - w.start_ns)
        END AS slot,
    FROM numbered AS i
    INNER JOIN shown AS w ON w.device = i.device
    CROSS JOIN cap AS c
),
by_class AS (
    SELECT
        device,
        lane,
        lane_number,
        slot,
        class,
        min(start_ns) AS start_ns,
        max(end_ns) AS end_ns,
        sum(length_ns) AS busy_ns,
        count(*) AS merged,
        min(name) AS name,
    FROM slotted
    GROUP BY device, lane, lane_number, slot, class
),
mark AS (
    SELECT
        device,
        lane,
        lane_number,
        slot,
        arg_max(class, (busy_ns, class)) AS class,
        min(start_ns) AS start_ns,
        max(end_ns) AS end_ns,
        sum(busy_ns) AS busy_ns,
        sum(merged)::BIGINT AS merged,
        CASE WHEN sum(merged) = 1 THEN min(name) END AS name,
    FROM by_class
    GROUP BY device, lane, lane_number, slot
)
SELECT
    m.device,
    w.iteration,
    (w.end_ns - w.start_ns) / 1e6 AS iteration_ms,
    m.lane,
    m.lane_number,
    m.class,
    (m.start_ns - w.start_ns) / 1e6 AS start_ms,
    (m.end_ns - m.start_ns) / 1e6 AS duration_ms,
    m.busy_ns / 1e6 AS busy_ms,
    m.merged,
    m.name,
    row_number() OVER (ORDER BY m.device, m.lane_number, m.start_ns, m.slot) AS mark,
FROM mark AS m
INNER JOIN shown AS w ON w.device = m.device
ORDER BY mark;
