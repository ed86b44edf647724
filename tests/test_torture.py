"""Bad inputs: each is refused with its exit code and one line, or measured right; none is changed.

By default the quick ones run. `NSYS_SQL_TORTURE=1` runs all of them (CONTRIBUTING.md), every one
through every command.
"""

from __future__ import annotations

import hashlib
import html
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from conftest import long_test
from fuzz import differences, oracle_answers
from fuzz import product_answers as answers_of
from nsys_sql.attached import extension_file
from nsys_sql.cli import execute
from oracle import Oracle
from torture import (
    CORRUPTED,
    FILES,
    HOSTILE,
    KERNEL,
    VALUES,
    Torture,
    full,
    steps,
    truncated,
    twin,
    whole_tables,
)

IS_FULL = os.environ.get("NSYS_SQL_TORTURE") == "1"
OPTIONS = {"anchor": "nvtx:step *"}
_PATIENCE_S = 300  # no time to compare with: it only tells a hang from a slow machine
_CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def some(tortures: list[Torture], chosen: list[str] | None = None) -> list[Torture]:
    """All of them on demand, else those that are quick, or named."""
    if IS_FULL:
        return tortures
    if chosen is None:
        return [each for each in tortures if each.is_quick]
    return [each for each in tortures if each.name in chosen]


@contextmanager
def patience():
    """Fail instead of hanging."""

    def give_up(*_):
        raise TimeoutError("it hangs")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(_PATIENCE_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def state(folder: Path) -> dict[str, object]:
    """What stands in a folder, with the content of regular files."""
    found: dict[str, object] = {}
    for path in sorted(folder.iterdir()):
        content: object = os.readlink(path) if path.is_symlink() else path.lstat().st_mode
        if path.is_file() and not path.is_symlink():
            content = hashlib.sha256(path.read_bytes()).hexdigest()
        found[path.name] = content
    return found


@pytest.fixture
def call(capsysbinary, monkeypatch, tmp_path_factory):
    """`call(*arguments)`: (exit code, stdout, stderr) of a command that may not hang."""
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("NSYS_SQL_CACHE", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("xdg")))

    def run(*arguments):
        with patience():
            code = execute([str(argument) for argument in arguments])
        out, err = capsysbinary.readouterr()
        return code, out.decode(), err.decode()

    return run


def check_told(code: int, err: str) -> None:
    """One line says what is wrong, and never that it is a bug."""
    lines = err.splitlines()
    errors = [line for line in lines if line.startswith("Error: ")]
    assert len(errors) == (1 if code in (2, 3, 4) else 0), err
    assert not _CONTROLS.search(err.replace("\n", "")), err
    assert "bug" not in err and "Traceback" not in err, err
    told = re.compile(r"(Error|Warning): |WARN |\d+ of \d+ traces were read before")
    assert code != 1 and all(map(told.match, lines)), err


def places(torture, tmp_path):
    """The bad input with the state of its folder, and another folder for what is written."""
    path, out = tmp_path / "in" / "t.sqlite", tmp_path / "out"
    path.parent.mkdir()
    out.mkdir()
    torture.make(path)
    return path, state(path.parent), out


# ---------------------------------------------------------------- files


@pytest.mark.parametrize("torture", FILES, ids=str)
def test_a_bad_file_is_refused_in_one_line(torture, call, tmp_path):
    path, before, out = places(torture, tmp_path)
    chosen = commands(path, out)
    if not IS_FULL:  # one of each way to open a trace
        chosen = [each for each in chosen if each[:2] == ("run", "budget") or each[0] == "survey"]
    for arguments in chosen:
        if torture.codes == (4,) and arguments[:2] != ("run", "budget"):
            continue  # other questions have an answer
        code, printed, err = call(*arguments)
        assert (code, printed) == (torture.codes[0], ""), (arguments, err)
        check_told(code, err)
        # what answers a question depends on the question; what is wrong with a file does not
        assert torture.codes != (3,) or re.search(torture.words, err), (arguments, err)
        assert [each for each in out.rglob("*") if each.is_file()] == [], arguments
    assert state(path.parent) == before


def commands(path: Path, out: Path, options: tuple[str, ...] = ()) -> list[tuple[object, ...]]:
    """Every kind of command on one trace; files go to `out`."""
    parts = ("--partitions", out / "parts")
    recipes = ("budget", "kernels", "communication", "gaps", "capture", "streams", "iterations")
    return [
        *(("run", name, path, *options, "--format", "csv") for name in recipes),
        ("inspect", path, *options),
        ("report", path, *options, "-o", out / "r.html"),
        ("report", path, *options, "-o", out / "r.md"),
        ("timeline", path, *options, "-o", out / "t.json"),
        ("build", path, *options, "-o", out / "b.duckdb"),
        ("compare", path, path, *options, *parts, "-o", out / "c.json"),
        ("survey", path, *options, *parts, "-o", out / "s.json"),
    ]


