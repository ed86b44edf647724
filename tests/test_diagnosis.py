"""Who blocks, what the host does, and what NVTX ranges cost: numbers worked out by hand.

In the timelines one character is one nanosecond unless a scale is given; `c` is a launch call,
capital letters are kernels (A, B, K compute; N communication), `=` is an NVTX range.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pytest

import nsys_sql
from conftest import brief, written
from nsys_sql.catalog import load_catalog
from nsys_sql.macros import collect
from simulator import SCENARIOS, simulate
from test_method_cases import GEMM, NCCL, Trace
from tracebuilder import TraceBuilder

Row = dict[str, Any]
RECIPES = ("blockers", "host-stalls", "top-gaps", "nvtx", "phases")


class Answers:
    """The recipes of one trace; every check of every one of them has to hold."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notes: dict[str, tuple[str, ...]] = {}

    def ask(self, trace: TraceBuilder, recipe: str, **options: Any) -> list[Row]:
        trace.write(self.path)
        params = {key: options.pop(key) for key in ("top",) if key in options}
        with nsys_sql.open(self.path, **{"anchor": "nvtx:step*", **options}) as model:
            result = model.result(recipe, **params)
            assert [check for check in result.checks if check.status == "fail"] == []
            self.notes[recipe] = tuple(result.notes)
            names = [column.name for column in result.columns]
            return [dict(zip(names, row, strict=True)) for row in result.rows]


@pytest.fixture
def answers(tmp_path: Path) -> Answers:
    return Answers(tmp_path / "trace.sqlite")


def nanoseconds(row: Row, *names: str) -> tuple[int | None, ...]:
    """Columns in ms, as the whole numbers of ns that they are."""
    values = [row[name] for name in names]
    return tuple(None if value is None else round(value * 1e6) for value in values)


def by(rows: list[Row], *names: str) -> dict[Any, Row]:
    keyed = {tuple(row[name] for name in names): row for row in rows}
    assert len(keyed) == len(rows)
    return {key[0] if len(names) == 1 else key: row for key, row in keyed.items()}


# ================================================================================== blockers
def a_copy_behind_a_collective() -> Trace:
    # stream 7   0-10 A                     95-99 K      K waits for the copy
    # stream 20     10-80 N  80-90 copy                  the copy waited for N
    # gap 10-95: issued at 8, N answers for 10-80, the copy for 80-90, 5 are stalled
    trace = Trace().launch(1, (0, 2), (2, 10)).launch(2, (3, 5), (10, 80), NCCL, stream=20)
    trace.call(5, 6, "cudaMemcpyAsync_v3020", corr=3).memcpy(80, 90, corr=3, stream=20)
    trace.edge(4, 20, 7).launch(6, (7, 8), (95, 99))
    trace.nvtx(0, 100, "step 0")
    return trace


def test_blame_is_passed_on_and_adds_up(answers: Answers) -> None:
    rows = answers.ask(a_copy_behind_a_collective(), "blockers")
    shown = [
        (
            *(row["producer"], row["role"], row["stream_id"], row["count"], row["n"]),
            *nanoseconds(row, "median_ms", "min_ms", "max_ms"),
        )
        for row in rows
    ]
    assert shown == [
        (NCCL, "comm", 20, 1, 1, 70, 70, 70),
        ("memcpy", "memcpy", 20, 1, 1, 10, 10, 10),
    ]
    first = rows[0]
    assert (first["waiting_kernel"], first["waiting_class"], first["waiting_pct"]) == (
        GEMM,
        "gemm",
        100,
    )
    assert (first["pct_of_iteration"], first["pct_of_blocking"]) == (70, 87.5)
    assert (first["resolved_pct"], first["inferred_pct"], first["pid"]) == (100, 0, 100)


