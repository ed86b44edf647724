"""What ad-hoc SQL may do: read the trace in one SELECT, and nothing else, whatever is tried."""

import json
import re
import sqlite3
from contextlib import closing

import duckdb
import pytest

import nsys_sql
from nsys_sql import cli, sandbox
from nsys_sql.errors import AnswerError, UsageError


@pytest.fixture(scope="module")
def trace(fixture_sqlite):
    return fixture_sqlite("event_waits")


@pytest.fixture(scope="module")
def model(trace):
    with nsys_sql.open(trace) as opened:
        yield opened


ATTACKS = [
    # other databases
    "ATTACH '{trace}' AS other (TYPE sqlite)",
    "ATTACH ':memory:' AS other",
    "DETACH trace",
    "USE trace",
    "FROM sqlite_scan('{trace}', 'StringIds')",
    "FROM sqlite_query('trace', 'SELECT value FROM StringIds')",
    "FROM sqlite_attach('{trace}')",
    "FROM postgres_scan('', '', '')",
    # files
    "FROM '{file}'",
    "TABLE '{file}'",
    'FROM "{file}"',
    "SELECT * FROM kernel, '{file}' AS f",
    "DESCRIBE '{file}'",
    "SUMMARIZE '{file}'",
    "WITH a AS MATERIALIZED (FROM '{file}') FROM a",
    "SELECT (SELECT count(*) FROM '{file}')",
    "FROM read_csv('{file}')",
    "FROM read_csv_auto('{file}')",
    "FROM sniff_csv('{file}')",
    "FROM read_text('{file}')",
    "FROM read_blob('{file}')",
    "FROM read_json('{file}')",
    "FROM read_parquet('{file}')",
    "FROM parquet_metadata('{file}')",
    "FROM parquet_schema('{file}')",
    "FROM glob('/*')",
    "FROM system.main.read_text('{file}')",
    "SELECT * FROM kernel AS k, LATERAL (FROM read_text('{file}'))",
    "FROM 'https://example.org/x.parquet'",
    "COPY (SELECT 1) TO '{file}.csv'",
    "COPY kernel TO '{file}.parquet'",
    "EXPORT DATABASE '{file}.d'",
    "IMPORT DATABASE '{file}.d'",
    # relations by text
    "FROM query('FROM ''{file}''')",
    "FROM query_table('{file}')",
    "FROM query_table(['kernel'])",
    "FROM nsys.iv_union('{file}', 1)",
    "FROM nsys.iv_union('trace.StringIds', 1)",
    "FROM nsys.iv_union('tra' || 'ce.StringIds', 1)",
    "FROM nsys.iv_union(p_rel := 'trace.StringIds', p_part := 1)",
    "FROM nsys.iv_union(p_part := 1, p_rel := '{file}')",
    "FROM nsys.iv_subtract('nsys.op', '{file}')",
    "FROM json_execute_serialized_sql('x')",
    "SELECT json_execute_serialized_sql('x')",
    "SELECT json_serialize_plan('SELECT * FROM sqlite_scan(''{trace}'', ''StringIds'')')",
    "SELECT json_serialize_plan('SELECT current_setting(''temp_directory'')', optimize := true)",
    "SELECT JSON_Serialize_SQL('SELECT 1')",
    "SELECT json_deserialize_sql('x')",
    "SELECT currval('s')",
    # the machine
    "SELECT getenv('HOME')",
    "SELECT main.getenv('HOME')",
    "SELECT list_transform(['HOME'], lambda x: getenv(x))",
    "SELECT current_setting('temp_directory')",
    "FROM duckdb_settings()",
    "FROM duckdb_databases()",
    "FROM duckdb_databases",
    "SELECT file FROM system.main.pragma_database_list",
    "FROM duckdb_secrets()",
    "FROM pg_catalog.pg_settings",
    "FROM which_secret('x', 'y')",
    "FROM duckdb_extensions()",
    "FROM duckdb_temporary_files()",
    # statements that are no SELECT
    "SET threads = 1",
    "SET VARIABLE x = 1",
    "RESET threads",
    "PRAGMA database_list",
    "PRAGMA enable_profiling",
    "CALL pragma_version()",
    "INSTALL httpfs",
    "LOAD httpfs",
    "CREATE TABLE t AS SELECT 1",
    "CREATE MACRO m() AS 1",
    "CREATE TEMP VIEW v AS SELECT 1",
    "INSERT INTO kernel SELECT * FROM kernel",
    "UPDATE nsys.capability SET is_present = true",
    "DELETE FROM nsys.capability",
    "DROP VIEW nsys.kernel",
    "ALTER TABLE nsys.capability RENAME TO x",
    "PREPARE p AS SELECT 1",
    "EXECUTE p",
    "DEALLOCATE p",
    "EXPLAIN ANALYZE SELECT 1",
    "BEGIN",
    "CHECKPOINT",
    "VACUUM",
    "SELECT 1; DROP VIEW nsys.kernel",
    "SELECT 1; SELECT 2",
    "SELECT 1 -- ;\n; FROM '{file}'",
    "/* SELECT 1 */ DROP VIEW nsys.kernel",
    # the environment of the profiled program
    "FROM trace.StringIds",
    "FROM trace.main.StringIds",
    'FROM "TRACE"."stringids"',
    "FROM trace.main.META_DATA_CAPTURE_V2",
    "SELECT s.value FROM kernel, trace.StringIds AS s",
    "SUMMARIZE trace.main.META_DATA_CAPTURE",
    "DESCRIBE FROM temp.nsys_StringIds",
    "WITH kernel AS (FROM trace.StringIds) FROM kernel",
]


