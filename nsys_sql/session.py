"""Models: execute the plans of an opened trace in DuckDB, and check what comes out."""

from __future__ import annotations

import contextlib
import json
import os
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any

import duckdb

from nsys_sql import (
    callsites,
    inputs,
    metrics,
    oddrows,
    output,
    parquet,
    reference,
    sandbox,
    scrub,
    source,
    userfiles,
)
from nsys_sql import plan as planning
from nsys_sql.adapt import literal, quote
from nsys_sql.attached import BAD_VALUE, Attached, damage
from nsys_sql.catalog import Catalog, Invariant, SqlFile, near
from nsys_sql.errors import (
    AnswerError,
    InputError,
    NsysSqlError,
    UsageError,
    one_line,
    out_of_memory,
)
from nsys_sql.guest import Guest
from nsys_sql.options import Options, need_text
from nsys_sql.plan import Planner, Statement
from nsys_sql.results import Check, Result, TraceInfo, offending

# Recipes that still answer where no window is steady.
ANSWERS_WITHOUT_STEADY = frozenset({"iterations", "anchors"})
_SHOWN_ROWS = 3
# Statements that may take long: what they do is told.
_LONG = frozenset({"scrub", "table", "step", "stored", "recipe"})


@lru_cache(maxsize=8)
def _taxonomy_sql(paths: tuple[str, ...]) -> tuple[str, ...]:
    from nsys_sql import taxonomy

    return tuple(taxonomy.macro_sql(taxonomy.load_rules(paths)))


# ---------------------------------------------------------------------------- the model


@dataclass(frozen=True, slots=True)
class _Ahead:
    """The plans of what was foreseen, and the columns to keep: {step: columns}."""

    scrubbed: frozenset[str]
    plans: Mapping[str, tuple[Statement, ...]]
    kept: Mapping[str, tuple[str, ...]]


@dataclass(slots=True)
class _State:
    """What a model has done so far."""

    built: dict[str, str] = field(default_factory=dict)
    results: dict[str, tuple[str, str]] = field(default_factory=dict)
    variables: set[str] = field(default_factory=set)
    scrubbed: set[str] = field(default_factory=set)
    checks: dict[tuple[str, str], Check] = field(default_factory=dict)
    notes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    told: dict[tuple[str, ...], tuple[str, ...]] = field(default_factory=dict)
    vetted: set[str] = field(default_factory=set)
    unfit: dict[str, str] = field(default_factory=dict)
    objection: str | None = None
    objections: list[tuple[AnswerError, bool]] = field(default_factory=list)
    forms: dict[str, str] = field(default_factory=dict)
    foreseen: dict[str, Mapping[str, object]] = field(default_factory=dict)
    ahead: _Ahead | None = None
    odd: list[str] = field(default_factory=list)
    is_locked: bool = False


