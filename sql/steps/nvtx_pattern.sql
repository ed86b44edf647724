-- nvtx_pattern — which anchor patterns recur among the NVTX ranges, and which are worth a look?
--
-- Names like a step come first, then those that span most time. More ranges than 100 000 are
-- operators, not steps.
--
-- @grain   one row per pattern of at least two closed ranges
-- @reads   nsys.nvtx_family
-- @column  pattern   VARCHAR  -   anchor pattern
-- @column  strength  BIGINT   -   how much the name says step, see nsys.nvtx_family
-- @column  left_out  VARCHAR  -   why it is not tried, NULL where it is
WITH family AS (
    SELECT
        pattern,
        min(strength) AS strength,
        sum(range_count) AS range_count,
        sum(range_ns) AS range_ns
    FROM nsys.nvtx_family
    GROUP BY pattern
    -- an empty name cannot be given as an anchor, so none is taken or advised
    HAVING sum(range_count) >= 2 AND pattern <> ''
),
placed AS (
    SELECT
        pattern,
        strength,
        range_count > 100000 AS is_operator,
        row_number() OVER (
            PARTITION BY range_count > 100000
            ORDER BY strength, range_ns DESC, pattern
        ) AS place
    FROM family
)
SELECT
    pattern,
    strength,
    CASE
        WHEN is_operator THEN 'none with over 100 000 ranges'
        WHEN place > 60 THEN 'at most 60'
    END AS left_out
FROM placed;
