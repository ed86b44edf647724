-- setup — which runs of a history may follow each other in one line?
--
-- Runs with the same number of devices or ranks, the same meaning of an iteration, the same GEMMs
-- and attention kernels per iteration and the same GPU. The digest of all that is the setup of a
-- run.
--
-- @grain  one row: the new side
-- @reads  pair.asked, pair.trace, pair.content, pair.member
WITH fact AS (
    SELECT 'option ' || name AS name, coalesce(value, '-') AS value
    FROM pair.asked
    WHERE side = 'new' AND name IN ('per iteration', 'window')
    UNION ALL
    SELECT 'anchor of ' || pair, anchor FROM pair.trace WHERE side = 'new'
    UNION ALL
    SELECT 'gpu of ' || pair, coalesce(gpu, '-')
    FROM pair.member
    WHERE side = 'new' AND pair IS NOT NULL
    UNION ALL
    SELECT 'kernels of ' || pair || ' ' || key, printf('%g', count)
    FROM pair.content
    WHERE side = 'new'
        AND kind = 'class'
        AND key IN ('gemm', 'fused_gemm_comm', 'attention')
)
SELECT left(sha256(string_agg(name || '=' || value, chr(10) ORDER BY name, value)), 8) AS setup
FROM fact;
