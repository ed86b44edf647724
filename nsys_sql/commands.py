"""What the commands do once their options are read. Each returns an exit code."""

from __future__ import annotations

import sqlite3
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nsys_sql
from nsys_sql import formats, humanize, interrupts, output, render, resources
from nsys_sql.catalog import Column, SqlFile
from nsys_sql.docs import recipes_in_order
from nsys_sql.errors import (
    AnswerError,
    InputError,
    InvariantError,
    NsysSqlError,
    UsageError,
    placed,
)
from nsys_sql.formats import Report
from nsys_sql.userfiles import full_catalog

if TYPE_CHECKING:
    import duckdb

    from nsys_sql.progress import Line
    from nsys_sql.session import Model

Warn = Callable[[str], None]
_INTERRUPT_S = 0.05
_EXAMPLE = "for example 'SELECT count(*) FROM nsys.kernel'"
Options = Mapping[str, Any]
_MODEL_OPTIONS = (
    "anchor",
    "per_iteration",
    "skip_first",
    "skip_last",
    "iterations",
    "device",
    "window",
    "taxonomy",
    "reference_steps",
    "callsites",
    "metrics_from",
    "threads",
    "memory_limit",
    "temp_directory",
    "recipes",
    "cache",
)


def model_options(options: Options) -> dict[str, Any]:
    """Those of a command's options that nsys_sql.open takes."""
    return {name: options[name] for name in _MODEL_OPTIONS if name in options}


@contextmanager
def opened(
    trace: Path, options: Options, warn: Warn, keep_steps: bool = True, is_limited: bool = True
) -> Iterator[Model]:
    """The model of one trace; what was odd about the file is said when the work is done.

    The block may take as long as --timeout says, unless it sees to that itself.
    """
    with progress(options):
        model = nsys_sql.open(trace, keep_steps=keep_steps, **model_options(options))
        with model, _limited(model, options.get("timeout") if is_limited else None):
            if options.get("memory_limit") is None:
                from nsys_sql.attached import keep_blocks

                keep_blocks(model.con)
            yield model
            texts = () if options["quiet"] else model.trace.warnings
    for text in texts:
        warn(f"Warning: {trace}: {text}")


def progress(options: Options) -> AbstractContextManager[Line | None]:
    """Say how far a block is that takes long; see nsys_sql.progress."""
    from nsys_sql.progress import shown

    return shown(options.get("progress"), options["quiet"])


@contextmanager
def _limited(model: Model, seconds: float | None) -> Iterator[None]:
    """End the block with an error when it takes longer; only queries can be interrupted."""
    if seconds is None:
        yield
        return
    is_done, is_late = threading.Event(), threading.Event()
    late = AnswerError(
        f"there is no answer after {seconds:g} s",
        hint="raise --timeout, or look at less: --iterations, --device",
    )

    def watch() -> None:
        if is_done.wait(min(seconds, threading.TIMEOUT_MAX)):
            return
        is_late.set()
        began = time.monotonic()
        while not is_done.wait(_INTERRUPT_S):  # between two queries there is nothing to interrupt
            model.con.interrupt()
            if interrupts.is_program() and time.monotonic() - began > interrupts.GRACE_S:
                interrupts.end_hard(late.exit_code, f"Error: {late.told}\n")

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    except Exception as error:
        if is_late.is_set():
            raise late from error
        raise
    finally:
        is_done.set()
        watcher.join()


def parameters(given: Sequence[str]) -> dict[str, str]:
    """`NAME=VALUE` texts as a mapping; the recipe's header says what the values mean."""
    found = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise UsageError(f"--param {text!r} is not NAME=VALUE")
        if (known := name.replace("-", "_")) in found:
            raise UsageError(f"--param {known} is given twice", "give one value")
        found[known] = value
    return found


# ---------------------------------------------------------------- run and sql


