-- verdict — what do the sampled ranks say, and what can they not say?
--
-- One statement a row, the limits first. A rank is a straggler where it holds the others up most,
-- beyond what held it up itself, in most windows; where the culprit changes from window to window
-- nobody is blamed. A window that is longer because it starts earlier is start skew and no
-- straggler (pitfall 23). Only sampled ranks are named: one that was not captured may be the true
-- straggler (pitfall 24).
--
-- @grain  one row per statement
-- @reads  rank.scope, rank.member, rank.aligned, rank.aligned_window, rank.blame, rank.delay, rank.skew,
--         rank.match_set, rank.matched, rank.fingerprint, rank.member_window
-- @param  threshold_pct DOUBLE = 1 [0, 100] share of an iteration from which a delay counts
-- @param  repeat_pct DOUBLE = 75 [0, 100] share of the windows from which a straggler repeats
-- @column finding VARCHAR - scope, provisional, alignment, straggler, rotating, start_skew, ...
-- @column rank BIGINT - rank it is about, NULL about several or unknown
-- @column value_ms DOUBLE ms how much, per iteration; NULL where it is no time
-- @column share_pct DOUBLE pct share of the windows, or of the time, as the statement says
-- @column statement VARCHAR - what can be said
-- @pitfall 3, 4, 23, 24
WITH params AS (
    SELECT
        coalesce(getvariable('threshold_pct'), 1)::DOUBLE AS threshold_pct,
        coalesce(getvariable('repeat_pct'), 75)::DOUBLE AS repeat_pct,
),
windows AS (
    SELECT
        count(*) AS n,
        count(member_id) AS blamed,
        count(DISTINCT member_id) AS culprits,
        median(caused_ns) FILTER (WHERE member_id IS NOT NULL) AS caused_ns,
        bool_and(is_timed) AS is_timed,
    FROM rank.blame
),
culprit AS (
    SELECT b.member_id, count(*) AS n, median(b.caused_ns) AS caused_ns
    FROM rank.blame AS b
    WHERE b.member_id IS NOT NULL
    GROUP BY b.member_id
    ORDER BY n DESC, b.member_id
    LIMIT 1
),
busier AS (
    SELECT
        median(own.noncomm_busy_ns) - any_value(o.busy_ns) AS more_ns,
    FROM culprit AS c
    INNER JOIN rank.member_window AS own ON own.member_id = c.member_id
    CROSS JOIN (
        SELECT median(w.noncomm_busy_ns) AS busy_ns
        FROM culprit AS k
        INNER JOIN rank.member AS m ON m.member_id = k.member_id
        INNER JOIN rank.member AS z
            ON z.stage IS NOT DISTINCT FROM m.stage AND z.member_id <> m.member_id
        INNER JOIN rank.member_window AS w ON w.member_id = z.member_id
    ) AS o
),
peers AS (
    SELECT count(*) AS n, f.fingerprint
    FROM culprit AS c
    INNER JOIN rank.fingerprint AS own ON own.member_id = c.member_id
    INNER JOIN rank.fingerprint AS f ON f.group_id = own.group_id
    GROUP BY f.fingerprint
),
typical_start AS (
    SELECT iteration, quantile_disc(start_ns, 0.5) AS start_ns
    FROM rank.aligned_window
    GROUP BY iteration
),
-- Ordinals of windows that count other steps match nothing, or the wrong thing.
off_by AS (
    SELECT
        w.member_id,
        a.method,
        CASE WHEN a.method = 'same clock' THEN median(w.start_ns - t.start_ns) ELSE a.offset_ns END
            AS off_ns,
        median(w.iteration_ns) AS iteration_ns,
    FROM rank.aligned_window AS w
    INNER JOIN typical_start AS t ON t.iteration = w.iteration
    INNER JOIN rank.aligned AS a ON a.member_id = w.member_id
    WHERE w.start_ns IS NOT NULL
    GROUP BY w.member_id, a.method, a.offset_ns
    HAVING 2 * abs(off_ns) > median(w.iteration_ns)
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
            WHEN s.is_mapped THEN (SELECT count(*) FROM rank.member WHERE rank IS NULL)
                || ' reports are not in the mapping'
            ELSE 'there is no mapping'
        END
        || '. Ranks, stages and groups of those are unknown, so nothing can be said about '
        || 'stages, matching collectives or arrival; `survey --init` writes a mapping to fill in.'
    FROM rank.scope AS s
    WHERE EXISTS (FROM rank.member WHERE rank IS NULL)
    UNION ALL
    SELECT 2, 0, 'alignment', NULL, NULL, NULL,
        count(*) FILTER (WHERE NOT a.is_aligned) || ' of ' || count(*) || ' ranks are not '
        || 'aligned: their starts and ends are not compared, and the order of arrival follows '
        || 'from durations, which does not prove a late finish.'
    FROM rank.aligned AS a
    HAVING count(*) FILTER (WHERE NOT a.is_aligned) > 0
    UNION ALL
    SELECT 2, 0, 'other steps', NULL, median(off_ns) / 1e6, NULL,
        count(*) || ' ranks on the clock of the reference (' || min(m.label)
        || ', ...) start their windows more than half an iteration away from the others: '
        || 'their ordinals count other steps. Choose the same steps with --iterations.'
    FROM off_by AS o
    INNER JOIN rank.member AS m ON m.member_id = o.member_id
    WHERE o.method = 'same clock'
    HAVING count(*) > 0
    UNION ALL
    SELECT 2, 0, 'other clock', NULL, max(abs(off_ns)) / 1e6, NULL,
        'The clocks of ' || count(*) || ' ranks are off by more than half an iteration: either '
        || 'they are, or the ordinals of their windows count other steps.'
    FROM off_by
    WHERE method <> 'same clock'
    HAVING count(*) > 0
    UNION ALL
    SELECT 3, 0, 'unmatched', NULL, NULL,
        100 * sum(operations) FILTER (WHERE reason IS NOT NULL) / sum(operations),
        CASE
            WHEN count(*) = 0
                THEN 'No group of collectives is known: ranks are compared by totals only.'
            WHEN count(*) FILTER (WHERE reason IS NULL) = 0
                THEN 'No collective matches (' || mode(reason ORDER BY reason) || '): ranks are compared by '
                || 'totals only, and nothing is said about transfer or waiting.'
            ELSE sum(operations) FILTER (WHERE reason IS NOT NULL) || ' of ' || sum(operations)
                || ' operations of the groups match nothing, mostly because ' || mode(reason ORDER BY reason) || '.'
        END
    FROM rank.match_set
    HAVING count(*) = 0 OR count(*) FILTER (WHERE reason IS NOT NULL) > 0
    UNION ALL
    SELECT
        4,
        0,
        CASE
            WHEN 100 * c.n >= p.repeat_pct * w.n THEN 'straggler'
            WHEN 2 * w.blamed >= w.n AND w.culprits > 1 THEN 'rotating'
            WHEN w.blamed > 0 THEN 'occasional'
            ELSE 'no straggler'
        END,
        CASE WHEN 100 * c.n >= p.repeat_pct * w.n THEN m.rank END,
        CASE WHEN 100 * c.n >= p.repeat_pct * w.n THEN c.caused_ns ELSE w.caused_ns END / 1e6,
        CASE
            WHEN 100 * c.n >= p.repeat_pct * w.n THEN 100 * c.n / w.n
            ELSE 100 * w.blamed / w.n
        END,
        CASE
            WHEN 100 * c.n >= p.repeat_pct * w.n
                THEN 'Among the sampled ranks ' || m.label || ' holds the others up most in ' || c.n
                || ' of ' || w.n || ' windows, by ' || printf('%.3g', c.caused_ns / 1e6)
                || ' ms (median) beyond what held it up itself'
                || coalesce(
                    (
                        SELECT CASE
                            WHEN more_ns >= c.caused_ns / 2
                                THEN '. It computes and copies ' || printf('%.3g', more_ns / 1e6)
                                || ' ms longer than the others of its stage (medians)'
                            ELSE '. It computes and copies no longer than the others of its stage: '
                                || 'look at its host (launch-starved) and at what it waits for'
                        END
                        FROM busier
                        WHERE more_ns IS NOT NULL
                    ),
                    ''
                )
                || CASE
                    WHEN (SELECT n FROM peers) = 1
                        AND (SELECT count(*) FROM rank.member) > 1
                        THEN '. No other sampled rank of its stage does the same work: look for '
                        || 'uneven load before a slow device'
                    ELSE ''
                END
            WHEN 2 * w.blamed >= w.n AND w.culprits > 1
                THEN 'In ' || w.blamed || ' of ' || w.n || ' windows a rank holds the others up, '
                || 'but it is another one from window to window (' || w.culprits
                || ' ranks): no rank is to blame'
            WHEN w.blamed > 0
                THEN 'A rank holds the others up in ' || w.blamed || ' of ' || w.n
                || ' windows only: no straggler'
            ELSE 'No sampled rank holds the others up by more than '
                || printf('%g', p.threshold_pct) || ' % of an iteration'
        END || CASE
            WHEN w.is_timed THEN '.' ELSE ' (order of arrival inferred from durations).'
        END
    FROM windows AS w
    CROSS JOIN params AS p
    LEFT JOIN culprit AS c ON true
    LEFT JOIN rank.member AS m ON m.member_id = c.member_id
    WHERE w.n > 0
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
    WHERE s.judgement <> 'as long'
    UNION ALL
    SELECT 6, 0, 'waiting', NULL, NULL,
        100 * sum(x.jitter_wait_ns) / sum(x.duration_ns),
        'Collectives of ' || x.kind || ' (' || x.collective || '): '
        || printf('%.3g', 100 * sum(x.jitter_wait_ns) / sum(x.duration_ns))
        || ' % of the time in matched instances is jitter wait' || CASE
            WHEN 2 * sum(x.jitter_wait_ns) > sum(x.duration_ns)
                THEN '. Look for the late member or uneven load, not for bandwidth.'
            ELSE ', the rest is the transfer proxy.'
        END
    FROM rank.matched AS x
    GROUP BY x.kind, x.collective
    HAVING sum(x.duration_ns) > 0
    UNION ALL
    SELECT 7, 0, 'stage imbalance', NULL, (max(busy_ns) - min(busy_ns)) / 1e6,
        100 * (max(busy_ns) - min(busy_ns)) / nullif(avg(busy_ns), 0),
        'Stage ' || arg_max(stage, (busy_ns, -stage)) || ' is the busiest ('
        || printf('%.3g', max(busy_ns) / 1e6) || ' ms without communication), stage '
        || arg_min(stage, (busy_ns, stage)) || ' the least (' || printf('%.3g', min(busy_ns) / 1e6)
        || ' ms): the others wait for the busiest.'
    FROM (
        SELECT m.stage, median(w.noncomm_busy_ns) AS busy_ns
        FROM rank.member AS m
        INNER JOIN rank.member_window AS w ON w.member_id = m.member_id
        WHERE m.stage IS NOT NULL
        GROUP BY m.stage
    ) AS per_stage
    CROSS JOIN params AS p
    HAVING count(*) > 1
        AND 100 * (max(busy_ns) - min(busy_ns)) > any_value(p.threshold_pct) * avg(busy_ns)
)
SELECT finding, rank, value_ms, share_pct, statement
FROM said
ORDER BY seq, member_id, finding, share_pct DESC NULLS LAST, statement;
