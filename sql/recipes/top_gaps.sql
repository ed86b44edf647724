-- top-gaps — which were the longest times without compute, and what was behind each?
--
-- The longest gaps inside steady iterations of each device, cut to the iteration (a gap over a
-- border stands in each), with the compute operation whose end opens the gap and the one that ends
-- it, the cause, the producer, and what the launching thread did, and in which NVTX ranges, for
-- most of the launch-starved piece; where there is none, the ranges are those at the launch. Time after the last compute of a device is no gap. Recipe gaps lists all of them.
--
-- @grain   one row per device, iteration and gap
-- @reads   nsys.gap_cut, nsys.window_segment, nsys.steady, nsys.segment, nsys.stream_item,
--          nsys.op_name, nsys.outermost_call, nsys.starved_host, nsys.range_state, nsys.range_path
-- @needs   kernel | graph_exec
-- @param   top BIGINT = 20 [1,) gaps to show of each device
-- @column  device BIGINT - physical GPU of the report
-- @column  rank BIGINT - place on its device, 1 the longest
-- @column  iteration BIGINT - ordinal over all windows of the device
-- @column  start_ns BIGINT ns begin of the gap inside the iteration
-- @column  length_ms DOUBLE ms length inside the iteration
-- @column  launch_starved_ms DOUBLE ms the next kernel was not yet launched
-- @column  blocking_ms DOUBLE ms launched, and its producer still ran
-- @column  dependency_stalled_ms DOUBLE ms launched, and no producer explains the delay
-- @column  kernel_before VARCHAR - compute operation whose end opens the gap; NULL for the first gap
-- @column  next_kernel VARCHAR - kernel or graph that ends the gap
-- @column  producer VARCHAR - operation that it had to wait for
-- @column  producer_role VARCHAR - role of the producer
-- @column  host_activity VARCHAR - what the launching thread did for most of launch_starved
-- @column  host_function VARCHAR - call that it was in, NULL for host_code
-- @column  nvtx_path VARCHAR - push/pop ranges open on that thread meanwhile, else at the launch
-- @column  evidence VARCHAR - no_launch, graph, unresolved, inferred, resolved or none
-- @invariant pieces_add_up abs(launch_starved_ms + blocking_ms + dependency_stalled_ms - length_ms) < 1e-6
-- @pitfall 7, 8, 11
WITH params AS (
    SELECT coalesce(getvariable('top')::BIGINT, 20) AS row_limit
),
inside AS (
    SELECT DISTINCT device, segment FROM nsys.window_segment
),
-- No shorter gap can be among those asked for: this spares to sort all of them. DuckDB keeps less
-- than a million greatest values.
bound AS (
    SELECT
        c.device,
        CASE
            WHEN any_value(p.row_limit) < 1000000
                THEN list_min(max(c.end_ns - c.start_ns, least(p.row_limit, 999999)))
            ELSE 0
        END AS length_ns,
    FROM nsys.gap_cut AS c
    CROSS JOIN params AS p
    INNER JOIN inside AS i ON i.device = c.device AND i.segment = c.segment
    GROUP BY c.device
),
-- A gap between two borders has one length in all its windows, so of these the longest suffice;
-- gaps over a border are few.
candidate AS (
    SELECT c.*
    FROM nsys.gap_cut AS c
    LEFT JOIN bound AS b ON b.device = c.device
    LEFT JOIN inside AS i ON i.device = c.device AND i.segment = c.segment
    INNER JOIN nsys.segment AS s ON s.device = c.device AND s.segment = c.segment
    WHERE c.start_ns < s.start_ns
        OR (i.segment IS NOT NULL AND c.end_ns - c.start_ns >= b.length_ns)
),
-- the windows of a gap are those of the stretches from the one it begins in to its last
touched AS (
    SELECT
        c.device,
        c.start_ns,
        unnest(range(a.segment, z.segment + 1)) AS segment,
    FROM candidate AS c
    ASOF JOIN nsys.segment AS a ON a.device = c.device AND a.start_ns <= c.start_ns
    ASOF JOIN nsys.segment AS z ON z.device = c.device AND z.start_ns < c.end_ns
),
shared AS (
    SELECT DISTINCT t.device, t.start_ns, w.iteration
    FROM touched AS t
    INNER JOIN nsys.window_segment AS w ON w.device = t.device AND w.segment = t.segment
),
clipped AS (
    SELECT c.*, w.iteration, w.start_ns AS window_start_ns, w.end_ns AS window_end_ns
    FROM shared AS s
    INNER JOIN candidate AS c ON c.device = s.device AND c.start_ns = s.start_ns
    INNER JOIN nsys.steady AS w ON w.device = s.device AND w.iteration = s.iteration
),
ranked AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY device
            ORDER BY
                least(end_ns, window_end_ns) - greatest(start_ns, window_start_ns) DESC,
                start_ns,
                iteration
        ) AS rank,
    FROM clipped
    QUALIFY rank <= (SELECT row_limit FROM params)
),
opener AS (
    SELECT r.device, r.start_ns,
        arg_min(
            o.name_id,
            (coalesce(o.correlation_id, 9223372036854775807), o.start_ns, o.name_id, o.item_id)
        ) AS name_id
    FROM (SELECT DISTINCT device, start_ns FROM ranked) AS r
    INNER JOIN nsys.stream_item AS o ON o.end_ns = r.start_ns AND o.device = r.device
    INNER JOIN nsys.op_name AS n ON n.name_id = o.name_id
    WHERE n.role = 'compute' AND o.end_ns > o.start_ns
    GROUP BY r.device, r.start_ns
),
-- the kernels and their producers
near AS (
    SELECT o.item_id, o.name_id, o.process, o.correlation_id
    FROM nsys.stream_item AS o
    INNER JOIN (
        SELECT op_id FROM ranked
        UNION
        SELECT producer_id FROM ranked WHERE producer_id IS NOT NULL
    ) AS r ON r.op_id = o.item_id
),
host AS (
    SELECT r.device, r.rank, h.activity, h.name, h.path_no, sum(h.end_ns - h.start_ns) AS host_ns
    FROM ranked AS r
    INNER JOIN nsys.starved_host AS h
        ON h.device = r.device
        AND h.gap_start_ns = r.start_ns
        AND h.start_ns >= r.window_start_ns
        AND h.end_ns <= r.window_end_ns
    GROUP BY r.device, r.rank, h.activity, h.name, h.path_no
    QUALIFY row_number() OVER (
        PARTITION BY r.device, r.rank ORDER BY host_ns DESC, h.activity, h.name, h.path_no
    ) = 1
),
caller AS (
    SELECT r.device, r.rank, r.call_start_ns, c.thread
    FROM ranked AS r
    INNER JOIN near AS o ON o.item_id = r.op_id
    INNER JOIN nsys.outermost_call AS c
        ON c.correlation_id = o.correlation_id AND c.process = o.process
),
launched AS (
    SELECT c.device, c.rank, p.path
    FROM caller AS c
    ASOF JOIN nsys.range_state AS s ON s.thread = c.thread AND s.start_ns <= c.call_start_ns
    INNER JOIN nsys.range_path AS p ON p.path_no = s.path_no
)
SELECT
    r.device,
    r.rank,
    r.iteration,
    greatest(r.start_ns, r.window_start_ns) AS start_ns,
    (least(r.end_ns, r.window_end_ns) - greatest(r.start_ns, r.window_start_ns)) / 1e6
        AS length_ms,
    greatest(
        0, least(r.issued_ns, r.window_end_ns) - greatest(r.start_ns, r.window_start_ns)
    ) / 1e6 AS launch_starved_ms,
    greatest(
        0, least(r.unblocked_ns, r.window_end_ns) - greatest(r.issued_ns, r.window_start_ns)
    ) / 1e6 AS blocking_ms,
    greatest(
        0, least(r.end_ns, r.window_end_ns) - greatest(r.unblocked_ns, r.window_start_ns)
    ) / 1e6 AS dependency_stalled_ms,
    CASE WHEN b.name_id IS NOT NULL THEN coalesce(bn.name, '(unnamed kernel)') END
        AS kernel_before,
    coalesce(kn.name, '(unnamed kernel)') AS next_kernel,
    CASE WHEN p.item_id IS NOT NULL THEN coalesce(pn.name, '(unnamed kernel)') END AS producer,
    r.producer_role::VARCHAR AS producer_role,
    h.activity AS host_activity,
    h.name AS host_function,
    CASE WHEN h.rank IS NULL THEN l.path ELSE hp.path END AS nvtx_path,
    r.evidence::VARCHAR AS evidence,
FROM ranked AS r
INNER JOIN near AS k ON k.item_id = r.op_id
LEFT JOIN nsys.op_name AS kn ON kn.name_id = k.name_id
LEFT JOIN near AS p ON p.item_id = r.producer_id
LEFT JOIN nsys.op_name AS pn ON pn.name_id = p.name_id
LEFT JOIN opener AS b ON b.device = r.device AND b.start_ns = r.start_ns
LEFT JOIN nsys.op_name AS bn ON bn.name_id = b.name_id
LEFT JOIN host AS h ON h.device = r.device AND h.rank = r.rank
LEFT JOIN nsys.range_path AS hp ON hp.path_no = h.path_no
LEFT JOIN launched AS l ON l.device = r.device AND l.rank = r.rank
ORDER BY r.device, r.rank;
