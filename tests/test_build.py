"""Databases that answer alone: the same rows everywhere, parameters, privacy, and reopening."""

import json
import shutil
import sqlite3
import subprocess

import duckdb
import pytest

import nsys_sql
from nsys_sql import cli, database, formats, session, shell
from nsys_sql.catalog import load_catalog
from nsys_sql.errors import AnswerError, InputError, UsageError
from nsys_sql.options import Options

CATALOG = load_catalog()
EXPERT = {"anchor": "nccl:ncclDevKernel_AllReduce*", "per_iteration": 2}
FIXTURES = {"event_waits": {}, "expert_parallel": EXPERT}


@pytest.fixture(scope="module")
def built(fixture_sqlite, tmp_path_factory):
    """`built(name)`: the database of a fixture with its options, made once."""
    folder, made = tmp_path_factory.mktemp("built"), {}

    def path(name):
        if name not in made:
            target = folder / f"{name}.duckdb"
            database.build(fixture_sqlite(name), target, Options(**FIXTURES.get(name, {})))
            made[name] = target
        return made[name]

    return path


def answers(ask):
    """What `ask(recipe)` says about every recipe: rows, or the message of the error."""
    found = {}
    for name in CATALOG.recipes:
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


@pytest.mark.parametrize("name", FIXTURES)
def test_every_recipe_gives_the_same_rows_everywhere(fixture_sqlite, built, capsysbinary, name):
    trace, options = fixture_sqlite(name), FIXTURES[name]
    fresh = duckdb.connect()

    def as_script(recipe):
        rows = fresh.execute(model.script(recipe)).fetchall()
        fresh.execute("DETACH trace")
        return rows

    def as_view(recipe):
        try:
            return plain.execute(f"FROM {recipe.replace('-', '_')}").fetchall()
        except duckdb.InvalidInputException as error:
            raise AnswerError(str(error).partition(": ")[2].partition("; ")[0]) from None

    def as_command(recipe):
        text = ["run", recipe, str(built(name)), "--format", "json", *arguments(options)]
        code = cli.execute(text)
        out, err = capsysbinary.readouterr()
        if code == 4:
            raise AnswerError(err.decode().removeprefix("Error: ").partition("; ")[0])
        assert code == 0, (recipe, err)
        return [list(row.values()) for row in json.loads(out)["rows"]]

    with nsys_sql.open(trace, **options) as model:
        wanted = answers(lambda recipe: model.run(recipe).fetchall())
        can_answer = [recipe for recipe, rows in wanted.items() if not isinstance(rows, str)]
        assert len(can_answer) > 20
        # Scripts and commands start from nothing each time: all of them on one of the traces.
        for recipe in can_answer if name == "event_waits" else ("verdict", "copies"):
            assert as_script(recipe) == wanted[recipe], recipe
    fresh.close()
    plain = duckdb.connect(str(built(name)), read_only=True)
    assert answers(as_view) == wanted
    plain.close()
    if name != "event_waits":
        with nsys_sql.open(built(name), **options) as model:
            assert answers(lambda recipe: model.run(recipe).fetchall()) == wanted
        return
    told = {
        recipe: rows if isinstance(rows, str) else [[*map(formats.plain, row)] for row in rows]
        for recipe, rows in wanted.items()
    }
    assert answers(as_command) == told


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
    assert other["op"] == "stored"


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
