"""What a hostile user does: odd values, options out of range, places that take no output."""

import os
import subprocess
import sys

import pytest

import nsys_sql
from nsys_sql.cli import execute
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
    for recipe in ("budget", "iterations"):
        code, _, err = call("run", recipe, path)
        assert code == 4 and "no device operation" in err
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


def test_no_compute_at_all_is_not_called_a_tail(tmp_path):
    path = TraceBuilder().nvtx(0, 100, "step 1").memcpy(10, 20).write(tmp_path / "t.sqlite")
    with nsys_sql.open(path, anchor="nvtx:step*") as model:
        model.run("budget")
        assert any("no compute kernel is in the trace" in note for note in model.notes)
        assert not any("after the last compute kernel" in note for note in model.notes)


# ---------------------------------------------------------------- options


@pytest.mark.parametrize("name", ["per_iteration", "skip_first", "skip_last", "device", "threads"])
@pytest.mark.parametrize("value", [-1, 10**25])
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


# ---------------------------------------------------------------- places


def test_a_dash_is_no_file(call, plain, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, err = call("run", "gaps", plain, "-o", "-")
    assert code == 2 and "leave -o out" in err and not os.listdir(tmp_path)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_no_room_is_no_bug(call, plain):
    code, _, err = call("run", "gaps", plain, "-o", "/dev/full")
    assert code == 2 and "cannot write /dev/full" in err


@pytest.mark.parametrize(
    ("redirect", "words"),
    [(">&-", "standard output is closed"), (">/dev/full", "cannot write to standard output")],
)
@pytest.mark.parametrize("command", ["list", "run gaps TRACE --format parquet"])
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