def run(recipe: str, traces: Sequence[Path], options: Options, warn: Warn) -> int:
    """Answer a recipe from each trace; the worst exit code wins, and no trace loses another's."""
    full_catalog(options.get("recipes", ())).recipe(recipe)
    output.check_target(options["output"], traces)
    if options["form"] == "parquet" and len(traces) > 1:
        raise UsageError("parquet holds one result", "name one trace, or use --format csv")
    codes: list[int] = []
    with closing(_answers(recipe, traces, options, warn, codes)) as reports:
        if options["form"] == "parquet":
            list(reports)  # it writes by itself
        else:
            _print(reports, options, len(traces) > 1)
    return max(codes)


def _answers(
    recipe: str, traces: Sequence[Path], options: Options, warn: Warn, codes: list[int]
) -> Generator[Report, None, None]:
    """The report of each trace, with its exit code in `codes`.

    The rows of one are to be written before the next one is asked for: its model is open until
    then.
    """
    for trace in traces:
        try:
            for report in _answer(recipe, trace, options, warn, len(traces) > 1):
                codes.append(_exit_code(report))
                yield report
        except NsysSqlError as error:
            if len(traces) == 1:
                raise
            warn(f"Error: {placed(trace, error.told)}")
            failure = {"message": str(error), "hint": error.hint, "exit_code": error.exit_code}
            report = Report(recipe, nsys_sql.__version__, {"path": str(trace)}, failure=failure)
            codes.append(_exit_code(report))
            yield report


def _answer(
    recipe: str, trace: Path, options: Options, warn: Warn, with_trace: bool
) -> Iterator[Report]:
    """The one report of a trace."""
    from nsys_sql import bulk

    given = parameters(options["params"])

    def complain() -> None:
        if options["form"] in ("csv", "parquet") and not options["quiet"]:
            for check in report.checks:
                if check.status != "ok":
                    warn(f"{check.status.upper()} {check.name}: {check.detail}")

    with opened(trace, options, warn, keep_steps=False, is_limited=False) as model:
        with _limited(model, options.get("timeout")):
            result = model.outcome(recipe, **given)
            with _parquet(options) as target:
                if target:
                    bulk.write_parquet(model.run(recipe, **given), target)
            report = Report(
                result.recipe.name,
                nsys_sql.__version__,
                trace_facts(model),
                question=result.recipe.question,
                parameters=_effective(options, result.recipe, given),
                columns=result.columns,
                checks=result.checks,
                notes=result.notes,
            )
            report = _filled(report, model.con, f"temp.{result.table}", options, with_trace)
        if report.lines is not None:  # they are read from the model
            complain()
            yield report
            return
    complain()
    yield report


def _filled(
    report: Report,
    con: duckdb.DuckDBPyConnection,
    table: str,
    options: Options,
    with_trace: bool,
) -> Report:
    """The report with its rows: of many only what will be shown, or as text while it is written."""
    from nsys_sql import bulk

    form, limit = options["form"], options["limit"]
    if form == "parquet":
        return report
    count = con.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0]
    shown = f"SELECT * FROM {table}"
    if count > bulk.MANY:
        if form in bulk.FORMS:
            lead = str(report.trace["path"]) if with_trace else None
            return replace(report, lines=bulk.of_table(con, table, report.columns, form, lead))
        if form == "table" and 0 < limit < count:
            rows = con.execute(f"{shown} LIMIT {limit}").fetchall()
            return replace(report, rows=rows, left_out=count - limit)
    return replace(report, rows=con.execute(shown).fetchall())


@contextmanager
def _parquet(options: Options) -> Iterator[Path | None]:
    """The path to write Parquet to, or None for the other formats."""
    if options["form"] != "parquet":
        yield None
        return
    with output.binary(options["output"]) as path:
        yield path


def trace_facts(model: Model) -> dict[str, object]:
    """What an envelope says about its trace."""
    trace = model.trace
    return {
        "path": str(trace.path),
        "product_version": trace.product_version,
        "schema_version": trace.schema_version,
        "capture_version": trace.capture_version,
        "warnings": list(trace.warnings),
    }


def _effective(options: Options, recipe: SqlFile, given: Mapping[str, str]) -> dict[str, object]:
    """The options that decide the numbers, then the recipe's own parameters."""
    deciding = _MODEL_OPTIONS[: _MODEL_OPTIONS.index("threads")]
    inputs = ("reference_steps", "callsites", "metrics_from")
    found = {name: options[name] for name in deciding if name not in inputs}
    found |= {name: str(options[name]) for name in inputs if options.get(name) is not None}
    found["taxonomy"] = [str(path) for path in options["taxonomy"]]
    return found | {param.name: param.default for param in recipe.params} | dict(given)


