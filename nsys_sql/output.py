"""Where results go: standard output, or a file that appears whole or not at all."""

from __future__ import annotations

import glob
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TextIO

from nsys_sql import source
from nsys_sql.errors import UsageError

_FORMS = {".json": "json", ".csv": "csv", ".md": "markdown", ".parquet": "parquet"}
# Files of these names would be hidden, and hold something else than the name says.
_SUFFIXES = frozenset({*_FORMS, ".html", ".gz", ".json.gz", ".txt", ".duckdb", ".sqlite", ".yaml"})
_TEXTS = ("", ".txt", ".text", ".log", ".out")  # names that say no other format than a table


def form_of(output: Path | None, form: str | None, reports: Sequence[str] = ()) -> str:
    """The format: what --format says, else the name of the output, else a table.

    `reports` are the names, of md and html, that stand for a report of the command's own.
    """
    suffix = output.suffix.lower() if output is not None else ""
    if form is None:
        form = suffix[1:] if suffix[1:] in reports else _FORMS.get(suffix, "table")
        if suffix == ".html" and form == "table":
            raise UsageError(
                f"{output} would hold no HTML", "`nsys-sql report` writes some; or give --format"
            )
        if form == "table" and suffix not in _TEXTS and not _is_stream(output):
            names = ", ".join([*_FORMS, *(f".{each}" for each in reports)])
            raise UsageError(
                f"{output}: no format has the name {suffix}",
                f"name it {names} or .txt (a table for reading), or give --format",
            )
    if form == "parquet" and output is not None:
        engine_path(output)
    return form


def _is_stream(output: Path | None) -> bool:
    """Whether the output is a device or a pipe, whose name says nothing."""
    try:
        return output is not None and output.exists() and not output.is_file()
    except (OSError, ValueError):
        return False  # told when it is opened


def check_target(output: Path | None, traces: Sequence[Path]) -> None:
    """Refuse, before any work is done, a target that would hurt or could not be written."""
    if output is None:
        return
    if output.name.lower() in _SUFFIXES:
        raise UsageError(
            f"-o {output} is a suffix without a name", f"name it, for example, result{output.name}"
        )
    if output == Path("-"):
        raise UsageError("-o - is no file", "leave -o out to write to standard output")
    try:
        is_folder, has_folder = output.is_dir(), _real(output).parent.is_dir()
        output.exists()  # names can be too long even where a folder is there
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"cannot write {output}: {reason}", "give -o another name") from None
    if is_folder:
        raise UsageError(f"{output} is a folder", "give -o the name of a file")
    if not has_folder:
        raise UsageError(f"the folder of {output} does not exist", "create it first")
    for trace in traces:
        if is_same(output, trace):
            raise UsageError(
                f"-o would overwrite the trace {trace}", "give the result another name"
            )


def engine_path(path: Path) -> Path:
    """The path itself, or a usage error where its name is none that DuckDB can open."""
    try:
        os.path.abspath(path).encode("utf-8")  # noqa: PTH100
    except UnicodeEncodeError:
        raise UsageError(
            f"{path} has a name that is no UTF-8, and DuckDB opens no such file",
            "give it another name, or a link with one",
        ) from None
    return path


def is_same(output: Path, trace: Path) -> bool:
    try:
        return output.samefile(trace)
    except OSError:
        with suppress(OSError):
            return _real(output) == _real(trace)
        return False


def _real(path: Path) -> Path:
    """The path without links; of links that lead in a circle, what is left of it."""
    return Path(os.path.realpath(path))


def final_names(text: str) -> str:
    """A message about files in the making, with the names that they get when they are whole."""
    text = re.sub(r"\.([^/\s'\"]+)\.[0-9a-f]{8}\.\d+\.part(\.wal|\.tmp)?\b", r"\1", text)
    return re.sub(r"/\.part-[^/\s]*/", "/", text)


