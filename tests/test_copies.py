"""Copies and streams, by hand-made numbers and by brute force on random traces."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import nsys_sql
from fuzz import ALL_REDUCE, GEMM, random_trace
from simulator import SCENARIOS, simulate
from test_communication import answer, measure
from tracebuilder import INVALID, TraceBuilder

Row = dict[str, Any]
US = 1000
PAGEABLE, PINNED, DEVICE, UNKNOWN = 0, 1, 2, 7


def key(row: Row) -> tuple[Any, ...]:
    return row["stream_id"], row["direction"], row["way"], row["source"], row["destination"]


# The window is [0, 100) us.
@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    trace = TraceBuilder()
    trace.nvtx(0, 100 * US, "step 0")
    trace.call(0, 1 * US, corr=1).kernel(0, 10 * US, GEMM, corr=1)

    def copy(start: int, end: int, kind: int, source: int, target: int, **place: Any) -> None:
        trace.memcpy(start * US, end * US, kind=kind, srcKind=source, dstKind=target, **place)

    # HtoD on two streams: 10..60 and 20..95 make the engine 85 busy; 4 and 3 GB/s
    copy(10, 40, 1, PINNED, DEVICE, stream=28, size=120_000, corr=2)
    copy(40, 60, 1, PINNED, DEVICE, stream=28, size=80_000, corr=3)
    copy(20, 95, 1, PAGEABLE, DEVICE, stream=29, size=225_000, corr=4)
    trace.call(5 * US, 96 * US, "cudaMemcpyAsync_v3020", corr=4)  # returns when the copy is done
    # the others
    copy(60, 61, 2, DEVICE, PAGEABLE, stream=7, size=4, corr=5)
    copy(61, 62, 2, DEVICE, PAGEABLE, stream=30, size=4, corr=6)
    copy(62, 63, 2, DEVICE, PAGEABLE, stream=31, size=4, corr=7)
    trace.wait(stream=31, event=INVALID, corr=8, start=62 * US, end=63 * US)
    copy(63, 64, 2, DEVICE, UNKNOWN, stream=7, size=4, corr=9)
    copy(64, 65, 2, DEVICE, DEVICE, stream=7, size=4, corr=10)
    copy(65, 66, 8, DEVICE, DEVICE, stream=7, size=4, corr=11)
    copy(66, 67, 10, DEVICE, DEVICE, stream=7, size=4, corr=12, srcDeviceId=0, dstDeviceId=1)
    copy(67, 68, 42, DEVICE, 42, stream=7, size=4, corr=13)
    trace.memset(68 * US, 69 * US, stream=7, size=64, corr=14)
    trace.kernel(96 * US, 99 * US, ALL_REDUCE, stream=20, corr=15)
    # waits for stream 28 from 10 to 60 (launched at 1), and runs 97..98
    trace.record(stream=28, event=1, sync_id=5, corr=20)
    trace.wait(stream=40, event=1, sync_id=5, corr=21)
    trace.call(0, 1 * US, corr=22).kernel(97 * US, 98 * US, GEMM, stream=40, corr=22)
    return trace.write(tmp_path_factory.mktemp("copies") / "trace.sqlite")


@pytest.fixture(scope="module")
def copies(path: Path) -> dict[tuple[Any, ...], Row]:
    rows = answer(path, "copies", anchor="nvtx:step *")
    assert [row["direction"] for row in rows].index("memset") == len(rows) - 1
    found = {key(row): row for row in rows}
    assert len(found) == len(rows)
    return found


def test_quantities_of_a_direction(copies: dict[tuple[Any, ...], Row]) -> None:
    row = copies[28, "HtoD", "host", "pinned", "device"]
    assert (row["count"], row["bytes"], row["n"], row["pid"]) == (2, 200_000, 1, 100)
    assert (row["work_ms"], row["busy_ms"], row["occupancy_pct"]) == pytest.approx((0.05, 0.05, 50))
    assert row["bandwidth_gbps"] == pytest.approx(4)
    assert (row["engine_busy_ms"], row["engine_occupancy_pct"]) == pytest.approx((0.085, 85))
    assert row["blocking_ms"] == pytest.approx(0.05)
    other = copies[29, "HtoD", "host", "pageable", "device"]
    assert other["bandwidth_gbps"] == pytest.approx(3)
    assert other["blocking_ms"] == 0


def test_no_claim_without_evidence(copies: dict[tuple[Any, ...], Row], path: Path) -> None:
    verdicts = {k: row["verdict"] for k, row in copies.items()}
    # 85 % is not saturated by default, and only the copies of stream 28 block
    assert verdicts.pop((28, "HtoD", "host", "pinned", "device")) == "blocks compute"
    assert set(verdicts.values()) == {"no claim"}
    with nsys_sql.open(path, anchor="nvtx:step *") as model:
        relation = model.run("copies", saturated_pct=80, blocking_pct=51)
        rows = [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]
    for row in rows:
        saturated = row["direction"] == "HtoD"
        assert row["verdict"] == ("engine saturated" if saturated else "no claim")


def test_kinds_and_ways_are_told(copies: dict[tuple[Any, ...], Row]) -> None:
    assert set(copies) == {
        (28, "HtoD", "host", "pinned", "device"),
        (29, "HtoD", "host", "pageable", "device"),
        (7, "DtoH", "host", "device", "pageable"),
        (30, "DtoH", "host", "device", "pageable"),
        (31, "DtoH", "host", "device", "pageable"),
        (7, "DtoH", "host", "device", None),
        (7, "DtoH", "staged peer", "device", "device"),
        (7, "DtoD", "device", "device", "device"),
        (7, "PtoP", "peer", "device", "device"),
        (7, "unknown", "unknown", "device", None),
        (7, "memset", "memset", None, "device"),
    }


def test_pageable_memory_on_a_stream_that_holds_up_the_host(
    copies: dict[tuple[Any, ...], Row],
) -> None:
    flags = {k: row["is_pageable_sync"] for k, row in copies.items()}
    assert flags[29, "HtoD", "host", "pageable", "device"] is True  # its call waited for it
    assert flags[7, "DtoH", "host", "device", "pageable"] is True  # the default stream
    assert flags[31, "DtoH", "host", "device", "pageable"] is True  # the host waits for the stream
    assert flags[30, "DtoH", "host", "device", "pageable"] is False
    assert flags[28, "HtoD", "host", "pinned", "device"] is False
    assert flags[7, "DtoH", "host", "device", None] is None  # nobody can say


def test_the_trace_names_the_default_stream(tmp_path: Path) -> None:
    trace = TraceBuilder().nvtx(0, 100, "step 0").kernel(0, 10, GEMM, stream=14)
    for stream in (7, 14):
        trace.memcpy(20, 30, kind=2, stream=stream, srcKind=DEVICE, dstKind=PAGEABLE)
    trace.raw("TARGET_INFO_CUDA_STREAM", streamId=14, processId=100, contextId=1, flag=3)
    path = trace.write(tmp_path / "trace.sqlite")
    flags = {r["stream_id"]: r["is_pageable_sync"] for r in answer(path, "copies", anchor="nvtx:*")}
    assert flags == {7: False, 14: True}
    streams = answer(path, "streams", anchor="nvtx:*")
    assert {row["stream_id"]: row["is_default"] for row in streams} == {7: False, 14: True}


def test_the_slow_copy_is_found(tmp_path: Path) -> None:
    path = tmp_path / "trace.sqlite"
    truth = simulate(SCENARIOS["slow_copy"], 6, "2026.2.1", path)
    rows = answer(path, "copies", anchor=truth.anchor)
    claimed = [row for row in rows if row["verdict"] != "no claim"]
    assert [key(row) for row in claimed] == [(28, "HtoD", "host", "pinned", "device")]
    planted = sorted(truth.cause.ns.values())
    blocking = sum(row["blocking_max_ms"] for row in rows)
    assert claimed[0]["blocking_min_ms"] * 1e6 <= planted[0]
    assert blocking * 1e6 == pytest.approx(planted[-1], rel=0.01)
    assert claimed[0]["bandwidth_gbps"] == pytest.approx(25, rel=0.05)


# ---- streams


def test_streams(path: Path) -> None:
    rows = answer(path, "streams", anchor="nvtx:step *")
    assert [row["stream_id"] for row in rows] == [29, 28, 7, 20, 30, 31, 40]
    default = rows[2]
    assert (default["is_default"], default["top_class"], default["count"]) == (True, "gemm", 8)
    assert default["classes"] == "gemm 58.8 %, memcpy 35.3 %, memset 5.9 %"
    assert (default["busy_ms"], default["pct_of_iteration"]) == pytest.approx((0.017, 17))
    assert default["span_ms"] == pytest.approx(0.069)  # a span, not busy
    assert (default["first_start_ns"], default["last_end_ns"]) == (0, 69 * US)


def test_streams_without_windows_cover_the_trace(tmp_path: Path) -> None:
    trace = TraceBuilder().kernel(0, 10, GEMM).kernel(5, 25, GEMM).kernel(30, 40, GEMM, stream=9)
    rows = answer(trace.write(tmp_path / "trace.sqlite"), "streams", anchor="nvtx:none")
    assert [(r["stream_id"], r["busy_ms"], r["work_ms"]) for r in rows] == [
        (7, pytest.approx(25e-6), pytest.approx(30e-6)),
        (9, pytest.approx(10e-6), pytest.approx(10e-6)),
    ]
    assert [(r["n"], r["pct_of_iteration"]) for r in rows] == [(0, None)] * 2


# ---- brute force


@pytest.mark.parametrize("seed", range(100, 106))
def test_copies_and_streams_by_definition(seed: int, tmp_path: Path) -> None:
    trace, options = random_trace(seed)
    with nsys_sql.open(trace.write(tmp_path / "trace.sqlite"), **options) as model:
        try:
            model.run("streams").fetchall()
            model.run("copies").fetchall()
        except nsys_sql.NsysSqlError as error:
            assert error.exit_code == 4
            return
        sql = model.con.execute
        windows = sql("SELECT device, iteration, start_ns, end_ns FROM nsys.steady").fetchall()
        ops = sql("SELECT device, process, lane, start_ns, end_ns, context_id, stream_id"
                  " FROM nsys.op").fetchall()  # fmt: skip
        copied = sql("SELECT device, direction, start_ns, end_ns FROM nsys.copy_op").fetchall()
        streams, engines = {}, {}
        for device, iteration, start, end in windows:
            spans: dict[Any, list[tuple[int, int]]] = defaultdict(list)
            for op in ops:
                if op[0] == device:
                    spans[device, iteration, op[1], op[5], op[6]].append(op[3:5])
            for place, each in spans.items():
                streams[place] = (
                    sum(start <= first < end for first, _ in each),
                    sum(len(measure([one], start, end)) for one in each),
                    len(measure(each, start, end)),
                )
            ways: dict[Any, list[tuple[int, int]]] = defaultdict(list)
            for copy in copied:
                if copy[0] == device:
                    ways[device, iteration, copy[1]].append(copy[2:])
            for place, each in ways.items():
                engines[place] = len(measure(each, start, end))
        found = sql("""
            SELECT device, iteration, process, context_id, stream_id,
                sum(count)::BIGINT, sum(work_ns)::BIGINT, sum(added_ns)::BIGINT
            FROM nsys.stream_window WHERE iteration IS NOT NULL GROUP BY ALL
        """).fetchall()
        assert {row[:5]: row[5:] for row in found if any(row[5:])} == {
            place: row for place, row in streams.items() if any(row)
        }
        found = sql("""
            SELECT device, iteration, direction, sum(engine_added_ns)::BIGINT
            FROM nsys.copy_window GROUP BY ALL
        """).fetchall()
        assert {row[:3]: row[3] for row in found if row[3]} == {
            place: ns for place, ns in engines.items() if ns
        }
