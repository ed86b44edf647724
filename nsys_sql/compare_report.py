"""A comparison or a history as Markdown or HTML: sections, tables and pictures of its rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nsys_sql import humanize, report_html, report_text
from nsys_sql.across import Named
from nsys_sql.compare import Comparison
from nsys_sql.compare_cli import (
    heading,
    indented,
    is_telling,
    marked,
    of_each_pair,
    sentences,
    signed,
)
from nsys_sql.pictures import Picture, Segment
from nsys_sql.report import OWN, Part, Section, Table

_PARTS = (
    ("compute", "compute_busy"),
    ("launch-starved", "launch_starved"),
    ("blocking", "blocking"),
    ("dependency-stalled", "dependency_stalled"),
    ("unattributed", "unattributed"),
)
# result -> section, title, columns, at most so many rows
_TABLES: dict[str, tuple[int, str, str, int]] = {
    "comparability": (1, "What differs", "topic aspect status base new pairs detail", 0),
    "members": (1, "What is compared with what", "pair side rank device gpu n trace", 0),
    "verdict": (
        2,
        "Verdict of each pair",
        "pair before after base_ns new_ns delta_ns delta_pct low_ns high_ns p_value verdict "
        "basis carrier inside base_mean_ns new_mean_ns base_outliers new_outliers",
        0,
    ),
    "reconciliation": (
        3,
        "From the base to the new side",
        "pair item base_ns new_ns delta_ns pct_of_iteration low_ns high_ns p_value verdict basis",
        0,
    ),
    "kernels": (
        4,
        "Compute kernels",
        "pair class kernel match base_count new_count base_avg_us new_avg_us avg_pct delta_ns "
        "speed_ns count_ns counterpart",
        30,
    ),
    "communication": (
        5,
        "Communication",
        "pair scope class collective base_count new_count base_work_ns new_work_ns delta_work_ns "
        "base_exposed_ns new_exposed_ns delta_exposed_ns base_blocking_ns new_blocking_ns "
        "delta_blocking_ns",
        0,
    ),
    "copies": (
        5,
        "Copies",
        "pair direction source destination base_count new_count base_bytes new_bytes base_work_ns "
        "new_work_ns delta_work_ns base_gbps new_gbps",
        0,
    ),
    "budget": (
        6,
        "Every metric",
        "pair metric base_ns new_ns delta_ns delta_pct low_ns high_ns p_value verdict basis "
        "base_min_ns base_max_ns new_min_ns new_max_ns base_n new_n",
        0,
    ),
    "gate": (
        6,
        "Thresholds",
        "threshold pair metric base_ns new_ns delta_ns delta_pct is_crossed verdict",
        0,
    ),
}
_SECTIONS = (
    "Comparability",
    "Verdict",
    "Where the difference lies",
    "Compute kernels",
    "Communication and copies",
    "Noise and thresholds",
    OWN,
)
_OWN_ROWS = 60
# Pairs that get pictures of their own; of more, one holds all budgets.
_OWN_PICTURES = 4
_MOST_PAIRS = 64
# How pale a step is drawn that does not stand out of the spread of the windows.
_PALE = 0.35
# An axis that would begin below this part of the base begins at 0.
_NEAR_ZERO = 0.25
_NOISE = (
    "p is of Mann and Whitney's U test over the windows of both sides, the bounds are Hodges and "
    "Lehmann's interval of the shift. The windows of one run say nothing about the next run: "
    "clocks, neighbours and inputs change too."
)


def render(
    compared: Comparison, results: Sequence[Named], form: str, parameters: Mapping[str, object]
) -> str:
    """The comparison as one document."""
    part = _part(compared, {each.name: each for each in results}, parameters)
    return report_html.html([part]) if form == "html" else report_text.markdown([part])


def _part(
    compared: Comparison, results: Mapping[str, Named], parameters: Mapping[str, object]
) -> Part:
    is_refused = bool(compared.refusals) and not compared.force
    forced = heading(compared)
    titles = _SECTIONS[:1] if is_refused else _SECTIONS[: None if compared.own else -1]
    sections = [Section(number, forced + title) for number, title in enumerate(titles, 1)]
    for name, each in results.items():
        own = (len(_SECTIONS), each.question, " ".join(c.name for c in each.columns), _OWN_ROWS)
        place, title, columns, most = _TABLES.get(name, own)
        if place <= len(sections):
            table = _table(each, title, columns.split(), most)
            if table.rows and not (name == "verdict" and len(table.rows) == 1):
                sections[place - 1].tables.append(table)
    sections[0].sentences = list(_comparability(compared, results))
    sections[0].notes = list(compared.notes)
    if not is_refused:
        _fill(sections, results)
        labels = (
            dict.fromkeys(str(row["label"]) for row in results["verdict"].dicts() if row["label"])
            if "verdict" in results
            else {}
        )
        for section in sections[1:]:
            section.notes = list(labels)
    names = [
        ", ".join(dict.fromkeys(part.trace.rpartition("/")[2] for part in given.parts))
        for given in compared.sides.values()
    ]
    title = f"{forced}{names[0]} before, {names[1]} after"
    return Part({"path": title}, parameters, sections, {}, heading=title)


def _comparability(compared: Comparison, results: Mapping[str, Named]) -> Iterator[str]:
    if compared.refusals:
        said = "Not comparable" if not compared.force else "Forced although not comparable"
        yield f"{said}: {'; '.join(compared.refusals)}."
    rows = results["comparability"].dicts() if "comparability" in results else []
    counted = {s: sum(r["status"] == s for r in rows) for s in ("same", "differs", "unknown")}
    yield (
        f"Of {len(rows)} aspects {_are(counted['same'])} the same on both sides, "
        f"{_are(counted['differs'])} not, and {_are(counted['unknown'])} told by one side only or "
        "by neither."
    )


def _are(count: int) -> str:
    return f"{count} is" if count == 1 else f"{count} are"


def _fill(sections: Sequence[Section], results: Mapping[str, Named]) -> None:
    if "verdict" in results:
        sections[1].sentences = list(sentences(results["verdict"].dicts()))
    if "reconciliation" in results:
        rows = results["reconciliation"].dicts()
        means = results["budget"].dicts() if "budget" in results else []
        sections[2].pictures.extend(_pictures(means, rows))
        left = len({row["pair"] for row in rows}) - _OWN_PICTURES
        if left > 0:
            sections[2].sentences = [
                f"The way from base to new is drawn for the {_OWN_PICTURES} pairs whose iteration "
                f"changed most; the table has the other {left} too."
            ]
    sections[3].sentences = [
        "Work is the sum of durations: volume, not wall time. The delta of a kernel is the change "
        "of its time per launch (speed) plus that of its number of launches (count)."
    ]
    sections[5].sentences = [_NOISE]


def _table(each: Named, title: str, wanted: Sequence[str], most: int) -> Table:
    rows = each.readable().dicts()
    if each.name == "comparability":
        rows = [row for row in rows if row["status"] != "same"]
    if each.name == "reconciliation":
        # leading blanks of a cell are nothing in HTML and Markdown
        rows = [{**row, "item": indented(row).replace("  ", "\u00b7 ")} for row in rows]
    one_pair = len({row.get("pair") for row in rows}) <= 1
    columns = [
        column
        for name in wanted
        for column in each.columns
        if column.name == name
        and not (one_pair and name == "pair")
        and not (name == "pairs" and all(row[name] == "all" for row in rows))
        and any(row[name] is not None for row in rows)
        and not (name == "basis" and not any(is_telling(row[name]) for row in rows))
    ]
    shown = of_each_pair(rows, most) if most else rows
    return Table(
        each.name,
        title,
        marked(columns),
        [tuple(row[column.name] for column in columns) for row in shown],
        len(rows) - len(shown),
        f"compare BASE TRACE --result {each.name}",
    )


# ---------------------------------------------------------------- pictures


def _pictures(
    means: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]]
) -> Iterator[Picture]:
    """Of each pair both budgets and the way from one to the other; of many, all budgets in one."""
    wholes = {row["pair"]: row for row in rows if row["level"] == 0}
    budgets = {
        pair: own for pair in wholes if (own := [row for row in means if row["pair"] == pair])
    }
    drawn = list(wholes)
    if len(drawn) > _OWN_PICTURES:
        largest = sorted(drawn, key=lambda pair: -abs(wholes[pair]["delta_ns"]))
        drawn = sorted(largest[:_OWN_PICTURES])
        if budgets:
            yield _all_bars(budgets)
        budgets = {}
    for pair in drawn:
        of = f", pair {pair}" if len(wholes) > 1 else ""
        if pair in budgets:
            yield _bars(pair, of, budgets[pair])
        yield _waterfall(pair, of, [row for row in rows if row["pair"] == pair])


def _stack(side: str, rows: Sequence[Mapping[str, Any]]) -> list[Segment]:
    """One budget end to end, in ms: means, whose parts add up to the whole."""
    mean = {row["metric"]: row[f"{side}_mean_ns"] / 1e6 for row in rows}
    segments, at = [], 0.0
    for group, metric in _PARTS:
        if mean[metric] > 0:
            share = humanize.percent(100 * mean[metric] / mean["iteration"])
            text = f"{group}: {humanize.duration(mean[metric] * 1e6)} ({share})"
            segments.append(Segment(group, at, mean[metric], text))
            at += mean[metric]
    return segments


def _range(side: str, row: Mapping[str, Any]) -> str:
    return (
        f"{humanize.duration(row[f'{side}_min_ns'])} to {humanize.duration(row[f'{side}_max_ns'])}"
        f" (n = {row[f'{side}_n']})"
    )


def _bars(pair: int, of: str, rows: Sequence[Mapping[str, Any]]) -> Picture:
    """Both budgets of a pair as bars of the same scale."""
    whole = next(row for row in rows if row["metric"] == "iteration")
    return Picture(
        f"budgets-{pair}",
        f"Both budgets{of}",
        "Mean over the steady iterations, so that the parts add up to the whole. Iterations of "
        f"the base took {_range('base', whole)}, of the new side {_range('new', whole)}.",
        "ms",
        [(side, _stack(side, rows)) for side in ("base", "new")],
    )


def _all_bars(budgets: Mapping[int, Sequence[Mapping[str, Any]]]) -> Picture:
    """Both budgets of every pair in one picture."""
    shown = list(budgets.items())[:_MOST_PAIRS]
    caption = "Mean over the steady iterations, so that the parts add up to the whole."
    if len(shown) < len(budgets):
        caption += f" The first {len(shown)} of {len(budgets)} pairs."
    return Picture(
        "budgets",
        "Both budgets of every pair",
        caption,
        "ms",
        [
            (f"{pair} {side}", _stack(side, rows))
            for pair, rows in shown
            for side in ("base", "new")
        ],
    )


def _waterfall(pair: int, of: str, rows: Sequence[Mapping[str, Any]]) -> Picture:
    """From the base's median to the new side's, one step for each part and the remainder."""
    whole = next(row for row in rows if row["level"] == 0)
    base, new = whole["base_ns"] / 1e6, whole["new_ns"] / 1e6
    at, ends, drawn = base, [base, new], []
    for row in (row for row in rows if row["level"] == 1):
        delta, verdict = row["delta_ns"] / 1e6, row["verdict"]
        text = f"{row['item']}: {signed(row['delta_ns'])}" + (f", {verdict}" if verdict else "")
        density = 1.0 if verdict in ("more", "less", "small") else _PALE
        group = "more" if delta > 0 else "less"
        segment = Segment(group, min(at, at + delta), abs(delta), text, density)
        drawn.append((f"{row['item']} {signed(row['delta_ns'])}", [segment] if delta else []))
        at += delta
        ends.append(at)
    low, high = min(ends), max(ends)
    origin = low - max(0.5 * (high - low), 0.001 * high)
    origin = origin if origin > _NEAR_ZERO * base else 0.0
    bars = [
        (name, [Segment(name, 0.0, value, f"{name}: {humanize.duration(value * 1e6)}")])
        for name, value in (("base", base), ("new", new))
    ]
    begins = f"the axis begins at {humanize.duration(origin * 1e6)}, not at 0" if origin else ""
    n = f"n = {whole['base_n']} and {whole['new_n']}"
    return Picture(
        f"waterfall-{pair}",
        f"From base to new{of}",
        f"Medians ({'; '.join(filter(None, (n, begins)))}). The steps add up to the difference of "
        "both iterations, with what medians leave as the last one. Pale steps do not stand out of "
        "the spread of the windows, or are such a remainder.",
        "ms",
        [bars[0], *drawn, bars[1]],
        origin=origin,
    )


def history(found: Named, metric: str) -> str:
    """A metric over the runs of a store as a page: one picture for each device or rank."""
    rows = found.dicts()
    section = Section(1, f"{metric} over the runs")
    for member in dict.fromkeys(row["member"] for row in rows):
        own = [row for row in rows if row["member"] == member]
        section.pictures.append(
            Picture(
                f"history-{member}",
                f"{metric}, device or rank {member}",
                "Median over the steady iterations of each run and their range, oldest run first. "
                "Runs of another setup do not compare.",
                "ms",
                [(f"{row['run']} {row['labels']}".rstrip(), _run(row)) for row in own],
            )
        )
    section.tables.append(_table(found, "Runs", [c.name for c in found.columns], 0))
    title = f"History of {metric}"
    return report_html.html([Part({"path": title}, {}, [section], {}, heading=title)])


def _run(row: Mapping[str, Any]) -> list[Segment]:
    """A bar as long as the median, and the range of the windows across its end."""
    low, middle, high = (row[f"{name}_ns"] for name in ("min", "median", "max"))
    text = (
        f"run {row['run']} ({row['labels']}): {humanize.duration(middle)}, "
        f"{humanize.duration(low)} to {humanize.duration(high)}, n = {row['n']}"
    )
    return [
        Segment("median", 0.0, middle / 1e6, text),
        Segment("range", low / 1e6, (high - low) / 1e6, text, _PALE),
    ]
