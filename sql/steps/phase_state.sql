-- phase_state — which phase was a process in, as far as only one was open?
--
-- The launching thread need not be the one with the range: autograd launches the backward pass
-- from a thread of its own while the program's thread waits inside `backward`. So the threads of
-- a process are laid over each other, start/end ranges among them, and a time at which exactly
-- one of the passes is open somewhere belongs to it. Data loading and the like run beside the
-- passes and decide nothing.
--
-- One sweep with a packed counter, 15 bits for each of the four phases.
--
-- @grain  one row per stretch of a process with exactly one such phase
-- @reads  nsys.range_state, nsys.range_instance, nsys.range_phase
-- @column process  BIGINT  -  process
-- @column start_ns BIGINT  ns begin
-- @column end_ns   BIGINT  ns end
-- @column phase    VARCHAR -  forward, backward, grad_sync or optimizer
WITH open_phase AS (
    SELECT s.process, s.start_ns, s.end_ns, p.phase
    FROM nsys.range_state AS s
    INNER JOIN nsys.range_phase AS p ON p.path_no = s.path_no
    UNION ALL
    SELECT i.process, i.start_ns, i.end_ns, p.phase
    FROM nsys.range_instance AS i
    INNER JOIN nsys.range_phase AS p ON p.path_no = i.path_no
    WHERE i.range_no < 0 AND i.end_ns > i.start_ns
),
counter AS (
    SELECT
        process,
        start_ns,
        end_ns,
        CASE phase
            WHEN 'forward' THEN 1
            WHEN 'backward' THEN 1 << 15
            WHEN 'grad_sync' THEN 1 << 30
            WHEN 'optimizer' THEN 1::BIGINT << 45
        END AS one,
    FROM open_phase
),
change AS (
    SELECT process, start_ns AS at_ns, one FROM counter WHERE one IS NOT NULL
    UNION ALL
    SELECT process, end_ns, -one FROM counter WHERE one IS NOT NULL
),
swept AS (
    SELECT
        process,
        at_ns AS start_ns,
        lead(at_ns) OVER in_time AS end_ns,
        (sum(one) OVER in_time)::BIGINT AS running,
    FROM change
    WINDOW in_time AS (
        PARTITION BY process ORDER BY at_ns ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    )
)
SELECT
    process,
    start_ns,
    end_ns,
    CASE
        WHEN running BETWEEN 1 AND 32767 THEN 'forward'
        WHEN running & 32767 = 0 AND running >> 15 BETWEEN 1 AND 32767 THEN 'backward'
        WHEN running & 1073741823 = 0 AND running >> 30 BETWEEN 1 AND 32767 THEN 'grad_sync'
        WHEN running & 35184372088831 = 0 AND running >> 45 >= 1 THEN 'optimizer'
    END AS phase,
FROM swept
WHERE end_ns > start_ns AND phase IS NOT NULL;
