"""Traces with something wrong: in the file's bytes, in its structure, in its values.

    python tests/fuzz_file.py --seeds 0:500
    python tests/fuzz_file.py --seconds 600 --keep-going
    python tests/fuzz_file.py --write bad.sqlite --seeds 17:18

A seed names a fixture, what is done to it, and the commands that are then run on it. They run in
processes of their own, so that a crash or a hang is a finding like any other. Whatever the file,
a command ends with a documented exit code and at most one line that says why, leaves the input and
the folders as they were, and never answers with numbers that break an invariant. Where the change
leaves the method's numbers defined, they are compared with the oracle.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import json
import os
import random
import re
import selectors
import shlex
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
FIXTURES = ROOT / "fixtures"
NAMES = sorted(path.stem for path in FIXTURES.glob("*.sql"))
LIMIT_S = 300.0
HEAD = 4096  # of a failing command's output, for people

Row = dict[str, Any]

# Where SQLite's documentation puts the fields of a database header: offset, length.
HEADER_FIELDS = (
    *((16, 2), (18, 1), (19, 1), (20, 1), (21, 1), (22, 1), (23, 1), (24, 4), (28, 4), (32, 4)),
    *((36, 4), (40, 4), (44, 4), (48, 4), (52, 4), (56, 4), (60, 4), (64, 4), (68, 4), (92, 4)),
    (96, 4),
)
EDGES = (0, 1, 2, 3, 127, 128, 255, 256, 511, 512, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1)
PAGE_TYPES = (0, 1, 2, 5, 10, 13, 255)
RECIPES = (
    *("budget", "budget-windows", "gaps", "iterations", "kernels", "anchors", "communication"),
    *("copies", "capture", "streams", "launches", "host-stalls", "opportunities", "devices"),
    *("processes", "step-timeline", "taxonomy", "trace-events"),
    *("top-gaps", "blockers", "nvtx", "phases", "metrics", "slowdown", "verdict", "claims"),
)
FORMATS = ("table", "json", "csv", "markdown")
QUERIES = (
    "SELECT count(*) FROM nsys.kernel",
    "SELECT * FROM nsys.kernel",
    "SELECT * FROM nsys.op ORDER BY op_id",
    "SELECT * FROM nsys.nvtx",
    "SELECT * FROM nsys.string",
    "SELECT * FROM nsys.api_call WHERE start_ns > 5",
    "SELECT * FROM trace.CUPTI_ACTIVITY_KIND_KERNEL",
    "SELECT max(end_ns) - min(start_ns) AS span_ns FROM nsys.memcpy",
    "SHOW TABLES",
)


@dataclass
class Case:
    """A broken trace; `options` are those of its fixture, as the command line takes them."""

    fixture: str
    options: list[str]
    changes: list[str] = field(default_factory=list)
    is_defined: bool = True


# ---------------------------------------------------------------------------- the file to break


def build(name: str, path: Path, page_size: int, auto_vacuum: int, encoding: str) -> None:
    """A fixture as a file of this layout, with pages on its freelist."""
    with closing(sqlite3.connect(path)) as con:
        con.execute(f"PRAGMA page_size = {page_size}")
        con.execute(f"PRAGMA encoding = '{encoding}'")
        con.execute(f"PRAGMA auto_vacuum = {auto_vacuum}")
        con.executescript((FIXTURES / f"{name}.sql").read_text(encoding="utf-8"))
        con.execute("CREATE TABLE zz_gone AS SELECT zeroblob(20000) AS a")
        con.execute("DROP TABLE zz_gone")
        con.commit()


def make(seed: int, path: Path) -> Case:
    """Write the broken trace of a seed."""
    r = random.Random(seed)
    name = r.choice(NAMES)
    first = (FIXTURES / f"{name}.sql").read_text(encoding="utf-8").splitlines()[0]
    options = shlex.split(first.partition("options:")[2])
    case = Case(name, options)
    size = r.choice([512, 1024, 4096, 4096, 4096, 65536])
    encoding = "UTF-16le" if r.random() < 0.05 else "UTF-8"
    build(name, path, size, r.choice([0, 0, 0, 1, 2]), encoding)
    kinds = r.choice(
        [("bytes",), ("bytes",), ("structure",), ("values",), ("values",), ("structure", "values")]
    )
    for kind in kinds:
        if kind == "bytes":
            break_bytes(r, path, case)
        else:
            with closing(sqlite3.connect(path)) as con:
                con.create_collation("odd", lambda a, b: (a > b) - (a < b))
                for _ in range(r.choice([1, 1, 2, 4])):
                    change = r.choice(STRUCTURE if kind == "structure" else VALUES)
                    try:
                        change(r, con, case)
                    except (sqlite3.Error, UnicodeDecodeError) as error:  # broken by one before
                        case.changes.append(f"{change.__name__} is not possible: {error}")
                        case.is_defined = False  # some rows may have changed before
                with contextlib.suppress(sqlite3.Error):  # the bytes may be broken already
                    con.commit()
    return case


# ---------------------------------------------------------------------------- bytes


def break_bytes(r: random.Random, path: Path, case: Case) -> None:
    """Change bytes that mean something to SQLite, or any."""
    data = bytearray(path.read_bytes())
    size = int.from_bytes(data[16:18], "big")
    size = 65536 if size == 1 else size
    case.is_defined = False
    for _ in range(r.choice([1, 1, 1, 2, 5])):
        change = r.choice(BYTES)
        case.changes.append(f"{change.__name__}: {change(r, data, size)}")
        if not data:
            break
    path.write_bytes(data)


def _page(r: random.Random, data: bytearray, size: int) -> int:
    """Where a page begins; those of b-trees are more likely."""
    pages = range(0, max(len(data) - 100, 1), size)
    types = {at: data[at + (100 if at == 0 else 0) :][:1] for at in pages}
    trees = [at for at, kind in types.items() if kind in (b"\x02", b"\x05", b"\x0a", b"\x0d")]
    return r.choice(trees) if trees and r.random() < 0.85 else r.choice(pages)


def _put(data: bytearray, at: int, value: bytes) -> str:
    if at >= 0 and at + len(value) <= len(data):
        data[at : at + len(value)] = value
    return f"{value.hex()} at {at}"


def _number(r: random.Random, length: int) -> bytes:
    value = r.choice([r.choice(EDGES), r.randrange(1 << (8 * length)), r.randrange(300)])
    return (value % (1 << (8 * length))).to_bytes(length, "big")


def header_field(r: random.Random, data: bytearray, size: int) -> str:
    at, length = r.choice(HEADER_FIELDS)
    return _put(data, at, _number(r, length))


def page_type(r: random.Random, data: bytearray, size: int) -> str:
    at = _page(r, data, size)
    return _put(data, at + (100 if at == 0 else 0), bytes([r.choice(PAGE_TYPES)]))


def page_header(r: random.Random, data: bytearray, size: int) -> str:
    """First freeblock, number of cells, start of the cells, fragments, the right-most child."""
    at = _page(r, data, size)
    offset, length = r.choice([(1, 2), (3, 2), (3, 2), (5, 2), (7, 1), (8, 4)])
    return _put(data, at + (100 if at == 0 else 0) + offset, _number(r, length))


def _cell(r: random.Random, data: bytearray, size: int) -> tuple[int, int]:
    """Where the pointer of a cell stands, and the cell it points to."""
    at = _page(r, data, size)
    head = at + (100 if at == 0 else 0)
    if head + 12 > len(data):
        return head, head
    count = int.from_bytes(data[head + 3 : head + 5], "big") or 1
    pointer = head + (12 if data[head] in (2, 5) else 8) + 2 * r.randrange(min(count, 2000))
    return pointer, at + int.from_bytes(data[pointer : pointer + 2], "big")


def cell_pointer(r: random.Random, data: bytearray, size: int) -> str:
    return _put(data, _cell(r, data, size)[0], _number(r, 2))


def cell_varint(r: random.Random, data: bytearray, size: int) -> str:
    """The length of a payload or its row id: longer, endless, or zero."""
    _, cell = _cell(r, data, size)
    value = r.choice([b"\xff" * 9, b"\x80\x80\x00", b"\x00", b"\x81\x00", b"\xff\xff\xff\x7f"])
    return _put(data, cell + r.randrange(3), value[: r.choice([1, 2, 9])])


def record_header(r: random.Random, data: bytearray, size: int) -> str:
    """Serial types of a record: another type or length for a value."""
    _, cell = _cell(r, data, size)
    types = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 99, 127, 128, 255]
    return _put(data, cell + r.randrange(2, 24), bytes([r.choice(types)]))


def overflow_pointer(r: random.Random, data: bytearray, size: int) -> str:
    """The first four bytes of a page that no tree owns: the next of a chain or of the freelist."""
    pages = range(0, len(data), size)
    others = [at for at in pages if data[at] not in (2, 5, 10, 13) and at]
    at = r.choice(others or [*pages])
    return _put(data, at, _number(r, 4))


def child_pointer(r: random.Random, data: bytearray, size: int) -> str:
    _, cell = _cell(r, data, size)
    page = r.randrange(len(data) // size + 3)
    return _put(data, cell, page.to_bytes(4, "big"))


def schema_text(r: random.Random, data: bytearray, size: int) -> str:
    """A byte in the text of a CREATE statement, or one of its words."""
    places = [found.start() for found in re.finditer(rb"CREATE [TVI]", bytes(data))]
    at = (r.choice(places) if places else 0) + r.randrange(60)
    if r.random() < 0.5:
        return _put(data, at, bytes([r.choice(b"\x00\xff\"'(),; xXE")]))
    old, new = r.choice(
        [
            (b"INTEGER", b"TEXT   "),
            (b"INT", b"ANY"),
            (b"TABLE", b"VIEW "),
            (b"table", b"view "),
            (b"table", b"index"),
            (b"CREATE", b"SELECT"),
            (b"(", b" "),
            (b"start", b"START"),
            (b"start", b"stxrt"),
            (b"CUPTI_ACTIVITY_KIND_KERNEL", b"CUPTI_ACTIVITY_KIND_KERNEM"),
            (b"TEXT", b"BLOB"),
        ]
    )
    found = bytes(data).find(old, at)
    return _put(data, found if found >= 0 else 0, new) if found >= 0 else "nothing found"


def swap_pages(r: random.Random, data: bytearray, size: int) -> str:
    one, two = _page(r, data, size), _page(r, data, size)
    data[one : one + size], data[two : two + size] = (
        data[two : two + size],
        data[one : one + size],
    )
    return f"pages at {one} and {two}"


def copy_page(r: random.Random, data: bytearray, size: int) -> str:
    one, two = _page(r, data, size), _page(r, data, size)
    data[two : two + size] = data[one : one + size]
    return f"page at {one} over {two}"


def blank_page(r: random.Random, data: bytearray, size: int) -> str:
    at = _page(r, data, size)
    value = r.choice([0, 0, 255, 0x0D])
    data[at : at + size] = bytes([value]) * len(data[at : at + size])
    return f"page at {at} is all {value}"


def truncate(r: random.Random, data: bytearray, size: int) -> str:
    """At a page, in one, or near the front; the header may agree with it."""
    keep = r.choice(
        [r.randrange(len(data) // size + 1) * size, r.randrange(len(data)), r.randrange(200)]
    )
    del data[keep:]
    if r.random() < 0.5 and len(data) >= 100:
        _put(data, 28, (len(data) // size).to_bytes(4, "big"))
    return f"{keep} bytes are left"


def extend(r: random.Random, data: bytearray, size: int) -> str:
    more = r.choice([1, 99, size, 3 * size])
    data.extend(r.choice([b"\x00", b"\xff", b"S"]) * more)
    return f"{more} bytes more"


def flip_bits(r: random.Random, data: bytearray, size: int) -> str:
    places = [r.randrange(len(data)) for _ in range(r.choice([1, 8, 64]))]
    for at in places:
        data[at] ^= 1 << r.randrange(8)
    return f"{len(places)} bits"


def random_run(r: random.Random, data: bytearray, size: int) -> str:
    return _put(data, r.randrange(len(data)), r.randbytes(r.choice([1, 4, 16, 100])))


def write_ahead(r: random.Random, data: bytearray, size: int) -> str:
    """The header says that there is a log."""
    return _put(data, 18, r.choice([b"\x02\x02", b"\x02\x01", b"\x01\x02"]))


BYTES: tuple[Callable[[random.Random, bytearray, int], str], ...] = (
    *(header_field, header_field, page_type, page_header, page_header, cell_pointer, cell_varint),
    *(record_header, record_header, overflow_pointer, child_pointer, schema_text, schema_text),
    *(swap_pages, copy_page, blank_page, truncate, extend, flip_bits, random_run, write_ahead),
)

BROKEN = frozenset(change.__name__ for change in BYTES)


# ---------------------------------------------------------------------------- structure

Change = Callable[[random.Random, sqlite3.Connection, Case], None]
ODD_NAMES = (
    *('a"b', "x'y", "s; DROP TABLE k", "we.ird", " ", "new\nline", "\x1b[31mred", "<b>", "rowid"),
    *("sélection", "trace", "nsys", "main", "StringIds copy", "x" * 3000),
)


def q(name: str) -> str:
    """A quoted name."""
    return '"' + name.replace('"', '""') + '"'


def tables(con: sqlite3.Connection) -> list[str]:
    """The tables by name."""
    found = con.execute(
        "SELECT CAST(name AS TEXT) FROM sqlite_master "
        "WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
    )
    return sorted(row[0] for row in found)


def columns(con: sqlite3.Connection, table: str) -> dict[str, str]:
    """The columns of a table with their declared types."""
    return {row[1]: row[2] for row in con.execute(f"PRAGMA table_info({q(table)})")}


def _table(r: random.Random, con: sqlite3.Connection) -> str:
    """A table; those with operations are more likely."""
    every = tables(con)
    wanted = [name for name in every if re.match("CUPTI_ACTIVITY_KIND|NVTX|StringIds", name)]
    return r.choice(wanted) if wanted and r.random() < 0.8 else r.choice(every)


def _rebuild(
    con: sqlite3.Connection, table: str, definitions: dict[str, str], tail: str = "", more: str = ""
) -> None:
    """The same rows, in their order, in a table of this definition."""
    listed = ", ".join(f"{q(name)} {text}" for name, text in definitions.items())
    own = columns(con, table)
    shared = ", ".join(q(name) for name in definitions if name in own)
    con.execute(f"CREATE TABLE zz_new ({listed}{more}) {tail}")
    con.execute(f"INSERT INTO zz_new ({shared}) SELECT {shared} FROM {q(table)} ORDER BY rowid")
    con.execute(f"DROP TABLE {q(table)}")
    con.execute(f"ALTER TABLE zz_new RENAME TO {q(table)}")


def drop_table(r: random.Random, con: sqlite3.Connection, case: Case) -> None:
    table = _table(r, con)
    con.execute(f"DROP TABLE {q(table)}")
    case.changes.append(f"drop {table}")
    case.is_defined = False


def empty_table(r: random.Random, con: sqlite3.Connection, case: Case) -> None:
    table = _table(r, con)
    con.execute(f"DELETE FROM {q(table)}")
    case.changes.append(f"empty {table}")
    case.is_defined &= table not in ("StringIds", "TARGET_INFO_CUDA_DEVICE")


def rename_table(r: random.Random, con: sqlite3.Connection, case: Case) -> None:
    table = _table(r, con)
    other = r.choice(
        [table + "_V2", table + "_V17", table.lower(), table + "_v3", "x" + table, table[:-1]]
    )
    con.execute(f"ALTER TABLE {q(table)} RENAME TO zz_moved")
    con.execute(f"ALTER TABLE zz_moved RENAME TO {q(other)}")
    case.changes.append(f"rename {table} to {other}")
    case.is_defined &= bool(re.fullmatch(re.escape(table) + r"_V\d+", other)) and "_V" not in table


def copy_table(r: random.Random, con: sqlite3.Connection, case: Case) -> None:
    table = _table(r, con)
    other = r.choice([*ODD_NAMES, table + "_V2", table + "_OLD"])
    con.execute(f"CREATE TABLE {q(other)} AS SELECT * FROM {q(table)}")
    case.changes.append(f"copy {table} to {other[:40]!r}")
    case.is_defined &= "_V" not in other


def odd_table(r: random.Random, con: sqlite3.Connection, case: Case) -> None:
    """A table that is none of Nsight's, with names that want to be quoted, or very many columns."""
    names = r.sample(ODD_NAMES, 3) if r.random() < 0.7 else [f"c{n}" for n in range(1500)]
    listed = ", ".join(f"{q(name)} {r.choice(['', 'INT', 'TEXT'])}" for name in names)
    con.execute(f"CREATE TABLE {q(r.choice(ODD_NAMES) + '1')} ({listed})")
    case.changes.append("a table with odd names")


