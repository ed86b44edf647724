-- copy_piece — how do copies and sets fall into the stretches between window borders?
--
-- Cut at the borders of windows. Each piece knows what it adds to the time covered before it: to
-- the union of its own row of recipe copies, and to that of its direction on any stream, which is
-- what keeps the copy engine of that direction busy.
--
-- @grain  one row per operation of nsys.copy_op and stretch that it touches
-- @reads  nsys.copy_op, nsys.segment
-- @column device          BIGINT  -  physical GPU
-- @column segment         BIGINT  -  stretch of nsys.segment
-- @column process         BIGINT  -  process key
-- @column context_id      BIGINT  -  CUDA context
-- @column stream_id       BIGINT  -  CUDA stream
-- @column direction       VARCHAR -  direction of nsys.copy_op
-- @column way             VARCHAR -  way of nsys.copy_op
-- @column source          VARCHAR -  kind of memory read
-- @column destination     VARCHAR -  kind of memory written
-- @column count           BIGINT  -  1 where the operation starts, else 0
-- @column bytes           BIGINT  bytes its bytes, where it starts
-- @column duration_ns     BIGINT  ns its whole duration, where it starts
-- @column work_ns         BIGINT  ns length of the piece
-- @column added_ns        BIGINT  ns what it adds to the union of its row
-- @column engine_added_ns BIGINT  ns what it adds to the union of its direction
-- @pitfall 1, 2, 12
WITH placed AS (
    FROM nsys.iv_place('nsys.copy_op', 'nsys.segment')
),
-- the stretches behind the border that it reaches into
crossing AS (
    SELECT p.*, unnest(range(p.segment + 1, z.segment + 1)) AS later
    FROM (SELECT * FROM placed WHERE end_ns > border_ns) AS p
    ASOF JOIN nsys.segment AS z ON z.device = p.device AND z.start_ns < p.end_ns
),
piece AS (
    SELECT
        * EXCLUDE (op_id, correlation_id, end_ns, border_ns),
        1 AS count,
        end_ns - start_ns AS duration_ns,
        least(end_ns, border_ns) AS end_ns,
    FROM placed
    UNION ALL BY NAME
    SELECT
        p.* EXCLUDE (op_id, correlation_id, start_ns, end_ns, bytes, segment, border_ns, later),
        s.segment,
        s.start_ns,
        0 AS bytes,
        0 AS count,
        0 AS duration_ns,
        least(p.end_ns, s.end_ns) AS end_ns,
    FROM crossing AS p
    INNER JOIN nsys.segment AS s ON s.device = p.device AND s.segment = p.later
),
reached AS (
    SELECT
        *,
        max(end_ns) OVER (
            PARTITION BY
                device, process, context_id, stream_id, direction, way, source, destination
            ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reached_ns,
        max(end_ns) OVER (
            PARTITION BY device, direction
            ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS engine_reached_ns,
    FROM piece
)
-- no piece crosses a border, so what was reached before never reaches into a later stretch
SELECT
    device,
    segment,
    process,
    context_id,
    stream_id,
    direction,
    way,
    source,
    destination,
    count::BIGINT AS count,
    bytes,
    duration_ns::BIGINT AS duration_ns,
    end_ns - start_ns AS work_ns,
    greatest(0, end_ns - greatest(start_ns, reached_ns)) AS added_ns,
    greatest(0, end_ns - greatest(start_ns, engine_reached_ns)) AS engine_added_ns,
FROM reached;
