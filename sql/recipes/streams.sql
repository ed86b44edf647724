-- streams — what runs on which stream, and how much of an iteration is each stream busy?
--
-- Over the steady iterations; where a trace has none, the whole trace stands in, n is 0 and
-- pct_of_iteration is NULL. Busy is the union of the operations of the stream. The longest stream
-- is not the iteration, and what is idle on a stream is not idle on the device (pitfalls 1 and 2):
-- streams overlap, so their busy times do not add up. Span is from the first start to the last end
-- of what is counted, pauses included: no work and no busy time.
--
-- @grain   one row per device, process, context and stream
-- @reads   nsys.steady, nsys.stream_window, nsys.null_stream
-- @needs   kernel | memcpy | memset | graph_exec
-- @windows optional
-- @column  device BIGINT - physical GPU of the report
-- @column  pid BIGINT - operating system process id
-- @column  context_id BIGINT - CUDA context
-- @column  stream_id BIGINT - CUDA stream, unique inside process and context only
-- @column  is_default BOOLEAN - default stream of its context, NULL unknown
-- @column  top_class VARCHAR - class with the most work
-- @column  classes VARCHAR - all classes with their share of the work of the stream
-- @column  count DOUBLE count operations that start in an iteration, median
-- @column  work_ms DOUBLE ms sum of clipped durations, median: work volume
-- @column  busy_ms DOUBLE ms union, median
-- @column  busy_min_ms DOUBLE ms least union
-- @column  busy_max_ms DOUBLE ms greatest union
-- @column  pct_of_iteration DOUBLE pct busy by iteration, of the medians
-- @column  first_start_ns BIGINT ns first start of an operation counted
-- @column  last_end_ns BIGINT ns last end of an operation counted
-- @column  span_ms DOUBLE ms span from first start to last end, over all iterations
-- @column  n BIGINT - steady iterations; one in which the stream does nothing counts 0
-- @invariant busy_in_work busy_max_ms >= busy_ms AND busy_ms <= work_ms
-- @pitfall 1, 2
WITH windows AS (
    SELECT device, count(*) AS n, median(end_ns - start_ns) AS iteration_ns
    FROM nsys.steady
    GROUP BY device
),
class_work AS (
    SELECT device, process, context_id, stream_id, class, sum(work_ns) AS work_ns,
        sum(count) AS count
    FROM nsys.stream_window
    GROUP BY ALL
),
class_share AS (
    SELECT
        *,
        coalesce(
            100 * work_ns
            / nullif(sum(work_ns) OVER (PARTITION BY device, process, context_id, stream_id), 0),
            0
        ) AS pct,
    FROM class_work
),
class_text AS (
    SELECT
        device,
        process,
        context_id,
        stream_id,
        string_agg(format('{} {:.1f} %', class, pct), ', ' ORDER BY pct DESC, count DESC, class)
            AS classes,
        first(class ORDER BY pct DESC, count DESC, class) AS top_class,
    FROM class_share
    GROUP BY device, process, context_id, stream_id
),
stream AS (
    SELECT
        device,
        iteration,
        process,
        context_id,
        stream_id,
        sum(count)::BIGINT AS count,
        sum(work_ns)::BIGINT AS work_ns,
        sum(added_ns)::BIGINT AS busy_ns,
        min(first_start_ns) AS first_start_ns,
        max(last_end_ns) AS last_end_ns,
    FROM nsys.stream_window
    GROUP BY device, iteration, process, context_id, stream_id
),
listed AS (
    SELECT
        device,
        process,
        context_id,
        stream_id,
        list(count) AS count,
        list(work_ns) AS work,
        list(busy_ns) AS busy,
        min(first_start_ns) AS first_start_ns,
        max(last_end_ns) AS last_end_ns,
    FROM stream
    GROUP BY device, process, context_id, stream_id
)
SELECT
    l.device,
    l.process & 16777215 AS pid,
    l.context_id,
    l.stream_id,
    d.stream_id = l.stream_id AS is_default,
    t.top_class,
    t.classes,
    nsys.padded_median(l.count, coalesce(w.n, 1))::DOUBLE AS count,
    nsys.padded_median(l.work, coalesce(w.n, 1)) / 1e6 AS work_ms,
    nsys.padded_median(l.busy, coalesce(w.n, 1)) / 1e6 AS busy_ms,
    nsys.padded_min(l.busy, coalesce(w.n, 1)) / 1e6 AS busy_min_ms,
    nsys.padded_max(l.busy, coalesce(w.n, 1)) / 1e6 AS busy_max_ms,
    100 * nsys.padded_median(l.busy, w.n) / w.iteration_ns AS pct_of_iteration,
    l.first_start_ns,
    l.last_end_ns,
    (l.last_end_ns - l.first_start_ns) / 1e6 AS span_ms,
    coalesce(w.n, 0) AS n,
FROM listed AS l
INNER JOIN class_text AS t
    ON t.device = l.device
    AND t.process IS NOT DISTINCT FROM l.process
    AND t.context_id IS NOT DISTINCT FROM l.context_id
    AND t.stream_id IS NOT DISTINCT FROM l.stream_id
LEFT JOIN nsys.null_stream AS d
    ON d.process IS NOT DISTINCT FROM l.process AND d.context_id IS NOT DISTINCT FROM l.context_id
LEFT JOIN windows AS w ON w.device = l.device
ORDER BY l.device, busy_ms DESC, l.process, l.context_id, l.stream_id;
