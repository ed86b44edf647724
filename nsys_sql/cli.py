"""The command line: options in, results to stdout, everything else to stderr, one exit code."""

from __future__ import annotations

import errno
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast

import click
from click.core import ParameterSource

import nsys_sql
from nsys_sql import interrupts
from nsys_sql.errors import NsysSqlError, UsageError, out_of_memory
from nsys_sql.render import FORMATS

Command = TypeVar("Command", bound=Callable[..., Any])


class _Path(click.Path):
    """A path; what cannot be one is a usage error like any other.

    An empty text would be the folder where we stand; it is a variable of a shell that was not set.
    """

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("it is empty, and no path", param, ctx)
        try:
            return super().convert(value, param, ctx)
        except ValueError as error:
            self.fail(f"{value!r} is no path: {error}", param, ctx)


class _Text(click.types.StringParamType):
    """Text: a command line can hold bytes that are none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        text = super().convert(value, param, ctx)
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            self.fail(f"{text!a} is no text in UTF-8", param, ctx)
        if "\0" in text:
            self.fail(f"{text!a} holds a NUL", param, ctx)
        return text


_WHOLE = re.compile(r"[+-]?[0-9]{1,30}")
_NUMBER = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf|nan)", re.IGNORECASE
)


def _is_written(value: Any, pattern: re.Pattern[str]) -> bool:
    """Whether a value is a number already, or one in the digits 0 to 9 alone.

    Python would also take `1_0`, blanks around a number, and the digits of other scripts.
    """
    return not isinstance(value, str) or pattern.fullmatch(value) is not None


class _Int(click.types.IntParamType):
    """A whole number."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not _is_written(value, _WHOLE):
            self.fail(f"{value!r} is no whole number", param, ctx)
        return super().convert(value, param, ctx)


class _Whole(click.IntRange):
    """A whole number in a range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not _is_written(value, _WHOLE):
            self.fail(f"{value!r} is no whole number", param, ctx)
        return super().convert(value, param, ctx)


class _Float(click.FloatRange):
    """A number in a range; NaN is in none, although no bound excludes it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not _is_written(value, _NUMBER):
            self.fail(f"{value!r} is no number", param, ctx)
        number = super().convert(value, param, ctx)
        if number != number:
            self.fail(f"{value} is no number", param, ctx)
        return number


_TRACE = _Path(path_type=Path, readable=False)  # what cannot be read is told when it is tried
_OUTPUT = _Path(path_type=Path)
_NO_ROOM = {getattr(errno, name, None) for name in ("ENOSPC", "EDQUOT", "EFBIG")} - {None}
# What the system says of a path that somebody named, where nothing met it before.
_NO_WAY = {
    getattr(errno, name, None)
    for name in ("EACCES", "EPERM", "ENAMETOOLONG", "ELOOP", "ENOTDIR", "EIO", "ESTALE", "EROFS")
} - {None}


class _Command(click.Command):
    """A command that says so where an option of one value is given twice: the last one counts."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        _, _, order = self.make_parser(ctx).parse_args(list(args))
        rest = super().parse_args(ctx, args)
        for param, times in Counter(order).items():
            is_flag = isinstance(param, click.Option) and param.is_flag and not param.secondary_opts
            if times == 1 or param.multiple or param.nargs == -1 or is_flag:
                continue
            if not ctx.params.get("quiet"):
                name = max(param.opts, key=len)
                warn(f"Warning: {name} is given {times} times, and the last one counts")
        return rest


class _CutOffError(Exception):
    """Something that Python read ended too early."""


class _Group(click.Group):
    command_class = _Command

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)  # in the order a newcomer meets them

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except EOFError as error:  # click would take it for Ctrl-D at a prompt: nothing asks here
            raise _CutOffError(str(error)) from error


@click.group(cls=_Group, invoke_without_command=True, context_settings={"max_content_width": 100})
@click.version_option(nsys_sql.__version__, prog_name="nsys-sql")
@click.pass_context
def cli(ctx: click.Context) -> int:
    """Where did the step go? SQL answers from Nsight Systems SQLite exports.

    \b
      nsys-sql example example.sqlite        a small trace to try things on
      nsys-sql run budget example.sqlite     where each iteration's time went
      nsys-sql list                          every question it answers
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
    return 0


