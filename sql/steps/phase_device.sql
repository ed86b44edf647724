-- phase_device — how long did the operations of each phase run in each stretch of time?
--
-- An operation belongs to the phase of the range in which its thread launched it, else to the only
-- pass that its process had open then (`borrowed`), else to none. One pass in start order as in
-- nsys.range_device.
--
-- @grain  one row per device, stretch and phase
-- @reads  nsys.range_op, nsys.range_free_op, nsys.range_phase, nsys.phase_state, nsys.segment
-- @column device           BIGINT  -  physical GPU
-- @column segment          BIGINT  -  stretch of nsys.segment
-- @column phase            VARCHAR -  phase, or unattributed
-- @column op_count         BIGINT  -  operations that start in the stretch
-- @column borrowed_count   BIGINT  -  those placed by a range of another thread
-- @column busy_ns          BIGINT  ns union of its operations
-- @column compute_ns       BIGINT  ns union of those that compute
-- @column compute_comm_ns  BIGINT  ns union of those that compute or communicate
-- @pitfall 1, 22
WITH free_phase AS (
    SELECT f.op_id, arg_max(p.phase, f.range_no) AS phase
    FROM nsys.range_free_op AS f
    INNER JOIN nsys.range_phase AS p ON p.path_no = f.path_no
    GROUP BY f.op_id
),
own AS NOT MATERIALIZED (
    SELECT o.device, o.segment, o.start_ns, o.end_ns, o.kind, o.process, o.launch_ns,
        coalesce(p.phase, f.phase) AS phase
    FROM nsys.range_op AS o
    LEFT JOIN nsys.range_phase AS p ON p.path_no = o.path_no
    LEFT JOIN free_phase AS f ON f.op_id = o.op_id
),
-- only what may borrow a phase is laid over the phases of its process
placed AS (
    SELECT device, segment, start_ns, end_ns, kind, coalesce(phase, 'unattributed') AS phase,
        0 AS borrowed
    FROM own
    WHERE phase IS NOT NULL OR (process IN (SELECT process FROM nsys.phase_state)) IS NOT TRUE
    UNION ALL
    SELECT
        o.device,
        o.segment,
        o.start_ns,
        o.end_ns,
        o.kind,
        CASE WHEN s.end_ns > o.launch_ns THEN s.phase ELSE 'unattributed' END,
        CASE WHEN s.end_ns > o.launch_ns THEN 1 ELSE 0 END,
    FROM (
        SELECT * FROM own
        WHERE phase IS NULL AND process IN (SELECT process FROM nsys.phase_state)
    ) AS o
    ASOF LEFT JOIN nsys.phase_state AS s
        ON s.process = o.process AND s.start_ns <= o.launch_ns
),
reached AS (
    SELECT
        device,
        phase,
        segment,
        end_ns,
        kind,
        borrowed,
        greatest(start_ns, max(end_ns) OVER before) AS busy_from_ns,
        greatest(start_ns, max(CASE WHEN kind = 1 THEN end_ns END) OVER before)
            AS compute_from_ns,
        greatest(start_ns, max(CASE WHEN kind <= 2 THEN end_ns END) OVER before)
            AS compute_comm_from_ns,
    FROM placed
    WINDOW before AS (
        PARTITION BY device, phase ORDER BY start_ns
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
),
cut AS (
    SELECT r.*, s.end_ns AS border_ns
    FROM reached AS r
    INNER JOIN nsys.segment AS s ON s.device = r.device AND s.segment = r.segment
),
-- the stretches behind the border that it reaches into
crossing AS (
    SELECT c.*, unnest(range(c.segment + 1, z.segment + 1)) AS later
    FROM (SELECT * FROM cut WHERE end_ns > border_ns) AS c
    ASOF JOIN nsys.segment AS z ON z.device = c.device AND z.start_ns < c.end_ns
),
piece AS (
    SELECT
        device,
        segment,
        phase,
        1 AS op_count,
        borrowed,
        greatest(0, least(end_ns, border_ns) - busy_from_ns) AS busy_ns,
        CASE WHEN kind = 1 THEN greatest(0, least(end_ns, border_ns) - compute_from_ns) ELSE 0 END
            AS compute_ns,
        CASE WHEN kind <= 2 THEN greatest(0, least(end_ns, border_ns) - compute_comm_from_ns)
            ELSE 0 END AS compute_comm_ns,
    FROM cut
    UNION ALL
    SELECT
        c.device,
        s.segment,
        c.phase,
        0,
        0,
        greatest(0, least(c.end_ns, s.end_ns) - greatest(c.busy_from_ns, s.start_ns)),
        CASE WHEN c.kind = 1
            THEN greatest(0, least(c.end_ns, s.end_ns) - greatest(c.compute_from_ns, s.start_ns))
            ELSE 0 END,
        CASE WHEN c.kind <= 2
            THEN greatest(
                0, least(c.end_ns, s.end_ns) - greatest(c.compute_comm_from_ns, s.start_ns)
            )
            ELSE 0 END,
    FROM crossing AS c
    INNER JOIN nsys.segment AS s ON s.device = c.device AND s.segment = c.later
)
SELECT
    device,
    segment,
    phase,
    sum(op_count)::BIGINT AS op_count,
    sum(borrowed)::BIGINT AS borrowed_count,
    sum(busy_ns)::BIGINT AS busy_ns,
    sum(compute_ns)::BIGINT AS compute_ns,
    sum(compute_comm_ns)::BIGINT AS compute_comm_ns,
FROM piece
GROUP BY device, segment, phase;
