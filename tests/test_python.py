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
