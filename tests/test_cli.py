"""The command line's contract: streams, exit codes, one-line errors, files that are safe."""

import io
import json
import os
import sqlite3
import subprocess
import sys

import pytest

from nsys_sql import cli as cli_module
from nsys_sql.cli import execute
from nsys_sql.errors import one_line


@pytest.fixture
def trace(fixture_sqlite):
    return str(fixture_sqlite("example"))


def process(*arguments, **more):
    command = [sys.executable, "-m", "nsys_sql", *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, **more)


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["frobnicate"], "frobnicate"),
        (["run"], "RECIPE"),
        (["run", "budget"], "TRACE"),
        (["run", "budgt", "TRACE"], "did you mean 'budget'?"),
        (["describe", "iteration"], "did you mean 'iterations'?"),
        (["show", "zzz", "TRACE"], "nsys-sql list"),
        (["run", "budget", "TRACE", "--anchor", "nvtx"], "KIND:PATTERN"),
        (["run", "budget", "TRACE", "--anchor", "nvtxx:a"], "nvtxx"),
        (["run", "budget", "TRACE", "--anchor", "nvtx:"], "anchor"),
        (["run", "budget", "TRACE", "--iterations", "5"], "A:B"),
        (["run", "budget", "TRACE", "--iterations", "7:2"], "7:2"),
        (["run", "budget", "TRACE", "--per-iteration", "0"], "--per-iteration"),
        (["run", "budget", "TRACE", "--skip-first", "-1"], "--skip-first"),
        (["run", "budget", "TRACE", "--window", "both"], "--window"),
        (["run", "budget", "TRACE", "--format", "xml"], "--format"),
        (["run", "budget", "TRACE", "--param", "x"], "NAME=VALUE"),
        (["run", "budget", "TRACE", "--param", "nope=1"], "nope"),
        (["run", "budget", "TRACE", "--taxonomy", "/nowhere.yaml"], "/nowhere.yaml"),
        (["run", "budget", "TRACE", "--format", "csv", "-o", "TRACE"], "overwrite the trace"),
        (["run", "budget", "TRACE", "-o", "/nowhere/x"], "/nowhere"),
        (["run", "budget", "TRACE", "-o", "/"], "folder"),
        (["run", "budget", "TRACE", "TRACE", "--format", "parquet", "-o", "x"], "parquet"),
        (["sql", "TRACE"], "query"),
        (["example", "TRACE"], "exists"),
        # Python takes all of these for numbers
        (["run", "budget", "TRACE", "--device", "٣"], "'٣' is no whole number"),
        (["run", "budget", "TRACE", "--skip-first", "1_0"], "'1_0' is no whole number"),
        (["run", "budget", "TRACE", "--threads", " 1"], "' 1' is no whole number"),
        (["run", "budget", "TRACE", "--timeout", "1_0"], "'1_0' is no number"),
        (["report", "TRACE", "--mfu", "٣"], "'٣' is no number"),
        (["run", "budget", "TRACE", "--reference-steps", "٣s"], "neither a list"),
        (["run", "budget", "TRACE", "--reference-steps", "1s,x" * 99], "neither a list"),
        (["run", "budget", "TRACE", "--recipes", "x" * 300], "no such file"),
        (["run", "budget", "TRACE", "--memory-limit", "9" * 21 + "GB"], "as much; give one like"),
        (["run", "budget", "TRACE", "--temp-directory", "/nowhere"], "folder can be made in /nowh"),
        (["run", "budget", "TRACE", "-o", ".csv"], "-o .csv is a suffix without a name"),
        (["build", "TRACE", "-o", ".duckdb"], "suffix without a name"),
        (["sql", "TRACE", " /* none */ "], "the query is empty"),
        (["sql", "TRACE", "-f", os.devnull], "the query is empty: /dev/null holds none"),
        (["history", os.devnull, "--add", "TRACE"], "/dev/null is no regular file"),
        (["survey", "TRACE", "--scheduler", "x" * 300], "there is no scheduler file"),
    ],
)
def test_usage_errors_are_one_line_and_2(call, trace, arguments, words):
    code, out, err = call(*(trace if argument == "TRACE" else argument for argument in arguments))
    assert (code, out) == (2, "")
    assert err.startswith("Error: ") and err.count("\n") == 1 and words in err


