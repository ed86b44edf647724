-- profiler_span — between which calls was the profiler on, as each device saw it?
--
-- The calls of all processes that drive a device count. A span opens with a start call, is ready
-- when that call has ended, and closes where the first stop call after its opening begins. Each
-- device has one span that opens before all time: it is ready at once where there are no start
-- calls (only a stop can then bound the capture), and never where there are.
--
-- @grain   one row per device, opens_ns
-- @reads   nsys.control_call, nsys.drive
-- @column  device    BIGINT  -   device
-- @column  opens_ns  BIGINT  ns  start of the start call
-- @column  ready_ns  BIGINT  ns  end of the start call
-- @column  stop_ns   BIGINT  ns  start of the first stop call after it, or NULL
WITH device_call AS (
    SELECT
        d.device,
        c.control,
        c.start_ns,
        max(c.end_ns) AS end_ns
    FROM nsys.control_call AS c
    INNER JOIN nsys.drive AS d ON c.process IS NOT DISTINCT FROM d.process
    WHERE c.control IN ('profiler_start', 'profiler_stop')
    GROUP BY d.device, c.control, c.start_ns
),
opening AS (
    SELECT
        c.device,
        c.start_ns AS opens_ns,
        c.end_ns AS ready_ns
    FROM device_call AS c
    WHERE c.control = 'profiler_start'
    UNION ALL
    SELECT DISTINCT
        d.device,
        (-9223372036854775807)::BIGINT AS opens_ns,
        CASE
            WHEN d.device IN (
                SELECT c.device FROM device_call AS c WHERE c.control = 'profiler_start'
            ) THEN 9223372036854775807
            ELSE -9223372036854775807
        END::BIGINT AS ready_ns
    FROM nsys.drive AS d
),
stop AS (
    SELECT
        c.device,
        c.start_ns
    FROM device_call AS c
    WHERE c.control = 'profiler_stop'
)
SELECT
    o.device,
    o.opens_ns,
    o.ready_ns,
    min(c.start_ns) AS stop_ns
FROM opening AS o
LEFT JOIN stop AS c ON o.device = c.device AND o.opens_ns < c.start_ns
GROUP BY o.device, o.opens_ns, o.ready_ns;
