"""A run leaves out the columns that nothing in it reads; the answers stay."""

import re
from collections import Counter

import pytest

import nsys_sql
from conftest import GOLDEN, long_test
from nsys_sql.catalog import load_catalog, parse
from nsys_sql.golden import answer
from nsys_sql.narrow import needed_columns, without
from nsys_sql.options import Options
from nsys_sql.plan import Planner, Shape
from nsys_sql.session import Model
from nsys_sql.taxonomy import load_rules, macro_sql
from test_golden import RECIPES, options

KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"
WIDE = """-- wide — a step?
--
-- @grain  one row
-- @reads  nsys.kernel
-- @narrow
-- @column a BIGINT - one
-- @column b BIGINT - two
-- @column c BIGINT - three
SELECT
    k.a,
    k.b,
    k.a + k.b AS c,
FROM nsys.kernel AS k;
"""


@pytest.fixture
def step(tmp_path):
    """`step(name, sql)`: a parsed step that reads nsys.wide, or the header's own relations."""

    def make(name, sql):
        head = f"-- {name} — a step?\n--\n-- @grain one row\n-- @reads nsys.wide\n"
        text = sql if sql.startswith("--") else f"{head}-- @column x BIGINT - x\n{sql};\n"
        path = tmp_path / "steps" / f"{name}.sql"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return parse("step", path)

    return make


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("SELECT w.a FROM nsys.wide AS w", ("a",)),
        ("SELECT A AS x FROM nsys.wide", ("a",)),
        ("SELECT c AS x FROM nsys.wide WHERE b > 0", ("b", "c")),
        ("SELECT count(*) AS x FROM nsys.wide", ("a",)),
        ("SELECT 2 * a AS x FROM nsys.wide", ("a",)),
        ("SELECT * FROM nsys.wide", ("a", "b", "c")),
        ("SELECT w.* FROM nsys.wide AS w", ("a", "b", "c")),
        ("SELECT wide.* FROM nsys.wide", ("a", "b", "c")),
        ("SELECT COLUMNS('x') FROM nsys.wide", ("a", "b", "c")),
        ("FROM nsys.wide", ("a", "b", "c")),
        ("SELECT a AS x FROM (FROM nsys.wide)", ("a", "b", "c")),
        ("SELECT list(w) AS x FROM nsys.wide AS w", ("a", "b", "c")),
        ("WITH v AS (SELECT a FROM nsys.wide) SELECT * FROM v", ("a",)),
        ("WITH v AS (SELECT a FROM nsys.wide AS w), u AS (SELECT w.* FROM v AS w) FROM u", None),
        ("SELECT a AS x -- and not b\nFROM nsys.wide", ("a",)),
    ],
)
def test_a_column_stays_where_its_name_or_a_star_may_read_it(step, query, kept):
    wide, reader = step("wide", WIDE), step("reader", query)
    found = needed_columns([wide], [reader], {"wide": wide}).get("wide", ("a", "b", "c"))
    if kept is None:  # the alias stands for the step elsewhere: in doubt, all
        kept = ("a", "b", "c")
    assert found == kept


def test_a_view_hands_on_only_what_is_read_of_it(step):
    wide = step("wide", WIDE)
    view = step(
        "view",
        WIDE.replace("wide —", "view —").replace("@narrow", "@narrow\n-- @view")
        .replace("nsys.kernel", "nsys.wide").replace("k.a + k.b AS c", "k.c"),
    )  # fmt: skip
    reader = step("reader", "SELECT v.b AS x FROM nsys.view AS v".replace("nsys.wide", "nsys.view"))
    reader = parse_reading(reader, "nsys.view")
    kept = needed_columns([wide, view], [reader], {"wide": wide, "view": view})
    assert kept == {"view": ("b",), "wide": ("b",)}
    assert " ".join(without(view.body, ["a", "c"]).split()) == "SELECT k.b, FROM nsys.wide AS k"


def parse_reading(file, relation):
    """The same step with another relation in its @reads."""
    file.path.write_text(file.text.replace("@reads nsys.wide", f"@reads {relation}"), "utf-8")
    return parse("step", file.path)


def test_only_lines_of_the_one_final_select_go():
    grouped = (
        "WITH g AS (\n    SELECT\n    a,\n    b,\n    FROM t\n)\nSELECT\n    a,\n    b,\nFROM g"
    )
    assert without(grouped, ["b"]) == grouped.replace(
        "SELECT\n    a,\n    b,\nFROM", "SELECT\n    a,\nFROM"
    )
    both = "SELECT\n    a,\nFROM t\nUNION ALL\nSELECT\n    a,\nFROM u"
    assert without(both, ["a"]) == both
    assert without("SELECT a, b FROM t", ["b"]) == "SELECT a, b FROM t"


