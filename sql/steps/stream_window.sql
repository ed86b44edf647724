-- stream_window — what does each stream do in each steady window?
--
-- A stream is known by its process, context and number. Each operation adds to the union of its
-- stream what it reaches beyond all before it there, so the additions of all classes are disjoint
-- and sum up to the time the stream is busy. Where there is no steady window, the whole trace is
-- one window without an ordinal.
--
-- @grain  one row per window of a device, stream and class that occurs in it
-- @reads  nsys.op, nsys.window_segment, nsys.steady, nsys.segment
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
whole AS (
    SELECT DISTINCT o.device
    FROM nsys.op AS o
    INNER JOIN params AS p ON p.device IS NULL OR p.device = o.device
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
reached AS (
    SELECT
        o.device,
        o.process,
        o.context_id,
        o.stream_id,
        o.class,
        o.start_ns,
        o.end_ns,
        max(o.end_ns) OVER (
            PARTITION BY o.device, o.process, o.lane
            ORDER BY o.start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reached_ns,
    FROM nsys.op AS o
    INNER JOIN extent AS e
        ON e.device = o.device AND o.end_ns >= e.start_ns AND o.start_ns < e.end_ns
),
placed AS (
    SELECT
        r.*,
        -- an operation inside what was reached before adds nothing
        least(r.end_ns, greatest(r.start_ns, r.reached_ns)) AS added_from_ns,
        s.segment,
        s.end_ns AS border_ns,
    FROM reached AS r
    ASOF JOIN stretch AS s ON s.device = r.device AND s.start_ns <= r.start_ns
),
-- the stretches behind the border that it reaches into
crossing AS (
    SELECT p.*, unnest(range(p.segment + 1, z.segment + 1)) AS later
    FROM (SELECT * FROM placed WHERE end_ns > border_ns) AS p
    ASOF JOIN nsys.segment AS z ON z.device = p.device AND z.start_ns < p.end_ns
),
piece AS (
    SELECT
        device,
        segment,
        process,
        context_id,
        stream_id,
        class,
        count(*) AS count,
        sum(least(end_ns, border_ns) - start_ns) AS work_ns,
        sum(greatest(0, least(end_ns, border_ns) - added_from_ns)) AS added_ns,
        min(start_ns) AS first_start_ns,
        max(end_ns) AS last_end_ns,
    FROM placed
    GROUP BY device, segment, process, context_id, stream_id, class
    UNION ALL
    SELECT
        p.device,
        s.segment,
        p.process,
        p.context_id,
        p.stream_id,
        p.class,
        0,
        least(p.end_ns, s.end_ns) - s.start_ns,
        greatest(0, least(p.end_ns, s.end_ns) - greatest(s.start_ns, p.added_from_ns)),
        NULL,
        NULL,
    FROM crossing AS p
    INNER JOIN nsys.segment AS s ON s.device = p.device AND s.segment = p.later
)
SELECT
    w.device,
    w.iteration,
    p.process,
    p.context_id,
    p.stream_id,
    p.class,
    sum(p.count)::BIGINT AS count,
    sum(p.work_ns)::BIGINT AS work_ns,
    sum(p.added_ns)::BIGINT AS added_ns,
    min(p.first_start_ns) AS first_start_ns,
    max(p.last_end_ns) AS last_end_ns,
FROM stretch_of AS w
INNER JOIN piece AS p ON p.device = w.device AND p.segment = w.segment
GROUP BY ALL;
