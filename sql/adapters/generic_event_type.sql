-- generic_event_type — what kinds of generic events are there?
--
-- Newer exports name a type by a string id, older ones inside its JSON.
--
-- @grain    one row per type
-- @optional GENERIC_EVENT_TYPES
-- @optional GENERIC_EVENT_TYPES.sourceId BIGINT
-- @optional GENERIC_EVENT_TYPES.nameId BIGINT
-- @optional GENERIC_EVENT_TYPES.data VARCHAR
-- @optional StringIds
-- @materialize
-- @column   type_id BIGINT - type
-- @column   source_id BIGINT - source of the events
-- @column   name VARCHAR - name, newer exports only
-- @column   data VARCHAR - JSON description, NULL where the export left it out
SELECT
    t."typeId" AS type_id,
    t."sourceId" AS source_id,
    s."value" AS name,
    t."data" AS data
FROM trace."GENERIC_EVENT_TYPES" AS t
LEFT JOIN trace."StringIds" AS s
    ON s."id" = t."nameId";
