-- interval — what do these intervals cover, share and leave open?
--
-- Set algebra over half-open intervals [start_ns, end_ns) of integer nanoseconds. A relation is
-- passed by name, as a string: a table, a view, or a CTE of the calling query. It has the columns
-- start_ns and end_ns, and either any columns that `p_part` is computed from (iv_union, iv_gaps,
-- iv_measure) or a column `part` (all others). Sets of different parts never meet. `part` may be
-- of any type, a struct too, and NULL is a part like any other; integers are fastest.
--
-- Rows that cover nothing are ignored: zero length, end before start, a NULL time. Results of
-- iv_union, iv_gaps, iv_intersect and iv_subtract are islands: disjoint, never touching, never
-- empty. Nothing here promises an order of rows.
--
-- Two traps of DuckDB shape the text. Parameters replace columns of the same name, hence p_. A CTE
-- hides a table of that name from query_table(), hence CTEs start with _ and the argument is read
-- in the first one, before any other name exists.
--
--     SELECT * FROM nsys.iv_union('busy', device);
--     WITH comm AS (...), other AS (...) SELECT * FROM nsys.iv_subtract('comm', 'other');
--
-- @pitfall 1, 2

-- iv_union(p_rel, p_part) -> part, start_ns, end_ns: the islands of each part.
-- A row opens an island when it starts after everything before it has ended; where it touches, it
-- does not. What was reached just before the next opening is the end of the island, so one pass
-- over the rows in start order is enough and no island needs to be numbered and grouped.
-- Rows that start together: whichever comes first may open, the others begin inside it.
CREATE OR REPLACE MACRO nsys.iv_union(p_rel, p_part) AS TABLE
    WITH _valid AS (
        SELECT
            p_part AS part,
            start_ns,
            end_ns,
        FROM query_table(p_rel)
        WHERE end_ns > start_ns
    ),
    _reached AS (
        SELECT
            part,
            start_ns,
            max(end_ns) OVER (
                PARTITION BY part
                ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ) AS reached_ns,
            max(end_ns) OVER (PARTITION BY part) AS last_ns,
        FROM _valid
    ),
    _opening AS (
        SELECT
            part,
            start_ns,
            reached_ns,
            last_ns,
        FROM _reached
        WHERE reached_ns IS NULL
            OR start_ns > reached_ns
    )
    SELECT
        part,
        start_ns,
        lead(reached_ns, 1, last_ns) OVER (PARTITION BY part ORDER BY start_ns) AS end_ns,
    FROM _opening;

-- iv_measure(p_rel, p_part) -> part, measure_ns: how long each part is covered (pitfall 1: each
-- nanosecond once, however many rows lie over it). A part without a valid row is absent.
-- Each row adds what it reaches beyond all rows before it.
CREATE OR REPLACE MACRO nsys.iv_measure(p_rel, p_part) AS TABLE
    WITH _valid AS (
        SELECT
            p_part AS part,
            start_ns,
            end_ns,
        FROM query_table(p_rel)
        WHERE end_ns > start_ns
    ),
    _reached AS (
        SELECT
            part,
            start_ns,
            end_ns,
            max(end_ns) OVER (
                PARTITION BY part
                ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ) AS reached_ns,
        FROM _valid
    )
    SELECT
        part,
        -- greatest() skips NULL, and the first row of a part has nothing before it
        sum(greatest(0, end_ns - greatest(start_ns, reached_ns)))::BIGINT AS measure_ns,
    FROM _reached
    GROUP BY part;

-- iv_gaps(p_rel, p_part) -> part, start_ns, end_ns: the holes between the islands of each part.
-- Time before the first and after the last island is no gap; for the holes of a given window
-- subtract the islands from the window.
CREATE OR REPLACE MACRO nsys.iv_gaps(p_rel, p_part) AS TABLE
    WITH _island AS (
        SELECT
            part,
            start_ns,
            end_ns,
        FROM nsys.iv_union(p_rel, p_part)
    ),
    _next AS (
        SELECT
            part,
            end_ns AS start_ns,
            lead(start_ns) OVER (PARTITION BY part ORDER BY start_ns) AS end_ns,
        FROM _island
    )
    SELECT
        part,
        start_ns,
        end_ns,
    FROM _next
    WHERE end_ns IS NOT NULL;

-- iv_intersect(p_a, p_b) -> part, start_ns, end_ns: covered by both, per part.
-- Both sets are made islands, then the edges of all islands are walked in time order with the
-- number of open islands of a and of b. Since islands of one set never touch, every stretch
-- between two edges differs from its neighbours, so stretches need no merging.
CREATE OR REPLACE MACRO nsys.iv_intersect(p_a, p_b) AS TABLE
    WITH _edge AS (
        SELECT part, start_ns AS at_ns, 1 AS a_step, 0 AS b_step FROM nsys.iv_union(p_a, part)
        UNION ALL
        SELECT part, end_ns AS at_ns, -1 AS a_step, 0 AS b_step FROM nsys.iv_union(p_a, part)
        UNION ALL
        SELECT part, start_ns AS at_ns, 0 AS a_step, 1 AS b_step FROM nsys.iv_union(p_b, part)
        UNION ALL
        SELECT part, end_ns AS at_ns, 0 AS a_step, -1 AS b_step FROM nsys.iv_union(p_b, part)
    ),
    _stretch AS (
        SELECT
            part,
            at_ns AS start_ns,
            lead(at_ns) OVER _walk_shared AS end_ns,
            sum(a_step) OVER _walk_shared AS a_open,
            sum(b_step) OVER _walk_shared AS b_open,
        FROM _edge
        WINDOW _walk_shared AS (
            PARTITION BY part
            ORDER BY at_ns ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        )
    )
    SELECT
        part,
        start_ns,
        end_ns,
    FROM _stretch
    WHERE a_open > 0
        AND b_open > 0
        -- edges that fall together make empty stretches with half-counted numbers
        AND end_ns > start_ns;

