"""A fixed number of seeds of each fuzzer, and proof that they would tell what they are to find.

`python tests/fuzz_file.py` and its like run as many as there is time for.
"""

from __future__ import annotations

import gzip
import os
import random
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

import fuzz_cli
import fuzz_file
import fuzz_forms
import fuzz_sql
from conftest import long_test
from fuzz_file import Outcome, Pool, judge
from tracebuilder import TraceBuilder

TESTS = Path(__file__).parent


def test_broken_traces_are_refused_or_answered():
    found = dict(Pool(TESTS / "fuzz_file.py", jobs=1).run(range(2)))
    assert [line for lines in found.values() for line in lines] == []
    assert sorted(found) == [*range(2)]


def test_odd_command_lines_are_refused_or_answered():
    found = dict(Pool(TESTS / "fuzz_cli.py", jobs=1).run(range(10)))
    assert [line for lines in found.values() for line in lines] == []
    assert sorted(found) == [*range(10)]


@pytest.fixture
def own_places(tmp_path, monkeypatch):
    """What a process of a fuzzer has of its own."""
    places = {"TMPDIR": "tmp", "HOME": "home", "NSYS_SQL_CACHE": "cache", "XDG_CACHE_HOME": "xdg"}
    for name, place in places.items():
        monkeypatch.setenv(name, str(tmp_path / place))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    for name in ("HUSH", "PATH", "NSYS_SQL_FUZZ_TRACE"):  # they are set by the fuzzers
        monkeypatch.setenv(name, os.environ.get(name, ""))
    return tmp_path


# Parquet cut short, texts in UTF-16, Arrow with more behind it, and Parquet under other names.
@pytest.mark.parametrize("seed", [2, 12, 14, 15])
def test_other_forms_answer_alike_or_are_refused(own_places, seed):
    pytest.importorskip("pyarrow", reason="the extra arrow is not installed")
    assert fuzz_forms.run_case(seed, own_places) == []


def test_whatever_is_asked_is_answered_or_refused(own_places):
    assert fuzz_sql.run_case(4, own_places) == []


# ---------------------------------------------------------------- would they tell?

CHILD = """
import os, sys, time
from pathlib import Path
from fuzz_file import work
def case(seed, folder):
    if seed == 1:
        os.abort()
    if seed == 2:
        time.sleep(600)
    if seed == 3:
        raise ValueError("three")
    print("noise on the channel")
    os.write(1, b"more of it")
    return [f"told {seed}"] if seed == 4 else []
sys.exit(work(Path(sys.argv[2]), case))
"""


@long_test
def test_a_crash_and_a_hang_are_findings_of_their_seed(tmp_path):
    script = tmp_path / "child.py"
    script.write_text(CHILD, encoding="utf-8")
    found = dict(Pool(script, jobs=2, limit_s=4).run(range(6)))
    assert found[0] == found[5] == []
    assert "its process ended with -6" in found[1][0] and "Fatal Python error" in found[1][0]
    assert found[2] == ["seed 2: no end after 4 s"]
    assert "three" in found[3][0]
    assert found[4] == ["told 4"]


FINE = Outcome(["run", "budget", "t"], 3, b"", "Error: t is empty; export it again\n")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"code": 1}, "exit code 1"),
        ({"code": 0}, "yet exit code 0"),
        ({"err": "Error: INTERNAL Error: assertion\n"}, "a bug shows"),
        ({"err": "Traceback (most recent call last):\n"}, "a bug shows"),
        ({"err": "it is empty\n"}, "without a line"),
        ({"err": "Error: \x1b[31m\n"}, "control characters"),
        ({"err": "Error: " + "x" * 2000 + "\n"}, "more than 1500"),
        ({"new": ["left.part"]}, "files are left"),
        ({"is_input_changed": True}, "the input has changed"),
        ({"out": b"half a li"}, "has no end"),
        ({"out": b'{"a": NaN}\n', "arguments": ["run", "--format", "json"]}, "no JSON"),
        ({"out": b"a,b\n1\n", "arguments": ["run", "--format", "csv"]}, "lines of the CSV differ"),
    ],
)
def test_a_wrong_outcome_is_told(change, words):
    assert judge(FINE) == []
    assert any(words in text for text in judge(Outcome(**(vars(FINE) | change))))


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("p.html", b"<p><zq></p>", "an element <zq>"),
        ("p.html", b"<p onclick='x'></p>", "an attribute onclick"),
        ("p.html", b"<a href=' JavaScript:x'></a>", "an attribute href"),
        ("p.html", b"<p><b></p>", "</p> closes nothing"),
        ("p.html", b"<table>", "leaves ['table'] open"),
        ("p.html", b"<script>a <!-- b</script>", "a script that another could leave"),
        ("t.json", b'{"a": Infinity}', "is no JSON"),
        ("t.csv", b"a,b\n1\n", "the lines of t.csv differ"),
        ("t.md", b"| a | b |\n| c | d | e |\n", "has 3 cells, not 2"),
        ("t.md", b"a <zq> b\n", "holds '<zq'"),
        ("t.md", b"\xff", "is no UTF-8"),
        ("t.md", b"a\x1b[31m", "control characters"),
    ],
)
def test_a_page_that_is_wrong_is_told(name, data, words):
    assert any(words in text for text in fuzz_forms.misformed(name, data))


