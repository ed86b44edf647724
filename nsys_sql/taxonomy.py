"""Rules that give each kernel name a class, a role and a collective, as SQL macros.

The rules are data, `sql/taxonomy.yaml`; the texts they are matched against are made in SQL,
`sql/macros/kernel_text.sql`. All that is done here is to read and check the one, and to write it
down as CASE expressions over the other. Patterns stay constants, DuckDB compiles those once.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from nsys_sql import resources
from nsys_sql.catalog import YAML_LOADER
from nsys_sql.errors import UsageError

ROLES = ("compute", "comm", "wait")  # of kernels
# Classes of operations that are no kernels: a rule reads names of kernels, and gives none of them.
NO_KERNELS = ("graph", "memcpy", "memset")
COLLECTIVES = (
    "AllReduce",
    "AllGather",
    "ReduceScatter",
    "AllToAll",
    "Broadcast",
    "Reduce",
    "SendRecv",
    "dispatch",
    "combine",
    "other",
)
TESTS = ("exact", "function", "words", "pattern")

# What Python's engine accepts and RE2 does not.
_NOT_RE2 = re.compile(r"\(\?(?:[=!>]|<[=!]|P=)|(?<!\\)(?:\\\\)*\\[1-9]|[*+?}]\+")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: what it gives, its label, and the tests that must all hold."""

    gives: str
    label: str
    exact: tuple[str, ...] = ()
    function: str | None = None
    words: str | None = None
    pattern: str | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Taxonomy:
    """All rules in the order they are tried, and the role of each class."""

    classes: tuple[tuple[str, str], ...]
    rules: tuple[Rule, ...]
    collectives: tuple[Rule, ...]
    own: tuple[str, ...] = ()  # labels of the rules that are not of the package

    def role(self, name: str) -> str | None:
        """The role of a class, None where there is no such class."""
        return dict(self.classes).get(name)


def load_rules(paths: Iterable[str | Path] = ()) -> Taxonomy:
    """The packaged rules behind those of the given files, the last file's first of all."""
    packaged = _packaged(resources.root() / "sql" / "taxonomy.yaml")
    own = [_read(Path(path)) for path in paths]
    classes = _classes(packaged)
    for document in own:
        classes |= _classes(document)
    known = tuple(name for name in classes if name not in NO_KERNELS)
    rules: list[Rule] = []
    collectives: list[Rule] = []
    for document in reversed(own):
        rules += _rules(document, "rules", "class", known)
        collectives += _rules(document, "collectives", "collective", COLLECTIVES)
    labels = tuple(dict.fromkeys(rule.label for rule in rules))
    rules += _rules(packaged, "rules", "class", known)
    collectives += _rules(packaged, "collectives", "collective", COLLECTIVES)
    return Taxonomy(tuple(classes.items()), tuple(rules), tuple(collectives), labels)


def macro_sql(taxonomy: Taxonomy) -> list[str]:
    """The CREATE MACRO statements of the rules; those of sql/macros/kernel_text.sql come before.

    match_rule and match_collective take a name in all its spellings, as columns, and give the
    number of the first rule that matches: that is the fast way for many names. The kernel_*
    macros do the same from a name alone.
    """
    rules, collectives = taxonomy.rules, taxonomy.collectives
    roles = " ".join(f"WHEN {quote(name)} THEN {quote(role)}" for name, role in taxonomy.classes)
    spellings = "p_name, p_text, p_function, p_words"
    return [
        _macro(f"match_rule({spellings})", _first_match(rules)),
        _macro(f"match_collective({spellings})", _first_match(collectives)),
        _macro("rule_class(p_number)", _lookup(rule.gives for rule in rules)),
        _macro("rule_label(p_number)", _lookup(rule.label for rule in rules)),
        _macro(
            "rule_collective(p_number)",
            f"coalesce({_lookup(rule.gives for rule in collectives)}, 'other')",
        ),
        _macro("own_rules()", _list(taxonomy.own)),
        _macro("class_role(p_class)", f"CASE p_class {roles} END"),
        _macro("kernel_class(p_name)", f"nsys.rule_class({_matched('match_rule')})"),
        _macro("kernel_rule(p_name)", f"nsys.rule_label({_matched('match_rule')})"),
        _macro(
            "kernel_collective(p_name)",
            f"nsys.rule_collective({_matched('match_collective')})",
        ),
    ]


