"""Rows written by DuckDB: as Parquet, and many as csv or JSON.

The latter are the bytes of nsys_sql.formats in less time. Where that is in doubt (other types,
control characters in JSON), Python writes them. Either way a block is made when it is asked for, so
that no result has to fit into memory as text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsys_sql import formats
from nsys_sql.adapt import literal, quote
from nsys_sql.errors import UsageError
from nsys_sql.formats import ColumnLike

if TYPE_CHECKING:
    import duckdb

FORMS = ("csv", "json")
# Below, Python is fast enough.
MANY = 20_000
BATCH = 20_000
_WHOLE = frozenset({"BIGINT", "INTEGER", "SMALLINT", "TINYINT", "UBIGINT", "UINTEGER", "HUGEINT"})
# What str.strip() takes away.
_SPACE = (
    r"\t\n\x0b\x0c\r\x1c-\x1f \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}"
    r"\x{205f}\x{3000}"
)


# The type itself, and no field of a STRUCT that is called so.
_HUGE = re.compile(r"""("(?:[^"]|"")*"|'(?:[^']|'')*')|\bU?HUGEINT\b(?=[,)\[]|$)""")
_EXACT = "DECIMAL(38,0)"


def write_parquet(relation: duckdb.DuckDBPyRelation, path: Path) -> None:
    """Write a relation with every number as it is.

    Parquet has no whole numbers of 128 bits, which every sum() of whole numbers is, and DuckDB
    writes them rounded, as DOUBLE. Here they are DECIMAL(38,0).
    """
    import duckdb

    is_changed, taken = False, []
    for at, (name, kind) in enumerate(zip(relation.columns, map(str, relation.types), strict=True)):
        exact = _HUGE.sub(lambda found: found[1] or _EXACT, kind)
        is_changed |= exact != kind
        # by their places, since two may have one name
        taken.append(f"#{at + 1}{f'::{exact}' if exact != kind else ''} AS {quote(name)}")
    if is_changed:
        relation = relation.project(", ".join(taken))
    try:
        relation.write_parquet(str(path))
    except duckdb.ConversionException as error:
        if is_changed and "DECIMAL" in str(error):
            raise UsageError(
                "a number of the result has more than 38 digits, and Parquet holds none such",
                hint="cast its column to VARCHAR or DOUBLE, or choose another format",
            ) from error
        raise


def of_table(
    con: duckdb.DuckDBPyConnection,
    table: str,
    columns: Sequence[ColumnLike],
    form: str,
    lead: str | None = None,
) -> Iterator[str]:
    """Blocks of lines, without the line feed at the end of each.

    `lead` is a value in front of each csv row. The rows come in the order of the table. They are
    read from the connection while they are asked for: nothing else may be, until they end.
    """
    write = _csv if form == "csv" else _json
    made = [write(con, table, column) for column in columns]
    parts = [part for part in made if part is not None]
    if not parts or len(parts) < len(made):
        return formats.blocks(columns, _batches(con, f"SELECT * FROM {table}"), form, lead)
    if form == "csv":
        first = [] if lead is None else [literal(formats.csv_line([lead]))]
        line = f"concat_ws(',', {', '.join([*first, *parts])})"
        if len(first) + len(parts) == 1:  # as formats.csv_line: no reader skips the line then
            line = f"coalesce(nullif({line}, ''), '\"\"')"
    else:
        keys = [literal(f", {formats.dumps(column.name)}: ") for column in columns]
        keys[0] = literal(f"    {{{formats.dumps(columns[0].name)}: ")
        pairs = (f"{key}, {part}" for key, part in zip(keys, parts, strict=True))
        line = f"concat({', '.join(pairs)}, '}}')"
    return _blocks(con, f"SELECT {line} FROM {table}", "\n" if form == "csv" else ",\n")


def _blocks(con: duckdb.DuckDBPyConnection, query: str, between: str) -> Iterator[str]:
    for batch in _batches(con, query):
        yield between.join([row[0] for row in batch])


def _batches(con: duckdb.DuckDBPyConnection, query: str) -> Iterator[list[tuple[Any, ...]]]:
    cursor = con.execute(query)
    while batch := cursor.fetchmany(BATCH):
        yield batch


def _csv(con: duckdb.DuckDBPyConnection, table: str, column: ColumnLike) -> str | None:
    """A column as a field of csv, or None for one that is left to Python."""
    name = quote(column.name)
    if column.type in _WHOLE or column.type == "BOOLEAN":
        return f"coalesce({name}::VARCHAR, '')"
    if column.type == "DOUBLE":
        text = f"CASE WHEN isfinite({name}) THEN {name}::VARCHAR ELSE '\"\"' END"
        return f"CASE WHEN {name} IS NULL THEN '' ELSE {text} END"
    if column.type != "VARCHAR":
        return None
    quoted = f"contains({name}, ',') OR contains({name}, '\"')"
    rare = f"{name} = '' OR regexp_matches({name}, '[\\r\\n]|^[{_SPACE}]|[{_SPACE}]$')"
    if _any(con, table, name, rare):
        quoted += f" OR {rare}"
    text = f"'\"' || replace({name}, '\"', '\"\"') || '\"'"
    return f"CASE WHEN {quoted} THEN {text} ELSE coalesce({name}, '') END"


def _json(con: duckdb.DuckDBPyConnection, table: str, column: ColumnLike) -> str | None:
    """A column as a value of JSON, or None for one that is left to Python."""
    name = quote(column.name)
    if column.type in _WHOLE or column.type == "BOOLEAN":
        return f"coalesce({name}::VARCHAR, 'null')"
    if column.type == "DOUBLE":
        return f"CASE WHEN isfinite({name}) THEN {name}::VARCHAR ELSE 'null' END"
    control = rf"regexp_matches({name}, '[\x00-\x1f]')"
    if column.type != "VARCHAR" or _any(con, table, name, control):
        return None
    text = f"replace(replace({name}, '\\', '\\\\'), '\"', '\\\"')"
    return f"coalesce('\"' || {text} || '\"', 'null')"


def _any(con: duckdb.DuckDBPyConnection, table: str, name: str, condition: str) -> bool:
    query = f"SELECT bool_or({condition}) FROM (SELECT DISTINCT {name} FROM {table})"
    return bool(con.execute(query).fetchall()[0][0])
