-- phase_host — how long were ranges of each phase open in each stretch of time?
--
-- The union over all threads of the processes that drive the device, so that a phase inside the
-- same phase counts once.
--
-- @grain  one row per device, stretch and phase
-- @reads  nsys.range_instance, nsys.range_phase, nsys.drive, nsys.segment
-- @column device  BIGINT  -  physical GPU
-- @column segment BIGINT  -  stretch of nsys.segment
-- @column phase   VARCHAR -  phase
-- @column count   BIGINT  -  outermost ranges of the phase that start in the stretch
-- @column host_ns BIGINT  ns union of its ranges on the host
WITH placed AS (
    SELECT d.device, p.phase, i.start_ns, i.end_ns, s.segment, s.end_ns AS border_ns
    FROM nsys.range_instance AS i
    INNER JOIN nsys.range_phase AS p ON p.path_no = i.path_no AND p.is_named
    INNER JOIN nsys.drive AS d ON d.process IS NOT DISTINCT FROM i.process
    ASOF JOIN nsys.segment AS s ON s.device = d.device AND s.start_ns <= i.start_ns
),
reached AS (
    SELECT
        *,
        max(end_ns) OVER (
            PARTITION BY device, phase ORDER BY start_ns, end_ns DESC
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reached_ns,
    FROM placed
),
-- the stretches behind the border that it reaches into
crossing AS (
    SELECT r.*, unnest(range(r.segment + 1, z.segment + 1)) AS later
    FROM (SELECT * FROM reached WHERE end_ns > border_ns) AS r
    ASOF JOIN nsys.segment AS z ON z.device = r.device AND z.start_ns < r.end_ns
),
piece AS (
    SELECT device, segment, phase,
        CASE WHEN reached_ns IS NULL OR reached_ns < end_ns THEN 1 ELSE 0 END AS count,
        greatest(0, least(end_ns, border_ns) - greatest(start_ns, reached_ns)) AS host_ns
    FROM reached
    UNION ALL
    SELECT r.device, s.segment, r.phase, 0,
        greatest(0, least(r.end_ns, s.end_ns) - greatest(r.start_ns, r.reached_ns, s.start_ns))
    FROM crossing AS r
    INNER JOIN nsys.segment AS s ON s.device = r.device AND s.segment = r.later
)
SELECT device, segment, phase, sum(count)::BIGINT AS count, sum(host_ns)::BIGINT AS host_ns
FROM piece
GROUP BY device, segment, phase;
