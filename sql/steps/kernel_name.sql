-- kernel_name — what kind of work does each kernel name stand for?
--
-- Classification reads names, so it is done once for each name and not for each of the launches.
-- Names without a rule are `other`: computation, and not matched, so that they can be listed
-- (pitfall 20). A kernel without a name, or with a name id that is missing among the strings, has
-- a row here too: name_id or name is NULL then, and its time still counts as computation.
--
-- @grain     one row per name_id in use, NULL included
-- @reads     nsys.kernel, nsys.string
-- @column    name_id     BIGINT  -  string id of the demangled name, else of the short name
-- @column    name        VARCHAR -  the name, NULL where the trace has none
-- @column    class       VARCHAR -  class by the taxonomy
-- @column    role        VARCHAR -  compute, comm or wait
-- @column    collective  VARCHAR -  collective of a communication kernel, else NULL
-- @column    is_matched  BOOLEAN -  a rule of the taxonomy matched the name
-- @invariant classified  class IS NOT NULL AND role IS NOT NULL
-- @pitfall   20
WITH used AS (
    SELECT DISTINCT k.name_id AS name_id
    FROM nsys.kernel AS k
),
named AS (
    SELECT
        u.name_id AS name_id,
        s.value AS name,
        nsys.kernel_class(s.value) AS matched_class,
    FROM used AS u
    LEFT JOIN nsys.string AS s
        ON u.name_id = s.string_id
),
classified AS (
    SELECT
        n.name_id AS name_id,
        n.name AS name,
        coalesce(n.matched_class, 'other') AS class,
        nsys.class_role(coalesce(n.matched_class, 'other')) AS role,
        n.matched_class IS NOT NULL AS is_matched,
    FROM named AS n
)
SELECT
    c.name_id AS name_id,
    c.name AS name,
    c.class AS class,
    c.role AS role,
    CASE WHEN c.role = 'comm' THEN nsys.kernel_collective(c.name) END AS collective,
    c.is_matched AS is_matched,
FROM classified AS c;
