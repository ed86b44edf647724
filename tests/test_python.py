"""docs/python.md: its examples run, and the interface is what it says."""

import importlib.util
import inspect
import re
import shutil

import duckdb
import pytest

import nsys_sql
from conftest import ROOT

TEXT = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)


def missing(block):
    needs = re.match(r"# needs (.+)\n", block)
    names = needs[1].split(", ") if needs else []
    return [name for name in names if importlib.util.find_spec(name) is None]


def test_the_examples_run(fixture_sqlite, tmp_path, monkeypatch, capsys):
    shutil.copy(fixture_sqlite("example"), tmp_path / "example.sqlite")
    monkeypatch.chdir(tmp_path)
    names = {}
    assert len(BLOCKS) > 5
    for block in BLOCKS:
        if not missing(block):
            exec(compile(block, "docs/python.md", "exec"), names)
    out = capsys.readouterr().out
    assert "iteration" in out
    assert "matches nothing" in out
    assert (tmp_path / "kernels.parquet").is_file()


@pytest.mark.parametrize("method", ["df", "pl", "arrow"])
def test_relations_become_frames(fixture_sqlite, method):
    for name in {"df": ["pandas"], "pl": ["polars", "pyarrow"], "arrow": ["pyarrow"]}[method]:
        pytest.importorskip(name)
    with nsys_sql.open(fixture_sqlite("event_waits")) as model:
        frame = getattr(model.run("budget"), method)()
        columns = getattr(frame, "columns", None)
        columns = frame.schema.names if method == "arrow" else columns
        assert list(columns) == [column.name for column in model.result("budget").columns]


def test_the_page_names_every_option_and_method():
    options = set(inspect.signature(nsys_sql.open).parameters) - {"trace", "keep_steps"}
    assert {name for name in options if f"`{name}`" not in TEXT} == {"iterations"}
    assert '`iterations="2:8"`' in TEXT
    for name in re.findall(r"^\| `\.(\w+)", TEXT, re.MULTILINE):
        from nsys_sql.session import Model

        assert name == "con" or hasattr(Model, name), name


def test_nothing_is_printed_and_two_traces_share_a_connection(fixture_sqlite, capfd):
    con = duckdb.connect()
    with (
        nsys_sql.attach(con, fixture_sqlite("event_waits"), schema="a") as one,
        nsys_sql.attach(con, fixture_sqlite("two_processes"), schema="b", skip_first=1) as other,
    ):
        for model, schema in ((one, "a"), (other, "b")):
            assert con.execute(f"FROM {schema}.budget").fetchall() == model.run("budget").fetchall()
        # Options stay with their model, also after the other one has run.
        assert one.run("iterations").fetchall() == con.execute("FROM a.iterations").fetchall()
    con.close()
    assert capfd.readouterr() == ("", "")


def test_options_and_results_are_typed():
    for function in (nsys_sql.open, nsys_sql.attach):
        signature = inspect.signature(function)
        assert signature.return_annotation == "Model"
        assert all(p.annotation is not p.empty for p in signature.parameters.values())
    assert (ROOT / "nsys_sql" / "py.typed").is_file()


# ---------------------------------------------------------------- in the caller's connection


@pytest.fixture
def trace(fixture_sqlite):
    return fixture_sqlite("event_waits")


def taken(con, name="nsys"):
    """What stands in a schema."""
    return con.execute(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = ? ORDER BY 1", [name]
    ).fetchall()


def test_closing_inside_a_transaction_keeps_what_was_written_there(trace):
    con = duckdb.connect()
    con.execute("CREATE TABLE mine (a INTEGER)")
    with nsys_sql.attach(con, trace) as model:
        con.execute("BEGIN")
        before = model.run("budget").fetchall()
        con.execute("ROLLBACK")
        assert model.run("budget").fetchall() == before  # made again: that one went, too
        con.execute("BEGIN")
        con.execute("INSERT INTO mine VALUES (1)")
    con.execute("COMMIT")
    assert con.execute("FROM mine").fetchall() == [(1,)]
    assert con.execute("SELECT count(*) FROM nsys.steady").fetchall() != [(0,)]


