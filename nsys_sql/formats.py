"""Results for machines: json, csv and markdown keep every value as it is."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Protocol

from nsys_sql import humanize

Row = Sequence[object]
_PLAIN = re.compile(r"[A-Za-z0-9]+(?:_+[A-Za-z0-9]+)*")
_NUMBERS = ("INT", "DOUBLE", "FLOAT", "DECIMAL", "REAL")


class ColumnLike(Protocol):
    """What a column declares about itself."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def unit(self) -> str: ...
    @property
    def description(self) -> str: ...


class CheckLike(Protocol):
    """One check of a result; `status` is ok, warn or fail."""

    @property
    def name(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def detail(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Report:
    """One recipe over one trace; `rows` in column order, or `failure` where there is no answer.

    Many rows come as `lines` instead: blocks of the rows as csv or json has them, without the
    separator behind each. They are made while they are written, and only once. `left_out` counts
    rows that stand in neither.
    """

    recipe: str
    version: str
    trace: Mapping[str, object]
    question: str = ""
    parameters: Mapping[str, object] = field(default_factory=dict)
    columns: Sequence[ColumnLike] = ()
    rows: Sequence[Row] = ()
    checks: Sequence[CheckLike] = ()
    notes: Sequence[str] = ()
    failure: Mapping[str, object] | None = None
    lines: Iterable[str] | None = None
    left_out: int = 0


def is_number(column: ColumnLike) -> bool:
    """Whether the column's declared type is a number."""
    return any(word in column.type.upper() for word in _NUMBERS)


def envelope(report: Report) -> dict[str, object]:
    """The JSON object of one report, keys in the order of the output contract."""
    head: dict[str, object] = {
        "recipe": report.recipe,
        "nsys_sql_version": report.version,
        "trace": dict(report.trace),
    }
    if report.failure is not None:
        return head | {"error": dict(report.failure)}
    names = [column.name for column in report.columns]
    return head | {
        "parameters": dict(report.parameters),
        "columns": [
            {"name": c.name, "type": c.type, "unit": c.unit, "description": c.description}
            for c in report.columns
        ],
        "rows": [dict(zip(names, row, strict=True)) for row in report.rows],
        "checks": [{"name": c.name, "status": c.status, "detail": c.detail} for c in report.checks],
        "notes": list(report.notes),
    }


def json_text(reports: Sequence[Report]) -> str:
    """One object for one report, an array for several; long lists hold one item a line."""
    return "".join(json_parts(reports, len(reports) != 1))


def json_parts(reports: Iterable[Report], is_array: bool) -> Iterator[str]:
    """The same in pieces; no report is asked for before the one before it is written."""
    before = "[\n" if is_array else ""
    for report in reports:
        yield before
        before = ",\n"
        yield from _object_parts(envelope(report), {"rows": report.lines})
    yield "\n]\n" if is_array else "\n"


def dumps(value: object) -> str:
    """JSON on one line; what JSON cannot hold (NaN, infinities) becomes null, never text."""
    return json.dumps(plain(value), ensure_ascii=False, allow_nan=False)


def object_text(value: Mapping[str, object]) -> str:
    """A JSON object with one key a line, and one line for each item of a list."""
    return "".join(_object_parts(value, {}))


def _object_parts(
    value: Mapping[str, object], lists: Mapping[str, Iterable[str] | None]
) -> Iterator[str]:
    """An object in pieces; `lists` holds the lines of a list's items where they are written."""
    before = "{\n"
    for key, item in value.items():
        yield f"{before}  {dumps(key)}: "
        before = ",\n"
        if (blocks := lists.get(key)) is not None:
            yield "[\n"
            for number, block in enumerate(blocks):
                yield f",\n{block}" if number else block
            yield "\n  ]"
        elif isinstance(item, list) and item:
            inner = ",\n".join(f"    {dumps(entry)}" for entry in item)
            yield f"[\n{inner}\n  ]"
        else:
            yield dumps(item)
    yield "\n}"


def plain(value: object) -> object:
    """`value` in the types JSON knows."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return int(value) if value == int(value) else float(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode("ascii")
    isoformat = getattr(value, "isoformat", None)
    return isoformat() if callable(isoformat) else str(value)


def csv_text(reports: Sequence[Report], *, with_trace: bool = False) -> str:
    """RFC 4180 with LF; NULL is an empty field, an empty text is `\"\"`."""
    return "".join(csv_parts(reports, with_trace=with_trace))


def csv_parts(reports: Iterable[Report], *, with_trace: bool = False) -> Iterator[str]:
    """The same in pieces."""
    is_first = True
    for report in reports:
        if report.failure is not None:
            continue
        if is_first:
            names = [column.name for column in report.columns]
            yield csv_line([*(["trace"] if with_trace else []), *names]) + "\n"
            is_first = False
        lead: list[object] = [report.trace.get("path")] if with_trace else []
        yield from (f"{csv_line([*lead, *row])}\n" for row in report.rows)
        yield from (f"{block}\n" for block in report.lines or ())


def blocks(
    columns: Sequence[ColumnLike],
    batches: Iterable[Sequence[Row]],
    form: str,
    lead: str | None = None,
) -> Iterator[str]:
    """Rows as the `lines` of a report; `lead` is a value in front of each csv row."""
    names = [column.name for column in columns]
    first = [] if lead is None else [lead]
    for rows in batches:
        if form == "csv":
            yield "\n".join(csv_line([*first, *row]) for row in rows)
        else:
            found = (dumps(dict(zip(names, row, strict=True))) for row in rows)
            yield ",\n".join(f"    {each}" for each in found)


def csv_line(row: Sequence[object]) -> str:
    """A row of csv without its line feed."""
    line = ",".join(map(_csv_field, row))
    return line or '""'  # a blank line would be skipped by every reader


def _csv_field(value: object) -> str:
    if value is None:
        return ""
    text = _scalar(value)
    quoted = not text or any(c in text for c in ',"\r\n') or text != text.strip()
    return '"' + text.replace('"', '""') + '"' if quoted else text


def _scalar(value: object) -> str:
    value = plain(value)
    if value is None:
        return ""
    return value if isinstance(value, str) else dumps(value)


def markdown(report: Report) -> str:
    """A pipe table with raw values, then what limits the claim."""
    title = f"## {humanize.clean(report.recipe)}"
    title += f": {pipe_text(report.question)}" if report.question else ""
    lines = [title, "", pipe_text(str(report.trace.get("path", ""))), ""]
    bad = [check for check in report.checks if check.status != "ok"]
    for check in bad:
        lines.append(f"> **{check.status.upper()}** {check.name}: {pipe_text(str(check.detail))}")
    lines += [""] if bad else []
    lines.append(pipes([pipe_name(column.name) for column in report.columns]))
    lines.append(pipes(["---:" if is_number(column) else "---" for column in report.columns]))
    for row in report.rows:
        lines.append(pipes(["-" if v is None else pipe_text(_scalar(v)) for v in row]))
    if report.notes:
        lines += ["", "Notes:", "", *(f"- {pipe_text(note)}" for note in report.notes)]
    return "\n".join(lines) + "\n"


def pipes(cells: Sequence[str]) -> str:
    """A line of a pipe table."""
    return "| " + " | ".join(cells) + " |"


def pipe_name(name: str) -> str:
    """The name of a column: as it is where it is plain, for `_` inside of a word means nothing."""
    return name if _PLAIN.fullmatch(name) else pipe_text(name)


def pipe_text(text: str) -> str:
    """Text that cannot end its cell, start HTML, or become emphasis."""
    text = humanize.clean(text).replace("\\", "\\\\")
    for special in "|<>*_`[]":
        text = text.replace(special, "\\" + special)
    return text
