"""Macro files taken apart: which statement makes which macro, and what it calls."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from nsys_sql.catalog import SqlFile, code

_START = re.compile(
    r"^CREATE\s+(?:OR\s+REPLACE\s+)?MACRO\s+nsys\.(\w+)", re.IGNORECASE | re.MULTILINE
)
_PARAMETERS = re.compile(r"\bMACRO\s+nsys\.\w+\s*\(([^)]*)\)", re.IGNORECASE)
_CALL = re.compile(r"\bnsys\.(\w+)")
_VARIABLE = re.compile(r"getvariable\(\s*'(\w+)'\s*\)", re.IGNORECASE)


class Macro:
    """One CREATE MACRO statement; `file` is None for those made from the taxonomy."""

    __slots__ = ("calls", "comment", "file", "name", "parameters", "sql", "variables")

    def __init__(self, name: str, sql: str, file: SqlFile | None, comment: str = "") -> None:
        bare = code(sql)
        head = _PARAMETERS.search(bare)
        self.parameters = tuple(
            each.strip() for each in (head[1] if head else "").split(",") if each.strip()
        )
        self.comment = comment
        self.name = name
        self.sql = sql
        self.file = file
        self.calls = tuple(each for each in dict.fromkeys(_CALL.findall(bare)) if each != name)
        self.variables = tuple(dict.fromkeys(_VARIABLE.findall(bare)))


@lru_cache(maxsize=64)
def split(body: str, file: SqlFile | None = None) -> tuple[Macro, ...]:
    """The macros of a file, in order. Each statement starts a line; comments between are left."""
    starts = list(_START.finditer(body))
    found = []
    end = 0
    for start, following in zip(starts, [*starts[1:], None], strict=True):
        text = body[start.start() : following.start() if following else len(body)]
        # Comment lines at the end belong to the next macro.
        text = re.sub(r"(\n\s*(--[^\n]*)?)*\Z", "", text).rstrip().removesuffix(";")
        comment = _comment(body[end : start.start()])
        found.append(Macro(start[1], text, file, comment))
        end = start.start() + len(text)
    return tuple(found)


def _comment(text: str) -> str:
    """The comment lines at the end of a text, without their marks."""
    lines: list[str] = []
    for line in reversed(text.rstrip().splitlines()):
        if not line.startswith("--"):
            break
        lines.insert(0, line[2:].removeprefix(" ").rstrip())
    return "\n".join(lines)


def collect(files: Iterable[SqlFile], generated: Iterable[str]) -> dict[str, Macro]:
    """Every macro by name: those of the files, then those generated as statements."""
    found = [macro for file in files for macro in split(file.body, file)]
    found += [macro for text in generated for macro in split(text)]
    return {macro.name: macro for macro in found}


def in_order(macros: dict[str, Macro], needed: Iterable[str]) -> list[Macro]:
    """The needed macros, each after those it calls: DuckDB looks them up when one is made."""
    ordered: dict[str, Macro] = {}
    wanted = set(needed)

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in ordered or name in path or name not in macros:
            return
        for each in macros[name].calls:
            visit(each, (*path, name))
        ordered[name] = macros[name]

    for name in macros:
        if name in wanted:
            visit(name, ())
    return list(ordered.values())
