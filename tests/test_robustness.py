"""What a hostile user does: odd values, options out of range, places that take no output."""

import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing

import duckdb
import pytest

import nsys_sql
from nsys_sql.cli import execute, warn
from nsys_sql.errors import UsageError
from nsys_sql.options import Options
from tracebuilder import TraceBuilder

MOST = 2**63 - 1


def steps(builder=None):
    """Three steps of 1000 ns with one kernel each."""
    builder = builder or TraceBuilder()
    for number in range(3):
        begin = 1000 * number
        builder.nvtx(begin, begin + 1000, f"step {number}")
        builder.call(begin, begin + 100, corr=number + 1)
        builder.kernel(begin + 200, begin + 700, corr=number + 1)
    return builder


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return steps().write(tmp_path_factory.mktemp("robust") / "plain.sqlite")


# ---------------------------------------------------------------- values


def test_bytes_that_the_engine_cannot_even_quote_count_as_missing(tmp_path):
    # DuckDB puts a refused value into its message, and here the message is no UTF-8
    builder = steps()
    builder.raw("CUPTI_ACTIVITY_KIND_KERNEL", start=b"\xff\x00", end=b"\xfe", deviceId=0)
    path = builder.write(tmp_path / "t.sqlite")
    with nsys_sql.open(path) as model:
        assert len(model.run("iterations").fetchall()) == 3
        assert any("KERNEL.start" in text for text in model.trace.warnings)


@pytest.mark.parametrize("span", [(-MOST, MOST), (-MOST - 1, -MOST)])
def test_times_beyond_64_bits_are_bad_input_and_no_bug(tmp_path, call, span):
    path = steps().kernel(*span).write(tmp_path / "t.sqlite")
    code, out, err = call("run", "budget", path)
    assert (code, out) == (3, "") and "no report can have" in err and err.count("\n") == 1


def changed(tmp_path, *statements, start=None):
    """Three steps, after some statements of SQL."""
    path = (start or steps()).write(tmp_path / "changed.sqlite")
    with closing(sqlite3.connect(path)) as database:
        for statement in statements:
            database.execute(statement)
        database.commit()
    return path


KERNEL, RUNTIME = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"


def test_no_row_is_dropped_or_doubled_in_silence(tmp_path, call):
    path = changed(
        tmp_path,
        f"INSERT INTO {KERNEL} SELECT * FROM {KERNEL} WHERE rowid < 3",
        f'INSERT INTO {KERNEL} (start, "end", deviceId) VALUES (5, 4, 0), (5, NULL, 0)',
        f'UPDATE {RUNTIME} SET "end" = start - 1 WHERE rowid = 2',
        "INSERT INTO NVTX_EVENTS (start, \"end\", eventType, text) VALUES (5, 4, 59, 'x')",
    )
    code, _, err = call("run", "budget", path, "--anchor", "nvtx:step*")
    told = {
        line.partition(": ")[2].partition(": ")[2].partition(":")[0] for line in err.splitlines()
    }
    odd = "end before they start or lack a time"
    assert code == 0 and told == {
        f"2 rows of {KERNEL} {odd}",
        f"1 rows of {RUNTIME} {odd}",
        f"1 rows of NVTX_EVENTS {odd}",
        f"2 rows of {KERNEL} repeat the one before to the nanosecond",
    }
    with nsys_sql.open(path, anchor="nvtx:step*") as model:
        facts = model.run("capture").select("section, item, value").fetchall()
        counts = {item: value for section, item, value in facts if section == "invalid rows"}
        assert counts == counts | {"kernel": "2", "api_call": "1", "nvtx": "1"}


def test_what_lasts_over_an_hour_is_told(tmp_path, call):
    most, hour = 2**63 - 1, 3600 * 10**9
    path = changed(
        tmp_path,
        f'UPDATE {KERNEL} SET "end" = {most // 2} WHERE rowid = 2',
        f'UPDATE {KERNEL} SET "end" = start + {hour + 10**6} WHERE rowid = 3',
        f'UPDATE {KERNEL} SET "end" = start + {hour} WHERE rowid = 1',
        f'UPDATE {RUNTIME} SET "end" = {most} WHERE rowid = 2',
    )
    code, _, err = call("run", "budget", path, "--anchor", "nvtx:step*")
    assert code == 0 and f"2 rows of {KERNEL} last over an hour" in err
    assert f"1 rows of {RUNTIME} last over an hour" in err
    code, _, err = call("run", "kernels", path, "--anchor", "nvtx:step*")
    assert code == 0 and f"2 rows of {KERNEL} last over an hour" in err


