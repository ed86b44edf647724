"""Results for machines: json, csv and markdown keep every value as it is."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Protocol

from nsys_sql import humanize

Row = Sequence[object]
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
    """One recipe over one trace; `rows` in column order, or `failure` where there is no answer."""

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
    texts = [object_text(envelope(report)) for report in reports]
    return texts[0] + "\n" if len(texts) == 1 else "[\n" + ",\n".join(texts) + "\n]\n"


def dumps(value: object) -> str:
    """JSON on one line; what JSON cannot hold (NaN, infinities) becomes null, never text."""
    return json.dumps(plain(value), ensure_ascii=False, allow_nan=False)


def object_text(value: Mapping[str, object]) -> str:
    """A JSON object with one key a line, and one line for each item of a list."""
    items = []
    for key, item in value.items():
        if isinstance(item, list) and item:
            inner = ",\n".join(f"    {dumps(entry)}" for entry in item)
            items.append(f"  {dumps(key)}: [\n{inner}\n  ]")
        else:
            items.append(f"  {dumps(key)}: {dumps(item)}")
    return "{\n" + ",\n".join(items) + "\n}"


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
    lines: list[str] = []
    for report in reports:
        if report.failure is not None:
            continue
        lead: list[object] = [report.trace.get("path")] if with_trace else []
        if not lines:
            names = (["trace"] if with_trace else []) + [column.name for column in report.columns]
            lines.append(_csv_line(names))
        lines += [_csv_line([*lead, *row]) for row in report.rows]
    return "".join(f"{line}\n" for line in lines)


def _csv_line(row: Sequence[object]) -> str:
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
    title = f"## {report.recipe}: {report.question}" if report.question else f"## {report.recipe}"
    lines = [title, "", pipe_text(str(report.trace.get("path", ""))), ""]
    bad = [check for check in report.checks if check.status != "ok"]
    for check in bad:
        lines.append(f"> **{check.status.upper()}** {check.name}: {pipe_text(str(check.detail))}")
    lines += [""] if bad else []
    lines.append(pipes([column.name for column in report.columns]))
    lines.append(pipes(["---:" if is_number(column) else "---" for column in report.columns]))
    for row in report.rows:
        lines.append(pipes(["-" if v is None else pipe_text(_scalar(v)) for v in row]))
    if report.notes:
        lines += ["", "Notes:", "", *(f"- {pipe_text(note)}" for note in report.notes)]
    return "\n".join(lines) + "\n"


def pipes(cells: Sequence[str]) -> str:
    """A line of a pipe table."""
    return "| " + " | ".join(cells) + " |"


def pipe_text(text: str) -> str:
    """Text that cannot end its cell, start HTML, or become emphasis."""
    text = humanize.clean(text).replace("\\", "\\\\")
    for special in "|<>*_`[]":
        text = text.replace(special, "\\" + special)
    return text
