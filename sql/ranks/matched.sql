-- matched — which operations of different ranks are one collective, and who waited in it?
--
-- The transfer proxy is the duration of the shortest member, the jitter wait of a member is what
-- its own duration has beyond that. With some members not captured the proxy is an upper bound.
--
-- @grain  one row per rank and matched instance
-- @reads  rank.instance, rank.match_set
SELECT
    i.*,
    min(i.duration_ns) OVER instance AS transfer_proxy_ns,
    i.duration_ns - min(i.duration_ns) OVER instance AS jitter_wait_ns,
    s.members,
FROM rank.instance AS i
INNER JOIN rank.match_set AS s
    ON
        s.kind = i.kind AND s.name = i.name
        AND s.iteration = i.iteration AND s.collective = i.collective
WHERE s.reason IS NULL
WINDOW instance AS (PARTITION BY i.kind, i.name, i.iteration, i.collective, i.ordinal);
