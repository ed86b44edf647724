-- steady — which windows take part in the statistics?
--
-- @grain   one row per device, iteration
-- @reads   nsys.iteration
-- @param   device  BIGINT = NULL  the only device to report
-- @column  device     BIGINT  -   device
-- @column  iteration  BIGINT  -   ordinal over all windows of the device
-- @column  start_ns   BIGINT  ns  start of the window
-- @column  end_ns     BIGINT  ns  end of the window
WITH params AS (
    SELECT getvariable('device')::BIGINT AS device
)
SELECT
    i.device,
    i.iteration,
    i.start_ns,
    i.end_ns
FROM nsys.iteration AS i
CROSS JOIN params AS p
WHERE i.status = 'steady' AND (p.device IS NULL OR i.device = p.device);
