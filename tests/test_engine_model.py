"""Models: plans, results, checks, notes, ad-hoc queries, attach, build, and show = run."""

import dataclasses
import sqlite3
from pathlib import Path

import duckdb
import pytest

import nsys_sql
from nsys_sql import database, session
from nsys_sql.catalog import RecipeEntry, load_catalog, parse
from nsys_sql.errors import AnswerError, NsysSqlError, UsageError
from nsys_sql.options import Options
from nsys_sql.plan import Planner, Shape
from nsys_sql.taxonomy import load_rules, macro_sql

CATALOG = load_catalog()
KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"
STEPS = 12
# A run of identical steps: an NVTX range around three kernels, of which the middle one is NCCL.
SCRIPT = f"""
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
INSERT INTO StringIds VALUES (1, 'sm90_gemm'), (2, 'ncclDevKernel_AllReduce_Sum_bf16'),
    (3, 'cudaLaunchKernel');
CREATE TABLE {KERNEL} ("start" INTEGER, "end" INTEGER, deviceId INTEGER, contextId INTEGER,
    streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER,
    shortName INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME ("start" INTEGER, "end" INTEGER, eventClass INTEGER,
    globalTid INTEGER, correlationId INTEGER, nameId INTEGER);
CREATE TABLE NVTX_EVENTS ("start" INTEGER, "end" INTEGER, eventType INTEGER, text TEXT,
    globalTid INTEGER, domainId INTEGER);
CREATE TABLE ANALYSIS_DETAILS (duration INTEGER);
INSERT INTO ANALYSIS_DETAILS VALUES (100000000);
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {STEPS} * 3 - 1)
INSERT INTO {KERNEL}
SELECT 1000000 + i * 300000, 1200000 + i * 300000, 0, 1, 7, i + 1, 1 << 24,
    1 + (i % 3 = 1), 1 + (i % 3 = 1) FROM n;
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME
SELECT "start" - 20000, "start" - 10000, 0, (1 << 24) + 5, correlationId, 3 FROM {KERNEL};
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {STEPS} - 1)
INSERT INTO NVTX_EVENTS
SELECT 900000 + i * 900000, 900000 + i * 900000 + 890000, 59, 'step ' || i, (1 << 24) + 5, 0
FROM n;
"""


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "steps.sqlite"
    database = sqlite3.connect(path)
    database.executescript(SCRIPT)
    database.commit()
    database.close()
    return path


@pytest.fixture(scope="module")
def model(trace):
    with nsys_sql.open(trace) as opened:
        yield opened


def with_recipe(path, text, notes=(), invariants=(), options=None, **files):
    """A model whose catalog has one more recipe `probe`, and more notes and invariants."""
    catalog = dataclasses.replace(
        CATALOG,
        recipes={**CATALOG.recipes, "probe": parse("recipe", Path("sql/recipes/probe.sql"), text)},
        notes={
            **CATALOG.notes,
            **{k: parse("note", Path(f"sql/notes/{k}.sql"), files[k]) for k in notes},
        },
        invariants={
            **CATALOG.invariants,
            **{
                k: parse("invariant", Path(f"sql/invariants/{k}.sql"), files[k]) for k in invariants
            },
        },
        entries={**CATALOG.entries, "probe": RecipeEntry(tuple(notes), tuple(invariants))},
    )
    return session.Model(duckdb.connect(), path, options or Options(), catalog)


PROBE = """-- probe — what do the kernels add up to?
-- @grain one row per stream
-- @reads nsys.kernel
-- @param least BIGINT = 0  smallest stream
-- @param word VARCHAR = 'none'  any text
-- @column stream_id BIGINT - stream
-- @column kernel_count BIGINT - kernels
-- @column word VARCHAR - the word
-- @invariant some kernel_count > 0
-- @invariant unknown NULL
-- @warning many kernel_count > 1000
WITH params AS (
    SELECT coalesce(getvariable('least'), 0)::BIGINT AS least,
        coalesce(getvariable('word'), 'none')::VARCHAR AS word
)
SELECT k.stream_id, count(*) AS kernel_count, any_value(p.word) AS word
FROM nsys.kernel AS k, params AS p
WHERE k.stream_id >= p.least
GROUP BY k.stream_id
ORDER BY k.stream_id;
"""


# ---------------------------------------------------------------- results, checks, notes


