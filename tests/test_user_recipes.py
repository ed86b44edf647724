"""Recipes of the user's own: found, refused with file and line, checked, documented, compared."""

import importlib.metadata
import json
import re
from pathlib import Path

import duckdb
import pytest

import nsys_sql
from conftest import ROOT
from nsys_sql import database, docs, golden, sandbox, userfiles
from nsys_sql.catalog import load_catalog
from nsys_sql.cli import execute
from nsys_sql.errors import UsageError
from nsys_sql.macros import collect
from nsys_sql.options import Options

EXAMPLES = ROOT / "examples" / "recipes"
ANCHOR = "nvtx:training_step_*"
HEAD = """-- probe — what?
--
-- @grain  one row
-- @param  top BIGINT = 1 how many
-- @column a BIGINT - a
"""
QUERY = """SELECT min(start_ns) AS a
FROM nsys.op
ORDER BY a;
"""


def write(folder, query=QUERY, head=HEAD, name="probe.sql"):
    path = folder / name
    path.write_text(head + query, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def trace(fixture_sqlite):
    return fixture_sqlite("example")


@pytest.fixture(scope="module")
def tiny(fixture_sqlite):
    return fixture_sqlite("relay")


def failure(trace, source):
    with pytest.raises(UsageError) as caught, nsys_sql.open(trace, recipes=source) as model:
        model.run("probe")
    assert caught.value.exit_code == 2
    return f"{caught.value}; {caught.value.hint}"


# ---------------------------------------------------------------- the worked example


def test_the_example_agrees_with_the_budget(trace):
    with nsys_sql.open(trace, anchor=ANCHOR, recipes=EXAMPLES) as model:
        rows = model.run("alone").fetchall()
        budget = dict(
            model.run("budget").filter("device = 0").project("metric, mean_ms").fetchall()
        )
    alone = sum(row[6] for row in rows if row[0] == 0)
    assert alone == pytest.approx(budget["occupied_not_computing"], rel=0.03)
    assert {row[3] for row in rows} == {7, 20, 24, 28}


def test_the_recipe_of_the_guide_is_sound_and_has_a_key(tiny, tmp_path):
    guide = (ROOT / "docs" / "recipes-guide.md").read_text(encoding="utf-8")
    recipe = next(b for b in re.findall(r"```sql\n(.*?)```", guide, re.DOTALL) if "@key" in b)
    name = recipe.split()[1]
    (tmp_path / f"{name}.sql").write_text(recipe, encoding="utf-8")
    with nsys_sql.open(tiny, recipes=tmp_path) as model:
        assert model.catalog.recipe("stream-load").key == ("stream_id",)
        rows = model.run("stream-load").fetchall()
        work = model.query("SELECT count(*) FROM op").fetchall()
    assert rows and work and all(row[2] >= 1 and row[3] > 0 for row in rows)


def test_the_golden_file_of_the_example_is_fresh(trace):
    assert golden.compare(EXAMPLES, [trace], anchor=ANCHOR) == {}


def test_every_way_to_a_user_recipe(trace, capsysbinary, tmp_path):
    options = ["--recipes", str(EXAMPLES)]
    assert (
        execute(["run", "alone", str(trace), "--format", "json", "--anchor", ANCHOR, *options]) == 0
    )
    told = json.loads(capsysbinary.readouterr().out)
    assert {check["name"]: check["status"] for check in told["checks"]} == {"part_of_work": "ok"}
    assert any("8 steady windows" in note for note in told["notes"])
    assert execute(["list", *options]) == 0
    assert b"alone " in capsysbinary.readouterr().out
    assert execute(["describe", "alone", *options]) == 0
    assert b"min_us" in capsysbinary.readouterr().out
    query = "SELECT count(*) AS n FROM alone"
    assert execute(["sql", str(trace), query, "--format", "csv", "--anchor", ANCHOR, *options]) == 0
    assert capsysbinary.readouterr().out == f"n\n{len(told['rows'])}\n".encode()
    assert execute(["show", "alone", str(trace), "--anchor", ANCHOR, *options]) == 0
    assert b"iv_measure_in" in capsysbinary.readouterr().out
    page = tmp_path / "page.md"
    assert docs.main([*options, "-o", str(page)]) == 0
    assert "## alone" in page.read_text(encoding="utf-8")


def test_build_and_attach_take_them_too(trace, tmp_path):
    with nsys_sql.open(trace, anchor=ANCHOR, recipes=EXAMPLES) as model:
        rows = model.run("alone").fetchall()
    built = tmp_path / "example.duckdb"
    database.build(trace, built, Options(anchor=ANCHOR, recipes=(str(EXAMPLES),)))
    with duckdb.connect(built, read_only=True) as con:
        assert con.sql("FROM alone").fetchall() == rows
    with duckdb.connect() as con:
        nsys_sql.attach(con, trace, "mine", anchor=ANCHOR, recipes=EXAMPLES)
        assert con.sql("FROM mine.alone").fetchall() == rows


def test_a_single_file_needs_no_manifest(trace, tmp_path):
    with nsys_sql.open(trace, recipes=write(tmp_path)) as model:
        assert model.run("probe").fetchall()[0][0] > 0
        assert model.notes == ()


def test_a_mark_of_the_byte_order_is_no_text(tiny, tmp_path, capsys):
    path = write(tmp_path, head="\ufeff" + HEAD)
    with nsys_sql.open(tiny, recipes=path) as model:
        assert len(model.run("probe").fetchall()) == 1
    (tmp_path / "query.txt").write_text("\ufeffSELECT 42 AS answer", encoding="utf-8")
    given = ["sql", str(tiny), "--file", str(tmp_path / "query.txt"), "--format", "csv"]
    assert execute(given) == 0
    assert capsys.readouterr().out == "answer\n42\n"


def test_parameters_and_other_results(trace, tmp_path):
    query = (
        "SELECT least(count(*), coalesce(getvariable('top'), 1)::BIGINT)::BIGINT AS a\n"
        "FROM result_budget_windows ORDER BY a"
    )
    with nsys_sql.open(trace, anchor=ANCHOR, recipes=write(tmp_path, query)) as model:
        assert model.run("probe").fetchall() == [(1,)]
        assert model.run("probe", top=5).fetchall() == [(5,)]


@pytest.mark.parametrize(
    ("declared", "taken"),
    [
        ("BIGINT = 1", "coalesce(getvariable('top'), 1.0)"),
        ("BIGINT = null [2, 3]", "coalesce(getvariable('top')::BIGINT, NULL)"),
        ("VARCHAR = 'it is'", "length(coalesce(getvariable('top'), 'it is'))"),
        ("BOOLEAN = TRUE", "coalesce(try_cast(getvariable('top') AS BOOLEAN), true)::INT"),
        ("BIGINT = 1", "CASE WHEN getvariable('top') > 3 THEN 2 ELSE 1 END"),
        ("DATE = 2020-01-01", "1"),
    ],
)
def test_defaults_that_agree(tiny, tmp_path, declared, taken):
    query = f"SELECT count(*) * ({taken})::BIGINT AS a FROM nsys.op ORDER BY a"
    head = HEAD.replace("BIGINT = 1", declared).replace("a BIGINT - a", "a HUGEINT - a")
    query = query.replace(")::BIGINT AS a", ")::HUGEINT AS a")
    with nsys_sql.open(tiny, recipes=write(tmp_path, query, head)) as model:
        assert len(model.run("probe").fetchall()) == 1


def test_own_notes_and_invariants(trace, tmp_path):
    write(tmp_path)
    (tmp_path / "notes").mkdir()
    (tmp_path / "invariants").mkdir()
    write(tmp_path / "notes", "SELECT 'so it is' AS note", "-- said — what?\n", "said.sql")
    rows = "SELECT a FROM result_probe WHERE a > 0"
    write(tmp_path / "invariants", rows, "-- never — positive?\n", "never.sql")
    entry = "recipes:\n  probe:\n    notes: [said]\n    invariants: [never]\n"
    (tmp_path / "recipes.yaml").write_text(entry)
    with nsys_sql.open(trace, recipes=tmp_path) as model:
        result = model.result("probe")
    assert result.notes == ("so it is",)
    assert [(check.name, check.status) for check in result.checks] == [("never", "fail")]


# ---------------------------------------------------------------- what is wrong, and where


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT 1 AS a ORDER BY a", "probe.sql:1: the header is missing"),
        (HEAD.replace("probe", "other") + QUERY, "probe.sql:1: the header names 'other'"),
        (HEAD.replace("@param", "@parm") + QUERY, "probe.sql:4: unknown tag @parm; did you mean"),
        (HEAD.replace("BIGINT - a", "") + QUERY, "probe.sql:5: cannot read `@column a`; write"),
        (HEAD.replace("@grain", "") + QUERY, "probe.sql:1: the header has no @grain; add"),
        (HEAD.replace("a BIGINT", "a BIGINT;DROP") + QUERY, "probe.sql:5: BIGINT;DROP is no plain"),
        (HEAD.replace("top BIGINT", "device BIGINT") + QUERY, "probe.sql:4: device is set by an"),
        (HEAD + "-- @param top BIGINT = 2\n" + QUERY, "probe.sql:4: top is declared twice; make"),
        (HEAD.replace("= 1", "= abc") + QUERY, "probe.sql:4: the default of top, 'abc' is not a B"),
        (HEAD.replace("= 1", "= '1.5'") + QUERY, "probe.sql:4: the default of top, '1.5' is not"),
        (HEAD.replace("= 1", "= 5 [1, 3]") + QUERY, "probe.sql:4: the default of top, 5 is out of"),
        (
            HEAD + QUERY.replace("min(", "\ncoalesce(getvariable('top')::BIGINT, 7) + min("),
            "probe.sql:7: without a top the query takes 7, and its header says 1; write the same",
        ),
        (
            HEAD.replace("= 1", "= NULL")
            + QUERY.replace("min(", "ifnull(getvariable('top'), 7)::BIGINT + min("),
            "probe.sql:6: without a top the query takes 7, and its header says NULL",
        ),
        (
            HEAD + QUERY.replace("min(", "getvariable('top')::BIGINT + min("),
            "probe.sql:6: without a top the query takes NULL, and its header says 1; write coal",
        ),
        (HEAD, "there is no query under the header"),
        (HEAD + "-- @reads nsys.opp\n" + QUERY, "probe.sql:6: there is no relation nsys.opp; did"),
        (HEAD + "-- @pitfall one\n" + QUERY, "probe.sql:6: cannot read `@pitfall one`"),
        (
            HEAD + QUERY.replace("min(", "getvariable('tip') + min("),
            "probe.sql:6: the query gets the variable 'tip', which is not declared; did you mean",
        ),
        (HEAD + QUERY.replace("min(", ",min("), "probe.sql:6: syntax error at or near"),
        (
            HEAD + QUERY.replace("nsys.op", "nsys.opp"),
            "probe.sql:7: unknown relation nsys.opp; did",
        ),
        (HEAD + QUERY.replace("nsys.op", "op"), "probe.sql:7: unknown relation op; write nsys.op"),
        (
            HEAD + QUERY.replace("nsys.op", "trace.CUPTI_ACTIVITY_KIND_KERNEL"),
            "probe.sql:7: a recipe cannot read trace.CUPTI_ACTIVITY_KIND_KERNEL",
        ),
        (HEAD + QUERY.replace("nsys.op", "'x.csv'"), "probe.sql:7: unknown relation x.csv"),
        (
            HEAD + QUERY.replace("nsys.op", "read_csv('x')"),
            "probe.sql:7: table function read_csv()",
        ),
        (
            HEAD + QUERY.replace("nsys.op", "nsys.iv_union('trace.StringIds', 1)"),
            "probe.sql:7: unknown relation 'trace.StringIds'",
        ),
        (
            HEAD + QUERY.replace("nsys.op", "nsys.iv_union('tr' || 'ace.StringIds', 1)"),
            "probe.sql:7: nsys.iv_union takes the name of a relation as text",
        ),
        (HEAD + QUERY.replace("nsys.op", "nsys.iv_unite('x', 1)"), "probe.sql:7: unknown macro"),
        (HEAD + QUERY.replace("min(", "getenv('HOME') || min("), "probe.sql:6: function getenv()"),
        (HEAD + "DROP TABLE nsys.op;", "probe.sql:6: only one SELECT is allowed"),
        (HEAD + "SELECT 1 AS a; SELECT 2 AS a;", "2 queries, one is expected"),
        (HEAD + QUERY.replace("ORDER BY a", ""), "the result has no order; end the query with"),
        (
            HEAD + QUERY.replace("AS a", "AS a, 1 AS b"),
            "probe.sql:6: the query returns the column b, which is not declared; add `-- @column b",
        ),
        (
            HEAD + "-- @column b BIGINT - b\n" + QUERY,
            "probe.sql:6: the query does not return the column b",
        ),
        (
            HEAD + QUERY.replace("min(start_ns)", "min(start_ns)::INTEGER"),
            "probe.sql:5: column a is declared BIGINT, the query returns INTEGER; cast it: a::BIG",
        ),
        (
            HEAD + QUERY.replace("start_ns", "begin_ns"),
            'probe.sql:6: Binder Error: Referenced column "begin_ns" not found in FROM clause!',
        ),
        (HEAD + "-- @invariant low b < 1\n" + QUERY, "probe.sql:6: the check low cannot be eval"),
        (
            HEAD + "-- @invariant low a < (SELECT max(start_ns) FROM nsys.op)\n" + QUERY,
            "probe.sql:6: low reads another relation; a check is a boolean expression",
        ),
        (
            HEAD + "-- @invariant low a > 0) OR true; DROP TABLE nsys.op; --\n" + QUERY,
            "probe.sql:6: low:",
        ),
    ],
)
def test_a_bad_recipe_is_told_with_file_line_and_remedy(tiny, tmp_path, text, words):
    path = tmp_path / "probe.sql"
    path.write_text(text, encoding="utf-8")
    assert words in failure(tiny, path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("recipes:\n  probee: {}\n", "recipes.yaml:2: there is no probee.sql beside"),
        ("recipes:\n  probe: {notes: [windws]}\n", "the note 'windws', which does not exist; did"),
        ("recipes:\n  probe: {note: []}\n", "recipes.yaml:2: unknown key 'note'; did you mean"),
        ("order: [x]\n", "recipes.yaml:1: unknown key 'order'"),
        ("recipes: [probe]\n", "recipes.yaml:1: a mapping is expected here"),
        ("recipes:\n  probe: {notes: windows}\n", "recipes.yaml:2: a list like"),
        ("recipes: {\n", "this is not valid YAML"),
        (
            "recipes:\n  probe: {}\n  probe: {notes: []}\n",
            "recipes.yaml:3: probe stands here for the second time, as on line 2; make one entry",
        ),
        ("recipes: {}\nrecipes: {}\n", "recipes.yaml:2: recipes stands here for the second"),
    ],
)
def test_a_bad_manifest_is_told_with_its_line(tiny, tmp_path, text, words):
    write(tmp_path)
    (tmp_path / "recipes.yaml").write_text(text, encoding="utf-8")
    assert words in failure(tiny, tmp_path)


