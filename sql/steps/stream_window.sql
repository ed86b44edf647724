-- stream_window — what does each stream do in each steady window?
--
-- A stream is known by its process, context and number. Each operation adds to the union of its
-- stream what it reaches beyond all before it there, so the additions of all classes are disjoint
-- and sum up to the time the stream is busy. Where there is no steady window, the whole trace is
-- one window without an ordinal.
--
-- @grain  one row per window of a device, stream and class that occurs in it
-- @reads  nsys.stream_item, nsys.op_name, nsys.window_segment, nsys.steady, nsys.segment
-- @param  device BIGINT = NULL the only device to report
-- @column device         BIGINT  -  physical GPU
-- @column iteration      BIGINT  -  ordinal of the window, NULL where the whole trace stands in
-- @column process        BIGINT  -  process key
-- @column context_id     BIGINT  -  CUDA context
-- @column stream_id      BIGINT  -  CUDA stream
-- @column class          VARCHAR -  class of the taxonomy
-- @column count          BIGINT  -  operations that start in the window
-- @column work_ns        BIGINT  ns sum of clipped durations: work volume, not wall time
-- @column added_ns       BIGINT  ns what they add to the union of the stream
-- @column first_start_ns BIGINT  ns first start of those counted
-- @column last_end_ns    BIGINT  ns last end of those counted
-- @pitfall 1, 2
WITH params AS (
    SELECT getvariable('device')::BIGINT AS device
),
-- one number in place of four columns: of what is sorted every byte counts
stream AS (
    SELECT device, process, lane, context_id, stream_id, row_number() OVER ()::INTEGER AS number
    FROM (
        SELECT DISTINCT device, process, lane, context_id, stream_id
        FROM nsys.stream_item
        WHERE kind < 4
    ) AS s
),
whole AS (
    SELECT DISTINCT s.device
    FROM stream AS s
    INNER JOIN params AS p ON p.device IS NULL OR p.device = s.device
    WHERE NOT EXISTS (SELECT 1 FROM nsys.steady)
),
stretch AS (
    SELECT device, segment, start_ns, end_ns FROM nsys.segment
    UNION ALL
    SELECT device, 0, -9223372036854775808, 9223372036854775807 FROM whole
),
stretch_of AS (
    SELECT device, iteration, segment FROM nsys.window_segment
    UNION ALL
    SELECT device, NULL, 0 FROM whole
),
extent AS (
    SELECT device, min(start_ns) AS start_ns, max(end_ns) AS end_ns
    FROM nsys.steady
    GROUP BY device
    UNION ALL
    SELECT device, -9223372036854775808, 9223372036854775807 FROM whole
),
item AS NOT MATERIALIZED (
    SELECT s.number, o.device, o.name_id, o.start_ns, o.end_ns
    FROM nsys.stream_item AS o
    INNER JOIN extent AS e
        ON e.device = o.device AND o.end_ns >= e.start_ns AND o.start_ns < e.end_ns
    INNER JOIN stream AS s
        ON s.device = o.device
        AND s.lane = o.lane
        AND s.process IS NOT DISTINCT FROM o.process
        AND s.context_id IS NOT DISTINCT FROM o.context_id
        AND s.stream_id IS NOT DISTINCT FROM o.stream_id
),
placed AS (
    FROM nsys.iv_place('item', 'stretch')
),
reached AS (
    SELECT
        *,
        -- an operation inside what was reached before adds nothing
        least(end_ns, greatest(start_ns, max(end_ns) OVER (
            PARTITION BY number ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ))) AS added_from_ns,
    FROM placed
),
-- the stretches behind the border that it reaches into
crossing AS (
    SELECT r.*, unnest(range(r.segment + 1, z.segment + 1)) AS later
    FROM (SELECT * FROM reached WHERE end_ns > border_ns) AS r
    ASOF JOIN nsys.segment AS z ON z.device = r.device AND z.start_ns < r.end_ns
),
piece AS (
    SELECT
        device,
        segment,
        number,
        name_id,
        count(*) AS count,
        sum(least(end_ns, border_ns) - start_ns) AS work_ns,
        sum(greatest(0, least(end_ns, border_ns) - added_from_ns)) AS added_ns,
        min(start_ns) AS first_start_ns,
        max(end_ns) AS last_end_ns,
    FROM reached
    GROUP BY device, segment, number, name_id
    UNION ALL
    SELECT
        c.device,
        s.segment,
        c.number,
        c.name_id,
        0,
        least(c.end_ns, s.end_ns) - s.start_ns,
        greatest(0, least(c.end_ns, s.end_ns) - greatest(s.start_ns, c.added_from_ns)),
        NULL,
        NULL,
    FROM crossing AS c
    INNER JOIN nsys.segment AS s ON s.device = c.device AND s.segment = c.later
)
SELECT
    w.device,
    w.iteration,
    s.process,
    s.context_id,
    s.stream_id,
    n.class,
    sum(p.count)::BIGINT AS count,
    sum(p.work_ns)::BIGINT AS work_ns,
    sum(p.added_ns)::BIGINT AS added_ns,
    min(p.first_start_ns) AS first_start_ns,
    max(p.last_end_ns) AS last_end_ns,
FROM stretch_of AS w
INNER JOIN piece AS p ON p.device = w.device AND p.segment = w.segment
INNER JOIN stream AS s ON s.number = p.number
LEFT JOIN nsys.op_name AS n ON n.name_id = p.name_id
GROUP BY ALL;
