"""The only module that talks to DuckDB: opens a trace, executes plans, checks what comes out."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import shutil
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any

import duckdb

from nsys_sql import plan as planning
from nsys_sql import sandbox, scrub, source
from nsys_sql.adapt import CATALOG, literal, quote
from nsys_sql.catalog import Catalog, Invariant, SqlFile, load_catalog, near
from nsys_sql.errors import AnswerError, InputError, NsysSqlError, UsageError
from nsys_sql.options import Options
from nsys_sql.plan import Planner, Shape, Statement
from nsys_sql.results import Check, Result, TraceInfo, offending

KNOWN_SCHEMA = (3, 28)
KNOWN_PRODUCT = (2026, 4)
# Recipes that still answer where no window is steady.
ANSWERS_WITHOUT_STEADY = frozenset({"iterations", "anchors", "gaps"})
_SHOWN_ROWS = 3
_BAD_VALUE = (
    duckdb.TypeMismatchException,
    duckdb.InvalidInputException,
    duckdb.ConversionException,
)


# ---------------------------------------------------------------------------- DuckDB and SQLite


def _one_line(error: object) -> str:
    return " ".join(str(error).split())


def extension_file() -> Path | None:
    """The SQLite extension that the wheel duckdb-extension-sqlite-scanner brought, if any."""
    spec = importlib.util.find_spec("duckdb_extension_sqlite_scanner")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        version = f"v{duckdb.__version__}"
        file = Path(folder) / "extensions" / version / "sqlite_scanner.duckdb_extension"
        if file.is_file():
            return file
    return None


def load_sqlite(con: duckdb.DuckDBPyConnection) -> str:
    """Load the SQLite extension; return the statement that did. Nothing is ever downloaded."""
    file = extension_file()
    attempts = [f"LOAD {literal(str(file))}"] if file else []
    error: duckdb.Error | None = None
    for statement in [*attempts, "LOAD sqlite"]:
        try:
            con.execute(statement)
        except duckdb.Error as caught:
            error = caught
        else:
            return statement
    raise InputError(
        f"DuckDB {duckdb.__version__} cannot load its SQLite extension: {_one_line(error)}",
        hint=f"pip install duckdb-extension-sqlite-scanner=={duckdb.__version__}",
    )


def _input_error(path: Path, error: duckdb.Error) -> InputError:
    """Say in one line why a file was refused."""
    text = _one_line(error)
    for pattern, message, hint in (
        ("malformed|disk I/O|corrupt", "is damaged or truncated", "copy or export it again"),
        ("not a database|encrypted", "is not an SQLite database, or it is encrypted", None),
        ("locked|busy|lock on file", "is locked by another program", "wait until it has finished"),
        ("unable to open|readonly|permission", "cannot be opened", "check its permissions"),
    ):
        if re.search(pattern, text, re.IGNORECASE):
            return InputError(f"{path} {message}", hint=hint)
    return InputError(f"{path} cannot be read: {text}")


_TYPES = (
    ("INT", "BIGINT"),
    ("CHAR", "VARCHAR"),
    ("CLOB", "VARCHAR"),
    ("TEXT", "VARCHAR"),
    ("BLOB", "BLOB"),
    ("REAL", "DOUBLE"),
    ("FLOA", "DOUBLE"),
    ("DOUB", "DOUBLE"),
)


def _duckdb_type(declared: str) -> str:
    """The type DuckDB gives a column declared so in SQLite; OTHER for those we never read."""
    upper = declared.upper()
    return next((type_ for part, type_ in _TYPES if part in upper), "OTHER" if upper else "BLOB")


@lru_cache(maxsize=8)
def _taxonomy_sql(paths: tuple[str, ...]) -> tuple[str, ...]:
    from nsys_sql import taxonomy

    return tuple(taxonomy.macro_sql(taxonomy.load_rules(paths)))


def _version(text: str | None) -> tuple[int, int] | None:
    found = re.match(r"(\d+)\.(\d+)", text or "")
    return (int(found[1]), int(found[2])) if found else None


# ---------------------------------------------------------------------------- the model


@dataclass(slots=True)
class _State:
    """What a model has done so far."""

    built: dict[str, str] = field(default_factory=dict)
    results: dict[str, tuple[str, str]] = field(default_factory=dict)
    variables: set[str] = field(default_factory=set)
    scrubbed: set[str] = field(default_factory=set)
    warnings: list[str] = field(default_factory=list)
    checks: dict[tuple[str, str], Check] = field(default_factory=dict)
    notes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    objection: str | None = None
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
    ) -> None:
        self.con = con
        self.options = options
        self.catalog = catalog
        self._path = path
        self._owns_connection = owns_connection
        self._state = _State()
        self._folder: Path | None = None
        self._spill: Path | None = None
        self._alias = ""
        self._is_closed = False
        try:
            self._open(schema, all_tables)
        except BaseException:
            self.close()
            raise

    # ------------------------------------------------------------------ open and close

    def _open(self, schema: str, all_tables: bool) -> None:
        path = self._path
        header = source.read_header(path)
        beside = [] if header.is_duckdb else source.companions(path)
        self._before = source.stamp(path)
        self._original = Path(os.path.abspath(path))  # noqa: PTH100 (symlinks stay)
        target = self._original
        if header.is_wal or beside:
            self._folder = source.private_folder(self.options.temp_directory)
            target = source.settled_copy(path, beside, self._folder)
            header = source.read_header(target)
            what = " and ".join(each.name[len(path.name) :] for each in beside)
            self._warn(
                f"the file has a {what} beside it: read from a private copy with it applied"
                if what
                else "the file is in WAL mode: read from a private copy"
            )
        if (longer := source.check_size(path, header)) is not None:
            self._warn(longer)
        self._set_up()
        self._load = "" if header.is_duckdb else self._load_quietly()
        taken = self._execute("SELECT database_name FROM duckdb_databases()").fetchall()
        names = chain([CATALOG], (f"{CATALOG}_{number}" for number in range(2, len(taken) + 3)))
        alias = next(name for name in names if (name,) not in taken)
        self._kind = "" if header.is_duckdb else "TYPE sqlite, "
        try:
            self._execute(self._attach(target, alias))
            self._alias = alias
            shape = self._read_built() if header.is_duckdb else self._read_tables()
        except duckdb.Error as error:
            raise _input_error(path, error) from None
        taxonomy = partial(_taxonomy_sql, self.options.taxonomy)
        if self.options.taxonomy:
            taxonomy()  # a bad file is told at once
        self.planner = Planner(
            self.catalog, shape, self.options, taxonomy, schema, alias, all_tables
        )
        try:
            self._info = self._read_info()
        except duckdb.Error as error:
            raise _input_error(path, error) from None

    def _attach(self, target: Path, alias: str) -> str:
        return f"ATTACH {literal(str(target))} AS {alias} ({self._kind}READ_ONLY)"

    def _set_up(self) -> None:
        """Settings of our own connection; a caller's connection keeps its own."""
        if not self._owns_connection:
            return
        options = self.options
        folder = options.temp_directory or tempfile.gettempdir()
        # DuckDB makes this folder only when it spills, and would else make it where we stand.
        self._spill = Path(folder) / f"nsys-sql-spill-{uuid.uuid4().hex}"
        settings = {
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "temp_directory": str(self._spill),
        }
        if options.threads is not None:
            settings["threads"] = str(options.threads)
        if options.memory_limit is not None:
            settings["memory_limit"] = options.memory_limit
        for name, value in settings.items():
            try:
                self._execute(f"SET {name} = {literal(value)}")
            except duckdb.Error as error:
                raise UsageError(
                    f"{name.replace('_', '-')} {value!r} is refused: {_one_line(error)}"
                ) from None

    def _load_quietly(self) -> str:
        """Load the extension with downloads off, whatever a caller's connection allows."""
        name = "autoinstall_known_extensions"
        if self._owns_connection:
            return load_sqlite(self.con)
        before = self._execute(f"SELECT current_setting('{name}')").fetchall()[0][0]
        with contextlib.suppress(duckdb.Error):  # the caller may have locked the configuration
            self._execute(f"SET {name} = false")
        try:
            return load_sqlite(self.con)
        finally:
            with contextlib.suppress(duckdb.Error):
                self._execute(f"SET {name} = {str(before).lower()}")

    def close(self) -> None:
        """Detach the trace, close our own connection, remove private copies. May be repeated."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._owns_connection:
            self.con.close()
        elif self._alias:
            with contextlib.suppress(duckdb.Error):
                self._execute(f"DETACH {self._alias}")
        if self._folder is not None:
            source.remove(self._folder)
        if self._spill is not None:
            shutil.rmtree(self._spill, ignore_errors=True)

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

    def _execute(self, sql: str) -> duckdb.DuckDBPyConnection:
        return self.con.execute(sql)

    def _sqlite(self, query: str) -> list[tuple[Any, ...]]:
        """Run a query inside SQLite, on the attached trace; every value comes as text."""
        call = f"sqlite_query({literal(self._alias)}, {literal(query)})"
        return self._execute(f"SELECT * FROM {call}").fetchall()

    def _warn(self, text: str) -> None:
        if text not in self._state.warnings:
            self._state.warnings.append(text)

    def _read_tables(self) -> Shape:
        """Tables and columns of the attached trace; views in the place of a source are refused."""
        files = [*self.catalog.adapters.values(), *chain(*self.catalog.variants.values())]
        wanted = {table.lower() for file in files for table in planning.source_tables(file)}
        # Views are looked at by name only: one that refers to itself would never return.
        for (name,) in self._sqlite("SELECT name FROM sqlite_master WHERE type = 'view'"):
            base = re.sub(r"_V[0-9]+$", "", name, flags=re.IGNORECASE)
            if wanted & {name.lower(), base.lower()}:
                raise InputError(
                    f"{self._path}: {name} is a view, not a table",
                    hint="only exported tables are read: export the report again",
                )
        tables: dict[str, dict[str, str]] = {}
        for table, column, declared in self._sqlite(
            "SELECT m.name AS name, c.name AS field, c.type AS type FROM sqlite_master AS m "
            "JOIN pragma_table_info(m.name) AS c WHERE m.type = 'table' ORDER BY m.name, c.cid"
        ):
            tables.setdefault(table, {})[column] = _duckdb_type(declared or "")
        shape = Shape(tables)
        if not any(shape.has(table) for table in wanted):
            raise InputError(
                f"{self._path} is an SQLite database, but it holds no table of Nsight Systems",
                hint="export the report with `nsys export --type=sqlite`",
            )
        return shape

    def _read_built(self) -> Shape:
        """The canonical relations of a database that `build` made."""
        place = f"database_name = {literal(self._alias)} AND schema_name = '{planning.SCHEMA}'"
        columns: dict[str, dict[str, str]] = {}
        for table, column, type_ in self._execute(
            f"SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE {place} "
            "ORDER BY table_name, column_index"
        ).fetchall():
            columns.setdefault(table, {})[column] = type_
        if "capability" not in columns:
            raise InputError(
                f"{self._path} is a DuckDB database that `nsys-sql build` did not make",
                hint="build it from the .sqlite export",
            )
        rows = self._execute(
            f"SELECT relation, is_present FROM {self._alias}.{planning.SCHEMA}.capability"
        ).fetchall()
        relations = {
            name: (bool(is_present), tuple(columns[name]))
            for name, is_present in rows
            if name in columns
        }
        return Shape({name: columns[name] for name in relations}, relations=relations)

    @property
    def trace(self) -> TraceInfo:
        """What is known of the trace; warnings grow as it is read."""
        return replace(self._info, warnings=tuple(self._state.warnings))

    @property
    def checks(self) -> tuple[Check, ...]:
        """The checks of everything that was run, in the order of running."""
        return tuple(self._state.checks.values())

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes of everything that was run, each once."""
        return tuple(dict.fromkeys(chain(*self._state.notes.values())))

    def _properties(self, table: str, relation: str, names: Sequence[str]) -> dict[str, str]:
        """Name-value pairs of a metadata table; SQLite filters by name, values may be anything."""
        shape = self.planner.shape
        listed = ", ".join(map(literal, names))
        if shape.relations is not None:
            if relation not in shape.relations:
                return {}
            where = f"{self._alias}.{planning.SCHEMA}.{relation} WHERE name IN ({listed})"
            return dict(self._execute(f"SELECT name, value FROM {where}").fetchall())
        actual = shape.find(table)
        if actual is None or not (shape.has(table, "name") and shape.has(table, "value")):
            return {}
        query = f"SELECT name, hex(value) AS value FROM {quote(actual)} WHERE name IN ({listed})"
        return {
            name: bytes.fromhex(value or "").decode("utf-8", "replace")
            for name, value in self._sqlite(query)
        }

    def _read_info(self) -> TraceInfo:
        labels = ("EXPORT_PRODUCT_VERSION", "EXPORT_SCHEMA_VERSION")
        told = self._properties("EXPORT_META_DATA", "export_info", labels)
        told |= self._properties("META_DATA_EXPORT", "export_info", labels)
        place = self._properties(
            "TARGET_INFO_SYSTEM_ENV", "system_env", ("TargetInstallDir", "CaptureVersion")
        )
        schema, product = (
            told.get("EXPORT_SCHEMA_VERSION"),
            told.get("EXPORT_PRODUCT_VERSION"),
        )
        capture = re.search(r"20\d\d\.\d+\.\d+", " ".join(place.values()))
        for what, version, known in (
            ("export schema", schema, KNOWN_SCHEMA),
            ("exporter", product, KNOWN_PRODUCT),
        ):
            if (_version(version) or known) > known:
                newest = ".".join(map(str, known))
                self._warn(
                    f"{what} {version} is newer than {newest}, the newest known one: "
                    "columns are found by name"
                )
        return TraceInfo(
            path=self._path,
            product_version=product,
            schema_version=schema,
            capture_version=capture[0] if capture else None,
            tables=self.planner.shape.tables,
            present=tuple(
                name for name in sorted(self.catalog.adapters) if self.planner.is_present(name)
            ),
            warnings=(),
        )

    def row_counts(self) -> list[tuple[str, int]]:
        """Every table of the trace with its number of rows: reads all of them."""
        place = f"{self._alias}.{planning.SCHEMA}." if self.planner.shape.relations else ""
        counts = []
        for table in sorted(self.planner.shape.tables):
            query = f"SELECT count(*) AS n FROM {place}{quote(table)}"
            rows = self._execute(query).fetchall() if place else self._sqlite(query)
            counts.append((table, int(rows[0][0])))
        return counts

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
                message, hint = planning.not_captured(relations)
                raise AnswerError(f"{recipe.name}: {message}", hint=hint)

    # ------------------------------------------------------------------ execution

    def _planner(self) -> Planner:
        shape = replace(self.planner.shape, scrubbed=frozenset(self._state.scrubbed))
        return replace(self.planner, shape=shape)

    def _make(self, statement: Statement) -> bool:
        """Execute one statement of a plan unless it is done; False when the plan is outdated."""
        built = self._state.built
        slot = f"{statement.kind} {statement.name}"
        if statement.key and built.get(slot) == statement.key:
            return True
        if statement.kind == "setting" and self._state.is_locked:
            return True
        if statement.kind == "variable":
            self._state.variables.add(statement.name)
        try:
            self._execute(statement.sql)
        except _BAD_VALUE as error:
            if not self._scrub_failing(statement.tables):
                raise self._failure(statement, error) from error
            return False
        except duckdb.Error as error:
            raise self._failure(statement, error) from error
        if statement.kind == "table" and self._is_garbled(statement):
            return not self._scrub_failing(statement.tables)
        if statement.key:
            built[slot] = statement.key
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

    def _failure(self, statement: Statement, error: duckdb.Error) -> NsysSqlError:
        text = _one_line(error)
        if re.search(r"malformed|disk I/O|database is locked|file is not a database", text):
            return _input_error(self._path, error)
        if isinstance(error, duckdb.OutOfMemoryException):
            return InputError(
                f"{self._path} needs more memory than allowed: {text}",
                hint="raise --memory-limit, or give a --temp-directory with room",
            )
        where = statement.file.label if statement.file else statement.name
        return NsysSqlError(f"{where} failed on {self._path}: {text}")

    def _scrub_failing(self, tables: Iterable[str]) -> bool:
        """Find those of the source tables that hold bad values; mark them to be rebuilt."""
        found = False
        for table in tables:
            if table in self._state.scrubbed or self.planner.is_odd(table):
                continue
            probe = scrub.probe(self.planner.used_columns(table))
            try:
                row = self._execute(f"SELECT {probe} FROM {self._alias}.{quote(table)}").fetchone()
                is_bad = row is not None and bool(row[0])
            except _BAD_VALUE:
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
        if self._folder is None and source.stamp(self._path) != self._before:
            raise InputError(
                f"{self._path} changed while it was read",
                hint="wait until its writer has finished, then run again",
            )

    def _after(self, step: str, recipes: Sequence[SqlFile], needed: set[str]) -> None:
        """What to say when a step leaves nothing to answer with."""
        schema = self.planner.schema
        if step == "anchor_choice" and self.options.is_auto and "iteration" in needed:
            cursor = self._execute(f"SELECT * FROM {schema}.anchor_choice")
            names = [each[0] for each in cursor.description or ()]
            choice = dict(zip(names, cursor.fetchone() or (), strict=False))
            if choice.get("status") != "chosen":
                message = str(choice.get("message") or "no anchor was found")
                error = AnswerError(
                    message, hint="`nsys-sql run anchors TRACE` lists what could be one"
                )
                self._object(recipes, error, tolerated=False)
        elif step == "steady":
            found = self._execute(f"SELECT 1 FROM {schema}.steady LIMIT 1").fetchone()
            if found is None:
                self._object(recipes, self._no_steady(), tolerated=True)

    def _object(self, recipes: Sequence[SqlFile], error: AnswerError, tolerated: bool) -> None:
        """Raise, or note it where every recipe of the plan still has something to answer."""
        if not all(
            file.windows_optional or (tolerated and file.name in ANSWERS_WITHOUT_STEADY)
            for file in recipes
        ):
            raise error
        self._state.objection = f"{error.message}; {error.hint}"

    def _no_steady(self) -> AnswerError:
        dropped = self._execute(
            f"SELECT status, count(*) FROM {self.planner.schema}.iteration "
            "GROUP BY status ORDER BY count(*) DESC, status"
        ).fetchall()
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
        wanted = self.catalog.recipe(name)
        self._need(wanted)
        while True:
            planner = self._planner()
            if self._run_plan(planner, planner.plan([wanted.name], params, audit=True)):
                break
        self._check_unchanged()
        return wanted, self._state.results[wanted.name][1]

    def _run_plan(self, planner: Planner, statements: Sequence[Statement]) -> bool:
        """Execute a plan; False when it is outdated, since a table has to be rebuilt."""
        state = self._state
        state.objection = None
        recipes = [each.file for each in statements if each.kind == "recipe" and each.file]
        needed = {each.name for each in statements if each.kind == "step"}
        planned = {each.name for each in statements if each.kind == "variable"}
        for name in sorted(state.variables - planned):
            self._execute(f"RESET VARIABLE {name}")
            state.variables.discard(name)
        order = "preserve_insertion_order"
        before = self._execute(f"SELECT current_setting('{order}')").fetchall()[0][0]
        try:
            for statement in statements:
                if statement.kind == "recipe":
                    if not self._run_recipe(planner, statement):
                        return False
                elif not self._make(statement):
                    return False
                elif statement.kind == "step":
                    self._after(statement.name, recipes, needed)
        finally:
            if not state.is_locked and not self._is_closed:
                self._execute(f"SET {order} = {str(before).lower()}")
        return True

    def _run_recipe(self, planner: Planner, statement: Statement) -> bool:
        state, recipe = self._state, statement.file
        assert recipe is not None
        if state.results.get(recipe.name, ("",))[0] == statement.key:
            return True
        # A relation handed out earlier must keep its rows: every run has a table of its own.
        view = planning.result_name(recipe)
        table = f"{view}_{uuid.uuid4().hex[:8]}"
        create = f"CREATE TEMP TABLE {table} AS\n{statement.sql}"
        if not self._make(replace(statement, sql=create, key="")):
            return False
        self._check_columns(recipe, table)
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
        found = [row[:2] for row in self._execute(f"DESCRIBE temp.{table}").fetchall()]
        declared = ", ".join(column.name for column in recipe.columns)
        returned = ", ".join(name for name, _ in found)
        if declared != returned:
            raise NsysSqlError(
                f"{recipe.label} declares the columns {declared}; the query returns {returned}",
                hint="make the @column lines and the last SELECT agree",
            )
        for (name, type_), column in zip(found, recipe.columns, strict=True):
            if type_ != column.type:
                raise NsysSqlError(
                    f"{recipe.label} declares column {name} {column.type}, "
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
            raise NsysSqlError(
                f"{recipe.label}: the check {each.name} cannot be evaluated: {_one_line(error)}"
            ) from None
        names = [column[0] for column in cursor.description or ()]
        detail = offending(names, cursor.fetchall(), count, total)
        return Check(each.name, status if count else "ok", detail, recipe.name)

    def _notes(self, planner: Planner, recipe: SqlFile) -> Iterator[str]:
        for file in planner.audits(recipe):
            if file.kind == "note":
                for row in self._execute_file(planner, file).fetchall():
                    if row[0] is not None:
                        yield str(row[0])

    def _execute_file(self, planner: Planner, file: SqlFile) -> duckdb.DuckDBPyConnection:
        try:
            return self._execute(planner.retarget(file.body))
        except duckdb.Error as error:
            text = f"{file.label} failed on {self._path}: {_one_line(error)}"
            raise NsysSqlError(text) from error

    # ------------------------------------------------------------------ the public calls

    def run(self, recipe: str, **params: object) -> duckdb.DuckDBPyRelation:
        """Run a recipe; return a relation with exactly its declared columns, in its order."""
        _, table = self._run(recipe, params)
        return self.con.sql(f"SELECT * FROM temp.{table}")

    def result(self, recipe: str, **params: object) -> Result:
        """Run a recipe; return its rows with columns, checks and notes."""
        file, table = self._run(recipe, params)
        rows = self._execute(f"SELECT * FROM temp.{table}").fetchall()
        checks = tuple(each for each in self.checks if each.recipe == file.name)
        return Result(file, file.columns, rows, checks, self._state.notes[file.name], table)

    def script(self, recipe: str, **params: object) -> str:
        """The SQL that `run` executes on this trace, as one script for a DuckDB shell."""
        wanted = self.catalog.recipe(recipe)
        while True:
            planner = self._planner()
            statements = planner.plan([wanted.name], params)
            # Text that DuckDB refuses shows only when it is read: try the small tables.
            small = [each for each in statements if each.kind in ("schema", "scrub", "table")]
            if all(self._make(each) for each in small):
                break
        lines = [f"-- {wanted.name} — {wanted.question}", f"-- on {self._original}", ""]
        if self._load:
            lines += [
                "-- The SQLite extension; where DuckDB has it installed, LOAD sqlite does as well.",
                f"{self._load};",
                "",
            ]
        lines.append("-- The trace, read-only.")
        if self._folder is not None:
            lines.append("-- It has unfinished writes beside it: attach a settled copy instead.")
        lines += [f"{self._attach(self._original, self._alias)};", ""]
        return "\n".join(lines) + "\n" + planning.script(statements)

    def create_all(self, recipe_schema: str) -> tuple[str, ...]:
        """Make every relation, step and macro, and a view for each recipe that has its tables.

        Returns the names of the views, and adds a warning for each recipe left out.
        """
        names = [*self.catalog.adapters, *self.catalog.steps, *self.planner.macros(), "capability"]
        self._build(names)
        if self._state.objection:
            self._warn(self._state.objection)
        made = []
        for name, recipe in self.catalog.recipes.items():
            view = name.replace("-", "_")
            reason = self.why_not(name)
            if reason is None and recipe_schema == self.planner.schema and view in names:
                reason = f"{name}: {recipe_schema}.{view} is something else"
            if reason is not None:
                self._warn(f"no view for {reason}")
                continue
            sql = self.planner.retarget(recipe.body)
            self._make(
                Statement(
                    "view",
                    view,
                    f"CREATE OR REPLACE VIEW {recipe_schema}.{view} AS\n{sql}",
                    file=recipe,
                )
            )
            made.append(view)
        self._check_unchanged()
        return tuple(made)

    # ------------------------------------------------------------------ ad-hoc queries

    def lock(self, writable: Iterable[str | os.PathLike[str]] = ()) -> None:
        """Close this connection to the outside, for good: no file but the `writable` ones."""
        if self._state.is_locked:
            return
        paths = ", ".join(literal(str(Path(path).absolute())) for path in writable)
        self._execute(f"CREATE SCHEMA IF NOT EXISTS {self.planner.schema}")
        for name, value in (
            ("preserve_insertion_order", "true"),
            ("search_path", literal(f"main,{self.planner.schema}")),
            ("python_enable_replacements", "false"),
            ("allowed_paths", f"[{paths}]"),
            ("enable_external_access", "false"),
            ("lock_configuration", "true"),
        ):
            self._execute(f"SET {name} = {value}")
        self._state.is_locked = True

    def query(
        self,
        sql: str,
        writable: Iterable[str | os.PathLike[str]] = (),
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
        reads = sandbox.inspect(json.loads(serialized), macros, self._alias, f"{schema}_")
        texts = {text.removeprefix(f"{schema}.") for text in reads.texts}
        mentioned = reads.tables | reads.functions | texts
        known = {*self.catalog.adapters, *self.catalog.steps, *macros, "capability"}
        recipes = {name.replace("-", "_"): name for name in self.catalog.recipes}
        for name in sorted((mentioned & recipes.keys()) - known):
            _, table = self._run(recipes[name], {})
            self._execute(f"CREATE OR REPLACE TEMP VIEW {name} AS SELECT * FROM temp.{table}")
        listed = self.catalog.adapters if any("show_tables" in name for name in mentioned) else ()
        needed = sorted({*(mentioned & known), *listed})
        self._build(needed)
        self.lock(writable)
        for name, value in params.items():
            if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
                raise UsageError(f"{name!r} is not the name of a variable")
            self._query(f"SET VARIABLE {name} = ?", [_number(value)])
            self._state.variables.add(name)
        try:
            relation = self.con.sql(sql)
            while True:
                try:
                    relation.execute()
                    return relation
                except _BAD_VALUE:
                    # A view of the trace met a bad value: have its table rebuilt, then ask again.
                    plan = self._planner().plan((), None, also=needed)
                    if not self._scrub_failing({name for each in plan for name in each.tables}):
                        raise
                    self._build(needed)
                    relation = self.con.sql(sql)
        except duckdb.Error as error:
            close = (near(name, [*known, *recipes]) for name in sorted(reads.tables - known))
            hint = next(filter(None, close), None)
            raise UsageError(f"the query failed: {_one_line(error)}", hint=hint) from None

    def rows(self, relation: duckdb.DuckDBPyRelation) -> list[tuple[Any, ...]]:
        """The rows of a relation of this model; what fails on the way is said in one line."""
        try:
            found = relation.fetchall()
        except _BAD_VALUE as error:
            raise UsageError(f"the query failed: {_one_line(error)}") from None
        except duckdb.Error as error:
            text = _one_line(error)
            if re.search(r"malformed|disk I/O|database is locked", text):
                raise _input_error(self._path, error) from None
            raise UsageError(f"the query failed: {text}") from None
        self._check_unchanged()
        return found

    def _query(self, sql: str, values: Sequence[object]) -> duckdb.DuckDBPyConnection:
        try:
            return self.con.execute(sql, list(values))
        except duckdb.Error as error:
            raise UsageError(f"the query failed: {_one_line(error)}") from None

    def _build(self, names: Iterable[str]) -> None:
        """Make relations, steps and macros without running a recipe."""
        names = tuple(names)
        while True:
            planner = self._planner()
            if self._run_plan(planner, planner.plan((), None, also=names)):
                return


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
    source.read_header(path)  # before DuckDB is started at all
    return Model(duckdb.connect(), path, checked, load_catalog())


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
    model = Model(con, Path(trace), checked, load_catalog(), schema=schema, owns_connection=False)
    try:
        model.create_all(schema)
    except BaseException:
        model.close()
        raise
    return model


def build(
    trace: str | os.PathLike[str], target: str | os.PathLike[str], options: Options | None = None
) -> TraceInfo:
    """Write everything but the trace itself into a new DuckDB database; recipes become views.

    The views stand in its main schema: `duckdb FILE.duckdb`, then `FROM budget;`.
    """
    checked = (options or Options()).check()
    path, file = Path(trace), Path(target)
    source.read_header(path)
    if file.stem.lower() == planning.SCHEMA:
        raise UsageError(
            f"a database called {file.name} would make names like {planning.SCHEMA}.kernel "
            "ambiguous",
            hint="choose another file name",
        )
    if file.exists():
        raise UsageError(f"{file} exists", hint="name a new file")
    con = duckdb.connect()
    try:
        try:
            con.execute(f"ATTACH {literal(str(file.absolute()))} AS built")
            con.execute("USE built")
        except duckdb.Error as error:
            raise UsageError(f"{file} cannot be written: {_one_line(error)}") from None
        with Model(con, path, checked, load_catalog(), all_tables=True) as model:
            model.create_all("main")
            con.execute("CHECKPOINT built")
            info = model.trace
    except BaseException:
        con.close()
        file.unlink(missing_ok=True)
        file.with_name(file.name + ".wal").unlink(missing_ok=True)
        raise
    return info
