"""Call sites of kernel launches, from a file that another tool wrote (`--callsites`)."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from nsys_sql.adapt import literal, quote
from nsys_sql.errors import InputError

STEP = "call_site"
# Columns by what they are called without case, blanks, `_` and `-`.
_NAMES = {
    "rank": ("rank", "globalrank"),
    "thread": ("thread", "tid", "threadid", "globaltid"),
    "ordinal": ("launchordinal", "ordinal", "launch", "launchindex", "launchid"),
    "call_site": ("callsite", "site"),
    "stack": ("stack", "callstack", "stacktrace", "backtrace"),
}
_OPTIONAL = frozenset({"stack"})
_WANTED = "rank, thread, launch ordinal, call site and, if there is one, stack"


def scan(path: Path) -> str:
    """The table function that reads the file."""
    with path.open("rb") as file:
        is_parquet = file.read(4) == b"PAR1"
    # A name is a pattern to DuckDB: its special characters stand for themselves in brackets.
    name = literal(re.sub(r"([*?\[])", r"[\1]", str(path.absolute())))
    if is_parquet:
        return f"read_parquet({name})"
    return f"read_csv({name}, header = true, all_varchar = true)"


def select(path: Path, describe: Callable[[str], tuple[list[str], int]]) -> str:
    """The file as a query with our column names: what `call_site` of the model is made from.

    `describe` returns the column names of a table function, and its number of rows.
    """
    try:
        source = scan(path)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    names, count = describe(source)
    columns = {re.sub(r"[\s_-]", "", name.lower()): name for name in names}
    chosen = {
        wanted: next((columns[name] for name in known if name in columns), None)
        for wanted, known in _NAMES.items()
    }
    missing = [
        wanted.replace("_", " ")
        for wanted, column in chosen.items()
        if column is None and wanted not in _OPTIONAL
    ]
    if missing:
        raise InputError(
            f"{path} has no column for {', '.join(missing)}; it has {', '.join(names)}",
            hint=f"wanted columns: {_WANTED}",
        )
    if not count:
        raise InputError(f"{path} holds no launch", hint=f"wanted columns: {_WANTED}")
    parts = []
    for wanted, column in chosen.items():
        type_ = "VARCHAR" if wanted in ("call_site", "stack") else "BIGINT"
        value = "NULL" if column is None else f"f.{quote(column)}"
        parts.append(f"    TRY_CAST({value} AS {type_}) AS {wanted}")
    return "SELECT\n" + ",\n".join(parts) + f"\nFROM {source} AS f"
