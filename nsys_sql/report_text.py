"""A report as Markdown or JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import nsys_sql
from nsys_sql import formats, humanize
from nsys_sql.formats import ColumnLike, is_number, pipe_text, pipes
from nsys_sql.report import Part, Section, Table

_WIDEST = 80
# Columns that hold sentences, which are never cut.
PROSE = {"item", "value", "detail", "remedy", "claim", "basis", "statement"}


def title(part: Part) -> str:
    """The heading of a trace's part."""
    return part.heading or f"Report of {part.trace['path']}"


def cells(table: Table, widest: int) -> list[list[str]]:
    """The table's values as a person reads them, long names cut in the middle."""
    return [
        [
            humanize.shorten(humanize.cell(value, column.name, column.unit), widest)
            if column.name not in PROSE
            else humanize.cell(value, column.name, column.unit)
            for value, column in zip(row, table.columns, strict=True)
        ]
        for row in table.rows
    ]


def more(table: Table) -> str:
    """How many rows are not shown, and where they are; empty where all are."""
    if not table.left_out:
        return ""
    rows = "row" if table.left_out == 1 else "rows"
    return f"{table.left_out} more {rows}: nsys-sql {table.command or f'run {table.recipe} TRACE'}"


def heads(columns: Sequence[ColumnLike]) -> list[str]:
    """The columns' headings, no two alike."""
    short = [head(column.name, column.unit) for column in columns]
    return humanize.distinct(short, [column.name.replace("_", " ") for column in columns])


def head(name: str, unit: str) -> str:
    """A column's name without the unit that each value shows by itself."""
    for suffix in ("_ms", "_us", "_ns", "_bytes", "_gbps"):
        if unit not in ("-", "count") and name.endswith(suffix):
            name = name.removesuffix(suffix)
    return name.replace("pct_of_", "% of ").replace("_pct", " %").replace("_", " ")


def markdown(parts: Sequence[Part]) -> str:
    """All parts as one Markdown document."""
    return "\n".join(line for part in parts for line in _part(part)) + "\n"


def _part(part: Part) -> Iterator[str]:
    yield f"# {pipe_text(title(part))}"
    yield ""
    for section in part.sections:
        yield from _section(section)


def _section(section: Section) -> Iterator[str]:
    yield f"## {section.number} {section.title}"
    yield ""
    for sentence in section.sentences:
        yield pipe_text(sentence)
        yield ""
    for table in section.tables:
        yield from _table(table)
    for advice in section.advice:
        yield f"**{pipe_text(advice.title)}**"
        yield ""
        for name, text in advice.lines:
            yield f"- {name}: {pipe_text(text)}"
        yield ""
    for recipe, reason in section.missing:
        yield f"Not captured or not answered, {recipe}: {pipe_text(reason)}."
        yield ""
    if section.notes:
        yield from (f"- {pipe_text(note)}" for note in section.notes)
        yield ""


def _table(table: Table) -> Iterator[str]:
    kind = "result" if table.command else "recipe"
    yield f"**{pipe_text(table.title)}** ({kind} `{humanize.clean(table.recipe)}`)"
    yield ""
    yield pipes([*map(pipe_text, heads(table.columns))])
    yield pipes(["---:" if is_number(column) else "---" for column in table.columns])
    for row in cells(table, _WIDEST):
        yield pipes([pipe_text(cell) for cell in row])
    yield ""
    if table.left_out:
        yield f"{more(table)}"
        yield ""


def json_text(parts: Sequence[Part]) -> str:
    """One object: for each trace its sections in words, and every result in full."""
    return (
        formats.dumps(
            {
                "report": list(_numbered()),
                "nsys_sql_version": nsys_sql.__version__,
                "traces": [_object(part) for part in parts],
            }
        )
        + "\n"
    )


def _numbered() -> Iterator[dict[str, object]]:
    from nsys_sql.report import SECTIONS

    for number, name in enumerate(SECTIONS, 1):
        yield {"number": number, "title": name}


def _object(part: Part) -> dict[str, object]:
    return {
        "trace": dict(part.trace),
        "parameters": dict(part.parameters),
        "sections": [
            {
                "number": section.number,
                "title": section.title,
                "sentences": section.sentences,
                "recipes": [table.recipe for table in section.tables],
                "not_captured": [
                    {"recipe": recipe, "reason": reason} for recipe, reason in section.missing
                ],
                "notes": section.notes,
            }
            for section in part.sections
        ],
        "results": {name: formats.envelope(result) for name, result in part.results.items()},
    }