def drop_column(r: random.Random, con: sqlite3.Connection, case: Case) -> None:
    table = _table(r, con)
    column = r.choice([*columns(con, table)])
    con.execute(f"ALTER TABLE {q(table)} DROP COLUMN {q(column)}")
    case.changes.append(f"drop {table}.{column}")
    case.is_defined = False


def rename_column(r: random.Random, con: sqlite3.Connection, case: Case) -> None:
    table = _table(r, con)
    column = r.choice([*columns(con, table)])
    other = r.choice([column.upper(), column + "2", "rowid", *ODD_NAMES])
    con.execute(f"ALTER TABLE {q(table)} RENAME COLUMN {q(column)} TO {q(other)}")
    case.changes.append(f"rename {table}.{column} to {other[:40]!r}")
    case.is_defined = False


def add_column(r: random.Random, con: sqlite3.Connection, case: Case) -> None:
    table = _table(r, con)
    name = r.choice([name for name in ODD_NAMES if name != "rowid"])
    default = r.choice(["", "DEFAULT 7", "DEFAULT 'x'", "DEFAULT x'ff00'", "COLLATE NOCASE"])
    type_ = r.choice(["", "INTEGER", "TEXT", "BLOB", "DATETIME", "JSON", "BOOLEAN", "NUMERIC(9,3)"])
    con.execute(f"ALTER TABLE {q(table)} ADD COLUMN {q(name)} {type_} {default}")
    case.changes.append(f"add {table}.{name[:40]!r} {type_} {default}")