def test_nothing_is_attached_inside_a_transaction(trace):
    con = duckdb.connect()
    con.execute("BEGIN; CREATE TABLE mine AS SELECT 1 AS a")
    with pytest.raises(nsys_sql.UsageError, match="transaction is open"):
        nsys_sql.attach(con, trace)
    con.execute("COMMIT")
    assert con.execute("FROM mine").fetchall() == [(1,)] and not taken(con)


def test_models_share_a_connection_and_no_parameter(fixture_sqlite):
    trace, con = fixture_sqlite("example"), duckdb.connect()
    anchor = {"anchor": "nvtx:training_step_*"}

    def devices(query):
        return [
            row[0]
            for row in con.execute(f"SELECT DISTINCT device FROM {query} ORDER BY 1").fetchall()
        ]

    first = nsys_sql.attach(con, trace, "one", device=0, params={"top": 1}, **anchor)
    second = nsys_sql.attach(con, trace, "other", device=1, params={"top": 2}, **anchor)
    whole = nsys_sql.attach(con, trace, "whole", **anchor)
    for view in ("budget", "gaps", "iterations", "anchors", "top_gaps"):
        assert devices(f"one.{view}") == [0], view
        assert devices(f"other.{view}") == [1], view
        assert devices(f"whole.{view}") == [0, 1], view
    counts = [
        con.execute(f"SELECT count(*) FROM {name}.top_gaps").fetchall() for name in ("one", "other")
    ]
    assert counts == [[(1,)], [(2,)]]
    for model, expected in ((first, {0}), (second, {1}), (whole, {0, 1})):
        assert {row[0] for row in model.run("gaps").fetchall()} == expected
    # the caller's own: they are no parameters of run(), and stay what they were
    con.execute("SET VARIABLE device = 1; SET VARIABLE top = 3; SET VARIABLE mine = 'x'")
    assert {row[0] for row in whole.run("budget").fetchall()} == {0, 1}
    assert len(first.run("top-gaps", top=2).fetchall()) == 2
    kept = "SELECT getvariable('device'), getvariable('top'), getvariable('mine')"
    assert con.execute(kept).fetchall() == [(1, 3, "x")]
    assert con.execute(
        "SELECT count(*) FROM duckdb_variables() WHERE name LIKE 'nsys%'"
    ).fetchall() == [(0,)]


def test_objects_of_the_caller_are_not_replaced(trace):
    con = duckdb.connect()
    for made in (
        "CREATE SCHEMA nsys; CREATE TABLE nsys.steady AS SELECT 'mine' AS x",
        "CREATE VIEW nsys.steady AS SELECT 'mine' AS x",
        "CREATE MACRO nsys.iv_union(x) AS x",
        "CREATE TABLE nsys.budget AS SELECT 'mine' AS x",
    ):
        con.execute(made)
        before = taken(con)
        with pytest.raises(nsys_sql.UsageError, match="objects of yours") as refused:
            nsys_sql.attach(con, trace)
        assert "schema=" in refused.value.hint and taken(con) == before
        for kind, name in (("TABLE", "steady"), ("VIEW", "steady"), ("TABLE", "budget")):
            try:
                con.execute(f"DROP {kind} IF EXISTS nsys.{name}")
            except duckdb.CatalogException:
                continue
    con.execute("DROP MACRO nsys.iv_union; CREATE TABLE nsys.expected AS SELECT 1 AS a")
    with nsys_sql.attach(con, trace):  # other names are in nobody's way
        assert con.execute("FROM nsys.expected").fetchall() == [(1,)]


