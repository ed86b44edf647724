-- capture_span — when was a stream capture of a process open, as each device saw it?
--
-- From the start of a BeginCapture call to the end of the next EndCapture call on its thread. A
-- capture that is never ended stays open.
--
-- @grain   one row per device, BeginCapture call
-- @reads   nsys.control_call, nsys.drive
-- @column  device    BIGINT  -   device that the capturing process drives
-- @column  start_ns  BIGINT  ns  start of the capture
-- @column  end_ns    BIGINT  ns  end of the capture, the largest integer where it stays open
WITH ending AS (
    SELECT c.process, c.thread, c.start_ns, c.end_ns
    FROM nsys.control_call AS c
    WHERE c.control = 'capture_end'
)
SELECT
    d.device,
    b.start_ns,
    coalesce(e.end_ns, 9223372036854775807)::BIGINT AS end_ns
FROM nsys.control_call AS b
INNER JOIN nsys.drive AS d ON b.process IS NOT DISTINCT FROM d.process
ASOF LEFT JOIN ending AS e
    ON b.process = e.process AND b.thread = e.thread AND b.start_ns <= e.start_ns
WHERE b.control = 'capture_begin';
