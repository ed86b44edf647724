-- op — what ran on which device, when, and what kind of work was it?
--
-- The operations of nsys.stream_item with the class and role of their names. Whatever has a name
-- without a rule, or none at all, is computation (pitfall 20).
--
-- @grain  one row per valid device operation
-- @reads  nsys.stream_item, nsys.op_name
-- @view
-- @narrow
-- @column op_id          BIGINT  -  unique: kind in the bits from 40 on, row of the source below
-- @column kind           ENUM    -  kernel, memcpy, memset or graph
-- @column start_ns       BIGINT  ns start on the device
-- @column end_ns         BIGINT  ns end on the device, never before the start
-- @column device         BIGINT  -  physical GPU of the report, else the CUDA ordinal
-- @column process        BIGINT  -  process key, globalPid >> 24
-- @column context_id     BIGINT  -  CUDA context
-- @column stream_id      BIGINT  -  CUDA stream, unique inside process and context only
-- @column lane           BIGINT  -  context and stream as one number, for sorting
-- @column correlation_id BIGINT  -  joins the API call inside the process
-- @column name_id        BIGINT  -  name of a kernel; -1 memcpy, -2 memset, -3 graph, -4 unnamed
-- @column class          VARCHAR -  class of the taxonomy
-- @column role           ENUM    -  compute, comm, wait, memcpy or memset
-- @column is_node        BOOLEAN -  operation of a CUDA graph, told by its node id
-- @pitfall 20
SELECT
    i.item_id AS op_id,
    CASE i.kind WHEN 0 THEN 'kernel' WHEN 1 THEN 'memcpy' WHEN 2 THEN 'memset' ELSE 'graph' END
        ::ENUM('kernel', 'memcpy', 'memset', 'graph') AS kind,
    i.start_ns,
    i.end_ns,
    i.device,
    i.process,
    i.context_id,
    i.stream_id,
    i.lane,
    i.correlation_id,
    i.name_id,
    n.class,
    n.role_code AS role,
    i.is_node,
FROM nsys.stream_item AS i
LEFT JOIN nsys.op_name AS n ON n.name_id = i.name_id
WHERE i.kind < 4;
