"""One trace in several forms: the answers stay; and each form with something wrong in it.

    python tests/fuzz_forms.py --seeds 0:300
    python tests/fuzz_forms.py --seconds 600 --keep-going

A seed names a trace with hostile names and planted secrets, and one of three games. `same` writes
it once more with its rows in another order, on other pages, under other cases of its names, in a
log beside the file, as Parquet or Arrow, as a built database or a report: what a command prints
must stay. `broken` spoils a file of such a form: the command answers or refuses it in one line.
`kept` spoils what an earlier run has kept, its cache, its partitions or its history: the next run
answers as before or says what is wrong. Whatever comes out is parsed, and searched for the secrets.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import io
import json
import os
import random
import re
import shlex
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import yaml

import fuzz
import rankbuilder
from fuzz_file import (
    BYTES,
    FIXTURES,
    HEAD,
    NAMES,
    QUERIES,
    RECIPES,
    Outcome,
    _rebuild,
    build,
    columns,
    command,
    execute,
    judge,
    q,
    tables,
)
from rankbuilder import Run, grid, transformer

HOSTILE = (
    *(
        "<zq>",
        "<img src=x onerror=zq()>",
        '" onzq="1',
        "' onzq='1",
        "</script><zq>",
        "<!--<script>",
    ),
    *("</style><zq>", "--><zq>", "]]><zq>", "</title></svg><zq>", "javascript:zq()", "&lt;zq&gt;"),
    *("a|b", "`code`", "a\nb", "# head", "[x](javascript:zq)", "\x1b[31mred", "\u202eoff", "$&"),
    *(
        "${zq}",
        "{{zq}}",
        "%s%n",
        "'; DROP TABLE nsys.op; --",
        "a,b;c\td",
        '=1+"1"',
        "\\",
        "é☃\U0001f600",
    ),
)
SECRET = re.compile(rb"hush-[0-9]{2}")
# Two tables for each text that nobody may see: name, value.
PLANTED = {
    "TARGET_INFO_SYSTEM_ENV": [("Hostname", "hush-01"), ("DeviceEnvironment", "A=hush-02\0B=x")],
    "META_DATA_CAPTURE": [("PROCESS_0:USER_NAME", "hush-03"), ("PROCESS_0:ARGUMENT_0", "hush-04")],
    "META_DATA_EXPORT": [
        ("EXPORT_HOST", "hush-05"),
        ("EXPORT_PARAM_OUTPUT_FILE", "hush-06.sqlite"),
    ],
}
PLANTED_TEXTS = ("TOKEN=hush-07\0HOME=/home/hush-08", "/home/hush-09/lib/libx.so", "KEY=hush-10")


# ---------------------------------------------------------------------------- the trace


def base_trace(r: random.Random, path: Path) -> list[str]:
    """Write a trace; return its options, as the command line takes them."""
    if r.random() < 0.5:
        name = r.choice([name for name in NAMES if name not in ("broken_rows", "example")])
        build(name, path, 4096, 0, "UTF-8")
        first = (FIXTURES / f"{name}.sql").read_text(encoding="utf-8").splitlines()[0]
        options = shlex.split(first.partition("options:")[2])
    else:
        trace, given = fuzz.random_trace(r.randrange(10**6))
        trace.write(path)
        options = [
            part
            for name, value in given.items()
            for part in (f"--{name.replace('_', '-')}", str(value))
        ]
    with closing(sqlite3.connect(path)) as con:
        present = tables(con)
        for table, rows in PLANTED.items():
            if table == "META_DATA_EXPORT" and "EXPORT_META_DATA" in present:
                table = "EXPORT_META_DATA"  # as it was called in older exports
            if table not in present:
                con.execute(f"CREATE TABLE {table} (name TEXT, value TEXT)")
            con.executemany(f"INSERT INTO {table} (name, value) VALUES (?, ?)", rows)
        if "StringIds" in present:
            first = con.execute("SELECT coalesce(max(id), 0) FROM StringIds").fetchone()[0]
            texts = (*PLANTED_TEXTS, *r.sample(HOSTILE, 3))
            con.executemany(
                "INSERT INTO StringIds (id, value) VALUES (?, ?)",
                [(first + 1 + number, text) for number, text in enumerate(texts)],
            )
        if r.random() < 0.7:
            hostile_names(r, con)
        con.commit()
    return options


def hostile_names(r: random.Random, con: sqlite3.Connection) -> None:
    """Names that a page, a table or a terminal could take for its own, on whatever has a name."""
    for table, column in (
        *(("StringIds", "value"), ("StringIds", "value"), ("NVTX_EVENTS", "text")),
        *(("TARGET_INFO_GPU", "name"), ("PROCESSES", "name"), ("NVTX_EVENTS", "jsonText")),
    ):
        if table not in tables(con) or column not in columns(con, table):
            continue
        place = r.choice([f"{q(column)} || ?", f"? || {q(column)}"])
        con.execute(
            f"UPDATE {table} SET {q(column)} = {place} "
            f"WHERE rowid % ? = 0 AND instr({q(column)}, 'hush-') = 0",
            [r.choice(HOSTILE), r.choice([1, 2, 3])],
        )


# ---------------------------------------------------------------------------- neutral changes

Neutral = Callable[[random.Random, sqlite3.Connection], str]


def shuffled(r: random.Random, con: sqlite3.Connection) -> str:
    """The rows of every table in another order, under other row ids."""
    by = r.choice([-1, 7919, 104729])
    for table in tables(con):
        if any(row[5] for row in con.execute(f"PRAGMA table_info({q(table)})")):
            continue
        con.execute(f"CREATE TEMP TABLE zz AS SELECT *, rowid AS zz_row FROM {q(table)}")
        con.execute(f"DELETE FROM {q(table)}")
        listed = ", ".join(map(q, columns(con, table)))
        con.execute(
            f"INSERT INTO {q(table)} ({listed}) SELECT {listed} FROM zz "
            f"ORDER BY (zz_row * ({by})) % 1000003, zz_row"
        )
        con.execute("DROP TABLE zz")
    return f"rows by {by}"


def other_case(r: random.Random, con: sqlite3.Connection) -> str:
    """Tables and columns under other cases of their names."""
    change = r.choice([str.lower, str.upper, str.swapcase])
    for table in tables(con):
        if r.random() < 0.5:
            for column in columns(con, table):
                if column != change(column):
                    con.execute(
                        f"ALTER TABLE {q(table)} RENAME COLUMN {q(column)} TO {q(change(column))}"
                    )
        if table != change(table) and r.random() < 0.5:
            con.execute(f"ALTER TABLE {q(table)} RENAME TO zz_moved")
            con.execute(f"ALTER TABLE zz_moved RENAME TO {q(change(table))}")
    return change.__name__


def other_columns(r: random.Random, con: sqlite3.Connection) -> str:
    """Columns in another order, and some that nobody knows."""
    for table in tables(con):
        if r.random() < 0.5:
            names = [*columns(con, table).items(), (f"zz {r.randrange(9)}", "TEXT DEFAULT 'x'")]
            r.shuffle(names)
            if any(row[5] for row in con.execute(f"PRAGMA table_info({q(table)})")):
                names = [
                    (n, f"{kind} PRIMARY KEY" if n.lower() == "id" else kind) for n, kind in names
                ]
            _rebuild(con, table, dict(names))
    return "columns"


def other_types(r: random.Random, con: sqlite3.Connection) -> str:
    """The same numbers under other declared types, which store them the same or as text."""
    kinds = [
        "BIGINT",
        "INT8",
        "UNSIGNED BIG INT",
        "",
        "NUMERIC",
        "INTEGER",
        "INT NOT NULL DEFAULT 0",
    ]
    chosen = r.choice(kinds[:-1])
    for table in tables(con):
        found = columns(con, table)
        if any(row[5] for row in con.execute(f"PRAGMA table_info({q(table)})")):
            continue
        made = {name: chosen if text == "INTEGER" else text for name, text in found.items()}
        _rebuild(con, table, made)
    return f"integers are {chosen}"


def more_beside(r: random.Random, con: sqlite3.Connection) -> str:
    """Indexes, triggers, views and tables that are none of Nsight's."""
    for table in tables(con):
        column = r.choice([*columns(con, table)])
        number = r.randrange(10**6)
        con.execute(
            r.choice(
                [
                    f"CREATE INDEX zz_i{number} ON {q(table)} ({q(column)} DESC)",
                    f"CREATE VIEW zz_v{number} AS SELECT * FROM {q(table)}",
                    f"CREATE TABLE zz_t{number} AS SELECT * FROM {q(table)}",
                    f"CREATE TRIGGER zz_g{number} AFTER DELETE ON {q(table)} BEGIN SELECT 1; END",
                ]
            )
        )
    return "objects beside"


