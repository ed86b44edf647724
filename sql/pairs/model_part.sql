-- model_part — do both sides of a pair run the same part of the same model?
--
-- The products of matrices tell a model part: GEMMs and attention kernels (a GEMM with
-- communication inside counts as a GEMM). Names may change freely, since libraries, GPUs and
-- precisions rename and re-tune kernels. Counts may not, when work goes along: twice the GEMMs of
-- the same size is another part of a model (more layers, more microbatches), twice the GEMMs of
-- half the size is the same part cut in other pieces. So a class differs where its count per
-- iteration differs by more than 2 % (and more than one), and its work differs in the same
-- direction by more than half of that, as logarithms. A side without any GEMM is another part;
-- attention that exists on one side only is another way to compute it. Everything else (norms,
-- elementwise, optimizer) may be fused, split or added: it is described, not refused.
--
-- More layers repeat all products alike. Where instead the same kernels run on both sides (at most
-- 5 % of the work is of one side only), and those that run equally often hold at least half of the
-- base's work, a part of the same model is done again or no more: activations are recomputed. That
-- differs, and is not refused.
--
-- Without GEMMs and attention on both sides the kernels themselves tell: another part is where less
-- than half of either side's compute work lies in kernels of both, and the number of compute
-- kernels differs too. Of a CUDA graph that was traced as a whole nothing inside can be told.
--
-- @grain  one row per pair
-- @reads  pair.content_pair
-- @pitfall 4, 21
WITH family AS (
    SELECT
        pair,
        CASE WHEN class = 'attention' THEN 'attention' ELSE 'GEMM' END AS family,
        sum(base_count) AS b,
        sum(new_count) AS n,
        sum(base_work_ns) AS base_work,
        sum(new_work_ns) AS new_work,
    FROM pair.content_pair
    WHERE kind = 'class' AND class IN ('gemm', 'fused_gemm_comm', 'attention')
    GROUP BY pair, CASE WHEN class = 'attention' THEN 'attention' ELSE 'GEMM' END
),
repeated AS (
    SELECT
        pair,
        CASE WHEN class = 'attention' THEN 'attention' ELSE 'GEMM' END AS family,
        coalesce(sum(base_work_ns) FILTER (WHERE base_count = new_count), 0)
            >= 0.5 * sum(base_work_ns)
            AND coalesce(sum(base_work_ns + new_work_ns) FILTER (
                WHERE least(base_count, new_count) = 0
            ), 0) <= 0.05 * sum(base_work_ns + new_work_ns) AS is_repeated,
    FROM pair.content_pair
    WHERE kind = 'kernel' AND class IN ('gemm', 'fused_gemm_comm', 'attention')
    GROUP BY pair, CASE WHEN class = 'attention' THEN 'attention' ELSE 'GEMM' END
),
compared AS (
    SELECT
        f.*,
        coalesce(r.is_repeated, false) AS is_repeated,
        abs(n - b) > greatest(1, 0.02 * greatest(b, n)) AS is_other_count,
        CASE
            WHEN least(b, n, base_work, new_work) > 0
                THEN ln(new_work / base_work) / nullif(ln(n / b), 0)
        END AS follows,
    FROM family AS f
    LEFT JOIN repeated AS r ON r.pair = f.pair AND r.family = f.family
),
told AS (
    SELECT
        pair,
        string_agg(
            CASE
                WHEN family = 'GEMM' AND is_other_count AND least(b, n) = 0
                    THEN format('{:g} GEMMs per iteration against {:g}', b, n)
                WHEN is_other_count AND follows > 0.5 AND NOT is_repeated
                    THEN format('{:g} {}s per iteration against {:g}, and their work goes along '
                        || '({:.2f} times)', b, replace(family, 'attention', 'attention kernel'),
                        n, new_work / base_work)
            END,
            '; ' ORDER BY family DESC
        ) AS refusal,
        coalesce(bool_or(is_other_count AND follows > 0.5 AND is_repeated), false) AS is_repeated,
        max(b) > 0 AND max(n) > 0 AS has_signature,
    FROM compared
    GROUP BY pair
),
kernels AS (
    SELECT
        pair,
        bool_or(class = 'graph') AS has_whole_graph,
        sum(base_count) AS base_count,
        sum(new_count) AS new_count,
        count(*) FILTER (WHERE base_count > 0 AND new_count > 0) AS common,
        count(*) FILTER (WHERE base_count > 0 AND new_count = 0) AS only_base,
        count(*) FILTER (WHERE base_count = 0 AND new_count > 0) AS only_new,
        coalesce(sum(base_work_ns) FILTER (WHERE new_count > 0), 0)
            / nullif(sum(base_work_ns), 0) AS base_share,
        coalesce(sum(new_work_ns) FILTER (WHERE base_count > 0), 0)
            / nullif(sum(new_work_ns), 0) AS new_share,
    FROM pair.content_pair
    WHERE kind = 'kernel' AND greatest(base_count, new_count) > 0
    GROUP BY pair
)
SELECT
    k.pair,
    k.common,
    k.only_base,
    k.only_new,
    k.base_share,
    k.new_share,
    k.has_whole_graph,
    coalesce(t.is_repeated, false) AS is_repeated,
    CASE
        WHEN k.has_whole_graph THEN NULL
        WHEN t.refusal IS NOT NULL THEN t.refusal
        WHEN coalesce(t.has_signature, false) THEN NULL
        WHEN least(k.base_share, k.new_share) < 0.5
            AND abs(k.new_count - k.base_count)
                > greatest(1, 0.02 * greatest(k.base_count, k.new_count))
            THEN format('{:g} compute kernels per iteration against {:g}, and only {:.0f}% of the '
                || 'work is in kernels of both', k.base_count, k.new_count,
                100 * least(k.base_share, k.new_share))
    END AS refusal,
FROM kernels AS k
LEFT JOIN told AS t ON t.pair = k.pair;
