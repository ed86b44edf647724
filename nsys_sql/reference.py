"""Unprofiled step times, from `--reference-steps` or a trainer's log, in exact nanoseconds.

A number without its unit is a wrong answer by a factor of a thousand, so what follows one is read
to its end: a unit that is known, the end of the field, or an error that names the line.
"""

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
    name: factor
    for factor, names in (
        (1, "ns nsec nsecs nanosecond nanoseconds"),
        (10**3, "us µs μs usec usecs microsecond microseconds"),
        (10**6, "ms msec msecs millis millisecond milliseconds"),
        (10**9, "s sec secs second seconds"),
        (60 * 10**9, "min mins minute minutes"),
        (3600 * 10**9, "h hr hrs hour hours"),
    )
    for name in names.split()
}
_GREATEST_NS = 10**18
_UNIT = "|".join(sorted(_UNITS, key=len, reverse=True))
# What a step is called where a time is one per step, as in `s/it`.
_STEP_WORD = r"(?:it|its|iter|iters|iteration|iterations|step|steps|batch|update)"
# What trainers write, most telling first: the first pattern that a log matches is the only one
# that is read, since a line may tell the same time twice. Where neither the label nor the value
# has a unit, trainers mean seconds.
_IN = (
    rf"(?:\s*\(\s*({_UNIT})\s*\)|\s*\[\s*({_UNIT})\s*\]|[ _]in[ _]({_UNIT})|\s*[,/]\s*({_UNIT})"
    rf"|_({_UNIT}))?"
)
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
_LABELS = tuple(
    re.compile(rf"{name}['\"]?\s*[:=]+\s*['\"]?(?=[+-]?\.?[0-9])", re.IGNORECASE) for name in _NAMES
)
# The same as the head of a column, as in the metrics.csv of Lightning.
_HEADS = tuple(re.compile(rf"(?:[\w/. -]*[/. _-])?{name}", re.IGNORECASE) for name in _NAMES)
# The word before a label. Some tell that it is the time of a part, or of no step of training.
_WORD_BEFORE = re.compile(r"(?<![A-Za-z])([A-Za-z]+|p[0-9]+)[ _/.-]+\Z")
_OTHER_STEPS = frozenset(
    (
        *("forward", "fwd", "backward", "bwd", "optimizer", "optim", "data", "dataloader"),
        *("eval", "evaluation", "val", "valid", "validation", "test"),
        *("min", "max", "total", "cumulative", "p50", "p90", "p95", "p99"),
    )
)
_TOKEN = re.compile(r"[+-]?\.?[0-9](?:[0-9.,]*[0-9])?(?:[eE][+-]?[0-9]+)?")
_PLAIN = re.compile(r"(?:[0-9]{1,18}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][+-]?[0-9]{1,2})?")
# `1,234` alone may be a decimal comma.
_GROUPED = re.compile(r"[0-9]{1,3}(?:(?:,[0-9]{3}){1,5}\.[0-9]{1,30}|(?:,[0-9]{3}){2,5})")
_AFTER = re.compile(
    r"(?P<open>[(\[]\s*)?(?P<word>(?:[^\W\d_]|%)+)"
    r"(?:(?:\s*/\s*|\s+per\s+)(?P<per>[^\W\d_]+)(?:/[^\W\d_]+)*)?(?(open)\s*[)\]])"
)
_BRACKETS = re.compile(r"[(\[][^()\[\]]*[)\]]")
_FIELD = re.compile(r"[A-Za-z][\w/.-]*['\"]?\s*[:=]")
_ALSO = re.compile(rf"\s*[0-9.]+\s*(?:{_UNIT})(?!\w)", re.IGNORECASE)
_UNIT_IN = re.compile(rf"(?<![^\W\d_])(?:{_UNIT})(?![^\W\d_])", re.IGNORECASE)
_UNIT_ELSEWHERE = re.compile(r"unit['\"]?\s*[:=]", re.IGNORECASE)
_COUNT = r"([0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,12})(?!,?[0-9])"
_STEPS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"global_step['\"]?\s*[:=]\s*{_COUNT}(?!\.\d*[1-9])",
        rf"\biteration:?\s+{_COUNT}\s*/",
        rf"(?<!\w)step['\"]?(?:\s*[:=]\s*|\s+){_COUNT}(?![\w.])",
    )
)
# Colours, cursor movements and links of a terminal.
_ESCAPE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_NEAR = 80
_HINT = (
    "units are ns, us, ms, s, min and h, or written out; a point divides decimals; "
    "else give a file with one duration a line, like 812ms"
)


