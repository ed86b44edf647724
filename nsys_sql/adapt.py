"""Fit an adapter, written for the newest export, to the tables one trace really has.

Pure text to text. sqlglot parses the adapter and tells where its identifiers stand; the text is
then edited in place, so what `show` prints keeps the layout and the comments of the file.

>>> from nsys_sql.catalog import Optional
>>> adapt(
...     'SELECT t."id" AS id, t."name" AS name FROM trace."T" AS t',
...     {"T": {"id": "BIGINT"}},
...     [Optional("T", "name", "VARCHAR")],
... )
'SELECT t."id" AS id, CAST(NULL AS VARCHAR) AS name FROM trace."T" AS t'
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from nsys_sql.catalog import Column, Optional
from nsys_sql.errors import InputError, NsysSqlError

if TYPE_CHECKING:
    from sqlglot import exp

CATALOG = "trace"


def quote(name: str) -> str:
    """A SQL identifier, quoted: the one place that does so."""
    return '"' + name.replace('"', '""') + '"'


def literal(value: str) -> str:
    """A SQL string literal: the one place that does so."""
    return "'" + value.replace("'", "''") + "'"


@dataclass(frozen=True, slots=True)
class Use:
    """What an adapter reads of one source table: lower-case column name to expected type."""

    table: str
    columns: Mapping[str, str]


def warm_up() -> None:
    """Import sqlglot in a thread: a tenth of a second, while DuckDB loads its extension."""

    def load() -> None:
        with contextlib.suppress(Exception):  # whoever needs it meets the error itself
            _parse("SELECT 1", "")

    threading.Thread(target=load, name="import-sqlglot", daemon=True).start()


@lru_cache(maxsize=256)
def _parse(sql: str, where: str) -> exp.Expr:
    import sqlglot
    from sqlglot.errors import SqlglotError

    logging.getLogger("sqlglot").setLevel(logging.ERROR)
    try:
        return sqlglot.parse_one(sql, read="duckdb")
    except SqlglotError as error:
        raise NsysSqlError(f"{where} cannot be parsed: {error}") from error


def _sources(tree: exp.Expr, where: str) -> dict[str, exp.Table]:
    """The source tables of an adapter by alias. Aliases are unique within a file, by rule."""
    from sqlglot import exp

    found: dict[str, exp.Table] = {}
    for table in tree.find_all(exp.Table):
        if table.db.lower() != CATALOG:
            continue
        alias = table.alias.lower()
        if not alias or alias in found:
            raise NsysSqlError(f"{where}: table {table.name} needs an alias of its own")
        found[alias] = table
    return found


def _expected(
    tree: exp.Expr,
    aliases: Mapping[str, exp.Table],
    optional: Iterable[Optional],
    columns: Sequence[Column],
) -> dict[tuple[str, str], str]:
    """The type each (table, column), lower case, should have: declared, projected, or BIGINT."""
    from sqlglot import exp

    types: dict[tuple[str, str], str] = {}
    declared = {column.name.lower(): column.type for column in columns}
    for select in tree.find_all(exp.Select):
        for item in select.expressions:
            inner = item.unalias()
            if isinstance(inner, exp.Column) and inner.table.lower() in aliases:
                table = aliases[inner.table.lower()].name.lower()
                wanted = declared.get(item.alias_or_name.lower())
                if wanted:
                    types[table, inner.name.lower()] = wanted
    for each in optional:
        if each.column and each.type:
            types[each.table.lower(), each.column.lower()] = each.type
    return types


def uses(
    sql: str,
    optional: Iterable[Optional] = (),
    columns: Sequence[Column] = (),
    where: str = "adapter",
) -> tuple[Use, ...]:
    """The source tables of an adapter, with the columns it reads and the types it expects."""
    from sqlglot import exp

    tree = _parse(sql, where)
    aliases = _sources(tree, where)
    types = _expected(tree, aliases, optional, columns)
    found: dict[str, dict[str, str]] = {table.name: {} for table in aliases.values()}
    for column in tree.find_all(exp.Column):
        table = aliases.get(column.table.lower())
        if table is not None:
            key = column.name.lower()
            found[table.name][key] = types.get((table.name.lower(), key), "BIGINT")
    return tuple(Use(table, read) for table, read in found.items())


def _span(node: exp.Expr, where: str) -> tuple[int, int]:
    meta = node.meta
    if "start" not in meta or "end" not in meta:
        raise NsysSqlError(f"{where}: sqlglot gave no position for {node.sql('duckdb')}")
    return int(meta["start"]), int(meta["end"]) + 1


def adapt(
    sql: str,
    tables: Mapping[str, Mapping[str, str]],
    optional: Iterable[Optional] = (),
    references: Mapping[str, str] | None = None,
    columns: Sequence[Column] = (),
    where: str = "adapter",
) -> str:
    """Return `sql` with what the trace lacks replaced by typed NULLs and empty relations.

    `tables` is {table: {column: type}} of the trace, under the names the adapters use; `references`
    says how to write a table that is found elsewhere (a renamed or a rebuilt one). Names compare
    without case. Something absent that is not `optional` is an InputError.
    """
    return _adapt(
        sql,
        tuple(
            (name.lower(), frozenset(column.lower() for column in found))
            for name, found in tables.items()
        ),
        tuple(optional),
        tuple((name.lower(), text) for name, text in (references or {}).items()),
        tuple(columns),
        where,
    )


@lru_cache(maxsize=1024)
def _adapt(
    sql: str,
    tables: tuple[tuple[str, frozenset[str]], ...],
    optional: tuple[Optional, ...],
    references: tuple[tuple[str, str], ...],
    columns: tuple[Column, ...],
    where: str,
) -> str:
    """The same, remembered: a survey opens many traces of one version, a model plans many times."""
    from sqlglot import exp

    present, elsewhere = dict(tables), dict(references)
    may_lack = {
        (each.table.lower(), each.column.lower() if each.column else None) for each in optional
    }
    tree = _parse(sql, where)
    aliases = _sources(tree, where)
    types = _expected(tree, aliases, optional, columns)

    def missing(what: str) -> InputError:
        return InputError(
            f"{what} is missing from this trace and is not optional",
            hint=f"{where} needs it: export the report again, with all its tables",
        )

    if (
        columns
        and isinstance(tree, exp.Select)
        and (origin := tree.find(exp.From)) is not None
        and isinstance(source := origin.this, exp.Table)
        and source.db.lower() == CATALOG
        and source.name.lower() not in present
        and (source.name.lower(), None) in may_lack
    ):
        nulls = [f"    CAST(NULL AS {each.type}) AS {each.name}" for each in columns]
        return f"-- this trace has no {source.name}\nSELECT\n" + ",\n".join(nulls) + "\nWHERE false"

    edits: list[tuple[int, int, str]] = []
    used: dict[str, dict[str, str]] = {alias: {} for alias in aliases}
    for column in tree.find_all(exp.Column):
        alias = column.table.lower()
        if alias not in aliases:
            continue
        table = aliases[alias].name
        key = (table.lower(), column.name.lower())
        expected = types.get(key, "BIGINT")
        used[alias][column.name] = expected
        if table.lower() not in present or key[1] == "rowid" or key[1] in present[table.lower()]:
            continue
        if key not in may_lack:
            raise missing(f"{table}.{column.name}")
        start, _ = _span(column.args["table"], where)
        _, end = _span(column.this, where)
        edits.append((start, end, f"CAST(NULL AS {expected})"))
    for alias, node in aliases.items():
        start, _ = _span(node.args["db"], where)
        _, end = _span(node.this, where)
        if node.name.lower() in present:
            if node.name.lower() in elsewhere:
                edits.append((start, end, elsewhere[node.name.lower()]))
            continue
        if (node.name.lower(), None) not in may_lack:
            raise missing(f"table {node.name}")
        nulls = [f"CAST(NULL AS {type_}) AS {quote(name)}" for name, type_ in used[alias].items()]
        edits.append((start, end, f"(SELECT {', '.join(nulls) or 'NULL'} WHERE false)"))
    for start, end, text in sorted(edits, reverse=True):
        sql = sql[:start] + text + sql[end:]
    return sql
