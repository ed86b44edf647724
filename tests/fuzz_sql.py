"""Queries, shell sessions and recipes of one's own, made of all that DuckDB's grammar can name.

    python tests/fuzz_sql.py --seeds 0:300
    python tests/fuzz_sql.py --seconds 600 --keep-going

Functions, types and views are read from DuckDB itself, relations and columns from the package, and
queries that mean something are taken from its own recipes and have their words exchanged. Whatever
is asked, it ends with a documented exit code and at most one line, within its time; nothing is
written, changed or left; and neither an answer nor an error tells of the machine, of a file beside
the trace, or of what the trace knows of its user.
"""

from __future__ import annotations

import contextlib
import functools
import os
import random
import re
import shlex
import shutil
import sqlite3
import sys
import threading
from contextlib import closing
from pathlib import Path

from fuzz_file import HEAD, Outcome, build, command, execute, judge

SECRET = re.compile(r"hush-[0-9]{2}")
# Where the trace lies, what lies beside it, the environment, and the tables of the trace.
FOLDER, BESIDE, VARIABLE, TABLE = (f"hush-{number}" for number in (11, 12, 13, 14))
CODES = {0, 2, 3, 4}
LITERALS = (
    *("0", "1", "-1", "7", "9223372036854775807", "-9223372036854775808", "1.5", "1e308", "NULL"),
    *(
        "'a'",
        "''",
        "'%'",
        "'[a'",
        "'(?<x>'",
        "'\u00e9\u2603'",
        "'text.txt'",
        "'/etc/passwd'",
        "'*'",
        "'nsys.op'",
    ),
    *(
        "'trace.StringIds'",
        "'StringIds'",
        "'HOME'",
        "'HUSH'",
        "'2020-01-01'",
        "true",
        "DATE '2020-02-30'",
    ),
    *("[1, 2]", "[]", "[NULL]", "{'a': 1}", "MAP {1: 2}", "'{\"a\": [1]}'", "'nan'::DOUBLE"),
    *("x'00ff'::BLOB", "INTERVAL 1 MONTH", "'101'::BIT", "170141183460469231731687303715884105727"),
    *("lambda x: x", "(SELECT 1)", "ROW(1, 'a')", "TIMESTAMP 'infinity'", "1::UTINYINT", "?", "$a"),
    *("'SELECT 1'", "'SELECT getenv(''HUSH'')'", "'FROM trace.StringIds'", "'$.a'", "'main'"),
)
TYPES = (
    *(
        "INTEGER",
        "VARCHAR",
        "DOUBLE",
        "HUGEINT",
        "DECIMAL(38, 37)",
        "BLOB",
        "UUID",
        "DATE",
        "TIMETZ",
    ),
    *("TIMESTAMPTZ", "INTERVAL", "BIT", "JSON", "INTEGER[]", "STRUCT(a INT)", "MAP(INT, INT)"),
    *("ENUM('a', 'b')", "UNION(a INT, b VARCHAR)", "UTINYINT", "VARCHAR[3]", "nothing"),
)
WORDS = (
    *("SELECT", "FROM", "WHERE", "GROUP BY ALL", "ORDER BY ALL", "UNION ALL", "JOIN", "ASOF JOIN"),
    *(
        "LATERAL",
        "WITH RECURSIVE a AS",
        "QUALIFY",
        "OVER ()",
        "FILTER (WHERE true)",
        "LIMIT 3",
        "*",
    ),
    *("USING SAMPLE 50%", "TABLESAMPLE reservoir(3)", "PIVOT", "UNPIVOT", "SUMMARIZE", "DESCRIBE"),
    *("VALUES (1)", "COLUMNS(*)", "EXCLUDE (a)", "POSITIONAL JOIN", "SEMI JOIN", "INTERSECT", ";"),
    *(
        "(",
        ")",
        ",",
        "'",
        '"',
        "$$",
        "/*",
        "*/",
        "--",
        "\n",
        ".",
        "::",
        "->",
        "|",
        "\x00",
        "\udcff",
    ),
    *("COPY", "ATTACH", "INSTALL", "LOAD", "SET", "PRAGMA", "CALL", "EXPLAIN", "EXPORT DATABASE"),
    *(
        "CREATE TABLE t AS",
        "INSERT INTO nsys.op",
        "DROP VIEW nsys.op",
        "BEGIN",
        "USE",
        "TO 'out.csv'",
    ),
)
DOTTED = (
    *(".help", ".recipes", ".tables", ".tables op", ".run budget", ".run nothing", ".schema op"),
    *(".schema nothing", ".set top 3", ".set", ".set top", ".unset top", ".quit now", ".x", "."),
    *(
        ".run budget; DROP",
        ".set a'b 1",
        ".set top '",
        ".set device 99",
        ".run gaps",
        ".tables \x1b[31m",
    ),
    *("SET VARIABLE top = 3;", "SET VARIABLE x = getenv('HUSH');", "RESET VARIABLE top;", ";;", ""),
    *("SET VARIABLE x = (SELECT 1); SELECT getvariable('x');", "SET VARIABLE top TO 'a' || 1/0;"),
    *(
        ".run \udcff",
        ".schema '; --",
        ".set " + "x" * 300 + " 1",
        "SET VARIABLE window_mode = 'x';",
    ),
)


