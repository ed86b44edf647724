"""What one trace holds, as the sections of `inspect`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsys_sql import formats, humanize, render
from nsys_sql.catalog import Column
from nsys_sql.docs import recipes_in_order
from nsys_sql.errors import AnswerError
from nsys_sql.formats import ColumnLike, Row

if TYPE_CHECKING:
    from nsys_sql.session import Model

_RECIPES = ("devices", "processes", "streams")
_TABLES = (
    Column("table", "VARCHAR", "-", "table of the trace"),
    Column("rows", "BIGINT", "count", "rows"),
)
_ANSWERS = (
    Column("recipe", "VARCHAR", "-", "recipe"),
    Column("is_possible", "BOOLEAN", "-", "whether the tables it needs are there"),
    Column("reason", "VARCHAR", "-", "why not"),
)


@dataclass(frozen=True, slots=True)
class Section:
    """A titled table; `absent` says in a sentence why there are no rows."""

    title: str
    columns: Sequence[ColumnLike] = ()
    rows: Sequence[Row] = ()
    absent: str = ""


def sections(model: Model) -> list[Section]:
    """Devices, processes, streams, tables and recipes of an opened trace."""
    found = [_recipe(model, name) for name in _RECIPES if name in model.catalog.recipes]
    found.append(Section("tables", _TABLES, model.row_counts()))
    reasons = {each.name: model.why_not(each.name) for each in recipes_in_order(model.catalog)}
    answers = [
        (name, reason is None, reason and reason.removeprefix(f"{name}: "))
        for name, reason in reasons.items()
    ]
    return [*found, Section("recipes", _ANSWERS, answers)]


def _recipe(model: Model, name: str) -> Section:
    try:
        result = model.result(name)
    except AnswerError as error:
        return Section(name, absent=str(error))
    return Section(name, result.columns, result.rows)


def text(facts: dict[str, object], found: Sequence[Section], width: int, limit: int) -> str:
    """The sections for a person."""
    head = [
        humanize.clean(str(facts["path"])),
        f"  exported by  {_known(facts['product_version'], 'an unnamed version')}"
        f" (schema {_known(facts['schema_version'], 'unknown')})",
        f"  captured by  {_known(facts['capture_version'], 'an unknown version')}",
    ]
    warnings = facts["warnings"]
    assert isinstance(warnings, list)
    head += [f"  warning      {humanize.clean(str(warning))}" for warning in warnings]
    parts = ["\n".join(head)]
    for section in found:
        body = render.listing(section.columns, section.rows, width, limit, section.absent)
        parts.append(f"{section.title}\n\n{body}")
    return "\n\n".join(parts) + "\n"


def _known(value: object, otherwise: str) -> str:
    return humanize.clean(str(value)) if value else otherwise


def json_text(version: str, facts: dict[str, object], found: Sequence[Section]) -> str:
    """The sections for a program: one list of objects each, or null where not captured."""
    data: dict[str, object] = {"nsys_sql_version": version, "trace": facts}
    for section in found:
        names = [column.name for column in section.columns]
        rows = [dict(zip(names, row, strict=True)) for row in section.rows]
        data[section.title] = None if section.absent else rows
    return formats.object_text(data) + "\n"
