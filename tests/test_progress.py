"""Progress on standard error: when it is shown, what it says, and that it leaves nothing behind."""

import io
import os
import pty
import re
import select
import subprocess
import sys

import pytest

import nsys_sql
from conftest import brief
from nsys_sql import attached, cli, inputs, partition, progress, shell, tasks
from nsys_sql.compare import Comparison, Side
from nsys_sql.errors import UsageError
from nsys_sql.options import Options
from nsys_sql.ranks import RankMap
from nsys_sql.survey import Survey

ERASED = "\r\x1b[K"


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def line(clock, monkeypatch):
    """A line of a terminal, drawn by hand; and of a log."""
    monkeypatch.setattr(progress.Line, "_run", lambda _: None)
    made = {kind: progress.Line(io.StringIO(), kind == "terminal", clock) for kind in KINDS}
    yield made
    for each in made.values():
        each.close()


KINDS = ("terminal", "log")


def text(line):
    return line._file.getvalue()


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_shown_in_the_first_second(line, clock, kind):
    line[kind].show("1/3 op")
    clock.now += 0.99
    line[kind].draw()
    line[kind].close()
    assert text(line[kind]) == ""


def test_a_terminal_has_one_line_that_is_replaced_and_erased(line, clock):
    shown = line["terminal"]
    shown.show("1/3 op — what ran")
    clock.now += 1.5
    shown.draw()
    clock.now += 0.5
    shown.about("3/16 traces")
    shown.show("2/3 sweep")
    shown.draw()
    assert text(shown).split(ERASED)[1:] == [
        "nsys-sql: 1/3 op — what ran  1.5 s",
        "nsys-sql: 3/16 traces — 2/3 sweep  2.0 s",
    ]
    shown.close()
    shown.draw()  # the thread may still be at it
    assert text(shown).endswith(f"2.0 s{ERASED}")


def test_the_line_goes_when_nothing_is_done_any_more(line, clock):
    shown = line["terminal"]
    shown.show("1/3 op")
    clock.now += 2
    shown.draw()
    shown.show("")
    assert text(shown).endswith(ERASED)
    shown.draw()
    assert text(shown).count("nsys-sql:") == 1
    clock.now += 60  # an answer was read meanwhile: what comes then is new
    shown.show("1/2 budget")
    shown.draw()
    assert text(shown).count("nsys-sql:") == 1
    clock.now += 1.2
    shown.draw()
    assert text(shown).endswith("nsys-sql: 1/2 budget  1.2 s")


def test_a_log_gets_whole_lines_and_the_same_only_now_and_then(line, clock):
    shown = line["log"]
    shown.show("1/3 op")
    for _ in range(13):
        clock.now += 1
        shown.draw()
    shown.show("2/3 sweep")
    clock.now += 100
    shown.draw()
    shown.close()
    assert text(shown).splitlines() == [
        "nsys-sql: 1/3 op  1.0 s",
        "nsys-sql: 1/3 op  11.0 s",
        "nsys-sql: 2/3 sweep  113 s",
    ]


def test_a_long_text_is_cut_before_the_time_and_no_name_writes_control_characters(line, clock):
    shown = line["terminal"]
    shown.about("a\x1b[2Jb\nc")
    shown.show("x" * 500)
    clock.now += 3
    shown.draw()
    drawn = text(shown).removeprefix(ERASED)
    assert drawn.endswith("x…  3.0 s")
    assert drawn.startswith(r"nsys-sql: a\x1b[2Jb\nc — xx")
    assert "\n" not in drawn
    assert len(drawn) < 500


def test_a_block_inside_another_one_has_its_line(capsys):
    with progress.shown(True, False) as outer, progress.shown(True, False) as inner:
        assert outer is not None
        assert inner is outer
    with progress.shown(False, False) as none:
        assert none is None


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("is_terminal", "wanted", "is_quiet", "is_shown"),
    [
        (True, None, False, True),
        (True, None, True, False),
        (True, False, False, False),
        (True, True, True, True),
        (False, None, False, False),
        (False, True, False, True),
    ],
)
def test_who_is_shown_it(monkeypatch, is_terminal, wanted, is_quiet, is_shown):
    monkeypatch.setattr(sys, "stderr", Terminal() if is_terminal else io.StringIO())
    with progress.shown(wanted, is_quiet) as line:
        assert (line is not None) == is_shown


