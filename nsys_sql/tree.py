"""The budget as a tree that adds up, one per device."""

from __future__ import annotations

from collections.abc import Sequence

import tabulate

from nsys_sql import humanize

tabulate.MIN_PADDING = 0  # else columns grow wider than what stands in them

_NEEDED = {"device", "metric", "median_ms", "min_ms", "max_ms", "mean_ms", "pct_of_iteration", "n"}

# Indentation says what is part of what; = and + say which parts make up the whole above them.
_LINES = (
    ("", "iteration"),
    ("  = ", "compute_busy"),
    ("  + ", "compute_absent"),
    ("      = ", "launch_starved"),
    ("      + ", "blocking"),
    ("          of which ", "comm_blocking"),
    ("      + ", "dependency_stalled"),
    ("      + ", "unattributed"),
    ("or", ""),
    ("  = ", "device_busy"),
    ("      of which ", "noncomm_busy"),
    ("      of which ", "occupied_not_computing"),
    ("  + ", "device_idle"),
    ("and", ""),
    ("", "comm_busy"),
    ("  = ", "comm_exposed"),
    ("  + ", "comm_overlapped"),
)
_FOOT = (
    "The parts of every single iteration add up exactly, and so do the means;\n"
    "medians of parts need not add up to the median of the whole."
)


def fits(names: Sequence[str]) -> bool:
    """Whether these columns are those of a budget."""
    return set(names) >= _NEEDED


def render(names: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """One block per device; metrics that the tree does not know come at its end."""
    records = [dict(zip(names, row, strict=True)) for row in rows]
    devices = list(dict.fromkeys(record["device"] for record in records))
    blocks = [
        _block(device, {str(r["metric"]): r for r in records if r["device"] == device})
        for device in devices
    ]
    return "\n\n".join([*blocks, _FOOT]) if blocks else "(no rows)"


def _block(device: object, metrics: dict[str, dict[str, object]]) -> str:
    known = {metric for _, metric in _LINES}
    order = [*_LINES, *(("", metric) for metric in metrics if metric not in known)]
    head = [f"device {humanize.cell(device, 'device', '-')}", "median", "share", "min .. max"]
    lines = [
        _line(prefix + metric, metrics[metric]) if metric else [prefix, *[""] * 5]
        for prefix, metric in order
        if not metric or metric in metrics
    ]
    return align([[*head, "mean", "n"]], lines, [False, *[True] * 5])


def align(head: list[list[str]], body: list[list[str]], right: list[bool]) -> str:
    """Header lines, a rule and body lines in columns; `right` says which end their texts share."""
    columns = zip(*head, strict=True)
    text = tabulate.tabulate(
        body,
        headers=["\n".join(column) for column in columns],
        tablefmt="simple",
        colalign=["right" if flush else "left" for flush in right],
        disable_numparse=True,
        preserve_whitespace=True,
    )
    return "\n".join(line.rstrip() for line in text.splitlines())


def _line(label: str, record: dict[str, object]) -> list[str]:
    low, high = (humanize.cell(record[name], name, "ms") for name in ("min_ms", "max_ms"))
    return [
        label,
        humanize.cell(record["median_ms"], "median_ms", "ms"),
        humanize.cell(record["pct_of_iteration"], "pct_of_iteration", "pct"),
        f"{low} .. {high}",
        humanize.cell(record["mean_ms"], "mean_ms", "ms"),
        humanize.cell(record["n"], "n", "-"),
    ]
