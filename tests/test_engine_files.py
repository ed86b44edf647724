"""Opening files: what is refused, what is copied first, and that nothing is left or changed."""

import hashlib
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import nsys_sql
from conftest import long_test
from nsys_sql.errors import InputError, UsageError

KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"
COLUMNS = '"start" INTEGER, "end" INTEGER, deviceId INTEGER, streamId INTEGER, shortName INTEGER'


def write(path, rows=3, journal="delete", tables=(KERNEL,)):
    database = sqlite3.connect(path)
    database.execute(f"PRAGMA journal_mode = {journal}")
    for table in tables:
        database.execute(f"CREATE TABLE {table} ({COLUMNS})")
        database.executemany(
            f"INSERT INTO {table} VALUES (?, ?, 0, 7, 1)", [(i, i + 1) for i in range(rows)]
        )
    database.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
    database.execute("INSERT INTO StringIds VALUES (1, 'gemm')")
    database.commit()
    database.close()
    return path


def kernels(path, **options):
    with nsys_sql.open(path, **options) as model:
        (count,) = model.query("SELECT count(*) FROM kernel").fetchone()
        return count, model.trace.warnings


def snapshot(folder):
    return {
        path.name: (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
        for path in sorted(folder.iterdir())
    }


# ---------------------------------------------------------------- refused, in one clear line


def refused(path, words, **options):
    with pytest.raises(InputError, match=words) as caught:
        nsys_sql.open(path, **options).close()
    assert caught.value.exit_code == 3
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_missing_file_is_refused_and_not_made(tmp_path):
    refused(tmp_path / "none.sqlite", "does not exist")
    assert list(tmp_path.iterdir()) == []


def test_directories_and_pipes_are_refused(tmp_path):
    refused(tmp_path, "is a directory")
    os.mkfifo(tmp_path / "pipe")
    refused(tmp_path / "pipe", "not a regular file")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"not a database, but long enough to look at" * 9, "not an SQLite database, or it is enc"),
        (os.urandom(4096), "not an SQLite database"),
        (b"SQLite format 3\x00", "is truncated"),
    ],
)
def test_what_is_no_database_is_refused(tmp_path, content, words):
    path = tmp_path / "x.sqlite"
    path.write_bytes(content)
    refused(path, words)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_a_truncated_file_is_refused(tmp_path, share):
    whole = write(tmp_path / "whole.sqlite", rows=3000).read_bytes()
    path = tmp_path / "cut.sqlite"
    path.write_bytes(whole[: int(len(whole) * share)])
    refused(path, "is truncated")


def test_a_damaged_file_is_refused_when_it_is_read(tmp_path):
    path = write(tmp_path / "bad.sqlite", rows=3000)
    content = bytearray(path.read_bytes())
    content[8192 : 8192 + 4096 * 4] = b"\xff" * 4096 * 4
    path.write_bytes(content)
    with pytest.raises((InputError, UsageError)) as caught, nsys_sql.open(path) as model:
        model.rows(model.query("SELECT sum(end_ns) FROM kernel"))
    assert "damaged or truncated" in str(caught.value)
    assert caught.value.exit_code == 3


def test_another_database_is_refused(tmp_path):
    path = tmp_path / "other.sqlite"
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE invoices (id INTEGER)")
    database.commit()
    database.close()
    refused(path, "no table of Nsight Systems")


def test_a_view_in_the_place_of_a_table_is_refused(tmp_path):
    path = tmp_path / "view.sqlite"
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
    database.execute(f"CREATE VIEW {KERNEL} AS SELECT * FROM {KERNEL}_V2")
    database.execute(f"CREATE VIEW {KERNEL}_V2 AS SELECT * FROM {KERNEL}")
    database.execute("CREATE VIEW harmless AS SELECT 1")
    database.commit()
    database.close()
    refused(path, "is a view, not a table")


@long_test  # SQLite tries for five seconds
def test_a_file_locked_by_another_program_is_refused(tmp_path):
    path = write(tmp_path / "locked.sqlite")
    code = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('BEGIN EXCLUSIVE'); "
        "print('ready', flush=True); sys.stdin.readline()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout.readline().strip() == "ready"
        try:
            refused(path, "locked by another program")
        finally:
            holder.communicate("\n")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_refused(tmp_path):
    path = write(tmp_path / "secret.sqlite")
    path.chmod(0)
    refused(path, "cannot be read: Permission denied")


# ---------------------------------------------------------------- read in place, or from a copy


def test_a_trace_is_not_touched(tmp_path):
    path = write(tmp_path / "it's; a trace.sqlite")
    before = snapshot(tmp_path)
    assert kernels(path) == (3, ())
    assert snapshot(tmp_path) == before


