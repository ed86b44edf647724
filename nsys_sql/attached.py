"""A trace attached to DuckDB, read-only, and what is known of it before any row is read."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import re
import tempfile
import uuid
from collections.abc import Container, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import duckdb

from nsys_sql import arrow, interrupts, parquet, source
from nsys_sql.adapt import CATALOG, literal, quote, warm_up
from nsys_sql.catalog import Catalog
from nsys_sql.errors import InputError, UsageError, one_line
from nsys_sql.guest import is_in_transaction
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
_BROKEN = "malformed|disk I/O|string or blob too big|magic bytes"
_DAMAGE = (
    (
        f"{_BROKEN}|corrupt|[Pp]arquet file|string encoding",
        "is damaged or truncated",
        "copy or export it again",
    ),
    ("not a database|encrypted", "is not an SQLite database, or it is encrypted", None),
    ("locked|busy|lock on file", "is locked by another program", "wait until it has finished"),
    ("unable to open|readonly|permission", "cannot be opened", "check its permissions"),
)


# What stands in the schema and is no table of rows.
_NO_TABLES = (
    "SELECT name, CASE type WHEN 'view' THEN 'a view' ELSE 'a virtual table' END AS what "
    "FROM sqlite_master WHERE type = 'view' OR (type = 'table' AND coalesce(rootpage, 0) = 0)"
)
_COLUMNS = (
    "SELECT m.name AS name, c.name AS field, c.type AS type, c.hidden AS hidden "
    "FROM sqlite_master AS m JOIN pragma_table_xinfo(m.name) AS c "
    "WHERE m.type = 'table' AND m.rootpage > 0 ORDER BY m.name, c.cid"
)
# The index of a primary key names the row by its number, unless there is none.
_WITHOUT_ROWID = (
    "SELECT m.name AS name FROM sqlite_master AS m JOIN pragma_index_list(m.name) AS i "
    "WHERE m.type = 'table' AND m.rootpage > 0 AND i.origin = 'pk' "
    "AND NOT EXISTS (SELECT 1 FROM pragma_index_xinfo(i.name) AS x WHERE x.cid = -1)"
)

# Tables whose rows become operations, records and waits; how many rows their ids have room for.
_NUMBERED = tuple(
    f"CUPTI_ACTIVITY_KIND_{name}"
    for name in ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE", "CUDA_EVENT", "SYNCHRONIZATION")
)
_ROWS = 1 << 40


def _base(table: str) -> str:
    """A table's name, lower case, without the number of its version."""
    return re.sub(r"_V[0-9]+$", "", table, flags=re.IGNORECASE).lower()


def _is_one_of(table: str, wanted: Container[str]) -> bool:
    return table.lower() in wanted or _base(table) in wanted


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
        f"{_BROKEN}|database is locked|file is not a database|no such collation|"
        "string encoding found in Parquet|[Cc]orrupt"
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
    """Load the SQLite extension; return the statement that did. Nothing is ever downloaded.

    DuckDB loads only what its makers signed. A file that fails that is an InputError at once, and
    not a reason to look for another: somebody changed what the lock or pip had installed.
    """
    file = extension_file()
    attempts = [f"LOAD {literal(str(file))}"] if file else []
    errors: list[duckdb.Error] = []
    for statement in [*attempts, "LOAD sqlite"]:
        try:
            con.execute(statement)
        except duckdb.Error as caught:
            if statement in attempts and re.search(
                r"signature|not a DuckDB extension", str(caught)
            ):
                raise InputError(
                    f"DuckDB refuses {file}: it is damaged, or not the extension that was signed",
                    hint="pip install --force-reinstall "
                    f"duckdb-extension-sqlite-scanner=={duckdb.__version__}",
                ) from None
            errors.append(caught)
        else:
            return statement
    raise InputError(
        f"DuckDB {duckdb.__version__} cannot load its SQLite extension: {one_line(errors[0])}",
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


def spill_folder(temp_directory: str | None) -> Path:
    """Where DuckDB puts what does not fit; left to itself, it would be a folder where we stand."""
    try:
        return source.private_folder(temp_directory)
    except InputError:
        if temp_directory is not None:
            raise
    # Most runs never spill: only those that do will fail.
    return Path(tempfile.gettempdir()) / f"nsys-sql-{source.owner()}-{uuid.uuid4().hex}"


def configure(
    con: duckdb.DuckDBPyConnection, spill: Path, threads: int | None, memory_limit: str | None
) -> None:
    """Settings of a connection of ours: nothing is downloaded, and it spills into a folder of ours.

    Raises a usage error for a number of threads or a limit that DuckDB refuses.
    """
    settings = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "enable_progress_bar": "false",
        "temp_directory": str(spill),
        "TimeZone": "UTC",  # an answer does not depend on where it is given
    }
    if threads is not None:
        settings["threads"] = str(threads)
    if memory_limit is not None:
        settings["memory_limit"] = memory_limit
    interrupts.watch(con)
    for name, value in settings.items():
        try:
            con.execute(f"SET {name} = {literal(value)}")
        except (duckdb.Error, UnicodeEncodeError) as error:
            raise UsageError(
                f"{name.replace('_', '-')} {value!r} is refused: {one_line(error)}"
            ) from None