-- iv_subtract(p_a, p_b) -> part, start_ns, end_ns: covered by a and not by b, per part.
-- The same walk as iv_intersect.
CREATE OR REPLACE MACRO nsys.iv_subtract(p_a, p_b) AS TABLE
    WITH _edge AS (
        SELECT part, start_ns AS at_ns, 1 AS a_step, 0 AS b_step FROM nsys.iv_union(p_a, part)
        UNION ALL
        SELECT part, end_ns AS at_ns, -1 AS a_step, 0 AS b_step FROM nsys.iv_union(p_a, part)
        UNION ALL
        SELECT part, start_ns AS at_ns, 0 AS a_step, 1 AS b_step FROM nsys.iv_union(p_b, part)
        UNION ALL
        SELECT part, end_ns AS at_ns, 0 AS a_step, -1 AS b_step FROM nsys.iv_union(p_b, part)
    ),
    _stretch AS (
        SELECT
            part,
            at_ns AS start_ns,
            lead(at_ns) OVER _walk_left AS end_ns,
            sum(a_step) OVER _walk_left AS a_open,
            sum(b_step) OVER _walk_left AS b_open,
        FROM _edge
        WINDOW _walk_left AS (
            PARTITION BY part
            ORDER BY at_ns ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        )
    )
    SELECT
        part,
        start_ns,
        end_ns,
    FROM _stretch
    WHERE a_open > 0
        AND b_open = 0
        AND end_ns > start_ns;

-- iv_clip(p_rel, p_windows) -> part, window_id, start_ns, end_ns: the rows of p_rel cut to the
-- windows of their part (pitfall 2: cut, never filtered; a row over an edge gives to both sides).
-- p_windows has part, window_id, start_ns, end_ns; windows may overlap, and then a row appears in
-- each. Rows stay as many as they are: clip islands, not raw rows, where only cover matters, for
-- this is an inequality join and long overlapping rows make it slow.
CREATE OR REPLACE MACRO nsys.iv_clip(p_rel, p_windows) AS TABLE
    WITH _pair AS (
        SELECT
            w.part,
            w.window_id,
            r.start_ns,
            r.end_ns,
            w.start_ns AS window_start_ns,
            w.end_ns AS window_end_ns,
        FROM query_table(p_rel) AS r
        INNER JOIN query_table(p_windows) AS w
            ON r.part IS NOT DISTINCT FROM w.part
            AND r.start_ns < w.end_ns
            AND r.end_ns > w.start_ns
        WHERE r.end_ns > r.start_ns
            AND w.end_ns > w.start_ns
    )
    SELECT
        part,
        window_id,
        greatest(start_ns, window_start_ns) AS start_ns,
        least(end_ns, window_end_ns) AS end_ns,
    FROM _pair;

-- iv_measure_in(p_rel, p_windows) -> part, window_id, measure_ns: how long each window is covered;
-- 0 where nothing lies in it. p_windows as for iv_clip; windows may overlap, and windows that are
-- not valid intervals are absent.
-- The cover before an instant is looked up at both ends of a window in a running total over the
-- islands, so the cost does not grow with what a window holds, and no row is ever cut.
CREATE OR REPLACE MACRO nsys.iv_measure_in(p_rel, p_windows) AS TABLE
    WITH _window AS (
        SELECT
            part,
            window_id,
            start_ns,
            end_ns,
        FROM query_table(p_windows)
        WHERE end_ns > start_ns
    ),
    _island AS (
        SELECT
            part,
            start_ns,
            end_ns,
            coalesce(sum(end_ns - start_ns) OVER (
                PARTITION BY part
                ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ), 0)::BIGINT AS before_ns,
        FROM nsys.iv_union(p_rel, part)
    ),
    _edge AS (
        SELECT part, window_id, end_ns AS at_ns, 1 AS step FROM _window
        UNION ALL
        SELECT part, window_id, start_ns AS at_ns, -1 AS step FROM _window
    )
    SELECT
        e.part,
        e.window_id,
        coalesce(sum(
            e.step * (i.before_ns + least(e.at_ns, i.end_ns) - i.start_ns)
        ), 0)::BIGINT AS measure_ns,
    FROM _edge AS e
    ASOF LEFT JOIN _island AS i
        ON e.part IS NOT DISTINCT FROM i.part
        AND e.at_ns >= i.start_ns
    GROUP BY e.part, e.window_id;
