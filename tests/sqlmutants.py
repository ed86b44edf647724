"""Mutants of SQL: every small change of a file that a wrong hand could have made.

Edits are made on tokens, so everything else of the file, comments included, stays as it is. What
does not parse or bind afterwards is no mutant; the runner finds that out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from sqlglot.dialects.duckdb import DuckDB
from sqlglot.tokens import Token

_COMPARE = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "=": "<>", "<>": "=", "!=": "="}
_LOGIC = {"AND": "OR", "OR": "AND"}
_SIGN = {"+": "-", "-": "+"}
_FUNCTION = {
    "least": "greatest",
    "greatest": "least",
    "min": "max",
    "max": "min",
    "arg_min": "arg_max",
    "arg_max": "arg_min",
    "lag": "lead",
    "lead": "lag",
    "bool_and": "bool_or",
    "bool_or": "bool_and",
}
_FUNCTION_KIND = {"lag": "lag/lead", "lead": "lag/lead"}
# Words that end a list of conditions, keys or branches at their own depth.
_CLAUSES = {
    *("SELECT", "FROM", "WHERE", "GROUP", "HAVING", "QUALIFY", "WINDOW", "ORDER", "LIMIT"),
    *("UNION", "EXCEPT", "INTERSECT", "JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "ASOF"),
    *("GROUP BY", "ORDER BY", "PARTITION BY", "UNION ALL", "ANTI", "SEMI"),
    *("ON", "USING", "WHEN", "THEN", "ELSE", "END", "ROWS", "RANGE"),
}
_NO_CALL = _CLAUSES | {"AND", "OR", "NOT", "AS", "IN"}
_OPERAND_ENDS = re.compile(r"[\w\"')\]]$")


@dataclass(frozen=True, slots=True, order=True)
class Mutant:
    """One change of one file: `start` and `end` are offsets into its text."""

    file: str
    kind: str
    line: int
    start: int
    end: int
    text: str

    def apply(self, source: str) -> str:
        """The file's text with the change."""
        return source[: self.start] + self.text + source[self.end :]

    def shown(self, source: str) -> tuple[str, str]:
        """The changed lines before and after, each squeezed into one."""
        first = source.rfind("\n", 0, self.start) + 1
        last = source.find("\n", self.end)
        last = len(source) if last < 0 else last
        new = source[first : self.start] + self.text + source[self.end : last]
        return " ".join(source[first:last].split()), " ".join(new.split())


@dataclass(frozen=True, slots=True)
class _Tokens:
    tokens: Sequence[Token]
    depths: Sequence[int]
    words: Sequence[str]

    def close(self, opening: int) -> int:
        """The token that closes the parenthesis at `opening`."""
        depth = self.depths[opening]
        at = opening + 1
        while at < len(self.tokens) and self.depths[at] > depth:
            at += 1
        return at

    def until(self, start: int, depth: int, stops: set[str]) -> int:
        """The first token from `start` that leaves the depth, or is one of `stops` at it."""
        cases = 0
        for at in range(start, len(self.tokens)):
            if self.depths[at] < depth:
                return at
            if self.depths[at] == depth:
                word = self.words[at]
                if word == "CASE":
                    cases += 1
                elif word == "END" and cases:
                    cases -= 1
                elif cases or (word == "FROM" and self.words[at - 1] == "DISTINCT"):
                    continue
                elif word in stops or word == ";":
                    return at
        return len(self.tokens)

    def split(self, start: int, end: int, by: str) -> list[tuple[int, int]]:
        """The parts of [start, end) between the `by` at its own depth; BETWEEN keeps its AND."""
        depth = self.depths[start]
        parts, begun, cases, between = [], start, 0, False
        for at in range(start, end):
            if self.depths[at] != depth:
                continue
            word = self.words[at]
            cases += (word == "CASE") - (word == "END" and cases > 0)
            if word == "BETWEEN":
                between = True
            elif word == by and not cases:
                if word == "AND" and between:
                    between = False
                    continue
                parts.append((begun, at))
                begun = at + 1
        parts.append((begun, end))
        return parts


@lru_cache(maxsize=64)
def _read(source: str) -> _Tokens:
    tokens = DuckDB().tokenize(source)
    depths, depth = [], 0
    for token in tokens:
        if token.text in (")", "]", "}"):
            depth -= 1
        depths.append(depth)
        if token.text in ("(", "[", "{"):
            depth += 1
    words = [
        source[token.start : token.end + 1].upper() if not _is_string(source, token) else "''"
        for token in tokens
    ]
    return _Tokens(tokens, depths, words)


def _is_string(source: str, token: Token) -> bool:
    return source[token.start] in "'\""


def mutants(file: str, source: str) -> list[Mutant]:
    """Every mutant of a file's text, in the order of their places."""
    read = _read(source)
    found: dict[str, Mutant] = {}
    for kind, start, end, text in _changes(source, read):
        line = source.count("\n", 0, start) + 1
        mutant = Mutant(file, kind, line, start, end, text)
        if (changed := mutant.apply(source)) != source:
            found.setdefault(changed, mutant)
    return sorted(found.values(), key=lambda each: (each.start, each.end, each.kind, each.text))


