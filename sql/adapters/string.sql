-- string — what text does a string id of the trace stand for?
--
-- Exporters keep every name once here; all other tables carry ids. The text is read once into a
-- table, so that later joins never go back to the file. The same table holds the environment of
-- the target (NAME=VALUE, joined by NUL bytes), the files the capture took along, and the paths of
-- program modules: none of them is a name, all are left out.
--
-- Where the table is handed out, in a built database, to a query or to a recipe of the user's, it
-- holds those of nsys.named_string alone. The shipped steps only look names up by their ids.
--
-- @grain    one row per string id
-- @optional StringIds
-- @optional ProcessStreams
-- @optional ProcessStreams.contentId BIGINT
-- @optional ProcessStreams.filenameId BIGINT
-- @optional ANALYSIS_FILE
-- @optional ANALYSIS_FILE.contentId BIGINT
-- @materialize
-- @column   string_id BIGINT - id used by name and text columns
-- @column   value VARCHAR - the text
SELECT
    s."id" AS string_id,
    s."value" AS value
FROM trace."StringIds" AS s
WHERE
    contains(s."value", chr(0)) IS NOT TRUE
    AND regexp_matches(s."value", '^(/|[A-Za-z]:\\|[A-Za-z_][A-Za-z0-9_]*=)') IS NOT TRUE
    AND NOT EXISTS (
        SELECT 1
        FROM trace."ProcessStreams" AS p
        WHERE s."id" IN (p."contentId", p."filenameId")
    )
    AND NOT EXISTS (
        SELECT 1
        FROM trace."ANALYSIS_FILE" AS a
        WHERE s."id" = a."contentId"
    );