def test_bad_sources(trace, tmp_path, capsys):
    assert "no such file or folder" in failure(trace, tmp_path / "none")
    assert "holds no recipe" in failure(trace, tmp_path)
    taken = HEAD.replace("probe", "budget")
    path = write(tmp_path, head=taken, name="budget.sql")
    assert "there already is a recipe budget, sql/recipes/budget.sql" in failure(trace, path)
    assert execute(["run", "probe", str(trace), "--recipes", str(path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_what_a_folder_holds_and_nobody_reads_is_told(tmp_path, capsys):
    """An audit that a manifest forgot would never run, and nobody would know."""
    write(tmp_path)
    for part, text in (
        ("invariants", "SELECT a FROM result_probe"),
        ("notes", "SELECT 'x' AS note"),
        ("steps", "SELECT 1 AS a"),
    ):
        (tmp_path / part).mkdir()
        write(tmp_path / part, text, "-- never — what?\n", "never.sql")
    assert execute(["list", "--recipes", str(tmp_path)]) == 0
    err = capsys.readouterr().err
    assert "invariants/never.sql is not read: no recipe names this invariant; write" in err
    assert f"`notes: [never]` under a recipe of {tmp_path}/recipes.yaml" in err
    assert f"{tmp_path}/steps is not read: a recipe is one file" in err
    entry = "recipes: {probe: {notes: [never], invariants: [never]}}\n"
    (tmp_path / "recipes.yaml").write_text(entry, encoding="utf-8")
    assert execute(["list", "--recipes", str(tmp_path)]) == 0
    assert capsys.readouterr().err.count("is not read") == 1


def test_parameters_that_name_a_relation_are_known():
    """Every parameter that a macro hands to query_table is checked when a recipe calls it."""
    macros = collect(load_catalog().macros.values(), ()).values()
    given = {
        name for macro in macros for name in macro.parameters if f"query_table({name})" in macro.sql
    }
    assert given and given <= sandbox.RELATION_PARAMETERS


# ---------------------------------------------------------------- broken ones beside sound ones

NAMED = HEAD.replace("probe", "{}")
# Recipe: its text, and what is said of it.
BROKEN = {
    "header": (NAMED.replace("@grain", "@grian") + QUERY, "header.sql:3: unknown tag @grian; did"),
    "relation": (
        NAMED + QUERY.replace("nsys.op", "nsys.opp"),
        "relation.sql:7: unknown relation nsys.opp; did you mean 'op'?",
    ),
    "syntax": (NAMED + QUERY.replace("min(", ",min("), "syntax.sql:6: syntax error"),
    "bound": (
        NAMED + QUERY.replace("start_ns", "begin_ns"),
        'bound.sql:6: Binder Error: Referenced column "begin_ns" not found in FROM clause!; there',
    ),
    "typed": (
        NAMED + QUERY.replace("min(start_ns)", "min(start_ns)::INTEGER"),
        "typed.sql:5: column a is declared BIGINT, the query returns INTEGER; cast it: a::BIGINT",
    ),
    "own": (
        NAMED + QUERY.replace("nsys.op", "result_own"),
        "own.sql:7: the recipe reads its own result",
    ),
    "tick": (NAMED + QUERY.replace("nsys.op", "result_tock"), "tick.sql depends on its own"),
    "tock": (NAMED + QUERY.replace("nsys.op", "result_tick"), "tock.sql depends on its own"),
    "forbidden": (
        NAMED + QUERY.replace("nsys.op", "read_csv('x')"),
        "forbidden.sql:7: table function read_csv()",
    ),
}


@pytest.fixture
def mixed(tmp_path):
    """A folder with one sound recipe, one that reads its result, and all kinds of broken ones."""
    folder = tmp_path / "mine"
    folder.mkdir()
    write(folder)
    write(folder, QUERY.replace("min(start_ns)", "min(a) + 1").replace("nsys.op", "result_probe"),
          HEAD.replace("probe", "above"), "above.sql")  # fmt: skip
    for name, (text, _) in BROKEN.items():
        (folder / f"{name}.sql").write_text(text.format(name), encoding="utf-8")
    return folder


def test_broken_recipes_are_left_out_of_a_database_and_named(tiny, mixed, tmp_path, capsys):
    target = tmp_path / "built.duckdb"
    assert execute(["build", str(tiny), "-o", str(target), "--recipes", str(mixed)]) == 0
    warned = capsys.readouterr().err.splitlines()
    with nsys_sql.open(tiny, recipes=mixed) as model, duckdb.connect(target, read_only=True) as con:
        ((first,),) = model.run("probe").fetchall()
        assert con.sql("FROM probe").fetchall() == [(first,)]
        assert con.sql("FROM above").fetchall() == model.run("above").fetchall() == [(first + 1,)]
        assert con.sql("FROM devices").fetchall()
        why = dict(con.sql("SELECT recipe, why_not FROM recipes").fetchall())
        for name, (_, words) in BROKEN.items():
            assert sum(words in line for line in warned) == 1, (name, warned)
            assert str(tiny) in next(line for line in warned if words in line)
            if name not in ("header", "own"):  # wrong on the face of it: not even a view
                assert words in why[name]
                with pytest.raises(duckdb.InvalidInputException) as caught:
                    con.sql(f"FROM {name}").fetchall()
                assert words in str(caught.value)


def test_a_recipe_that_is_asked_for_must_be_sound_but_not_its_neighbours(tiny, mixed, capsys):
    given = [str(tiny), "--recipes", str(mixed)]
    assert execute(["run", "probe", *given, "--format", "csv"]) == 0
    assert "the recipe header is left out" in capsys.readouterr().err
    for name, (_, words) in BROKEN.items():
        assert execute(["run", name, *given]) == 2, name
        err = capsys.readouterr().err
        assert words in err.splitlines()[0], err
    assert execute(["describe", "header", "--recipes", str(mixed)]) == 2
    assert execute(["list", "--recipes", str(mixed)]) == 0
    assert "header.sql:3" in capsys.readouterr().err
    assert docs.main(["--recipes", str(mixed)]) == 2
    assert golden.main([str(mixed), str(tiny)]) == 2


def test_a_report_has_a_section_of_them(tiny, mixed, tmp_path, as_markdown):
    out = tmp_path / "report.json"
    given = [str(tiny), "--anchor", "nvtx:step*", "-o", str(out)]
    assert execute(["report", *given, "--recipes", str(mixed)]) == 0
    told = json.loads(out.read_text(encoding="utf-8"))["traces"][0]
    section = told["sections"][6]
    assert (section["number"], section["title"]) == (7, "Recipes of your own")
    assert sorted(section["recipes"]) == ["above", "probe"]
    assert told["results"]["above"]["rows"][0]["a"] > 0
    reasons = " ".join(each["reason"] for each in section["not_captured"])
    for _, words in BROKEN.values():
        assert words in reasons
    (text,) = as_markdown
    assert "## 7 Recipes of your own\n" in text and "**what?** (recipe `probe`)" in text


def test_attach_leaves_them_out_too(tiny, mixed):
    with duckdb.connect() as con:
        model = nsys_sql.attach(con, tiny, "mine", recipes=mixed)
        assert con.sql("FROM mine.above").fetchall()
        for name, (_, words) in BROKEN.items():
            assert sum(words in text for text in model.trace.warnings) == 1, name
            with pytest.raises(duckdb.CatalogException):
                con.sql(f"FROM mine.{name}")


def test_a_broken_note_costs_the_note_or_its_recipe(tiny, tmp_path, capsys):
    folder = tmp_path / "mine"
    (folder / "notes").mkdir(parents=True)
    write(folder)
    (folder / "recipes.yaml").write_text("recipes: {probe: {notes: [odd]}}", encoding="utf-8")
    note = folder / "notes" / "odd.sql"
    note.write_text("-- odd — what?\nSELECT 'x' AS note FROM nsys.op WHERE nope = 1;\n")
    target = tmp_path / "built.duckdb"
    assert execute(["build", str(tiny), "-o", str(target), "--recipes", str(folder)]) == 0
    assert "the note odd is left out: " in (err := capsys.readouterr().err) and "odd.sql:2" in err
    with duckdb.connect(target, read_only=True) as con:
        assert con.sql("FROM probe").fetchall() and con.sql("FROM notes").fetchall() is not None


# ---------------------------------------------------------------- installed recipes


def installed(monkeypatch, **points):
    """Pretend that distributions are installed that offer these objects."""

    class Point:
        dist = None

        def __init__(self, name, value):
            self.name, self.value = name, value

        def load(self):
            if isinstance(self.value, Exception):
                raise self.value
            return self.value

    found = [Point(name, value) for name, value in points.items()]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: found)


def test_recipes_of_installed_distributions(trace, monkeypatch, capsys, tmp_path):
    installed(monkeypatch, team=lambda: [str(EXAMPLES)], other=write(tmp_path))
    assert {"alone", "probe"} <= userfiles.full_catalog().recipes.keys()
    assert {"alone", "probe"}.isdisjoint(load_catalog().recipes)
    assert execute(["run", "probe", str(trace), "--format", "csv"]) == 0
    assert capsys.readouterr().out.startswith("a\n")


def test_a_broken_distribution_is_left_out_and_named(trace, monkeypatch, capsys, tmp_path):
    bad = write(tmp_path, head=HEAD.replace("@grain", "@grian"))
    installed(monkeypatch, bad=bad, worse=ImportError("no module"), good=EXAMPLES)
    catalog = userfiles.full_catalog()
    assert "alone" in catalog.recipes and "probe" not in catalog.recipes
    assert [text.split(" of ")[0] for text in catalog.problems] == [
        "the recipes bad",
        "the recipes worse",
    ]
    assert execute(["run", "devices", str(trace), "--format", "csv"]) == 0
    assert "unknown tag @grian" in capsys.readouterr().err
    assert execute(["list"]) == 0
    assert "no module" in capsys.readouterr().err
    assert execute(["describe", "probe"]) == 2
    assert "are left out" in capsys.readouterr().err


# ---------------------------------------------------------------- golden files


def test_golden_files_are_written_and_compared(trace, tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("CI", raising=False)
    write(tmp_path)
    arguments = [str(tmp_path), str(trace)]
    assert golden.main(arguments) == 5
    assert "missing" in capsys.readouterr().out
    assert golden.main([*arguments, "--update"]) == 0
    kept = tmp_path / "golden" / "example" / "probe.csv"
    assert kept.read_text(encoding="utf-8").startswith("a\n")
    assert golden.main(arguments) == 0
    write(tmp_path, QUERY.replace("min(", "max("))
    capsys.readouterr()
    assert golden.main(arguments) == 5
    assert "\n-" in capsys.readouterr().out
    monkeypatch.setenv("CI", "true")
    assert golden.main([*arguments, "--update"]) == 2
    assert Path(kept).read_text(encoding="utf-8").startswith("a\n")


def test_an_error_is_an_answer(trace, tmp_path):
    source = write(tmp_path, head=HEAD + "-- @needs gpu_metric\n")
    golden.compare(source, [trace], update=True)
    text = (tmp_path / "golden" / "example" / "probe.csv").read_text(encoding="utf-8")
    assert text.startswith("exit 4: probe: this export has no gpu metric table")
