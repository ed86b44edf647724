-- anchor_span — which windows would each candidate anchor give each device?
--
-- @grain   one row per kind, pattern, device, window
-- @reads   nsys.nvtx_span, nsys.kernel_span
-- @column  kind           VARCHAR  -   nvtx, nccl or kernel
-- @column  pattern        VARCHAR  -   anchor pattern
-- @column  strength       BIGINT   -   preference: 0 to 2 NVTX, 3 nccl, 4 and 5 kernels, 9 never
-- @column  per_iteration  BIGINT   -   occurrences per iteration
-- @column  device         BIGINT   -   device
-- @column  start_ns       BIGINT   ns  start of the window
-- @column  end_ns         BIGINT   ns  end of the window
SELECT
    'nvtx' AS kind,
    n.pattern,
    n.strength::BIGINT AS strength,
    1::BIGINT AS per_iteration,
    n.device,
    n.start_ns,
    n.end_ns
FROM nsys.nvtx_span AS n
UNION ALL
SELECT
    k.kind,
    k.pattern,
    k.strength::BIGINT AS strength,
    k.per_iteration::BIGINT AS per_iteration,
    k.device,
    k.start_ns,
    k.end_ns
FROM nsys.kernel_span AS k;
