"""The options of every command that computes: parsed and checked, no DuckDB."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from nsys_sql.adapt import literal
from nsys_sql.catalog import Param
from nsys_sql.errors import UsageError

ANCHOR_KINDS = ("nvtx", "nccl", "kernel")
RANGES = {
    "per_iteration": (1, 2**31 - 1),
    "skip_first": (0, 2**31 - 1),
    "skip_last": (0, 2**31 - 1),
    "device": (-(2**31), 2**32 - 1),  # whatever the trace may say
    "threads": (1, 1024),
}
_NEEDED = ("anchor", "per_iteration", "skip_first", "skip_last")
_TYPES = {"anchor": str, "iterations": str, "memory_limit": str} | dict.fromkeys(RANGES, int)
_WORDS = {str: "a text", int: "a whole number"}
# Variables that SQL files read like parameters, and the options that set and check them.
_SET_BY = {
    "anchor_kind": "--anchor",
    "anchor_pattern": "--anchor",
    "anchor_message": "--anchor",
    "per_iteration": "--per-iteration",
    "skip_first": "--skip-first",
    "skip_last": "--skip-last",
    "iteration_from": "--iterations",
    "iteration_to": "--iterations",
    "window_mode": "--window",
}
# What DuckDB takes for the size of memory: a number and its unit. It also takes a number below 0,
# for no limit at all, which nobody means who gives one.
_SIZE = re.compile(
    r"\s*(?:\d+\.?\d*|\.\d+)(?:e\d+)?\s*"
    r"(?:bytes?|[kmgt]?b|[kmgt]ib|[kmgt]|(?:kilo|mega|giga|tera)bytes?)\s*",
    re.IGNORECASE | re.ASCII,
)
_NUMBERS = {
    "BIGINT": r"[+-]?\d{1,18}",
    "INTEGER": r"[+-]?\d{1,9}",
    "DOUBLE": r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?",
    "BOOLEAN": r"(?i:true|false)",
}


@dataclass(frozen=True, slots=True)
class Options:
    """The options as the caller gave them; `check` says whether they make sense."""

    anchor: str = "auto"
    per_iteration: int = 1
    skip_first: int = 0
    skip_last: int = 0
    iterations: str | None = None
    device: int | None = None
    window: str = "range"
    taxonomy: tuple[str, ...] = ()
    params: Mapping[str, object] = field(default_factory=dict)
    reference_steps: str | None = None
    callsites: str | None = None
    metrics_from: str | None = None
    threads: int | None = None
    memory_limit: str | None = None
    temp_directory: str | None = None
    keep_steps: bool = True
    recipes: tuple[str, ...] = ()
    cache: bool = False

    @property
    def is_auto(self) -> bool:
        """Whether the anchor is to be found rather than given."""
        return self.anchor == "auto"

    def check(self) -> Options:
        """Return the options themselves, or raise a usage error for what is out of range."""
        for name, kind in _TYPES.items():
            value = getattr(self, name)
            is_unset = value is None and name not in _NEEDED
            if not is_unset and (not isinstance(value, kind) or isinstance(value, bool)):
                raise UsageError(f"{name.replace('_', '-')} is {value!r}, not {_WORDS[kind]}")
        parse_anchor(self.anchor)
        parse_iterations(self.iterations)
        for name, (least, most) in RANGES.items():
            value = getattr(self, name)
            if value is not None and not least <= value <= most:
                raise UsageError(
                    f"{name.replace('_', '-')} is {value}", hint=f"it is from {least} to {most}"
                )
        limit = self.memory_limit
        if limit is not None and not (_SIZE.fullmatch(limit) and re.search("[1-9]", limit)):
            raise UsageError(
                f"memory-limit {limit!r} is refused: it is no size above 0",
                hint="give one like 4GB",
            )
        if limit is not None and _size(limit) >= 2**63:
            raise UsageError(
                f"memory-limit {limit!r} is refused: no machine has as much",
                hint="give one like 4GB",
            )
        if self.window not in ("range", "device"):
            raise UsageError(f"window {self.window!r} is unknown", hint="it is range or device")
        return self

    def windows(self) -> dict[str, object]:
        """The options that decide which windows are looked at, those that were not given aside."""
        names = (
            "anchor", "per_iteration", "skip_first", "skip_last", "iterations", "device", "window",
        )  # fmt: skip
        values = {name: getattr(self, name) for name in names}
        return {name: value for name, value in values.items() if value is not None}

    def without_effect(self) -> list[str]:
        """What was given although the kind of the anchor does not use it."""
        kind, _ = parse_anchor(self.anchor)
        found = []
        if self.per_iteration != 1 and kind not in ("nccl", "kernel"):
            found.append("--per-iteration counts the kernels of a kernel: or nccl: anchor")
        if self.window != "range" and kind in ("nccl", "kernel"):
            found.append(f"--window {self.window} moves the ranges of an nvtx: anchor")
        return [f"{text}; with the anchor {self.anchor} it has no effect" for text in found]

    def variables(self) -> dict[str, str]:
        """The option variables as SQL text; an option not given is a typed NULL."""
        kind, pattern = parse_anchor(self.anchor)
        first, last = parse_iterations(self.iterations)
        return {
            "anchor_kind": "NULL::VARCHAR" if kind is None else literal(kind),
            "anchor_pattern": "NULL::VARCHAR" if pattern is None else literal(pattern),
            "per_iteration": _bigint(self.per_iteration),
            "skip_first": _bigint(self.skip_first),
            "skip_last": _bigint(self.skip_last),
            "iteration_from": _bigint(first),
            "iteration_to": _bigint(last),
            "device": _bigint(self.device),
            "window_mode": literal(self.window),
        }


def _size(limit: str) -> float:
    """The bytes of what `_SIZE` matches, near enough to tell what is too large."""
    number, unit = re.findall(r"([0-9.]+(?:e[0-9]+)?)\s*([a-z]?)", limit.lower())[0]
    return float(number) * 1000.0 ** max("bkmgt".find(unit or "b"), 0)


def parse_anchor(anchor: str) -> tuple[str | None, str | None]:
    """`KIND:PATTERN` as a pair; (None, None) for auto."""
    if anchor == "auto":
        return None, None
    kind, colon, pattern = anchor.partition(":")
    if not colon or kind not in ANCHOR_KINDS or not pattern:
        raise UsageError(
            f"anchor {anchor!r} is not KIND:PATTERN",
            hint="KIND is nvtx, nccl or kernel, PATTERN matches the whole name with * for "
            "anything; or `auto`",
        )
    need_text("anchor", anchor)
    return kind, pattern


def need_text(what: str, text: str) -> None:
    """Raise a usage error for characters that no SQL may hold."""
    if "\0" in text or any("\ud800" <= each <= "\udfff" for each in text):
        raise UsageError(f"{what} is no text in UTF-8, or holds a NUL: {text[:80]!a}")


def parse_iterations(iterations: str | None) -> tuple[int | None, int | None]:
    """`A:B` as a pair of ordinals, half-open; either side may be left out."""
    if iterations is None:
        return None, None
    found = re.fullmatch(r"(\d{0,18}):(\d{0,18})", iterations, re.ASCII)
    if not found:
        raise UsageError(f"iterations {iterations!r} is not A:B", hint="for example 3:10")
    first, last = (int(part) if part else None for part in found.groups())
    if first is not None and last is not None and first >= last:
        raise UsageError(f"iterations {iterations!r} holds none", hint="A:B has A < B")
    return first, last


def param_value(param: Param, value: object) -> str:
    """A parameter's value as SQL text of its declared type, or a usage error.

    What an option sets is no parameter: it would neither be checked nor be told with the result.
    """
    if param.name in _SET_BY:
        option = _SET_BY[param.name]
        raise UsageError(
            f"{param.name} is no parameter, it comes from {option}", hint=f"give {option}"
        )
    if value is None:
        return f"NULL::{param.type}"
    text = str(value).strip()
    need_text(f"parameter {param.name}", text)
    pattern = _NUMBERS.get(param.type)
    if pattern and not re.fullmatch(pattern, text, re.ASCII):
        raise UsageError(
            f"parameter {param.name}={text!r} is not a {param.type}", hint=param.description or None
        )
    if param.range is not None and not param.range.holds(_number(param, text)):
        raise UsageError(
            f"parameter {param.name}={text} is out of range",
            hint=f"{param.name} is {param.range.words}: {param.description}",
        )
    if param.name == "device":  # the option's twin
        Options(device=int(text)).check()
    return f"CAST({literal(text)} AS {param.type})"


def _number(param: Param, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(
            f"parameter {param.name}={text!r} is not a {param.type}", hint=param.description or None
        ) from None


def _bigint(value: int | None) -> str:
    return "NULL::BIGINT" if value is None else f"{value}::BIGINT"