def _exit_code(report: Report) -> int:
    if report.failure is not None:
        return int(str(report.failure["exit_code"]))
    return InvariantError.exit_code if any(c.status == "fail" for c in report.checks) else 0


def _print(reports: Iterable[Report], options: Options, is_several: bool) -> None:
    pieces = render.parts(
        reports, options["form"], is_several, width=output.width(), limit=options["limit"]
    )
    first = next(pieces, None)  # what has no answer touches no file
    if first is not None:
        output.write_parts(chain([first], pieces), options["output"])


def sql(trace: Path, query: str, options: Options, warn: Warn) -> int:
    """Answer one ad-hoc query over the canonical views."""
    from nsys_sql import bulk

    output.check_target(options["output"], [trace])
    given, form = parameters(options["params"]), options["form"]
    with opened(trace, options, warn, is_limited=False) as model:
        with _limited(model, options.get("timeout")):
            with _parquet(options) as target:
                relation = model.query(query, [target] if target else [], **given)
                if target:
                    bulk.write_parquet(relation, target)
                    return 0
            columns = [
                Column(name, str(kind), humanize.unit_of(name), "")
                for name, kind in zip(relation.columns, relation.types, strict=True)
            ]
            batches = model.batches(relation, bulk.MANY)
            rows = next(batches, [])
            is_long = len(rows) == bulk.MANY and form in bulk.FORMS
            if not is_long:
                rows = [*rows, *chain.from_iterable(batches)]
        report = Report("sql", nsys_sql.__version__, trace_facts(model), columns=columns)
        if is_long:  # the rest is read from the model while it is written
            lines = formats.blocks(columns, chain([rows], batches), form)
            _print([replace(report, lines=lines)], options, False)
            return 0
    _print([replace(report, rows=rows)], options, False)
    return 0


def query_text(query: str | None, file: Path | None) -> str:
    """The query itself, or the text of a file or of standard input (`-`)."""
    from nsys_sql.shell import is_blank

    if file is not None and str(file) != "-":
        try:
            text = file.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError:
            raise UsageError(f"{file} is no text in UTF-8") from None
        except OSError as error:
            raise InputError(f"cannot read {file}: {error}") from error
        if is_blank(text):
            raise UsageError(f"the query is empty: {file} holds none", _EXAMPLE)
        return text
    if query is not None and query != "-":
        if is_blank(query):
            raise UsageError("the query is empty", _EXAMPLE)
        return query
    text = ""
    stdin = sys.stdin  # None where the caller closed it
    if stdin is not None and (query == "-" or file is not None or not stdin.isatty()):
        with suppress(OSError):
            text = typed(stdin.read)
    if is_blank(text):
        raise UsageError("there is no query", "give one, -f FILE.sql, or one on standard input")
    return text


def typed(read: Callable[[], str]) -> str:
    """What `read` takes from standard input; UsageError where its bytes are no text."""
    try:
        text = read()
        text.encode("utf-8")  # Python may have let them pass as surrogates
    except UnicodeError:
        raise UsageError("what stands on standard input is no text in UTF-8") from None
    return text


def show(recipe: str, trace: Path, options: Options, warn: Warn) -> int:
    """Print the script that `run` executes."""
    full_catalog(options.get("recipes", ())).recipe(recipe)
    output.check_target(options["output"], [trace])
    with opened(trace, options, warn) as model:
        script = model.script(recipe, **parameters(options["params"]))
    output.write_text(script, options["output"])
    return 0


def inspect(trace: Path, options: Options, warn: Warn) -> int:
    """Print what a trace holds, and which recipes it can answer."""
    if options["form"] not in ("table", "json"):
        raise UsageError("inspect prints --format table or json")
    from nsys_sql import inspection  # it needs sqlglot, and list must not

    output.check_target(options["output"], [trace])
    with opened(trace, {**options, "quiet": True}, warn) as model:
        found = inspection.sections(model)
        facts = trace_facts(model)
    if options["form"] == "json":
        text = inspection.json_text(nsys_sql.__version__, facts, found)
    else:
        text = inspection.text(facts, found, output.width(), options["limit"])
    output.write_text(text, options["output"])
    return 0


