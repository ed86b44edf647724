-- anchor — which anchor did auto take, and what speaks for it?
--
-- The driver sets the variable when it takes an anchor by itself.
--
-- @reads   nsys.steady
-- @param   anchor_message VARCHAR = NULL what the choice of the anchor said
WITH params AS (
    SELECT getvariable('anchor_message')::VARCHAR AS anchor_message
)
SELECT 'anchor taken by auto: ' || anchor_message AS note
FROM params
WHERE anchor_message IS NOT NULL AND EXISTS (SELECT 1 FROM nsys.steady);
