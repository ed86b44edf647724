"""What may stand in the place of a trace: Parquet folders, reports, built databases, the cache."""

import json
import os
import shutil
import sqlite3
import sys
import threading
from pathlib import Path

import duckdb
import pytest

import nsys_sql
from conftest import brief
from nsys_sql import cache, cli, database, inputs, output, partition, survey_cli
from nsys_sql import source as files
from nsys_sql.attached import load_sqlite
from nsys_sql.errors import AnswerError, InputError, UsageError
from nsys_sql.options import Options

# Parquet exports hold these unsigned, and small numbers in small types.
UNSIGNED = {"globalpid", "globaltid", "endglobaltid", "vmid"}
SMALL = {"deviceid", "contextid", "streamid", "correlationid", "eventtype", "gridx", "eventid"}
RECIPES = ("budget", "gaps", "kernels", "capture", "communication", "copies", "nvtx", "processes")


def to_parquet(trace, folder):
    """Write a trace as `nsys export --type=parquetdir` would: one file a table."""
    folder.mkdir()
    source = sqlite3.connect(trace)
    con = duckdb.connect()
    load_sqlite(con)
    con.execute(f"ATTACH '{trace}' AS s (TYPE sqlite, READ_ONLY)")
    for (table,) in source.execute("SELECT name FROM sqlite_master WHERE type = 'table'"):
        columns = []
        for _, name, *_ in source.execute(f'PRAGMA table_info("{table}")'):
            column = f'"{name}"'
            if name.lower() in UNSIGNED:
                wide = f"{column}::HUGEINT + CASE WHEN {column} < 0 THEN 18446744073709551616 "
                column = f"({wide}ELSE 0 END)::UBIGINT AS {column}"
            elif name.lower() in SMALL:
                column = f"{column}::UINTEGER AS {column}"
            columns.append(column)
        target = str(folder / f"{table}.parquet").replace("'", "''")
        con.execute(
            f'COPY (SELECT {", ".join(columns)} FROM s."{table}" ORDER BY rowid) '
            f"TO '{target}' (FORMAT parquet)"
        )
    con.close()
    source.close()
    return folder


def answers(model, recipes=RECIPES):
    found = {}
    for name in recipes:
        try:
            result = model.result(name)
            found[name] = result.rows, result.checks, result.notes
        except AnswerError as error:
            found[name] = str(error)
    return found


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    folder = tmp_path / "the cache"
    monkeypatch.setenv("NSYS_SQL_CACHE", str(folder))
    return folder


@pytest.fixture
def folder(fixture_sqlite, tmp_path):
    return to_parquet(fixture_sqlite("event_waits"), tmp_path / "it's [a] *folder*")


# ---------------------------------------------------------------- Parquet folders


@pytest.mark.parametrize("name", brief(2, ["broken_rows", "two_processes", "table_suffix"]))
def test_a_parquet_folder_answers_like_the_sqlite_file(fixture_sqlite, tmp_path, name):
    trace = fixture_sqlite(name)
    with nsys_sql.open(trace) as model:
        wanted = answers(model)
        versions = model.trace.product_version, model.trace.present
    with nsys_sql.open(to_parquet(trace, tmp_path / "x")) as model:
        assert answers(model) == wanted
        assert (model.trace.product_version, model.trace.present) == versions
        assert dict(model.row_counts())["StringIds"] > 0


def test_unsigned_ids_wrap_as_in_sqlite(fixture_sqlite, tmp_path):
    trace = shutil.copy(fixture_sqlite("event_waits"), tmp_path / "x.sqlite")
    source = sqlite3.connect(trace)
    source.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET globalPid = -144115188075855872")
    source.commit()
    source.close()
    query = "SELECT row_id, process, start_ns FROM kernel ORDER BY row_id"
    with nsys_sql.open(trace) as model, nsys_sql.open(to_parquet(trace, tmp_path / "y")) as other:
        rows = model.query(query).fetchall()
        assert rows[0][:2] == (1, -144115188075855872 >> 24)
        assert other.query(query).fetchall() == rows