def suffixed(r: random.Random, con: sqlite3.Connection) -> str:
    """A table as a later version of it."""
    found = [t for t in tables(con) if re.fullmatch("CUPTI_ACTIVITY_KIND_[A-Z]+", t)]
    for table in found:
        if r.random() < 0.4:
            con.execute(f"ALTER TABLE {q(table)} RENAME TO {q(table + r.choice(['_V2', '_V11']))}")
    return "suffixes"


def other_pages(r: random.Random, con: sqlite3.Connection) -> str:
    """Another size of pages, and whether there is room for what moves."""
    con.commit()
    size, vacuum = r.choice([512, 8192, 65536]), r.choice([0, 1, 2])
    con.execute(f"PRAGMA page_size = {size}")
    con.execute(f"PRAGMA auto_vacuum = {vacuum}")
    con.execute("VACUUM")
    return f"pages of {size}, auto_vacuum {vacuum}"


# In this order: SQLite renames no table that a view reads.
NEUTRAL: tuple[Neutral, ...] = (
    *(shuffled, shuffled, suffixed, other_types, other_columns, other_case, more_beside),
    other_pages,
)


# ---------------------------------------------------------------------------- forms

Form = Callable[[random.Random, Path, Path], Path]


def plain(r: random.Random, source: Path, folder: Path) -> Path:
    return Path(shutil.copyfile(source, folder / "t.sqlite"))


def linked(r: random.Random, source: Path, folder: Path) -> Path:
    """A link to a file elsewhere."""
    (folder / "t.sqlite").symlink_to(source)
    return folder / "t.sqlite"