def _options(*decorators: Callable[[Command], Command]) -> Callable[[Command], Command]:
    def decorate(function: Command) -> Command:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


def _named(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """Texts NAME=VALUE, refused before anything is done with them, or without them."""
    if given:
        from nsys_sql import commands

        commands.parameters(given)
    return given


_recipes_option = click.option(
    "--recipes",
    type=_Path(path_type=Path),
    multiple=True,
    metavar="DIR|FILE|NAME",
    envvar="NSYS_SQL_RECIPES",
    help="Recipes of your own, or of an installed package by name; else $NSYS_SQL_RECIPES. "
    "May be repeated.",
)
_no_recipes_option = click.option("--recipes", multiple=True, metavar="DIR|FILE|NAME", hidden=True)
with_model_options = _options(
    click.option(
        "--anchor",
        default="auto",
        show_default=True,
        metavar="KIND:PATTERN|auto",
        help="What marks an iteration: nvtx:, nccl: or kernel: and a text in which * matches any.",
    ),
    click.option(
        "--per-iteration",
        type=_Whole(min=1),
        default=1,
        show_default=True,
        metavar="K",
        help="Occurrences of a kernel: or nccl: anchor in one iteration.",
    ),
    click.option(
        "--skip-first",
        type=_Whole(min=0),
        default=0,
        show_default=True,
        metavar="N",
        help="Drop the first N iterations as warmup.",
    ),
    click.option(
        "--skip-last",
        type=_Whole(min=0),
        default=0,
        show_default=True,
        metavar="N",
        help="Drop the last N iterations as cooldown.",
    ),
    click.option("--iterations", metavar="A:B", help="Keep iterations A up to, not including, B."),
    click.option(
        "--device", type=_Int(), metavar="D", help="Report this device only; auto looks at all."
    ),
    click.option(
        "--window",
        type=click.Choice(["range", "device"]),
        default="range",
        show_default=True,
        help="An NVTX iteration as its range, or as the device work that was issued in it.",
    ),
    click.option(
        "--taxonomy",
        type=_Path(path_type=Path),
        multiple=True,
        metavar="FILE.yaml",
        help="Kernel classes of your own, tried before the built-in ones. May be repeated.",
    ),
    click.option(
        "--param",
        "params",
        multiple=True,
        callback=_named,
        metavar="NAME=VALUE",
        help="A parameter of the recipe (see describe). May be repeated.",
    ),
    click.option("--threads", type=_Whole(min=1), metavar="N", help="DuckDB threads."),
    click.option("--memory-limit", metavar="SIZE", help="DuckDB memory limit, for example 4GB."),
    click.option(
        "--temp-directory",
        type=_Path(path_type=Path),
        metavar="DIR",
        help="Where DuckDB spills what does not fit into memory.",
    ),
    click.option(
        "--cache/--no-cache",
        default=False,
        help="Read the trace once and keep what was made of it in the user's cache.",
    ),
    click.option(
        "--progress/--no-progress",
        default=None,
        help="Say on standard error how far it is; without either, on a terminal only.",
    ),
    click.option("--quiet", is_flag=True, help="No warnings on standard error."),
)
_timeout_option = click.option(
    "--timeout",
    type=_Float(min=0, min_open=True),
    metavar="SECONDS",
    help="End with exit code 4 if there is no answer after so long.",
)
_output_options = _options(
    click.option(
        "--format",
        "form",
        type=click.Choice([*FORMATS, "parquet"]),
        show_default="what the name of -o says, else table",
        help="table is for reading; the others keep every value as it is, but for NaN and "
        "infinities, which only parquet has: in json they are null, as NULL is.",
    ),
    click.option("-o", "--output", type=_OUTPUT, metavar="FILE", help="Write the result here."),
    click.option(
        "--limit",
        type=_Whole(min=0),
        default=200,
        show_default=True,
        metavar="N",
        help="Rows of a table; 0 shows all. Other formats are never cut.",
    ),
)


def _form_by_name(*reports: str) -> Callable[[Command], Command]:
    """Give a command without --format the format that the name of its output says."""

    def decorate(function: Command) -> Command:
        @wraps(function)
        def call(*arguments: Any, **options: Any) -> int:
            from nsys_sql import output

            form = options["form"]
            if not options.get("init"):  # a mapping of ranks has a form of its own
                form = output.form_of(options["output"], form, reports)
            return int(function(*arguments, **{**options, "form": form}))

        return cast("Command", call)

    return decorate


_input_options = _options(
    click.option(
        "--reference-steps",
        metavar="FILE|LIST",
        help="Unprofiled steps of the same run: a trainer log, or 29.39s,29.41s.",
    ),
    click.option(
        "--callsites",
        type=_Path(path_type=Path),
        metavar="FILE",
        help="Call sites of the launches, Parquet or CSV (recipe call-sites).",
    ),
    click.option(
        "--metrics-from",
        type=_Path(path_type=Path),
        metavar="TRACE",
        help="A separate capture that sampled GPU metrics (recipe metrics).",
    ),
)


@cli.command()
@click.argument("recipe")
@click.argument("traces", nargs=-1, required=True, type=_TRACE, metavar="TRACE...")
@_recipes_option
@with_model_options
@_input_options
@_timeout_option
@_output_options
@_form_by_name()
def run(recipe: str, traces: tuple[Path, ...], **options: Any) -> int:
    """Answer RECIPE from each TRACE and print the result.

    \b
      nsys-sql run budget step.sqlite
      nsys-sql run kernels step.sqlite --anchor 'nvtx:step*' --format csv -o kernels.csv
    """
    from nsys_sql import commands

    return commands.run(recipe, traces, options, warn)


@cli.command(name="list")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="table is for reading.",
)
@_recipes_option
def list_(form: str, recipes: tuple[Path, ...]) -> int:
    """Show every recipe with the question it answers.

    \b
      nsys-sql list
    """
    from nsys_sql import commands

    return commands.list_recipes(form, recipes, warn)


