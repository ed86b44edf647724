"""Documentation that cannot rot: what can be generated is, and the rest is checked."""

import re

import pytest

from conftest import ROOT
from nsys_sql import docs
from nsys_sql.catalog import load_catalog
from nsys_sql.cli import cli

README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", sorted(docs.pages()))
def test_generated_pages_are_fresh(name):
    page = ROOT / "docs" / name
    assert page.is_file() and page.read_text(encoding="utf-8") == docs.pages()[name], (
        f"docs/{name} is stale: run python -m nsys_sql.docs"
    )


@pytest.mark.parametrize("name", sorted(cli.commands))
def test_every_command_has_help_with_an_example_and_is_in_the_readme(name):
    text = cli.commands[name].help
    assert text and f"nsys-sql {name}" in text
    assert f"`nsys-sql {name}" in README


@pytest.mark.parametrize("name", sorted(load_catalog().recipes))
def test_every_recipe_is_documented(name):
    assert f"\n## {name}\n" in docs.pages()["recipes.md"]


def test_links_of_the_readme_exist():
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", README)
    assert targets and all((ROOT / target).exists() for target in targets)


def test_ci_runs_the_readme_test_command():
    command = next(line for line in README.splitlines() if "-m pytest" in line)
    install, test = (part.strip() for part in command.split("&&")[1:])
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")
    assert install.partition("install ")[2] in script
    assert test.partition("python ")[2] in script


def test_the_output_in_the_readme_is_real(fixture_sqlite, monkeypatch, capsysbinary):
    """The block between the two marks is what the first command prints."""
    from nsys_sql.cli import execute

    block = re.search(r"<!-- example output: begin -->\n```text\n(.*?)```\n", README, re.DOTALL)
    monkeypatch.chdir(fixture_sqlite("example").parent)
    monkeypatch.setenv("COLUMNS", "120")
    assert execute(["run", "budget", "example.sqlite"]) == 0
    assert block and block[1] == capsysbinary.readouterr().out.decode()
