-- busy — for how long do the operations of many sets keep a device busy?

-- iv_axis(p_scale) -> from_ns, length_ns: where each of many parts begins and how long it is, for
-- those who lay them behind each other on one axis of time; no row where they are better partitions.
-- p_scale is one row: parts, how many there are, and from_ns and to_ns, between which all of them lie.
--
-- DuckDB hands a running maximum from row to row only from the first row of what it sorted together,
-- and of many partitions few begin there: it takes ten times as long then. On one axis, as long as
-- all parts together, nothing reaches from one into the next: what lies before a part is below it.
-- Not where that would not fit into 62 bits.
CREATE OR REPLACE MACRO nsys.iv_axis(p_scale) AS TABLE
    SELECT from_ns, to_ns - from_ns + 1 AS length_ns
    FROM query_table(p_scale)
    WHERE parts > 8
        AND from_ns > -4611686018427387904
        AND (to_ns::HUGEINT - from_ns + 1) * parts < 4611686018427387904;

-- iv_reached(p_rel, p_scale) -> the columns of p_rel, reached_ns: how far the rows of its part reach
-- that come before a row in start order. Where none does, that is NULL or lies before the row. p_rel
-- has part (a number from 0 on), start_ns and end_ns; p_scale is as for iv_axis.
CREATE OR REPLACE MACRO nsys.iv_reached(p_rel, p_scale) AS TABLE
    WITH _one_axis AS MATERIALIZED (FROM nsys.iv_axis(p_scale))
    SELECT
        r.*,
        max(r.part * a.length_ns - a.from_ns + r.end_ns) OVER _along_axis
        - (r.part * a.length_ns - a.from_ns) AS reached_ns,
    FROM query_table(p_rel) AS r
    CROSS JOIN _one_axis AS a
    WINDOW _along_axis AS (
        ORDER BY r.part, r.start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
    UNION ALL
    SELECT r.*, max(r.end_ns) OVER _in_part AS reached_ns
    FROM query_table(p_rel) AS r
    WHERE NOT EXISTS (FROM _one_axis)
    WINDOW _in_part AS (
        PARTITION BY r.part ORDER BY r.start_ns
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    );

-- iv_busy(p_rel, p_stretches, p_scale) -> part, device, segment, op_count, borrowed_count, busy_ns,
-- compute_ns, compute_comm_ns: the union of the operations of each part in each stretch (pitfall 1:
-- what overlaps counts once), of its compute alone, and of compute and communication. Operations are
-- counted where they start. p_rel has part (a number from 0 on, of one device), device, segment (in
-- which the operation starts), start_ns, end_ns, kind (1 compute, 2 comm, 3 other) and borrowed (0
-- or 1, added up); p_stretches is as nsys.segment, p_scale as for iv_axis.
--
-- One pass in start order, as in iv_reached: an operation adds what it reaches beyond all before it
-- in its part, once for each of the three.
CREATE OR REPLACE MACRO nsys.iv_busy(p_rel, p_stretches, p_scale) AS TABLE
    WITH _stretch AS (SELECT device, segment, start_ns, end_ns FROM query_table(p_stretches)),
    _axis AS MATERIALIZED (FROM nsys.iv_axis(p_scale)),
    _laid AS (
        SELECT r.*, r.part * a.length_ns - a.from_ns AS shift_ns
        FROM query_table(p_rel) AS r
        CROSS JOIN _axis AS a
    ),
    _reached AS (
        SELECT
            part,
            device,
            segment,
            start_ns,
            end_ns,
            kind,
            borrowed,
            max(end_ns + shift_ns) OVER _laid_before - shift_ns AS busy_until_ns,
            max(CASE WHEN kind = 1 THEN end_ns + shift_ns END) OVER _laid_before - shift_ns
                AS compute_until_ns,
            max(CASE WHEN kind <= 2 THEN end_ns + shift_ns END) OVER _laid_before - shift_ns
                AS compute_comm_until_ns,
        FROM _laid
        WINDOW _laid_before AS (
            ORDER BY part, start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        )
        UNION ALL
        SELECT
            part,
            device,
            segment,
            start_ns,
            end_ns,
            kind,
            borrowed,
            max(end_ns) OVER _part_before,
            max(CASE WHEN kind = 1 THEN end_ns END) OVER _part_before,
            max(CASE WHEN kind <= 2 THEN end_ns END) OVER _part_before,
        FROM query_table(p_rel)
        WHERE NOT EXISTS (FROM _axis)
        WINDOW _part_before AS (
            PARTITION BY part ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        )
    ),
    _cut AS (
        SELECT
            r.part,
            r.device,
            r.segment,
            r.end_ns,
            r.kind,
            r.borrowed,
            s.end_ns AS border_ns,
            -- greatest skips NULLs, and the first of a part has nothing before it
            greatest(r.start_ns, r.busy_until_ns) AS busy_from_ns,
            greatest(r.start_ns, r.compute_until_ns) AS compute_from_ns,
            greatest(r.start_ns, r.compute_comm_until_ns) AS compute_comm_from_ns,
        FROM _reached AS r
        INNER JOIN _stretch AS s ON s.device = r.device AND s.segment = r.segment
    ),
    -- the stretches behind the border that it reaches into
    _crossing AS (
        SELECT c.*, unnest(range(c.segment + 1, z.segment + 1)) AS later
        FROM (SELECT * FROM _cut WHERE end_ns > border_ns) AS c
        ASOF JOIN _stretch AS z ON z.device = c.device AND z.start_ns < c.end_ns
    ),
    _piece AS (
        SELECT
            part,
            device,
            segment,
            1 AS op_count,
            borrowed,
            kind,
            greatest(0, least(end_ns, border_ns) - busy_from_ns) AS busy_ns,
            greatest(0, least(end_ns, border_ns) - compute_from_ns) AS compute_ns,
            greatest(0, least(end_ns, border_ns) - compute_comm_from_ns) AS compute_comm_ns,
        FROM _cut
        UNION ALL
        SELECT
            c.part,
            c.device,
            s.segment,
            0,
            0,
            c.kind,
            greatest(0, least(c.end_ns, s.end_ns) - greatest(c.busy_from_ns, s.start_ns)),
            greatest(0, least(c.end_ns, s.end_ns) - greatest(c.compute_from_ns, s.start_ns)),
            greatest(0, least(c.end_ns, s.end_ns) - greatest(c.compute_comm_from_ns, s.start_ns)),
        FROM _crossing AS c
        INNER JOIN _stretch AS s ON s.device = c.device AND s.segment = c.later
    )
    SELECT
        part,
        device,
        segment,
        sum(op_count)::BIGINT AS op_count,
        sum(borrowed)::BIGINT AS borrowed_count,
        sum(busy_ns)::BIGINT AS busy_ns,
        coalesce(sum(compute_ns) FILTER (WHERE kind = 1), 0)::BIGINT AS compute_ns,
        coalesce(sum(compute_comm_ns) FILTER (WHERE kind <= 2), 0)::BIGINT AS compute_comm_ns,
    FROM _piece
    GROUP BY part, device, segment;
