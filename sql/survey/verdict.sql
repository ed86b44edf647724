-- verdict — what do the sampled ranks say, and what can they not say?
--
-- One statement a row, the limits first. A rank is a straggler where it holds the others up, beyond
-- what held it up itself, in most windows (repeat_pct, 75 %): all that do so are named, the worst
-- first. Where the culprit changes from window to window nobody is blamed, nor is anybody by
-- collectives whose members count other steps. A rank that is slower than its peers while nobody is
-- seen to wait for it is told as such. A rank that waited in collectives that match nothing may be
-- late by another's fault: then both are told. A window that is longer because it starts earlier is
-- start skew and no straggler (pitfall 23). Waiting in a group across stages is the bubble and the
-- schedule of a pipeline; which stage the others wait for is told by what each waits there, not by
-- what it computes. Only sampled ranks are named: one that was not captured may be the true
-- straggler (pitfall 24).
--
-- @grain  one row per statement
-- @reads  rank.scope, rank.member, rank.aligned, rank.off_step, rank.blame, rank.straggler,
--         rank.slower, rank.blind, rank.skew, rank.match_set, rank.instance, rank.matched,
--         rank.fingerprint, rank.member_window, rank.stage_load
-- @param  threshold_pct DOUBLE = 1 [0, 100] share of an iteration from which a delay counts
-- @column finding VARCHAR - scope, provisional, alignment, straggler, rotating, start_skew, ...
-- @column rank BIGINT - rank it is about, NULL about several or unknown
-- @column value_ms DOUBLE ms how much, per iteration; NULL where it is no time
-- @column share_pct DOUBLE pct share of the windows, or of the time, as the statement says
-- @column statement VARCHAR - what can be said
-- @pitfall 3, 4, 23, 24
WITH params AS (
    SELECT coalesce(getvariable('threshold_pct'), 1)::DOUBLE AS threshold_pct
),
per_window AS (
    SELECT
        iteration,
        count(member_id) > 0 AS is_blamed,
        max(caused_ns) AS caused_ns,
        bool_and(is_timed) AS is_timed,
    FROM rank.blame
    GROUP BY iteration
),
windows AS (
    SELECT
        count(*) AS n,
        count(*) FILTER (WHERE is_blamed) AS blamed,
        (SELECT count(DISTINCT member_id) FROM rank.blame) AS culprits,
        median(caused_ns) FILTER (WHERE is_blamed) AS caused_ns,
        bool_and(is_timed) AS is_timed,
    FROM per_window
),
busy AS (
    SELECT
        m.member_id,
        m.stage,
        median(w.noncomm_busy_ns) AS busy_ns,
        median(w.iteration_ns) AS iteration_ns,
    FROM rank.member AS m
    INNER JOIN rank.member_window AS w ON w.member_id = m.member_id
    GROUP BY m.member_id, m.stage
),
usual_busy AS (
    SELECT m.stage, median(w.noncomm_busy_ns) AS busy_ns
    FROM rank.member AS m
    INNER JOIN rank.member_window AS w ON w.member_id = m.member_id
    WHERE m.member_id NOT IN (SELECT member_id FROM rank.straggler)
    GROUP BY m.stage
),
busier AS (
    SELECT b.member_id, b.iteration_ns, b.busy_ns - u.busy_ns AS more_ns
    FROM busy AS b
    INNER JOIN usual_busy AS u ON u.stage IS NOT DISTINCT FROM b.stage
),
peers AS (
    SELECT own.member_id, count(*) AS n
    FROM rank.fingerprint AS own
    INNER JOIN rank.fingerprint AS f ON f.group_id = own.group_id
    GROUP BY own.member_id
),
-- others that a straggler may have waited for, where what it computes does not explain it
suspect AS (
    SELECT
        s.member_id,
        string_agg(b.name, ', ' ORDER BY b.ns DESC, b.name) FILTER (WHERE b.is_alone) AS unsampled,
        string_agg(b.name, ', ' ORDER BY b.ns DESC, b.name) FILTER (WHERE NOT b.is_alone)
            AS unmatched,
    FROM rank.straggler AS s
    INNER JOIN rank.blind AS b ON b.member_id = s.member_id
    LEFT JOIN busier AS k ON k.member_id = s.member_id
    WHERE coalesce(2 * k.more_ns < s.caused_ns, true)
    GROUP BY s.member_id, s.caused_ns
    HAVING 2 * sum(b.ns) >= s.caused_ns
),
off_clock AS (
    SELECT a.member_id, a.offset_ns
    FROM rank.aligned AS a
    INNER JOIN busy AS b ON b.member_id = a.member_id
    WHERE a.is_aligned AND a.method NOT IN ('reference', 'same clock')
      AND 2 * abs(a.offset_ns) > b.iteration_ns
      AND a.member_id NOT IN (SELECT member_id FROM rank.off_step)
),
spanning AS (
    SELECT i.kind, i.name, list(DISTINCT m.stage) AS stages
    FROM (SELECT DISTINCT member_id, kind, name FROM rank.instance) AS i
    INNER JOIN rank.member AS m ON m.member_id = i.member_id
    GROUP BY i.kind, i.name
    HAVING min(m.stage) < max(m.stage)
),
-- hand-overs of neighbours in a group of all stages: the ends of the pipeline have fewer of them
chained AS (
    SELECT s.kind, g.name, len(g.stages) AS stages
    FROM (
        SELECT DISTINCT kind, name FROM rank.match_set
        WHERE collective = 'SendRecv' AND reason = 'the counts of the members differ'
    ) AS s
    INNER JOIN spanning AS g ON g.kind = s.kind AND g.name = s.name
    WHERE len(g.stages) > 2
),
-- of each rank the metric in which it is most; a late host may be one that waits for its device
lagging AS (
    SELECT
        s.metric = 'launch_starved' AS is_host,
        s.member_id,
        any_value(m.label) AS label,
        max(s.longer_ns) AS longer_ns,
        arg_max(s.metric, (s.longer_ns, s.metric)) AS metric,
    FROM rank.slower AS s
    INNER JOIN rank.member AS m ON m.member_id = s.member_id
    WHERE s.metric <> 'iteration'
    GROUP BY is_host, s.member_id
),
unseen AS (
    SELECT
        count(*) AS n,
        '. But ' || string_agg(label, ', ' ORDER BY member_id)
        || CASE WHEN count(*) = 1 THEN ' is ' ELSE ' are ' END
        || CASE WHEN any_value(is_host) THEN 'launch-starved longer' ELSE 'slower' END
        || ' than the fastest of ' || CASE WHEN count(*) = 1 THEN 'its' ELSE 'their' END
        || ' group again and again, by ' || CASE WHEN count(*) = 1 THEN '' ELSE 'up to ' END
        || printf('%.3g', max(longer_ns) / 1e6) || ' ms ('
        || CASE WHEN any_value(is_host) THEN '' ELSE arg_max(metric, (longer_ns, metric)) || ', ' END
        || 'result groups)' AS told,
    FROM lagging
    -- what they compute tells more
    WHERE NOT is_host OR NOT EXISTS (FROM lagging WHERE NOT is_host)
),
load AS (
    SELECT
        count(*) AS n,
        arg_max(stage, (busy_ns, -stage)) AS busiest,
        max(busy_ns) AS most_ns,
        arg_max(wait_ns, (busy_ns, -stage)) AS busiest_wait_ns,
        arg_min(stage, (busy_ns, stage)) AS idlest,
        min(busy_ns) AS least_ns,
        arg_min(wait_ns, (busy_ns, stage)) AS idlest_wait_ns,
        arg_min(stage, (wait_ns, stage)) AS awaited,
        min(wait_ns) AS least_wait_ns,
        avg(busy_ns) AS busy_ns,
        median(iteration_ns) AS iteration_ns,
        bool_and(wait_ns IS NOT NULL) AS is_known,
        string_agg(
            printf('%.3g', wait_ns / 1e6) || ' ms in stage ' || stage, ', ' ORDER BY stage
        ) AS waits,
    FROM rank.stage_load
),
said AS (
    SELECT 0 AS seq, 0::BIGINT AS member_id, 'scope' AS finding, NULL::BIGINT AS rank,
        NULL::DOUBLE AS value_ms, NULL::DOUBLE AS share_pct,
        'The verdict is about the ' || s.sampled || ' sampled ranks only'
        || CASE
            WHEN s.world_size > s.sampled
                THEN ': ' || (s.world_size - s.sampled) || ' of ' || s.world_size
                || ' ranks were not sampled, and one of them may be the true straggler.'
            WHEN s.world_size IS NULL
                THEN '; how many ranks the run has is not known (world_size of the mapping '
                || 'tells), and one that was not captured may be the true straggler.'
            ELSE ': these are all.'
        END
        || CASE
            WHEN s.failed = 1 THEN ' 1 report could not be used.'
            WHEN s.failed > 1 THEN ' ' || s.failed || ' reports could not be used.'
            ELSE ''
        END AS statement
    FROM rank.scope AS s
    UNION ALL
    SELECT 1, 0, 'provisional', NULL, NULL, NULL,
        'Provisional: ' || CASE
            WHEN s.is_mapped
                THEN (SELECT count(*) FROM rank.member WHERE rank IS NULL AND NOT is_listed)
                || ' reports are not in the mapping'
            ELSE 'there is no mapping'
        END
        || '. Ranks, stages and groups of those are unknown, so nothing can be said about '
        || 'stages, matching collectives or arrival; `survey --init` writes a mapping to fill in.'
    FROM rank.scope AS s
    WHERE EXISTS (FROM rank.member WHERE rank IS NULL AND NOT is_listed)
    UNION ALL
    SELECT 1, 1, 'provisional', NULL, NULL, NULL,
        'Provisional: the mapping gives no rank for ' || count(*) || ' of the sampled ('
        || min(label) || CASE WHEN count(*) > 1 THEN ', ...' ELSE '' END || '): they go by the '
        || 'number of the report. Stages and groups hold where it gives them.'
    FROM rank.member
    WHERE rank IS NULL AND is_listed
    HAVING count(*) > 0
    UNION ALL
    SELECT 2, 0, 'alignment', NULL, NULL, NULL,
        count(*) FILTER (WHERE NOT a.is_aligned) || ' of ' || count(*) || ' ranks are not '
        || 'aligned: their starts and ends are not compared, and the order of arrival follows '
        || 'from durations, which does not prove a late finish.'
    FROM rank.aligned AS a
    HAVING count(*) FILTER (WHERE NOT a.is_aligned) > 0
    UNION ALL
    SELECT 2, 0, 'other steps', CASE WHEN count(*) = 1 THEN min(m.rank) END,
        median(o.off_ns) / 1e6, NULL,
        'Windows of ' || CASE
            WHEN count(*) = 1 THEN min(m.label)
            ELSE count(*) || ' ranks (' || arg_min(m.label, m.member_id) || ', ...)'
        END
        || ' start and end more than half an iteration away from those of others on the same '
        || 'clock: their ordinals count other steps, and their collectives blame nobody. Choose '
        || 'the same steps with --iterations.'
    FROM rank.off_step AS o
    INNER JOIN rank.member AS m ON m.member_id = o.member_id
    HAVING count(*) > 0
    UNION ALL
    SELECT 2, 0, 'other clock', NULL, max(abs(offset_ns)) / 1e6, NULL,
        CASE
            WHEN count(*) = 1 THEN 'The clock of 1 rank is'
            ELSE 'The clocks of ' || count(*) || ' ranks are'
        END
        || ' off by more than half an iteration, or the windows there count other steps.'
    FROM off_clock
    HAVING count(*) > 0
    UNION ALL
    SELECT 3, 0, 'unmatched', NULL, NULL,
        100 * sum(operations) FILTER (WHERE reason IS NOT NULL) / sum(operations),
        CASE
            WHEN count(*) = 0
                THEN 'No group of collectives is known: ranks are compared by totals only.'
            WHEN count(*) FILTER (WHERE reason IS NULL) = 0
                THEN 'No collective matches (' || mode(reason ORDER BY reason) || '): ranks are '
                || 'compared by totals only, and nothing is said about transfer or waiting.'
            ELSE sum(operations) FILTER (WHERE reason IS NOT NULL) || ' of ' || sum(operations)
                || ' operations of the groups match nothing, mostly because '
                || mode(reason ORDER BY reason) || '.'
        END || coalesce((
            SELECT ' ' || kind || ' ' || name || ' spans ' || stages || ' stages: where they hand '
                || 'over to their neighbours by SendRecv, each pair of neighbours needs a group '
                || 'of its own, told apart by stream or communicator.'
            FROM chained
            ORDER BY stages DESC, kind, name
            LIMIT 1
        ), '')
    FROM rank.match_set
    HAVING count(*) = 0 OR count(*) FILTER (WHERE reason IS NOT NULL) > 0
    UNION ALL
    SELECT
        4,
        row_number() OVER (ORDER BY s.caused_ns DESC, s.member_id),
        'straggler',
        CASE WHEN u.member_id IS NULL THEN m.rank END,
        s.caused_ns / 1e6,
        100 * s.n / s.windows,
        'Among the sampled ranks ' || m.label
        || coalesce(', or a member of ' || u.unsampled || ' that was not sampled,', '')
        || coalesce(', or a member of ' || u.unmatched || ' whose collectives match nothing,', '')
        || ' holds the others up in ' || s.n || ' of ' || s.windows || ' windows, by '
        || printf('%.3g', s.caused_ns / 1e6) || ' ms (median) beyond what held it up itself'
        || CASE
            WHEN k.more_ns IS NULL THEN ''
            WHEN 2 * k.more_ns >= s.caused_ns
                THEN '. It computes ' || printf('%.3g', k.more_ns / 1e6)
                || ' ms longer than the others of its stage (medians)'
            WHEN 100 * k.more_ns > p.threshold_pct * k.iteration_ns
                THEN '. It computes ' || printf('%.3g', k.more_ns / 1e6)
                || ' ms longer than the others of its stage (medians), which is less than half '
                || 'of that: look at its host (launch-starved) and at what it waits for as well'
            ELSE '. It computes no longer than the others of its stage: look at its host '
                || '(launch-starved) and at what it waits for'
        END
        || CASE
            WHEN z.n = 1 AND (SELECT count(*) FROM rank.member) > 1
                THEN '. No other sampled rank of its stage does the same work: look for '
                || 'uneven load before a slow device'
            ELSE ''
        END
        || CASE WHEN w.is_timed THEN '.' ELSE ' (order of arrival inferred from durations).' END
    FROM rank.straggler AS s
    CROSS JOIN windows AS w
    CROSS JOIN params AS p
    INNER JOIN rank.member AS m ON m.member_id = s.member_id
    LEFT JOIN suspect AS u ON u.member_id = s.member_id
    LEFT JOIN busier AS k ON k.member_id = s.member_id
    LEFT JOIN peers AS z ON z.member_id = s.member_id
    UNION ALL
    SELECT
        4,
        0,
        CASE
            WHEN 2 * w.blamed >= w.n AND w.culprits > 1 THEN 'rotating'
            WHEN w.blamed > 0 THEN 'occasional'
            ELSE 'no straggler'
        END,
        NULL,
        w.caused_ns / 1e6,
        100 * w.blamed / w.n,
        CASE
            WHEN 2 * w.blamed >= w.n AND w.culprits > 1
                THEN 'In ' || w.blamed || ' of ' || w.n || ' windows a rank holds the others up, '
                || 'but it is another one from window to window (' || w.culprits
                || ' ranks): no rank is to blame'
            WHEN w.blamed > 0
                THEN 'A rank holds the others up in ' || w.blamed || ' of ' || w.n
                || ' windows only: no straggler'
            WHEN u.n > 0
                THEN 'No sampled rank is seen to hold the others up by more than '
                || printf('%g', p.threshold_pct) || ' % of an iteration'
            ELSE 'No sampled rank holds the others up by more than '
                || printf('%g', p.threshold_pct) || ' % of an iteration'
        END
        || CASE WHEN w.is_timed THEN '' ELSE ' (order of arrival inferred from durations)' END
        || coalesce(u.told, '')
        || CASE
            WHEN u.n > 0 AND w.blamed = 0 THEN ': what the others wait does not show it.'
            ELSE '.'
        END
    FROM windows AS w
    CROSS JOIN params AS p
    CROSS JOIN unseen AS u
    WHERE w.n > 0 AND NOT EXISTS (FROM rank.straggler)
    UNION ALL
    SELECT 5, s.member_id, CASE
            WHEN s.judgement = 'longer, clocks not aligned' THEN 'longer' ELSE s.judgement
        END,
        m.rank, s.longer_ns / 1e6, NULL,
        'Windows of ' || m.label || ' are ' || printf('%.3g', s.longer_ns / 1e6)
        || ' ms longer than those of ' || z.label || CASE s.judgement
            WHEN 'start_skew' THEN ': they start ' || printf('%.3g', s.earlier_start_ns / 1e6)
                || ' ms earlier and end with them. That is start skew, not a straggler.'
            WHEN 'late_finish' THEN ': they end ' || printf('%.3g', s.later_end_ns / 1e6)
                || ' ms later.'
            WHEN 'longer, clocks not aligned'
                THEN '. Without aligned clocks that is no proof of a late finish.'
            ELSE ': they start ' || printf('%.3g', s.earlier_start_ns / 1e6)
                || ' ms earlier and end ' || printf('%.3g', s.later_end_ns / 1e6) || ' ms later.'
        END
    FROM rank.skew AS s
    INNER JOIN rank.member AS m ON m.member_id = s.member_id
    INNER JOIN rank.member AS z ON z.member_id = s.peer_id
    -- starts and ends of other steps do not compare
    WHERE s.judgement <> 'as long'
      AND s.member_id NOT IN (SELECT member_id FROM rank.off_step)
      AND s.peer_id NOT IN (SELECT member_id FROM rank.off_step)
    UNION ALL
    SELECT 6, 0, 'waiting', NULL, NULL,
        100 * sum(x.jitter_wait_ns) / sum(x.duration_ns),
        'Collectives of ' || x.kind || ' (' || x.collective || '): '
        || printf('%.3g', 100 * sum(x.jitter_wait_ns) / sum(x.duration_ns))
        || ' % of the time in matched instances is jitter wait' || CASE
            WHEN x.kind IN (SELECT kind FROM spanning)
                THEN '. Its groups span stages, so the bubble and the schedule of the pipeline '
                || 'are in that: by itself it tells neither of a late member nor of bandwidth.'
            WHEN 2 * sum(x.jitter_wait_ns) > sum(x.duration_ns)
                THEN '. Look for the late member or uneven load, not for bandwidth.'
            ELSE ', the rest is the transfer proxy' || CASE
                WHEN (SELECT coalesce(max(world_size = sampled), false) FROM rank.scope) THEN '.'
                ELSE ': an upper bound where members were not sampled.'
            END
        END
    FROM rank.matched AS x
    GROUP BY x.kind, x.collective
    HAVING sum(x.duration_ns) > 0
    UNION ALL
    SELECT 7, 0, 'stage imbalance', NULL, (l.most_ns - l.least_ns) / 1e6,
        100 * (l.most_ns - l.least_ns) / nullif(l.busy_ns, 0),
        'Stage ' || l.busiest || ' is the busiest (' || printf('%.3g', l.most_ns / 1e6)
        || ' ms without communication), stage ' || l.idlest || ' the least ('
        || printf('%.3g', l.least_ns / 1e6) || ' ms)' || CASE
            WHEN NOT EXISTS (FROM spanning WHERE list_contains(stages, l.busiest))
                THEN '. No collective that the mapping names couples it with another stage, so '
                || 'whether others wait for it is not known.'
            WHEN NOT l.is_known
                THEN '. The collectives across stages do not all match, so whether others wait '
                || 'for it is not known.'
            WHEN 100 * (l.busiest_wait_ns - l.least_wait_ns) > p.threshold_pct * l.iteration_ns
                THEN ', but the others wait for stage ' || l.awaited || ', which waits least in '
                || 'the collectives across stages (' || l.waits || '): look at its host '
                || '(launch-starved) first.'
            WHEN 2 * (l.idlest_wait_ns - l.busiest_wait_ns) >= l.most_ns - l.least_ns
                THEN ': the others wait for the busiest, which waits least in the collectives '
                || 'across stages (' || l.waits || ').'
            ELSE '. What is waited in the collectives across stages (' || l.waits
                || ') does not show who waits for whom.'
        END
    FROM load AS l
    CROSS JOIN params AS p
    WHERE l.n > 1 AND 100 * (l.most_ns - l.least_ns) > p.threshold_pct * l.busy_ns
)
SELECT finding, rank, value_ms, share_pct, statement
FROM said
ORDER BY seq, member_id, finding, share_pct DESC NULLS LAST, statement;
