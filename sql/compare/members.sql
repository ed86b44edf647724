-- members — which device or rank was compared with which?
--
-- @grain  one row per pair and side
-- @reads  pair.member, pair.window
-- @column pair BIGINT - number of the pair
-- @column side VARCHAR - base or new
-- @column rank BIGINT - rank as declared, NULL unknown
-- @column device BIGINT - device number in its report
-- @column gpu VARCHAR - name of the GPU
-- @column n BIGINT - steady windows
-- @column trace VARCHAR - report it comes from
SELECT m.pair, m.side, m.rank, m.device, m.gpu, w.n, m.trace
FROM pair.member AS m
LEFT JOIN pair.window AS w ON w.pair = m.pair AND w.side = m.side
WHERE m.pair IS NOT NULL
ORDER BY m.pair, m.side;
