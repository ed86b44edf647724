-- anchor_choice — which anchor does auto take, or why does it take none?
--
-- The best plausible candidate is checked against the best one of another kind that recurs
-- through at least four fifths of its time. The two agree when their step times differ by no more
-- than 2 %, or by a whole multiple up to 64 within 2 % where the finer one has that many starts
-- in nine of ten periods of the coarser one. Where every period of the coarser one holds exactly
-- one start of the finer one, the means of those periods may stand in for the medians, which in a
-- short report with uneven steps pick different steps.
--
-- @grain   one row
-- @reads   nsys.anchor_candidate, nsys.anchor_span, nsys.drive
-- @column  status         VARCHAR  -  chosen, ambiguous or none
-- @column  kind           VARCHAR  -  kind of the chosen anchor, or NULL
-- @column  pattern        VARCHAR  -  its pattern
-- @column  per_iteration  BIGINT   -  its occurrences per iteration
-- @column  rival_kind     VARCHAR  -  kind of the candidate it was checked against, or NULL
-- @column  rival_pattern  VARCHAR  -  pattern of that candidate
-- @column  message        VARCHAR  -  what was decided, in one line
WITH candidate AS (
    SELECT
        c.kind,
        c.pattern,
        any_value(c.per_iteration) AS per_iteration,
        any_value(c.step_ns) AS step_ns,
        any_value(c.rank) AS rank,
        any_value(c.is_plausible) AS is_plausible,
        any_value(c.is_check) AS is_check,
        sum(c.count)::BIGINT AS window_count,
        min(c.first_ns) AS first_ns,
        max(c.last_ns) AS last_ns,
        c.kind || ':'
        -- A name can be as long as the program likes; a message is one line.
        || CASE
            WHEN length(c.pattern) <= 160 THEN c.pattern
            ELSE left(c.pattern, 120) || '...' || right(c.pattern, 30)
        END
        || CASE
            WHEN any_value(c.per_iteration) > 1
                THEN ' (--per-iteration ' || any_value(c.per_iteration) || ')'
            ELSE ''
        END
        || ' every ' || nsys.duration_text(any_value(c.step_ns)) AS text,
        -- The option as a shell wants it, with the whole name: one with its middle cut out would
        -- be another anchor.
        CASE
            WHEN length(c.pattern) <= 2000
                THEN ', such as --anchor '''
                    || replace(c.kind || ':' || c.pattern, '''', '''\''''') || ''''
                    || CASE
                        WHEN any_value(c.per_iteration) > 1
                            THEN ' --per-iteration ' || any_value(c.per_iteration)
                        ELSE ''
                    END
            ELSE ''
        END AS option
    FROM nsys.anchor_candidate AS c
    GROUP BY c.kind, c.pattern
),
best AS (
    SELECT c.*
    FROM candidate AS c
    WHERE c.is_plausible
    ORDER BY c.rank
    LIMIT 1
),
rival AS (
    SELECT c.*
    FROM candidate AS c
    INNER JOIN best AS b ON c.kind <> b.kind
    WHERE
        c.is_check
        -- A kernel comes late in the first step, and its last occurrence opens one without end.
        AND 5 * (
            least(c.last_ns + c.step_ns, b.last_ns)
            - greatest(c.first_ns - c.step_ns // 2, b.first_ns)
        ) >= 4 * (b.last_ns - b.first_ns)
    ORDER BY c.rank
    LIMIT 1
),
pair AS (
    SELECT
        CASE WHEN b.step_ns >= r.step_ns THEN b.kind ELSE r.kind END AS coarse_kind,
        CASE WHEN b.step_ns >= r.step_ns THEN b.pattern ELSE r.pattern END AS coarse_pattern,
        CASE WHEN b.step_ns >= r.step_ns THEN r.kind ELSE b.kind END AS fine_kind,
        CASE WHEN b.step_ns >= r.step_ns THEN r.pattern ELSE b.pattern END AS fine_pattern,
        greatest(b.step_ns, r.step_ns) AS coarse_ns,
        least(b.step_ns, r.step_ns) AS fine_ns,
        greatest(b.first_ns, r.first_ns) AS first_ns,
        least(b.last_ns, r.last_ns) AS last_ns,
        round(greatest(b.step_ns, r.step_ns) / least(b.step_ns, r.step_ns))::BIGINT AS multiple
    FROM best AS b
    CROSS JOIN rival AS r
),
coarse_period AS (
    SELECT
        s.device,
        s.start_ns,
        lead(s.start_ns) OVER (PARTITION BY s.device ORDER BY s.start_ns) AS next_ns
    FROM (
        SELECT DISTINCT
            a.device,
            a.start_ns
        FROM nsys.anchor_span AS a
        INNER JOIN pair AS p ON a.kind = p.coarse_kind AND a.pattern = p.coarse_pattern
    ) AS s
),
fine_start AS (
    SELECT
        c.device,
        c.start_ns,
        count(*) AS fine_count,
        min(s.start_ns) AS fine_ns
    FROM nsys.anchor_span AS s
    INNER JOIN pair AS p ON s.kind = p.fine_kind AND s.pattern = p.fine_pattern
    ASOF INNER JOIN coarse_period AS c ON s.device = c.device AND s.start_ns >= c.start_ns
    GROUP BY c.device, c.start_ns
),
-- Only periods of the time that both span: one of the two may have been captured longer.
counted AS (
    SELECT
        c.device,
        c.start_ns,
        coalesce(f.fine_count, 0) AS fine_count,
        f.fine_ns
    FROM coarse_period AS c
    INNER JOIN pair AS p ON c.start_ns >= p.first_ns AND c.next_ns <= p.last_ns
    LEFT JOIN fine_start AS f ON c.device = f.device AND c.start_ns = f.start_ns
),
stable AS (
    SELECT
        sum(c.multiples) >= 0.9 * sum(c.periods) AS is_multiple,
        bool_and(
            c.periods >= 2
            AND c.periods = c.singles
            AND 50 * abs(c.coarse_span_ns - c.fine_span_ns)
            <= least(c.coarse_span_ns, c.fine_span_ns)
        ) AS is_one_to_one
    FROM (
        SELECT
            c.device,
            count(*) AS periods,
            count(*) FILTER (c.fine_count = p.multiple) AS multiples,
            count(*) FILTER (c.fine_count = 1) AS singles,
            max(c.start_ns) - min(c.start_ns) AS coarse_span_ns,
            max(c.fine_ns) - min(c.fine_ns) AS fine_span_ns
        FROM counted AS c
        CROSS JOIN pair AS p
        GROUP BY c.device
    ) AS c
),
verdict AS (
    SELECT
        coalesce(s.is_one_to_one, false)
        OR (
            p.multiple <= 64
            AND 50 * abs(p.coarse_ns - p.multiple * p.fine_ns) <= p.multiple * p.fine_ns
            AND (p.multiple = 1 OR coalesce(s.is_multiple, false))
        ) AS is_agreed
    FROM pair AS p
    CROSS JOIN stable AS s
),
listed AS (
    SELECT
        count(*) AS candidates,
        (SELECT count(*) FROM nsys.drive AS d) AS devices,
        string_agg(c.text, ', ' ORDER BY c.rank) FILTER (c.rank <= 3) AS text,
        arg_min(c.option, c.rank) AS option
    FROM candidate AS c
)
SELECT
    CASE
        WHEN b.kind IS NULL THEN 'none'
        WHEN coalesce(v.is_agreed, true) THEN 'chosen'
        ELSE 'ambiguous'
    END AS status,
    CASE WHEN coalesce(v.is_agreed, true) THEN b.kind END AS kind,
    CASE WHEN coalesce(v.is_agreed, true) THEN b.pattern END AS pattern,
    CASE WHEN coalesce(v.is_agreed, true) THEN b.per_iteration END AS per_iteration,
    r.kind AS rival_kind,
    r.pattern AS rival_pattern,
    CASE
        WHEN b.kind IS NULL AND l.devices = 0
            THEN 'the trace holds no device operation, so there is nothing to measure in iterations'
        WHEN b.kind IS NULL AND l.candidates = 0
            THEN 'no candidate anchor: no NVTX range and no kernel recurs; pass one with --anchor'
        WHEN b.kind IS NULL
            THEN 'no candidate anchor is trustworthy: ' || l.text || '; pass one with --anchor'
                || l.option
        WHEN r.kind IS NULL THEN b.text || ', not cross-checked'
        WHEN v.is_agreed THEN b.text || ', agrees with ' || r.text
        ELSE 'candidate anchors disagree: ' || b.text || ', ' || r.text
            || '; pass one with --anchor' || b.option
    END AS message
FROM listed AS l
LEFT JOIN best AS b ON true
LEFT JOIN rival AS r ON true
LEFT JOIN verdict AS v ON true;
