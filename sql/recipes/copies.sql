-- copies — what is copied and set, how fast, and does it cost compute time?
--
-- By direction, stream and kinds of memory. A long or slow copy is no bottleneck by itself
-- (pitfall 12): verdict claims one only where the copy engine of the direction is saturated, which
-- is saturated_pct of the iteration over all streams, or where a resolved dependency of compute
-- leads to the copies, for blocking_pct of the iteration or more. Else it says `no claim`.
--
-- way tells copies with the same direction apart: `host` moves data between host and device,
-- `device` inside a device, `peer` from device to device. `staged peer` is half of a copy between
-- two devices without peer access, which the trace shows as DtoH and HtoD with device memory on
-- both sides: no transfer of the program to or from the host. Sets are rows of their own.
--
-- A copy of another device that compute of this one waited for has a row here with blocking time
-- and without count, bytes, work and busy: these belong to the device that copied.
--
-- is_pageable_sync marks copies of pageable memory that are asynchronous by name only: on the
-- default stream, on one that the host waits for, or with a call that returned when the copy was
-- done (pitfall 13). It is NULL where the trace does not tell the kind of memory.
--
-- @grain   one row per device, stream, direction and kinds of memory
-- @reads   nsys.steady, nsys.copy_window, nsys.pageable_sync
-- @needs   memcpy | memset
-- @param   saturated_pct DOUBLE = 90 [0, 100]  occupancy from which the engine of a
--     direction is saturated
-- @param   blocking_pct DOUBLE = 1 [0, 100]  share of an iteration from which blocking time is
--     claimed
-- @column  device BIGINT - physical GPU of the report
-- @column  pid BIGINT - operating system process id
-- @column  context_id BIGINT - CUDA context
-- @column  stream_id BIGINT - CUDA stream, unique inside process and context only
-- @column  direction VARCHAR - HtoD, DtoH, DtoD, PtoP, ... or memset
-- @column  way VARCHAR - host, device, peer, staged peer, memset or unknown
-- @column  source VARCHAR - kind of memory read, NULL unknown
-- @column  destination VARCHAR - kind of memory written, NULL unknown
-- @column  count DOUBLE count operations that start in an iteration, median
-- @column  bytes DOUBLE bytes their bytes, median
-- @column  work_ms DOUBLE ms sum of clipped durations, median: work volume
-- @column  busy_ms DOUBLE ms union, median
-- @column  occupancy_pct DOUBLE pct busy by iteration, of the medians
-- @column  bandwidth_gbps DOUBLE gbps achieved: bytes by duration of all operations counted, in
--          1e9 bytes/s
-- @column  blocking_ms DOUBLE ms blocking time that they are to blame for, median
-- @column  engine_busy_ms DOUBLE ms union of the direction over all streams of the device, median
-- @column  engine_occupancy_pct DOUBLE pct engine_busy by iteration, of the medians
-- @column  is_pageable_sync BOOLEAN - pageable memory on a stream that holds up the host
-- @column  verdict VARCHAR - engine saturated, blocks compute, both, or no claim
-- @column  busy_min_ms DOUBLE ms least union
-- @column  busy_max_ms DOUBLE ms greatest union
-- @column  blocking_min_ms DOUBLE ms least blocking time
-- @column  blocking_max_ms DOUBLE ms greatest blocking time
-- @column  n BIGINT - steady iterations; one without such an operation counts 0
-- @invariant busy_in_engine busy_ms <= engine_busy_ms
-- @pitfall 1, 7, 12, 13
WITH params AS (
    SELECT
        coalesce(getvariable('saturated_pct'), 90)::DOUBLE AS saturated_pct,
        coalesce(getvariable('blocking_pct'), 1)::DOUBLE AS blocking_pct,
),
windows AS (
    SELECT device, count(*) AS n, median(end_ns - start_ns) AS iteration_ns
    FROM nsys.steady
    GROUP BY device
),
engine_window AS (
    SELECT device, direction, iteration, sum(engine_added_ns)::BIGINT AS busy_ns
    FROM nsys.copy_window
    GROUP BY device, direction, iteration
),
engine AS (
    SELECT e.device, e.direction, nsys.padded_median(list(e.busy_ns), any_value(w.n)) AS busy_ns
    FROM engine_window AS e
    INNER JOIN windows AS w ON w.device = e.device
    GROUP BY e.device, e.direction
),
listed AS (
    SELECT
        device,
        process,
        context_id,
        stream_id,
        direction,
        way,
        source,
        destination,
        list(count) AS count,
        list(bytes) AS bytes,
        list(work_ns) AS work,
        list(busy_ns) AS busy,
        list(blocking_ns) AS blocking,
        sum(bytes) / nullif(sum(duration_ns), 0) AS bytes_per_ns,
    FROM nsys.copy_window
    GROUP BY ALL
),
measured AS (
    SELECT
        l.*,
        w.n,
        w.iteration_ns,
        nsys.padded_median(l.busy, w.n) AS busy_ns,
        nsys.padded_median(l.blocking, w.n) AS blocking_ns,
        e.busy_ns AS engine_busy_ns,
        -- an engine is what copies between memories have; sets and copies inside a device do not
        e.busy_ns >= p.saturated_pct / 100 * w.iteration_ns
            AND l.way IN ('host', 'peer', 'staged peer') AS is_saturated,
        nsys.padded_median(l.blocking, w.n) > 0
            AND nsys.padded_median(l.blocking, w.n) >= p.blocking_pct / 100 * w.iteration_ns
            AS is_blocking,
        CASE
            WHEN l.way = 'memset' THEN false
            WHEN l.source = 'pageable' OR l.destination = 'pageable' THEN s.stream_id IS NOT NULL
            WHEN l.source IS NOT NULL AND l.destination IS NOT NULL THEN false
        END AS is_pageable_sync,
    FROM listed AS l
    CROSS JOIN params AS p
    INNER JOIN windows AS w ON w.device = l.device
    INNER JOIN engine AS e ON e.device = l.device AND e.direction = l.direction
    LEFT JOIN nsys.pageable_sync AS s
        ON s.process IS NOT DISTINCT FROM l.process
        AND s.context_id IS NOT DISTINCT FROM l.context_id
        AND s.stream_id = l.stream_id
)
SELECT
    device,
    process & 16777215 AS pid,
    context_id,
    stream_id,
    direction,
    way,
    source,
    destination,
    nsys.padded_median(count, n)::DOUBLE AS count,
    nsys.padded_median(bytes, n)::DOUBLE AS bytes,
    nsys.padded_median(work, n) / 1e6 AS work_ms,
    busy_ns / 1e6 AS busy_ms,
    100 * busy_ns / iteration_ns AS occupancy_pct,
    bytes_per_ns AS bandwidth_gbps,
    blocking_ns / 1e6 AS blocking_ms,
    engine_busy_ns / 1e6 AS engine_busy_ms,
    100 * engine_busy_ns / iteration_ns AS engine_occupancy_pct,
    is_pageable_sync,
    CASE
        WHEN is_saturated AND is_blocking THEN 'engine saturated, blocks compute'
        WHEN is_saturated THEN 'engine saturated'
        WHEN is_blocking THEN 'blocks compute'
        ELSE 'no claim'
    END AS verdict,
    nsys.padded_min(busy, n) / 1e6 AS busy_min_ms,
    nsys.padded_max(busy, n) / 1e6 AS busy_max_ms,
    nsys.padded_min(blocking, n) / 1e6 AS blocking_min_ms,
    nsys.padded_max(blocking, n) / 1e6 AS blocking_max_ms,
    n,
FROM measured
ORDER BY
    device,
    way = 'memset',
    work_ms DESC,
    direction,
    way,
    pid,
    context_id,
    stream_id,
    source NULLS LAST,
    destination NULLS LAST,
    process;
