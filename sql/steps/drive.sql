-- drive — which process drives which device?
--
-- A process drives the devices on which it has operations (pitfall: two processes that both
-- see "device 0" may drive different GPUs, so the device is the resolved one of nsys.op). Rows
-- of an export without process ids keep their device under a NULL process.
--
-- @grain   one row per process, device
-- @reads   nsys.stream_item
-- @column  process  BIGINT  -  process key, or NULL
-- @column  device   BIGINT  -  device it has operations on
SELECT DISTINCT
    o.process,
    o.device
FROM nsys.stream_item AS o
WHERE o.device IS NOT NULL;
