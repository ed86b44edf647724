-- history — how did a metric develop from run to run?
--
-- One line per run and device or rank, oldest first. The change is from the run before of the same
-- setup (devices, anchor, GEMMs and attention kernels per iteration, GPU) and the same member: runs
-- of other setups do not compare, and say so by their setup.
--
-- @grain  one row per run and device or rank
-- @reads  store.run, store.budget, wanted
-- @param  metric VARCHAR = 'iteration' Metric of the budget.
-- @column run BIGINT - number of the run in the store
-- @column added VARCHAR - when it was stored, UTC
-- @column labels VARCHAR - labels it was stored with
-- @column member BIGINT - device or rank, in order
-- @column rank BIGINT - rank as declared, NULL unknown
-- @column setup VARCHAR - digest of what runs must have in common to be compared
-- @column metric VARCHAR - metric of the budget
-- @column median_ns BIGINT ns median over the steady windows
-- @column min_ns BIGINT ns least
-- @column max_ns BIGINT ns greatest
-- @column n BIGINT - steady windows
-- @column change_pct DOUBLE pct change from the run before of the same setup and member
WITH params AS (
    SELECT coalesce(getvariable('metric'), 'iteration')::VARCHAR AS metric
),
chosen AS (
    SELECT r.*
    FROM store.run AS r
    WHERE NOT EXISTS (
        SELECT 1 FROM wanted AS w WHERE r.labels[w.name] IS DISTINCT FROM w.value
    )
),
listed AS (
    SELECT
        r.run_id,
        r.added_at,
        r.labels,
        r.setup,
        b.member,
        b.rank,
        b.metric,
        b.median_ns,
        b.min_ns,
        b.max_ns,
        b.n,
        lag(b.median_ns) OVER (PARTITION BY r.setup, b.member ORDER BY r.run_id) AS before_ns,
    FROM chosen AS r
    INNER JOIN store.budget AS b ON b.run_id = r.run_id
    CROSS JOIN params AS p
    WHERE b.metric = p.metric
)
SELECT
    run_id AS run,
    strftime(added_at, '%Y-%m-%d %H:%M:%S') AS added,
    coalesce(
        list_aggregate(
            list_transform(list_sort(map_entries(labels)), LAMBDA e: e.key || '=' || e.value),
            'string_agg',
            ', '
        ),
        ''
    ) AS labels,
    member,
    rank,
    setup,
    metric,
    median_ns,
    min_ns,
    max_ns,
    n,
    100 * (median_ns - before_ns) / nullif(before_ns, 0) AS change_pct,
FROM listed
ORDER BY run, member;
