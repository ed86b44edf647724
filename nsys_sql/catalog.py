"""The SQL files as data: headers and recipes.yaml become frozen dataclasses. No DuckDB here."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from nsys_sql import resources
from nsys_sql.errors import NsysSqlError, UsageError

# The C loader is ten times faster; both are safe loaders.
YAML_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

KINDS = ("adapter", "macro", "step", "recipe", "note", "invariant")
_FOLDERS = {kind: f"{kind}s" for kind in KINDS}

_TITLE = re.compile(r"^--\s*(?P<name>[\w.-]+)\s+[—-]+\s+(?P<question>.+?)\s*$")
_TAG = re.compile(r"^--\s*@(?P<tag>\w+)\s*(?P<text>.*?)\s*$")
_PARAM = re.compile(
    r"^(?P<name>\w+)\s+(?P<type>\S+)\s*=\s*(?P<default>'[^']*'|\S+)"
    r"(?:\s+(?P<range>[\[(][-+.\d]*\s*,\s*[-+.\d]*[\])]))?\s*(?P<description>.*)$"
)
_COLUMN = re.compile(r"^(?P<name>\w+)\s+(?P<type>\S+)\s+(?P<unit>\S+)\s*(?P<description>.*)$")
_NAMED = re.compile(r"^(?P<name>[\w-]+)\s+(?P<expression>.+)$", re.DOTALL)
_WHEN = re.compile(r"^(?P<table>\w+)(?:\.(?P<column>\w+))?\s+(?P<state>present|absent)$")
_OPTIONAL = re.compile(r"^(?P<table>\w+)(?:\.(?P<column>\w+)\s+(?P<type>\S+))?$")
_NUMBERS = re.compile(r"^\d+(\s*,\s*\d+)*$")
_MACRO = re.compile(r"\bMACRO\s+nsys\.(\w+)", re.IGNORECASE)
_COMMENT = re.compile(r"--[^\n]*")
_VARIABLE = re.compile(r"getvariable\(\s*'(\w+)'\s*\)", re.IGNORECASE)
_REFERENCE = re.compile(r"\bnsys\.(\w+)|\b(result_\w+)")

_TAGS = frozenset(
    {
        "grain",
        "reads",
        "param",
        "column",
        "invariant",
        "warning",
        "pitfall",
        "needs",
        "optional",
        "materialize",
        "view",
        "narrow",
        "unoptimized",
        "when",
        "windows",
        "key",
    }
)


# How a tag is written, for messages.
_SHAPES = {
    "param": "`@param name TYPE = default [least, most] description` (`(` leaves an end out, and "
    "the range may be left out)",
    "column": "`@column name TYPE unit description` (unit `-` for none)",
    "invariant": "`@invariant name expression`",
    "warning": "`@warning name expression`",
    "pitfall": "numbers of docs/pitfalls.md, as in `@pitfall 1, 7`",
    "optional": "`@optional TABLE` or `@optional TABLE.column TYPE`",
    "when": "`@when TABLE present` or `@when TABLE.column absent`",
}


@dataclass(frozen=True, slots=True)
class Range:
    """The values that a parameter may have: `[0, 100]`, `(0, 1)`, `[1,)`; an end may be missing."""

    text: str
    least: float | None
    most: float | None

    def holds(self, value: float) -> bool:
        """Whether a number is in the range; NaN is in none."""
        above = self.least is None or (
            value > self.least or (value == self.least and self.text.startswith("["))
        )
        below = self.most is None or (
            value < self.most or (value == self.most and self.text.endswith("]"))
        )
        return above and below and value == value

    @property
    def words(self) -> str:
        """The range as a sentence goes on after `it is`."""
        ends = []
        if self.least is not None:
            ends.append(f"{'at least' if self.text.startswith('[') else 'above'} {self.least:g}")
        if self.most is not None:
            ends.append(f"{'at most' if self.text.endswith(']') else 'below'} {self.most:g}")
        return " and ".join(ends)


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter: `SET VARIABLE name = ...` before the SQL, or its default (SQL text)."""

    name: str
    type: str
    default: str
    description: str
    range: Range | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """A declared output column; `unit` is `-` where there is none."""

    name: str
    type: str
    unit: str
    description: str


