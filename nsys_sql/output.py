"""Where results go: standard output, or a file that appears whole or not at all."""

from __future__ import annotations

import glob
import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from nsys_sql import source
from nsys_sql.errors import UsageError

_FORMS = {".json": "json", ".csv": "csv", ".md": "markdown", ".parquet": "parquet"}


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
    if form == "parquet" and output is not None:
        engine_path(output)
    return form


def check_target(output: Path | None, traces: Sequence[Path]) -> None:
    """Refuse, before any work is done, a target that would hurt or could not be written."""
    if output is None:
        return
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
        return _real(output) == _real(trace)


def _real(path: Path) -> Path:
    """The path without links; of links that lead in a circle, what is left of it."""
    return Path(os.path.realpath(path))


def failure(error: Exception) -> UsageError | None:
    """The error behind a file that DuckDB could not write: no room, or no right to."""
    text = " ".join(str(error).split())
    found = re.search(
        r'(?:Could not write|Cannot open|Could not fsync) file "([^"]+)":? (.*)', text
    )
    reason = found[2] if found else text
    if not re.search("No space left|File too large|[Qq]uota|Read-only|Permission denied", reason):
        return None
    place = re.sub(r"/\.([^/]+)\.[0-9a-f]{8}\.\d+\.part[^/]*$", r"/\1", found[1] if found else "")
    place = re.sub(r"/\.part-[^/]*/", "/", place)
    return UsageError(
        f"cannot write {place}: {reason}" if place else f"cannot write: {reason}",
        "make room, or name another place",
    )


@contextmanager
def replacing(output: Path) -> Iterator[Path]:
    """A new path beside `output` that takes its name when the block ends without an error."""
    target = _real(output)
    scratch = target
    if target.is_file() or not target.exists():  # a pipe or a device cannot be replaced
        source.sweep(target.parent, f".{glob.escape(target.name)}.*.part*")
        scratch = target.with_name(f".{target.name}.{source.owner()}.part")
    try:
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
    data = text.encode("utf-8", "backslashreplace")
    if output is None:
        _to_stdout(data)
        return
    with replacing(output) as scratch:
        scratch.write_bytes(data)


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
        _to_stdout(path.read_bytes())
    finally:
        source.remove(folder)


def _stdout() -> TextIO:
    """Standard output; Python has none where the caller closed it."""
    if sys.stdout is None:
        raise UsageError("standard output is closed", "open it, or name a file with -o")
    return sys.stdout


def _to_stdout(data: bytes) -> None:
    """Write and flush; a reader that has gone away (`| head`) is no error."""
    stdout = _stdout()
    try:
        stdout.flush()
        stdout.buffer.write(data)
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