@cli.command()
@click.argument("recipe")
@_recipes_option
def describe(recipe: str, recipes: tuple[Path, ...]) -> int:
    """Show what RECIPE reads, its parameters, columns with units, and checks.

    \b
      nsys-sql describe budget
    """
    from nsys_sql import commands

    return commands.describe(recipe, recipes)


@cli.command()
@click.argument("trace", type=_TRACE)
@_recipes_option
@with_model_options
@_output_options
@_form_by_name()
def inspect(trace: Path, **options: Any) -> int:
    """Show what TRACE holds and which recipes it can answer.

    \b
      nsys-sql inspect step.sqlite
    """
    from nsys_sql import commands

    return commands.inspect(trace, options, warn)


@cli.command()
@click.argument("trace", type=_TRACE)
@click.argument("query", required=False)
@click.option("-f", "--file", type=_TRACE, metavar="FILE.sql", help="Read the query from a file.")
@_recipes_option
@with_model_options
@_timeout_option
@_output_options
@_form_by_name()
def sql(trace: Path, query: str | None, file: Path | None, **options: Any) -> int:
    """Run QUERY over the canonical views of TRACE; without it, or with `-`, standard input.

    \b
      nsys-sql sql step.sqlite 'SELECT count(*) FROM nsys.kernel'
    """
    from nsys_sql import commands

    if query is not None and file is not None:
        raise UsageError("give a query or -f FILE.sql, and not both")
    return commands.sql(trace, commands.query_text(query, file), options, warn)


@cli.command()
@click.argument("recipe")
@click.argument("trace", type=_TRACE)
@_recipes_option
@with_model_options
@_input_options
@click.option("-o", "--output", type=_OUTPUT, metavar="FILE", help="Write the script here.")
def show(recipe: str, trace: Path, **options: Any) -> int:
    """Print the SQL that `run` executes for RECIPE on TRACE, as one DuckDB script.

    \b
      nsys-sql show budget step.sqlite > budget.sql && duckdb < budget.sql
    """
    from nsys_sql import commands

    return commands.show(recipe, trace, options, warn)


@cli.command()
@click.argument("trace", type=_TRACE)
@_recipes_option
@with_model_options
@_input_options
@click.option(
    "-o", "--output", type=_OUTPUT, required=True, metavar="FILE.duckdb", help="The new database."
)
@click.option("--force", is_flag=True, help="Replace FILE.duckdb.")
def build(trace: Path, **options: Any) -> int:
    """Write all of TRACE into one DuckDB database that answers alone: FROM budget;

    \b
      nsys-sql build step.sqlite -o step.duckdb && duckdb step.duckdb -c 'FROM budget'
    """
    from nsys_sql import tools

    return tools.build(trace, options, warn)


