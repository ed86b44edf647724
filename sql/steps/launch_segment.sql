-- launch_segment — how many blocks and threads of each kernel start in each stretch?
--
-- What no GPU can launch (a grid or a block of nothing, more than 1024 threads in a block) and a
-- grid of more than 10^12 blocks is not told, and so not counted.
--
-- @grain  one row per device, stretch and name of a kernel that tells its launch
-- @reads  nsys.kernel, nsys.device_map, nsys.segment
-- @column device  BIGINT -     physical GPU
-- @column segment BIGINT -     stretch of nsys.segment
-- @column name_id BIGINT -     name of nsys.op_name
-- @column count   BIGINT count kernels that start in the stretch and tell their launch
-- @column blocks  BIGINT count blocks of their grids
-- @column threads BIGINT count threads of their grids
WITH mapped AS (
    SELECT process_pid, device_ordinal, max(gpu_id) AS gpu_id
    FROM nsys.device_map
    WHERE gpu_id IS NOT NULL
    GROUP BY process_pid, device_ordinal
),
-- both ways to place a row read this: the trace is read once
launched AS MATERIALIZED (
    SELECT
        coalesce(m.gpu_id, k.device_ordinal) AS device,
        coalesce(k.name_id, -4) AS name_id,
        k.start_ns,
        k.grid_x * k.grid_y * k.grid_z AS blocks,
        k.block_x * k.block_y * k.block_z AS block_threads,
    FROM nsys.kernel AS k
    LEFT JOIN mapped AS m
        ON m.process_pid = (k.process & 16777215) AND m.device_ordinal = k.device_ordinal
    WHERE k.end_ns >= k.start_ns
      AND least(k.grid_x, k.grid_y, k.grid_z, k.block_x, k.block_y, k.block_z) >= 1
      -- as DOUBLE: nonsense does not overflow
      AND k.grid_x::DOUBLE * k.grid_y * k.grid_z <= 1e12
      AND k.block_x::DOUBLE * k.block_y * k.block_z <= 1024
),
placed AS (
    FROM nsys.iv_place('launched', 'nsys.segment')
)
SELECT
    device,
    segment,
    name_id,
    count(*) AS count,
    sum(blocks)::BIGINT AS blocks,
    sum(blocks * block_threads)::BIGINT AS threads,
FROM placed
GROUP BY device, segment, name_id;