def failure(error: Exception) -> UsageError | None:
    """The error behind a file that DuckDB could not write: no room, or no right to."""
    text = " ".join(str(error).split())
    found = re.search(
        r'(?:Could not write|Cannot open|Could not fsync) file "([^"]+)":? (.*)', text
    )
    reason = found[2] if found else text
    if not re.search("No space left|File too large|[Qq]uota|Read-only|Permission denied", reason):
        return None
    # the log beside a database is not what anybody gave
    place = re.sub(r"\.wal[\w.]*$", "", final_names(found[1] if found else ""))
    return UsageError(
        f"cannot write {place}: {reason}" if place else f"cannot write: {reason}",
        "make room, or name another place",
    )


def unwritten(error: Exception, folder: Path) -> str | None:
    """Why a file below a folder could not be written; None where that is not what happened."""
    told = error if isinstance(error, UsageError) else failure(error)
    places = (folder, os.path.abspath(folder))  # noqa: PTH100
    starts = tuple(f"cannot write {each}{os.sep}" for each in places)
    if told is None or not told.message.startswith(starts):
        return None
    return told.message.rpartition(": ")[2]


@contextmanager
def replacing(output: Path) -> Iterator[Path]:
    """A new path beside `output` that takes its name when the block ends without an error."""
    is_stream = _is_stream(output)  # a pipe or a device cannot be replaced
    target = output if is_stream else _real(output)
    scratch = target
    if not is_stream:
        source.sweep(target.parent.glob(f".{glob.escape(target.name)}.*.part*"))
        scratch = target.with_name(f".{target.name}.{source.owner()}.part")
    try:
        with source.half_made(scratch) if scratch != target else nullcontext():
            yield scratch
            if scratch != target:
                scratch.replace(target)
    except OSError as error:
        raise UsageError(f"cannot write {output}: {error.strerror or error}") from error
    finally:
        if scratch != target:
            scratch.unlink(missing_ok=True)


def write_text(text: str, output: Path | None) -> None:
    """`text` as UTF-8 with LF, to `output` or to standard output."""
    write_parts([text], output)


def write_parts(parts: Iterable[str], output: Path | None) -> None:
    """The same of a text in pieces."""
    pieces = (part.encode("utf-8", "backslashreplace") for part in parts)
    if output is None:
        _to_stdout(pieces)
        return
    with replacing(output) as scratch, scratch.open("wb") as file:
        file.writelines(pieces)


@contextmanager
def binary(output: Path | None) -> Iterator[Path]:
    """A path to write a binary result to; without `output` it ends up on a piped stdout."""
    if output is not None:
        with replacing(output) as scratch:
            yield scratch
        return
    if _stdout().isatty():
        raise UsageError("binary output does not go to a terminal", "name a file with -o")
    folder = source.private_folder(None)
    try:
        path = folder / "result"
        yield path
        _to_stdout([path.read_bytes()])
    finally:
        source.remove(folder)


def is_terminal(stream: TextIO | None) -> bool:
    """Whether somebody sits at a standard stream; Python has none where the caller closed it."""
    return stream is not None and stream.isatty()


def _stdout() -> TextIO:
    """Standard output; Python has none where the caller closed it."""
    if sys.stdout is None:
        raise UsageError("standard output is closed", "open it, or name a file with -o")
    return sys.stdout


def _to_stdout(pieces: Iterable[bytes]) -> None:
    """Write and flush; a reader that has gone away (`| head`) is no error."""
    stdout = _stdout()
    try:
        stdout.flush()
        stdout.buffer.writelines(pieces)
        stdout.buffer.flush()
    except OSError as error:
        # what is left in the buffer must not fail once more when Python ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            text = f"cannot write to standard output: {error.strerror or error}"
            raise UsageError(text, "make room, or name another place with -o") from error


def width() -> int:
    """Columns of the terminal, or of COLUMNS; 120 where there is neither."""
    return max(shutil.get_terminal_size((120, 24)).columns, 60)
