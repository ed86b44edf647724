"""A model in a connection of the caller's: what it needs of it, and what it leaves as it was.

Everything of the caller's stays: a transaction that is open, the values of variables, objects in
the schema. What stands in the way is told before anything is made.
"""

from __future__ import annotations

import contextlib
import uuid
import weakref
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from nsys_sql.adapt import literal, quote
from nsys_sql.errors import UsageError, one_line

if TYPE_CHECKING:
    import duckdb

# Settings that change what SQL means, with the values that every SQL file here is written for, as
# DuckDB shows them: an order that was never set has another name.
_MEANING = {
    "integer_division": ("false",),
    "default_order": ("ASC", "ASCENDING"),
    "default_null_order": ("NULLS_LAST",),
}
MARK = "nsys_sql_attached"
# A model that lives on in a schema, by the token that stands there.
_OPEN: weakref.WeakValueDictionary[str, Guest] = weakref.WeakValueDictionary()


def is_in_transaction(con: duckdb.DuckDBPyConnection) -> bool:
    """Whether a transaction is open: without one, each statement has another number."""
    import duckdb

    query = "SELECT txid_current()"
    try:
        return con.execute(query).fetchall() == con.execute(query).fetchall()
    except duckdb.Error:  # one that failed, and waits for its ROLLBACK
        return True


