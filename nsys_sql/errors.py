"""The errors of nsys-sql: what happened, what to do about it, and the exit code it means."""

from __future__ import annotations

import re
from typing import ClassVar


class NsysSqlError(Exception):
    """Base of every error this package raises on purpose.

    `str(error)` says what happened and in which file; `hint` says what to do, or is None.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message

    @property
    def told(self) -> str:
        """What happened and what to do about it, in one sentence."""
        return f"{self.message}; {self.hint}" if self.hint else self.message


# Settings are not the user's to set, and tables of DuckDB's own are no answer to a wrong name.
_NO_ADVICE = re.compile(
    r' Use "SET max_expression_depth TO x"[^.]*\.'
    r'|(Table with name [^!]* does not exist!) Did you mean "[^"]*"\?'
)


def one_line(error: object) -> str:
    """What DuckDB says on one line, without advice that cannot be followed here."""
    return _NO_ADVICE.sub(r"\1", " ".join(str(error).split()))


def placed(place: object, text: str) -> str:
    """`text` with the place that it is about before it, unless it begins with that already."""
    return text if text.startswith(str(place)) else f"{place}: {text}"


class UsageError(NsysSqlError):
    """The caller asked for something that does not exist, or said it wrongly."""

    exit_code = 2


class InputError(NsysSqlError):
    """The input cannot be read: missing, not SQLite, truncated, not an Nsight export."""

    exit_code = 3


def out_of_memory(error: Exception) -> InputError | None:
    """The error behind an exception about memory; DuckDB's is known by its name alone."""
    if type(error).__name__ != "OutOfMemoryException":
        return None
    told = " ".join(str(error).split()).partition(" Possible solutions:")[0]
    told = told.partition(" This limit was set")[0]
    return InputError(f"more memory is needed than allowed: {told}", hint="raise --memory-limit")


class AnswerError(NsysSqlError):
    """The input is fine, but it cannot answer this question."""

    exit_code = 4


class InvariantError(NsysSqlError):
    """A reconciliation invariant failed; the result was still produced."""

    exit_code = 5


class ThresholdError(NsysSqlError):
    """A threshold that the caller set was crossed."""

    exit_code = 6
