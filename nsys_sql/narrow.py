"""Leave out of a plan the columns that nothing in it reads: every column costs time and memory.

Pure, and by name alone: a column stays when its name occurs anywhere in what reads its step, so
a doubt keeps it. What makes a column in the final SELECT of a step goes with it, so that a step
reads no more than is read of it in turn.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from nsys_sql.catalog import SqlFile, code

_WORD = re.compile(r"\w+")
_BARE_STAR = re.compile(r"(?:\bSELECT|\bDISTINCT|,)\s+\*|\bCOLUMNS\s*\(", re.IGNORECASE)
_FROM_FIRST = re.compile(r"(?:^|[(;]|\bUNION(?:\s+ALL)?)\s*FROM\s+nsys\.(\w+)", re.IGNORECASE)
_USE = re.compile(r"\bnsys\.(\w+)")
# what may stand where an alias would
_CLAUSE = re.compile(
    "where|on|inner|left|right|full|cross|asof|semi|anti|join|using|group|order|having|qualify|"
    "window|union|except|intersect|limit|tablesample|select|positional|natural",
    re.IGNORECASE,
)
_NAMING = re.compile(r"\bAS\s+\w+|\bnsys\.\w+(?:\s+AS)?\s+\w+", re.IGNORECASE)
_ALIASED = re.compile(r"\bnsys\.(\w+)\s+(?:AS\s+)?(\w+)", re.IGNORECASE)


def needed_columns(
    makers: Sequence[SqlFile], readers: Sequence[SqlFile], narrow: Mapping[str, SqlFile]
) -> dict[str, tuple[str, ...]]:
    """{step: the columns to keep, in their order} of the steps of `narrow` that lose some.

    `makers` are the steps in the order in which they are made, `readers` what reads them at last:
    recipes, notes and invariants.
    """
    found: dict[str, set[str]] = {name: set() for name in narrow}
    for file in readers:
        if not narrow.keys().isdisjoint(file.inputs):
            _note(file, code(file.body), found, narrow)
    kept: dict[str, tuple[str, ...]] = {}
    for file in reversed(makers):
        if file.name not in narrow and narrow.keys().isdisjoint(file.inputs):
            continue
        text = code(file.body)
        if file.name in narrow:
            every = [column.name for column in file.columns]
            # a step that is only counted keeps a column to count
            keep = [name for name in every if name in found[file.name]] or every[:1]
            if len(keep) < len(every):
                kept[file.name] = tuple(keep)
                text = without(text, [name for name in every if name not in keep])
        _note(file, text, found, narrow)
    return kept


def without(sql: str, columns: Sequence[str]) -> str:
    """A query whose one final SELECT, told by its place at the margin, lacks some columns.

    Window functions go with their columns: DuckDB would keep sorting for them. A query of several
    such SELECTs stays as it is.
    """
    lines = sql.split("\n")
    if lines.count("SELECT") != 1:
        return sql
    first = lines.index("SELECT") + 1
    last = next((at for at in range(first, len(lines)) if lines[at].startswith("FROM ")), 0)
    kept: list[str] = []
    item: list[str] = []
    depth = 0
    for line in lines[first:last]:
        item.append(line)
        text = code(line).rstrip()
        words = _WORD.findall(text.upper())
        depth += text.count("(") - text.count(")") + words.count("CASE") - words.count("END")
        if depth == 0 and (text.endswith(",") or line is lines[last - 1]):
            if (_WORD.findall(text) or [""])[-1] not in columns:
                kept += item
            item = []
    return sql if item else "\n".join((*lines[:first], *kept, *lines[last:]))


def _note(
    file: SqlFile, text: str, found: dict[str, set[str]], narrow: Mapping[str, SqlFile]
) -> None:
    """Add to `found` the columns that a file may read of the steps it names."""
    used = [name for name in file.inputs if name in narrow]
    words = set(_WORD.findall(text.lower()))
    whole = _whole(text)
    for name in used:
        every = {column.name for column in narrow[name].columns}
        found[name] |= every if name in whole else {each for each in every if each.lower() in words}


def _whole(text: str) -> set[str]:
    """The relations of which a text may take every column: by a star, or a row as a value."""
    found = set(_FROM_FIRST.findall(text))
    for match in _BARE_STAR.finditer(text):
        found.update(_USE.findall(_scope(text[match.start() :])))
    found.update(name for name in _USE.findall(text) if re.search(rf"\b{name}\.\*", text))
    elsewhere = _NAMING.sub("", text)
    for name, alias in _ALIASED.findall(text):
        if _CLAUSE.fullmatch(alias):
            continue
        # `alias.column` is a column of it; the alias in any other place may be the whole row
        if re.search(rf"(?<![\w.']){alias}\b(?!\s*\.\s*\w)(?!')", elsewhere):
            found.add(name)
        if re.search(rf"\b{alias}\.\*", text):
            found.add(name)
    return found


def _scope(text: str) -> str:
    """A text up to the bracket that closes where it begins."""
    depth = 0
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth < 0:
            return text[:at]
    return text
