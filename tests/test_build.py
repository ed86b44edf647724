"""Databases that answer alone: the same rows everywhere, parameters, privacy, and reopening."""

import json
import os
import re
import shutil
import sqlite3
import subprocess
from contextlib import closing, suppress

import duckdb
import pytest

import nsys_sql
from conftest import long_test
from nsys_sql import cli, database, formats, session, shell
from nsys_sql.catalog import load_catalog
from nsys_sql.errors import AnswerError, InputError, UsageError
from nsys_sql.options import Options

CATALOG = load_catalog()
EXPERT = {"anchor": "nccl:ncclDevKernel_AllReduce*", "per_iteration": 2}
STEPS = {"anchor": "nvtx:step *", "reference_steps": "1.8ms,1.9ms,1.85ms"}
# Traces with the options that they are read with. `everything` has rows for every recipe.
FIXTURES = {"event_waits": {}, "everything": STEPS, "expert_parallel": EXPERT}
SAMPLES = """
CREATE TABLE TARGET_INFO_GPU_METRICS (
    typeId INTEGER, sourceId INTEGER, typeName TEXT, metricId INTEGER, metricName TEXT);
CREATE TABLE GPU_METRICS (timestamp INTEGER, typeId INTEGER, metricId INTEGER, value INTEGER);
INSERT INTO TARGET_INFO_GPU_METRICS VALUES
    (589824, 1, 'GPU', 1, 'SM Issue [Throughput %]'),
    (589824, 1, 'GPU', 2, 'Tensor Active [Throughput %]');
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
INSERT INTO GPU_METRICS SELECT i * 10000, 589824, 1 + i % 2, i % 97 FROM n;
"""


@pytest.fixture(scope="module")
def source(fixture_sqlite, tmp_path_factory):
    """`source(name)`: a trace, and the options it is read with."""
    folder = tmp_path_factory.mktemp("source")

    def found(name):
        if name != "everything":
            return fixture_sqlite(name), FIXTURES[name]
        trace, sites = folder / "everything.sqlite", folder / "sites.csv"
        if not trace.exists():
            shutil.copy(fixture_sqlite("event_waits"), trace)
            with closing(sqlite3.connect(trace)) as con:
                con.executescript(SAMPLES)
                con.commit()
            # four launches of each of the two steps, on one thread
            lines = [f"0,100,{number},model.py:{number % 4 + 10}" for number in range(8)]
            sites.write_text("\n".join(["rank,thread,ordinal,call_site", *lines]) + "\n")
        return trace, {**STEPS, "callsites": str(sites)}

    return found


@pytest.fixture(scope="module")
def built(source, tmp_path_factory):
    """`built(name)`: the database of a trace with its options, made once."""
    folder, made = tmp_path_factory.mktemp("built"), {}

    def path(name):
        if name not in made:
            trace, options = source(name)
            target = folder / f"{name}.duckdb"
            database.build(trace, target, Options(**options))
            made[name] = target
        return made[name]

    return path


def answers(ask, recipes=CATALOG.recipes):
    """What `ask(recipe)` says about the recipes: rows, or the message of the error."""
    found = {}
    for name in recipes:
        try:
            found[name] = ask(name)
        except AnswerError as error:
            found[name] = str(error).removeprefix(f"{name}: ")
    return found


def arguments(options):
    return [
        text
        for name, value in options.items()
        for text in (f"--{name.replace('_', '-')}", str(value))
    ]


# ---------------------------------------------------------------- the same rows everywhere


MARK = "-- result of "


def in_stock_shell(arguments, scripts, folder):
    """What each script of {recipe: script} answers, all in one run of the stock DuckDB shell.

    Without that program, the scripts run in a connection of Python's, which is the same engine.
    Neither has a home with extensions in it. A recipe that fails is left out.
    """
    program, found = shell.stock(), {}
    if program is None:
        with duckdb.connect(*arguments[-1:]) as con:
            for recipe, script in scripts.items():
                with suppress(duckdb.Error):
                    found[recipe] = [
                        [*map(formats.plain, row)] for row in con.sql(script).fetchall()
                    ]
        return found
    text = "".join(f".print {MARK}{name}\n{script}\n" for name, script in scripts.items())
    done = subprocess.run(
        [program, "-init", "/dev/null", "-json", *arguments],
        input=text,
        capture_output=True,
        text=True,
        check=False,
        env={"HOME": str(folder)},
    )
    for part in done.stdout.split(MARK)[1:]:
        recipe, _, rows = part.partition("\n")
        if rows.strip():
            found[recipe] = [list(row.values()) for row in json.loads(rows)]
    return found


MAKES = re.compile(r"\s*(?:--.*\n\s*)*CREATE OR REPLACE \w+ (\S+?)[\s(]")


