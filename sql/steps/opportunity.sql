-- opportunity — how much could each cause give back per iteration, and how sure is that?
--
-- T, the step, and R, what is recoverable, are medians over the same windows, each taken by itself;
-- a window without the cause counts 0. R of no window exceeds its T, so the medians do not either.
-- The rest says what R rests on. A bound of blocking time is low where dependencies of the device
-- are unknown: more may block. Calls that made a stream wait and left no wait in the trace are
-- such. A bound of launch-starved time is high where they are unknown (something else may have been
-- running that had to end first) or where other operations ran in a twentieth of it or more (one of
-- them may have had to end first), and low where launches are unknown.
--
-- Confidence is `high` where at least 95 % of the time rests on known launches and dependencies,
-- n is 5 or more and (max - min) is at most half of the median; `medium` where at least half of
-- the time does and n is 3 or more; else `low`. It is medium at most where waits are missing, where
-- another operation ran in half of launch-starved time or more (the host may have waited for that
-- one), and where the capture slowed the step materially: the bound is then `perturbed`, one of the
-- profiled step.
--
-- @grain  one row per device and cause
-- @reads  nsys.opportunity_window, nsys.opportunity_evidence, nsys.budget_window, nsys.gap_cut,
--         nsys.step_slowdown, nsys.unseen_wait
-- @column device         BIGINT  -  physical GPU
-- @column rank           BIGINT  -  1 is the most recoverable time
-- @column opportunity    VARCHAR -  the cause in words
-- @column cause          VARCHAR -  launch or blocking
-- @column class          VARCHAR -  class of the operation to blame, `launch` for launch-starved
-- @column role           VARCHAR -  its role, NULL for launch-starved
-- @column detail         VARCHAR -  type of the collective, direction of the copy; NULL neither
-- @column median_ns      DOUBLE  ns recoverable in an iteration, median
-- @column min_ns         BIGINT  ns least
-- @column max_ns         BIGINT  ns greatest
-- @column n              BIGINT  -  steady iterations
-- @column n_present      BIGINT  -  of them those in which it occurs
-- @column step_ns        DOUBLE  ns iteration, median
-- @column absent_ns      DOUBLE  ns time without compute, median
-- @column gaps           BIGINT  -  gaps with such time
-- @column certain_pct    DOUBLE  pct of the time that rests on known launches and dependencies
-- @column inferred_pct   DOUBLE  pct of the time that rests on inferred pairs
-- @column long_pct       DOUBLE  pct of the time in gaps of stall_ms or more
-- @column longest_ns     BIGINT  ns most in one gap
-- @column beside_pct     DOUBLE  pct of launch-starved time with another operation on the device,
--         median by median
-- @column bound_kind     VARCHAR -  resolved, or lower, upper or mixed bound; perturbed
-- @column confidence     VARCHAR -  high, medium or low
-- @column is_material    BOOLEAN -  1 % of the iteration or more, median
-- @column step_min_ns    BIGINT  ns least iteration
-- @column step_max_ns    BIGINT  ns greatest iteration
-- @column unseen_waits   BIGINT  -  calls that made a stream wait and left no wait in the trace
-- @pitfall 1, 7, 8, 31
WITH step AS (
    SELECT
        device,
        count(*) AS n,
        median(iteration_ns) AS step_ns,
        min(iteration_ns) AS step_min_ns,
        max(iteration_ns) AS step_max_ns,
        median(compute_absent_ns) AS absent_ns,
        min(start_ns) AS start_ns,
        max(end_ns) AS end_ns,
    FROM nsys.budget_window
    GROUP BY device
),
blind AS (
    SELECT
        s.device,
        bool_or(c.evidence IN ('unresolved', 'inferred')) AS has_unknown_waits,
        bool_or(c.evidence = 'no_launch') AS has_unknown_launches,
        bool_or(c.evidence = 'graph') AS has_graph_gaps,
    FROM nsys.gap_cut AS c
    INNER JOIN step AS s
        ON s.device = c.device AND c.start_ns < s.end_ns AND c.end_ns > s.start_ns
    GROUP BY s.device
),
summed AS (
    SELECT
        device,
        cause,
        class,
        role,
        detail,
        list(recoverable_ns) AS recoverable,
        list(beside_ns) AS beside,
        count(*) FILTER (WHERE recoverable_ns > 0) AS n_present,
        sum(recoverable_ns) AS total_ns,
    FROM nsys.opportunity_window
    GROUP BY device, cause, class, role, detail
    HAVING sum(recoverable_ns) > 0
),
measured AS (
    SELECT
        r.device,
        CASE
            WHEN r.cause = 'launch' THEN 'launch-starved'
            WHEN r.role = 'memcpy' THEN 'blocking copy ' || r.detail
            ELSE concat_ws(' ', 'blocking', r.class, r.detail)
        END AS opportunity,
        r.cause,
        r.class,
        r.role,
        r.detail,
        nsys.padded_median(r.recoverable, s.n)::DOUBLE AS median_ns,
        nsys.padded_min(r.recoverable, s.n)::BIGINT AS min_ns,
        nsys.padded_max(r.recoverable, s.n)::BIGINT AS max_ns,
        s.n,
        r.n_present,
        r.total_ns,
        s.step_ns::DOUBLE AS step_ns,
        s.step_min_ns,
        s.step_max_ns,
        s.absent_ns::DOUBLE AS absent_ns,
        -- a gap that reaches into the first window has no evidence of its own in it
        coalesce(e.gaps, 0) AS gaps,
        coalesce(100 * e.certain_ns / e.total_ns, 0)::DOUBLE AS certain_pct,
        coalesce(100 * e.inferred_ns / e.total_ns, 0)::DOUBLE AS inferred_pct,
        coalesce(100 * e.long_ns / e.total_ns, 0)::DOUBLE AS long_pct,
        coalesce(e.longest_ns, 0) AS longest_ns,
        coalesce(
            100 * nsys.padded_median(r.beside, s.n)
            / nullif(nsys.padded_median(r.recoverable, s.n), 0),
            0
        )::DOUBLE AS beside_pct,
        coalesce(u.unseen, 0) AS unseen_waits,
        coalesce(b.has_unknown_waits, false) OR unseen_waits > 0 AS has_unknown_waits,
        coalesce(b.has_unknown_launches, false) AS has_unknown_launches,
        coalesce(b.has_graph_gaps, false) AS has_graph_gaps,
        -- one reference step has no spread to compare with: a slowdown then counts as material
        coalesce(p.is_material, p.slowdown_ns > 0, false) AS is_perturbed,
    FROM summed AS r
    INNER JOIN step AS s ON s.device = r.device
    LEFT JOIN blind AS b ON b.device = r.device
    LEFT JOIN nsys.unseen_wait AS u ON u.device = r.device
    LEFT JOIN nsys.step_slowdown AS p ON p.device = r.device
    LEFT JOIN nsys.opportunity_evidence AS e
        ON e.device = r.device
        AND e.cause = r.cause
        AND e.class = r.class
        AND e.detail IS NOT DISTINCT FROM r.detail
)
SELECT
    device,
    row_number() OVER (
        PARTITION BY device ORDER BY median_ns DESC, total_ns DESC, opportunity
    ) AS rank,
    opportunity,
    cause,
    class,
    role,
    detail,
    median_ns,
    min_ns,
    max_ns,
    n,
    n_present,
    step_ns,
    absent_ns,
    gaps,
    certain_pct,
    inferred_pct,
    long_pct,
    longest_ns,
    beside_pct,
    CASE
        -- without a launch, what the host was late with counts as blocking
        WHEN cause = 'blocking' AND has_unknown_launches THEN 'mixed bound'
        WHEN cause = 'blocking' AND (has_unknown_waits OR has_graph_gaps) THEN 'lower bound'
        WHEN cause = 'blocking' THEN 'resolved'
        WHEN (has_unknown_waits OR beside_pct >= 5) AND (has_unknown_launches OR has_graph_gaps)
            THEN 'mixed bound'
        WHEN has_unknown_waits OR beside_pct >= 5 THEN 'upper bound'
        WHEN has_unknown_launches OR has_graph_gaps THEN 'lower bound'
        ELSE 'resolved'
    END || CASE WHEN is_perturbed THEN ', perturbed' ELSE '' END AS bound_kind,
    CASE
        WHEN NOT is_perturbed AND unseen_waits = 0 AND beside_pct < 50 AND certain_pct >= 95
            AND n >= 5 AND max_ns - min_ns <= 0.5 * median_ns THEN 'high'
        WHEN certain_pct >= 50 AND n >= 3 THEN 'medium'
        ELSE 'low'
    END AS confidence,
    median_ns >= 0.01 * step_ns AS is_material,
    step_min_ns,
    step_max_ns,
    unseen_waits,
FROM measured;