def test_an_option_that_is_given_twice_is_told(call, trace, tmp_path):
    twice = ("run", "iterations", trace, "--skip-first", 1, "--skip-first", 2, "--format", "csv")
    code, out, err = call(*twice)
    assert (code, err) == (0, "Warning: --skip-first is given 2 times, and the last one counts\n")
    assert out == call(*twice[:3], "--skip-first", 2, "--format", "csv")[1]
    assert call(*twice, "--quiet", "--quiet")[2] == ""
    several = call(*twice[:3], "--taxonomy", tmp_path / "x.yaml", "--taxonomy", tmp_path / "y.yaml")
    assert several[0] == 2 and "2 times" not in several[2]
    assert call(*twice[:3], "--param", "device=0", "--param", "device=1")[::2] == (
        2, "Error: --param device is given twice; give one value\n",
    )  # fmt: skip
    link = tmp_path / "link.sqlite"
    link.symlink_to(trace)
    _, _, err = call("survey", trace, link, "--partitions", tmp_path / "p", "--jobs", 1)
    assert f"Warning: {link} is given twice, as {trace} too, and counts once" in err


def test_a_report_takes_no_parameter_that_nothing_reads(call, trace):
    code, out, err = call("report", trace, "--param", "stall=3")
    assert (code, out) == (2, "")
    assert err == "Error: there is no parameter 'stall' in a report; did you mean 'stall_ms'?\n"
    code, _, err = call("report", trace, "--param", "stall_ms=-1")
    assert code == 2 and "stall_ms=-1 is out of range; stall_ms is at least 0" in err


@pytest.mark.parametrize("command", ["run budget", "inspect", "show budget"])
def test_unreadable_input_is_3(call, tmp_path, command):
    (tmp_path / "text.sqlite").write_text("not a database, but long enough to look at" * 50)
    (tmp_path / "empty.sqlite").touch()
    sqlite3.connect(tmp_path / "other.sqlite").execute("CREATE TABLE t (x)").connection.close()
    for name in ("missing.sqlite", "text.sqlite", "empty.sqlite", "other.sqlite", ""):
        code, out, err = call(*command.split(), tmp_path / name)
        assert (code, out) == (3, ""), (name, err)
        assert err.startswith("Error: ") and err.count("\n") == 1


def test_a_bug_is_one_line_and_debug_raises(call, monkeypatch):
    def broken(*_):
        raise ValueError("two\nlines \x1b[31m")

    monkeypatch.setattr("nsys_sql.commands.list_recipes", broken)
    code, out, err = call("list")
    assert (code, out) == (1, "") and err.count("\n") == 1
    assert err.startswith("Error: ValueError: two lines \\x1b[31m; this is a bug")
    monkeypatch.setenv("NSYS_SQL_DEBUG", "1")
    with pytest.raises(ValueError, match="two"):
        execute(["list"])


def test_a_file_that_ends_too_early_is_no_interruption(call, monkeypatch):
    """click takes an EOFError for Ctrl-D; Python raises it for a module that it compiled in part.

    It keeps such a file where the disk was full when a module was first used.
    """
    for text, told in (("marshal data too short", "__pycache__"), ("x", "EOFError: x; this is a")):

        def broken(*_, text=text):
            raise EOFError(text)

        monkeypatch.setattr("nsys_sql.commands.list_recipes", broken)
        code, out, err = call("list")
        assert (code, out) == (1, "") and err.count("\n") == 1
        assert err.startswith("Error: ") and told in err
    monkeypatch.setenv("NSYS_SQL_DEBUG", "1")
    with pytest.raises(Exception, match="x") as found:
        execute(["list"])
    assert isinstance(found.value.__cause__, EOFError)


