"""What `nsys-sql survey` does once its options are read. It returns an exit code."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Container, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nsys_sql
from nsys_sql import (
    bulk,
    cache,
    commands,
    formats,
    output,
    partition,
    ranks,
    render,
    source,
    survey,
    tasks,
    userfacts,
)
from nsys_sql.across import Across, Named
from nsys_sql.catalog import SqlFile
from nsys_sql.errors import (
    AnswerError,
    InputError,
    InvariantError,
    NsysSqlError,
    UsageError,
    placed,
)
from nsys_sql.formats import Report
from nsys_sql.options import Options
from nsys_sql.partition import Partition
from nsys_sql.survey import Survey
from nsys_sql.tasks import Failure, Outcome

if TYPE_CHECKING:
    from nsys_sql.progress import Line
    from nsys_sql.ranks import RankMap

Warn = Callable[[str], None]
# What a terminal shows unless asked; the table of a person leaves out some columns of the survey.
_SHOWN = ("survey", "verdict", "groups", "representatives", "alignment", "collectives", "unmatched")
_NARROW = ("comm_exposed_ms", "launch_starved_ms", "fingerprint", "gpu", "device")
_IF_USED = ("transport_busy_ms", "dispatch_busy_ms")


def run(traces: Sequence[Path], options: Mapping[str, Any], warn: Warn) -> int:
    """Survey the ranks of the traces, or write a mapping to fill in."""
    output.check_target(options["output"], traces)
    mapping = ranks.read(options["ranks"]) if options["ranks"] is not None else ranks.RankMap()
    output.check_target(options["output"], mapping.traces)
    model_options = engine_options(options)
    own = userfacts.asked(model_options.recipes, survey.RESULTS, warn)
    chosen = _chosen(options, tuple(file.name for file in own))
    params = cross_parameters(options, model_options, survey.files().parameters())
    survey.files().values(params, Survey.title)  # before traces are read
    if options["from_parquet"] is not None:
        outcomes = _from_parquet(options["from_parquet"], traces)
    else:
        outcomes = _collect(traces or mapping.traces, model_options, options, warn)
    parts = [each.partition for each in outcomes if each.partition is not None]
    failures = [(each, each.failure) for each in outcomes if each.failure is not None]
    for each, failure in failures:
        hint = f"; {failure.hint}" if failure.hint else ""
        if parts:
            warn(f"Error: {placed(each.trace, failure.message)}{hint}")
    if not parts:
        raise _error(outcomes, failures)
    with Survey(
        parts,
        mapping,
        failed=len(failures),
        recipes=own,
        params=params,
        threads=options["threads"],
        memory_limit=options["memory_limit"],
        temp_directory=model_options.temp_directory,
    ) as opened:
        if options["init"]:
            text = _skeleton(opened, options, failures)
            output.write_text(text, options["output"])
            return _exit_code(failures, ())
        results = opened.results(answered(chosen, own, opened, options))
        notes = [*opened.notes]
        if not options["quiet"]:
            for note in notes:
                warn(f"Warning: {note}")
        if options["form"] == "parquet":
            _write_parquet(opened, results[0].name, options)
        else:
            output.write_text(_render(opened, outcomes, results, notes, options), options["output"])
    return _exit_code(failures, results)


def _chosen(options: Mapping[str, Any], own: tuple[str, ...]) -> tuple[str, ...]:
    """Which results are wanted: all that read as tables, or those asked for."""
    given = wanted(options, "a survey", (*survey.RESULTS, *own))
    form = options["form"]
    if form in ("csv", "parquet"):
        if len(given) > 1:
            raise UsageError(f"{form} holds one result", hint="name one with --result")
        return given or ("survey",)
    return given or (*(_SHOWN if form == "table" else survey.RESULTS), *own)


def wanted(options: Mapping[str, Any], title: str, known: Sequence[str]) -> tuple[str, ...]:
    """The results that --result names; recipes are called so with `_` as well."""
    found = []
    for given in options["results"]:
        name = given if given in known else given.replace("_", "-")
        if name not in known:
            raise UsageError(
                f"{title} has no result {given!r}", hint=f"results: {', '.join(known)}"
            )
        found.append(name)
    return tuple(found)


def answered(
    chosen: Sequence[str], own: Sequence[SqlFile], opened: Across, options: Mapping[str, Any]
) -> list[str]:
    """The chosen results less recipes that no trace answers: an error for one that was named."""
    lost = {file.name for file in own} - opened.own.keys()
    for name in lost.intersection(wanted(options, opened.title, chosen)):
        told = next(note for note in opened.notes if note.startswith(f"recipe {name} is without"))
        raise AnswerError(told)
    return [name for name in chosen if name not in lost]


def cross_parameters(
    options: Mapping[str, Any], model_options: Options, known: Container[str]
) -> dict[str, str]:
    """The parameters that are not those of a recipe of the user's alone."""
    return {
        name: value
        for name, value in commands.parameters(options["params"]).items()
        if name in known or name not in model_options.params
    }


