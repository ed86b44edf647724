-- windows — over which windows do the statistics go, and which were dropped?
--
-- @reads   nsys.iteration
-- @param   device BIGINT = NULL the only device to report
WITH params AS (
    SELECT getvariable('device')::BIGINT AS device
),
counted AS (
    SELECT i.device, i.anchor, i.status, count(*) AS n
    FROM nsys.iteration AS i
    INNER JOIN params AS p ON p.device IS NULL OR p.device = i.device
    GROUP BY i.device, i.anchor, i.status
)
SELECT
    'device ' || device || ': n = ' || coalesce(sum(n) FILTER (WHERE status = 'steady'), 0)
    || ' steady windows of ' || any_value(anchor)
    || coalesce(
        '; dropped: '
        || string_agg(n || ' ' || status, ', ' ORDER BY status) FILTER (WHERE status <> 'steady'),
        ''
    ) AS note,
FROM counted
GROUP BY device
ORDER BY device;
