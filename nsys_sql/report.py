"""The six-section report of a trace: recipes run in order, and sentences made of their rows.

What is dominant, material or certain is decided in SQL (recipes verdict, opportunities, claims);
here numbers only become words. Rendering is in report_text and report_html.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import nsys_sql
from nsys_sql import humanize, pictures
from nsys_sql.catalog import near
from nsys_sql.errors import AnswerError, NsysSqlError, UsageError
from nsys_sql.formats import CheckLike, ColumnLike, Report, Row
from nsys_sql.options import Options
from nsys_sql.userfiles import of_sources

if TYPE_CHECKING:
    from nsys_sql.session import Model

SECTIONS = (
    "Verdict",
    "Capture quality",
    "Per-step budget",
    "Rank and communication findings",
    "Ranked opportunities",
    "Claim status",
)
# The seventh, where there are any.
OWN = "Recipes of your own"
_OWN_ROWS = 20


@dataclass(frozen=True, slots=True)
class Shown:
    """How a recipe appears: its columns (none: all), at most so many rows, and of which kind."""

    recipe: str
    section: int
    title: str
    columns: str = ""
    rows: int = 0
    keep: Callable[[Mapping[str, Any]], bool] | None = None


def _is_telling(row: Mapping[str, Any]) -> bool:
    """Whether a row of `capture` belongs into a report: what is not well, and what is always told.

    A count of 0 that is well says nothing.
    """
    always = ("export", "mode", "diagnostics", "launches", "graphs", "dependencies", "iterations")
    if row["status"] != "ok":
        return True
    return row["section"] in always and row["value"] != "0"


SHOWN = (
    Shown(
        "verdict",
        1,
        "Verdict of each device",
        "device n iteration_ms dominant_cost dominant_pct compute_absent_ms opportunity "
        "recoverable_ms bound_kind confidence",
    ),
    Shown("capture", 2, "Capture", "section item value status detail remedy", 60, _is_telling),
    Shown("slowdown", 2, "Slowdown by the profiler"),
    Shown(
        "budget",
        3,
        "Budget of an iteration",
        "device metric median_ms min_ms max_ms pct_of_iteration n",
    ),
    Shown(
        "blockers",
        3,
        "What compute waited for",
        "device producer class count median_ms min_ms max_ms pct_of_iteration resolved_pct "
        "waiting_kernel n",
        8,
    ),
    Shown("host-stalls", 3, "What the host did in launch-starved time", rows=8),
    Shown(
        "top-gaps",
        3,
        "Longest gaps",
        "device rank iteration length_ms launch_starved_ms blocking_ms kernel_before next_kernel "
        "producer host_activity host_function nvtx_path",
        6,
    ),
    Shown(
        "phases",
        3,
        "Phases of an iteration",
        "device phase count host_ms busy_ms compute_ms comm_ms copy_ms pct_of_iteration n",
        16,
    ),
    Shown(
        "streams",
        3,
        "Streams",
        "device pid stream_id classes count busy_ms pct_of_iteration n",
        10,
    ),
    Shown(
        "kernels",
        3,
        "Kernels with the most work, over all steady iterations",
        "kernel class count work_ms avg_us pct_of_iteration",
        12,
    ),
    Shown("metrics", 3, "Sampled GPU metrics", rows=12),
    Shown(
        "call-sites",
        3,
        "Call sites of the launches",
        "device call_site launches work_ms launch_starved_ms blocking_ms n link_rate_pct",
        10,
    ),
    Shown(
        "communication",
        4,
        "Communication",
        "device scope class collective count work_ms busy_ms exposed_ms blocking_ms overlap_pct n",
        24,
    ),
    Shown(
        "copies",
        4,
        "Copies",
        "device stream_id direction source destination count bytes busy_ms occupancy_pct "
        "bandwidth_gbps blocking_ms is_pageable_sync verdict n",
        10,
    ),
    Shown(
        "opportunities",
        5,
        "Opportunities",
        "device rank opportunity recoverable_ms min_ms max_ms n bound_kind step_ms "
        "new_step_ceiling_ms throughput_gain_ceiling_pct new_mfu_ceiling confidence status",
        20,
    ),
    Shown("claims", 6, "Claims", "device claim status basis"),
)
# Only pictures are made of these.
_FOR_PICTURES = ("budget-windows", "step-timeline")


@dataclass(frozen=True, slots=True)
class Table:
    """A part of a recipe's result; `left_out` counts the rows that are not shown."""

    recipe: str
    title: str
    columns: Sequence[ColumnLike]
    rows: Sequence[Row]
    left_out: int = 0
    command: str = ""  # what shows all rows, where it is not `run`


