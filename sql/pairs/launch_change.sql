-- launch_change — do the kernels of a pair launch as much on both sides?
--
-- A changed batch size, sequence length or parallel split leaves names and counts of kernels as
-- they are, and changes their grids. A kernel that is tuned anew under its name changes its grid
-- too, with no other work to do. So grids alone tell that something changed, and not the work. It
-- is other work where kernels agree that are not tuned together: at least three names of at least
-- two classes with 5 % of the compute work launch other numbers of threads, four fifths of that
-- (by work) in the same direction, and the threads of all kernels together go along. Kernels that
-- fill a GPU have other grids on another one, so there it takes half of the work that can be told.
--
-- The size of a product's inner dimension is in no grid, and a kernel that fills the GPU and loops
-- has the same grid whatever there is to do: grids that are the same prove nothing.
--
-- @grain  one row per pair with kernels that compute
-- @reads  pair.launch_size, pair.content_pair, pair.setting
WITH whole AS (
    SELECT pair, sum(base_work_ns + new_work_ns) AS work_ns
    FROM pair.content_pair
    WHERE kind = 'kernel'
    GROUP BY pair
),
machine AS (
    SELECT pair, count(DISTINCT value) > 1 AS is_other_gpu
    FROM pair.setting
    WHERE name = 'GPU'
    GROUP BY pair
),
ordered AS (
    SELECT
        *,
        sum(work_ns) OVER (
            PARTITION BY pair ORDER BY factor, name
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS reached_ns,
        sum(work_ns) OVER (PARTITION BY pair) AS all_ns,
    FROM pair.launch_size
    WHERE kind = 'resized'
),
-- the median by work
middle AS (
    SELECT pair, min(factor) AS factor
    FROM ordered
    WHERE 2 * reached_ns >= all_ns
    GROUP BY pair
),
agreeing AS (
    SELECT
        o.pair,
        count(*) AS names,
        count(DISTINCT o.class) AS classes,
        sum(o.work_ns) AS work_ns,
    FROM ordered AS o
    INNER JOIN middle AS m ON m.pair = o.pair AND (m.factor > 1) = (o.factor > 1)
    GROUP BY o.pair
),
counted AS (
    SELECT
        pair,
        count(*) FILTER (WHERE kind <> 'unknown') AS told,
        count(*) FILTER (WHERE kind = 'resized') AS resized,
        count(*) FILTER (WHERE kind = 'cut') AS cut,
        count(*) FILTER (WHERE kind = 'retuned') AS retuned,
        count(*) FILTER (WHERE kind = 'filled') AS filled,
        coalesce(sum(work_ns) FILTER (WHERE kind <> 'unknown'), 0) AS told_ns,
        coalesce(sum(work_ns) FILTER (WHERE kind = 'resized'), 0) AS resized_ns,
        coalesce(sum(work_ns) FILTER (WHERE kind = 'cut'), 0) AS cut_ns,
        coalesce(sum(work_ns) FILTER (WHERE kind = 'retuned'), 0) AS retuned_ns,
        coalesce(sum(work_ns) FILTER (WHERE kind = 'filled'), 0) AS filled_ns,
        sum(base_total) FILTER (WHERE kind <> 'unknown') AS base_threads,
        sum(new_total) FILTER (WHERE kind <> 'unknown') AS new_threads,
    FROM pair.launch_size
    GROUP BY pair
)
SELECT
    w.pair,
    coalesce(c.told, 0) AS told,
    coalesce(c.resized, 0) AS resized,
    coalesce(c.cut, 0) AS cut,
    coalesce(c.retuned, 0) AS retuned,
    coalesce(c.filled, 0) AS filled,
    coalesce(c.told_ns / nullif(w.work_ns, 0), 0) AS told_share,
    coalesce(c.resized_ns / nullif(w.work_ns, 0), 0) AS resized_share,
    coalesce(c.cut_ns / nullif(w.work_ns, 0), 0) AS cut_share,
    coalesce(c.retuned_ns / nullif(w.work_ns, 0), 0) AS retuned_share,
    coalesce(c.filled_ns / nullif(w.work_ns, 0), 0) AS filled_share,
    c.base_threads,
    c.new_threads,
    m.factor,
    coalesce(g.is_other_gpu, false) AS is_other_gpu,
    resized_share + cut_share + retuned_share + filled_share AS changed_share,
    coalesce(
        a.names >= 3
        AND a.classes >= 2
        AND resized_share >= 0.05
        AND (NOT coalesce(g.is_other_gpu, false) OR 2 * c.resized_ns >= c.told_ns)
        AND a.work_ns >= 0.8 * c.resized_ns
        AND greatest(c.base_threads, c.new_threads) > 1.02 * least(c.base_threads, c.new_threads)
        AND (c.new_threads > c.base_threads) = (m.factor > 1),
        false
    ) AS is_other_work,
FROM whole AS w
LEFT JOIN counted AS c ON c.pair = w.pair
LEFT JOIN middle AS m ON m.pair = w.pair
LEFT JOIN agreeing AS a ON a.pair = w.pair
LEFT JOIN machine AS g ON g.pair = w.pair;
