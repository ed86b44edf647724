-- phase_device — how long did the operations of each phase run in each stretch of time?
--
-- An operation belongs to the phase of the range in which its thread launched it, else to the only
-- pass that its process had open then (`borrowed`), else to none.
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
WITH device AS (
    SELECT device, row_number() OVER () - 1 AS number
    FROM (SELECT DISTINCT device FROM nsys.segment) AS d
),
-- 0 is for what belongs to none
phase AS (
    SELECT phase, row_number() OVER (ORDER BY phase) AS number
    FROM (SELECT phase FROM nsys.range_phase UNION SELECT phase FROM nsys.phase_state) AS p
    UNION ALL
    SELECT 'unattributed', 0
),
limits AS (
    SELECT count(*) AS phases FROM phase
),
scale AS (
    SELECT
        (SELECT count(*) FROM device) * any_value(l.phases) AS parts,
        min(o.start_ns) AS from_ns,
        max(o.end_ns) AS to_ns,
    FROM nsys.range_op AS o
    CROSS JOIN limits AS l
),
path AS (
    SELECT r.path_no, p.number
    FROM nsys.range_phase AS r
    INNER JOIN phase AS p ON p.phase = r.phase
),
state AS (
    SELECT s.process, s.start_ns, s.end_ns, p.number
    FROM nsys.phase_state AS s
    INNER JOIN phase AS p ON p.phase = s.phase
),
free_phase AS (
    SELECT f.op_id, arg_max(p.number, f.range_no) AS number
    FROM nsys.range_free_op AS f
    INNER JOIN path AS p ON p.path_no = f.path_no
    GROUP BY f.op_id
),
own AS NOT MATERIALIZED (
    SELECT o.device, o.segment, o.start_ns, o.end_ns, o.kind, o.process, o.launch_ns,
        d.number * l.phases AS first_part, coalesce(p.number, f.number) AS number
    FROM nsys.range_op AS o
    INNER JOIN device AS d ON d.device = o.device
    LEFT JOIN path AS p ON p.path_no = o.path_no
    LEFT JOIN free_phase AS f ON f.op_id = o.op_id
    CROSS JOIN limits AS l
),
-- only what may borrow a phase is laid over the phases of its process
placed AS NOT MATERIALIZED (
    SELECT first_part + coalesce(number, 0) AS part, device, segment, start_ns, end_ns, kind,
        0 AS borrowed
    FROM own
    WHERE number IS NOT NULL OR (process IN (SELECT process FROM state)) IS NOT TRUE
    UNION ALL
    SELECT
        o.first_part + CASE WHEN s.end_ns > o.launch_ns THEN s.number ELSE 0 END,
        o.device,
        o.segment,
        o.start_ns,
        o.end_ns,
        o.kind,
        CASE WHEN s.end_ns > o.launch_ns THEN 1 ELSE 0 END,
    FROM (
        SELECT * FROM own WHERE number IS NULL AND process IN (SELECT process FROM state)
    ) AS o
    ASOF LEFT JOIN state AS s ON s.process = o.process AND s.start_ns <= o.launch_ns
)
SELECT
    b.device,
    b.segment,
    p.phase,
    b.op_count,
    b.borrowed_count,
    b.busy_ns,
    b.compute_ns,
    b.compute_comm_ns,
FROM nsys.iv_busy('placed', 'nsys.segment', 'scale') AS b
CROSS JOIN limits AS l
INNER JOIN phase AS p ON p.number = b.part % l.phases;
