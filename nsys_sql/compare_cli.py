"""What `nsys-sql compare` and `history` do once their options are read: exit codes."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import nsys_sql
from nsys_sql import commands, compare, formats, history, humanize, output, ranks, render, tasks
from nsys_sql.across import Named
from nsys_sql.compare import Comparison, Side
from nsys_sql.errors import (
    AnswerError,
    InputError,
    InvariantError,
    NsysSqlError,
    ThresholdError,
    UsageError,
)
from nsys_sql.formats import Report
from nsys_sql.options import Options
from nsys_sql.ranks import RankMap
from nsys_sql.survey_cli import counting, engine_options, folder_for

Warn = Callable[[str], None]
# Columns that a terminal has no room for; every other format has them.
_NARROW = {
    "reconciliation": {
        "level", "parent", "label", "base_min_ns", "base_max_ns", "new_min_ns", "new_max_ns",
        "base_n", "new_n",
    },
    "kernels": {"label", "counterpart", "base_work_ns", "new_work_ns"},
    "communication": {"label"},
    "copies": {"label", "way", "base_gbps", "new_gbps"},
    "budget": {
        "label", "base_min_ns", "base_max_ns", "new_min_ns", "new_max_ns", "base_mean_ns",
        "new_mean_ns",
    },
    "gate": {"label"},
}  # fmt: skip
_SHOWN = ("comparability", "verdict", "reconciliation", "kernels", "communication", "copies")
_KERNEL_ROWS = 20


def run(traces: Sequence[Path], options: Mapping[str, Any], warn: Warn) -> int:
    """Compare two runs: tables, a report, a gate, and a line in a history."""
    form = options["form"]
    thresholds = [compare.threshold(text) for text in options["fail_on"]]
    stored = history.labels(options["labels"])
    if stored and options["store"] is None:
        raise UsageError("--label is what a run is stored with", hint="give --store FILE.duckdb")
    chosen = _chosen(options, form, bool(thresholds))
    sides = _traces(traces, options)
    output.check_target(options["output"], [*sides[0][0], *sides[1][0]])
    target, store = options["output"], options["store"]
    if target and store and output.is_same(target, store):
        raise UsageError("-o would overwrite the history", hint="give the result another name")
    read = [
        _side(paths, mapping, each, options, warn)
        for (paths, mapping), each in zip(sides, _side_options(options), strict=True)
    ]
    with Comparison(
        *read,
        force=options["force"],
        thresholds=thresholds,
        params=commands.parameters(options["params"]),
        threads=options["threads"],
        memory_limit=options["memory_limit"],
        temp_directory=read[1].options.temp_directory,
    ) as compared:
        if not options["quiet"]:
            for note in compared.notes:
                warn(f"Warning: {note}")
            if compared.refusals and compared.force:
                warn(f"Warning: forced, not comparable: {'; '.join(compared.refusals)}")
        if options["store"] is not None:
            number = history.append(options["store"], compared, stored)
            if not options["quiet"]:
                done = "was there already" if number is None else f"is run {number}"
                warn(f"{options['store']}: this {done}")
        is_refused = bool(compared.refusals) and not compared.force
        names = [name for name in chosen if name in compare.ALWAYS] if is_refused else chosen
        results = [compared.result(name) for name in names]
        if is_refused and form not in ("csv", "parquet") and not results:
            results = [compared.result("comparability")]
        if results and not (is_refused and form in ("csv", "parquet")):
            _write(compared, results, form, options)
        if is_refused:
            raise compare.refusal(compared.refusals)
        gate = _gate(compared) if thresholds else []
    return _exit_code(results, gate, options, warn)


def _gate(compared: Comparison) -> list[dict[str, Any]]:
    """The thresholds of every pair. One that was never measured is an error, not a pass."""
    found = compared.result("gate").dicts()
    pairs = {row["pair"] for row in compared.result("verdict").dicts()}
    for given in compared.thresholds:
        if pairs - {row["pair"] for row in found if row["threshold"] == given.text}:
            raise AnswerError(
                f"--fail-on {given.text!r} cannot be told: {given.metric} was not measured on both "
                "sides",
                hint="a period takes two steady iterations in a row"
                if given.metric == "period"
                else "capture both with --trace=cuda,nvtx: API calls and kernels",
            )
    return found


def _exit_code(
    results: Sequence[Named],
    gate: Sequence[Mapping[str, Any]],
    options: Mapping[str, Any],
    warn: Warn,
) -> int:
    codes = [0]
    if any(check.status == "fail" for each in results for check in each.checks):
        codes.append(InvariantError.exit_code)
    for row in gate:
        if row["is_crossed"]:
            codes.append(ThresholdError.exit_code)
            warn(f"CROSSED {row['threshold']}: {_change(row)}, {row['verdict']}")
    return max(codes)


def _change(row: Mapping[str, Any]) -> str:
    """`iteration 17.07 ms to 18.77 ms, +1.702 ms (+9.97%)`."""
    text = (
        f"{row['metric']} {humanize.duration(row['base_ns'])} to "
        f"{humanize.duration(row['new_ns'])}, {signed(row['delta_ns'])}"
    )
    if row["delta_pct"] is not None:
        text += f" ({signed_pct(row['delta_pct'])})"
    return text + (f" in pair {row['pair']}" if row["pair"] else "")


def signed(ns: int | float) -> str:
    """A difference of times with its sign."""
    return ("+" if ns > 0 else "-" if ns < 0 else "") + humanize.duration(abs(ns))


def signed_pct(value: float) -> str:
    """A difference in percent with its sign."""
    return ("+" if value > 0 else "") + humanize.percent(value)


# ---------------------------------------------------------------- what is compared


def _chosen(options: Mapping[str, Any], form: str, has_gate: bool) -> tuple[str, ...]:
    given: tuple[str, ...] = options["results"]
    for name in given:
        if name not in compare.RESULTS:
            raise UsageError(
                f"a comparison has no result {name!r}",
                hint=f"results: {', '.join(compare.RESULTS)}",
            )
    if form in ("csv", "parquet"):
        if len(given) > 1:
            raise UsageError(f"{form} holds one result", hint="name one with --result")
        return given or ("reconciliation",)
    every = tuple(name for name in compare.RESULTS if has_gate or name != "gate")
    shown = (*_SHOWN, "gate") if has_gate else _SHOWN
    return given or (shown if form == "table" else every)


_Traces = tuple[Sequence[Path], RankMap]


def _traces(traces: Sequence[Path], options: Mapping[str, Any]) -> tuple[_Traces, _Traces]:
    """The traces of both sides: BASE TRACE, or --base and further ones, or two mappings."""
    maps = [
        ranks.read(options[name]) if options[name] is not None else RankMap()
        for name in ("base_ranks", "ranks")
    ]
    bases: Sequence[Path] = options["bases"] or maps[0].traces
    if bases:
        news: Sequence[Path] = traces or maps[1].traces
    elif maps[1].path is not None:
        bases, news = traces, maps[1].traces
    elif len(traces) == 2:
        bases, news = traces[:1], traces[1:]
    else:
        raise UsageError(
            f"compare takes BASE and TRACE, not {len(traces)} traces",
            hint="for several of a side give --base for each trace of the base, the others after",
        )
    if not bases or not news:
        raise UsageError(
            f"there is no trace on the {'new' if bases else 'base'} side",
            hint="give BASE TRACE, or --base BASE... TRACE...",
        )
    return (bases, maps[0]), (news, maps[1])


def _side_options(options: Mapping[str, Any]) -> tuple[Options, Options]:
    new = engine_options(options)
    own = {
        name: options[f"base_{name}"]
        for name in ("anchor", "per_iteration", "iterations")
        if options[f"base_{name}"] is not None
    }
    return dataclasses.replace(new, **own).check(), new


def _side(
    paths: Sequence[Path], mapping: RankMap, own: Options, options: Mapping[str, Any], warn: Warn
) -> Side:
    """Read the traces of one side; a trace that cannot be read ends the comparison."""
    unique = list({os.path.realpath(path): path for path in paths}.values())
    with commands.progress(options) as line:
        outcomes = tasks.collect(
            unique,
            folder_for(options["partitions"]),
            own,
            jobs=options["jobs"],
            progress=counting(line, len(unique)),
        )
    parts = []
    for each in outcomes:
        if each.failure is not None or each.partition is None:
            raise _failed(each)
        if not options["quiet"]:
            for text in each.partition.manifest["trace"].get("warnings", ()):
                warn(f"Warning: {each.trace}: {text}")
        parts.append(each.partition)
    return Side(parts, own, mapping)


def _failed(outcome: tasks.Outcome) -> NsysSqlError:
    failure = outcome.failure or tasks.Failure("there is no partition", None, 1)
    kind = {2: UsageError, 3: InputError, 4: AnswerError}.get(failure.exit_code, NsysSqlError)
    shown = "" if str(outcome.trace) in failure.message else f"{outcome.trace}: "
    return kind(f"{shown}{failure.message}", hint=failure.hint)


# ---------------------------------------------------------------- what is printed


def _write(
    compared: Comparison, results: Sequence[Named], form: str, options: Mapping[str, Any]
) -> None:
    target: Path | None = options["output"]
    if form == "parquet":
        with output.binary(target) as path:
            compared.con.table(f"result_{results[0].name}").write_parquet(str(path))
        return
    if form == "json":
        text = json_text(compared, results, _parameters(options))
    elif form in ("md", "html"):
        from nsys_sql import compare_report

        text = compare_report.render(compared, results, form, _parameters(options))
    else:
        reports = [_report(each, compared) for each in results]
        if form == "csv":
            text = formats.csv_text(reports[:1], with_trace=False)
        elif form == "markdown":
            text = "\n".join(formats.markdown(report) for report in reports)
        else:
            text = _table(compared, results, reports, options)
    output.write_text(text, target)


def heading(compared: Comparison) -> str:
    """What is said in every section: that it was forced, else nothing."""
    if compared.refusals and compared.force:
        return "FORCED, not comparable: "
    return ""


def _report(each: Named, compared: Comparison) -> Report:
    return Report(
        f"compare {each.name}",
        nsys_sql.__version__,
        {"path": ""},
        question=heading(compared) + each.question,
        columns=each.columns,
        rows=each.rows,
        checks=each.checks,
        notes=compared.notes if each.name == "comparability" else (),
    )


def _table(
    compared: Comparison,
    results: Sequence[Named],
    reports: Sequence[Report],
    options: Mapping[str, Any],
) -> str:
    """Sections for a terminal: fewer columns, the label once, the verdict in words."""
    width, asked = output.width(), bool(options["results"])
    parts = []
    for each, report in zip(results, reports, strict=True):
        if each.name == "verdict" and not asked:
            text = "\n".join(sentences(each.dicts()))
            parts.append(f"{report.recipe} - {report.question}\n\n{text}\n")
            continue
        shown = report if asked else _narrow(each, report)
        shown = dataclasses.replace(shown, trace={"path": _label(each)})
        parts.append(render.table(shown, width, options["limit"]))
    left = [n for n in compare.RESULTS if n not in {each.name for each in results} and n != "gate"]
    text = "\n".join(parts)
    if not asked and not (compared.refusals and not compared.force):
        text += f"\nFurther results: --result {', '.join(left)}; --format json holds all.\n"
    return text


def _label(each: Named) -> str:
    told: dict[str, list[str]] = {}
    for row in each.dicts():
        if row.get("label"):
            told.setdefault(row["label"], []).append(str(row["pair"]))
    if len(told) == 1:
        return next(iter(told))
    return " | ".join(
        f"pair {', '.join(dict.fromkeys(pairs))}: {label}" for label, pairs in told.items()
    )


def _narrow(each: Named, report: Report) -> Report:
    rows, notes = each.dicts(), list(report.notes)
    if each.name == "comparability":
        same = sum(row["status"] == "same" for row in rows)
        rows = [row for row in rows if row["status"] != "same"]
        notes.append(f"{same} more aspects are the same on both sides: --result comparability")
    elif each.name == "reconciliation":
        rows = [{**row, "item": indented(row)} for row in rows]
    elif each.name == "kernels" and len(rows) > _KERNEL_ROWS:
        notes.append(f"{len(rows) - _KERNEL_ROWS} more rows: --result kernels")
        rows = rows[:_KERNEL_ROWS]
    hidden = _NARROW.get(each.name, set())
    one_pair = len({row.get("pair") for row in rows}) <= 1
    columns = [
        column
        for column in each.columns
        if column.name not in hidden
        and not (one_pair and column.name == "pair")
        and not (column.name == "pairs" and all(row["pairs"] == "all" for row in rows))
    ]
    return dataclasses.replace(
        report,
        columns=columns,
        rows=[[row[column.name] for column in columns] for row in rows],
        notes=notes,
    )


def indented(row: Mapping[str, Any]) -> str:
    """An item of the reconciliation under its parent."""
    item = str(row["item"]).removeprefix(f"{row['parent']}:")
    return "  " * int(row["level"]) + item


def sentences(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The verdict of each pair in words."""
    for row in rows:
        n = f"n = {row['base_n']} and {row['new_n']}"
        spread = f"p = {row['p_value']:.2g}, {n}"
        if row["low_ns"] is not None:
            spread = f"between {signed(row['low_ns'])} and {signed(row['high_ns'])}, {spread}"
        said = {
            "slower": "slower",
            "faster": "faster",
            "small": "a difference that stands out and is too small to matter",
            "no change": "no change",
            "cannot tell": "whether that is a change cannot be told from these windows",
        }[row["verdict"]]
        text = (
            f"{row['before']} to {row['after']}: an iteration takes "
            f"{humanize.duration(row['base_ns'])}, then {humanize.duration(row['new_ns'])}: "
            f"{signed(row['delta_ns'])}, {signed_pct(row['delta_pct'])} ({spread}): {said}."
        )
        if row["carrier"]:
            text += f" Most of it lies in {row['carrier']}, {signed(row['carrier_ns'])}"
            if row["inside"]:
                text += f", and there in {row['inside']}, {signed(row['inside_ns'])}"
            text += "."
        if row["between_ns"] is not None:
            text += (
                f" From start to start it takes {humanize.duration(row['base_period_ns'])}, then "
                f"{humanize.duration(row['new_period_ns'])}: {signed(row['between_ns'])} lie "
                "between iterations."
            )
        if row["label"]:
            text += f" [{row['label']}]"
        yield text


