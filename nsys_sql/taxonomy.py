"""Rules that give each kernel name a class, a role and a collective, as SQL macros.

The rules are data, `sql/taxonomy.yaml`; the texts they are matched against are made in SQL,
`sql/macros/kernel_text.sql`. All that is done here is to read and check the one, and to write it
down as CASE expressions over the other. Patterns stay constants, DuckDB compiles those once.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from nsys_sql import resources
from nsys_sql.catalog import YAML_LOADER
from nsys_sql.errors import UsageError

ROLES = ("compute", "comm", "wait", "memcpy", "memset")
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

    def role(self, name: str) -> str | None:
        """The role of a class, None where there is no such class."""
        return dict(self.classes).get(name)


def load_rules(paths: Iterable[str | Path] = ()) -> Taxonomy:
    """The packaged rules behind those of the given files, the last file's first of all."""
    files = [resources.root() / "sql" / "taxonomy.yaml", *(Path(path) for path in paths)]
    classes: dict[str, str] = {}
    documents = []
    for file in files:
        document = _read(file)
        classes |= _classes(document, file)
        documents.append((file, document))
    rules: list[Rule] = []
    collectives: list[Rule] = []
    for file, document in reversed(documents):
        # compiling every packaged pattern takes longer than all the rest; the tests do it
        check = file is not files[0]
        rules += _rules(document, file, "rules", "class", tuple(classes), check)
        collectives += _rules(document, file, "collectives", "collective", COLLECTIVES, check)
    return Taxonomy(tuple(classes.items()), tuple(rules), tuple(collectives))


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
    return f"([{', '.join(quote(value) for value in values)}]::VARCHAR[])[p_number]"


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


def _read(file: Path) -> Mapping[str, Any]:
    try:
        document = yaml.load(file.read_text(encoding="utf-8"), Loader=YAML_LOADER)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"taxonomy {file} cannot be read: {error}",
            "Give --taxonomy the path of a YAML file.",
        ) from error
    except yaml.YAMLError as error:
        said = " ".join(str(error).split())
        raise UsageError(
            f"taxonomy {file} is not YAML: {said}",
            "Put patterns in single quotes: YAML reads backslashes in double quotes, and a colon.",
        ) from error
    if not isinstance(document, dict):
        raise UsageError(
            f"taxonomy {file} has no rules",
            "It is a mapping with `rules:`, and may have `classes:` and `collectives:`.",
        )
    for key in document:
        _known(key, ("classes", "rules", "collectives"), f"taxonomy {file}: key")
    return document


def _classes(document: Mapping[str, Any], file: Path) -> dict[str, str]:
    classes = document.get("classes") or {}
    if not isinstance(classes, dict):
        raise UsageError(
            f"taxonomy {file}: classes is no mapping", "Write `class: role`, one a line."
        )
    for name, role in classes.items():
        if not isinstance(name, str) or not name:
            raise UsageError(f"taxonomy {file}: class {name!r} is no text", "Put it in quotes.")
        _known(role, ROLES, f"taxonomy {file}: role of class {name}")
    return dict(classes)


def _rules(
    document: Mapping[str, Any],
    file: Path,
    section: str,
    result: str,
    known: Sequence[str],
    check: bool,
) -> list[Rule]:
    entries = document.get(section) or []
    if not isinstance(entries, list):
        raise UsageError(
            f"taxonomy {file}: {section} is no list", f"Start each with `- {result}: NAME`."
        )
    return [
        _rule(entry, f"taxonomy {file}: {section} {at}", f"{file.stem}:{at}", result, known, check)
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
