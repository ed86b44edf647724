"""The interactive shell: the built-in one line by line, the stock one as a process."""

import io
import subprocess
import sys
from types import SimpleNamespace

import duckdb
import pytest

import nsys_sql
from nsys_sql import cli, database, shell
from nsys_sql.options import Options
from nsys_sql.shell import Shell, split


@pytest.fixture(scope="module")
def model(fixture_sqlite, tmp_path_factory):
    target = tmp_path_factory.mktemp("shell") / "trace.duckdb"  # quick to ask
    database.build(fixture_sqlite("event_waits"), target, Options())
    with nsys_sql.open(target) as opened:
        yield opened


@pytest.fixture
def ask(model):
    """`ask(*lines)`: what a session of these lines prints, and how it ends."""

    def session(*lines, stop_on_error=False):
        written, given = [], iter(lines)
        prompts = []

        def read(prompt):
            prompts.append(prompt)
            line = next(given, None)
            if line is None:
                raise EOFError
            if isinstance(line, BaseException):
                raise line
            return line

        own = Shell(model, written.append, read)
        code = own.loop(stop_on_error)
        session.shell, session.prompts = own, prompts
        return code, "".join(written)

    return session


# ---------------------------------------------------------------- statements


@pytest.mark.parametrize(
    ("text", "statements", "rest"),
    [
        ("SELECT 1;", ["SELECT 1"], ""),
        ("SELECT 1; SELECT 2", ["SELECT 1"], " SELECT 2"),
        ("SELECT ';', \"a;b\", $$;$$ -- ;\n/* ; */;", None, ""),
        ("SELECT 'it''s;", [], "SELECT 'it''s;"),
        ("SELECT 1 /* ;", [], "SELECT 1 /* ;"),
        (";;", [], ""),
        ("", [], ""),
    ],
)
def test_statements_end_at_semicolons_that_count(text, statements, rest):
    found, left = split(text)
    assert found == ([text[:-1]] if statements is None else statements)
    assert left == rest


def test_a_statement_may_take_several_lines(ask):
    code, out = ask("SELECT count(*) AS n", "  -- a comment;", "FROM kernel;", "SELECT 'a;b' AS t;")
    assert code == 0
    assert out.split() == ["n", "-", "8", "t", "---", "a;b"]
    assert ask.prompts[0] != ask.prompts[1] == ask.prompts[2]
    assert ask.prompts[3] == ask.prompts[0]


def test_errors_are_told_and_the_session_goes_on(ask):
    code, out = ask("SELECT * FROM kernal;", "FROM read_csv('x');", "SELECT 41 + 1 AS x;")
    assert code == 0
    assert "did you mean 'kernel'?" in out
    assert "read_csv() is not allowed" in out
    assert out.endswith("42\n")
    code, out = ask("SELEC 1;", "SELECT 42 AS x;", stop_on_error=True)
    assert code == 2
    assert "42" not in out


def test_interrupts_and_unfinished_lines_are_forgotten(ask):
    code, out = ask("SELECT", KeyboardInterrupt(), "SELECT 7 AS x;", "SELECT unfinished")
    assert (code, out.split()) == (0, ["x", "-", "7"])
    code, out = ask("SELECT 8 AS x", stop_on_error=True)  # a script may leave out the last one
    assert (code, out.split()) == (0, ["x", "-", "8"])


# ---------------------------------------------------------------- commands


def test_commands_tell_what_there_is(ask):
    _, out = ask(".recipes", ".tables copy", ".schema top_gaps", ".schema nsys.kernel", ".help")
    assert "budget_windows  how does each steady iteration" in out
    assert "copy_op\ncopy_piece\ncopy_window\n" in out
    assert "physical GPU of the report" in out
    assert "grid_x" in out
    assert ".unset NAME" in out
    _, out = ask(".schema top_gap", ".nothing", ".quit", "SELECT 1 AS never;")
    assert "did you mean 'top-gaps'?" in out
    assert "there is no command .nothing" in out
    assert "never" not in out


def test_parameters_reach_recipes(ask):
    count = "SELECT count(*) AS n FROM top_gaps;"
    _, out = ask(count, "SET VARIABLE top = 1;", count, "RESET VARIABLE top;", count)
    first, _, one, _, last = [each for each in out.split() if each.isdigit() or each == "n"][1::1]
    assert first == last != one == "1"
    _, out = ask(".set top 1", ".set", count, ".run top-gaps", ".unset top", ".set")
    assert out.startswith("top = 1\n")
    assert "which were the longest times" in out
    _, out = ask(".set top", ".set top x;", ".run top-gaps")
    assert "takes a name and a value" in out
    assert "is not a BIGINT" in out


