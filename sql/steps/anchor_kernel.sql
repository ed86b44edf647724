-- anchor_kernel — which kernel names are the anchor?
--
-- A kernel matches by its demangled name or by a short name it was exported with. With `nccl`
-- only kernels of class nccl do. A table of its own, so that the join with the operations knows
-- how few names there are.
--
-- @grain   one row per name_id
-- @reads   nsys.kernel, nsys.kernel_name, nsys.string
-- @param   anchor_kind     VARCHAR = ''  kind of the anchor
-- @param   anchor_pattern  VARCHAR = ''  pattern of the anchor
-- @column  name_id  BIGINT  -  name of nsys.op
WITH params AS (
    SELECT
        coalesce(getvariable('anchor_kind')::VARCHAR, '') AS anchor_kind,
        coalesce(getvariable('anchor_pattern')::VARCHAR, '') AS anchor_pattern
),
-- The kernel table is read again for its short names only where a kernel is the anchor.
exported_name AS (
    SELECT DISTINCT
        k.name_id,
        k.short_name_id
    FROM params AS p
    INNER JOIN nsys.kernel AS k ON p.anchor_kind IN ('kernel', 'nccl')
),
matching AS (
    SELECT n.name_id
    FROM params AS p
    INNER JOIN nsys.kernel_name AS n ON nsys.matches(n.name, p.anchor_pattern)
    WHERE p.anchor_kind IN ('kernel', 'nccl')
    UNION
    SELECT e.name_id
    FROM exported_name AS e
    INNER JOIN nsys.string AS s ON e.short_name_id = s.string_id
    INNER JOIN params AS p ON nsys.matches(s.value, p.anchor_pattern)
)
SELECT m.name_id
FROM matching AS m
INNER JOIN nsys.kernel_name AS n ON m.name_id = n.name_id
INNER JOIN params AS p ON p.anchor_kind = 'kernel' OR n.class = 'nccl';
