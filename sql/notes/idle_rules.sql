-- idle_rules — which rules of the user's own decide no kernel of the trace?
--
-- One that matches nothing is often a misspelt name, and its kernels stay in another class
-- (pitfall 20). A rule whose kernels an earlier one takes decides none either.
--
-- @reads   nsys.kernel_name
-- @pitfall 20
WITH own AS (
    SELECT DISTINCT unnest(nsys.own_rules()) AS rule
),
idle AS (
    SELECT o.rule
    FROM own AS o
    ANTI JOIN nsys.kernel_name AS n ON n.rule = o.rule
)
SELECT
    format(
        '{} of {} rules of --taxonomy decide no kernel of this trace: {}',
        count(*), (SELECT count(*) FROM own), left(string_agg(rule, ', ' ORDER BY rule), 400)
    ) AS note,
FROM idle
HAVING count(*) > 0;