def test_blame_over_a_border_is_cut_and_a_window_without_it_counts_zero(answers: Answers) -> None:
    # windows 0-40, 40-100 and 200-300, and N runs from 10 to 80: 30, 40 and nothing
    trace = a_copy_behind_a_collective()
    trace.rows["NVTX_EVENTS"].clear()
    for number, (start, end) in enumerate([(0, 40), (40, 100), (200, 300)]):
        trace.nvtx(start, end, f"step {number}")
    trace.launch(9, (201, 202), (210, 220))
    row = by(answers.ask(trace, "blockers"), "producer")[NCCL]
    assert nanoseconds(row, "median_ms", "min_ms", "max_ms") == (30, 0, 40)
    # all of it begins in the first window: none in the median one
    assert (row["count"], row["n"]) == (0, 3)


def test_inferred_and_lost_waits_show_as_evidence(answers: Answers) -> None:
    trace = Trace("2022.4.2").launch(1, (0, 2), (2, 10))
    trace.launch(2, (3, 5), (10, 80), NCCL, stream=20)
    trace.edge(4, 20, 7).launch(6, (7, 8), (95, 99)).nvtx(0, 100, "step 0")
    (row,) = answers.ask(trace, "blockers")
    assert (row["inferred_pct"], row["resolved_pct"]) == (100, 0)


@pytest.mark.parametrize("name", ["late_collective", "relay", "slow_copy"])
def test_blockers_find_the_planted_cause(answers: Answers, name: str) -> None:
    truth = simulate(SCENARIOS[name], 3, "2026.2.1", answers.path)
    with nsys_sql.open(answers.path, anchor=truth.anchor) as model:
        result = model.result("blockers")
        assert {check.status for check in result.checks} <= {"ok"}
        blamed = Counter(
            {
                (device, ordinal, role): ns
                for device, ordinal, role, ns in model.con.execute(
                    "SELECT device, iteration, n.role::VARCHAR, sum(blocking_ns)::BIGINT "
                    "FROM nsys.blocking_window INNER JOIN nsys.op_name AS n USING (name_id) "
                    "GROUP BY ALL"
                ).fetchall()
            }
        )
    expected = {
        (device, ordinal, role): ns
        for (device, ordinal), roles in truth.labels.items()
        for role, ns in roles.items()
        if ns
    }
    assert dict(blamed) == expected


# =============================================================================== host-stalls
def starving() -> Trace:
    # device   2-10 A                                  100-110 K
    # gap 10-100; the call of K is 90-95, so 85 are launch-starved
    # thread   12-30 cudaStreamSynchronize (cuStreamSynchronize 15-25 inside), 40-60 poll
    #          (read 45-50 inside), 55-58 cudaMalloc inside poll, 90-95 launch
    trace = Trace().launch(1, (0, 2), (2, 10)).launch(9, (90, 95), (100, 110))
    trace.call(12, 30, "cudaStreamSynchronize_v3020", corr=2)
    trace.call(15, 25, "cuStreamSynchronize", corr=3, event_class=1)
    trace.os_call(40, 60, "poll").os_call(45, 50, "read")
    trace.call(55, 58, "cudaMalloc_v3020", corr=4)
    trace.nvtx(0, 200, "step 0").nvtx(20, 70, "load 7").nvtx(42, 42, "mark")
    return trace


def test_starved_time_splits_by_what_the_launching_thread_did(answers: Answers) -> None:
    trace = starving()
    trace.call(10, 100, "cudaDeviceSynchronize_v3020", corr=5, tid=2)  # another thread
    rows = answers.ask(trace, "host-stalls")
    keys = [(row["activity"], row["function"], row["nvtx_path"]) for row in rows]
    assert dict(zip(keys, (nanoseconds(row, "median_ms")[0] for row in rows), strict=True)) == {
        # 10-12 and 70-90
        ("host_code", None, "step *"): 22,
        # 30-40, 60-70
        ("host_code", None, "step * / load *"): 20,
        # 40-55, 58-60: a CUDA call comes first, and the inner read is part of poll
        ("os_runtime", "poll", "step * / load *"): 17,
        ("synchronise", "cudaStreamSynchronize", "step * / load *"): 10,
        ("synchronise", "cudaStreamSynchronize", "step *"): 8,
        ("launch", "cudaLaunchKernel", "step *"): 2 + 5,  # the one of A too
        ("memory", "cudaMalloc", "step * / load *"): 3,
    }
    assert sum(row["pct_of_starved"] for row in rows) == pytest.approx(100)


