-- nvtx_payload — what did libraries attach to their NVTX ranges?
--
-- The payload as the JSON text that the exporter made of it. NCCL attaches the communicator and
-- the size of the message to its calls; most exports hold no payload at all.
--
-- @grain    one row per NVTX event with a payload
-- @optional NVTX_EVENTS
-- @optional NVTX_EVENTS.jsonText VARCHAR
-- @optional NVTX_EVENTS.jsonTextId BIGINT
-- @optional StringIds
-- @optional StringIds.value VARCHAR
-- @materialize
-- @column   row_id BIGINT - row number in the source table, as in nvtx
-- @column   payload VARCHAR - JSON text
SELECT
    e.rowid AS row_id,
    coalesce(e."jsonText", s."value") AS payload
FROM trace."NVTX_EVENTS" AS e
LEFT JOIN trace."StringIds" AS s
    ON s."id" = e."jsonTextId"
WHERE e."jsonText" IS NOT NULL OR e."jsonTextId" IS NOT NULL;
