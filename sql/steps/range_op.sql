-- range_op — in which range was each operation launched?
--
-- By its API call: the innermost push/pop range that was open on the calling thread when the call
-- began. Of several calls with one id the outermost is the call. An operation without a call
-- belongs to no range.
--
-- @grain  one row per operation of a device that has steady windows
-- @reads  nsys.op, nsys.call, nsys.range_state, nsys.segment
-- @column op_id     BIGINT  -  the operation
-- @column device    BIGINT  -  its device
-- @column segment   BIGINT  -  stretch of nsys.segment in which it starts
-- @column start_ns  BIGINT  ns its start
-- @column end_ns    BIGINT  ns its end
-- @column kind      INTEGER -  1 compute, 2 comm, 3 copies, sets and waiting kernels
-- @column process   BIGINT  -  its process
-- @column thread    BIGINT  -  thread of the call, NULL without one
-- @column launch_ns BIGINT  ns begin of the call
-- @column range_no  BIGINT  -  innermost range of level 1 to 8, NULL for none
-- @column path_no   BIGINT  -  its path
-- @pitfall 22
WITH placed AS (
    SELECT
        o.op_id,
        o.device,
        s.segment,
        o.start_ns,
        o.end_ns,
        CASE o.role WHEN 'compute' THEN 1 WHEN 'comm' THEN 2 ELSE 3 END AS kind,
        o.process,
        o.correlation_id,
    FROM nsys.op AS o
    ASOF JOIN nsys.segment AS s ON s.device = o.device AND s.start_ns <= o.start_ns
),
launched AS (
    SELECT p.*, c.thread, c.start_ns AS launch_ns, c.end_ns AS launched_ns
    FROM placed AS p
    LEFT JOIN nsys.call AS c
        ON c.correlation_id = p.correlation_id AND c.process = p.process
),
-- Looking for doubled calls costs a pass over all operations: done only where there are any.
has_doubles AS (
    SELECT 1 AS one
    WHERE (SELECT count(*) FROM launched) > (SELECT count(*) FROM placed)
),
doubled AS (
    SELECT l.op_id
    FROM launched AS l, has_doubles
    GROUP BY l.op_id
    HAVING count(*) > 1
),
single AS (
    SELECT * FROM launched WHERE op_id NOT IN (SELECT op_id FROM doubled)
    UNION ALL
    SELECT l.*
    FROM launched AS l
    INNER JOIN doubled AS d ON d.op_id = l.op_id
    QUALIFY row_number() OVER (
        PARTITION BY l.op_id ORDER BY l.launch_ns, l.launched_ns DESC
    ) = 1
)
SELECT l.op_id, l.device, l.segment, l.start_ns, l.end_ns, l.kind, l.process, l.thread,
    l.launch_ns, r.range_no, r.path_no
FROM single AS l
ASOF LEFT JOIN nsys.range_state AS r ON r.thread = l.thread AND r.start_ns <= l.launch_ns;