def utf_16(r: random.Random, source: Path, folder: Path) -> Path:
    """Texts in another encoding, which no export has: it is refused."""
    target = folder / "t.sqlite"
    with closing(sqlite3.connect(source)) as con, closing(sqlite3.connect(target)) as new:
        new.execute(f"PRAGMA encoding = '{r.choice(['UTF-16le', 'UTF-16be'])}'")
        new.executescript("\n".join(con.iterdump()))
    return target


def _spoil(con: sqlite3.Connection) -> None:
    """Times and ids that are not the trace's."""
    for table in tables(con):
        for column in columns(con, table):
            if column.lower() in ("start", "end", "correlationid", "demangledname"):
                con.execute(f"UPDATE {q(table)} SET {q(column)} = {q(column)} + rowid")


def in_log(r: random.Random, source: Path, folder: Path) -> Path:
    """The last change, which makes it the trace, is in the write-ahead log alone."""
    target, scratch = folder / "t.sqlite", folder / "scratch.sqlite"
    shutil.copyfile(source, scratch)
    with closing(sqlite3.connect(scratch)) as con:
        wanted = {t: con.execute(f"SELECT rowid, * FROM {q(t)}").fetchall() for t in tables(con)}
        _spoil(con)
        con.commit()
        con.execute("PRAGMA journal_mode = wal")
        con.execute("PRAGMA wal_autocheckpoint = 0")
        for table, rows in wanted.items():
            names = ["rowid", *map(q, columns(con, table))]
            con.execute(f"DELETE FROM {q(table)}")
            marks = ", ".join("?" * len(names))
            con.executemany(f"INSERT INTO {q(table)} ({', '.join(names)}) VALUES ({marks})", rows)
        con.commit()
        if r.random() < 0.4:  # and one that was never finished
            con.execute("PRAGMA cache_size = 1")
            _spoil(con)
        shutil.copyfile(scratch, target)
        shutil.copyfile(f"{scratch}-wal", f"{target}-wal")
        if r.random() < 0.3:
            shutil.copyfile(f"{scratch}-shm", f"{target}-shm")
        con.rollback()
    for each in folder.glob("scratch*"):
        each.unlink()
    return target


def in_journal(r: random.Random, source: Path, folder: Path) -> Path:
    """A change that was never finished has reached the file; its journal takes it back."""
    target, scratch = folder / "t.sqlite", folder / "scratch.sqlite"
    shutil.copyfile(source, scratch)
    with closing(sqlite3.connect(scratch)) as con:
        con.execute("PRAGMA cache_size = 1")
        con.execute(f"PRAGMA journal_mode = {r.choice(['delete', 'persist'])}")
        _spoil(con)
        shutil.copyfile(scratch, target)
        if Path(f"{scratch}-journal").exists():
            shutil.copyfile(f"{scratch}-journal", f"{target}-journal")
        con.rollback()
    for each in folder.glob("scratch*"):
        each.unlink()
    return target


def parquet(r: random.Random, source: Path, folder: Path) -> Path:
    """A folder of Parquet files, as different writers pack them."""
    import pyarrow.parquet as pq

    from arrowbuilder import tables as arrow_tables

    target = folder / "t.sqlite"
    target.mkdir()
    for name, table in arrow_tables(source).items():
        if table.num_rows or r.random() < 0.5:
            pq.write_table(
                table,
                target / f"{name}.parquet",
                compression=r.choice(["snappy", "zstd", "gzip", "none"]),
                use_dictionary=r.random() < 0.5,
                row_group_size=r.choice([1, 7, 10**6]),
                version=r.choice(["1.0", "2.4", "2.6"]),
                data_page_version=r.choice(["1.0", "2.0"]),
                write_statistics=r.random() < 0.5,
            )
    return target


def arrow_folder(r: random.Random, source: Path, folder: Path) -> Path:
    from arrowbuilder import to_folder

    return to_folder(source, folder / "t.sqlite")


def arrow_file(r: random.Random, source: Path, folder: Path) -> Path:
    from arrowbuilder import to_file

    return to_file(source, folder / "t.sqlite")


def built(r: random.Random, source: Path, folder: Path) -> Path:
    """A database of `nsys-sql build`."""
    target = folder / "t.duckdb"
    code, _, err = execute(["build", str(source), "-o", str(target), "--quiet"])
    if code != 0:
        raise RefusedError(code, err)
    return target.rename(folder / "t.sqlite")


NSYS = """#!/bin/sh
case "$1" in --version) echo "NVIDIA Nsight Systems version 2026.2.1"; exit 0;; esac
for each; do case "$each" in --output=*) out="${each#--output=}";; esac; done
FIRST
cp "$NSYS_SQL_FUZZ_TRACE" "$out"
LAST
"""


def _nsys(source: Path, folder: Path, first: str = ":", last: str = "exit 0") -> None:
    """An `nsys` on PATH that exports every report as this trace."""
    program = folder.parent / "bin" / "nsys"
    program.parent.mkdir(exist_ok=True)
    program.write_text(NSYS.replace("FIRST", first).replace("LAST", last), encoding="utf-8")
    program.chmod(0o755)
    os.environ["NSYS_SQL_FUZZ_TRACE"] = str(source)
    if str(program.parent) not in os.environ["PATH"].split(os.pathsep):
        os.environ["PATH"] = f"{program.parent}{os.pathsep}{os.environ['PATH']}"


