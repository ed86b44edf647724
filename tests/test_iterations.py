"""Iterations and anchors: which windows there are, why some are dropped, and what auto takes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tracebuilder import TraceBuilder

nsys_sql = pytest.importorskip("nsys_sql")
pytest.importorskip("nsys_sql.session")

MS = 1_000_000
ADAM = "void multi_tensor_apply_kernel<AdamFunctor>(int)"
REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
Row = dict[str, Any]


def rows(relation: Any) -> list[Row]:
    return [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]


def iterations(trace: TraceBuilder, folder: Path, anchor: str, **options: Any) -> list[Row]:
    path = trace.write(folder / "trace.sqlite")
    with nsys_sql.open(path, anchor=anchor, **options) as model:
        return rows(model.run("iterations"))


def windows(trace: TraceBuilder, folder: Path, anchor: str, **options: Any) -> list[tuple]:
    """(start, end, status) of every window."""
    found = iterations(trace, folder, anchor, **options)
    return [(row["start_ns"], row["end_ns"], row["status"]) for row in found]


def steps(*starts: int, length: int = 10) -> TraceBuilder:
    """A range `step N` of `length` with a kernel in its middle, at each start."""
    trace = TraceBuilder()
    for number, start in enumerate(starts):
        trace.nvtx(start, start + length, f"step {number}")
        trace.kernel(start + 3, start + 5, corr=number + 1)
    return trace


# ------------------------------------------------------------------------------------- patterns
@pytest.mark.parametrize(
    ("text", "pattern", "is_match"),
    [
        ("step 1", "step *", True),
        ("step ", "step *", True),
        ("a step 1", "step *", False),
        ("step 1 b", "step ?", False),
        ("Step 1", "step *", False),
        ("step_1", "step_*", True),
        ("step 1", "step_*", False),
        ("a%b", "a%b", True),
        ("axb", "a%b", False),
        ("a?b[c]!", "a?b[c]!", True),
        ("a!%_b", "a*b", True),
        ("a\nb", "a*b", True),
        ("abc", "*b*", True),
        ("a*b", "a*b", True),
        ("", "*", True),
        ("ab", "a**b", True),
    ],
)
def test_pattern(text: str, pattern: str, is_match: bool, tmp_path: Path) -> None:
    trace = TraceBuilder().nvtx(0, 10, text).kernel(1, 2)
    assert bool(windows(trace, tmp_path, f"nvtx:{pattern}")) is is_match


def test_kernel_pattern_matches_demangled_or_short_name(tmp_path: Path) -> None:
    trace = TraceBuilder()
    for start, short in ((0, "adam"), (10, "adam"), (20, "other")):
        trace.kernel(start, start + 1, f"void {short}<4>(int)", short=short)
    assert windows(trace, tmp_path, "kernel:adam") == [(0, 10, "steady"), (10, None, "unclosed")]
    assert windows(trace, tmp_path, "kernel:void adam<*") == [
        (0, 10, "steady"),
        (10, None, "unclosed"),
    ]
    assert windows(trace, tmp_path, "nccl:adam") == []


# -------------------------------------------------------------------------------------- windows
def test_columns_and_neighbours(tmp_path: Path) -> None:
    found = iterations(steps(0, 20, 50), tmp_path, "nvtx:step *")
    assert list(found[0])[:7] == [
        *("device", "iteration", "start_ns", "end_ns", "duration_ms", "status", "anchor")
    ]
    assert [row["period_ns"] for row in found] == [20, 30, None]
    assert [row["gap_before_ns"] for row in found] == [None, 10, 20]
    assert {row["anchor"] for row in found} == {"nvtx:step *"}
    assert found[0]["duration_ms"] == 10 / 1e6


def test_only_the_outermost_range_of_a_thread_counts(tmp_path: Path) -> None:
    trace = TraceBuilder().kernel(5, 6).kernel(15, 16)
    trace.nvtx(0, 20, "step 0").nvtx(2, 18, "step 1").nvtx(4, 20, "step 2")
    trace.nvtx(0, 20, "step 3").nvtx(3, 9, "step 4", tid=2).nvtx(19, 25, "step 5", event_type=60)
    assert [w[:2] for w in windows(trace, tmp_path, "nvtx:step *")] == [(0, 20), (3, 9), (19, 25)]


def test_unclosed_ranges_take_no_part_in_nesting(tmp_path: Path) -> None:
    trace = TraceBuilder().duration(100).kernel(5, 6).kernel(45, 46)
    trace.nvtx(0, 100, "step 0").nvtx(2, 20, "step 1").nvtx(40, 50, "step 2")
    trace.nvtx(45, None, "step 3").nvtx(60, 50, "step 4")  # the last is invalid
    assert windows(trace, tmp_path, "nvtx:step *") == [
        (0, 100, "unclosed"),
        (2, 20, "steady"),
        (40, 50, "steady"),
        (45, None, "unclosed"),
    ]


@pytest.mark.parametrize(
    ("version", "name", "value", "is_applied"),
    [
        ("2026.2.1", "EXPORT_PARAM_TIME_SHIFT", "0", True),
        ("2026.2.1", "EXPORT_PARAM_TIME_SHIFT", "-7", False),
        ("2026.2.1", "EXPORT_CONFIG_TIME_SHIFT", "12", False),
        ("2026.2.1", "EXPORT_PARAM_TIME_NORMALIZE", "true", False),
        ("2022.4.2", "EXPORT_PARAM_TIME_NORMALIZE", "true", False),
        ("2022.4.2", "EXPORT_PARAM_TIME_NORMALIZE", "false", True),
    ],
)
def test_session_end_is_not_known_on_a_moved_clock(
    version: str, name: str, value: str, is_applied: bool, tmp_path: Path
) -> None:
    trace = TraceBuilder(version).duration(20).nvtx(0, 20, "step 0").kernel(1, 2)
    trace.meta(name, value)
    status = "unclosed" if is_applied else "steady"
    assert windows(trace, tmp_path, "nvtx:step *") == [(0, 20, status)]


def test_windows_belong_to_every_device_of_the_process(tmp_path: Path) -> None:
    trace = TraceBuilder().nvtx(0, 10, "step 0").nvtx(4, 14, "step 0", pid=200)
    trace.kernel(1, 2, device=0).kernel(3, 4, device=1).kernel(5, 6, device=2, pid=200)
    found = iterations(trace, tmp_path, "nvtx:step *")
    assert [(row["device"], row["start_ns"]) for row in found] == [(0, 0), (1, 0), (2, 4)]
    only = iterations(trace, tmp_path, "nvtx:step *", device=1)
    assert [row["device"] for row in only] == [1]


def test_per_iteration_leaves_one_unclosed_remainder(tmp_path: Path) -> None:
    for count, expected in (
        (6, [(0, 20, "steady"), (20, 40, "steady"), (40, None, "unclosed")]),
        (5, [(0, 20, "steady"), (20, 40, "steady"), (40, None, "unclosed")]),
        (2, [(0, None, "unclosed")]),
    ):
        trace = TraceBuilder()
        for number in range(count):
            trace.kernel(10 * number, 10 * number + 1, REDUCE)
        assert windows(trace, tmp_path, "nccl:*", per_iteration=2) == expected


# --------------------------------------------------------------------------------- drop reasons
def statuses(trace: TraceBuilder, folder: Path, **options: Any) -> list[str]:
    return [row[2] for row in windows(trace, folder, "nvtx:step *", **options)]


def test_no_device_work(tmp_path: Path) -> None:
    trace = TraceBuilder().nvtx(0, 10, "step 0").nvtx(10, 20, "step 1")
    trace.nvtx(20, 20, "step 2", tid=2).nvtx(30, 40, "step 3")
    trace.kernel(9, 15).kernel(20, 25).memcpy(40, 41)  # an operation that only reaches in
    assert statuses(trace, tmp_path) == ["steady", "no_device_work", *["no_device_work"] * 2]


def test_profiler_boundary(tmp_path: Path) -> None:
    trace = steps(0, 20, 40, 60, 80)
    trace.call(15, 20, "cudaProfilerStart_v4000")  # ended by 20
    trace.call(65, 75, "cuProfilerStop")
    assert statuses(trace, tmp_path) == [
        *("profiler_boundary", "steady", "steady", "profiler_boundary", "profiler_boundary")
    ]
    trace = steps(0, 20, 40).call(15, 21, "cudaProfilerStart_v4000")  # not ended by 20
    assert statuses(trace, tmp_path) == ["profiler_boundary", "profiler_boundary", "steady"]
    trace = steps(0, 20, 40).call(30, 31, "cudaProfilerStop_v4000")  # begins at the end: no matter
    assert statuses(trace, tmp_path) == ["steady", "steady", "profiler_boundary"]
    trace = steps(0, 20, 40).call(5, 6, "cudaProfilerStop_v4000", pid=200)
    assert statuses(trace, tmp_path) == ["steady"] * 3  # of a process without the device


def test_graph_capture(tmp_path: Path) -> None:
    trace = steps(0, 20, 40, 60)
    trace.call(25, 26, "cudaStreamBeginCapture_v10000").call(40, 41, "cudaStreamEndCapture_v10000")
    trace.call(27, 28, "cudaStreamEndCapture_v10000", tid=2)
    assert statuses(trace, tmp_path) == ["steady", "graph_capture", "graph_capture", "steady"]
    trace.call(65, 66, "cuStreamBeginCapture_v2")  # never ended
    assert statuses(trace, tmp_path)[-1] == "graph_capture"


def test_skips_count_every_window_and_reasons_have_an_order(tmp_path: Path) -> None:
    trace = steps(20, 40, 60, 80, 100).nvtx(0, 10, "step 9")
    assert statuses(trace, tmp_path, skip_first=2, skip_last=1, iterations="0:4") == [
        *("no_device_work", "warmup", "steady", "steady", "outside", "cooldown")
    ]


# ------------------------------------------------------------------------------- device windows
def test_windows_move_to_the_work_that_was_launched_inside(tmp_path: Path) -> None:
    trace = TraceBuilder()
    for number, (start, run, end) in enumerate([(0, 30, 50), (10, 55, 70), (20, 75, 90)]):
        trace.nvtx(start, start + 9, f"step {number}")
        trace.call(start + 2, start + 4, corr=number + 1, tid=2)
        trace.kernel(run, end, corr=number + 1)
    trace.nvtx(100, 110, "step 3").kernel(105, 106, corr=77)  # launched nowhere
    assert windows(trace, tmp_path, "nvtx:step *", window="device") == [
        (30, 55, "steady"),
        (55, 75, "steady"),
        (75, 90, "steady"),
        (100, 110, "no_device_work"),
    ]


# ----------------------------------------------------------------------------------------- auto
def training(
    count: int = 12,
    period: int = 100 * MS,
    text: str | None = "step {}",
    optimizer: int | None = 1,
    jitter: float = 0.005,
    seed: int = 1,
) -> TraceBuilder:
    """Steps with layers, a collective and `optimizer` kernels each; library ranges all over."""
    r = random.Random(seed)
    trace = TraceBuilder()
    trace.nvtx(-5, None, "NCCL", event_type=75, domain=3)
    start, corr = 0, 0
    for number in range(count):
        length = round(period * (1 + r.uniform(-jitter, jitter)))
        if text is not None:
            trace.nvtx(start, start + length, text.format(number))
        for layer in range(4):
            at = start + length * (layer + 1) // 6
            corr += 1
            trace.kernel(at, at + length // 8, corr=corr)
            trace.nvtx(at, at + 1000, f"aten::mm, seq = {corr}, op_id = {corr}")
            trace.nvtx(at, at + length // 8, "layer forward")
            trace.nvtx(at, at + length // 7, "ncclAllReduce", domain=3)
        for k in range(optimizer or 0):
            at = start + length * 9 // 10 + k * 20_000
            trace.kernel(at, at + 10_000, ADAM, corr=10_000 + 100 * number + k)
        start += length
    return trace


def anchors(trace: TraceBuilder, folder: Path) -> tuple[Row, list[Row]]:
    """anchor_choice, and the rows of the recipe."""
    with nsys_sql.open(trace.write(folder / "trace.sqlite")) as model:
        found = rows(model.run("anchors"))
        choice = rows(model.con.sql("FROM nsys.anchor_choice"))[0]
    return choice, found


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("step {}", "step *"),
        ("training_step_{}", "training_step_*"),
        ("iteration {}", "iteration *"),
        ("iter {}/12", "iter */*"),
        ("ProfilerStep#{}", "ProfilerStep#*"),
        ("megatron.bridge.training.train.train_step", None),
        ("train_step", None),
        ("Step", None),
        ("train_batch", None),
        ("Trainer.run_{}", "Trainer.run_*"),
    ],
)
def test_auto_takes_the_step_ranges(text: str, pattern: str | None, tmp_path: Path) -> None:
    choice, found = anchors(training(text=text), tmp_path)
    assert (choice["status"], choice["kind"]) == ("chosen", "nvtx"), choice["message"]
    assert choice["pattern"] == (pattern or text)
    assert choice["rival_kind"] == "kernel"
    best = [row for row in found if row["is_best"]]
    assert [(row["pattern"], row["count"]) for row in best] == [(choice["pattern"], 12)]
    assert all("library" in row["verdict"] for row in found if "nccl" in row["pattern"].lower())


def test_auto_windows_are_those_of_the_candidate(tmp_path: Path) -> None:
    found = iterations(training(), tmp_path, "auto")
    assert [row["status"] for row in found] == ["steady"] * 12
    assert {row["anchor"] for row in found} == {"nvtx:step *"}


def test_auto_finds_the_number_of_kernels_per_step(tmp_path: Path) -> None:
    choice, _ = anchors(training(text=None, optimizer=7), tmp_path)
    assert choice["status"] == "chosen"
    assert (choice["kind"], choice["per_iteration"]) == ("kernel", 7)
    found = iterations(training(text=None, optimizer=7), tmp_path, "auto")
    assert [row["status"] for row in found] == ["steady"] * 11 + ["unclosed"]


def test_auto_stops_when_kinds_disagree(tmp_path: Path) -> None:
    for period, is_close in ((70 * MS, False), (103 * MS, False), (101 * MS, True)):
        trace = training(count=20, optimizer=None, jitter=0)
        for number in range(20 * 100 * MS // period):
            at = number * period + 5 * MS
            trace.kernel(at, at + 1000, ADAM, corr=50_000 + number)
        choice, found = anchors(trace, tmp_path)
        assert choice["status"] == ("chosen" if is_close else "ambiguous"), choice["message"]
        if not is_close:
            assert choice["kind"] is None and choice["pattern"] is None
            assert "--anchor" in choice["message"] and "nvtx:step *" in choice["message"]
            assert [row["verdict"][:5] for row in found if row["is_best"]] == ["stops"]
            with pytest.raises(nsys_sql.NsysSqlError) as error:
                iterations(trace, tmp_path, "auto")
            assert error.value.exit_code == 4


@pytest.mark.parametrize("multiple", [2, 4])
def test_whole_multiples_are_no_difference(multiple: int, tmp_path: Path) -> None:
    trace = training(count=24, optimizer=None)
    for number in range(24 // multiple):
        at = (number * multiple + multiple) * 100 * MS - 3 * MS
        trace.kernel(at, at + 1000, ADAM, corr=50_000 + number)
    choice, _ = anchors(trace, tmp_path)
    assert choice["status"] == "chosen", choice["message"]
    assert choice["pattern"] == "step *"


def test_an_irregular_kernel_has_no_veto(tmp_path: Path) -> None:
    trace = training(optimizer=None)
    r = random.Random(5)
    for number in range(30):
        at = r.randrange(1200 * MS)
        trace.kernel(at, at + 1000, ADAM, corr=50_000 + number)
    choice, _ = anchors(trace, tmp_path)
    assert choice["status"] == "chosen"
    assert choice["pattern"] == "step *"


def test_auto_says_when_there_is_nothing(tmp_path: Path) -> None:
    choice, found = anchors(TraceBuilder().kernel(0, 1).nvtx(0, 5, "setup"), tmp_path)
    assert choice["status"] == "none"
    assert "--anchor" in choice["message"]
    assert found == []


def test_candidates_are_counted_closed(tmp_path: Path) -> None:
    trace = training(count=3, optimizer=None).duration(400 * MS)
    trace.nvtx(300 * MS, 400 * MS, "step 3")
    _, found = anchors(trace, tmp_path)
    assert [row["count"] for row in found if row["pattern"] == "step *"] == [3]
    assert [row["share_pct"] for row in found if row["pattern"] == "step *"] == [100.0]