@dataclass(frozen=True, slots=True)
class Invariant:
    """A boolean SQL expression over the result's columns: violated where it IS NOT TRUE."""

    name: str
    expression: str


@dataclass(frozen=True, slots=True)
class Optional:
    """A source table (column None) or one of its columns that may be absent from a trace."""

    table: str
    column: str | None
    type: str | None


@dataclass(frozen=True, slots=True)
class When:
    """A condition on the trace that selects a variant of an adapter."""

    table: str
    column: str | None
    is_present: bool


@dataclass(frozen=True, slots=True)
class SqlFile:
    """One SQL file: its header as data, and its text.

    `text` is the file as it stands; `body` is the statement without header and final semicolon.
    `needs` holds alternatives: each entry is satisfied when any relation of it is present.
    `key` are the columns that, beside a device, name the same thing in another trace.
    `reads` is what the header says it reads in schema nsys (without `nsys.`), `calls` is what the
    text mentions there, macros and `result_*` tables included; `variables` is what it gets.
    """

    kind: str
    name: str
    path: Path
    text: str
    body: str
    question: str
    prose: str = ""
    grain: str = ""
    reads: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    params: tuple[Param, ...] = ()
    columns: tuple[Column, ...] = ()
    invariants: tuple[Invariant, ...] = ()
    warnings: tuple[Invariant, ...] = ()
    pitfalls: tuple[int, ...] = ()
    needs: tuple[tuple[str, ...], ...] = ()
    key: tuple[str, ...] = ()
    optional: tuple[Optional, ...] = ()
    when: tuple[When, ...] = ()
    is_materialized: bool = False
    windows_optional: bool = False
    is_view: bool = False
    is_narrow: bool = False
    is_unoptimized: bool = False
    is_user: bool = False

    def __hash__(self) -> int:
        """Of the text alone, whose hash Python keeps: files are keys of caches."""
        return hash(self.text)

    @property
    def label(self) -> str:
        """Path as messages and docs show it: `sql/recipes/budget.sql`, or the user's own."""
        return str(self.path) if self.is_user else f"sql/{self.path.parent.name}/{self.path.name}"

    def at(self, pattern: str) -> str:
        """`label:line` of the first line that matches a pattern; the label where none does."""
        for number, line in enumerate(self.text.splitlines(), 1):
            if re.search(pattern, line):
                return f"{self.label}:{number}"
        return self.label

    @property
    def inputs(self) -> tuple[str, ...]:
        """Everything the file reads or calls in schema nsys, declared or not."""
        return tuple(dict.fromkeys((*self.reads, *self.calls)))

    @property
    def source_table(self) -> str | None:
        """The table of the trace an adapter is about: its first `@optional TABLE`."""
        return next((each.table for each in self.optional if each.column is None), None)


@dataclass(frozen=True, slots=True)
class RecipeEntry:
    """What recipes.yaml says beyond the recipe's own header."""

    notes: tuple[str, ...] = ()
    invariants: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Catalog:
    """Every SQL file by name. `variants` holds the alternative adapters of a relation.

    `problems` says in a sentence each what is wrong with an installed extension, or a recipe of the
    user's, that was left out; `broken` has the errors of the latter by name.
    """

    adapters: Mapping[str, SqlFile]
    variants: Mapping[str, tuple[SqlFile, ...]]
    macros: Mapping[str, SqlFile]
    steps: Mapping[str, SqlFile]
    recipes: Mapping[str, SqlFile]
    notes: Mapping[str, SqlFile]
    invariants: Mapping[str, SqlFile]
    order: tuple[str, ...]
    entries: Mapping[str, RecipeEntry] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    broken: Mapping[str, NsysSqlError] = field(default_factory=dict)

    def entry(self, recipe: str) -> RecipeEntry:
        """What recipes.yaml says about a recipe; an empty entry where it says nothing."""
        return self.entries.get(recipe, RecipeEntry())

    def recipe(self, name: str) -> SqlFile:
        """The recipe of that name (`_` and `-` are the same), or a usage error."""
        plain = name.replace("_", "-")
        if plain in self.broken:
            raise self.broken[plain]
        found = self.recipes.get(plain)
        if found is None:
            raise UsageError(
                f"there is no recipe {name!r}",
                hint="; ".join(filter(None, (near(name, self.recipes), *self.problems)))
                or "`nsys-sql list` shows the recipes; your own need --recipes",
            )
        return found