@cli.command()
@click.argument("trace", type=_TRACE)
@_recipes_option
@with_model_options
@click.option("--builtin", is_flag=True, help="Use the built-in shell, not the duckdb program.")
def shell(trace: Path, **options: Any) -> int:
    """Ask TRACE in an interactive shell: the duckdb program if installed, else a built-in one.

    \b
      nsys-sql shell step.sqlite
      nsys-sql shell step.sqlite --builtin
    """
    from nsys_sql import tools

    return tools.shell(trace, options, warn)


@cli.command()
@click.option("--list", "is_list", is_flag=True, help="Show what is cached.")
@click.option("--clear", "is_clear", is_flag=True, help="Remove what is cached.")
def cache(is_list: bool, is_clear: bool) -> int:
    """Show or remove what --cache, surveys, comparisons and exports of reports have kept.

    \b
      nsys-sql cache --list
      nsys-sql cache --clear
    """
    from nsys_sql import tools

    return tools.show_cache(is_list, is_clear)


@cli.command()
@click.argument("traces", nargs=-1, required=True, type=_TRACE, metavar="TRACE...")
@_recipes_option
@with_model_options
@_input_options
@click.option(
    "--mfu",
    type=_Float(min=0, min_open=True, max=100),
    metavar="X",
    help="MFU of the profiled step in percent, for its ceiling.",
)
@click.option(
    "-o",
    "--output",
    type=_OUTPUT,
    metavar="FILE",
    help="Write FILE.md, FILE.html or FILE.json; without it, Markdown goes to standard output.",
)
def report(traces: tuple[Path, ...], **options: Any) -> int:
    """Write the six-section report of each TRACE: verdict, capture, budget, findings, claims.

    \b
      nsys-sql report step.sqlite -o step.html
      nsys-sql report step.sqlite --anchor 'nvtx:step*' --mfu 41.5
    """
    from nsys_sql import reporting

    return reporting.report(traces, options, warn)


@cli.command()
@click.argument("trace", type=_TRACE)
@_recipes_option
@with_model_options
@click.option(
    "-o",
    "--output",
    type=_OUTPUT,
    required=True,
    metavar="FILE",
    help="FILE.json or FILE.json.gz, or FILE.pftrace with the package perfetto.",
)
def timeline(trace: Path, **options: Any) -> int:
    """Write iterations, causes of gaps, streams and blockers of TRACE for ui.perfetto.dev.

    \b
      nsys-sql timeline step.sqlite -o step.json.gz
      nsys-sql timeline step.sqlite --iterations 3:5 -o step.json
    """
    from nsys_sql import reporting

    return reporting.timeline(trace, options, warn)


@cli.command()
@click.argument("traces", nargs=-1, type=_TRACE, metavar="[TRACE]...")
@click.option("--ranks", type=_TRACE, metavar="FILE.yaml", help="Which trace holds which rank.")
@click.option("--init", is_flag=True, help="Write a mapping to fill in, from what the traces say.")
@click.option("--show-host", is_flag=True, help="With --init: names of hosts, not only hashes.")
@click.option(
    "--partitions", type=_OUTPUT, metavar="DIR", help="Keep what was read here, and resume from it."
)
@click.option("--from-parquet", type=_TRACE, metavar="DIR", help="Read finished partitions only.")
@click.option("--jobs", type=_Whole(min=1), metavar="N", help="Local worker processes.")
@click.option("--scheduler", metavar="ADDR|FILE", help="Dask scheduler: tcp://HOST:PORT or a file.")
@click.option(
    "--result", "results", multiple=True, metavar="NAME", help="This result only. May be repeated."
)
@_recipes_option
@with_model_options
@_output_options
@_form_by_name("md", "html")
def survey(traces: tuple[Path, ...], **options: Any) -> int:
    """Compare the ranks of one run: survey table, alignment, collectives, jitter, verdict.

    \b
      nsys-sql survey node*.sqlite --init -o ranks.yaml
      nsys-sql survey node*.sqlite --ranks ranks.yaml
      nsys-sql survey --ranks ranks.yaml -o ranks.html
    """
    from nsys_sql import survey_cli

    return survey_cli.run(traces, options, warn)


