"""A trace attached to DuckDB, read-only, and what is known of it before any row is read."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import re
import shutil
import tempfile
import uuid
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import duckdb

from nsys_sql import parquet, source
from nsys_sql.adapt import CATALOG, literal, quote
from nsys_sql.catalog import Catalog
from nsys_sql.errors import InputError, UsageError
from nsys_sql.options import Options
from nsys_sql.plan import SCHEMA, Planner, Shape, adapter_uses, source_tables
from nsys_sql.results import TraceInfo

KNOWN_SCHEMA = (3, 28)
KNOWN_PRODUCT = (2026, 4)
# What DuckDB raises for a value it does not accept, a wrong type or text that is no UTF-8; the
# last where its own message quotes the bytes.
BAD_VALUE = (
    duckdb.TypeMismatchException,
    duckdb.InvalidInputException,
    duckdb.ConversionException,
    UnicodeDecodeError,
)
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
_DAMAGE = (
    (
        "malformed|disk I/O|corrupt|[Pp]arquet file|string encoding|magic bytes",
        "is damaged or truncated",
        "copy or export it again",
    ),
    ("not a database|encrypted", "is not an SQLite database, or it is encrypted", None),
    ("locked|busy|lock on file", "is locked by another program", "wait until it has finished"),
    ("unable to open|readonly|permission", "cannot be opened", "check its permissions"),
)


def one_line(error: object) -> str:
    """An error's text without line breaks."""
    return " ".join(str(error).split())


def input_error(path: Path, error: Exception) -> InputError:
    """Say in one line why a file was refused."""
    text = one_line(error)
    for pattern, message, hint in _DAMAGE:
        if re.search(pattern, text, re.IGNORECASE):
            return InputError(f"{path} {message}", hint=hint)
    return InputError(f"{path} cannot be read: {text}")


def damage(path: Path, error: Exception) -> InputError | None:
    """The input error behind a statement that failed, if the file is to blame."""
    pattern = (
        "malformed|disk I/O|database is locked|file is not a database|string encoding found in "
        "Parquet|magic bytes|[Cc]orrupt"
    )
    return input_error(path, error) if re.search(pattern, one_line(error)) else None


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
        f"DuckDB {duckdb.__version__} cannot load its SQLite extension: {one_line(error)}",
        hint=f"pip install duckdb-extension-sqlite-scanner=={duckdb.__version__}",
    )


def _duckdb_type(declared: str) -> str:
    """The type DuckDB gives a column declared so in SQLite; OTHER for those we never read."""
    upper = declared.upper()
    return next((type_ for part, type_ in _TYPES if part in upper), "OTHER" if upper else "BLOB")


def definitions(catalog: Catalog) -> str:
    """A digest of what the canonical relations mean."""
    digest = hashlib.sha256()
    for file in (*catalog.adapters.values(), *chain(*catalog.variants.values())):
        digest.update(f"{file.path.name}\0{file.body}\0".encode())
    return digest.hexdigest()[:32]


def _version(text: str | None) -> tuple[int, int] | None:
    found = re.match(r"(\d+)\.(\d+)", text or "")
    return (int(found[1]), int(found[2])) if found else None


