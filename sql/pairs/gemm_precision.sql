-- gemm_precision — in which number formats do the GEMMs of each side compute?
--
-- As far as names tell: the input format of each GEMM kernel, with its count per iteration. A name
-- that says nothing is listed as unknown.
--
-- @grain  one row per pair and side
-- @reads  pair.content
WITH named AS (
    SELECT
        pair,
        side,
        count,
        CASE
            WHEN regexp_matches(key, '(?i)e2m1|nvf4|(^|nv|mx|[^a-z0-9])fp4') THEN 'fp4'
            WHEN regexp_matches(
                key, '(?i)e4m3|e5m2|(^|mx|[^a-z0-9])fp8|float8|nvjet_(sm\d+_)?[qr]'
            )
                THEN 'fp8'
            WHEN regexp_matches(key, '(?i)bf16|bfloat16|nvjet_(sm\d+_)?t') THEN 'bf16'
            WHEN regexp_matches(key, '(?i)f16|half_t|__half|hgemm|h\d+gemm|nvjet_(sm\d+_)?h')
                THEN 'f16'
            WHEN regexp_matches(key, '(?i)tf32|s1688gemm|nvjet_(sm\d+_)?s') THEN 'tf32'
            WHEN regexp_matches(key, '(?i)f64|dgemm|<double|double,') THEN 'f64'
            WHEN regexp_matches(key, '(?i)i8i8|int8|s8s8') THEN 'int8'
            WHEN regexp_matches(key, '(?i)f32f32|sgemm|<float|float,') THEN 'f32'
            ELSE 'unknown'
        END AS format,
    FROM pair.content
    WHERE kind = 'kernel' AND class IN ('gemm', 'fused_gemm_comm') AND count > 0
),
counted AS (
    SELECT pair, side, format, sum(count) AS n FROM named GROUP BY pair, side, format
)
SELECT
    pair,
    side,
    string_agg(format || ' ' || printf('%g', n), ', ' ORDER BY format) AS formats,
FROM counted
GROUP BY pair, side;