def test_checks_have_names_states_and_details(trace):
    with with_recipe(trace, PROBE) as model:
        result = model.result("probe")
        assert result.rows == [(7, 36, "none")]
        assert [(c.name, c.status) for c in result.checks] == [
            ("some", "ok"),
            ("unknown", "fail"),  # NULL is not true
            ("many", "warn"),
        ]
        assert result.checks[0].detail == "1 rows"
        assert result.checks[1].detail == "1 of 1 rows: (stream_id=7, kernel_count=36, word=none)"
        assert model.checks == result.checks


def test_notes_and_invariants_may_read_other_results(trace):
    note = (
        "-- n — what?\n-- @reads result_budget\nSELECT 'rows: ' || count(*) FROM result_budget;\n"
    )
    audit = "-- a — bad?\n-- @reads result_probe\nSELECT * FROM result_probe WHERE stream_id = 7;\n"
    with with_recipe(trace, PROBE, notes=["n"], invariants=["a"], n=note, a=audit) as model:
        result = model.result("probe")
        assert result.notes == ("rows: 15",)
        assert result.checks[-1].name == "a"
        assert result.checks[-1].status == "fail"
        assert result.checks[-1].detail.startswith("1 rows: (stream_id=7")


def test_a_relation_keeps_its_rows_when_the_recipe_runs_again(trace):
    with with_recipe(trace, PROBE) as model:
        first = model.run("probe")
        assert first.columns == ["stream_id", "kernel_count", "word"]
        assert model.run("probe", least="8", word="it's; --x").fetchall() == []
        assert first.fetchall() == [(7, 36, "none")]
        assert model.run("probe", least=7).fetchall() == [(7, 36, "none")]  # word is forgotten


def test_parameters_are_checked(trace):
    with with_recipe(trace, PROBE) as model:
        with pytest.raises(UsageError, match="no parameter 'leest'") as caught:
            model.run("probe", leest=1)
        assert "least" in caught.value.hint
        with pytest.raises(UsageError, match="is not a BIGINT"):
            model.run("probe", least="1; DROP TABLE x")
        with pytest.raises(UsageError, match="no recipe 'probes'") as caught:
            model.run("probes")
        assert caught.value.hint == "did you mean 'probe'?"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("count(*) AS", "count(*)::INTEGER AS", "column kernel_count is declared BIGINT"),
        ("AS kernel_count", "AS kernels", "declares the columns stream_id, kernel_count, word"),
        ("@invariant some kernel_count > 0", "@invariant some nothing > 0", "check some cannot be"),
        ("nsys.kernel AS k", "nsys.colonel AS k", "reads nsys.colonel"),
        ("count(*)", "coutn(*)", "sql/recipes/probe.sql failed on"),
    ],
)
def test_a_wrong_sql_file_is_named_with_its_error(trace, old, new, words):
    with with_recipe(trace, PROBE.replace(old, new)) as model:
        with pytest.raises(NsysSqlError, match=words) as caught:
            model.run("probe")
        assert "sql/recipes/probe.sql" in str(caught.value)


def test_a_relation_that_was_not_captured_is_told(trace):
    text = PROBE.replace("-- @reads", "-- @needs kernel, graph_exec|gpu_metric\n-- @reads")
    with with_recipe(trace, text) as model:
        with pytest.raises(AnswerError, match="no graph exec and no gpu metric table") as caught:
            model.run("probe")
        assert caught.value.exit_code == 4
        assert "nsys profile" in caught.value.hint
        assert model.why_not("probe").startswith("probe: this export has no graph exec")
    with with_recipe(trace, text.replace("gpu_metric", "nvtx")) as model:
        assert model.why_not("probe") is None
        assert len(model.result("probe").rows) == 1


# ---------------------------------------------------------------- anchors and windows


def test_recipes_answer_on_the_anchor_that_is_found(trace):
    with nsys_sql.open(trace) as model:
        budget = model.result("budget").rows
        assert {check.status for check in model.checks} == {"ok"}
        assert len(model.result("iterations").rows) == STEPS
    with nsys_sql.open(trace, anchor="nvtx:step *", skip_first=2) as model:
        assert model.result("iterations").rows[0][-2:-1] != ("steady",)
        assert budget[0][-1] - 2 == model.result("budget").rows[0][-1]


