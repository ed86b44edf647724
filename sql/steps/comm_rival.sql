-- comm_rival — how long had operations of other roles run at both ends of communication?
--
-- The exposed part of any stretch is its length less what the time covered by other roles grows
-- by over it. Both ends of each piece are put among the operations of other roles, in time order.
-- Of these what is reached beyond all before them adds to the cover; at an end of a piece the
-- cover is the sum so far, less what the longest of them still has to go.
--
-- @grain  one row per piece
-- @reads  nsys.op, nsys.comm_piece
-- @column piece_id       BIGINT -  piece of nsys.comm_piece
-- @column rival_start_ns BIGINT ns time covered by other roles until the piece begins
-- @column rival_end_ns   BIGINT ns time covered by other roles until the piece ends
-- @pitfall 1, 7
WITH asked AS (
    SELECT device, role, min(start_ns) AS from_ns, max(end_ns) AS to_ns
    FROM nsys.comm_piece
    GROUP BY device, role
),
mark AS (
    SELECT device, role, start_ns AS at_ns, NULL::BIGINT AS end_ns, piece_id
    FROM nsys.comm_piece
    UNION ALL
    SELECT device, role, end_ns, NULL, piece_id
    FROM nsys.comm_piece
    UNION ALL
    SELECT o.device, a.role, o.start_ns, o.end_ns, NULL
    FROM nsys.op AS o
    INNER JOIN asked AS a ON a.device = o.device
    WHERE a.role <> o.role
      AND o.end_ns > o.start_ns
      AND o.end_ns > a.from_ns
      AND o.start_ns < a.to_ns
),
-- Ends of pieces come first among what has the same time, so that both walks have passed the same
-- operations there, whatever the order of those is.
reached AS (
    SELECT
        *,
        max(end_ns) OVER (
            PARTITION BY device, role
            ORDER BY at_ns, piece_id NULLS LAST
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reached_ns,
    FROM mark
),
covered AS (
    SELECT
        piece_id,
        at_ns,
        reached_ns,
        sum(
            CASE
                WHEN piece_id IS NULL
                    THEN greatest(0, end_ns - greatest(at_ns, coalesce(reached_ns, at_ns)))
                ELSE 0
            END
        ) OVER (
            PARTITION BY device, role
            ORDER BY at_ns, piece_id NULLS LAST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS covered_ns,
    FROM reached
)
-- cover only grows, so the lesser of the two is the one at the begin
SELECT
    piece_id,
    min(covered_ns - greatest(0, coalesce(reached_ns - at_ns, 0)))::BIGINT AS rival_start_ns,
    max(covered_ns - greatest(0, coalesce(reached_ns - at_ns, 0)))::BIGINT AS rival_end_ns,
FROM covered
WHERE piece_id IS NOT NULL
GROUP BY piece_id;