@dataclass(frozen=True, slots=True)
class Advice:
    """One opportunity in words."""

    title: str
    lines: Sequence[tuple[str, str]]


@dataclass(slots=True)
class Section:
    """One of them: sentences, pictures, tables, advice, what limits them, what is missing."""

    number: int
    title: str
    sentences: list[str] = field(default_factory=list)
    pictures: list[pictures.Picture | pictures.Heat] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    advice: list[Advice] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    missing: list[tuple[str, str]] = field(default_factory=list)


@dataclass(slots=True)
class Part:
    """What is reported of one trace."""

    trace: Mapping[str, object]
    parameters: Mapping[str, object]
    sections: list[Section]
    results: dict[str, Report]
    failure: NsysSqlError | None = None
    heading: str = ""

    @property
    def is_failed(self) -> bool:
        """Whether a reconciliation failed in any recipe."""
        return any(c.status == "fail" for r in self.results.values() for c in r.checks)


def part(
    model: Model,
    facts: Mapping[str, object],
    parameters: Mapping[str, object],
    given: Mapping[str, str],
    progress: Callable[[str], None],
) -> Part:
    """Run every recipe of the report on an opened trace and put the answers into its sections."""
    results: dict[str, Report] = {}
    missing: dict[str, NsysSqlError] = {}
    own = _own(model)
    wanted = {}
    for name in (*(shown.recipe for shown in SHOWN), *_FOR_PICTURES, *own):
        if name in model.catalog.recipes:
            known = _parameters(model, name)
            wanted[name] = {key: value for key, value in given.items() if key in known}
    taken = {key for params in wanted.values() for key in params}
    for key in given:
        if key not in taken:
            every = {key for name in wanted for key in _parameters(model, name)}
            every -= Options().variables().keys()
            raise UsageError(
                f"there is no parameter {key!r} in a report",
                near(key, every) or f"parameters: {', '.join(sorted(every))}",
            )
    model.foresee(wanted)
    for number, (name, params) in enumerate(wanted.items(), 1):
        progress(f"{number}/{len(wanted)} {name}")
        file = model.catalog.recipe(name)
        try:
            result = model.result(name, **params)
        except NsysSqlError as error:
            if not isinstance(error, AnswerError) and name not in own:
                raise
            missing[name] = error
            continue
        results[name] = Report(
            name,
            nsys_sql.__version__,
            facts,
            question=file.question,
            parameters=parameters,
            columns=result.columns,
            rows=result.rows,
            checks=result.checks,
            notes=result.notes,
        )
    sections = [Section(number, title) for number, title in enumerate(SECTIONS, 1)]
    if own or model.catalog.broken:
        sections.append(Section(len(SECTIONS) + 1, OWN))
        for name, problem in model.catalog.broken.items():
            _miss(sections[-1], name, problem)
    for shown in (*SHOWN, *own.values()):
        section = sections[shown.section - 1]
        if shown.recipe in missing:
            _miss(section, shown.recipe, missing[shown.recipe])
        elif shown.recipe in results and results[shown.recipe].rows:
            section.tables.append(_table(results[shown.recipe], shown))
    _fill(sections[: len(SECTIONS)], results, facts, parameters)
    if "verdict" in missing:
        sections[0].sentences = [f"No verdict: {_reason('verdict', missing['verdict'])}."]
        sections[0].missing = []
    for section in sections:
        said = [note for table in section.tables for note in results[table.recipe].notes]
        section.notes = list(dict.fromkeys(said))
    _say_once(sections)
    return Part(facts, parameters, sections, results, missing.get("verdict"))


