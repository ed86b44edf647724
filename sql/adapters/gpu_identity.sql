-- gpu_identity — which board is which, without its identifier?
--
-- The UUID of a board is not shown; the first digits of its hash tell boards apart just as well,
-- also between reports.
--
-- @grain    one row per GPU
-- @optional TARGET_INFO_GPU
-- @optional TARGET_INFO_GPU.id BIGINT
-- @optional TARGET_INFO_GPU.uuid VARCHAR
-- @materialize
-- @column   gpu_id BIGINT - physical GPU, as device_map names it
-- @column   board VARCHAR - first 12 digits of the SHA-256 of the board's UUID
SELECT
    g."id" AS gpu_id,
    left(sha256(g."uuid"), 12) AS board
FROM trace."TARGET_INFO_GPU" AS g;
