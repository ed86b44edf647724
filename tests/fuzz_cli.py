"""Command lines made of the commands' own options, right ones, wrong ones and odd ones.

    python tests/fuzz_cli.py --seeds 0:500
    python tests/fuzz_cli.py --seconds 600 --keep-going

The commands, their options and the types of these are read from the program itself, so that a new
option is tried as soon as it is there. Whatever the line, it ends with a documented exit code and
at most one line that says why; what is wrong with one option is said by its name; and no file is
written, changed or left but those the line names.
"""

from __future__ import annotations

import functools
import hashlib
import os
import random
import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from fuzz_file import FORMATS, HEAD, Outcome, build, command, execute, judge

BIG = str(10**25)


@dataclass(frozen=True)
class Value:
    """A value of an option: whether it is right (True), wrong (False), or may be either (None)."""

    text: str
    is_right: bool | None = None


def right(*texts: str) -> list[Value]:
    return [Value(text, True) for text in texts]


def wrong(*texts: str) -> list[Value]:
    return [Value(text, False) for text in texts]


def either(*texts: str) -> list[Value]:
    return [Value(text) for text in texts]


ODD = either(
    *("", " ", "-", "--", "0", "-1", BIG, "nan", "inf", "1e308", "0x10", "1_000", "٣", "x" * 5000),
    *("'", '"', "a'b", "\udcff\udcfe", "a\nb", "\x1b[31m", "%s%n", "{}", "$(id)", "../..", "\x7f"),
    *("'); DROP TABLE nsys.op; --", "NULL", "true", "file:t.sqlite?mode=rwc", "é☃", "*", "[", "(?"),
)
NUMBERS = [
    *wrong("", "x", "1.5", "nan", "1 2", "0x10", "--", "-" + BIG, "\udcff", "1e3"),
    *either(BIG, "+1", " 1", "1_0", "٣", "007", "-0"),
]
TRACES = [
    *(right("t.sqlite") * 30),
    *right("u.sqlite", 'it\'s "a" trace.sqlite', "./t.sqlite", "d/../t.sqlite", "link.sqlite"),
    *right("t.duckdb", "\udcffname.sqlite", "new\nline.sqlite", "#1?mode=x.sqlite", "%41.sqlite"),
    *either("none.sqlite", "d", "text.txt", "", "-", "file:t.sqlite", "t.sqlite/", "/dev/null"),
    *either("file:t.sqlite?mode=rwc", "https://localhost:1/t.sqlite", "*.sqlite"),
    *either("\x00", "x" * 900, "loop.sqlite", ":memory:", "sqlite:t.sqlite", "~", "fake.nsys-rep"),
]
PLACES = either(
    *("out", "out.csv", "out.json", "out.md", "out.html", "out.parquet", "out.txt", "out.json.gz"),
    *(
        "out.duckdb",
        "out.pftrace",
        "OUT.JSON",
        "out.csv.gz",
        "d/out",
        "none/out",
        "d",
        "-",
        "",
        ".",
    ),
    *("t.sqlite", "link.sqlite", "text.txt", "/dev/null", "o'u\"t.csv", "\udcffout", "x" * 300),
    *("out\nline", "file:out", "text.txt/out", "./out.md", " ", "--", "%s", "*.csv", "loop.sqlite"),
    *("r.yaml", "tax.yaml", "sites.csv", "q.sql", "mine/mine.sql", "t.sqlite-wal", "d/"),
)
RECIPES = (
    *("budget", "budget-windows", "gaps", "iterations", "kernels", "anchors", "communication"),
    *("copies", "capture", "streams", "launches", "host-stalls", "metrics", "opportunities"),
    *("slowdown", "call-sites", "trace-events", "top-gaps", "verdict", "claims", "nvtx"),
)
# Sensible values by the name of the parameter; others come from its type.
BY_NAME: dict[str, list[Value]] = {
    "recipe": [
        *right(*RECIPES),
        *right("budget_windows"),
        *wrong("", "nothing", "../budget", "budget.sql", "a'b", "\udcff", "result_budget", "-"),
    ],
    "anchor": [
        *right("auto", "nvtx:*", "nvtx:step*", "kernel:*", "nccl:*", "nvtx:'", "kernel:%"),
        *right("nvtx:" + "*" * 50, "kernel:'; DROP TABLE x; --", "nvtx:\\", "nvtx:a\nb"),
        *wrong("", "x", "nvtx:", ":x", "NVTX:*", "cuda:*", "nvtx", "auto:"),
        *either("nvtx:\udcff", "nvtx:\x00", "nvtx:" + "x" * 9000, "nvtx::", "nvtx: "),
    ],
    "iterations": [
        *right("0:1", "0:", ":2", ":", "1:999"),
        *wrong("", "x", "2:1", "1:1", "-1:2", "1", "1:2:3", "a:b", "1.5:2", "1:" + BIG, "٣:٤"),
    ],
    "device": [*right("0", "0", "1"), *either("7", "-1", str(2**31)), *wrong("x", str(2**33))],
    "memory_limit": [
        *right("1GB", "500MB", "1 GiB", "2000000KB"),
        *wrong("x", "GB", "1XB", "nan", "", "0", "0GB", "-1", "-1GB", "80%", "1e", BIG),
        *wrong("1GB 1GB", "1GB'; SET threads = 1; --"),
        *either("1B", "5KB", "20MB", "1e3MB", "1e400GB", "1e9TB"),
    ],
    "threads": [*right("1", "2", "4"), *wrong("0", "-1", "1025", BIG)],
    "jobs": [*right("1", "1", "2"), *wrong("0", "-1"), *either("1000000")],
    "timeout": [
        *right("60", "1e3", "99.5"),
        *wrong("0", "-1", "nan", "x", ""),
        *either("1e-9", "inf", "1e308", "1e18"),
    ],
    "mfu": [*right("41.5", "1", "100"), *either("0", "-1", "nan", "inf", "1e308", "101", "-0")],
    "limit": [*right("0", "1", "7"), *wrong("-1"), *either(BIG)],
    "query": [
        *right("SELECT 1", "SELECT count(*) FROM nsys.kernel", "FROM budget", "SHOW TABLES"),
        *right("SELECT 'é' AS \"a b\", 1 AS x_ns, NULL AS n", "SELECT * FROM nsys.op LIMIT 0"),
        *right("SELECT now() AS t", "SELECT TIMESTAMPTZ '2020-01-01' AS t, INTERVAL 1 DAY AS i"),
        *right("SELECT 'NaN'::DOUBLE AS a, 'inf'::FLOAT AS b", "SELECT x'00ff'::BLOB AS b"),
        *right("SELECT [1, NULL] AS l, {'a': 1} AS s, MAP {1: 2} AS m, uuid() AS u"),
        *right("SELECT DATE '0044-03-15 (BC)' AS d, TIMETZ '12:00:00+02' AS t, TIME '1:2:3' AS x"),
        *right("SELECT TIMESTAMP_NS '2020-01-01 00:00:00.123456789' AS t, '101'::BIT AS b"),
        *right("SELECT 170141183460469231731687303715884105727::HUGEINT AS h, 1.10::DECIMAL(9,2)"),
        *right("SELECT DATE 'infinity' AS d, TIMESTAMP '-infinity' AS t, INTERVAL '1000 years' i"),
        *right("SELECT 1 AS a, 2 AS a", 'SELECT 3 AS """"', "SELECT 'a\u0000b'", "SELECT ''"),
        *wrong("x", "DROP TABLE nsys.op", "SELECT 1; SELECT 2", "ATTACH 'x.db'", "SELECT"),
        *wrong("SELECT * FROM 'text.txt'", "COPY (SELECT 1) TO 'out.csv'", "SELECT getenv('HOME')"),
        *wrong("FROM sqlite_scan('t.sqlite', 'x')", "SELECT * FROM none", "PRAGMA version", ";"),
        *wrong("SELECT * FROM read_csv('text.txt')", "SET threads = 1", "CALL pragma_version()"),
        *either("", "-", " ", "SELECT \udcff", "SELECT error('\x1b[31m')", "(" * 2000, "SELECT 1;"),
        *either("SELECT * FROM trace.StringIds", "EXPLAIN SELECT 1", "SELECT '\x00'", "/* "),
        *either("SELECT * FROM range(3) t(i) ORDER BY error('x')", "WITH a AS (FROM a) FROM a"),
        *either("SELECT 1/0 AS a, sqrt(-1) AS b", "SELECT 9223372036854775807 + 1", "SELECT ?"),
    ],
    "params": [
        *either("rows=3", "top=3", "mfu=41", "rank=0", "window_mode=x", "skip_first=-4"),
        *either("anchor_message=x", "anchor_kind=cuda", "anchor_pattern=%", "per_iteration=0"),
        *either("skip_last=x", "iteration_from=-1", "iteration_to='", "window_mode=device", "a=1"),
        *either("min-ns=1", "top=-1", "top=99999999999999999999", "top=nan", "top=", "top=1;DROP"),
        *wrong("", "x", "=", "=1"),
        *either("x==1", "'=1", "\udcff=1", "a b=1", "top=\udcff", "top=\x00", "x" * 500 + "=1"),
    ],
    "reference_steps": [
        *right("29ms,31ms", "1s", "1500us,2ms", "steps.log"),
        *wrong("", "x", "29", "-1s", "nan s", "1s,,x", "0s", "1e999s"),
        *either("none.log", "d", "1s,", "\udcff", BIG + "s", "text.txt", "1s;2s", "-"),
    ],
    "callsites": either("sites.csv", "text.txt", "none.csv", "d", "", "t.sqlite", "'", "-"),
    "metrics_from": TRACES,
    "taxonomy": either("tax.yaml", "bad.yaml", "text.txt", "none", "d", "", "/dev/null", "\udcff"),
    "recipes": either("mine", "mine/mine.sql", "d", "none", "text.txt", "", "tax.yaml"),
    "file": either("q.sql", "none.sql", "d", "", "-", "t.sqlite", "\udcff"),
    "ranks": either("r.yaml", "bad.yaml", "none.yaml", "d", "", "t.sqlite", "/dev/null", "-"),
    "base_ranks": either("r.yaml", "bad.yaml", "none.yaml", "d", ""),
    "base_anchor": [*right("nvtx:*", "auto"), *wrong("", "x", "nvtx:")],
    "base_iterations": [*right("0:1"), *wrong("", "2:1", "x")],
    "scheduler": either("", "none.json", "tcp://", "x://y", "-", "d"),
    "results": either("verdict", "survey", "kernels", "reconciliation", "nothing", "", "'"),
    "fail_on": [
        *right("iteration > +3%", "blocking > +2ms", "iteration > 500ms", "device_idle>0%"),
        *wrong("", "x", "iteration", "> 3", "iteration > x", "iteration < 3%", "nothing > 1%"),
        *either("iteration > nan%", "iteration > -1%", "iteration > 1e400%", f"iteration > {BIG}%"),
    ],
    "labels": [*right("a=1", "branch=main", "'=\"", "a=a=b"), *wrong("", "x", "=1", " =1")],
    "metric": [*right("iteration", "blocking", "launch-starved"), *wrong("", "x", "'", "\udcff")],
    "store": either("h.duckdb", "new.duckdb", "t.duckdb", "text.txt", "d", "none/h", "", "-"),
    "partitions": either("parts", "d", "text.txt", "none/deeper/parts", "", "-"),
    "from_parquet": either("parts", "d", "none", "text.txt", ""),
    "temp_directory": either("d", "none", "text.txt", "", "."),
    "form": [*right(*FORMATS, "parquet"), *wrong("", "xml", "JSON", "table,json")],
}
for each in (
    *("reference_steps", "recipes", "scheduler", "store", "from_parquet", "partitions", "taxonomy"),
    *("callsites", "file", "ranks", "base_ranks"),
):
    BY_NAME[each] += either("x" * 300, "a/" * 3000)