def _parameters(options: Mapping[str, Any]) -> dict[str, object]:
    names = (
        "anchor", "base_anchor", "per_iteration", "base_per_iteration", "skip_first", "skip_last",
        "iterations", "base_iterations", "device", "window", "force",
    )  # fmt: skip
    found: dict[str, object] = {name: options[name] for name in names}
    found["taxonomy"] = [str(path) for path in options["taxonomy"]]
    for name in ("base_ranks", "ranks"):
        found[name] = str(options[name]) if options[name] is not None else None
    found["fail_on"] = list(options["fail_on"])
    given = commands.parameters(options["params"])
    return found | {
        name: given.get(name, param.default) for name, param in compare.files().parameters().items()
    }


def traces_of(compared: Comparison) -> list[dict[str, object]]:
    """What an envelope says about the traces of both sides."""
    names = ("product_version", "schema_version", "capture_version", "warnings")
    return [
        {"side": side, "path": part.trace}
        | {name: part.manifest["trace"].get(name) for name in names}
        | {"partition": part.key}
        for side, given in compared.sides.items()
        for part in given.parts
    ]


def json_text(
    compared: Comparison, results: Sequence[Named], parameters: Mapping[str, object]
) -> str:
    """The usual envelope with `traces`; what differs stands before any delta."""
    envelopes = {each.name: formats.envelope(_report(each, compared)) for each in results}
    first = next((each for each in results if each.name == "reconciliation"), results[0])
    found: dict[str, object] = {
        "recipe": "compare",
        "nsys_sql_version": nsys_sql.__version__,
        "traces": traces_of(compared),
        "parameters": dict(parameters),
        "refused": list(compared.refusals),
        "forced": bool(compared.refusals) and compared.force,
    }
    if "comparability" in envelopes and first.name != "comparability":
        found["comparability"] = envelopes["comparability"]["rows"]
    found |= {
        "result": first.name,
        "columns": envelopes[first.name]["columns"],
        "rows": envelopes[first.name]["rows"],
        "checks": [
            {"name": check.name, "status": check.status, "detail": check.detail}
            for each in results
            for check in each.checks
        ],
        "notes": list(compared.notes),
    }
    others = [each for each in results if each.name not in ("comparability", first.name)]
    if others:
        found["results"] = {
            each.name: {
                "question": envelopes[each.name].get("question", each.question),
                "columns": envelopes[each.name]["columns"],
                "rows": envelopes[each.name]["rows"],
            }
            for each in others
        }
    return formats.object_text(found) + "\n"


