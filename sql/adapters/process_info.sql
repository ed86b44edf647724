-- process_info — which processes ran on the target?
--
-- Every process of the host is listed, not only the profiled ones. The name is what was seen first;
-- of a path only the last part is kept,
-- and of a command line nothing behind the program: options may hold secrets.
--
-- @grain    one row per process
-- @optional PROCESSES
-- @optional PROCESSES.globalPid BIGINT
-- @optional PROCESSES.pid BIGINT
-- @optional PROCESSES.name VARCHAR
-- @materialize
-- @column   process BIGINT - process key, globalPid >> 24
-- @column   process_pid BIGINT - operating system process id
-- @column   name VARCHAR - program name
SELECT
    p."globalPid" >> 24 AS process,
    p."pid" AS process_pid,
    regexp_extract(regexp_replace(p."name", '\s-.*$', '', 's'), '[^/\\]*$') AS name
FROM trace."PROCESSES" AS p;