def reorder_columns(r: random.Random, con: sqlite3.Connection, case: Case) -> None:
    table = _table(r, con)
    names = [*columns(con, table).items()]
    r.shuffle(names)
    _rebuild(con, table, dict(names))
    case.changes.append(f"reorder the columns of {table}")


def swap_columns(r: random.Random, con: sqlite3.Connection, case: Case) -> None:
    table = _table(r, con)
    names = [*columns(con, table)]
    one, two = r.choice(names), r.choice(names)
    con.execute(f"UPDATE {q(table)} SET {q(one)} = {q(two)}, {q(two)} = {q(one)}")
    case.changes.append(f"swap {table}.{one} and {two}")
    case.is_defined = False


def retype_column(r: random.Random, con: sqlite3.Connection, case: Case) -> None:
    """The same values under another declared type: SQLite stores them as that says."""
    table = _table(r, con)
    found = columns(con, table)
    for column in r.sample([*found], r.choice([1, len(found)])):
        found[column] = r.choice(
            [
                "",
                "BIGINT",
                "TEXT",
                "BLOB",
                "REAL",
                "NUMERIC",
                "VARCHAR(3)",
                "DATE",
                "BOOLEAN",
                "INT",
            ]
        )
    _rebuild(con, table, found)
    case.changes.append(f"retype {table}: {found}")


