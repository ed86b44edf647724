"""The derived intervals as trace events: valid, complete, nested, with arrows to what waited."""

from __future__ import annotations

import gzip
import itertools
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import nsys_sql
from nsys_sql.cli import execute
from test_report import MS, US, write_trace
from tracebuilder import TraceBuilder

ANCHOR = ["--anchor", "nvtx:step *"]
Event = dict[str, Any]


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_trace(tmp_path_factory.mktemp("timeline") / "trace.sqlite")


def events(trace: Path, target: Path, *options: str) -> list[Event]:
    assert execute(["timeline", str(trace), "-o", str(target), *options]) == 0
    packed = target.read_bytes()
    text = gzip.decompress(packed) if target.suffix == ".gz" else packed
    return json.loads(text)["traceEvents"]


def of(found: list[Event], category: str) -> list[Event]:
    return [event for event in found if event.get("cat") == category]


def test_windows_causes_streams_and_arrows(trace: Path, tmp_path: Path) -> None:
    found = events(trace, tmp_path / "t.json", *ANCHOR)
    assert [e["name"] for e in of(found, "iteration")] == [f"iteration {i}" for i in range(3)]
    blocking = [e for e in of(found, "cause") if e["name"] == "blocking"]
    assert [(e["ts"], e["dur"]) for e in blocking] == [(300 + 1000 * i, 200) for i in range(3)]
    assert {e["name"] for e in of(found, "nccl")} == {"nccl"}
    assert {e["dur"] for e in of(found, "nccl")} == {250}
    arrows = of(found, "blocked by")
    assert [e["ph"] for e in arrows] == ["s", "f"] * 3
    for start, end in zip(arrows[::2], arrows[1::2], strict=True):
        assert start["id"] == end["id"]
        assert start["ts"] == pytest.approx(end["ts"] - 0.001)
        assert start["tid"] != end["tid"]
    # an arrow binds to the slice that holds its time
    for arrow in arrows:
        assert any(
            e["ph"] == "X"
            and e["tid"] == arrow["tid"]
            and e["ts"] <= arrow["ts"] <= e["ts"] + e["dur"]
            for e in found
        )
    names = {e["args"]["name"] for e in found if e["name"] == "thread_name"}
    assert {"iterations", "why no compute"} < names
    assert any("evil<</script>" in e["args"].get("name", "") for e in found if "args" in e)


def test_packed_is_the_same(trace: Path, tmp_path: Path) -> None:
    plain = events(trace, tmp_path / "t.json", *ANCHOR)
    assert events(trace, tmp_path / "t.json.gz", *ANCHOR) == plain
    head = (tmp_path / "t.json.gz").read_bytes()[:10]
    assert head[3:8] == bytes(5)  # no name and no time: the same trace gives the same bytes


def test_iterations_limit_it(trace: Path, tmp_path: Path) -> None:
    found = events(trace, tmp_path / "t.json", *ANCHOR, "--iterations", "1:2")
    kernels = [e for e in found if e["ph"] == "X" and e["tid"] >= 10]
    assert len(kernels) == 3
    assert {e["ts"] // 1000 for e in kernels} == {1}


def test_slices_of_a_track_nest_and_keep_every_nanosecond(tmp_path: Path) -> None:
    """Kernels of one stream overlap (dependent launch): two tracks, no slice across another."""
    base = 1_700_000_000 * 1_000_000_000 // 1000
    trace = TraceBuilder()
    for i in range(9):
        trace.call(base + i * 10, base + i * 10 + 1, corr=i + 1)
        trace.kernel(base + 100 * US + i * 1001, base + 100 * US + i * 1001 + 1700, corr=i + 1)
    path = trace.write(tmp_path / "trace.sqlite")
    found = events(path, tmp_path / "t.json")
    tracks = defaultdict(list)
    for event in found:
        if event["ph"] == "X" and event["tid"] >= 10:
            begin = round(event["ts"] * 1000)
            tracks[event["tid"]].append((begin, begin + round(event["dur"] * 1000)))
            assert event["args"]["duration_ns"] == 1700
    assert sum(map(len, tracks.values())) == 9
    assert tracks[10][0][0] == base + 100 * US
    for slices in tracks.values():
        slices.sort()
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(slices))


def test_without_iterations_the_streams_are_there(tmp_path: Path) -> None:
    trace = TraceBuilder().call(0, 10, corr=1).kernel(20, MS, corr=1)
    found = events(trace.write(tmp_path / "trace.sqlite"), tmp_path / "t.json")
    assert [e["dur"] for e in of(found, "gemm")] == [(MS - 20) / 1000]
    assert of(found, "iteration") == []


