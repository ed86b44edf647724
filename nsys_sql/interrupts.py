"""Signals that end a run: what DuckDB computes stops at once, and everything made is removed.

Python acts on a signal only between two of its own steps, and a query is one step. So a thread
hears of the signal first and interrupts the queries; then KeyboardInterrupt is raised as usual.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import suppress
from typing import Any
from weakref import WeakSet

_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
_EVERY_S = 0.05
_connections: WeakSet[Any] = WeakSet()
_received: list[int] = []
_handled: list[int] = []


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


def listen() -> None:
    """End on SIGINT, SIGTERM and SIGHUP with KeyboardInterrupt; for programs, not for libraries."""
    for number in _SIGNALS:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _raise)
    if os.name != "posix":
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    threading.Thread(target=_stop_queries, args=(reader,), daemon=True).start()


def _raise(number: int, _: object) -> None:
    _received.append(number)
    raise KeyboardInterrupt


def _stop_queries(reader: int) -> None:
    """Interrupt what runs, and what begins to run until the program ends or has dealt with it.

    Once would not do: between two queries it passes unnoticed, and code that tries whether a query
    works takes the interruption for an answer.
    """
    seen = 0
    while number := os.read(reader, 1):
        if number[0] not in _SIGNALS or signal.getsignal(number[0]) is not _raise:
            continue
        seen += 1
        while seen > len(_handled):
            for con in tuple(_connections):
                with suppress(Exception):  # it may be closed by now
                    con.interrupt()
            time.sleep(_EVERY_S)
