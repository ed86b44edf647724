-- generic_event — which events of generic sources were recorded?
--
-- Old exports keep the values of hardware counters here, as JSON.
--
-- @grain    one row per event
-- @optional GENERIC_EVENTS
-- @optional GENERIC_EVENTS.timestamp BIGINT
-- @optional GENERIC_EVENTS.globalTid BIGINT
-- @optional GENERIC_EVENTS.data VARCHAR
-- @column   row_id BIGINT - row number in the source table
-- @column   time_ns BIGINT ns time of the event
-- @column   type_id BIGINT - type, see generic_event_type
-- @column   thread BIGINT - globalTid of the thread
-- @column   data VARCHAR - JSON, NULL where the export left it out
SELECT
    e.rowid AS row_id,
    e."timestamp" AS time_ns,
    e."typeId" AS type_id,
    e."globalTid" AS thread,
    e."data" AS data
FROM trace."GENERIC_EVENTS" AS e;
