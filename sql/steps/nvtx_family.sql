-- nvtx_family — which families of equally named, or numbered, NVTX ranges are there?
--
-- `step 12` and `step 13` are of the family `step *`. The text of every row is only cut to a
-- stem; regular expressions run once per stem (a report can hold millions of ranges whose texts
-- all differ). Valid, closed ranges only: an open range tells no period.
--
-- Libraries push ranges of their own, far more than the program has steps; a family is theirs by
-- the name of its domain or by its text.
--
-- @grain   one row per stem, is_library
-- @reads   nsys.nvtx, nsys.session_end
-- @column  stem         VARCHAR  -   what is left of the text once its number is cut off
-- @column  is_library   BOOLEAN  -   pushed by a library, not by the program
-- @column  pattern      VARCHAR  -   anchor pattern of the family
-- @column  fold         VARCHAR  -   the same with every number replaced, even a lone one
-- @column  range_count  BIGINT   -   closed ranges of the stem
-- @column  range_ns     BIGINT   ns  time inside them, nested ones counted again
-- @column  strength     BIGINT   -   0 named like a step, 1 nearly so, 2 any name, 9 of a library
WITH library_domain AS (
    SELECT DISTINCT
        n.process,
        n.domain_id
    FROM nsys.nvtx AS n
    WHERE
        n.event_type = 75
        AND regexp_matches(
            lower(n.text),
            '^(nccl|cublas|cublaslt|cudnn|cusparse|cusolver|cufft|curand|cutensor|mpi|nvshmem|'
            || 'tensorrt|cccl|cub|thrust|libnvshmem|ucx|nvjpeg|dali|rapids|libcudf|kvikio)\b'
        )
),
stemmed AS (
    SELECT
        nsys.text_stem(n.text) AS stem,
        d.process IS NOT NULL AS is_library,
        min(n.text) AS first_text,
        max(n.text) AS last_text,
        count(*) AS range_count,
        sum(n.end_ns - n.start_ns)::BIGINT AS range_ns
    FROM nsys.nvtx AS n
    CROSS JOIN nsys.session_end AS s
    LEFT JOIN library_domain AS d ON n.process = d.process AND n.domain_id = d.domain_id
    WHERE
        n.event_type IN (59, 60, 70, 71)
        AND n.text IS NOT NULL
        AND n.end_ns >= n.start_ns
        AND NOT nsys.is_unclosed(n.end_ns, s.session_end_ns)
    GROUP BY stem, is_library
),
folded AS (
    SELECT
        t.*,
        nsys.text_fold(t.stem) AS fold
    FROM stemmed AS t
),
named AS (
    -- A name that merely has a digit in it (`conv2d`) stays as it is.
    SELECT
        f.*,
        CASE
            WHEN min(f.first_text) OVER fold_group = max(f.last_text) OVER fold_group
                THEN f.first_text
            ELSE f.fold
        END AS pattern,
        lower(f.fold) AS word
    FROM folded AS f
    WINDOW fold_group AS (PARTITION BY f.fold)
)
SELECT
    n.stem,
    n.is_library,
    n.pattern,
    n.fold,
    n.range_count,
    n.range_ns,
    CASE
        WHEN
            n.is_library
            OR regexp_matches(
                n.word,
                '^(aten|autograd|c10d|prims|torch|torchvision)::|^c\*d::'
                || '|^(nccl|pnccl|cublas|cudnn|cusparse|cusolver|cufft|mpi_|pmpi_|nvshmem)'
            )
            THEN 9
        -- A part of a step, or work beside the steps, is not a step, whatever it is called.
        WHEN
            regexp_matches(
                n.word,
                'optim|sched|forward|backward|fwd|bwd|grad|eval|valid|load|fetch|data|loss|sync'
                || '|get_|next|copy|wait|log|metric|clip|checkpoint|save|hook|reduce|gather'
            )
            THEN CASE WHEN regexp_matches(n.word, ', (seq|op_id) = ') THEN 9 ELSE 2 END
        WHEN
            regexp_matches(n.word, 'warm|micro|sub')
            AND regexp_matches(n.word, 'step|iter|batch')
            THEN 1
        -- The step word ends the name, or only its number follows.
        WHEN
            regexp_matches(
                n.word,
                '(^|[^a-z])(training|train|global|profiler)?[_ ]?(step|iteration|iter|batch)s?'
                || '[ _#:=./()\[\]-]*(\*.*|, (seq|op_id) = \*)?$'
            )
            THEN 0
        WHEN regexp_matches(n.word, '(^|[^a-z])(step|iteration|iter|batch)s?([^a-z]|$)') THEN 1
        WHEN regexp_matches(n.word, ', (seq|op_id) = ') THEN 9
        ELSE 2
    END AS strength
FROM named AS n;