def test_what_makes_a_column_goes_with_it():
    made = """SELECT
    a,
    lag(b) OVER w AS prev_b,
    -- where it is known
    CASE
        WHEN c > 0 THEN c -- (d,
    END AS e,
    least(
        f, g
    ) AS h
FROM t
WINDOW w AS (ORDER BY a)"""
    assert without(made, ["prev_b", "e", "h"]) == "SELECT\n    a,\n" + made[made.index("FROM t") :]
    assert without(made, ["a"]) == made.replace("    a,\n", "", 1)
    assert without(made, ["b", "g"]) == made


def narrow_steps(recipe):
    shape = Shape({KERNEL: dict.fromkeys(("start", "end", "deviceId", "streamId"), "BIGINT")})
    planner = Planner(load_catalog(), shape, Options(), lambda: macro_sql(load_rules()))
    plan = planner.plan([recipe], audit=True)
    pairs = zip(plan, planner.narrowed(plan, planner.kept_columns(plan)), strict=True)
    return {a.name: b.sql for a, b in pairs if a.sql != b.sql}


UNSORTED = ("anchors", "devices", "iterations", "kernels", "processes", "streams", "taxonomy")


@pytest.mark.parametrize("recipe", UNSORTED)
def test_what_asks_for_no_cause_needs_neither_the_order_of_streams_nor_events(recipe):
    sql = narrow_steps(recipe)["stream_item"].partition("FROM (")[0]
    assert "name_id" in sql
    assert "prev_id" not in sql
    assert "event_key" not in sql


def test_gaps_alone_need_the_latest_end_of_compute_alone():
    sql = narrow_steps("gaps")["sweep"].partition("FROM (")[0]
    assert "compute_until_ns" in sql
    assert "comm_until_ns" not in sql


@pytest.mark.parametrize(
    "recipe",
    [
        *RECIPES[::4],
        *(
            pytest.param(recipe, marks=long_test)
            for recipe in RECIPES
            if recipe not in RECIPES[::4]
        ),
    ],
)
def test_the_answer_is_the_same(recipe, fixture_sqlite):
    with nsys_sql.open(fixture_sqlite("example"), keep_steps=False, **options("example")) as model:
        found = answer(model, recipe, "example.sqlite")
    assert found == (GOLDEN / "example" / f"{recipe}.csv").read_text(encoding="utf-8")


def test_runs_that_were_foreseen_make_each_step_once_and_keep_none(fixture_sqlite, monkeypatch):
    recipes = ("verdict", "phases", "budget", "capture", "top-gaps", "streams", "launches")
    made = Counter()
    execute = Model._execute

    def counted(self, sql):
        if (found := re.match(r"CREATE OR REPLACE TABLE nsys\.(\w+)", sql)) is not None:
            made[found[1]] += 1
        return execute(self, sql)

    path = fixture_sqlite("example")
    with nsys_sql.open(path, keep_steps=False, **options("example")) as model:
        model.foresee({recipe: {} for recipe in recipes})
        monkeypatch.setattr(Model, "_execute", counted)
        found = {recipe: answer(model, recipe, "example.sqlite") for recipe in recipes}
        again = answer(model, "phases", "example.sqlite")
        monkeypatch.undo()
        left = model.con.execute(
            "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'nsys'"
        ).fetchall()
    for recipe, text in found.items():
        assert text == (GOLDEN / "example" / f"{recipe}.csv").read_text(encoding="utf-8"), recipe
    assert again == found["phases"]
    assert {"op_launch", "sweep", "stream_item"} <= made.keys()
    assert set(made.values()) == {1}
    steps = {name for (name,) in left} & load_catalog().steps.keys()
    assert steps == {"anchor_choice", "drive", "iteration", "steady"} & made.keys()


def test_a_run_that_was_not_foreseen_is_answered_too(fixture_sqlite):
    with nsys_sql.open(fixture_sqlite("example"), keep_steps=False, **options("example")) as model:
        model.foresee({"budget": {}, "metrics": {}})
        for recipe in ("copies", "budget", "nvtx"):
            golden = GOLDEN / "example" / f"{recipe}.csv"
            assert answer(model, recipe, "example.sqlite") == golden.read_text(encoding="utf-8")
