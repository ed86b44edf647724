-- call — which CUDA API calls were made?
--
-- A narrow copy of the API table: it serves launch times, graph launches and the begin of the
-- report, and reading it once is cheaper than three visits to the file.
--
-- @grain  one row per CUDA runtime or driver call
-- @reads  nsys.cuda_call
-- @narrow
-- @column start_ns       BIGINT ns the host enters the call
-- @column end_ns         BIGINT ns the host leaves it
-- @column process        BIGINT -  process key, globalTid >> 24
-- @column thread         BIGINT -  globalTid of the calling thread
-- @column correlation_id BIGINT -  joins operations and events inside the process
-- @column name_id        BIGINT -  string id of the function's name
SELECT
    start_ns,
    end_ns,
    process,
    thread,
    correlation_id,
    name_id,
FROM nsys.cuda_call;