def test_a_synchronising_call_beside_a_busy_device_is_no_stall(answers: Answers) -> None:
    # A runs from 2 to 100 and the thread waits for it from 10 to 99
    trace = Trace().launch(1, (0, 2), (2, 100)).launch(3, (102, 104), (105, 110))
    trace.call(10, 99, "cudaDeviceSynchronize_v3020", corr=2).nvtx(0, 200, "step 0")
    rows = answers.ask(trace, "host-stalls")
    assert {row["activity"]: nanoseconds(row, "median_ms") for row in rows} == {
        "launch": (4,),  # 0-2 before A, 102-104 before K
        "host_code": (2,),
    }


def test_a_synchronising_copy_while_it_copies_leaves_the_device_busy(answers: Answers) -> None:
    # device   2-10 A   22-50 copy   60-90 N on stream 20, launched before      100-110 K
    # thread         20-55 cudaMemcpy, 56-58 cudaStreamSynchronize           95-97 launch of K
    trace = Trace().launch(1, (0, 2), (2, 10)).launch(2, (3, 4), (60, 90), NCCL, stream=20)
    trace.call(20, 55, "cudaMemcpy_v3020", corr=3).memcpy(22, 50, corr=3, stream=7)
    trace.call(56, 58, "cudaStreamSynchronize_v3020", corr=4)
    trace.launch(9, (95, 97), (100, 110)).nvtx(0, 120, "step 0")
    rows = by(answers.ask(trace, "host-stalls"), "activity", "function")
    columns = ("median_ms", "device_idle_ms")
    assert nanoseconds(rows["synchronise", "cudaMemcpy"], *columns) == (35, 2 + 5)
    assert nanoseconds(rows["synchronise", "cudaStreamSynchronize"], *columns) == (2, 2)
    # 10-20, 55-56, 58-95: 60-90 of it beside N
    assert nanoseconds(rows["host_code", None], *columns) == (48, 18)
    # the starved time is 87: 28 beside the copy, which is the producer, 30 beside N, 29 idle
    (row,) = (r for r in answers.ask(trace, "opportunities") if r["class"] == "launch")
    assert nanoseconds(row, "recoverable_ms") == (2 + 87 - 28,)
    assert row["bound_kind"] == "upper bound"
    assert "49 % of it while copies, communication or spinning kernels ran" in row["evidence"]


def test_devices_starve_apart(answers: Answers) -> None:
    # one thread drives both: each starves until its own kernel is launched
    trace = Trace()
    for device in (0, 1):
        trace.launch(10 * device + 1, (0, 2), (2, 10), device=device, context=device + 1)
    trace.launch(21, (20, 30), (40, 50)).launch(22, (30, 50), (60, 70), device=1, context=2)
    trace.nvtx(0, 80, "step 0")
    rows = by(answers.ask(trace, "host-stalls"), "device", "activity")
    assert nanoseconds(rows[0, "launch"], "median_ms") == (2 + 10,)
    assert nanoseconds(rows[1, "launch"], "median_ms") == (2 + 10 + 20,)
    assert nanoseconds(rows[1, "host_code"], "median_ms") == (10,)


def test_stalls_are_cut_at_windows(answers: Answers) -> None:
    trace = starving()
    trace.rows["NVTX_EVENTS"].clear()
    trace.nvtx(0, 20, "step 0").nvtx(20, 120, "step 1")
    rows = by(answers.ask(trace, "host-stalls"), "activity", "nvtx_path")
    assert nanoseconds(rows["synchronise", "step *"], "min_ms", "max_ms") == (8, 10)