def constrained(r: random.Random, con: sqlite3.Connection, case: Case) -> None:
    """WITHOUT ROWID, STRICT, a key of its own, generated columns, constraints."""
    table = _table(r, con)
    found = columns(con, table)
    style = r.choice(["without rowid", "strict", "key", "generated", "check", "collate", "odd"])
    case.changes.append(f"{table} is {style}")
    if style == "without rowid":
        con.execute(f"ALTER TABLE {q(table)} ADD COLUMN zz_key INTEGER")
        con.execute(f"UPDATE {q(table)} SET zz_key = rowid")
        _rebuild(con, table, found | {"zz_key": "INTEGER PRIMARY KEY"}, "WITHOUT ROWID")
        case.is_defined = False
    elif style == "strict":
        kinds = {name: "TEXT" if "TEXT" in text.upper() else "ANY" for name, text in found.items()}
        _rebuild(con, table, kinds, "STRICT")
    elif style == "key":
        _rebuild(con, table, found | {r.choice(["zz_key", "rowid"]): "INTEGER PRIMARY KEY"})
    elif style == "generated":
        names = [name for name in found if name not in ("start", "end")]
        name = r.choice(names or [*found])
        how = r.choice(["VIRTUAL", "STORED"])
        more = f", zz_made INT GENERATED ALWAYS AS ({q(name)}) {how}"
        _rebuild(con, table, found, "", more)
    elif style == "check":
        _rebuild(con, table, found, "", ", CHECK (1 = 1)")
    else:
        name = "odd" if style == "odd" else r.choice(["NOCASE", "RTRIM"])
        _rebuild(con, table, {column: f"{text} COLLATE {name}" for column, text in found.items()})


def view_for_table(r: random.Random, con: sqlite3.Connection, case: Case) -> None:
    table = _table(r, con)
    con.execute(f"ALTER TABLE {q(table)} RENAME TO zz_hidden")
    con.execute(f"CREATE VIEW {q(table)} AS SELECT * FROM zz_hidden")
    case.changes.append(f"{table} is a view")
    case.is_defined = False


def more_objects(r: random.Random, con: sqlite3.Connection, case: Case) -> None:
    """Views, triggers and indexes beside the tables."""
    table, number = _table(r, con), r.randrange(1000)
    column = r.choice([*columns(con, table)])
    text = r.choice(
        [
            f"CREATE INDEX zz_i{number} ON {q(table)} ({q(column)})",
            f"CREATE INDEX zz_p{number} ON {q(table)} ({q(column)}) WHERE {q(column)} > 5",
            f"CREATE INDEX zz_e{number} ON {q(table)} (abs({q(column)}))",
            f"CREATE INDEX zz_o{number} ON {q(table)} ({q(column)} COLLATE odd)",
            f"CREATE VIEW zz_v{number} AS SELECT * FROM {q(table)}",
            f"CREATE VIEW zz_s{number} AS SELECT * FROM zz_s{number}",
            f"CREATE VIEW zz_n{number} AS SELECT * FROM zz_nowhere",
            f"CREATE TRIGGER zz_t{number} AFTER INSERT ON {q(table)} BEGIN SELECT 1; END",
        ]
    )
    con.execute(text)
    case.changes.append(text[:90])


def virtual_table(r: random.Random, con: sqlite3.Connection, case: Case) -> None:
    """A virtual table, whose module the reader may not have, beside or in place of a table."""
    if r.random() < 0.5:
        con.execute("CREATE VIRTUAL TABLE zz_search USING fts5(a, b)")
        case.changes.append("a virtual table beside")
        return
    con.execute("PRAGMA writable_schema = ON")
    table = _table(r, con)
    con.execute(
        "UPDATE sqlite_master SET rootpage = 0, sql = ? WHERE name = ?",
        [f"CREATE VIRTUAL TABLE {q(table)} USING nowhere(a)", table],
    )
    case.changes.append(f"{table} is virtual")
    case.is_defined = False


