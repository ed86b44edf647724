"""What several test files share: fixture traces, and golden files with their update switch."""

import functools
import gc
import importlib.metadata
import os
import sqlite3
import sys
from pathlib import Path

import duckdb
import pytest

from nsys_sql import reporting
from nsys_sql.cli import execute

ROOT = Path(__file__).resolve().parents[1]
FIXTURES = ROOT / "fixtures"
GOLDEN = ROOT / "tests" / "golden"

# Before the workers start: commands that tests run in processes of their own would compile all that
# they import each time, sqlglot with it, where this is set and packages were installed uncompiled.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


# What takes long and rarely finds more than the short form: `NSYS_SQL_TEST_LONG=1` runs it too.
def brief(count, values):
    """The cases of a test, of which all but the first `count` are long: they say it once more."""
    values = list(values)
    return values[:count] + [
        pytest.param(*(each if isinstance(each, tuple) else (each,)), marks=long_test)
        for each in values[count:]
    ]


long_test = pytest.mark.skipif(
    not os.environ.get("NSYS_SQL_TEST_LONG"), reason="NSYS_SQL_TEST_LONG=1 runs it"
)
MACROS: dict[str, str] = {}  # as the connection of `ask` knows them
CHECKED: list[str] = []  # tests that want signatures of extensions checked, while they run


if "PYTEST_XDIST_WORKER" in os.environ:
    # Each worker has one core: more threads of DuckDB only stand in each other's way. And to check
    # the signature of its SQLite extension takes longer than most tests: test_supply has it done.
    # Commands that tests start in processes of their own keep all threads, and the check.
    connect = duckdb.connect

    def connect_for_a_test(*arguments, **options):
        given = options.get("config") or {}
        unsigned = {} if CHECKED else {"allow_unsigned_extensions": "true"}
        options["config"] = {"threads": 1, **unsigned, **given}
        return connect(*arguments, **options)

    duckdb.connect = connect_for_a_test

    # What is installed stays the same while tests run, and every trace that is opened asks for it.
    @functools.cache
    def installed(path, selected, look=importlib.metadata.entry_points):
        return look(**dict(selected))

    importlib.metadata.entry_points = lambda **selected: installed(
        tuple(sys.path), tuple(selected.items())
    )
    # What a worker makes while it collects tests stays: to look for what does not is idle.
    gc.disable()


def pytest_collection_finish():
    gc.enable()


@pytest.fixture
def signatures_checked(request):
    """Signatures of extensions are checked while the test runs, as they are for users."""
    CHECKED.append(request.node.name)
    yield
    CHECKED.pop()


def pytest_addoption(parser):
    parser.addoption(
        "--update-golden", action="store_true", help="write tests/golden from what recipes answer"
    )


def pytest_configure(config):
    if config.getoption("--update-golden") and os.environ.get("CI"):
        raise pytest.UsageError("--update-golden is for people: CI never changes what it checks")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Half of the tests to each worker, in order: what a file shares is mostly made only once."""
    if config.getoption("dist") != "load":  # somebody wants another one
        return None
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)


def build_sqlite(script: Path, target: Path) -> Path:
    """Run the SQL text of a fixture into a new SQLite file."""
    connection = sqlite3.connect(target)
    try:
        # One transaction, and nothing waits for the disk: a test that is cut off starts anew.
        text = script.read_text(encoding="utf-8")
        connection.executescript(f"PRAGMA synchronous = OFF; BEGIN; {text} COMMIT;")
    finally:
        connection.close()
    return target


@pytest.fixture(scope="session")
def fixture_sqlite(tmp_path_factory):
    """`fixture_sqlite(name)`: the path of the trace that fixtures/<name>.sql builds."""
    folder = tmp_path_factory.mktemp("fixtures")
    built = {}

    def path(name):
        if name not in built:
            built[name] = build_sqlite(FIXTURES / f"{name}.sql", folder / f"{name}.sqlite")
        return built[name]

    return path


@pytest.fixture
def call(capsysbinary, monkeypatch):
    """`call(*arguments)`: (exit code, stdout, stderr) of one command line."""
    monkeypatch.setenv("COLUMNS", "120")

    def run(*arguments):
        code = execute([str(argument) for argument in arguments])
        out, err = capsysbinary.readouterr()
        return code, out.decode(), err.decode()

    return run


@pytest.fixture
def as_markdown(monkeypatch):
    """Each report that a command writes, whatever its form, as Markdown too: it is made once."""
    texts, rendered = [], reporting._rendered

    def render(parts, suffix):
        texts.append(rendered(parts, ".md"))
        return rendered(parts, suffix)

    monkeypatch.setattr(reporting, "_rendered", render)
    return texts


def written(value):
    """A row, or a value in it, as SQL."""
    if isinstance(value, tuple | list):
        inside = ", ".join(map(written, value))
        return f"({inside})" if isinstance(value, tuple) else f"[{inside}]"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return "NULL" if value is None else str(value)


@pytest.fixture(scope="session")
def bare():
    """A DuckDB without a trace: only the schemas that SQL files name."""
    with duckdb.connect(config={"threads": 1}) as con:
        # Of a few rows every plan is a fast one, and to look for a better one takes longer.
        con.execute("PRAGMA disable_optimizer")
        for schema in ("nsys", "rank", "pair", "store"):
            con.execute(f"CREATE SCHEMA {schema}")
        yield con


@pytest.fixture
def ask(bare):
    """`ask(file, {table: (columns, rows)}, variable=value)`: what a file of sql/ answers."""
    made = {}
    for path in sorted((ROOT / "sql" / "macros").glob("*.sql")):
        text = path.read_text(encoding="utf-8")
        if MACROS.get(path.name) != text:  # it stays the same, but where tests/mutate.py changes it
            bare.execute(text)
            MACROS[path.name] = text

    def answer(file, tables, **variables):
        for name, (columns, rows) in tables.items():
            if made.get(name) != (columns, values := ", ".join(map(written, rows))):
                bare.execute(f"CREATE OR REPLACE TABLE {name} ({columns})")
                made[name] = (columns, values)
                if rows:
                    bare.execute(f"INSERT INTO {name} VALUES {values}")
        for name, value in variables.items():
            bare.execute(f"SET VARIABLE {name} = ?", [value])
        try:
            return bare.execute((ROOT / f"sql/{file}.sql").read_text(encoding="utf-8")).fetchall()
        finally:
            for name in variables:
                bare.execute(f"RESET VARIABLE {name}")

    yield answer
    for name in made:
        bare.execute(f"DROP TABLE {name}")