def test_a_page_that_is_right_is_told_nothing():
    for name, data in (
        ("p.html", b"<p title='a'>a<br>&lt;zq&gt;</p>"),
        ("t.md", b"| a \\| b |\n| \\<zq |\n"),
        ("t.json", b"{}\n"),
        ("t.csv", b'a,b\n"1,2",\x07\n'),
    ):
        assert [*fuzz_forms.misformed(name, data)] == []


def test_a_secret_is_told():
    assert [*fuzz_forms.secrets("x", b"hush-0\x007")] == ["x tells [b'hush-07']"]
    assert [*fuzz_forms.secrets("x", gzip.compress(b"hush-07"))] != []
    assert fuzz_sql.told("a hush-12 b", "asked") == {"hush-12"}
    assert fuzz_sql.told("a hush-12 b", "SELECT 'hush-12'") == set()


def test_what_is_written_elsewhere_is_told():
    line = fuzz_cli.Line(["run"], [], True, ["out"], ["t.sqlite"])
    before = {"t.sqlite": "1", "d": "folder", "text.txt": "2"}
    assert fuzz_cli.misplaced(line, 0, before, before | {"out": "3"}) == []
    for after in (
        before | {"other": "3"},
        before | {"t.sqlite": "3"},
        before | {".out.1.part": "3"},
        {"t.sqlite": "1", "d": "folder"},
    ):
        assert fuzz_cli.misplaced(line, 0, before, after)
    assert fuzz_cli.misplaced(line, 2, before, before | {"out": "3"})


def test_a_difference_from_the_oracle_is_told(tmp_path, monkeypatch):
    case = next(
        (seed, made)
        for seed in range(100)
        if (made := fuzz_file.make(seed, _fresh(tmp_path))).is_defined
    )[1]
    path = tmp_path / "t.sqlite"
    assert fuzz_file.agreement(path, case) == []
    right = fuzz_file.whole
    monkeypatch.setattr(
        fuzz_file, "whole", lambda v: right(v) + 7 if isinstance(v, int) and v > 10**5 else right(v)
    )
    assert fuzz_file.agreement(path, case) != []


def _fresh(folder: Path) -> Path:
    path = folder / "t.sqlite"
    path.unlink(missing_ok=True)
    return path


def test_a_seed_is_the_same_file_and_the_same_line_every_time(tmp_path):
    for seed in range(3):
        first = fuzz_file.make(seed, _fresh(tmp_path))
        data = (tmp_path / "t.sqlite").read_bytes()
        assert fuzz_file.make(seed, _fresh(tmp_path)) == first
        assert (tmp_path / "t.sqlite").read_bytes() == data
        assert fuzz_cli.random_line(seed) == fuzz_cli.random_line(seed)
        makers = [fuzz_sql.Maker(random.Random(seed)) for _ in range(2)]
        assert len({(m.query(), m.recipe(), m.script()) for m in makers}) == 1


def test_every_form_and_every_neutral_change_does_something(tmp_path):
    source = TraceBuilder().kernel(1000, 2000).kernel(3000, 4000).nvtx(0, 5000, "step 1")
    path = source.write(tmp_path / "t.sqlite")
    for change in dict.fromkeys(fuzz_forms.NEUTRAL):
        changed = shutil.copyfile(path, tmp_path / "u.sqlite")
        for seed in range(9):
            with closing(sqlite3.connect(changed)) as con:
                change(random.Random(seed), con)
                con.commit()
            if changed.read_bytes() != path.read_bytes():
                break
        else:
            raise AssertionError(change.__name__)
    for form in (fuzz_forms.in_log, fuzz_forms.in_journal):  # alone the file is another trace
        folder = tmp_path / form.__name__
        folder.mkdir()
        made = form(random.Random(1), path, folder)
        beside = {each.name for each in folder.iterdir()} - {made.name}
        assert beside & {"t.sqlite-wal", "t.sqlite-journal"}
        rows = []
        for each in (made, shutil.copyfile(made, tmp_path / "alone.sqlite"), path):
            with closing(sqlite3.connect(each)) as con:
                rows.append(con.execute("SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL").fetchall())
        assert rows[0] == rows[2] != rows[1]


def test_every_way_to_break_a_trace_does_something(tmp_path):
    for change in dict.fromkeys((*fuzz_file.STRUCTURE, *fuzz_file.VALUES)):
        for seed in range(40):
            path = _fresh(tmp_path)
            fuzz_file.build("two_processes", path, 4096, 0, "UTF-8")
            case = fuzz_file.Case("two_processes", [])
            with closing(sqlite3.connect(path)) as con:
                con.create_collation("odd", lambda a, b: (a > b) - (a < b))
                before = [*con.iterdump()]
                try:
                    change(random.Random(seed), con, case)
                    if [*con.iterdump()] != before:
                        break
                except sqlite3.Error:  # the schema itself may be broken by then
                    break
        else:
            assert change is fuzz_file.layout, change.__name__
