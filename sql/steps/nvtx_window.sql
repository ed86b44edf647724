-- nvtx_window — which NVTX ranges match the anchor?
--
-- Push/pop and start/end ranges of any domain, imported ones included. Of matches nested on one
-- thread only the outermost counts. An unclosed range neither contains nor is contained: its end
-- is not its own; of several with the same thread, start and end one is a window all the same. A
-- range that ends before it starts is invalid and takes part in nothing.
--
-- @grain   one row per matching range
-- @reads   nsys.nvtx, nsys.session_end
-- @param   anchor_kind     VARCHAR = ''  kind of the anchor
-- @param   anchor_pattern  VARCHAR = ''  pattern of the anchor
-- @column  row_id       BIGINT   -   row of nsys.nvtx
-- @column  process      BIGINT   -   process that pushed the range
-- @column  thread       BIGINT   -   thread that pushed the range
-- @column  start_ns     BIGINT   ns  start of the range
-- @column  end_ns       BIGINT   ns  recorded end of the range, or NULL
-- @column  is_unclosed  BOOLEAN  -   the range was still open at the end of the session
WITH params AS (
    SELECT
        coalesce(getvariable('anchor_kind')::VARCHAR, '') AS anchor_kind,
        coalesce(getvariable('anchor_pattern')::VARCHAR, '') AS anchor_pattern
),
matching AS (
    SELECT
        n.row_id,
        n.process,
        n.thread,
        n.start_ns,
        n.end_ns,
        nsys.is_unclosed(n.end_ns, s.session_end_ns) AS is_unclosed
    FROM params AS p
    INNER JOIN nsys.nvtx AS n
        ON p.anchor_kind = 'nvtx' AND nsys.matches(n.text, p.anchor_pattern)
    CROSS JOIN nsys.session_end AS s
    WHERE
        n.event_type IN (59, 60, 70, 71)
        AND n.start_ns IS NOT NULL
        AND (n.end_ns IS NULL OR n.end_ns >= n.start_ns)
),
-- In (start, end descending) order whatever contains a range comes before it, so it is nested
-- exactly when an earlier range of its thread ends no earlier than it does.
ordered AS (
    SELECT
        m.*,
        max(m.end_ns) OVER (
            PARTITION BY m.process, m.thread, m.is_unclosed
            ORDER BY m.start_ns, m.end_ns DESC, m.row_id
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reached_ns,
        row_number() OVER (
            PARTITION BY m.process, m.thread, m.is_unclosed, m.start_ns, m.end_ns
            ORDER BY m.row_id
        ) AS place
    FROM matching AS m
)
SELECT
    o.row_id,
    o.process,
    o.thread,
    o.start_ns,
    o.end_ns,
    o.is_unclosed
FROM ordered AS o
WHERE CASE
    WHEN o.is_unclosed THEN o.place = 1
    ELSE o.reached_ns IS NULL OR o.reached_ns < o.end_ns
END;