def test_steps_can_be_dropped_as_soon_as_nothing_reads_them(trace):
    with nsys_sql.open(trace) as model:
        wanted = [(model.result(name).rows, model.notes) for name in ("budget", "gaps")]
        kept = model.con.execute("SELECT count(*) FROM duckdb_tables()").fetchone()
    with nsys_sql.open(trace, keep_steps=False) as model:
        found = [(model.result(name).rows, model.notes) for name in ("budget", "gaps")]
        left = model.con.execute("SELECT count(*) FROM duckdb_tables()").fetchone()
        assert found == wanted
        assert left < kept
        assert model.run("budget").fetchall() == wanted[0][0]  # from its own table


def test_without_a_steady_window_the_answer_says_why(trace):
    with nsys_sql.open(trace, anchor="nvtx:step *", skip_first=100) as model:
        with pytest.raises(AnswerError, match=rf"no iteration is steady.*{STEPS} warmup") as caught:
            model.run("budget")
        assert "iterations" in caught.value.hint
        assert len(model.result("iterations").rows) == STEPS
        assert model.result("gaps").rows
    with (
        nsys_sql.open(trace, anchor="nvtx:nothing*") as model,
        pytest.raises(AnswerError, match="matches nothing"),
    ):
        model.run("budget")


def test_a_plan_holds_only_what_is_needed_and_nothing_of_auto_for_a_given_anchor():
    shape = Shape({KERNEL: dict.fromkeys(("start", "end", "deviceId", "streamId"), "BIGINT")})
    names = {}
    for anchor in ("auto", "kernel:gemm"):
        planner = Planner(CATALOG, shape, Options(anchor=anchor), lambda: macro_sql(load_rules()))
        statements = planner.plan(["iterations"])
        names[anchor] = [each.name for each in statements]
        assert statements[-1].kind == "recipe"
        assert not statements[-1].sql.endswith(";")
    assert "anchor_choice" in names["auto"]
    assert names["auto"].index("anchor_choice") < names["auto"].index("iteration")
    chosen = names["auto"].index("anchor_choice")
    assert names["auto"][chosen + 1 : chosen + 3] == ["anchor_kind", "anchor_pattern"]
    assert "anchor_choice" not in names["kernel:gemm"]
    assert "gap" not in names["auto"]
    assert "osrt_call" not in names["auto"]


# ---------------------------------------------------------------- show, attach, build


@pytest.mark.parametrize("recipe", ["budget", "gaps"])
def test_show_prints_what_run_executes(trace, recipe):
    with nsys_sql.open(trace) as model:
        script = model.script(recipe)
        rows = model.result(recipe).rows
    con = duckdb.connect()
    assert con.execute(script).fetchall() == rows
    con.close()
    # as a shell would: statement by statement
    con = duckdb.connect()
    for statement in con.extract_statements(script):
        found = con.execute(statement)
    assert found.fetchall() == rows
    con.close()
    assert "READ_ONLY" in script


def test_attach_puts_everything_into_the_callers_connection(trace):
    with nsys_sql.open(trace) as model:
        rows = model.result("budget").rows
    con = duckdb.connect()
    con.execute("CREATE TABLE mine AS SELECT 1 AS a; SET preserve_insertion_order = false")
    con.execute("ATTACH ':memory:' AS trace")
    with nsys_sql.attach(con, trace, schema="steps") as model:
        assert con.execute("SELECT count(*) FROM steps.kernel").fetchone() == (36,)
        assert con.execute("FROM steps.budget").fetchall() == rows
        assert model.run("budget").fetchall() == rows
        assert con.execute("FROM mine").fetchall() == [(1,)]
        with pytest.raises(UsageError, match="own connection"):
            model.query("SELECT 1")
    assert con.execute("SELECT count(*) FROM steps.op").fetchone() == (36,)
    assert con.execute("SELECT current_setting('preserve_insertion_order')").fetchone() == (False,)
    con.close()
    with pytest.raises(UsageError, match="not a plain SQL name"):
        nsys_sql.attach(duckdb.connect(), trace, schema="a b")


def test_a_built_database_answers_alone_and_through_the_package(trace, tmp_path):
    target = tmp_path / "steps.duckdb"
    with nsys_sql.open(trace) as model:
        wanted = {name: model.result(name).rows for name in ("budget", "kernels")}
        versions = model.trace.product_version
    database.build(trace, target)
    con = duckdb.connect(str(target), read_only=True)
    for name, rows in wanted.items():
        assert con.execute(f"FROM {name}").fetchall() == rows
    con.close()
    with nsys_sql.open(target) as model:
        assert model.trace.product_version == versions
        assert "kernel" in model.trace.present
        assert "memcpy" not in model.trace.present
        for name, rows in wanted.items():
            assert model.result(name).rows == rows
    with nsys_sql.open(target, anchor="nvtx:step *", skip_first=1) as model:
        assert model.result("budget").rows[0][-1] == STEPS - 1
    with pytest.raises(UsageError, match="exists"):
        database.build(trace, target)
    with pytest.raises(UsageError, match="ambiguous"):
        database.build(trace, tmp_path / "nsys.duckdb")


