"""A comparison or a history as Markdown or HTML: sections, tables and pictures of its rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nsys_sql import humanize, report_html, report_text
from nsys_sql.across import Named
from nsys_sql.compare import Comparison
from nsys_sql.compare_cli import heading, indented, sentences, signed
from nsys_sql.pictures import Picture, Segment
from nsys_sql.report import Part, Section, Table

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
        "carrier inside",
        0,
    ),
    "reconciliation": (
        3,
        "From the base to the new side",
        "pair item base_ns new_ns delta_ns pct_of_iteration low_ns high_ns p_value verdict",
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
        "pair metric base_ns new_ns delta_ns delta_pct low_ns high_ns p_value verdict base_min_ns "
        "base_max_ns new_min_ns new_max_ns base_n new_n",
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
)
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
    titles = _SECTIONS[:1] if is_refused else _SECTIONS
    sections = [Section(number, forced + title) for number, title in enumerate(titles, 1)]
    for name, each in results.items():
        place, title, columns, most = _TABLES[name]
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
        f"{counted['same']} aspects are the same on both sides, {counted['differs']} differ, "
        f"{counted['unknown']} are told by neither or one side only."
    )


def _fill(sections: Sequence[Section], results: Mapping[str, Named]) -> None:
    if "verdict" in results:
        sections[1].sentences = list(sentences(results["verdict"].dicts()))
    if "reconciliation" in results:
        rows = results["reconciliation"].dicts()
        means = results["budget"].dicts() if "budget" in results else []
        for pair in dict.fromkeys(row["pair"] for row in rows):
            own = [row for row in means if row["pair"] == pair]
            if own:
                sections[2].pictures.append(_bars(pair, own))
            sections[2].pictures.append(_waterfall(pair, [r for r in rows if r["pair"] == pair]))
    sections[3].sentences = [
        "Work is the sum of durations: volume, not wall time. The delta of a kernel is the change "
        "of its time per launch (speed) plus that of its number of launches (count)."
    ]
    sections[5].sentences = [_NOISE]


def _table(each: Named, title: str, wanted: Sequence[str], most: int) -> Table:
    rows = each.dicts()
    if each.name == "comparability":
        rows = [row for row in rows if row["status"] != "same"]
    if each.name == "reconciliation":
        rows = [{**row, "item": indented(row).replace("  ", "\u2003")} for row in rows]
    one_pair = len({row.get("pair") for row in rows}) <= 1
    columns = [
        column
        for name in wanted
        for column in each.columns
        if column.name == name
        and not (one_pair and name == "pair")
        and any(row[name] is not None for row in rows)
    ]
    shown = rows[:most] if most else rows
    return Table(
        each.name,
        title,
        columns,
        [tuple(row[column.name] for column in columns) for row in shown],
        len(rows) - len(shown),
        f"compare BASE TRACE --result {each.name}",
    )


# ---------------------------------------------------------------- pictures


def _bars(pair: int, rows: Sequence[Mapping[str, Any]]) -> Picture:
    """Both budgets as bars of the same scale; means, whose parts add up to the whole."""
    drawn = []
    for side in ("base", "new"):
        mean = {row["metric"]: row[f"{side}_mean_ns"] / 1e6 for row in rows}
        segments, at = [], 0.0
        for group, metric in _PARTS:
            if mean[metric] > 0:
                share = humanize.percent(100 * mean[metric] / mean["iteration"])
                text = f"{group}: {humanize.duration(mean[metric] * 1e6)} ({share})"
                segments.append(Segment(group, at, mean[metric], text))
                at += mean[metric]
        drawn.append((side, segments))
    n = f"{rows[0]['base_n']} and {rows[0]['new_n']}"
    return Picture(
        f"budgets-{pair}",
        f"Both budgets of pair {pair}",
        f"Mean over the steady iterations (n = {n}), so that the parts add up to the whole.",
        "ms",
        drawn,
    )


def _waterfall(pair: int, rows: Sequence[Mapping[str, Any]]) -> Picture:
    """From the base's median to the new side's, one step for each part and the remainder."""
    whole = next(row for row in rows if row["level"] == 0)
    base, new = whole["base_ns"] / 1e6, whole["new_ns"] / 1e6
    steps = [row for row in rows if row["level"] == 1]
    at, ends, drawn = base, [base, new], []
    for row in steps:
        delta = row["delta_ns"] / 1e6
        text = f"{row['item']}: {signed(row['delta_ns'])}"
        segment = Segment("more" if delta > 0 else "less", min(at, at + delta), abs(delta), text)
        drawn.append((f"{row['item']} {signed(row['delta_ns'])}", [segment] if delta else []))
        at += delta
        ends.append(at)
    low, high = min(ends), max(ends)
    origin = max(0.0, low - max(0.5 * (high - low), 0.001 * high))
    bars = [
        (name, [Segment(name, 0.0, value, f"{name}: {humanize.duration(value * 1e6)}")])
        for name, value in (("base", base), ("new", new))
    ]
    return Picture(
        f"waterfall-{pair}",
        f"From base to new, pair {pair}",
        f"Medians; the axis begins at {humanize.duration(origin * 1e6)}. The steps add up to the "
        "difference of both iterations, with what medians leave as the last one.",
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
        drawn = [
            (
                f"{row['run']} {row['labels']}".rstrip(),
                [
                    Segment(
                        "median",
                        0.0,
                        row["median_ns"] / 1e6,
                        f"run {row['run']} ({row['labels']}): "
                        f"{humanize.duration(row['median_ns'])}, "
                        f"{humanize.duration(row['min_ns'])} to "
                        f"{humanize.duration(row['max_ns'])}, n = {row['n']}",
                    )
                ],
            )
            for row in own
        ]
        section.pictures.append(
            Picture(
                f"history-{member}",
                f"{metric}, device or rank {member}",
                "Median over the steady iterations of each run, oldest first. Runs of another "
                "setup do not compare.",
                "ms",
                drawn,
            )
        )
    section.tables.append(_table(found, "Runs", [c.name for c in found.columns], 0))
    title = f"History of {metric}"
    return report_html.html([Part({"path": title}, {}, [section], {}, heading=title)])