class Model:
    """An opened trace with its canonical relations, steps and recipes: a context manager.

    `con` is the DuckDB connection that holds everything; `trace` says what the file is.
    """

    def __init__(
        self,
        con: duckdb.DuckDBPyConnection,
        path: Path,
        options: Options,
        catalog: Catalog,
        *,
        schema: str = planning.SCHEMA,
        owns_connection: bool = True,
        all_tables: bool = False,
        file: Path | None = None,
    ) -> None:
        self.con = con
        self.options = options
        self.catalog = catalog
        self._path = path
        self._owns_connection = owns_connection
        self._guest = None if owns_connection else Guest(con, schema)
        self._state = _State()
        self._is_closed = False
        if self._guest is not None:
            self._guest.prepare()
            self._state.is_locked = self._guest.is_locked()
        try:
            self._file = Attached(con, path, options, catalog, owns_connection, file)
        except UnicodeDecodeError as error:  # a message of SQLite's quotes what is damaged
            raise InputError(
                f"{path} is damaged or truncated", hint="copy or export it again"
            ) from error
        try:
            self._open(schema, all_tables)
        except BaseException:
            self.close()
            raise

    # ------------------------------------------------------------------ open and close

    def _open(self, schema: str, all_tables: bool) -> None:
        taxonomy = partial(_taxonomy_sql, self.options.taxonomy)
        if self.options.taxonomy:
            taxonomy()  # a bad file is told at once
        self.planner = Planner(
            self.catalog,
            self._file.shape,
            self.options,
            taxonomy,
            schema,
            self._file.alias,
            all_tables,
            self._given(),
            all_tables or not self._owns_connection,
        )
        self._info = self._file.info(self.planner)
        self._check_strings()
        for text in self.options.without_effect():
            self._warn(text)
        for problem in self.catalog.problems:
            self._warn(problem)

    def _check_strings(self) -> None:
        """Refuse string ids that stand there twice: every row with such a name would, too."""
        shape = self.planner.shape
        table = shape.find("StringIds")
        if table is None or shape.relations is not None or not shape.has(table, "id"):
            return
        query = (
            "SELECT min(id) AS id FROM (SELECT id FROM (SELECT {} AS id FROM {}) AS s "
            "WHERE id IS NOT NULL GROUP BY id HAVING count(*) > 1) AS t"
        )
        if shape.can_scrub:
            keys = f"FROM pragma_table_info({literal(table)}) WHERE pk > 0 AND lower(name) = 'id'"
            if int(self._sqlite(f"SELECT count(*) AS keys {keys}")[0][0]):
                return  # SQLite sees to it
            found = self._sqlite(query.format(scrub.value("id"), quote(table)))[0][0]
        else:
            self._file.need([table])
            ids = query.format("id", f"{self._file.alias}.{quote(table)}")
            try:
                found = self._rows(ids)[0][0]
            except duckdb.InterruptException:
                raise
            except duckdb.Error as error:  # its values may read well where its statistics lie
                member = self._file.members.get(table)
                raise (
                    parquet.damaged(member, error) if member else self._damage(error)
                ) or error from None
        if found is not None:
            raise InputError(
                f"{self._path}: {table} holds the id {found} twice, which no export has",
                hint="export the report again",
            )

    def _given(self) -> dict[str, str]:
        """The queries that make the steps whose rows come with an option."""
        options, found = self.options, dict[str, str]()
        if options.reference_steps is not None:
            found[reference.STEP] = reference.select(reference.read(options.reference_steps))
        if options.callsites is not None:
            path = Path(options.callsites)
            try:
                found[callsites.STEP] = callsites.select(path, self._describe)
            except (duckdb.Error, UnicodeEncodeError) as error:
                text = f"{path} cannot be read as Parquet or CSV: {one_line(error)}"
                raise InputError(text) from None
        if options.metrics_from is not None:
            found[metrics.STEP] = self._metrics_of(Path(options.metrics_from))
        return found

    def _describe(self, scan: str) -> tuple[list[str], int]:
        names = [row[0] for row in self._execute(f"DESCRIBE SELECT * FROM {scan}").fetchall()]
        return names, int(self._execute(f"SELECT count(*) FROM {scan}").fetchall()[0][0])

    def _metrics_of(self, path: Path) -> str:
        """The metrics of another capture as a query: joined by name, so only sums matter."""
        alone = replace(self.options, reference_steps=None, callsites=None, metrics_from=None)
        with open(path, alone) as other:
            other._need(other.catalog.recipe("metrics"))
            other._build(["metric_operator"])
            rows = other._execute(metrics.QUERY).fetchall()
            other._check_unchanged()
        for text in other.trace.warnings:
            self._warn(f"{path}: {text}")
        return metrics.select(rows)

    def close(self) -> None:
        """Detach the trace, close our own connection, remove private copies. May be repeated."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._guest is not None:
            self._guest.release()
        self._file.close()

    def __enter__(self) -> Model:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # ------------------------------------------------------------------ what the trace is

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        """Tell damage of the trace by its name, whichever query meets it."""
        try:
            yield
        except duckdb.Error as error:
            if not self._file.members and (found := damage(self._path, error)) is not None:
                raise found from error
            raise

    def _execute(self, sql: str) -> duckdb.DuckDBPyConnection:
        with self._reading():
            return self.con.execute(sql)

    def _sqlite(self, query: str) -> list[tuple[Any, ...]]:
        """Rows of a query inside SQLite, where the trace is such a file; values come as text."""
        with self._reading():
            return self._file.sqlite(query)

    def _rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self._execute(sql).fetchall()

    def _warn(self, text: str) -> None:
        self._file.warn(text)

    @property
    def trace(self) -> TraceInfo:
        """What is known of the trace; warnings grow as it is read."""
        return replace(self._info, warnings=tuple(self._file.warnings))

    @property
    def checks(self) -> tuple[Check, ...]:
        """The checks of everything that was run, in the order of running."""
        return tuple(self._state.checks.values())

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes of everything that was run, each once."""
        return tuple(dict.fromkeys(chain(*self._state.notes.values())))

    def host(self) -> str | None:
        """The name of the host that was profiled: told when asked, never part of a result."""
        with self._reading():
            return self._file.host()

    def row_counts(self) -> list[tuple[str, int]]:
        """Every table of the trace with its number of rows: reads all of them."""
        with self._reading():
            return self._file.row_counts()

    def why_not(self, recipe: str) -> str | None:
        """Why the trace cannot answer a recipe, as far as its tables tell; None if it may."""
        try:
            self._need(self.catalog.recipe(recipe))
        except AnswerError as error:
            return error.message
        return None

    def _need(self, recipe: SqlFile) -> None:
        """Raise when a relation the recipe needs was not captured."""
        for relations in recipe.needs:
            if not any(self.planner.is_present(name) for name in relations):
                has_calls = self.planner.is_present("api_call")
                message, hint = planning.not_captured(relations, has_calls)
                raise AnswerError(f"{recipe.name}: {message}", hint=hint)

    # ------------------------------------------------------------------ execution

    def _planner(self) -> Planner:
        shape = replace(self.planner.shape, scrubbed=frozenset(self._state.scrubbed))
        return replace(self.planner, shape=shape)

    def _is_made(self, statement: Statement) -> bool:
        """Whether what a statement makes is there, as it would make it now."""
        if not statement.key:
            return False
        if statement.kind == "recipe" and statement.file is not None:
            return self._state.results.get(statement.file.name, ("",))[0] == statement.key
        return self._state.built.get(_slot(statement)) == statement.key

    @contextlib.contextmanager
    def _optimizing(self, statement: Statement) -> Iterator[None]:
        """Run a statement without DuckDB's optimizer where its file says so."""
        if self._state.is_locked or statement.file is None or not statement.file.is_unoptimized:
            yield
            return
        self._execute("PRAGMA disable_optimizer")
        try:
            yield
        finally:
            self._execute("PRAGMA enable_optimizer")

    def _make(self, statement: Statement) -> bool:
        """Execute one statement of a plan unless it is done; False when the plan is outdated."""
        built, forms = self._state.built, self._state.forms
        is_step = statement.kind in ("step", "stored")
        slot = _slot(statement)
        if self._is_made(statement):
            return True
        if statement.kind == "setting" and self._state.is_locked:
            return True
        if statement.kind == "variable":
            self._state.variables.add(statement.name)
        self._file.need(statement.tables)
        try:
            if is_step and forms.get(statement.name, statement.form) != statement.form:
                old = f"{self.planner.schema}.{statement.name}"
                self._execute(f"DROP {forms.pop(statement.name)} IF EXISTS {old}")
            with self._optimizing(statement):
                self._execute(statement.sql)
        except duckdb.InterruptException:
            raise
        except BAD_VALUE as error:
            if not self._scrub_failing(statement.tables):
                raise self._failure(statement, error) from error
            return False
        except duckdb.Error as error:
            raise self._failure(statement, error) from error
        if statement.kind == "table" and self._is_garbled(statement):
            return not self._scrub_failing(statement.tables)
        if statement.key:
            built[slot] = statement.key
        if is_step:
            forms[statement.name] = statement.form
        if statement.kind == "scrub":
            self._count_scrubbed(statement.name)
        return True

    def _is_garbled(self, statement: Statement) -> bool:
        """Whether a new table holds text that is no UTF-8: DuckDB may let it in, but not out."""
        columns = statement.file.columns if statement.file else ()
        texts = [column.name for column in columns if column.type == "VARCHAR"]
        if not texts or not statement.tables:
            return False
        table = f"{self.planner.schema}.{statement.name}"
        where = " OR ".join(map(scrub.is_garbled, texts))
        return bool(self._execute(f"SELECT 1 FROM {table} WHERE {where} LIMIT 1").fetchall())

    def _failure(self, statement: Statement, error: Exception) -> NsysSqlError:
        text = one_line(error)
        if (damaged := self._damage(error, statement.tables)) is not None:
            return damaged
        if (unwritten := output.failure(error)) is not None:
            return unwritten
        if (lacking := out_of_memory(error)) is not None:
            what = str(self._path)
            if statement.file is not None and statement.file.is_user:
                what = f"{statement.file.label} on {what}"
            return InputError(
                f"{what}: {lacking}",
                hint="raise --memory-limit, or give a --temp-directory with room",
            )
        if statement.file is not None and statement.file.is_user:
            return userfiles.failed(statement.file, str(error))
        is_cast = isinstance(error, duckdb.ConversionException) and "out of range" in text
        if isinstance(error, duckdb.OutOfRangeException) or is_cast:
            return InputError(
                f"{self._path} holds a time or an id that no report can have: {text}",
                hint="copy or export it again",
            )
        where = statement.file.label if statement.file else statement.name
        return NsysSqlError(f"{where} failed on {self._path}: {text}")

    def _damage(self, error: Exception, tables: Iterable[str] = ()) -> InputError | None:
        """The input error behind a statement that failed, if the trace, or a file of it, is bad."""
        members, about_sql = self._file.members, (duckdb.ProgrammingError, duckdb.DataError)
        is_unread = isinstance(error, duckdb.InvalidInputException)
        if members and (is_unread or not isinstance(error, about_sql)):
            first = [members[table] for table in tables if table in members]
            try:
                parquet.check(self.con, dict.fromkeys([*first, *members.values()]))
            except InputError as found:
                return found
            except duckdb.Error:
                return None
        return damage(self._path, error)

    def _scrub_failing(self, tables: Iterable[str]) -> bool:
        """Find those of the source tables that hold bad values; mark them to be rebuilt."""
        found = False
        if not self.planner.shape.can_scrub:
            return False
        for table in tables:
            if table in self._state.scrubbed or self.planner.is_odd(table):
                continue
            probe = scrub.probe(self.planner.used_columns(table))
            try:
                place = f"{self._file.alias}.{quote(table)}"
                row = self._execute(f"SELECT {probe} FROM {place}").fetchone()
                is_bad = row is not None and bool(row[0])
            except BAD_VALUE:
                is_bad = True
            if is_bad:
                self._state.scrubbed.add(table)
                found = True
        return found

    def _count_scrubbed(self, table: str) -> None:
        names, query = scrub.count_query(table, self.planner.used_columns(table))
        if not names:
            return
        for name, count in zip(names, self._sqlite(query)[0], strict=True):
            if int(count or 0):
                self._warn(
                    f"{int(count)} values of {table}.{name} are not integers and count as missing"
                )

    def _check_unchanged(self) -> None:
        self._file.check_unchanged()

    def _after(self, step: str, recipes: Sequence[SqlFile], needed: set[str]) -> None:
        """What to say when a step leaves nothing to answer with."""
        schema = self.planner.schema
        sqlite = self._sqlite if self.planner.shape.can_scrub else None
        for text in oddrows.told(step, self.planner, self._rows, sqlite):
            self._warn(text)
            self._state.odd = list(dict.fromkeys([*self._state.odd, text]))
        if step == "anchor_choice" and self.options.is_auto and "iteration" in needed:
            cursor = self._execute(f"SELECT * FROM {schema}.anchor_choice")
            names = [each[0] for each in cursor.description or ()]
            choice = dict(zip(names, cursor.fetchone() or (), strict=False))
            if choice.get("status") != "chosen":
                message = str(choice.get("message") or "no anchor was found")
                hint: str | None = "`nsys-sql run anchors TRACE` lists what could be one"
                if self._file.built_with:
                    hint = f"it was built with {self._file.built_with}: give that again, or {hint}"
                if not self._is_driven():
                    hint = planning.not_captured(["kernel"], self.planner.is_present("api_call"))[1]
                    odd = (text.partition(":")[0] for text in self._state.odd)
                    message = "; ".join([message, *odd])
                self._object(recipes, AnswerError(message, hint=hint), tolerated=False)
        elif step == "op":
            self._need_device()
        elif step == "call_site_thread":
            found = self._rows(f"SELECT message FROM {schema}.{step} WHERE message IS NOT NULL")
            if (messages := [row[0] for row in found]) and recipes:
                raise AnswerError(
                    f"the call sites do not fit this trace: {'; '.join(sorted(messages)[:3])}",
                    hint="capture the call stacks of the same workload and region, or choose the "
                    "rank with --param rank=N",
                )
        elif step == "steady" and not self._rows(f"SELECT 1 FROM {schema}.steady LIMIT 1"):
            self._object(recipes, self._no_steady(), tolerated=True)

    def _is_driven(self) -> bool:
        """Whether any device did work for any process, as far as that was looked at."""
        place = self.planner.schema
        if "drive" not in self._state.forms:  # the choice was read from a built database
            if "drive" not in self.planner.shape.stored:
                return True
            place = f"{self._file.alias}.{planning.SCHEMA}"
        return bool(self._execute(f"SELECT 1 FROM {place}.drive LIMIT 1").fetchall())

    def _need_device(self) -> None:
        """Raise when the only device to report did nothing: no rows would look like an answer."""
        wanted = self._execute("SELECT getvariable('device')::BIGINT").fetchall()[0][0]
        if wanted is None:
            return
        found = self._execute(
            f"SELECT DISTINCT device FROM {self.planner.schema}.op "
            "WHERE device IS NOT NULL ORDER BY device"
        ).fetchall()
        if (wanted,) not in found:
            listed = ", ".join(str(row[0]) for row in found)
            raise AnswerError(
                f"device {wanted} did no work in this trace",
                hint=f"devices with work: {listed}"
                if found
                else "none did; see `nsys-sql inspect`",
            )

    def _object(self, recipes: Sequence[SqlFile], error: AnswerError, tolerated: bool) -> None:
        """Raise, or note it where every recipe of the plan still has something to answer."""
        if not all(_answers_still(file, tolerated) for file in recipes):
            raise error
        self._state.objection = f"{error.message}; {error.hint}"
        self._state.objections.append((error, tolerated))

    def _no_steady(self) -> AnswerError:
        dropped = self._execute(
            f"SELECT status, count(*) FROM {self.planner.schema}.iteration "
            "GROUP BY status ORDER BY count(*) DESC, status"
        ).fetchall()
        if not dropped and self.options.anchor == "auto":
            return AnswerError(
                "no iteration was found: no anchor was taken",
                hint="`nsys-sql run anchors TRACE` lists what could be one",
            )
        if not dropped and not self._is_driven():
            return AnswerError(
                "no iteration was found: the trace holds no device operation",
                hint=planning.not_captured(["kernel"], self.planner.is_present("api_call"))[1],
            )
        if not dropped:
            return AnswerError(
                f"no iteration was found: the anchor {self.options.anchor} matches nothing",
                hint="`nsys-sql run anchors TRACE` lists what could be one",
            )
        reasons = ", ".join(f"{count} {status}" for status, count in dropped)
        if any(status == "steady" for status, _ in dropped):
            return AnswerError(
                f"device {self.options.device} has no steady iteration (all devices: {reasons})",
                hint="`nsys-sql run iterations TRACE` lists the iterations of each device",
            )
        return AnswerError(
            f"no iteration is steady, all were dropped: {reasons}",
            hint="`nsys-sql run iterations TRACE` lists them; choose others with --anchor, "
            "--skip-first, --skip-last or --iterations",
        )

    def _run(self, name: str, params: Mapping[str, object]) -> tuple[SqlFile, str]:
        """Build what a recipe needs, then the recipe with its audits; return it and its table."""
        if self._is_closed:
            raise UsageError("the model is closed", hint="open the trace again")
        if self._guest is None:
            return self._answer(name, params)
        with self._guest.telling():
            self._guest.check()
            name = self.catalog.recipe(name).name
            made = self._state.results.get(name)
            if made is not None and not self._guest.has_result(made[1]):
                del self._state.results[name]
            return self._answer(name, params)

    def _answer(self, name: str, params: Mapping[str, object]) -> tuple[SqlFile, str]:
        wanted = self.catalog.recipe(name)
        self._vet(wanted)
        self._need(wanted)
        while True:
            planner = self._planner()
            statements = self._plan(planner, wanted.name, params)
            if self._state.results.get(wanted.name, ("",))[0] == statements[-1].key:
                break  # answered before, under the same options and parameters
            if self._run_plan(planner, statements):
                break
        self._check_unchanged()
        return wanted, self._state.results[wanted.name][1]

    def _vet(self, recipe: SqlFile) -> None:
        """Refuse a recipe of the user's that does more than read the model, or reads one that does.

        Decided on DuckDB's own syntax tree; nothing of it has run then.
        """
        if recipe.name in self._state.vetted:
            return
        self._state.vetted.add(recipe.name)
        try:
            self._vet_files(recipe)
        except BaseException:
            self._state.vetted.discard(recipe.name)
            raise

    def _vet_files(self, recipe: SqlFile) -> None:
        macros = self.planner.macros()
        for file in self.planner.audits(recipe):
            if not file.is_user:
                continue
            userfiles.vet(file, self._syntax_tree(file.text), macros, self.catalog)
            self._show_strings(file.inputs)
            for check in (*file.invariants, *file.warnings):
                query = f"SELECT * FROM result WHERE ({check.expression}\n) IS NOT TRUE"
                userfiles.vet_check(file, check, self._syntax_tree(query), macros)
            for name in file.inputs:
                if name.startswith("result_"):
                    self._vet(self.catalog.recipe(name.removeprefix("result_")))

    def _syntax_tree(self, sql: str) -> dict[str, Any]:
        serialized = self._query("SELECT json_serialize_sql(?)", [sql]).fetchall()[0][0]
        tree: dict[str, Any] = json.loads(serialized)
        return tree

    def _run_plan(self, planner: Planner, statements: Sequence[Statement]) -> bool:
        """Execute a plan; False when it is outdated, since a table has to be rebuilt."""
        if self._guest is None:
            return self._execute_plan(planner, statements)
        with self._guest.own_variables(planner.variables()):
            return self._execute_plan(planner, statements)

    def _execute_plan(self, planner: Planner, statements: Sequence[Statement]) -> bool:
        state = self._state
        state.objection = None
        state.objections.clear()
        recipes = [each.file for each in statements if each.kind == "recipe" and each.file]
        needed = {each.name for each in statements if each.kind in ("step", "stored")}
        planned = {each.name for each in statements if each.kind == "variable"}
        for name in sorted(state.variables - planned):
            self._execute(f"RESET VARIABLE {name}")
            state.variables.discard(name)
        order = "preserve_insertion_order"
        before = self._execute(f"SELECT current_setting('{order}')").fetchall()[0][0]
        done_with: dict[int, list[str]] = {}
        due = {id(each) for each in statements}
        if not self.options.keep_steps:
            statements, due, done_with = self._lean(planner, statements)
        long = [
            each
            for each in statements
            if each.kind in _LONG and id(each) in due and not self._is_made(each)
        ]
        told = {id(each): f"{place}/{len(long)}" for place, each in enumerate(long, 1)}
        try:
            for statement in statements:
                is_new = not self._is_made(statement)
                if is_new and id(statement) not in due:
                    continue
                if (place := told.get(id(statement))) is not None:
                    inputs.tell(f"{place} {statement.name} — {statement.comment}")
                if statement.kind == "recipe":
                    if not self._run_recipe(planner, statement):
                        return False
                elif not self._make(statement):
                    return False
                elif statement.kind in ("step", "stored") and (is_new or statement.name != "op"):
                    self._after(statement.name, recipes, needed)
                for name in done_with.get(id(statement), ()):
                    if state.forms.get(name) == "TABLE":
                        self._execute(f"DROP TABLE {self.planner.schema}.{name}")
                        del state.forms[name], state.built[f"step {name}"]
        finally:
            inputs.tell("")
            if not state.is_locked and not self._is_closed:
                self._execute(f"SET {order} = {str(before).lower()}")
        return True

    def foresee(self, recipes: Mapping[str, Mapping[str, object]]) -> None:
        """Say which recipes will be run, in which order and with which parameters.

        With `keep_steps=False` a step then stays as long as one of them reads it, with the columns
        that any of them reads.
        """
        self._state.foreseen, self._state.ahead = dict(recipes), None

    def _ahead(self, planner: Planner) -> _Ahead:
        """The plans of what was foreseen, as far as the trace can answer it."""
        state = self._state
        if state.ahead is None or state.ahead.scrubbed != planner.shape.scrubbed:
            plans = {}
            for name, params in state.foreseen.items():
                with contextlib.suppress(NsysSqlError):  # it is told when the recipe is run
                    self._need(self.catalog.recipe(name))
                    plans[name] = planner.plan([name], params, audit=True)
            kept = planner.kept_columns([*chain(*plans.values())])
            state.ahead = _Ahead(planner.shape.scrubbed, plans, kept)
        return state.ahead

    def _plan(
        self, planner: Planner, recipe: str, params: Mapping[str, object]
    ) -> tuple[Statement, ...]:
        """The plan of one recipe, made once where it was foreseen."""
        if self._state.foreseen.get(recipe) == params:
            found = self._ahead(planner).plans.get(recipe)
            if found is not None:
                return found
        return planner.plan([recipe], params, audit=True)

    def _lean(
        self, planner: Planner, statements: Sequence[Statement]
    ) -> tuple[tuple[Statement, ...], set[int], dict[int, list[str]]]:
        """A plan without columns that nobody will read, its due part, and the steps to drop.

        The due statements are told by their id(), and so are those after which to drop.
        """
        ahead = self._ahead(planner)
        kept = ahead.kept
        if not any(statements is each for each in ahead.plans.values()):
            kept = planner.kept_columns([*statements, *chain(*ahead.plans.values())])
        own = planner.narrowed(statements, kept)
        known = {(each.kind, each.name, each.key) for each in statements}
        later = {(each.kind, each.name, each.key): each for each in chain(*ahead.plans.values())}
        rest = planner.narrowed([each for key, each in later.items() if key not in known], kept)
        due = planner.due((*own, *rest), self._is_made)
        drops = planner.last_uses(due)
        return own, set(map(id, due)), {id(due[place]): names for place, names in drops.items()}

    def _run_recipe(self, planner: Planner, statement: Statement) -> bool:
        state, recipe = self._state, statement.file
        assert recipe is not None
        if self._is_made(statement):
            return True
        # A relation handed out earlier must keep its rows: every run has a table of its own.
        view = planning.result_name(recipe)
        table = f"{view}_{uuid.uuid4().hex[:8]}"
        create = f"CREATE TEMP TABLE {table} AS\n{statement.sql}"
        if not self._make(replace(statement, sql=create, key="")):
            return False
        self._check_columns(recipe, f"temp.{table}")
        self._execute(f"CREATE OR REPLACE TEMP VIEW {view} AS SELECT * FROM temp.{table}")
        for key in [key for key in state.checks if key[0] == recipe.name]:
            del state.checks[key]
        for check in self._checks(planner, recipe, table):
            state.checks[recipe.name, check.name] = check
        objection = (state.objection,) if state.objection else ()
        state.notes[recipe.name] = (*objection, *self._notes(planner, recipe))
        state.results[recipe.name] = (statement.key, table)
        return True

    def _check_columns(self, recipe: SqlFile, table: str) -> None:
        found = [row[:2] for row in self._execute(f"DESCRIBE {table}").fetchall()]
        declared = ", ".join(column.name for column in recipe.columns)
        returned = ", ".join(name for name, _ in found)
        if declared != returned:
            if recipe.is_user:
                raise userfiles.other_columns(recipe, [name for name, _ in found])
            raise NsysSqlError(
                f"{recipe.label} declares the columns {declared}; the query returns {returned}",
                hint="make the @column lines and the last SELECT agree",
            )
        for (name, type_), column in zip(found, recipe.columns, strict=True):
            if type_ != column.type:
                kind = UsageError if recipe.is_user else NsysSqlError
                raise kind(
                    f"{recipe.at(rf'@column +{name} ')}: column {name} is declared {column.type}, "
                    f"the query returns {type_}",
                    hint=f"cast it: {name}::{column.type}",
                )

    # ------------------------------------------------------------------ checks and notes

    def _checks(self, planner: Planner, recipe: SqlFile, table: str) -> Iterator[Check]:
        for each in recipe.invariants:
            yield self._check(recipe, each, "fail", table)
        for each in recipe.warnings:
            yield self._check(recipe, each, "warn", table)
        for file in planner.audits(recipe):
            if file.kind == "invariant":
                cursor = self._execute_file(planner, file)
                names = [each[0] for each in cursor.description or ()]
                rows = cursor.fetchall()
                detail = offending(names, rows[:_SHOWN_ROWS], len(rows), None)
                yield Check(file.name, "fail" if rows else "ok", detail, recipe.name)

    def _check(self, recipe: SqlFile, each: Invariant, status: str, table: str) -> Check:
        failing = f"FROM temp.{table} WHERE ({each.expression}) IS NOT TRUE"
        try:
            total, count = self._execute(
                f"SELECT (SELECT count(*) FROM temp.{table}), (SELECT count(*) {failing})"
            ).fetchall()[0]
            cursor = self._execute(f"SELECT * {failing} LIMIT {_SHOWN_ROWS}")
        except duckdb.Error as error:
            where = recipe.at(rf"@(invariant|warning)\s+{re.escape(each.name)}\b")
            told = one_line(str(error).partition("LINE ")[0])
            text = f"{where}: the check {each.name} cannot be evaluated: {told}"
            raise (UsageError if recipe.is_user else NsysSqlError)(text) from None
        names = [column[0] for column in cursor.description or ()]
        detail = offending(names, cursor.fetchall(), count, total)
        return Check(each.name, status if count else "ok", detail, recipe.name)

    def _notes(self, planner: Planner, recipe: SqlFile) -> Iterator[str]:
        for file in planner.audits(recipe):
            if file.kind == "note":
                yield from self._told(planner, file)

    def _told(self, planner: Planner, file: SqlFile) -> tuple[str, ...]:
        """What a note says; asked once where several recipes show it on the same steps."""
        built = self._state.built
        keys = tuple(built.get(f"step {name}", "") for name in file.inputs)
        key = (file.name, planner.retarget(file.body), *keys)
        is_lasting = all(keys) and not file.variables
        if not is_lasting or key not in self._state.told:
            rows = self._execute_file(planner, file).fetchall()
            found = tuple(str(row[0]) for row in rows if row[0] is not None)
            if not is_lasting:
                return found
            self._state.told[key] = found
        return self._state.told[key]

    def _execute_file(self, planner: Planner, file: SqlFile) -> duckdb.DuckDBPyConnection:
        try:
            return self._execute(planner.retarget(file.body))
        except duckdb.Error as error:
            if file.is_user:
                raise userfiles.failed(file, str(error), 0) from error
            raise self._failure(Statement(file.kind, file.name, "", file=file), error) from error

    # ------------------------------------------------------------------ the public calls

    def run(self, recipe: str, **params: object) -> duckdb.DuckDBPyRelation:
        """Run a recipe; return a relation with exactly its declared columns, in its order."""
        _, table = self._run(recipe, params)
        return self.con.sql(f"SELECT * FROM temp.{table}")

    def result(self, recipe: str, **params: object) -> Result:
        """Run a recipe; return its rows with columns, checks and notes."""
        found = self.outcome(recipe, **params)
        return replace(found, rows=self._execute(f"SELECT * FROM temp.{found.table}").fetchall())

    def outcome(self, recipe: str, **params: object) -> Result:
        """The same without rows, for many of them: they stand in the table that is named."""
        file, table = self._run(recipe, params)
        checks = tuple(each for each in self.checks if each.recipe == file.name)
        return Result(file, file.columns, [], checks, self._state.notes[file.name], table)

    def script(self, recipe: str, **params: object) -> str:
        """The SQL that `run` executes on this trace, as one script for a DuckDB shell."""
        if self._file.arrow is not None:
            raise UsageError(
                f"{self._path} is an Arrow export, which no DuckDB shell can read",
                hint="add --cache for a script on what is cached of it, or export with "
                "`nsys export --type=parquetdir`",
            )
        wanted = self.catalog.recipe(recipe)
        self._vet(wanted)
        while True:
            planner = self._planner()
            statements = planner.plan([wanted.name], params)
            # A value that DuckDB refuses shows only when it is read, and nobody repairs a script in
            # a shell: make the small tables, and read once what the views will.
            small = [each for each in statements if each.kind in ("schema", "scrub", "table")]
            lazy = {name for each in statements if each.kind == "view" for name in each.tables}
            if all(self._make(each) for each in small) and not self._scrub_failing(lazy):
                break
        lines = [f"-- {wanted.name} — {wanted.question}", f"-- on {self._file.original}", ""]
        if self._file.load:
            lines += [
                "-- The SQLite extension; where DuckDB has it installed, LOAD sqlite does as well.",
                f"{self._file.load};",
                "",
            ]
        lines.append("-- The trace, read-only.")
        if self._file.folder is not None:
            lines.append("-- It has unfinished writes beside it: attach a settled copy instead.")
        lines.append(f"{self._file.attach(self._file.original, self._file.alias)};")
        read = {table for each in statements for table in each.tables}
        lines += [*(f"{view};" for view in self._file.views(read)), ""]
        return "\n".join(lines) + "\n" + planning.script(statements)

    def write_facts(self, files: Sequence[SqlFile], folder: Path, part: str) -> None:
        """Write what each file selects as <name>.parquet, with a leading column `part`.

        A trace without a steady window has no facts: that is an error here.
        """
        self._build(sorted({name for file in files for name in file.inputs}))
        if self._state.objection:
            message, _, hint = self._state.objection.partition("; ")
            raise AnswerError(message, hint=hint)
        for number, file in enumerate(files, 1):
            inputs.tell(f"{number}/{len(files)} {file.name} — {file.question}")
            query = (
                f"SELECT {literal(part)} AS part, * FROM (\n{self.planner.retarget(file.body)}\n)"
            )
            target = literal(str(folder / f"{file.name}.parquet"))
            copy = f"COPY ({query}) TO {target} (FORMAT parquet)"
            self._make(Statement("fact", file.name, copy, file=file))
        inputs.tell("")
        self._check_unchanged()

    def _everything(self) -> list[str]:
        """The names of all relations, steps and macros, recipes aside."""
        return [*self.catalog.adapters, *self.catalog.steps, *self.planner.macros(), "capability"]

    def move_in(self, schema: str) -> None:
        """Make everything in a schema of the caller's, or leave nothing there."""
        guest = self._guest
        assert guest is not None
        views = (name.replace("-", "_") for name in self.catalog.recipes)
        with guest.telling():
            guest.claim([*self._everything(), *views], str(self._path))
        try:
            self.create_all(schema)
        except BaseException:
            guest.undo()
            raise

    def create_all(self, recipe_schema: str, with_errors: bool = False) -> tuple[str, ...]:
        """Make every relation, step and macro, and a view for each recipe that can answer.

        Returns the names of the views, and adds a warning for each recipe left out; `with_errors`
        makes a view of those too, which says why when it is read.
        """
        names = self._everything()
        self._show_strings(names)
        self._build(names)
        if self._state.objection:
            self._warn(self._state.objection)
        made = []
        for recipe in self._in_reading_order():
            name, view = recipe.name, recipe.name.replace("-", "_")
            place = f"{recipe_schema}.{view}"
            error = self.cannot(recipe)
            reason = error and f"{name}: {error}"
            if error is None and recipe_schema == self.planner.schema and view in names:
                reason = f"{name}: {place} is the relation of that name, so ask model.run({name!r})"
            elif error is None and (error := self._make_view(recipe, recipe_schema)) is not None:
                reason = f"{name}: {error}"
            is_given = any(not self._is_captured(needs) for needs in recipe.needs)
            # Rows of an option are no fault of the trace.
            if reason is not None and (not is_given or name in self._state.unfit):
                self._warn(f"no view for {reason}")
            if error and with_errors:
                query = planning.failing(recipe, error)
                # A user may have declared a type that there is not.
                with contextlib.suppress(*([duckdb.Error] if recipe.is_user else [])):
                    self._execute(f"CREATE OR REPLACE VIEW {place} AS\n{query}")
                    made.append(view)
            elif reason is None:
                made.append(view)
        self._check_unchanged()
        return tuple(made)

    def _in_reading_order(self) -> list[SqlFile]:
        """The recipes, each after those whose results it reads; it is noted which are unfit."""
        found: dict[str, SqlFile] = {}
        for recipe in self.catalog.recipes.values():
            try:
                self._vet(recipe)
                found |= {each.name: each for each in self.planner.recipes([recipe.name], False)}
            except NsysSqlError as error:
                if not recipe.is_user:
                    raise
                self._state.unfit[recipe.name] = error.told
                found[recipe.name] = recipe
        return [*found.values()]

    def _make_view(self, recipe: SqlFile, schema: str) -> str | None:
        """Make the view of a recipe, or say what is wrong with it where it is the user's."""
        view = recipe.name.replace("-", "_")
        sql = self.planner.bound(self.planner.retarget(recipe.body))
        for each in recipe.inputs:
            if each.startswith("result_"):
                sql = re.sub(rf"\b{each}\b", f"{schema}.{each.removeprefix('result_')}", sql)
        statement = f"CREATE OR REPLACE VIEW {schema}.{view} AS\n{sql}"
        try:
            self._make(Statement("view", view, statement, file=recipe))
            if recipe.is_user:
                self._check_columns(recipe, f"{schema}.{view}")
        except NsysSqlError as error:
            if not recipe.is_user:
                raise
            self._execute(f"DROP VIEW IF EXISTS {schema}.{view}")
            self._state.unfit[recipe.name] = error.told
        return self._state.unfit.get(recipe.name)

    def _is_captured(self, needs: Sequence[str]) -> bool:
        """Whether at least one of the alternatives is to come from the trace, or is here."""
        absent = self.catalog.steps.keys() - self.planner.given.keys()
        return not absent.issuperset(needs)

    def cannot(self, recipe: SqlFile) -> str | None:
        """Why a recipe has no answer, in a sentence; asked after everything was made."""
        if recipe.name in self._state.unfit:
            return self._state.unfit[recipe.name]
        reason: AnswerError | None = None
        try:
            self._need(recipe)
        except AnswerError as error:
            reason = error
        if reason is None and self._state.objections:
            files = self.planner.audits(recipe)
            inputs = ((file.label, each) for file in files for each in file.inputs)
            steps = self.planner.closure(inputs)
            for objection, tolerated in self._state.objections:
                is_read = ("steady" if tolerated else "iteration") in steps
                if reason is None and is_read and not _answers_still(recipe, tolerated):
                    reason = objection
        if reason is None:
            return None
        text = reason.message.removeprefix(f"{recipe.name}: ")
        return f"{text}; {reason.hint}" if reason.hint else text

    def note_queries(self) -> Iterator[str]:
        """For each recipe that answers, the queries of its notes with the recipe's name before."""
        for name, recipe in self.catalog.recipes.items():
            if self.cannot(recipe) is not None:
                continue
            view = name.replace("-", "_")
            for file in self.planner.audits(recipe):
                if file.kind != "note":
                    continue
                sql = self.planner.bound(self.planner.retarget(file.body))
                sql = re.sub(r"\bresult_(\w+)", r"main.\1", sql)
                query = (
                    f"SELECT {literal(view)} AS recipe, n.note AS note\nFROM (\n{sql}\n) AS n(note)"
                )
                if file.is_user:
                    try:
                        self._execute(f"DESCRIBE {query}")
                    except duckdb.Error as error:
                        told = userfiles.failed(file, str(error)).told
                        self._warn(f"the note {file.name} is left out: {told}")
                        continue
                yield query

    def keys(self) -> dict[str, str]:
        """What stands in a table of its own by now, with the key that tells what it is."""
        state, found = self._state, dict[str, str]()
        for slot, key in state.built.items():
            kind, _, name = slot.partition(" ")
            if kind == "table" or (kind == "step" and state.forms.get(name) == "TABLE"):
                found[name] = key
        return found

    # ------------------------------------------------------------------ ad-hoc queries

    def lock(self, writable: Iterable[str | os.PathLike[str]] = ()) -> None:
        """Close this connection to the outside, for good: no file but the `writable` ones."""
        if self._state.is_locked:
            return
        # What is read from files that are closed from now on becomes tables first.
        closed = {table for table in self._file.members if sandbox.is_secret(table)}
        if closed:
            shape = self.planner.shape
            names = {name: self.planner.adapter(name) for name in self.catalog.adapters}
            needed = [
                name
                for name, file in names.items()
                if closed.intersection(map(shape.find, planning.source_tables(file)))
            ]
            self._show_strings(needed)
            self._build(needed)
        paths = [str(Path(path).absolute()) for path in writable]
        for table, file in self._file.members.items():
            if table not in closed:
                paths += [str(file), parquet.pattern(file)]
        if self._file.arrow is not None:
            for file in self._file.arrow.files.values():
                paths += [str(file), parquet.pattern(file)]
        allowed = ", ".join(map(literal, paths))
        self._execute(f"CREATE SCHEMA IF NOT EXISTS {self.planner.schema}")
        for name, value in (
            ("preserve_insertion_order", "true"),
            ("search_path", literal(f"main,{self.planner.schema}")),
            ("python_enable_replacements", "false"),
            ("allowed_paths", f"[{allowed}]"),
            ("enable_external_access", "false"),
            ("lock_configuration", "true"),
        ):
            self._execute(f"SET {name} = {value}")
        self._state.is_locked = True

    def query(
        self,
        sql: str,
        writable: Iterable[str | os.PathLike[str]] = (),
        /,
        **params: object,
    ) -> duckdb.DuckDBPyRelation:
        """Answer one SELECT over the canonical relations, steps and recipes, and nothing else.

        Names need no schema; a recipe is read under its name with `_` for `-`. `params` are
        variables that the query gets with getvariable(). The connection is locked from then on:
        only the files `writable` can be written, for instance by `write_parquet` of the relation.
        """
        if not self._owns_connection:
            raise UsageError(
                "query() is for a model with its own connection", hint="use your connection"
            )
        serialized = self._query("SELECT json_serialize_sql(?)", [sql]).fetchall()[0][0]
        macros = self.planner.macros()
        schema = self.planner.schema
        reads = sandbox.inspect(json.loads(serialized), macros, self._file.alias, f"{schema}_")
        texts = {text.removeprefix(f"{schema}.") for text in reads.texts}
        mentioned = reads.tables | reads.functions | texts
        known = {*self.catalog.adapters, *self.catalog.steps, *macros, "capability"}
        recipes = {name.replace("-", "_"): name for name in self.catalog.recipes}
        for name in sorted((mentioned & recipes.keys()) - known):
            wanted = self.planner.parameters(recipes[name])
            given = {each: value for each, value in params.items() if each in wanted}
            _, table = self._run(recipes[name], given)
            self._execute(f"CREATE OR REPLACE TEMP VIEW {name} AS SELECT * FROM temp.{table}")
        listed = self.catalog.adapters if any("show_tables" in name for name in mentioned) else ()
        needed = sorted({*(mentioned & known), *listed})
        self._show_strings(needed)
        self._build(needed)
        self._need_tables(mentioned)
        self.lock(writable)
        for name, value in params.items():
            if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
                raise UsageError(f"{name!r} is not the name of a variable")
            self._query(f"SET VARIABLE {name} = ?", [_number(value)])
            self._state.variables.add(name)
        try:
            relation = self.con.sql(sql)
            inputs.tell("the query")
            while True:
                try:
                    relation.execute()
                    return relation
                except BAD_VALUE:
                    # A view of the trace met a bad value: have its table rebuilt, then ask again.
                    plan = self._planner().plan((), None, also=needed)
                    if not self._scrub_failing({name for each in plan for name in each.tables}):
                        raise
                    self._build(needed)
                    relation = self.con.sql(sql)
        except duckdb.Error as error:
            close = (near(name, [*known, *recipes]) for name in sorted(reads.tables - known))
            hint = next(filter(None, close), None)
            raise UsageError(f"the query failed: {one_line(error)}", hint=hint) from None
        finally:
            inputs.tell("")

    def _need_tables(self, mentioned: Iterable[str]) -> None:
        """Have the tables of an Arrow export ready that a query names, or all that it may list."""
        names = {name.rpartition(".")[2] for name in mentioned}
        lists = any(name.startswith(("duckdb_", "show_", "pragma_")) for name in names)
        lists = lists or not names.isdisjoint({"tables", "columns", "views", "sqlite_master"})
        tables = self.planner.shape.tables
        self._file.need(name for name in tables if lists or name.lower() in names)

    def rows(self, relation: duckdb.DuckDBPyRelation) -> list[tuple[Any, ...]]:
        """The rows of a relation of this model; what fails on the way is said in one line.

        Dates, times and intervals come as DuckDB's text: Python's own types neither reach as far
        nor as deep, and those with a time zone need a package that is not among ours.
        """
        with self._fetching():
            found = _in_own_types(relation).fetchall()
        self._check_unchanged()
        return found

    def batches(
        self, relation: duckdb.DuckDBPyRelation, size: int
    ) -> Iterator[list[tuple[Any, ...]]]:
        """The same, `size` rows at a time, and only once."""
        with self._fetching():
            relation = _in_own_types(relation)
            while found := relation.fetchmany(size):
                yield found
        self._check_unchanged()

    @contextlib.contextmanager
    def _fetching(self) -> Iterator[None]:
        try:
            yield
        except BAD_VALUE as error:
            failed = UsageError(f"the query failed: {one_line(error)}")
            raise (self._damage(error) if self._file.members else None) or failed from None
        except duckdb.Error as error:
            failed = UsageError(f"the query failed: {one_line(error)}")
            raise self._damage(error) or failed from None

    def _query(self, sql: str, values: Sequence[object]) -> duckdb.DuckDBPyConnection:
        for text in (sql, *values):
            if isinstance(text, str):
                need_text("the query", text)
        try:
            return self.con.execute(sql, list(values))
        except duckdb.Error as error:
            raise UsageError(f"the query failed: {one_line(error)}") from None

    def _show_strings(self, names: Iterable[str]) -> None:
        """From here on hand out only strings that are names, if others than our steps read them."""
        if planning.STRINGS in names and not self.planner.shows_strings:
            self.planner = replace(self.planner, shows_strings=True)

    def _build(self, names: Iterable[str]) -> None:
        """Make relations, steps and macros without running a recipe."""
        names = tuple(names)
        while True:
            planner = self._planner()
            if self._run_plan(planner, planner.plan((), None, also=names)):
                return


