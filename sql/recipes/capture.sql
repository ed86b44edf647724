-- capture — how good is this capture, what is missing from it, and what would bring that?
--
-- One row per fact, with a status: ok, warn (it limits what may be claimed), or missing (it was
-- not captured, or the trace does not tell). Missing is never zero (pitfall 18). Messages of the
-- profiler are told by topic and count, never by their text; users, hosts, paths, command lines
-- and environments are not read. Missing hardware counters are no failure of the workload, and
-- every timing recipe answers without them (pitfall 19). What the profiler recorded about its own
-- activity is listed as such: it is not the slowdown, which recipe slowdown takes from unprofiled
-- steps (pitfall 25).
--
-- @grain   one row per section and item
-- @reads   nsys.capability, nsys.export_info, nsys.capture_info, nsys.system_env, nsys.analysis
-- @reads   nsys.sync
-- @reads   nsys.session_start, nsys.diagnostic, nsys.device_map, nsys.nvtx, nsys.session_end
-- @reads   nsys.overhead, nsys.cuda_overhead, nsys.gpu_metric_info, nsys.control_call
-- @reads   nsys.event_wait, nsys.event_pairing, nsys.capture_row, nsys.capture_launch
-- @reads   nsys.capture_graph, nsys.capture_window, nsys.unseen_wait, nsys.cuda_event
-- @windows optional
-- @column  section VARCHAR - what it is about
-- @column  item VARCHAR - the fact
-- @column  value VARCHAR - its value, NULL where it is unknown
-- @column  status VARCHAR - ok, warn or missing
-- @column  detail VARCHAR - what it means for the numbers
-- @column  remedy VARCHAR - what to do about it
-- @invariant known_status status IN ('ok', 'warn', 'missing')
-- @pitfall 18, 19, 21, 22, 25, 26, 27
WITH
-- ------------------------------------------------------------------ export and capture
told AS (
    SELECT
        (SELECT max(value) FROM nsys.export_info WHERE name = 'EXPORT_PRODUCT_VERSION') AS exporter,
        (SELECT max(value) FROM nsys.export_info WHERE name = 'EXPORT_SCHEMA_VERSION') AS schema,
        (SELECT max(value) FROM nsys.system_env WHERE name = 'CaptureVersion' AND value <> '')
            AS capture,
        (
            SELECT string_agg(DISTINCT value, ', ' ORDER BY value)
            FROM nsys.capture_info
            WHERE name = 'CAPTURE_EVENT_TYPE'
        ) AS event_types,
        (
            SELECT string_agg(DISTINCT value, ', ' ORDER BY value)
            FROM nsys.capture_info
            WHERE name = 'CUDA_GRAPH_TRACE_OPTIONS:MODE'
        ) AS graph_mode,
        (
            SELECT count(*) > 0
            FROM nsys.export_info
            WHERE (contains(name, 'TIME_SHIFT') AND regexp_matches(value, '[1-9]'))
                OR (
                    contains(name, 'TIME_NORMALIZE')
                    AND regexp_matches(lower(value), 'true|yes|[1-9]')
                )
        ) AS is_moved,
        (
            SELECT count(*) > 0
            FROM nsys.export_info
            WHERE name IN ('EXPORT_PARAM_TABLES_TO_EXPORT', 'EXPORT_PARAM_TIMES_TO_EXPORT')
                AND value <> ''
        ) AS is_partial,
        (SELECT count(*) > 0 FROM nsys.export_info) AS has_export_info,
        (SELECT max(duration_ns) FROM nsys.analysis) AS duration_ns,
        (SELECT count(*) FROM nsys.session_start WHERE utc_ns IS NOT NULL) AS session_starts,
),
export_fact AS (
    SELECT 10 AS position, 'export' AS section, 'exporter version' AS item, exporter AS value,
        CASE WHEN exporter IS NULL THEN 'missing' ELSE 'ok' END AS status,
        CASE WHEN exporter IS NULL THEN 'exports before 2022 do not tell; columns are found by name'
            ELSE 'the exporter decides which tables and columns exist' END AS detail,
        NULL AS remedy
    FROM told
    UNION ALL
    SELECT 11, 'export', 'schema version', schema,
        CASE WHEN schema IS NULL THEN 'missing' ELSE 'ok' END,
        'a label only: tables and columns are found by name', NULL
    FROM told
    UNION ALL
    SELECT 12, 'export', 'capture version', capture,
        CASE WHEN capture IS NULL THEN 'missing' ELSE 'ok' END,
        'what was recorded follows the version that captured, not the one that exported', NULL
    FROM told
    UNION ALL
    SELECT 13, 'export', 'recorded event types', event_types,
        CASE WHEN event_types IS NULL THEN 'missing' ELSE 'ok' END,
        'what the capture was told to record; exports before 2023 do not tell', NULL
    FROM told
    UNION ALL
    SELECT 14, 'export', 'partial export', CASE WHEN has_export_info THEN is_partial::VARCHAR END,
        CASE WHEN NOT has_export_info THEN 'missing' WHEN is_partial THEN 'warn' ELSE 'ok' END,
        CASE
            WHEN NOT has_export_info THEN 'the export does not tell its options'
            WHEN is_partial THEN 'only some tables or times were exported: rows that they refer to '
                || 'may be missing'
            ELSE 'no table or time was left out on purpose'
        END,
        CASE WHEN is_partial THEN 'export again without --tables and --times' END
    FROM told
    UNION ALL
    SELECT 15, 'export', 'session length',
        CASE WHEN duration_ns IS NOT NULL THEN format('{:.3f} s', duration_ns / 1e9) END,
        CASE WHEN duration_ns IS NULL THEN 'missing' ELSE 'ok' END,
        CASE WHEN duration_ns IS NULL THEN 'NVTX ranges that were never closed can only be told by '
            || 'a missing end' ELSE 'NVTX ranges that end there were never closed' END, NULL
    FROM told
),
clock_fact AS (
    SELECT 20, 'clock', 'time shift or normalisation',
        CASE WHEN has_export_info THEN is_moved::VARCHAR END,
        CASE WHEN NOT has_export_info THEN 'missing' WHEN is_moved THEN 'warn' ELSE 'ok' END,
        CASE
            WHEN NOT has_export_info THEN 'the export does not tell its options'
            WHEN is_moved THEN 'all times were moved, the session length was not: NVTX ranges that '
                || 'were never closed cannot be told by it'
            ELSE 'times count from the start of the session'
        END,
        CASE WHEN is_moved THEN 'export again without --ts-shift and --ts-normalize' END
    FROM told
    UNION ALL
    SELECT 21, 'clock', 'wall clock of the session start',
        CASE session_starts
            WHEN 0 THEN NULL
            WHEN 1 THEN 'known'
            ELSE session_starts || ' starts'
        END,
        CASE session_starts WHEN 0 THEN 'missing' WHEN 1 THEN 'ok' ELSE 'warn' END,
        CASE session_starts WHEN 0 THEN 'this trace cannot be aligned with other ranks by start'
            WHEN 1 THEN 'ranks of one host can be aligned by it'
            ELSE 'a merged report: nothing ties a start to a process' END, NULL
    FROM told
),
-- ------------------------------------------------------------------ mode
hint AS (
    SELECT
        bool_or(contains(lower(text), 'software instrumented')) AS is_software,
        bool_or(
            regexp_matches(lower(text), 'hardware(-based)? (event )?(system )?trac')
            AND NOT regexp_matches(lower(text), 'not supported|not available|software')
        ) AS is_hardware,
    FROM nsys.diagnostic
),
mode_fact AS (
    SELECT 30, 'mode', 'CUDA instrumentation',
        CASE
            WHEN h.is_software THEN 'software'
            WHEN h.is_hardware OR regexp_matches(lower(t.event_types), 'cuda.?hw|hardware')
                THEN 'hardware'
        END,
        CASE
            WHEN h.is_software OR h.is_hardware
                OR regexp_matches(lower(t.event_types), 'cuda.?hw|hardware') THEN 'ok'
            ELSE 'missing'
        END,
        CASE
            WHEN h.is_software THEN 'the profiler says so; kernels carry its overhead'
            ELSE 'told only where the profiler left a message about it; software is the usual mode'
        END,
        NULL
    FROM told AS t
    CROSS JOIN hint AS h
    UNION ALL
    SELECT 31, 'mode', 'CUDA graph tracing', lower(t.graph_mode),
        CASE
            WHEN t.graph_mode IS NULL THEN 'missing'
            WHEN g.whole_ops + g.blind > 0 THEN 'warn'
            ELSE 'ok'
        END,
        CASE
            WHEN t.graph_mode IS NULL THEN 'the capture does not tell how graphs were traced'
            WHEN contains(lower(t.graph_mode), 'graph')
                THEN 'a graph, where one runs, is one row: what is inside cannot be told'
            ELSE 'operations inside graphs are traced one by one'
                || CASE WHEN g.blind > 0 THEN ', yet some launches are without any' ELSE '' END
        END,
        CASE
            WHEN g.whole_ops + g.blind > 0 AND coalesce(lower(t.graph_mode), '') <> 'node'
                THEN 'nsys profile --cuda-graph-trace=node'
        END
    FROM told AS t
    CROSS JOIN nsys.capture_graph AS g
),
-- ------------------------------------------------------------------ diagnostics
-- a message is told by its topic alone: its text may name users, hosts and paths
sorted_message AS (
    SELECT
        severity,
        text,
        coalesce(
            nullif(
                regexp_extract(text, 'CUDA|NVTX|OS runtime|cuDNN|cuBLAS|MPI|UCX|OpenGL'), ''
            ),
            'other'
        ) AS subject,
    FROM nsys.diagnostic
),
message AS (
    SELECT
        severity,
        CASE
            WHEN regexp_matches(text, 'permission|privilege|not permitted|NVGPUCTRPERM', 'i')
                THEN 'a permission was missing'
            WHEN regexp_matches(text, '^Not all .* events might have been collected')
                THEN 'not all ' || subject || ' events might have been collected'
            WHEN regexp_matches(text, '^No .* events collected')
                THEN 'no ' || subject || ' events collected in a process'
            WHEN regexp_matches(text, 'might have not been started')
                THEN subject || ' tracing might not have been started correctly'
            WHEN
                regexp_matches(
                    text, '\b(lost|dropped|discarded|overflow|incomplete|truncated)\b', 'i'
                )
                THEN 'events lost or incomplete'
            WHEN regexp_matches(text, 'hardware tracing is not supported')
                THEN 'hardware tracing not supported, software used'
            WHEN regexp_matches(text, 'clock|timestamp|synchroni[sz]', 'i')
                THEN 'about clocks or timestamps'
            ELSE 'other messages'
        END AS topic,
    FROM sorted_message
),
diagnosed AS (
    SELECT is_present FROM nsys.capability WHERE relation = 'diagnostic'
),
message_fact AS (
    SELECT 43 - s.severity, 'diagnostics', s.item,
        CASE WHEN d.is_present THEN
            (SELECT count(*) FROM message AS m WHERE m.severity = s.severity)::VARCHAR END,
        CASE
            WHEN NOT d.is_present THEN 'missing'
            WHEN s.severity <> 1
                AND EXISTS (SELECT 1 FROM message AS m WHERE m.severity = s.severity) THEN 'warn'
            ELSE 'ok'
        END,
        CASE WHEN d.is_present THEN 'messages of the profiler about the capture'
            ELSE 'no messages of the profiler here, as in exports before 2024: losses of events '
                || 'go untold' END,
        CASE WHEN NOT d.is_present THEN 'export the report with nsys 2024.5 or newer' END
    FROM diagnosed AS d
    CROSS JOIN (
        VALUES (3, 'errors'), (2, 'warnings'), (1, 'information')
    ) AS s (severity, item)
    UNION ALL
    SELECT 43, 'diagnostics', topic || CASE severity WHEN 3 THEN ' (error)' ELSE ' (warning)' END,
        count(*)::VARCHAR, 'warn',
        CASE
            WHEN topic = 'a permission was missing' THEN 'not a failure of the workload: timing '
                || 'holds, what needed the permission is absent'
            WHEN topic = 'hardware tracing not supported, software used' THEN 'kernels carry the '
                || 'overhead of software tracing'
            WHEN regexp_matches(topic, 'not all|lost') THEN 'counts and unions may be too low'
            WHEN regexp_matches(topic, 'no .* events|started') THEN 'usual for helper processes; '
                || 'serious for the trainer'
            ELSE 'read them in the report itself'
        END,
        CASE WHEN regexp_matches(topic, 'not all (CUDA|NVTX)|lost')
            THEN 'a shorter capture range; let the process end before nsys does' END
    FROM message
    WHERE severity IN (2, 3)
    GROUP BY topic, severity
),
-- ------------------------------------------------------------------ tables
counted AS (
    SELECT relation, sum(rows)::BIGINT AS rows, sum(invalid_rows)::BIGINT AS invalid_rows
    FROM nsys.capture_row
    GROUP BY relation
),
wanted AS (
    SELECT *
    FROM (
        VALUES
            (1, 'kernel', 'no device time of kernels: no budget, no gaps', '--trace=cuda'),
            (2, 'memcpy', 'no copies: none were made, or CUDA was not traced', '--trace=cuda'),
            (3, 'memset', 'no sets: none were made, or CUDA was not traced', '--trace=cuda'),
            (
                4, 'api_call',
                'no launch times: launch-starved time is unknown, gaps have no evidence',
                '--trace=cuda'
            ),
            (
                5, 'sync',
                'no event waits: what streams wait for is unknown, blocking is a lower bound',
                '--trace=cuda'
            ),
            (
                6, 'cuda_event',
                'no event records: no wait finds its record, blocking is a lower bound',
                '--cuda-event-trace=true'
            ),
            (
                7, 'graph_exec', 'no whole-graph executions: no graph ran, or nodes were traced',
                NULL
            ),
            (8, 'nvtx', 'no ranges: iterations must come from a kernel anchor', '--trace=nvtx'),
            (9, 'osrt_call', 'no OS runtime calls: host stalls have no cause', '--trace=osrt'),
            (
                10, 'sched_event', 'no thread scheduling: a descheduled host thread does not show',
                '--cpuctxsw=process-tree'
            ),
            (11, 'device_map', 'devices are CUDA ordinals of a process, not physical GPUs', NULL),
            (12, 'string', 'no names: nothing can be classified', NULL)
    ) AS w (number, relation, cost, flag)
),
table_fact AS (
    SELECT 50 + w.number, 'tables', w.relation,
        CASE
            WHEN c.is_present THEN coalesce(n.rows || ' rows', 'present')
        END,
        CASE WHEN c.is_present THEN 'ok' ELSE 'missing' END,
        CASE WHEN c.is_present THEN NULL ELSE w.cost END,
        CASE
            WHEN c.is_present THEN NULL
            WHEN w.flag IS NOT NULL THEN 'nsys profile ' || w.flag
            WHEN w.relation = 'device_map' THEN 'export with nsys 2025.1 or newer'
        END
    FROM wanted AS w
    INNER JOIN nsys.capability AS c ON c.relation = w.relation
    LEFT JOIN counted AS n ON n.relation = w.relation
),
invalid_fact AS (
    SELECT 70, 'invalid rows', n.relation, n.invalid_rows::VARCHAR,
        CASE WHEN n.invalid_rows > 0 THEN 'warn' ELSE 'ok' END,
        CASE WHEN n.invalid_rows > 0
            THEN format('{:.3f} % of its rows end before they start, or lack a time: ',
                100 * n.invalid_rows / n.rows)
            || CASE WHEN n.relation = 'sync'
                THEN 'no time of them is used; the event waits among them order their streams '
                    || 'all the same'
                ELSE 'they take part in no measure' END END,
        NULL
    FROM counted AS n
    WHERE n.rows > 0
),
-- ------------------------------------------------------------------ launches
process_launch AS (
    SELECT
        l.*,
        CASE WHEN l.process IS NULL THEN 'unknown process'
            ELSE 'process ' || (l.process & 16777215) END AS who,
    FROM nsys.capture_launch AS l
),
called AS (
    SELECT is_present FROM nsys.capability WHERE relation = 'api_call'
),
launch_fact AS (
    SELECT 80, 'launches', 'kernels with their CUDA call, ' || who,
        CASE WHEN c.is_present THEN format('{:.1f} %', 100 * linked / kernels) END,
        CASE WHEN NOT c.is_present THEN 'missing' WHEN linked < kernels THEN 'warn' ELSE 'ok' END,
        format('{} of {} kernels join a CUDA API call; this says nothing about lines of code',
            linked, kernels)
        || CASE WHEN linked < kernels THEN ', and the others have no issue time' ELSE '' END,
        CASE WHEN linked < kernels THEN 'a capture range that begins before the first launch of '
            || 'an iteration' END
    FROM process_launch
    CROSS JOIN called AS c
    UNION ALL
    SELECT 81, 'launches', 'kernels that start before their call, ' || who, skewed::VARCHAR,
        CASE WHEN skewed > 0 THEN 'warn' ELSE 'ok' END,
        CASE WHEN skewed > 0
            THEN format('by up to {:.3f} ms: host and device clocks are skewed; their issue time '
                || 'is unknown and no negative latency is shown', worst_ns / 1e6) END,
        CASE WHEN skewed > 0 THEN 'capture again with a newer nsys and driver' END
    FROM process_launch
    CROSS JOIN called AS c
    WHERE c.is_present
    UNION ALL
    SELECT 82, 'launches', 'kernels with a source call stack, ' || who,
        CASE WHEN c.is_present THEN format('{:.1f} %', 100 * chained / kernels) END,
        CASE WHEN chained = 0 THEN 'missing' WHEN chained < kernels THEN 'warn' ELSE 'ok' END,
        CASE WHEN chained = 0
            THEN 'no call chain: kernels cannot be tied to lines of the program; the correlation '
                || 'above is another rate'
            ELSE format('{} of {} kernels have a call chain', chained, kernels) END,
        CASE WHEN chained < kernels
            THEN 'a call-stack capture of its own, then nsys-sql run call-sites --callsites' END
    FROM process_launch
    CROSS JOIN called AS c
),
-- ------------------------------------------------------------------ graphs
recorded AS (
    SELECT bool_or(is_present) AS is_present
    FROM nsys.capability
    WHERE relation IN ('kernel', 'memcpy', 'memset', 'graph_exec')
),
graph_fact AS (
    SELECT 90, 'graphs', 'graph launches', CASE WHEN c.is_present THEN g.launches::VARCHAR END,
        CASE WHEN c.is_present THEN 'ok' ELSE 'missing' END,
        CASE WHEN c.is_present AND g.launches + g.node_ops + g.whole_ops = 0
            THEN 'no CUDA graph was launched while the capture ran' END,
        NULL
    FROM nsys.capture_graph AS g
    CROSS JOIN called AS c
    UNION ALL
    SELECT 91, 'graphs', 'operations of traced nodes',
        CASE WHEN r.is_present THEN g.node_ops::VARCHAR END,
        CASE WHEN r.is_present THEN 'ok' ELSE 'missing' END,
        CASE
            WHEN NOT r.is_present THEN 'no device operation was recorded: whether nodes ran '
                || 'cannot be told'
            WHEN g.node_ops > 0 THEN 'many operations share one launch: per-kernel launch times '
                || 'and call sites do not exist inside graphs'
        END,
        CASE WHEN NOT r.is_present THEN 'nsys profile --trace=cuda' END
    FROM nsys.capture_graph AS g
    CROSS JOIN recorded AS r
    UNION ALL
    SELECT 92, 'graphs', 'executions traced as a whole',
        CASE WHEN r.is_present THEN g.whole_ops::VARCHAR END,
        CASE WHEN NOT r.is_present THEN 'missing' WHEN g.whole_ops > 0 THEN 'warn' ELSE 'ok' END,
        CASE
            WHEN NOT r.is_present THEN 'no device operation was recorded: whether graphs ran '
                || 'cannot be told'
            WHEN g.whole_ops > 0 THEN 'they count as compute: kernels, communication and gaps '
                || 'inside cannot be told'
        END,
        CASE
            WHEN NOT r.is_present THEN 'nsys profile --trace=cuda'
            WHEN g.whole_ops > 0 THEN 'nsys profile --cuda-graph-trace=node'
        END
    FROM nsys.capture_graph AS g
    CROSS JOIN recorded AS r
    UNION ALL
    SELECT 93, 'graphs', 'launches without any device row', g.blind::VARCHAR,
        CASE WHEN g.blind > 0 THEN 'warn' ELSE 'ok' END,
        CASE
            WHEN g.blind > 0 AND lower(t.graph_mode) = 'node'
                THEN 'blind: the device seems idle while these graphs run; their nodes were to be '
                    || 'traced, and this export has no row for them'
            WHEN g.blind > 0
                THEN 'blind: the device seems idle while these graphs run; graphs were traced as a '
                    || 'whole, and this export has no row for them'
        END,
        CASE
            WHEN g.blind > 0 AND lower(t.graph_mode) = 'node'
                THEN 'export the report with nsys 2024.5 or newer; look for lost events above'
            WHEN g.blind > 0
                THEN 'nsys profile --cuda-graph-trace=node, or export the report with nsys 2024.5 '
                    || 'or newer'
        END
    FROM nsys.capture_graph AS g
    CROSS JOIN called AS c
    CROSS JOIN told AS t
    WHERE c.is_present
),
-- ------------------------------------------------------------------ devices
ordinal AS (
    SELECT DISTINCT process, device_ordinal
    FROM nsys.capture_row
    WHERE relation IN ('kernel', 'memcpy', 'memset', 'graph_exec')
),
resolved AS (
    SELECT o.process, o.device_ordinal, max(m.gpu_id) AS gpu_id
    FROM ordinal AS o
    LEFT JOIN nsys.device_map AS m
        ON m.process_pid = (o.process & 16777215) AND m.device_ordinal = o.device_ordinal
    GROUP BY o.process, o.device_ordinal
),
device_fact AS (
    SELECT 100, 'devices',
        CASE WHEN process IS NULL THEN 'unknown process' ELSE 'process ' || (process & 16777215) END
        || ', CUDA ordinal ' || coalesce(device_ordinal::VARCHAR, 'unknown'),
        'device ' || coalesce(gpu_id, device_ordinal),
        CASE WHEN gpu_id IS NULL THEN 'warn' ELSE 'ok' END,
        CASE WHEN gpu_id IS NULL
            THEN 'by the ordinal only: two processes that both see device 0 would count as one GPU'
            ELSE 'the physical GPU, by the device mapping of the trace' END,
        CASE WHEN gpu_id IS NULL THEN 'export with nsys 2025.1 or newer' END
    FROM resolved
),
-- ------------------------------------------------------------------ dependencies
-- event waits that nsys.event_wait does not have: without a place in the order, with no record
unplaced AS (
    SELECT count(*) AS n
    FROM nsys.sync
    WHERE correlation_id IS NULL
        AND stream_id IS DISTINCT FROM 4294967295
        AND event_id IS DISTINCT FROM 4294967295
),
waits AS (
    SELECT
        (SELECT count(*) FROM nsys.event_wait) + (SELECT n FROM unplaced) AS total,
        (SELECT n FROM unplaced) AS unplaced,
        (SELECT count(*) FROM nsys.event_wait WHERE is_found) AS found,
        (SELECT bool_or(is_inferred) FROM nsys.event_pairing) AS is_inferred,
        (SELECT bool_or(is_present) FROM nsys.capability WHERE relation = 'sync') AS has_sync,
        (SELECT bool_or(is_present) FROM nsys.capability WHERE relation = 'cuda_event')
            AS has_record_table,
        EXISTS (SELECT 1 FROM nsys.cuda_event) AS has_records,
),
wait_fact AS (
    SELECT 110, 'dependencies', 'event waits', CASE WHEN has_sync THEN total::VARCHAR END,
        CASE WHEN has_sync THEN 'ok' ELSE 'missing' END,
        CASE WHEN has_sync THEN NULL ELSE 'dependencies across streams are unknown' END, NULL
    FROM waits
    UNION ALL
    SELECT 111, 'dependencies', 'waits resolved by eventSyncId',
        CASE WHEN has_sync THEN (CASE WHEN is_inferred THEN 0 ELSE found END)::VARCHAR END,
        CASE WHEN has_sync THEN 'ok' ELSE 'missing' END,
        CASE WHEN has_sync THEN 'the id names the very record' END, NULL
    FROM waits
    UNION ALL
    SELECT 112, 'dependencies', 'waits paired by inference',
        CASE WHEN has_sync THEN (CASE WHEN is_inferred THEN found ELSE 0 END)::VARCHAR END,
        CASE WHEN NOT has_sync THEN 'missing' WHEN is_inferred AND found > 0 THEN 'warn'
            ELSE 'ok' END,
        CASE WHEN is_inferred AND found > 0
            THEN 'no row has an eventSyncId: the last record of the handle before the wait is '
                || 'taken; such edges are marked inferred' END,
        CASE WHEN is_inferred AND found > 0 THEN 'capture and export with nsys 2025.1 or newer' END
    FROM waits
    UNION ALL
    SELECT 113, 'dependencies', 'waits unresolved',
        CASE WHEN has_sync THEN (total - found)::VARCHAR END,
        CASE WHEN NOT has_sync THEN 'missing' WHEN total > found THEN 'warn' ELSE 'ok' END,
        CASE WHEN total > found
            THEN concat_ws(
                '; ',
                CASE WHEN total > found + unplaced
                    THEN format('{:.1f} % of waits have no record in the trace: blocking is a '
                        || 'lower bound in gaps that end behind one (see evidence in gaps)',
                        100 * (total - found - unplaced) / total) END,
                CASE WHEN unplaced > 0
                    THEN format('{:.1f} % of waits have no correlation id ({}), and so no place in '
                        || 'the issue order: no gap shows as evidence what they held up, and '
                        || 'blocking is a lower bound everywhere',
                        100 * unplaced / total, unplaced) END
            ) END,
        CASE WHEN total > found + unplaced THEN CASE WHEN has_records
            THEN 'a capture range that begins before the records do'
            ELSE 'nsys profile --cuda-event-trace=true' END END
    FROM waits
    UNION ALL
    SELECT 114, 'dependencies', 'calls that make a stream wait without a wait, device ' || device,
        unseen::VARCHAR,
        CASE WHEN unseen > 0 THEN 'warn' ELSE 'ok' END,
        CASE WHEN unseen > 0
            THEN format('{:.1f} % of {} calls: what they held up is unknown, blocking is a lower '
                || 'bound', 100 * unseen / calls, calls) END,
        CASE WHEN unseen > 0 THEN 'export all tables of a capture with --trace=cuda' END
    FROM nsys.unseen_wait
),
-- ------------------------------------------------------------------ iterations
window_fact AS (
    SELECT 120, 'iterations', 'steady windows, device ' || coalesce(device::VARCHAR, 'unknown'),
        steady_windows::VARCHAR,
        CASE WHEN steady_windows = 0 THEN 'warn' ELSE 'ok' END,
        CASE WHEN anchor IS NULL THEN 'no anchor' ELSE 'anchor ' || anchor END
        || coalesce('; dropped: ' || dropped, ''),
        CASE WHEN steady_windows = 0
            THEN 'nsys-sql run anchors, then --anchor; or NVTX ranges around each step' END
    FROM nsys.capture_window
    UNION ALL
    SELECT 121, 'iterations',
        'kernels outside steady windows, device ' || coalesce(device::VARCHAR, 'unknown'),
        outside_kernels::VARCHAR,
        CASE WHEN outside_kernels > 0 THEN 'warn' ELSE 'ok' END,
        CASE WHEN outside_kernels > 0
            THEN format('{:.1f} % of the kernels take part in no statistic',
                100 * outside_kernels / kernels) END,
        NULL
    FROM nsys.capture_window
    WHERE kernels > 0
    UNION ALL
    SELECT 122, 'iterations', 'profiler start calls',
        CASE WHEN c.is_present THEN
            (SELECT count(*) FROM nsys.control_call WHERE control = 'profiler_start')::VARCHAR END,
        CASE WHEN c.is_present THEN 'ok' ELSE 'missing' END,
        'windows that begin before the start has returned are no steady state', NULL
    FROM called AS c
    UNION ALL
    SELECT 123, 'iterations', 'profiler stop calls',
        CASE WHEN c.is_present THEN
            (SELECT count(*) FROM nsys.control_call WHERE control = 'profiler_stop')::VARCHAR END,
        CASE WHEN c.is_present THEN 'ok' ELSE 'missing' END,
        'windows that reach the stop may hold the flush of the buffers', NULL
    FROM called AS c
    UNION ALL
    SELECT 124, 'iterations', 'open NVTX ranges',
        CASE WHEN c.is_present THEN coalesce(o.n, 0)::VARCHAR END,
        CASE WHEN NOT c.is_present THEN 'missing' WHEN o.n > 0 THEN 'warn' ELSE 'ok' END,
        CASE WHEN o.n > 0 THEN 'never closed before the session ended: they are no windows' END,
        CASE WHEN o.n > 0 THEN 'stop the capture after the last step has ended' END
    FROM nsys.capability AS c
    CROSS JOIN (
        -- of equal ranges one counts
        SELECT count(DISTINCT (n.process, n.thread, n.start_ns, n.end_ns, n.text)) AS n
        FROM nsys.nvtx AS n
        CROSS JOIN nsys.session_end AS s
        WHERE n.event_type IN (59, 60, 70, 71)
            -- a range that lacks its start, or ends before it, is invalid and counted as such
            AND n.start_ns IS NOT NULL
            AND (n.end_ns < n.start_ns) IS NOT TRUE
            AND nsys.is_unclosed(n.end_ns, s.session_end_ns)
    ) AS o
    WHERE c.relation = 'nvtx'
),
-- ------------------------------------------------------------------ overhead and metrics
overhead_fact AS (
    SELECT 130, 'overhead', 'recorded activity of the profiler',
        CASE WHEN c.is_present THEN format('{:.3f} ms', (
            SELECT coalesce(sum(end_ns - start_ns), 0) FROM nsys.overhead WHERE end_ns >= start_ns
        ) / 1e6) END,
        CASE WHEN c.is_present THEN 'ok' ELSE 'missing' END,
        'summed over threads, loading of libraries included; this is not the slowdown of the step',
        'compare with unprofiled steps: nsys-sql run slowdown --reference-steps'
    FROM nsys.capability AS c
    WHERE c.relation = 'overhead'
    UNION ALL
    SELECT 131, 'overhead', 'recorded activity of CUDA tracing',
        CASE WHEN c.is_present THEN format('{:.3f} ms', (
            SELECT coalesce(sum(end_ns - start_ns), 0)
            FROM nsys.cuda_overhead
            WHERE end_ns >= start_ns
        ) / 1e6) END,
        CASE WHEN c.is_present THEN 'ok' ELSE 'missing' END,
        'summed over threads; this is not the slowdown of the step', NULL
    FROM nsys.capability AS c
    WHERE c.relation = 'cuda_overhead'
),
counters AS (
    SELECT
        (SELECT bool_or(is_present) FROM nsys.capability WHERE relation = 'gpu_metric')
            AS is_present,
        (
            SELECT count(DISTINCT nsys.metric_kind(metric_name)) FROM nsys.gpu_metric_info
        ) AS kinds,
        EXISTS (SELECT 1 FROM message WHERE topic = 'a permission was missing') AS is_refused,
),
metric_fact AS (
    SELECT 140, 'metrics', 'GPU metrics',
        CASE WHEN is_present THEN kinds || ' of the metrics that recipe metrics reads' END,
        CASE WHEN is_present THEN 'ok' ELSE 'missing' END,
        CASE
            WHEN is_present THEN 'sampling slows the run: take timing from a capture without it'
            WHEN is_refused THEN 'a permission was missing: no failure of the workload, timing '
                || 'analysis goes on without them'
            ELSE 'no hardware counters were sampled: timing analysis goes on without them'
        END,
        CASE
            WHEN is_present THEN NULL
            WHEN is_refused THEN 'allow performance counters to the user, then a capture of its own'
            ELSE 'a capture of its own, see below'
        END
    FROM counters
),
-- ------------------------------------------------------------------ a better command line
lack AS (
    SELECT
        (
            SELECT count(*) > 0
            FROM nsys.capability
            WHERE relation IN ('kernel', 'api_call', 'nvtx', 'osrt_call') AND NOT is_present
        ) AS lacks_trace,
        -- an empty table is as little as none where there are waits
        w.has_record_table IS NOT TRUE OR (w.total > 0 AND NOT w.has_records) AS lacks_records,
        g.whole_ops > 0 OR g.blind > 0 AS lacks_nodes,
        NOT c.is_present AS lacks_metrics,
    FROM waits AS w
    CROSS JOIN nsys.capture_graph AS g
    CROSS JOIN counters AS c
),
command_fact AS (
    SELECT 150, 'next capture', 'timing',
        CASE WHEN lacks_trace OR lacks_records OR lacks_nodes
            THEN 'nsys profile --trace=cuda,nvtx,osrt'
                || CASE WHEN lacks_records THEN ' --cuda-event-trace=true' ELSE '' END
                || CASE WHEN lacks_nodes THEN ' --cuda-graph-trace=node' ELSE '' END
                || ' --sample=none --capture-range=cudaProfilerApi --capture-range-end=stop COMMAND'
            ELSE 'nothing to add'
        END,
        'ok',
        'a few steady iterations between cudaProfilerStart and cudaProfilerStop; leave the '
        || '--capture-range options out where the program has no such calls',
        NULL
    FROM lack
    UNION ALL
    SELECT 151, 'next capture', 'metrics',
        'nsys profile --trace=cuda,nvtx --gpu-metrics-devices=all --gpu-metrics-frequency=100000 '
        || '--sample=none COMMAND',
        'ok',
        'in a run of its own and short, since sampling slows and swells it; then '
        || 'nsys-sql run metrics TRACE --metrics-from METRICS_TRACE',
        NULL
    FROM lack
    WHERE lacks_metrics
),
fact AS (
    SELECT * FROM export_fact
    UNION ALL
    SELECT * FROM clock_fact
    UNION ALL
    SELECT * FROM mode_fact
    UNION ALL
    SELECT * FROM message_fact
    UNION ALL
    SELECT * FROM table_fact
    UNION ALL
    SELECT * FROM invalid_fact
    UNION ALL
    SELECT * FROM launch_fact
    UNION ALL
    SELECT * FROM graph_fact
    UNION ALL
    SELECT * FROM device_fact
    UNION ALL
    SELECT * FROM wait_fact
    UNION ALL
    SELECT * FROM window_fact
    UNION ALL
    SELECT * FROM overhead_fact
    UNION ALL
    SELECT * FROM metric_fact
    UNION ALL
    SELECT * FROM command_fact
)
SELECT section, item, value, status, detail, remedy
FROM fact
ORDER BY position, section, item;
