"""What recipes answer on traces, kept as plain CSV that reads like a report.

`python -m nsys_sql.golden RECIPES TRACE...` compares the answers of your own recipes with the
files in RECIPES/golden/<trace>/<recipe>.csv; `--update` writes them. An error is an answer too:
its file holds `exit CODE: message`.
"""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import nsys_sql
from nsys_sql.cli import warn, with_model_options
from nsys_sql.errors import InvariantError, NsysSqlError, UsageError
from nsys_sql.formats import Report, csv_text
from nsys_sql.userfiles import is_of

if TYPE_CHECKING:
    from nsys_sql.session import Model


def answer(model: Model, recipe: str, shown: str) -> str:
    """The rows of a recipe as CSV, then what its checks and notes say; `shown` names the trace."""
    try:
        result = model.result(recipe)
    except NsysSqlError as error:
        text = f"exit {error.exit_code}: " + " ".join(str(error).split()) + "\n"
    else:
        report = Report(recipe, "", {}, columns=result.columns, rows=result.rows)
        remarks = [
            f"# {check.status} {check.name}: {check.detail}\n"
            for check in result.checks
            if check.status != "ok"
        ]
        remarks += [f"# note: {note}\n" for note in result.notes]
        text = csv_text([report]) + "".join(remarks)
    return text.replace(str(model.trace.path), shown)


def compare(
    recipes: str | os.PathLike[str],
    traces: Sequence[str | os.PathLike[str]],
    folder: str | os.PathLike[str] | None = None,
    *,
    update: bool = False,
    **options: Any,
) -> dict[Path, str]:
    """Compare each of the recipes on each trace with its golden file, or write that file.

    Returns the files that differ or are missing, each with a diff from the golden text to the
    answer; with `update` the files that were written. `options` are those of nsys_sql.open.
    """
    source = Path(recipes)
    base = Path(folder) if folder else (source if source.is_dir() else source.parent) / "golden"
    stems = [Path(trace).stem for trace in traces]
    if len(set(stems)) < len(stems):
        raise UsageError("two traces have one name", hint="golden files are kept by file name")
    found = {}
    for trace in map(Path, traces):
        with nsys_sql.open(trace, recipes=source, **options) as model:
            for broken in model.catalog.broken.values():
                raise broken
            own = [name for name, file in model.catalog.recipes.items() if is_of(file, source)]
            for name in own:
                path = base / trace.stem / f"{name}.csv"
                text = answer(model, name, trace.name)
                golden = path.read_text(encoding="utf-8") if path.is_file() else ""
                if text == golden:
                    continue
                found[path] = "".join(
                    difflib.unified_diff(
                        golden.splitlines(keepends=True),
                        text.splitlines(keepends=True),
                        str(path) if golden else "missing",
                        f"{name} on {trace.name}",
                    )
                )
                if update:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(text, encoding="utf-8", newline="\n")
    return found


@click.command()
@click.argument("recipes", type=click.Path(path_type=Path))
@click.argument("traces", nargs=-1, required=True, type=click.Path(path_type=Path))
@with_model_options
@click.option("--update", is_flag=True, help="Write the files instead of comparing.")
@click.option("--folder", type=click.Path(path_type=Path), help="Where the files are.")
def cli(
    recipes: Path, traces: tuple[Path, ...], update: bool, folder: Path | None, **given: Any
) -> int:
    """Compare what RECIPES answer on TRACES with golden files.

    \b
      python -m nsys_sql.golden my_recipes step.sqlite --anchor 'nvtx:step*' --update
    """
    from nsys_sql.commands import model_options, parameters

    if update and os.environ.get("CI"):
        raise UsageError("--update is for people: CI never changes what it checks")
    options = {**model_options(given), "params": parameters(given["params"])}
    found = compare(recipes, traces, folder, update=update, **options)
    for path, diff in found.items():
        click.echo(f"wrote {path}" if update else diff, nl=update)
    return 0 if update or not found else InvariantError.exit_code


def main(arguments: Sequence[str]) -> int:
    """Run the command line; errors become one line on standard error."""
    try:
        code = cli.main(list(arguments), prog_name="nsys_sql.golden", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except NsysSqlError as error:
        warn(f"Error: {error.told}")
        return error.exit_code
    except click.ClickException as error:
        warn(f"Error: {error.format_message()}")
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