def engine_options(options: Mapping[str, Any]) -> Options:
    """The options with which each trace is read."""
    sources = userfacts.own_sources(options.get("recipes", ()))
    return Options(
        anchor=options["anchor"],
        per_iteration=options["per_iteration"],
        skip_first=options["skip_first"],
        skip_last=options["skip_last"],
        iterations=options["iterations"],
        device=options["device"],
        window=options["window"],
        taxonomy=tuple(os.fspath(path) for path in options["taxonomy"]),
        threads=options["threads"],
        memory_limit=options["memory_limit"],
        temp_directory=options["temp_directory"] and os.fspath(options["temp_directory"]),
        cache=options.get("cache", False),
        recipes=sources,
        params=userfacts.own_parameters(sources, commands.parameters(options["params"])),
    ).check()


# ---------------------------------------------------------------- partitions


def folder_for(given: Path | None) -> Path:
    """Where partitions are kept: the folder given, else the user's cache, else a temporary one."""
    if given is not None:
        return output.engine_path(given)
    try:
        folder = cache.partitions()
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except (OSError, RuntimeError):
        pass
    return source.private_folder(None)


def _collect(
    traces: Sequence[Path], model_options: Options, options: Mapping[str, Any], warn: Warn
) -> list[Outcome]:
    unique = distinct(traces, options, warn)
    if not unique:
        raise UsageError("there is no trace to survey", hint="name traces, or a --ranks FILE")
    folder = folder_for(options["partitions"])
    with commands.progress(options) as line:
        outcomes = tasks.collect(
            unique,
            folder,
            model_options,
            jobs=options["jobs"],
            scheduler=options["scheduler"],
            progress=counting(line, len(unique)),
        )
    resumed = sum(each.is_resumed for each in outcomes)
    if resumed and not options["quiet"]:
        warn(f"{resumed} of {len(outcomes)} traces were read before and are unchanged")
    return outcomes


def distinct(traces: Sequence[Path], options: Mapping[str, Any], warn: Warn) -> list[Path]:
    """Each trace once, by whatever name it is given; that is told."""
    found: dict[str, Path] = {}
    for trace in traces:
        first = found.setdefault(source.real(trace), trace)
        if first is not trace and not options["quiet"]:
            same = "" if first == trace else f", as {first} too"
            warn(f"Warning: {trace} is given twice{same}, and counts once")
    return list(found.values())


def counting(line: Line | None, total: int, noun: str = "traces") -> tasks.Progress | None:
    """Have a line count the traces that are done, with the time that the others may take."""
    if line is None:
        return None
    began, first = time.monotonic(), list[int]()
    line.about(f"0/{total} {noun}")

    def count(done: int, total: int, _: str) -> None:
        if not first:
            first.append(done - 1)
        left = (time.monotonic() - began) / (done - first[0]) * (total - done)
        about = f", about {left:.0f} s left" if done < total else ""
        line.about(f"{done}/{total} {noun}{about}")

    return count


