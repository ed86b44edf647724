-- process_info — which processes ran on the target?
--
-- Every process of the host is listed, not only the profiled ones. The name is what was seen
-- first; of a command line nothing behind the program is kept, since arguments may hold secrets,
-- and of the program's path only the last part.
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
    regexp_extract(
        -- a blank ends the program, but for Windows paths, which end in .exe
        regexp_extract(p."name", '^\s*([A-Za-z]:\\.*?\.exe|\S*)', 1, 'is'),
        '[^/\\]*$'
    ) AS name
FROM trace."PROCESSES" AS p;