def quote(text: str) -> str:
    """A SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


def _macro(head: str, body: str) -> str:
    return f"CREATE OR REPLACE MACRO nsys.{head} AS\n    {body};"


def _lookup(values: Iterable[str]) -> str:
    return f"({_list(values)})[p_number]"


def _list(values: Iterable[str]) -> str:
    return f"[{', '.join(quote(value) for value in values)}]::VARCHAR[]"


def _matched(macro: str) -> str:
    """A call of a match macro for p_name alone.

    A macro repeats its argument wherever it is named; the lambda over a list of one is a let, so
    that the spellings are made once.
    """
    return (
        "list_transform(\n"
        "        [{\n"
        "            'name': p_name,\n"
        "            'text': nsys.kernel_text(p_name),\n"
        "            'function': nsys.kernel_function(p_name),\n"
        "            'words': nsys.kernel_words(nsys.kernel_function(p_name)),\n"
        "        }],\n"
        f"        LAMBDA k: nsys.{macro}(k.name, k.text, k.function, k.words)\n"
        "    )[1]"
    )


def _first_match(rules: Sequence[Rule]) -> str:
    """The number, from 1, of the first rule that matches; NULL where none does."""
    # No combined pattern stands before several rules to pass over them: DuckDB compiles a pattern
    # three times, which costs more than such a search saves with less than ten thousand names.
    cases = "\n".join(
        f"        WHEN {_condition(rule)} THEN {number}"
        for number, rule in enumerate(rules, start=1)
    )
    return f"CASE\n{cases}\n    END"


def _condition(rule: Rule) -> str:
    tests = [_equal(rule.exact)] if rule.exact else []
    tests += [
        _match(name, _searched(rule, name))
        for name in ("function", "words", "pattern")
        if getattr(rule, name) is not None
    ]
    return " AND ".join(tests)


def _searched(rule: Rule, test: str) -> str:
    """The pattern as it is searched: words are whole words."""
    pattern: str = getattr(rule, test)
    return rf"\b(?:{pattern})\b" if test == "words" else pattern


def _match(test: str, pattern: str) -> str:
    subject = {"function": "p_function", "words": "p_words", "pattern": "p_text"}[test]
    return f"regexp_matches({subject}, {quote(pattern)})"


def _equal(names: Iterable[str]) -> str:
    # not IN: DuckDB makes a join of every long IN list, which costs more than all the patterns
    listed = ", ".join(quote(name) for name in names)
    return f"(list_contains([{listed}], p_function) OR list_contains([{listed}], p_name))"


@dataclass(frozen=True, slots=True)
class _Document:
    """A file of rules; `lines` are those of its classes and of its rules, none of the package's."""

    file: Path
    data: Mapping[str, Any]
    lines: Mapping[tuple[str, object], int]
    is_own: bool

    def where(self, section: str, entry: object) -> str:
        """How a message names an entry: the file, and its line where that is known."""
        line = self.lines.get((section, entry))
        return f"taxonomy {self.file}:{line}" if line else f"taxonomy {self.file}"


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise UsageError(
            f"taxonomy {file} cannot be read: {said}", "Give --taxonomy the path of a YAML file."
        ) from error


def _packaged(file: Path) -> _Document:
    # to look at every node of it takes longer than all the rest; the tests do it
    return _Document(file, yaml.load(_text(file), Loader=YAML_LOADER), {}, is_own=False)


def _read(file: Path) -> _Document:
    """A file of the user's, in which nothing stands twice."""
    loader = None
    try:
        loader = YAML_LOADER(_text(file))
        root = loader.get_single_node()
        _refuse_twins(file, root)
        data = None if root is None else loader.construct_document(root)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        said = " ".join(str(error).split())
        raise UsageError(
            f"taxonomy {file} is not YAML: {said}",
            "Put patterns in single quotes: YAML reads backslashes in double quotes, and a colon.",
        ) from error
    finally:
        if loader is not None:
            loader.dispose()
    if root is None or not isinstance(data, dict):
        raise UsageError(
            f"taxonomy {file} has no rules",
            "It is a mapping with `rules:`, and may have `classes:` and `collectives:`.",
        )
    document = _Document(file, data, dict(_lines(root)), is_own=True)
    for key in data:
        where = document.where("", key)
        _known(key, ("classes", "rules", "collectives"), f"{where}: key")
    return document


def _refuse_twins(file: Path, root: yaml.Node | None) -> None:
    """Of two equal keys of a mapping YAML keeps the last, and drops the other without a word."""
    seen: set[int] = set()  # an alias is its anchor once more, and may lie within it
    nodes = [root]
    while nodes:
        node = nodes.pop()
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            nodes += node.value
        elif isinstance(node, yaml.MappingNode):
            first: dict[object, int] = {}
            for key, value in node.value:
                line, name = key.start_mark.line + 1, key.value
                if isinstance(name, str) and name in first:
                    raise UsageError(
                        f"taxonomy {file}:{line}: {name} stands here for the second time, "
                        f"as on line {first[name]}",
                        "Make one entry of both.",
                    )
                if isinstance(name, str):
                    first[name] = line
                nodes.append(value)