@cli.command()
@click.argument("traces", nargs=-1, type=_TRACE, metavar="BASE TRACE...")
@click.option(
    "--base",
    "bases",
    multiple=True,
    type=_TRACE,
    metavar="TRACE",
    help="A trace of the base, where it has several: all others are then of the new side.",
)
@click.option("--base-ranks", type=_TRACE, metavar="FILE.yaml", help="The base's mapping of ranks.")
@click.option("--ranks", type=_TRACE, metavar="FILE.yaml", help="The new side's mapping of ranks.")
@click.option("--base-anchor", metavar="KIND:PATTERN", help="The base's anchor, if it is another.")
@click.option(
    "--base-per-iteration", type=_Int(), metavar="N", help="The base's, if it is another."
)
@click.option("--base-iterations", metavar="A:B", help="The base's iterations, if others.")
@click.option("--force", is_flag=True, help="Compare what cannot be compared, labelled as such.")
@click.option(
    "--fail-on",
    multiple=True,
    metavar="'METRIC > +3%'",
    help="Exit code 6 when the change (+3%, +2ms) or level (500ms) of a median is crossed, or of a "
    "mean (iteration_mean). May be repeated.",
)
@click.option("--store", type=_OUTPUT, metavar="FILE.duckdb", help="Append TRACE to a history.")
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="NAME=VALUE",
    help="What the run is stored with, for example commit=1a2b3c. May be repeated.",
)
@click.option(
    "--partitions", type=_OUTPUT, metavar="DIR", help="Keep what was read here, and resume from it."
)
@click.option("--jobs", type=_Whole(min=1), metavar="N", help="Local worker processes.")
@click.option(
    "--result", "results", multiple=True, metavar="NAME", help="This result only. May be repeated."
)
@_recipes_option
@with_model_options
@_output_options
@_form_by_name("md", "html")
def compare(traces: tuple[Path, ...], **options: Any) -> int:
    """Compare two runs, BASE before and TRACE after: what differs, where it lies, if it is noise.

    \b
      nsys-sql compare before.sqlite after.sqlite -o change.html
      nsys-sql compare before.sqlite after.sqlite --fail-on 'iteration > +3%'
      nsys-sql compare --base a0.sqlite --base a1.sqlite b0.sqlite b1.sqlite
    """
    from nsys_sql import compare_cli

    return compare_cli.run(traces, options, warn)


def _given() -> dict[str, str]:
    """The options on the command line by name, with the text that stands for them there."""
    context = click.get_current_context()
    return {
        param.name: max(param.opts, key=len)
        for param in context.command.params
        if param.name is not None
        and context.get_parameter_source(param.name) is ParameterSource.COMMANDLINE
    }


@cli.command()
@click.argument("store", type=_TRACE, metavar="FILE.duckdb")
@click.option(
    "--metric", default="iteration", show_default=True, metavar="NAME", help="Metric of the budget."
)
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="NAME=VALUE",
    help="Only runs with this label; with --add, what the run is stored with. May be repeated.",
)
@click.option(
    "--add",
    "traces",
    multiple=True,
    type=_TRACE,
    metavar="TRACE",
    help="Append a run instead of showing. May be repeated for the ranks of a run.",
)
@click.option("--ranks", type=_TRACE, metavar="FILE.yaml", help="With --add: the mapping of ranks.")
@click.option(
    "--partitions", type=_OUTPUT, metavar="DIR", help="Keep what was read here, and resume from it."
)
@click.option("--jobs", type=_Whole(min=1), metavar="N", help="Local worker processes.")
@_no_recipes_option
@with_model_options
@_output_options
@_form_by_name("html")
def history(store: Path, traces: tuple[Path, ...], recipes: tuple[str, ...], **options: Any) -> int:
    """Show how a metric developed over the runs of a store that compare --store appends to.

    \b
      nsys-sql history runs.duckdb --add step.sqlite --label commit=1a2b3c
      nsys-sql history runs.duckdb --metric blocking --label branch=main
    """
    from nsys_sql import compare_cli

    if recipes:
        raise UsageError(
            "a history keeps the metrics of the budget, so recipes have no place in it",
            hint="compare two of its runs with compare BASE TRACE --recipes",
        )
    return compare_cli.show_history(store, traces, {**options, "given": _given()}, warn)


