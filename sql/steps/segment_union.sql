-- segment_union — how long was each kind of work on the device in each stretch of time?
--
-- One sweep over the starts and ends of all operations in time order. A packed counter holds how
-- many operations of each of four kinds run (15 bits each: compute, wait, comm, copy or set), a
-- second one how many borders have passed. Between two neighbouring times the state is constant,
-- so every union is a sum over states, and operations that overlap count once (pitfall 1).
--
-- @grain  one row per device and stretch
-- @reads  nsys.segment, nsys.op
-- @column device          BIGINT -  physical GPU
-- @column segment         BIGINT -  stretch of nsys.segment
-- @column device_busy_ns  BIGINT ns union of all operations
-- @column noncomm_busy_ns BIGINT ns union of kernels and graphs whose role is not comm
-- @column comm_busy_ns    BIGINT ns union of kernels whose role is comm
-- @column compute_busy_ns BIGINT ns union of kernels and graphs whose role is compute
-- @column comm_exposed_ns BIGINT ns comm, and no operation of another role
-- @pitfall 1, 7
WITH kind AS (
    SELECT
        device,
        start_ns,
        end_ns,
        CASE role
            WHEN 'compute' THEN 1
            WHEN 'wait' THEN 1 << 15
            WHEN 'comm' THEN 1 << 30
            ELSE 1::BIGINT << 45
        END AS one,
    FROM nsys.op
    WHERE end_ns > start_ns
),
change AS (
    SELECT device, start_ns AS at_ns, one AS running, 0 AS border FROM kind
    UNION ALL
    SELECT device, end_ns, -one, 0 FROM kind
    UNION ALL
    SELECT device, start_ns, 0, 1 FROM nsys.segment WHERE segment > 0
),
swept AS (
    SELECT
        device,
        (sum(running) OVER in_time)::BIGINT AS running,
        (sum(border) OVER in_time)::BIGINT AS segment,
        lead(at_ns) OVER in_time - at_ns AS length_ns,
    FROM change
    WINDOW in_time AS (
        PARTITION BY device ORDER BY at_ns ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    )
),
state AS (
    SELECT
        device,
        segment,
        (running & 32767) > 0 AS is_compute,
        ((running >> 15) & 32767) > 0 AS is_wait,
        ((running >> 30) & 32767) > 0 AS is_comm,
        (running >> 45) > 0 AS is_copy,
        sum(length_ns)::BIGINT AS length_ns,
    FROM swept
    WHERE length_ns > 0 AND running > 0
    GROUP BY ALL
)
SELECT
    device,
    segment,
    sum(length_ns)::BIGINT AS device_busy_ns,
    sum(CASE WHEN is_compute OR is_wait THEN length_ns ELSE 0 END)::BIGINT AS noncomm_busy_ns,
    sum(CASE WHEN is_comm THEN length_ns ELSE 0 END)::BIGINT AS comm_busy_ns,
    sum(CASE WHEN is_compute THEN length_ns ELSE 0 END)::BIGINT AS compute_busy_ns,
    sum(
        CASE WHEN is_comm AND NOT (is_compute OR is_wait OR is_copy) THEN length_ns ELSE 0 END
    )::BIGINT AS comm_exposed_ns,
FROM state
GROUP BY device, segment;
