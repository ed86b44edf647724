-- segment — into which stretches do the borders of the steady windows cut the report?
--
-- Windows may overlap, so time is summed per stretch between neighbouring borders and a window
-- takes the sum of its stretches. Each device has one stretch before its first border and one
-- after its last, so that nothing falls outside.
--
-- @grain  one row per stretch of a device that has steady windows
-- @reads  nsys.steady
-- @column device   BIGINT -  physical GPU
-- @column segment  BIGINT -  number of the stretch, 0 before the first border
-- @column start_ns BIGINT ns begin, the least integer for the first
-- @column end_ns   BIGINT ns end, the greatest integer for the last
-- @pitfall 1
WITH border AS (
    SELECT device, start_ns AS at_ns FROM nsys.steady
    UNION
    SELECT device, end_ns FROM nsys.steady
    UNION
    SELECT device, -9223372036854775808 FROM nsys.steady
)
SELECT
    device,
    row_number() OVER borders - 1 AS segment,
    at_ns AS start_ns,
    coalesce(lead(at_ns) OVER borders, 9223372036854775807) AS end_ns,
FROM border
WINDOW borders AS (PARTITION BY device ORDER BY at_ns);