def test_a_read_only_folder_is_enough(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    path = write(folder / "t.sqlite")
    path.chmod(0o444)
    folder.chmod(0o555)
    before = snapshot(folder)
    try:
        assert kernels(path) == (3, ())
        assert snapshot(folder) == before
    finally:
        folder.chmod(0o755)


def hot(tmp_path, journal):
    """A file whose last transaction lives in the log beside it, as a killed writer leaves it."""
    write(tmp_path / "writer.sqlite", rows=2000, journal=journal)
    database = sqlite3.connect(tmp_path / "writer.sqlite", isolation_level=None)
    database.execute("PRAGMA cache_size = 2")
    if journal == "wal":
        database.execute("PRAGMA wal_autocheckpoint = 0")
    database.execute("BEGIN")
    database.executemany(
        f"INSERT INTO {KERNEL} VALUES (?, ?, 0, 7, 1)", [(i, i + 1) for i in range(2000)]
    )
    if journal == "wal":
        database.execute("COMMIT")
    folder = tmp_path / "found"
    folder.mkdir()
    for file in tmp_path.glob("writer.sqlite*"):
        if not file.name.endswith("-shm"):
            shutil.copy(file, folder / file.name.replace("writer", "t"))
    database.close()
    return folder


def test_rows_in_a_hot_wal_are_included(tmp_path):
    folder = hot(tmp_path, "wal")
    assert sorted(each.name for each in folder.iterdir()) == ["t.sqlite", "t.sqlite-wal"]
    before = snapshot(folder)
    private = tmp_path / "private"
    private.mkdir()
    with nsys_sql.open(folder / "t.sqlite", temp_directory=private) as model:
        assert model.query("SELECT count(*) FROM kernel").fetchone() == (4000,)
        assert "-wal" in model.trace.warnings[0]
        assert [each.name[:9] for each in private.iterdir()] == ["nsys-sql-"]
    assert list(private.iterdir()) == []
    assert snapshot(folder) == before


def test_a_hot_journal_is_rolled_back_in_the_copy(tmp_path):
    folder = hot(tmp_path, "delete")
    assert sorted(each.name for each in folder.iterdir()) == ["t.sqlite", "t.sqlite-journal"]
    before = snapshot(folder)
    count, warnings = kernels(folder / "t.sqlite")
    assert count == 2000
    assert "-journal" in warnings[0]
    assert snapshot(folder) == before


def test_a_clean_wal_file_is_read_from_a_copy(tmp_path):
    folder = tmp_path / "clean"
    folder.mkdir()
    path = write(folder / "t.sqlite", journal="wal")
    assert [each.name for each in folder.iterdir()] == ["t.sqlite"]
    before = snapshot(folder)
    assert kernels(path) == (3, ("the file is in WAL mode: read from a private copy",))
    assert snapshot(folder) == before


def test_a_temporary_folder_that_is_not_there_is_told(tmp_path):
    path = write(tmp_path / "t.sqlite", journal="wal")
    with pytest.raises(UsageError, match="no temporary folder"):
        nsys_sql.open(path, temp_directory=tmp_path / "none").close()


def test_a_file_that_changes_meanwhile_is_refused(tmp_path):
    path = write(tmp_path / "t.sqlite")
    with nsys_sql.open(path) as model:
        relation = model.query("SELECT count(*) FROM kernel")
        os.utime(path, ns=(1, 1))
        with pytest.raises(InputError, match="changed while it was read"):
            model.rows(relation)


def test_a_file_longer_than_its_header_says_is_read_with_a_warning(tmp_path):
    path = write(tmp_path / "t.sqlite")
    with path.open("ab") as file:
        file.write(b"\0" * 4096)
    count, warnings = kernels(path)
    assert count == 3
    assert "4096 bytes longer" in warnings[0]


# ---------------------------------------------------------------- limits and versions


def test_limits_are_passed_on_or_refused(tmp_path):
    path = write(tmp_path / "t.sqlite")
    with nsys_sql.open(path, threads=1, memory_limit="64MB") as model:
        settings = "SELECT current_setting('threads'), current_setting('memory_limit')"
        assert model.con.execute(settings).fetchone() == (1, "61.0 MiB")
        folder = model.con.execute("SELECT current_setting('temp_directory')").fetchone()[0]
        assert Path(folder).is_absolute()
        assert stat.S_IMODE(Path(folder).stat().st_mode) == 0o700
        assert list(Path(folder).iterdir()) == []
    assert not Path(folder).exists()
    with pytest.raises(UsageError, match="memory-limit 'much' is refused"):
        nsys_sql.open(path, memory_limit="much").close()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"anchor": "step*"}, "not KIND:PATTERN"),
        ({"anchor": "nvtx:"}, "not KIND:PATTERN"),
        ({"iterations": "3"}, "not A:B"),
        ({"iterations": "5:2"}, "holds none"),
        ({"per_iteration": 0}, "per-iteration is 0"),
        ({"skip_first": -1}, "skip-first is -1"),
        ({"device": -(2**40)}, "device is -"),
        ({"window": "odd"}, "window 'odd'"),
    ],
)
def test_options_out_of_range_are_usage_errors(tmp_path, options, words):
    with pytest.raises(UsageError, match=words) as caught:
        nsys_sql.open(write(tmp_path / "t.sqlite"), **options)
    assert caught.value.exit_code == 2


def test_a_newer_schema_is_a_warning_and_metadata_may_be_any_bytes(tmp_path):
    path = write(tmp_path / "t.sqlite")
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT)")
    database.executemany(
        "INSERT INTO META_DATA_EXPORT VALUES (?, CAST(? AS TEXT))",
        [
            ("EXPORT_SCHEMA_VERSION", b"3.99.1"),
            ("EXPORT_PRODUCT_VERSION", b"2031.1.1.7"),
            ("EXPORT_TIME_LOCAL", b"\xcf\xf0\xe8 \xff"),
            ("EXPORT_USER", b"somebody"),
        ],
    )
    database.execute("CREATE TABLE TARGET_INFO_SYSTEM_ENV (name TEXT, value TEXT)")
    database.execute(
        "INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES "
        "('TargetInstallDir', '/opt/nvidia/nsight-systems/2024.6.2/target-linux-x64')"
    )
    database.commit()
    database.close()
    with nsys_sql.open(path) as model:
        assert model.trace.schema_version == "3.99.1"
        assert model.trace.product_version == "2031.1.1.7"
        assert model.trace.capture_version == "2024.6.2"
        assert "newer" in model.trace.warnings[0]
        rows = model.rows(model.query("FROM export_info ORDER BY name"))
        assert [name for name, _ in rows] == ["EXPORT_PRODUCT_VERSION", "EXPORT_SCHEMA_VERSION"]
        assert model.rows(model.query("FROM system_env")) == [("CaptureVersion", "2024.6.2")]
