-- segment_union — how long was each kind of work on the device in each stretch of time?
--
-- In the order of starts, an operation adds to a union what it covers behind the latest end so
-- far (pitfall 1: what overlaps counts once). That may reach over the border of its stretch: a
-- border hands the time for which the latest end lies behind it on to the next stretch, which
-- keeps the sum exact and needs no operation to be cut.
--
-- @grain  one row per device and stretch
-- @reads  nsys.sweep, nsys.noncomm_union
-- @column device          BIGINT -  physical GPU
-- @column segment         BIGINT -  stretch of nsys.segment
-- @column device_busy_ns  BIGINT ns union of all operations
-- @column noncomm_busy_ns BIGINT ns union of kernels and graphs whose role is not comm
-- @column comm_busy_ns    BIGINT ns union of kernels whose role is comm
-- @column compute_busy_ns BIGINT ns union of kernels and graphs whose role is compute
-- @column comm_exposed_ns BIGINT ns comm, and no operation of another role
-- @pitfall 1, 7
WITH covered AS (
    -- coalesce where both ends may be NULL: greatest skips NULLs
    SELECT
        device,
        segment,
        item_id IS NULL AS is_border,
        role,
        start_ns,
        end_ns,
        coalesce(compute_until_ns, start_ns) AS compute_ns,
        coalesce(comm_until_ns, start_ns) AS comm_ns,
        coalesce(other_until_ns, start_ns) AS other_ns,
        coalesce(greatest(comm_until_ns, other_until_ns), start_ns) AS any_ns,
    FROM nsys.sweep
),
added AS (
    SELECT
        device,
        segment,
        sum(greatest(0, end_ns - greatest(start_ns, any_ns))) AS any_ns,
        sum(
            CASE WHEN role <> 'comm' THEN greatest(0, end_ns - greatest(start_ns, other_ns)) END
        ) AS other_ns,
        sum(
            CASE WHEN role = 'comm' THEN greatest(0, end_ns - greatest(start_ns, comm_ns)) END
        ) AS comm_ns,
        sum(
            CASE WHEN role = 'compute' THEN greatest(0, end_ns - greatest(start_ns, compute_ns)) END
        ) AS compute_ns,
    FROM covered
    WHERE NOT is_border
    GROUP BY device, segment
),
handed_on AS (
    SELECT
        device,
        segment,
        greatest(0, any_ns - start_ns) AS any_ns,
        greatest(0, other_ns - start_ns) AS other_ns,
        greatest(0, comm_ns - start_ns) AS comm_ns,
        greatest(0, compute_ns - start_ns) AS compute_ns,
    FROM covered
    WHERE is_border
),
change AS (
    SELECT device, segment, any_ns, other_ns, comm_ns, compute_ns FROM added
    UNION ALL
    SELECT device, segment, -any_ns, -other_ns, -comm_ns, -compute_ns FROM handed_on
    UNION ALL
    SELECT device, segment + 1, any_ns, other_ns, comm_ns, compute_ns FROM handed_on
),
summed AS (
    SELECT
        device,
        segment,
        sum(any_ns)::BIGINT AS any_ns,
        coalesce(sum(other_ns), 0)::BIGINT AS other_ns,
        coalesce(sum(comm_ns), 0)::BIGINT AS comm_ns,
        coalesce(sum(compute_ns), 0)::BIGINT AS compute_ns,
    FROM change
    GROUP BY device, segment
)
SELECT
    s.device,
    s.segment,
    s.any_ns AS device_busy_ns,
    coalesce(n.noncomm_busy_ns, s.compute_ns) AS noncomm_busy_ns,
    s.comm_ns AS comm_busy_ns,
    s.compute_ns AS compute_busy_ns,
    s.any_ns - s.other_ns AS comm_exposed_ns,
FROM summed AS s
LEFT JOIN nsys.noncomm_union AS n
    ON n.device IS NOT DISTINCT FROM s.device AND n.segment = s.segment;
