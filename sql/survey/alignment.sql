-- alignment — on which clock does each rank stand, and do its windows start early or end late?
--
-- Report times become wall-clock times by the start of the session; ranks of one host need nothing
-- more. Another host gets a constant offset: the median difference of the ends of matched
-- collectives. The residual is what the offset leaves, absolute (pitfall 23). Starts and ends are
-- compared with the fastest rank of the same stage and fingerprint: a window that is longer because
-- it starts earlier is start skew, not a slow rank. With weak alignment only durations compare.
--
-- @grain  one row per sampled rank
-- @reads  rank.member, rank.aligned, rank.skew
-- @column rank BIGINT - rank as declared, NULL unknown
-- @column host VARCHAR - its host
-- @column session_start_ns BIGINT ns wall clock at the start of its session, NULL not told
-- @column method VARCHAR - reference, same clock, matched ends (through other hosts) or none
-- @column offset_ms DOUBLE ms added to its wall clock to reach the reference's
-- @column residual_median_us DOUBLE us median of the absolute residual
-- @column residual_p95_us DOUBLE us 95th percentile
-- @column residual_max_us DOUBLE us greatest
-- @column n BIGINT - matched ends
-- @column is_aligned BOOLEAN - starts and ends may be compared
-- @column peer VARCHAR - fastest rank of its group, NULL where it is that itself
-- @column longer_ms DOUBLE ms its windows are longer than the peer's, median
-- @column earlier_start_ms DOUBLE ms they start earlier, median; negative: later
-- @column later_end_ms DOUBLE ms they end later, median; negative: earlier
-- @column judgement VARCHAR - as long, start_skew, late_finish, both, or clocks not aligned
-- @pitfall 23
SELECT
    m.rank,
    a.host,
    a.session_start_ns,
    a.method,
    a.offset_ns / 1e6 AS offset_ms,
    a.median_ns / 1e3 AS residual_median_us,
    a.p95_ns / 1e3 AS residual_p95_us,
    a.max_ns / 1e3 AS residual_max_us,
    a.n,
    a.is_aligned,
    p.label AS peer,
    s.longer_ns / 1e6 AS longer_ms,
    s.earlier_start_ns / 1e6 AS earlier_start_ms,
    s.later_end_ns / 1e6 AS later_end_ms,
    s.judgement,
FROM rank.member AS m
INNER JOIN rank.aligned AS a ON a.member_id = m.member_id
LEFT JOIN rank.skew AS s ON s.member_id = m.member_id
LEFT JOIN rank.member AS p ON p.member_id = s.peer_id
ORDER BY m.member_id;
