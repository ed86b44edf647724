-- diagnostic — what did the profiler say about the capture?
--
-- Messages of the profiler, for instance about lost events. What may name a user or a host, or hold
-- a secret, is replaced: paths, absolute ones and those that begin at `~`, `.` or a variable; the
-- names of host and user that the trace knows; what stands before the @ of a URL; what follows
-- words like command or arguments, in quotes or behind a colon; the values of NAME=VALUE, and of
-- names and options that speak of a token, secret, password, key or credential.
--
-- @grain    one row per message
-- @optional DIAGNOSTIC_EVENT
-- @optional DIAGNOSTIC_EVENT.timestamp BIGINT
-- @optional DIAGNOSTIC_EVENT.source BIGINT
-- @optional DIAGNOSTIC_EVENT.severity BIGINT
-- @optional DIAGNOSTIC_EVENT.text VARCHAR
-- @optional DIAGNOSTIC_EVENT.globalPid BIGINT
-- @materialize
-- @optional EXPORT_META_DATA
-- @optional EXPORT_META_DATA.name VARCHAR
-- @optional EXPORT_META_DATA.value VARCHAR
-- @optional META_DATA_CAPTURE
-- @optional META_DATA_CAPTURE.name VARCHAR
-- @optional META_DATA_CAPTURE.value VARCHAR
-- @optional META_DATA_EXPORT
-- @optional META_DATA_EXPORT.name VARCHAR
-- @optional META_DATA_EXPORT.value VARCHAR
-- @optional TARGET_INFO_SYSTEM_ENV
-- @optional TARGET_INFO_SYSTEM_ENV.name VARCHAR
-- @optional TARGET_INFO_SYSTEM_ENV.value VARCHAR
-- @materialize
-- @column   time_ns BIGINT ns time of the message
-- @column   source BIGINT - component that wrote it
-- @column   severity BIGINT - 1 information, 2 warning, 3 error, 4 verbose
-- @column   process BIGINT - process key, globalPid >> 24
-- @column   text VARCHAR - message, with <path>, <name>, <command> or <value> for what is replaced
SELECT
    d."timestamp" AS time_ns,
    d."source" AS source,
    d."severity" AS severity,
    d."globalPid" >> 24 AS process,
    list_reduce(
        coalesce(
            (
                -- the longest first, since one may be part of another
                SELECT list(n.name ORDER BY length(n.name) DESC, n.name)
                FROM (
                    SELECT e."value" AS name
                    FROM trace."TARGET_INFO_SYSTEM_ENV" AS e
                    WHERE e."name" = 'Hostname'
                    UNION
                    SELECT split_part(h."value", '.', 1)
                    FROM trace."TARGET_INFO_SYSTEM_ENV" AS h
                    WHERE h."name" = 'Hostname'
                    UNION
                    SELECT x."value"
                    FROM trace."META_DATA_EXPORT" AS x
                    WHERE x."name" IN ('EXPORT_HOST', 'EXPORT_USER')
                    UNION
                    SELECT o."value"
                    FROM trace."EXPORT_META_DATA" AS o
                    WHERE o."name" IN ('EXPORT_HOST', 'EXPORT_USER')
                    UNION
                    SELECT c."value"
                    FROM trace."META_DATA_CAPTURE" AS c
                    WHERE regexp_matches(c."name", '^PROCESS_[0-9]+:USER_NAME$')
                ) AS n
                WHERE length(n.name) > 2
            ),
            []
        ),
        lambda p_text, p_name: replace(p_text, p_name, '<name>'),
        -- from what takes most along to what takes least: a command holds assignments and paths
        regexp_replace(
            regexp_replace(
                regexp_replace(
                    regexp_replace(
                        d."text",
                        '(\b(?:commands?|cmd|arg(?:ument)?s?|argv)(?:[ _-]?line)?\b'
                        || '(?:["'']?\s*[:=]\s*|\s+)[\[(]*)'
                        || '(?:"(?:\\.|[^"\\])*"?|''(?:\\.|[^''\\])*''?|`[^`]*`?)'
                        || '(?:[\s,]+(?:"(?:\\.|[^"\\])*"?|''(?:\\.|[^''\\])*''?|`[^`]*`?))*'
                        || '|(\b(?:commands?|cmd|arg(?:ument)?s?|argv)(?:[ _-]?line)?\b'
                        || '["'']?\s*[:=]\s*)[^\s"''`][^\n]*',
                        '\1\2<command>',
                        'gis'
                    ),
                    '\b([A-Za-z][A-Za-z0-9+.-]*://)\S*@',
                    '\1<name>@',
                    'g'
                ),
                '(\b[A-Z_][A-Z0-9_]*='
                || '|\b[A-Z0-9_]*(?:TOKEN|SECRET|PASSW(?:OR)?D|KEY|CREDENTIAL)[A-Z0-9_]*'
                || '["'']?\s*[:=]\s*'
                || '|(?i:--?[\w-]*(?:token|secret|passw|key|credential)[\w-]*\s+)'
                || '|(?i:[\w-]*(?:token|secret|passw|key|credential)[\w-]*["'']?\s*=\s*))'
                || '(?:"(?:\\.|[^"\\])*"?|''(?:\\.|[^''\\])*''?|\S+)',
                '\1<value>',
                'gs'
            ),
            '(?:\b[A-Za-z]:)?[/\\][^\s''":,;]*[/\\][^\s''":,;]*'
            || '|\B(?:~(?:[A-Za-z_][\w.-]*)?|\.\.?|\$\{?\w+\}?|%\w+%)[/\\][^\s''":,;]*',
            '<path>',
            'g'
        )
    ) AS text
FROM trace."DIAGNOSTIC_EVENT" AS d;
