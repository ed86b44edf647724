"""What a trace knows of its host, its user and their environment is written nowhere.

A canary of its own stands in every text that can carry such a thing, and everything that any
command leaves is searched: what it prints, the files it writes, and what it keeps on the way.
Text that the program itself emits, its NVTX ranges and the names of its threads, is data.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
import time
import zlib
from contextlib import closing, suppress
from pathlib import Path

import duckdb
import pytest

import nsys_sql
from arrowbuilder import to_folder
from conftest import long_test, written
from nsys_sql import source
from nsys_sql.cli import execute
from torture import full

HOST, USER = "canary-host-q1.example", "canary-user-q2"
_FIRST, _LAST = 100, 160
CANARY = re.compile(rb"canary-(?:host-q1|user-q2|[0-9]{3})")


def canaries() -> dict[str, list[tuple]]:
    """Rows for tables of the trace, each with canaries of its own."""
    number = iter(f"canary-{each}" for each in range(_FIRST, _LAST))
    new = lambda: next(number)  # noqa: E731
    environment = "\0".join(f"{name}={new()}" for name in ("WANDB_API_KEY", "HF_TOKEN", "USER"))
    env = [
        ("Hostname", HOST),
        ("DeviceEnvironment", environment),
        ("TargetInstallDir", f"/home/{new()}/nsight/2026.2.1/target"),
        *((name, new()) for name in ("GpuInfo", "NicInfo", "KernelVersion", "SystemUID", "Odd")),
        (new(), "a name can be one as well"),
    ]
    capture = [
        ("PROCESS_0:USER_NAME", USER),
        ("PROCESS_0:COMMAND", f"/home/{new()}/bin/python"),
        ("PROCESS_0:ARGUMENT_0", f"--token={new()}"),
        ("PROCESS_0:WORKING_DIR", f"/scratch/{new()}"),
        ("PROCESS_0:ENVIRONMENT_VARIABLE", f"AWS_SECRET={new()}"),
        ("DEVICE_DISPLAY_NAME", new()),
        ("PACKAGE_NAME", new()),
        ("PROFILING_SESSION_UUID", new()),
        (f"PROCESS_0:{new()}", "x"),
    ]
    export = [
        ("EXPORT_HOST", HOST),
        ("EXPORT_USER", USER),
        ("EXPORT_PARAM_INPUT_PATH_ABS", f"/home/{new()}/report.nsys-rep"),
        ("EXPORT_PARAM_OUTPUT_FILE", f"{new()}.sqlite"),
        ("EXPORT_CUSTOM", new()),
    ]
    strings = [
        (900, f"TOKEN={new()}\0HOME=/home/{new()}"),
        (901, f"ONLY_ONE={new()}"),
        (902, f"/home/{new()}/lib/libx.so"),
        (903, f"C:\\Users\\{new()}\\x.dll"),
        (904, f"program output with {new()}"),
        (905, f"/tmp/{new()}/streams/stdout.log"),
        (906, f"a config file with {new()}"),
        (907, f"BAD=\udcff{new()}\0X=1"),
        # nothing of the trace is called so
        (908, f"python train.py --token {new()}"),
        (909, f'{{"HF_TOKEN": "{new()}"}}'),
        (910, f"Bearer {new()}"),
        (911, HOST),
    ]
    return {
        "TARGET_INFO_SYSTEM_ENV": env,
        "META_DATA_CAPTURE": capture,
        "META_DATA_EXPORT": export,
        "StringIds": strings,
        "ProcessStreams": [(905, 904)],
        "ANALYSIS_FILE": [(f"/home/{new()}/cfg.yaml", 906)],
        "PROCESSES": [
            (f"/home/{new()}/bin/python train.py",),
            (f"python -m train --token {new()}",),
            (f"bash script.sh {new()}",),
            (f"ssh {new()}@{HOST}",),
        ],
        "DIAGNOSTIC_EVENT": [
            (f"see /tmp/{new()}/log and C:\\Users\\{new()}\\log for {USER} on {HOST}",),
            (f"Process was launched on {HOST.split('.')[0]}, user={USER}",),
            (f"HF_TOKEN={new()} set, SECRET: {new()}, see ~/{new()}/x, ./{new()}, $HOME/{new()}",),
            (f'command "python x --seed {new()}" with arguments: [-n, {new()}]',),
            (f"api_key='{new()} {new()}' --token {new()} to https://u:{new()}@hub.example/x",),
        ],
        "CUPTI_ACTIVITY_KIND_JIT": [(f"/home/{new()}/.nv/ComputeCache",)],
        "TARGET_INFO_NIC_INFO": [(new(), new())],
        "TARGET_INFO_NETWORK_METRICS": [(new(), new())],
    }


_COLUMNS = {
    "StringIds": ("id", "value"),
    "ProcessStreams": ("filenameId", "contentId"),
    "ANALYSIS_FILE": ("filename", "contentId"),
    "PROCESSES": ("name",),
    "DIAGNOSTIC_EVENT": ("text",),
    "CUPTI_ACTIVITY_KIND_JIT": ("cachePath",),
    "TARGET_INFO_NIC_INFO": ("stateName", "name"),
    "TARGET_INFO_NETWORK_METRICS": ("name", "description"),
}


def plant(path: Path, is_odd: bool = False) -> Path:
    """A full trace with canaries; `is_odd` also puts them where numbers belong."""
    full(path)
    with closing(sqlite3.connect(path)) as database:
        present = {row[0] for row in database.execute("SELECT name FROM sqlite_master")}
        for table, rows in canaries().items():
            columns = _COLUMNS.get(table, ("name", "value"))
            if table not in present:
                database.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
            own = {row[1].lower() for row in database.execute(f"PRAGMA table_info({table})")}
            for column in [each for each in columns if each.lower() not in own]:
                database.execute(f"ALTER TABLE {table} ADD COLUMN {column} TEXT")
            for row in rows:
                marks = ["CAST(? AS TEXT)" if isinstance(each, str) else "?" for each in row]
                cells = [
                    each.encode("utf-8", "surrogateescape") if isinstance(each, str) else each
                    for each in row
                ]
                database.execute(
                    f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join(marks)})", cells
                )
        if is_odd:
            for table, column in (
                ("PROCESSES", "pid"),
                ("PROCESSES", "globalPid"),
                ("ProcessStreams", "contentId"),
                ("DIAGNOSTIC_EVENT", "severity"),
                ("TARGET_INFO_GPU", "smCount"),
                ("CUPTI_ACTIVITY_KIND_KERNEL", "gridX"),
            ):
                database.execute(f"INSERT INTO {table} ({column}) VALUES ('canary-{_LAST - 1}')")
        database.commit()
    return path


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    return plant(tmp_path_factory.mktemp("secrets") / "trace.sqlite")


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    return plant(tmp_path_factory.mktemp("odd") / "trace.sqlite", is_odd=True)


# ---------------------------------------------------------------- searching


def found_in(data: bytes) -> set[bytes]:
    """The canaries in bytes: plain, packed with gzip or deflate, as UTF-16, or reversed in hex."""
    texts = [data, data.replace(b"\0", b"")]
    if data[:2] == b"\x1f\x8b":
        texts.append(gzip.decompress(data))
    for at in (each.start() for each in re.finditer(b"\x78[\x01\x9c\xda]", data)):
        try:
            texts.append(zlib.decompressobj().decompress(data[at:], 1 << 20))
        except zlib.error:
            continue
    return {each for text in texts for each in CANARY.findall(text)}


def found_in_database(path: Path) -> set[bytes]:
    """The canaries in a DuckDB file: in its bytes, its tables, its views, and its whole schema."""
    found = found_in(path.read_bytes())
    with duckdb.connect(str(path), read_only=True) as con:
        sql = con.execute("SELECT sql FROM duckdb_views() UNION SELECT sql FROM duckdb_tables()")
        found |= found_in(str(sql.fetchall()).encode())
        names = con.execute(
            "SELECT schema_name, table_name FROM duckdb_tables() WHERE NOT internal"
        ).fetchall()
        assert names
        for schema, name in names:
            rows = con.execute(f'SELECT * FROM "{schema}"."{name}"').fetchall()
            found |= found_in(repr(rows).encode())
        views = con.execute(
            "SELECT view_name FROM duckdb_views() WHERE NOT internal AND schema_name = 'main'"
        ).fetchall()
        for (name,) in views:
            try:
                rows = con.execute(f'SELECT * FROM main."{name}"').fetchall()
            except duckdb.Error as error:  # a view that says why it has no answer
                rows = [str(error)]
            found |= found_in(repr(rows).encode())
    return found


def found_below(folder: Path) -> dict[str, set[bytes]]:
    """The canaries in every file below a folder, by file; traces aside."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.suffix == ".sqlite":
            continue
        canaries = found_in(str(path).encode())
        if path.suffix == ".duckdb":
            canaries |= found_in_database(path)
        elif path.suffix == ".parquet":
            rows = duckdb.execute(f"SELECT * FROM read_parquet('{path}')").fetchall()
            canaries |= found_in(path.read_bytes()) | found_in(repr(rows).encode())
        else:
            canaries |= found_in(path.read_bytes())
        if canaries:
            found[path.name] = canaries
    return found