def test_the_data_loader_is_found(answers: Answers) -> None:
    truth = simulate(SCENARIOS["host_stall"], 1, "2026.2.1", answers.path)
    with nsys_sql.open(answers.path, anchor=truth.anchor) as model:
        top = model.result("host-stalls")
        names = [column.name for column in top.columns]
        first = dict(zip(names, top.rows[0], strict=True))
        assert {check.status for check in top.checks} == {"ok"}
    assert (first["activity"], first["nvtx_path"]) == ("host_code", "step * / next_batch")
    assert nanoseconds(first, "median_ms") == (8_000_300,)


ACTIVITIES = {
    "cudaDeviceSynchronize_v3020": "synchronise",
    "cuCtxSynchronize": "synchronise",
    "cudaEventSynchronize_v3020": "synchronise",
    "cudaMemcpy_v3020": "synchronise",
    "cuMemcpyDtoH_v2": "synchronise",
    "cudaMemset_ptds": "synchronise",
    "cudaMemcpyAsync_v3020": "call",
    "cuMemcpyHtoDAsync_v2": "call",
    "cudaMalloc_v3020": "memory",
    "cudaFreeAsync_v11020": "memory",
    "cudaHostAlloc_v3020": "memory",
    "cuMemAlloc_v2": "memory",
    "cudaMemPoolTrimTo_v11020": "memory",
    "cudaLaunchKernelExC_v11060_ptsz": "launch",
    "cuLaunchKernel": "launch",
    "cudaGraphLaunch_v10000": "launch",
    "cudaStreamWaitEvent_v3020": "call",
    "cudaMemGetInfo_v3020": "call",
}


def test_calls_are_told_by_name() -> None:
    con = macros("call_activity")
    told = {
        name: con.execute("SELECT nsys.call_activity(?)", [name]).fetchall()[0][0]
        for name in ACTIVITIES
    }
    assert told == ACTIVITIES


def test_only_the_version_of_the_interface_leaves_a_name() -> None:
    con = macros("call_text")
    names = ["cudaLaunchKernel_v7000", "cuMemAlloc_v2", "cudaGraphLaunch_v10000_ptsz", "poll"]
    shown = [con.execute("SELECT nsys.call_text(?)", [name]).fetchone() for name in names]
    assert shown == [("cudaLaunchKernel",), ("cuMemAlloc_v2",), ("cudaGraphLaunch",), ("poll",)]


def macros(*names: str) -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    con.execute("CREATE SCHEMA nsys")
    known = collect(load_catalog().macros.values(), ())
    for name in names:
        con.execute(known[name].sql)
    return con


def refill(con: duckdb.DuckDBPyConnection, table: str, rows: list[tuple[int, ...]]) -> None:
    """Replace the rows of a table: as text, since DuckDB is slow to take values one by one."""
    con.execute(f"DELETE FROM {table}")
    if rows:
        con.execute(f"INSERT INTO {table} VALUES {', '.join(map(written, rows))}")


def test_cover_agrees_with_counting_every_nanosecond() -> None:
    con = macros("iv_cover")
    con.execute("CREATE TABLE piece (part BIGINT, start_ns BIGINT, end_ns BIGINT)")
    con.execute("CREATE TABLE over (part BIGINT, start_ns BIGINT, end_ns BIGINT, label BIGINT)")
    for seed in range(60):
        r = random.Random(seed)
        scale = r.choice([1, 1, 400_000])  # both sides of the grid
        pieces, over = [], []
        for part in (1, 2):
            edges = sorted(r.sample(range(-20, 80), 2 * r.randrange(1, 8)))
            pieces += [(part, a, b) for a, b in zip(edges[::2], edges[1::2], strict=True)]
            for _ in range(r.randrange(12)):  # properly nested, as calls of a thread are
                start = r.randrange(-30, 90)
                end = start + r.choice([0, 1, 3, 10, 40])
                if all(
                    end <= s or e <= start or (s <= start and end <= e) or (start <= s and e <= end)
                    for p, s, e, _ in over
                    if p == part
                ):
                    over.append((part, start, end, len(over)))
        expected = Counter[tuple[int, int, int | None]]()
        for part, start, end in pieces:
            for at in range(start, end):
                covering = [(s, -e, label) for p, s, e, label in over if p == part and s <= at < e]
                outermost = min(covering)[2] if covering else None
                expected[part, start * scale, outermost] += scale
        refill(con, "piece", [(p, a * scale, b * scale) for p, a, b in pieces])
        refill(con, "over", [(p, a * scale, b * scale, label) for p, a, b, label in over])
        rows = con.execute(
            "SELECT part, stretch_ns, label, sum(end_ns - start_ns)::BIGINT "
            "FROM nsys.iv_cover('piece', 'over') GROUP BY ALL"
        ).fetchall()
        assert {row[:3]: row[3] for row in rows} == dict(expected), seed