BY_NAME["bases"] = BY_NAME["trace"] = BY_NAME["traces"] = TRACES
BY_NAME["output"] = PLACES


def values(param: click.Parameter) -> list[Value]:
    """What to try for an option or argument: by its name, and by its type."""
    found = list(BY_NAME.get(param.name or "", ()))
    kind = param.type
    if isinstance(kind, (click.types.IntParamType, click.types.FloatParamType)):
        found += [v for v in NUMBERS if isinstance(kind, click.types.IntParamType)]
        low = getattr(kind, "min", None)
        if not found or param.name not in BY_NAME:
            found += right(*(str(int((low or 0) + n)) for n in (1, 1, 2, 3)))
        if isinstance(kind, click.types.FloatParamType):
            found += wrong("x", "", "1,5")
    elif isinstance(kind, click.Choice):
        found = [*right(*map(str, kind.choices)), *wrong("", "x", str(kind.choices[0]) + "x")]
    elif param.name not in BY_NAME:
        found += ODD
    return found


@dataclass
class Line:
    """A command line, what is known to be wrong in it, and what it may write."""

    arguments: list[str]
    wrong: list[str]
    is_known: bool
    writes: list[str]
    reads: list[str]


def random_line(seed: int) -> Line:
    """The command line of a seed."""
    from nsys_sql.cli import cli

    r = random.Random(f"line {seed}")
    name = r.choice([n for n in cli.commands for _ in range(1 if n in ("list", "cache") else 3)])
    chosen = cli.commands[name]
    line = Line([], [], True, [], [])

    def pick(param: click.Parameter, is_last: bool = True) -> str:
        usable = values(param)
        if r.random() < 0.8:
            usable = [value for value in usable if value.is_right is not False] or usable
        value = r.choice(usable)
        if value.is_right is False and is_last:
            line.wrong.append(max(param.opts, key=len).lstrip("-"))
        line.is_known &= value.is_right is not None
        if param.name in ("output", "store", "partitions") or name == "history":
            line.writes.append(value.text)
        elif isinstance(param.type, click.Path):
            line.reads.append(value.text)
        return value.text

    words: list[list[str]] = []
    for param in chosen.params:
        if isinstance(param, click.Argument):
            count = r.choice([0, 1, 2, 2, 3]) if param.nargs == -1 else r.random() < 0.97
            if not count:
                line.is_known = False
            words += [[pick(param)] for _ in range(count)]
    options = [param for param in chosen.params if isinstance(param, click.Option)]
    share = r.choice([0.0, 0.08, 0.15, 0.3])
    drawn = [option for option in options if option.required or r.random() < share]
    for option in drawn:
        times = r.choice([1, 1, 1, 2]) if option.multiple else r.choice([1] * 9 + [2])
        for time in range(times):
            is_last = option.multiple or time == times - 1  # the last one is the one that counts
            flag = r.choice([*option.opts, *option.secondary_opts])
            if option.is_flag:
                words.append([flag])
            elif flag.startswith("--") and r.random() < 0.3:
                words.append([f"{flag}={pick(option, is_last)}"])
            else:
                words.append([flag, pick(option, is_last)])
        line.is_known &= times == 1 or option.multiple
    if name == "shell":
        words.append(["--builtin"])  # the stock program is not ours
    if r.random() < 0.1:
        word = r.choice(["--help", "--no", "-x", "--", "-oo", "extra", "--format", "", "\udcff"])
        words.append([word])
        line.writes += [word, word.removeprefix("-o")]  # it may name the output
        line.is_known = False
    is_ordered = r.random() < 0.6
    if not is_ordered:  # the order of arguments among themselves stays
        places = sorted(range(len(words)), key=lambda _: r.random())
        words = [words[place] for place in places]
        line.is_known = False
        line.wrong = (
            [] if len(words) != len({w[0].partition("=")[0] for w in words}) else line.wrong
        )
    line.arguments = [name, *(part for word in words for part in word)]
    return line


