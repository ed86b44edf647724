-- content_pair — what does an iteration consist of, side by side?
--
-- What does not occur on a side counts 0 there.
--
-- @grain  one row per pair, kind and key
-- @reads  pair.content
SELECT
    pair,
    kind,
    key,
    any_value(class) AS class,
    coalesce(max(count) FILTER (WHERE side = 'base'), 0) AS base_count,
    coalesce(max(count) FILTER (WHERE side = 'new'), 0) AS new_count,
    coalesce(max(work_ns) FILTER (WHERE side = 'base'), 0)::BIGINT AS base_work_ns,
    coalesce(max(work_ns) FILTER (WHERE side = 'new'), 0)::BIGINT AS new_work_ns,
    coalesce(max(bytes) FILTER (WHERE side = 'base'), 0)::BIGINT AS base_bytes,
    coalesce(max(bytes) FILTER (WHERE side = 'new'), 0)::BIGINT AS new_bytes,
FROM pair.content
GROUP BY pair, kind, key;
