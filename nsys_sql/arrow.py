"""Arrow exports, `nsys export --type=arrowdir` or `--type=arrow`, read with pyarrow.

A folder holds `<TABLE>.arrow` for each table with rows, one stream each; a single file holds the
same streams one after another, each with the name of its table in its schema. nsys 2024.2 writes a
table as one batch, however long it is, so files are mapped, and never read into memory.

DuckDB reads none of this by itself. What a question needs of a table becomes a Parquet file in a
private folder when it is needed first, and is read from there like a table of a Parquet folder. The
tables that hold the environment of the profiled program stay what they are, mapped: nothing of them
is written.

Everything is checked before DuckDB sees it: a stream has to end with its mark, which tells one that
was cut from one that is whole, and every value is validated when its table is taken over.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsys_sql import inputs, parquet, sandbox, source
from nsys_sql.errors import InputError

if TYPE_CHECKING:
    import duckdb

# The row groups of DuckDB: what it reads in parallel.
_ROWS = 122_880


@dataclass(frozen=True, slots=True)
class _Stream:
    """One table: where its stream begins in which file, and how many rows it holds."""

    file: Path
    at: int
    rows: int


class Export:
    """An Arrow export; `types` are its tables with their columns, as parquet.views tells them.

    A table can be read once it was told to `need`; `files` are the Parquet files that may be made,
    by table, whether they are there or not.
    """

    def __init__(
        self,
        con: duckdb.DuckDBPyConnection,
        path: Path,
        folder: Path,
        alias: str,
        wanted: Mapping[tuple[str, str], str],
    ) -> None:
        self._con = con
        self._folder = folder
        self._alias = alias
        self._wanted = wanted
        self._name = path.name
        self._ready: set[str] = set()
        self._registered: list[str] = []
        self._arrow = _pyarrow(path)
        self._streams: dict[str, _Stream] = {}
        self.types: parquet.Tables = {}
        for table, schema, stream in self._read(path):
            if table.lower() in map(str.lower, self._streams):
                raise _damaged(stream.file, f"it holds the table {table} twice")
            with self._refusing(stream.file), self._held(schema.empty_table()) as place:
                self.types[table], _ = parquet.view(con, alias, table, place, wanted)
            self._streams[table] = stream
        self.files = {
            table: folder / f"table-{number}.parquet"
            for number, table in enumerate(self._streams)
            if not sandbox.is_secret(table)
        }

    def count(self, table: str) -> int:
        """The number of rows of a table."""
        return self._streams[table].rows

    def close(self) -> None:
        """Take what was registered from a connection that lives on."""
        for name in self._registered:
            self._con.unregister(name)
        self._registered.clear()

    def need(self, tables: Iterable[str]) -> None:
        """Make tables readable that are not yet; names of others do no harm."""
        for table in tables:
            if table in self._streams and table not in self._ready:
                self._take_over(table)
                self._ready.add(table)

    # ------------------------------------------------------------------ streams

    def _read(self, path: Path) -> Iterator[tuple[str, Any, _Stream]]:
        """Every table with its schema and its stream; no value is looked at."""
        if path.is_dir():
            for file in source.arrow_files(path):
                parquet.check_file(file)
                schema, *more = self._streams_of(file)
                if more:
                    raise _damaged(file, "it holds more than one stream")
                yield file.stem, *schema
            return
        found = self._streams_of(path)
        for schema, stream in found:
            named = (schema.metadata or {}).get(b"table_name", b"").decode("utf-8", "replace")
            if not named:
                raise _damaged(path, "it holds a stream without the name of a table")
            if len(found) == 1 and named == path.stem:
                raise InputError(
                    f"{path} is one table of an Arrow export",
                    hint=f"give the folder that holds all of them: {path.parent}",
                )
            yield named, schema, stream

    def _streams_of(self, file: Path) -> list[tuple[Any, _Stream]]:
        """The schemas and streams of a file, each checked to be whole."""
        found: list[tuple[Any, _Stream]] = []
        with self._refusing(file), self._arrow.memory_map(str(file)) as mapped:
            while not found or mapped.tell() < mapped.size():
                at = mapped.tell()
                reader = self._arrow.ipc.open_stream(mapped)
                schema = reader.schema
                rows, end = 0, mapped.tell()
                for batch in reader:
                    rows, end = rows + batch.num_rows, mapped.tell()
                if mapped.tell() == end:  # reading ends at the mark, and as well without one
                    raise _damaged(file, "it ends before the mark of its end")
                found.append((schema, _Stream(file, at, rows)))
        return found

    @contextlib.contextmanager
    def _refusing(self, file: Path) -> Iterator[None]:
        """Blame what goes wrong on a file of the export."""
        import duckdb

        try:
            yield
        except (duckdb.InterruptException, duckdb.PermissionException):
            raise
        except MemoryError as error:  # of a length in the file as well, where that is damaged
            raise InputError(f"{file} is damaged, or too large for the memory: {error}") from None
        except OSError as error:
            if error.errno is not None:
                raise InputError(f"{file} cannot be read: {os.strerror(error.errno)}") from None
            raise _damaged(file, error) from None  # pyarrow's own, of a stream that was cut
        except (self._arrow.ArrowException, duckdb.Error) as error:
            raise _damaged(file, error) from None

    # ------------------------------------------------------------------ what DuckDB reads

    def _take_over(self, table: str) -> None:
        inputs.tell(f"{self._name}: reading {table}")
        stream = self._streams[table]
        with self._refusing(stream.file), self._arrow.memory_map(str(stream.file)) as mapped:
            mapped.seek(stream.at)
            reader = self._arrow.ipc.open_stream(mapped)
            if (file := self.files.get(table)) is not None:
                self._write(reader, file)
                place = parquet.scan(file)
            else:
                place = self._register(self._whole(reader))
            _, view = parquet.view(self._con, self._alias, table, place, self._wanted)
            self._con.execute(view)

    def _plain(self, schema: Any) -> Any:
        """The names and types of a schema, without what it says besides."""
        return self._arrow.schema([(field.name, field.type) for field in schema])

    def _batches(self, reader: Any, schema: Any) -> Iterator[Any]:
        """The rows in pieces that are valid to the last value."""
        for batch in reader:
            whole = self._arrow.RecordBatch.from_arrays(batch.columns, schema=schema)
            for at in range(0, whole.num_rows, _ROWS):
                piece = whole.slice(at, _ROWS)
                piece.validate(full=True)
                yield piece

    def _write(self, reader: Any, file: Path) -> None:
        writer_of: Any = importlib.import_module("pyarrow.parquet").ParquetWriter
        schema = self._plain(reader.schema)
        # Made to be read once or twice: what is cheap to write.
        options = {"use_dictionary": False, "write_statistics": False, "store_schema": False}
        try:
            file.touch(mode=0o600)
            with writer_of(str(file), schema, compression="snappy", **options) as writer:
                for piece in self._batches(reader, schema):
                    writer.write_batch(piece, row_group_size=_ROWS)
        except OSError as error:
            if error.errno is None:
                raise
            raise InputError(
                f"{self._name} cannot be read through {self._folder}: {os.strerror(error.errno)}",
                hint="choose a folder with enough room with --temp-directory",
            ) from None

    def _whole(self, reader: Any) -> Any:
        """All rows of a small table, numbered."""
        schema = self._plain(reader.schema)
        found = self._arrow.Table.from_batches([*self._batches(reader, schema)], schema=schema)
        numbers = self._arrow.array(range(found.num_rows), self._arrow.int64())
        return found.add_column(0, "file_row_number", numbers)

    def _register(self, rows: Any) -> str:
        name = f"nsys_sql_{uuid.uuid4().hex}"
        self._con.register(name, rows)
        self._registered.append(name)
        return f"temp.main.{name}"

    @contextlib.contextmanager
    def _held(self, rows: Any) -> Iterator[str]:
        """What names rows in DuckDB until the block ends."""
        place = self._register(rows)
        try:
            yield place
        finally:
            self._con.unregister(self._registered.pop())


def _pyarrow(path: Path) -> Any:
    try:
        importlib.import_module("pyarrow.ipc")
        return importlib.import_module("pyarrow")
    except ImportError as error:
        raise InputError(
            f"{path} is an Arrow export, and pyarrow, which reads it, does not load: {error}",
            hint="pip install --force-reinstall pyarrow",
        ) from None


def _damaged(file: Path, error: object) -> InputError:
    text = " ".join(str(error).split())
    return InputError(
        f"{file} is damaged or truncated, or no Arrow stream: {text}",
        hint="copy it again, or export the report again",
    )