def report(r: random.Random, source: Path, folder: Path) -> Path:
    """A report, and an `nsys` that exports it."""
    kept = Path(shutil.copyfile(source, folder.parent / "exported.sqlite"))
    noise = "i=0; while [ $i -lt 200 ]; do echo 'Processing [===50%]'; i=$((i+1)); done"
    _nsys(kept, folder, r.choice([":", noise]))
    target = folder / f"t{r.choice(['.nsys-rep', '.qdrep', '.NSYS-REP'])}"
    target.write_bytes(r.randbytes(64))
    return target


FORMS: tuple[Form, ...] = (
    *(plain, plain, linked, in_log, in_journal, parquet, parquet, arrow_folder),
    *(arrow_file, built, built, report),
)


class RefusedError(Exception):
    """A form that the program makes itself, and did not: a trace without an answer."""

    def __init__(self, code: int, err: str) -> None:
        super().__init__(f"exit code {code}: {err}")
        self.code, self.err = code, err


# ---------------------------------------------------------------------------- what comes out


class Page(HTMLParser):
    """Elements that are not closed, that nobody may write, and what would run."""

    VOID = frozenset(("br", "hr", "img", "input", "link", "meta", "col", "wbr"))

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.wrong: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("zq", "img", "iframe", "object", "embed", "base", "form", "link"):
            self.wrong.append(f"an element <{tag}>")
        for name, value in attrs:
            if name.startswith("on") or (value or "").strip().lower().startswith("javascript:"):
                self.wrong.append(f"an attribute {name}={value!r}")
        if len({name for name, _ in attrs}) != len(attrs):
            self.wrong.append(f"an attribute twice in {self.get_starttag_text()!r:.200}")
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}> closes nothing")

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("script", "style") and re.search("<!--|<script", data):
            self.wrong.append("a script that another could leave")


def misformed(name: str, data: bytes) -> Iterator[str]:
    """What is wrong with a file that was written, by its name."""
    if name.endswith(".gz"):
        data, name = gzip.decompress(data), name.removesuffix(".gz")
    if name.endswith((".duckdb", ".parquet", ".pftrace")):
        return
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        yield f"{name} is no UTF-8: {error}"
        return
    if name.endswith(".json"):
        try:
            json.loads(text, parse_constant=lambda word: 1 / 0)
        except (ValueError, ZeroDivisionError) as error:
            yield f"{name} is no JSON: {error}"
    elif name.endswith(".csv"):
        import csv

        csv.field_size_limit(10**9)
        widths = {len(row) for row in csv.reader(io.StringIO(text, newline=""), strict=True)}
        if len(widths) > 1:
            yield f"the lines of {name} differ: {sorted(widths)}"
    elif name.endswith(".html"):
        page = Page()
        page.feed(text)
        page.close()
        yield from page.wrong[:3]
        for packed in re.findall(r'PACKED = "([^"]*)"', text):
            if found := re.search(
                "<zq|<img src", gzip.decompress(base64.b64decode(packed)).decode()
            ):
                yield f"the packed part of {name} holds {found[0]!r}"
        if page.open:
            yield f"{name} leaves {page.open} open"
    elif name.endswith(".md"):
        yield from _misformed_markdown(name, text)
    if re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", text) and not name.endswith(".csv"):
        yield f"control characters in {name}"


def _misformed_markdown(name: str, text: str) -> Iterator[str]:
    """Tables whose rows differ in their number of cells, and markup that is not the page's."""
    cells = 0
    for line in text.split("\n"):
        now = len(re.sub(r"\\.", "", line).split("|")) if line.startswith("|") else 0
        if cells and now and now != cells:
            yield f"a row of {name} has {now - 2} cells, not {cells - 2}: {line[:200]!r}"
            return
        cells = now
    if found := re.search(r"(?<!\\)<(?:zq|img|script|/)|(?<!\\)\]\((?!#)\s*javascript", text):
        yield f"{name} holds {found[0]!r}"


def secrets(place: str, data: bytes) -> Iterator[str]:
    """What is told that nobody may see."""
    if data[:2] == b"\x1f\x8b":
        with contextlib.suppress(OSError, EOFError):
            data = gzip.decompress(data)
    if found := {*SECRET.findall(data), *SECRET.findall(data.replace(b"\0", b""))}:
        yield f"{place} tells {sorted(found)}"


# ---------------------------------------------------------------------------- the commands


