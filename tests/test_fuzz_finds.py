"""What the fuzzers of files and of command lines have found, each with its whole kind."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing

import duckdb
import pytest
import sqlglot

import nsys_sql
from conftest import brief
from fuzz_file import execute
from nsys_sql import attached, export, history, output, partition, resources, session, source, tasks
from nsys_sql.attached import load_sqlite
from nsys_sql.catalog import load_catalog
from nsys_sql.errors import AnswerError, InputError, UsageError
from nsys_sql.options import Options
from nsys_sql.shell import Shell
from tracebuilder import TraceBuilder

NO_UTF_8 = "\udcff"


@pytest.fixture
def trace(tmp_path):
    builder = TraceBuilder()
    for number in range(3):
        begin = 1000 * number
        builder.nvtx(begin, begin + 1000, f"step {number}")
        builder.call(begin, begin + 100, corr=number + 1)
        builder.kernel(begin + 200, begin + 700, corr=number + 1)
    return builder.write(tmp_path / "t.sqlite")


def run(*arguments):
    code, out, err = execute([str(argument) for argument in arguments])
    return code, out.decode(), err


# ---------------------------------------------------------------- parameters


@pytest.mark.parametrize(
    ("given", "option"),
    [
        *(("window_mode=x", "--window"), ("skip_first=-4", "--skip-first")),
        *(("skip_last=1", "--skip-last"), ("per_iteration=0", "--per-iteration")),
        *(("anchor_kind=cuda", "--anchor"), ("anchor_pattern=%", "--anchor")),
        *(("anchor_message=x", "--anchor"), ("iteration_from=1", "--iterations")),
        *(("iteration_to=-1", "--iterations"), ("skip-first=1", "--skip-first")),
    ],
)
def test_what_an_option_sets_is_no_parameter(trace, given, option):
    code, out, err = run("run", "budget", trace, "--param", given)
    assert (code, out) == (2, "") and f"give {option}\n" in err


def test_every_variable_of_an_option_is_guarded(trace):
    files = load_catalog()
    every = {p.name for f in (*files.steps.values(), *files.recipes.values()) for p in f.params}
    guarded = {*Options().variables(), "anchor_message"} & every
    assert len(guarded) > 8
    for name in guarded - {"device"}:
        with nsys_sql.open(trace) as model, pytest.raises(UsageError, match="is no parameter"):
            model.run("iterations", **{name: "1"})


def test_the_parameter_device_has_the_range_of_its_option(trace):
    assert run("run", "budget", trace, "--param", "device=-99999999999")[0] == 2
    assert run("run", "budget", trace, "--param", "device=99999999999")[0] == 2
    code, out, _ = run("run", "budget", trace, "--param", "device=0", "--format", "json")
    assert code == 0 and json.loads(out)["parameters"]["device"] == "0"  # told with the result


# ---------------------------------------------------------------- formats


@pytest.mark.parametrize("command", brief(2, ["run", "history", "sql", "survey", "compare"]))
def test_without_a_format_the_name_of_the_output_decides(trace, tmp_path, command):
    store = tmp_path / "h.duckdb"
    parts = ["--partitions", str(tmp_path / "parts"), "--jobs", "1"]
    lines = {
        "run": ["run", "budget", trace],
        "sql": ["sql", trace, "SELECT 1 AS one"],
        "survey": ["survey", trace, *parts],
        "compare": ["compare", trace, shutil.copyfile(trace, tmp_path / "u.sqlite"), *parts],
        "history": ["history", store],
    }
    if command == "history":
        assert run("history", store, "--add", trace, *parts)[0] == 0
    starts = {"csv": b"", "json": b"{\n", "md": b"#", "txt": b"", "JSON": b"{\n"}
    if command in ("survey", "compare", "history"):  # one path for all of them, and slow
        starts = {suffix: starts[suffix] for suffix in ("csv", "txt", "JSON")}
    for suffix, start in starts.items():
        target = tmp_path / f"out.{suffix}"
        code, out, err = run(*lines[command], "-o", target)
        assert (code, out) == (0, ""), err
        assert target.read_bytes().startswith(start)
    first = (tmp_path / "out.csv").read_text().splitlines()[0]
    assert "," in first or first == "one"
    assert (tmp_path / "out.txt").read_text() != (tmp_path / "out.csv").read_text()
    assert run(*lines[command], "-o", tmp_path / "table.csv", "--format", "table")[0] == 0
    assert (tmp_path / "table.csv").read_bytes() == (tmp_path / "out.txt").read_bytes()


def test_a_name_that_the_command_cannot_keep_is_usage(trace, tmp_path):
    code, _, err = run("run", "budget", trace, "-o", tmp_path / "out.html")
    assert code == 2 and "would hold no HTML" in err
    assert run("inspect", trace, "-o", tmp_path / "out.csv")[0] == 2
    assert run("run", "budget", trace, "-o", tmp_path / "out.html", "--format", "table")[0] == 0
    assert run("run", "budget", trace, "-o", tmp_path / "out.parquet")[0] == 0
    assert (tmp_path / "out.parquet").read_bytes()[:4] == b"PAR1"


# ---------------------------------------------------------------- values of a query


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("TIMESTAMPTZ '2020-01-01 12:00:00+02'", "2020-01-01 10:00:00+00"),
        ("[TIMESTAMPTZ '2020-01-01']", "['2020-01-01 00:00:00+00']"),
        ("TIMETZ '12:00:00+02'", "12:00:00+02"),
        ("DATE 'infinity'", "infinity"),
        ("DATE '0044-03-15 (BC)'", "0044-03-15 (BC)"),
        ("TIMESTAMP '-infinity'", "-infinity"),
        ("TIMESTAMP '290000-01-01'", "290000-01-01 00:00:00"),
        ("TIMESTAMP_NS '2020-01-01 00:00:00.123456789'", "2020-01-01 00:00:00.123456789"),
        ("INTERVAL '1000000 years'", "1000000 years"),
    ],
)
def test_times_come_as_text_as_far_and_as_deep_as_they_go(trace, monkeypatch, value, text):
    monkeypatch.setenv("TZ", "Pacific/Chatham")
    code, out, err = run("sql", trace, f"SELECT {value} AS t, 7 AS t", "--format", "json")
    assert code == 0, err
    assert json.loads(out)["columns"][0]["name"] == "t"
    assert f'"t": {json.dumps(text)}' in out or json.loads(out)["rows"] == [{"t": 7}]
    shown = run("sql", trace, f"SELECT {value} AS t", "--format", "csv")[1]
    assert text in shown


# ---------------------------------------------------------------- arguments that are no text


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "budget", "TRACE", "--anchor", f"nvtx:{NO_UTF_8}"],
        ["run", "budget", "TRACE", "--param", f"a={NO_UTF_8}"],
        ["run", "budget", "TRACE", "--memory-limit", NO_UTF_8],
        ["run", f"budget{NO_UTF_8}", "TRACE"],
        ["sql", "TRACE", f"SELECT '{NO_UTF_8}'"],
        ["sql", "TRACE", "SELECT 'a\0b'"],
        ["compare", "TRACE", "TRACE", "--label", f"a={NO_UTF_8}", "--store", "h"],
        ["run", "budget", "a\0b"],
        ["build", "TRACE", "-o", f"{NO_UTF_8}.duckdb"],
        ["survey", "TRACE", "--partitions", NO_UTF_8],
        ["run", "budget", "TRACE", "-o", f"{NO_UTF_8}.parquet"],
        ["history", "h.duckdb", "--add", "TRACE", "--partitions", NO_UTF_8],
    ],
)
def test_bytes_that_are_no_text_are_usage(trace, tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    before = sorted(os.listdir(tmp_path))
    code, out, err = run(*(str(trace) if each == "TRACE" else each for each in arguments))
    assert (code, out) == (2, "") and err.startswith("Error: ") and err.count("\n") == 1
    assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.skipif(os.name != "posix", reason="names are bytes on POSIX only")
def test_a_trace_under_a_name_that_is_no_text_is_refused_and_a_link_helps(trace, tmp_path):
    odd = tmp_path / f"{NO_UTF_8}.sqlite"
    shutil.copyfile(trace, odd)
    for line in (["run", "budget"], ["inspect"], ["report"], ["show", "budget"], ["survey"]):
        code, out, err = run(*line, odd)
        assert (code, out) == (3, "") and "no UTF-8" in err and "a link" in err
    with pytest.raises(InputError, match="no UTF-8"):
        nsys_sql.open(odd)
    (tmp_path / "link.sqlite").symlink_to(odd)
    assert run("run", "budget", tmp_path / "link.sqlite")[0] == 0
    # what Python writes itself may have any name
    assert run("run", "budget", trace, "-o", tmp_path / f"{NO_UTF_8}.csv")[0] == 0


def test_an_output_whose_name_is_too_long_is_usage(trace, tmp_path):
    for command in (["run", "budget", trace], ["build", trace], ["timeline", trace]):
        target = tmp_path / ("x" * 300 + ".json")
        code, _, err = run(*command, "-o", target)
        assert code == 2 and "cannot write" in err
    with pytest.raises(UsageError, match="cannot write"):
        output.check_target(tmp_path / "a\0b", [])


# ---------------------------------------------------------------- numbers


@pytest.mark.parametrize("value", ["nan", "0", "-1"])
def test_a_limit_of_time_is_a_positive_number(trace, value):
    code, _, err = run("run", "budget", trace, "--timeout", value)
    assert code == 2 and "--timeout" in err


@pytest.mark.parametrize("value", ["inf", "1e308"])
def test_a_limit_of_time_may_be_endless(trace, value, recwarn):
    code, _, err = run("sql", trace, "SELECT 1", "--timeout", value)
    assert (code, err) == (0, "")


@pytest.mark.parametrize("value", ["nan", "-1", "0", "100.1", "inf"])
def test_mfu_is_a_share(trace, value):
    code, _, err = run("report", trace, "--mfu", value)
    assert code == 2 and "--mfu" in err


# ---------------------------------------------------------------- places


def test_a_script_for_the_shell_tells_its_errors_on_standard_error(trace):
    code, out, err = execute(["shell", str(trace), "--builtin"], stdin=b"SELECT 1;\nSELECT x;\n")
    assert code == 2 and b"1" in out and b"Error" not in out
    assert err.startswith("Error: ")


def test_a_sweep_spares_what_another_process_is_making(trace, tmp_path):
    folder = tmp_path / "parts"
    done = partition.ensure(trace, folder, Options())
    alive = folder / f".part-{done.key}-{source.owner()}-x"
    dead = folder / f".part-{done.key}-{source.owner().split('.')[0]}.4194303-x"
    for scratch in (alive, dead):
        scratch.mkdir()
    [outcome] = tasks.collect([trace], folder, Options(), jobs=1)
    tasks._sweep(folder, [outcome])
    assert alive.is_dir() and not dead.exists()


# ---------------------------------------------------------------- the order of rows


def test_arrows_of_a_timeline_are_numbered_by_time(fixture_sqlite, tmp_path):
    path = tmp_path / "t.sqlite"
    shutil.copyfile(fixture_sqlite("event_waits"), path)
    answers = []
    for order in ("rowid", "-rowid"):
        with closing(sqlite3.connect(path)) as con:
            con.execute(
                "CREATE TABLE k AS SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL ORDER BY " + order
            )
            con.execute("DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL")
            con.execute("ALTER TABLE k RENAME TO CUPTI_ACTIVITY_KIND_KERNEL")
            con.commit()
        with nsys_sql.open(path, anchor="nvtx:step*") as model:
            answers.append(model.run("trace-events").fetchall())
    assert answers[0] == answers[1]
    arrows = [row[7] for row in answers[0] if row[2] == "arrow_end"]
    assert arrows == sorted(arrows) and arrows[0] == 1


@pytest.mark.parametrize("command", ["survey", "compare"])
def test_a_wrong_parameter_leaves_no_temporary_folder(trace, tmp_path, monkeypatch, command):
    import tempfile

    temp = tmp_path / "tmp"
    temp.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temp))
    traces = [trace, shutil.copyfile(trace, tmp_path / "u.sqlite")]
    parts = ["--partitions", tmp_path / "parts", "--jobs", "1"]
    code, _, err = run(command, *traces, *parts, "--param", "nothing=1")
    assert code == 2 and "there is no parameter 'nothing'" in err
    assert list(temp.iterdir()) == []


# ---------------------------------------------------------------- messages that quote bytes


def test_a_schema_that_is_no_text_is_damage(trace):
    trace.write_bytes(trace.read_bytes().replace(b"CREATE TABLE", b"CREATE \xffABLE", 1))
    for command in (["run", "budget"], ["inspect"], ["build", "-o", trace.parent / "b.duckdb"]):
        code, out, err = run(*command, trace)
        assert (code, out) == (3, ""), command
        assert err == f"Error: {trace} is damaged or truncated; copy or export it again\n"


# ---------------------------------------------------------------- options without effect


def test_what_an_option_says_is_read_even_where_it_has_no_effect(trace, tmp_path):
    store = tmp_path / "h.duckdb"
    parts = ["--partitions", tmp_path / "parts", "--jobs", "1", "--quiet"]
    assert run("history", store, "--add", trace, *parts)[0] == 0
    code, out, err = run("history", store, "--param", "=")
    assert (code, out) == (2, "") and "NAME=VALUE" in err


# ---------------------------------------------------------------- damage that some queries meet


def test_damage_is_told_by_whichever_query_meets_it(trace, monkeypatch):
    def fails(*_):
        raise duckdb.Error("Error: database disk image is malformed")

    monkeypatch.setattr(session.Attached, "row_counts", fails)
    code, out, err = run("inspect", trace)
    assert (code, out) == (3, "") and err.startswith(f"Error: {trace} is damaged or truncated")
    con = duckdb.connect()
    with session.Model(con, trace, Options(), load_catalog()) as model:
        model.con = Malformed(con)
        for act in (lambda: model.script("gaps"), lambda: model.create_all("main")):
            with pytest.raises(InputError, match="is damaged or truncated"):
                act()


class Malformed:
    """A connection whose queries of the trace's kernels meet a damaged page."""

    def __init__(self, con):
        self._con = con

    def execute(self, sql, *values):
        if "KERNEL" in sql and not sql.startswith("CREATE OR REPLACE VIEW"):
            raise duckdb.Error("Error: database disk image is malformed")
        return self._con.execute(sql, *values)

    def __getattr__(self, name):
        return getattr(self._con, name)


