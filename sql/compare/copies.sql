-- copies — what became of the copies of each direction and kind of memory?
--
-- Medians per iteration. Work is the sum of durations clipped to windows, volume and not wall time
-- (pitfall 1); what compute waited for stands in the reconciliation under blocking.
--
-- @grain  one row per pair, direction, way and kinds of memory
-- @reads  pair.copy, pair.window, pair.label
-- @column pair BIGINT - devices or ranks that were compared, see members
-- @column direction VARCHAR - HtoD, DtoH, DtoD, PtoP, ... or memset
-- @column way VARCHAR - host, device, peer, staged peer, memset or unknown
-- @column source VARCHAR - kind of memory read
-- @column destination VARCHAR - kind of memory written
-- @column base_count DOUBLE - copies per iteration of the base
-- @column new_count DOUBLE - copies per iteration of the new side
-- @column base_bytes BIGINT bytes bytes of the base
-- @column new_bytes BIGINT bytes bytes of the new side
-- @column base_work_ns BIGINT ns volume of the base
-- @column new_work_ns BIGINT ns volume of the new side
-- @column delta_work_ns BIGINT ns new less base
-- @column base_gbps DOUBLE GB/s bytes by whole duration of all copies counted in the base
-- @column new_gbps DOUBLE GB/s bytes by whole duration of all copies counted on the new side
-- @column label VARCHAR - what both sides do not have in common, or that the comparison was forced
-- @pitfall 1, 12, 13
WITH typical AS (
    SELECT
        c.pair,
        c.side,
        c.direction,
        c.way,
        c.source,
        c.destination,
        nsys.padded_median(list(c.count), any_value(w.n))::DOUBLE AS count,
        nsys.padded_middle(list(c.bytes), any_value(w.n)) AS bytes,
        nsys.padded_middle(list(c.work_ns), any_value(w.n)) AS work_ns,
        sum(c.bytes) / nullif(sum(c.duration_ns), 0) AS gbps,
    FROM pair.copy AS c
    INNER JOIN pair.window AS w ON w.pair = c.pair AND w.side = c.side
    GROUP BY c.pair, c.side, c.direction, c.way, c.source, c.destination
),
beside AS (
    SELECT
        pair,
        direction,
        way,
        source,
        destination,
        coalesce(max(count) FILTER (WHERE side = 'base'), 0) AS base_count,
        coalesce(max(count) FILTER (WHERE side = 'new'), 0) AS new_count,
        coalesce(max(bytes) FILTER (WHERE side = 'base'), 0) AS base_bytes,
        coalesce(max(bytes) FILTER (WHERE side = 'new'), 0) AS new_bytes,
        coalesce(max(work_ns) FILTER (WHERE side = 'base'), 0) AS base_work_ns,
        coalesce(max(work_ns) FILTER (WHERE side = 'new'), 0) AS new_work_ns,
        max(gbps) FILTER (WHERE side = 'base') AS base_gbps,
        max(gbps) FILTER (WHERE side = 'new') AS new_gbps,
    FROM typical
    GROUP BY pair, direction, way, source, destination
)
SELECT
    s.pair,
    s.direction,
    s.way,
    s.source,
    s.destination,
    s.base_count,
    s.new_count,
    s.base_bytes,
    s.new_bytes,
    s.base_work_ns,
    s.new_work_ns,
    s.new_work_ns - s.base_work_ns AS delta_work_ns,
    s.base_gbps,
    s.new_gbps,
    b.label,
FROM beside AS s
LEFT JOIN pair.label AS b ON b.pair = s.pair
WHERE greatest(s.base_count, s.new_count) > 0
ORDER BY s.pair, s.direction, s.way, s.source, s.destination;
