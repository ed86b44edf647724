-- clock — which ranks share a clock?
--
-- Ranks of one host do, once the start of the session is added; a report without one has a clock of
-- its own. The host is the declared one, else what the trace says as a hash, else unknown: then
-- the report stands alone as well.
--
-- @grain  one row per rank
-- @reads  rank.member, rank.trace, rank.part
-- @pitfall 23
SELECT
    m.member_id,
    coalesce(m.host, 'host ' || p.host_hash) AS host,
    CASE
        WHEN t.session_start_ns IS NULL THEN 'report ' || m.part
        ELSE coalesce('host ' || m.host, 'hash ' || p.host_hash, 'report ' || m.part)
    END AS clock,
    t.session_start_ns,
FROM rank.member AS m
INNER JOIN rank.trace AS t ON t.part = m.part
INNER JOIN rank.part AS p ON p.part = m.part;
