"""Communication by hand-made numbers, by brute force on random traces, and by what was planted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import nsys_sql
from fuzz import ALL_REDUCE, DEEP_EP, GEMM, SEND_RECV, random_trace
from simulator import SCENARIOS, simulate
from tracebuilder import TraceBuilder

Row = dict[str, Any]
FUSED_GEMM = "void cutlass::device_kernel<flux::GemmAllReduce>(int)"
FUSED_COMM = "void trtllm::allreduce_fusion_kernel_oneshot_lamport<1, __half>(int)"
QUANTITIES = ("count", "work_ns", "busy_ns", "exposed_ns", "blocking_ns")


def answer(path: Path, recipe: str, **options: Any) -> list[Row]:
    with nsys_sql.open(path, **options) as model:
        relation = model.run(recipe)
        rows = [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]
        assert [check for check in model.checks if check.status == "fail"] == []
    return rows


def by_set(rows: Iterable[Row]) -> dict[tuple[str, str | None, str | None], Row]:
    return {(row["scope"], row["class"], row["collective"]): row for row in rows}


# One character is 1000 ns; the window is [0, 40).
#
#   compute  7   GGGGGGGGGG....................GGGG......     G2 waits for the second all-reduce
#   NCCL    20   .....RRRRRRRRRRSSSSS..........                R 5..15, S 15..20
#   DeepEP  21   ............DDDDDDDD............ ..           12..20, beside R and S
#   copy    28   ..................HHHH.....P.....             HtoD 18..22, peer copy 27..29
@pytest.fixture(scope="module")
def by_hand(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    us = 1000
    trace = TraceBuilder()
    trace.nvtx(0, 40 * us, "step 0")
    spans = [
        (GEMM, 7, 0, 10),
        (ALL_REDUCE, 20, 5, 15),
        (SEND_RECV, 20, 15, 20),
        (DEEP_EP, 21, 12, 20),
        (FUSED_COMM, 22, 33, 36),
        (FUSED_GEMM, 7, 30, 34),
    ]
    for corr, (name, stream, start, end) in enumerate(spans, 1):
        # the last one was launched at 1, and follows a wait for the dispatch below
        corr = corr if corr < len(spans) else 50
        trace.call(max(0, min(start, 1)) * us, 1 * us, corr=corr)
        trace.kernel(start * us, end * us, name, stream=stream, corr=corr)
    trace.record(stream=20, event=1, sync_id=9, corr=40)
    trace.wait(stream=7, event=1, sync_id=9, corr=41)
    trace.memcpy(18 * us, 22 * us, kind=1, stream=28, corr=30)
    trace.memcpy(27 * us, 29 * us, kind=10, stream=28, corr=31, srcDeviceId=1, dstDeviceId=0,
                 srcKind=2)  # fmt: skip
    path = trace.write(tmp_path_factory.mktemp("communication") / "trace.sqlite")
    return answer(path, "communication", anchor="nvtx:step *")


@pytest.mark.parametrize(
    ("key", "count", "work", "busy", "exposed", "blocking"),
    [
        # union 5..20 and 33..36; alone 10..18 and 34..36
        (("all", None, None), 4, 26, 18, 10, 10),
        (("nccl_only", "nccl", None), 2, 15, 15, 8, 10),
        (("class", "nccl", None), 2, 15, 15, 8, 10),
        (("class", "transport", None), 1, 8, 8, 6, 0),
        (("class", "fused_comm", None), 1, 3, 3, 2, 0),
        (("collective", "nccl", "AllReduce"), 1, 10, 10, 5, 5),
        (("collective", "nccl", "SendRecv"), 1, 5, 5, 3, 5),
        # computation: the exposed part has no operation of another role beside it
        (("fused_compute", "fused_gemm_comm", None), 1, 4, 4, 3, 0),
        (("peer_copy", "peer", None), 1, 2, 2, 2, 0),
    ],
)
def test_three_quantities_side_by_side(
    by_hand: list[Row],
    key: tuple[str, str | None, str | None],
    count: int,
    work: int,
    busy: int,
    exposed: int,
    blocking: int,
) -> None:
    row = by_set(by_hand)[key]
    found = [row["count"], *(row[f"{name}_ms"] for name in ("work", "busy", "exposed", "blocking"))]
    assert found == [count, *(pytest.approx(ns / 1e3) for ns in (work, busy, exposed, blocking))]
    assert row["overlapped_ms"] == pytest.approx((busy - exposed) / 1e3)
    assert row["overlap_pct"] == pytest.approx(100 * (busy - exposed) / busy)
    assert row["n"] == 1


def test_rows_are_in_order_and_nothing_else_is_listed(by_hand: list[Row]) -> None:
    scopes = ["all", "nccl_only", "class", "collective", "fused_compute", "peer_copy"]
    order = [scopes.index(row["scope"]) for row in by_hand]
    assert order == sorted(order)
    assert len(by_set(by_hand)) == len(by_hand)
    assert not any("time" in name for name in by_hand[0])


def test_a_window_without_counts_zero(tmp_path: Path) -> None:
    trace = TraceBuilder()
    for step in range(3):
        trace.nvtx(step * 100, step * 100 + 100, f"step {step}")
        trace.kernel(step * 100, step * 100 + 50, GEMM, corr=2 * step + 1)
    trace.kernel(60, 80, ALL_REDUCE, stream=20, corr=90)
    path = trace.write(tmp_path / "trace.sqlite")
    rows = by_set(answer(path, "communication", anchor="nvtx:step *"))
    row = rows["class", "nccl", None]
    assert (row["count"], row["busy_ms"], row["busy_min_ms"], row["n"]) == (0, 0, 0, 3)
    assert row["busy_max_ms"] == pytest.approx(20e-6)
    assert row["overlap_pct"] is None
    # another file without any: the row of all is there, and says 0
    bare = TraceBuilder().nvtx(0, 100, "step 0").kernel(0, 50, GEMM)
    rows = by_set(answer(bare.write(tmp_path / "bare.sqlite"), "communication", anchor="nvtx:*"))
    assert list(rows) == [("all", None, None)]


def test_an_operation_across_a_border_is_cut(tmp_path: Path) -> None:
    trace = TraceBuilder()
    trace.nvtx(0, 100, "step 0").nvtx(100, 200, "step 1").nvtx(150, 260, "step 2")
    trace.kernel(0, 10, GEMM, corr=1).kernel(110, 120, GEMM, corr=2).kernel(160, 170, GEMM, corr=4)
    trace.kernel(80, 180, ALL_REDUCE, stream=20, corr=3)
    path = trace.write(tmp_path / "trace.sqlite")
    row = by_set(answer(path, "communication", anchor="nvtx:step *"))["class", "nccl", None]
    # 20 of it in the first window, 80 in the second, 30 in the third, which overlaps the second
    assert (row["busy_min_ms"], row["busy_ms"], row["busy_max_ms"]) == (20e-6, 30e-6, 80e-6)
    assert (row["exposed_min_ms"], row["exposed_ms"], row["exposed_max_ms"]) == (
        20e-6,
        20e-6,
        60e-6,
    )
    assert row["count"] == 0


# ---- brute force


def measure(ops: Iterable[tuple[int, int]], start: int, end: int) -> set[int]:
    covered: set[int] = set()
    for first, last in ops:
        covered.update(range(max(first, start), min(last, end)))
    return covered


def by_definition(model: nsys_sql.Model) -> dict[tuple[int, int, int], Row]:
    """Every set in every steady window, nanosecond by nanosecond."""
    sql = model.con.execute
    windows = sql("SELECT device, iteration, start_ns, end_ns FROM nsys.steady").fetchall()
    names = defaultdict(set)
    for set_id, name_id in sql("SELECT set_id, name_id FROM nsys.comm_group").fetchall():
        names[set_id].add(name_id)
    members = sql("SELECT op_id, device, name_id, role::VARCHAR FROM nsys.comm_op").fetchall()
    ops = {
        op_id: (device, start, end, role)
        for op_id, device, start, end, role in sql(
            "SELECT op_id, device, start_ns, end_ns, role::VARCHAR FROM nsys.op"
        ).fetchall()
    }
    parts = sql("SELECT device, op_id, start_ns, end_ns FROM nsys.blocking_part").fetchall()
    found = {}
    for device, iteration, start, end in windows:
        for set_id, wanted in names.items():
            chosen = {op_id: role for op_id, _, name_id, role in members if name_id in wanted}
            mine = [ops[op_id][1:3] for op_id in chosen if ops[op_id][0] == device]
            busy = measure(mine, start, end)
            role = next(iter(chosen.values()), None)
            rivals = [o[1:3] for o in ops.values() if o[0] == device and o[3] != role]
            blamed = [p[2:] for p in parts if p[0] == device and p[1] in chosen]
            row = {
                "count": sum(start <= first < end for first, _ in mine),
                "work_ns": sum(len(measure([each], start, end)) for each in mine),
                "busy_ns": len(busy),
                "exposed_ns": len(busy - measure(rivals, start, end)),
                "blocking_ns": len(measure(blamed, start, end)),
            }
            if set_id == 0 or any(row.values()):
                found[device, iteration, set_id] = row
    return found


@pytest.mark.parametrize("seed", range(10))
def test_every_set_by_definition(seed: int, tmp_path: Path) -> None:
    trace, options = random_trace(seed)
    with nsys_sql.open(trace.write(tmp_path / "trace.sqlite"), **options) as model:
        try:
            model.run("communication").fetchall()
        except nsys_sql.NsysSqlError as error:
            assert error.exit_code == 4
            return
        relation = model.con.execute("SELECT * FROM nsys.comm_window")
        columns = [each[0] for each in relation.description]
        rows = [dict(zip(columns, row, strict=True)) for row in relation.fetchall()]
        found = {
            (row["device"], row["iteration"], row["set_id"]): {k: row[k] for k in QUANTITIES}
            for row in rows
            if row["set_id"] == 0 or any(row[k] for k in QUANTITIES)
        }
        assert found == by_definition(model)
        assert [check for check in model.checks if check.status == "fail"] == []


# ---- what the simulator planted


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("late_collective", ("collective", "nccl", "AllReduce")),
        ("pipeline", ("collective", "nccl", "SendRecv")),
        ("deepep", ("class", "transport", None)),
    ],
)
def test_the_planted_collective_blocks(
    name: str, key: tuple[str, str | None, str | None], tmp_path: Path
) -> None:
    path = tmp_path / "trace.sqlite"
    truth = simulate(replace(SCENARIOS[name], steps=3), 6, "2026.2.1", path)
    rows = [r for r in answer(path, "communication", anchor=truth.anchor) if r["device"] == 0]
    planted = sorted(ns for (device, _), ns in truth.cause.ns.items() if device == 0)
    assert by_set(rows)[key]["blocking_ms"] == pytest.approx(planted[1] / 1e6)
    assert by_set(rows)["all", None, None]["blocking_ms"] == pytest.approx(planted[1] / 1e6)


def test_a_covered_late_collective_is_busy_and_blocks_nothing(tmp_path: Path) -> None:
    path = tmp_path / "trace.sqlite"
    truth = simulate(SCENARIOS["tp_overlap"], 6, "2026.2.1", path)
    rows = by_set(r for r in answer(path, "communication", anchor=truth.anchor) if not r["device"])
    every = rows["all", None, None]
    assert every["overlap_pct"] > 0
    assert every["blocking_ms"] < every["busy_ms"]
    assert {key[2] for key in rows if key[0] == "collective"} >= {"AllReduce", "ReduceScatter"}