def test_cover_tells_covered_from_free_time_where_rows_cross_too() -> None:
    con = macros("iv_cover")
    con.execute("CREATE TABLE piece (part BIGINT, start_ns BIGINT, end_ns BIGINT)")
    con.execute("CREATE TABLE over (part BIGINT, start_ns BIGINT, end_ns BIGINT, label BIGINT)")
    for seed in range(80):
        r = random.Random(seed)
        scale = r.choice([1, 1, 400_000])
        edges = sorted(r.sample(range(-20, 80), 2 * r.randrange(1, 8)))
        pieces = list(zip(edges[::2], edges[1::2], strict=True))
        over = [(a := r.randrange(-30, 90), a + r.choice([0, 1, 3, 10, 40])) for _ in range(12)]
        refill(con, "piece", [(1, a * scale, b * scale) for a, b in pieces])
        refill(con, "over", [(1, a * scale, b * scale, 0) for a, b in over])
        found = con.execute(
            "SELECT stretch_ns, sum(end_ns - start_ns)::BIGINT, "
            "sum(CASE WHEN label IS NULL THEN end_ns - start_ns ELSE 0 END)::BIGINT "
            "FROM nsys.iv_cover('piece', 'over') GROUP BY ALL"
        ).fetchall()
        free = {
            a: sum(not any(s <= at < e for s, e in over) for at in range(a, b)) for a, b in pieces
        }
        assert sorted(found) == sorted(
            (a * scale, (b - a) * scale, free[a] * scale) for a, b in pieces
        ), seed


# ====================================================================================== nvtx
def test_a_range_has_the_work_launched_inside_it(answers: Answers) -> None:
    # host     0 =step=====================================================200
    #            10 =forward=======50   60 =backward=========90
    #               20 =layer 0=30 =layer 1=40
    # calls       12      22      32      65
    # stream 7    100-110 110-130 150-160      K of backward 170-190
    # stream 20                   120-155 N, launched at 34 in layer 1
    trace = Trace().launch(1, (12, 13), (100, 110)).launch(2, (22, 23), (110, 130))
    trace.launch(3, (32, 33), (150, 160)).launch(4, (34, 35), (120, 155), NCCL, stream=20)
    trace.launch(5, (65, 66), (170, 190))
    trace.nvtx(0, 200, "step 0").nvtx(10, 50, "forward").nvtx(60, 90, "backward")
    trace.nvtx(20, 30, "layer 0").nvtx(30, 40, "layer 1")
    rows = by(answers.ask(trace, "nvtx"), "path")
    assert list(rows) == [
        "step *",
        "step * / backward",
        "step * / forward",
        "step * / forward / layer *",
    ]
    columns = ("host_ms", "span_ms", "busy_ms", "compute_ms", "comm_ms", "copy_ms", "idle_ms")
    layer = rows["step * / forward / layer *"]
    # layer 0 spans 110-130, layer 1 120-160: 50 in all, of which 30 compute
    assert nanoseconds(layer, *columns) == (20, 50, 50, 30, 20, 0, 0)
    assert (layer["count"], layer["op_count"], layer["depth"]) == (2, 3, 3)
    forward = rows["step * / forward"]
    assert nanoseconds(forward, *columns) == (40, 60, 60, 40, 20, 0, 0)
    assert nanoseconds(rows["step * / backward"], *columns) == (30, 20, 20, 20, 0, 0, 0)
    assert nanoseconds(rows["step *"], *columns) == (200, 90, 80, 60, 20, 0, 10)