def _lines(root: yaml.Node) -> Iterator[tuple[tuple[str, object], int]]:
    """The line of each key (section ""), class, and rule, by its number in its section."""
    for section, value in root.value:
        yield ("", section.value), section.start_mark.line + 1
        if isinstance(value, yaml.MappingNode):
            for key, _ in value.value:
                yield (section.value, key.value), key.start_mark.line + 1
        elif isinstance(value, yaml.SequenceNode):
            for at, entry in enumerate(value.value, start=1):
                yield (section.value, at), entry.start_mark.line + 1


def _classes(document: _Document) -> dict[str, str]:
    classes = document.data.get("classes") or {}
    if not isinstance(classes, dict):
        raise UsageError(
            f"{document.where('', 'classes')}: classes is no mapping",
            "Write `class: role`, one a line.",
        )
    if not document.is_own:
        return dict(classes)
    for name, role in classes.items():
        where = document.where("classes", name)
        if not isinstance(name, str) or not name:
            raise UsageError(f"{where}: class {name!r} is no text", "Put it in quotes.")
        if name in NO_KERNELS:
            raise UsageError(
                f"{where}: {name} is no class of kernels", "Give a class of your own another name."
            )
        _known(role, ROLES, f"{where}: role of class {name}")
    return dict(classes)


def _rules(document: _Document, section: str, result: str, known: Sequence[str]) -> list[Rule]:
    entries = document.data.get(section) or []
    if not isinstance(entries, list):
        raise UsageError(
            f"{document.where('', section)}: {section} is no list",
            f"Start each with `- {result}: NAME`.",
        )
    stem = document.file.stem
    return [
        _rule(
            entry,
            f"{document.where(section, at)}: {section} {at}",
            f"{stem}:{at}",
            result,
            known,
            document.is_own,
        )
        for at, entry in enumerate(entries, start=1)
    ]


def _rule(
    entry: object, where: str, label: str, result: str, known: Sequence[str], check: bool
) -> Rule:
    if not isinstance(entry, dict):
        raise UsageError(f"{where} is no mapping", f"Write `- {result}: NAME` and a test below it.")
    for key in entry:
        _known(key, (result, *TESTS, "name", "why"), f"{where}: key")
    if result not in entry:
        raise UsageError(f"{where} has no {result}", f"Add `{result}:`, one of {', '.join(known)}.")
    if result == "class" and entry[result] in NO_KERNELS:
        raise UsageError(
            f"{where}: {entry[result]} is no class of kernels",
            f"Known are {', '.join(known)}, and those under `classes:` of the file.",
        )
    _known(entry[result], known, f"{where}: {result}")
    exact = entry.get("exact", [])
    exact = [exact] if isinstance(exact, str) else exact
    if not isinstance(exact, list) or not all(isinstance(name, str) and name for name in exact):
        raise UsageError(f"{where}: exact is no list of names", "Write `exact: [name, name]`.")
    tests: dict[str, str] = {}
    for test in ("function", "words", "pattern"):
        if test in entry:
            tests[test] = _pattern(entry[test], f"{where}: {test}", check)
    if not exact and not tests:
        raise UsageError(f"{where} has no test", f"Add one of {', '.join(TESTS)}.")
    name, why = entry.get("name", label), entry.get("why", "")
    if not isinstance(name, str) or not isinstance(why, str):
        raise UsageError(f"{where}: name and why are texts", "Put them in quotes.")
    return Rule(entry[result], name, tuple(exact), why=why, **tests)


def _pattern(value: object, where: str, check: bool) -> str:
    if not isinstance(value, str) or not value.strip():
        raise UsageError(
            f"{where} is no pattern: {value!r}", "Write a regular expression in single quotes."
        )
    pattern = "".join(line.strip() for line in value.splitlines())
    if not check:
        return pattern
    try:
        re.compile(pattern)
    except (re.error, OverflowError) as error:
        raise UsageError(
            f"{where} is not a regular expression: {error} in {pattern!r}",
            "Escape ( ) [ ] { } . * + ? with a backslash where they stand for themselves.",
        ) from error
    if _NOT_RE2.search(pattern):
        raise UsageError(
            f"{where} uses what RE2 does not have: {pattern!r}",
            "Look-around, back-references and possessive counts must go; put a rule in front.",
        )
    return pattern


def _known(value: object, known: Sequence[str], what: str) -> None:
    if value in known:
        return
    near = difflib.get_close_matches(str(value), known, n=1)
    raise UsageError(
        f"{what} {value!r} is not known",
        (f"Did you mean {near[0]}? " if near else "") + f"Known are {', '.join(known)}.",
    )