def test_a_path_that_the_system_refuses_is_3(call, trace, tmp_path, monkeypatch):
    real, refused = os.path.realpath, PermissionError(13, "Permission denied", "/closed/x")

    def realpath(path, **more):
        if os.fspath(path).endswith("x"):
            raise refused
        return real(path, **more)

    monkeypatch.setattr("os.path.realpath", realpath)
    (tmp_path / "a.x").touch()
    mapping = tmp_path / "ranks.yaml"
    mapping.write_text('ranks: [{trace: "*.x"}]')
    told = (3, "", f"Error: {tmp_path}/a.x cannot be read: Permission denied\n")
    assert call("survey", "--ranks", mapping) == told
    assert call("survey", tmp_path / "a.x") == told
    for command in (["survey", "--from-parquet"], ["history"], ["run", "budget"]):
        assert call(*command, "x" * 300)[0] == 3
    assert call("history", os.devnull)[::2] == (
        3,
        "Error: /dev/null is not a regular file; name a file that --store wrote\n",
    )

    def broken(*_):
        raise refused

    monkeypatch.setattr("nsys_sql.commands.list_recipes", broken)
    assert call("list") == (3, "", "Error: /closed/x cannot be used: Permission denied\n")


def test_ctrl_c_is_130_and_quiet(call, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("nsys_sql.commands.list_recipes", interrupted)
    code, out, err = call("list")
    assert (code, out, err.strip()) == (130, "", "")


def test_advice_that_cannot_be_followed_is_left_out():
    deep = 'Parser Error: Max depth 1000 exceeded. Use "SET max_expression_depth TO x" to raise it.'
    assert one_line(deep) == "Parser Error: Max depth 1000 exceeded."
    table = 'Table with name kernl does not exist!\nDid you mean "pg_enum"? LINE 1: x'
    assert one_line(table) == "Table with name kernl does not exist! LINE 1: x"
    function = 'Function with name medan does not exist! Did you mean "median"?'
    assert one_line(function) == function


def test_no_file_takes_the_place_of_a_closed_stream():
    code = (
        "import os, sys; from nsys_sql import cli; os.close(0); sys.argv[1:] = ['--version']\n"
        "try: cli.main()\n"
        "except SystemExit as end: assert end.code == 0\n"
        "assert os.open(os.devnull, 0) > 2 and os.read(0, 1) == b'' and os.get_inheritable(0)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_reader_that_leaves_is_no_error():
    command = f"{sys.executable} -m nsys_sql list | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert (done.stdout.strip(), done.stderr) == ("0", "")


# ---------------------------------------------------------------- start-up


@pytest.mark.parametrize("arguments", [["--help"], ["list"], ["run", "--help"], []])
def test_looking_around_needs_no_engine(arguments):
    script = (
        "import sys; from nsys_sql.cli import execute; code = execute(sys.argv[1:]);"
        "heavy = {'duckdb', 'sqlglot'} & set(sys.modules);"
        "sys.exit(f'imported {heavy}' if heavy else code)"
    )
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_list_and_help_load_no_engine():
    # DuckDB and sqlglot take most of the time of a start, and neither command needs them
    code = (
        "import sys\nfrom nsys_sql.cli import cli\n"
        "cli(sys.argv[1:], standalone_mode=False)\n"
        "sys.exit(bool({'duckdb', 'sqlglot'} & sys.modules.keys()))"
    )
    for arguments in (["list"], ["--help"], ["describe", "budget"]):
        done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True)
        assert done.returncode == 0, (arguments, done.stderr)


def test_version_and_module_entry():
    assert process("--version").stdout.startswith("nsys-sql, version ")


# ---------------------------------------------------------------- results


def test_run_prints_the_envelope(call, trace):
    code, out, _ = call("run", "budget", trace, "--format", "json")
    data = json.loads(out)
    assert code == 0 and data["recipe"] == "budget" and data["trace"]["path"] == trace
    assert data["rows"][0]["metric"] == "iteration"
    assert {check["status"] for check in data["checks"]} <= {"ok", "warn"}
    assert data["parameters"]["anchor"] == "auto"


def test_run_formats_hold_the_same_rows(call, trace, tmp_path):
    rows = json.loads(call("run", "taxonomy", trace, "--format", "json")[1])["rows"]
    lines = call("run", "taxonomy", trace, "--format", "csv")[1].splitlines()
    assert lines[0] == ",".join(rows[0]) and len(lines) == len(rows) + 1
    target = tmp_path / "out.parquet"
    code, out, _ = call("run", "taxonomy", trace, "--format", "parquet", "-o", target)
    assert (code, out) == (0, "")
    import duckdb

    stored = duckdb.sql(f"FROM '{target}'")
    assert stored.columns == list(rows[0]) and len(stored.fetchall()) == len(rows)
    assert os.listdir(tmp_path) == ["out.parquet"]


def test_parquet_holds_sums_as_they_are(call, trace, tmp_path):
    """DuckDB writes HUGEINT as DOUBLE, which rounds beyond 2^53."""
    import duckdb

    target, exact = tmp_path / "out.parquet", 9007199254740993
    query = (
        f"SELECT 1 AS one, {exact}::HUGEINT AS t, -{exact}::HUGEINT AS t, NULL::UHUGEINT AS none, "
        f"[{exact}::UHUGEINT] AS l, {{'HUGEINT': {exact}::HUGEINT}} AS s"
    )
    assert call("sql", trace, query, "-o", target) == (0, "", "")
    found = duckdb.sql(f"FROM '{target}'")
    assert [str(each) for each in found.types] == [
        "INTEGER", *["DECIMAL(38,0)"] * 3, "DECIMAL(38,0)[]", "STRUCT(HUGEINT DECIMAL(38,0))",
    ]  # fmt: skip
    assert found.fetchall() == [(1, exact, -exact, None, [exact], {"HUGEINT": exact})]
    code, out, err = call("sql", trace, f"SELECT {2**127 - 1}::HUGEINT AS t", "-o", target)
    assert (code, out, err.count("\n")) == (2, "", 1) and "more than 38 digits" in err
    assert found.fetchall() == [(1, exact, -exact, None, [exact], {"HUGEINT": exact})]
    _, out, _ = call("sql", trace, f"SELECT {2**127 - 1}::HUGEINT AS t", "--format", "json")
    assert json.loads(out)["rows"] == [{"t": 2**127 - 1}]


def test_parquet_goes_to_a_pipe(trace):
    command = [sys.executable, "-m", "nsys_sql", "run", "devices", trace, "--format", "parquet"]
    done = subprocess.run(command, capture_output=True, check=True)
    assert done.stdout[:4] == done.stdout[-4:] == b"PAR1"


def test_several_traces_do_not_lose_each_other(call, trace, tmp_path):
    missing = tmp_path / "missing.sqlite"
    code, out, err = call("run", "taxonomy", missing, trace, "--format", "csv")
    assert code == 3 and out.startswith("trace,kernel,") and out.count(trace) > 5
    assert err.count("\n") == 1 and str(missing) in err
    code, out, _ = call("run", "taxonomy", trace, missing, "--format", "json")
    good, bad = json.loads(out)
    assert code == 3 and good["rows"] and bad["error"]["exit_code"] == 3
    code, out, _ = call("run", "taxonomy", trace, trace)
    assert code == 0 and out.count(f"\n{trace}\n") == 2


def test_output_replaces_a_file_whole_or_not_at_all(call, trace, tmp_path):
    target = tmp_path / "result.csv"
    target.write_text("old")
    code, _, _ = call("run", "budget", tmp_path / "missing", "--format", "csv", "-o", target)
    assert code == 3 and target.read_text() == "old"
    code, out, _ = call("run", "devices", trace, "--format", "csv", "-o", target)
    assert (code, out) == (0, "") and target.read_text().startswith("device,")
    assert os.listdir(tmp_path) == ["result.csv"]


def test_the_trace_stays_as_it_was(call, trace, tmp_path):
    folder = os.path.dirname(trace)
    with open(trace, "rb") as file:
        before, names = file.read(), sorted(os.listdir(folder))
    for command in (["run", "budget"], ["inspect"], ["show", "budget"]):
        assert call(*command, trace)[0] == 0
    with open(trace, "rb") as file:
        assert (file.read(), sorted(os.listdir(folder))) == (before, names)
    link = tmp_path / "link.sqlite"
    link.symlink_to(trace)
    assert call("run", "budget", trace, "-o", link)[0] == 2


def test_limit_cuts_tables_and_says_so(call, trace):
    _, out, _ = call("run", "taxonomy", trace, "--limit", "1")
    assert "more rows (--limit 0 for all, or --format csv)" in out


def test_sql_reads_its_query_from_everywhere(call, trace, tmp_path, monkeypatch):
    query = "SELECT count(*) AS n, 9007199254740993 AS big FROM nsys.kernel"
    file = tmp_path / "query.sql"
    file.write_text(query)
    first = call("sql", trace, query, "--format", "csv")
    assert first[0] == 0 and first[1].splitlines()[0] == "n,big"
    assert first[1].splitlines()[1].endswith(",9007199254740993")
    assert call("sql", trace, "-f", file, "--format", "csv") == first
    monkeypatch.setattr("sys.stdin", io.StringIO(query))
    assert call("sql", trace, "-", "--format", "csv") == first
    monkeypatch.setattr("sys.stdin", None)  # closed by the caller
    for arguments in ((), ("-",), ("-f", "-")):
        code, _, err = call("sql", trace, *arguments)
        assert code == 2 and err.startswith("Error: there is no query; ") and err.count("\n") == 1
    assert call("shell", trace, "--builtin") == (0, "", "")
    file.write_bytes(b"SELECT '\xff'")
    assert call("sql", trace, "-f", file) == (2, "", f"Error: {file} is no text in UTF-8\n")
    code, _, err = call("sql", trace, "FROM kernl")
    assert code == 2 and err.count("id you mean") == 1 and "did you mean 'kernel'?" in err
    code, out, err = call("sql", trace, "SELEC 1")
    assert code == 2 and out == "" and err.startswith("Error: ") and err.count("\n") == 1


def test_sql_cannot_write(call, trace, tmp_path):
    target = tmp_path / "copied.csv"
    code, _, err = call("sql", trace, f"COPY (SELECT 1) TO '{target}'")
    assert code == 2 and err.startswith("Error: ") and not target.exists()
    assert call("sql", trace, 'DELETE FROM trace."StringIds"')[0] == 2


def test_show_prints_the_script_and_nothing_else(call, trace):
    code, out, err = call("show", "budget", trace)
    assert code == 0 and err == ""
    assert "ATTACH" in out and out.endswith("\n")


def test_describe_says_what_the_header_declares(call):
    code, out, _ = call("describe", "budget")
    assert code == 0 and "median_ms" in out and "DOUBLE" in out and "nsys.budget_window" in out


def test_list_has_every_recipe(call):
    from nsys_sql.catalog import load_catalog

    code, out, _ = call("list")
    assert code == 0
    assert {line.split()[0] for line in out.splitlines()} == set(load_catalog().recipes)
    code, out, _ = call("list", "--format", "json")
    assert {item["recipe"] for item in json.loads(out)} == set(load_catalog().recipes)


def test_example_builds_a_trace_once(call, tmp_path):
    target = tmp_path / "new.sqlite"
    assert call("example", target) == (0, "", "")
    code, _, err = call("example", target)
    assert code == 2 and "--force" in err
    assert call("example", target, "--force")[0] == 0
    assert call("run", "budget", target)[0] == 0


def test_cli_module_imports_no_engine():
    assert not hasattr(cli_module, "duckdb")