def lines(r: random.Random, trace: str, own: list[str], out: str) -> list[list[str]]:
    """Command lines whose answers do not depend on the form of the trace."""
    from nsys_sql.catalog import load_catalog

    form = r.choice(["csv", "json", "markdown", "table"])
    recipes = sorted({*load_catalog().recipes, *RECIPES} - {"capture", "call-sites"})
    many = ["--jobs", "1", "--partitions", "parts"]
    relation = r.choice(["kernel", "memcpy", "memset", "api_call", "nvtx", "sync", "string", "op"])
    hidden = "op_id" if relation == "op" else "row_id"
    hidden = "string_id" if relation == "string" else hidden
    query = f"SELECT * EXCLUDE ({hidden}) FROM nsys.{relation} ORDER BY ALL"
    every = [
        *(["run", r.choice(recipes), trace, "--format", form, *own] for _ in range(5)),
        *(["run", r.choice(recipes), trace, "--format", form] for _ in range(2)),
        [
            "run",
            r.choice(recipes),
            trace,
            "-o",
            f"{out}/r{r.choice(['.csv', '.json', '.md'])}",
            *own,
        ],
        ["sql", trace, query, "--format", form],
        ["sql", trace, f"FROM {r.choice(recipes).replace('-', '_')}", "--format", form, *own],
        ["report", trace, "-o", f"{out}/p{r.choice(['.html', '.md', '.json'])}", *own],
        ["timeline", trace, "-o", f"{out}/t{r.choice(['.json', '.json.gz'])}", *own],
        ["survey", trace, *many, "--format", form, *own],
        ["survey", trace, *many, "-o", f"{out}/s{r.choice(['.html', '.md', '.json'])}", *own],
        ["compare", "u.sqlite", trace, *many, "-o", f"{out}/c{r.choice(['.html', '.json'])}", *own],
        ["compare", trace, "u.sqlite", *many, "--force", "--format", form, *own],
        ["run", r.choice(recipes), "u.sqlite", trace, "--format", "json", *own],
    ]
    if r.random() < 0.3:
        every = [[*line, "--cache"] for line in every]
    if r.random() < 0.3:
        every = [[*line, "--threads", r.choice(["1", "3"])] for line in every]
    return every


def masked(data: bytes, trace: str) -> str:
    """An output without what names the file: its path, its size, and keys that are made of them."""
    text = data.decode("utf-8", "replace")
    text = re.sub(r'"warnings": \[[^\n]*\]', '"warnings": []', text)
    text = re.sub(r"\b[0-9a-f]{20,64}\b", "KEY", text)
    text = re.sub(r'"path": "[^"]*/', '"path": "', text)
    text = re.sub(r"(?m)^(?:> |<p>|- )?Warning: .*$\n?", "", text)
    return re.sub(r"[ -]{2,}", "  ", text.replace(trace, "TRACE"))


class Trial:
    """A folder with a trace in it, in which commands are run and judged."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.temp = folder, Path(os.environ["TMPDIR"])
        self.found: list[str] = []
        self.said = ""
        self.changing: set[str] = set()
        self.temp.mkdir(exist_ok=True)

    def run(self, arguments: list[str], codes: set[int], stdin: bytes = b"") -> tuple[int, str]:
        """One command line; the exit code, and all that it put out."""
        (self.folder / "out").mkdir(exist_ok=True)
        before = stamps(self.folder)
        stood = Path.cwd()
        os.chdir(self.folder)
        try:
            code, out, err = execute(arguments, stdin)
        finally:
            os.chdir(stood)
        outcome = Outcome(arguments, code, out, err)
        problems = judge(outcome, codes)
        after = stamps(self.folder)
        for name in sorted(before.keys() | after.keys()):
            if before.get(name) != after.get(name) and not self.may_change(name):
                problems.append(f"{name!r} is not as it was")
        if left := [each.name for each in self.temp.iterdir()]:
            problems.append(f"left in the temporary folder: {left}")
            for each in self.temp.iterdir():
                shutil.rmtree(each, ignore_errors=True)
        written = b""
        for path in sorted((self.folder / "out").iterdir()):
            data = path.read_bytes()
            problems += misformed(path.name, data)
            problems += secrets(path.name, data)
            written += gzip.decompress(data) if path.suffix == ".gz" else data
            path.unlink()
        problems += [*secrets("standard output", out), *secrets("standard error", err.encode())]
        if "markdown" in arguments:
            problems += _misformed_markdown("standard output", out.decode("utf-8", "replace"))
        shown = shlex.join(arguments)[:500].encode("utf-8", "backslashreplace").decode()
        self.found += [
            f"{each} (exit {code}): {shown}\n    {err[:HEAD].strip()}" for each in problems
        ]
        self.said = err.strip()[:HEAD]
        return code, masked(out + written, arguments_trace(arguments))

    def may_change(self, name: str) -> bool:
        return name.split(os.sep)[0] in {"out", "parts", "h.duckdb", *self.changing}


def arguments_trace(arguments: list[str]) -> str:
    return next((each for each in arguments if re.fullmatch(r"t\.[\w-]+", each)), "t.sqlite")


def stamps(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Every file below a folder with its time, size and bytes."""
    return {
        str(path.relative_to(folder)): (
            path.stat().st_mtime_ns,
            path.stat().st_size,
            path.read_bytes() if path.stat().st_size < 1 << 22 else b"",
        )
        for path in folder.rglob("*")
        if path.is_file()
    }


# ---------------------------------------------------------------------------- the games


