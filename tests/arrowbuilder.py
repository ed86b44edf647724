"""Arrow exports of a trace as nsys 2024.2 writes them: a stream a table, each with one batch."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

UNSIGNED = {"globalpid", "globaltid", "endglobaltid", "vmid"}
SMALL = {"deviceid", "contextid", "streamid", "correlationid", "eventtype", "gridx", "eventid"}


def tables(trace: Path) -> dict[str, Any]:
    """Every table of an SQLite file as a pyarrow.Table, with the types that nsys gives it."""
    import pyarrow as pa

    found = {}
    with closing(sqlite3.connect(trace)) as database:
        database.text_factory = lambda raw: raw.decode("utf-8", "replace")
        names = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in names:
            cursor = database.execute(f'SELECT * FROM "{table}" ORDER BY rowid')
            rows = cursor.fetchall()
            columns = [each[0] for each in cursor.description]
            arrays = {name: _array(name, [r[i] for r in rows]) for i, name in enumerate(columns)}
            described = {"table_name": table, "table_desc": f"What {table} holds."}
            found[table] = pa.table(arrays).replace_schema_metadata(described)
    return found


def _array(name: str, values: list[Any]) -> Any:
    """A column; what does not have the type of the first value is missing."""
    import pyarrow as pa

    if isinstance(next(filter(None, values), None), str):
        return pa.array([v if isinstance(v, str) else None for v in values], pa.string())
    if any(isinstance(value, float) for value in values):
        return pa.array(values, pa.float64())
    numbers = [value if isinstance(value, int) else None for value in values]
    if name.lower() in UNSIGNED:
        return pa.array([None if v is None else v % (1 << 64) for v in numbers], pa.uint64())
    small = name.lower() in SMALL and all(v is None or 0 <= v < 1 << 32 for v in numbers)
    return pa.array(numbers, pa.uint32() if small else pa.int64())


def stream(table: Any) -> bytes:
    """A table as a stream of one batch."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return sink.getvalue().to_pybytes()


def to_folder(trace: Path, folder: Path) -> Path:
    """What `nsys export --type=arrowdir` makes of a report."""
    folder.mkdir()
    for name, table in tables(trace).items():
        (folder / f"{name}.arrow").write_bytes(stream(table))
    return folder


def to_file(trace: Path, file: Path) -> Path:
    """What `nsys export --type=arrow` makes of a report: the streams one after another."""
    file.write_bytes(b"".join(map(stream, tables(trace).values())))
    return file