# ---------------------------------------------------------------------------- the scratch folder


@functools.cache
def template(base: str) -> Path:
    """A folder with files of every kind, made once in a process."""
    from nsys_sql import cli

    folder = Path(base) / "template"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    build("two_processes", folder / "t.sqlite", 4096, 0, "UTF-8")
    build("event_waits", folder / "u.sqlite", 4096, 0, "UTF-8")
    for name in ('it\'s "a" trace.sqlite', "\udcffname.sqlite", "new\nline.sqlite"):
        shutil.copyfile(folder / "t.sqlite", folder / name)
    for name in ("#1?mode=x.sqlite", "%41.sqlite"):
        shutil.copyfile(folder / "t.sqlite", folder / name)
    (folder / "d").mkdir()
    (folder / "link.sqlite").symlink_to("t.sqlite")
    (folder / "loop.sqlite").symlink_to("loop.sqlite")
    texts = {
        "text.txt": "no trace\n",
        "fake.nsys-rep": "no report\n",
        "r.yaml": "ranks:\n  - {trace: t.sqlite, rank: 0}\n  - {trace: u.sqlite, rank: 1}\n",
        "bad.yaml": "ranks: [\n",
        "tax.yaml": "rules:\n  - {class: mine, role: compute, pattern: '*mine*'}\n",
        "steps.log": "step 1 took 29 ms\n",
        "sites.csv": "rank,thread,ordinal,site\n0,1,0,a.py:1\n",
        "q.sql": "SELECT 1 AS one",
        "mine/mine.sql": (
            "-- mine — how many kernels?\n--\n-- @grain one row\n-- @reads nsys.kernel\n"
            "-- @column kernels BIGINT - how many\nSELECT count(*) AS kernels\nFROM nsys.kernel;\n"
        ),
    }
    for name, text in texts.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    inputs = [str(folder / "t.sqlite"), "-o", str(folder / "t.duckdb"), "--quiet"]
    assert cli.execute(["build", *inputs]) == 0
    store = [str(folder / "h.duckdb"), "--add", str(folder / "t.sqlite"), "--jobs", "1", "--quiet"]
    assert cli.execute(["history", *store]) == 0
    return folder