@pytest.mark.parametrize("form", ["sqlite", "parquet"])
def test_a_string_id_that_stands_there_twice_is_refused(trace, tmp_path, form):
    with closing(sqlite3.connect(trace)) as database:
        database.execute("CREATE TABLE other AS SELECT * FROM StringIds")
        database.execute("DROP TABLE StringIds")
        database.execute("ALTER TABLE other RENAME TO StringIds")
        database.commit()
    assert run("run", "budget", trace)[0] == 0  # without a key, but sound
    with closing(sqlite3.connect(trace)) as database:
        database.execute("INSERT INTO StringIds SELECT * FROM StringIds WHERE rowid = 1")
        database.commit()
    if form == "parquet":
        with duckdb.connect() as con:
            load_sqlite(con)
            con.execute(f"ATTACH '{trace}' AS s (TYPE sqlite, READ_ONLY)")
            trace = tmp_path / "folder"
            trace.mkdir()
            for (table,) in con.execute(
                "SELECT table_name FROM duckdb_tables() WHERE database_name = 's'"
            ).fetchall():
                con.execute(f"COPY s.\"{table}\" TO '{trace}/{table}.parquet'")
    code, out, err = run("run", "budget", trace)
    assert (code, out) == (3, "") and "StringIds holds the id" in err and "twice" in err


