-- kernel_window — which windows do the occurrences of the anchor kernel make?
--
-- Occurrences on one device in start order; window i runs from the start of occurrence i*k to
-- the start of occurrence (i+1)*k, k being per_iteration. What remains has no end: `unclosed`.
--
-- @grain   one row per device, window
-- @reads   nsys.anchor_kernel, nsys.op
-- @param   per_iteration  BIGINT = 1  occurrences per iteration
-- @column  device    BIGINT  -   device
-- @column  start_ns  BIGINT  ns  start of the first occurrence
-- @column  end_ns    BIGINT  ns  start of the first occurrence of the next window, or NULL
WITH params AS (
    SELECT coalesce(getvariable('per_iteration'), 1)::BIGINT AS per_iteration
),
occurrence AS (
    SELECT
        o.device,
        o.start_ns,
        row_number() OVER (PARTITION BY o.device ORDER BY o.start_ns) - 1 AS occurrence
    FROM nsys.op AS o
    WHERE o.kind = 'kernel' AND o.name_id IN (SELECT a.name_id FROM nsys.anchor_kernel AS a)
)
SELECT
    o.device,
    o.start_ns,
    lead(o.start_ns) OVER (PARTITION BY o.device ORDER BY o.occurrence) AS end_ns
FROM occurrence AS o
INNER JOIN params AS p ON o.occurrence % p.per_iteration = 0;