def same(r: random.Random, source: Path, own: list[str], one: Trial, two: Trial) -> str:
    """The trace as it is, and in another form: the same answers."""
    changed = source.with_name("changed.sqlite")
    shutil.copyfile(source, changed)
    told = []
    with closing(sqlite3.connect(changed)) as con:
        for change in sorted(r.sample(NEUTRAL, r.choice([0, 1, 1, 2, 3])), key=NEUTRAL.index):
            told.append(change(r, con))
        con.commit()
    form = r.choice(FORMS)
    told.append(form.__name__)
    if form is built:  # which nobody can ask for the host
        for path in (source, changed):
            with closing(sqlite3.connect(path)) as con:
                names = {name.upper(): name for name in tables(con)}
                table = q(names["TARGET_INFO_SYSTEM_ENV"])
                con.execute(f"DELETE FROM {table} WHERE name = 'Hostname'")
                con.commit()
    shutil.copyfile(source, one.folder / "t.sqlite")
    for trial in (one, two):
        shutil.copyfile(source, trial.folder / "u.sqlite")
    try:
        trace = form(r, changed, two.folder).name
    except RefusedError as error:
        if error.code not in (3, 4):
            two.found.append(str(error))
        return "; ".join(told)
    times, state = r.choice([1, 2, 3]), r.getstate()
    for number in range(times):
        answers = []
        for trial, name in ((one, "t.sqlite"), (two, trace)):
            r.setstate(state)
            r.seed(f"{r.random()} {number}")
            line = r.choice(lines(r, name, own, "out"))
            answers.append(trial.run(line, {0, 3, 4}))
        if answers[0] != answers[1]:
            said = f"\n    {one.said}\n    {two.said}" if answers[0][0] != answers[1][0] else ""
            two.found.append(f"{shlex.join(line)} differs: {difference(*answers)}{said}")
    return "; ".join(told)


def difference(one: tuple[int, str], two: tuple[int, str]) -> str:
    """The first lines that differ."""
    if one[0] != two[0]:
        return f"exit code {one[0]} and {two[0]}"
    a, b = one[1].splitlines(), two[1].splitlines()
    for left, right in zip(a, b, strict=False):
        if left != right:
            at = next((i for i, (x, y) in enumerate(zip(left, right, strict=False)) if x != y), 0)
            at = max(0, at - 60)
            return f"\n    {left[at : at + 300]}\n    {right[at : at + 300]}"
    return f"{len(a)} and {len(b)} lines"


def broken(r: random.Random, source: Path, own: list[str], one: Trial, two: Trial) -> str:
    """A form of the trace with something wrong in it."""
    form = r.choice([utf_16, *(f for f in dict.fromkeys(FORMS) if f not in (plain, linked))])
    shutil.copyfile(source, two.folder / "u.sqlite")
    try:
        trace = form(r, source, two.folder)
    except RefusedError:
        return "refused"
    told = f"{form.__name__}: {spoil(r, trace, form)}"
    two.changing = {trace.name} if "echo more >>" in told else set()
    for _ in range(2):
        line = r.choice([*lines(r, trace.name, own, "out"), ["inspect", trace.name]])
        if r.random() < 0.2:
            line = ["sql", trace.name, r.choice(QUERIES)]
        two.run(line, {0, 2, 3, 4, 5} if line[0] == "sql" else {0, 3, 4, 5})
    return told


