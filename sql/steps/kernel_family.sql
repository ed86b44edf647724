-- kernel_family — which kernels recur through the whole report, so that one could mark the steps?
--
-- One pass over the operations counts each name. Candidates recur over at least half of the time
-- in which the device works; of names with the same count the two that appear first are enough.
-- Optimizer kernels and collectives are kept before others. A pattern is the shortest piece of
-- the name that no other kernel of the report matches.
--
-- @grain   one row per pattern, name_id
-- @reads   nsys.stream_item, nsys.kernel_name
-- @column  kind      VARCHAR  -  nccl or kernel
-- @column  pattern   VARCHAR  -  anchor pattern
-- @column  strength  BIGINT   -  3 collectives, 4 optimizer kernels, 5 other kernels
-- @column  name_id   BIGINT   -  a name that the pattern matches
WITH used AS (
    SELECT
        o.device,
        o.kind,
        o.name_id,
        count(*) AS op_count,
        min(o.start_ns) AS first_ns,
        max(o.start_ns) AS last_ns
    FROM nsys.stream_item AS o
    WHERE o.kind < 4
    GROUP BY o.device, o.kind, o.name_id
),
extent AS (
    SELECT
        u.device,
        max(u.last_ns) - min(u.first_ns) AS extent_ns
    FROM used AS u
    GROUP BY u.device
),
recurring AS (
    SELECT
        u.name_id,
        max(u.op_count) AS op_count,
        min(u.first_ns) AS first_ns
    FROM used AS u
    INNER JOIN extent AS e ON u.device = e.device
    WHERE
        u.kind = 0
        AND u.op_count BETWEEN 3 AND 10000
        AND 2 * (u.last_ns - u.first_ns) >= e.extent_ns
    GROUP BY u.name_id
),
ranked AS (
    SELECT
        n.name,
        CASE WHEN n.class = 'nccl' THEN 'nccl' ELSE 'kernel' END AS kind,
        CASE WHEN n.class = 'nccl' THEN 3 WHEN n.class = 'optimizer' THEN 4 ELSE 5 END AS strength,
        r.op_count,
        r.first_ns,
        row_number() OVER (
            PARTITION BY
                CASE WHEN n.class IN ('nccl', 'optimizer') THEN n.class ELSE 'other' END,
                r.op_count
            ORDER BY r.first_ns, n.name
        ) AS place
    FROM recurring AS r
    INNER JOIN nsys.kernel_name AS n ON r.name_id = n.name_id
    -- what has no name, or an empty one, cannot be given as an anchor
    WHERE n.name <> ''
),
shortlist AS (
    SELECT
        r.name,
        r.kind,
        r.strength
    FROM ranked AS r
    WHERE r.place <= 2
    QUALIFY row_number() OVER (
        PARTITION BY r.strength
        ORDER BY r.op_count, r.first_ns, r.name
    ) <= CASE WHEN r.strength = 5 THEN 24 ELSE 8 END
),
spelling AS (
    SELECT
        s.name,
        s.kind,
        s.strength,
        l.level,
        nsys.kernel_pattern(s.name, l.level) AS pattern
    FROM shortlist AS s
    CROSS JOIN (VALUES (1), (2), (3), (4)) AS l (level)
),
matched AS (
    SELECT
        s.name,
        s.kind,
        s.strength,
        s.level,
        s.pattern,
        n.name_id,
        n.name AS matched_name
    FROM spelling AS s
    INNER JOIN nsys.kernel_name AS n
        ON nsys.matches(n.name, s.pattern) AND (s.kind = 'kernel' OR n.class = 'nccl')
),
-- The first level at which only the kernel itself matches, else the whole name.
chosen AS (
    SELECT
        m.name,
        min(m.level) AS level
    FROM (
        SELECT
            a.name,
            a.level
        FROM matched AS a
        GROUP BY a.name, a.level
        HAVING count(DISTINCT a.matched_name) = 1 OR a.level = 4
    ) AS m
    GROUP BY m.name
)
SELECT DISTINCT
    m.kind,
    m.pattern,
    m.strength,
    m.name_id
FROM matched AS m
INNER JOIN chosen AS c ON m.name = c.name AND m.level = c.level;