def test_run_shows_what_the_command_shows(ask, fixture_sqlite, capsysbinary, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    assert cli.execute(["run", "budget", str(fixture_sqlite("event_waits"))]) == 0
    wanted = capsysbinary.readouterr().out.decode()
    _, out = ask(".run budget")
    assert out.splitlines()[2:] == wanted.splitlines()[2:]


# ---------------------------------------------------------------- completion and history


def test_completion_knows_relations_columns_and_recipes(ask):
    ask()
    complete = ask.shell.complete
    assert "budget_windows" in complete("FROM budget_w", "budget_w")
    assert complete("SELECT nsys.kern", "nsys.kern")[0] == "nsys.kernel"
    assert "k.grid_x" in complete("SELECT k.grid", "k.grid")
    assert complete("SELECT kernel.short", "kernel.short") == ["kernel.short_name_id"]
    assert "registers_per_thread" in complete("SELECT reg", "reg")
    assert "WHERE" in complete("FROM x WHE", "WHE")
    assert complete(".rec", ".rec") == [".recipes"]
    assert "top_gaps" in complete(".run top", "top")


def test_history_is_kept_in_the_state_folder(ask, tmp_path, monkeypatch):
    readline = pytest.importorskip("readline")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    ask()
    with shell.editing(ask.shell):
        readline.add_history("SELECT 1 AS remembered;")
    file = tmp_path / "state" / "nsys-sql" / "history"
    assert "remembered" in file.read_text(encoding="utf-8")
    assert file.stat().st_mode & 0o077 == 0
    readline.clear_history()
    with shell.editing(ask.shell):
        assert readline.get_history_item(1) == "SELECT 1 AS remembered;"
    readline.clear_history()


# ---------------------------------------------------------------- processes


def run(text, *arguments, **more):
    command = [sys.executable, "-m", "nsys_sql", "shell", *map(str, arguments)]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False, **more)


def test_the_built_in_shell_runs_a_script_from_standard_input(fixture_sqlite, monkeypatch, capsys):
    trace = fixture_sqlite("event_waits")
    done = run("SELECT count(*) AS n FROM kernel;\n", trace, "--builtin")
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["n", "-", "8"], "")
    bad = "SELECT * FROM kernal;\nSELECT 1 AS never;\n"
    for text, path, code in ((bad, trace, 2), ("", trace.with_name("none.sqlite"), 3)):
        monkeypatch.setattr(sys, "stdin", io.StringIO(text))
        assert cli.execute(["shell", str(path), "--builtin"]) == code
        assert "never" not in capsys.readouterr().out


def test_the_stock_shell_says_on_a_terminal_how_to_ask(tmp_path, monkeypatch):
    if shell.stock() is None:
        pytest.skip("the duckdb program is not installed")
    path = tmp_path / "x.duckdb"
    with duckdb.connect(path) as con:
        con.execute("CREATE SCHEMA nsys; CREATE TABLE recipes AS SELECT 'budget' AS recipe")
    commands, start = [], subprocess.run
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(
        shell.subprocess, "run", lambda command, **_: commands.append(command) or done
    )
    done = subprocess.CompletedProcess([], 0)
    assert shell.start(shell.stock(), path) == 0
    monkeypatch.undo()
    told = start(commands[0], input="FROM recipes;", capture_output=True, text=True, check=True)
    assert told.stderr == ""
    assert "FROM recipes; lists the questions" in told.stdout
    assert "nsys-sql shell --builtin has .recipes" in told.stdout
    assert "budget" in told.stdout.partition("instead.")[2]


def test_the_stock_shell_starts_on_the_trace(fixture_sqlite, tmp_path):
    if shell.stock() is None:
        pytest.skip("the duckdb program is not installed")
    query = "SELECT count(*) AS n FROM budget; SELECT count(*) AS n FROM kernel;\n"
    done = run(query, fixture_sqlite("event_waits"), "--temp-directory", tmp_path)
    assert done.returncode == 0
    assert "15" in done.stdout and "8" in done.stdout
    assert list(tmp_path.iterdir()) == []
