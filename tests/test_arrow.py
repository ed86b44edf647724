"""Arrow exports answer as the SQLite export does, leave nothing behind, and are never half read."""

import importlib.util
import os
import signal
import stat
import subprocess
import sys

import duckdb
import pytest

import nsys_sql
from arrowbuilder import stream, tables, to_file, to_folder
from conftest import brief
from nsys_sql import arrow, cli, source
from nsys_sql.errors import InputError
from test_inputs import RECIPES, answers

pa = pytest.importorskip("pyarrow", reason="the extra arrow is not installed")


@pytest.fixture(autouse=True)
def own_places(tmp_path, monkeypatch):
    """The cache and the temporary folder of the test alone."""
    for name, variable in (("cache", "NSYS_SQL_CACHE"), ("temp", "TMPDIR")):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(variable, str(tmp_path / name))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temp"))
    return tmp_path


@pytest.fixture
def trace(fixture_sqlite):
    return fixture_sqlite("event_waits")


@pytest.fixture
def folder(trace, tmp_path):
    return to_folder(trace, tmp_path / "it's [a] *folder*")


def left(tmp_path):
    return [each.name for each in (tmp_path / "temp").iterdir()]


# ---------------------------------------------------------------- answers


@pytest.mark.parametrize(
    "name", brief(1, ["broken_rows", "event_waits", "table_suffix", "two_processes", "example"])
)
def test_an_arrow_export_answers_like_the_sqlite_file(fixture_sqlite, tmp_path, name):
    trace = fixture_sqlite(name)
    with nsys_sql.open(trace) as model:
        wanted = answers(model)
        told = model.trace.product_version, model.trace.present, model.row_counts()
    paths = (
        (to_folder(trace, tmp_path / "x"), RECIPES),
        (to_file(trace, tmp_path / "y"), RECIPES[3:]),
    )
    for path, recipes in paths:
        with nsys_sql.open(path) as model:
            assert model.row_counts() == told[2]
            assert answers(model, recipes) == {each: wanted[each] for each in recipes}
            assert (model.trace.product_version, model.trace.present) == told[:2]
            assert left(tmp_path) != []
        assert left(tmp_path) == []


def test_only_what_is_read_is_taken_over(folder, tmp_path):
    def made():
        (private,) = (tmp_path / "temp").iterdir()
        return len([*private.glob("*.parquet")])

    with nsys_sql.open(folder) as model:
        assert made() == 0
        model.run("processes")
        some = made()
        model.run("budget")
        assert 0 < some < made() <= len(model.trace.tables)
        assert len(model.rows(model.query("FROM trace.CUPTI_ACTIVITY_KIND_KERNEL"))) == 8
        before = made()
        listed = "SELECT table_name FROM information_schema.tables WHERE table_catalog = 'trace'"
        assert len(model.rows(model.query(listed))) == len(model.trace.tables)
        assert made() > before


def test_rows_keep_their_numbers_over_batches_and_row_groups(trace, tmp_path, monkeypatch):
    """And a dictionary, or another width of a number, is the same value."""
    folder = to_folder(trace, tmp_path / "x")
    monkeypatch.setattr(arrow, "_ROWS", 3)
    for name in ("CUPTI_ACTIVITY_KIND_KERNEL", "StringIds", "NVTX_EVENTS"):
        table = tables(trace)[name]
        if name == "NVTX_EVENTS":
            at = table.schema.get_field_index("text")
            table = table.set_column(at, "text", table["text"].dictionary_encode())
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=5)
        (folder / f"{name}.arrow").write_bytes(sink.getvalue().to_pybytes())
    queries = [
        "SELECT row_id, start_ns, process, name_id FROM kernel ORDER BY row_id",
        "SELECT row_id, start_ns, text FROM nvtx ORDER BY row_id",
        "SELECT string_id, value FROM string ORDER BY string_id",
    ]
    with nsys_sql.open(trace) as model, nsys_sql.open(folder) as other:
        for query in queries:
            assert other.query(query).fetchall() == model.query(query).fetchall() != []


