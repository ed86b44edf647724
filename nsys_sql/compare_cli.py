"""What `nsys-sql compare` and `history` do once their options are read: exit codes."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import nsys_sql
from nsys_sql import (
    bulk,
    commands,
    compare,
    formats,
    history,
    humanize,
    output,
    ranks,
    render,
    tasks,
    userfacts,
)
from nsys_sql.across import Named
from nsys_sql.catalog import Column
from nsys_sql.compare import Comparison, Side
from nsys_sql.errors import (
    AnswerError,
    InputError,
    InvariantError,
    NsysSqlError,
    ThresholdError,
    UsageError,
)
from nsys_sql.formats import ColumnLike, Report
from nsys_sql.options import Options
from nsys_sql.ranks import RankMap
from nsys_sql.survey_cli import (
    answered,
    counting,
    cross_parameters,
    distinct,
    engine_options,
    folder_for,
    wanted,
)

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
# Besides delta_*: an increase of these has its sign where a person reads it.
_DIFFERENCES = frozenset(
    {"delta", "low_ns", "high_ns", "carrier_ns", "inside_ns", "between_ns", "outliers_ns"}
    | {"pct_of_base", "pct_of_iteration", "avg_pct", "speed_ns", "count_ns", "change_pct"}
)
_SHOWN = ("comparability", "verdict", "reconciliation", "kernels", "communication", "copies")
_KERNEL_ROWS = 20


def run(traces: Sequence[Path], options: Mapping[str, Any], warn: Warn) -> int:
    """Compare two runs: tables, a report, a gate, and a line in a history."""
    form = options["form"]
    thresholds = [compare.threshold(text) for text in options["fail_on"]]
    stored = history.labels(options["labels"])
    if stored and options["store"] is None:
        raise UsageError("--label is what a run is stored with", hint="give --store FILE.duckdb")
    own = userfacts.asked(engine_options(options).recipes, compare.RESULTS, warn)
    chosen = _chosen(options, form, bool(thresholds), tuple(file.name for file in own))
    sides = _traces(traces, options)
    output.check_target(options["output"], [*sides[0][0], *sides[1][0]])
    target, store = options["output"], options["store"]
    if target and store and output.is_same(target, store):
        raise UsageError("-o would overwrite the history", hint="give the result another name")
    if store:
        history.check(store)
    params = cross_parameters(options, engine_options(options), compare.files().parameters())
    compare.files().values(params, Comparison.title)  # before traces are read
    read = [
        _side(paths, mapping, each, options, warn)
        for (paths, mapping), each in zip(sides, _side_options(options), strict=True)
    ]
    with Comparison(
        *read,
        force=options["force"],
        thresholds=thresholds,
        recipes=own,
        params=params,
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
        names = (
            [name for name in chosen if name in compare.ALWAYS]
            if is_refused
            else answered(chosen, own, compared, options)
        )
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
                if given.metric in ("period", "period_mean")
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
            label = f" [{row['label']}]" if row["label"] else ""
            warn(f"CROSSED {row['threshold']}: {_change(row)}, {row['verdict']}{label}")
        elif row["is_mean_crossed"] and not options["quiet"]:
            warn(
                f"Warning: {row['threshold']} is crossed by the means, not by the medians that "
                f"count: {row['metric']}_mean gates them"
                + (f" (pair {row['pair']})" if row["pair"] else "")
            )
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
    return humanize.cell(ns, "delta_ns", "+ns")


def signed_pct(value: float) -> str:
    """A difference in percent with its sign."""
    return humanize.cell(value, "delta_pct", "+pct")


def marked(columns: Iterable[ColumnLike]) -> list[Column]:
    """Columns for a table that is read: those of a difference show an increase by its sign."""
    return [
        Column(c.name, c.type, f"+{c.unit}" if _is_difference(c.name) else c.unit, c.description)
        for c in columns
    ]


def _is_difference(name: str) -> bool:
    return name in _DIFFERENCES or name.startswith("delta_")


# ---------------------------------------------------------------- what is compared


def _chosen(
    options: Mapping[str, Any], form: str, has_gate: bool, own: tuple[str, ...]
) -> tuple[str, ...]:
    given = wanted(options, "a comparison", (*compare.RESULTS, *own))
    if form in ("csv", "parquet"):
        if len(given) > 1:
            raise UsageError(f"{form} holds one result", hint="name one with --result")
        return given or ("reconciliation",)
    every = tuple(name for name in compare.RESULTS if has_gate or name != "gate")
    shown = (*_SHOWN, "gate") if has_gate else _SHOWN
    return given or (*(shown if form == "table" else every), *own)


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
    unique = distinct(paths, options, warn)
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
            bulk.write_parquet(compared.con.table(userfacts.table(results[0].name)), path)
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
            said = (textwrap.wrap(sentence, width) for sentence in sentences(each.dicts()))
            text = "\n\n".join("\n".join(lines) for lines in said)
            parts.append(f"{report.recipe} - {report.question}\n\n{text}\n")
            continue
        read = each.readable()
        shown = dataclasses.replace(report, rows=read.rows) if asked else _narrow(read, report)
        shown = dataclasses.replace(
            shown, trace={"path": _label(each)}, columns=marked(shown.columns)
        )
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
            pair = row["pair"] if "pair" in row else row["pairs"]
            told.setdefault(row["label"], []).append(str(pair))
    if len(told) == 1:
        return next(iter(told))
    return " | ".join(
        f"pair {', '.join(dict.fromkeys(pairs))}: {label}" for label, pairs in told.items()
    )


def _narrow(each: Named, report: Report) -> Report:
    rows: list[Mapping[str, Any]] = [*each.dicts()]
    notes = list(report.notes)
    if each.name == "comparability":
        same = sum(row["status"] == "same" for row in rows)
        silent = [str(row["aspect"]) for row in rows if row["detail"] == "neither report tells"]
        rows = [
            row
            for row in rows
            if row["status"] != "same" and row["detail"] != "neither report tells"
        ]
        if silent:
            notes.append(f"neither report tells: {', '.join(dict.fromkeys(silent))}")
        notes.append(f"{same} more aspects are the same on both sides: --result comparability")
    elif each.name == "reconciliation":
        rows = [{**row, "item": indented(row)} for row in rows]
    elif each.name == "kernels":
        shown = of_each_pair(rows, _KERNEL_ROWS)
        if len(shown) < len(rows):
            notes.append(f"{len(rows) - len(shown)} more rows: --result kernels")
        rows = shown
    hidden = _NARROW.get(each.name, {"label"})
    if not any(is_telling(row.get("basis")) for row in rows):
        hidden = hidden | {"basis"}
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


def of_each_pair(rows: Sequence[Mapping[str, Any]], most: int) -> list[Mapping[str, Any]]:
    """At most so many rows, shared evenly: no pair hides behind another."""
    taken: dict[object, int] = {}
    pairs = [row["pair"] if "pair" in row else row.get("pairs") for row in rows]
    share = max(most // max(len(set(pairs)), 1), 3)
    kept = []
    for pair, row in zip(pairs, rows, strict=True):
        taken[pair] = taken.get(pair, 0) + 1
        if taken[pair] <= share:
            kept.append(row)
    return kept


def is_telling(basis: object) -> bool:
    """Whether what a verdict rests on is more than p and the bounds that stand beside it."""
    return basis not in (None, "p", "bounds", "p and bounds", "same figures")


def indented(row: Mapping[str, Any]) -> str:
    """An item of the reconciliation under its parent."""
    item = str(row["item"]).removeprefix(f"{row['parent']}:")
    return "  " * int(row["level"]) + item


def sentences(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The verdict of each pair in words."""
    for row in rows:
        n = f"n = {row['base_n']} and {row['new_n']}"
        spread = f"p = {row['p_value']:.2g}{_basis(row['basis'])}, {n}"
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
            share = row["carrier_ns"] / row["delta_ns"] if row["delta_ns"] else 1.0
            part = "It" if share >= 0.9 else "Most of it" if share > 0.5 else "The largest part"
            text += f" {part} lies in {row['carrier']}, {signed(row['carrier_ns'])}"
            if row["inside"]:
                text += f", and there in {row['inside']}, {signed(row['inside_ns'])}"
            text += "."
        if row["between_ns"] is not None:
            text += (
                f" From start to start it takes {humanize.duration(row['base_period_ns'])}, then "
                f"{humanize.duration(row['new_period_ns'])}: {signed(row['between_ns'])} lie "
                "between iterations."
            )
        if row["outliers_ns"] is not None:
            means = row["new_mean_ns"] - row["base_mean_ns"]
            text += (
                f" By means it is {signed(means)} ({humanize.duration(row['base_mean_ns'])}, then "
                f"{humanize.duration(row['new_mean_ns'])}), which medians do not see: "
                f"{row['base_outliers']} of {row['base_n']} iterations, then "
                f"{row['new_outliers']} of {row['new_n']}, lie far from the others, and that adds "
                f"{signed(row['outliers_ns'])} to the mean."
            )
        if row["work_factor"] is not None:
            text += (
                " It is probably not the same amount of work: launches of kernels of several "
                f"classes have typically {row['work_factor']:.3g} times the threads."
            )
        if row["label"]:
            text += f" [{row['label']}]"
        yield text