def schema_row(r: random.Random, con: sqlite3.Connection, case: Case) -> None:
    """A row of the schema that does not fit the file."""
    con.execute("PRAGMA writable_schema = ON")
    table = _table(r, con)
    column, value = r.choice(
        [
            ("rootpage", r.randrange(400)),
            ("rootpage", 2**31),
            ("rootpage", -1),
            ("rootpage", "x"),
            ("sql", None),
            ("sql", ""),
            ("sql", "CREATE TABLE x (y"),
            ("sql", f"CREATE TABLE {q(table)} (start, start)"),
            ("sql", b"\xff\xfe"),
            ("name", None),
            ("name", b"\xff"),
            ("name", "sqlite_" + table),
            ("tbl_name", "x"),
            ("type", "view"),
            ("type", "tablet"),
        ]
    )
    con.execute(f"UPDATE sqlite_master SET {column} = ? WHERE name = ?", [value, table])
    case.changes.append(f"sqlite_master.{column} of {table} is {value!r}")
    case.is_defined = False


def layout(r: random.Random, con: sqlite3.Connection, case: Case) -> None:
    con.commit()
    text = r.choice(
        ["VACUUM", "PRAGMA user_version = -1", "PRAGMA application_id = 99", "ANALYZE", "REINDEX"]
    )
    con.execute(text)
    case.changes.append(text)


STRUCTURE: tuple[Change, ...] = (
    *(drop_table, empty_table, rename_table, copy_table, odd_table, drop_column, rename_column),
    *(add_column, reorder_columns, swap_columns, retype_column, retype_column, constrained),
    *(constrained, view_for_table, more_objects, more_objects, virtual_table, schema_row, layout),
)


# ---------------------------------------------------------------------------- values

# Columns whose every value has a meaning to the method: missing, dangling, shared, or out of order.
FREE = (
    *("start", "end", "correlationId", "eventId", "eventSyncId", "nameId", "demangledName"),
    *("shortName", "textId", "bytes", "copyKind", "rangeId", "graphNodeId", "returnValue"),
    *("gridX", "blockX", "registersPerThread", "memKind"),
)
ODD_VALUES = (
    *(None, 0, 1, -1, 255, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53 + 1, 2**63 - 1, -(2**63)),
    *(
        1.5,
        -0.0,
        1e300,
        float("inf"),
        "",
        "x",
        "12",
        " 12",
        "1e3",
        "0x10",
        "12abc",
        "\x00",
        "é" * 9,
    ),
    *(b"", b"\xff\xfe", b"12", b"\x00" * 50),
)
TEXTS = (
    *("", "step", "step 1", "%_*", "'; DROP TABLE nsys.op; --", "<script>x</script>", "\x1b[2J"),
    *("a\nb", "ncclDevKernel_AllReduce", "x" * 70000, "\x00", "é", "☃", "\U0001f600"),
    *(b"\xff\xfe\xfd", b"ok\x00tail"),
)
MILD = 10**12  # times beyond this shift a trace; those near 2**63 are no time at all


def _some(r: random.Random, con: sqlite3.Connection, table: str) -> list[int]:
    rows = [row[0] for row in con.execute(f"SELECT rowid FROM {q(table)} ORDER BY rowid")]
    if not rows:
        return []
    share = r.choice([1, 1, 2, len(rows), len(rows)])
    return r.sample(rows, min(share, len(rows)))


def set_value(r: random.Random, con: sqlite3.Connection, case: Case) -> None:
    """Any value in any column."""
    table = _table(r, con)
    found = columns(con, table)
    column = r.choice([*found])
    value = r.choice(TEXTS if "TEXT" in found[column].upper() else ODD_VALUES)
    rows = _some(r, con, table)
    con.executemany(
        f"UPDATE {q(table)} SET {q(column)} = ? WHERE rowid = ?", [(value, row) for row in rows]
    )
    case.changes.append(f"{table}.{column} = {str(value)[:40]!r} in {len(rows)} rows")
    is_huge = isinstance(value, (int, float)) and abs(value) > MILD
    case.is_defined &= column in FREE and not is_huge


def missing_value(r: random.Random, con: sqlite3.Connection, case: Case) -> None:
    table = _table(r, con)
    column = r.choice([*columns(con, table)])
    rows = _some(r, con, table)
    con.executemany(
        f"UPDATE {q(table)} SET {q(column)} = NULL WHERE rowid = ?", [(row,) for row in rows]
    )
    case.changes.append(f"{table}.{column} = NULL in {len(rows)} rows")
    case.is_defined &= column in FREE


def shift_times(r: random.Random, con: sqlite3.Connection, case: Case) -> None:
    """All times, or those of one table, earlier or later; far below zero too."""
    by = r.choice([-1, 7, -MILD, MILD, -(10**15), 2**62, -(2**62), 2**63 - 10**6])
    chosen = tables(con) if r.random() < 0.5 else [_table(r, con)]
    for table in chosen:
        for column in columns(con, table):
            if column in ("start", "end", "timestamp", "rawTimestamp"):
                name = q(column)
                con.execute(f"UPDATE {q(table)} SET {name} = {name} + ?", [by])
    case.changes.append(f"times of {len(chosen)} tables shifted by {by}")
    case.is_defined &= abs(by) <= MILD


def turn_around(r: random.Random, con: sqlite3.Connection, case: Case) -> None:
    """Operations that end before they start, or take no time."""
    table = _table(r, con)
    if not {"start", "end"} <= columns(con, table).keys():
        return
    value = r.choice(['"start"', '"start" - 1', '"start" + 1', '"start" - 1000000'])
    rows = _some(r, con, table)
    con.executemany(
        f'UPDATE {q(table)} SET "end" = {value} WHERE rowid = ?', [(row,) for row in rows]
    )
    case.changes.append(f"{table}.end = {value} in {len(rows)} rows")


