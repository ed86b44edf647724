-- cover — what goes on during these stretches of time, and when does nothing?
--
-- The stretches of p_rel (part, start_ns, end_ns) must be disjoint inside a part; those of p_over
-- (part, start_ns, end_ns, label BIGINT) may be nested, and then the outermost counts. Where they
-- cross, a label still tells covered time from free time, and no more. Rows that cover nothing are
-- ignored.

-- iv_cover(p_rel, p_over) -> part, stretch_ns, start_ns, end_ns, label: every stretch, which is
-- known by its part and its start stretch_ns, cut where a row of p_over begins or ends. The pieces
-- of a stretch are disjoint and add up to it; label is NULL where no row of p_over lies.
--
-- One pass in start order knows the running stretch and how far the rows of p_over have reached.
-- A piece is then found at its left end: a row that reaches further than those before it begins
-- one, a stretch that begins below a row begins one, and whatever nobody reaches up to the next
-- row is left over. Few rows of p_over lie near a stretch as a rule, and sorting them is what
-- costs, so the others are dropped first: a row shorter than the grid of 1 ms that meets a stretch
-- has an end in a cell of the grid that the stretch touches.
CREATE OR REPLACE MACRO nsys.iv_cover(p_rel, p_over) AS TABLE
    WITH _stretch AS (
        SELECT part, start_ns, end_ns FROM query_table(p_rel) WHERE end_ns > start_ns
    ),
    _cell AS (
        SELECT DISTINCT
            part,
            unnest(range(start_ns // 1000000, (end_ns - 1) // 1000000 + 1)) AS cell,
        FROM _stretch
    ),
    _near AS (
        SELECT part, start_ns, end_ns, label
        FROM query_table(p_over)
        WHERE end_ns > start_ns
            AND (
                end_ns - start_ns >= 1000000
                OR (part, start_ns // 1000000) IN (SELECT (part, cell) FROM _cell)
                OR (part, end_ns // 1000000) IN (SELECT (part, cell) FROM _cell)
            )
    ),
    _edge AS (
        SELECT part, start_ns, end_ns, start_ns AS stretch_ns, end_ns AS until_ns,
            NULL::BIGINT AS over_ns, NULL::BIGINT AS label
        FROM _stretch
        UNION ALL
        SELECT part, start_ns, end_ns, NULL, NULL, end_ns, label
        FROM _near
    ),
    _swept AS (
        SELECT
            part,
            start_ns,
            end_ns,
            label,
            over_ns IS NOT NULL AS is_over,
            max(stretch_ns) OVER _so_far AS stretch_ns,
            max(until_ns) OVER _so_far AS until_ns,
            coalesce(max(over_ns) OVER _before, start_ns) AS reached_ns,
            lead(start_ns) OVER _in_order AS next_ns,
        FROM _edge
        WINDOW
            _in_order AS (PARTITION BY part ORDER BY start_ns, over_ns DESC NULLS FIRST, label),
            _so_far AS (
                PARTITION BY part ORDER BY start_ns, over_ns DESC NULLS FIRST, label
                ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
            ),
            _before AS (
                PARTITION BY part ORDER BY start_ns, over_ns DESC NULLS FIRST, label
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            )
    ),
    -- the outermost of the rows that reach furthest over the begin of a stretch
    _under AS (
        SELECT w.part, w.start_ns, w.end_ns, w.reached_ns,
            arg_min(o.label, {'start_ns': o.start_ns, 'label': o.label}) AS label
        FROM _swept AS w
        INNER JOIN _near AS o ON o.part = w.part AND o.end_ns = w.reached_ns
        WHERE NOT w.is_over AND w.reached_ns > w.start_ns AND o.start_ns < w.start_ns
        GROUP BY w.part, w.start_ns, w.end_ns, w.reached_ns
    ),
    _piece AS (
        SELECT part, start_ns AS stretch_ns, start_ns, least(reached_ns, end_ns) AS end_ns, label
        FROM _under
        UNION ALL
        SELECT part, stretch_ns, greatest(start_ns, reached_ns), least(end_ns, until_ns), label
        FROM _swept
        WHERE is_over
        UNION ALL
        SELECT
            part,
            stretch_ns,
            CASE WHEN is_over THEN greatest(end_ns, reached_ns) ELSE greatest(start_ns, reached_ns)
            END,
            least(until_ns, coalesce(next_ns, until_ns)),
            NULL,
        FROM _swept
    )
    SELECT part, stretch_ns, start_ns, end_ns, label
    FROM _piece
    WHERE end_ns > start_ns AND start_ns >= stretch_ns;