def keep_blocks(con: duckdb.DuckDBPyConnection) -> None:
    """Have blocks that one step frees serve the next one, up to 4 GiB, until the process ends.

    Otherwise they go back to the system, which hands them out (and zeroes them) again: 4 % of a
    large run, more on a busy host. Only address space is taken in advance.
    """
    with contextlib.suppress(duckdb.Error):
        con.execute("SET block_allocator_memory = '4GiB'")


class Attached:
    """One trace, attached under `alias`; `shape` says what it holds, `load` how it was read.

    `path` is the trace as the user named it, `file` what is read in its place (an export of a
    report, or an ingested copy in the cache), `members` the files of a folder by table.
    `folder` holds the private copy that was read instead, where one was needed, or what is made of
    an Arrow export, `arrow`. `warnings` are for the user, in the order they were found.
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
        self.arrow: arrow.Export | None = None
        self.warnings: list[str] = []
        self.built_with = ""  # what this run lacks of the options of a built database
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
        is_sqlite = not (header.is_duckdb or header.is_parquet or header.is_arrow)
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
        if header.is_arrow:
            self.folder = source.private_folder(self.options.temp_directory)
        self._set_up()
        self.load = ""
        if is_sqlite:
            warm_up()
            self.load = self._load_quietly()
        taken = self.execute("SELECT database_name FROM duckdb_databases()").fetchall()
        names = chain([CATALOG], (f"{CATALOG}_{number}" for number in range(2, len(taken) + 3)))
        alias = next(name for name in names if (name,) not in taken)
        self._kind = "TYPE sqlite, " if is_sqlite else ""
        self._is_folder = header.is_parquet or header.is_arrow
        try:
            self.execute(self.attach(target, alias))
            self.alias = alias
            if self._is_folder:
                return self._read_files(header.is_arrow)
            return self._read_built() if header.is_duckdb else self._read_tables()
        except duckdb.Error as error:
            if self.file != self.path:
                raise InputError(
                    f"what is cached of {self.path} is damaged: {one_line(error)}",
                    hint="`nsys-sql cache --clear` removes it",
                ) from None
            raise input_error(self.path, error) from None

    def _set_up(self) -> None:
        """Settings of our own connection; a caller's connection keeps its own."""
        if not self._owns_connection:
            return
        options = self.options
        # one folder where a private copy has one already
        self._spill = self.folder or spill_folder(options.temp_directory)
        configure(self.con, self._spill, options.threads, options.memory_limit)

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
        elif self.alias and not is_in_transaction(self.con):
            # Inside a transaction DETACH fails, and takes with it what the caller wrote there.
            with contextlib.suppress(duckdb.Error):
                self.execute(f"DETACH {self.alias}")
                if self.arrow is not None:
                    self.arrow.close()
        if self.folder is not None:
            source.remove(self.folder)
        if self._spill is not None:
            source.remove(self._spill)

    # ------------------------------------------------------------------ statements

    def attach(self, target: Path, alias: str) -> str:
        """The statement that attaches the trace; a folder becomes a database of views."""
        if self._is_folder:
            return f"ATTACH ':memory:' AS {alias}"
        return f"ATTACH {literal(str(target))} AS {alias} ({self._kind}READ_ONLY)"

    def views(self, tables: Iterable[str]) -> list[str]:
        """The statements that make tables of a folder readable; none for other traces."""
        return [self._views[table] for table in sorted(tables) if table in self._views]

    def need(self, tables: Iterable[str]) -> None:
        """Make tables of an Arrow export readable, as other traces' are; names of others are none.

        Only then can they be read: a table that nobody asked for is not there, rather than empty.
        """
        if self.arrow is not None:
            self.arrow.need(tables)

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
        is_copy = self.folder is not None and self.arrow is None
        if now != self._before and not is_copy:
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
        # Views and virtual tables are looked at by name only: what stands behind them may never
        # return, or not be there at all.
        for name, what in self.sqlite(_NO_TABLES):
            if _is_one_of(name, wanted):
                raise InputError(
                    f"{self.path}: {name} is {what}, not a table",
                    hint="only exported tables are read: export the report again",
                )
        tables: dict[str, dict[str, str]] = {}
        generated: list[tuple[str, str]] = []
        for table, column, declared, hidden in self.sqlite(_COLUMNS):
            # SQLite ignores case in ASCII only: what is spelled with other letters is another name.
            if table.lower().isascii() and not table.isascii():
                continue
            if int(hidden) == 0:
                tables.setdefault(table, {})[column] = _duckdb_type(declared or "")
                if column.lower() == "rowid" and _is_one_of(table, wanted):
                    raise self._odd_table(table, "has a column called rowid")
            elif _is_one_of(table, wanted):
                generated.append((table, column))
        for table, column in generated:
            if column.lower() in self._wanted_columns(table):
                raise self._odd_table(table, f"has {column} as a generated column")
        for (table,) in self.sqlite(_WITHOUT_ROWID):
            if _is_one_of(table, wanted):
                raise self._odd_table(table, "is a table WITHOUT ROWID")
        self._check_row_numbers(Shape(tables))
        bases: dict[str, list[str]] = {}
        for table in tables:
            bases.setdefault(_base(table), []).append(table)
        for base, found in sorted(bases.items()):
            if base in wanted and len(found) > 1:
                read = Shape(tables).find(base)
                others = ", ".join(sorted(set(found) - {read}))
                self.warn(f"of the tables of one name only {read} is read, not {others}")
        return self._checked(Shape(tables), wanted, "an SQLite database")

    def _check_row_numbers(self, shape: Shape) -> None:
        """Refuse row numbers out of range: the ids of operations are made of them."""
        for table in filter(None, map(shape.find, _NUMBERED)):
            name = quote(table)
            found = self.sqlite(
                f"SELECT (SELECT min(rowid) FROM {name}) AS least, "
                f"(SELECT max(rowid) FROM {name}) AS most"
            )[0]
            if any(number is not None and not 0 <= int(number) < _ROWS for number in found):
                raise self._odd_table(table, f"has row numbers below 0 or from {_ROWS} on")

    def _odd_table(self, table: str, what: str) -> InputError:
        return InputError(
            f"{self.path}: {table} {what}, which no export has", hint="export the report again"
        )

    def _wanted_columns(self, table: str) -> set[str]:
        """The columns, lower case, that adapters read of a table."""
        catalog = self._catalog
        return {
            column.lower()
            for file in (*catalog.adapters.values(), *chain(*catalog.variants.values()))
            for use in adapter_uses(file)
            if use.table.lower() == _base(table)
            for column in use.columns
        }

    def _checked(self, shape: Shape, wanted: Iterable[str], what: str) -> Shape:
        if not any(shape.has(table) for table in wanted):
            raise InputError(
                f"{self.path} is {what}, but it holds no table of Nsight Systems",
                hint="export the report with `nsys export --type=sqlite`",
            )
        return shape

    def _read_files(self, is_arrow: bool) -> Shape:
        """The tables of a Parquet or an Arrow export, with the types that the adapters expect."""
        wanted: dict[tuple[str, str], str] = {}
        catalog = self._catalog
        for file in (*catalog.adapters.values(), *chain(*catalog.variants.values())):
            for use in adapter_uses(file):
                for column, type_ in use.columns.items():
                    wanted[use.table.lower(), column] = type_
        if is_arrow:
            assert self.folder is not None
            self.arrow = arrow.Export(self.con, self.original, self.folder, self.alias, wanted)
            tables = self.arrow.types
        else:
            tables, self._views = parquet.views(self.con, self.original, self.alias, wanted)
            for statement in self._views.values():
                self.execute(statement)
            self.members = parquet.files(self.original)
        shape = Shape(tables, can_scrub=False)
        what = "an Arrow export" if is_arrow else "a folder of Parquet files"
        self._checked(shape, {table for table, _ in wanted}, what)
        if not self._owns_connection:  # whose owner sees all tables
            self.need(tables)
        return shape

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
                self.built_with = ", ".join(other)
                self.warn(
                    f"it was built with {self.built_with}: what depends on that is made again "
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
            self.need([actual])
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
            if self.arrow is not None:
                counts.append((table, self.arrow.count(table)))
                continue
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
