-- iterations — which iterations does the anchor give, and why were some dropped?
--
-- Every window of every device is listed, the dropped ones with their reason. The gap before a
-- window is negative where ranges of several threads overlap.
--
-- @grain      one row per device, iteration
-- @reads      nsys.iteration
-- @param      device         BIGINT = NULL  the only device to report
-- @column     device         BIGINT   -   device
-- @column     iteration      BIGINT   -   ordinal over all windows of the device, from 0
-- @column     start_ns       BIGINT   ns  start of the window
-- @column     end_ns         BIGINT   ns  end; of an unclosed window as recorded, or NULL
-- @column     duration_ms    DOUBLE   ms  length of the window
-- @column     status         VARCHAR  -   steady, or why the window was dropped
-- @column     anchor         VARCHAR  -   the anchor, kind:pattern
-- @column     period_ns      BIGINT   ns  from this start to the next start on the device
-- @column     gap_before_ns  BIGINT   ns  from the previous end to this start
-- @invariant  ordered        end_ns IS NULL OR end_ns >= start_ns
-- @invariant  steady_closed  status <> 'steady' OR end_ns IS NOT NULL
WITH params AS (
    SELECT getvariable('device')::BIGINT AS device
),
neighbour AS (
    SELECT
        i.*,
        lead(i.start_ns) OVER device_order AS next_start_ns,
        lag(CASE WHEN i.status <> 'unclosed' THEN i.end_ns END) OVER device_order AS previous_end_ns
    FROM nsys.iteration AS i
    WINDOW device_order AS (PARTITION BY i.device ORDER BY i.iteration)
)
SELECT
    n.device,
    n.iteration,
    n.start_ns,
    n.end_ns,
    (n.end_ns - n.start_ns) / 1e6 AS duration_ms,
    n.status,
    n.anchor,
    n.next_start_ns - n.start_ns AS period_ns,
    n.start_ns - n.previous_end_ns AS gap_before_ns
FROM neighbour AS n
CROSS JOIN params AS p
WHERE p.device IS NULL OR n.device = p.device
ORDER BY n.device, n.iteration;