# Other types for the same values: (table, column, expression).
RETYPED = {
    "CUPTI_ACTIVITY_KIND_KERNEL": {
        "start": "make_timestamp_ns(start)",
        "end": 'make_timestamp_ns("end")',
        "deviceId": "deviceId::UTINYINT",
        "streamId": "streamId::DECIMAL(20, 0)",
        "correlationId": "correlationId::INTEGER",
        "demangledName": "demangledName::UBIGINT",
        "gridX": "gridX::USMALLINT",
    },
    "CUPTI_ACTIVITY_KIND_MEMCPY": {
        "start": "make_timestamp(start // 1000)",
        "end": "make_timestamp(\"end\" // 1000) AT TIME ZONE 'UTC'",
        "bytes": "bytes::UBIGINT",
        "copyKind": "copyKind::UTINYINT",
    },
    "NVTX_EVENTS": {"text": "text::ENUM ('step 0', 'step 1')", "eventType": "eventType::SMALLINT"},
    "StringIds": {"id": "id::UBIGINT", "value": "value::BLOB"},
}


def test_no_type_of_a_parquet_column_is_taken_for_granted(fixture_sqlite, tmp_path):
    trace = fixture_sqlite("event_waits")
    folder = to_parquet(trace, tmp_path / "x_pqtdir")
    with duckdb.connect() as con:
        for table, columns in RETYPED.items():
            path, new = folder / f"{table}.parquet", tmp_path / "new.parquet"
            changed = ", ".join(f'{sql} AS "{name}"' for name, sql in columns.items())
            con.sql(f"SELECT * REPLACE ({changed}) FROM '{path}'").write_parquet(str(new))
            new.replace(path)
    with nsys_sql.open(trace) as model, nsys_sql.open(folder) as other:
        assert answers(other) == answers(model)


def test_a_script_on_a_folder_runs_as_it_is(folder):
    with nsys_sql.open(folder) as model:
        script, rows = model.script("budget"), model.run("budget").fetchall()
    con = duckdb.connect()
    assert con.execute(script).fetchall() == rows
    con.close()
    assert "LOAD" not in script


def test_a_folder_is_built_and_reopened(folder, tmp_path):
    database.build(folder, tmp_path / "x.duckdb")
    with nsys_sql.open(folder) as model, nsys_sql.open(tmp_path / "x.duckdb") as other:
        assert other.run("budget").fetchall() == model.run("budget").fetchall()


def test_queries_on_a_folder_see_no_secrets_and_no_files(folder):
    secret = folder / "StringIds.parquet"
    with nsys_sql.open(folder) as model:
        assert model.query("SELECT count(*) FROM trace.NVTX_EVENTS").fetchall() == [(2,)]
        for query in (
            f"FROM '{str(secret).replace(chr(39), chr(39) * 2)}'",
            "FROM trace.StringIds",
            "SELECT nsys.iv_union('x.parquet', 1)",
        ):
            with pytest.raises(nsys_sql.UsageError):
                model.rows(model.query(query))
        # Not even on the connection itself: the file is closed, what is needed was read before.
        escaped = str(secret).translate({ord(c): f"[{c}]" for c in "[*"}).replace("'", "''")
        with pytest.raises(duckdb.PermissionException):
            model.con.execute(f"FROM read_parquet('{escaped}')")
        assert model.query("SELECT count(*) > 0 FROM string").fetchall() == [(True,)]
        assert len(model.result("budget").rows) == 15


def test_other_folders_are_refused_with_what_to_do(tmp_path, folder):
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(InputError) as caught:
        nsys_sql.open(empty)
    assert "parquetdir" in caught.value.hint
    kernels = folder / "CUPTI_ACTIVITY_KIND_KERNEL.parquet"
    kernels.write_bytes(kernels.read_bytes()[:-20])
    with pytest.raises(InputError, match="damaged or truncated"):
        nsys_sql.open(folder)
    kernels.write_bytes(b"")
    with pytest.raises(InputError, match="is empty"):
        nsys_sql.open(folder)
    for path in folder.iterdir():
        path.unlink()
    duckdb.sql("SELECT 1 AS a").write_parquet(str(folder / "invoices.parquet"))
    with pytest.raises(InputError, match="no table of Nsight Systems"):
        nsys_sql.open(folder)


