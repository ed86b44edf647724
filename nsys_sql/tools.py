"""What the commands build, shell and cache do once their options are read."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nsys_sql import cache, commands, humanize, output
from nsys_sql.errors import UsageError

if TYPE_CHECKING:
    from nsys_sql.options import Options

Warn = Callable[[str], None]


def _chosen(options: Mapping[str, Any]) -> Options:
    """The options of a command as the engine takes them."""
    from nsys_sql.options import Options

    given = commands.model_options(options)
    for name in ("taxonomy", "recipes"):
        if name in given:
            given[name] = tuple(os.fspath(path) for path in given[name])
    for name in ("callsites", "metrics_from", "temp_directory"):
        if given.get(name) is not None:
            given[name] = os.fspath(given[name])
    params = commands.parameters(options["params"])
    return Options(**given, params=params).check()


def build(trace: Path, options: Mapping[str, Any], warn: Warn) -> int:
    """Write a database that answers alone."""
    from nsys_sql import database

    target: Path = options["output"]
    output.check_target(target, [trace])
    with commands.progress(options):
        info = database.build(trace, target, _chosen(options), replace_existing=options["force"])
    if not options["quiet"]:
        for text in info.warnings:
            warn(f"Warning: {trace}: {text}")
    return 0


# ---------------------------------------------------------------- shell


def shell(trace: Path, options: Mapping[str, Any], warn: Warn) -> int:
    """Start the stock DuckDB shell on the built trace, or our own."""
    from nsys_sql import shell as shells

    program = None if options["builtin"] else shells.stock()
    if program is not None:
        from nsys_sql import database

        with database.temporary(trace, _chosen(options), commands.progress(options)) as path:
            names = ("threads", "memory_limit", "temp_directory")
            return shells.start(program, path, {each: options[each] for each in names})
    with commands.opened(trace, options, warn) as model:
        is_terminal = output.is_terminal(sys.stdin)
        own = shells.Shell(model, _write, _ask if is_terminal else _next_line, output.width())
        own.variables |= commands.parameters(options["params"])
        if not is_terminal:
            own.complain = _complain
            return own.loop(stop_on_error=True)
        _write(f"{humanize.clean(str(trace))}: .help shows what can be asked, .quit leaves\n")
        with shells.editing(own):
            own.loop(stop_on_error=False)
        _write("\n")
    return 0


def _write(text: str) -> None:
    click.echo(text, nl=False)


def _complain(text: str) -> None:
    click.echo(text, nl=False, err=True)


def _ask(prompt: str) -> str:
    return commands.typed(lambda: input(prompt))


def _next_line(_: str) -> str:
    stdin = sys.stdin  # None where the caller closed it
    line = commands.typed(stdin.readline) if stdin is not None else ""
    if not line:
        raise EOFError
    return line.rstrip("\n")


# ---------------------------------------------------------------- cache


def show_cache(is_list: bool, is_clear: bool) -> int:
    """List what is cached, or remove it."""
    if is_list == is_clear:
        raise UsageError("give --list or --clear, and not both")
    place = humanize.clean(str(cache.folder()))
    if is_clear:
        count, size = cache.clear()
        text = f"{count} entries removed from {place}, {_bytes(size)}\n"
    else:
        entries = cache.entries()
        lines = [
            f"{time.strftime('%Y-%m-%d %H:%M', time.localtime(each.made))}  "
            f"{_bytes(each.size):>10}  {each.kind:<9}  {humanize.clean(each.source) or '-'}\n"
            for each in entries
        ]
        total = sum(each.size for each in entries)
        text = "".join(lines) + f"{len(entries)} entries in {place}, {_bytes(total)}\n"
    output.write_text(text, None)
    return 0


def _bytes(count: int) -> str:
    return humanize.cell(count, "size_bytes", "bytes")
