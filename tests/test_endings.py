"""However a run ends, the target is as it was or complete, and nothing else is left.

The runs are children that send themselves a signal, or find no room, at a chosen statement: what
is tested is the moment, not the time.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from conftest import brief
from nsys_sql import cache, commands, interrupts, source
from nsys_sql.cli import execute
from torture import full

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and limits of POSIX")
IS_FULL = os.environ.get("NSYS_SQL_TORTURE") == "1"
OPTIONS = ("--anchor", "nvtx:step *")
# At which statement of the engine the child is hit, early, in the middle and late.
MOMENTS = (5, 60, 150) if IS_FULL else (60,)

_HIT = """
import os, sys, threading
from nsys_sql import cli, session

left, number = int(sys.argv[1]), int(sys.argv[2])
execute = session.Model._execute

def hit(self, sql):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), number)
    return execute(self, sql)

session.Model._execute = hit
sys.argv[1:] = sys.argv[3:]
if __name__ == "__main__":
    cli.main()
"""
COMMANDS = {
    "run": ("run", "kernels", "TRACE", *OPTIONS, "--format", "csv", "-o", "OUT/target.csv"),
    "report": ("report", "TRACE", *OPTIONS, "-o", "OUT/target.html"),
    "timeline": ("timeline", "TRACE", *OPTIONS, "-o", "OUT/target.json.gz"),
    "build": ("build", "TRACE", *OPTIONS, "--force", "-o", "OUT/target.duckdb"),
    "cache": ("run", "budget", "TRACE", *OPTIONS, "--cache", "-o", "OUT/target.txt"),
    "survey": (
        *("survey", "TRACE", *OPTIONS, "--partitions", "OUT/parts", "--jobs", "1"),
        *("-o", "OUT/target.json"),
    ),
}
# Every command with every signal on demand; by default each of both at least once.
CASES = [
    *((name, signal.SIGKILL, at) for name in ("build", "survey") for at in MOMENTS),
    *((name, signal.SIGTERM, at) for name in ("build", "cache") for at in MOMENTS),
    *((name, signal.SIGINT, at) for name in ("run", "survey") for at in MOMENTS),
]
if IS_FULL:
    CASES = [
        (name, number, at)
        for name in COMMANDS
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        for at in MOMENTS
    ]


def _mind_signals() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def no_limit() -> None:
    """In a child: as it is."""


class Place:
    """A trace, a folder for output, and folders of the run's own, all of them apart."""

    def __init__(self, base: Path) -> None:
        self.base = base
        for name in ("in", "out", "temp", "cache"):
            (base / name).mkdir()
        self.trace = full(base / "in" / "trace.sqlite")
        self.before = self.trace.read_bytes()

    def arguments(self, name: str) -> list[str]:
        return [
            each.replace("TRACE", str(self.trace)).replace("OUT", str(self.base / "out"))
            for each in COMMANDS[name]
        ]

    def child(
        self, script: str, *arguments: object, limited=no_limit, **more
    ) -> subprocess.CompletedProcess[str]:
        own = {
            "TMPDIR": str(self.base / "temp"),
            "NSYS_SQL_CACHE": str(self.base / "cache"),
            "XDG_CACHE_HOME": str(self.base / "cache"),
            # what Python could write of a compiled module would stay, cut off
            **({"PYTHONDONTWRITEBYTECODE": "1"} if limited is not no_limit else {}),
        }
        return subprocess.run(
            [sys.executable, "-c", script, *map(str, arguments)],
            env=os.environ | own,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            # whoever runs the tests may ignore these signals, as a shell does for what it puts in
            # the background, and a child would inherit that
            preexec_fn=lambda: (_mind_signals(), limited()),
            **more,
        )

    def settle(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Give this process the folders that a child has."""
        monkeypatch.setattr(tempfile, "tempdir", str(self.base / "temp"))
        for name in ("NSYS_SQL_CACHE", "XDG_CACHE_HOME"):
            monkeypatch.setenv(name, str(self.base / "cache"))

    def left(self, *folders: str) -> list[str]:
        """Files and folders that stand around, those that are meant to stay aside."""
        return [
            str(path.relative_to(self.base))
            for folder in folders or ("out", "temp", "cache")
            for path in sorted((self.base / folder).rglob("*"))
            if path.name != "parts" and not path.name.startswith("target")
        ]

    def check_trace(self) -> None:
        assert [each.name for each in (self.base / "in").iterdir()] == ["trace.sqlite"]
        assert self.trace.read_bytes() == self.before


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


@pytest.mark.parametrize(("name", "number", "at"), CASES)
def test_a_run_that_is_ended_leaves_what_was_there(place, name, number, at):
    target = Path(place.arguments(name)[-1])
    target.write_bytes(b"as it was")
    done = place.child(_HIT, at, int(number), *place.arguments(name))
    place.check_trace()
    assert target.read_bytes() == b"as it was"
    assert "Traceback" not in done.stderr and done.stdout == ""
    if number == signal.SIGKILL:
        assert done.returncode == -signal.SIGKILL
        assert place.left()
        # the next run removes what that one left
        for folder, pattern in (
            ("temp", "nsys-sql-*"), ("out", ".target*"), ("out/parts", ".part-*"),
            ("cache", ".part-*"),
        ):  # fmt: skip
            source.sweep((place.base / folder).glob(pattern))
    else:
        assert done.returncode == 128 + number, done.stderr
        assert done.stderr.strip() == ""
    assert place.left() == []


def test_the_next_run_cleans_up_after_a_killed_one(place, monkeypatch, capsys):
    for name in ("build", "cache"):
        place.child(_HIT, 60, int(signal.SIGKILL), *place.arguments(name))
    before = place.left()
    assert any(each.startswith("out/.target") for each in before)
    assert any(each.startswith("cache/.part") for each in before)
    place.settle(monkeypatch)
    for arguments in ([*place.arguments("build"), "--quiet"], place.arguments("cache")):
        assert execute(arguments) == 0, capsys.readouterr().err
    assert place.left("out", "temp") == []
    kinds = sorted(each.rpartition(".")[2] for each in place.left("cache"))
    assert kinds == ["duckdb", "json"]


@pytest.mark.parametrize(
    "endless",
    [
        "SELECT count(*) FROM range(100000000000000) AS r(i) WHERE hash(i) = 1",
        # one expression over one row, in which the engine looks for no interruption
        "SELECT levenshtein(repeat('ab', 1000000), repeat('ba', 1000000))",
    ],
    ids=["rows", "expression"],
)
def test_a_query_without_end_ends_with_its_signal(place, endless):
    script = """
import os, signal, sys, threading
from nsys_sql import cli, session
query = session.Model.query
def hit(self, *a, **b):
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    return query(self, *a, **b)
session.Model.query = hit
cli.main()
"""
    done = place.child(script, "sql", place.trace, endless)
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, "", "")
    assert place.left() == []


def test_a_signal_that_comes_in_a_callback_is_not_reported_and_still_ends_the_run(place):
    # Python drops what a callback of a weak reference raises, and says so on stderr
    script = """
import os, signal, weakref
from nsys_sql import cli, session
query = session.Model.query
class Thing: pass
def hit(self, *a, **b):
    thing = Thing()
    ref = weakref.ref(thing, lambda _: os.kill(os.getpid(), signal.SIGINT))
    del thing
    return query(self, *a, **b)
session.Model.query = hit
cli.main()
"""
    endless = "SELECT count(*) FROM range(100000000000000) AS r(i) WHERE hash(i) = 1"
    done = place.child(script, "sql", place.trace, endless)
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, "", "")
    assert place.left() == []


def test_what_else_a_callback_raises_is_reported(endings):
    told = []
    hook = interrupts._lost(told.append)

    class Report:
        exc_type = KeyboardInterrupt

    hook(Report)  # no signal of ours: somebody else's
    interrupts._received.append(signal.SIGINT)
    hook(Report)
    Report.exc_type = ValueError
    hook(Report)
    assert len(told) == 2


class Ended(BaseException):
    """In place of the end of the process."""


@pytest.fixture
def endings(monkeypatch):
    """What would end the process is recorded, and raised where it would."""
    found = []

    def end(code, message=""):
        found.append((code, message))
        raise Ended

    monkeypatch.setattr(interrupts, "end_hard", end)
    monkeypatch.setattr(interrupts, "_TWICE_S", 0.0)
    for name in ("_received", "_handled", "_living", "_connections", "_programs"):
        monkeypatch.setattr(interrupts, name, [])
    return found


def heard(signals, grace_s=0.02, handled_at=None):
    """Have the thread that hears of signals hear these, a byte each, one after another."""
    reader, writer = os.pipe()

    class Connection:
        count = 0

        def interrupt(self):
            self.count += 1
            if self.count == handled_at:
                interrupts._received.append(signal.SIGINT)
                interrupts.handled()
                os.close(writer)  # nothing more comes: the thread ends with an error
            elif signals[self.count :] and handled_at is None:
                os.write(writer, bytes(signals[self.count : self.count + 1]))

    con = Connection()
    interrupts._connections.append(con)
    before = {number: signal.signal(number, mind) for number in set(signals)}
    os.write(writer, bytes(signals[:1]))
    try:
        with pytest.raises((Ended, EOFError)):
            interrupts._stop_queries(reader, mind, grace_s)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return con.count


def mind(*_):
    """Stands for the handler of the signals."""


def test_what_does_not_unwind_ends_hard(endings):
    heard([signal.SIGINT])
    heard([signal.SIGTERM, signal.SIGTERM], grace_s=60)  # a second one does not wait
    assert [code for code, _ in endings] == [128 + signal.SIGINT, 128 + signal.SIGTERM]
    interrupts.lives_on()
    count = heard([signal.SIGINT], handled_at=5)  # a shell takes its time, and deals with it
    assert count == 5 and len(endings) == 2


def test_a_time_that_is_over_ends_what_hears_of_nothing(endings, monkeypatch):
    class Deaf:
        con = type("Connection", (), {"interrupt": lambda self: None})()

    monkeypatch.setattr(interrupts, "GRACE_S", 0.01)
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    with commands._limited(Deaf, 0.01):
        time.sleep(0.2)
    assert endings == []  # who uses us as a library is not ended
    interrupts._programs.append(1)
    with commands._limited(Deaf, 0.01):
        until = time.monotonic() + 60
        while not endings and time.monotonic() < until:
            time.sleep(0.01)
    ((code, message),) = endings
    assert code == 4 and message.startswith("Error: there is no answer after 0.01 s; ")


def test_a_hard_end_removes_what_is_half_made(tmp_path):
    script = """
import sys
from pathlib import Path
from nsys_sql import interrupts, output, source
with output.replacing(Path("whole.csv")) as scratch:
    scratch.write_text("half")
    Path(f"{scratch}.wal").write_text("log")
    source.private_folder(".").joinpath("spilled").write_text("x")
    interrupts.end_hard(4, "over\\n")
"""
    (tmp_path / "whole.csv").write_text("as it was")
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (4, "", "over\n")
    assert [path.name for path in tmp_path.iterdir()] == ["whole.csv"]
    assert (tmp_path / "whole.csv").read_text() == "as it was"


def test_ctrl_c_on_a_survey_ends_its_workers(place, tmp_path):
    other = full(tmp_path / "in2.sqlite")
    script = """
import os, signal, threading, time
from nsys_sql import cli, partition
if __name__ == "__main__":
    def hit():
        while not any(name.startswith("nsys-sql-") for name in os.listdir(os.environ["TMPDIR"])):
            time.sleep(0.01)  # a worker has begun
        os.killpg(0, signal.SIGINT)
    threading.Thread(target=hit, daemon=True).start()
    cli.main()
"""
    path = tmp_path / "child.py"
    path.write_text(script)
    parts = tmp_path / "out" / "parts"
    runner = (
        "import runpy, sys; sys.argv = sys.argv[1:]; "
        "runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    done = place.child(
        runner, path, "survey", place.trace, other, *OPTIONS, "--jobs", 2,
        "--partitions", parts, start_new_session=True,
    )  # fmt: skip
    assert done.returncode in (130, 0), done.stderr  # 0 where the workers were faster
    assert "Traceback" not in done.stderr
    assert [each for each in place.left() if "/part-" not in each] == []


# ---------------------------------------------------------------- no room


def limited() -> None:
    """In a child: no file may grow beyond this."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))


_MAIN = "from nsys_sql.cli import main; main()"
_ROOM = {
    name: arguments for name, arguments in COMMANDS.items() if name in ("report", "build", "survey")
} | {
    "parquet": (
        "run",
        "gaps",
        "TRACE",
        *OPTIONS,
        "--format",
        "parquet",
        "-o",
        "OUT/target.parquet",
    ),
    "example": ("example", "--force", "OUT/target.sqlite"),
}
COMMANDS |= _ROOM


@pytest.mark.parametrize("name", COMMANDS if IS_FULL else brief(3, _ROOM))
def test_a_full_disk_is_told_in_one_line(place, name, monkeypatch, capsys):
    target = Path(place.arguments(name)[-1])
    target.write_bytes(b"as it was")
    place.settle(monkeypatch)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (512, before[1]))
    try:
        code = execute(place.arguments(name))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    err = capsys.readouterr().err
    assert code in (2, 3), err
    assert err.startswith("Error: ") and err.count("\n") == 1, err
    assert "cannot write" in err or "cannot be written" in err
    assert "bug" not in err and ".part" not in err
    assert target.read_bytes() == b"as it was"
    place.check_trace()
    assert place.left() == []


