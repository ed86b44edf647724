-- nvtx_span — which windows would each NVTX candidate give each device?
--
-- Of the patterns worth a look. Their windows follow the rule of nsys.nvtx_window, for all of them
-- at once.
--
-- @grain   one row per pattern, device, window
-- @reads   nsys.nvtx_pattern, nsys.nvtx_family, nsys.nvtx, nsys.session_end, nsys.drive
-- @column  pattern   VARCHAR  -   anchor pattern
-- @column  strength  BIGINT   -   how much the name says step, see nsys.nvtx_family
-- @column  device    BIGINT   -   device
-- @column  start_ns  BIGINT   ns  start of the window
-- @column  end_ns    BIGINT   ns  end of the window
WITH candidate AS (
    SELECT
        pattern,
        strength
    FROM nsys.nvtx_pattern
    WHERE left_out IS NULL
),
-- A pattern without digits matches a text exactly when it matches the fold of the text, so the
-- families stand in for the ranges.
member AS (
    SELECT DISTINCT
        c.pattern,
        c.strength,
        f.stem
    FROM candidate AS c
    INNER JOIN nsys.nvtx_family AS f
        ON c.pattern = f.pattern OR nsys.matches(f.fold, c.pattern)
),
-- In (start, end descending) order whatever contains a range comes before it.
ordered AS (
    SELECT
        m.pattern,
        m.strength,
        n.process,
        n.start_ns,
        n.end_ns,
        max(n.end_ns) OVER (
            PARTITION BY m.pattern, n.process, n.thread
            ORDER BY n.start_ns, n.end_ns DESC, n.row_id
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reached_ns
    FROM nsys.nvtx AS n
    INNER JOIN member AS m ON nsys.text_stem(n.text) = m.stem
    CROSS JOIN nsys.session_end AS s
    WHERE
        n.event_type IN (59, 60, 70, 71)
        AND n.end_ns >= n.start_ns
        AND NOT nsys.is_unclosed(n.end_ns, s.session_end_ns)
)
SELECT
    o.pattern,
    o.strength,
    d.device,
    o.start_ns,
    o.end_ns
FROM ordered AS o
INNER JOIN nsys.drive AS d ON o.process IS NOT DISTINCT FROM d.process
WHERE o.reached_ns IS NULL OR o.reached_ns < o.end_ns;
