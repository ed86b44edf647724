-- range_nest — which ranges were open on each thread, and inside which others?
--
-- Push/pop ranges of a thread are nested, so a walk over their starts and ends in time order
-- knows them by their depth alone: the range that is open at depth d is the one that was last
-- opened there. Of starts at one time the longest comes first (of equal ranges the earlier row),
-- ends come before starts, and a range of no length opens nothing. There is no recursion:
-- thousands of levels cost no more than one.
--
-- The outermost eight levels are told apart. A deeper range belongs to the range of level 8 that
-- it lies in. An ancestor is packed into one number that grows along the walk, so that a running
-- maximum finds it: number of the range << 24, number of its name below. The walk goes from thread
-- to thread without a partition for each, which takes many times as long (see iv_busy): a thread
-- leaves nothing open, and what it numbered lies below all numbers of the next.
--
-- A range without an end was open when the report ended, and ends there.
--
-- @grain  one row per start and end of a push/pop range; none for ends of ranges of no length
-- @reads  nsys.nvtx, nsys.range_name, nsys.op
-- @column thread    BIGINT  -  globalTid of the thread
-- @column process   BIGINT  -  its process
-- @column at_ns     BIGINT  ns time of the start or end
-- @column next_ns   BIGINT  ns time of the next one of the thread, NULL for the last
-- @column kind      INTEGER -  0 end, 1 start, 2 start of a range of no length
-- @column range_no  BIGINT  -  number of the range, in the order of thread and start
-- @column end_ns    BIGINT  ns end of the range
-- @column depth     BIGINT  -  of a start: depth of the range, from 1; of an end: of what stays open
-- @column level_1   BIGINT  -  range at this depth, packed, where depth reaches so far
-- @column level_2   BIGINT  -
-- @column level_3   BIGINT  -
-- @column level_4   BIGINT  -
-- @column level_5   BIGINT  -
-- @column level_6   BIGINT  -
-- @column level_7   BIGINT  -
-- @column level_8   BIGINT  -
WITH open_until AS (
    SELECT greatest(
        (SELECT max(greatest(start_ns, coalesce(end_ns, start_ns))) FROM nsys.nvtx
        WHERE event_type IN (59, 70)),
        (SELECT max(end_ns) FROM nsys.op)
    ) AS end_ns
),
numbered AS (
    SELECT
        n.thread,
        n.process,
        n.start_ns,
        coalesce(n.end_ns, u.end_ns) AS end_ns,
        row_number() OVER (
            ORDER BY n.thread, n.start_ns, coalesce(n.end_ns, u.end_ns) DESC, n.row_id
        ) AS range_no,
        m.name_no,
    FROM nsys.nvtx AS n
    INNER JOIN nsys.range_name AS m ON m.stem = nsys.range_stem(n.text)
    CROSS JOIN open_until AS u
    WHERE n.event_type IN (59, 70)
        AND n.thread IS NOT NULL
        AND coalesce(n.end_ns, u.end_ns) >= n.start_ns
),
step AS (
    SELECT
        thread,
        process,
        start_ns AS at_ns,
        CASE WHEN end_ns > start_ns THEN 1 ELSE 2 END AS kind,
        range_no,
        end_ns,
        range_no * 16777216 + name_no AS packed,
        CASE WHEN end_ns > start_ns THEN 1 ELSE 0 END AS opened,
    FROM numbered
    UNION ALL
    SELECT thread, process, end_ns, 0, range_no, end_ns, NULL, -1
    FROM numbered
    WHERE end_ns > start_ns
),
deep AS (
    SELECT
        *,
        (sum(opened) OVER (
            ORDER BY thread, at_ns, kind, range_no
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ))::BIGINT + CASE WHEN kind = 2 THEN 1 ELSE 0 END AS depth,
    FROM step
),
-- a range of no length is never an ancestor
walked AS (
    SELECT
        *,
        CASE WHEN lead(thread) OVER in_order = thread THEN lead(at_ns) OVER in_order END AS next_ns,
        max(CASE WHEN kind = 1 AND depth = 1 THEN packed END) OVER so_far AS last_1,
        max(CASE WHEN kind = 1 AND depth = 2 THEN packed END) OVER so_far AS last_2,
        max(CASE WHEN kind = 1 AND depth = 3 THEN packed END) OVER so_far AS last_3,
        max(CASE WHEN kind = 1 AND depth = 4 THEN packed END) OVER so_far AS last_4,
        max(CASE WHEN kind = 1 AND depth = 5 THEN packed END) OVER so_far AS last_5,
        max(CASE WHEN kind = 1 AND depth = 6 THEN packed END) OVER so_far AS last_6,
        max(CASE WHEN kind = 1 AND depth = 7 THEN packed END) OVER so_far AS last_7,
        max(CASE WHEN kind = 1 AND depth = 8 THEN packed END) OVER so_far AS last_8,
    FROM deep
    WINDOW
        in_order AS (ORDER BY thread, at_ns, kind, range_no),
        so_far AS (
            ORDER BY thread, at_ns, kind, range_no
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        )
)
SELECT
    thread,
    process,
    at_ns,
    next_ns,
    kind,
    range_no,
    end_ns,
    depth,
    CASE WHEN depth = 1 AND kind = 2 THEN packed WHEN depth >= 1 THEN last_1 END AS level_1,
    CASE WHEN depth = 2 AND kind = 2 THEN packed WHEN depth >= 2 THEN last_2 END AS level_2,
    CASE WHEN depth = 3 AND kind = 2 THEN packed WHEN depth >= 3 THEN last_3 END AS level_3,
    CASE WHEN depth = 4 AND kind = 2 THEN packed WHEN depth >= 4 THEN last_4 END AS level_4,
    CASE WHEN depth = 5 AND kind = 2 THEN packed WHEN depth >= 5 THEN last_5 END AS level_5,
    CASE WHEN depth = 6 AND kind = 2 THEN packed WHEN depth >= 6 THEN last_6 END AS level_6,
    CASE WHEN depth = 7 AND kind = 2 THEN packed WHEN depth >= 7 THEN last_7 END AS level_7,
    CASE WHEN depth = 8 AND kind = 2 THEN packed WHEN depth >= 8 THEN last_8 END AS level_8,
FROM walked;
