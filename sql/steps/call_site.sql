-- call_site — from which line of the program was each kernel launched?
--
-- Empty unless the option --callsites names a file, which another tool wrote while the same
-- workload ran: a profiled launch names its API call, never the line behind it (pitfall 22).
--
-- @grain  one row per launch of a rank and thread
-- @column rank      BIGINT  - rank of the process
-- @column thread    BIGINT  - thread id, or number of the thread in the order of first launches
-- @column ordinal   BIGINT  - number of the launch on its thread, from 0
-- @column call_site VARCHAR - where the launch was made
-- @column stack     VARCHAR - the stack above it, NULL where the file has none
-- @pitfall 22
SELECT
    NULL::BIGINT AS rank,
    NULL::BIGINT AS thread,
    NULL::BIGINT AS ordinal,
    NULL::VARCHAR AS call_site,
    NULL::VARCHAR AS stack
WHERE false;
