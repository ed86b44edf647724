-- sched_event — when were threads put on and taken off a CPU?
--
-- In and out pair by thread; there is no end time.
--
-- @grain    one row per scheduling event
-- @optional SCHED_EVENTS
-- @optional SCHED_EVENTS.cpu BIGINT
-- @optional SCHED_EVENTS.isSchedIn BIGINT
-- @optional SCHED_EVENTS.globalTid BIGINT
-- @optional SCHED_EVENTS.threadState BIGINT
-- @optional SCHED_EVENTS.threadBlock BIGINT
-- @column   time_ns BIGINT ns time of the event
-- @column   cpu BIGINT - logical CPU
-- @column   is_sched_in BIGINT - 1 when the thread starts to run, 0 when it stops
-- @column   thread BIGINT - globalTid of the thread
-- @column   process BIGINT - process key, globalTid >> 24
-- @column   thread_state BIGINT - state it went into, newer exports only
-- @column   thread_block BIGINT - why it blocked, newer exports only
SELECT
    s."start" AS time_ns,
    s."cpu" AS cpu,
    s."isSchedIn" AS is_sched_in,
    s."globalTid" AS thread,
    s."globalTid" >> 24 AS process,
    s."threadState" AS thread_state,
    s."threadBlock" AS thread_block
FROM trace."SCHED_EVENTS" AS s;