def _from_parquet(folder: Path, traces: Sequence[Path]) -> list[Outcome]:
    """The finished partitions of a folder, of each trace the newest."""
    newest: dict[str, Partition] = {}
    for each in sorted(
        partition.listed(folder), key=lambda p: (p.path / "manifest.json").stat().st_mtime_ns
    ):
        newest[each.trace] = each
    if traces:
        wanted = {os.path.abspath(trace): trace for trace in traces}  # noqa: PTH100
        missing = [trace for path, trace in wanted.items() if path not in newest]
        newest = {path: each for path, each in newest.items() if path in wanted}
        gone = [
            Outcome(trace, None, Failure(f"{folder} holds no partition of it", None, 3))
            for trace in missing
        ]
    else:
        gone = []
    if not newest:
        raise InputError(
            f"{folder} holds no finished partition" + (" of these traces" if traces else ""),
            hint="survey the traces with --partitions first",
        )
    found = [Outcome(Path(path), newest[path], is_resumed=True) for path in sorted(newest)]
    if traces:
        order = {os.path.abspath(trace): at for at, trace in enumerate(traces)}  # noqa: PTH100
        found.sort(key=lambda outcome: order[str(outcome.trace)])
    return [*found, *gone]


def _error(
    outcomes: Sequence[Outcome], failures: Sequence[tuple[Outcome, Failure]]
) -> NsysSqlError:
    """The error of a survey in which no trace could be used."""
    _, first = failures[0]
    kind = {2: UsageError, 4: AnswerError}.get(first.exit_code, InputError)
    more = f" ({len(outcomes)} traces, none could be used)" if len(outcomes) > 1 else ""
    return kind(first.message + more, hint=first.hint)


# ---------------------------------------------------------------- what is printed


def _trace_facts(opened: Survey, outcomes: Sequence[Outcome]) -> list[dict[str, object]]:
    held: dict[str, list[dict[str, object]]] = {}
    for member in opened.members:
        held.setdefault(member.part, []).append({"rank": member.rank, "device": member.device})
    facts = []
    for each in outcomes:
        found: dict[str, object] = {"path": str(each.trace)}
        if each.partition is not None:
            told = each.partition.manifest["trace"]
            names = ("product_version", "schema_version", "capture_version", "warnings")
            found |= {name: told.get(name) for name in names}
            found["ranks"] = held.get(each.partition.key, [])
            found["partition"] = each.partition.key
        if each.failure is not None:
            found["error"] = {
                "message": each.failure.message,
                "hint": each.failure.hint,
                "exit_code": each.failure.exit_code,
            }
        facts.append(found)
    return facts


def _parameters(mapping: RankMap, options: Mapping[str, Any]) -> dict[str, object]:
    names = ("anchor", "per_iteration", "skip_first", "skip_last", "iterations", "device", "window")
    found: dict[str, object] = {name: options[name] for name in names}
    found["taxonomy"] = [str(path) for path in options["taxonomy"]]
    found["recipes"] = [str(path) for path in options["recipes"]]
    found["ranks"] = str(mapping.path) if mapping.path is not None else None
    given = commands.parameters(options["params"])
    return found | {
        name: given.get(name, param.default) for name, param in survey.files().parameters().items()
    }


def _render(
    opened: Survey,
    outcomes: Sequence[Outcome],
    results: Sequence[Named],
    notes: Sequence[str],
    options: Mapping[str, Any],
) -> str:
    form = options["form"]
    facts = _trace_facts(opened, outcomes)
    reports = [_report(each, facts, notes) for each in results]
    if form == "json":
        return _json(reports, results, facts, notes, _parameters(opened.mapping, options))
    if form in ("md", "html"):
        from nsys_sql import survey_report

        return survey_report.render(
            results, form, facts, notes, _parameters(opened.mapping, options)
        )
    if form == "csv":
        return formats.csv_text(reports[:1], with_trace=False)
    if form == "markdown":
        return "\n".join(formats.markdown(report) for report in reports)
    left = [name for name in survey.RESULTS if name not in {each.name for each in results}]
    text = render.render(
        [
            _narrow(dataclasses.replace(report, rows=each.readable().rows))
            for each, report in zip(results, reports, strict=True)
        ],
        "table",
        width=output.width(),
        limit=options["limit"],
    )
    if not options["results"] and left:
        text += f"\nFurther results: --result {', '.join(left)}; --format json holds all.\n"
    return text