def near(name: str, known: Iterable[str]) -> str | None:
    """`did you mean ...?` for the closest known name, or None."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean {close[0]!r}?" if close else None


def code(text: str) -> str:
    """SQL text without its line comments (none of our strings holds `--`)."""
    return _COMMENT.sub("", text)


def _header(path: Path, lines: Sequence[str]) -> tuple[list[str], list[tuple[str, str, int]], int]:
    """Split the leading comment block: prose lines, (tag, text, line) triples, number of lines."""
    prose: list[str] = []
    tags: list[tuple[str, str, int]] = []
    count = 0
    for line in lines:
        if not line.startswith("--"):
            break
        count += 1
        tag = _TAG.match(line)
        if tag:
            if tag["tag"] not in _TAGS:
                known = near(tag["tag"], _TAGS) or f"tags: {', '.join(sorted(_TAGS))}"
                raise UsageError(f"{path}:{count}: unknown tag @{tag['tag']}", hint=known)
            tags.append((tag["tag"], tag["text"], count))
        elif tags and line[2:].strip():  # a tag's text may go on over several lines
            name, text, number = tags[-1]
            tags[-1] = (name, f"{text} {line[2:].strip()}".strip(), number)
        elif not tags:
            prose.append(line[2:].removeprefix(" ").rstrip())
    return prose, tags, count


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip().removeprefix("nsys.") for part in text.split(",") if part.strip())


def parse(kind: str, path: Path, text: str | None = None, is_user: bool = False) -> SqlFile:
    """Read one SQL file. `path` names it; `text` stands in for its content where given."""
    if text is None:
        try:
            text = path.read_text(encoding="utf-8-sig")  # editors of Windows write a mark
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"cannot read {path}: {error}") from None
    lines = text.splitlines()
    prose, tags, count = _header(path, lines)
    title = _TITLE.match(lines[0]) if lines else None
    if title is None:
        raise UsageError(
            f"{path}:1: the header is missing",
            hint="the first line must read `-- name — the question it answers`",
        )

    def match(pattern: re.Pattern[str], tag: str, value: str) -> re.Match[str]:
        found = pattern.match(value)
        if found is None:
            line = next(number for name, text, number in tags if (name, text) == (tag, value))
            raise UsageError(
                f"{path}:{line}: cannot read `@{tag} {value}`", hint=f"write {_SHAPES[tag]}"
            )
        return found

    def each(tag: str) -> list[str]:
        return [value for name, value, _ in tags if name == tag]

    body = "\n".join(lines[count:]).strip().removesuffix(";").rstrip()
    bare = code(body)
    defines = tuple(dict.fromkeys(_MACRO.findall(bare)))
    referred = [first or second for first, second in _REFERENCE.findall(bare)]
    reads = [name for value in each("reads") for name in _names(value)]
    stem = path.name.split(".")[0]
    return SqlFile(
        kind=kind,
        name=stem.replace("_", "-") if kind == "recipe" else stem,
        path=path,
        text=text,
        body=body,
        question=title["question"],
        prose="\n".join(prose[1:]).strip(),
        grain=" ".join(each("grain")),
        reads=tuple(dict.fromkeys(reads)),
        calls=tuple(dict.fromkeys(name for name in referred if name not in defines)),
        defines=defines,
        variables=tuple(dict.fromkeys(_VARIABLE.findall(bare))),
        params=tuple(
            Param(m["name"], m["type"].upper(), m["default"], m["description"], _range(m["range"]))
            for m in (match(_PARAM, "param", value) for value in each("param"))
        ),
        columns=tuple(
            Column(m["name"], m["type"].upper(), m["unit"], m["description"])
            for m in (match(_COLUMN, "column", value) for value in each("column"))
        ),
        invariants=tuple(
            Invariant(m["name"], m["expression"])
            for m in (match(_NAMED, "invariant", value) for value in each("invariant"))
        ),
        warnings=tuple(
            Invariant(m["name"], m["expression"])
            for m in (match(_NAMED, "warning", value) for value in each("warning"))
        ),
        pitfalls=tuple(
            int(match(_NUMBERS, "pitfall", value) and number)
            for value in each("pitfall")
            for number in _names(value)
        ),
        needs=tuple(
            tuple(part.strip().removeprefix("nsys.") for part in item.split("|"))
            for value in each("needs")
            for item in _names(value)
        ),
        key=tuple(dict.fromkeys(name for value in each("key") for name in _names(value))),
        optional=tuple(
            Optional(m["table"], m["column"], m["type"] and m["type"].upper())
            for m in (match(_OPTIONAL, "optional", value) for value in each("optional"))
        ),
        when=tuple(
            When(m["table"], m["column"], m["state"] == "present")
            for m in (match(_WHEN, "when", value) for value in each("when"))
        ),
        is_materialized=bool(each("materialize")),
        windows_optional="optional" in each("windows"),
        is_view=bool(each("view")),
        is_narrow=bool(each("narrow")),
        is_unoptimized=bool(each("unoptimized")),
        is_user=is_user,
    )


def _range(text: str | None) -> Range | None:
    """`[0, 100]` as data; None where a parameter declares no range."""
    if text is None:
        return None
    try:
        least, most = (
            float(end) if end.strip() else None for end in text[1:-1].split(",", maxsplit=1)
        )
    except ValueError:
        raise UsageError(f"{text} is no range", hint="write [least, most]") from None
    return Range(", ".join(part.strip() for part in text.split(",")), least, most)


def _read_yaml(path: Path) -> Mapping[str, Any]:
    if not path.is_file():
        return {}
    try:
        data = yaml.load(path.read_text(encoding="utf-8"), Loader=YAML_LOADER)
    except yaml.YAMLError as error:
        raise NsysSqlError(f"{path} is not valid YAML: {error}") from error
    if not isinstance(data, dict):
        raise NsysSqlError(f"{path}: a mapping with `order` and `recipes` is expected")
    return data


def load_catalog(extra: Sequence[str | Path] = ()) -> Catalog:
    """Read the packaged SQL files, then recipes of the user's own: files, or folders of them.

    The packaged ones are read once per process, the others each time.
    """
    base = _packaged()
    if not extra:
        return base
    from nsys_sql import userfiles

    return userfiles.extend(base, extra)


@lru_cache(maxsize=1)
def _packaged() -> Catalog:
    base = resources.root()
    found: dict[str, dict[str, SqlFile]] = {kind: {} for kind in KINDS}
    variants: dict[str, list[SqlFile]] = {}
    for kind in KINDS:
        for path in sorted((base / "sql" / _FOLDERS[kind]).glob("*.sql")):
            parsed = parse(kind, path)
            if path.stem == path.name.split(".")[0]:
                found[kind][parsed.name] = parsed
            else:
                variants.setdefault(parsed.name, []).append(parsed)

    config = _read_yaml(base / "recipes.yaml")
    entries = {
        str(name).replace("_", "-"): RecipeEntry(
            notes=tuple((entry or {}).get("notes") or ()),
            invariants=tuple((entry or {}).get("invariants") or ()),
        )
        for name, entry in (config.get("recipes") or {}).items()
    }
    order = tuple(config.get("order") or ())
    # Steps that recipes.yaml does not list come last, each after what it reads.
    unlisted = {name: found["step"][name] for name in found["step"] if name not in order}
    while unlisted:
        ready = [
            name for name, file in unlisted.items() if not unlisted.keys() & {*file.inputs} - {name}
        ]
        for name in ready or list(unlisted):
            order += (name,)
            del unlisted[name]
    return Catalog(
        adapters=found["adapter"],
        variants={name: tuple(files) for name, files in variants.items()},
        macros=found["macro"],
        steps=found["step"],
        recipes=found["recipe"],
        notes=found["note"],
        invariants=found["invariant"],
        order=order,
        entries=entries,
    )
