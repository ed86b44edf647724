"""Unprofiled step times, from `--reference-steps` or a trainer's log, in exact nanoseconds."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

from nsys_sql import source
from nsys_sql.errors import InputError, UsageError

STEP = "reference_step"
_UNITS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "sec": 10**9,
    "secs": 10**9,
    "second": 10**9,
    "seconds": 10**9,
    "min": 60 * 10**9,
}
_GREATEST_NS = 10**18
_NUMBER = r"[0-9]{1,18}(?:\.[0-9]{0,30})?(?:[eE][+-]?[0-9]{1,2})?"
_UNIT = "|".join(sorted(_UNITS, key=len, reverse=True))
_DURATION = re.compile(rf"({_NUMBER})\s*({_UNIT})")
# What trainers write, most telling first: the first pattern that a log matches is the only one
# that is read, since a line may tell the same time twice. Where neither the label nor the value
# has a unit, trainers mean seconds.
_VALUE = rf"['\"]?\s*[:=]\s*['\"]?({_NUMBER})\s*({_UNIT})?(?![\w.])"
_IN = rf"(?:\s*\(({_UNIT})\)|[ _]in[ _]({_UNIT})|_({_UNIT}))?"
_NAMES = tuple(
    rf"(?<![A-Za-z]){label}{_IN}"
    for label in (
        r"elapsed time per iteration",
        r"train_step_timing",
        r"(?:train[ _-]?)?step[ _-]?(?:time|timing|duration)",
        r"(?:iteration|iter)[ _-]?(?:time|timing|duration)",
        r"time[ _-]per[ _-](?:step|iteration)",
    )
)
_LABELS = tuple(re.compile(name + _VALUE, re.IGNORECASE) for name in _NAMES)
# The same as the head of a column, as in the metrics.csv of Lightning.
_HEADS = tuple(re.compile(rf"(?:[\w/ -]*[/ ])?{name}", re.IGNORECASE) for name in _NAMES)
_CELL = re.compile(rf"({_NUMBER})\s*({_UNIT})?")
_STEPS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"global_step['\"]?\s*[:=]\s*(\d{1,12})(?!\.\d*[1-9])",
        r"\biteration:?\s+(\d{1,12})\s*/",
        r"(?<!\w)step['\"]?(?:\s*[:=]\s*|\s+)(\d{1,12})(?![\w.])",
    )
)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Step(NamedTuple):
    """One unprofiled step: its number in the log, else its position, and how long it took."""

    number: int
    duration_ns: int


def duration_ns(number: str, unit: str) -> int | None:
    """A decimal number with a unit in whole nanoseconds, without floats; None if out of range.

    >>> duration_ns("29.39", "s"), duration_ns("812", "ms")
    (29390000000, 812000000)
    """
    value = int((Decimal(number) * _UNITS[unit.lower()]).to_integral_value())
    return value if 0 < value <= _GREATEST_NS else None


def read(text: str) -> list[Step]:
    """The steps of a comma list like `29.39s,812ms`, or of the file of that name."""
    parts = [part.strip() for part in text.split(",")]
    if all(_DURATION.fullmatch(part) for part in parts):
        return _numbered(parts, "--reference-steps: value")
    path = Path(text)
    if not source.is_file(path):
        raise UsageError(
            f"--reference-steps {text!r} is neither a list of durations nor a file",
            hint="give 29.39s,29.41s or 812ms, a trainer log, or a file with one duration a line",
        )
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return _of_lines(path, file)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error


def select(steps: Iterable[Step]) -> str:
    """The steps as a query: what `reference_step` of the model is made from."""
    values = ",\n".join(f"    ({each.number}, {each.duration_ns})" for each in steps)
    return (
        "SELECT r.step::BIGINT AS step, r.duration_ns::BIGINT AS duration_ns\n"
        f"FROM (VALUES\n{values}\n) AS r(step, duration_ns)"
    )


def _numbered(parts: Iterable[str], where: str) -> list[Step]:
    found = []
    for at, part in enumerate(parts):
        match = _DURATION.fullmatch(part)
        value = duration_ns(match[1], match[2]) if match else None
        if value is None:
            raise UsageError(f"{where} {at + 1} is {part!r}", hint="a step takes more than 0 time")
        found.append(Step(at, value))
    return found


def _lines(file: Iterable[str]) -> Iterator[str]:
    """Lines of a log; progress bars write many into one."""
    for line in file:
        for part in line.split("\r"):
            if bare := _COLOUR.sub("", part).strip():
                yield bare


def _of_columns(path: Path, head: str, lines: Iterable[str]) -> list[Step] | None:
    """The steps of a CSV file whose first line is `head`; None where that is none."""
    names = [name.strip() for name in next(csv.reader([head]), [])]
    found = [
        (at, match)
        for label in _HEADS
        for at, name in enumerate(names)
        if (match := label.fullmatch(name))
    ]
    if len(names) < 2 or not found:
        return None
    at, label = found[0]
    counter = next((names.index(name) for name in ("global_step", "step") if name in names), None)
    matches = []
    for row in csv.reader(lines):
        # other columns are logged at other times and leave this one empty
        if len(row) != len(names) or (cell := _CELL.fullmatch(row[at].strip())) is None:
            continue
        number = "" if counter is None else f"step: {row[counter]}"
        unit = cell[2] or next(filter(None, label.groups()), "s")
        value = duration_ns(cell[1], unit)
        if value is None:
            raise InputError(f"{path}: a step of {cell[0]}", hint="a step takes time")
        matches.append((_step_number(number), value))
    return _in_order(matches) if matches else None


def _of_lines(path: Path, file: Iterable[str]) -> list[Step]:
    plain: list[str] = []
    is_log = False
    matches: dict[int, list[tuple[str, re.Match[str]]]] = {}
    lines = _lines(file)
    for line in lines:
        if line.startswith("#"):
            continue
        if not is_log and not plain and (steps := _of_columns(path, line, lines)) is not None:
            return steps
        if not is_log and _DURATION.fullmatch(line):
            plain.append(line)
            continue
        if plain:
            raise InputError(
                f"{path}: {line[:60]!r} is no duration with a unit",
                hint="one duration a line, for example 29.39s or 812ms",
            )
        is_log = True
        for at, label in enumerate(_LABELS):
            if (found := label.search(line)) is not None:
                matches.setdefault(at, []).append((line, found))
    if plain:
        return _numbered(plain, f"{path}: line")
    if not matches:
        raise InputError(
            f"{path} holds no step time that is known",
            hint="one duration a line (29.39s), or a trainer log with `elapsed time per iteration "
            "(ms): 812.3`, `train_step_timing in s: 0.812` or `step time: 0.812 s`, or a CSV file "
            "with such a column; a rate like 1.21it/s is a running average and is not read",
        )
    return _of_matches(path, matches[min(matches)])


def _of_matches(path: Path, matches: list[tuple[str, re.Match[str]]]) -> list[Step]:
    found: list[tuple[int | None, int]] = []
    for line, match in matches:
        *units, number, own = match.groups()
        unit = own or next(filter(None, units), "s")
        value = duration_ns(number, unit)
        if value is None:
            raise InputError(f"{path}: a step of {number} {unit}", hint="a step takes time")
        found.append((_step_number(line), value))
    return _in_order(found)


def _in_order(found: Sequence[tuple[int | None, int]]) -> list[Step]:
    """Steps by their number where each has one, else by position."""
    numbers = [number for number, _ in found]
    if None in numbers:
        return [Step(at, value) for at, (_, value) in enumerate(found)]
    # Progress bars and several ranks repeat a step: its last line counts.
    last = {number: value for number, value in found if number is not None}
    return [Step(number, value) for number, value in sorted(last.items())]


def _step_number(line: str) -> int | None:
    for pattern in _STEPS:
        if (found := pattern.search(line)) is not None:
            return int(found[1])
    return None
