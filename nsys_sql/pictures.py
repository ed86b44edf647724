"""What the pictures of a report show: labelled rows of coloured segments, however drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nsys_sql import humanize

Record = Mapping[str, Any]
# Okabe and Ito's colours, which stay apart for the colour-blind, with shades for classes of a kind.
COLOURS = {
    "compute": "#0072b2",
    "gemm": "#0072b2",
    "attention": "#56b4e9",
    "norm": "#3a8f9e",
    "elementwise": "#8fb8de",
    "optimizer": "#5b6fb5",
    "other": "#9aa7b1",
    "graph": "#2f6f8f",
    "fused_gemm_comm": "#6a7fd0",
    "nccl": "#e69f00",
    "transport": "#c97b00",
    "dispatch": "#f0c75e",
    "fused_comm": "#b8860b",
    "wait": "#8c6d46",
    "memcpy": "#009e73",
    "memset": "#7fc9b0",
    "launch-starved": "#d55e00",
    "blocking": "#cc79a7",
    "dependency-stalled": "#b5a642",
    "unattributed": "#7f7f7f",
    "base": "#9aa7b1",
    "new": "#5b6b7a",
    "more": "#d55e00",
    "less": "#009e73",
    "median": "#0072b2",
    "range": "#d55e00",
    "jitter wait": "#8c6d46",
    "transfer proxy": "#e69f00",
}
_PARTS = (
    ("compute", "compute_busy"),
    ("launch-starved", "launch_starved"),
    ("blocking", "blocking"),
    ("dependency-stalled", "dependency_stalled"),
    ("unattributed", "unattributed"),
)
_MOST_COLUMNS = 300
# A scale of tiles spans at least this part of its greatest figure.
_NARROWEST = 0.02
# Stops of cividis, which is made for the colour-blind: dark is little, light is much.
_SHADES = ((0, 34, 78), (66, 78, 107), (124, 123, 120), (187, 173, 108), (254, 232, 56))
_PIXELS = 1000


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a row: from `start` over `length` on the picture's axis.

    `density` is the part of what is drawn that is covered: a mark is never thinner than a pixel.
    """

    group: str
    start: float
    length: float
    text: str
    density: float = 1.0


@dataclass(frozen=True, slots=True)
class Picture:
    """Rows of segments. `upright` draws them as columns; `caption` says what is shown.

    The axis begins at `origin`: only differences that are drawn against it may leave out zero.
    """

    name: str
    title: str
    caption: str
    axis: str
    rows: Sequence[tuple[str, Sequence[Segment]]]
    upright: bool = False
    origin: float = 0.0

    @property
    def groups(self) -> list[str]:
        """The groups that occur, in the order of the palette."""
        found = {segment.group for _, segments in self.rows for segment in segments}
        return [g for g in COLOURS if g in found] + sorted(found - COLOURS.keys())


@dataclass(frozen=True, slots=True)
class Heat:
    """Tiles in rows and columns. A tile is a figure and what is said of it, or None: there is none.

    `unit` is how the ends of the scale read, of humanize.cell. `least` begins the scale at a
    figure of the reader's; else it begins at the least tile.
    """

    name: str
    title: str
    caption: str
    unit: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[tuple[float, str] | None]]]
    least: float | None = None

    @property
    def scale(self) -> tuple[float, float]:
        """The ends of the scale: never so near that noise looks like a difference."""
        values = [tile[0] for _, tiles in self.rows for tile in tiles if tile is not None]
        high = max(values, default=0.0)
        low = min(values, default=0.0) if self.least is None else self.least
        return min(low, high - _NARROWEST * abs(high)), high


def colour(group: str) -> str:
    """The colour of a class or cause."""
    return COLOURS.get(group, COLOURS["other"])


def shade(share: float) -> str:
    """The colour at 0..1 of a scale of tiles, which reads the same in shades of grey."""
    at = min(max(share, 0.0), 1.0) * (len(_SHADES) - 1)
    below = min(int(at), len(_SHADES) - 2)
    pairs = zip(_SHADES[below], _SHADES[below + 1], strict=True)
    return "#" + "".join(f"{round(a + (b - a) * (at - below)):02x}" for a, b in pairs)


