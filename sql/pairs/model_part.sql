-- model_part — do both sides of a pair run the same part of the same model?
--
-- The products of matrices tell a model part: GEMMs and attention kernels (a GEMM with
-- communication inside counts as a GEMM). Names may change freely, since libraries, GPUs and
-- precisions rename and re-tune kernels. Counts may not, when work goes along: twice the GEMMs of
-- the same size is another part of a model (more layers, more microbatches), twice the GEMMs of
-- half the size is the same part cut in other pieces. So a class differs where its count per
-- iteration differs by more than 2 % (and more than one, or by half as many again: 1 against 2),
-- and its work differs in the same direction by more than half of that, as logarithms. A side
-- without any GEMM is another part; attention that exists on one side only is another way to
-- compute it. Everything else (norms, elementwise, optimizer) may be fused, split or added: it is
-- described, not refused.
--
-- More layers repeat all products alike. Where instead the same kernels run on both sides (at most
-- 5 % of the work is of one side only), and those that run equally often hold at least half of the
-- base's work, a part of the same model is done again or no more: activations are recomputed. That
-- differs, and is not refused.
--
-- A class is a matter of names too: kernels that are renamed may lose theirs, and attention may be
-- products of matrices on one side and kernels of its own on the other. So work that a family lacks
-- on a side may have moved: to the other family, or to kernels of no known class that only this
-- side has. Where what is more there (less what is more of the same on the other side) makes up
-- for at least half of what is missing, it is the same part, seen differently. That differs, and is
-- not refused either. More layers are more of everything, so nothing makes up for them. A kernel
-- of attention may be far faster than the products that it stands for, two of each forward pass and
-- five of each backward pass: where only one side has such kernels, up to four GEMMs for each of
-- them may be missing there.
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
unknown AS (
    SELECT
        pair,
        coalesce(sum(base_work_ns) FILTER (WHERE new_count = 0), 0)
            - coalesce(sum(new_work_ns) FILTER (WHERE base_count = 0), 0) AS base_excess,
    FROM pair.content_pair
    WHERE kind = 'kernel' AND class = 'other'
    GROUP BY pair
),
-- what a side has more of elsewhere; of the two families the other one
elsewhere AS (
    SELECT
        f.pair,
        f.family,
        coalesce(o.base_work - o.new_work, 0) AS family_excess,
        coalesce(u.base_excess, 0) AS unknown_excess,
        coalesce(f.family = 'GEMM' AND (
            (o.n = 0 AND f.n - f.b BETWEEN 0 AND 4 * o.b)
            OR (o.b = 0 AND f.b - f.n BETWEEN 0 AND 4 * o.n)
        ), false) AS is_attention,
    FROM family AS f
    LEFT JOIN family AS o ON o.pair = f.pair AND o.family <> f.family
    LEFT JOIN unknown AS u ON u.pair = f.pair
),
compared AS (
    SELECT
        f.*,
        coalesce(r.is_repeated, false) AS is_repeated,
        -- as seen from the side that lacks something
        sign(f.new_work - f.base_work) AS more,
        greatest(e.family_excess * more, 0) + greatest(e.unknown_excess * more, 0)
            >= 0.5 * abs(f.new_work - f.base_work)
            OR e.is_attention AS is_made_up,
        abs(n - b) > greatest(1, 0.02 * greatest(b, n))
            OR (abs(n - b) >= 1 AND greatest(b, n) >= 1.5 * least(b, n)) AS is_other_count,
        CASE
            WHEN least(b, n, base_work, new_work) > 0
                THEN ln(new_work / base_work) / nullif(ln(n / b), 0)
        END AS follows,
    FROM family AS f
    LEFT JOIN repeated AS r ON r.pair = f.pair AND r.family = f.family
    INNER JOIN elsewhere AS e ON e.pair = f.pair AND e.family = f.family
),
asked AS (
    SELECT
        *,
        is_other_count AND (least(b, n) = 0 OR follows > 0.5) AS is_other,
        -- attention on one side only is another way to compute it, whatever makes up for it
        is_made_up OR (family = 'attention' AND least(b, n) = 0) AS is_moved,
        format('{:g} {}s per iteration against {:g}', b,
            replace(family, 'attention', 'attention kernel'), n) AS counts,
    FROM compared
),
told AS (
    SELECT
        pair,
        string_agg(
            counts || CASE
                WHEN least(b, n) > 0
                    THEN format(', and their work goes along ({:.2f} times)', new_work / base_work)
                ELSE ''
            END,
            '; ' ORDER BY family DESC
        ) FILTER (WHERE is_other AND NOT is_repeated AND NOT is_moved) AS refusal,
        string_agg(counts, ', ' ORDER BY family DESC)
            FILTER (WHERE is_other AND NOT is_repeated AND is_moved) AS moved,
        coalesce(bool_or(is_other AND is_repeated), false) AS is_repeated,
        string_agg(
            counts || CASE
                WHEN b = n THEN ''
                WHEN NOT is_other_count THEN ', too small a difference to tell another part'
                ELSE ', and their work does not go along'
                    || coalesce(format(' ({:.2f} times)', new_work / nullif(base_work, 0)), '')
                    || ': the same in other pieces, or with small ones added'
            END,
            '; ' ORDER BY family
        ) FILTER (WHERE greatest(b, n) > 0) AS compared,
        max(b) > 0 AND max(n) > 0 AS has_signature,
    FROM asked
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
    t.moved,
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
    coalesce(
        t.compared,
        format('no GEMMs and no attention kernels on either side, {:g} compute kernels per '
            || 'iteration against {:g}', k.base_count, k.new_count)
    ) AS compared,
FROM kernels AS k
LEFT JOIN told AS t ON t.pair = k.pair;
