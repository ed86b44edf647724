"""Values as a person reads them: a fitting unit each, safe text, long names cut in the middle."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from decimal import Decimal

ABSENT = "-"

_DURATION_NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_DURATION_STEPS = ((1.0, "ns"), (1e3, "us"), (1e6, "ms"), (1e9, "s"))
_BYTES_STEPS = ((1.0, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB"), (1e12, "TB"))
_RATE = {"gbps": "GB/s", "gb/s": "GB/s"}
_PERCENT = {"pct", "%", "percent"}
_MOMENT = re.compile(r"(^|_)(start|end|issue|at|begin|time|first|last)_ns$")


def cell(value: object, name: str, unit: str) -> str:
    """One value of column `name` in its declared `unit`, for a table; NULL is `-`, never 0.

    A `+` before the unit marks a difference: an increase has its sign, as a decrease has.
    """
    if value is None:
        return ABSENT
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, (int, float)):
        text = _number(value, name, unit.lower().removeprefix("+"))
        return signed(text, value) if unit.startswith("+") else text
    if isinstance(value, bytes):
        return value.hex()
    return clean(str(value))


def signed(text: str, value: int | float) -> str:
    """What was made of a difference, with its sign: `+2.1 ms`, `<+0.01%`."""
    if not value > 0 or text in ("0", ABSENT):
        return text
    return f"<+{text[1:]}" if text.startswith("<") else f"+{text}"


def unit_of(name: str) -> str:
    """The unit that a column's name ends with, as all names here do; `-` where there is none."""
    unit = name.rpartition("_")[2].lower()
    return unit if unit in {*_DURATION_NS, "pct", "bytes", "gbps", "count"} - {"s"} else "-"


def distinct(short: Sequence[str], full: Sequence[str]) -> list[str]:
    """Headings: the short ones, but where another column has the same one and no shorter."""
    return [
        long if long != brief and short.count(brief) > 1 else brief
        for brief, long in zip(short, full, strict=True)
    ]


def _number(value: int | float, name: str, unit: str) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return ABSENT
    if unit == "ns" and _MOMENT.search(name):
        return moment(int(value))
    if unit in _DURATION_NS:
        return duration(value * _DURATION_NS[unit])
    if unit in _PERCENT:
        return percent(value)
    if unit in {"bytes", "byte", "b"}:
        return _scaled(value, _BYTES_STEPS)
    if unit in _RATE:
        return f"{significant(value)} {_RATE[unit]}"
    if unit == "count":
        return f"{value:,}" if isinstance(value, int) else significant(value)
    return str(value) if isinstance(value, int) else significant(value)


def duration(ns: int | float) -> str:
    """A length of time, `ns` in nanoseconds, to four significant digits: `29.39 s`."""
    return _scaled(ns, _DURATION_STEPS)


def moment(ns: int) -> str:
    """A point on the report's clock, as its timeline shows it: seconds down to the microsecond."""
    sign, micros = "-" if ns < 0 else "", (abs(ns) + 500) // 1000
    return f"{sign}{micros // 1_000_000}.{micros % 1_000_000:06d} s"


def percent(value: int | float) -> str:
    """`value` is 0..100; three significant digits, two decimals at most."""
    size = abs(value)
    if size == 0:
        return "0%"
    if size < 0.005:
        return "<0.01%" if value > 0 else ">-0.01%"
    decimals = 0 if size >= 99.95 else 1 if size >= 9.995 else 2
    return f"{value:.{decimals}f}%"


def significant(value: int | float, digits: int = 4) -> str:
    """`value` with at most `digits` significant digits and no exponent in ordinary ranges."""
    if value == 0:
        return "0"
    if isinstance(value, float) and value.is_integer() and abs(value) < 10**digits:
        return str(int(value))
    if not 1e-4 <= abs(value) < 1e15:
        return f"{value:.{digits - 1}e}"
    rounded = float(f"{value:.{digits - 1}e}")
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(rounded))))
    return f"{rounded:.{decimals}f}"


def _scaled(value: int | float, steps: tuple[tuple[float, str], ...]) -> str:
    if value == 0:
        return "0"
    # Rounded first: 999.96 of a unit reads as 1000, which is 1 of the next one.
    size = float(f"{abs(value):.3e}")
    factor, unit = next((s for s in reversed(steps) if size >= s[0]), steps[0])
    return f"{significant(value / factor)} {unit}" if factor != 1.0 else _whole(value, unit)


def _whole(value: int | float, unit: str) -> str:
    return f"{value} {unit}" if isinstance(value, int) else f"{significant(value)} {unit}"


def clean(text: str) -> str:
    """`text` on one line with every control or invisible formatting character spelled out."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_visible(character) for character in text)


def _visible(character: str) -> str:
    if character.isprintable():
        return character
    if unicodedata.category(character) == "Zs":
        return " "
    escaped = character.encode("unicode_escape", "backslashreplace")
    return escaped.decode("ascii")


def shorten(text: str, width: int) -> str:
    """`text` in at most `width` characters: the start and the end stay, the middle goes."""
    if len(text) <= width:
        return text
    if width < 8:
        return text[: max(width, 0)]
    head = (width - 3 + 1) // 2
    return f"{text[:head]}...{text[len(text) - (width - 3 - head) :]}"
