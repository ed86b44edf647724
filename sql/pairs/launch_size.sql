-- launch_size — does each kernel still launch as many blocks and threads?
--
-- Kernels of the same name on both sides: what one launch has, as the median over the steady
-- windows that hold the kernel. A figure is another one where it differs by more than 2 %, and the
-- middle half of the windows of one side lies beyond that of the other: where requests or sequences
-- are of any length, grids differ from window to window. Kinds:
--
-- - resized: other threads, and other threads per iteration too
-- - cut: other threads, made up for by the number of launches: the same in other pieces
-- - retuned: as many threads in blocks of another size
-- - filled: other blocks, by as much as the number of multiprocessors differs
-- - same, or unknown where a side does not tell
--
-- @grain  one row per pair and name of a kernel that computes on both sides
-- @reads  pair.geometry, pair.content_pair, pair.setting
WITH windowed AS (
    SELECT
        pair,
        side,
        coalesce(name, '(no name)') AS name,
        iteration,
        sum(blocks) / sum(count) AS blocks,
        sum(threads) / sum(count) AS threads,
    FROM pair.geometry
    GROUP BY pair, side, coalesce(name, '(no name)'), iteration
),
typical AS (
    SELECT
        pair,
        side,
        name,
        quantile_cont(blocks, [0.25, 0.5, 0.75]) AS blocks,
        quantile_cont(threads, [0.25, 0.5, 0.75]) AS threads,
    FROM windowed
    GROUP BY pair, side, name
),
multiprocessors AS (
    SELECT
        pair,
        max(n) FILTER (WHERE side = 'new') / max(n) FILTER (WHERE side = 'base') AS more,
    FROM (
        SELECT
            pair,
            side,
            try_cast(regexp_extract(value, '^[^;]*\((\d+) SM,[^;]*$', 1) AS BIGINT) AS n,
        FROM pair.setting
        WHERE name = 'GPU'
    ) AS told
    GROUP BY pair
),
beside AS (
    SELECT
        c.pair,
        c.key AS name,
        c.class,
        c.base_work_ns + c.new_work_ns AS work_ns,
        b.blocks[2] AS base_blocks,
        n.blocks[2] AS new_blocks,
        b.threads[2] AS base_threads,
        n.threads[2] AS new_threads,
        b.threads[2] * c.base_count AS base_total,
        n.threads[2] * c.new_count AS new_total,
        new_threads / base_threads AS factor,
        m.more,
        greatest(base_blocks, new_blocks) > 1.02 * least(base_blocks, new_blocks)
            AND (b.blocks[3] < n.blocks[1] OR n.blocks[3] < b.blocks[1]) AS is_other_grid,
        greatest(base_threads, new_threads) > 1.02 * least(base_threads, new_threads)
            AND (b.threads[3] < n.threads[1] OR n.threads[3] < b.threads[1]) AS is_other_size,
    FROM pair.content_pair AS c
    LEFT JOIN typical AS b ON b.pair = c.pair AND b.name = c.key AND b.side = 'base'
    LEFT JOIN typical AS n ON n.pair = c.pair AND n.name = c.key AND n.side = 'new'
    LEFT JOIN multiprocessors AS m ON m.pair = c.pair
    WHERE c.kind = 'kernel' AND least(c.base_count, c.new_count) > 0
)
SELECT
    pair,
    name,
    class,
    work_ns,
    base_blocks,
    new_blocks,
    base_threads,
    new_threads,
    base_total,
    new_total,
    factor,
    CASE
        WHEN factor IS NULL THEN 'unknown'
        WHEN is_other_grid AND more <> 1 AND abs(new_blocks / base_blocks / more - 1) <= 0.02
            THEN 'filled'
        WHEN is_other_size AND greatest(base_total, new_total) > 1.02 * least(base_total, new_total)
            THEN 'resized'
        WHEN is_other_size THEN 'cut'
        WHEN is_other_grid THEN 'retuned'
        ELSE 'same'
    END AS kind,
FROM beside;
