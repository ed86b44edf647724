-- range_segment — how long were the ranges of each path in each stretch of time?
--
-- Ranges of a path may overlap (recursion below the eighth level, several threads, start/end
-- ranges); their union and the sum of their times are told apart. A range is counted in the stretch
-- in which it starts.
--
-- @grain  one row per device, stretch and path
-- @reads  nsys.range_extent, nsys.segment
-- @column device       BIGINT -  physical GPU
-- @column segment      BIGINT -  stretch of nsys.segment
-- @column path_no      BIGINT -  path of nsys.range_path
-- @column count        BIGINT -  ranges that start in the stretch
-- @column host_ns      BIGINT ns union of the ranges on the host
-- @column host_work_ns BIGINT ns sum of the ranges on the host
-- @column span_ns      BIGINT ns union of their projections onto the device
-- @pitfall 1
WITH device AS (
    SELECT device, row_number() OVER () - 1 AS number
    FROM (SELECT DISTINCT device FROM nsys.segment) AS d
),
path AS (
    SELECT max(path_no) + 1 AS paths FROM nsys.range_extent
),
scale AS (
    SELECT
        2 * (SELECT count(*) FROM device) * any_value(p.paths) AS parts,
        min(e.start_ns) AS from_ns,
        max(e.end_ns) AS to_ns,
    FROM nsys.range_extent AS e
    CROSS JOIN path AS p
),
-- both sides of a path on a device are parts of their own
extent AS NOT MATERIALIZED (
    SELECT
        (d.number * p.paths + e.path_no) * 2 + e.is_device::BIGINT AS part,
        e.device,
        e.path_no,
        e.is_device,
        e.start_ns,
        e.end_ns,
    FROM nsys.range_extent AS e
    INNER JOIN device AS d ON d.device = e.device
    CROSS JOIN path AS p
),
placed AS NOT MATERIALIZED (
    FROM nsys.iv_place('extent', 'nsys.segment')
),
reached AS (
    SELECT *, greatest(start_ns, reached_ns) AS from_ns FROM nsys.iv_reached('placed', 'scale')
),
-- the stretches behind the border that it reaches into
crossing AS (
    SELECT r.*, unnest(range(r.segment + 1, z.segment + 1)) AS later
    FROM (SELECT * FROM reached WHERE end_ns > border_ns) AS r
    ASOF JOIN nsys.segment AS z ON z.device = r.device AND z.start_ns < r.end_ns
),
piece AS (
    SELECT device, segment, path_no, is_device, 1 AS count,
        least(end_ns, border_ns) - start_ns AS work_ns,
        greatest(0, least(end_ns, border_ns) - from_ns) AS new_ns
    FROM reached
    UNION ALL
    SELECT r.device, s.segment, r.path_no, r.is_device, 0,
        least(r.end_ns, s.end_ns) - s.start_ns,
        greatest(0, least(r.end_ns, s.end_ns) - greatest(r.from_ns, s.start_ns))
    FROM crossing AS r
    INNER JOIN nsys.segment AS s ON s.device = r.device AND s.segment = r.later
)
SELECT
    device,
    segment,
    path_no,
    sum(CASE WHEN is_device THEN 0 ELSE count END)::BIGINT AS count,
    sum(CASE WHEN is_device THEN 0 ELSE new_ns END)::BIGINT AS host_ns,
    sum(CASE WHEN is_device THEN 0 ELSE work_ns END)::BIGINT AS host_work_ns,
    sum(CASE WHEN is_device THEN new_ns ELSE 0 END)::BIGINT AS span_ns,
FROM piece
GROUP BY device, segment, path_no;