def test_a_generated_column_that_nothing_reads_is_ignored(tmp_path, call):
    added = f'ALTER TABLE {KERNEL} ADD COLUMN g INT GENERATED ALWAYS AS ("end" - start) VIRTUAL'
    found = call("run", "budget", changed(tmp_path), "--anchor", "nvtx:step*")
    (tmp_path / "changed.sqlite").unlink()
    assert call("run", "budget", changed(tmp_path, added), "--anchor", "nvtx:step*") == found


def test_operations_without_a_device_are_told(tmp_path, call):
    path = changed(tmp_path, f"UPDATE {KERNEL} SET deviceId = NULL WHERE rowid = 2")
    code, _, err = call("run", "budget", path, "--anchor", "nvtx:step*")
    assert code == 0 and f"1 rows of {KERNEL} name no device" in err


def test_operations_without_a_stream_are_told(tmp_path, call):
    path = changed(tmp_path, f"UPDATE {KERNEL} SET streamId = NULL WHERE rowid <= 2")
    code, _, err = call("run", "budget", path, "--anchor", "nvtx:step*")
    assert code == 0 and f"2 rows of {KERNEL} name no stream: they count as one stream" in err


def test_one_device_is_reported_as_among_all(tmp_path):
    """What auto takes does not hang on --device, so neither do the figures of a device."""
    trace = TraceBuilder()
    # device 0 has a finer rhythm of its own beside the common one
    for step in range(12):
        start = 1_000_000 * step
        for number in (0, 1):
            trace.kernel(start + 10, start + 400_000, "step_kernel", device=number)
        if step >= 0:
            trace.kernel(start + 450_000, start + 700_000, "own_kernel", device=0)
            trace.kernel(start + 720_000 + 20_000 * (step % 7), start + 990_000, "odd", device=1)
    path = trace.write(tmp_path / "t.sqlite")
    with nsys_sql.open(path) as everything:
        for device in (0, 1):
            rows = everything.run("budget-windows").filter(f"device = {device}").fetchall()
            with nsys_sql.open(path, device=device) as alone:
                assert rows and alone.run("budget-windows").fetchall() == rows
                assert {row[4] for row in alone.run("anchors").fetchall()} == {device}


def test_sums_that_leave_64_bits_are_bad_input_in_a_comparison_too(tmp_path, call):
    builder = steps()
    for number in range(3):
        for copy in range(2):
            begin = 1000 * number + 710 + 10 * copy
            builder.memcpy(begin, begin + 5, corr=900 + number, bytes=MOST)
    path = builder.write(tmp_path / "t.sqlite")
    parts = ["--partitions", tmp_path / "parts", "--jobs", "1"]
    code, out, err = call("compare", path, path, "--anchor", "nvtx:step*", *parts)
    assert (code, out) == (3, "") and "no report can have" in err


def test_sound_rows_are_not_worth_a_word(plain, call):
    assert call("run", "budget", plain)[2] == ""


def test_where_every_row_is_invalid_the_error_counts_them(tmp_path, call):
    path = changed(tmp_path, f'UPDATE {KERNEL} SET "end" = start - 1')
    code, out, err = call("run", "budget", path)
    assert (code, out) == (4, "") and f"3 rows of {KERNEL} end before they start" in err


def test_a_database_that_was_built_counts_its_rows(tmp_path):
    path = changed(tmp_path, f'UPDATE {KERNEL} SET "end" = start - 1 WHERE rowid = 2')
    assert execute(["build", str(path), "-o", str(tmp_path / "t.duckdb"), "--quiet"]) == 0
    with nsys_sql.open(tmp_path / "t.duckdb", anchor="kernel:*") as model:  # made again from rows
        model.run("budget")
        assert any("1 rows of kernel end before" in text for text in model.trace.warnings)


def test_a_device_below_zero_can_be_chosen(tmp_path, call):
    path = changed(tmp_path, f"UPDATE {KERNEL} SET deviceId = -1")
    code, out, _ = call("run", "budget", path, "--device", "-1", "--format", "csv")
    assert code == 0 and out.splitlines()[1].startswith("-1,iteration,")
    assert "devices with work: -1\n" in call("run", "budget", path, "--device", "0")[2]


