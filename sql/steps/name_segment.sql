-- name_segment — how much work of each name lies in each stretch between window borders?
--
-- An operation is counted in the stretch in which it starts; its time is clipped to stretches,
-- so one that crosses a border gives work to both sides and is never lost.
--
-- @grain  one row per device, stretch and name
-- @reads  nsys.op, nsys.segment
-- @column device      BIGINT -  physical GPU
-- @column segment     BIGINT -  stretch of nsys.segment
-- @column name_id     BIGINT -  name of nsys.op_name
-- @column count       BIGINT -  operations that start in it
-- @column work_ns     BIGINT ns sum of clipped durations: work volume, not wall time
-- @column duration_ns BIGINT ns sum of the whole durations of the counted ones
-- @column min_ns      BIGINT ns shortest of the counted ones
-- @column max_ns      BIGINT ns longest of the counted ones
-- @pitfall 1
WITH placed AS (
    SELECT
        o.device,
        s.segment,
        o.name_id,
        count(*) AS count,
        sum(least(o.end_ns, s.end_ns) - o.start_ns) AS work_ns,
        sum(o.end_ns - o.start_ns) AS duration_ns,
        min(o.end_ns - o.start_ns) AS min_ns,
        max(o.end_ns - o.start_ns) AS max_ns,
    FROM nsys.op AS o
    ASOF JOIN nsys.segment AS s ON s.device = o.device AND s.start_ns <= o.start_ns
    GROUP BY o.device, s.segment, o.name_id
),
-- what an operation does in the stretches behind the border that it crosses
crossing AS (
    SELECT o.device, o.name_id, o.end_ns, s.segment
    FROM nsys.op AS o
    ASOF JOIN nsys.segment AS s ON s.device = o.device AND s.start_ns <= o.start_ns
    WHERE o.end_ns > s.end_ns
),
carried AS (
    SELECT s.device, s.segment, c.name_id, sum(least(c.end_ns, s.end_ns) - s.start_ns) AS work_ns
    FROM crossing AS c
    INNER JOIN nsys.segment AS s
        ON s.device = c.device AND s.segment > c.segment AND s.start_ns < c.end_ns
    GROUP BY s.device, s.segment, c.name_id
),
part AS (
    SELECT * FROM placed
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