class Attached:
    """One trace, attached under `alias`; `shape` says what it holds, `load` how it was read.

    `path` is the trace as the user named it, `file` what is read in its place (an export of a
    report, or an ingested copy in the cache), `members` the files of a folder by table.
    `folder` holds the private copy that was read instead, where one was needed. `warnings` are
    for the user, in the order they were found.
    """

    def __init__(
        self,
        con: duckdb.DuckDBPyConnection,
        path: Path,
        options: Options,
        catalog: Catalog,
        owns_connection: bool,
        file: Path | None = None,
    ) -> None:
        self.con = con
        self.path = path
        self.file = file or path
        self.original = Path(os.path.abspath(self.file))  # noqa: PTH100 (symlinks stay)
        self.options = options
        self.alias = ""
        self.load = ""
        self.members: dict[str, Path] = {}
        self.folder: Path | None = None
        self.warnings: list[str] = []
        self._catalog = catalog
        self._owns_connection = owns_connection
        self._spill: Path | None = None
        self._views: dict[str, str] = {}
        try:
            self.shape = self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> Shape:
        path = self.file
        header = source.read_header(path)
        is_sqlite = not (header.is_duckdb or header.is_parquet)
        beside = source.companions(path) if is_sqlite else []
        self._before = source.stamp(path)
        target = self.original
        if header.is_wal or beside:
            self.folder = source.private_folder(self.options.temp_directory)
            target = source.settled_copy(path, beside, self.folder)
            header = source.read_header(target)
            what = " and ".join(each.name[len(path.name) :] for each in beside)
            self.warn(
                f"the file has a {what} beside it: read from a private copy with it applied"
                if what
                else "the file is in WAL mode: read from a private copy"
            )
        if (longer := source.check_size(path, header)) is not None:
            self.warn(longer)
        self._set_up()
        self.load = self._load_quietly() if is_sqlite else ""
        taken = self.execute("SELECT database_name FROM duckdb_databases()").fetchall()
        names = chain([CATALOG], (f"{CATALOG}_{number}" for number in range(2, len(taken) + 3)))
        alias = next(name for name in names if (name,) not in taken)
        self._kind = "TYPE sqlite, " if is_sqlite else ""
        self._is_folder = header.is_parquet
        try:
            self.execute(self.attach(target, alias))
            self.alias = alias
            if header.is_parquet:
                return self._read_files()
            return self._read_built() if header.is_duckdb else self._read_tables()
        except duckdb.Error as error:
            raise input_error(self.path, error) from None

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
            "enable_progress_bar": "false",
            "temp_directory": str(self._spill),
        }
        if options.threads is not None:
            settings["threads"] = str(options.threads)
        if options.memory_limit is not None:
            settings["memory_limit"] = options.memory_limit
        for name, value in settings.items():
            try:
                self.execute(f"SET {name} = {literal(value)}")
            except duckdb.Error as error:
                raise UsageError(
                    f"{name.replace('_', '-')} {value!r} is refused: {one_line(error)}"
                ) from None

    def _load_quietly(self) -> str:
        """Load the extension with downloads off, whatever a caller's connection allows."""
        name = "autoinstall_known_extensions"
        if self._owns_connection:
            return load_sqlite(self.con)
        before = self.execute(f"SELECT current_setting('{name}')").fetchall()[0][0]
        with contextlib.suppress(duckdb.Error):  # the caller may have locked the configuration
            self.execute(f"SET {name} = false")
        try:
            return load_sqlite(self.con)
        finally:
            with contextlib.suppress(duckdb.Error):
                self.execute(f"SET {name} = {str(before).lower()}")

    def close(self) -> None:
        """Remove private copies; detach from a connection that is not ours, close one that is."""
        if self._owns_connection:
            self.con.close()
        elif self.alias:
            with contextlib.suppress(duckdb.Error):
                self.execute(f"DETACH {self.alias}")
        if self.folder is not None:
            source.remove(self.folder)
        if self._spill is not None:
            shutil.rmtree(self._spill, ignore_errors=True)

    # ------------------------------------------------------------------ statements

    def attach(self, target: Path, alias: str) -> str:
        """The statement that attaches the trace; a folder becomes a database of views."""
        if self._is_folder:
            return f"ATTACH ':memory:' AS {alias}"
        return f"ATTACH {literal(str(target))} AS {alias} ({self._kind}READ_ONLY)"

    def views(self, tables: Iterable[str]) -> list[str]:
        """The statements that make tables of a folder readable; none for other traces."""
        return [self._views[table] for table in sorted(tables) if table in self._views]

    def execute(self, sql: str) -> duckdb.DuckDBPyConnection:
        """Execute one statement on the connection."""
        return self.con.execute(sql)

    def sqlite(self, query: str) -> list[tuple[Any, ...]]:
        """Run a query inside SQLite, on the attached trace; every value comes as text."""
        call = f"sqlite_query({literal(self.alias)}, {literal(query)})"
        return self.execute(f"SELECT * FROM {call}").fetchall()

    def warn(self, text: str) -> None:
        """Add a warning, once."""
        if text not in self.warnings:
            self.warnings.append(text)

    def check_unchanged(self) -> None:
        """Raise when the file was written to since it was opened; a copy cannot be."""
        now = source.stamp(self.file)
        if now is None and self.file != self.path:
            return  # removed from the cache: what is open stays readable
        if self.folder is None and now != self._before:
            raise InputError(
                f"{self.path} changed while it was read",
                hint="wait until its writer has finished, then run again",
            )

    # ------------------------------------------------------------------ what the file holds

    def _read_tables(self) -> Shape:
        """Tables and columns of the attached trace; views in the place of a source are refused."""
        catalog = self._catalog
        files = [*catalog.adapters.values(), *chain(*catalog.variants.values())]
        wanted = {table.lower() for file in files for table in source_tables(file)}
        # Views are looked at by name only: one that refers to itself would never return.
        for (name,) in self.sqlite("SELECT name FROM sqlite_master WHERE type = 'view'"):
            base = re.sub(r"_V[0-9]+$", "", name, flags=re.IGNORECASE)
            if wanted & {name.lower(), base.lower()}:
                raise InputError(
                    f"{self.path}: {name} is a view, not a table",
                    hint="only exported tables are read: export the report again",
                )
        tables: dict[str, dict[str, str]] = {}
        for table, column, declared in self.sqlite(
            "SELECT m.name AS name, c.name AS field, c.type AS type FROM sqlite_master AS m "
            "JOIN pragma_table_info(m.name) AS c WHERE m.type = 'table' ORDER BY m.name, c.cid"
        ):
            tables.setdefault(table, {})[column] = _duckdb_type(declared or "")
        return self._checked(Shape(tables), wanted, "an SQLite database")

    def _checked(self, shape: Shape, wanted: Iterable[str], what: str) -> Shape:
        if not any(shape.has(table) for table in wanted):
            raise InputError(
                f"{self.path} is {what}, but it holds no table of Nsight Systems",
                hint="export the report with `nsys export --type=sqlite`",
            )
        return shape

    def _read_files(self) -> Shape:
        """Views over the files of a Parquet export, with the types that the adapters expect."""
        wanted: dict[tuple[str, str], str] = {}
        catalog = self._catalog
        for file in (*catalog.adapters.values(), *chain(*catalog.variants.values())):
            for use in adapter_uses(file):
                for column, type_ in use.columns.items():
                    wanted[use.table.lower(), column] = type_
        tables, self._views = parquet.views(self.con, self.original, self.alias, wanted)
        for statement in self._views.values():
            self.execute(statement)
        self.members = parquet.files(self.original)
        return self._checked(
            Shape(tables, can_scrub=False),
            {table for table, _ in wanted},
            "a folder of Parquet files",
        )

    def _read_built(self) -> Shape:
        """The canonical relations and steps of a database that `build` made."""
        place = f"database_name = {literal(self.alias)} AND schema_name = '{SCHEMA}'"
        columns: dict[str, dict[str, str]] = {}
        for table, column, type_ in self.execute(
            f"SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE {place} "
            "ORDER BY table_name, column_index"
        ).fetchall():
            columns.setdefault(table, {})[column] = type_
        if "capability" not in columns:
            raise InputError(
                f"{self.path} is a DuckDB database that `nsys-sql build` did not make",
                hint="build it from the .sqlite export",
            )
        rows = self.execute(
            f"SELECT relation, is_present FROM {self.alias}.{SCHEMA}.capability"
        ).fetchall()
        relations = {
            name: (bool(is_present), tuple(columns[name]))
            for name, is_present in rows
            if name in columns
        }
        if "build_info" in columns:
            query = f"SELECT name, value FROM {self.alias}.{SCHEMA}.build_info"
            told = dict(self.execute(query).fetchall())
            if told.get("definitions") != definitions(self._catalog):
                self.warn(
                    f"it was built by nsys-sql {told.get('nsys_sql_version')} with other "
                    "definitions of the relations: build it again"
                )
            built_with, chosen = json.loads(told.get("options") or "{}"), self.options.windows()
            other = sorted(
                f"--{name.replace('_', '-')} {value}"
                for name, value in built_with.items()
                if chosen.get(name) != value
            )
            if other:
                self.warn(
                    f"it was built with {', '.join(other)}: what depends on that is made again "
                    "with the options of this run"
                )
        stored: dict[str, str] = {}
        if "build_key" in columns:
            query = f"SELECT name, key FROM {self.alias}.{SCHEMA}.build_key"
            stored = dict(self.execute(query).fetchall())
        return Shape(
            {name: columns[name] for name in relations},
            relations=relations,
            stored={name: key for name, key in stored.items() if name in columns},
            can_scrub=False,
        )

    def _properties(self, table: str, relation: str, names: Sequence[str]) -> dict[str, str]:
        """Name-value pairs of a metadata table; SQLite filters by name, values may be anything."""
        shape = self.shape
        listed = ", ".join(map(literal, names))
        if shape.relations is not None:
            if relation not in shape.relations:
                return {}
            where = f"{self.alias}.{SCHEMA}.{relation} WHERE name IN ({listed})"
            return dict(self.execute(f"SELECT name, value FROM {where}").fetchall())
        actual = shape.find(table)
        if actual is None or not (shape.has(table, "name") and shape.has(table, "value")):
            return {}
        if self._is_folder:
            where = f"{self.alias}.main.{quote(actual)} WHERE name IN ({listed})"
            return dict(self.execute(f"SELECT name, value FROM {where}").fetchall())
        query = f"SELECT name, hex(value) AS value FROM {quote(actual)} WHERE name IN ({listed})"
        return {
            name: bytes.fromhex(value or "").decode("utf-8", "replace")
            for name, value in self.sqlite(query)
        }

    def host(self) -> str | None:
        """The name of the host that was profiled."""
        told = self._properties("TARGET_INFO_SYSTEM_ENV", "system_env", ("Hostname",))
        return told.get("Hostname") or None

    def info(self, planner: Planner) -> TraceInfo:
        """Versions, tables and present relations; warns of versions newer than the known ones."""
        labels = ("EXPORT_PRODUCT_VERSION", "EXPORT_SCHEMA_VERSION")
        install = ("TargetInstallDir", "CaptureVersion")
        try:
            told = self._properties("EXPORT_META_DATA", "export_info", labels)
            told |= self._properties("META_DATA_EXPORT", "export_info", labels)
            place = self._properties("TARGET_INFO_SYSTEM_ENV", "system_env", install)
        except duckdb.Error as error:
            raise input_error(self.path, error) from None
        schema = told.get("EXPORT_SCHEMA_VERSION")
        product = told.get("EXPORT_PRODUCT_VERSION")
        capture = re.search(r"20\d\d\.\d+\.\d+", " ".join(place.values()))
        for what, version, known in (
            ("export schema", schema, KNOWN_SCHEMA),
            ("exporter", product, KNOWN_PRODUCT),
        ):
            if (_version(version) or known) > known:
                newest = ".".join(map(str, known))
                self.warn(
                    f"{what} {version} is newer than {newest}, the newest known one: "
                    "columns are found by name"
                )
        return TraceInfo(
            path=self.path,
            product_version=product,
            schema_version=schema,
            capture_version=capture[0] if capture else None,
            tables=self.shape.tables,
            present=tuple(
                name for name in sorted(self._catalog.adapters) if planner.is_present(name)
            ),
            warnings=(),
        )

    def row_counts(self) -> list[tuple[str, int]]:
        """Every table of the trace with its number of rows: reads all of them."""
        counts = []
        for table in sorted(self.shape.tables):
            if self.shape.relations is not None:
                place = f"{self.alias}.{SCHEMA}.{quote(table)}"
                rows = self.execute(f"SELECT count(*) FROM {place}").fetchall()
            elif self._is_folder:
                place = f"{self.alias}.main.{quote(table)}"
                rows = self.execute(f"SELECT count(*) FROM {place}").fetchall()
            else:
                rows = self.sqlite(f"SELECT count(*) AS n FROM {quote(table)}")
            counts.append((table, int(rows[0][0])))
        return counts
