"""Where results go: standard output, or a file that appears whole or not at all."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TextIO

from nsys_sql.errors import UsageError


def form_of(output: Path | None, form: str) -> str:
    """The format: what the name of the output says (md and html are reports), else --format."""
    suffix = output.suffix.lower() if output is not None else ""
    return suffix[1:] if form == "table" and suffix in (".md", ".html", ".json") else form


def check_target(output: Path | None, traces: Sequence[Path]) -> None:
    """Refuse, before any work is done, a target that would hurt or could not be written."""
    if output is None:
        return
    if output == Path("-"):
        raise UsageError("-o - is no file", "leave -o out to write to standard output")
    if output.is_dir():
        raise UsageError(f"{output} is a folder", "give -o the name of a file")
    if not output.resolve().parent.is_dir():
        raise UsageError(f"the folder of {output} does not exist", "create it first")
    for trace in traces:
        if _same(output, trace):
            raise UsageError(
                f"-o would overwrite the trace {trace}", "give the result another name"
            )


def _same(output: Path, trace: Path) -> bool:
    try:
        return output.samefile(trace)
    except OSError:
        return output.resolve() == trace.resolve()


@contextmanager
def replacing(output: Path) -> Iterator[Path]:
    """A new path beside `output` that takes its name when the block ends without an error."""
    target = output.resolve()
    scratch = target
    if target.is_file() or not target.exists():  # a pipe or a device cannot be replaced
        scratch = target.with_name(f".{target.name}.{os.getpid()}.part")
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
    with TemporaryDirectory() as folder:
        path = Path(folder) / "result"
        yield path
        _to_stdout(path.read_bytes())


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


def status(text: str) -> None:
    """A line on a terminal's standard error that replaces the one before; empty text ends it."""
    columns = shutil.get_terminal_size((80, 24)).columns
    sys.stderr.write(f"\r\x1b[K{text[: columns - 1]}")
    sys.stderr.flush()


def width() -> int:
    """Columns of the terminal, or of COLUMNS; 120 where there is neither."""
    return max(shutil.get_terminal_size((120, 24)).columns, 60)
