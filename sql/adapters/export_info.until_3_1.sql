-- export_info — which exporter wrote this file, and with which options?
--
-- Until schema 3.1 the table had another name and its options no PARAM in theirs; they are renamed.
--
-- @grain    one row per property
-- @when     EXPORT_META_DATA present
-- @when     META_DATA_EXPORT absent
-- @optional EXPORT_META_DATA
-- @optional EXPORT_META_DATA.name VARCHAR
-- @optional EXPORT_META_DATA.value VARCHAR
-- @materialize
-- @column   name VARCHAR - property
-- @column   value VARCHAR - value
SELECT
    CASE m."name" WHEN 'EXPORT_LAZY' THEN 'EXPORT_PARAM_LAZY' ELSE m."name" END AS name,
    m."value" AS value
FROM trace."EXPORT_META_DATA" AS m
WHERE
    m."name" IN (
        'EXPORT_ARCH',
        'EXPORT_PLATFORM',
        'EXPORT_PRODUCT_DATE',
        'EXPORT_PRODUCT_NAME',
        'EXPORT_PRODUCT_VERSION',
        'EXPORT_SCHEMA_VERSION',
        'EXPORT_SCHEMA_VERSION_MAJOR',
        'EXPORT_SCHEMA_VERSION_MINOR',
        'EXPORT_SCHEMA_VERSION_MICRO',
        'EXPORT_LAZY',
        'EXPORT_CONFIG_TIME_SHIFT',
        'EXPORT_PARAM_TIME_NORMALIZE',
        'EXPORT_PARAM_TIME_SHIFT',
        'EXPORT_TIME_NORMALIZE',
        'EXPORT_TIME_SHIFT'
    );
