-- anchors — which anchors could mark the iterations, and which one does auto take?
--
-- Every candidate with its windows on each device, in the order in which auto would take them.
-- The best one is checked against the best one of another kind; where the two imply different
-- step times, auto takes none. A period runs from start to start. Share is the time of the
-- operations that start inside the windows, summed, of that of all operations of the device.
-- Variation and steadiness leave the first period out where there are three or more. A table shows
-- the first ten ranks, and others that auto has nothing against; with --limit 0, and in every other
-- format, stand all of them, and their whole patterns in the latter.
--
-- @grain      one row per rank, device
-- @reads      nsys.anchor_candidate, nsys.anchor_choice
-- @param      device            BIGINT = NULL  the only device to report; auto looks at all of them
-- @column     rank              BIGINT   -    order of preference, from 1
-- @column     kind              VARCHAR  -    nvtx, nccl or kernel
-- @column     pattern           VARCHAR  -    anchor pattern
-- @column     per_iteration     BIGINT   -    occurrences per iteration
-- @column     device            BIGINT   -    device
-- @column     count             BIGINT   -    closed windows
-- @column     median_period_ns  BIGINT   ns   median of the periods
-- @column     min_period_ns     BIGINT   ns   shortest period
-- @column     max_period_ns     BIGINT   ns   longest period
-- @column     variation_pct     DOUBLE   pct  median absolute deviation / median of the periods
-- @column     steady_pct        DOUBLE   pct  periods within a tenth of the median / all of them
-- @column     share_pct         DOUBLE   pct  device work that starts in the windows / all of it
-- @column     is_best           BOOLEAN  -    auto takes it, or would but for the cross-check
-- @column     verdict           VARCHAR  -    what auto makes of it
-- @invariant  ordered           min_period_ns IS NULL OR min_period_ns <= median_period_ns
-- @invariant  share             share_pct IS NULL OR share_pct BETWEEN 0 AND 100
WITH params AS (
    SELECT getvariable('device')::BIGINT AS device
)
SELECT
    a.rank,
    a.kind,
    a.pattern,
    a.per_iteration,
    a.device,
    a.count,
    a.median_period_ns,
    a.min_period_ns,
    a.max_period_ns,
    a.variation_pct,
    a.steady_pct,
    a.share_pct,
    a.rank = 1 AND a.is_plausible AS is_best,
    CASE
        WHEN a.rank = 1 AND a.is_plausible AND c.status = 'ambiguous'
            THEN 'stops: disagrees with ' || c.rival_kind || ':' || c.rival_pattern
        WHEN a.rank = 1 AND a.is_plausible AND c.rival_kind IS NULL THEN 'taken, not cross-checked'
        WHEN a.rank = 1 AND a.is_plausible
            THEN 'taken, agrees with ' || c.rival_kind || ':' || c.rival_pattern
        WHEN a.kind = c.rival_kind AND a.pattern = c.rival_pattern AND c.status = 'ambiguous'
            THEN 'cross-check: disagrees'
        WHEN a.kind = c.rival_kind AND a.pattern = c.rival_pattern THEN 'cross-check: agrees'
        ELSE coalesce(a.reason, 'plausible, but others come first')
    END AS verdict
FROM nsys.anchor_candidate AS a
CROSS JOIN nsys.anchor_choice AS c
CROSS JOIN params AS p
WHERE p.device IS NULL OR a.device = p.device
ORDER BY a.rank, a.device;