# ---------------------------------------------------------------- history


def show_history(path: Path, traces: Sequence[Path], options: Mapping[str, Any], warn: Warn) -> int:
    """Append the runs of --add, or print how a metric developed."""
    given = history.labels(options["labels"])
    if traces:
        return _add(path, traces, given, options, warn)
    target: Path | None = options["output"]
    output.check_target(target, [path])
    found = history.read(path, options["metric"], given, engine_options(options))
    form = options["form"]
    if form == "html":
        from nsys_sql import compare_report

        output.write_text(compare_report.history(found, options["metric"]), target)
        return 0
    report = Report(
        "history",
        nsys_sql.__version__,
        {"path": str(path)},
        question=found.question,
        parameters={"metric": options["metric"], "labels": given},
        columns=found.columns,
        rows=found.rows,
    )
    if form == "parquet":
        raise UsageError("history prints table, json, csv, markdown or html")
    text = render.render([report], form, width=output.width(), limit=options["limit"])
    if form == "table" and found.rows:
        text += "\n" + history.plot(found.dicts(), output.width()) + "\n"
    output.write_text(text, target)
    return 0


def _add(
    path: Path,
    traces: Sequence[Path],
    given: Mapping[str, str],
    options: Mapping[str, Any],
    warn: Warn,
) -> int:
    """Store a run by itself: its traces are both sides of a comparison that nobody sees."""
    mapping = ranks.read(options["ranks"]) if options["ranks"] is not None else RankMap()
    side = _side(traces, mapping, engine_options(options), options, warn)
    with Comparison(
        side,
        side,
        force=True,
        threads=options["threads"],
        memory_limit=options["memory_limit"],
        temp_directory=side.options.temp_directory,
    ) as compared:
        number = history.append(path, compared, given)
    if not options["quiet"]:
        warn(f"{path}: this {'was there already' if number is None else f'is run {number}'}")
    return 0
