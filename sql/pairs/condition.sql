-- condition — what do the two sides of each pair have in common, and what not?
--
-- Statuses: `same`; `differs`, which labels the deltas; `refused`, which forbids them; `unknown`,
-- where at least one side does not tell. Nothing that is unknown counts as the same. The detail
-- says what a difference means; what is the same has none, unless it says what was looked at.
--
-- @grain  one row per pair (NULL: the whole comparison), topic and aspect
-- @reads  pair.scope, pair.asked, pair.trace, pair.member, pair.model_part, pair.content_pair,
--         pair.gemm_precision, pair.geometry, pair.launch_change, pair.message, pair.setting,
--         pair.evidence, pair.window
-- @pitfall 3, 4, 8, 21, 25, 27
WITH both_asked AS (
    SELECT
        b.pair,
        b.anchor AS base_anchor,
        n.anchor AS new_anchor,
        -- who names an anchor of one kind for each side says that they mean the same
        (SELECT bool_and(value <> 'auto') FROM pair.asked WHERE name = 'anchor')
            AND split_part(b.anchor, ':', 1) = split_part(n.anchor, ':', 1) AS is_meant,
    FROM pair.trace AS b
    INNER JOIN pair.trace AS n ON n.pair = b.pair AND n.side = 'new'
    WHERE b.side = 'base'
),
option_pair AS (
    SELECT b.name, b.value AS base, n.value AS new
    FROM pair.asked AS b
    INNER JOIN pair.asked AS n ON n.name = b.name AND n.side = 'new'
    WHERE b.side = 'base'
),
setting_pair AS (
    SELECT
        pair,
        name,
        max(value) FILTER (WHERE side = 'base') AS base,
        max(value) FILTER (WHERE side = 'new') AS new,
    FROM pair.setting
    GROUP BY pair, name
),
setting_compared AS (
    SELECT
        *,
        -- a question mark stands for what a report does not know, and so for anything
        name = 'GPU' AND (
            regexp_full_match(new, replace(regexp_escape(base), '\?', '[^;]*'))
            OR regexp_full_match(base, replace(regexp_escape(new), '\?', '[^;]*'))
        ) AS is_open,
    FROM setting_pair
),
evidence_share AS (
    SELECT
        pair,
        side,
        string_agg(evidence || format(' {:.0f}%', 100.0 * n / total), ', ' ORDER BY evidence)
            AS told,
        sum(n) FILTER (WHERE evidence IN ('no_launch', 'unresolved', 'inferred', 'graph'))
            / any_value(total) AS weak,
    FROM (
        SELECT
            pair,
            side,
            evidence,
            sum(gap_count) AS n,
            sum(sum(gap_count)) OVER (PARTITION BY pair, side) AS total,
        FROM pair.evidence
        GROUP BY pair, side, evidence
    ) AS counted
    GROUP BY pair, side
),
geometry_told AS (
    SELECT pair, bool_or(side = 'base') AS by_base, bool_or(side = 'new') AS by_new
    FROM pair.geometry
    GROUP BY pair
),
geometry AS (
    SELECT
        c.*,
        coalesce(t.by_base, false) AS by_base,
        coalesce(t.by_new, false) AS by_new,
        CASE
            WHEN c.told = 0 THEN 'unknown'
            WHEN c.changed_share >= 0.01 THEN 'differs'
            WHEN c.told_share < 0.5 THEN 'unknown'
            ELSE 'same'
        END AS status,
        printf('%d of %d names on both sides, with %.1f%% of the compute work, have ', c.resized,
            c.told, 100 * c.resized_share)
            || printf('%.3g times the threads in a launch', c.factor)
            || CASE WHEN c.resized > 1 THEN ' (median by work)' ELSE '' END
            || CASE
                WHEN c.is_other_work
                    THEN ', kernels of several classes alike: a changed batch size, sequence '
                        || 'length or parallel split does this, and then it is other work'
                ELSE ': a changed batch size, sequence length or parallel split does this, and '
                    || 'so do kernels tuned anew under their names'
                    || CASE WHEN c.is_other_gpu THEN ', and another GPU' ELSE '' END
            END AS resized_text,
        printf('%d of %d names on both sides, with %.1f%% of the compute work, have other numbers '
            || 'of threads in a launch, and more or fewer launches that make up for it: the same '
            || 'in other pieces', c.cut, c.told, 100 * c.cut_share) AS cut_text,
        printf('%d of %d names on both sides, with %.1f%% of the compute work, have as many '
            || 'threads in other blocks: tuned anew', c.retuned, c.told, 100 * c.retuned_share)
            AS retuned_text,
        printf('%d of %d names on both sides, with %.1f%% of the compute work, have other grids, '
            || 'by as much as the number of multiprocessors differs', c.filled, c.told,
            100 * c.filled_share) AS filled_text,
        printf('%d names on both sides, with %.1f%% of the compute work, have the same grids and '
            || 'blocks', c.told, 100 * c.told_share)
            || CASE
                WHEN c.changed_share > 0 THEN printf(', but for %.2g%%', 100 * c.changed_share)
                ELSE ''
            END AS same_text,
    FROM pair.launch_change AS c
    LEFT JOIN geometry_told AS t ON t.pair = c.pair
),
found AS (
    SELECT
        NULL::BIGINT AS pair,
        10 AS position,
        'topology' AS topic,
        'devices or ranks' AS aspect,
        base_count::VARCHAR AS base,
        new_count::VARCHAR AS new,
        CASE WHEN base_count = new_count THEN 'same' ELSE 'refused' END AS status,
        CASE
            WHEN base_count <> new_count
                THEN 'the work of an iteration is spread differently: nothing has a counterpart'
        END AS detail,
    FROM pair.scope
    UNION ALL
    SELECT NULL, 11, 'topology', 'ranks', base_ranks, new_ranks,
        CASE WHEN base_ranks = new_ranks THEN 'same' ELSE 'refused' END,
        CASE
            WHEN base_ranks <> new_ranks THEN 'other ranks of the run: ranks have different work'
        END
    FROM pair.scope
    WHERE base_ranks IS NOT NULL AND new_ranks IS NOT NULL
    UNION ALL
    SELECT NULL, 12, 'topology', 'world size', base_world::VARCHAR, new_world::VARCHAR,
        CASE WHEN base_world = new_world THEN 'same' ELSE 'refused' END,
        CASE WHEN base_world <> new_world THEN 'another number of ranks in the run' END
    FROM pair.scope
    WHERE base_world IS NOT NULL AND new_world IS NOT NULL
    UNION ALL
    SELECT pair, 20, 'iteration', 'anchor', base_anchor, new_anchor,
        CASE
            WHEN base_anchor = new_anchor THEN 'same'
            WHEN is_meant THEN 'differs'
            ELSE 'refused'
        END,
        CASE
            WHEN base_anchor = new_anchor THEN NULL
            WHEN is_meant THEN 'one for each side was asked for: taken to mean the same'
            ELSE 'an iteration does not mean the same on both sides'
        END
    FROM both_asked
    UNION ALL
    SELECT NULL, 21, 'iteration', name, base, new,
        CASE
            WHEN base IS NOT DISTINCT FROM new THEN 'same'
            WHEN name = 'per iteration' AND is_meant THEN 'differs'
            WHEN name IN ('per iteration', 'window') THEN 'refused'
            ELSE 'differs'
        END,
        CASE
            WHEN base IS NOT DISTINCT FROM new THEN NULL
            WHEN name = 'per iteration' AND is_meant
                THEN 'with an anchor of its own for each side: taken to mean the same'
            WHEN name IN ('per iteration', 'window')
                THEN 'an iteration does not mean the same on both sides'
            ELSE 'other iterations of the run'
        END
    FROM option_pair
    CROSS JOIN (SELECT bool_and(is_meant AND base_anchor <> new_anchor) AS is_meant FROM both_asked)
    WHERE name <> 'anchor'
    UNION ALL
    SELECT pair, 30, 'model', 'model part', NULL, NULL,
        CASE
            WHEN refusal IS NOT NULL THEN 'refused'
            WHEN has_whole_graph THEN 'unknown'
            WHEN moved IS NOT NULL OR is_repeated THEN 'differs'
            ELSE 'same'
        END,
        coalesce(
            refusal,
            CASE
                WHEN has_whole_graph
                    THEN 'the inside of CUDA graphs that were traced as a whole cannot be told'
                WHEN moved IS NOT NULL
                    THEN moved || ': computed in another way, or by kernels whose names tell no '
                        || 'class; taken for the same part'
                WHEN is_repeated
                    THEN 'some GEMMs or attention kernels run more often on one side, most of the '
                        || 'work does not: recomputed activations, or the like'
                ELSE compared || '; names may have changed'
            END
        )
    FROM pair.model_part
    UNION ALL
    SELECT pair, 31, 'model', 'compute kernels by name',
        (common + only_base)::VARCHAR || ' names', (common + only_new)::VARCHAR || ' names',
        CASE WHEN only_base + only_new = 0 THEN 'same' ELSE 'differs' END,
        format('{} names on both sides; they hold {} of the base''s compute work, {} of the new '
            || 'side''s', common, coalesce(printf('%.1f%%', 100 * base_share), 'nothing'),
            coalesce(printf('%.1f%%', 100 * new_share), 'nothing'))
    FROM pair.model_part
    UNION ALL
    SELECT
        pair,
        CASE kind WHEN 'class' THEN 32 WHEN 'collective' THEN 40 WHEN 'launch' THEN 42 ELSE 44 END,
        CASE kind WHEN 'class' THEN 'model' WHEN 'collective' THEN 'communication'
            WHEN 'launch' THEN 'launches' ELSE 'copies' END,
        CASE kind WHEN 'class' THEN key || ' kernels' WHEN 'collective' THEN key
            WHEN 'launch' THEN key ELSE key || ' copies' END || ' per iteration',
        printf('%g', base_count),
        printf('%g', new_count),
        CASE WHEN base_count = new_count THEN 'same' ELSE 'differs' END,
        'median over the steady windows'
    FROM pair.content_pair
    WHERE kind <> 'kernel' AND greatest(base_count, new_count) > 0
    UNION ALL
    SELECT pair, 45, 'copies', key || ' bytes per iteration', base_bytes::VARCHAR,
        new_bytes::VARCHAR, CASE WHEN base_bytes = new_bytes THEN 'same' ELSE 'differs' END,
        'median over the steady windows'
    FROM pair.content_pair
    WHERE kind = 'copy' AND greatest(base_bytes, new_bytes) > 0
    UNION ALL
    SELECT pair, 41, 'communication', key || ' bytes per operation', base_bytes::VARCHAR,
        new_bytes::VARCHAR,
        CASE
            WHEN base_bytes IS NULL OR new_bytes IS NULL THEN 'unknown'
            WHEN greatest(base_bytes, new_bytes) > 1.02 * least(base_bytes, new_bytes)
                THEN 'differs'
            ELSE 'same'
        END,
        CASE
            WHEN base_bytes IS NULL OR new_bytes IS NULL THEN 'one of the reports does not tell'
            ELSE 'mean of the messages whose size NVTX payloads of NCCL tell'
        END
    FROM pair.message
    WHERE coalesce(base_bytes, new_bytes) IS NOT NULL
    UNION ALL
    SELECT DISTINCT pair, 55, 'communication', 'bytes of collectives', NULL, NULL, 'unknown',
        'neither report tells'
    FROM pair.message
    WHERE coalesce(base_bytes, new_bytes) IS NULL
    UNION ALL
    SELECT
        pair,
        33,
        CASE WHEN is_other_work THEN 'workload' ELSE 'launches' END,
        'launch geometry',
        printf('%.4g million threads per iteration', base_threads / 1e6),
        printf('%.4g million threads per iteration', new_threads / 1e6),
        status,
        CASE
            WHEN NOT by_base AND NOT by_new THEN 'neither report tells'
            WHEN NOT by_base OR NOT by_new THEN 'one of the reports does not tell'
            WHEN told = 0 THEN 'no kernel that tells it has the same name on both sides'
            WHEN status = 'differs'
                THEN concat_ws(
                    '; ',
                    CASE WHEN resized > 0 THEN resized_text END,
                    CASE WHEN cut > 0 THEN cut_text END,
                    CASE WHEN retuned > 0 THEN retuned_text END,
                    CASE WHEN filled > 0 THEN filled_text END
                )
            WHEN status = 'unknown'
                THEN same_text || '; the rest has no counterpart of its name, or tells no launch'
            ELSE same_text
        END
    FROM geometry
    UNION ALL
    SELECT b.pair, 35, 'model', 'precision of GEMMs per iteration', b.formats, n.formats,
        CASE
            WHEN b.formats IS DISTINCT FROM n.formats THEN 'differs'
            WHEN b.formats LIKE 'unknown%' THEN 'unknown'
            ELSE 'same'
        END,
        'input format as far as the names tell it'
    FROM pair.gemm_precision AS b
    INNER JOIN pair.gemm_precision AS n ON n.pair = b.pair AND n.side = 'new'
    WHERE b.side = 'base'
    UNION ALL
    SELECT
        pair,
        CASE
            WHEN name IN ('GPU', 'CPU') THEN 50
            WHEN name IN ('NVIDIA driver', 'CUDA driver', 'operating system') THEN 51
            WHEN name LIKE 'nsys %' THEN 52
            WHEN name = 'CUDA graphs' THEN 46
            ELSE 53
        END,
        CASE
            WHEN name IN ('GPU', 'CPU') THEN 'machine'
            WHEN name IN ('NVIDIA driver', 'CUDA driver', 'operating system') THEN 'software'
            WHEN name LIKE 'nsys %' THEN 'software'
            WHEN name = 'CUDA graphs' THEN 'launches'
            ELSE 'capture'
        END,
        name,
        base,
        new,
        CASE
            WHEN base = new THEN 'same'
            WHEN base IS NULL OR new IS NULL OR is_open THEN 'unknown'
            ELSE 'differs'
        END,
        CASE
            WHEN base IS NULL AND new IS NULL THEN 'neither report tells'
            WHEN base IS NULL OR new IS NULL THEN 'one of the reports does not tell'
            WHEN base <> new AND is_open THEN 'one of the reports does not tell all of it'
            WHEN base = new AND name IN ('recorded', 'CUDA graphs', 'GPU', 'CPU') THEN NULL
            WHEN name = 'recorded' THEN 'a table without rows is usually left out of an export'
            WHEN name = 'CUDA graphs' THEN 'launches and gaps of graphs are seen otherwise'
            WHEN name IN ('GPU', 'CPU') THEN 'another machine'
            ELSE 'as the report tells it'
        END
    FROM setting_compared
    UNION ALL
    SELECT b.pair, 54, 'capture', 'evidence of gaps', b.told, n.told,
        CASE
            WHEN (coalesce(b.weak, 0) > 0.5) <> (coalesce(n.weak, 0) > 0.5) THEN 'differs'
            ELSE 'same'
        END,
        CASE
            WHEN (coalesce(b.weak, 0) > 0.5) <> (coalesce(n.weak, 0) > 0.5)
                THEN 'launches or dependencies are unknown on one side only: the differences of '
                    || 'launch_starved and blocking are those of the captures'
            ELSE 'shares of all gaps; both sides are explained about equally well'
        END
    FROM evidence_share AS b
    INNER JOIN evidence_share AS n ON n.pair = b.pair AND n.side = 'new'
    WHERE b.side = 'base'
)
SELECT pair, position, topic, aspect, base, new, status, detail FROM found;
