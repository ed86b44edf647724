"""Where did the training step go? SQL answers, on DuckDB, from Nsight Systems exports."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from nsys_sql.errors import (
    AnswerError,
    InputError,
    InvariantError,
    NsysSqlError,
    ThresholdError,
    UsageError,
)

if TYPE_CHECKING:
    import duckdb

    from nsys_sql.session import Model

__version__ = "0.1.0"

__all__ = [
    "AnswerError",
    "InputError",
    "InvariantError",
    "NsysSqlError",
    "ThresholdError",
    "UsageError",
    "__version__",
    "attach",
    "open",
]


def open(
    trace: str | os.PathLike[str],
    *,
    anchor: str = "auto",
    per_iteration: int = 1,
    skip_first: int = 0,
    skip_last: int = 0,
    iterations: str | None = None,
    device: int | None = None,
    window: str = "range",
    taxonomy: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    params: Mapping[str, object] | None = None,
    reference_steps: str | os.PathLike[str] | None = None,
    callsites: str | os.PathLike[str] | None = None,
    metrics_from: str | os.PathLike[str] | None = None,
    recipes: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    threads: int | None = None,
    memory_limit: str | None = None,
    temp_directory: str | os.PathLike[str] | None = None,
    keep_steps: bool = True,
    cache: bool = False,
) -> Model:
    """Open an export and return its Model, a context manager. Nothing is read yet.

    With `keep_steps=False` a step is dropped when nothing of the running recipe reads it any more:
    half the memory, but the next recipe builds it again, unless the model was told to foresee it.
    With `cache=True` everything is made once and kept in the user's cache for the next time.
    `recipes` are files or folders of recipes of your own; those of installed distributions are
    found by themselves.

    >>> with nsys_sql.open("trace.sqlite", anchor="nvtx:step*") as model:  # doctest: +SKIP
    ...     model.run("budget").show()
    """
    from nsys_sql import session
    from nsys_sql.options import Options

    return session.open(
        trace,
        Options(
            anchor=anchor,
            per_iteration=per_iteration,
            skip_first=skip_first,
            skip_last=skip_last,
            iterations=iterations,
            device=device,
            window=window,
            taxonomy=_paths(taxonomy),
            params=params or {},
            reference_steps=_path(reference_steps),
            callsites=_path(callsites),
            metrics_from=_path(metrics_from),
            recipes=_paths(recipes),
            threads=threads,
            memory_limit=memory_limit,
            temp_directory=_path(temp_directory),
            keep_steps=keep_steps,
            cache=cache,
        ),
    )


def attach(
    con: duckdb.DuckDBPyConnection,
    trace: str | os.PathLike[str],
    schema: str = "nsys",
    *,
    anchor: str = "auto",
    per_iteration: int = 1,
    skip_first: int = 0,
    skip_last: int = 0,
    iterations: str | None = None,
    device: int | None = None,
    window: str = "range",
    taxonomy: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    params: Mapping[str, object] | None = None,
    reference_steps: str | os.PathLike[str] | None = None,
    callsites: str | os.PathLike[str] | None = None,
    metrics_from: str | os.PathLike[str] | None = None,
    recipes: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    temp_directory: str | os.PathLike[str] | None = None,
) -> Model:
    """Put the model of an export into the caller's own DuckDB connection, in `schema`."""
    from nsys_sql import session
    from nsys_sql.options import Options

    return session.attach(
        con,
        trace,
        schema,
        Options(
            anchor=anchor,
            per_iteration=per_iteration,
            skip_first=skip_first,
            skip_last=skip_last,
            iterations=iterations,
            device=device,
            window=window,
            taxonomy=_paths(taxonomy),
            params=params or {},
            reference_steps=_path(reference_steps),
            callsites=_path(callsites),
            metrics_from=_path(metrics_from),
            recipes=_paths(recipes),
            temp_directory=_path(temp_directory),
        ),
    )


def _path(path: str | os.PathLike[str] | None) -> str | None:
    return None if path is None else os.fspath(path)


def _paths(
    given: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None,
) -> tuple[str, ...]:
    if given is None:
        return ()
    if isinstance(given, str | os.PathLike):
        return (os.fspath(given),)
    return tuple(os.fspath(path) for path in given)
