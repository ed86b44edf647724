"""Rebuild a source table whose values DuckDB refuses, value by value, inside SQLite.

SQLite checks neither types nor encodings: a file may hold text in an integer column, or bytes that
are no UTF-8. DuckDB refuses such a table as soon as it reads one of them. Here text travels as
hex digits and integers only where they are some; everything else counts as missing.
"""

from __future__ import annotations

from collections.abc import Mapping

from nsys_sql.adapt import literal, quote


def value(column: str) -> str:
    """SQLite expression: the value where it is a whole number in any storage class, else NULL."""
    name = quote(column)
    # A column may compare by a collation that its program defined, and nobody else has.
    plain = f"{name} COLLATE BINARY"
    return (
        f"CASE typeof({name}) WHEN 'integer' THEN {name} "
        f"WHEN 'real' THEN CASE WHEN abs({name}) < 9007199254740992 "
        f"AND {plain} = CAST({name} AS INTEGER) THEN CAST({name} AS INTEGER) END "
        f"WHEN 'text' THEN CASE WHEN CAST(CAST({name} AS INTEGER) AS TEXT) = {plain} "
        f"THEN CAST({name} AS INTEGER) END END"
    )


def statement(target: str, alias: str, table: str, columns: Mapping[str, str]) -> str:
    """CREATE a temporary table `target` with the `columns` {name: DuckDB type} of a table."""
    inner = ["rowid AS rowid"]
    outer = ["CAST(rowid AS BIGINT) AS rowid"]
    for column, type_ in columns.items():
        name = quote(column)
        if type_ == "VARCHAR":
            inner.append(f"CASE WHEN {name} IS NOT NULL THEN hex({name}) END AS {name}")
            # Invalid bytes stay as escapes; NUL stays NUL, it marks text that is no name.
            outer.append(
                f"coalesce(try(decode(unhex({name}))), "
                f"replace(CAST(unhex({name}) AS VARCHAR), '\\x00', chr(0))) AS {name}"
            )
        else:
            inner.append(f"{value(column)} AS {name}")
            outer.append(f"CAST({name} AS {type_}) AS {name}")
    query = f"SELECT {', '.join(inner)} FROM {quote(table)}"
    return (
        f"CREATE OR REPLACE TEMP TABLE {quote(target)} AS\nSELECT\n    "
        + ",\n    ".join(outer)
        + f"\nFROM sqlite_query({literal(alias)}, {literal(query)})"
    )


def is_garbled(column: str) -> str:
    """DuckDB expression: the column holds text that is no UTF-8."""
    name = quote(column)
    return f"({name} IS NOT NULL AND try(decode(encode({name}))) IS NULL)"


def probe(columns: Mapping[str, str]) -> str:
    """DuckDB select list that fails, or begins with true, where a column holds a bad value."""
    texts = [is_garbled(name) for name, type_ in columns.items() if type_ == "VARCHAR"]
    rest = [f"max({quote(name)})" for name, type_ in columns.items() if type_ != "VARCHAR"]
    return ", ".join([f"bool_or({' OR '.join(texts) or 'false'})", *rest])


def count_query(table: str, columns: Mapping[str, str]) -> tuple[list[str], str]:
    """The integer columns, and a query for SQLite that counts the values each loses."""
    names = [name for name, type_ in columns.items() if type_ != "VARCHAR"]
    counts = ", ".join(
        f"sum({quote(name)} IS NOT NULL AND ({value(name)}) IS NULL) AS c{number}"
        for number, name in enumerate(names)
    )
    return names, f"SELECT {counts} FROM {quote(table)}" if names else ""