def test_recursion_counts_time_once_and_work_twice(answers: Answers) -> None:
    # nine levels of f: the ninth and tenth count for the eighth
    trace = Trace().launch(1, (0, 1), (1, 5)).launch(2, (50, 51), (60, 80))
    trace.nvtx(0, 100, "step 0")
    for level in range(10):
        trace.nvtx(10 + level, 90 - level, "f")
    rows = answers.ask(trace, "nvtx")
    assert [row["depth"] for row in rows] == list(range(1, 9))
    assert nanoseconds(rows[-1], "host_ms", "host_work_ms", "busy_ms") == (68, 68, 20)
    assert any(
        "3 NVTX ranges nest deeper than eight levels" in note for note in answers.notes["nvtx"]
    )


def test_start_end_ranges_overlap_and_stand_alone(answers: Answers) -> None:
    # start/end ranges 10-40 and 30-60 of one name: 50 of time, 60 of work; K launched in both
    trace = Trace().launch(1, (0, 1), (1, 5)).launch(2, (35, 36), (70, 90))
    trace.launch(3, (55, 56), (95, 99)).launch(4, (62, 63), (99, 110))
    trace.nvtx(0, 120, "step 0")
    trace.nvtx(10, 40, "io 1", event_type=60).nvtx(30, 60, "io 2", event_type=60)
    row = by(answers.ask(trace, "nvtx"), "kind")["start_end"]
    assert (row["path"], row["count"], row["op_count"]) == ("io *", 2, 2)
    assert nanoseconds(row, "host_ms", "host_work_ms", "span_ms", "busy_ms", "idle_ms") == (
        *(50, 60, 29, 24, 5),
    )


def test_ranges_of_other_threads_and_of_no_length_hold_nothing(answers: Answers) -> None:
    trace = Trace().launch(1, (10, 11), (20, 30)).nvtx(0, 50, "step 0")
    trace.nvtx(5, 40, "elsewhere", tid=2).nvtx(10, 10, "nothing").nvtx(10, 15, "inner")
    rows = by(answers.ask(trace, "nvtx"), "path")
    assert {path: row["op_count"] for path, row in rows.items()} == {
        "step *": 1,
        "elsewhere": 0,
        "step * / inner": 1,
        "step * / inner / nothing": 0,
    }


def test_projections_are_cut_at_windows(answers: Answers) -> None:
    # launched in step 0, and runs from 80 to 130: 20 in step 0, 30 in step 1
    trace = Trace().launch(1, (10, 11), (80, 130)).nvtx(0, 100, "step 0").nvtx(100, 150, "step 1")
    trace.launch(2, (110, 111), (140, 145))
    (row,) = answers.ask(trace, "nvtx")
    # step 1 has both its own 5 and the 30 of step 0; nothing runs from 130 to 140
    assert nanoseconds(row, "busy_min_ms", "busy_max_ms") == (20, 35)
    assert row["span_ms"] * 1e6 == pytest.approx((20 + 35) / 2)


def test_ten_thousand_levels_cost_no_more_than_eight(answers: Answers) -> None:
    trace = Trace().launch(1, (20_000, 20_001), (20_010, 20_020)).nvtx(0, 50_000, "step 0")
    for level in range(10_000):
        trace.nvtx(1 + level, 45_000 - level, "f")
    rows = answers.ask(trace, "nvtx")
    assert [row["op_count"] for row in rows] == [1] * 8


