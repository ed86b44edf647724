-- fingerprint — which ranks do the same work?
--
-- Equal median counts of every compute class, of every type of collective and of every compute
-- kernel by name. Ranks are compared only inside one declared stage and one fingerprint
-- (pitfall 4). Groups are numbered by stage and least rank.
--
-- @grain  one row per rank
-- @reads  rank.member, rank.feature
-- @pitfall 3, 4
WITH spelled AS (
    SELECT
        m.member_id,
        m.stage,
        left(sha256(coalesce(string_agg(
            concat_ws(chr(31), f.kind, f.key, f.count), chr(30) ORDER BY f.kind, f.key
        ), '')), 8) AS fingerprint,
        string_agg(f.key || ' ' || printf('%g', f.count), ', ' ORDER BY f.key)
            FILTER (WHERE f.kind = 'collective') AS collectives,
        string_agg(f.key || ' ' || printf('%g', f.count), ', ' ORDER BY f.key)
            FILTER (WHERE f.kind = 'class') AS classes,
        count(*) FILTER (WHERE f.kind = 'kernel') AS kernel_names,
    FROM rank.member AS m
    LEFT JOIN rank.feature AS f ON f.member_id = m.member_id
    GROUP BY m.member_id, m.stage
),
led AS (
    SELECT *, min(member_id) OVER (PARTITION BY stage, fingerprint) AS lead_id FROM spelled
)
SELECT
    member_id,
    stage,
    fingerprint,
    dense_rank() OVER (ORDER BY stage NULLS LAST, lead_id) - 1 AS group_id,
    collectives,
    classes,
    kernel_names,
FROM led;