def spoiled(path, at):
    """The bytes of a file before 40 of them from `at` on were spoiled in place."""
    data = path.read_bytes()
    at = at if at >= 0 else len(data) + at
    path.write_bytes(
        data[:at] + bytes((b + 77) % 256 for b in data[at : at + 40]) + data[at + 40 :]
    )
    return data


@pytest.mark.parametrize(
    ("table", "at"),
    [
        ("CUPTI_ACTIVITY_KIND_KERNEL", 100),  # a page
        ("CUPTI_ACTIVITY_KIND_KERNEL", 6),  # the head of one
        ("StringIds", 100),
        ("NVTX_EVENTS", -300),  # the footer
        ("NVTX_EVENTS", -8),  # its length
    ],
)
def test_a_bad_file_of_a_folder_is_named(folder, table, at, capsys):
    path = folder / f"{table}.parquet"
    spoiled(path, at)
    assert cli.execute(["run", "budget", str(folder), "--format", "csv"]) == 3
    out, err = capsys.readouterr()
    assert out == "" and err.startswith(f"Error: {path} is damaged or truncated"), err
    assert "export the report again" in err
    if at == 100:
        with pytest.raises(InputError, match=table), nsys_sql.open(folder) as model:
            model.rows(model.query("SELECT count(DISTINCT name) FROM op_name"))


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (b"PAR1", "is one table of a Parquet export"),
        (b"ARROW1\0\0", "is an Arrow file, not an export, which is not read"),
        (b"\x89HDF\r\n", "is an HDF5 export, which is not read"),
    ],
)
def test_files_of_other_exports_are_told_apart(tmp_path, head, words):
    path = tmp_path / "step"
    path.write_bytes(head + bytes(200))
    with pytest.raises(InputError, match=words) as caught:
        nsys_sql.open(path)
    assert "parquetdir" in caught.value.hint or str(tmp_path) in caught.value.hint


def test_an_error_of_a_query_is_not_blamed_on_the_folder(folder):
    with nsys_sql.open(folder) as model, pytest.raises(nsys_sql.UsageError, match="boo"):
        model.rows(model.query("SELECT error('boo') FROM op"))


def test_what_a_folder_is_called_adds_nothing(fixture_sqlite, tmp_path):
    trace = fixture_sqlite("event_waits")
    (tmp_path / "deviceId=5").mkdir()
    folder = to_parquet(trace, tmp_path / "deviceId=5" / "streamId=9")
    with nsys_sql.open(trace) as model, nsys_sql.open(folder) as other:
        assert other.run("devices").fetchall() == model.run("devices").fetchall()


def test_folders_around_an_export_are_told_apart(folder, tmp_path):
    with pytest.raises(InputError) as caught:
        nsys_sql.open(folder.parent)
    assert str(folder) in caught.value.hint
    (folder / "x.nsys-analysis").write_text("{}", encoding="utf-8")
    with pytest.raises(InputError, match="results of `nsys recipe`"):
        nsys_sql.open(folder)
    (folder / "x.nsys-analysis").unlink()
    (folder / "README.txt").write_text("mine", encoding="utf-8")
    (folder / "more.parquet").mkdir()
    with pytest.raises(InputError, match=r"more\.parquet is not a regular file"):
        nsys_sql.open(folder)
    (folder / "more.parquet").rmdir()
    odd = os.fsdecode(os.fsencode(folder) + b"/\xff.parquet")
    shutil.copy(folder / "StringIds.parquet", odd)
    with pytest.raises(InputError, match="name that is no UTF-8"):
        nsys_sql.open(folder)
    os.unlink(odd)
    nsys_sql.open(folder).close()


def test_a_folder_that_changes_is_told(folder):
    with nsys_sql.open(folder) as model:
        model.run("devices")
        os.utime(folder / "StringIds.parquet", (1, 1))
        with pytest.raises(InputError, match="changed while it was read"):
            model.run("taxonomy")


# ---------------------------------------------------------------- reports

