-- export_info — which exporter wrote this file, and with which options?
--
-- User, host and paths stand in the same table: only the names listed here are read. The schema
-- version is a label; what the file holds decides.
--
-- @grain    one row per property
-- @optional META_DATA_EXPORT
-- @optional META_DATA_EXPORT.name VARCHAR
-- @optional META_DATA_EXPORT.value VARCHAR
-- @materialize
-- @column   name VARCHAR - property
-- @column   value VARCHAR - value
SELECT
    m."name" AS name,
    m."value" AS value
FROM trace."META_DATA_EXPORT" AS m
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
        'EXPORT_CONFIG_TIME_SHIFT',
        'EXPORT_PARAM_INCLUDE_BLOBS',
        'EXPORT_PARAM_INCLUDE_JSON',
        'EXPORT_PARAM_LAZY',
        'EXPORT_PARAM_TABLES_TO_EXPORT',
        'EXPORT_PARAM_TIMES_TO_EXPORT',
        'EXPORT_PARAM_TIME_NORMALIZE',
        'EXPORT_PARAM_TIME_SHIFT'
    );