class Step(NamedTuple):
    """One unprofiled step: its number in the log, else its position, and how long it took."""

    number: int
    duration_ns: int


class _UnclearError(Exception):
    """What follows a label cannot be read as one duration."""


def duration_ns(number: str, unit: str) -> int | None:
    """A decimal number with a unit in whole nanoseconds, without floats; None if out of range.

    >>> duration_ns("29.39", "s"), duration_ns("812", "ms")
    (29390000000, 812000000)
    """
    value = int((Decimal(number) * _UNITS[_folded(unit)]).to_integral_value())
    return value if 0 < value <= _GREATEST_NS else None


def read(text: str) -> list[Step]:
    """The steps of a comma list like `29.39s,812ms`, or of the file of that name."""
    parts = [part.strip() for part in text.split(",")]
    if all(_duration(part) for part in parts):
        return _numbered(parts, "--reference-steps: value")
    path = Path(text)
    if not source.is_file(path):
        raise UsageError(
            f"--reference-steps {text!r} is neither a list of durations nor a file",
            hint="give 29.39s,29.41s or 812ms, a trainer log, or a file with one duration a line",
        )
    try:
        with path.open("rb") as head:
            wide = head.read(2) in (b"\xff\xfe", b"\xfe\xff")
        encoding = "utf-16" if wide else "utf-8-sig"
        with path.open(encoding=encoding, errors="replace", newline="\n") as file:
            return _of_lines(path, _Lines(file))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error


def select(steps: Iterable[Step]) -> str:
    """The steps as a query: what `reference_step` of the model is made from."""
    values = ",\n".join(f"    ({each.number}, {each.duration_ns})" for each in steps)
    return (
        "SELECT r.step::BIGINT AS step, r.duration_ns::BIGINT AS duration_ns\n"
        f"FROM (VALUES\n{values}\n) AS r(step, duration_ns)"
    )


# ---------------------------------------------------------------- one duration


def _folded(unit: str) -> str:
    """A unit as the table has it: `MS` is `ms`, and both letters that look like µ are one."""
    return unit.casefold()


def _number(text: str) -> tuple[str, str]:
    """The number at the start of a text, as Decimal takes it, and what follows it."""
    found = _TOKEN.match(text)
    if found is None:
        raise _UnclearError("is no number")
    token, rest = found[0], text[found.end() :].removeprefix(".")
    if _GROUPED.fullmatch(token):
        return token.replace(",", ""), rest
    if not _PLAIN.fullmatch(token.lstrip("+-")):
        raise _UnclearError("has a comma or a number that may mean two things")
    return token, rest


def _unit(rest: str, is_known: bool) -> str | None:
    """The unit that follows a number; None where the field ends. `is_known`: the label has one."""
    bare = rest.lstrip()
    is_attached = bare == rest
    if not bare or bare[0] in ",;|)]}>":
        return None
    if bare[0] in "'\"":
        if bare[1:2].isdigit():
            raise _UnclearError("has a number that may mean two things")
        return None
    if not is_attached and _FIELD.match(bare):
        return None  # the next field
    if (found := _AFTER.match(bare)) is not None:
        word, per, after = _folded(found["word"]), found["per"], bare[found.end() :]
        if per is not None and not re.fullmatch(_STEP_WORD, per, re.IGNORECASE):
            what = "a rate" if _folded(per) in _UNITS else "no time of a step"
            if is_known and not is_attached and word not in _UNITS:
                return None
            raise _UnclearError(f"is {what}")
        if word in _UNITS:
            if after[:1].isalnum() or after[:1] == "_" or _ALSO.match(after):
                raise _UnclearError("has more than one unit")
            if word == "min" and re.match(r"\s+[0-9.]", after):
                raise _UnclearError("has a `min` that may be minutes or the least")
            return word
        if is_known and not is_attached:
            return None
        raise _UnclearError("has a unit that is not known")
    if (found := _BRACKETS.match(bare)) is not None:
        if not is_known and _UNIT_IN.search(found[0]):
            raise _UnclearError("has its unit behind another number")
        return _unit(" " + bare[found.end() :], is_known)
    if re.match(
        r":[0-9]|/\s*[0-9]|[-\u2013]\s*[0-9]" if is_attached else r"/\s*[0-9]|[-\u2013] +[0-9]",
        bare,
    ):
        raise _UnclearError("is no single number")
    if not is_known and re.match(r"±|\+/?-|=", bare):
        raise _UnclearError("has no unit of its own")
    if is_attached and bare[0] != ":":
        raise _UnclearError("has a unit that is not known")
    return None