@pytest.mark.parametrize("sql", ATTACKS)
def test_it_is_refused(model, trace, tmp_path, sql):
    file = tmp_path / "file.csv"
    file.write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(UsageError):
        model.rows(model.query(sql.format(file=file, trace=trace)))
    assert [each.name for each in tmp_path.iterdir()] == ["file.csv"]


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("WITH string AS (SELECT 'mine' AS value) FROM string", [("mine",)]),  # shadows, and only
        ("WITH RECURSIVE a(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM a WHERE i < 3) "
         "SELECT max(i) FROM a", [(3,)]),
        ("-- first\nSELECT /* ; */ 1 -- last ;", [(1,)]),
        ("SELECT 1;", [(1,)]),
        ("SELECT ';' || $$;$$", [(";;",)]),
        ("VALUES (1)", [(1,)]),
        ("SELECT count(*) FROM (SUMMARIZE kernel)", [(22,)]),
        ("SELECT count(*) FROM (DESCRIBE nsys.string)", [(2,)]),
        ("SELECT count(*) > 9 FROM duckdb_views()", [(True,)]),
        ("FROM nsys.iv_measure('nsys.op', 0) SELECT count(*)", [(1,)]),
        ("WITH mine AS (SELECT 1::BIGINT AS start_ns, 3::BIGINT AS end_ns) "
         "SELECT measure_ns FROM nsys.iv_measure('mine', 0)", [(2,)]),
        ("SELECT getvariable('nothing')", [(None,)]),
    ],
)  # fmt: skip
def test_what_only_reads_is_answered(model, sql, rows):
    assert model.rows(model.query(sql)) == rows


def test_the_connection_stays_shut_below_the_syntax_check(trace, tmp_path):
    file = tmp_path / "file.csv"
    file.write_text("a\n1\n", encoding="utf-8")
    with nsys_sql.open(trace) as model:
        model.query("SELECT 1")
        for sql in (
            f"FROM '{file}'",
            f"COPY (SELECT 1) TO '{tmp_path / 'x.csv'}'",
            "SET enable_external_access = true",
            "SET lock_configuration = false",
            "INSTALL httpfs",
            f"ATTACH '{tmp_path / 'x.duckdb'}' AS x",
        ):
            with pytest.raises(duckdb.Error):
                model.con.execute(sql)
    assert [each.name for each in tmp_path.iterdir()] == ["file.csv"]