# ---------------------------------------------------------------- what is told


def test_every_step_is_told_with_its_place_and_none_twice(fixture_sqlite):
    told = []
    with (
        nsys_sql.open(fixture_sqlite("event_waits"), keep_steps=True) as model,
        inputs.reporting(told.append),
    ):
        model.result("budget")
        first, total = [each for each in told if each], len(told) - 1
        assert told[-1] == ""
        assert [each.split(" ")[0] for each in first] == [
            f"{n}/{total}" for n in range(1, total + 1)
        ]
        sweep = f" sweep — {model.catalog.steps['sweep'].question}"
        assert any(each.endswith(sweep) for each in first)
        assert first[-1] == f"{total}/{total} budget — {model.catalog.recipe('budget').question}"
        told.clear()
        model.result("budget-windows")  # its steps are there
        assert [each for each in told if each] == [
            f"1/1 budget-windows — {model.catalog.recipe('budget-windows').question}"
        ]
        told.clear()
        model.result("budget-windows")
        assert told == []


@pytest.fixture
def at_once(monkeypatch):
    """Every text is written as soon as it is told, instead of after a second."""
    monkeypatch.setattr(progress, "_AFTER_S", -1.0)
    monkeypatch.setattr(progress.Line, "_run", lambda _: None)
    show = progress.Line._set

    def show_and_draw(line, *given):
        show(line, *given)
        line.draw()

    monkeypatch.setattr(progress.Line, "_set", show_and_draw)


def test_nothing_is_told_unless_asked_and_the_answer_stays_the_same(
    fixture_sqlite, at_once, capsys
):
    arguments = ["run", "iterations", str(fixture_sqlite("event_waits"))]
    found = []
    for more in ([], ["--no-progress"], ["--progress"]):
        assert cli.execute([*arguments, *more]) == 0
        found.append(capsys.readouterr())
    assert {each.out for each in found} == {found[0].out}
    assert ["nsys-sql:" in each.err for each in found] == [False, False, True]


def test_on_a_terminal_the_line_comes_by_itself_and_goes(fixture_sqlite, monkeypatch):
    """The real thread on a real terminal, whose column count is unknown at first."""
    code = (
        "import threading; from nsys_sql import inputs, progress; progress._AFTER_S = 0.0\n"
        "drawn, draw = threading.Event(), progress.Line.draw\n"
        "progress.Line.draw = lambda line: (draw(line), line._is_drawn and drawn.set())\n"
        "with progress.shown(None, False):\n    inputs.tell('1/2 op'); drawn.wait(60)\n"
        "print('answer')"
    )
    ours, theirs = pty.openpty()
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    out, _ = child.communicate(timeout=60)
    seen = b""
    while select.select([ours], [], [], 0.2)[0]:
        try:
            seen += os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
    os.close(ours)
    assert out == b"answer\n"
    assert re.search(rb"\r\x1b\[Knsys-sql: 1/2 op  [0-9]+\.", seen)
    assert seen.endswith(ERASED.encode())


# ---------------------------------------------------------------- settings of DuckDB


LIMITS = {"threads": 1, "memory_limit": "777MiB"}


def settings(con):
    names = ("threads", "memory_limit", "temp_directory")
    listed = ", ".join(f"current_setting('{name}')" for name in names)
    return dict(zip(names, con.execute(f"SELECT {listed}").fetchone(), strict=True))


def assert_kept(found, folder):
    assert found["threads"] == 1
    assert found["memory_limit"] == "777.0 MiB"
    assert found["temp_directory"].startswith(f"{folder}{os.sep}")


def test_a_model_keeps_its_limits(fixture_sqlite, tmp_path):
    with nsys_sql.open(fixture_sqlite("event_waits"), temp_directory=tmp_path, **LIMITS) as model:
        assert_kept(settings(model.con), tmp_path)


@pytest.fixture
def seen(monkeypatch):
    """The settings of every connection of ours."""
    found, configure = [], attached.configure

    def configure_and_look(con, *given):
        configure(con, *given)
        found.append(settings(con))

    monkeypatch.setattr(attached, "configure", configure_and_look)
    return found