def snapshot(folder: Path) -> dict[str, str]:
    """Every path below a folder with what is in it."""
    found = {}
    for path in folder.rglob("*"):
        name = os.fspath(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        elif path.is_file():
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        else:
            found[name] = "folder"
    return found


def run_case(seed: int, folder: Path) -> list[str]:
    """Run the line of a seed in a fresh folder and judge it."""
    made = template(str(folder))
    line = random_line(seed)
    work, temp = folder / "work", folder / "tmp"
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(made, work, symlinks=True)
    temp.mkdir(exist_ok=True)
    before, stood = snapshot(work), Path.cwd()
    os.chdir(work)
    try:
        code, out, err = execute(line.arguments, stdin=b"SELECT 2 AS two;\n")
    finally:
        os.chdir(stood)
    after = snapshot(work)
    found = [*judge(Outcome(line.arguments, code, out, err), codes=(0, 2, 3, 4, 6))]
    found += misplaced(line, code, before, after)
    if left := [path.name for path in temp.iterdir()]:
        found.append(f"left in the temporary folder: {left}")
        for path in temp.iterdir():
            shutil.rmtree(path, ignore_errors=True)
    if line.wrong and code in (0, 6) and not {"--help"} & {*line.arguments}:
        found.append(f"{line.wrong} is wrong, yet exit code {code}")
    if len(line.wrong) == 1 and line.is_known and code == 2 and not names(line.wrong[0], err):
        found.append(f"the message does not name {line.wrong[0]}")
    shown = shlex.join(line.arguments)[:500].encode("utf-8", "backslashreplace").decode()
    told = err[:HEAD].strip()
    return [f"seed {seed}: {each} (exit {code}): nsys-sql {shown!r}\n    {told}" for each in found]


def names(option: str, err: str) -> bool:
    """Whether a message says which option it is about."""
    word = {"format": "format", "param": "param", "results": "result", "query": "query"}
    text = err.lower().replace("_", "-")
    return word.get(option, option).replace("_", "-") in text


def misplaced(line: Line, code: int, before: dict[str, str], after: dict[str, str]) -> list[str]:
    """What was written, changed or removed that the line did not name, or an input."""
    named = {os.path.normpath(text) for text in line.writes if text and "\x00" not in text}
    named |= {"t.sqlite"} if "link.sqlite" in named else set()
    if "--" in line.arguments:  # behind it an option is a name
        named |= {text for text in line.arguments if text.startswith("-")}
    reads = {os.path.normpath(text) for text in line.reads}
    reads |= {"t.sqlite"} if reads & {"link.sqlite", "*.sqlite"} else set()
    found = []
    for name in before.keys() | after.keys():
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        is_named = any(name == each or name.startswith(each + os.sep) for each in named)
        is_parent = any(each.startswith(name + os.sep) for each in named)  # --partitions a/b
        kind = "new" if old is None else "gone" if new is None else "changed"
        if not is_named and not (is_parent and new == "folder"):
            found.append(f"{name!r} is {kind}")
        elif old is not None and name in reads:
            found.append(f"the input {name!r} is {kind}")
        elif ".part" in name:
            found.append(f"{name!r} is left half-written")
        elif code in (2, 3) and not may_have_written(line.arguments, code):
            found.append(f"{name!r} is {kind} although the command failed")
    return found


def may_have_written(arguments: list[str], code: int) -> bool:
    """Whether a command that failed has results: partitions, or of some of several traces."""
    if "--partitions" in " ".join(arguments):
        return True
    return code == 3 and arguments[0] in ("run", "report", "survey")


def trial(arguments: list[str], folder: Path) -> tuple[int, bytes, str]:
    """One line in the folder of the fuzzer, for tests of what was found."""
    stood: Any = Path.cwd()
    os.chdir(template(str(folder)))
    try:
        return execute(arguments, stdin=b"")
    finally:
        os.chdir(stood)


if __name__ == "__main__":
    sys.exit(command(Path(__file__), run_case, __doc__))
