-- membership — which ranks form which groups of collectives?
--
-- Groups of the mapping whose rule says which collectives are their own. Where the mapping has no
-- rule at all and the export names communicators, each communicator is a group of its own.
--
-- @grain  one row per group and rank
-- @reads  rank.declared, rank.rule, rank.member, rank.collective
SELECT d.member_id, d.kind, d.name
FROM rank.declared AS d
WHERE d.kind IN (SELECT kind FROM rank.rule)
UNION
SELECT m.member_id, 'communicator', c.communicator
FROM rank.member AS m
INNER JOIN rank.collective AS c ON c.part = m.part AND c.device = m.device
WHERE c.communicator IS NOT NULL AND NOT EXISTS (FROM rank.rule);
