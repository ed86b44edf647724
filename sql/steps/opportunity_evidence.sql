-- opportunity_evidence — on what does the recoverable time of each cause rest?
--
-- Whole gaps that begin in a steady window, not clipped: only shares are read from here.
--
-- @grain  one row per device and cause
-- @reads  nsys.gap_cut, nsys.blocking_part, nsys.window_segment, nsys.segment,
--         nsys.stream_item, nsys.op_name, nsys.copy_op
-- @param  stall_ms DOUBLE = 1 [0, 1000000000]  a launch-starved gap this long is a pause of the
--     host
-- @column device      BIGINT  -  physical GPU
-- @column cause       VARCHAR -  launch or blocking
-- @column class       VARCHAR -  class of the operation to blame, `launch` for launch-starved
-- @column detail      VARCHAR -  type of the collective, direction of the copy; NULL neither
-- @column gaps        BIGINT  -  gaps with such time
-- @column total_ns    BIGINT  ns such time
-- @column certain_ns  BIGINT  ns of it with every dependency and the launch known
-- @column inferred_ns BIGINT  ns of it that rests on pairs of record and wait that were inferred
-- @column long_ns     BIGINT  ns of it in gaps that lack it for stall_ms or more
-- @column longest_ns  BIGINT  ns most of it in one gap
-- @pitfall 8, 21
WITH params AS (
    SELECT coalesce(getvariable('stall_ms'), 1)::DOUBLE * 1e6 AS stall_ns
),
in_window AS (
    SELECT DISTINCT device, segment FROM nsys.window_segment
),
gap AS (
    SELECT c.device, c.start_ns, c.op_id, c.issued_ns - c.start_ns - c.shadowed_ns AS starved_ns,
        c.evidence
    FROM (
        SELECT device, start_ns, op_id, issued_ns, shadowed_ns, evidence
        FROM nsys.gap_cut
        WHERE issued_ns > start_ns OR unblocked_ns > issued_ns
    ) AS c
    ASOF JOIN nsys.segment AS s ON s.device = c.device AND s.start_ns <= c.start_ns
    SEMI JOIN in_window AS w ON w.device = s.device AND w.segment = s.segment
),
piece AS (
    SELECT
        device,
        'launch' AS cause,
        'launch' AS class,
        NULL AS detail,
        starved_ns AS length_ns,
        -- nothing before it on its stream is as certain as a known producer
        evidence IN ('resolved', 'none') AS is_certain,
        evidence = 'inferred' AS is_inferred,
    FROM gap
    WHERE starved_ns > 0
    UNION ALL
    SELECT
        g.device,
        'blocking',
        n.class,
        CASE WHEN n.role = 'memcpy' THEN c.direction ELSE n.collective END,
        p.end_ns - p.start_ns,
        g.evidence = 'resolved',
        g.evidence = 'inferred',
    FROM nsys.blocking_part AS p
    INNER JOIN gap AS g ON g.device = p.device AND g.start_ns = p.gap_start_ns
    INNER JOIN nsys.stream_item AS o ON o.item_id = p.op_id
    LEFT JOIN nsys.op_name AS n ON n.name_id = o.name_id
    LEFT JOIN nsys.copy_op AS c ON c.op_id = p.op_id
)
SELECT
    e.device,
    e.cause,
    e.class,
    e.detail,
    count(*) AS gaps,
    sum(e.length_ns)::BIGINT AS total_ns,
    coalesce(sum(e.length_ns) FILTER (WHERE e.is_certain), 0)::BIGINT AS certain_ns,
    coalesce(sum(e.length_ns) FILTER (WHERE e.is_inferred), 0)::BIGINT AS inferred_ns,
    coalesce(sum(e.length_ns) FILTER (WHERE e.length_ns >= p.stall_ns), 0)::BIGINT AS long_ns,
    max(e.length_ns) AS longest_ns,
FROM piece AS e
CROSS JOIN params AS p
GROUP BY e.device, e.cause, e.class, e.detail;