def test_a_script_repairs_what_a_run_repairs(tmp_path, call):
    columns = ("start", "correlationId")
    path = changed(
        tmp_path, *(f"UPDATE {KERNEL} SET \"{each}\" = 'x' WHERE rowid = 2" for each in columns)
    )
    out = call("run", "gaps", path, "--anchor", "nvtx:step*", "--format", "csv")[1]
    code, script, err = call("show", "gaps", path, "--anchor", "nvtx:step*")
    assert code == 0
    assert all(f"1 values of {KERNEL}.{each} are not integers" in err for each in columns)
    with duckdb.connect() as con:
        assert len(con.execute(script).fetchall()) == out.count("\n") - 1


def test_the_list_of_anchors_says_what_it_leaves_out(tmp_path):
    builder = steps()
    for number in range(3):
        for name in range(70):
            text = "step " + "abcdefghij"[name // 10] + "abcdefghij"[name % 10]
            builder.nvtx(1000 * number + 10 * name, 1000 * number + 10 * name + 5, text)
        builder.kernel(1000 * number + 800, 1000 * number + 801, "first")
        builder.kernel(1000 * number + 810, 1000 * number + 811, "second")
    with nsys_sql.open(builder.write(tmp_path / "t.sqlite")) as model:
        model.run("anchors")
        assert [note.partition(" were tried")[0] for note in model.notes] == [
            "60 of 71 recurring names of NVTX ranges",
            "2 of 3 recurring kernels",
        ]
        assert "time: at most 60; any other" in model.notes[0]
    with nsys_sql.open(steps().write(tmp_path / "few.sqlite")) as model:
        model.run("anchors")
        assert model.notes == ()


def test_which_patterns_of_ranges_are_tried(ask):
    """Twice is recurring, over 100 000 times is not a step, and sixty are enough: in order."""
    columns = "pattern VARCHAR, strength BIGINT, range_count BIGINT, range_ns BIGINT"
    rows = [
        *[("once", 0, 1, 99), ("twice", 0, 1, 1), ("twice", 2, 1, 1)],
        *[("most", 2, 60_000, 9), ("most", 2, 40_000, 9), ("over", 0, 60_000, 9)],
        *[("over", 0, 40_001, 9), *[(f"a{at:02}", 2, 2, 5) for at in range(60)]],
    ]
    families = {"nsys.nvtx_family": (columns, rows)}
    found = {row[0]: row[1:] for row in ask("steps/nvtx_pattern", families)}
    assert "once" not in found and len(found) == 63
    assert found["twice"] == (0, None) and found["most"] == (2, None)
    assert found["over"] == (0, "none with over 100 000 ranges")
    left = {name for name, (_, why) in found.items() if why == "at most 60"}
    assert left == {"a58", "a59"}


# ---------------------------------------------------------------- what is not there


@pytest.mark.parametrize("recipe", ["budget", "gaps", "iterations", "kernels", "anchors"])
def test_a_device_without_work_is_told_and_not_empty(call, plain, recipe):
    for option in (["--device", "5"], ["--param", "device=5"]):
        code, out, err = call("run", recipe, plain, *option)
        assert (code, out) == (4, "")
        assert err == "Error: device 5 did no work in this trace; devices with work: 0\n"
    assert call("run", recipe, plain, "--device", "0", "--format", "csv")[0] == 0


def test_without_device_operations_the_way_out_is_another_capture(tmp_path, call):
    path = TraceBuilder().nvtx(0, 100, "step 1").nvtx(100, 200, "step 2").write(tmp_path / "t")
    for recipe, words in (("budget", "no kernel and no graph"), ("iterations", "no device op")):
        code, out, err = call("run", recipe, path)
        assert (code, out) == (4, "") and words in err
        assert "re-capture with `nsys profile --trace=cuda,nvtx`" in err


def test_whole_graphs_without_a_kernel_table_have_gaps(tmp_path):
    builder = TraceBuilder()
    for number in range(3):
        begin = 1000 * number
        builder.nvtx(begin, begin + 1000, f"step {number}")
        builder.call(begin + 100, begin + 150, "cudaGraphLaunch_v10000", corr=number + 1)
        builder.graph_exec(begin + 300, begin + 900, corr=number + 1)
    path = builder.write(tmp_path / "t.sqlite")
    with nsys_sql.open(path) as model:
        assert "kernel" not in model.trace.present
        gaps = model.run("gaps").select(
            "gap_start_ns, gap_end_ns, launch_starved_ns, dependency_stalled_ns, next_kernel"
        )
        assert gaps.fetchall() == [
            (0, 300, 150, 150, "graph"),
            (900, 1300, 250, 150, "graph"),
            (1900, 2300, 250, 150, "graph"),
        ]
        assert model.run("kernels").select("kernel, count").fetchall() == [("graph", 3)]
        assert len(model.run("top-gaps").fetchall()) == 5  # clipped to the steps


@pytest.mark.parametrize("recipe", ["budget", "budget-windows"])
def test_without_a_kernel_table_nothing_is_zero(tmp_path, call, recipe):
    path = TraceBuilder().nvtx(0, 100, "step 1").memcpy(10, 20).write(tmp_path / "t.sqlite")
    code, out, err = call("run", recipe, path, "--anchor", "nvtx:step*")
    assert (code, out) == (4, "") and "has no kernel and no graph exec table" in err
    assert call("run", "copies", path, "--anchor", "nvtx:step*")[0] == 0  # what there is answers


def test_no_compute_at_all_is_not_called_a_tail(tmp_path):
    builder = TraceBuilder(lazy=False)  # with a kernel table that has no rows
    path = builder.nvtx(0, 100, "step 1").memcpy(10, 20).write(tmp_path / "t.sqlite")
    with nsys_sql.open(path, anchor="nvtx:step*") as model:
        model.run("budget")
        assert any("no compute kernel is in the trace" in note for note in model.notes)
        assert not any("after the last compute kernel" in note for note in model.notes)


# ---------------------------------------------------------------- options


@pytest.mark.parametrize("name", ["per_iteration", "skip_first", "skip_last", "device", "threads"])
@pytest.mark.parametrize("value", [-(10**25), 10**25])
def test_numbers_out_of_range_are_usage(call, plain, name, value):
    with pytest.raises(UsageError):
        Options(**{name: value}).check()
    code, out, err = call("run", "budget", plain, f"--{name.replace('_', '-')}", value)
    assert (code, out) == (2, "") and err.count("\n") == 1 and str(value) in err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"anchor": "nvtx:step*", "per_iteration": 2}, "--per-iteration counts"),
        ({"per_iteration": 2}, "--per-iteration counts"),
        ({"anchor": "kernel:*sgemm*", "window": "device"}, "--window device moves"),
    ],
)
def test_an_option_that_the_anchor_does_not_use_is_told(plain, options, words):
    with nsys_sql.open(plain, **options) as model:
        assert any(words in text for text in model.trace.warnings)
    with nsys_sql.open(plain, anchor="kernel:*sgemm*", per_iteration=2) as model:
        assert model.trace.warnings == ()


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("memory-limit", each) for each in ("-1", "0", "0GB", "1e", "", "80%", "1GB 1GB", "nan")),
        *(("threads", each) for each in ("0", "-1", "9999999", "")),
        *(("timeout", each) for each in ("0", "-1", "nan", "")),
    ],
)
def test_a_limit_that_is_none_is_usage(call, plain, option, value):
    code, out, err = call("run", "budget", plain, f"--{option}", value)
    assert (code, out) == (2, "") and option in err and err.count("\n") == 1


