-- trace-events — which events show the derived intervals beside the streams in a trace viewer?
--
-- Rows are events of the Chrome trace event format, which Perfetto opens: in `event` as one JSON
-- object, beside it the same as columns. A device is a process of the viewer. Its tracks: the
-- iterations with their status, the causes of its time without compute, and the streams, where a
-- slice is named by class and its arguments tell the kernel. An arrow leads from the operation
-- that a compute kernel waited for in a gap to that kernel (pitfall 8). A track of a viewer cannot
-- hold slices that overlap without one lying inside the other: an operation that starts while
-- another of its stream runs goes into a second track, and is cut there where the next one
-- starts; its arguments hold the whole length. Iterations that overlap, as those of several
-- threads do, take turns in as many tracks as are open at a time.
--
-- Where iterations are chosen (--iterations, --skip-first, --skip-last), only what touches the
-- time from the first to the last steady one of a device is there. Times are on the report's
-- clock.
--
-- @grain   one row per event
-- @reads   nsys.op, nsys.op_name, nsys.gap_cut, nsys.iteration, nsys.steady
-- @needs   kernel | memcpy | memset | graph_exec
-- @windows optional
-- @param   iteration_from BIGINT = NULL  first iteration
-- @param   iteration_to BIGINT = NULL  iteration before which to end
-- @param   skip_first BIGINT = 0  iterations dropped as warmup
-- @param   skip_last BIGINT = 0  iterations dropped as cooldown
-- @column  device BIGINT - physical GPU of the report
-- @column  track BIGINT - number of the track on its device
-- @column  kind VARCHAR - process, track, order, slice, arrow_start or arrow_end
-- @column  start_ns BIGINT ns begin, NULL for names
-- @column  duration_ns BIGINT ns length of a slice
-- @column  name VARCHAR - text shown
-- @column  category VARCHAR - iteration, cause, class of an operation, or blocked by
-- @column  arrow BIGINT - number that the two ends of an arrow share
-- @column  event VARCHAR - the event as a JSON object
-- @pitfall 7, 8
WITH params AS (
    SELECT
        getvariable('device')::BIGINT AS device,
        coalesce(getvariable('iteration_from'), 0)::BIGINT > 0
        OR getvariable('iteration_to')::BIGINT IS NOT NULL
        OR coalesce(getvariable('skip_first'), 0)::BIGINT > 0
        OR coalesce(getvariable('skip_last'), 0)::BIGINT > 0 AS is_limited,
),
chosen AS (
    SELECT device, min(start_ns) AS start_ns, max(end_ns) AS end_ns
    FROM nsys.steady
    GROUP BY device
),
span AS (
    SELECT
        d.device,
        CASE WHEN p.is_limited THEN c.start_ns ELSE -9223372036854775808 END AS start_ns,
        CASE WHEN p.is_limited THEN c.end_ns ELSE 9223372036854775807 END AS end_ns,
    FROM (SELECT DISTINCT device FROM nsys.op) AS d
    INNER JOIN params AS p ON p.device IS NULL OR p.device = d.device
    LEFT JOIN chosen AS c ON c.device = d.device
),
placed AS (
    SELECT
        o.op_id,
        o.device,
        o.process,
        o.context_id,
        o.stream_id,
        o.lane,
        o.correlation_id,
        o.kind,
        o.class,
        o.name_id,
        o.start_ns,
        o.end_ns,
        coalesce(max(o.end_ns) OVER before > o.start_ns, false) AS is_beside,
    FROM nsys.op AS o
    INNER JOIN span AS s
        ON s.device = o.device AND o.start_ns < s.end_ns AND o.end_ns > s.start_ns
    WINDOW before AS (
        -- op_id comes from the order of the rows in the file, which means nothing: it decides last
        PARTITION BY o.device, o.process, o.lane
        ORDER BY o.start_ns, o.end_ns, o.correlation_id, o.kind, o.name_id, o.op_id
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
),
track AS (
    SELECT
        device,
        process,
        lane,
        is_beside,
        any_value(context_id) AS context_id,
        any_value(stream_id) AS stream_id,
        9 + row_number() OVER (
            PARTITION BY device
            ORDER BY process, any_value(context_id), any_value(stream_id), lane, is_beside
        ) AS track,
    FROM placed
    GROUP BY device, process, lane, is_beside
),
operation AS (
    SELECT
        p.op_id,
        p.device,
        t.track,
        p.class,
        p.start_ns,
        least(p.end_ns, lead(p.start_ns, 1, p.end_ns) OVER (
            PARTITION BY p.device, p.process, p.lane, p.is_beside
            ORDER BY p.start_ns, p.end_ns, p.correlation_id, p.kind, p.name_id, p.op_id
        )) - p.start_ns AS duration_ns,
        p.end_ns - p.start_ns AS whole_ns,
        p.name_id,
    FROM placed AS p
    INNER JOIN track AS t
        ON t.device = p.device
        AND t.process IS NOT DISTINCT FROM p.process
        AND t.lane = p.lane
        AND t.is_beside = p.is_beside
),
gap AS (
    SELECT c.*
    FROM nsys.gap_cut AS c
    INNER JOIN span AS s
        ON s.device = c.device AND c.start_ns < s.end_ns AND c.end_ns > s.start_ns
),
-- windows that overlap, directly or through others, are a bunch
bunched AS (
    SELECT
        *,
        sum(is_first) OVER (
            PARTITION BY device
            ORDER BY start_ns, end_ns, iteration
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS bunch,
    FROM (
        SELECT
            i.*,
            coalesce(max(i.end_ns) OVER earlier_windows <= i.start_ns, true)::BIGINT AS is_first,
        FROM nsys.iteration AS i
        INNER JOIN span AS s
            ON s.device = i.device AND i.start_ns < s.end_ns AND i.end_ns > s.start_ns
        WHERE i.end_ns > i.start_ns
        WINDOW earlier_windows AS (
            PARTITION BY i.device
            ORDER BY i.start_ns, i.end_ns, i.iteration
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        )
    )
),
open_windows AS (
    SELECT
        device,
        bunch,
        sum(opened) OVER (
            PARTITION BY device
            ORDER BY at_ns, opened
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS open_count,
    FROM (
        SELECT device, bunch, start_ns AS at_ns, 1 AS opened FROM bunched
        UNION ALL
        SELECT device, bunch, end_ns, -1 FROM bunched
    )
),
turn AS (
    SELECT
        b.*,
        -- windows that end in the order of their start never meet in a track then
        (row_number() OVER same_bunch - 1) % o.depth AS turn,
    FROM bunched AS b
    INNER JOIN (
        SELECT device, bunch, max(open_count)::BIGINT AS depth
        FROM open_windows
        GROUP BY device, bunch
    ) AS o ON o.device = b.device AND o.bunch = b.bunch
    WINDOW same_bunch AS (
        PARTITION BY b.device, b.bunch ORDER BY b.start_ns, b.end_ns, b.iteration
    )
),
windowed AS (
    SELECT
        *,
        -- others are cut where the next one of the track starts
        least(end_ns, lead(start_ns, 1, end_ns) OVER (
            PARTITION BY device, turn ORDER BY start_ns, end_ns, iteration
        )) - start_ns AS duration_ns,
    FROM turn
),
slice AS (
    SELECT
        device,
        CASE turn WHEN 0 THEN 1 ELSE 2000000 + turn END AS track,
        start_ns,
        duration_ns,
        'iteration ' || iteration AS name,
        'iteration' AS category,
        CASE
            WHEN start_ns + duration_ns = end_ns
                THEN json_object('status', status, 'anchor', anchor)
            ELSE json_object(
                'status', status, 'anchor', anchor, 'duration_ns', end_ns - start_ns
            )
        END AS arguments,
    FROM windowed
    UNION ALL
    SELECT device, 2, start_ns, issued_ns - start_ns, 'launch-starved', 'cause',
        json_object('evidence', evidence)
    FROM gap
    WHERE issued_ns > start_ns
    UNION ALL
    SELECT device, 2, issued_ns, unblocked_ns - issued_ns, 'blocking', 'cause',
        json_object('evidence', evidence)
    FROM gap
    WHERE unblocked_ns > issued_ns
    UNION ALL
    SELECT device, 2, unblocked_ns, end_ns - unblocked_ns, 'dependency-stalled', 'cause',
        json_object('evidence', evidence)
    FROM gap
    WHERE end_ns > unblocked_ns
    UNION ALL
    SELECT o.device, o.track, o.start_ns, o.duration_ns, o.class, o.class,
        json_object(
            'name', coalesce(n.name, '(unnamed kernel)'), 'duration_ns', o.whole_ns
        )
    FROM operation AS o
    LEFT JOIN nsys.op_name AS n ON n.name_id = o.name_id
),
blocked AS (
    SELECT
        f.device AS from_device,
        f.track AS from_track,
        f.start_ns AS from_ns,
        f.duration_ns AS from_duration_ns,
        t.device AS to_device,
        t.track AS to_track,
        t.start_ns AS to_ns,
        row_number() OVER (
            ORDER BY t.start_ns, t.device, t.track, f.start_ns, f.device, f.track
        ) AS arrow,
    FROM gap AS g
    INNER JOIN operation AS f ON f.op_id = g.producer_id
    INNER JOIN operation AS t ON t.op_id = g.op_id
    WHERE g.unblocked_ns > g.issued_ns
),
-- tracks go by their number, those of overlapping iterations excepted: these stand together
named AS (
    SELECT
        device,
        NULL AS track,
        'process' AS kind,
        'GPU ' || device AS name,
        NULL::BIGINT AS place,
    FROM span
    UNION ALL
    SELECT s.device, 1, 'track', 'iterations', 1 - coalesce(max(w.turn), 0)
    FROM span AS s
    LEFT JOIN windowed AS w ON w.device = s.device
    GROUP BY s.device
    UNION ALL
    SELECT
        device,
        2000000 + turn,
        'track',
        'iterations (overlapping)',
        1 - max(max(turn)) OVER (PARTITION BY device) + turn,
    FROM windowed
    WHERE turn > 0
    GROUP BY device, turn
    UNION ALL
    SELECT device, 2, 'track', 'why no compute', 2 FROM span
    UNION ALL
    SELECT
        device,
        track,
        'track',
        'stream ' || coalesce(stream_id::VARCHAR, '?')
        || ' (process ' || coalesce((process & 16777215)::VARCHAR, '?')
        || ', context ' || coalesce(context_id::VARCHAR, '?')
        || CASE WHEN is_beside THEN ', overlapping' ELSE '' END || ')',
        track,
    FROM track
),
event AS (
    SELECT
        device,
        track,
        kind,
        NULL::BIGINT AS start_ns,
        NULL::BIGINT AS duration_ns,
        name,
        NULL AS category,
        NULL::BIGINT AS arrow,
        NULL::JSON AS arguments,
        place,
    FROM named
    UNION ALL
    SELECT device, track, 'order', NULL, NULL, name, NULL, NULL, NULL, place
    FROM named
    WHERE kind = 'track'
    UNION ALL
    SELECT device, track, 'slice', start_ns, duration_ns, name, category, NULL, arguments, NULL
    FROM slice
    UNION ALL
    -- an arrow binds to the slice that it starts or ends in, so it starts just before its end
    SELECT from_device, from_track, 'arrow_start', from_ns + greatest(from_duration_ns - 1, 0),
        NULL, 'blocked by', 'blocked by', arrow, NULL, NULL
    FROM blocked
    UNION ALL
    SELECT to_device, to_track, 'arrow_end', to_ns, NULL, 'blocked by', 'blocked by', arrow, NULL,
        NULL
    FROM blocked
),
-- the format counts microseconds, with decimals: a float would lose nanoseconds
timed AS (
    SELECT
        *,
        start_ns::DECIMAL(19, 0) * 0.001::DECIMAL(4, 3) AS ts,
        duration_ns::DECIMAL(19, 0) * 0.001::DECIMAL(4, 3) AS dur,
    FROM event
)
SELECT
    device,
    track::BIGINT AS track,
    kind,
    start_ns,
    duration_ns,
    name,
    category,
    arrow,
    CASE kind
        WHEN 'process' THEN json_object(
            'ph', 'M', 'pid', device, 'name', 'process_name', 'args', json_object('name', name)
        )
        WHEN 'track' THEN json_object(
            'ph', 'M', 'pid', device, 'tid', track, 'name', 'thread_name',
            'args', json_object('name', name)
        )
        WHEN 'order' THEN json_object(
            'ph', 'M', 'pid', device, 'tid', track, 'name', 'thread_sort_index',
            'args', json_object('sort_index', place)
        )
        WHEN 'slice' THEN json_object(
            'ph', 'X', 'pid', device, 'tid', track, 'ts', ts, 'dur', dur,
            'name', name, 'cat', category, 'args', arguments
        )
        WHEN 'arrow_start' THEN json_object(
            'ph', 's', 'pid', device, 'tid', track, 'ts', ts,
            'id', arrow, 'name', name, 'cat', category
        )
        ELSE json_object(
            'ph', 'f', 'bp', 'e', 'pid', device, 'tid', track, 'ts', ts,
            'id', arrow, 'name', name, 'cat', category
        )
    END::VARCHAR AS event,
FROM timed
ORDER BY start_ns NULLS FIRST, duration_ns DESC, device, track, kind, arrow, event;