def _in_own_types(relation: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """A relation with dates, times and intervals as text."""
    texts = [
        "DATE" in kind or "TIME" in kind or kind.startswith("INTERVAL")
        for kind in map(str, relation.types)
    ]
    if not any(texts):
        return relation
    columns = (
        f"CAST(#{number} AS VARCHAR)" if is_text else f"#{number}"
        for number, is_text in enumerate(texts, 1)
    )
    return relation.project(", ".join(columns))


def _slot(statement: Statement) -> str:
    """What a statement makes: a step has one place, wherever it comes from."""
    kind = "step" if statement.kind == "stored" else statement.kind
    return f"{kind} {statement.name}"


def _answers_still(recipe: SqlFile, tolerated: bool) -> bool:
    """Whether a recipe answers without windows, or, where `tolerated`, without steady ones."""
    return recipe.windows_optional or (tolerated and recipe.name in ANSWERS_WITHOUT_STEADY)


def _number(value: object) -> object:
    """A text that reads as a number as one; anything else as it is."""
    if isinstance(value, str):
        for kind in (int, float):
            with contextlib.suppress(ValueError):
                return kind(value)
    return value


def open(trace: str | os.PathLike[str], options: Options | None = None) -> Model:
    """Open a trace in a DuckDB of its own."""
    checked = (options or Options()).check()
    path = Path(trace)
    file = inputs.resolve(path, checked)
    source.read_header(file)  # before DuckDB is started at all
    catalog = userfiles.full_catalog(checked.recipes)
    return Model(duckdb.connect(), path, checked, catalog, file=file)


def attach(
    con: duckdb.DuckDBPyConnection,
    trace: str | os.PathLike[str],
    schema: str = planning.SCHEMA,
    options: Options | None = None,
) -> Model:
    """Put the model of a trace into the caller's own connection, everything made at once."""
    checked = (options or Options()).check()
    if not re.fullmatch(r"[A-Za-z_]\w*", schema, re.ASCII):
        raise UsageError(f"schema {schema!r} is not a plain SQL name")
    catalog = userfiles.full_catalog(checked.recipes)
    path = Path(trace)
    file = inputs.resolve(path, checked)
    model = Model(con, path, checked, catalog, schema=schema, owns_connection=False, file=file)
    try:
        model.move_in(schema)
    except BaseException:
        model.close()
        raise
    return model
