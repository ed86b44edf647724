"""Bad inputs by name: what writes each, and what the program owes it.

A torture of the *file* is refused the same way by every command. A torture of *values* is read, or
refused with one line: `twin` then makes the plain trace that means the same, which the brute force
of `oracle.py` can measure.
"""

from __future__ import annotations

import math
import os
import random
import re
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tracebuilder import COLUMNS, TraceBuilder

KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"
RUNTIME = "CUPTI_ACTIVITY_KIND_RUNTIME"
MEMCPY = "CUPTI_ACTIVITY_KIND_MEMCPY"
LEAST, MOST = -(2**63), 2**63 - 1
# What attacks a terminal, a page, a shell, a query or a CSV reader from inside a name.
HOSTILE = (
    'it\'s "quoted" `too`',
    "'; DROP TABLE nsys.op; --",
    "\x1b[31mred\x1b[0m\x1b]0;title\x07",
    "line one\nline two\r\nline three\ttab",
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    "&lt;already&amp;escaped&gt;",
    "|pipe|in|a|table|",
    '=cmd|"/c calc"!A1',
    "![image](http://example.invalid/x.png)",
    "\u202eright to left\u202c \u2066isolate",
    "\u200bzero\u00a0width\ufeff",
    "\u009b31mC1 control\u0085",
    "{{ template }} ${shell} $(id) %s %n",
    "\\",
    "",
    " ",
    "\U0001f4a9 emoji e\u0301",
)


@dataclass(frozen=True)
class Torture:
    """One bad input; `make` writes it, `codes` are the exit codes that `run budget` may give.

    `words` have to be in what is said on standard error; `has_twin` tells that the trace still
    means something, so that its numbers can be measured.
    """

    name: str
    make: Callable[[Path], object]
    codes: tuple[int, ...] = (3,)
    words: str = ""
    options: tuple[str, ...] = ("--anchor", "nvtx:step *")
    has_twin: bool = False
    is_quick: bool = False
    is_large: bool = False

    def __str__(self) -> str:
        return self.name


# ------------------------------------------------------------------------------- a plain trace
def steps(count: int = 3, lazy: bool = False) -> TraceBuilder:
    """A few steps with compute, a collective, copies, events and every table of the builder."""
    trace = TraceBuilder(lazy=lazy)
    trace.cuda_device(100, 0, 0)
    trace.raw("TARGET_INFO_GPU", id=0, name="GPU", smCount=108, totalMemory=1 << 30, cuDevice=0)
    trace.raw("PROCESSES", globalPid=(1 << 48) | (100 << 24), pid=100, name="python")
    trace.raw("TARGET_INFO_SESSION_START_TIME", utcEpochNs=10**18, utcTime="x", localTime="x")
    trace.raw("ANALYSIS_DETAILS", globalVid=1, duration=10_000, startTime=0, stopTime=10_000)
    thread = (1 << 48) | (100 << 24) | 1
    trace.raw("ThreadNames", nameId=trace.string("main"), priority=1, globalTid=thread)
    for step in range(count):
        t, corr = 1000 * step, 100 * step
        trace.nvtx(t, t + 900, f"step {step}")
        trace.nvtx(t + 2, t + 500, "forward")
        trace.call(t + 1, t + 4, "cudaMemcpyAsync_v3020", corr=corr + 1)
        trace.memcpy(t + 10, t + 40, corr=corr + 1)
        trace.call(t + 5, t + 7, corr=corr + 2).kernel(t + 45, t + 150, corr=corr + 2)
        trace.call(t + 8, t + 9, corr=corr + 3)
        trace.kernel(t + 150, t + 400, "ncclDevKernel_AllReduce", stream=13, corr=corr + 3)
        trace.record(stream=13, event=1, sync_id=step + 1, corr=corr + 4)
        trace.wait(stream=7, event=1, sync_id=step + 1, corr=corr + 5)
        trace.call(t + 20, t + 22, corr=corr + 6).kernel(t + 420, t + 600, corr=corr + 6)
        trace.call(t + 610, t + 640, corr=corr + 7)
        trace.kernel(t + 650, t + 700, "flash_fwd_kernel", corr=corr + 7)
        trace.call(t + 30, t + 31, "cudaMemsetAsync_v3020", corr=corr + 8)
        trace.memset(t + 710, t + 720, corr=corr + 8)
        trace.call(t + 730, t + 735, "cudaGraphLaunch_v10000", corr=corr + 9)
        trace.graph_exec(t + 740, t + 800, corr=corr + 9)
        trace.os_call(t + 640, t + 645, "pthread_cond_wait")
    return trace


