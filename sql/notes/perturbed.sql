-- perturbed — did the profiler slow the step so much that absolute times do not hold without it?
--
-- A slowdown that the range of the unprofiled steps hides, but not their middle half, is told too:
-- many steps of warmup or under the profiler would hide it. Where the profiled step is the shorter
-- one by far, the window is not what the trainer timed.
--
-- @reads   nsys.step_slowdown
-- @pitfall 25
WITH told AS (
    SELECT
        *,
        format(
            'device {}: the profiled step of {} (n = {}) is {:.1f} % {} than the unprofiled '
            || 'step of {} (n = {})',
            device,
            nsys.duration_text(profiled_median_ns),
            profiled_n,
            abs(100 * slowdown_ns / unprofiled_median_ns),
            CASE WHEN slowdown_ns > 0 THEN 'slower' ELSE 'shorter' END,
            nsys.duration_text(unprofiled_median_ns),
            unprofiled_n
        ) AS comparison,
    FROM nsys.step_slowdown
    WHERE slowdown_ns > 0 OR is_other_step
)
SELECT
    CASE
        WHEN is_other_step
            THEN comparison || ', more than steps differ anyway: the window is probably not the '
                || 'step that the trainer timed, or the work is another, so slowdown and gain '
                || 'ceilings say nothing about that step'
        WHEN is_material
            THEN 'perturbed: ' || comparison || ', beyond their natural spread of '
                || nsys.duration_text(natural_spread_ns)
                || ': absolute times and gain ceilings are those of the profiled run'
        WHEN is_material IS NULL
            THEN comparison || ': one step shows no natural spread, so take absolute times and '
                || 'gain ceilings as perturbed'
        ELSE comparison || ', within their range but beyond that of their middle half: if warmup '
            || 'or profiled steps are among them, choose with reference_from and reference_to'
    END AS note,
FROM told
WHERE is_other_step OR is_material OR is_material IS NULL OR slowdown_ns > middle_spread_ns
ORDER BY device;