def _basis(basis: str) -> str:
    """What has to be said beside p, so that it is not read as what decided."""
    on, _, drift = basis.partition(", ")
    told = " with neighbours alike (drift)" if drift else ""
    if on == "ranges far apart":
        return f"{told}, but the ranges lie far apart"
    return told


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
    found["recipes"] = [str(path) for path in options["recipes"]]
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


# Options of a history that say what is shown, and those that say how a trace is read.
_OF_SHOWING = ("metric", "form", "output", "limit")
_OF_ADDING = (
    "ranks", "partitions", "jobs", "anchor", "per_iteration", "skip_first", "skip_last",
    "iterations", "device", "window", "taxonomy", "cache",
)  # fmt: skip


def _check_given(given: Mapping[str, str], is_adding: bool) -> None:
    """Refuse what was given and would be ignored; `given` maps names to what they are called."""
    for name, option in given.items():
        if name == "params":
            raise UsageError("a history has no parameters", hint="leave --param out")
        if is_adding and name in _OF_SHOWING:
            raise UsageError(
                f"{option} has no effect with --add, which stores a run and shows nothing",
                hint="leave it out, and ask for the history in a second call",
            )
        if not is_adding and name in _OF_ADDING:
            raise UsageError(
                f"{option} says how a trace is read, and has no effect without --add",
                hint="leave it out, or --add a trace",
            )


def show_history(path: Path, traces: Sequence[Path], options: Mapping[str, Any], warn: Warn) -> int:
    """Append the runs of --add, or print how a metric developed."""
    given = history.labels(options["labels"])
    _check_given(options["given"], bool(traces))
    if traces:
        return _add(path, traces, given, options, warn)
    target: Path | None = options["output"]
    output.check_target(target, [path])
    found = history.read(path, options["metric"], given, engine_options(options), warn)
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
    if form == "table":
        report = dataclasses.replace(report, columns=marked(report.columns))
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
    history.check(path)
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