@pytest.mark.parametrize("value", ["1GB", "500 MB", "1.5gib", "2e3MiB", "1000000KB", ".5GB"])
def test_what_duckdb_takes_for_a_size_is_one(value):
    assert Options(memory_limit=value).check()
    with duckdb.connect() as con:
        con.execute("SET memory_limit = ?", [value])


def test_memory_that_no_worker_has_is_told(call, plain, tmp_path):
    parts = ["--partitions", tmp_path / "parts", "--jobs", "1"]
    code, out, err = call("survey", plain, "--memory-limit", "5KB", *parts)
    assert (code, out) == (3, "") and "raise --memory-limit" in err and "Possible" not in err


# ---------------------------------------------------------------- messages


def test_a_name_is_told_once_and_an_empty_query_is_no_query(call, plain, tmp_path):
    absent = [tmp_path / "a.sqlite", tmp_path / "b.sqlite"]
    for command in (["run", "budget"], ["report"]):
        code, _, err = call(*command, *absent)
        assert code == 3 and err == "".join(f"Error: {path} does not exist\n" for path in absent)
    for query in ("", "  \n"):
        code, _, err = call("sql", plain, query)
        assert code == 2 and "the query is empty" in err


def test_inspect_names_each_recipe_once(call, tmp_path):
    path = TraceBuilder().nvtx(0, 100, "step 1").memcpy(10, 20).write(tmp_path / "t.sqlite")
    out = call("inspect", path, "--format", "json")[1]
    assert '"this export has no kernel and no graph exec' in out
    assert '"budget: this' not in out