def _parameters(model: Model, recipe: str) -> frozenset[str]:
    """The parameters of a recipe; what is wrong with one of the user's is told when it is run."""
    try:
        return model.planner.parameters(recipe)
    except NsysSqlError:
        return frozenset()


def _own(model: Model) -> dict[str, Shown]:
    """The recipes that came with the option --recipes, as they appear."""
    return {
        file.name: Shown(file.name, len(SECTIONS) + 1, file.question, rows=_OWN_ROWS)
        for file in of_sources(model.catalog, model.options.recipes)
    }


def _miss(section: Section, recipe: str, error: NsysSqlError) -> None:
    """Name a recipe that has no answer, together with others that lack it for the same reason."""
    reason = _reason(recipe, error)
    for place, (names, said) in enumerate(section.missing):
        if said == reason:
            section.missing[place] = (f"{names}, {recipe}", said)
            return
    section.missing.append((recipe, reason))


def _reason(recipe: str, error: NsysSqlError) -> str:
    return error.told.removeprefix(f"{recipe}: ")


def _say_once(sections: Sequence[Section]) -> None:
    """A note that limits several sections is told where it comes first."""
    told: set[str] = set()
    for section in sections:
        section.notes = [note for note in section.notes if note not in told]
        told.update(section.notes)


def _table(report: Report, shown: Shown) -> Table:
    names = [column.name for column in report.columns]
    wanted = [name for name in shown.columns.split() or names if name in names]
    places = [names.index(name) for name in wanted]
    # a column without a value (no MFU was given) says nothing
    places = [i for i in places if any(row[i] is not None for row in report.rows)]
    rows = list(report.rows)
    if shown.keep is not None:
        rows = [row for row in rows if shown.keep(dict(zip(names, row, strict=True)))]
    rows = _first(rows, names, shown.rows) if shown.rows else rows
    return Table(
        report.recipe,
        shown.title,
        [report.columns[i] for i in places],
        [tuple(row[i] for i in places) for row in rows],
        len(report.rows) - len(rows),
    )


def _first(rows: Sequence[Row], names: Sequence[str], limit: int) -> list[Row]:
    """The first rows of each device in turn, in their order: none hides behind another."""
    if "device" not in names:
        return list(rows[:limit])
    place = names.index("device")
    seen: dict[object, int] = {}
    turns = []
    for at, row in enumerate(rows):
        turns.append((seen.get(row[place], 0), at))
        seen[row[place]] = turns[-1][0] + 1
    return [rows[at] for at in sorted(at for _, at in sorted(turns)[:limit])]


def records(report: Report | None) -> list[dict[str, Any]]:
    """The rows of a result by column name; none where it is missing."""
    if report is None:
        return []
    names = [column.name for column in report.columns]
    return [dict(zip(names, row, strict=True)) for row in report.rows]


def ms(value: float | None) -> str:
    """A number of milliseconds in a fitting unit."""
    return humanize.ABSENT if value is None else humanize.duration(value * 1e6)


def _fill(
    sections: Sequence[Section],
    results: Mapping[str, Report],
    facts: Mapping[str, object],
    parameters: Mapping[str, object],
) -> None:
    verdict, capture, budget, communication, opportunities, claims = sections
    rows = records(results.get("verdict"))
    verdict.sentences = [" ".join(_verdict(rows))] if rows else []
    if len(rows) < 2:
        verdict.tables = []
    capture.sentences = list(_capture(facts, parameters, results))
    budget.sentences = list(_budget(records(results.get("budget"))))
    budget.pictures[:] = pictures.of(
        records(results.get("budget")),
        records(results.get("budget-windows")),
        records(results.get("step-timeline")),
        records(results.get("kernels")),
    )
    communication.sentences = list(_communication(rows))
    found = records(results.get("opportunities"))
    opportunities.sentences = list(_opportunities(found, rows))
    opportunities.advice = [_advice(row) for row in found if row["is_material"]]
    counted: dict[str, int] = {}
    for row in records(results.get("claims")):
        counted[row["status"]] = counted.get(row["status"], 0) + 1
    if counted:
        listed = ", ".join(f"{n} {status}" for status, n in sorted(counted.items()))
        claims.sentences = [
            f"Claims by status: {listed}. None is source-verified: a trace holds no source. The "
            "table lists them."
        ]


