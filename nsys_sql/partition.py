"""One trace as a folder of small Parquet files: the task of a survey, and a side of a comparison.

`write_partition` opens a trace with the engine, runs every file of `sql/facts` and writes each
result as `part-<key>/<fact>.parquet`, with a manifest that says what it was made from. The key
covers the trace (path, size, time of change, sampled content), the version, the SQL and the options
that decide numbers: an unchanged trace is never read twice. The folder appears whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nsys_sql
from nsys_sql import catalog, output, resources, source, userfacts
from nsys_sql.adapt import literal
from nsys_sql.catalog import SqlFile
from nsys_sql.errors import InputError, NsysSqlError, UsageError, one_line
from nsys_sql.options import Options

if TYPE_CHECKING:
    import duckdb

MANIFEST = "manifest.json"
# Options that change no number of a result.
_FREE = ("threads", "memory_limit", "temp_directory", "keep_steps", "cache")


@dataclass(frozen=True, slots=True)
class Partition:
    """A finished partition: its folder, and what its manifest says."""

    path: Path
    manifest: Mapping[str, Any]

    @property
    def key(self) -> str:
        """The value of column `part` in every row of its files."""
        return str(self.manifest["key"])

    @property
    def trace(self) -> str:
        """The absolute path of the trace it was made from."""
        return str(self.manifest["trace"]["path"])


@lru_cache(maxsize=1)
def fact_files() -> tuple[SqlFile, ...]:
    """The SQL files whose results make up a partition."""
    folder = resources.root() / "sql" / "facts"
    return tuple(catalog.parse("fact", path) for path in sorted(folder.glob("*.sql")))


@lru_cache(maxsize=1)
def _sql_digest() -> str:
    """A digest of everything that decides what a fact means, but for the options."""
    digest = hashlib.sha256()
    folder = resources.root() / "sql"
    for name in ("adapters", "macros", "steps", "facts"):
        for path in sorted((folder / name).glob("*.sql")):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    digest.update((folder / "taxonomy.yaml").read_bytes())
    return digest.hexdigest()[:16]


def _deciding(options: Options) -> dict[str, object]:
    names = (name for name in Options.__dataclass_fields__ if name not in _FREE)
    found: dict[str, object] = {name: getattr(options, name) for name in names}
    found["params"] = dict(options.params)
    found["recipes"] = userfacts.digests(options.recipes)
    try:
        found["taxonomy"] = [
            hashlib.sha256(Path(path).read_bytes()).hexdigest() for path in options.taxonomy
        ]
    except OSError as error:
        raise UsageError(f"{error.filename} cannot be read: {error.strerror}") from None
    return found


def key_of(trace: Path, options: Options) -> tuple[str, dict[str, object]]:
    """The key of a trace's partition, and what it was made from."""
    made_from: dict[str, object] = {
        "trace": source.identity(trace),
        "version": nsys_sql.__version__,
        "sql": _sql_digest(),
        "options": _deciding(options),
    }
    text = json.dumps(made_from, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:20], made_from


