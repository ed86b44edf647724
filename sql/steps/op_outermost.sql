-- op_outermost — which of several calls with one id launched each operation?
--
-- The outermost: the one that starts first, of these the one that ends last. Doubled ids are rare
-- and looking for them costs a pass over all operations. So this is empty where there are as many
-- rows as operations, and holds every operation, each once, where there are more.
--
-- @grain  none, or one row per device operation
-- @reads  nsys.op_call, nsys.stream_item
-- @pitfall 22
WITH has_doubles AS (
    SELECT 1 AS one
    WHERE (SELECT count(*) FROM nsys.op_call) > (
        SELECT count(*) FROM nsys.stream_item WHERE kind < 4
    )
)
SELECT o.*,
FROM nsys.op_call AS o, has_doubles
QUALIFY row_number() OVER (
    PARTITION BY o.op_id ORDER BY o.call_start_ns, o.call_end_ns DESC
) = 1;