def test_no_function_takes_sql_as_text(model, tmp_path):
    """What DuckDB of any version brings: each function is asked to plan or run a query."""
    other = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(other)) as db:
        db.execute("CREATE TABLE t (canary_column)")
        db.execute("INSERT INTO t VALUES ('canary_row')")
        db.commit()
    names = model.con.execute(
        "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type <> 'pragma' "
        "AND function_name NOT IN ('error', 'sleep_ms', 'pg_sleep') ORDER BY 1"
    ).fetchall()
    assert len(names) > 500
    text = f"SELECT * FROM sqlite_scan(''{other}'', ''t'')"
    tried = 0
    for (name,) in names:
        if not re.fullmatch(r"[a-z_]\w*", name):
            continue  # an operator
        for form in (f"SELECT {name}('{text}')", f"FROM {name}('{text}')"):
            tree = json.loads(
                duckdb.sql("SELECT json_serialize_sql(?)", params=[form]).fetchone()[0]
            )
            try:
                sandbox.inspect(tree, {}, "trace", "nsys_")
            except UsageError:
                continue
            tried += 1
            try:
                said = str(model.con.execute(form).fetchall())
            except duckdb.Error as error:
                said = str(error)
            assert "canary" not in said, form
    assert tried > 400


def test_versions_of_secret_tables_are_secret():
    assert sandbox.is_secret("StringIds")
    assert sandbox.is_secret("META_DATA_CAPTURE_V12")
    assert not sandbox.is_secret("NVTX_EVENTS")


# ---------------------------------------------------------------- the command


def test_a_query_comes_from_argument_file_or_standard_input(
    trace, tmp_path, capsysbinary, monkeypatch
):
    import io

    query = "SELECT stream_id, count(*) AS n FROM kernel GROUP BY ALL ORDER BY ALL"
    file = tmp_path / "q.sql"
    file.write_text(query, encoding="utf-8")
    found = set()
    for given in ([query], ["-f", str(file)], ["-"], []):
        monkeypatch.setattr("sys.stdin", io.StringIO(query))
        assert cli.execute(["sql", str(trace), *given, "--format", "csv"]) == 0
        found.add(capsysbinary.readouterr().out)
    assert len(found) == 1
    assert found.pop().startswith(b"stream_id,n\n")


def test_every_format_holds_the_same_rows(trace, tmp_path, capsysbinary):
    query = "SELECT count(*) AS n, 'a|b' AS t FROM kernel"
    out = {}
    for form in ("table", "json", "csv", "markdown"):
        assert cli.execute(["sql", str(trace), query, "--format", form]) == 0
        out[form] = capsysbinary.readouterr().out.decode()
    assert json.loads(out["json"])["rows"] == [{"n": 8, "t": "a|b"}]
    assert out["csv"] == "n,t\n8,a|b\n"
    assert r"| 8 | a\|b |" in out["markdown"]
    target = tmp_path / "x.parquet"
    assert cli.execute(["sql", str(trace), query, "--format", "parquet", "-o", str(target)]) == 0
    assert duckdb.read_parquet(str(target)).fetchall() == [(8, "a|b")]


def test_parameters_reach_the_recipes_of_a_query(trace, capsysbinary):
    query = "SELECT count(*) AS n, getvariable('top') AS top FROM top_gaps"
    assert cli.execute(["sql", str(trace), query, "--param", "top=2", "--format", "csv"]) == 0
    assert capsysbinary.readouterr().out == b"n,top\n2,2\n"


@pytest.mark.parametrize("command", ["sql", "run"])
def test_a_query_that_takes_too_long_ends(trace, capsys, monkeypatch, command):
    slow = "SELECT sum(a.range * b.range) FROM range(10000000) AS a, range(10000000) AS b"
    if command == "run":

        def is_slow(model, *_):
            model.con.execute(slow)
            return []

        monkeypatch.setattr("nsys_sql.session.Model._checks", is_slow)

    arguments = [command, *((str(trace), slow) if command == "sql" else ("devices", str(trace)))]
    assert cli.execute([*arguments, "--timeout", "1"]) == AnswerError.exit_code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("Error: there is no answer after 1 s; raise --timeout")
    assert err.count("\n") == 1
    assert cli.execute(["sql", str(trace), "SELECT 1", "--timeout", "60"]) == 0
    assert cli.execute(["sql", str(trace), "SELECT 1", "--timeout", "0"]) == 2