def test_a_long_name_does_not_make_a_long_message(tmp_path):
    builder = TraceBuilder()
    for number in range(3):
        builder.nvtx(1000 * number, 1000 * number + 800, "step " + "x" * 100_000)
        builder.kernel(1000 * number + 200, 1000 * number + 700)
    with nsys_sql.open(builder.write(tmp_path / "t.sqlite")) as model:
        model.run("iterations")
        (note,) = (each for each in model.notes if "taken by auto" in each)
    assert note.startswith("anchor taken by auto: nvtx:step xxx") and len(note) < 500


@pytest.mark.parametrize("key", ["", "PRIMARY KEY"])
def test_a_collation_that_only_its_program_has_is_not_needed(trace, key):
    expected = run("run", "gaps", trace)
    with closing(sqlite3.connect(trace)) as database:
        database.create_collation("odd", lambda a, b: (a > b) - (a < b))
        for table, columns in (
            ("StringIds", f"id INTEGER COLLATE odd {key}, value TEXT COLLATE odd"),
            ("ENUM_CUDA_MEMCPY_OPER", "id INTEGER COLLATE odd, name TEXT COLLATE odd"),
        ):
            database.execute(f"CREATE TABLE IF NOT EXISTS {table} (id INTEGER, x TEXT)")
            rows = database.execute(f"SELECT * FROM {table}").fetchall()
            database.execute(f"DROP TABLE {table}")
            database.execute(f"CREATE TABLE {table} ({columns})")
            database.executemany(f"INSERT INTO {table} VALUES (?, ?)", [row[:2] for row in rows])
        database.commit()
    assert run("run", "gaps", trace) == expected
    with closing(sqlite3.connect(trace)) as database:
        database.create_collation("odd", lambda a, b: (a > b) - (a < b))
        database.execute("INSERT INTO StringIds VALUES ('4711', CAST(X'ff41' AS TEXT))")
        database.commit()
    code, out, _ = run("run", "gaps", trace)  # the table is rebuilt, value by value
    assert (code, out) == (expected[0], expected[1])