@pytest.mark.parametrize("torture", some(CORRUPTED, ["corrupted-1", "corrupted-3"]), ids=str)
def test_damage_is_told_or_touches_nothing_that_is_read(torture, call, tmp_path):
    path = tmp_path / "in" / "t.sqlite"
    path.parent.mkdir()
    torture.make(path)
    before = state(path.parent)
    code, printed, err = call("run", "budget-windows", path, *torture.options, "--format", "csv")
    check_told(code, err)
    assert code in torture.codes
    if code == 0:  # the pages that were read are whole
        assert (
            printed
            == call(
                "run",
                "budget-windows",
                full(tmp_path / "whole"),
                "--format",
                "csv",
                *torture.options,
            )[1]
        )
    assert state(path.parent) == before


@pytest.mark.skipif(not IS_FULL, reason="NSYS_SQL_TORTURE=1 cuts the file at every page")
def test_no_cut_is_taken_for_a_whole_file(call, tmp_path):
    size = full(tmp_path / "whole").stat().st_size
    for page in range(size // 4096):
        for at in (page * 4096, page * 4096 + 1234):
            truncated(at / size)(tmp_path / "t.sqlite")
            code, out, err = call("run", "budget", tmp_path / "t.sqlite")
            assert (code, out) == (3, ""), (page, err)
            check_told(code, err)


# ---------------------------------------------------------------- values


@pytest.mark.parametrize("torture", some(VALUES) + (whole_tables() if IS_FULL else []), ids=str)
def test_odd_values_are_measured_right_or_refused(torture, call, tmp_path):
    check_values(torture, call, tmp_path)


def check_values(torture, call, tmp_path):
    path, before, out = places(torture, tmp_path)
    code, _, err = call("run", "budget", path, *torture.options)
    check_told(code, err)
    assert code in torture.codes, err
    assert re.search(torture.words, err), err
    if torture.has_twin and code != 3:
        check_against_its_twin(path, tmp_path / "twin.sqlite")
    if IS_FULL and torture in VALUES:  # what odd tables do to a trace, one command shows
        for arguments in commands(path, out, torture.options):
            code, printed, err = call(*arguments)
            check_told(code, err)
            assert code in (0, *torture.codes, 4), (arguments, err)
            assert not _CONTROLS.search(printed) or arguments[0] == "run", arguments
    assert state(path.parent) == before


def check_against_its_twin(path: Path, target: Path) -> None:
    """The numbers of a tortured trace are those that brute force finds in what it means."""
    answers, classify = answers_of(path, OPTIONS)
    assert differences(answers, oracle_answers(Oracle(twin(path, target), classify), OPTIONS)) == []


@pytest.mark.parametrize(
    "name",
    [
        f"words-{KERNEL}", f"as-text-{KERNEL}", "as-blob-NVTX_EVENTS", "dropped-StringIds",
        "no-column-CUPTI_ACTIVITY_KIND_RUNTIME.correlationid",
    ],
)  # fmt: skip
@pytest.mark.skipif(IS_FULL, reason="all of them run")
def test_a_table_that_is_not_as_it_should_be(name, call, tmp_path):
    (torture,) = (each for each in whole_tables() if each.name == name)
    check_values(torture, call, tmp_path)


def test_the_twin_tells_a_wrong_number(tmp_path):
    path = full(tmp_path / "t.sqlite")
    answers, classify = answers_of(path, OPTIONS)
    with closing(sqlite3.connect(path)) as database:
        database.execute(f'UPDATE {KERNEL} SET "end" = "end" + 1 WHERE rowid = 1')
        database.commit()
    oracle = Oracle(twin(path, tmp_path / "twin"), classify)
    assert differences(answers, oracle_answers(oracle, OPTIONS)) != []


# ---------------------------------------------------------------- names that attack


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    path = tmp_path_factory.mktemp("hostile") / "t.sqlite"
    next(each for each in VALUES if each.name == "hostile-names").make(path)
    return path


def test_hostile_names_stay_text_in_every_recipe(hostile):
    import nsys_sql
    from nsys_sql.commands import trace_facts
    from nsys_sql.formats import Report
    from nsys_sql.render import render

    shown = set()
    with nsys_sql.open(hostile, **OPTIONS) as model:
        facts = trace_facts(model)
        for name in model.catalog.recipes:
            try:
                result = model.result(name)
            except nsys_sql.NsysSqlError as error:
                assert error.exit_code == 4, name
                continue
            report = Report(
                name, "0", facts, columns=result.columns, rows=result.rows, notes=result.notes
            )
            table = render([report], "table", width=160, limit=0)
            assert not _CONTROLS.search(table.replace("\n", "")), name
            shown |= {each for each in ("\\x1b", "\\u202e", "\\x9b", "\\n") if each in table}
            page = render([report], "markdown", width=160, limit=0)
            assert not _CONTROLS.search(page.replace("\n", "")), name
            assert not re.search(r"(?<!\\)<(script|img|/script)", page), name
            assert not re.search(r"(?<!\\)!\[image\]", page), name
            widths = {
                len(re.findall(r"(?<!\\)\|", line))
                for line in page.splitlines()
                if line.startswith("|")
            }
            assert len(widths) <= 1, name
            rows = json.loads(render([report], "json", width=160, limit=0))["rows"]
            assert rows == json.loads(
                json.dumps(
                    [
                        dict(zip([column.name for column in result.columns], row, strict=True))
                        for row in result.rows
                    ]
                )
            ), name
    assert shown == {"\\x1b", "\\u202e", "\\x9b", "\\n"}  # they do come by


def tags_of(page: str) -> list[tuple[str, frozenset[str]]]:
    """The elements of a page that load or run something, and the handlers that any has."""
    from html.parser import HTMLParser

    found = []

    class Parser(HTMLParser):
        def handle_starttag(self, tag, attributes):
            names = frozenset(
                n for n, _ in attributes if n.startswith("on") or n in ("src", "href")
            )
            if tag in ("script", "img", "iframe", "object", "embed", "link", "base") or any(
                name.startswith("on") for name in names
            ):
                found.append((tag, names))

    Parser().feed(page)
    return found


def test_hostile_names_run_nothing_in_a_report(hostile, call, tmp_path, as_markdown):
    plain = full(tmp_path / "plain.sqlite")
    pages = []
    for path in (plain, hostile):
        assert call("report", path, "--anchor", "nvtx:step *", "-o", tmp_path / "r.html")[0] == 0
        pages.append((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert tags_of(pages[0]) == tags_of(pages[1])
    assert "alert(1)" in pages[1]
    assert html.escape(HOSTILE[4]) in pages[1] or "\\u003cscript" in pages[1]
    # the library that draws has some of its own
    assert _CONTROLS.findall(pages[1]) == _CONTROLS.findall(pages[0])
    _, text = as_markdown
    assert not _CONTROLS.search(text.replace("\n", ""))
    assert not re.search(r"(?<![\\`])<(script|img)", re.sub(r"`[^`\n]*`", "", text))


def test_hostile_names_stay_names_in_a_timeline(hostile, call, tmp_path):
    code, _, _ = call("timeline", hostile, "--anchor", "nvtx:step *", "-o", tmp_path / "t.json")
    assert code == 0
    events = json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))["traceEvents"]
    names = {event["name"] for event in events} | {
        str(value) for event in events for value in event.get("args", {}).values()
    }
    assert {each for each in HOSTILE if each.strip()} <= names | {""}


def test_a_hostile_file_name_does_not_reach_the_terminal(call, tmp_path, as_markdown):
    path = tmp_path / "a\x1b[31m\nb\u202e.sqlite"
    assert call("run", "budget", path)[2] == (
        f"Error: {tmp_path}/a\\x1b[31m b\\u202e.sqlite does not exist\n"
    )
    steps().write(path)
    with path.open("ab") as file:
        file.write(bytes(4096))  # which is worth a warning
    for arguments in (("run", "budget", path, path), ("inspect", path)):
        code, out, err = call(*arguments)
        assert code == 0
        assert not _CONTROLS.search((out + err).replace("\n", "")), arguments
    trace = steps()
    for step in range(3):
        trace.kernel(1000 * step + 810, 1000 * step + 890, "\x1b[31mred\u202e")  # in a note, too
    trace.write(path.with_name("named.sqlite")).replace(path)
    with path.open("ab") as file:
        file.write(bytes(4096))
    page = tmp_path / "r.html"
    code, out, err = call("report", path, "--anchor", "nvtx:step *", "-o", page)
    assert (code, out) == (0, "") and err.startswith("Warning: ")
    assert not _CONTROLS.search(err.replace("\n", ""))
    (plain,) = as_markdown
    for text in (page.read_text(encoding="utf-8"), plain):
        text = re.sub("<script>.*?</script>", "", text, flags=re.DOTALL)
        assert "\\x1b[31mred" in text.replace("\\\\", "\\").replace("\\[", "[")
        assert not _CONTROLS.search(text.replace("\n", ""))
    code, out, err = call("run", "budget", path, tmp_path / "no\x1bne.sqlite")
    assert code == 3 and not _CONTROLS.search((out + err).replace("\n", ""))


# ---------------------------------------------------------------- who else has it


@contextmanager
def writer(path: Path, *statements: str):
    """Another process that has done these statements, and stays."""
    code = (
        "import sqlite3, sys\n"
        "c = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "for each in sys.argv[2:]: c.execute(each).fetchall()\n"
        "print('ready', flush=True); sys.stdin.readline()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path), *statements],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline().strip() == "ready"
        try:
            yield
        finally:
            process.communicate("\n")


MORE = f"INSERT INTO {KERNEL} SELECT * FROM {KERNEL}"


@pytest.mark.parametrize(
    ("statements", "code", "words"),
    [
        pytest.param(
            ("BEGIN EXCLUSIVE",), 3, "is locked by another program", marks=long_test
        ),  # waits five seconds
        (("BEGIN", MORE), 0, "-journal beside it"),
        (("PRAGMA journal_mode = wal", "BEGIN", MORE), 0, "private copy"),
        (("PRAGMA journal_mode = wal", MORE), 0, "-wal beside it"),
    ],
    ids=["exclusive", "journal", "wal-uncommitted", "wal-committed"],
)
def test_another_program_writes_to_it(statements, code, words, call, tmp_path):
    path = full(tmp_path / "t.sqlite")
    expected = call("run", "budget-windows", path, "--format", "csv", "--anchor", "nvtx:step *")
    with writer(path, *statements):
        before = state(tmp_path)
        found = call("run", "budget-windows", path, "--format", "csv", "--anchor", "nvtx:step *")
        assert found[0] == code and words in found[2]
        check_told(code, found[2])
        if code == 0:  # twice the same kernels are the same union
            assert found[1] == expected[1]
        assert state(tmp_path) == before


def _others_may_read_us() -> bool:
    """Whether a user without rights can load the packages, and not only this user."""
    file = extension_file()
    places = [Path(__file__), *([file] if file else [])]
    return all(
        folder.stat().st_mode & 0o001 for place in places for folder in place.resolve().parents
    )


only_as_nobody = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0 or not _others_may_read_us(),
    reason="only root may be nobody, and only packages that others may read can be loaded then",
)
_AS_NOBODY = """
import os, sys
from nsys_sql.cli import execute

execute(["run", "devices", sys.argv[1], "--format", "csv", "-o", os.devnull])
os.setgroups([]); os.setgid(65534); os.setuid(65534)
sys.exit(execute(sys.argv[2:]))
"""


@pytest.fixture(scope="module")
def shared():
    """A folder that other users may enter, with a trace that they may read."""
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix="nsys-torture-"))
    folder.chmod(0o755)
    yield full(folder / "t.sqlite")
    folder.chmod(0o755)
    shutil.rmtree(folder)


