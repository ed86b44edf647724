-- doubled_call — which call launched, where several carry one correlation id?
--
-- A runtime call and the driver call inside it may carry one id. The outermost is the launch: the
-- one that starts first, of these the one that ends last. Doubled ids are rare and sorting every
-- call for them is dear, so the ids are counted in blocks of 64, against the bits that they set:
-- where all bits were set once, the ids of a block are as many as its calls, and no call of it
-- stands here. nsys.outermost_call reads these in place of what they double.
--
-- @grain  one row per process and correlation id of a block in which ids repeat
-- @reads  nsys.call
-- @column start_ns       BIGINT  ns the host enters the call
-- @column end_ns         BIGINT  ns the host leaves it
-- @column process        BIGINT  -  process key
-- @column thread         BIGINT  -  globalTid of the calling thread
-- @column correlation_id BIGINT  -  joins operations and events inside the process
-- @column name_id        BIGINT  -  string id of the function's name
-- @pitfall 22
WITH block AS (
    SELECT process, correlation_id >> 6 AS block
    FROM nsys.call
    WHERE correlation_id IS NOT NULL
    GROUP BY process, correlation_id >> 6
    HAVING count(*) > bit_count(bit_or(1::UBIGINT << (correlation_id & 63)::UBIGINT))
)
SELECT c.start_ns, c.end_ns, c.process, c.thread, c.correlation_id, c.name_id
FROM nsys.call AS c
INNER JOIN block AS b ON b.process = c.process AND b.block = c.correlation_id >> 6
QUALIFY row_number() OVER (
    PARTITION BY c.process, c.correlation_id ORDER BY c.start_ns, c.end_ns DESC, c.thread, c.name_id
) = 1;
