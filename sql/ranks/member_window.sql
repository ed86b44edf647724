-- member_window — which steady windows has each rank, and how does each split up?
--
-- Wall-clock times are the report's plus the start of its session (pitfall 23): clocks of one host
-- agree after that. Without a session start they stay on the report's clock.
--
-- @grain  one row per rank and steady window
-- @reads  rank.member, rank.budget, rank.trace
-- @pitfall 23
SELECT
    m.member_id,
    b.* EXCLUDE (part, device, start_ns, end_ns),
    b.start_ns + coalesce(t.session_start_ns, 0) AS start_ns,
    b.end_ns + coalesce(t.session_start_ns, 0) AS end_ns,
FROM rank.member AS m
INNER JOIN rank.budget AS b ON b.part = m.part AND b.device = m.device
INNER JOIN rank.trace AS t ON t.part = m.part;
