-- taxonomy — which kernel names does the trace hold, and is each in the right class?
--
-- A taxonomy by name is fallible (pitfall 20): read the names that carry time before trusting a
-- class total. Names without a rule come first, then by work. `rule` says which rule decided, as
-- FILE:NUMBER; a rule of your own goes in front of it with --taxonomy FILE.yaml.
--
-- Work is summed over the whole trace, over all devices and streams. It is volume, not time: where
-- kernels overlap it counts twice (pitfall 1). Rows that end before they start are left out.
--
-- @grain     one row per name_id in use, NULL included
-- @reads     nsys.kernel, nsys.kernel_name
-- @needs     kernel
-- @column    kernel      VARCHAR -   demangled name, else short name, NULL where there is none
-- @column    class       VARCHAR -   class by the taxonomy
-- @column    role        VARCHAR -   compute, comm or wait
-- @column    collective  VARCHAR -   collective of a communication kernel, else NULL
-- @column    is_matched  BOOLEAN -   a rule matched; without one the class is other
-- @column    rule        VARCHAR -   the rule that matched
-- @column    count       BIGINT  -   executions
-- @column    work_ns     BIGINT  ns  summed duration
-- @column    work_pct    DOUBLE  pct share of the work of all kernels
-- @column    name_id     BIGINT  -   string id of the name
-- @invariant classified  class IS NOT NULL AND role IS NOT NULL
-- @warning   matched     is_matched OR work_pct < 1
-- @pitfall   1, 20
WITH name_work AS (
    SELECT
        k.name_id AS name_id,
        count(*) AS executions,
        sum(k.end_ns - k.start_ns)::BIGINT AS work_ns,
    FROM nsys.kernel AS k
    WHERE k.end_ns >= k.start_ns
    GROUP BY k.name_id
),
total AS (
    SELECT sum(w.work_ns)::BIGINT AS work_ns
    FROM name_work AS w
)
SELECT
    n.name AS kernel,
    n.class AS class,
    n.role AS role,
    n.collective AS collective,
    n.is_matched AS is_matched,
    n.rule AS rule,
    coalesce(w.executions, 0)::BIGINT AS count,
    coalesce(w.work_ns, 0)::BIGINT AS work_ns,
    CASE
        WHEN t.work_ns > 0 THEN 100.0 * coalesce(w.work_ns, 0) / t.work_ns
        ELSE 0
    END::DOUBLE AS work_pct,
    n.name_id AS name_id,
FROM nsys.kernel_name AS n
-- A kernel without a name has no id to compare, and must not be lost.
LEFT JOIN name_work AS w
    ON n.name_id IS NOT DISTINCT FROM w.name_id
CROSS JOIN total AS t
ORDER BY n.is_matched, work_ns DESC, n.name_id NULLS LAST;
