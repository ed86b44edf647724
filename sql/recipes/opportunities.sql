-- opportunities — what could be recovered per iteration, by how much at most, and by what change?
--
-- Ranked by recoverable critical-path time. Only two kinds of time count: launch-starved time in
-- which no producer ran anyway, and blocking time, by class of the operation to blame, collectives
-- by type and copies by direction. Long kernels, volume and exposed time are no opportunity
-- (pitfall 7): a collective or a copy that no compute kernel waited for does not appear at all.
-- Rows of a device are disjoint pieces of its time without compute, so in every single iteration
-- their bounds add up. The medians shown need not: of three causes of which two occur in each
-- iteration, the medians add up to too much. A note has the bound of all rows together, the median
-- of each iteration's sum (pitfall 31). Whether the changes are independent is another question.
--
-- R = recoverable_ms is the time that the trace attributes directly to the cause. With T = step_ms,
-- T - R is the step without exactly that time; throughput is then higher by (T / (T - R) - 1) * 100
-- percent, and an MFU given as mfu (percent or fraction; numerator and precision unchanged, pitfall
-- 29) is mfu * T / (T - R). Ceilings of that one piece of time, not forecasts: what else would move
-- because of a change is not in them, in either direction. A collective that is hidden may delay
-- the next one; and without it a host or a peer may be earlier, too. T and R are medians over the
-- same iterations, each taken by itself: where iterations differ, none need have had both, so look
-- at the ranges beside them.
--
-- Launch-starved time in which the producer of the next kernel ran anyway is no row, and in no
-- ceiling: launching earlier alone cannot recover it. A note tells of it where it is material.
--
-- bound_kind tells which way R may err; `perturbed` is added where the capture is known to have
-- slowed the step (pitfall 25). `inferred` status: less than half of the time rests on known
-- launches and dependencies. Confidence is high with 95 % of the time on known ones, n of 5 or more
-- and a spread within half of the median; medium with half of it and n of 3 or more; else low. It
-- is medium at most where waits are missing from the trace, and for launch-starved time of which
-- half or more lies beside another operation of the device: the host may have waited for that one.
-- An action is what the class of the cause suggests; that it is the cause in the source code, and
-- that it helps, is unverified until a comparable run was measured (pitfalls 30 and 32).
--
-- @grain     one row per device and cause
-- @reads     nsys.opportunity
-- @needs     kernel | graph_exec
-- @param     mfu DOUBLE = NULL (0, 100]  model FLOPS utilisation of the profiled step
-- @column    device BIGINT - physical GPU of the report
-- @column    rank BIGINT - 1 is the most recoverable time of the device
-- @column    opportunity VARCHAR - what costs the time
-- @column    class VARCHAR - class of the operation to blame; `launch` for launch-starved
-- @column    recoverable_ms DOUBLE ms R: time that the trace attributes to it, median
-- @column    min_ms DOUBLE ms least over the iterations
-- @column    max_ms DOUBLE ms greatest
-- @column    n BIGINT - steady iterations; one without it counts 0
-- @column    bound_kind VARCHAR - resolved, or lower, upper or mixed bound; perturbed
-- @column    step_ms DOUBLE ms T: the iteration, median
-- @column    step_min_ms DOUBLE ms least
-- @column    step_max_ms DOUBLE ms greatest
-- @column    new_step_ceiling_ms DOUBLE ms T - R: the step without exactly this time
-- @column    throughput_gain_ceiling_pct DOUBLE pct (T / (T - R) - 1) * 100
-- @column    new_mfu_ceiling DOUBLE - mfu * T / (T - R), NULL without mfu
-- @column    is_above_full_mfu BOOLEAN - that is more than 100 %, NULL without mfu
-- @column    confidence VARCHAR - high, medium or low
-- @column    is_material BOOLEAN - R is 1 % of the iteration or more
-- @column    status VARCHAR - measured or inferred
-- @column    evidence VARCHAR - what R rests on, with shares
-- @column    action VARCHAR - what to look at or change
-- @column    verification VARCHAR - what a new capture must show
-- @invariant ceiling_is_difference abs(new_step_ceiling_ms - (step_ms - recoverable_ms)) < 1e-6
-- @invariant bound_within_step recoverable_ms BETWEEN 0 AND step_ms
-- @invariant spread_around_median recoverable_ms BETWEEN min_ms AND max_ms
-- @pitfall   7, 8, 11, 25, 29, 30, 31, 32
WITH params AS (
    SELECT getvariable('mfu')::DOUBLE AS mfu
),
advised AS (
    SELECT
        *,
        CASE
            -- pitfall 11: a host that waits for the device is late for that reason
            WHEN cause = 'launch' AND beside_pct >= 50
                THEN format('See first whether the host waits for the device (recipe host-stalls:'
                    || ' synchronising calls, synchronous copies): copies, communication or'
                    || ' spinning kernels ran in {:.0f} % of this time. If so, wait later or not'
                    || ' at all, or make that operation shorter; else find what holds the host',
                    beside_pct)
            WHEN cause = 'launch' AND long_pct >= 50
                THEN 'Find what holds the host: data loading, garbage collection (train.manual_gc),'
                    || ' Python work between launches, CPU affinity (recipe host-stalls); CUDA'
                    || ' graphs do not shorten a pause between steps'
            WHEN cause = 'launch'
                THEN 'CUDA graphs (model.cuda_graph_impl); larger micro_batch_size; fewer, fused'
                    || ' kernels; CPU affinity, garbage collection, Python work between launches'
            WHEN class IN ('transport', 'dispatch') OR detail IN ('dispatch', 'combine')
                THEN 'MoE communication overlap (comm_overlap.overlap_moe_expert_parallel_comm);'
                    || ' choice of dispatcher (model.moe_token_dispatcher_type,'
                    || ' moe_flex_dispatcher_backend: DeepEP or HybridEP); balance of the experts'
            WHEN detail = 'AllToAll'
                THEN 'MoE: overlap of expert communication and choice of dispatcher'
                    || ' (overlap_moe_expert_parallel_comm, moe_token_dispatcher_type); long'
                    || ' context: hierarchical context parallel (cp_comm_type a2a+p2p)'
            WHEN detail = 'SendRecv'
                THEN 'Pipeline: overlap of point-to-point transfers (overlap_p2p_comm with virtual'
                    || ' stages), balance of the stages; long context: hierarchical context'
                    || ' parallel (cp_comm_type a2a+p2p, hierarchical_context_parallel_sizes)'
            WHEN role = 'comm'
                THEN 'TP and DP communication overlap (comm_overlap.tp_comm_overlap,'
                    || ' ddp.overlap_grad_reduce, ddp.overlap_param_gather); first tell transfer'
                    || ' from waiting for a late rank, which no overlap removes'
            WHEN role = 'memcpy' AND detail IN ('HtoD', 'DtoH', 'unified HtoD', 'unified DtoH')
                THEN 'CPU offloading: prefetch earlier, offload less (cpu_offloading_num_layers,'
                    || ' optimizer_offload_fraction), pinned memory, a stream of its own (recipe'
                    || ' copies); if memory forces it, memory tuning instead'
            WHEN role = 'memcpy'
                THEN 'See what is copied and why compute waits for it (recipes copies, blockers);'
                    || ' layout changes between operations; memory tuning'
            WHEN role = 'memset' THEN 'See which buffers are cleared on the critical path'
            WHEN role = 'wait' THEN 'Find what the spinning kernel waits for: a flag of a peer or'
                || ' of the host'
            ELSE 'Compute waits for compute of another device: balance of the work between them'
        END AS action,
        CASE
            WHEN cause = 'launch'
                THEN 'capture again with the change only: launch_starved of recipe budget falls,'
                    || ' and the iteration with it'
            WHEN role = 'comm'
                THEN 'capture all ranks of the group and match the collective: jitter or transfer;'
                    || ' with the change, comm_blocking falls and the iteration with it'
            ELSE 'capture again with the change only: blocking of recipe budget falls, and the'
                || ' iteration with it'
        END AS verification,
    FROM nsys.opportunity
)
SELECT
    o.device,
    o.rank,
    o.opportunity,
    o.class,
    o.median_ns / 1e6 AS recoverable_ms,
    o.min_ns / 1e6 AS min_ms,
    o.max_ns / 1e6 AS max_ms,
    o.n,
    o.bound_kind,
    o.step_ns / 1e6 AS step_ms,
    o.step_min_ns / 1e6 AS step_min_ms,
    o.step_max_ns / 1e6 AS step_max_ms,
    (o.step_ns - o.median_ns) / 1e6 AS new_step_ceiling_ms,
    -- a step that is all bound has no ceiling
    (o.step_ns / nullif(o.step_ns - o.median_ns, 0) - 1) * 100 AS throughput_gain_ceiling_pct,
    p.mfu * o.step_ns / nullif(o.step_ns - o.median_ns, 0) AS new_mfu_ceiling,
    -- up to 1 it is a fraction
    new_mfu_ceiling > CASE WHEN p.mfu <= 1 THEN 1 ELSE 100 END AS is_above_full_mfu,
    o.confidence,
    o.is_material,
    CASE WHEN o.certain_pct >= 50 THEN 'measured' ELSE 'inferred' END AS status,
    format(
        '{:.1f} % of the iteration, {:.1f} % of its time without compute; in {} of {} iterations; '
        || '{:.0f} % of it with known launch and dependencies{}{}; {} gaps, longest {:.3f} ms{}{}',
        100 * o.median_ns / o.step_ns,
        coalesce(100 * o.median_ns / nullif(o.absent_ns, 0), 0),
        o.n_present,
        o.n,
        floor(o.certain_pct),
        CASE
            WHEN o.inferred_pct > 0 THEN format(', {:.0f} % inferred', o.inferred_pct) ELSE ''
        END,
        CASE
            WHEN o.unseen_waits > 0
                THEN format(', as far as waits are in the trace ({} are not)', o.unseen_waits)
            ELSE ''
        END,
        o.gaps,
        o.longest_ns / 1e6,
        CASE
            WHEN o.cause = 'launch' THEN format(', {:.0f} % of it in pauses', o.long_pct) ELSE ''
        END,
        CASE
            WHEN o.beside_pct >= 1
                THEN format(', {:.0f} % of it while copies, communication or spinning kernels ran',
                    o.beside_pct)
            ELSE ''
        END
    ) AS evidence,
    o.action,
    o.verification,
FROM advised AS o
CROSS JOIN params AS p
ORDER BY o.device, o.rank;