def of(
    budget: Sequence[Record],
    windows: Sequence[Record],
    timeline: Sequence[Record],
    kernels: Sequence[Record],
) -> list[Picture]:
    """The pictures that the rows of these recipes allow."""
    made: list[Picture] = []
    devices = list(dict.fromkeys(row["device"] for row in budget))
    if devices:
        made.append(_budget(budget, devices))
    made += [
        _timeline([r for r in timeline if r["device"] == device])
        for device in devices
        if any(r["device"] == device for r in timeline)
    ]
    made += [
        _variation([r for r in windows if r["device"] == device])
        for device in devices
        if sum(r["device"] == device for r in windows) > 1
    ]
    if any(row["pct_of_iteration"] is not None for row in kernels):
        made.append(_kernels(kernels))
    return made


def _ms(value: float) -> str:
    return humanize.duration(value * 1e6)


def _stack(values: Mapping[str, float]) -> list[Segment]:
    """The parts of an iteration end to end."""
    segments, at = [], 0.0
    whole = values["iteration"]
    for group, metric in _PARTS:
        length = values[metric]
        if length > 0:
            share = humanize.percent(100 * length / whole)
            segments.append(Segment(group, at, length, f"{group}: {_ms(length)} ({share})"))
            at += length
    return segments


def _budget(budget: Sequence[Record], devices: Sequence[Any]) -> Picture:
    rows = []
    for device in devices:
        values = {r["metric"]: r["mean_ms"] for r in budget if r["device"] == device}
        rows.append((f"device {device}", _stack(values)))
    counts = dict.fromkeys(str(r["n"]) for r in budget)
    n = ", ".join(counts)
    return Picture(
        "budget",
        "Where an iteration goes",
        f"Mean over the steady iterations (n = {n}), so that the parts add up to the whole.",
        "ms",
        rows,
    )


def _timeline(marks: Sequence[Record]) -> Picture:
    first = marks[0]
    lanes: dict[str, list[Segment]] = {}
    for row in marks:
        if row["merged"] > 1:
            text = f"{row['merged']} operations, most of their time {row['class']}"
        else:
            text = humanize.shorten(humanize.clean(str(row["name"])), 60)
        text = f"{row['class']}: {text}, {_ms(row['duration_ms'])} at {_ms(row['start_ms'])}"
        drawn = max(row["duration_ms"], first["iteration_ms"] / _PIXELS)
        density = min(1.0, row["busy_ms"] / drawn)
        segment = Segment(row["class"], row["start_ms"], row["duration_ms"], text, density)
        lanes.setdefault(row["lane"], []).append(segment)
    merged = sum(row["merged"] for row in marks)
    caption = (
        f"Iteration {first['iteration']}, whose length ({_ms(first['iteration_ms'])}) is nearest "
        "the median; the lane cause tells why nothing was computed. Pale marks stand for less "
        "time than they cover."
    )
    if merged > len(marks):
        caption += (
            f" {merged} operations and pieces are drawn as {len(marks)} marks: short neighbours of "
            "a lane are merged, and a mark has the class that takes most of its time."
        )
    return Picture(
        f"timeline-{first['device']}",
        f"A typical iteration of device {first['device']}",
        caption,
        "ms",
        list(lanes.items()),
    )


def _variation(windows: Sequence[Record]) -> Picture:
    device = windows[0]["device"]
    shown = windows[:_MOST_COLUMNS]
    rows = []
    for row in shown:
        values = {metric: row[f"{metric}_ns"] / 1e6 for _, metric in _PARTS}
        values["iteration"] = row["iteration_ns"] / 1e6
        rows.append((str(row["iteration"]), _stack(values)))
    caption = "Each steady iteration by its number, split in the same way."
    if len(windows) > len(shown):
        caption += f" The first {len(shown)} of {len(windows)}."
    return Picture(
        f"variation-{device}",
        f"Iterations of device {device}",
        caption,
        "ms",
        rows,
        upright=True,
    )


def _kernels(kernels: Sequence[Record]) -> Picture:
    rows = []
    for row in kernels[:12]:
        share = row["pct_of_iteration"] or 0.0
        name = humanize.clean(str(row["kernel"]))
        text = f"{humanize.shorten(name, 120)}: {humanize.percent(share)}, {row['class']}"
        rows.append((humanize.shorten(name, 44), [Segment(row["class"], 0.0, share, text)]))
    return Picture(
        "kernels",
        "Kernels with the most work",
        "Work in percent of the iteration, medians: kernels of different streams overlap, so "
        "this is no wall time.",
        "%",
        rows,
    )