def test_perfetto_protobuf(trace: Path, tmp_path: Path) -> None:
    pytest.importorskip("perfetto.trace_builder")
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

    target = tmp_path / "t.pftrace"
    assert execute(["timeline", str(trace), "-o", str(target), *ANCHOR]) == 0
    read = Trace()
    read.ParseFromString(target.read_bytes())
    named = [p.track_descriptor.name for p in read.packet if p.HasField("track_descriptor")]
    assert {"GPU 0", "iterations", "why no compute"} < set(named)
    points = [p for p in read.packet if p.HasField("track_event")]
    begins = [p for p in points if p.track_event.type == p.track_event.TYPE_SLICE_BEGIN]
    ends = [p for p in points if p.track_event.type == p.track_event.TYPE_SLICE_END]
    # 3 iterations, 9 kernels, and a launch-starved and a blocking piece or more in each step
    assert len(begins) == len(ends) >= 18
    assert sum(len(p.track_event.flow_ids) for p in points) == 3


def test_perfetto_takes_times_before_zero_and_numbers_of_any_size(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("perfetto.trace_builder")
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

    trace = TraceBuilder().call(-2000, -1990, corr=1).kernel(-1000, MS, corr=1)
    path = trace.write(tmp_path / "trace.sqlite")
    (tmp_path / "odd.sql").write_text(
        "-- odd — what?\n--\n-- @grain one row per device\n"
        "-- @column device BIGINT - d\n-- @column start_ns BIGINT ns s\n"
        "-- @column duration_ns BIGINT ns l\n-- @column small BIGINT - n\n"
        "-- @column above UBIGINT - n\n-- @column huge HUGEINT - n\n-- @column yes BOOLEAN - n\n"
        "SELECT d.device, d.start_ns, d.duration_ns, -1::BIGINT AS small,\n"
        "    18446744073709551615::UBIGINT AS above, -((1::HUGEINT << 100)) AS huge, true AS yes\n"
        "FROM (VALUES (0::BIGINT, -3000::BIGINT, 10::BIGINT), (-7, 5, 5), (1099511627776, 5, 5),\n"
        "    (0, 5, 9223372036854775807)) AS d(device, start_ns, duration_ns)\n"
        "ORDER BY d.start_ns, d.device;\n",
        encoding="utf-8",
    )
    target = tmp_path / "t.pftrace"
    given = ["timeline", str(path), "-o", str(target), "--recipes", str(tmp_path / "odd.sql")]
    assert execute(given) == 0
    said = capsys.readouterr().err
    assert "t.pftrace holds no times before 0: all are 3000 ns later there" in said
    assert "1 rows have no device, start or end" in said
    read = Trace()
    read.ParseFromString(target.read_bytes())
    begins = [p for p in read.packet if p.track_event.type == p.track_event.TYPE_SLICE_BEGIN]
    found = {p.track_event.name: p.timestamp for p in begins}
    assert found["gemm"] == 2000
    own = [p for p in begins if p.track_event.name == "odd"]
    assert sorted(p.timestamp for p in own) == [0, 3005, 3005]
    notes = {note.name: note for note in own[0].track_event.debug_annotations}
    assert notes["small"].int_value == -1 and notes["above"].uint_value == (1 << 64) - 1
    assert notes["huge"].string_value == str(-(1 << 100)) and notes["yes"].bool_value is True
    uuids = [p.track_descriptor.uuid for p in read.packet if p.HasField("track_descriptor")]
    assert len(uuids) == len(set(uuids))
    # the same in JSON needs no shift
    assert events(path, tmp_path / "t.json")[-1]["ts"] == -1 and not capsys.readouterr().err


def test_windows_of_threads_that_overlap_share_no_track(tmp_path: Path) -> None:
    trace = TraceBuilder()
    for i in range(6):
        trace.nvtx(i * 5 * US, i * 5 * US + 10 * US, f"step {i}", tid=100 + i % 2)
        trace.call(i * 5 * US + 10, i * 5 * US + 20, corr=i + 1)
        trace.kernel(i * 5 * US + 30, i * 5 * US + 4 * US, corr=i + 1)
    path = trace.write(tmp_path / "trace.sqlite")
    found = of(events(path, tmp_path / "t.json", *ANCHOR), "iteration")
    tracks: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for event in found:
        tracks[event["tid"]].append((event["ts"], event["dur"]))
    assert sorted(tracks.values()) == [
        [(0, 10), (10, 10), (20, 10)],
        [(5, 10), (15, 10), (25, 10)],
    ]


def test_a_package_that_is_missing_is_named(
    trace: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delitem(sys.modules, "nsys_sql.perfetto_trace", raising=False)
    monkeypatch.delattr(nsys_sql, "perfetto_trace", raising=False)
    monkeypatch.setitem(sys.modules, "perfetto.trace_builder.proto_builder", None)
    assert execute(["timeline", str(trace), "-o", str(tmp_path / "t.pftrace")]) == 2
    assert "nsys-sql[perfetto]" in capsys.readouterr().err
    assert execute(["timeline", str(trace), "-o", str(tmp_path / "t.txt")]) == 2
    assert ".json.gz" in capsys.readouterr().err
