-- instance — which collective of which group is each operation, and the how many-th of its type?
--
-- The ordinal counts operations of one type in host issue order inside the window and the group:
-- what the members of a group have in common.
--
-- @grain  one row per rank, group and instance in a steady window
-- @reads  rank.member, rank.membership, rank.rule, rank.collective, rank.trace
-- @pitfall 23
WITH shape AS (
    SELECT DISTINCT stream_id, class, collective, name, communicator FROM rank.collective
),
-- all that a rule gives must match; what it does not give is NULL
own AS (
    SELECT r.kind, s.*
    FROM shape AS s
    INNER JOIN rank.rule AS r
        ON
            (r.streams IS NULL OR list_contains(r.streams, s.stream_id))
            AND (r.classes IS NULL OR list_contains(r.classes, lower(s.class)))
            AND (r.types IS NULL OR list_contains(r.types, lower(s.collective)))
            AND (r.communicators IS NULL OR list_contains(r.communicators, s.communicator))
            AND (r.pattern IS NULL OR regexp_full_match(s.name, r.pattern))
    UNION ALL
    SELECT 'communicator', s.*
    FROM shape AS s
    WHERE s.communicator IS NOT NULL AND NOT EXISTS (FROM rank.rule)
)
SELECT
    m.member_id,
    o.kind,
    g.name,
    c.iteration,
    c.collective,
    row_number() OVER (
        PARTITION BY m.member_id, o.kind, g.name, c.iteration, c.collective
        ORDER BY c.correlation_id NULLS LAST, c.start_ns, c.end_ns, c.name, c.op_id
    ) - 1 AS ordinal,
    c.class,
    c.start_ns + coalesce(t.session_start_ns, 0) AS start_ns,
    c.end_ns + coalesce(t.session_start_ns, 0) AS end_ns,
    c.end_ns - c.start_ns AS duration_ns,
    c.bytes,
FROM rank.member AS m
INNER JOIN rank.collective AS c ON c.part = m.part AND c.device = m.device
INNER JOIN own AS o
    ON
        o.stream_id IS NOT DISTINCT FROM c.stream_id
        AND o.class IS NOT DISTINCT FROM c.class
        AND o.collective = c.collective
        AND o.name IS NOT DISTINCT FROM c.name
        AND o.communicator IS NOT DISTINCT FROM c.communicator
INNER JOIN rank.membership AS g
    ON g.member_id = m.member_id AND g.kind = o.kind
    AND (g.name = c.communicator OR EXISTS (FROM rank.rule))
INNER JOIN rank.trace AS t ON t.part = m.part;