def read_tables() -> dict[str, dict[str, str]]:
    """Every table and column that any adapter reads, with the type it expects."""
    from nsys_sql.catalog import load_catalog
    from nsys_sql.plan import adapter_uses

    catalog = load_catalog()
    files = [*catalog.adapters.values(), *(f for each in catalog.variants.values() for f in each)]
    found: dict[str, dict[str, str]] = {}
    for file in files:
        for use in adapter_uses(file):
            found.setdefault(use.table, {}).update(use.columns)
    return found


def full(path: Path) -> Path:
    """The plain trace with two rows in every other table that an adapter reads."""
    path.write_bytes(_full())
    return path


@cache
def _full() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        return _write_full(Path(folder) / "full.sqlite").read_bytes()


def _write_full(path: Path) -> Path:
    steps().write(path)
    with closing(sqlite3.connect(path)) as database:
        present = {row[0].lower() for row in database.execute("SELECT name FROM sqlite_master")}
        for table, columns in read_tables().items():
            if table.lower() in present or table in ("EXPORT_META_DATA",):
                continue
            names = [name for name in columns if name != "rowid"]
            listed = ", ".join(
                f'"{name}" {"TEXT" if columns[name] == "VARCHAR" else "INTEGER"}' for name in names
            )
            database.execute(f'CREATE TABLE "{table}" ({listed})')
            for row in (1, 2):
                values = [
                    f"{name} {row}" if columns[name] == "VARCHAR" else row * 10 for name in names
                ]
                marks = ", ".join("?" * len(names))
                database.execute(f'INSERT INTO "{table}" VALUES ({marks})', values)
        database.commit()
    return path


def edited(*statements: str, start: Callable[[Path], Path] = full) -> Callable[[Path], object]:
    """The full trace after some statements of SQL."""

    def make(path: Path) -> None:
        start(path)
        with closing(sqlite3.connect(path)) as database:
            for statement in statements:
                database.execute(statement)
            database.commit()

    return make


def without(table: str, column: str) -> Callable[[Path], object]:
    """The full trace without a column, where it has it; a table of no other goes with it."""

    def make(path: Path) -> None:
        full(path)
        with closing(sqlite3.connect(path)) as database:
            names = [row[1].lower() for row in database.execute(f'PRAGMA table_info("{table}")')]
            if names == [column.lower()]:
                database.execute(f'DROP TABLE "{table}"')
            elif column.lower() in names:
                database.execute(f'ALTER TABLE "{table}" DROP COLUMN "{column}"')
            database.commit()

    return make


def retyped(table: str, type_: str, value: Callable[[Any], Any] = lambda each: each) -> Any:
    """Every column of a table declared otherwise; each value through a function."""

    def make(path: Path) -> None:
        full(path)
        with closing(sqlite3.connect(path)) as database:
            found = database.execute(f'SELECT * FROM "{table}"')
            names = [column[0] for column in found.description]
            rows = [[value(each) for each in row] for row in found]
            database.execute(f'DROP TABLE "{table}"')
            listed = ", ".join(f'"{name}" {type_}' for name in names)
            database.execute(f'CREATE TABLE "{table}" ({listed})')
            marks = ", ".join("?" * len(names))
            database.executemany(f'INSERT INTO "{table}" VALUES ({marks})', rows)
            database.commit()

    return make


# -------------------------------------------------------------------------------- what it means
def whole_number(value: object) -> int | None:
    """What an integer column holds: a whole number in any storage class, else nothing."""
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        is_whole = math.isfinite(value) and abs(value) < 2**53 and value == int(value)
        return int(value) if is_whole else None
    if isinstance(value, str) and value.lstrip("-").isascii() and value.lstrip("-").isdigit():
        number = int(value)
        return number if str(number) == value and LEAST <= number <= MOST else None
    return None


