-- name_segment — how much work of each name lies in each stretch between window borders?
--
-- An operation is counted in the stretch in which it starts; its time is clipped to stretches,
-- so one that crosses a border gives work to both sides and is never lost.
--
-- @grain  one row per device, stretch and name
-- @reads  nsys.stream_item, nsys.segment
-- @column device      BIGINT -  physical GPU
-- @column segment     BIGINT -  stretch of nsys.segment
-- @column name_id     BIGINT -  name of nsys.op_name
-- @column count       BIGINT -  operations that start in it
-- @column work_ns     BIGINT ns sum of clipped durations: work volume, not wall time
-- @column duration_ns BIGINT ns sum of the whole durations of the counted ones
-- @column min_ns      BIGINT ns shortest of the counted ones
-- @column max_ns      BIGINT ns longest of the counted ones
-- @pitfall 1
WITH op AS NOT MATERIALIZED (
    SELECT device, name_id, start_ns, end_ns FROM nsys.stream_item WHERE kind < 4
),
placed AS (
    FROM nsys.iv_place('op', 'nsys.segment')
),
started AS (
    SELECT
        device,
        segment,
        name_id,
        count(*) AS count,
        sum(least(end_ns, border_ns) - start_ns) AS work_ns,
        sum(end_ns - start_ns) AS duration_ns,
        min(end_ns - start_ns) AS min_ns,
        max(end_ns - start_ns) AS max_ns,
    FROM placed
    GROUP BY device, segment, name_id
),
-- the stretches behind the border that it reaches into
crossing AS (
    SELECT p.*, unnest(range(p.segment + 1, z.segment + 1)) AS later
    FROM (SELECT * FROM placed WHERE end_ns > border_ns) AS p
    ASOF JOIN nsys.segment AS z ON z.device = p.device AND z.start_ns < p.end_ns
),
carried AS (
    SELECT s.device, s.segment, p.name_id, sum(least(p.end_ns, s.end_ns) - s.start_ns) AS work_ns
    FROM crossing AS p
    INNER JOIN nsys.segment AS s ON s.device = p.device AND s.segment = p.later
    GROUP BY s.device, s.segment, p.name_id
),
part AS (
    SELECT * FROM started
    UNION ALL
    SELECT device, segment, name_id, 0, work_ns, 0, NULL, NULL FROM carried
)
SELECT
    device,
    segment,
    name_id,
    sum(count)::BIGINT AS count,
    sum(work_ns)::BIGINT AS work_ns,
    sum(duration_ns)::BIGINT AS duration_ns,
    min(min_ns) AS min_ns,
    max(max_ns) AS max_ns,
FROM part
GROUP BY device, segment, name_id;