def test_a_length_that_nothing_has_is_damage(trace):
    for text in ("string or blob too big", "Error: no such collation sequence: odd"):
        found = attached.damage(trace, duckdb.Error(text))
        assert found is not None and str(found).startswith(str(trace))
    assert "damaged" in str(attached.damage(trace, duckdb.Error("string or blob too big")))


# ---------------------------------------------------------------- standard input that is no text


@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])  # by the locale
@pytest.mark.parametrize("command", [["sql"], ["shell", "--builtin"]])
def test_bytes_on_standard_input_that_are_no_text_are_usage(trace, command, errors):
    code, out, err = execute([*command, str(trace)], b"SELECT '\xff';\n", errors)
    assert (code, out) == (2, b"")
    assert err == "Error: what stands on standard input is no text in UTF-8\n"


def test_a_line_that_is_no_text_does_not_end_a_session(trace):
    lines = iter(["SELECT 1;", UsageError("no text"), "SELECT 7 AS seven;"])

    def read(_):
        line = next(lines, EOFError())
        if isinstance(line, Exception):
            raise line
        return line

    said = []
    with nsys_sql.open(trace) as model:
        assert Shell(model, said.append, read).loop(stop_on_error=False) == 0
    assert "Error: no text\n" in said and "seven" in said[-1]