# ---------------------------------------------------------------------------- what there is to name


@functools.cache
def names() -> dict[str, list[str]]:
    """Functions and views of DuckDB, relations and columns of the package, its own queries."""
    import duckdb

    from nsys_sql.catalog import load_catalog

    catalog = load_catalog()
    with duckdb.connect() as con:
        functions = con.execute(
            "SELECT DISTINCT function_name, function_type FROM duckdb_functions() "
            "WHERE function_name SIMILAR TO '[a-z_0-9]+' ORDER BY ALL"
        ).fetchall()
        views = con.execute(
            "SELECT DISTINCT schema_name || '.' || view_name FROM duckdb_views() ORDER BY ALL"
        ).fetchall()
    files = [*catalog.recipes.values(), *catalog.steps.values(), *catalog.notes.values()]
    return {
        "scalar": [name for name, kind in functions if kind in ("scalar", "aggregate", "macro")],
        "table": [name for name, kind in functions if kind in ("table", "table_macro", "pragma")],
        "macro": [f"nsys.{name}" for name in catalog.macros],
        "view": [name for (name,) in views],
        "relation": [
            *(f"nsys.{name}" for name in (*catalog.adapters, *catalog.steps)),
            *(name.replace("-", "_") for name in catalog.recipes),
        ],
        "trace": [f"trace.{name}" for name in ("StringIds", "NVTX_EVENTS", "META_DATA_CAPTURE")],
        "column": sorted({c.name for file in files for c in file.columns}),
        "query": [re.sub(r"--[^\n]*", "", file.body).strip().rstrip(";") for file in files],
    }