def same_value(r: random.Random, con: sqlite3.Connection, case: Case) -> None:
    """One value for all rows of a column: ids that repeat, times that are equal."""
    table = _table(r, con)
    column = r.choice([*columns(con, table)])
    con.execute(f"UPDATE {q(table)} SET {q(column)} = (SELECT {q(column)} FROM {q(table)} LIMIT 1)")
    case.changes.append(f"{table}.{column} is the same in all rows")
    case.is_defined &= column in FREE


def duplicate_rows(r: random.Random, con: sqlite3.Connection, case: Case) -> None:
    table = _table(r, con)
    names = [name for name in columns(con, table) if not (table == "StringIds" and name == "rowid")]
    listed = ", ".join(map(q, names))
    rows = _some(r, con, table)
    con.executemany(
        f"INSERT INTO {q(table)} ({listed}) SELECT {listed} FROM {q(table)} WHERE rowid = ?",
        [(row,) for row in rows],
    )
    case.changes.append(f"{len(rows)} rows of {table} twice")
    case.is_defined &= table.startswith("CUPTI_ACTIVITY_KIND")


def delete_rows(r: random.Random, con: sqlite3.Connection, case: Case) -> None:
    table = _table(r, con)
    rows = _some(r, con, table)
    con.executemany(f"DELETE FROM {q(table)} WHERE rowid = ?", [(row,) for row in rows])
    case.changes.append(f"{len(rows)} rows of {table} less")
    case.is_defined &= table not in ("StringIds", "TARGET_INFO_CUDA_DEVICE")


def dangling_text(r: random.Random, con: sqlite3.Connection, case: Case) -> None:
    """Names of strings that are not there, or strings that are odd."""
    if "StringIds" not in tables(con):
        return
    if r.random() < 0.5:
        con.execute("DELETE FROM StringIds WHERE id % 3 = ?", [r.randrange(3)])
        case.changes.append("a third of StringIds is gone")
    else:
        value = r.choice(TEXTS)
        con.execute("UPDATE StringIds SET value = ? WHERE id % 5 = ?", [value, r.randrange(5)])
        case.changes.append(f"a fifth of StringIds is {str(value)[:30]!r}")
    case.is_defined = False


def shuffle_rows(r: random.Random, con: sqlite3.Connection, case: Case) -> None:
    """Rows in another order: their row ids mean nothing."""
    table = _table(r, con)
    if any(row[5] for row in con.execute(f"PRAGMA table_info({q(table)})")):
        return
    rows = con.execute(f"SELECT * FROM {q(table)}").fetchall()
    r.shuffle(rows)
    con.execute(f"DELETE FROM {q(table)}")
    marks = ", ".join("?" * len(columns(con, table)))
    con.executemany(f"INSERT INTO {q(table)} VALUES ({marks})", rows)
    case.changes.append(f"rows of {table} shuffled")


VALUES: tuple[Change, ...] = (
    *(set_value, set_value, set_value, missing_value, shift_times, turn_around, same_value),
    *(duplicate_rows, delete_rows, dangling_text, shuffle_rows),
)


# ---------------------------------------------------------------------------- the commands


def command_lines(r: random.Random, case: Case, path: Path, other: Path, out: Path) -> list[Any]:
    """Some command lines on the trace: (arguments, the files they may write)."""
    form = r.choice(FORMATS)
    trace, own = str(path), case.options
    database, json_file = out / "t.duckdb", out / "t.json.gz"
    page = out / f"t{r.choice(['.html', '.md', '.json'])}"
    every: list[tuple[list[str], list[Path]]] = [
        (["run", r.choice(RECIPES), trace, "--format", form, *own], []),
        (["run", r.choice(RECIPES), trace, "--format", form], []),
        (["run", "budget", trace, "--format", "json", *own], []),
        (["run", "gaps", trace, "--format", "csv", "-o", str(out / "g.csv")], [out / "g.csv"]),
        (["run", "kernels", trace, *own, "--format", "parquet", "-o", str(out / "k")], [out / "k"]),
        (["run", "budget", trace, *own, "--cache", "--threads", "1"], []),
        (["inspect", trace, "--format", r.choice(["table", "json"])], []),
        (["sql", trace, r.choice(QUERIES), "--format", form], []),
        (["show", r.choice(RECIPES), trace, *own], []),
        (["report", trace, "-o", str(page), *own], [page]),
        (["timeline", trace, "-o", str(json_file), *own], [json_file]),
        (["survey", trace, *own, "--jobs", "1"], []),
        (["survey", trace, "--init"], []),
        (["compare", str(other), trace, *own, "--jobs", "1"], []),
        (["build", trace, "-o", str(database), *own], [database]),
    ]
    return r.sample(every, 2)


@dataclass
class Outcome:
    """What a command did; `new` are the files it left where it should not."""

    arguments: list[str]
    code: int
    out: bytes
    err: str
    new: list[str] = field(default_factory=list)
    is_input_changed: bool = False


def execute(
    arguments: list[str], stdin: bytes = b"", errors: str = "strict"
) -> tuple[int, bytes, str]:
    """One command line in this process: exit code, standard output, standard error.

    `errors` is what Python does with bytes on standard input that are no text: by the locale.
    """
    from nsys_sql import cli

    out, err = io.BytesIO(), io.BytesIO()
    kept = sys.stdin, sys.stdout, sys.stderr
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8", errors=errors)
    sys.stdout = io.TextIOWrapper(out, encoding="utf-8", newline="")
    sys.stderr = io.TextIOWrapper(err, "utf-8", "backslashreplace", newline="")
    try:
        code = cli.execute(arguments)
        sys.stdout.flush()
        sys.stderr.flush()
        return code, out.getvalue(), err.getvalue().decode("utf-8", "replace")
    finally:
        sys.stdin, sys.stdout, sys.stderr = kept


BUG = re.compile(r"Traceback|INTERNAL|this is a bug|NotImplemented|Assertion|FATAL", re.IGNORECASE)


