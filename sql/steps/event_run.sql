-- event_run — from which operation does a run of events start, and how good a producer is it?
--
-- Of two candidates for a producer the better one ends later; of equal ends the one with the
-- lowest correlation id, then the earliest start. Ranking them once turns every later choice
-- into a maximum of integers. Rank 0 is no operation at all.
--
-- @grain  one row per run of nsys.stream_event
-- @reads  nsys.stream_event
-- @column run                 BIGINT  -  number of the run
-- @column last_id             BIGINT  -  last event of the run
-- @column rank                BIGINT  -  rank of the operation before the run, 0 if none
-- @column op_id               BIGINT  -  that operation
-- @column op_start_ns         BIGINT  ns its start
-- @column op_end_ns           BIGINT  ns its end
-- @column op_name_id          BIGINT  -  its name
WITH started AS (
    SELECT run, prev_id, prev_start_ns, prev_end_ns, prev_name_id, prev_correlation_id
    FROM nsys.stream_event
    WHERE is_first
),
last_event AS (
    SELECT run, arg_max(item_id, position) AS last_id
    FROM nsys.stream_event
    GROUP BY run
)
SELECT
    s.run,
    l.last_id,
    CASE
        WHEN s.prev_id IS NULL THEN 0
        ELSE dense_rank() OVER (
            ORDER BY s.prev_end_ns NULLS FIRST, s.prev_correlation_id DESC, s.prev_start_ns DESC,
                s.prev_id DESC
        )
    END AS rank,
    s.prev_id AS op_id,
    s.prev_start_ns AS op_start_ns,
    s.prev_end_ns AS op_end_ns,
    s.prev_name_id AS op_name_id,
FROM started AS s
INNER JOIN last_event AS l ON l.run = s.run;