def spoil(r: random.Random, trace: Path, form: Form) -> str:
    """Change bytes of a file of a form, or a file as a whole."""
    if form is report:
        return _odd_nsys(r, trace)
    files = sorted(trace.iterdir()) if trace.is_dir() else sorted(trace.parent.glob("t.sqlite*"))
    if form in (in_log, in_journal):
        files = files[1:] or files
    wanted = [f for f in files if re.search("KERNEL|StringIds|RUNTIME|NVTX", f.name)]
    path = r.choice(wanted if wanted and r.random() < 0.7 else files)
    if trace.is_dir() and r.random() < 0.35:
        return _odd_folder(r, trace, path)
    data = bytearray(path.read_bytes())
    how = r.choice(["field", "flip", "cut", "run", "page", "grow", "sqlite"])
    if how == "field" and len(data) > 40:  # lengths stand at the ends, or where pages begin
        step = {"built": 4096}.get(form.__name__, 8)
        at = r.choice([r.randrange(0, 40), len(data) - 1 - r.randrange(12)])
        at = r.choice([at, r.randrange(0, len(data) // step) * step])
        value = r.choice([0, 1, 127, 128, 255, 0xFFFF, 2**31 - 1, 2**32 - 1])
        data[at : at + 4] = value.to_bytes(4, "little")[: len(data) - at]
    elif how == "cut":
        del data[r.randrange(len(data)) :]
    elif how == "grow":
        data += r.choice([b"\0" * 8, bytes(data[-40:]), bytes(data), b"PAR1"])
    elif how == "page" and len(data) > 9000:
        one, two = (r.randrange(len(data) // 4096) * 4096 for _ in range(2))
        data[one : one + 4096] = data[two : two + 4096]
    elif how == "sqlite" and form in (in_log, in_journal) and len(data) > 200:
        how += f" {r.choice(BYTES)(r, data, 4096)}"
    else:
        for _ in range(r.choice([1, 1, 3, 30])):
            if data:
                data[r.randrange(len(data))] ^= 1 << r.randrange(8)
    path.write_bytes(data)
    return f"{how} in {path.name}"


def _odd_folder(r: random.Random, trace: Path, path: Path) -> str:
    """A folder of files that do not belong together."""
    how = r.choice(
        ["gone", "empty", "other", "case", "twice", "folder", "pipe", "loop", "text", "unread"]
    )
    other = r.choice(sorted(trace.iterdir()))
    if how == "gone":
        path.unlink()
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "other":  # a table under the name of another
        path.write_bytes(other.read_bytes())
    elif how == "case":
        path.rename(path.with_name(path.stem.lower() + path.suffix))
    elif how == "twice":
        shutil.copyfile(path, path.with_name(path.stem.lower() + path.suffix))
    elif how == "folder":
        path.unlink()
        path.mkdir()
    elif how == "pipe":
        path.unlink()
        os.mkfifo(path)
    elif how == "loop":
        path.unlink()
        path.symlink_to(path.name)
    elif how == "text":
        (trace / r.choice(["x", "it's", "a b", "\x1b[31m", "é"])).with_suffix(
            path.suffix
        ).write_text("x")
    else:
        path.write_bytes(other.read_bytes()[: other.stat().st_size // 2])
    return f"{how} {path.name} {other.name}"


def _odd_nsys(r: random.Random, trace: Path) -> str:
    """An `nsys` that fails in one of the ways that programs fail."""
    how = r.choice(
        [
            "echo bad >&2; exit 1",
            "exit 0",
            "printf '\\033[31mred\\377\\n'; exit 3",
            'echo x > "$out"; exit 0',
            'head -c 5000 "$NSYS_SQL_FUZZ_TRACE" > "$out"; exit 0',
            'mkdir "$out"; exit 0',
            "kill -9 $$",
            "kill -SEGV $$",
            'ln -s "$NSYS_SQL_FUZZ_TRACE" "$out"; exit 0',
            'cp "$NSYS_SQL_FUZZ_TRACE" "$out"; echo more > "$out.more"; exit 0',
            'cp "$NSYS_SQL_FUZZ_TRACE" "$out"; exit 1',
            'for each; do :; done; echo more >> "$each"; cp "$NSYS_SQL_FUZZ_TRACE" "$out"; exit 0',
            "head -c 300000 /dev/zero | tr '\\0' x; exit 2",
            ': > "$out"; exit 0',
        ]
    )
    _nsys(Path(os.environ["NSYS_SQL_FUZZ_TRACE"]), trace.parent, first=how)
    return how


def kept(r: random.Random, source: Path, own: list[str], one: Trial, two: Trial) -> str:
    """What an earlier run has kept is spoilt: the same answer, or what is wrong."""
    for name in ("t.sqlite", "u.sqlite"):
        shutil.copyfile(source, two.folder / name)
    cache = Path(os.environ["NSYS_SQL_CACHE"])
    shutil.rmtree(cache, ignore_errors=True)
    many = ["--jobs", "1", "--quiet"]
    line = r.choice(
        [
            ["run", r.choice(RECIPES), "t.sqlite", "--cache", "--format", "csv", *own],
            ["survey", "t.sqlite", "u.sqlite", *many, "--format", "json", *own],
            ["compare", "t.sqlite", "u.sqlite", *many, "--format", "json", *own],
            ["history", "h.duckdb", "--add", "t.sqlite", *many, *own],
        ]
    )
    is_history = line[0] == "history"
    first = two.run(line, {0, 3, 4})
    again = ["history", "h.duckdb", "--format", "json"] if is_history else line
    first = two.run(again, {0, 2, 3, 4})
    places = [two.folder] if is_history else [cache]
    files = sorted(p for place in places for p in place.rglob("*") if p.is_file())
    files = [p for p in files if not is_history or p.name == "h.duckdb"]
    if not files:
        return f"nothing is kept of {line[0]}"
    large = [path for path in files if path.suffix in (".duckdb", ".parquet")]
    path = r.choice(large if large and r.random() < 0.8 else files)
    data = path.read_bytes()
    how = r.choice(["gone", "empty", "cut", "flip", "flip", "page", "page", "text"])
    if how == "gone":
        path.unlink()
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "cut":
        path.write_bytes(data[: r.randrange(len(data))])
    elif how == "text":
        path.write_bytes(b"x" * len(data))
    else:
        changed = bytearray(data)
        for _ in range(r.choice([1, 10]) if how == "flip" else 0):
            changed[r.randrange(len(changed))] ^= 1 << r.randrange(8)
        if how == "page":
            a, b = (r.randrange(len(changed)) // 4096 * 4096 for _ in range(2))
            changed[a : a + 4096] = data[b : b + 4096][: len(changed[a : a + 4096])]
        path.write_bytes(changed)
    second = two.run(again, {0, 2, 3, 4})
    if second[0] == 0 and second != first:
        two.found.append(f"{shlex.join(again)} differs: {difference(first, second)}")
    if second[0] == 0 and first[0] != 0:
        two.found.append("an answer where there was none")
    return f"{line[0]}: {how} in {path.name}"


def ranks(r: random.Random, source: Path, own: list[str], one: Trial, two: Trial) -> str:
    """Several ranks, given in any order; then one is broken, or the mapping is."""
    run = Run(
        4,
        grid(2, 2),
        transformer(2, layers=1, slow=lambda rank, step: r.choice([0, 0, 90_000]) * (rank == 1)),
        steps=r.choice([2, 4]),
        hosts=r.choice([(), ("a", "a", "b", "b"), ("a", "b", "c", "<zq>")]),
        clock_ahead_ns={"b": r.choice([0, 5_000_000])},
        seed=r.randrange(99),
    )
    rankbuilder.write(run, one.folder, r.choice(["2026.2.1", "2023.4.4"]))
    for path in one.folder.iterdir():
        shutil.copyfile(path, two.folder / path.name)
    names = sorted(path.name for path in one.folder.glob("*.sqlite"))
    mapping = yaml.safe_load((one.folder / "ranks.yaml").read_text(encoding="utf-8"))
    told = "ranks"
    target = r.choice([".json", ".html", ".md"])
    options = ["--jobs", "1", "--partitions", "parts", "--anchor", "nvtx:step *"]
    options += r.choice([["-o", f"out/s{target}"], ["--format", "csv", "--result", "survey"]])
    if r.random() < 0.5:  # the same in another order
        order = [*mapping["ranks"]]
        r.shuffle(order)
        text = yaml.safe_dump(mapping | {"ranks": order}, sort_keys=r.random() < 0.5)
        (two.folder / "ranks.yaml").write_text(text, encoding="utf-8")
        with closing(sqlite3.connect(two.folder / names[0])) as con:
            told += f": {shuffled(r, con)}"
            con.commit()
        line = ["survey", "--ranks", "ranks.yaml", *options]
        answers = [trial.run(line, {0, 3, 4}) for trial in (one, two)]
        lines = [[line.rstrip(",") for line in text.split("\n")] for _, text in answers]
        ordered = [(a[0], "\n".join(sorted(text))) for a, text in zip(answers, lines, strict=True)]
        if ordered[0] != ordered[1]:
            two.found.append(f"{shlex.join(line)} differs: {difference(*ordered)}")
        return told
    told += f": {_odd_mapping(r, mapping)}"
    text = yaml.safe_dump(mapping, sort_keys=False, allow_unicode=True)
    if r.random() < 0.2:
        at = r.randrange(len(text))
        text = (
            text[:at]
            + r.choice(["[", "\t", "&a *a", "!!python/object:x {}", "\x00", "\n- "])
            + text[at:]
        )
        told += " and its text"
    (two.folder / "ranks.yaml").write_text(text, encoding="utf-8")
    if r.random() < 0.5:
        path = two.folder / r.choice(names)
        data = bytearray(path.read_bytes())
        told += f", {path.name}: {r.choice(BYTES)(r, data, 4096)}"
        path.write_bytes(data)
    order = r.sample(names, r.choice([1, 2, 4]))
    every = [
        ["survey", "--ranks", "ranks.yaml", *options],
        ["survey", *order, "--ranks", "ranks.yaml", *options],
        ["survey", *order, *options],
        ["survey", *order, "--init", "--partitions", "parts"],
        ["compare", names[0], *order, "--ranks", "ranks.yaml", *options],
        ["compare", "--base", names[0], "--base", names[1], *order[:2], *options, "--force"],
        ["history", "h.duckdb", "--add", names[0], "--ranks", "ranks.yaml", *options[:4]],
    ]
    for line in r.sample(every, 2):
        two.run(line, {0, 2, 3, 4, 5})
    return told


def _odd_mapping(r: random.Random, mapping: dict[str, Any]) -> str:
    """Something wrong, or odd, in a mapping of ranks."""
    entry = r.choice(mapping["ranks"])
    where, name = r.choice(
        [
            *((entry, name) for name in ("trace", "rank", "host", "stage", "groups", "process")),
            *((entry, name) for name in ("device", "zq", "rank")),
            *((mapping, name) for name in ("world_size", "ranks", "groups", "zq")),
            *((mapping["groups"][kind], "stream") for kind in mapping["groups"]),
            *((mapping["groups"][kind], "type") for kind in mapping["groups"]),
        ]
    )
    value = r.choice(
        [
            *(None, 0, 1, -1, 2**63, 10**30, 1.5, float("nan"), True, "", "x", "<zq>", "a\nb", "*"),
            *("*.sqlite", "../*", "/dev/null", [], [1], ["AllReduce"], {}, {"a": 1}, {"tp": "tp0"}),
            *({"tp": None}, {"tp": ["a"]}, {1: 2}, "\u202e", "x" * 5000, "none.sqlite", "."),
        ]
    )
    if r.random() < 0.2:
        where.pop(name, None)
        return f"no {name}"
    where[name] = value
    return f"{name} is {str(value)[:40]!r}"


GAMES = (same, same, same, broken, broken, kept, ranks, ranks)


def run_case(seed: int, folder: Path) -> list[str]:
    """Write, change, run, judge: the findings of one seed."""
    r = random.Random(f"forms {seed}")
    work = folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    shutil.rmtree(os.environ["NSYS_SQL_CACHE"], ignore_errors=True)
    trials = []
    for name in ("one", "two"):
        (work / name).mkdir(parents=True)
        trials.append(Trial(work / name))
    source = work / "source.sqlite"
    own = base_trace(r, source)
    game = r.choice(GAMES)
    told = game(r, source, own, *trials)
    cache = Path(os.environ["NSYS_SQL_CACHE"])
    left = [p for p in cache.rglob("*") if p.is_file() and p.suffix != ".sqlite"]
    found = [each for trial in trials for each in trial.found]
    for path in left:
        found += secrets(path.name, path.read_bytes())
        if ".part" in str(path.relative_to(cache)):
            found.append(f"the cache holds {path.name}, half-made")
    return [f"seed {seed} ({game.__name__}: {told}): {each}" for each in found]


if __name__ == "__main__":
    sys.exit(command(Path(__file__), run_case, __doc__))