class Guest:
    """One model in schema `schema` of the database that connection `con` uses now."""

    def __init__(self, con: duckdb.DuckDBPyConnection, schema: str) -> None:
        self.con = con
        self.schema = schema
        self.token = uuid.uuid4().hex
        self._names: frozenset[str] = frozenset()

    def check(self) -> None:
        """Raise a usage error for a setting under which the recipes would mean something else."""
        names = [*_MEANING]
        query = ", ".join(f"current_setting({literal(name)})::VARCHAR" for name in names)
        for name, value in zip(names, self._rows(f"SELECT {query}")[0], strict=True):
            if value not in _MEANING[name]:
                raise UsageError(
                    f"the connection has {name} = {value}, under which SQL means something else",
                    hint=f"RESET {name}, or attach to a connection of its own",
                )

    def is_locked(self) -> bool:
        """Whether the caller has locked the settings."""
        return bool(self._rows("SELECT current_setting('lock_configuration')")[0][0])

    def prepare(self) -> None:
        """What must hold before anything is attached."""
        self.check()
        if is_in_transaction(self.con):
            raise UsageError(
                "a transaction is open on the connection", hint="COMMIT or ROLLBACK it first"
            )
        [(name, is_read_only)] = self._rows(
            "SELECT database_name, readonly FROM duckdb_databases()"
            " WHERE database_name = current_database()"
        )
        database = str(name)
        if is_read_only:
            raise UsageError(
                f"database {database} is read-only: nothing can be made in it",
                hint="attach to a connection of its own, duckdb.connect()",
            )
        if database.lower() == self.schema.lower():
            raise UsageError(
                f"a database called {database} makes names like {self.schema}.kernel ambiguous",
                hint="give another schema=",
            )

    def claim(self, names: Iterable[str], trace: str) -> None:
        """Take the schema for the objects `names`, or raise a usage error where it is in use.

        What a model that is closed by now has left under these names is removed.
        """
        self._names = frozenset(name.lower() for name in names)
        found = self._objects()
        if taken := [name for _, name in found if name.lower() in self._names]:
            token, of = self._owner()
            if token is None:
                raise UsageError(
                    f"schema {self.schema} holds objects of yours that would be replaced: "
                    f"{', '.join(sorted(taken)[:3])}",
                    hint="give another schema=",
                )
            if token in _OPEN:
                raise UsageError(
                    f"schema {self.schema} holds a model of {of} that is open",
                    hint="close it first, or give another schema=",
                )
            self._drop(found)
        self.con.execute(f"CREATE SCHEMA IF NOT EXISTS {self.schema}")
        self.con.execute(
            f"CREATE OR REPLACE TABLE {self.schema}.{MARK} AS"
            f" SELECT {literal(trace)} AS trace, {literal(self.token)} AS token"
        )
        _OPEN[self.token] = self

    def release(self) -> None:
        """The model is closed: what it made may be replaced from now on."""
        _OPEN.pop(self.token, None)

    def undo(self) -> None:
        """Remove what was made so far; a schema that holds nothing else goes, too."""
        import duckdb

        if self.token not in _OPEN:
            return
        self.release()
        with contextlib.suppress(duckdb.Error):
            self._drop(self._objects())
            self.con.execute(f"DROP TABLE IF EXISTS {self.schema}.{MARK}")
            if self.schema.lower() != "main" and not self._objects():
                self.con.execute(f"DROP SCHEMA IF EXISTS {self.schema}")

    @contextlib.contextmanager
    def own_variables(self, names: Iterable[str]) -> Iterator[None]:
        """Variables of the model's own while this lasts: the caller's are unset and come back."""
        import duckdb

        names = sorted(names)
        asked = ", ".join(f"getvariable({literal(name)}) IS NOT NULL" for name in names)
        is_set = self._rows(f"SELECT {asked}")[0] if names else ()
        kept = [name for name, there in zip(names, is_set, strict=True) if there]
        for name in kept:
            self.con.execute(f"SET VARIABLE nsys_sql_kept_{name} = getvariable({literal(name)})")
            self.con.execute(f"RESET VARIABLE {name}")
        try:
            yield
        finally:
            with contextlib.suppress(duckdb.Error):  # a transaction that failed takes nothing more
                for name in names:
                    self.con.execute(f"RESET VARIABLE {name}")
                for name in kept:
                    place = f"nsys_sql_kept_{name}"
                    self.con.execute(f"SET VARIABLE {name} = getvariable({literal(place)})")
                    self.con.execute(f"RESET VARIABLE {place}")

    @contextlib.contextmanager
    def telling(self) -> Iterator[None]:
        """An error of DuckDB's about the connection itself, as one of ours."""
        import duckdb

        try:
            yield
        except duckdb.InterruptException:
            raise
        except duckdb.Error as error:
            raise UsageError(
                f"the connection refuses: {one_line(error)}",
                hint="a model needs it as it was when it was attached: the same database in use, "
                "what was made not rolled back, one thread at a time",
            ) from error

    def has_result(self, table: str) -> bool:
        """Whether a result is still there: a ROLLBACK takes those of its transaction away."""
        query = "SELECT 1 FROM duckdb_tables() WHERE temporary AND table_name = "
        return bool(self._rows(query + literal(table)))

    # ------------------------------------------------------------------ the schema

    def _rows(self, query: str) -> list[tuple[object, ...]]:
        return self.con.execute(query).fetchall()

    def _objects(self) -> list[tuple[str, str]]:
        """What the schema holds, as (kind for DROP, name)."""
        here = f"database_name = current_database() AND schema_name = {literal(self.schema)}"
        rows = self._rows(
            f"SELECT 'TABLE', table_name FROM duckdb_tables() WHERE {here}"
            f" UNION ALL SELECT 'VIEW', view_name FROM duckdb_views() WHERE {here} AND NOT internal"
            " UNION ALL SELECT DISTINCT"
            " CASE function_type WHEN 'macro' THEN 'MACRO' ELSE 'MACRO TABLE' END, function_name"
            f" FROM duckdb_functions() WHERE {here} AND function_type IN ('macro', 'table_macro')"
            " AND NOT internal"
        )
        return [(str(kind), str(name)) for kind, name in rows]

    def _drop(self, objects: Iterable[tuple[str, str]]) -> None:
        for kind, name in objects:
            if name.lower() in self._names:
                self.con.execute(f"DROP {kind} {self.schema}.{quote(name)}")

    def _owner(self) -> tuple[str | None, str]:
        """The token of the model that a schema was made by, and its trace."""
        import duckdb

        try:
            [(token, trace)] = self._rows(f"SELECT token, trace FROM {self.schema}.{MARK}")
        except (duckdb.Error, ValueError):
            return None, ""
        return str(token), str(trace)
