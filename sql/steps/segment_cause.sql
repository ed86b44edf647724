-- segment_cause — how much time without compute had which cause in each stretch of time?
--
-- Most gaps lie in one stretch as a whole; the few that cross a border are cut there first. Parts
-- of blocking time are cut in the same way.
--
-- @grain  one row per device and stretch that holds a gap
-- @reads  nsys.segment, nsys.gap_cut, nsys.blocking_part
-- @column device                BIGINT -  physical GPU
-- @column segment               BIGINT -  stretch of nsys.segment
-- @column launch_starved_ns     BIGINT ns
-- @column blocking_ns           BIGINT ns
-- @column comm_blocking_ns      BIGINT ns part of blocking that communication is to blame for
-- @column dependency_stalled_ns BIGINT ns
-- @column shadowed_ns           BIGINT ns part of launch-starved in which the producer ran
-- @pitfall 1, 7
WITH placed_gap AS (
    -- A gap knows the stretch of its end: it lies in it unless it begins before that.
    SELECT
        g.device,
        g.segment,
        sum(g.issued_ns - g.start_ns) AS launch_starved_ns,
        sum(g.unblocked_ns - g.issued_ns) AS blocking_ns,
        sum(g.end_ns - g.unblocked_ns) AS dependency_stalled_ns,
        sum(g.shadowed_ns) AS shadowed_ns,
    FROM nsys.gap_cut AS g
    INNER JOIN nsys.segment AS s ON s.device = g.device AND s.segment = g.segment
    WHERE g.start_ns >= s.start_ns
    GROUP BY g.device, g.segment
),
crossing_gap AS (
    SELECT g.device, g.segment, g.start_ns, g.end_ns, g.issued_ns, g.unblocked_ns, g.producer_id,
        g.producer_start_ns, g.producer_end_ns
    FROM nsys.gap_cut AS g
    INNER JOIN nsys.segment AS s ON s.device = g.device AND s.segment = g.segment
    WHERE g.start_ns < s.start_ns
),
-- stretches are numbered without holes: those of a gap are listed from the one it begins in
listed_gap AS (
    SELECT c.*, unnest(range(a.segment, c.segment + 1)) AS part
    FROM crossing_gap AS c
    ASOF JOIN nsys.segment AS a ON a.device = c.device AND a.start_ns <= c.start_ns
),
clipped_gap AS (
    SELECT c.* EXCLUDE (segment, part), s.segment, s.start_ns AS clip_start_ns,
        s.end_ns AS clip_end_ns
    FROM listed_gap AS c
    INNER JOIN nsys.segment AS s ON s.device = c.device AND s.segment = c.part
    WHERE s.start_ns < c.end_ns
),
placed_part AS (
    SELECT p.device, p.start_ns, p.end_ns, s.segment, s.end_ns AS segment_end_ns
    FROM nsys.blocking_part AS p
    ASOF JOIN nsys.segment AS s ON s.device = p.device AND s.start_ns <= p.start_ns
    WHERE p.role = 'comm'
),
crossing_part AS (
    SELECT p.*, unnest(range(p.segment + 1, z.segment + 1)) AS later
    FROM (SELECT * FROM placed_part WHERE end_ns > segment_end_ns) AS p
    ASOF JOIN nsys.segment AS z ON z.device = p.device AND z.start_ns < p.end_ns
),
clipped_part AS (
    SELECT device, segment, least(end_ns, segment_end_ns) - start_ns AS length_ns
    FROM placed_part
    UNION ALL
    SELECT p.device, s.segment, least(p.end_ns, s.end_ns) - s.start_ns
    FROM crossing_part AS p
    INNER JOIN nsys.segment AS s ON s.device = p.device AND s.segment = p.later
),
piece AS (
    SELECT device, segment, launch_starved_ns, blocking_ns, 0 AS comm_blocking_ns,
        dependency_stalled_ns, shadowed_ns
    FROM placed_gap
    UNION ALL
    SELECT
        device,
        segment,
        greatest(0, least(issued_ns, clip_end_ns) - greatest(start_ns, clip_start_ns)),
        greatest(0, least(unblocked_ns, clip_end_ns) - greatest(issued_ns, clip_start_ns)),
        0,
        greatest(0, least(end_ns, clip_end_ns) - greatest(unblocked_ns, clip_start_ns)),
        CASE
            WHEN producer_id IS NULL THEN 0
            ELSE greatest(
                0,
                least(issued_ns, producer_end_ns, clip_end_ns)
                - greatest(start_ns, producer_start_ns, clip_start_ns)
            )
        END,
    FROM clipped_gap
    UNION ALL
    SELECT device, segment, 0, 0, length_ns, 0, 0
    FROM clipped_part
)
SELECT
    device,
    segment,
    sum(launch_starved_ns)::BIGINT AS launch_starved_ns,
    sum(blocking_ns)::BIGINT AS blocking_ns,
    sum(comm_blocking_ns)::BIGINT AS comm_blocking_ns,
    sum(dependency_stalled_ns)::BIGINT AS dependency_stalled_ns,
    sum(shadowed_ns)::BIGINT AS shadowed_ns,
FROM piece
GROUP BY device, segment;