# ---------------------------------------------------------------- list, describe, example


def list_recipes(form: str, sources: Sequence[Path], warn: Warn) -> int:
    """Print every recipe with its question."""
    catalog = full_catalog(sources)
    for problem in catalog.problems:
        warn(f"Warning: {problem}")
    recipes = recipes_in_order(catalog)
    if form == "json":
        items = [{"recipe": r.name, "question": r.question} for r in recipes]
        output.write_text("[\n" + ",\n".join(map(formats.dumps, items)) + "\n]\n", None)
        return 0
    wide = max((len(recipe.name) for recipe in recipes), default=0)
    lines = [f"{each.name.ljust(wide)}  {humanize.clean(each.question)}\n" for each in recipes]
    output.write_text("".join(lines), None)
    return 0


def describe(name: str, sources: Sequence[Path] = ()) -> int:
    """Print what a recipe's header declares."""
    catalog = full_catalog(sources)
    recipe = catalog.recipe(name)
    width = output.width()
    parts = [f"{recipe.name} - {recipe.question}", recipe.prose]
    parts.append(f"One row: {recipe.grain.removeprefix('one row ')}" if recipe.grain else "")
    parts.append(_section("Needs in the trace", [[" or ".join(n)] for n in recipe.needs], width))
    reads = ", ".join(f"nsys.{read}" for read in recipe.reads)
    parts.append(_section("Reads", [[reads]] if reads else [], width))
    params = [
        [p.name, p.type, f"= {p.default}", p.range.text if p.range else "", p.description]
        for p in recipe.params
    ]
    parts.append(_section("Parameters (--param NAME=VALUE)", params, width))
    columns = [[c.name, c.type, c.unit, c.description] for c in recipe.columns]
    parts.append(_section("Columns", columns, width))
    checks = [[i.name, "must hold", i.expression] for i in recipe.invariants]
    checks += [[i.name, "warning", i.expression] for i in recipe.warnings]
    for audit in catalog.entry(recipe.name).invariants:
        checks.append([audit, "must hold", catalog.invariants[audit].question])
    parts.append(_section("Checks", checks, width))
    parts.append(f"Compared over traces by: {', '.join(recipe.key)}" if recipe.key else "")
    pitfalls = ", ".join(map(str, recipe.pitfalls))
    parts.append(f"Pitfalls it avoids: {pitfalls}" if pitfalls else "")
    parts.append(f"Source: {recipe.label}")
    text = "\n\n".join(part for part in parts if part)
    output.write_text("".join(f"{humanize.clean(line)}\n" for line in text.split("\n")), None)
    return 0


def _section(title: str, rows: Sequence[Sequence[str]], width: int) -> str:
    """A title and aligned rows; the last cell of a row wraps under itself."""
    if not rows:
        return ""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    lines = [title]
    for row in rows:
        lead = "  " + "".join(f"{c.ljust(w)}  " for c, w in zip(row[:-1], widths, strict=True))
        lines.append(
            textwrap.fill(
                row[-1],
                max(width, len(lead) + 30),
                initial_indent=lead,
                subsequent_indent=" " * len(lead),
                break_long_words=False,
                break_on_hyphens=False,
            )
            or lead.rstrip()
        )
    return "\n".join(lines)


def example(target: Path, force: bool) -> int:
    """Build the shipped example trace into a new SQLite file."""
    output.check_target(target, [])
    if target.exists() and not force:
        raise UsageError(f"{target} exists", "name another file, or add --force")
    script = (resources.root() / "fixtures" / "example.sql").read_text(encoding="utf-8")
    with output.replacing(target) as scratch:
        connection = sqlite3.connect(scratch)
        try:
            connection.executescript(script)
            connection.commit()
        except sqlite3.Error as error:
            raise UsageError(f"cannot write {target}: {error}", "make room for it") from None
        finally:
            connection.close()
    return 0