def without_repeats(scripts):
    """{recipe: its script}, for one run after the other, with each relation made only once.

    Every script makes all that it needs, and makes a relation as the others do.
    """
    made, found = {}, {}
    for recipe, script in scripts.items():
        kept = []
        for query in (each.query.strip().rstrip(";") for each in duckdb.extract_statements(script)):
            makes = MAKES.match(query)
            if makes is None or makes[1] not in made:
                kept.append(f"{query};")
            if makes is not None:
                assert made.setdefault(makes[1], query) == query
        found[recipe] = "\n".join(kept)
    assert len(made) > 99
    return found


@pytest.mark.parametrize("name", ["everything", pytest.param("expert_parallel", marks=long_test)])
def test_every_recipe_gives_the_same_rows_everywhere(source, built, capsysbinary, tmp_path, name):
    """Python, `run`, `show` in a shell, and a built database in Python, `run` and a shell."""
    trace, options = source(name)

    def as_command(path):
        def ask(recipe):
            code = cli.execute(["run", recipe, str(path), "--format", "json", *arguments(options)])
            out, err = capsysbinary.readouterr()
            if code == 4:
                raise AnswerError(err.decode().removeprefix("Error: ").partition("; ")[0])
            assert code == 0, (recipe, err)
            return [list(row.values()) for row in json.loads(out)["rows"]]

        return ask

    def as_view(recipe):
        try:
            return plain.execute(f"FROM {recipe.replace('-', '_')}").fetchall()
        except duckdb.InvalidInputException as error:
            raise AnswerError(str(error).partition(": ")[2].partition("; ")[0]) from None

    with nsys_sql.open(trace, **options) as model:
        wanted = answers(lambda recipe: model.run(recipe).fetchall())
        can_answer = [recipe for recipe, rows in wanted.items() if not isinstance(rows, str)]
        # Scripts and commands start from nothing each time: all of them on one of the traces, and
        # every other one in a short run.
        every = 1 if os.environ.get("NSYS_SQL_TEST_LONG") else 2
        some = [*CATALOG.recipes][::every] if name == "everything" else ["verdict"]
        scripts = {each: f"{model.script(each)}\nDETACH trace;" for each in some}
    told = {
        recipe: rows if isinstance(rows, str) else [[*map(formats.plain, row)] for row in rows]
        for recipe, rows in wanted.items()
    }
    if name == "everything":  # nothing is shown by recipes that have nothing to say
        assert [recipe for recipe in CATALOG.recipes if not told[recipe]] == []
        assert len(can_answer) == len(CATALOG.recipes)

    assert answers(as_command(trace), some) == {recipe: told[recipe] for recipe in some}
    found = in_stock_shell([], without_repeats(scripts), tmp_path)
    for recipe in some:
        assert found.get(recipe, []) == told[recipe], f"the script of {recipe}"

    with duckdb.connect(str(built(name)), read_only=True) as plain:
        assert answers(as_view) == wanted
    views = {recipe: f"FROM {recipe.replace('-', '_')};" for recipe in CATALOG.recipes}
    found = in_stock_shell(["-readonly", str(built(name))], views, tmp_path)
    assert {recipe: found.get(recipe, []) for recipe in can_answer} == {
        recipe: told[recipe] for recipe in can_answer
    }
    assert found.keys() <= {*can_answer}
    with nsys_sql.open(built(name), **options) as model:
        assert answers(lambda recipe: model.run(recipe).fetchall()) == wanted
    some = ["verdict", "metrics"]
    assert answers(as_command(built(name)), some) == {recipe: told[recipe] for recipe in some}


def test_checks_and_notes_are_the_same_from_a_built_database(fixture_sqlite, built):
    with (
        nsys_sql.open(fixture_sqlite("event_waits")) as one,
        nsys_sql.open(built("event_waits")) as other,
    ):
        for name in ("budget", "opportunities", "blockers", "capture", "claims"):
            wanted, found = one.result(name), other.result(name)
            assert (found.checks, found.notes) == (wanted.checks, wanted.notes)
        assert other.trace.product_version == one.trace.product_version
        assert other.trace.warnings == one.trace.warnings == ()
        con = duckdb.connect(str(built("event_waits")), read_only=True)
        notes = con.execute("SELECT note FROM notes WHERE recipe = 'budget'").fetchall()
        assert [note for (note,) in notes] == list(one.result("budget").notes)
        con.close()


