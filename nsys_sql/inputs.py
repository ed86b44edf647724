"""From what the user names to the file that is read: a trace, a report, or its ingested copy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from nsys_sql import export
from nsys_sql.options import Options

_progress: ContextVar[Callable[[str], None] | None] = ContextVar("progress", default=None)


@contextmanager
def reporting(write: Callable[[str], None]) -> Iterator[None]:
    """Have slow preparations say how far they are: one text, replaced by the next."""
    token = _progress.set(write)
    try:
        yield
    finally:
        _progress.reset(token)


def tell(text: str) -> None:
    """Say how far a preparation is, if anybody listens; an empty text ends it."""
    write = _progress.get()
    if write is not None:
        write(text)


def resolve(path: Path, options: Options) -> Path:
    """The file or folder to read for a trace."""
    file = path
    try:
        if export.is_report(path):
            file = export.exported(path, tell)
        if options.cache:
            from nsys_sql import database

            file = database.ingested(path, file, options)
    finally:
        tell("")
    return file
