"""The commands `report` and `timeline`: results that are files for people and viewers."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, Any

from nsys_sql import output
from nsys_sql.commands import Options, Warn, opened, parameters, progress, trace_facts
from nsys_sql.errors import AnswerError, InvariantError, NsysSqlError, UsageError, placed

_FORMATS = (".md", ".html", ".json")
_TIMELINES = (".json", ".json.gz", ".pftrace")
_DECIDING = (
    "anchor",
    "per_iteration",
    "skip_first",
    "skip_last",
    "iterations",
    "device",
    "window",
)
_BATCH = 10_000


def report(traces: Sequence[Path], options: Options, warn: Warn) -> int:
    """Write one report with a part for each trace; the worst exit code wins."""
    from nsys_sql import report as reports

    target: Path | None = options["output"]
    suffix = target.suffix.lower() if target else ".md"
    if suffix not in _FORMATS:
        raise UsageError(f"{target} is no kind of report", "name it .md, .html or .json")
    output.check_target(target, traces)
    given = parameters(options["params"])
    own = dict(given)
    if options.get("mfu") is not None:
        given["mfu"] = str(options["mfu"])
    chosen = {name: options[name] for name in _DECIDING} | own
    parts, worst = [], 0
    for trace in traces:
        try:
            with progress(options) as line, opened(trace, options, warn, keep_steps=False) as model:
                about = line.about if line is not None else _nobody
                made = reports.part(model, trace_facts(model), chosen, given, about)
        except NsysSqlError as error:
            if len(traces) == 1:
                raise
            worst = max(worst, error.exit_code)
            warn(f"Error: {placed(trace, error.told)}")
            continue
        parts.append(made)
        if made.failure is not None:
            worst = max(worst, AnswerError.exit_code)
            warn(f"Error: {placed(trace, str(made.failure))}")
        if made.is_failed:
            worst = max(worst, InvariantError.exit_code)
    if parts:
        output.write_text(_rendered(parts, suffix), target)
    return worst


def _rendered(parts: Sequence[Any], suffix: str) -> str:
    from nsys_sql import report_html, report_text

    if suffix == ".html":
        return report_html.html(parts)
    return report_text.json_text(parts) if suffix == ".json" else report_text.markdown(parts)


def _nobody(_: str) -> None:
    """Told to nobody."""


def timeline(trace: Path, options: Options, warn: Warn) -> int:
    """Write the derived intervals for a trace viewer, row by row."""
    target: Path = options["output"]
    kind = next((s for s in _TIMELINES if target.name.lower().endswith(s)), None)
    if kind is None:
        raise UsageError(f"{target} is no timeline", "name it .json, .json.gz or .pftrace")
    write = _write_protobuf() if kind == ".pftrace" else _write_json
    output.check_target(target, [trace])
    given = parameters(options["params"])
    with opened(trace, options, warn) as model:
        from nsys_sql import tracks

        own = tracks.wanted(model, warn)
        theirs = {param.name for each in own for param in each.params}
        known = model.planner.parameters("trace-events")
        plain = {k: v for k, v in given.items() if k in known or k not in theirs}
        relation = model.run("trace-events", **plain)
        added = list(tracks.rows(model, own, given, warn))
        shown = relation.project("*") if kind == ".pftrace" else relation.project("event")
        rows = chain(_rows(shown), added)
        given_shift = {}
        if kind == ".pftrace" and (first := _first(relation, added)) < 0:
            # its times are unsigned, and those of odd rows go back behind the start of the session
            given_shift = {"shift": -first}
            warn(f"Warning: {target.name} holds no times before 0: all are {-first} ns later there")
        with output.binary(target) as path, _opened_for(path, kind) as file:
            write(rows, file, **given_shift)
        failed = [check for check in model.checks if check.status == "fail"]
    for check in failed:
        warn(f"FAIL {check.recipe} {check.name}: {check.detail}")
    return InvariantError.exit_code if failed else 0


def _first(relation: Any, added: Sequence[tuple[Any, ...]]) -> int:
    """When the first event of a timeline starts."""
    found = [row[3] for row in added if row[3] is not None]
    least = relation.aggregate("min(start_ns)").fetchone()
    return int(min((*found, *filter(None, least or ())), default=0))


def _rows(relation: Any) -> Iterator[tuple[Any, ...]]:
    """The rows of a relation, a batch at a time."""
    while batch := relation.fetchmany(_BATCH):
        yield from batch


@contextmanager
def _opened_for(path: Path, kind: str) -> Iterator[IO[bytes]]:
    with path.open("wb") as raw:
        if kind != ".json.gz":
            yield raw
            return
        # without name and time, so that the same trace gives the same bytes
        with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0, compresslevel=5) as packed:
            yield packed  # type: ignore[misc]


def _write_json(rows: Iterator[tuple[Any, ...]], file: IO[bytes]) -> None:
    """The array form of the trace event format, one event a line."""
    before = b'{"displayTimeUnit":"ms","traceEvents":[\n'
    for *_, event in rows:
        file.write(before + event.encode("utf-8", "replace"))
        before = b",\n"
    file.write(b"\n]}\n" if before == b",\n" else before + b"]}\n")


def _write_protobuf() -> Callable[..., None]:
    """The writer of Perfetto's own format, or a usage error without its package."""
    try:
        from nsys_sql import perfetto_trace
    except ImportError as error:
        raise UsageError(
            "a .pftrace needs the package perfetto",
            "pip install 'nsys-sql[perfetto]', or write .json.gz, which Perfetto opens as well",
        ) from error
    return perfetto_trace.write
