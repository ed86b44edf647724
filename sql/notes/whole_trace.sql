-- whole_trace — does the result cover the whole trace because there is no steady window?
--
-- @reads   nsys.steady
SELECT
    'no steady window: the whole trace is shown, and shares of an iteration are unknown '
    || '(see `nsys-sql run anchors`, then pass --anchor)' AS note
WHERE NOT EXISTS (SELECT 1 FROM nsys.steady);