def plain_text(value: object) -> str | None:
    """What a text column holds."""
    if value is None or isinstance(value, str):
        return value
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def twin(source: Path, target: Path) -> Path:
    """The plain trace that means what a tortured one does: whole numbers, text, or nothing."""
    kinds = {
        table.lower(): {name.lower(): type_ for name, type_ in columns.items()}
        for table, columns in read_tables().items()
    }
    trace = TraceBuilder(lazy=False)
    with closing(sqlite3.connect(f"file:{source}?mode=ro", uri=True)) as database:
        database.text_factory = lambda raw: raw.decode("utf-8", "replace")
        names = [
            row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type='table'")
        ]
        for name in names:
            table = next((t for t in COLUMNS if t.lower() == name.lower()), None)
            if table is None:
                continue
            found = database.execute(f'SELECT * FROM "{name}" ORDER BY rowid')
            columns = [column[0].lower() for column in found.description]
            own = {re.split("[><:]", column)[0] for column in COLUMNS[table].split()}
            spelled = {column.lower(): column for column in own}
            for row in found:
                cells = {}
                for column, value in zip(columns, row, strict=True):
                    is_text = kinds.get(table.lower(), {}).get(column) == "VARCHAR"
                    if column in spelled:
                        cells[spelled[column]] = (plain_text if is_text else whole_number)(value)
                if table != "StringIds" or cells.get("id") is not None:  # SQLite would number it
                    trace.raw(table, **cells)
    return trace.write(target)


# ------------------------------------------------------------------------------------- files
def written(content: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content)


def truncated(pages: float) -> Callable[[Path], object]:
    """Cut after that share of the pages, or in the middle of one."""

    def make(path: Path) -> None:
        content = full(path).read_bytes()
        path.write_bytes(content[: max(1, int(len(content) * pages))])

    return make