def test_paths_agree_with_a_stack(answers: Answers) -> None:
    r = random.Random(0)
    trace = Trace().launch(1, (0, 1), (1, 2)).nvtx(0, 10_000, "step 0", tid=99)
    expected = Counter[str]({"step *": 1})
    for tid in range(1, 9):
        at, stack, done = 5, [], []
        while at < 2_000:
            at += r.choice([0, 1, 7])
            if stack and r.random() < 0.5:
                begin, path = stack.pop()
                done.append((begin, at, path))
            elif len(stack) < 8:
                name = r.choice("abc")
                stack.append((at, f"{stack[-1][1]} / {name}" if stack else name))
                at += 1  # equal starts leave two orders open
        for begin, path in reversed(stack):
            done.append((begin, at, path))
        for begin, end, path in done:
            trace.nvtx(begin, end, path[-1], tid=tid)
            expected[path] += 1
    rows = answers.ask(trace, "nvtx")
    assert {row["path"]: row["count"] for row in rows} == expected


# ==================================================================================== phases
def test_phases_look_across_threads(answers: Answers) -> None:
    # the program's thread waits in `backward` while thread 2 launches the kernels
    trace = Trace().launch(1, (12, 13), (20, 30))
    trace.call(55, 56, corr=2, tid=2).kernel(60, 75, corr=2)
    trace.call(58, 59, corr=3, tid=2).kernel(75, 80, corr=3)
    trace.launch(4, (92, 93), (95, 97)).launch(5, (98, 98), (98, 99))
    trace.nvtx(0, 100, "step 0").nvtx(10, 40, "Forward").nvtx(50, 90, "Backward")
    trace.nvtx(91, 94, "Optimizer step")
    rows = by(answers.ask(trace, "phases"), "phase")
    assert list(rows) == ["forward", "backward", "optimizer", "unattributed"]
    assert {
        phase: (*nanoseconds(row, "host_ms", "busy_ms"), row["op_count"], row["borrowed_pct"])
        for phase, row in rows.items()
    } == {
        "forward": (30, 10, 1, 0),
        "backward": (40, 20, 2, 100),
        "optimizer": (3, 2, 1, 0),
        "unattributed": (0, 1, 1, 0),
    }


def test_a_forward_pass_inside_a_backward_pass_is_recomputation(answers: Answers) -> None:
    trace = Trace().launch(1, (12, 13), (20, 30)).nvtx(0, 50, "step 0")
    trace.nvtx(5, 45, "backward-compute").nvtx(10, 20, "forward")
    rows = by(answers.ask(trace, "phases"), "phase")
    assert nanoseconds(rows["backward"], "busy_ms", "host_ms") == (10, 40)
    assert "forward" not in rows


def test_a_schedule_of_both_passes_is_no_phase_and_two_open_passes_decide_nothing(
    answers: Answers,
) -> None:
    # thread 4 launches while thread 1 is in forward and thread 2 in backward
    trace = Trace().nvtx(0, 50, "step 0").nvtx(1, 49, "forward-backward")
    trace.nvtx(10, 30, "forward-compute").nvtx(10, 30, "backward-compute", tid=2)
    trace.call(15, 16, corr=1, tid=4).kernel(20, 30, corr=1)
    trace.call(40, 41, corr=2).kernel(42, 44, corr=2)
    rows = by(answers.ask(trace, "phases"), "phase")
    assert nanoseconds(rows["unattributed"], "busy_ms") == (12,)
    assert nanoseconds(rows["forward"], "busy_ms", "host_ms") == (0, 20)


def test_without_named_phases_all_is_unattributed_and_said(answers: Answers) -> None:
    trace = Trace().launch(1, (12, 13), (20, 30)).nvtx(0, 50, "step 0")
    (row,) = answers.ask(trace, "phases")
    assert (row["phase"], *nanoseconds(row, "busy_ms")) == ("unattributed", 10)
    assert any("no NVTX range is named like a phase" in note for note in answers.notes["phases"])


PHASES = {
    "Forward": "forward",
    "forward_step": "forward",
    "[Strategy]DDPStrategy.training_step": "forward",
    "Optimizer step": "optimizer",
    "Optimizer.step#AdamW.step": "optimizer",
    "optimizer-inner-step": "optimizer",
    "autograd::engine::evaluate_function: AddmmBackward0": "backward",
    "MulBackward0, seq = 12, op_id = 3": "backward",
    "loss.backward": "backward",
    "all-grads-sync": "grad_sync",
    "batch-generator": "data",
    "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__": "data",
    "forward-backward": None,
    "aten::linear": None,
}


