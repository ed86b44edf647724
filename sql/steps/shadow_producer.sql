-- shadow_producer — which operations ran anyway while the host was late with the next kernel?
--
-- The producer of that kernel was still running, so the launch could have come earlier and changed
-- nothing. Often the host itself waited for it: a synchronous copy, or a synchronising call behind
-- a collective. Whole gaps that touch a steady window, not clipped: only shares are read from here.
--
-- @grain  one row per device and kind of producer
-- @reads  nsys.gap_cut, nsys.segment, nsys.window_segment, nsys.stream_item, nsys.op_name,
--         nsys.copy_op
-- @column device      BIGINT  -  physical GPU
-- @column producer    VARCHAR -  class and collective, or direction of the copy
-- @column shadowed_ns BIGINT  ns launch-starved time in which it ran
-- @pitfall 7
WITH in_window AS (
    SELECT DISTINCT device, segment FROM nsys.window_segment
),
shadowed AS NOT MATERIALIZED (
    SELECT device, start_ns, segment AS end_segment, producer_id, shadowed_ns
    FROM nsys.gap_cut
    WHERE shadowed_ns > 0
),
gap AS (
    SELECT device, producer_id, shadowed_ns
    FROM nsys.iv_place('shadowed', 'nsys.segment')
    WHERE (device, segment) IN (SELECT (device, segment) FROM in_window)
        OR (device, end_segment) IN (SELECT (device, segment) FROM in_window)
)
SELECT
    g.device,
    coalesce(
        CASE WHEN n.role = 'memcpy' THEN 'copy ' || m.direction END,
        concat_ws(' ', n.class, n.collective)
    )
    || CASE WHEN o.device <> g.device THEN ' of another device' ELSE '' END AS producer,
    sum(g.shadowed_ns)::BIGINT AS shadowed_ns,
FROM gap AS g
INNER JOIN nsys.stream_item AS o ON o.item_id = g.producer_id
INNER JOIN nsys.op_name AS n ON n.name_id = o.name_id
LEFT JOIN nsys.copy_op AS m ON m.op_id = g.producer_id
GROUP BY g.device, producer;
