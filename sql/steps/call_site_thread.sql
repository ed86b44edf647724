-- call_site_thread — which thread of the trace is each thread of the call sites?
--
-- Threads are the same where the file names thread ids of the trace (globalTid, or the operating
-- system's). A capture of another run has other ids: it may number its threads from 0 in the order
-- of their first launches, all of them. Counts of launches must agree on every thread that the
-- file names, and ordinals must run from 0 without a gap; else an ordinal would mean another
-- launch, and the driver refuses.
--
-- @grain  one row per thread of the file, of the rank asked for
-- @reads  nsys.call_site, nsys.launch_call
-- @param  rank BIGINT = 0 [0,) rank of this trace in the file
-- @column file_thread       BIGINT  - thread as the file names it
-- @column thread            BIGINT  - globalTid in the trace
-- @column launches_in_file  BIGINT  - launches of the thread in the file
-- @column launches_in_trace BIGINT  - launches of the thread in the trace
-- @column message           VARCHAR - why the two do not fit, else NULL
-- @pitfall 22
WITH params AS (
    SELECT coalesce(getvariable('rank')::BIGINT, 0) AS rank
),
named AS (
    SELECT
        s.thread AS file_thread,
        count(*) AS launches,
        count(DISTINCT s.ordinal) AS ordinals,
        min(s.ordinal) AS first_ordinal,
        max(s.ordinal) AS last_ordinal,
    FROM nsys.call_site AS s
    INNER JOIN params AS p ON p.rank = s.rank
    GROUP BY s.thread
),
traced AS (
    SELECT thread, count(*) AS launches,
        row_number() OVER (ORDER BY min(start_ns), thread) - 1 AS number
    FROM nsys.launch_call
    GROUP BY thread
),
-- one way of naming for the whole file
way AS (
    SELECT
        CASE
            WHEN bool_and(file_thread IN (SELECT thread FROM traced)) THEN 'globalTid'
            WHEN bool_and(file_thread IN (SELECT thread & 16777215 FROM traced)) THEN 'tid'
            WHEN bool_and(file_thread IN (SELECT number FROM traced))
                AND count(*) = (SELECT count(*) FROM traced) THEN 'number'
        END AS way,
    FROM named
),
paired AS (
    SELECT n.*, t.thread, coalesce(t.launches, 0) AS launches_in_trace
    FROM named AS n
    CROSS JOIN way AS w
    LEFT JOIN traced AS t
        ON n.file_thread = CASE w.way
            WHEN 'globalTid' THEN t.thread
            WHEN 'tid' THEN t.thread & 16777215
            WHEN 'number' THEN t.number
        END
)
SELECT
    file_thread,
    thread,
    launches AS launches_in_file,
    launches_in_trace,
    CASE
        WHEN file_thread IS NULL THEN format('{} rows have no integer as thread', launches)
        WHEN thread IS NULL
            THEN format(
                'thread {} makes no launch in the trace, whose threads launch {}', file_thread,
                coalesce(
                    (
                        SELECT string_agg(
                            format('{} (thread {})', launches, thread & 16777215), ', '
                            ORDER BY number
                        )
                        FROM traced
                    ),
                    'nothing'
                )
            )
        WHEN launches <> launches_in_trace
            THEN format(
                'thread {} makes {} launches in the file and {} in the trace', file_thread,
                launches, launches_in_trace
            )
        WHEN ordinals <> launches OR first_ordinal <> 0 OR last_ordinal <> launches - 1
            THEN format(
                'the launch ordinals of thread {} do not count from 0 to {}', file_thread,
                launches - 1
            )
        WHEN count(*) OVER (PARTITION BY file_thread) > 1
            THEN format('thread {} is several threads here: name its globalTid', file_thread)
    END AS message,
FROM paired
UNION ALL
SELECT NULL, NULL, 0, 0,
    format(
        'the file has no rank {}, only {}', p.rank,
        (
            SELECT string_agg(coalesce(rank::VARCHAR, '?'), ', ' ORDER BY rank)
            FROM (SELECT DISTINCT rank FROM nsys.call_site) AS known
        )
    )
FROM params AS p
WHERE EXISTS (SELECT 1 FROM nsys.call_site) AND NOT EXISTS (SELECT 1 FROM named);
