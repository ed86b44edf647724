-- launch — how many calls and launches does each steady window hold?
--
-- Kernels of a CUDA graph have no launch of their own (pitfall 21): graph launches stand apart.
--
-- @grain  one row per device and steady window
-- @reads  nsys.launch_window
-- @column device             BIGINT -     physical GPU of the report
-- @column iteration          BIGINT -     ordinal of the window
-- @column call_count         BIGINT count CUDA API calls that start in the window
-- @column launch_call_count  BIGINT count those that launch a kernel
-- @column graph_launch_count BIGINT count those that launch a CUDA graph
-- @column kernel_count       BIGINT count kernels that start in the window
-- @column unknown_count      BIGINT count kernels without a call in the trace
-- @pitfall 21
SELECT
    device,
    iteration,
    call_count,
    launch_call_count,
    graph_launch_count,
    kernel_count,
    unknown_count,
FROM nsys.launch_window;
