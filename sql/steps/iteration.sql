-- iteration — which iterations are there, and which of them are steady?
--
-- Ordinals number all windows of a device in (start, end) order, dropped ones too. A window is
-- dropped for the first reason that applies, in this order: it has no end of its own, no device
-- operation starts in it, it touches the start or the stop of the profiler, a stream capture is
-- open in it (pitfall 26: such steps are not steady state), or the caller left it out.
--
-- @grain    one row per device, iteration
-- @reads    nsys.anchor_window, nsys.stream_item, nsys.profiler_span, nsys.capture_span
-- @param    anchor_kind     VARCHAR = ''  kind of the anchor
-- @param    anchor_pattern  VARCHAR = ''  pattern of the anchor
-- @param    skip_first      BIGINT  = 0   windows to drop at the start of each device
-- @param    skip_last       BIGINT  = 0   windows to drop at the end of each device
-- @param    iteration_from  BIGINT  = NULL  first ordinal to keep
-- @param    iteration_to    BIGINT  = NULL  first ordinal to drop again
-- @column   device     BIGINT   -   device
-- @column   iteration  BIGINT   -   ordinal over all windows of the device, from 0
-- @column   start_ns   BIGINT   ns  start of the window
-- @column   end_ns     BIGINT   ns  end of the window; of an unclosed one as recorded, or NULL
-- @column   status     VARCHAR  -   steady, or why the window was dropped
-- @column   anchor     VARCHAR  -   the anchor, kind:pattern
-- @pitfall  26
WITH params AS (
    SELECT
        coalesce(getvariable('anchor_kind')::VARCHAR, '') AS anchor_kind,
        coalesce(getvariable('anchor_pattern')::VARCHAR, '') AS anchor_pattern,
        coalesce(getvariable('skip_first'), 0)::BIGINT AS skip_first,
        coalesce(getvariable('skip_last'), 0)::BIGINT AS skip_last,
        getvariable('iteration_from')::BIGINT AS iteration_from,
        getvariable('iteration_to')::BIGINT AS iteration_to
),
numbered AS (
    SELECT
        w.device,
        row_number() OVER (
            PARTITION BY w.device
            ORDER BY w.start_ns, w.end_ns NULLS LAST, w.source_id
        ) - 1 AS iteration,
        count(*) OVER (PARTITION BY w.device) AS iterations,
        w.start_ns,
        w.end_ns,
        w.is_unclosed,
        w.is_workless
    FROM nsys.anchor_window AS w
),
-- The first operation at or after the start of a window tells whether any starts in it. It is
-- in the same bucket of about a millisecond, or it is the first one of the next filled bucket:
-- no sort of all operations.
bucket AS (
    SELECT
        o.device,
        o.start_ns >> 20 AS bucket,
        min(o.start_ns) AS first_ns
    FROM nsys.stream_item AS o
    WHERE o.kind < 4
    GROUP BY o.device, bucket
),
near_op AS (
    SELECT
        n.device,
        n.iteration,
        min(o.start_ns) AS first_ns
    FROM numbered AS n
    INNER JOIN nsys.stream_item AS o
        ON
            n.device = o.device
            AND n.start_ns >> 20 = o.start_ns >> 20
            AND n.start_ns <= o.start_ns
    GROUP BY n.device, n.iteration
),
next_op AS (
    SELECT
        n.*,
        coalesce(a.first_ns, b.first_ns) AS next_op_ns
    FROM numbered AS n
    ASOF LEFT JOIN bucket AS b ON n.device = b.device AND n.start_ns >> 20 < b.bucket
    LEFT JOIN near_op AS a ON n.device = a.device AND n.iteration = a.iteration
),
in_capture AS (
    SELECT DISTINCT
        n.device,
        n.iteration
    FROM numbered AS n
    INNER JOIN nsys.capture_span AS c
        ON n.device = c.device AND c.start_ns < n.end_ns AND c.end_ns > n.start_ns
)
SELECT
    n.device,
    n.iteration,
    n.start_ns,
    n.end_ns,
    CASE
        WHEN n.is_unclosed THEN 'unclosed'
        WHEN n.is_workless OR coalesce(n.next_op_ns >= n.end_ns, true) THEN 'no_device_work'
        WHEN p.ready_ns > n.start_ns OR coalesce(p.stop_ns < n.end_ns, false)
            THEN 'profiler_boundary'
        WHEN c.iteration IS NOT NULL THEN 'graph_capture'
        WHEN n.iteration < q.skip_first THEN 'warmup'
        WHEN n.iteration >= n.iterations - q.skip_last THEN 'cooldown'
        WHEN
            coalesce(n.iteration < q.iteration_from, false)
            OR coalesce(n.iteration >= q.iteration_to, false)
            THEN 'outside'
        ELSE 'steady'
    END AS status,
    q.anchor_kind || ':' || q.anchor_pattern AS anchor
FROM next_op AS n
CROSS JOIN params AS q
ASOF LEFT JOIN nsys.profiler_span AS p ON n.device = p.device AND n.start_ns >= p.opens_ns
LEFT JOIN in_capture AS c ON n.device = c.device AND n.iteration = c.iteration;
