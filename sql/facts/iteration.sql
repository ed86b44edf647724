-- iteration — which windows has each device, and which of them are steady?
--
-- @grain  one row per device and window
-- @reads  nsys.iteration
-- @column device    BIGINT  -  physical GPU of the report
-- @column iteration BIGINT  -  ordinal over all windows of the device
-- @column start_ns  BIGINT  ns start, report clock
-- @column end_ns    BIGINT  ns end, report clock; NULL where it is not known
-- @column status    VARCHAR -  steady, or why the window was dropped
SELECT device, iteration, start_ns, end_ns, status
FROM nsys.iteration;