@only_as_nobody
@pytest.mark.parametrize(
    ("mode", "code", "words"),
    [
        (0o444, 0, ""),
        (0o000, 3, "cannot be read: Permission denied"),
    ],
)
def test_as_a_user_who_may_write_nothing(shared, mode, code, words, tmp_path):
    shared.chmod(mode)
    shared.parent.chmod(0o555)
    before = state(shared.parent)
    good = full(tmp_path / "good.sqlite")
    budget = ["run", "budget", str(shared), "--anchor", "nvtx:step *", "--format", "csv"]
    done = subprocess.run(
        [sys.executable, "-c", _AS_NOBODY, str(good), *budget],
        capture_output=True,
        text=True,
        check=False,
    )
    *_, last = done.stderr.splitlines() or [""]
    assert (done.returncode, words in last) == (code, True), done.stderr
    assert "Traceback" not in done.stderr and state(shared.parent) == before


@only_as_nobody
def test_a_place_that_takes_no_output(shared, tmp_path):
    shared.chmod(0o644)
    shared.parent.chmod(0o555)
    good = full(tmp_path / "good.sqlite")
    budget = ["run", "budget", str(shared), "-o", str(shared.parent / "out.csv")]
    done = subprocess.run(
        [sys.executable, "-c", _AS_NOBODY, str(good), *budget, "--anchor", "nvtx:step *"],
        capture_output=True,
        text=True,
        check=False,
    )
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 2 and "cannot write" in last and "Permission denied" in last
    assert [each.name for each in shared.parent.iterdir()] == ["t.sqlite"]
