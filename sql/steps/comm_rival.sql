-- comm_rival — how long had operations of other roles run at both ends of communication?
--
-- The exposed part of any stretch is its length less what the time covered by other roles grows
-- by over it. Both ends of each piece are put among the operations of other roles, in time order.
-- Of these what is reached beyond all before them adds to the cover; at an end of a piece the
-- cover is the sum so far, less what the longest of them still has to go.
--
-- @grain  one row per piece
-- @reads  nsys.sweep, nsys.comm_piece
-- @column piece_id       BIGINT -  piece of nsys.comm_piece
-- @column rival_start_ns BIGINT ns time covered by other roles until the piece begins
-- @column rival_end_ns   BIGINT ns time covered by other roles until the piece ends
-- @pitfall 1, 7
WITH asked AS (
    SELECT device, role, min(start_ns) AS from_ns, max(end_ns) AS to_ns
    FROM nsys.comm_piece
    GROUP BY device, role
),
-- what each operation reaches beyond all before it: for those beside communication nsys.sweep knows
rival AS (
    SELECT s.device, a.role, s.start_ns, s.end_ns, s.other_until_ns AS reached_ns
    FROM nsys.sweep AS s
    INNER JOIN asked AS a ON a.device = s.device
    WHERE a.role = 'comm'
      AND s.role <> 'comm'
      AND s.end_ns > a.from_ns
      AND s.start_ns < a.to_ns
    UNION ALL
    SELECT
        s.device,
        a.role,
        s.start_ns,
        s.end_ns,
        max(s.end_ns) OVER (
            PARTITION BY s.device, a.role
            ORDER BY s.start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ),
    FROM nsys.sweep AS s
    INNER JOIN asked AS a ON a.device = s.device
    WHERE a.role <> 'comm'
      AND s.role <> a.role
      AND s.end_ns > a.from_ns
      AND s.start_ns < a.to_ns
),
mark AS (
    SELECT device, role, start_ns AS at_ns, NULL::BIGINT AS end_ns, 0 AS added_ns, piece_id
    FROM nsys.comm_piece
    UNION ALL
    SELECT device, role, end_ns, NULL, 0, piece_id
    FROM nsys.comm_piece
    UNION ALL
    SELECT device, role, start_ns, end_ns, greatest(0, end_ns - greatest(start_ns, reached_ns)),
        NULL
    FROM rival
),
-- Ends of pieces come first among what has the same time: they are passed by the same operations,
-- whatever the order of those is.
covered AS (
    SELECT
        piece_id,
        (sum(added_ns) OVER until_here)::BIGINT
        - greatest(0, coalesce(max(end_ns) OVER until_here - at_ns, 0)) AS covered_ns,
    FROM mark
    WINDOW until_here AS (
        PARTITION BY device, role
        ORDER BY at_ns, piece_id NULLS LAST
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    )
)
-- cover only grows, so the lesser of the two is the one at the begin
SELECT
    piece_id,
    min(covered_ns) AS rival_start_ns,
    max(covered_ns) AS rival_end_ns,
FROM covered
WHERE piece_id IS NOT NULL
GROUP BY piece_id;
