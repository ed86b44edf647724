"""Launches, by hand-made numbers and by what the simulator planted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import nsys_sql
from fuzz import GEMM
from simulator import SCENARIOS, simulate
from test_communication import answer
from tracebuilder import TraceBuilder

Row = dict[str, Any]
US = 1000


def metrics(rows: list[Row], device: int = 0) -> dict[str, Row]:
    return {row["metric"]: row for row in rows if row["device"] == device}


# One character is 1 us; the window is [0, 40).
#
#   calls   a.b.c...........  d                  a 0..1, b 2..3, c 4..5, d 20..24
#   kernels   AAAAAAAABBBBCCCC....DDDD           A 2..10, B 10..14, C 14..18, D 23..27
@pytest.fixture(scope="module")
def by_hand(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Row]:
    trace = TraceBuilder()
    trace.nvtx(0, 40 * US, "step 0")
    own = [(0, 1, 2, 10), (2, 3, 10, 14), (4, 5, 14, 18), (20, 24, 23, 27)]
    for corr, (call, back, start, end) in enumerate(own, 1):
        trace.call(call * US, back * US, corr=corr)
        trace.kernel(start * US, end * US, GEMM, corr=corr)
    # the driver call inside the first one
    trace.call(100, 900, "cuLaunchKernel", corr=1, event_class=1)
    # a graph of two kernels, a kernel without a call, and one before its call
    trace.call(25 * US, 26 * US, "cudaGraphLaunch_v10000", corr=10)
    trace.kernel(28 * US, 29 * US, GEMM, corr=10, node=1)
    trace.kernel(29 * US, 30 * US, GEMM, corr=10, node=2)
    trace.kernel(30 * US, 31 * US, GEMM, corr=11)
    trace.call(36 * US, 37 * US, corr=12)
    trace.kernel(31 * US, 32 * US, GEMM, corr=12)
    # host work that is no launch, and what belongs to no window
    trace.call(38 * US, 39 * US, "cudaLaunchHostFunc_v10000", corr=13)
    trace.call(41 * US, 42 * US, corr=14).kernel(43 * US, 44 * US, GEMM, corr=14)
    # launched inside, starts outside: in the queue from 39 to 40
    trace.call(38 * US, 39 * US, corr=15).kernel(44 * US, 45 * US, GEMM, corr=15)
    path = trace.write(tmp_path_factory.mktemp("launches") / "trace.sqlite")
    return metrics(answer(path, "launches", anchor="nvtx:step *"))


def test_latency_of_kernels_with_a_call_of_their_own(by_hand: dict[str, Row]) -> None:
    row = by_hand["latency_from_call_start"]  # 2, 8, 10, 3
    assert (row["per"], row["unit"], row["n"]) == ("kernel", "us", 4)
    assert (row["min"], row["median"], row["max"]) == (2, 5.5, 10)
    assert row["p90"] == pytest.approx(9.4)
    row = by_hand["latency_from_call_end"]  # 1, 7, 9, and D starts while its call runs
    assert (row["min"], row["median"], row["max"]) == (0, 4, 9)
    assert by_hand["kernels_started_before_call_returned"]["median"] == 1


def test_the_rest_is_counted_apart(by_hand: dict[str, Row]) -> None:
    expected = {
        "kernels": 8,
        "kernels_with_own_call": 4,
        "kernels_of_shared_call": 2,
        "kernels_without_call": 1,
        "kernels_before_call": 1,
        "api_calls": 9,
        "kernel_launch_calls": 7,  # the inner driver call too
        "graph_launch_calls": 1,
    }
    assert {name: by_hand[name]["median"] for name in expected} == expected


def test_queue_depth_is_weighted_by_time(by_hand: dict[str, Row]) -> None:
    # A 1..2; B 3..10; C 5..14; the last one from 39: depth 2 for 5 us, 1 for 1+2+4+1
    assert by_hand["queue_depth_max"]["median"] == 2
    assert by_hand["queue_depth_median"]["median"] == 0
    assert by_hand["queue_empty"]["median"] == pytest.approx(0.027)


def test_launch_bound_kernels(by_hand: dict[str, Row]) -> None:
    # A from 0 to the end of its call, D from 18 to its start; the graph from 27 is issued already;
    # the kernel at 43 is bound in no window, but 32..40 of its time is lost in this one
    assert by_hand["launch_bound_kernels"]["median"] == 2
    assert by_hand["launch_starved"]["median"] == pytest.approx(0.014)


def test_the_launch_bound_run_is_told(tmp_path: Path) -> None:
    path = tmp_path / "trace.sqlite"
    truth = simulate(SCENARIOS["launch_bound"], 6, "2026.2.1", path)
    found = metrics(answer(path, "launches", anchor=truth.anchor))
    starved = [m["launch_starved"] for m in truth.budget.values()]
    assert found["launch_starved"]["min"] == pytest.approx(min(starved) / 1e6)
    assert found["queue_depth_median"]["max"] == 0
    assert found["launch_bound_kernels"]["median"] > 0.9 * found["kernels"]["median"]


def test_a_host_that_is_ahead_is_told(tmp_path: Path) -> None:
    path = tmp_path / "trace.sqlite"
    truth = simulate(SCENARIOS["plain"], 6, "2026.2.1", path)
    found = metrics(answer(path, "launches", anchor=truth.anchor))
    assert found["queue_depth_median"]["median"] > 1
    assert found["latency_from_call_end"]["p99"] > 100
    assert found["launch_bound_kernels"]["median"] < 0.5 * found["kernels"]["median"]


def test_graph_launches_have_no_latency(tmp_path: Path) -> None:
    path = tmp_path / "trace.sqlite"
    truth = simulate(SCENARIOS["graphs_node"], 6, "2026.2.1", path)
    found = metrics(answer(path, "launches", anchor=truth.anchor))
    assert found["graph_launch_calls"]["median"] == 2
    own = found["kernels_with_own_call"]["median"]
    assert own + found["kernels_of_shared_call"]["median"] == found["kernels"]["median"]
    assert found["latency_from_call_start"]["n"] == own * found["kernels"]["n"]


SWEEP = "device INT, segment INT, start_ns INT, end_ns INT, role TEXT, item_id INT, process INT"
OP = "op_id INT, device INT, start_ns INT, end_ns INT, role TEXT, process INT, correlation_id INT"
LAUNCH = (
    "op_id INT, device INT, segment INT, start_ns INT, end_ns INT, role TEXT, process INT, "
    "correlation_id INT, thread INT, call_start_ns INT, call_end_ns INT"
)


def test_operations_of_no_length_have_their_call_and_stretch_too(ask: Any) -> None:
    tables = {
        "nsys.sweep": (
            f"{SWEEP}, correlation_id INT",
            [(0, 1, 10, 20, "compute", 7, 3, 1), (0, 1, 40, None, None, None, None, None)],
        ),
        "nsys.op": (
            OP,
            [(7, 0, 10, 20, "compute", 3, 1), (8, 0, 50, 50, "comm", 3, 2),
             (9, 5, 60, 60, "comm", 4, 2)],
        ),
        "nsys.segment": (
            "device INT, segment INT, start_ns INT, end_ns INT",
            [(0, 0, -9, 5), (0, 1, 5, 40), (0, 2, 40, 99)],
        ),
        "nsys.outermost_call": (
            "start_ns INT, end_ns INT, process INT, thread INT, correlation_id INT",
            [(1, 2, 3, 33, 1), (41, 42, 3, 33, 2)],
        ),
    }  # fmt: skip
    assert sorted(ask("steps/op_launch", tables)) == [
        (7, 0, 1, 10, 20, "compute", 3, 1, 33, 1, 2),
        (8, 0, 2, 50, 50, "comm", 3, 2, 33, 41, 42),
        (9, 5, 0, 60, 60, "comm", 4, 2, None, None, None),  # no window, and another process
    ]


CALL = "start_ns BIGINT, end_ns BIGINT, process INT, thread INT, correlation_id BIGINT, name_id INT"


def outermost(ask: Any, calls: list[tuple[Any, ...]]) -> tuple[list[Any], list[Any]]:
    """The rows of doubled_call and outermost_call for some rows of nsys.call."""
    doubled = ask("steps/doubled_call", {"nsys.call": (CALL, calls)})
    tables = {"nsys.call": (CALL, calls), "nsys.doubled_call": (CALL, doubled)}
    return doubled, ask("steps/outermost_call", tables)


def test_of_calls_with_one_id_the_outermost_launched(ask: Any) -> None:
    inner, first, longest = (4, 5, 3, 33, 7, 1), (1, 2, 3, 34, 7, 2), (1, 8, 3, 33, 7, 3)
    beside, far, other = (3, 4, 3, 33, 8, 1), (3, 4, 3, 33, 64, 1), (3, 4, 9, 33, 7, 1)
    doubled, found = outermost(ask, [inner, first, longest, beside, far, other])
    # the whole block of 64 ids is looked at again, and that of another process is not
    assert sorted(doubled) == sorted([longest, beside])
    assert sorted(found) == sorted([longest, beside, far, other])


def test_calls_without_an_id_or_a_process_double_nothing(ask: Any) -> None:
    alone, nothing, nobody = (3, 4, 3, 33, 8, 1), (1, 2, 3, 33, None, 1), (1, 2, None, 33, 9, 1)
    calls = [alone, nothing, nothing, nobody, nobody]
    assert outermost(ask, calls) == ([], calls)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            st.integers(0, 3),
            st.integers(0, 3),
            st.integers(1, 2),
            st.just(5),
            st.sampled_from([-(2**63), -65, -64, -1, 0, 1, 62, 63, 64, 127, 2**63 - 1]),
            st.just(1),
        ),
        max_size=12,
    )
)
def test_each_id_has_its_outermost_call_once(ask: Any, calls: list[tuple[Any, ...]]) -> None:
    expected: dict[tuple[int, int], tuple[Any, ...]] = {}
    for call in sorted(calls, key=lambda c: (c[0], -c[1])):
        expected.setdefault((call[2], call[4]), call)
    _, found = outermost(ask, calls)
    assert sorted(found) == sorted(expected.values())


def test_one_id_for_everything_does_not_pair_everything(tmp_path: Path) -> None:
    # 20 000 kernels and as many calls: 400 million pairs, were they joined
    trace = TraceBuilder()
    for number in range(20_000):
        trace.call(number * 10, number * 10 + 5, corr=1)
        trace.kernel(number * 10 + 6, number * 10 + 8, GEMM, corr=1)
    path = trace.write(tmp_path / "trace.sqlite")
    with nsys_sql.open(path) as model:
        gaps = model.query("SELECT count(*), count(DISTINCT op_id), max(call_start_ns), "
                           "max(call_end_ns) FROM nsys.gap_cut").fetchone()  # fmt: skip
        assert gaps == (20_000, 20_000, 0, 5)
        assert model.query("SELECT count(*), max(call_end_ns) FROM nsys.op_launch").fetchone() == (
            20_000, 5,
        )  # fmt: skip


def test_a_call_of_kernels_on_two_devices_has_no_latency(ask: Any) -> None:
    def row(op_id: int, device: int, corr: int, start: int) -> tuple[Any, ...]:
        return (op_id, device, 1, start, start + 1, "compute", 3, corr, 33, 1, 2)

    rows = [row(1, 0, 5, 10), row(2, 1, 5, 10), row(3, 0, 6, 20), row((1 << 40) + 1, 0, 6, 30)]
    tables = {
        "nsys.op_launch": (LAUNCH.replace("op_id INT", "op_id BIGINT"), rows),
        "nsys.steady": ("device INT, start_ns INT, end_ns INT", [(0, 5, 50), (1, 5, 50)]),
        "nsys.graph_op": ("op_id BIGINT", []),
    }
    found = {each[2]: each[-1] for each in ask("steps/kernel_launch", tables)}
    assert found == {1: "many", 2: "many", 3: "one"}
    # the other kernel before the first window, behind the last, and on a device without windows
    rows = [row(1, 0, 5, 10), row(2, 0, 5, 3), row(3, 0, 6, 20), row(4, 0, 6, 70)]
    rows += [row(5, 0, 7, 30), row(6, 9, 7, 31), row(7, 0, 8, 40), row(8, 9, 9, 40)]
    # an id of another process is another call, and no id is none
    rows += [(*row(op, 9, 8, 41)[:6], 4, *row(op, 9, 8, 41)[7:]) for op in (9, 12)]
    rows += [row(10, 0, None, 42), row(11, 0, None, 43)]
    tables["nsys.op_launch"] = (tables["nsys.op_launch"][0], rows)
    found = {each[2]: each[-1] for each in ask("steps/kernel_launch", tables)}
    one = dict.fromkeys((7, 10, 11), "one")
    # the one behind the last window was launched inside it
    assert found == {**dict.fromkeys((1, 3, 4, 5), "many"), **one}