@pytest.mark.parametrize(
    "text",
    [
        "/x/.out.csv.0a1b2c3d.4711.part cannot be opened",
        'Cannot open file "/x/.out.csv.0a1b2c3d.4711.part.wal": no',
        "/x/.part-f00f-0a1b2c3d.4711-abc_def/budget.parquet: no",
    ],
)
def test_no_message_names_a_file_in_the_making(text, capsys):
    warn(text)
    told = capsys.readouterr().err
    assert ".part" not in told and re.search("/x/(out.csv|budget.parquet)", told)


# ---------------------------------------------------------------- places


@pytest.mark.parametrize("name", ["x.xlsx", "x.tsv", "x.json.gz", "x.yaml", "x.v2"])
def test_a_name_that_says_no_format_we_write_is_usage(call, plain, tmp_path, name):
    for command in (["run", "iterations", plain], ["survey", plain], ["compare", plain, plain]):
        code, out, err = call(*command, "-o", tmp_path / name)
        assert (code, out) == (2, "") and ".csv, .md, .parquet" in err and "--format" in err
    assert not (tmp_path / name).exists()


def test_names_that_say_text_or_nothing_hold_a_table(call, plain, tmp_path, monkeypatch):
    monkeypatch.setenv("NSYS_SQL_CACHE", str(tmp_path / "cache"))
    for name in ("x", "x.txt", "x.log"):
        assert call("run", "devices", plain, "-o", tmp_path / name)[0] == 0
        assert (tmp_path / name).read_text(encoding="utf-8").startswith("devices - ")
    assert call("survey", plain, "--init", "-o", tmp_path / "ranks.yaml")[0] == 0
    assert call("run", "devices", plain, "-o", tmp_path / "x.v2", "--format", "csv")[0] == 0


@pytest.mark.parametrize("option", ["-o", "--taxonomy", "--temp-directory", "--recipes"])
def test_an_empty_path_is_a_variable_that_was_not_set(call, plain, option):
    code, out, err = call("run", "iterations", plain, option, "")
    assert (code, out) == (2, "") and "empty" in err
    assert call("run", "iterations", "")[0] == 2


def test_a_pipe_takes_a_result(plain, tmp_path):
    line = f"{sys.executable} -m nsys_sql run devices {plain} -o /dev/stdout --format csv | cat"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("device,") and done.stderr == ""


def test_a_dash_is_no_file(call, plain, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, err = call("run", "gaps", plain, "-o", "-")
    assert code == 2 and "leave -o out" in err and not os.listdir(tmp_path)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_no_room_is_no_bug(call, plain):
    code, _, err = call("run", "devices", plain, "-o", "/dev/full")
    assert code == 2 and "cannot write /dev/full" in err


@pytest.mark.parametrize(
    ("redirect", "words"),
    [(">&-", "standard output is closed"), (">/dev/full", "cannot write to standard output")],
)
@pytest.mark.parametrize("command", ["list", "run devices TRACE --format parquet"])
def test_standard_output_that_takes_nothing(plain, command, redirect, words):
    line = f"{sys.executable} -m nsys_sql {command.replace('TRACE', str(plain))} {redirect}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert words in done.stderr and done.stderr.count("\n") == 1


def test_a_memory_limit_that_nothing_fits_is_told(fixture_sqlite, capsys):
    trace = str(fixture_sqlite("example"))
    for arguments in (["run", "budget", trace], ["sql", trace, "SELECT 1"], ["inspect", trace]):
        assert execute([*arguments, "--memory-limit", "1KB"]) == 3
        assert "raise --memory-limit" in capsys.readouterr().err
