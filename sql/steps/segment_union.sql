-- segment_union — how long was each kind of work on the device in each stretch of time?
--
-- In the order of starts, an operation adds to a union what it covers behind the latest end so
-- far (pitfall 1: what overlaps counts once). That may reach over the border of its stretch: a
-- border hands the time for which the latest end lies behind it on to the next stretch, which
-- keeps the sum exact and needs no operation to be cut.
--
-- @grain  one row per device and stretch
-- @reads  nsys.sweep
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
        coalesce(greatest(compute_until_ns, wait_until_ns), start_ns) AS noncomm_ns,
        coalesce(comm_until_ns, start_ns) AS comm_ns,
        coalesce(greatest(compute_until_ns, wait_until_ns, copy_until_ns), start_ns) AS other_ns,
        coalesce(
            greatest(compute_until_ns, wait_until_ns, copy_until_ns, comm_until_ns), start_ns
        ) AS any_ns,
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
            CASE
                WHEN role IN ('compute', 'wait')
                    THEN greatest(0, end_ns - greatest(start_ns, noncomm_ns))
            END
        ) AS noncomm_ns,
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
        greatest(0, noncomm_ns - start_ns) AS noncomm_ns,
        greatest(0, comm_ns - start_ns) AS comm_ns,
        greatest(0, compute_ns - start_ns) AS compute_ns,
    FROM covered
    WHERE is_border
),
change AS (
    SELECT device, segment, any_ns, other_ns, noncomm_ns, comm_ns, compute_ns FROM added
    UNION ALL
    SELECT device, segment, -any_ns, -other_ns, -noncomm_ns, -comm_ns, -compute_ns FROM handed_on
    UNION ALL
    SELECT device, segment + 1, any_ns, other_ns, noncomm_ns, comm_ns, compute_ns FROM handed_on
)
SELECT
    device,
    segment,
    sum(any_ns)::BIGINT AS device_busy_ns,
    coalesce(sum(noncomm_ns), 0)::BIGINT AS noncomm_busy_ns,
    coalesce(sum(comm_ns), 0)::BIGINT AS comm_busy_ns,
    coalesce(sum(compute_ns), 0)::BIGINT AS compute_busy_ns,
    (sum(any_ns) - coalesce(sum(other_ns), 0))::BIGINT AS comm_exposed_ns,
FROM change
GROUP BY device, segment;