_Change = tuple[str, int, int, str]


def _changes(source: str, read: _Tokens) -> Iterator[_Change]:
    words, tokens = read.words, read.tokens
    between: list[int] = []

    def place(first: int, last: int | None = None) -> tuple[int, int]:
        return tokens[first].start, tokens[first if last is None else last].end + 1

    def text(first: int, end: int) -> str:
        return source[tokens[first].start : tokens[end - 1].end + 1]

    for at, word in enumerate(words):
        depth = read.depths[at]
        before = words[at - 1] if at else ""
        after = words[at + 1] if at + 1 < len(words) else ""
        if word in _COMPARE and not _is_shift(read, at):
            yield ("comparison", *place(at), _COMPARE[word])
        elif word == "BETWEEN":
            between.append(depth)
        elif word == "AND" and between and between[-1] == depth:
            between.pop()
        elif word in _LOGIC and before != "CREATE":
            yield ("and/or", *place(at), _LOGIC[word])
        elif word in _SIGN and at and _OPERAND_ENDS.search(source[: tokens[at - 1].end + 1]):
            if before not in _CLAUSES and before not in ("AND", "OR", "BETWEEN", "IN", "BY"):
                yield ("sign", *place(at), _SIGN[word])
        elif word == "IS":
            last = at + 2 if after == "NOT" else at + 1
            negated = after == "NOT"
            if last < len(words) and words[last] in ("NULL", "TRUE", "FALSE", "DISTINCT"):
                if negated:
                    yield ("is not", tokens[at + 1].start, tokens[last].start, "")
                else:
                    yield ("is not", tokens[last].start, tokens[last].start, "NOT ")
        elif word == "NOT" and before != "IS":
            yield ("not dropped", tokens[at].start, tokens[at + 1].start, "")
        elif word in ("TRUE", "FALSE") and before not in ("IS", "NOT"):
            yield ("constant", *place(at), "false" if word == "TRUE" else "true")
        elif word == "1" and before == "SELECT" and words[at - 3 : at - 1] == ["EXISTS", "("]:
            pass  # EXISTS looks at no column
        elif re.fullmatch(r"[0-9]+", word):
            # Sizes of types, DECIMAL(18, 3), are no constants of the logic.
            opening = at - 1 if before == "(" else at - 3
            if not (opening > 0 and words[opening] == "(" and words[opening - 1] == "DECIMAL"):
                yield ("constant", *place(at), str(int(word) + 1))
                if int(word) or before not in ("-", "+"):
                    yield ("constant", *place(at), f"({int(word) - 1})")
        elif re.fullmatch(r"[0-9]*\.[0-9]+|[0-9.]+E[+-]?[0-9]+", word):
            yield ("constant", *place(at), f"(2 * {source[slice(*place(at))]})")
        elif word == "FIRST" and before == "NULLS":
            yield ("nulls first/last", *place(at), "LAST")
        elif word == "LAST" and before == "NULLS":
            yield ("nulls first/last", *place(at), "FIRST")
        elif word == "NULLS FIRST" or word == "NULLS LAST":
            yield ("nulls first/last", *place(at), _other_end(word))
        elif word == "LEFT" and after == "JOIN":
            yield ("left join", *place(at), "INNER" if before != "ASOF" else "")
        elif word == "ALL" and before == "UNION":
            yield ("union all", *place(at), "")
        elif word == "UNION ALL":
            yield ("union all", *place(at), "UNION")
        elif word == "DISTINCT" and before in ("SELECT", "("):
            if after != "ON":
                yield ("distinct dropped", *place(at), "")
        elif word == "UNBOUNDED" and after in ("PRECEDING", "FOLLOWING"):
            yield ("frame", *place(at), "1")
        elif word == "CURRENT" and after == "ROW":
            yield ("frame", *place(at, at + 1), "1 PRECEDING")
        elif word == "CURRENT ROW":
            yield ("frame", *place(at), "1 PRECEDING")
        elif word.lower() in _FUNCTION and after == "(" and before != ".":
            kind = _FUNCTION_KIND.get(word.lower(), "min/max")
            yield (kind, *place(at), _FUNCTION[word.lower()])
        elif word == "COALESCE" and after == "(":
            end = read.close(at + 1)
            parts = read.split(at + 2, end, ",")
            if len(parts) > 1:
                for skipped in range(len(parts)):
                    kept = [text(*part) for n, part in enumerate(parts) if n != skipped]
                    yield ("coalesce", *place(at, end), f"coalesce({', '.join(kept)})")
        elif word in ("WHERE", "HAVING", "QUALIFY", "ON"):
            start = at + 1
            end = read.until(start, depth, _CLAUSES)
            # `DISTINCT ON (...)` is no condition.
            if start < end and before != "DISTINCT":
                yield from _conjuncts(source, read, start, end)
        elif word == "(" and not _is_list(read, at):
            end = read.close(at)
            if "AND" in (words[n] for n in range(at + 1, end) if read.depths[n] == depth + 1):
                yield from _conjuncts(source, read, at + 1, end)
        elif word in ("PARTITION BY", "GROUP BY", "ORDER BY") or (
            word == "BY" and before in ("PARTITION", "GROUP", "ORDER")
        ):
            name = word if " " in word else f"{before} BY"
            stops = _CLAUSES | {"PARTITION"}
            end = read.until(at + 1, depth, stops)
            while end - 1 > at and words[end - 1] == ",":
                end -= 1
            if end > at + 1:
                first = at if " " in word else at - 1
                yield from _keys(source, read, name, first, at + 1, end)
        elif word == "CASE":
            yield from _branches(source, read, at)


