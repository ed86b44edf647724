"""What a command is doing while it takes long: one line on standard error that goes again.

A query keeps the thread that runs it busy, so a thread of its own writes the line: it appears after
a second, counts the time, and is erased at the end. Where standard error is no terminal nothing is
written, unless it is asked for: then as lines that stay, at most one a second.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TextIO

from nsys_sql import inputs
from nsys_sql.humanize import clean

_AFTER_S = 1.0
_TERMINAL_S, _LOG_S = 0.2, 1.0
_COLUMNS = 80
_REPEAT_S = 10.0  # how often a log is told the same


class Line:
    """Shows on `file` what is told to it; times are those of `clock`, in seconds."""

    def __init__(
        self, file: TextIO, is_terminal: bool, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._file, self._is_terminal, self._clock = file, is_terminal, clock
        self._about = self._doing = self._logged = ""
        self._began = self._idle_since = clock()
        self._logged_at = 0.0
        self._is_drawn = False
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def about(self, text: str) -> None:
        """Set what all that is told belongs to, for instance `3/16 traces`."""
        self._set(clean(text), self._doing)

    def show(self, text: str) -> None:
        """Set what is done now; an empty text says that it is done."""
        self._set(self._about, clean(text))

    def _set(self, about: str, doing: str) -> None:
        with self._lock:
            now = self._clock()
            was_idle = not (self._about or self._doing)
            if was_idle and now - self._idle_since > _AFTER_S:  # a new piece of work
                self._began = now
            self._about, self._doing = about, doing
            if not (about or doing):
                self._idle_since = now
                self._erase()
            elif self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while not self._closing.wait(_TERMINAL_S if self._is_terminal else _LOG_S):
            self.draw()

    def draw(self) -> None:
        """Write the line as it is to be now, if it is to be there at all."""
        with self._lock:
            spent = self._clock() - self._began
            what = " — ".join(filter(None, (self._about, self._doing)))
            if self._closing.is_set() or not what or spent < _AFTER_S:
                return
            if self._is_terminal:
                self._write(f"\r\x1b[K{_fitted(what, spent)}")
                self._is_drawn = True
            elif what != self._logged or spent - self._logged_at >= _REPEAT_S:
                self._write(f"{_text(what, spent)}\n")
                self._logged, self._logged_at = what, spent

    def _erase(self) -> None:
        if self._is_drawn:
            self._write("\r\x1b[K")
            self._is_drawn = False

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):  # nobody reads it any more
            self._file.write(text)
            self._file.flush()

    def close(self) -> None:
        """Erase the line and end its thread."""
        self._closing.set()
        with self._lock:
            self._erase()
        if self._thread is not None:
            self._thread.join()


def _text(what: str, spent: float) -> str:
    return f"nsys-sql: {what}  {spent:.{1 if spent < 100 else 0}f} s"


def _fitted(what: str, spent: float) -> str:
    """The line, with what does not fit left out before the time."""
    try:
        columns = os.get_terminal_size(sys.stderr.fileno()).columns or _COLUMNS
    except (OSError, ValueError, AttributeError):
        columns = _COLUMNS
    over = len(_text(what, spent)) - max(columns - 1, 20)
    return _text(what if over <= 0 else what[: -over - 1] + "…", spent)


_shown: ContextVar[Line | None] = ContextVar("shown", default=None)


@contextmanager
def shown(is_wanted: bool | None, is_quiet: bool) -> Iterator[Line | None]:
    """Show on standard error what the block is doing, where somebody looks or wants to know.

    A block inside another one has its line.

    `is_wanted` None leaves it to whether standard error is a terminal and the command is not quiet.
    """
    outer, is_terminal = _shown.get(), sys.stderr is not None and sys.stderr.isatty()
    is_shown = is_terminal and not is_quiet if is_wanted is None else is_wanted
    if outer is not None or sys.stderr is None or not is_shown:
        yield outer
        return
    line = Line(sys.stderr, is_terminal)
    token = _shown.set(line)
    try:
        with inputs.reporting(line.show):
            yield line
    finally:
        _shown.reset(token)
        line.close()