def test_the_stock_shell_reads_it_with_no_extension(built, tmp_path):
    program = shell.stock()
    if program is None:
        pytest.skip("the duckdb program is not installed")
    copy = shutil.copy(built("event_waits"), tmp_path / "alone.duckdb")
    done = subprocess.run(
        [program, "-readonly", "-csv", copy, "-c", "SELECT count(*) AS n FROM budget"],
        capture_output=True,
        text=True,
        check=True,
        env={"HOME": str(tmp_path)},
    )
    assert done.stdout.split() == ["n", "15"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["alone.duckdb"]


# ---------------------------------------------------------------- parameters and options


def test_parameters_work_by_set_variable(fixture_sqlite, built):
    con = duckdb.connect(str(built("event_waits")), read_only=True)
    with nsys_sql.open(fixture_sqlite("event_waits")) as model:
        for recipe, name, value in (
            ("top-gaps", "top", 1),
            ("opportunities", "mfu", 40.0),
            ("opportunities", "stall_ms", 0.01),  # decides a step, not only the recipe
        ):
            before = con.execute(f"FROM {recipe.replace('-', '_')}").fetchall()
            con.execute(f"SET VARIABLE {name} = {value}")
            after = con.execute(f"FROM {recipe.replace('-', '_')}").fetchall()
            con.execute(f"RESET VARIABLE {name}")
            assert after == model.run(recipe, **{name: value}).fetchall() != before
    con.close()


def test_options_are_kept_and_others_are_told(fixture_sqlite, tmp_path):
    trace, target = fixture_sqlite("two_processes"), tmp_path / "one.duckdb"
    options = {"anchor": "nvtx:step *", "device": 1, "skip_first": 1}
    database.build(trace, target, Options(**options))
    con = duckdb.connect(str(target), read_only=True)
    with nsys_sql.open(trace, **options) as model:
        for recipe in ("budget", "iterations", "gaps", "kernels"):
            assert con.execute(f"FROM {recipe}").fetchall() == model.run(recipe).fetchall()
    con.close()
    with nsys_sql.open(trace) as model, nsys_sql.open(target) as other:
        assert other.run("budget").fetchall() == model.run("budget").fetchall()
        assert "--device 1" in other.trace.warnings[0]


def test_steps_are_taken_from_the_file_and_only_where_they_are_the_same(built):
    def kinds(**options):
        with nsys_sql.open(built("event_waits"), **options) as model:
            return {each.name: each.kind for each in model.planner.plan(["budget"], audit=True)}

    same = kinds()
    assert same["budget_window"] == "stored"
    made = {name for name, kind in same.items() if kind == "step"}
    assert made <= {"whole_graph", "gap_cut", "step_slowdown"}  # views anyway
    assert not {"sweep", "kernel", "dependency"} & same.keys()  # nothing leads there any more
    other = kinds(anchor="nvtx:step *", skip_first=1)
    assert other["budget_window"] == "step"
    assert other["stream_item"] == "stored"


def test_a_parameter_replaces_a_stored_step_and_gives_it_back(fixture_sqlite, built):
    with (
        nsys_sql.open(fixture_sqlite("event_waits")) as model,
        nsys_sql.open(built("event_waits")) as other,
    ):
        for stall in (1, 0.01, 1):
            rows = other.run("opportunities", stall_ms=stall).fetchall()
            assert rows == model.run("opportunities", stall_ms=stall).fetchall()


def test_attach_takes_a_built_database_too(built):
    con = duckdb.connect()
    with nsys_sql.attach(con, built("event_waits"), schema="mine") as model:
        assert con.execute("FROM mine.budget").fetchall() == model.run("budget").fetchall()
        assert con.execute("SELECT count(*) FROM mine.op").fetchone()[0] > 0
    con.close()


# ---------------------------------------------------------------- what it says and hides


def test_a_recipe_without_an_answer_says_why(fixture_sqlite, tmp_path):
    target = tmp_path / "none.duckdb"
    info = database.build(fixture_sqlite("event_waits"), target, Options(anchor="nvtx:nothing"))
    assert "nvtx:nothing matches nothing" in info.warnings[0]
    con = duckdb.connect(str(target), read_only=True)
    for query in ("FROM budget", "SELECT count(*) FROM budget"):
        with pytest.raises(duckdb.InvalidInputException, match="nothing matches nothing"):
            con.execute(query).fetchall()
    with pytest.raises(duckdb.InvalidInputException, match="hardware counters"):
        con.execute("FROM metrics").fetchall()
    assert con.execute("FROM gaps").fetchall()
    why = dict(con.execute("SELECT recipe, why_not FROM recipes").fetchall())
    assert why.keys() == {name.replace("-", "_") for name in CATALOG.recipes}
    assert why["gaps"] is None
    assert "matches nothing" in why["budget"]
    con.close()


CANARIES = """
CREATE TABLE IF NOT EXISTS META_DATA_CAPTURE (name TEXT, value TEXT);
INSERT INTO META_DATA_CAPTURE VALUES
    ('PROCESS_1:ENVIRONMENT', 'SECRET=canary1'), ('COMMAND_LINE', 'train --key canary2'),
    ('PROCESS_1:WORKING_DIR', '/home/canary3');
CREATE TABLE IF NOT EXISTS TARGET_INFO_SYSTEM_ENV (
    globalVid INTEGER, devStateName TEXT, name TEXT, nameEnum INTEGER, value TEXT);
INSERT INTO TARGET_INFO_SYSTEM_ENV (name, value) VALUES
    ('Hostname', 'canary4'), ('UserName', 'canary5'), ('EnvironmentVariables', 'A=canary6'),
    ('TargetInstallDir', '/home/canary7/nsys-2025.1.3');
INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_USER_NAME', 'canary8'), ('EXPORT_HOST', 'canary9');
INSERT INTO StringIds VALUES (900001, 'A=canary10' || char(0) || 'B=canary11'),
    (900002, '/home/canary12/train.py');
CREATE TABLE IF NOT EXISTS DIAGNOSTIC_EVENT (timestamp INTEGER, timestampType INTEGER,
    source INTEGER, severity INTEGER, text TEXT, globalPid INTEGER);
INSERT INTO DIAGNOSTIC_EVENT (severity, text) VALUES (2, 'no access to /home/canary13/x');
CREATE TABLE IF NOT EXISTS PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT);
INSERT INTO PROCESSES (globalPid, pid, name) VALUES (1, 1, '/home/canary14/bin/python');
"""


def test_no_environment_host_or_user_is_in_it(fixture_sqlite, tmp_path):
    trace = shutil.copy(fixture_sqlite("event_waits"), tmp_path / "canary15.sqlite")
    source = sqlite3.connect(trace)
    source.executescript(CANARIES)
    source.commit()
    source.close()
    target = tmp_path / "clean.duckdb"
    database.build(trace, target)
    assert b"canary" not in target.read_bytes()
    con = duckdb.connect(str(target), read_only=True)
    columns = con.execute(
        "SELECT schema_name, table_name, column_name FROM duckdb_columns() "
        "WHERE data_type = 'VARCHAR' AND NOT internal AND schema_name = 'nsys'"
    ).fetchall()
    assert len(columns) > 50
    for schema, table, column in columns:  # compressed text would not show in the bytes
        query = f"SELECT count(*) FROM {schema}.{table} WHERE {column} LIKE '%canary%'"
        assert con.execute(query).fetchone() == (0,), (table, column)
    versions = dict(con.execute("SELECT name, value FROM nsys.system_env").fetchall())
    assert versions["CaptureVersion"] == "2025.1.3"
    con.close()


def test_other_definitions_are_told(built, tmp_path):
    copy = shutil.copy(built("event_waits"), tmp_path / "old.duckdb")
    con = duckdb.connect(str(copy))
    con.execute("UPDATE nsys.build_info SET value = 'x' WHERE name = 'definitions'")
    con.close()
    with nsys_sql.open(copy) as model:
        assert "build it again" in model.trace.warnings[0]


# ---------------------------------------------------------------- files


def test_a_database_appears_whole_or_not_at_all(fixture_sqlite, tmp_path, monkeypatch):
    trace = fixture_sqlite("event_waits")
    for name in ("nsys", "main", "temp", "SYSTEM"):
        with pytest.raises(UsageError, match="ambiguous"):
            database.build(trace, tmp_path / f"{name}.duckdb")
    with pytest.raises(InputError, match="does not exist"):
        database.build(tmp_path / "none.sqlite", tmp_path / "x.duckdb")
    old = tmp_path / "old.duckdb"
    old.write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError, match="exists"):
        database.build(trace, old)

    def fails(*_, **__):
        raise AnswerError("half way")

    monkeypatch.setattr(session.Model, "keys", fails)
    with pytest.raises(AnswerError, match="half way"):
        database.build(trace, old, replace_existing=True)
    assert [path.name for path in tmp_path.iterdir()] == ["old.duckdb"]
    assert old.read_text(encoding="utf-8") == "mine"


def test_the_command_builds_and_replaces_only_when_told(fixture_sqlite, tmp_path, capsys):
    trace, target = str(fixture_sqlite("event_waits")), tmp_path / "x.duckdb"
    assert cli.execute(["build", trace, "-o", str(target)]) == 0
    assert capsys.readouterr().out == ""
    assert cli.execute(["build", trace, "-o", str(target)]) == 2
    assert cli.execute(["build", str(target), "-o", str(target), "--force"]) == 2
    assert "overwrite the trace" in capsys.readouterr().err
    again = tmp_path / "again.duckdb"
    assert cli.execute(["build", str(target), "-o", str(again), "--quiet"]) == 0
    one, other = (duckdb.connect(str(each), read_only=True) for each in (target, again))
    assert one.execute("FROM budget").fetchall() == other.execute("FROM budget").fetchall()
    one.close()
    other.close()