def _is_shift(read: _Tokens, at: int) -> bool:
    """Whether a sign is half of >> or <<, which the tokenizer takes apart."""
    tokens = read.tokens
    return any(
        0 <= n < len(tokens) - 1
        and read.words[n] == read.words[n + 1] == read.words[at]
        and tokens[n].end + 1 == tokens[n + 1].start
        for n in (at - 1, at)
    )


def _other_end(word: str) -> str:
    return "NULLS LAST" if word == "NULLS FIRST" else "NULLS FIRST"


def _is_list(read: _Tokens, opening: int) -> bool:
    """Whether a parenthesis holds arguments, or a query."""
    following = read.words[opening + 1] if opening + 1 < len(read.words) else ""
    before = read.words[opening - 1] if opening else ""
    is_call = bool(re.fullmatch(r"\w+", before)) and before not in _NO_CALL
    return following in ("SELECT", "FROM", "WITH", ")") or is_call


def _conjuncts(source: str, read: _Tokens, start: int, end: int) -> Iterator[_Change]:
    """A condition of a conjunction left out."""
    if any(
        read.words[n] == "OR" for n in range(start, end) if read.depths[n] == read.depths[start]
    ):
        return
    for first, last in read.split(start, end, "AND"):
        if last > first:
            tokens = read.tokens
            yield ("condition dropped", tokens[first].start, tokens[last - 1].end + 1, "true")


def _keys(
    source: str, read: _Tokens, name: str, first: int, start: int, end: int
) -> Iterator[_Change]:
    """A key of a grouping or partition left out; an order turned."""
    tokens, words = read.tokens, read.words
    parts = read.split(start, end, ",")
    if name == "ORDER BY":
        for begun, over in parts:
            inside = [words[n] for n in range(begun, over) if read.depths[n] == read.depths[begun]]
            for at in range(begun, over):
                if read.depths[at] == read.depths[begun] and words[at] in ("ASC", "DESC"):
                    other = "ASC" if words[at] == "DESC" else "DESC"
                    yield ("order", tokens[at].start, tokens[at].end + 1, other)
            if "ASC" not in inside and "DESC" not in inside:
                stop = over
                for n in range(begun, over):
                    if words[n] in ("NULLS", "NULLS FIRST", "NULLS LAST"):
                        stop = n
                        break
                yield ("order", tokens[stop - 1].end + 1, tokens[stop - 1].end + 1, " DESC")
        if len(parts) > 1:
            for number, (begun, over) in enumerate(parts):
                yield _without(tokens, parts, number, begun, over, "order key dropped")
        return
    kind = "partition key dropped" if name == "PARTITION BY" else "group key dropped"
    if len(parts) > 1:
        for number, (begun, over) in enumerate(parts):
            yield _without(tokens, parts, number, begun, over, kind)
    elif name == "PARTITION BY":
        yield (kind, tokens[first].start, tokens[end - 1].end + 1, "")


def _without(
    tokens: Sequence[Token],
    parts: Sequence[tuple[int, int]],
    number: int,
    begun: int,
    over: int,
    kind: str,
) -> _Change:
    if number + 1 < len(parts):
        return (kind, tokens[begun].start, tokens[parts[number + 1][0]].start, "")
    return (kind, tokens[parts[number - 1][1] - 1].end + 1, tokens[over - 1].end + 1, "")


def _branches(source: str, read: _Tokens, case: int) -> Iterator[_Change]:
    """A branch of a CASE left out, each in turn."""
    tokens, words = read.tokens, read.words
    depth, nested, marks = read.depths[case], 0, []
    end = case
    for at in range(case + 1, len(tokens)):
        if read.depths[at] != depth:
            continue
        if words[at] == "CASE":
            nested += 1
        elif words[at] == "END":
            if not nested:
                end = at
                break
            nested -= 1
        elif not nested and words[at] in ("WHEN", "ELSE"):
            marks.append(at)
    marks.append(end)
    whens = [at for at in marks if words[at] == "WHEN"]
    for number, at in enumerate(marks[:-1]):
        following = marks[number + 1]
        if words[at] == "WHEN" and len(whens) == 1:
            # The only branch: the CASE becomes its ELSE.
            rest = "NULL"
            if words[following] == "ELSE":
                rest = source[tokens[following + 1].start : tokens[end - 1].end + 1]
            yield ("branch dropped", tokens[case].start, tokens[end].end + 1, f"({rest})")
        else:
            yield ("branch dropped", tokens[at].start, tokens[following].start, "")
