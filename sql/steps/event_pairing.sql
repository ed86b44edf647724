-- event_pairing — by which id does a wait find the record it waits for?
--
-- eventSyncId names the very record (pitfall 9: event handles are reused, so the handle does
-- not). Old captures have no such id anywhere; there the last record of the handle before the
-- wait is taken, which is what CUDA defines a wait to mean, and the edge counts as inferred.
--
-- @grain  one row
-- @reads  nsys.cuda_event, nsys.sync
-- @column is_inferred BOOLEAN - no row of either table holds an id
-- @pitfall 9
SELECT count(*) = 0 AS is_inferred
FROM (
    SELECT sync_id FROM nsys.cuda_event
    UNION ALL
    SELECT sync_id FROM nsys.sync
) AS id
WHERE sync_id IS NOT NULL AND sync_id NOT IN (0, 4294967295);