def test_the_search_finds_what_is_hidden(tmp_path, trace):
    secret = b"canary-123"
    assert found_in(b"x" + secret) == found_in(gzip.compress(secret)) == {secret}
    assert found_in(b"..." + zlib.compress(secret * 9)) == {secret}
    assert len(found_in(trace.read_bytes())) > 40
    path = tmp_path / "x.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute(
            "CREATE TABLE t AS SELECT 'canary-' || (100 + i % 9) AS a FROM range(9000) r(i)"
        )
    assert len(found_below(tmp_path)["x.duckdb"]) == 9


# ---------------------------------------------------------------- everything that is written


@pytest.fixture
def call(capsysbinary, monkeypatch, tmp_path):
    """`call(*arguments)`: exit code; fails when a canary is in what is printed."""
    monkeypatch.setenv("NSYS_SQL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))

    def run(*arguments):
        code = execute([str(argument) for argument in arguments])
        out, err = capsysbinary.readouterr()
        assert found_in(out) | found_in(err) == set(), arguments
        assert b"bug" not in err
        return code

    return run


def test_nothing_that_a_command_writes_has_a_secret(odd, call, tmp_path):
    path = odd
    assert call("inspect", path, "--format", "json") == 0
    assert call("report", path, "-o", tmp_path / "r.html") == 0
    assert call("timeline", path, "-o", tmp_path / "t.json.gz") == 0
    assert call("build", path, "-o", tmp_path / "b.duckdb") == 0
    mask = os.umask(0)
    assert call("run", "capture", path, "--cache", "--format", "json") == 0
    os.umask(mask)
    kept = [tmp_path / "cache", *(tmp_path / "cache").glob("*.duckdb")]
    assert [stat.S_IMODE(each.stat().st_mode) for each in kept] == [0o700, 0o600]
    assert call("run", "processes", path, "--format", "parquet", "-o", tmp_path / "p.parquet") == 0
    assert call("survey", path, "--partitions", tmp_path / "parts", "-o", tmp_path / "s.json") == 0
    assert call("survey", path, "--partitions", tmp_path / "parts", "--init") == 0
    store = ("--store", tmp_path / "h.duckdb", "--partitions", tmp_path / "parts")
    assert call("compare", path, path, *store, "-o", tmp_path / "c.html") == 0
    assert call("show", "capture", path) == 0
    written = [each.name for each in tmp_path.rglob("*") if each.is_file()]
    assert any(name.startswith("ingest-") for name in written) and "manifest.json" in written
    assert found_below(tmp_path) == {}


def test_no_relation_and_no_recipe_has_a_secret(odd):
    with nsys_sql.open(odd) as model:
        for name in [*model.catalog.adapters, "capability"]:
            found = repr(model.rows(model.query(f"FROM {name}"))).encode()
            assert found_in(found) == set(), name
        for name in model.catalog.recipes:
            try:
                found = repr(model.result(name)).encode()
            except nsys_sql.NsysSqlError as error:
                found = repr(error).encode()
            assert found_in(found) == set(), name
        assert found_in(repr(model.trace).encode()) == set()


def test_a_folder_of_parquet_files_has_no_secret(odd, call, tmp_path):
    folder = tmp_path / "export"
    folder.mkdir()
    with closing(sqlite3.connect(odd)) as database:
        database.text_factory = lambda raw: raw.decode("utf-8", "replace")
        for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'"):
            cursor = database.execute(f'SELECT * FROM "{table}"')
            names = [each[0] for each in cursor.description]
            rows = [
                tuple(
                    None if name != "name" and value == "canary-159" else value
                    for name, value in zip(names, row, strict=True)
                )
                for row in cursor
            ]
            write_parquet(folder / f"{table}.parquet", names, rows)
    made = tmp_path / "made"
    made.mkdir()
    assert call("build", folder, "-o", made / "b.duckdb") == 0
    assert call("sql", folder, "FROM string") == 0
    for table in ("StringIds", "PROCESSES", "META_DATA_CAPTURE"):
        assert call("sql", folder, f"FROM trace.{table}") == 2
    assert found_below(made) == {}


def test_an_arrow_export_leaves_no_secret_on_the_disk(odd, tmp_path):
    pytest.importorskip("pyarrow", reason="the extra arrow is not installed")
    folder, private = to_folder(odd, tmp_path / "export"), tmp_path / "private"
    private.mkdir()
    with nsys_sql.open(folder, temp_directory=private) as model:
        for name in model.catalog.adapters:
            found = repr(model.rows(model.query(f"FROM {name}"))).encode()
            assert found_in(found) == set(), name
        assert len([*private.glob("*/*.parquet")]) > 9
        assert found_below(private) == {}
    assert [*private.iterdir()] == []


def test_a_recipe_of_a_stranger_finds_only_strings_that_name_something(trace, tmp_path, call):
    recipe = tmp_path / "words.sql"
    recipe.write_text(
        """-- words — which strings are there?
--
-- @grain   one row per string
-- @reads   nsys.string
-- @windows optional
-- @column  value VARCHAR - text
SELECT value FROM nsys.string ORDER BY value;
""",
        encoding="utf-8",
    )
    assert call("run", "words", trace, "--recipes", recipe) == 0
    with nsys_sql.open(trace, recipes=[recipe]) as model:
        model.run("launches")  # our own steps look up what they need without that limit
        found = {value for (value,) in model.run("words").fetchall()}
        assert {value for (value,) in model.query("SELECT value FROM string").fetchall()} == found
    with closing(sqlite3.connect(trace)) as database:
        named = database.execute(
            "SELECT value FROM StringIds WHERE id IN "
            "(SELECT shortName FROM CUPTI_ACTIVITY_KIND_KERNEL UNION ALL "
            "SELECT demangledName FROM CUPTI_ACTIVITY_KIND_KERNEL UNION ALL "
            "SELECT nameId FROM CUPTI_ACTIVITY_KIND_RUNTIME)"
        ).fetchall()
    assert len(named) > 4 and {value for (value,) in named} <= found


def write_parquet(path: Path, names: list[str], rows: list[tuple]) -> None:
    kinds = [
        "VARCHAR" if any(isinstance(row[at], str) for row in rows) else "BIGINT"
        for at in range(len(names))
    ]

    def cell(value: object, kind: str) -> str:
        if value is None or kind != "VARCHAR":
            return written(value)
        return written(str(value)).replace("\0", "' || chr(0) || '")

    with duckdb.connect() as con:
        listed = ", ".join(f'"{n}" {kind}' for n, kind in zip(names, kinds, strict=True))
        con.execute(f"CREATE TABLE t ({listed})")
        if rows:  # as text, since DuckDB is slow to take values one by one
            texts = (", ".join(map(cell, row, kinds)) for row in rows)
            con.execute(f"INSERT INTO t VALUES {', '.join(f'({text})' for text in texts)}")
        con.execute(f"COPY t TO '{path}' (FORMAT parquet)")


QUERIES = (
    "SELECT value::INTEGER FROM string",
    "SELECT value::INTEGER FROM system_env",
    "SELECT error(text) FROM diagnostic",
    "SELECT name::INTEGER FROM process_info",
    "FROM trace.StringIds",
    "FROM trace.PROCESSES",
    "FROM trace.DIAGNOSTIC_EVENT",
    "FROM trace.CUPTI_ACTIVITY_KIND_JIT",
    "FROM trace.TARGET_INFO_NIC_INFO",
    "FROM trace.META_DATA_EXPORT",
    "FROM trace.ANALYSIS_FILE",
)


@pytest.mark.parametrize("query", QUERIES)
def test_an_error_message_tells_no_secret(odd, call, query):
    assert call("sql", odd, query) == 2


def test_debugging_tells_no_secret(odd, tmp_path):
    code = (
        "import sys; from nsys_sql import cli, session; "
        "session.Model._check = lambda *a: 1 / 0; cli.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "run", "capture", str(odd)],
        env=os.environ | {"NSYS_SQL_DEBUG": "1"},
        capture_output=True,
        check=False,
    )
    assert b"ZeroDivisionError" in done.stderr
    assert found_in(done.stdout) | found_in(done.stderr) == set()


def test_only_show_host_shows_the_host(trace, tmp_path, capsys):
    parts = ("--partitions", tmp_path / "parts")
    assert execute(["survey", str(trace), "--init", *map(str, parts)]) == 0
    hidden = capsys.readouterr()
    assert HOST not in hidden.out + hidden.err
    assert execute(["survey", str(trace), "--init", "--show-host", *map(str, parts)]) == 0
    shown = capsys.readouterr()
    assert HOST in shown.out
    assert found_in((shown.out + shown.err).encode()) == {b"canary-host-q1"}
    assert found_below(tmp_path) == {}


def test_what_the_program_says_is_data(tmp_path):
    path = full(tmp_path / "t.sqlite")
    with closing(sqlite3.connect(path)) as database:
        database.execute(
            "INSERT INTO NVTX_EVENTS (start, end, eventType, text, globalTid) "
            "VALUES (10, 20, 59, 'LR=canary-100', 281476654487553)"
        )
        database.commit()
    with nsys_sql.open(path) as model:
        assert ("LR=canary-100",) in model.rows(model.query("SELECT text FROM nvtx"))


# ---------------------------------------------------------------- what is kept on the way


def test_private_copies_are_private_and_go(trace, tmp_path):
    path = tmp_path / "wal.sqlite"
    shutil.copy(trace, path)
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode = wal").fetchall()
    private = tmp_path / "private"
    private.mkdir()
    mask = os.umask(0)
    try:
        with nsys_sql.open(path, temp_directory=private) as model:
            model.run("budget")
            (folder,) = private.iterdir()
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
            copies = [each for each in folder.iterdir() if each.is_file()]
            assert copies and {stat.S_IMODE(each.stat().st_mode) for each in copies} == {0o600}
    finally:
        os.umask(mask)
    assert list(private.iterdir()) == []


@long_test
def test_the_temporary_folder_holds_no_secret_at_any_time(odd, tmp_path):
    seen: dict[str, set[bytes]] = {}
    is_done = threading.Event()

    def look() -> None:
        while not is_done.is_set():
            with suppress(OSError):  # a file that goes while it is looked at
                for path in tmp_path.rglob("*"):
                    seen.setdefault(path.name, set())
                    if path.is_file():
                        seen[path.name] |= found_in(path.read_bytes())
            time.sleep(0.01)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        with nsys_sql.open(odd, temp_directory=tmp_path, threads=1) as model:
            model.run("budget")
            # sorting makes room by spilling what is in memory, relations of the trace included
            model.con.execute("SET memory_limit = '80MB'")
            model.con.execute(
                "CREATE TEMP TABLE wide AS SELECT hash(i) AS a, repeat('x', 60) || i AS b "
                "FROM range(1000000) AS r(i) ORDER BY a"
            )
    finally:
        is_done.set()
        watcher.join()
    assert any(name.startswith("duckdb_temp") for name in seen)
    assert {name: canaries for name, canaries in seen.items() if canaries} == {}
    assert list(tmp_path.iterdir()) == []


def test_a_name_tells_whose_a_temporary_file_is():
    own = f"nsys-sql-{source.owner()}-x"
    world, _, _ = source.owner().partition(".")
    assert not source.is_left_over(own)
    assert source.is_left_over(f"nsys-sql-{world}.{2**22 + 7}-x")
    assert not source.is_left_over(f"nsys-sql-{'0' * 8}.{2**22 + 7}-x")  # of another machine
    assert not source.is_left_over("nsys-sql-x")