class Maker:
    """Queries of a random source."""

    def __init__(self, r: random.Random) -> None:
        self.r, self.names = r, names()

    def expression(self, depth: int = 2) -> str:
        r = self.r
        kind = r.random()
        if depth == 0 or kind < 0.2:
            return r.choice(LITERALS) if r.random() < 0.7 else r.choice(self.names["column"])
        if kind < 0.75:
            name = r.choice(self.names["scalar" if r.random() < 0.95 else "table"])
            arguments = [self.expression(depth - 1) for _ in range(r.choice([0, 1, 1, 2, 2, 3, 4]))]
            extra = r.choice(["", "", "", "", " OVER ()", " FILTER (WHERE true)"])
            return f"{name}({r.choice(['', '', '', 'DISTINCT '])}{', '.join(arguments)}){extra}"
        if kind < 0.85:
            cast = r.choice(["CAST", "TRY_CAST"])
            return f"{cast}({self.expression(depth - 1)} AS {r.choice(TYPES)})"
        if kind < 0.93:
            sign = r.choice(
                ["+", "*", "||", "//", "%", "=", "<", "LIKE", "IN", "AND", "->", "^@", "**"]
            )
            return f"({self.expression(depth - 1)} {sign} {self.expression(depth - 1)})"
        return f"(SELECT {self.expression(depth - 1)} FROM {self.relation()} LIMIT 1)"

    def relation(self) -> str:
        r = self.r
        kind = r.random()
        if kind < 0.45:
            return r.choice(self.names["relation"])
        if kind < 0.6:
            return r.choice(self.names["view"])
        if kind < 0.7:
            return r.choice(self.names["trace"])
        arguments = [self.expression(1) for _ in range(r.choice([0, 1, 1, 2, 3]))]
        name = r.choice(self.names["table"] if kind < 0.9 else self.names["macro"])
        return f"{name}({', '.join(arguments)})"

    def query(self) -> str:
        r = self.r
        kind = r.random()
        if kind < 0.3:
            return f"SELECT {', '.join(self.expression(3) for _ in range(r.choice([1, 1, 2])))}"
        if kind < 0.55:
            return f"SELECT * FROM {self.relation()} AS a LIMIT 20"
        if kind < 0.7:
            return (
                f"SELECT {self.expression()} AS x, count(*) AS n FROM {self.relation()} AS a "
                f"WHERE {self.expression()} GROUP BY ALL ORDER BY ALL LIMIT 20"
            )
        if kind < 0.8:
            words = [r.choice(WORDS) for _ in range(r.randrange(1, 9))]
            return " ".join([r.choice(["SELECT 1", "FROM nsys.op", "SELECT"]), *words])
        return self.mutant(r.choice(self.names["query"]))

    def mutant(self, text: str) -> str:
        """A query whose words are dropped, doubled, swapped or exchanged."""
        r = self.r
        words = re.findall(r"'[^']*'|\"[^\"]*\"|[\w.]+|\s+|[^\w\s]", text)
        for _ in range(r.choice([1, 1, 2, 4])):
            at = r.randrange(len(words))
            how = r.random()
            if how < 0.2:
                del words[at]
            elif how < 0.35:
                words.insert(at, words[at])
            elif how < 0.5:
                other = r.randrange(len(words))
                words[at], words[other] = words[other], words[at]
            elif how < 0.65:
                words[at] = f" {r.choice(WORDS)} "
            elif how < 0.8:
                words[at] = f" {self.expression(1)} "
            else:
                words[at] = r.choice([*self.names["column"], *self.names["relation"]])
            if not words:
                break
        return "".join(words)

    def script(self) -> bytes:
        """Lines for the shell."""
        found = []
        for _ in range(self.r.randrange(1, 6)):
            found.append(self.r.choice(DOTTED) if self.r.random() < 0.6 else f"{self.query()};")
        return "\n".join(found).encode("utf-8", "surrogateescape")

    def recipe(self) -> str:
        """A recipe file whose header may be wrong, and whose query may be anything."""
        r = self.r
        own = self.r.random() < 0.5
        query = "SELECT count(*) AS kernels FROM nsys.kernel" if own else self.query()
        lines = [
            "-- mine \u2014 how many kernels?",
            "--",
            "-- @grain one row",
            "-- @reads nsys.kernel",
            "-- @column kernels BIGINT - how many",
        ]
        more = [
            "-- @param top BIGINT = 3  rows",
            f"-- @param {r.choice(['a b', 'x'])} {r.choice(TYPES)} = {r.choice(LITERALS)} x",
            f"-- @invariant one {self.expression(1)}",
            f"-- @warning odd {self.expression(1)}",
            f"-- @reads {r.choice([*self.names['relation'], 'nsys.nothing', 'nsys.result_mine'])}",
            "-- @needs nothing",
            "-- @needs gpu_metric",
            "-- @pitfall 99",
            "-- @\x1b[31m",
            f"-- @column {r.choice(self.names['column'])} BIGINT ns x",
            "-- @materialize",
            "-- @fact x",
            "--",
        ]
        lines += r.sample(more, r.choice([0, 0, 1, 2]))
        if r.random() < 0.3:
            at = r.randrange(len(lines))
            lines[at] = r.choice(["", "-- @", "x", lines[at][:5], lines[at] * 2, "-- @reads"])
        return "\n".join([*lines, f"{query}{r.choice([';', ';', '', '; SELECT 2;'])}", ""])


# ---------------------------------------------------------------------------- running


def prepare(folder: Path) -> Path:
    """The folder with the trace, made once in a process."""
    work = folder / FOLDER
    if not work.exists():
        work.mkdir(parents=True)
        build("event_waits", work / "t.sqlite", 4096, 0, "UTF-8")
        with closing(sqlite3.connect(work / "t.sqlite")) as con:
            con.execute("CREATE TABLE META_DATA_CAPTURE (name TEXT, value TEXT)")
            con.execute("INSERT INTO META_DATA_CAPTURE VALUES ('PROCESS_0:USER_NAME', ?)", [TABLE])
            con.execute("INSERT INTO StringIds VALUES (9001, ?)", [f"KEY={TABLE}\0A=b"])
            con.commit()
        (work / "text.txt").write_text(f"{BESIDE}\n", encoding="utf-8")
        (work / "mine").mkdir()
    os.environ["HUSH"] = VARIABLE
    return work


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def told(text: str, asked: str) -> set[str]:
    """Secrets that an output tells and the query did not name itself."""
    return {*SECRET.findall(text)} - {*SECRET.findall(asked)}


def ask(maker: Maker, work: Path, times: int) -> list[str]:
    """Queries on one open model, as a program asks them."""
    import duckdb

    import nsys_sql

    found = []
    with nsys_sql.open(work / "t.sqlite", threads=1, memory_limit="400MB") as model:
        for _ in range(times):
            query = maker.query()
            timer = threading.Timer(5, model.con.interrupt)
            timer.start()
            try:
                text = repr(model.rows(model.query(query)))
            except nsys_sql.NsysSqlError as error:
                text = f"{error} {error.hint}"
                if error.exit_code not in CODES:
                    found.append(f"exit code {error.exit_code}: {query!r}\n    {text[:HEAD]}")
                if re.search("INTERNAL Error|FATAL|Traceback", text):
                    found.append(f"a bug shows: {query!r}\n    {text[:HEAD]}")
            except duckdb.InterruptException:
                text = ""
            except Exception as error:
                text = f"{type(error).__name__}: {error}"
                found.append(f"{text[:HEAD]}: {query!r}")
            finally:
                timer.cancel()
            if secret := told(text, query):
                found.append(f"{sorted(secret)} is told: {query!r}\n    {text[:HEAD]}")
    return found