def read(folder: Path) -> Partition | None:
    """The partition in a folder, or None where it is not complete."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        sizes = manifest["files"]
        if all((folder / name).stat().st_size == size for name, size in sizes.items()):
            return Partition(folder, manifest)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    return None


def find(trace: Path, folder: Path, options: Options) -> Partition | None:
    """The finished partition of a trace, if there is one for these options."""
    return read(folder / f"part-{key_of(trace, options)[0]}")


def write_partition(trace: Path, folder: Path, options: Options) -> Path:
    """Write the partition of a trace unless it is there; return its folder."""
    return ensure(trace, folder, options).path


def ensure(trace: Path, folder: Path, options: Options) -> Partition:
    """The partition of a trace, made now if need be."""
    from nsys_sql import session

    key, made_from = key_of(trace, options)
    target = folder / f"part-{key}"
    if (found := read(target)) is not None:
        return found
    began = time.monotonic()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        source.sweep(folder.glob(".part-*"))
        scratch = Path(tempfile.mkdtemp(prefix=f".part-{key}-{source.owner()}-", dir=folder))
    except OSError as error:
        raise UsageError(
            f"partitions cannot be written to {folder}: {error.strerror}",
            hint="choose another folder with --partitions",
        ) from None
    try:
        with source.half_made(scratch), session.open(trace, options) as model:
            model.write_facts(fact_files(), scratch, key)
            own = userfacts.write(model, scratch, key)
            host, info = model.host(), model.trace
            told = userfacts.warnings(model)
        # The key was made from what stood there before it was opened.
        if source.identity(trace) != made_from["trace"]:
            raise InputError(
                f"{trace} changed while it was read",
                hint="wait until its writer has finished, then run again",
            )
        manifest = {
            "key": key,
            **made_from,
            "trace": {
                **made_from["trace"],
                "product_version": info.product_version,
                "schema_version": info.schema_version,
                "capture_version": info.capture_version,
                "warnings": told,
            },
            "host_hash": hashlib.sha256(host.encode()).hexdigest()[:12] if host else None,
            "seconds": round(time.monotonic() - began, 3),
            "files": {path.name: path.stat().st_size for path in sorted(scratch.iterdir())},
            **({userfacts.ENTRY: own} if own else {}),
        }
        (scratch / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
        _settle(scratch, target)
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {error.strerror or error}") from None
    except Exception as error:  # DuckDB could not write one of its files
        if (reason := output.unwritten(error, folder)) is None:
            raise
        raise UsageError(
            f"partitions cannot be written to {folder}: {reason}",
            hint="make room, or choose another folder with --partitions",
        ) from None
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    done = read(target)
    if done is None:
        raise NsysSqlError(f"{target} is not complete after it was written")
    return done


def _settle(scratch: Path, target: Path) -> None:
    """Give a finished folder its name; another process may have been faster."""
    scratch.chmod(0o755)
    for _ in range(2):
        try:
            scratch.rename(target)
            return
        except OSError:
            if read(target) is not None:
                return
            shutil.rmtree(target, ignore_errors=True)  # left over from something broken
    scratch.rename(target)


def listed(folder: Path) -> list[Partition]:
    """The finished partitions of a folder, by key."""
    if not source.is_folder(folder):
        raise InputError(f"{folder} is no folder", hint="name one that a survey wrote")
    found = (read(path) for path in sorted(folder.glob("part-*")))
    return [each for each in found if each is not None]


def load(
    con: duckdb.DuckDBPyConnection,
    schema: str,
    parts: Iterable[Partition],
    facts: Sequence[str] | None = None,
) -> None:
    """Create a table <schema>.<fact> for each fact, with the rows of all partitions."""
    paths = [each.path for each in parts]
    for file in fact_files():
        if facts is not None and file.name not in facts:
            continue
        columns = ", ".join(f"{each.name} {each.type}" for each in file.columns)
        con.execute(f"CREATE OR REPLACE TABLE {schema}.{file.name} (part VARCHAR, {columns})")
        missing = [path for path in paths if not (path / f"{file.name}.parquet").is_file()]
        if missing:
            raise InputError(
                f"{missing[0]} was written by another version: it has no fact {file.name}",
                hint="read the traces again",
            )
        if paths:
            kept = [path / f"{file.name}.parquet" for path in paths]
            insert(con, f"{schema}.{file.name}", kept)


def insert(con: duckdb.DuckDBPyConnection, place: str, files: Sequence[Path]) -> None:
    """Add the rows of files of partitions to a table; InputError names one that is damaged."""
    import duckdb

    def read(files: Sequence[Path]) -> str:
        return f"FROM read_parquet([{', '.join(literal(str(file)) for file in files)}])"

    try:
        con.execute(f"INSERT INTO {place} {read(files)}")
    except (duckdb.OutOfMemoryException, duckdb.InterruptException):
        raise
    except duckdb.Error as failed:
        for file in files:
            try:
                con.execute(f"SELECT bit_xor(hash(COLUMNS(*))) {read([file])}").fetchall()
            except duckdb.Error as error:
                raise InputError(
                    f"{file} is damaged: {one_line(error)}",
                    hint=f"remove {file.parent}: the trace is read again then",
                ) from failed
        raise InputError(
            f"{files[0].parent} does not hold what it should: {one_line(failed)}",
            hint="remove it: the trace is read again then",
        ) from failed
