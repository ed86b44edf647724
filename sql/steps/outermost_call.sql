-- outermost_call — which call gave what carries its correlation id to the device?
--
-- The calls of nsys.call, of several with one id the outermost alone (see nsys.doubled_call): each
-- process and id once, so that a join on them neither doubles an operation nor, where a broken
-- trace gives one id to everything, pairs everything with everything. Calls without an id stand
-- here too, and no join finds them.
--
-- @grain  one row per process and correlation id
-- @reads  nsys.call, nsys.doubled_call
-- @view
-- @column start_ns       BIGINT  ns the host enters the call
-- @column end_ns         BIGINT  ns the host leaves it
-- @column process        BIGINT  -  process key
-- @column thread         BIGINT  -  globalTid of the calling thread
-- @column correlation_id BIGINT  -  joins operations and events inside the process
-- @column name_id        BIGINT  -  string id of the function's name
-- @pitfall 22
SELECT start_ns, end_ns, process, thread, correlation_id, name_id
FROM nsys.call
WHERE NOT EXISTS (SELECT 1 FROM nsys.doubled_call)
UNION ALL
-- apart, since even a join with nothing would have the calls above copied
SELECT c.start_ns, c.end_ns, c.process, c.thread, c.correlation_id, c.name_id
FROM nsys.call AS c
ANTI JOIN nsys.doubled_call AS d
    ON d.process = c.process AND d.correlation_id = c.correlation_id
WHERE EXISTS (SELECT 1 FROM nsys.doubled_call)
UNION ALL
SELECT start_ns, end_ns, process, thread, correlation_id, name_id
FROM nsys.doubled_call;
