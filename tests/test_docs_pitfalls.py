"""The pitfalls: all in order, each with a guard that exists or a reason why there is none."""

import re

import pytest

from conftest import ROOT
from nsys_sql import docs
from nsys_sql.catalog import load_catalog

PAGE = (ROOT / "docs" / "pitfalls.md").read_text(encoding="utf-8")
SECTIONS = {
    int(number): text
    for number, text in re.findall(
        r"^## Pitfall (\d+)\n(.*?)(?=^## )", PAGE, re.DOTALL | re.MULTILINE
    )
}


def test_all_are_there_in_order():
    assert list(SECTIONS) == list(range(1, 33))


@pytest.mark.parametrize("number", SECTIONS)
def test_each_is_told_in_a_few_sentences_and_guarded(number):
    told, guard = SECTIONS[number].strip().split("\n\n")
    assert told.startswith("**") and 2 <= len(re.findall(r"[.:](?:\*\*)?(?=\s|$)", told)) <= 5
    assert guard.startswith(("*Guarded by*", "*Guarded in part*", "*Not guarded*"))
    if "*Guarded in part*" in guard:
        assert "*Not guarded*: " in guard


@pytest.mark.parametrize("number", SECTIONS)
def test_what_guards_it_exists(number):
    guard = " ".join(SECTIONS[number].strip().split("\n\n")[1].split())
    recipes = re.findall(r"[Rr]ecipe `([^`]+)`", guard)
    assert set(recipes) <= load_catalog().recipes.keys()
    files = re.findall(r"`((?:sql|tests)/[^`]+)`", guard)
    assert recipes or files
    for each in files:
        path, _, test = each.partition("::")
        assert (ROOT / path).is_file(), each
        assert not test or f"\ndef {test}(" in (ROOT / path).read_text(encoding="utf-8"), each


def test_every_number_in_the_sql_is_documented():
    cited = docs.citations()
    assert cited.keys() <= SECTIONS.keys()
    catalog = load_catalog()
    for files in (catalog.recipes, catalog.steps, catalog.macros, catalog.notes):
        for file in files.values():
            assert set(file.pitfalls) <= SECTIONS.keys()
            assert all(file.label in cited[number] for number in file.pitfalls)


def test_what_the_capture_guide_calls_unread_is_unread():
    catalog = load_catalog()
    read = set().union(*(docs._read_by(catalog, recipe) for recipe in catalog.recipes.values()))
    assert "osrt_call" in read and "sched_event" not in read
    assert "osrt_call" in docs._read_by(catalog, catalog.recipe("host-stalls"))
    columns = {column.name for column in catalog.adapters["cuda_event"].columns}
    assert not any("time" in name for name in columns)


def test_every_relation_that_a_flag_brings_is_known():
    adapters = load_catalog().adapters
    assert {name for names in docs.FLAGS.values() for name in names} <= adapters.keys()