def test_the_cache_is_made_of_it_and_a_script_needs_it(folder, trace, tmp_path, capsys):
    with nsys_sql.open(trace) as model:
        wanted = model.run("devices").fetchall()
    assert cli.execute(["show", "devices", str(folder)]) == 2
    assert "add --cache" in capsys.readouterr().err
    for _ in range(2):
        assert cli.execute(["show", "devices", str(folder), "--cache"]) == 0
        with duckdb.connect() as con:
            assert con.execute(capsys.readouterr().out).fetchall() == wanted
    assert len([*(tmp_path / "cache").glob("ingest-*.duckdb")]) == 1
    assert left(tmp_path) == []
    before = source.identity(folder)
    (folder / "NVTX_EVENTS.arrow").write_bytes(stream(tables(trace)["NVTX_EVENTS"].slice(0, 1)))
    assert source.identity(folder)["sample"] != before["sample"]


def test_a_connection_of_the_callers_sees_every_table_and_is_left_as_it_was(folder, trace):
    with duckdb.connect() as con:
        with nsys_sql.attach(con, folder) as model:
            found = con.execute("SELECT count(*) FROM trace.CUPTI_ACTIVITY_KIND_KERNEL").fetchall()
            assert found == [(8,)]
            assert con.execute("SELECT count(*) FROM nsys.string").fetchall() != [(0,)]
            names = "SELECT view_name FROM duckdb_views() WHERE database_name = 'trace'"
            assert len(con.execute(names).fetchall()) >= len(model.trace.tables)
        names = "SELECT view_name FROM duckdb_views() WHERE database_name IN ('trace', 'temp')"
        assert con.execute(f"{names} AND NOT internal").fetchall() == []


def test_queries_see_no_secrets_and_no_files(folder, tmp_path):
    with nsys_sql.open(folder) as model:
        for query in ("FROM trace.StringIds", "FROM 'x.arrow'"):
            with pytest.raises(nsys_sql.UsageError):
                model.rows(model.query(query))
        assert model.query("SELECT count(*) > 0 FROM string").fetchall() == [(True,)]
        assert len(model.result("budget").rows) == 15
        (private,) = (tmp_path / "temp").iterdir()
        assert stat.S_IMODE(private.stat().st_mode) == 0o700
        assert {stat.S_IMODE(p.stat().st_mode) for p in private.glob("*.parquet")} == {0o600}


# ---------------------------------------------------------------- what is refused


def test_without_pyarrow_the_remedy_is_told(folder, trace, tmp_path, capsys, monkeypatch):
    file = to_file(trace, tmp_path / "x.arrow")
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "pyarrow" else found(name)
    )
    for path in (folder, file):
        assert cli.execute(["run", "budget", str(path)]) == 3
        err = capsys.readouterr().err
        assert err.startswith(f"Error: {path} is an Arrow export, and pyarrow")
        assert "pip install 'nsys-sql[arrow]'" in err and "--type=parquetdir" in err
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "pyarrow.ipc", None)
    assert cli.execute(["run", "budget", str(folder)]) == 3
    assert "does not load" in capsys.readouterr().err