def test_no_room_to_spill_is_told_in_one_line(place):
    query = (
        "SELECT b FROM (SELECT repeat('x', 99) || i AS b FROM range(1000000) AS r(i)) ORDER BY b"
    )
    limits = ("--memory-limit", "60MB", "--threads", 1)
    done = place.child(_MAIN, "sql", place.trace, query, *limits, limited=limited)
    assert done.returncode in (2, 3), done.stderr
    assert done.stderr.startswith("Error: ") and done.stderr.count("\n") == 1
    assert "bug" not in done.stderr and len(done.stderr) < 500, done.stderr
    assert place.left() == []


@pytest.mark.parametrize("words", ["--help", "run --help", "--version", "list", "cache --list"])
@pytest.mark.parametrize("redirect", [">/dev/full", "| head -c 0", "2>/dev/full >/dev/null"])
def test_every_command_ends_cleanly_without_a_reader(words, redirect):
    if not IS_FULL and words not in ("--help", "list"):
        pytest.skip("NSYS_SQL_TORTURE=1 tries all of them")
    line = f"set -o pipefail; {sys.executable} -m nsys_sql {words} {redirect}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    if redirect == ">/dev/full":
        assert done.returncode == 2
        assert "cannot write to standard output: No space left on device" in done.stderr
        assert done.stderr.count("\n") == 1
    else:
        assert (done.returncode, done.stderr) == (0, "")


# ---------------------------------------------------------------- stores


def test_a_history_that_was_killed_at_birth_is_a_history(place, capsys):
    store = place.base / "out" / "h.duckdb"
    duckdb.connect(str(store)).close()  # what is there before the first commit
    assert execute(["history", str(store)]) in (3, 4)
    assert "bug" not in capsys.readouterr().err
    code = execute(
        [
            "history",
            str(store),
            "--add",
            str(place.trace),
            *OPTIONS,
            "--quiet",
            "--partitions",
            str(place.base / "out" / "parts"),
        ]
    )
    assert code == 0, capsys.readouterr().err
    assert execute(["history", str(store), "--format", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["rows"]) == 1


def test_a_cached_file_that_was_cut_is_told(place, monkeypatch, capsys):
    monkeypatch.setenv("NSYS_SQL_CACHE", str(place.base / "cache"))
    assert execute(place.arguments("cache")) == 0
    (entry,) = cache.entries()
    entry.path.write_bytes(entry.path.read_bytes()[:5000])
    assert execute(place.arguments("cache")) == 3
    assert "cache --clear" in capsys.readouterr().err
    with closing(sqlite3.connect(place.trace)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