def run_case(seed: int, folder: Path) -> list[str]:
    """Ask in every way, and judge: the findings of one seed."""
    r = random.Random(f"sql {seed}")
    maker = Maker(r)
    work, temp = prepare(folder), Path(os.environ["TMPDIR"])
    temp.mkdir(exist_ok=True)
    shutil.rmtree(work / "mine")
    (work / "mine").mkdir()
    (work / "q.sql").write_text("SELECT 1", encoding="utf-8")
    trace = r.choice(["t.sqlite", "t.sqlite", "t.duckdb"])
    if trace == "t.duckdb" and not (work / trace).exists():
        assert execute(["build", f"{work}/t.sqlite", "-o", f"{work}/{trace}", "--quiet"])[0] == 0
    limits = ["--timeout", "10", "--memory-limit", "400MB", "--threads", "1"]
    form = ["--format", r.choice(["table", "json", "csv", "markdown"])]
    lines: list[tuple[list[str], bytes]] = []
    for _ in range(2):
        query = maker.query()
        lines.append((["sql", trace, query, *form, *limits], b""))
    lines.append((["sql", trace, *form, *limits], maker.query().encode("utf-8", "surrogateescape")))
    (work / "q.sql").write_bytes(maker.query().encode("utf-8", "surrogateescape"))
    lines.append((["sql", trace, "-f", "q.sql", *form, *limits], b""))
    lines.append((["shell", trace, "--builtin"], maker.script()))
    (work / "mine" / "mine.sql").write_bytes(maker.recipe().encode("utf-8", "surrogateescape"))
    mine = ["--recipes", "mine"]
    lines += [
        (["run", "mine", trace, *mine, *form, *limits], b""),
        r.choice([
            (["list", *mine], b""),
            (["describe", "mine", *mine], b""),
            (["show", "mine", trace, *mine], b""),
            (["report", trace, *mine], b""),
            (["timeline", trace, *mine, "-o", "out.json"], b""),
            (["survey", trace, "u.sqlite", *mine, "--jobs", "1"], b""),
            (["inspect", trace, *mine], b""),
        ]),
    ]  # fmt: skip
    before = contents(work)
    found: list[str] = []
    stood = Path.cwd()
    os.chdir(work)
    try:
        for arguments, stdin in r.sample(lines, 3):
            code, out, err = execute(arguments, stdin, r.choice(["strict", "surrogateescape"]))
            (work / "out.json").unlink(missing_ok=True)
            codes = CODES | ({5} if mine[1] in arguments else set())
            # What DuckDB lists: all that a name could have meant, and names of its own.
            shown_err = re.sub(r"Candidate functions: .*?(?= LINE |$)|__internal_\w+", "", err)
            problems = judge(Outcome(arguments, code, out, shown_err), codes)
            asked = " ".join(arguments) + stdin.decode("utf-8", "replace")
            asked += "".join(
                p.read_text("utf-8", "replace")
                for p in (work / "q.sql", work / "mine" / "mine.sql")
            )
            if "mine" in arguments:
                asked += FOLDER  # a file of the user's own is named by its whole path
            if secret := told(out.decode("utf-8", "replace") + err, asked):
                problems.append(f"{sorted(secret)} is told")
            if contents(work) != before:
                problems.append("a file is new, gone or changed")
            if left := [each.name for each in temp.iterdir()]:
                problems.append(f"left in the temporary folder: {left}")
                for each in temp.iterdir():
                    shutil.rmtree(each, ignore_errors=True)
            shown = shlex.join(arguments)
            with_input = f" <<< {stdin!r}" if stdin else ""
            if "-f" in arguments:
                with_input = f" <<< {(work / 'q.sql').read_bytes()!r}"
            if "mine" in arguments:
                with_input = f" <<< {(work / 'mine' / 'mine.sql').read_bytes()!r}"
            found += [
                f"{p} (exit {code}): {shown}{with_input}\n    {err[:HEAD].strip()}"
                for p in problems
            ]
    finally:
        os.chdir(stood)
        with contextlib.suppress(FileNotFoundError):
            (work / "out.json").unlink()
    found += ask(maker, work, 12)
    if contents(work) != before:
        found.append("a file is new, gone or changed by a query on a model")
        shutil.rmtree(work)
    text = [f"seed {seed}: {each}" for each in found]
    return [each.encode("utf-8", "backslashreplace").decode() for each in text]


if __name__ == "__main__":
    sys.exit(command(Path(__file__), run_case, __doc__))
