-- gap_outermost — which of several calls with one id launched the kernel of each gap?
--
-- The outermost: the one that starts first, of these the one that ends last. Doubled ids are rare
-- and looking for them costs a pass over all gaps. So this is empty where there are as many rows
-- as gaps, and holds every gap, each once, where there are more.
--
-- @grain  none, or one row per gap of a device
-- @reads  nsys.gap_call, nsys.sweep, nsys.report_start
-- @pitfall 22
WITH has_doubles AS (
    SELECT 1 AS one
    WHERE (SELECT count(*) FROM nsys.gap_call) > (
        SELECT count(*)
        FROM nsys.sweep AS s, nsys.report_start AS r
        WHERE s.role = 'compute' AND s.start_ns > coalesce(s.compute_until_ns, r.start_ns)
    )
)
SELECT g.*,
FROM nsys.gap_call AS g, has_doubles
QUALIFY row_number() OVER (
    PARTITION BY g.op_id ORDER BY g.call_start_ns, g.call_end_ns DESC
) = 1;
