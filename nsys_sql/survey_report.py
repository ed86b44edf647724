"""A survey as Markdown or HTML: sections, tables, heat maps of ranks and orders of arrival."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nsys_sql import humanize, report_html, report_text
from nsys_sql.across import Named
from nsys_sql.pictures import Heat, Picture, Segment
from nsys_sql.report import OWN, Part, Section, Table
from nsys_sql.survey import PICTURES

Record = Mapping[str, Any]
_SECTIONS = (
    "Survey",
    "Verdict",
    "Iterations of the ranks",
    "Alignment",
    "Collectives",
    "Stages",
    OWN,
)
_OWN_ROWS = 60
# result -> section, title, columns (none: all), at most so many rows
_TABLES: dict[str, tuple[int, str, str, int]] = {
    "survey": (
        1,
        "Ranks",
        "rank stage host group n iteration_ms iteration_min_ms iteration_max_ms noncomm_busy_ms "
        "nccl_busy_ms transport_busy_ms dispatch_busy_ms comm_busy_ms comm_blocking_ms "
        "launch_starved_ms idle_ms memcpy_work_ms collectives gpu trace",
        600,
    ),
    "groups": (
        1,
        "Ranks of the same work",
        "group stage metric rank_count median_ms fastest fastest_ms slowest slowest_ms spread_ms "
        "spread_pct slow slowest_in_pct n pattern",
        60,
    ),
    "representatives": (1, "Ranks to look at", "label reason group iteration_ms device trace", 40),
    "verdict": (2, "Findings", "finding rank value_ms share_pct statement", 80),
    "alignment": (
        4,
        "Clocks, starts and ends",
        "rank host method offset_ms residual_median_us residual_p95_us residual_max_us n "
        "is_aligned peer longer_ms earlier_start_ms later_end_ms judgement",
        600,
    ),
    "collectives": (5, "Matched collectives", "", 60),
    "jitter": (5, "Waiting of each rank", "", 60),
    "arrival": (5, "Arrival of each rank", "", 60),
    "unmatched": (5, "What matches nothing", "", 40),
    "communication": (5, "Communication of each rank", "", 60),
    "pipeline": (6, "Bubbles and hand-overs", "", 600),
    "stages": (6, "Budgets of the stages", "", 120),
}
# Findings that stand above the survey table, where there are any.
_FIRST = (
    *("scope", "provisional", "other steps"),
    *("straggler", "rotating", "start_skew", "late_finish"),
)
_MOST_FIRST = 8
_IF_USED = ("transport_busy_ms", "dispatch_busy_ms", "memcpy_work_ms")
_MOST_TILES = 24_000
_MOST_ROWS = 32
_FIRST_ROWS = 8


def render(
    results: Sequence[Named],
    form: str,
    facts: Sequence[Record],
    notes: Sequence[str],
    parameters: Mapping[str, object],
) -> str:
    """The survey as one document; `facts` are what is known of each trace."""
    part = _part({each.name: each for each in results}, facts, notes, parameters)
    return report_html.html([part]) if form == "html" else report_text.markdown([part])


def _part(
    results: Mapping[str, Named],
    facts: Sequence[Record],
    notes: Sequence[str],
    parameters: Mapping[str, object],
) -> Part:
    sections = [Section(number, title) for number, title in enumerate(_SECTIONS, 1)]
    for name, (place, *_) in _TABLES.items():
        if name in results and results[name].rows:
            sections[place - 1].tables.append(_table(results[name]))
    for name, each in results.items():
        if name not in _TABLES and name not in PICTURES:
            sections[-1].tables.append(_table(each))
    if "verdict" in results:
        sections[0].sentences += _headline(results["verdict"].dicts())
    sections[0].notes += [*notes, *_failures(facts)]
    if "heatmap" in results:
        tiles = results["heatmap"].dicts()
        sections[2].pictures += _heat_maps(tiles)
        sections[2].notes += _absent(tiles, parameters.get("heatmap"))
    if "arrival" in results:
        sections[4].pictures += _last(results["arrival"].dicts())
    if "arrivals" in results:
        sections[4].pictures += _arrivals(results["arrivals"].dicts())
    for each in results.values():
        sections[0].notes += [
            f"{each.name}, check {check.name}: {check.detail}"
            for check in each.checks
            if check.status != "ok"
        ]
    kept = [s for s in sections if s.number == 1 or s.tables or s.pictures or s.notes]
    for number, section in enumerate(kept, 1):
        section.number = number
    ranks = sum(len(fact.get("ranks", ())) for fact in facts)
    title = f"Survey of {ranks} {'rank' if ranks == 1 else 'ranks'}"
    return Part({"path": title}, parameters, kept, {}, heading=title)


def _headline(verdict: Sequence[Record]) -> Iterator[str]:
    told = [row for name in _FIRST for row in verdict if row["finding"] == name]
    yield from (str(row["statement"]) for row in told[:_MOST_FIRST])
    if len(told) > _MOST_FIRST:
        yield f"{len(told) - _MOST_FIRST} more of this kind stand in the verdict."


def _failures(facts: Sequence[Record]) -> Iterator[str]:
    for fact in facts:
        if "error" in fact:
            yield f"{fact['path']} could not be used: {fact['error']['message']}"


def _absent(tiles: Sequence[Record], wanted: object) -> Iterator[str]:
    """Metrics that were asked for and that the ranks do not have."""
    known = {row["metric"] for row in tiles}
    names = str(wanted or "").strip("'").split(",")
    yield from (
        f"no heat map of {name!r}: no rank has such a figure"
        for name in names
        if name and name != "all" and name not in known
    )


def _table(each: Named) -> Table:
    _, title, wanted, most = _TABLES.get(each.name, (0, each.question, "", _OWN_ROWS))
    rows = each.readable().dicts()
    names = wanted.split() or [column.name for column in each.columns]
    # a column without a value says nothing, nor does a kind of communication that nobody has
    told = {
        name
        for name in names
        if any(row[name] for row in rows)
        or (name not in _IF_USED and any(row[name] is not None for row in rows))
    }
    if "label" in told and "rank" in names:
        told.discard("rank")
    by_name = {column.name: column for column in each.columns}
    columns = [by_name[name] for name in names if name in told]
    shown = rows[:most]
    return Table(
        each.name,
        title,
        columns,
        [tuple(row[column.name] for column in columns) for row in shown],
        len(rows) - len(shown),
        f"survey --ranks FILE --result {each.name}",
    )


# ---------------------------------------------------------------- pictures


def _rank(row: Record) -> str:
    return humanize.clean(str(row["label"]))


def _heat_maps(tiles: Sequence[Record]) -> Iterator[Heat]:
    """Ranks by iterations: a map for each metric, which share their rows and columns."""
    metrics: dict[str, list[Record]] = {}
    for row in tiles:
        metrics.setdefault(row["metric"], []).append(row)
    members = list(dict.fromkeys((row["stage"], row["label"], _rank(row)) for row in tiles))
    members.sort(key=lambda m: (m[0] is None, m[0] or 0))
    iterations = sorted({row["iteration"] for row in tiles})
    most = max(1, _MOST_TILES // max(len(members), 1))
    step = -(-len(iterations) // most)
    blocks = [iterations[at : at + step] for at in range(0, len(iterations), step)]
    block_of = {i: at for at, block in enumerate(blocks) for i in block}
    columns = [_block(block) for block in blocks]
    staged = len({stage for stage, *_ in members}) > 1
    for metric, rows in metrics.items():
        found: dict[str, list[tuple[float, str] | None]] = {
            label: [None] * len(blocks) for _, label, _ in members
        }
        for row in rows:
            at = block_of[row["iteration"]]
            old = found[row["label"]][at]
            if old is None or old[0] < row["value_ms"]:
                text = f"{_rank(row)}, iteration {row['iteration']}: {_ms(row['value_ms'])}"
                found[row["label"]][at] = (row["value_ms"], text)
        caption = "Ranks by steady iterations; an empty tile is a window that the rank lacks."
        if step > 1:
            caption += f" A tile is the greatest figure of {step} iterations."
        if metric == "jitter_wait_work":
            caption += " Time in matched collectives beyond the shortest member: work volume."
        else:
            caption += " The scale begins at the least figure, not at 0."
        yield Heat(
            metric,
            _TITLES.get(metric, metric.replace("_", " ").capitalize()),
            caption,
            "ms",
            columns,
            [
                (f"stage {stage}, {name}" if staged and stage is not None else name, found[label])
                for stage, label, name in members
            ],
            least=0.0 if metric == "jitter_wait_work" else None,
        )


_TITLES = {"iteration": "Step time", "jitter_wait_work": "Jitter wait"}


def _block(block: Sequence[int]) -> str:
    return str(block[0]) if len(block) == 1 else f"{block[0]} to {block[-1]}"


def _last(arrival: Sequence[Record]) -> Iterator[Heat]:
    """Who comes last: ranks by types of collectives of each kind of group."""
    kinds = list(dict.fromkeys(f"{row['kind']} {row['collective']}" for row in arrival))
    if not kinds:
        return
    found: dict[str, list[tuple[float, str] | None]] = {}
    names = {row["label"]: _rank(row) for row in arrival}
    for row in arrival:
        tiles = found.setdefault(row["label"], [None] * len(kinds))
        at = kinds.index(f"{row['kind']} {row['collective']}")
        old = tiles[at]
        if old is None or old[0] < row["last_pct"]:
            text = (
                f"{_rank(row)} comes last in {row['last_count']} of {row['instance_count']} "
                f"{row['collective']} of {row['name']} ({humanize.percent(row['last_pct'])}), "
                f"{_us(row['after_first_us'])} after the first (median); from {row['order_from']}"
            )
            tiles[at] = (row["last_pct"], text)
    yield Heat(
        "last",
        "Who comes last",
        "Share of the matched instances in which the rank arrives last, by kind of group and type.",
        "pct",
        kinds,
        [(names[label], tiles) for label, tiles in found.items()],
        least=0.0,
    )


def _instance(row: Record) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("kind", "name", "collective", "iteration", "ordinal"))


def _arrivals(arrivals: Sequence[Record]) -> Iterator[Picture]:
    """The longest-awaited instance of each kind and type: who comes when, waits, transfers."""
    first: dict[tuple[str, str], tuple[Any, ...]] = {}
    for row in arrivals:
        first.setdefault((row["kind"], row["collective"]), _instance(row))
    for number, (kind, collective) in enumerate(first, 1):
        chosen = first[kind, collective]
        members = [row for row in arrivals if _instance(row) == chosen]
        caption = (
            f"Of all matched instances the one awaited longest: number {chosen[4]} of iteration "
            f"{chosen[3]} in {chosen[1]}. Members in order of arrival, from "
            f"{members[0]['order_from']}."
        )
        shown = members
        if len(members) > _MOST_ROWS:
            shown = [*members[:_FIRST_ROWS], *members[_FIRST_ROWS - _MOST_ROWS :]]
            caption += (
                f" The first {_FIRST_ROWS} and the last {_MOST_ROWS - _FIRST_ROWS} of "
                f"{len(members)} members."
            )
        drawn = []
        for row in shown:
            after, wait, proxy = (
                row[name] / 1e3
                for name in ("after_first_us", "jitter_wait_us", "transfer_proxy_us")
            )
            at = f"{_rank(row)}, {row['place']} of {len(members)}, {_ms(after)} after the first"
            waits = Segment("jitter wait", after, wait, f"{at}: waits {_ms(wait)}")
            text = f"{at}: transfer proxy {_ms(proxy)}"
            transfer = Segment("transfer proxy", after + wait, proxy, text)
            drawn.append((_rank(row), [waits, transfer] if wait else [transfer]))
        yield Picture(
            f"arrival-{number}", f"Arrival at {collective} of {kind}", caption, "ms", drawn
        )


def _ms(value: float) -> str:
    return humanize.duration(value * 1e6)


def _us(value: float) -> str:
    return humanize.duration(value * 1e3)