@cli.command()
@click.argument("output", type=_OUTPUT)
@click.option("--force", is_flag=True, help="Overwrite OUTPUT.")
def example(output: Path, force: bool) -> int:
    """Build the example trace into OUTPUT, a new SQLite file.

    \b
      nsys-sql example example.sqlite
    """
    from nsys_sql import commands

    return commands.example(output, force)


for _command in cli.commands.values():
    for _param in _command.params:
        if _param.type is click.STRING:
            _param.type = _Text()


def warn(text: str) -> None:
    """One line on standard error, as far as that takes it."""
    from nsys_sql.humanize import clean
    from nsys_sql.output import final_names

    with suppress(OSError, ValueError):
        click.echo(clean(final_names(" ".join(text.split()))), err=True)


def _fail(message: str, hint: str | None, code: int) -> int:
    from nsys_sql.humanize import clean
    from nsys_sql.output import final_names

    text = clean(final_names(" ".join(message.split())))
    if hint:
        text = f"{text.rstrip('.')}; {clean(' '.join(hint.split()))}"
    with suppress(OSError, ValueError):  # nobody is left to be told
        click.echo(f"Error: {text}", err=True)
    return code


def _usage_hint(error: click.ClickException) -> str | None:
    context = getattr(error, "ctx", None)
    return f"try {context.command_path} --help" if context is not None else None


def execute(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; errors become one line on stderr."""
    try:
        code = _execute(arguments)
    except KeyboardInterrupt:  # it came while an error was told
        return _interrupted()
    return _interrupted() if interrupts.is_ending() else code


def _execute(arguments: Sequence[str]) -> int:
    try:
        result = cli.main(list(arguments), prog_name="nsys-sql", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except NsysSqlError as error:
        if interrupts.is_ending():  # an interrupted query fails like any other
            return _interrupted()
        return _fail(str(error), error.hint, error.exit_code)
    except click.ClickException as error:
        return _fail(error.format_message(), _usage_hint(error), error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        return _interrupted()
    except SystemExit:  # click's answer to a reader of its help that has gone away
        return 0
    except Exception as error:
        if os.environ.get("NSYS_SQL_DEBUG") == "1":
            raise
        # Ctrl-C during a query surfaces as an exception of DuckDB's, which is not imported here.
        if type(error).__name__ == "InterruptException" or str(error) == "Query interrupted":
            return _interrupted()
        if (lacking := out_of_memory(error)) is not None:
            return _fail(str(lacking), lacking.hint, lacking.exit_code)
        from nsys_sql import output

        if (unwritten := output.failure(error)) is not None and not isinstance(error, OSError):
            return _fail(str(unwritten), unwritten.hint, unwritten.exit_code)
        if isinstance(error, OSError) and error.errno in _NO_ROOM:
            place = error.filename or "standard output"
            return _fail(f"cannot write to {place}: {error.strerror}", "make room for it", 2)
        if isinstance(error, OSError) and error.errno in _NO_WAY and error.filename:
            return _fail(f"{error.filename} cannot be used: {error.strerror}", None, 3)
        if isinstance(error, _CutOffError) and "marshal" in str(error):
            # Python keeps what it could write of a compiled module where the disk was full
            return _fail(
                f"a compiled module of this program was cut off: {error}",
                "remove the __pycache__ folders where it is installed, or install it again",
                1,
            )
        kind = "EOFError" if isinstance(error, _CutOffError) else type(error).__name__
        return _fail(
            f"{kind}: {error}", "this is a bug; NSYS_SQL_DEBUG=1 shows where it happened", 1
        )


def _interrupted() -> int:
    """The exit code of a run that a signal ended: 128 and the number of the signal."""
    return 128 + (interrupts.received() or signal.SIGINT)


def hold_streams() -> None:
    """Keep the places of standard streams that the caller closed.

    The next file to be opened would take them, a database for instance: what is written to standard
    output by whatever we call would go into it, and the duckdb program would run it as SQL.
    """
    for stream in (0, 1, 2):
        try:
            os.fstat(stream)
        except OSError:
            if os.open(os.devnull, os.O_RDWR) == stream:  # the lowest that is free
                os.set_inheritable(stream, True)


def main() -> None:
    """The console script."""
    hold_streams()
    interrupts.listen()
    code = execute(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):  # it must not fail once more when Python ends
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    sys.exit(code)
