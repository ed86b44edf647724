"""A Parquet directory export (`nsys export --type=parquetdir`): one file a table, seen as tables.

`<TABLE>.parquet` for each table with rows, in a folder `<REPORT>_pqtdir`, with the names of the
SQLite export. Ids that SQLite keeps signed are unsigned in what nsys 2024.2 writes; no type is
taken for granted, as other versions may choose others. Numbers may be of any width and sign, times
may be timestamps, text may be binary or a dictionary: the views made here give every column the
type and the value that the SQLite export of the same report has, so that nothing above them knows
the difference.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from nsys_sql.adapt import literal, quote
from nsys_sql.errors import InputError

if TYPE_CHECKING:
    import duckdb

_SMALL = frozenset({"TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER"})
_HALF = 1 << 63
Tables = dict[str, dict[str, str]]


def files(folder: Path) -> dict[str, Path]:
    """The Parquet files of an export by the name of their table."""
    return {path.stem: path for path in sorted(folder.glob("*.parquet"))}


def pattern(file: Path) -> str:
    """The pattern that matches one file and no other: DuckDB reads every name as one."""
    return re.sub(r"([*?\[])", r"[\1]", str(file))


def scan(file: Path) -> str:
    """The table function that reads one file as it is: a folder `rank=3` above it adds nothing."""
    options = "file_row_number = true, hive_partitioning = false"
    return f"read_parquet({literal(pattern(file))}, {options})"


def damaged(file: Path, error: object) -> InputError:
    """The error of a file of an export that DuckDB cannot read."""
    text = " ".join(str(error).partition("LINE ")[0].split()).rstrip(": ")
    text = re.sub(r'^[\w ]+ Error: (Failed to read file ".*?": )?', "", text)
    return InputError(
        f"{file} is damaged or truncated, or no Parquet file: {text}",
        hint="copy the folder again, or export the report again",
    )


def check(con: duckdb.DuckDBPyConnection, files: Iterable[Path]) -> None:
    """Read everything of these files, to name the one that something is wrong with."""
    import duckdb

    for file in files:
        try:
            con.execute(f"SELECT max(hash(COLUMNS(*))) FROM {scan(file)}").fetchall()
        except (duckdb.PermissionException, duckdb.InterruptException):
            raise  # nothing that the file could be blamed for
        except duckdb.Error as error:
            raise damaged(file, error) from None


def views(
    con: duckdb.DuckDBPyConnection,
    folder: Path,
    alias: str,
    wanted: Mapping[tuple[str, str], str],
) -> tuple[Tables, dict[str, str]]:
    """Columns and CREATE VIEW statements of all tables; only the files' footers are read.

    `wanted` says for (table, column), lower case, which type the adapters expect.
    """
    import duckdb

    found: Tables = {}
    statements: dict[str, str] = {}
    for table, file in files(folder).items():
        check_file(file)
        try:
            found[table], statements[table] = view(con, alias, table, scan(file), wanted)
        except duckdb.InterruptException:
            raise
        except duckdb.Error as error:
            raise damaged(file, error) from None
    return found, statements


def check_file(file: Path) -> None:
    """Refuse what is no file, holds nothing, or has a name that DuckDB cannot be told."""
    try:
        str(file).encode("utf-8")
    except UnicodeEncodeError:
        raise InputError(
            f"{file} has a name that is no UTF-8", hint="it is no table of an export: remove it"
        ) from None
    if not file.is_file():
        raise InputError(f"{file} is not a regular file", hint="export the report again")
    if file.stat().st_size == 0:
        raise InputError(f"{file} is empty", hint="export the report again")


def view(
    con: duckdb.DuckDBPyConnection,
    alias: str,
    table: str,
    source: str,
    wanted: Mapping[tuple[str, str], str],
) -> tuple[dict[str, str], str]:
    """The columns of a table that stands in `source`, and the CREATE VIEW statement over them.

    `source` has a column file_row_number as well, that counts from 0. Whatever DuckDB raises about
    it is the caller's.
    """
    types: dict[str, str] = {}
    # SQLite counts rows from 1.
    lines = ["    p.file_row_number + 1 AS rowid"]
    for name, declared, *_ in con.execute(f"DESCRIBE FROM {source}").fetchall():
        if name.lower() in ("file_row_number", "rowid"):
            continue
        expected = wanted.get((_base(table), name.lower()))
        types[name], value = _cast(f"p.{quote(name)}", str(declared), expected)
        lines.append(f"    {value} AS {quote(name)}")
    statement = (
        f"CREATE VIEW {alias}.main.{quote(table)} AS\nSELECT\n"
        + ",\n".join(lines)
        + f"\nFROM {source} AS p"
    )
    return types, statement


def _base(table: str) -> str:
    return re.sub(r"_V[0-9]+$", "", table, flags=re.IGNORECASE).lower()


def _cast(column: str, declared: str, wanted: str | None) -> tuple[str, str]:
    """The type a column gets, and the expression that gives it."""
    if declared == "UBIGINT":
        # 64-bit ids wrap: SQLite has no unsigned numbers.
        wrapped = (
            f"CASE WHEN {column} < {_HALF} THEN CAST({column} AS BIGINT) "
            f"ELSE CAST({column} - {_HALF} AS BIGINT) - {_HALF - 1} - 1 END"
        )
        return _then("BIGINT", wrapped, wanted)
    if declared in _SMALL or declared == "BOOLEAN":
        return _then("BIGINT", f"CAST({column} AS BIGINT)", wanted)
    if declared.startswith("TIMESTAMP"):  # of any unit
        return _then("BIGINT", f"epoch_ns({column})", wanted)
    if declared == "BLOB" and wanted == "VARCHAR":
        return "VARCHAR", f"coalesce(try(decode({column})), CAST({column} AS VARCHAR))"
    return _then(declared, column, wanted)


def _then(type_: str, value: str, wanted: str | None) -> tuple[str, str]:
    if wanted is None or type_ == wanted:
        return type_, value
    return wanted, f"TRY_CAST({value} AS {wanted})"
