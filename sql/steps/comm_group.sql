-- comm_group — which sets of communication are measured, and which names belong to each?
--
-- A kernel counts in the set of its class and collective, in the set of its class and in the set
-- of all communication. GEMMs that communicate inside are computation, and copies between devices
-- are copies: each is a set of its own beside those, never a part of `all`.
--
-- @grain  one row per set and name in it; set 0 is all communication and is always there
-- @reads  nsys.op_name
-- @column set_id     BIGINT  - number of the set
-- @column same_id    BIGINT  - least number of a set with the same names: measured once for all
-- @column scope      VARCHAR - all, class, collective, fused_compute or peer_copy
-- @column class      VARCHAR - class of the taxonomy, or the way of a peer copy; NULL for all
-- @column collective VARCHAR - type of the collective, NULL where the set holds several
-- @column name_id    BIGINT  - name of nsys.comm_op, NULL where no name is in the set
-- @pitfall 5, 6, 20
WITH member AS (
    SELECT name_id, role, class, coalesce(collective, 'other') AS collective
    FROM nsys.op_name
    WHERE role = 'comm' OR class = 'fused_gemm_comm'
),
placed AS (
    SELECT 'all' AS scope, NULL::VARCHAR AS class, NULL::VARCHAR AS collective, name_id
    FROM member
    WHERE role = 'comm'
    UNION ALL
    SELECT 'all', NULL, NULL, NULL
    UNION ALL
    SELECT 'class', class, NULL, name_id FROM member WHERE role = 'comm'
    UNION ALL
    SELECT 'collective', class, collective, name_id FROM member WHERE role = 'comm'
    UNION ALL
    SELECT 'fused_compute', class, NULL, name_id FROM member WHERE role <> 'comm'
    UNION ALL
    SELECT 'peer_copy', 'peer', NULL, -11
    UNION ALL
    SELECT 'peer_copy', 'staged peer', NULL, -12
),
numbered AS (
    SELECT
        dense_rank() OVER (ORDER BY scope, class NULLS FIRST, collective NULLS FIRST) - 1 AS set_id,
        *
    FROM placed
),
spelled AS (
    SELECT
        set_id,
        list(name_id ORDER BY name_id) FILTER (WHERE name_id IS NOT NULL) AS names,
    FROM numbered
    GROUP BY set_id
),
first_of AS (
    SELECT set_id, min(set_id) OVER (PARTITION BY names) AS same_id FROM spelled
)
SELECT n.set_id, f.same_id, n.scope, n.class, n.collective, n.name_id
FROM numbered AS n
INNER JOIN first_of AS f ON f.set_id = n.set_id;
