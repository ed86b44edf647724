"""Results for a person: every value in a fitting unit, long names cut, no control characters."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence

from nsys_sql import formats, humanize, tree
from nsys_sql.formats import CheckLike, ColumnLike, Report, Row, is_number

FORMATS = ("table", "json", "csv", "markdown")
_GUTTER = 2
_NARROWEST = 24
_FIRST_ANCHORS = 10
_WANTED = re.compile(r"taken|stops|cross-check|plausible")
_SYMBOL = re.compile(r"kernel|name|pattern|anchor|path")


def render(reports: Sequence[Report], form: str, *, width: int = 120, limit: int = 0) -> str:
    """Results one after another: an array in json, a leading `trace` column in csv."""
    return "".join(parts(reports, form, len(reports) != 1, width=width, limit=limit))


def parts(
    reports: Iterable[Report], form: str, is_several: bool, *, width: int = 120, limit: int = 0
) -> Iterator[str]:
    """The same in pieces, for many rows; no piece at all where nothing was answered."""
    if form == "json":
        return formats.json_parts(reports, is_several)
    if form == "csv":
        return formats.csv_parts(reports, with_trace=is_several)
    answered = [report for report in reports if report.failure is None]
    if form == "markdown":
        texts = [formats.markdown(report) for report in answered]
    else:
        texts = [table(report, width, limit) for report in answered]
    return iter(["\n".join(texts)] if texts else [])


def table(report: Report, width: int, limit: int = 0) -> str:
    """The report for a person, in lines of about `width` characters; `limit` 0 shows all rows."""
    path = humanize.clean(str(report.trace.get("path", "")))
    asked = humanize.clean(f"{report.recipe} - {report.question}")
    head = f"{asked}\n{path}" if report.question else ""
    texts = [head, banner(report.checks, width)]
    names = [column.name for column in report.columns]
    if report.recipe == "budget" and tree.fits(names):
        texts.append(tree.render(names, report.rows))
    else:
        rows, left = report.rows, report.left_out
        if report.recipe == "anchors" and limit and "rank" in names and "verdict" in names:
            rows = _promising(rows, names.index("rank"), names.index("verdict"))
            left += len(report.rows) - len(rows)
        texts.append(listing(report.columns, rows, width, limit, left=left))
    if report.notes:
        texts.append("Notes\n" + "\n".join(_bullet(note, width) for note in report.notes))
    return "\n\n".join(text for text in texts if text) + "\n"


def _promising(rows: Sequence[Row], rank: int, verdict: int) -> list[Row]:
    """Anchors that a reader may want: the first ones, and those that auto has nothing against."""
    ranks = list(dict.fromkeys(row[rank] for row in rows))[:_FIRST_ANCHORS]
    return [row for row in rows if row[rank] in ranks or _WANTED.match(str(row[verdict]))]


def listing(
    columns: Sequence[ColumnLike],
    rows: Sequence[Row],
    width: int,
    limit: int,
    none: str = "",
    left: int = 0,
) -> str:
    """A grid of at most `limit` rows (0: all) that says what it leaves out; `none` if empty.

    `left` counts further rows that are not at hand.
    """
    if not rows:
        return none or "(no rows)"
    shown = rows[:limit] if limit else rows
    left += len(rows) - len(shown)
    more = f"\n\n... {left} more rows (--limit 0 for all, or --format csv)" if left else ""
    return grid(columns, shown, width) + more


def banner(checks: Sequence[CheckLike], width: int) -> str:
    """The checks that did not hold, failures first; empty where all held."""
    lines = []
    for status, word in (("fail", "FAILED"), ("warn", "WARNING")):
        lines += [
            textwrap.fill(
                f"{word} {check.name}: {humanize.clean(str(check.detail))}",
                max(width, 40),
                subsequent_indent="    ",
            )
            for check in checks
            if check.status == status
        ]
    return "\n".join(lines)


def _bullet(text: str, width: int) -> str:
    return textwrap.fill(
        humanize.clean(text),
        max(width, 40),
        initial_indent="- ",
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def grid(columns: Sequence[ColumnLike], rows: Sequence[Row], width: int) -> str:
    """Rows under their column names, each value in a fitting unit, numbers to the right."""
    cells = [
        [
            humanize.cell(value, column.name, column.unit)
            for value, column in zip(row, columns, strict=True)
        ]
        for row in rows
    ]
    right = [is_number(column) for column in columns]
    body = [max((len(row[i]) for row in cells), default=0) for i in range(len(columns))]
    heads = [_fold(each, max(space, 8)) for each, space in zip(titles(columns), body, strict=True)]
    needed = [max(space, *map(len, head)) for space, head in zip(body, heads, strict=True)]
    widths = _fit(needed, [not number for number in right], width - _GUTTER * (len(columns) - 1))
    depth = max(map(len, heads))
    top = [[""] * (depth - len(head)) + head for head in heads]
    wraps = [
        not number and not _SYMBOL.search(c.name) for number, c in zip(right, columns, strict=True)
    ]
    lines = [line for row in cells for line in _lines(row, widths, wraps)]
    return tree.align([list(line) for line in zip(*top, strict=True)], lines, right)


def _lines(row: Sequence[str], widths: Sequence[int], wraps: Sequence[bool]) -> list[list[str]]:
    """A row within its widths: sentences go on in further lines, symbols lose their middle."""
    cells = [
        textwrap.wrap(text, width) if wrap else [humanize.shorten(text, width)]
        for text, width, wrap in zip(row, widths, wraps, strict=True)
    ]
    height = max(map(len, cells))
    filled = [[*cell, *[""] * (height - len(cell))] for cell in cells]
    return [list(line) for line in zip(*filled, strict=True)]


def titles(columns: Sequence[ColumnLike]) -> list[str]:
    """The columns' headings, no two alike."""
    short = [_header(column) for column in columns]
    full = [
        f"{brief}_delta" if column.unit.startswith("+") else column.name
        for brief, column in zip(short, columns, strict=True)
    ]
    return humanize.distinct([*map(humanize.clean, short)], [*map(humanize.clean, full)])


def _header(column: ColumnLike) -> str:
    """The column's name without its unit, since every value shows its own."""
    name, unit = column.name, column.unit.lower().removeprefix("+")
    if unit not in ("-", "count") and name.endswith(f"_{unit}"):
        base = name[: -len(unit) - 1]
        return f"{base}_%" if unit == "pct" else base  # else work_ms and work_pct look the same
    return name


def _fold(name: str, width: int) -> list[str]:
    """A column name broken at its underscores, so that it is no wider than its values."""
    lines = [""]
    for word in name.replace("_", "_ ").split(" "):
        if lines[-1] and len(lines[-1]) + len(word.rstrip("_")) > width:
            lines.append("")
        lines[-1] += word
    return lines


def _fit(needed: list[int], text: list[bool], width: int) -> list[int]:
    """Column widths that together stay within `width` where cutting text columns can do it."""
    widths = list(needed)
    while sum(widths) > width:
        wide = [i for i, is_text in enumerate(text) if is_text and widths[i] > _NARROWEST]
        if not wide:
            break
        widths[max(wide, key=lambda i: (widths[i], i))] -= 1
    return widths
