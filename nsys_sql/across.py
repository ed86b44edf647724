"""Facts of several partitions in one DuckDB, and SQL across them: steps, and results by name.

What a survey of ranks and a comparison of runs share. A step is one SELECT that becomes a table of
the schema when something reads it; a result is one SELECT with checks.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from nsys_sql import catalog, resources, source, userfacts
from nsys_sql.catalog import Column, Param, SqlFile, near
from nsys_sql.errors import InputError, NsysSqlError, UsageError, out_of_memory
from nsys_sql.options import param_value
from nsys_sql.results import Check, offending

if TYPE_CHECKING:
    import duckdb

    from nsys_sql.userfacts import Loaded

_SHOWN_ROWS = 3
_Own = TypeVar("_Own", bound="Across")


@dataclass(frozen=True, slots=True)
class Named:
    """One result by name."""

    name: str
    question: str
    columns: tuple[Column, ...]
    rows: list[tuple[Any, ...]]
    checks: tuple[Check, ...] = ()
    units: Mapping[str, str] = field(default_factory=dict)  # of figures below each other

    def dicts(self) -> list[dict[str, Any]]:
        """The rows by column name, as pictures want them."""
        names = [column.name for column in self.columns]
        return [dict(zip(names, row, strict=True)) for row in self.rows]

    def readable(self) -> Named:
        """The same for a person: figures of several units below each other, each in its own."""
        rows = userfacts.readable(self.columns, self.rows, self.units)
        return dataclasses.replace(self, rows=rows)


@dataclass(frozen=True, slots=True)
class Files:
    """The SQL files of one kind of question, each by name."""

    steps: Mapping[str, SqlFile]
    results: Mapping[str, SqlFile]

    def parameters(self) -> dict[str, Param]:
        """Every parameter of the files."""
        return {p.name: p for file in self.all() for p in file.params}

    def values(self, given: Mapping[str, object], title: str) -> dict[str, str]:
        """The parameters given as SQL text; unknown or malformed ones are usage errors."""
        known = self.parameters()
        for name in given:
            if name not in known:
                raise UsageError(
                    f"there is no parameter {name!r} in {title}",
                    hint=near(name, known) or f"parameters: {', '.join(sorted(known))}",
                )
        return {name: param_value(known[name], value) for name, value in given.items()}

    def all(self) -> tuple[SqlFile, ...]:
        """Steps, then results."""
        return (*self.steps.values(), *self.results.values())


@lru_cache(maxsize=2)
def files(steps: str, results: str) -> Files:
    """The files of two folders of sql/."""
    found = []
    for kind in (steps, results):
        folder = resources.root() / "sql" / kind
        parsed = (catalog.parse(kind, path) for path in sorted(folder.glob("*.sql")))
        found.append({file.name: file for file in parsed})
    return Files(*found)


def references(schema: str, sql: str) -> list[str]:
    """The relations of a schema that SQL names, in order."""
    return list(dict.fromkeys(re.findall(rf"\b{schema}\.(\w+)", sql)))


class Across:
    """A DuckDB whose schema `schema` answers results: a context manager. `con` holds everything."""

    schema: ClassVar[str]
    command: ClassVar[str]  # what asks for it on the command line
    title: ClassVar[str]  # what it is called in messages, with its article
    order: ClassVar[tuple[str, ...]]  # its results
    sql: Files

    def __init__(
        self, threads: int | None, memory_limit: str | None, temp_directory: str | None
    ) -> None:
        import duckdb

        from nsys_sql import attached

        self.notes: list[str] = []
        self.own: dict[str, list[Check]] = {}  # results of the user's recipes, with their checks
        self._units: Mapping[str, Mapping[str, str]] = {}
        self._built: set[str] = set()
        self.con = duckdb.connect()
        self._spill = attached.spill_folder(temp_directory)
        try:
            attached.configure(self.con, self._spill, threads, memory_limit)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection."""
        self.con.close()
        source.remove(self._spill)

    def __enter__(self: _Own) -> _Own:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _set_parameters(self, params: Mapping[str, object]) -> None:
        for name, value in self.sql.values(params, self.title).items():
            self.con.execute(f"SET VARIABLE {name} = {value}")

    def _create_tables(self, tables: Mapping[str, str]) -> None:
        """The schema with its own tables, and the macro that all steps share."""
        macro = (resources.root() / "sql" / "macros" / "statistic.sql").read_text(encoding="utf-8")
        self.con.execute("CREATE SCHEMA nsys")
        self.con.execute(macro)
        self.con.execute(f"CREATE SCHEMA {self.schema}")
        for name, columns in tables.items():
            self.con.execute(f"CREATE TABLE {self.schema}.{name} ({columns})")

    def _insert(self, table: str, rows: Iterable[Sequence[object]]) -> None:
        listed = [list(row) for row in rows]
        if listed:
            marks = ", ".join("?" for _ in listed[0])
            values = ", ".join(f"({marks})" for _ in listed)
            flat = [value for row in listed for value in row]
            self.con.execute(f"INSERT INTO {self.schema}.{table} VALUES {values}", flat)

    def _take(self, loaded: Loaded) -> None:
        """Answer what recipes of the user's make of the traces, like any other result."""
        self.notes += loaded.notes
        self.own, self._units = loaded.checks, loaded.units
        self.sql = Files(self.sql.steps, {**self.sql.results, **loaded.results})

    def prepare(self, *names: str) -> None:
        """Create steps, with those they read."""
        for name in names:
            if name not in self._built:
                step = self.sql.steps[name]
                self._build(step)
                self._run(step, f"CREATE TABLE {self.schema}.{name} AS\n{step.body}")
                self._built.add(name)

    def _build(self, file: SqlFile) -> None:
        """Create the steps that a file reads, in order of need."""
        named = references(self.schema, catalog.code(file.body))
        self.prepare(*(name for name in named if name in self.sql.steps))

    def _run(self, file: SqlFile, sql: str) -> duckdb.DuckDBPyConnection:
        import duckdb

        try:
            return self.con.execute(sql)
        except duckdb.Error as error:
            text = " ".join(str(error).split())
            if (lacking := out_of_memory(error)) is not None:
                raise lacking from error
            if isinstance(error, duckdb.OutOfRangeException):
                raise InputError(
                    f"a trace holds a number that no report can have: {text}",
                    hint="`nsys-sql inspect` each of them, and leave that one out",
                ) from error
            raise NsysSqlError(f"{file.label} failed: {text}") from error

    def result(self, name: str) -> Named:
        """One of the results by name."""
        if name not in self.sql.results:
            raise UsageError(
                f"{self.title} has no result {name!r}",
                hint=near(name, self.sql.results)
                or f"results: {', '.join((*self.order, *self.own))}",
            )
        file = self.sql.results[name]
        self._build(file)
        table = userfacts.table(name)
        self._run(file, f"CREATE OR REPLACE TEMP TABLE {table} AS\n{file.body}")
        rows = self.con.execute(f"SELECT * FROM {table}").fetchall()
        checks = (*self._check(file, table, len(rows)), *self.own.get(name, ()))
        return Named(name, file.question, file.columns, rows, checks, self._units.get(name, {}))

    def _check(self, file: SqlFile, table: str, total: int) -> Iterable[Check]:
        for status, each in (
            *(("fail", i) for i in file.invariants),
            *(("warn", w) for w in file.warnings),
        ):
            cursor = self._run(file, f"SELECT * FROM {table} WHERE ({each.expression}) IS NOT TRUE")
            names = [column[0] for column in cursor.description or ()]
            bad = cursor.fetchall()
            detail = offending(names, bad[:_SHOWN_ROWS], len(bad), total)
            yield Check(each.name, status if bad else "ok", detail, f"{self.command} {file.name}")
