-- place — in which stretch of time does each row start?
--
-- Stretches follow each other without a hole, as in nsys.segment: each begins where the one before
-- it ends. An ASOF join would do, but sorts all rows for it, which are millions against a few
-- hundred stretches.

-- iv_place(p_rel, p_stretches) -> the columns of p_rel, segment, border_ns: the stretch of the same
-- device that has begun last when the row starts, and its end. p_rel has device and start_ns,
-- p_stretches has device, segment, start_ns, end_ns; of one device no two begin together. A row
-- before all stretches of its device is left out, as is one of a device without any.
--
-- Time is cut into cells of a grid, up to sixteen for each stretch, and a row is looked up by its
-- cell: few cells have more than one stretch. Where stretches lie so unevenly that a cell has many
-- (windows of a second in the midst of a report of a year), the rows of that device are sorted
-- after all. As p_rel is read for both, a CTE should be NOT MATERIALIZED.
CREATE OR REPLACE MACRO nsys.iv_place(p_rel, p_stretches) AS TABLE
    WITH _stretch AS (
        SELECT
            device,
            segment,
            start_ns AS from_ns,
            end_ns AS border_ns,
            -- the last instant of the stretch
            coalesce(
                lead(start_ns) OVER (PARTITION BY device ORDER BY start_ns) - 1,
                9223372036854775807
            ) AS last_ns,
        FROM query_table(p_stretches)
    ),
    _extent AS (
        SELECT
            device,
            coalesce(min(from_ns) FILTER (WHERE from_ns > -9223372036854775808), 0) AS min_ns,
            coalesce(max(from_ns) FILTER (WHERE from_ns > -9223372036854775808), 0) AS max_ns,
            count(*) AS stretches,
        FROM _stretch
        GROUP BY device
    ),
    _scale AS (
        SELECT
            *,
            greatest(
                0,
                ceil(log2(greatest(
                    1,
                    (max_ns::DOUBLE - min_ns)
                    / least(16 * stretches, greatest(65536, stretches))
                )))
            )::INTEGER AS shift,
        FROM _extent
    ),
    _cell AS MATERIALIZED (
        SELECT
            s.device,
            s.segment,
            s.from_ns,
            s.border_ns,
            s.last_ns,
            e.shift,
            e.min_ns >> e.shift AS first_cell,
            e.max_ns >> e.shift AS last_cell,
            unnest(generate_series(
                least(greatest(s.from_ns, e.min_ns), e.max_ns) >> e.shift,
                least(greatest(s.last_ns, e.min_ns), e.max_ns) >> e.shift
            )) AS cell,
        FROM _stretch AS s
        INNER JOIN _scale AS e ON e.device = s.device
    ),
    _crowded AS MATERIALIZED (
        SELECT device FROM _cell GROUP BY device, cell HAVING count(*) > 32
    ),
    _grid AS MATERIALIZED (
        SELECT DISTINCT device, shift, first_cell, last_cell
        FROM _cell
        WHERE device NOT IN (FROM _crowded)
    ),
    _gridded AS (
        SELECT r.*, least(greatest(r.start_ns >> g.shift, g.first_cell), g.last_cell) AS _at
        FROM query_table(p_rel) AS r
        INNER JOIN _grid AS g ON g.device = r.device
    )
    SELECT r.* EXCLUDE (_at), c.segment, c.border_ns
    FROM _gridded AS r
    INNER JOIN _cell AS c
        ON c.device = r.device
        AND c.cell = r._at
        AND c.from_ns <= r.start_ns
        AND c.last_ns >= r.start_ns
    UNION ALL
    SELECT r.*, s.segment, s.border_ns
    FROM (FROM query_table(p_rel) SEMI JOIN _crowded USING (device)) AS r
    ASOF JOIN _stretch AS s ON s.device = r.device AND s.from_ns <= r.start_ns;
