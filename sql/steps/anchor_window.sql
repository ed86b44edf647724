-- anchor_window — which windows does the anchor give each device?
--
-- Windows of NVTX ranges belong to the process that pushed them, and so to every device which
-- that process drives.
--
-- @grain   one row per device, window
-- @reads   nsys.nvtx_window, nsys.device_window, nsys.kernel_window, nsys.drive
-- @param   window_mode  VARCHAR = 'range'  range, or device
-- @column  device       BIGINT   -   device
-- @column  start_ns     BIGINT   ns  start of the window
-- @column  end_ns       BIGINT   ns  end of the window; of an unclosed one as recorded, or NULL
-- @column  is_unclosed  BOOLEAN  -   the window has no end of its own
-- @column  is_workless  BOOLEAN  -   by device time, and nothing was launched inside the range
-- @column  source_id    BIGINT   -   row of nsys.nvtx, or NULL: settles the order of equal windows
WITH params AS (
    SELECT coalesce(getvariable('window_mode')::VARCHAR, 'range') AS window_mode
)
SELECT
    d.device,
    n.start_ns,
    n.end_ns,
    n.is_unclosed,
    false AS is_workless,
    n.row_id AS source_id
FROM params AS p
INNER JOIN nsys.nvtx_window AS n ON p.window_mode <> 'device'
INNER JOIN nsys.drive AS d ON n.process IS NOT DISTINCT FROM d.process
UNION ALL
SELECT
    w.device,
    w.start_ns,
    w.end_ns,
    n.is_unclosed,
    w.is_workless,
    w.row_id AS source_id
FROM nsys.device_window AS w
INNER JOIN nsys.nvtx_window AS n ON w.row_id = n.row_id
UNION ALL
SELECT
    k.device,
    k.start_ns,
    k.end_ns,
    k.end_ns IS NULL AS is_unclosed,
    false AS is_workless,
    NULL AS source_id
FROM nsys.kernel_window AS k;