@pytest.mark.parametrize("text", [NO_UTF_8, "a\0b"])
def test_what_no_sql_may_hold_is_usage_in_python_too(trace, text):
    with pytest.raises(UsageError, match="no text in UTF-8"):
        nsys_sql.open(trace, anchor=f"nvtx:{text}")
    with nsys_sql.open(trace) as model, pytest.raises(UsageError, match="no text in UTF-8"):
        model.run("top-gaps", top=text)


# ---------------------------------------------------------------- what an earlier run has kept


def test_a_damaged_file_of_a_partition_is_named(tmp_path):
    whole, spoilt = tmp_path / "part-1" / "a.parquet", tmp_path / "part-2" / "a.parquet"
    for path in (whole, spoilt):
        path.parent.mkdir()
        duckdb.sql("SELECT 7 AS a").write_parquet(str(path))

    def insert(*files):
        with duckdb.connect() as con:  # a new one: DuckDB keeps what it has read of a file
            con.execute("CREATE TABLE kept (a INTEGER)")
            partition.insert(con, "kept", files)
            return con.execute("SELECT count(*) FROM kept").fetchall()

    assert insert(whole, spoilt) == [(2,)]
    data = spoilt.read_bytes()
    for bad in (b"x" * len(data), data[:-9] + b"PAR1XXXXX", b""):
        spoilt.write_bytes(bad)
        with pytest.raises(InputError, match=r"part-2/a.parquet is damaged: ") as told:
            insert(whole, spoilt)
        assert told.value.hint.startswith(f"remove {spoilt.parent}")
    duckdb.connect().sql("SELECT 'x' AS a").write_parquet(str(spoilt))  # of something else
    with pytest.raises(InputError, match="does not hold what it should"):
        insert(spoilt)


