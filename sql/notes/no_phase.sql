-- no_phase — is any NVTX range named like a phase of a step?
--
-- @reads   nsys.range_phase
SELECT
    'no NVTX range is named like a phase of a step (forward, backward, optimizer, data loading and '
    || 'so on), so nothing could be attributed; recipe nvtx shows the ranges there are' AS note
WHERE NOT EXISTS (SELECT 1 FROM nsys.range_phase);
