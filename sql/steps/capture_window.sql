-- capture_window — which share of a device's kernels do the steady windows cover?
--
-- @grain  one row per device with operations
-- @reads  nsys.stream_item, nsys.iteration, nsys.window_segment, nsys.steady, nsys.segment
-- @param  device BIGINT = NULL the only device to report
-- @column device          BIGINT  - physical GPU
-- @column anchor          VARCHAR - anchor of the windows, NULL where there is none
-- @column steady_windows  BIGINT  - steady windows
-- @column dropped         VARCHAR - how many windows were dropped for which reason, NULL for none
-- @column kernels         BIGINT  - kernels on the device
-- @column outside_kernels BIGINT  - those that start in no steady window
WITH params AS (
    SELECT getvariable('device')::BIGINT AS device
),
dropped AS (
    SELECT device, string_agg(n || ' ' || status, ', ' ORDER BY status) AS dropped
    FROM (
        SELECT device, status, count(*) AS n
        FROM nsys.iteration
        WHERE status <> 'steady'
        GROUP BY device, status
    ) AS counted
    GROUP BY device
),
anchored AS (
    SELECT device, any_value(anchor) AS anchor FROM nsys.iteration GROUP BY device
),
kept AS (
    SELECT device, count(*) AS n FROM nsys.steady GROUP BY device
),
covered AS (
    SELECT DISTINCT device, segment FROM nsys.window_segment
),
kernel AS NOT MATERIALIZED (
    SELECT device, start_ns FROM nsys.stream_item WHERE kind = 0
),
inside AS (
    SELECT k.device, count(*) AS n
    FROM nsys.iv_place('kernel', 'nsys.segment') AS k
    INNER JOIN covered AS c ON c.device = k.device AND c.segment = k.segment
    GROUP BY k.device
),
total AS (
    SELECT i.device, count(*) FILTER (WHERE i.kind = 0) AS n
    FROM nsys.stream_item AS i
    INNER JOIN params AS p ON p.device IS NULL OR i.device = p.device
    WHERE i.kind < 4
    GROUP BY i.device
)
SELECT
    t.device,
    a.anchor,
    coalesce(k.n, 0) AS steady_windows,
    d.dropped,
    t.n AS kernels,
    t.n - coalesce(i.n, 0) AS outside_kernels,
FROM total AS t
LEFT JOIN anchored AS a ON a.device = t.device
LEFT JOIN kept AS k ON k.device = t.device
LEFT JOIN dropped AS d ON d.device = t.device
LEFT JOIN inside AS i ON i.device = t.device;
