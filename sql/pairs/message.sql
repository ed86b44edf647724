-- message — how large are the messages of the collectives of each side?
--
-- As far as NVTX payloads of NCCL tell: the mean over all operations in steady windows whose size
-- is known. An operation at the end of an NCCL group has no size of its own.
--
-- @grain  one row per pair, class and type of collective that occurs on both sides
-- @reads  pair.collective
-- @pitfall 5
WITH sized AS (
    SELECT
        pair,
        class || ' ' || collective AS key,
        count(*) FILTER (WHERE side = 'base') AS base_count,
        count(*) FILTER (WHERE side = 'new') AS new_count,
        round(avg(bytes) FILTER (WHERE side = 'base'))::BIGINT AS base_bytes,
        round(avg(bytes) FILTER (WHERE side = 'new'))::BIGINT AS new_bytes,
    FROM pair.collective
    GROUP BY pair, class || ' ' || collective
)
SELECT pair, key, base_bytes, new_bytes
FROM sized
WHERE least(base_count, new_count) > 0;
