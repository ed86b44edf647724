"""Signals that end a run: what DuckDB computes stops at once, and everything made is removed.

Python acts on a signal only between two of its own steps, and a query is one step. So a thread
hears of the signal first and interrupts the queries; then KeyboardInterrupt is raised as usual.

DuckDB looks for an interruption between two batches of rows, and one expression over one row may
take for ever. What has not ended some time after the signal, or at a second one, ends hard: what is
half-made is removed and the process goes. Nothing that is finished can be hurt by that: files
appear by their names when they are whole, and databases are written in transactions.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn
from weakref import WeakSet

_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
_EVERY_S = 0.05
# How long a run that is to end may take to unwind before it ends hard.
GRACE_S = 0.7
# A second signal that comes so soon is the same one, heard twice.
_TWICE_S = 0.3
_connections: WeakSet[Any] = WeakSet()
_received: list[int] = []
_handled: list[int] = []
_programs: list[int] = []
_living: list[bool] = []
_clean_ups: list[Callable[[], None]] = []


def watch(con: Any) -> None:
    """Have the queries of a DuckDB connection stop when a signal ends the run."""
    _connections.add(con)


def received() -> int | None:
    """The number of the signal that ends the run, if one does."""
    return _received[len(_handled)] if is_ending() else None


def is_ending() -> bool:
    """Whether a signal ends the run: what fails from then on fails because of it."""
    return len(_received) > len(_handled)


def handled() -> None:
    """The signals so far are dealt with, and the program goes on: leave later queries alone."""
    _handled[:] = _received


def at_hard_end(clean_up: Callable[[], None]) -> None:
    """Have something removed where a run ends hard; it may run beside what it cleans up after."""
    _clean_ups.append(clean_up)


def is_program() -> bool:
    """Whether this process is a program of ours, that may be ended, and not one that uses us."""
    return bool(_programs)


def end_hard(code: int, message: str = "") -> NoReturn:
    """End the process with an exit code, now, from whichever thread: remove what is half-made."""
    with suppress(OSError):
        os.write(2, message.encode("utf-8", "backslashreplace"))
    for clean_up in _clean_ups:
        with suppress(Exception):
            clean_up()
    os._exit(code)


def lives_on() -> None:
    """From now on the program deals with signals itself; only a second one ends it hard."""
    _living.append(True)


def listen(grace_s: float = GRACE_S, is_idle: Callable[[], bool] = lambda: False) -> None:
    """End on SIGINT, SIGTERM and SIGHUP with KeyboardInterrupt; for programs, not for libraries.

    Where a run `is_idle` there is nothing to unwind, and it ends at once.
    """

    _programs.append(os.getpid())

    def hear(number: int, _: object) -> None:
        if is_idle():
            end_hard(128 + number)
        was_ending = is_ending()
        _received.append(number)
        if not was_ending:  # else it would break off what cleans up
            raise KeyboardInterrupt

    for number in _SIGNALS:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, hear)
    sys.unraisablehook = _lost(sys.unraisablehook)
    if os.name != "posix":
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    threading.Thread(target=_stop_queries, args=(reader, hear, grace_s), daemon=True).start()


def _lost(tell: Callable[[Any], Any]) -> Callable[[Any], None]:
    """Pass over a KeyboardInterrupt that Python could not raise, and `tell` of all else.

    A signal that comes while a finalizer or a callback of a weak reference runs (an import has
    some) is reported there and goes no further. The run still ends, hard, when its grace is over.
    """

    def hook(report: Any) -> None:
        if not (is_ending() and issubclass(report.exc_type, KeyboardInterrupt)):
            tell(report)

    return hook


def _stop_queries(reader: int, hear: object, grace_s: float) -> None:
    """Interrupt what runs, and what begins to run until the program ends or has dealt with it.

    Once would not do: between two queries it passes unnoticed, and code that tries whether a query
    works takes the interruption for an answer.
    """
    began: float | None = None  # when the signal came that is not dealt with
    dealt = 0
    while True:
        if began is not None and len(_handled) != dealt:
            began = None
        if began is None:
            dealt = len(_handled)
        wait = None if began is None else _EVERY_S
        if select.select([reader], [], [], wait)[0]:
            if not (told := os.read(reader, 64)):
                raise EOFError("nobody tells of signals any more")
            numbers = [n for n in told if n in _SIGNALS]
            heard = [number for number in numbers if signal.getsignal(number) is hear]
            if heard and began is None:
                began = time.monotonic()
            elif heard and began is not None and time.monotonic() - began > _TWICE_S:
                end_hard(128 + heard[-1])
        if began is None or len(_handled) != dealt:
            continue
        for con in tuple(_connections):
            with suppress(Exception):  # it may be closed by now
                con.interrupt()
        if time.monotonic() - began > grace_s and not _living:
            end_hard(128 + (received() or signal.SIGINT))