def _narrow(report: Report) -> Report:
    """The survey table without the columns that a terminal has no room for."""
    if report.recipe != "survey":
        return report
    names = [column.name for column in report.columns]
    used = {name for at, name in enumerate(names) if any(row[at] for row in report.rows)}
    kept = [
        at
        for at, name in enumerate(names)
        if name not in _NARROW and (name in used or name not in _IF_USED)
    ]
    left = ", ".join(name for at, name in enumerate(names) if at not in kept)
    return dataclasses.replace(
        report,
        columns=[report.columns[at] for at in kept],
        rows=[[row[at] for at in kept] for row in report.rows],
        notes=[*report.notes, f"columns not shown here, but in the other formats: {left}"],
    )


def _report(each: Named, facts: Sequence[Mapping[str, object]], notes: Sequence[str]) -> Report:
    is_first = each.name == "survey"
    used = sum("error" not in fact for fact in facts)
    title = "survey" if is_first else f"survey {each.name}"
    return Report(
        title,
        nsys_sql.__version__,
        {"path": f"{used} of {len(facts)} traces" if is_first else ""},
        question=each.question,
        columns=each.columns,
        rows=each.rows,
        checks=each.checks,
        notes=notes if is_first else (),
    )


def _json(
    reports: Sequence[Report],
    results: Sequence[Named],
    facts: Sequence[Mapping[str, object]],
    notes: Sequence[str],
    parameters: Mapping[str, object],
) -> str:
    """The usual envelope with `traces`, and the further results by name."""
    envelopes = [formats.envelope(report) for report in reports]
    found: dict[str, object] = {
        "recipe": "survey",
        "nsys_sql_version": nsys_sql.__version__,
        "traces": list(facts),
        "parameters": dict(parameters),
        "result": results[0].name,
        "columns": envelopes[0]["columns"],
        "rows": envelopes[0]["rows"],
        "checks": [
            {"name": check.name, "status": check.status, "detail": check.detail}
            for each in results
            for check in each.checks
        ],
        "notes": list(notes),
    }
    if len(results) > 1:
        found["results"] = {
            each.name: {
                "question": each.question,
                "columns": envelope["columns"],
                "rows": envelope["rows"],
            }
            for each, envelope in zip(results[1:], envelopes[1:], strict=True)
        }
    return formats.object_text(found) + "\n"


def _write_parquet(opened: Survey, name: str, options: Mapping[str, Any]) -> None:
    with output.binary(options["output"]) as path:
        bulk.write_parquet(opened.con.table(userfacts.table(name)), path)


def _skeleton(
    opened: Survey, options: Mapping[str, Any], failures: Sequence[tuple[Outcome, Failure]]
) -> str:
    target: Path | None = options["output"]
    base = target.resolve().parent if target is not None else Path.cwd()
    hosts: dict[str, str] = {}
    if options["show_host"]:
        from nsys_sql import session

        for each in opened.parts:
            with session.open(each.trace) as model:
                if (name := model.host()) is not None:
                    hosts[each.key] = name
    failed = [(str(each.trace), failure.message) for each, failure in failures]
    return opened.skeleton(base, hosts, failed)


def _exit_code(failures: Sequence[tuple[Outcome, Failure]], results: Sequence[Named]) -> int:
    codes = [failure.exit_code for _, failure in failures]
    if any(check.status == "fail" for each in results for check in each.checks):
        codes.append(InvariantError.exit_code)
    return max(codes, default=0)
