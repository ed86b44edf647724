"""Databases that answer alone: everything of a trace but the trace, in one DuckDB file.

Relations and steps are tables, the macros stand beside them, and each recipe is a view of schema
main: `duckdb FILE.duckdb`, then `FROM budget;`, with no extension and no Python. The package opens
such a file in place of the trace and takes every step from it that it would make the same way.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path

import duckdb

import nsys_sql
from nsys_sql import cache, inputs, output, source, userfiles
from nsys_sql.adapt import literal
from nsys_sql.attached import definitions
from nsys_sql.errors import InputError, UsageError, one_line
from nsys_sql.options import Options
from nsys_sql.plan import SCHEMA
from nsys_sql.results import TraceInfo
from nsys_sql.session import Model

# The name of the file is the name of its database: these would hide a schema or a catalog.
_TAKEN = frozenset({SCHEMA, "main", "system", "temp", "information_schema", "pg_catalog"})
# Small files of many tables waste most of their blocks of the default size.
_SMALL_TRACE, _SMALL_BLOCK = 4 << 20, 16384


def build(
    trace: str | os.PathLike[str],
    target: str | os.PathLike[str],
    options: Options | None = None,
    *,
    replace_existing: bool = False,
) -> TraceInfo:
    """Write everything but the trace itself into a new DuckDB database; recipes become views."""
    checked = (options or Options()).check()
    path, file = Path(trace), output.engine_path(Path(target))
    if file.stem.lower() in _TAKEN:
        raise UsageError(
            f"a database called {file.name} would make names like {SCHEMA}.kernel ambiguous",
            hint="choose another file name",
        )
    if file.exists() and not replace_existing:
        raise UsageError(f"{file} exists", hint="name a new file, or add --force")
    found = inputs.resolve(path, checked)
    source.read_header(found)
    with output.replacing(file) as scratch:
        return _write(path, found, scratch, checked)


def _write(path: Path, found: Path, scratch: Path, options: Options) -> TraceInfo:
    con = duckdb.connect()
    size = source.size(found)
    block = f" (BLOCK_SIZE {_SMALL_BLOCK})" if size < _SMALL_TRACE else ""
    try:
        try:
            con.execute(f"ATTACH {literal(str(scratch.absolute()))} AS built{block}")
            con.execute("USE built")
        except duckdb.Error as error:
            text = f"{scratch} cannot be written: {one_line(error)}"
            refused = UsageError(output.final_names(text))
            raise output.failure(error) or refused from None
        catalog = userfiles.full_catalog(options.recipes)
        with Model(con, path, options, catalog, all_tables=True, file=found) as model:
            model.create_all("main", with_errors=True)
            _describe(model)
            con.execute("CHECKPOINT built")
            return model.trace
    finally:
        con.close()
        scratch.with_name(scratch.name + ".wal").unlink(missing_ok=True)


def _describe(model: Model) -> None:
    """Tables that say what the file is; views that list the recipes and what limits them."""
    con = model.con
    trace = model.trace
    facts = {
        "nsys_sql_version": nsys_sql.__version__,
        "definitions": definitions(model.catalog),
        "options": json.dumps(model.options.windows()),
        "product_version": trace.product_version,
        "schema_version": trace.schema_version,
        "capture_version": trace.capture_version,
    }
    con.execute("BEGIN")  # else every row is a transaction, which waits for the disk
    con.execute(f"CREATE TABLE {SCHEMA}.build_info (name VARCHAR, value VARCHAR)")
    con.executemany(f"INSERT INTO {SCHEMA}.build_info VALUES (?, ?)", [*facts.items()])
    con.execute(f"CREATE TABLE {SCHEMA}.build_key (name VARCHAR, key VARCHAR)")
    # In one statement: for every value that is given apart, DuckDB looks for the package pandas.
    keys = ", ".join(f"({literal(name)}, {literal(key)})" for name, key in model.keys().items())
    con.execute(f"INSERT INTO {SCHEMA}.build_key VALUES {keys}")
    con.execute("CREATE TABLE main.recipes (recipe VARCHAR, question VARCHAR, why_not VARCHAR)")
    con.executemany(
        "INSERT INTO main.recipes VALUES (?, ?, ?)",
        [
            (name.replace("-", "_"), recipe.question, model.cannot(recipe))
            for name, recipe in model.catalog.recipes.items()
        ],
    )
    con.execute("COMMIT")
    notes = [*model.note_queries()]
    if notes:
        con.execute(f"CREATE VIEW main.notes AS\n{' UNION ALL '.join(notes)}")


# ---------------------------------------------------------------- the cache


def ingested(trace: Path, found: Path, options: Options) -> Path:
    """The database of a trace in the cache: the one that is there, or one made now."""
    if source.read_header(found).is_duckdb:
        return found
    # What comes with an option from elsewhere is joined when the database is opened.
    alone = replace(
        options,
        cache=False,
        reference_steps=None,
        callsites=None,
        metrics_from=None,
        params={},
        recipes=(),
        keep_steps=True,
    )
    target = cache.place("ingest", _made_from(found, alone))
    if target.is_file():
        return target
    inputs.tell(f"{trace.name}: reading it into the cache")
    with cache.making(target, trace) as file:
        _write(trace, found, file, alone)
        # The name was made from what stood there before it was opened.
        if cache.place("ingest", _made_from(found, alone)) != target:
            raise InputError(
                f"{trace} changed while it was read",
                hint="wait until its writer has finished, then run again",
            )
    return target


def _made_from(found: Path, options: Options) -> dict[str, object]:
    free = ("threads", "memory_limit", "temp_directory", "keep_steps", "cache", "recipes")
    names = (name for name in Options.__dataclass_fields__ if name not in free)
    taxonomy = []
    for name in options.taxonomy:
        try:
            taxonomy.append(hashlib.sha256(Path(name).read_bytes()).hexdigest())
        except OSError as error:
            raise UsageError(f"{name} cannot be read: {error.strerror}") from None
    return {
        "trace": source.identity(found),
        "version": nsys_sql.__version__,
        "duckdb": duckdb.__version__,
        "sql": _sql_digest(),
        "options": {name: getattr(options, name) for name in names} | {"taxonomy": taxonomy},
    }


def _sql_digest() -> str:
    """A digest of every SQL file: another version of one is another database."""
    from nsys_sql import resources

    digest = hashlib.sha256()
    for path in sorted((resources.root() / "sql").rglob("*")):
        if path.is_file():
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


@contextmanager
def temporary(
    trace: Path, options: Options, preparing: AbstractContextManager[object]
) -> Iterator[Path]:
    """A built database for one session: the file itself where it fits the options, else a new one.

    `preparing` is entered while it is made.
    """
    folder: Path | None = None
    try:
        with preparing:
            file = inputs.resolve(trace, options)
            if not (source.read_header(file).is_duckdb and _fits(file, options)):
                folder = source.private_folder(options.temp_directory)
                inputs.tell(f"{trace.name}: reading it")
                _write(trace, file, folder / "trace.duckdb", options)
                file = folder / "trace.duckdb"
        yield file
    finally:
        if folder is not None:
            source.remove(folder)


def _fits(file: Path, options: Options) -> bool:
    """Whether a built database was built with these options."""
    with Model(duckdb.connect(), file, options, userfiles.full_catalog()) as model:
        own = options.taxonomy or options.recipes or options.params or options.reference_steps
        return not (model.trace.warnings or own or options.callsites or options.metrics_from)
