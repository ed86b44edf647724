"""What several test files share: fixture traces, and golden files with their update switch."""

import os
import sqlite3
from pathlib import Path

import duckdb
import pytest

from nsys_sql.cli import execute

ROOT = Path(__file__).resolve().parents[1]
FIXTURES = ROOT / "fixtures"
GOLDEN = ROOT / "tests" / "golden"
# What takes long and rarely finds more than the short form: `NSYS_SQL_TEST_LONG=1` runs it too.
long_test = pytest.mark.skipif(
    not os.environ.get("NSYS_SQL_TEST_LONG"), reason="NSYS_SQL_TEST_LONG=1 runs it"
)
CHECKED: list[str] = []  # tests that want signatures of extensions checked, while they run


if "PYTEST_XDIST_WORKER" in os.environ:
    # Each worker has one core: more threads of DuckDB only stand in each other's way. And to check
    # the signature of its SQLite extension takes longer than most tests: test_supply has it done.
    # Commands that tests start in processes of their own keep all threads, and the check.
    connect = duckdb.connect

    def connect_for_a_test(*arguments, **options):
        if not CHECKED:
            given = options.get("config") or {}
            options["config"] = {"allow_unsigned_extensions": "true", **given}
        con = connect(*arguments, **options)
        con.execute("SET threads = 1")
        return con

    duckdb.connect = connect_for_a_test


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


def build_sqlite(script: Path, target: Path) -> Path:
    """Run the SQL text of a fixture into a new SQLite file."""
    connection = sqlite3.connect(target)
    try:
        connection.executescript(script.read_text(encoding="utf-8"))
        connection.commit()
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
