-- cuda_call — which CUDA API calls were made, read from the trace each time?
--
-- Backtrace copies of a call (event class 67) are not calls, and a call that ends before it starts
-- is invalid. For the few questions that look for one or two names; nsys.call is the copy for the
-- others.
--
-- @grain  one row per CUDA runtime or driver call
-- @reads  nsys.api_call
-- @view
-- @column start_ns       BIGINT ns the host enters the call
-- @column end_ns         BIGINT ns the host leaves it
-- @column process        BIGINT -  process key, globalTid >> 24
-- @column thread         BIGINT -  globalTid of the calling thread
-- @column correlation_id BIGINT -  joins operations and events inside the process
-- @column name_id        BIGINT -  string id of the function's name
SELECT start_ns, end_ns, process, thread, correlation_id, name_id
FROM nsys.api_call
WHERE end_ns >= start_ns AND event_class IS DISTINCT FROM 67;