def judge(
    outcome: Outcome, codes: Iterable[int] = (0, 3, 4), whatever: frozenset[int] = frozenset()
) -> list[str]:
    """What is wrong with an outcome, one line each; `whatever` are codes that need no message."""
    found = []
    code, err = outcome.code, outcome.err
    lines = err.splitlines()
    errors = [line for line in lines if line.startswith("Error: ")]
    if code not in codes:
        found.append(f"exit code {code}")
    if BUG.search(err):
        found.append("a bug shows")
    if code in (1, 2, 3, 4) and code not in whatever and not errors:
        found.append("an error without a line that says so")
    if code == 0 and errors:
        found.append("an error line, yet exit code 0")
    if len(errors) > 1 and outcome.arguments[0] not in ("survey", "run", "report", "compare"):
        found.append(f"{len(errors)} error lines")
    if any(len(line) > 1500 + 2 * max(map(len, outcome.arguments)) for line in errors):
        found.append("an error line of more than 1500 characters")
    if re.search(r"[\x00-\x08\x0b-\x1f\x7f]", err):
        found.append("control characters on standard error")
    if outcome.new:
        found.append(f"files are left: {outcome.new[:4]}")
    if outcome.is_input_changed:
        found.append("the input has changed")
    if outcome.out and not outcome.out.endswith(b"\n") and "parquet" not in outcome.arguments:
        found.append("the last line of the output has no end")
    found += _malformed(outcome)
    return found


def _malformed(outcome: Outcome) -> Iterator[str]:
    arguments, text = outcome.arguments, outcome.out.decode("utf-8", "replace")
    if not text or "--format" not in arguments[:-1] or "--help" in arguments:
        return
    last = len(arguments) - 1 - arguments[::-1].index("--format")  # the one that counts
    form = arguments[last + 1]
    if form == "json":
        try:
            json.loads(text, parse_constant=lambda name: 1 / 0)
        except (ValueError, ZeroDivisionError) as error:
            yield f"the output is no JSON: {error}"
    elif form == "csv":
        csv.field_size_limit(10**9)
        try:
            widths = {len(row) for row in csv.reader(io.StringIO(text, newline=""), strict=True)}
        except csv.Error as error:
            yield f"the output is no CSV: {error}"
        else:
            if len(widths) > 1:
                yield f"the lines of the CSV differ: {sorted(widths)}"


def run_case(seed: int, folder: Path) -> list[str]:
    """Break, run, judge: the findings of one seed."""
    r = random.Random(f"commands {seed}")
    inputs, out, temp = (folder / name for name in ("in", "out", "tmp"))
    for each in (inputs, out, temp):
        each.mkdir(parents=True, exist_ok=True)
    path, other = inputs / "trace.sqlite", folder / "other.sqlite"
    path.unlink(missing_ok=True)
    case = make(seed, path)
    other.unlink(missing_ok=True)
    build(case.fixture, other, 4096, 0, "UTF-8")
    before = path.read_bytes()
    found = []
    for arguments, writes in command_lines(r, case, path, other, out):
        outcome = Outcome(arguments, *execute(arguments))
        outcome.is_input_changed = path.read_bytes() != before
        left = [*inputs.iterdir(), *out.iterdir(), *temp.iterdir()]
        outcome.new = [str(each) for each in left if each not in (path, *writes)]
        codes = {0, 3, 4}
        if "sql" in arguments[:1]:
            codes.add(2)  # a query of the trace's own tables meets their values as they are
        if any(text.split(":")[0] in BROKEN for text in case.changes) and _told_as_failed(outcome):
            codes.add(5)  # rows at the wrong place break what else cannot break
        for problem in judge(outcome, codes):
            head = outcome.err[:HEAD].strip()
            found.append(f"{problem}: nsys-sql {shlex.join(arguments)}\n    {head}")
        for each in left:
            if each != path:
                _remove(each)
    if case.is_defined:
        found += agreement(path, case)
    return [f"seed {seed} ({case.fixture}: {'; '.join(case.changes)[:600]}): {f}" for f in found]


def _told_as_failed(outcome: Outcome) -> bool:
    text = outcome.out.decode("utf-8", "replace") + outcome.err
    return bool(re.search(r'FAIL|"status": "fail"', text)) or "-o" in outcome.arguments


def _remove(path: Path) -> None:
    import shutil

    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


# ---------------------------------------------------------------------------- the oracle


def agreement(path: Path, case: Case) -> list[str]:
    """Where budgets, windows and gaps differ from the definition; a trace without them has none."""
    import nsys_sql
    from fuzz import differences, oracle_answers, product_answers
    from oracle import Oracle

    class Tolerant(Oracle):
        """Reads what is stored as a whole number in any way; everything else is missing."""

        def _query(self, sql: str) -> list[Row]:
            rows = super()._query(sql)
            for row in rows:
                for name, value in row.items():
                    if name not in ("text", "value", "name"):
                        row[name] = whole(value)
            return rows

    options = options_of(case.options)
    try:
        answers, classify = product_answers(path, options)
    except nsys_sql.NsysSqlError as error:
        return [] if error.exit_code in (3, 4) else [f"the product fails: {error}"]
    if all(isinstance(each, str) and each.startswith("exit 4") for each in answers.values()):
        return []
    try:
        expected = oracle_answers(Tolerant(path, classify), options)
    except Exception as error:
        return [f"the oracle fails: {type(error).__name__}: {error}"]
    return differences(answers, expected)[:4]


def whole(value: Any) -> Any:
    """A number as the product reads it: whole, in whatever storage class; else missing."""
    if isinstance(value, float):
        return int(value) if abs(value) < 2**53 and value == int(value) else None
    if isinstance(value, str):
        found = re.match(r"[ \t\n\v\f\r]*([+-]?\d{1,30})", value)
        return int(found[1]) if found and str(int(found[1])) == value else None
    return None if isinstance(value, bytes) else value


