"""What the engine hands out: facts of a trace, checks, results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nsys_sql.catalog import Column, SqlFile


@dataclass(frozen=True, slots=True)
class TraceInfo:
    """What is known of a trace without reading its rows.

    `tables` is {table: {column: DuckDB type}} as the file names them, `present` the canonical
    relations whose source table exists. Versions are None where the export does not tell them.
    """

    path: Path
    product_version: str | None
    schema_version: str | None
    capture_version: str | None
    tables: Mapping[str, Mapping[str, str]]
    present: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Check:
    """The outcome of one check of one recipe: `status` is ok, warn or fail."""

    name: str
    status: str
    detail: str
    recipe: str


@dataclass(frozen=True, slots=True)
class Result:
    """A recipe's rows with everything that belongs beside them.

    rows: tuples in `columns` order; *_ns are int ns, absent is None. `table` is the temporary
    table of the model's connection that holds the same rows.
    """

    recipe: SqlFile
    columns: tuple[Column, ...]
    rows: list[tuple[Any, ...]]
    checks: tuple[Check, ...]
    notes: tuple[str, ...]
    table: str


def offending(
    names: Sequence[str], rows: Sequence[Sequence[Any]], count: int, total: int | None
) -> str:
    """`2 of 40 rows: (device=0, ...); ...`, or how many rows passed.

    >>> offending(["device", "idle_ns"], [(0, -1)], 1, 3)
    '1 of 3 rows: (device=0, idle_ns=-1)'
    """
    if not count:
        return "" if total is None else f"{total} rows"
    shown = "; ".join(
        "(" + ", ".join(f"{n}={v}" for n, v in zip(names, row, strict=True)) + ")" for row in rows
    )
    more = "; ..." if count > len(rows) else ""
    of = f" of {total}" if total is not None else ""
    return f"{count}{of} rows: {shown}{more}"