def _verdict(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for row in sorted(rows, key=lambda each: -each["iteration_ms"])[:4]:
        span = f"{ms(row['iteration_min_ms'])} to {ms(row['iteration_max_ms'])}"
        cost = row["dominant_cost"]
        of = ""
        if cost == "compute" and row["compute_class"]:
            of = f", most of its work {row['compute_class']} ({_pct(row['compute_class_pct'])})"
        yield (
            f"Device {row['device']}: an iteration takes {ms(row['iteration_ms'])} ({span}, "
            f"n = {row['n']}); its dominant cost is {cost}, {ms(row['dominant_ms'])} or "
            f"{_pct(row['dominant_pct'])}{of}."
        )
        yield f"It computes nothing for {ms(row['compute_absent_ms'])}."
        if row["is_material"]:
            least, most = ms(row["recoverable_min_ms"]), ms(row["recoverable_max_ms"])
            gain = row["throughput_gain_ceiling_pct"]
            yield (
                f"Most recoverable is {row['opportunity']}: {ms(row['recoverable_ms'])} "
                f"({least} to {most}; {row['bound_kind']}, confidence {row['confidence']})"
                + (
                    f", {_pct(gain)} more throughput{_ceiling(row['bound_kind'])}."
                    if gain is not None
                    else "."
                )
            )
        else:
            yield (
                "No launch-starved time that an earlier launch could recover and no known blocking "
                "time reaches 1% of the iteration (median)."
            )
        if row["is_shadowed_material"]:
            yield _shadowed(row)
        if row["limits"]:
            yield f"Limits: {row['limits']}."
    if len(rows) > 4:
        yield f"The table has the other {len(rows) - 4} devices."
    yield "This is one trace: it does not speak for ranks that were not captured."


def _pct(value: float | None) -> str:
    return humanize.ABSENT if value is None else humanize.percent(value)


def _capture(
    facts: Mapping[str, object],
    parameters: Mapping[str, object],
    results: Mapping[str, Report],
) -> Iterator[str]:
    captured = facts["capture_version"] or "of unknown version"
    exported = facts["product_version"] or "an unknown version"
    schema = facts["schema_version"] or "unknown"
    yield (
        f"{facts['path']}: captured with Nsight Systems {captured}, exported with {exported}, "
        f"schema {schema}."
    )
    chosen = ", ".join(
        f"{name.replace('_', '-')} {value}"
        for name, value in parameters.items()
        if value not in (None, [], "range")
        and not (value == 0 and name.startswith("skip_"))
        and not (name == "per_iteration" and value == 1)
    )
    yield f"Options: {chosen}."
    warnings = facts["warnings"]
    if isinstance(warnings, list):
        yield from (f"Warning: {text}." for text in warnings)
    bad = [(r, c) for r in results.values() for c in r.checks if c.status != "ok"]
    yield from (f"{_word(c)} {r.recipe}, check {c.name}: {c.detail}." for r, c in bad)
    total = sum(len(r.checks) for r in results.values())
    yield f"{total - len(bad)} of {total} reconciliation checks hold."
    yield "Source of the profiled revision: not available to this report."


def _word(check: CheckLike) -> str:
    return "FAILED" if check.status == "fail" else "Warning"


def _budget(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for device in dict.fromkeys(row["device"] for row in rows):
        mean = {row["metric"]: row["mean_ms"] for row in rows if row["device"] == device}
        n = next(row["n"] for row in rows if row["device"] == device)
        pieces = ("launch_starved", "blocking", "dependency_stalled", "unattributed")
        listed = " + ".join(f"{each.replace('_', ' ')} {ms(mean[each])}" for each in pieces)
        yield (
            f"Device {device}, mean of n = {n}, so that parts add up: iteration "
            f"{ms(mean['iteration'])} = compute {ms(mean['compute_busy'])} + without compute "
            f"{ms(mean['compute_absent'])}; the latter is {listed}."
        )


def _communication(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for row in rows:
        if not row["comm_busy_ms"]:
            yield f"Device {row['device']}: no communication kernel in the median iteration."
            continue
        yield (
            f"Device {row['device']}, per iteration: communication runs {ms(row['comm_busy_ms'])}, "
            f"{ms(row['comm_exposed_ms'])} of it exposed (nothing else ran on the device) and "
            f"{ms(row['comm_blocking_ms'])} blocking (compute is known to have waited for it)"
            + (
                ": more than is exposed, since compute waits for its start too, and copies may run "
                "beside it."
                if row["comm_blocking_ms"] > row["comm_exposed_ms"]
                else "."
            )
        )
    if rows:
        yield (
            "Transfer and waiting for a late rank are not told apart here, and there is no "
            "alignment or straggler verdict: that takes the traces of all members of a group."
        )


def _opportunities(
    found: Sequence[Mapping[str, Any]], verdict: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    if not found and verdict:
        yield (
            "No launch-starved time that an earlier launch could recover and no known blocking "
            "time was found."
        )
    elif found and not any(row["is_material"] for row in verdict):
        yield "None reaches 1% of the iteration (median)."
    unknown = [str(row["device"]) for row in verdict if row["is_lower_bound"]]
    if unknown:
        yield (
            "There may be more blocking time than is known: dependencies are not fully known on "
            f"device {', '.join(unknown)} (limits of the verdict)."
        )
    for row in verdict:
        if row["is_shadowed_material"]:
            yield f"Device {row['device']}: {_shadowed(row)}"


def _shadowed(row: Mapping[str, Any]) -> str:
    """Launch-starved time that launching earlier alone cannot recover, so that it is no row."""
    producers = f" ({row['shadowed_by']})" if row["shadowed_by"] else ""
    return (
        f"For {ms(row['shadowed_ms'])} or {_pct(row['shadowed_pct'])} the next kernel was not "
        f"launched while its producer ran anyway{producers}. That is in no ceiling: launching "
        "earlier alone cannot recover it; making that operation asynchronous or shorter might, up "
        "to that much."
    )


def _ceiling(kind: str) -> str:
    """What a ceiling is one of: exactly the time that the trace attributes, not what follows."""
    shown = kind.startswith("lower bound")
    return " without what the trace shows of it" if shown else " without exactly this time"


def _advice(row: Mapping[str, Any]) -> Advice:
    span = f"{ms(row['step_min_ms'])} to {ms(row['step_max_ms'])}"
    ceiling = f"step {ms(row['step_ms'])} ({span}) to {ms(row['new_step_ceiling_ms'])}"
    if row["throughput_gain_ceiling_pct"] is not None:
        ceiling += f", throughput +{_pct(row['throughput_gain_ceiling_pct'])}"
    if row["new_mfu_ceiling"] is not None:
        ceiling += f", MFU {humanize.significant(row['new_mfu_ceiling'])}"
    ceiling += _ceiling(row["bound_kind"])
    if row["is_above_full_mfu"]:
        ceiling += "; above 100% the given MFU and this bound cannot both hold"
    return Advice(
        f"Device {row['device']}, {row['rank']}: {row['opportunity']}",
        [
            (
                "Bound",
                f"{ms(row['recoverable_ms'])} per iteration ({ms(row['min_ms'])} to "
                f"{ms(row['max_ms'])}, n = {row['n']}), {row['bound_kind']}",
            ),
            ("Ceiling", ceiling),
            ("Evidence", f"{row['evidence']} ({row['status']}; confidence {row['confidence']})"),
            ("Action", row["action"]),
            ("Verification", row["verification"]),
        ],
    )