# ---------------------------------------------------------------- the order of texts


def test_every_text_that_is_put_together_has_an_order():
    catalog = load_catalog()
    kinds = ("adapters", "steps", "recipes", "notes", "invariants")
    files = [file for kind in kinds for file in getattr(catalog, kind).values()]
    folder = resources.root() / "sql"
    texts = [file.body for file in files]
    texts += [p.read_text(encoding="utf-8") for p in folder.glob("[cfhprs]*/*.sql")]
    found = [
        call
        for text in texts
        if "string_agg" in text
        for call in sqlglot.parse_one(text, read="duckdb").find_all(sqlglot.exp.GroupConcat)
    ]
    assert len(found) > 20
    assert [call.sql("duckdb") for call in found if call.find(sqlglot.exp.Order) is None] == []
    # two limits of a verdict may have one position, and then came as the threads left them
    assert "string_agg(text, '; ' ORDER BY position, text)" in catalog.recipes["verdict"].body


# ---------------------------------------------------------------- a history that is not whole


def store(path, *statements):
    with duckdb.connect() as con:
        con.execute(f"ATTACH '{path}' AS store")
        for statement in statements:
            con.execute(statement)
    return path


def test_a_history_that_is_damaged_or_of_something_else_is_told(tmp_path):
    rows = "SELECT i, TIMESTAMP '2020-01-01', 'c' || i, 's', 'a', 'g', 'v', MAP {'n': 'x' || i}"
    path = store(
        tmp_path / "h.duckdb",
        *history._TABLES,
        f"INSERT INTO store.layout VALUES ({history._LAYOUT})",
        f"INSERT INTO store.run {rows} FROM range(3000) r(i)",
    )
    history.read(path, "iteration", {})
    whole = path.read_bytes()
    told = set()
    cuts = [whole[: part * len(whole) // 8] for part in (4, 5, 6, 7)]
    flips = [
        whole[:at] + bytes([whole[at] ^ 255]) + whole[at + 1 :]
        for at in range(3 * 4096 + 50, len(whole), len(whole) // 6)
    ]
    for broken in (*cuts, *flips):
        path.write_bytes(broken)
        try:
            history.read(path, "iteration", {})
        except InputError as error:
            told.add(str(error).removeprefix(str(path)).split(":")[0])
    assert " is damaged" in told and told <= {" is damaged", " cannot be opened as a history"}
    other = store(
        tmp_path / "o.duckdb",
        *(f"CREATE TABLE store.{name} (x INT)" for name in ("layout", "run", "budget")),
    )
    with pytest.raises(InputError, match="is a DuckDB database, but no history: Binder Error"):
        history.read(other, "iteration", {})


# ---------------------------------------------------------------- what another program says


@pytest.mark.skipif(os.name != "posix", reason="the program is a shell script")
def test_a_long_line_of_nsys_does_not_make_a_long_message(tmp_path, monkeypatch):
    program = tmp_path / "nsys"
    program.write_text("#!/bin/sh\nhead -c 300000 /dev/zero | tr '\\0' x; exit 2\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("NSYS_SQL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(export, "_version", lambda _: "x" * 9)
    report = tmp_path / "r.nsys-rep"
    report.write_bytes(b"a report")
    code, out, err = run("run", "budget", report)
    assert (code, out) == (3, "") and "nsys ended with 2: xxx" in err and "x; an nsys" in err
    assert len(err) < 1000


# ---------------------------------------------------------------- names that no system has room for


@pytest.mark.parametrize("name", brief(1, ["x" * 300, "a/" * 3000]))
def test_a_name_that_is_too_long_is_usage_wherever_it_stands(trace, name):
    for line in (
        *(["run", "budget", trace, "--reference-steps", each] for each in (name, f"1s,{name}")),
        *(["run", "budget", each] for each in (name, f"{name}x.nsys-rep")),
        *([*line, "--recipes", name] for line in (["list"], ["describe", "budget"])),
        ["survey", "--from-parquet", name],
        ["survey", trace, "--scheduler", name],
        *(["history", name, *more] for more in ([], ["--add", trace])),
        ["compare", trace, trace, "--store", name],
    ):
        code, out, err = run(*line)
        assert (code in (2, 3), out) == (True, ""), line[:2]
        assert err.startswith("Error: ") and err.count("\n") == 1 and "this is a bug" not in err


def test_a_long_value_in_a_mapping_does_not_make_a_long_message(trace, tmp_path):
    mapping = tmp_path / "ranks.yaml"
    mapping.write_text(f"world_size: {'x' * 9000}\nranks: []\n")
    code, out, err = run("survey", "--ranks", mapping)
    assert (code, out) == (2, "") and ":1: world_size is 'xxx" in err and len(err) < 1000


# ---------------------------------------------------------------- texts in another encoding


def test_texts_in_utf_16_are_refused(trace, tmp_path):
    other = tmp_path / "u.sqlite"
    with closing(sqlite3.connect(trace)) as con, closing(sqlite3.connect(other)) as new:
        new.execute("PRAGMA encoding = 'UTF-16be'")
        new.executescript("\n".join(con.iterdump()))
    code, out, err = run("run", "kernels", other)
    assert (code, out) == (3, "") and "holds its texts in UTF-16" in err


# ---------------------------------------------------------------- names that are no pattern


@pytest.mark.parametrize(
    "line", ["@reads nsys.a[b", "@reads nsys.*", "@column [a BIGINT - x", "@param (a BIGINT = 1 x"]
)
def test_names_in_a_header_are_no_patterns(trace, tmp_path, line):
    mine = tmp_path / "mine.sql"
    head = ["-- mine \u2014 how many?", "--", "-- @grain one row", "-- @column n BIGINT - how many"]
    query = "SELECT count(*) AS n FROM nsys.kernel;"
    mine.write_text("\n".join([*head, f"-- {line}", query, ""]), encoding="utf-8")
    code, out, err = run("run", "mine", trace, "--recipes", mine)
    assert (code, out) == (2, "") and "mine.sql:" in err and "bug" not in err
    assert run("list", "--recipes", mine)[0] in (0, 2)


def test_a_built_database_without_an_anchor_says_so(tmp_path):
    """The choice is read there; whether a device did anything must be, too."""
    builder = TraceBuilder().kernel(1000, 2000, corr=1)
    builder.call(0, 500, corr=1)
    builder.write(tmp_path / "t.sqlite")
    assert run("build", tmp_path / "t.sqlite", "-o", tmp_path / "t.duckdb")[0] == 0
    for file in ("t.sqlite", "t.duckdb"):
        with (
            nsys_sql.open(tmp_path / file) as model,
            pytest.raises(AnswerError, match="no candidate anchor"),
        ):
            model.run("budget")


def test_a_query_that_is_no_text_is_a_usage_error(fixture_sqlite):
    with nsys_sql.open(fixture_sqlite("event_waits")) as model:
        with pytest.raises(UsageError):
            model.query("SELECT '\udcff'")
        with pytest.raises(UsageError):
            model.query("SELECT getvariable('a')", a="\udcff")
