-- evidence — how well are the gaps of each device explained?
--
-- Where one of two captures has no launches or no events, its blocking time is a lower bound and
-- the other's is not, so the difference of the two is one of the captures.
--
-- @grain  one row per device and kind of evidence
-- @reads  nsys.gap_cut
-- @column device      BIGINT  -     physical GPU of the report
-- @column evidence    VARCHAR -     see nsys.gap_cut
-- @column gap_count   BIGINT  count gaps of the whole trace
-- @column blocking_ns BIGINT  ns    their blocking time
-- @pitfall 8, 21
SELECT
    device,
    evidence::VARCHAR AS evidence,
    count(*) AS gap_count,
    sum(unblocked_ns - issued_ns)::BIGINT AS blocking_ns,
FROM nsys.gap_cut
GROUP BY device, evidence;