NSYS = """#!{python}
import os, shutil, sys, time
if sys.argv[1:] == ["--version"]:
    print("NVIDIA Nsight Systems version " + os.environ.get("NSYS_VERSION", "2025.1"))
    sys.exit()
with open(os.environ["NSYS_LOG"], "a") as log:
    print(*sys.argv[1:], sep="|", file=log)
time.sleep(float(os.environ.get("NSYS_SLEEP", "0")))
output = next(each[9:] for each in sys.argv if each.startswith("--output="))
report = sys.argv[-1]
if open(report, "rb").read() == b"bad":
    print("Generating\\nImporter error: too old\\n")
    sys.exit(1)
shutil.copy(os.environ["NSYS_TRACE"], output)
"""


@pytest.fixture
def report(fixture_sqlite, tmp_path, monkeypatch):
    """A report, and an `nsys` that exports it as the fixture event_waits."""
    program = tmp_path / "bin" / "nsys"
    program.parent.mkdir()
    program.write_text(NSYS.format(python=sys.executable), encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    monkeypatch.setenv("NSYS_TRACE", str(fixture_sqlite("event_waits")))
    monkeypatch.setenv("NSYS_LOG", str(tmp_path / "log"))
    path = tmp_path / "reports" / "step one.nsys-rep"
    path.parent.mkdir()
    path.write_bytes(b"a report")
    return path


def calls(tmp_path):
    log = tmp_path / "log"
    return len(log.read_text(encoding="utf-8").splitlines()) if log.exists() else 0


def test_a_report_is_exported_once_into_the_cache(report, tmp_path, own_cache, monkeypatch):
    for _ in range(2):
        with nsys_sql.open(report) as model:
            assert len(model.run("budget").fetchall()) == 15
            assert model.trace.path == report
    assert calls(tmp_path) == 1
    assert [path.name for path in report.parent.iterdir()] == [report.name]
    (copy,) = own_cache.glob("*.sqlite")
    assert copy.stat().st_mode & 0o077 == 0
    assert own_cache.stat().st_mode & 0o077 == 0
    moved = report.rename(report.with_name("other.nsys-rep"))  # the content counts, not the name
    nsys_sql.open(moved).close()
    assert calls(tmp_path) == 1
    moved.write_bytes(b"another report")
    nsys_sql.open(moved).close()
    monkeypatch.setenv("NSYS_VERSION", "2026.1")
    nsys_sql.open(moved).close()
    assert calls(tmp_path) == 3
    assert len(list(own_cache.glob("*.sqlite"))) == 3
    assert not list(own_cache.glob(".part*"))


def test_progress_is_told_to_whoever_listens(report, monkeypatch):
    monkeypatch.setenv("NSYS_SLEEP", "0.5")
    told = []
    with inputs.reporting(told.append):
        nsys_sql.open(report).close()
    assert any(f"{report.name}: exporting with NVIDIA" in text for text in told)
    assert told[-1] == ""


def test_a_report_that_cannot_be_exported_is_told(report, own_cache, monkeypatch, capsys):
    report.write_bytes(b"bad")
    with pytest.raises(InputError, match=r"nsys ended with 1: Importer error: too old"):
        nsys_sql.open(report)
    assert list(own_cache.iterdir()) == []
    monkeypatch.setenv("PATH", str(report.parent))
    assert cli.execute(["run", "budget", str(report)]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"Error: {report} is a report, and there is no nsys on PATH")
    assert "nsys export --type=sqlite" in err
    assert err.count("\n") == 1


def test_an_sqlite_file_called_a_report_is_read_as_it_is(fixture_sqlite, tmp_path):
    path = shutil.copy(fixture_sqlite("event_waits"), tmp_path / "x.nsys-rep")
    with nsys_sql.open(path) as model:
        assert len(model.run("budget").fetchall()) == 15


# ---------------------------------------------------------------- the cache


@pytest.fixture
def trace(fixture_sqlite, tmp_path):
    return Path(shutil.copy(fixture_sqlite("event_waits"), tmp_path / "x.sqlite"))


def made(own_cache):
    return {path.name: path.stat().st_mtime_ns for path in own_cache.glob("ingest-*.duckdb")}


def test_a_trace_is_ingested_once_for_the_same_options(trace, own_cache):
    with nsys_sql.open(trace) as model:
        wanted = answers(model)
    for recipes in (RECIPES, RECIPES[:2]):  # made, and found
        with nsys_sql.open(trace, cache=True) as model:
            assert answers(model, recipes) == {name: wanted[name] for name in recipes}
            assert model.trace.warnings == ()
            assert model.trace.path == trace
            first = made(own_cache)
    assert len(first) == 1
    with nsys_sql.open(trace, cache=True, anchor="nvtx:step *", skip_first=1) as model:
        assert model.run("budget").fetchall()[0][-1] == 1
    assert len(made(own_cache)) == 2
    assert first.items() <= made(own_cache).items()
    assert sorted(path.name for path in trace.parent.iterdir()) == ["the cache", "x.sqlite"]


def test_a_changed_trace_is_read_anew(trace, own_cache):
    nsys_sql.open(trace, cache=True).close()
    source = sqlite3.connect(trace)
    source.execute("DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE rowid = 1")
    source.commit()
    source.close()
    with nsys_sql.open(trace, cache=True) as model:
        assert model.query("SELECT count(*) FROM kernel").fetchall() == [(7,)]
    assert len(made(own_cache)) == 2


def test_the_log_beside_a_trace_is_part_of_it(trace):
    """Rows may be in the log alone: the file itself is as it was."""
    source = sqlite3.connect(trace)
    source.execute("PRAGMA journal_mode = WAL")
    before, file = files.identity(trace), trace.read_bytes()
    source.execute("DELETE FROM NVTX_EVENTS WHERE rowid = 1")
    source.commit()
    assert trace.read_bytes() == file
    assert files.identity(trace) != before
    source.close()


def test_other_content_of_the_same_size_and_time_is_read_anew(tmp_path, own_cache):
    """Where the samples of the content do not reach: the time of change is put back."""
    path = tmp_path / "long.sqlite"
    with path.open("wb") as file:
        file.truncate(64 << 20)
    status, first = path.stat(), files.identity(path)
    with path.open("r+b") as file:
        file.seek((2 << 20) + 300_000)
        file.write(b"x")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    second = files.identity(path)
    assert (first["size"], first["mtime_ns"]) == (second["size"], second["mtime_ns"])
    assert first["sample"] != second["sample"]


def test_a_trace_replaced_while_it_is_ingested_is_told(trace, own_cache, monkeypatch):
    """Replaced after its name was made, before it was opened: nothing changes while it is read."""

    def replaced(_, found, file, *__):
        os.replace(shutil.copy(found, found.with_suffix(".new")), found)
        file.write_bytes(b"of the other one")

    monkeypatch.setattr(database, "_write", replaced)
    with pytest.raises(InputError, match="changed while it was read"):
        nsys_sql.open(trace, cache=True)
    assert list(own_cache.iterdir()) == []


def test_a_full_disk_under_the_cache_is_told(trace, own_cache, monkeypatch):
    def told(file):
        return duckdb.IOException(f'Could not write file "{file}": No space left on device')

    def full(_, __, file, *___):
        raise output.failure(told(file))

    def full_at_the_end(_, __, file, *___):
        raise told(f"{file}.wal")

    for write in (full, full_at_the_end):
        monkeypatch.setattr(database, "_write", write)
        told_so = rf"^the cache {own_cache} cannot be written: No space left on device$"
        with pytest.raises(InputError, match=told_so) as caught:
            nsys_sql.open(trace, cache=True)
        assert "NSYS_SQL_CACHE" in caught.value.hint
        assert list(own_cache.iterdir()) == []


def test_a_full_disk_under_partitions_is_told(trace, tmp_path, monkeypatch):
    def full(_, __, scratch, ___):
        raise duckdb.IOException(f'Could not write file "{scratch}/a.parquet": No space left')

    monkeypatch.setattr("nsys_sql.session.Model.write_facts", full)
    folder = tmp_path / "parts"
    with pytest.raises(UsageError, match=rf"^partitions cannot be written to {folder}: No space"):
        partition.write_partition(trace, folder, Options())
    assert list(folder.iterdir()) == []


def test_a_log_beside_a_database_is_named_after_it():
    error = duckdb.IOException('Could not write file "/x/h.duckdb.wal": No space left on device')
    assert str(output.failure(error)) == "cannot write /x/h.duckdb: No space left on device"
    assert output.unwritten(error, Path("/x")) == "No space left on device"
    assert output.unwritten(error, Path("/y")) is output.unwritten(ValueError("x"), Path("/x"))


def test_runs_at_the_same_time_make_one_file_and_all_answer(trace, own_cache):
    rows, errors = [], []

    def ask():
        try:
            with nsys_sql.open(trace, cache=True, threads=1) as model:
                rows.append(model.run("budget").fetchall())
        except Exception as error:
            errors.append(error)

    workers = [threading.Thread(target=ask) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert errors == []
    assert rows[0] == rows[1] == rows[2]
    assert len(made(own_cache)) == 1
    assert not list(own_cache.glob(".part*"))


def test_a_failed_ingest_leaves_nothing(trace, own_cache, monkeypatch):
    def fails(*_):
        raise AnswerError("half way")

    monkeypatch.setattr(database, "_describe", fails)
    with pytest.raises(AnswerError, match="half way"):
        nsys_sql.open(trace, cache=True)
    assert list(own_cache.iterdir()) == []


def test_the_cache_is_listed_and_cleared(trace, own_cache, capsys):
    assert cli.execute(["run", "devices", str(trace), "--cache", "--format", "json"]) == 0
    # the trace is named, and not the copy
    assert json.loads(capsys.readouterr().out)["trace"]["path"] == str(trace)
    partition.write_partition(trace, survey_cli.folder_for(None), Options())
    capsys.readouterr()
    assert cli.execute(["cache", "--list"]) == 0
    *lines, total = capsys.readouterr().out.splitlines()
    assert [line.split()[-2:] for line in sorted(lines, key=lambda line: line.split()[-2])] == [
        ["ingest", str(trace)],
        ["partition", str(trace)],
    ]
    assert total.startswith("2 entries")
    (own_cache / "mine.txt").write_text("kept", encoding="utf-8")
    world, _, _ = files.owner().partition(".")
    for name in (files.owner(), f"{world}.999999999", "00000000.1", f"{files.owner()}-old"):
        (own_cache / f".part-{name}-x").mkdir()
    for name in ("00000000.1", f"{files.owner()}-old"):
        os.utime(own_cache / f".part-{name}-x", (1, 1))
    with nsys_sql.open(trace, cache=True) as model:
        assert cli.execute(["cache", "--clear"]) == 0
        assert len(model.run("budget").fetchall()) == 15  # whoever reads it keeps it
    left = [path.name for path in own_cache.rglob("*")]
    # what a live run is making is its own, however long that takes
    own = [f".part-{files.owner()}-old-x", f".part-{files.owner()}-x"]
    assert sorted(left) == [*own, "mine.txt", "partitions"]
    assert cache.entries() == []
    assert cli.execute(["cache"]) == 2
    assert cli.execute(["cache", "--list", "--clear"]) == 2


def test_a_cache_that_cannot_be_written_is_told(trace, monkeypatch):
    monkeypatch.setenv("NSYS_SQL_CACHE", str(trace / "below a file"))
    with pytest.raises(InputError, match="cannot be written") as caught:
        nsys_sql.open(trace, cache=True)
    assert "NSYS_SQL_CACHE" in caught.value.hint


def test_what_an_option_brings_is_joined_to_the_cached_trace(trace, own_cache):
    with nsys_sql.open(trace, reference_steps="1.9ms,2.0ms") as model:
        wanted = model.run("slowdown").fetchall()
    nsys_sql.open(trace, cache=True).close()
    with nsys_sql.open(trace, cache=True, reference_steps="1.9ms,2.0ms") as model:
        assert model.run("slowdown").fetchall() == wanted
    assert len(made(own_cache)) == 1
