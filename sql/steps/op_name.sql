-- op_name — what are the operations called, and what are they?
--
-- The names of the kernels with class and role, and one row each for operations without a name
-- of their own, so that every operation finds its row.
--
-- @grain  one row per name id of nsys.op
-- @reads  nsys.kernel_name
-- @column name_id    BIGINT  - id of nsys.op
-- @column name       VARCHAR - demangled name, else the short one; NULL where the trace has none
-- @column class      VARCHAR - class of the taxonomy
-- @column role       VARCHAR - compute, comm, wait, memcpy or memset
-- @column role_code  ENUM    - the role as a number of one byte, for tables of many rows
-- @column collective VARCHAR - type of the collective, NULL where it is none
WITH named AS (
    SELECT name_id, name, class, role, collective FROM nsys.kernel_name WHERE name_id IS NOT NULL
    UNION ALL
    SELECT name_id, name, class, role, NULL
    FROM (
        VALUES
            (-1, 'memcpy', 'memcpy', 'memcpy'),
            (-2, 'memset', 'memset', 'memset'),
            (-3, 'graph', 'graph', 'compute'),
            (-4, NULL, 'other', 'compute'),
    ) AS unnamed (name_id, name, class, role)
)
SELECT
    name_id,
    name,
    class,
    role,
    role::ENUM('compute', 'comm', 'wait', 'memcpy', 'memset') AS role_code,
    collective,
FROM named;