def _value(text: str, label_unit: str | None, is_cell: bool) -> tuple[str, str]:
    """The number and the unit with which a text starts; seconds where nothing tells a unit.

    Nothing else follows in a cell of a table.
    """
    number, rest = _number(text)
    if number.isdigit() and len(number) < 4 and re.match(r"\s[0-9]{3}(?!\d)", rest):
        raise _UnclearError("has a number that may mean two things")
    own = _unit(rest, label_unit is not None and not is_cell)
    if own and label_unit and _UNITS[own] != _UNITS[_folded(label_unit)]:
        raise _UnclearError("has two units")
    if own is None and label_unit is None and _UNIT_ELSEWHERE.search(text):
        raise _UnclearError("has its unit in another field")
    return number, own or label_unit or "s"


def _duration(text: str) -> tuple[str, str] | None:
    """Number and unit of a text that is one duration and nothing else."""
    try:
        number, rest = _number(text)
    except _UnclearError:
        return None
    unit = _folded(rest.strip())
    return (number, unit) if unit in _UNITS and number[0] not in "+-" else None


def _numbered(parts: Iterable[str], where: str) -> list[Step]:
    found = []
    for at, part in enumerate(parts):
        read = _duration(part)
        value = duration_ns(*read) if read else None
        if value is None:
            raise UsageError(f"{where} {at + 1} is {part!r}", hint="a step takes more than 0 time")
        found.append(Step(at, value))
    return found


# ---------------------------------------------------------------- files


class _Lines(Iterator[str]):
    """Lines of a log without colours; progress bars write many into one. `number` is the last's."""

    def __init__(self, file: Iterable[str]) -> None:
        self.number = 0
        self._bare = self._read(file)

    def _read(self, file: Iterable[str]) -> Iterator[str]:
        for self.number, line in enumerate(file, 1):
            for part in line.split("\r"):
                if bare := _ESCAPE.sub("", part).strip():
                    yield bare

    def __next__(self) -> str:
        return next(self._bare)


class _Place(NamedTuple):
    """Where a label was found: what its value is read from, and the word before it."""

    text: str
    unit: str | None
    shown: str
    before: str


def _ns(
    path: Path, line: int, text: str, unit: str | None, shown: str, is_cell: bool = False
) -> int:
    """The duration at the start of a text in nanoseconds, or an error that names the line."""
    try:
        number, found = _value(text, unit, is_cell)
    except _UnclearError as error:
        raise InputError(f"{path}:{line}: {shown!r} {error}", hint=_HINT) from None
    value = duration_ns(number, found)
    if value is None:
        raise InputError(f"{path}:{line}: a step of {number} {found}", hint="a step takes time")
    return value


def _label_unit(path: Path, line: int, match: re.Match[str]) -> str | None:
    """The unit in a label. `step_time_min` is as often the least as it is in minutes."""
    *others, attached = match.groups()
    unit = next(filter(None, (*others, attached)), None)
    if unit and _folded(unit) == "min" and match[3] is None:
        raise InputError(
            f"{path}:{line}: {match[0]!r} has a `min` that may be minutes or the least", hint=_HINT
        )
    return unit


def _before(text: str) -> str:
    found = _WORD_BEFORE.search(text)
    return found[1].lower() if found else ""