def corrupted(seed: int) -> Callable[[Path], object]:
    """Noise over one page in five, the first aside."""

    def make(path: Path) -> None:
        content = bytearray(full(path).read_bytes())
        chance = random.Random(seed)
        for page in range(1, len(content) // 4096):
            if chance.random() < 0.2:
                content[page * 4096 : (page + 1) * 4096] = chance.randbytes(4096)
        path.write_bytes(content)

    return make


def loop(path: Path) -> None:
    """Two links that name each other."""
    other = path.with_name("other-link")
    path.symlink_to(other)
    other.symlink_to(path)


def no_cuda(path: Path) -> None:
    """An export of a run that never touched a GPU."""
    trace = TraceBuilder()
    trace.nvtx(0, 100, "step 0").nvtx(100, 200, "step 1").os_call(0, 10, "read")
    trace.write(path)


def other_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE invoices (id INTEGER, total REAL)")
        database.commit()


FILES = [
    Torture("missing", lambda path: None, words="does not exist"),
    Torture("directory", lambda path: path.mkdir(), words="is a directory"),
    Torture("empty", written(b""), words="is empty"),
    Torture("one-byte", written(b"S"), words="not an SQLite database"),
    Torture("text", written(b"hello\n" * 1000), words="not an SQLite database"),
    Torture("gzip", written(b"\x1f\x8b\x08" + bytes(500)), words="not an SQLite database"),
    Torture("noise", written(random.Random(1).randbytes(16384)), words="or it is encrypted"),
    Torture("magic-only", written(b"SQLite format 3\x00"), words="is truncated"),
    Torture(
        "magic-then-noise",
        written(b"SQLite format 3\x00" + random.Random(2).randbytes(16368)),
        words="cannot be read|damaged|not an SQLite|truncated",
    ),
    Torture(
        "duckdb-magic-then-noise", written(bytes(8) + b"DUCK" + random.Random(3).randbytes(9000))
    ),
    Torture("symlink-loop", loop, words="cannot be read"),
    Torture("dangling-link", lambda path: path.symlink_to("nowhere"), words="does not exist"),
    Torture("fifo", lambda path: os.mkfifo(path), words="not a regular file"),
    Torture("device-zero", lambda path: path.symlink_to("/dev/zero"), words="not a regular file"),
    Torture("device-null", lambda path: path.symlink_to("/dev/null"), words="not a regular file"),
    Torture("other-database", other_database, words="no table of Nsight Systems"),
    Torture("empty-database", edited("VACUUM", start=lambda p: sqlite3.connect(p).close() or p)),
    Torture("no-cuda", no_cuda, codes=(4,), words="no device operation"),
    *(
        Torture(f"truncated-{share}", truncated(share), words="is truncated")
        for share in (0.001, 0.1, 0.37, 0.5, 0.75, 0.98, 0.9999)
    ),
]
CORRUPTED = [Torture(f"corrupted-{seed}", corrupted(seed), codes=(0, 3, 4)) for seed in range(40)]


# ------------------------------------------------------------------------------------- values
def _hostile_names(path: Path) -> None:
    trace = steps()
    for number, name in enumerate(HOSTILE):
        t, corr = 1000 * (number % 3) + 801 + number, 10_000 + number
        trace.call(t, t + 1, corr=corr).kernel(t + 1, t + 2, name, corr=corr, stream=20 + number)
        trace.nvtx(t - 400, t - 300, name)
        thread = (1 << 48) | (100 << 24) | (number + 2)
        trace.raw("ThreadNames", nameId=trace.string(name), priority=1, globalTid=thread)
        trace.raw("PROCESSES", globalPid=(1 << 48) | ((200 + number) << 24), pid=number, name=name)
        trace.os_call(t - 800, t - 790, name or "none")
    trace.raw("TARGET_INFO_GPU", id=1, name=HOSTILE[4] + HOSTILE[2], cuDevice=1)
    trace.write(path)
    with closing(sqlite3.connect(path)) as database:
        for number, name in enumerate(HOSTILE):
            if name.strip() and "\0" not in name:
                quoted = name.replace('"', '""')
                database.execute(f'CREATE TABLE "{quoted}{number}" ("{quoted}" TEXT)')
        for number, name in enumerate(HOSTILE[:6]):
            quoted = name.replace('"', '""')
            database.execute(f'ALTER TABLE {KERNEL} ADD COLUMN "{quoted}{number}" TEXT')
        database.commit()


def _many_streams(path: Path) -> None:
    trace = steps()
    for number in range(10_000):
        t = 3000 + number
        trace.kernel(t, t + 5, stream=1000 + number, corr=10_000 + number)
    trace.nvtx(3000, 13_100, "step 3")
    trace.write(path)


def _many_names(path: Path) -> None:
    trace = steps()
    for number in range(100_000):
        t = 3000 + 2 * number
        trace.kernel(t, t + 1, f"kernel_{number}", corr=10_000 + number)
    trace.nvtx(3000, 203_100, "step 3")
    trace.write(path)


def _long_name(path: Path) -> None:
    name = "void " + "very_long<" * 500_000 + "int" + ">" * 5_000_000
    steps().kernel(810, 820, name).nvtx(805, 815, "x" * 10_000_000).write(path)


def _deep_ranges(path: Path) -> None:
    trace = steps()
    for depth in range(10_000):
        trace.nvtx(3000 + depth, 30_000 - depth, f"level {depth % 7}")
    trace.write(path)


def _one_kernel(path: Path) -> None:
    TraceBuilder().nvtx(0, 100, "step 0").call(1, 2, corr=1).kernel(10, 20, corr=1).write(path)


def _no_launches(path: Path) -> None:
    steps().write(path, drop=[RUNTIME])


def _one_end(path: Path) -> None:
    """One kernel that ends with time itself: each length is possible, their sum is not."""
    full(path)
    with closing(sqlite3.connect(path)) as database:
        database.execute(f'UPDATE {KERNEL} SET "end" = {MOST} WHERE rowid = 2')
        database.commit()


def _limits(path: Path) -> None:
    """Rows whose every column holds an integer at a limit, but for times that can be."""
    full(path)
    with closing(sqlite3.connect(path)) as database:
        for table in COLUMNS:
            names = [row[1] for row in database.execute(f'PRAGMA table_info("{table}")')]
            if not names or table in ("StringIds",) or "value" in names:
                continue
            for value in (LEAST, MOST, -1, 2**32 - 1, 2**31, 2**32):
                row = [value] * len(names)
                for at, name in enumerate(names):
                    if name in ("start", "end", "timestamp"):
                        row[at] = 900
                marks = ", ".join("?" * len(names))
                database.execute(f'INSERT INTO "{table}" VALUES ({marks})', row)
        database.commit()


def _odd_time(low: int, high: int) -> Callable[[Path], object]:
    return lambda path: steps().kernel(low, high).write(path)


_TIMED = (KERNEL, MEMCPY, RUNTIME, "NVTX_EVENTS", "CUPTI_ACTIVITY_KIND_MEMSET")


def _everywhere(setting: str) -> Callable[[Path], object]:
    def make(path: Path) -> None:
        full(path)
        with closing(sqlite3.connect(path)) as database:
            for table in _TIMED:
                database.execute(f'UPDATE "{table}" SET {setting}')
            database.commit()

    return make


def _renamed_by_case(path: Path) -> None:
    full(path)
    with closing(sqlite3.connect(path)) as database:
        for table in (KERNEL, "StringIds", "NVTX_EVENTS"):
            database.execute(f'ALTER TABLE "{table}" RENAME TO "{table.swapcase()}x"')
            database.execute(f'ALTER TABLE "{table.swapcase()}x" RENAME TO "{table.swapcase()}"')
        database.execute(f'ALTER TABLE "{KERNEL.swapcase()}" RENAME COLUMN "start" TO "START"')
        database.commit()


VALUES = [
    Torture("full", full, (0,), has_twin=True, is_quick=True),
    Torture("hostile-names", _hostile_names, (0,), has_twin=True, is_quick=True),
    Torture("limits", _limits, (0, 3), has_twin=True, is_quick=True),
    Torture("time-at-the-end", _odd_time(MOST - 1, MOST), (0, 3, 4)),
    Torture("time-at-the-start", _odd_time(LEAST, LEAST + 1), (0, 3, 4)),
    Torture("time-across", _odd_time(LEAST, MOST), (3,), words="no report can have"),
    Torture(
        "one-end-at-the-limit",
        _one_end,
        (3,),
        words="no report can have",
        options=(),
        is_quick=True,
    ),
    Torture("end-before-start", _everywhere('"end" = start - 1'), (4,)),
    Torture(
        "some-end-before-start",
        edited(f'UPDATE {KERNEL} SET "end" = start - 5 WHERE rowid % 3 = 0'),
        (0,),
        has_twin=True,
        is_quick=True,
    ),
    Torture("all-times-equal", _everywhere('start = 500, "end" = 500'), (0, 4), has_twin=True),
    Torture("no-end", _everywhere('"end" = NULL'), (4,)),
    Torture("no-time", _everywhere('start = NULL, "end" = NULL'), (4,)),
    Torture("many-streams", _many_streams, (0,), is_large=True),
    Torture("many-names", _many_names, (0,), is_large=True),
    Torture("long-name", _long_name, (0,), is_large=True),
    Torture("deep-ranges", _deep_ranges, (0,), is_large=True),
    Torture("one-kernel", _one_kernel, (0,), has_twin=True),
    Torture("no-kernels", edited(f"DELETE FROM {KERNEL}"), (0,), has_twin=True),
    Torture("no-launches", _no_launches, (0,), has_twin=True, is_quick=True),
    Torture("other-case", _renamed_by_case, (0,), has_twin=True),
    Torture(
        "view",
        edited(
            f"ALTER TABLE {KERNEL} RENAME TO hidden",
            f"CREATE VIEW {KERNEL} AS SELECT * FROM hidden",
        ),
        words="is a view, not a table",
        is_quick=True,
    ),
    Torture(
        "recursive-view",
        edited(
            f"DROP TABLE {KERNEL}",
            f"CREATE VIEW {KERNEL} AS WITH RECURSIVE a(n) AS (SELECT 1 UNION ALL SELECT n + 1 "
            'FROM a) SELECT n AS start, n AS "end", 0 AS deviceId FROM a',
        ),
        words="is a view, not a table",
    ),
    Torture(
        "recursive-view-beside",
        edited(
            "CREATE VIEW endless AS WITH RECURSIVE a(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM a)"
            " SELECT n FROM a"
        ),
        (0,),
        has_twin=True,
        is_quick=True,
    ),
    Torture(
        "broken-view-beside",
        edited("CREATE VIEW broken AS SELECT * FROM nothing_of_the_kind"),
        (0,),
        has_twin=True,
    ),
    Torture(
        "triggers",
        edited(
            f"CREATE TRIGGER t1 AFTER INSERT ON {KERNEL} BEGIN DELETE FROM {KERNEL}; END",
            f"CREATE TRIGGER t2 AFTER DELETE ON {RUNTIME} BEGIN SELECT no_such_function(); END",
        ),
        (0,),
        has_twin=True,
    ),
    Torture(
        "virtual-table",
        edited(
            f"DROP TABLE {KERNEL}",
            f'CREATE VIRTUAL TABLE {KERNEL} USING fts5("start", "end", deviceId)',
        ),
        (3,),
        words="virtual table",
        is_quick=True,
    ),
    Torture(
        "virtual-table-beside",
        edited(
            "CREATE VIRTUAL TABLE notes USING fts5(a, b)", "INSERT INTO notes VALUES ('x', 'y')"
        ),
        (0,),
        has_twin=True,
    ),
    Torture(
        "generated-column",
        edited(
            f'ALTER TABLE {KERNEL} RENAME COLUMN "end" TO finish',
            f'ALTER TABLE {KERNEL} ADD COLUMN "end" INTEGER AS (finish) VIRTUAL',
        ),
        (3,),
        words="generated",
        is_quick=True,
    ),
    Torture(
        "generated-column-beside",
        edited(f"ALTER TABLE {KERNEL} ADD COLUMN twice INTEGER AS (start * 2) VIRTUAL"),
        (0,),
        has_twin=True,
    ),
    Torture(
        "two-versions-of-a-table",
        edited(f"CREATE TABLE {KERNEL}_V2 AS SELECT * FROM {KERNEL}"),
        (0, 3),
    ),
    Torture(
        "kelvin-sign",  # lower() of it is k, but SQLite keeps the two apart
        edited(f'CREATE TABLE "{KERNEL.replace("KERNEL", chr(0x212A) + "ERNEL")}" (a TEXT)'),
        (0,),
        has_twin=True,
        is_quick=True,
    ),
    Torture(
        "without-rowid",
        edited(
            f"ALTER TABLE {KERNEL} RENAME TO old",
            f'CREATE TABLE {KERNEL} ("start" INTEGER, "end" INTEGER, deviceId INTEGER, contextId '
            "INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName "
            "INTEGER, shortName INTEGER, graphNodeId INTEGER, PRIMARY KEY (start, streamId)) "
            "WITHOUT ROWID",
            f'INSERT INTO {KERNEL} SELECT start, "end", deviceId, contextId, streamId, '
            "correlationId, globalPid, demangledName, shortName, graphNodeId FROM old",
            "DROP TABLE old",
        ),
        (0, 3),
    ),
    Torture(
        "row-numbers-out-of-range",
        edited(f"UPDATE {KERNEL} SET rowid = {2**40 + 1} WHERE rowid = 1"),
        (3,),
        words="row numbers",
        is_quick=True,
    ),
    Torture(
        "row-numbers-below-zero",
        edited("UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET rowid = -1 WHERE rowid = 1"),
        (3,),
        words="row numbers",
    ),
    Torture(
        "column-called-rowid",
        edited(f"ALTER TABLE {KERNEL} ADD COLUMN rowid INTEGER"),
        (3,),
        words="column called rowid",
    ),
    Torture("string-ids-without-key", retyped("StringIds", ""), (0,), has_twin=True),
]


def _whole(table: str, columns: Iterable[str]) -> list[Torture]:
    """What is done to a whole table, one thing at a time."""
    needed = table in (KERNEL, "StringIds", "NVTX_EVENTS")
    codes = (0, 3, 4) if needed else (0,)
    found = [
        Torture(f"dropped-{table}", edited(f'DROP TABLE "{table}"'), codes, has_twin=True),
        Torture(f"emptied-{table}", edited(f'DELETE FROM "{table}"'), codes, has_twin=True),
    ]
    for name, type_, value in (
        ("as-text", "TEXT", lambda each: each),
        ("as-real", "REAL", lambda each: each),
        ("as-blob", "BLOB", lambda each: each),
        ("untyped", "", lambda each: each),
        ("nulls", "INTEGER", lambda each: None),
        ("words", "INTEGER", lambda each: f"w{each}"),
        ("halves", "INTEGER", lambda each: each + 0.5 if isinstance(each, int) else each),
        ("bytes", "INTEGER", lambda each: b"\xff\x00"),
        ("infinite", "INTEGER", lambda each: math.inf),
    ):
        keeps = name.startswith("as-") or name == "untyped"
        found.append(
            Torture(
                f"{name}-{table}",
                retyped(table, type_, value),
                codes if keeps or not needed else (0, 3, 4),
                has_twin=True,
            )
        )
    for column in columns:
        if column in ("rowid", "id"):  # a primary key stays
            continue
        found.append(
            Torture(
                f"no-column-{table}.{column}",
                without(table, column),
                (0, 3, 4),
                has_twin=True,
            )
        )
    return found


def whole_tables() -> list[Torture]:
    """Every table that is read: dropped, emptied, retyped, and without each of its columns."""
    return [
        each
        for table, columns in read_tables().items()
        if table != "EXPORT_META_DATA"
        for each in _whole(table, columns)
    ]


def main() -> None:
    """Write a torture: `python torture.py NAME FILE`, or list them."""
    everything = {each.name: each for each in (*FILES, *CORRUPTED, *VALUES, *whole_tables())}
    if len(sys.argv) == 3:
        everything[sys.argv[1]].make(Path(sys.argv[2]))
    else:
        print("\n".join(everything))


if __name__ == "__main__":
    main()
