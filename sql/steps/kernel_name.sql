-- kernel_name — what kind of work does each kernel name stand for?
--
-- Classification reads names, so it is done once for each name and not for each of the launches.
-- Names without a rule are `other`: computation, and not matched, so that they can be listed
-- (pitfall 20). A kernel without a name, or with a name id that is missing among the strings, has
-- a row here too: name_id or name is NULL then, and its time still counts as computation.
--
-- The rules are a hundred regular expressions: to improve their plan takes DuckDB longer than to
-- run it, with few names as with many.
--
-- @grain     one row per name_id in use, NULL included
-- @reads     nsys.stream_item, nsys.string
-- @column    name_id     BIGINT  -  string id of the demangled name, else of the short name
-- @column    name        VARCHAR -  the name, NULL where the trace has none
-- @column    class       VARCHAR -  class by the taxonomy
-- @column    role        VARCHAR -  compute, comm or wait
-- @column    collective  VARCHAR -  collective of a communication kernel, else NULL
-- @column    is_matched  BOOLEAN -  a rule of the taxonomy matched the name
-- @column    rule        VARCHAR -  the rule that matched, FILE:NUMBER or its own name
-- @unoptimized
-- @invariant classified  class IS NOT NULL AND role IS NOT NULL
-- @pitfall   20
WITH used AS (
    SELECT DISTINCT nullif(i.name_id, -4) AS name_id
    FROM nsys.stream_item AS i
    WHERE i.kind = 0
),
spelled AS (
    SELECT
        u.name_id AS name_id,
        s.value AS name,
        nsys.kernel_text(s.value) AS text,
        nsys.kernel_function(s.value) AS function,
        nsys.kernel_words(nsys.kernel_function(s.value)) AS words,
    FROM used AS u
    LEFT JOIN nsys.string AS s
        ON u.name_id = s.string_id
),
matched AS (
    SELECT
        s.name_id AS name_id,
        s.name AS name,
        s.text AS text,
        s.function AS function,
        s.words AS words,
        nsys.match_rule(s.name, s.text, s.function, s.words) AS rule_number,
    FROM spelled AS s
),
classified AS (
    SELECT
        m.name_id AS name_id,
        m.name AS name,
        m.text AS text,
        m.function AS function,
        m.words AS words,
        m.rule_number AS rule_number,
        coalesce(nsys.rule_class(m.rule_number), 'other') AS class,
        nsys.class_role(coalesce(nsys.rule_class(m.rule_number), 'other')) AS role,
    FROM matched AS m
)
SELECT
    c.name_id AS name_id,
    c.name AS name,
    c.class AS class,
    c.role AS role,
    CASE
        WHEN c.role = 'comm'
            THEN nsys.rule_collective(nsys.match_collective(c.name, c.text, c.function, c.words))
    END AS collective,
    c.rule_number IS NOT NULL AS is_matched,
    nsys.rule_label(c.rule_number) AS rule,
FROM classified AS c;