def _of_columns(path: Path, head: str, lines: _Lines) -> list[Step] | None:
    """The steps of a CSV file whose first line is `head`; None where that is none."""
    try:
        names = [name.strip() for name in next(csv.reader([head]), [])]
    except csv.Error:  # a line of a log may be of any length
        names = []
    if len(names) < 2:
        return None
    found = []
    for rank, (label, bare) in enumerate(zip(_HEADS, _NAMES, strict=True)):
        for at, name in enumerate(names):
            if label.fullmatch(name) is None:
                continue
            match = re.search(rf"{bare}\Z", name, re.IGNORECASE)
            word = _before(name[: match.start()]) if match else ""
            if match is not None and word not in _OTHER_STEPS:
                found.append((rank, word not in ("", "train", "training"), at, match))
    if not found:
        return None
    *_, at, match = min(found, key=lambda each: each[:3])
    unit = _label_unit(path, lines.number, match)
    counter = next((names.index(name) for name in ("global_step", "step") if name in names), None)
    steps: list[tuple[int | None, int]] = []
    for row in _rows(path, lines):
        if len(row) > len(names):
            raise InputError(
                f"{path}:{lines.number}: {len(row)} values under {len(names)} names",
                hint="put a value that holds a comma in quotes",
            )
        # other columns are logged at other times and leave this one empty; a last line may be cut
        cell = row[at].strip() if len(row) == len(names) else ""
        if not re.match(r"[+-]?\.?[0-9]", cell):
            continue
        number = "" if counter is None else f"step: {row[counter]}"
        steps.append(
            (_step_number(number), _ns(path, lines.number, cell, unit, cell, is_cell=True))
        )
    return _in_order(steps) if steps else None


def _rows(path: Path, lines: _Lines) -> Iterator[list[str]]:
    try:
        yield from csv.reader(lines)
    except csv.Error as error:
        raise InputError(
            f"{path}:{lines.number}: {error}", hint="put the column into a file of its own"
        ) from None


def _places(path: Path, line: int, text: str, label: re.Pattern[str]) -> list[_Place]:
    """Where a line tells the time of a step, those of parts of a step left out."""
    places = []
    for match in label.finditer(text):
        # a field is short, and a whole run may stand on one line
        before = _before(text[max(match.start() - _NEAR, 0) : match.start()])
        if before not in _OTHER_STEPS:
            shown = text[match.start() : match.end() + 24]
            unit = _label_unit(path, line, match)
            places.append(_Place(text[match.end() : match.end() + _NEAR], unit, shown, before))
    return places


def _of_lines(path: Path, lines: _Lines) -> list[Step]:
    plain: list[str] = []
    is_log = False
    best = len(_LABELS)
    matches: list[tuple[int, str, list[_Place]]] = []
    for line in lines:
        if line.startswith("#"):
            continue
        if not is_log and not plain and (steps := _of_columns(path, line, lines)) is not None:
            return steps
        if not is_log and _duration(line):
            plain.append(line)
            continue
        if plain:
            raise InputError(
                f"{path}:{lines.number}: {line[:60]!r} is no duration with a unit",
                hint="one duration a line, for example 29.39s or 812ms",
            )
        is_log = True
        for at, label in enumerate(_LABELS[: best + 1]):
            if found := _places(path, lines.number, line, label):
                if at < best:
                    best, matches = at, []
                matches.append((lines.number, line, found))
                break
    if plain:
        return _numbered(plain, f"{path}: line")
    if not matches:
        raise InputError(
            f"{path} holds no step time that is known",
            hint="one duration a line (29.39s), or a trainer log with `elapsed time per iteration "
            "(ms): 812.3`, `train_step_timing in s: 0.812` or `step time: 0.812 s`, or a CSV file "
            "with such a column; a rate like 1.21it/s is a running average and is not read",
        )
    return _in_order([_of_places(path, *each) for each in matches])


def _of_places(path: Path, line: int, text: str, places: list[_Place]) -> tuple[int | None, int]:
    """Number and duration of the step of a line."""
    bare = [each for each in places if each.before in ("", "train", "training")] or places
    values = {_ns(path, line, each.text, each.unit, each.shown) for each in bare}
    if len(values) > 1:
        raise InputError(
            f"{path}:{line}: {' and '.join(repr(each.shown) for each in bare)} differ",
            hint="leave one of them, or give a file with one duration a line, like 812ms",
        )
    return _step_number(text), values.pop()


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
            return int(found[1].replace(",", ""))
    return None