def test_phases_are_told_by_name(answers: Answers) -> None:
    trace = Trace().launch(1, (12, 13), (20, 30)).nvtx(0, 900, "step 0", tid=2)
    for position, name in enumerate(PHASES):
        trace.nvtx(10 * position, 10 * position + 5, name)
    trace.write(answers.path)
    with nsys_sql.open(answers.path, anchor="nvtx:step*") as model:
        model.result("phases")
        told = model.con.execute(
            "SELECT n.text, p.phase FROM nsys.range_instance AS i "
            "INNER JOIN nsys.nvtx AS n ON n.start_ns = i.start_ns AND n.thread = i.thread "
            "LEFT JOIN nsys.range_phase AS p ON p.path_no = i.path_no "
            "WHERE n.text <> 'step 0'"
        ).fetchall()
    assert dict(told) == PHASES


# ================================================================================== top-gaps
def test_the_longest_gap_is_told_whole(answers: Answers) -> None:
    (first,) = answers.ask(starving(), "top-gaps", top=1)
    assert (first["device"], first["rank"], first["iteration"], first["start_ns"]) == (0, 1, 0, 10)
    assert nanoseconds(
        first, "length_ms", "launch_starved_ms", "blocking_ms", "dependency_stalled_ms"
    ) == (90, 85, 0, 5)
    assert (first["kernel_before"], first["next_kernel"]) == (GEMM, GEMM)
    assert (first["host_activity"], first["host_function"]) == ("host_code", None)
    assert (first["nvtx_path"], first["evidence"]) == ("step *", "resolved")


def test_the_path_of_a_gap_is_where_the_host_was(answers: Answers) -> None:
    # the loader holds the host for 60, the kernel is launched in `forward`
    trace = Trace().launch(1, (0, 2), (2, 10)).launch(2, (80, 85), (90, 100))
    trace.nvtx(0, 110, "step 0").nvtx(12, 72, "next_batch").nvtx(76, 110, "forward")
    (first,) = answers.ask(trace, "top-gaps", top=1)
    assert (first["host_activity"], first["nvtx_path"]) == ("host_code", "step * / next_batch")
    # without launch-starved time it is the range of the launch
    trace = Trace().launch(1, (0, 2), (2, 10)).launch(2, (4, 5), (90, 100))
    trace.nvtx(0, 110, "step 0").nvtx(3, 8, "forward")
    (first,) = answers.ask(trace, "top-gaps", top=1)
    assert (first["host_activity"], first["nvtx_path"]) == (None, "step * / forward")


def test_gaps_are_ranked_inside_windows(answers: Answers) -> None:
    # the gap 10-200 has 40 in step 0 and 20 in step 1, the gap 210-240 has 30
    trace = Trace().launch(1, (0, 2), (2, 10)).launch(2, (3, 4), (200, 210))
    trace.launch(3, (5, 6), (240, 250)).nvtx(0, 50, "step 0").nvtx(180, 260, "step 1")
    rows = answers.ask(trace, "top-gaps", top=3)
    assert [
        (row["iteration"], row["start_ns"], *nanoseconds(row, "length_ms")) for row in rows
    ] == [
        (0, 10, 40),
        (1, 210, 30),
        (1, 180, 20),
    ]


# ================================================================================ all of them
@pytest.mark.parametrize("name", brief(1, ["two_processes", "graphs_node", "graphs_whole"]))
def test_every_check_holds_on_simulated_runs(answers: Answers, name: str) -> None:
    truth = simulate(SCENARIOS[name], 2, "2025.1.3", answers.path)
    with nsys_sql.open(answers.path, anchor=truth.anchor) as model:
        for recipe in RECIPES:
            checks = model.result(recipe).checks
            assert [check for check in checks if check.status == "fail"] == [], recipe