# With the number of connections: the trace, and one for all traces together.
COMMANDS = {
    "run": (("run", "budget", "{trace}"), 1),
    "report": (("report", "{trace}"), 1),
    "build": (("build", "{trace}", "-o", "{folder}/x.duckdb"), 1),
    "timeline": (("timeline", "{trace}", "-o", "{folder}/x.json"), 1),
    "sql": (("sql", "{trace}", "SELECT count(*) FROM op"), 1),
    "survey": (("survey", "{trace}", "--jobs", "1", "--partitions", "{folder}"), 2),
    "compare": (("compare", "{trace}", "{trace}", "--jobs", "1", "--partitions", "{folder}"), 2),
    "history": (
        ("history", "{folder}/h.duckdb", "--add", "{trace}", "--partitions", "{folder}"),
        2,
    ),
    "shell": (("shell", "{trace}", "--builtin"), 1),
    "inspect": (("inspect", "{trace}"), 1),
    "show": (("show", "budget", "{trace}"), 1),
}
SILENT = {"shell", "show"}  # they do nothing that takes long


@pytest.mark.parametrize("name", brief(8, COMMANDS))
def test_each_command_says_what_it_does_and_keeps_its_limits(
    name, fixture_sqlite, tmp_path, seen, at_once, monkeypatch, capsys
):
    arguments, connections = COMMANDS[name]
    spill, folder = tmp_path / "spill", tmp_path / "out"
    spill.mkdir()
    folder.mkdir()
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    given = {"trace": fixture_sqlite("event_waits"), "folder": folder}
    limits = ["--threads", "1", "--memory-limit", "777MiB", "--temp-directory", str(spill)]
    filled = [each.format(**given) for each in arguments]
    assert cli.execute([*filled, *limits, "--progress"]) == 0
    assert len(seen) >= connections
    for found in seen:
        assert_kept(found, spill)
    assert list(spill.iterdir()) == []
    written = capsys.readouterr()
    lines = [each for each in written.err.splitlines() if each.startswith("nsys-sql: ")]
    is_told = any(re.search(r"\d+/\d+ \w+ — \w", each) for each in lines)
    assert is_told == (name not in SILENT)
    assert "nsys-sql: " not in written.out
    if connections > 1:
        assert any(each.startswith("nsys-sql: 0/1 traces — ") for each in lines)
        assert any(each.startswith("nsys-sql: 1/1 traces") for each in lines)
    if name == "history":
        seen.clear()
        assert cli.execute(["history", str(folder / "h.duckdb"), *limits]) == 0
        assert len(seen) == 1
        assert_kept(seen[0], spill)


def test_workers_of_a_survey_keep_the_limits(fixture_sqlite, tmp_path, monkeypatch):
    """A worker is another process: its settings come with its task."""
    given = []

    def task(trace, folder, options):
        given.append(options)
        return None, tasks.Failure("seen", None, 1)

    own = Options(threads=1, memory_limit="777MiB", temp_directory=str(tmp_path))
    list(tasks._local([fixture_sqlite("event_waits")], tmp_path, own, 1, task))
    assert tasks._share(own, 16) == given[0]
    assert (given[0].threads, given[0].memory_limit) == (1, "777MiB")
    assert given[0].temp_directory == str(tmp_path)
    shared = tasks._share(Options(), 1 << 10)  # without limits, workers share what there is
    assert shared.threads == 1
    assert shared.memory_limit == "256MiB"


def test_the_stock_shell_gets_the_limits(tmp_path, monkeypatch):
    started = []
    monkeypatch.setattr(
        subprocess,
        "run",
        lambda command, check: started.append(command) or subprocess.CompletedProcess(command, 0),
    )
    shell.start("duckdb", tmp_path / "x", {"threads": 1, "memory_limit": None})
    assert started[0].count("-cmd") == 2
    assert "SET threads = '1'" in started[0]


def test_a_limit_that_duckdb_refuses_is_a_usage_error_everywhere(fixture_sqlite, tmp_path):
    path = fixture_sqlite("event_waits")
    part = partition.read(partition.write_partition(path, tmp_path, Options()))
    side = Side([part], Options())
    for use in (
        lambda: nsys_sql.open(path, memory_limit="lots"),
        lambda: Comparison(side, side, memory_limit="lots"),
        lambda: Survey([part], RankMap(), memory_limit="lots"),
    ):
        with pytest.raises(UsageError, match="memory-limit 'lots' is refused"):
            use()