def cuts(data):
    """What a stream may be cut to: within and between its messages, and without its end."""
    return {
        "schema": data[:40],
        "batch": data[: len(data) // 2],
        "body": data[:-20],
        "mark": data[:-8],
        "more": data + b"\0" * 40,
        "twice": data + data,
        "other": b"ARROW1" + data[6:],
        "nothing": b"",
    }


@pytest.mark.parametrize("how", cuts(b""))
@pytest.mark.parametrize("table", ["CUPTI_ACTIVITY_KIND_KERNEL", "OSRT_API"])
def test_a_file_that_is_not_whole_is_named_even_where_nobody_reads_it(
    folder, trace, table, how, capsys, tmp_path
):
    path = folder / f"{table}.arrow"
    rows = tables(trace)["CUPTI_ACTIVITY_KIND_KERNEL"]
    path.write_bytes(cuts(stream(rows))[how])
    assert cli.execute(["run", "devices", str(folder), "--format", "csv"]) == 3
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and err.startswith(f"Error: {path} is "), err
    assert "export the report again" in err
    assert left(tmp_path) == []


def test_a_cut_single_file_is_told(trace, tmp_path, capsys):
    path = to_file(trace, tmp_path / "x.arrow")
    data = path.read_bytes()
    one = stream(tables(trace)["StringIds"])
    nameless = stream(tables(trace)["StringIds"].replace_schema_metadata({}))
    for text, words in (
        (data[:-8], "before the mark of its end"),
        (data[: len(data) // 2], "damaged or truncated"),
        (data + one, "holds the table StringIds twice"),
        (data + nameless, "without the name of a table"),
        (stream(pa.table({"a": [1]}).replace_schema_metadata({"table_name": "bills"})), "no table"),
    ):
        path.write_bytes(text)
        assert cli.execute(["run", "devices", str(path)]) == 3
        assert words in capsys.readouterr().err
    path = tmp_path / "StringIds.arrow"
    path.write_bytes(one)
    with pytest.raises(InputError, match="one table of an Arrow export") as caught:
        nsys_sql.open(path)
    assert str(tmp_path) in caught.value.hint


def test_values_are_checked_before_duckdb_sees_them(folder, trace, capsys, tmp_path):
    path = folder / "NVTX_EVENTS.arrow"
    data = path.read_bytes()
    assert data.count(b"step 0") == 1
    path.write_bytes(data.replace(b"step 0", b"step\xff0"))
    assert cli.execute(["run", "devices", str(folder), "--format", "csv"]) == 0
    assert cli.execute(["run", "budget", str(folder), "--format", "csv"]) == 3
    err = capsys.readouterr().err
    assert err.startswith(f"Error: {path} is damaged") and "UTF8" in err
    assert left(tmp_path) == []


def test_an_export_that_changes_is_told(folder):
    with nsys_sql.open(folder) as model:
        model.run("devices")
        os.utime(folder / "StringIds.arrow", (1, 1))
        with pytest.raises(InputError, match="changed while it was read"):
            model.run("taxonomy")


def test_folders_around_an_export_are_told_apart(folder, tmp_path):
    with pytest.raises(InputError) as caught:
        nsys_sql.open(folder.parent)
    assert str(folder) in caught.value.hint
    (folder / "README.txt").write_text("mine", encoding="utf-8")
    (folder / "more.arrow").mkdir()
    with pytest.raises(InputError, match=r"more\.arrow is not a regular file"):
        nsys_sql.open(folder)
    (folder / "more.arrow").rmdir()
    nsys_sql.open(folder).close()


# ---------------------------------------------------------------- endings


def test_no_room_to_take_it_over_is_told(folder, tmp_path, monkeypatch, capsys):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pyarrow.parquet.ParquetWriter.write_batch", full)
    assert cli.execute(["run", "budget", str(folder)]) == 3
    err = capsys.readouterr().err
    assert "No space left on device" in err and "--temp-directory" in err
    assert left(tmp_path) == []


@pytest.mark.parametrize("number", brief(1, [signal.SIGINT, signal.SIGTERM]))
def test_a_signal_leaves_nothing(folder, tmp_path, number):
    code = (
        "import os, sys; from nsys_sql import arrow, cli; write = arrow.Export._write\n"
        "def hit(*given): write(*given); os.kill(os.getpid(), int(sys.argv.pop()))\n"
        "arrow.Export._write = hit; cli.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "run", "budget", str(folder), str(int(number))],
        capture_output=True,
        check=False,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    )
    assert done.returncode == 128 + number, done.stderr
    assert left(tmp_path) == []
