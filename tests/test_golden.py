"""What every recipe answers on every fixture, against plain CSV that reads like a report.

`pytest tests/test_golden.py --update-golden [-k recipe]` writes the files anew. An error is an
answer too: its file holds `exit CODE: message`.
"""

import shlex

import click
import pytest

import nsys_sql
from conftest import FIXTURES, GOLDEN
from nsys_sql.catalog import load_catalog
from nsys_sql.cli import cli
from nsys_sql.golden import answer

# Every operation as an event of a viewer is too long to read: test_timeline reads what matters.
RECIPES = sorted(load_catalog().recipes.keys() - {"trace-events"})
NAMES = sorted(path.stem for path in FIXTURES.glob("*.sql"))
MARK = "-- options:"


def options(name):
    """The model options that a fixture's first line names, read as the command line reads them."""
    with (FIXTURES / f"{name}.sql").open(encoding="utf-8") as file:
        first = file.readline().strip()
    arguments = shlex.split(first.removeprefix(MARK)) if first.startswith(MARK) else []
    command = cli.commands["run"]
    context = command.make_context("run", ["recipe", "trace", *arguments])
    given = {
        name: value
        for name, value in context.params.items()
        if context.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT
    }
    return {name: given[name] for name in given if name not in ("recipe", "traces")}


@pytest.fixture(scope="module")
def models(fixture_sqlite):
    """`models(name)`: the open model of a fixture, built once."""
    built = {}

    def model(name):
        if name not in built:
            built[name] = nsys_sql.open(fixture_sqlite(name), **options(name))
        return built[name]

    yield model
    for each in built.values():
        each.close()


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("name", NAMES)
def test_golden(name, recipe, models, pytestconfig):
    text = answer(models(name), recipe, f"{name}.sqlite")
    golden = GOLDEN / name / f"{recipe}.csv"
    if pytestconfig.getoption("--update-golden"):
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_text(text, encoding="utf-8", newline="\n")
    assert golden.is_file(), f"{golden} is missing: pytest --update-golden -k {recipe}"
    assert text == golden.read_text(encoding="utf-8")


def test_no_golden_file_is_unused():
    expected = {GOLDEN / name / f"{recipe}.csv" for name in NAMES for recipe in RECIPES}
    assert {path for path in GOLDEN.rglob("*") if path.is_file()} - expected == set()


def test_ci_never_updates_golden_files(monkeypatch):
    from conftest import pytest_configure

    class Config:
        def getoption(self, name):
            return name == "--update-golden"

    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.UsageError, match="CI never"):
        pytest_configure(Config())