def test_another_duckdb_database_is_refused(tmp_path):
    path = tmp_path / "other.duckdb"
    con = duckdb.connect(str(path))
    con.execute("CREATE TABLE a AS SELECT 1")
    con.close()
    with pytest.raises(nsys_sql.InputError, match="did not make"):
        nsys_sql.open(path).close()


# ---------------------------------------------------------------- ad-hoc queries


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT count(*) FROM kernel", [(36,)]),
        ("SELECT count(*) FROM nsys.op AS o JOIN string ON string_id = o.name_id", [(36,)]),
        ("SELECT count(*) FROM budget", [(15,)]),
        ("WITH a AS (FROM range(3)) SELECT sum(range) FROM a", [(3,)]),
        ("SELECT count(*) > 0 FROM nsys.iv_union('nsys.op', device)", [(True,)]),
        ("SELECT nsys.kernel_class('ncclDevKernel_AllReduce')", [("nccl",)]),
        (f"SELECT count(*) FROM trace.{KERNEL}", [(36,)]),
        ("SELECT list_transform([1], lambda x: x + 1)", [([2],)]),
        ("SELECT is_present FROM capability WHERE relation = 'memcpy'", [(False,)]),
        ("SELECT name FROM (SHOW TABLES) WHERE name = 'kernel'", [("kernel",)]),
    ],
)
def test_queries_read_the_model(model, sql, rows):
    assert model.rows(model.query(sql)) == rows


@pytest.mark.parametrize(
    "sql",
    [
        "FROM read_csv('{file}')",
        "FROM '{file}'",
        "SELECT * FROM read_text('{file}')",
        "FROM glob('/*')",
        "FROM sqlite_scan('{trace}', 'StringIds')",
        "FROM sqlite_query('trace', 'SELECT 1')",
        "FROM query('FROM ''{file}''')",
        "FROM query_table('{file}')",
        "SELECT getenv('HOME')",
        "SELECT list_transform(['HOME'], lambda x: getenv(x))",
        "SELECT * FROM kernel WHERE EXISTS (FROM read_blob('{file}'))",
        "ATTACH '{trace}' AS other (TYPE sqlite)",
        "COPY (SELECT 1) TO '{file}.csv'",
        "CREATE TABLE t AS SELECT 1",
        "SET threads = 1",
        "SELECT 1; SELECT 2",
        "PRAGMA database_list",
        "FROM duckdb_settings()",
        "FROM trace.StringIds",
        "SUMMARIZE trace.main.META_DATA_CAPTURE",
        "DESCRIBE FROM temp.nsys_StringIds",
        "FROM sniff_csv('{file}')",
        "",
        "SELEC 1",
        "FROM nothing_of_the_kind",
    ],
)
def test_queries_do_nothing_else(model, trace, tmp_path, sql):
    file = tmp_path / "file.csv"
    file.write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        model.rows(model.query(sql.format(file=file, trace=trace)))
    assert caught.value.exit_code == 2
    assert [each.name for each in tmp_path.iterdir()] == ["file.csv"]


def test_after_a_query_the_connection_is_shut_but_recipes_still_run(trace, tmp_path):
    with nsys_sql.open(trace) as model:
        target = tmp_path / "out.parquet"
        relation = model.query("SELECT getvariable('x') + 1 AS y", [target], x="41")
        relation.write_parquet(str(target))
        assert duckdb.read_parquet(str(target)).fetchall() == [(42,)]
        with pytest.raises(duckdb.PermissionException):
            relation.write_parquet(str(tmp_path / "other.parquet"))
        with pytest.raises(duckdb.Error):
            model.con.execute("SET enable_external_access = true")
        assert len(model.result("budget").rows) == 15
        assert model.con.execute("SELECT getvariable('x')").fetchone() == (None,)


def test_a_wrong_name_in_a_query_is_told_with_the_nearest(model):
    with pytest.raises(UsageError) as caught:
        model.query("SELECT * FROM kernal")
    assert caught.value.hint == "did you mean 'kernel'?"