def options_of(arguments: list[str]) -> Row:
    """The options of a fixture as the Python interface takes them."""
    found: Row = {}
    for name, value in zip(arguments[::2], arguments[1::2], strict=True):
        key = name.removeprefix("--").replace("-", "_")
        found[key] = int(value) if value.isdigit() else value
    return found


# ---------------------------------------------------------------------------- the processes


class Pool:
    """Processes that work off seeds; one that dies or hangs is the finding of its seed."""

    def __init__(self, script: Path, jobs: int, limit_s: float = LIMIT_S) -> None:
        self.script, self.jobs, self.limit_s = script, jobs, limit_s

    def _start(self, folder: str) -> subprocess.Popen[bytes]:
        temp = Path(folder) / "tmp"
        temp.mkdir(parents=True, exist_ok=True)
        env = os.environ | {
            "TMPDIR": str(temp),
            "HOME": str(Path(folder) / "home"),
            "XDG_CACHE_HOME": str(Path(folder) / "cache"),
            "NSYS_SQL_CACHE": str(Path(folder) / "cache" / "own"),
            "COLUMNS": "120",
            "PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")]),
        }
        return subprocess.Popen(
            [sys.executable, "-X", "faulthandler", str(self.script), "--worker", folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
        )

    def run(self, seeds: Iterable[int]) -> Iterator[tuple[int, list[str]]]:
        """Each seed with its findings, as they come."""
        from threading import Thread

        queue = iter(seeds)
        with tempfile.TemporaryDirectory(prefix="fuzz-") as base, selectors.DefaultSelector() as s:
            free = [f"{base}/{number}" for number in range(self.jobs)]
            busy: dict[Any, tuple[int, float, str, list[bytes]]] = {}
            idle: list[tuple[Any, str, list[bytes]]] = []
            readers: dict[Any, Thread] = {}
            try:
                while True:
                    while len(busy) < self.jobs and (seed := next(queue, None)) is not None:
                        if idle:
                            child, folder, noise = idle.pop()
                        else:
                            folder, noise = free.pop(), []
                            child = self._start(folder)
                            reader = Thread(target=_drain, args=(child.stderr, noise), daemon=True)
                            reader.start()
                            readers[child] = reader
                        busy[child] = (seed, time.monotonic() + self.limit_s, folder, noise)
                        s.register(child.stdout, selectors.EVENT_READ, child)
                        with contextlib.suppress(OSError):
                            child.stdin.write(f"{seed}\n".encode())
                            child.stdin.flush()
                    if not busy:
                        return
                    for key, _ in s.select(0.5):
                        child = key.data
                        seed, _, folder, noise = busy.pop(child)
                        s.unregister(child.stdout)
                        line = child.stdout.readline()
                        if line.endswith(b"\n"):
                            idle.append((child, folder, noise))
                            yield seed, json.loads(line)
                        else:
                            free.append(folder)
                            yield seed, [f"seed {seed}: {_death(child, noise)}"]
                    for child in [c for c, work in busy.items() if time.monotonic() > work[1]]:
                        seed, _, folder, noise = busy.pop(child)
                        s.unregister(child.stdout)
                        child.kill()
                        _death(child, noise)
                        free.append(folder)
                        yield seed, [f"seed {seed}: no end after {self.limit_s:g} s"]
            finally:
                for child in [*busy, *(each[0] for each in idle)]:
                    child.kill()
                    _death(child, [])
                for reader in readers.values():
                    reader.join()


def _drain(stream: Any, into: list[bytes]) -> None:
    with stream, contextlib.suppress(ValueError, OSError):
        into.extend(stream)


def _death(child: Any, noise: list[bytes]) -> str:
    code = child.wait()
    time.sleep(0.05)  # for its last words
    for stream in (child.stdin, child.stdout):
        with contextlib.suppress(OSError):
            stream.close()
    told = b"".join(noise[-12:]).decode("utf-8", "replace").strip()
    return f"its process ended with {code}: {told}"


def work(folder: Path, case: Callable[[int, Path], list[str]]) -> int:
    """The loop of a process: seeds in, findings out."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing else may write to the channel
    for line in sys.stdin.buffer:
        try:
            found = case(int(line), folder)
        except Exception as error:
            import traceback

            where = traceback.format_exc(limit=-3)
            found = [
                f"seed {int(line)}: the fuzzer itself: {type(error).__name__}: {error} {where}"
            ]
        answers.write(json.dumps(found).encode() + b"\n")
        answers.flush()
    return 0


def command(script: Path, case: Callable[[int, Path], list[str]], about: str | None) -> int:
    """The command line of a fuzzer."""
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", default="0:200", help="first:last, half-open")
    parser.add_argument("--seconds", type=float, help="new seeds for so long, from a random one on")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--keep-going", action="store_true", help="do not stop at a finding")
    parser.add_argument("--write", metavar="FILE", help="only write the trace of the first seed")
    parser.add_argument("--worker", metavar="DIR", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        return work(Path(given.worker), case)
    first, _, last = given.seeds.partition(":")
    seeds: Iterable[int] = range(int(first), int(last) if last else int(first) + 1)
    if given.write:
        print(make(int(first), Path(given.write)))
        return 0
    if given.seconds is not None:
        seeds = _for(given.seconds)
    count = failed = 0
    for _, found in Pool(script, given.jobs).run(seeds):
        count += 1
        failed += bool(found)
        if found:
            print(*found, sep="\n", flush=True)
            if not given.keep_going:
                break
    print(f"{count - failed} of {count} seeds found nothing")
    return 1 if failed else 0


def _for(seconds: float) -> Iterator[int]:
    end = time.monotonic() + seconds
    seed = random.SystemRandom().randrange(10**6, 10**9)
    print(f"from seed {seed} on", flush=True)
    while time.monotonic() < end:
        yield seed
        seed += 1


if __name__ == "__main__":
    sys.exit(command(Path(__file__), run_case, __doc__))