def test_a_schema_belongs_to_one_model_until_it_is_closed(fixture_sqlite):
    con = duckdb.connect()
    first, other = fixture_sqlite("event_waits"), fixture_sqlite("example")
    model = nsys_sql.attach(con, first)
    before = con.execute("FROM nsys.budget").fetchall()
    with pytest.raises(nsys_sql.UsageError, match="that is open"):
        nsys_sql.attach(con, other)
    assert con.execute("FROM nsys.budget").fetchall() == before
    con.execute("CREATE TABLE nsys.mine AS SELECT 1 AS a")
    model.close()
    with nsys_sql.attach(con, other, anchor="nvtx:training_step_*", params={"top": 1}):
        assert con.execute("FROM nsys.budget").fetchall() != before
    with nsys_sql.attach(con, first):
        assert con.execute("FROM nsys.budget").fetchall() == before
    assert con.execute("FROM nsys.mine").fetchall() == [(1,)]
    with pytest.raises(nsys_sql.UsageError, match="is closed"):
        model.run("budget")


def test_an_attach_that_fails_leaves_nothing(fixture_sqlite, monkeypatch):
    from nsys_sql import session

    def fail(self, *_):
        raise nsys_sql.AnswerError("no")

    con = duckdb.connect()
    monkeypatch.setattr(session.Model, "_in_reading_order", fail)
    with pytest.raises(nsys_sql.AnswerError):
        nsys_sql.attach(con, fixture_sqlite("event_waits"))
    assert not con.execute("FROM duckdb_schemas() WHERE schema_name = 'nsys'").fetchall()


def test_settings_that_change_what_sql_means_are_refused(trace):
    con = duckdb.connect()
    with nsys_sql.attach(con, trace) as model:
        for name, value in {
            "integer_division": "true",
            "default_order": "'desc'",
            "default_null_order": "'nulls_first'",
        }.items():
            con.execute(f"SET {name} = {value}")
            with pytest.raises(nsys_sql.UsageError, match=name):
                model.run("budget")
            with pytest.raises(nsys_sql.UsageError, match="means something else"):
                nsys_sql.attach(con, trace, "again")
            con.execute(f"RESET {name}")
        assert model.run("budget").fetchall()


def test_a_connection_with_locked_settings_will_do(trace):
    con = duckdb.connect()
    con.execute("SET lock_configuration = true")
    with nsys_sql.attach(con, trace) as model, nsys_sql.open(trace) as alone:
        assert model.run("budget").fetchall() == alone.run("budget").fetchall()


def test_a_database_that_will_not_do_is_refused(trace, tmp_path):
    path = tmp_path / "nsys.duckdb"
    con = duckdb.connect(path)
    with pytest.raises(nsys_sql.UsageError, match="ambiguous"):
        nsys_sql.attach(con, trace)
    with nsys_sql.attach(con, trace, "t") as model:
        model.run("budget")
    con.close()
    con = duckdb.connect(path, read_only=True)
    with con, pytest.raises(nsys_sql.UsageError, match="read-only"):
        nsys_sql.attach(con, trace, "u")


def test_what_the_caller_did_to_the_connection_is_told(trace):
    con = duckdb.connect()
    con.execute("ATTACH ':memory:' AS other")
    with nsys_sql.attach(con, trace) as model:
        con.execute("USE other")
        with pytest.raises(nsys_sql.UsageError, match="the connection refuses"):
            model.run("budget")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"per_iteration": 1.5}, "per-iteration is 1.5, not a whole number"),
        ({"per_iteration": None}, "per-iteration is None"),
        ({"device": "0"}, "device is '0', not a whole number"),
        ({"skip_first": True}, "skip-first is True"),
        ({"anchor": None}, "anchor is None, not a text"),
        ({"iterations": (2, 8)}, r"iterations is \(2, 8\), not a text"),
    ],
)
def test_options_of_another_type_are_refused(trace, given, told):
    with pytest.raises(nsys_sql.UsageError, match=told):
        nsys_sql.open(trace, **given)
