"""One small trace per rule of the measuring method, with numbers worked out by hand.

Every case runs against the oracle and against the product, so a number that both get wrong the
same way is still caught here.  In the timelines one character is one nanosecond unless a scale
is given; `c` is the launch call, capital letters are kernels (A, B, K compute; N communication).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fuzz import ALL_REDUCE as NCCL
from fuzz import DEEP_EP, ELEMENTWISE, FLASH, GEMM, SPIN
from oracle import Oracle
from tracebuilder import INVALID, TraceBuilder

Row = dict[str, Any]

CLASSES: dict[str | None, tuple[str, str]] = {
    GEMM: ("gemm", "compute"),
    FLASH: ("attention", "compute"),
    ELEMENTWISE: ("elementwise", "compute"),
    NCCL: ("nccl", "comm"),
    DEEP_EP: ("transport", "comm"),
    SPIN: ("wait", "wait"),
    None: ("other", "compute"),
}


class Trace(TraceBuilder):
    """A builder that can launch: a call and the kernel that it starts."""

    def launch(
        self,
        corr: int,
        call: tuple[int, int],
        run: tuple[int, int],
        name: str = GEMM,
        **place: Any,
    ) -> Trace:
        self.call(*call, corr=corr, pid=place.get("pid", 100))
        self.kernel(*run, name, corr=corr, **place)
        return self

    def edge(
        self, corr: int, source: int, target: int, event: int = 1, sync_id: int | None = None
    ) -> Trace:
        """`target` waits for what stands on `source` now: record at corr, wait at corr + 1."""
        if sync_id is None:
            sync_id = corr
        self.record(stream=source, event=event, sync_id=sync_id, corr=corr)
        self.wait(stream=target, event=event, sync_id=sync_id, corr=corr + 1)
        return self


class Engine:
    """Answers about a trace, from the oracle or from the product."""

    def __init__(self, kind: str, directory: Path) -> None:
        self.kind = kind
        self.path = directory / "trace.sqlite"
        self._told: dict[str, list[Row]] = {}

    def _ask(self, trace: TraceBuilder, recipe: str, **options: Any) -> list[Row]:
        asked = repr((trace.version, trace.rows, recipe, options))
        if asked not in self._told:  # what was said of a trace is said again
            self._told[asked] = self._answer(trace, recipe, **options)
        return [dict(row) for row in self._told[asked]]

    def _answer(self, trace: TraceBuilder, recipe: str, **options: Any) -> list[Row]:
        trace.write(self.path)
        if self.kind == "product":
            pytest.importorskip("nsys_sql.session")
            from fuzz import run_product

            return run_product(self.path, recipe, **options)
        oracle = Oracle(self.path, CLASSES.__getitem__)
        if recipe == "gaps":
            return [gap.row() for gap in oracle.all_gaps]
        windows = oracle.windows(**options)
        if recipe == "budget-windows":
            return list(oracle.budget_rows(windows))
        return [
            {
                "device": w.device,
                "iteration": w.iteration,
                "start_ns": w.start,
                "end_ns": w.end,
                "status": w.status,
            }
            for w in windows
        ]

    def gaps(self, trace: TraceBuilder) -> list[Row]:
        rows = self._ask(trace, "gaps", anchor="kernel:*")
        return sorted(rows, key=lambda row: (row["device"], row["gap_start_ns"]))

    def cuts(self, trace: TraceBuilder) -> list[tuple[Any, ...]]:
        """(start, end, starved, blocking, stalled, evidence) of each gap."""
        return [
            (
                row["gap_start_ns"],
                row["gap_end_ns"],
                row["launch_starved_ns"],
                row["blocking_ns"],
                row["dependency_stalled_ns"],
                row["evidence"],
            )
            for row in self.gaps(trace)
        ]

    def last_gap(self, trace: TraceBuilder) -> Row:
        return self.gaps(trace)[-1]

    def windows(self, trace: TraceBuilder, anchor: str, **options: Any) -> list[tuple[Any, ...]]:
        """(start, end, status) of each window, in order; with the device where it is not 0."""
        rows = self._ask(trace, "iterations", anchor=anchor, **options)
        rows.sort(key=lambda row: (row["device"], row["iteration"]))
        for device in {row["device"] for row in rows}:
            ordinals = [row["iteration"] for row in rows if row["device"] == device]
            assert ordinals == list(range(len(ordinals)))
        return [
            (row["start_ns"], row["end_ns"], row["status"])
            + ((row["device"],) if row["device"] else ())
            for row in rows
        ]

    def budget(self, trace: TraceBuilder, anchor: str, **options: Any) -> Row:
        """The metrics of the only steady window."""
        (row,) = self._ask(trace, "budget-windows", anchor=anchor, **options)
        return {
            "ordinal" if name == "iteration" else name.removesuffix("_ns"): value
            for name, value in row.items()
        }


@pytest.fixture(params=["oracle", "product"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Engine:
    return Engine(request.param, tmp_path)


# ======================================================== section 6: the three pieces of a gap
def test_a_gap_is_starved_until_the_call_ends(engine: Engine) -> None:
    # 0         10        20        30        40        50        60
    # cc        AAAAAAAAAA          ccccc               KKKKKKKKKK
    trace = Trace().launch(1, (0, 2), (10, 20)).launch(2, (30, 35), (50, 60))
    assert engine.cuts(trace) == [
        (0, 10, 2, 0, 8, "none"),
        (20, 50, 15, 0, 15, "resolved"),
    ]


def test_a_call_that_ends_after_its_kernel_began_starves_the_whole_gap(engine: Engine) -> None:
    # 0         10        20        30        40        50   55
    # cc        AAAAAAAAAA          cccccccccccccccccccccccccc
    #                                                   KKKKKKKKKK
    trace = Trace().launch(1, (0, 2), (10, 20)).launch(2, (30, 55), (50, 60))
    assert engine.cuts(trace)[1] == (20, 50, 30, 0, 0, "resolved")
    assert engine.last_gap(trace)["issue_ns"] == 50


def test_skew_is_an_unknown_issue_time(engine: Engine) -> None:
    # 20        30        40        50   55
    # A|                            KKKKKKKKKK
    #                                    ccccc   the call starts after the kernel
    trace = Trace().launch(1, (0, 2), (10, 20)).launch(2, (55, 58), (50, 60))
    gap = engine.last_gap(trace)
    assert (gap["issue_ns"], gap["launch_starved_ns"], gap["dependency_stalled_ns"]) == (
        None,
        0,
        30,
    )
    assert (gap["evidence"], gap["producer_name"], gap["producer_end_ns"]) == (
        "no_launch",
        GEMM,
        20,
    )


def test_a_lost_call_leaves_its_operation_in_the_order(engine: Engine) -> None:
    # 0         10        20        30        40        50
    # cc cc     AAAAAAAAAANNNNNNNNNNNNNNNNNNNN          KKKK     N has no call, but precedes K
    trace = Trace().launch(1, (0, 2), (10, 20)).launch(3, (4, 6), (50, 54))
    trace.kernel(20, 40, NCCL, corr=2)
    assert engine.cuts(trace)[1] == (20, 50, 0, 20, 10, "resolved")
    assert engine.last_gap(trace)["comm_blocking_ns"] == 20


def test_a_kernel_without_a_call_has_no_launch(engine: Engine) -> None:
    # 10        20        30        40        50
    # AAAAAAAAAANNNNNNNNNNNNNNNNNNNN          KKKK     K has no call
    trace = Trace().launch(1, (0, 2), (10, 20)).launch(2, (4, 6), (20, 40), NCCL)
    trace.kernel(50, 54, GEMM, corr=3)
    assert engine.cuts(trace)[1] == (20, 50, 0, 20, 10, "no_launch")


def test_the_producer_blocks_from_the_issue_on(engine: Engine) -> None:
    # 10        20        30        40        50
    # AAAAAAAAAANNNNNNNNNNNNNNNNNNNN          KKKK
    #           ccccccccccc (20-31)                     starved 11, blocking 31-40, stalled 10
    trace = Trace().launch(1, (0, 2), (10, 20)).launch(2, (4, 6), (20, 40), NCCL)
    trace.launch(3, (20, 31), (50, 54))
    gap = engine.last_gap(trace)
    assert (gap["launch_starved_ns"], gap["blocking_ns"], gap["dependency_stalled_ns"]) == (
        11,
        9,
        10,
    )
    assert gap["comm_blocking_ns"] == 9
    # ... and the producer ran during all of the starved part.
    assert gap["launch_starved_shadowed_ns"] == 11


def test_shadow_is_only_where_the_producer_ran(engine: Engine) -> None:
    # 10        20    26   31         44    50
    # AAAAAAAAAA      NNNNN                 KKKK      call 20-44: starved 24, shadowed 26-31
    trace = Trace().launch(1, (0, 2), (10, 20)).launch(2, (4, 6), (26, 31), NCCL)
    trace.launch(3, (20, 44), (50, 54))
    gap = engine.last_gap(trace)
    assert (gap["launch_starved_ns"], gap["launch_starved_shadowed_ns"]) == (24, 5)
    assert (gap["blocking_ns"], gap["dependency_stalled_ns"]) == (0, 6)


def test_a_producer_that_outlasts_the_gap_is_cut_at_its_end(engine: Engine) -> None:
    # N overlaps K (programmatic launch): 20-60, K 50-54 on the same stream
    trace = Trace().launch(1, (0, 2), (10, 20)).launch(2, (4, 6), (20, 60), NCCL)
    trace.launch(3, (7, 8), (50, 54))
    assert engine.cuts(trace)[1] == (20, 50, 0, 30, 0, "resolved")


def test_the_double_call_is_the_outermost(engine: Engine) -> None:
    # runtime call 30-40 around a driver call 32-36 under one id: issue is 40
    trace = Trace().launch(1, (0, 2), (10, 20)).launch(2, (30, 40), (50, 60))
    trace.call(32, 36, "cuLaunchKernel", corr=2, event_class=1)
    assert engine.last_gap(trace)["issue_ns"] == 40


def test_of_calls_with_one_start_the_longest_is_outermost(engine: Engine) -> None:
    trace = Trace().launch(1, (0, 2), (10, 20)).launch(2, (30, 34), (50, 60))
    trace.call(30, 41, corr=2).call(31, 45, corr=2)
    assert engine.last_gap(trace)["issue_ns"] == 41


def test_backtrace_copies_are_no_calls(engine: Engine) -> None:
    trace = Trace().launch(1, (0, 2), (10, 20)).launch(2, (30, 34), (50, 60))
    trace.call(22, 49, "cudaLaunchKernel", corr=2, event_class=67)
    assert engine.last_gap(trace)["issue_ns"] == 34


def test_calls_join_within_their_process(engine: Engine) -> None:
    # another process has a call with the same id, long before
    trace = Trace().launch(1, (0, 2), (10, 20)).launch(2, (30, 34), (50, 60))
    trace.call(1, 49, corr=2, pid=200)
    assert engine.last_gap(trace)["issue_ns"] == 34


# ========================================================================= section 6: the gaps
def test_only_compute_ends_a_gap(engine: Engine) -> None:
    # 10   20   30   40   50   60   70   80
    # AAAAA NCCL SPIN copy set       KKKK
    trace = Trace().launch(1, (0, 2), (10, 20)).launch(2, (0, 2), (22, 30), NCCL)
    trace.launch(3, (0, 2), (32, 40), SPIN).memcpy(42, 50, corr=4).memset(52, 60, corr=5)
    trace.launch(6, (0, 2), (70, 80))
    assert [cut[:2] for cut in engine.cuts(trace)] == [(0, 10), (20, 70)]


def test_a_zero_length_kernel_ends_no_gap_but_is_a_producer(engine: Engine) -> None:
    # 10        20        30        40
    # AAAAAAAAAA          |Z        KKKK
    trace = Trace().launch(1, (0, 2), (10, 20)).launch(2, (3, 4), (30, 30), FLASH)
    trace.launch(3, (5, 6), (40, 44))
    assert engine.cuts(trace)[1:] == [(20, 40, 0, 10, 10, "resolved")]
    assert engine.last_gap(trace)["producer_name"] == FLASH


def test_compute_of_all_streams_fills_gaps(engine: Engine) -> None:
    # stream 7   AAAAAAAAAA (10-20)             KKKK (40-44)
    # stream 13        BBBBBBBBBB (16-26)
    trace = Trace().launch(1, (0, 2), (10, 20)).launch(2, (0, 2), (16, 26), stream=13)
    trace.launch(3, (0, 2), (40, 44))
    assert [cut[:2] for cut in engine.cuts(trace)] == [(0, 10), (26, 40)]


def test_abutting_kernels_have_no_gap(engine: Engine) -> None:
    trace = Trace().launch(1, (0, 2), (10, 20)).launch(2, (0, 2), (20, 30))
    assert [cut[:2] for cut in engine.cuts(trace)] == [(0, 10)]


def test_the_first_gap_starts_with_the_report(engine: Engine) -> None:
    # an NVTX range of another process opens at -40, a mark at -90 is no range
    trace = Trace().launch(1, (0, 2), (10, 20))
    trace.nvtx(-40, -30, "elsewhere", pid=200).nvtx(-90, None, "mark", event_type=34)
    assert engine.cuts(trace) == [(-40, 10, 42, 0, 8, "none")]


def test_the_first_gap_counts_the_calls_of_the_report(engine: Engine) -> None:
    trace = Trace().launch(1, (0, 2), (10, 20)).call(-7, -6, "cudaFree", pid=200, corr=9)
    assert engine.cuts(trace)[0][:3] == (-7, 10, 9)


def test_of_kernels_that_start_together_the_lowest_id_ends_the_gap(engine: Engine) -> None:
    trace = Trace().launch(1, (0, 2), (10, 20))
    trace.launch(3, (21, 22), (40, 50), FLASH, stream=13)
    trace.launch(2, (21, 26), (40, 44), ELEMENTWISE)
    trace.kernel(40, 44, GEMM, corr=None)
    gap = engine.last_gap(trace)
    assert (gap["next_kernel"], gap["issue_ns"]) == (ELEMENTWISE, 26)


@pytest.mark.parametrize("pids", [(100, 200), (200, 100)])
def test_of_kernels_with_one_id_that_start_together_the_first_process_ends_the_gap(
    engine: Engine, pids: tuple[int, int]
) -> None:
    # two processes on one device number their launches alike; process 100 comes first
    trace = Trace().launch(1, (0, 2), (10, 20))
    for pid in pids:
        name, end = {100: (ELEMENTWISE, 22), 200: (FLASH, 26)}[pid]
        trace.launch(2, (21, end), (40, 44), name, pid=pid)
    gap = engine.last_gap(trace)
    assert (gap["next_kernel"], gap["issue_ns"]) == (ELEMENTWISE, 22)


def test_gaps_are_per_device(engine: Engine) -> None:
    # device 0: AAAA 10-20 and 30-40; device 1: 5-60
    trace = Trace().launch(1, (0, 2), (10, 20)).launch(2, (0, 2), (30, 40))
    trace.launch(3, (0, 2), (5, 60), device=1, context=2)
    rows = [(r["device"], r["gap_start_ns"], r["gap_end_ns"]) for r in engine.gaps(trace)]
    assert rows == [(0, 0, 10), (0, 20, 30), (1, 0, 5)]


def test_invalid_rows_take_part_in_nothing(engine: Engine) -> None:
    trace = Trace().launch(1, (0, 2), (10, 20)).launch(3, (0, 2), (40, 50))
    trace.kernel(30, 25, GEMM, corr=2).call(30, 28, corr=3).nvtx(-5, -9, "broken")
    assert engine.cuts(trace) == [(0, 10, 2, 0, 8, "none"), (20, 40, 0, 0, 20, "resolved")]


def test_an_operation_without_correlation_has_no_place(engine: Engine) -> None:
    # N without an id would block K by 20 if it had a place; and K2 has neither call nor producer
    trace = Trace().launch(1, (0, 2), (10, 20)).launch(2, (3, 4), (50, 54))
    trace.kernel(20, 40, NCCL, corr=None).kernel(60, 64, GEMM, corr=None)
    assert engine.cuts(trace)[1:] == [
        (20, 50, 0, 0, 30, "resolved"),
        (54, 60, 0, 0, 6, "no_launch"),
    ]
    assert engine.last_gap(trace)["producer_end_ns"] is None


# ==================================================================== section 6: the producer
def on_two_streams() -> Trace:
    """A on stream 7, N on stream 13; K (id 9) follows on stream 7, if told so, at 50.

    stream 7   AAAAAAAAAA (10-20)            KKKK (50-54)
    stream 13            NNNNNNNNNN (20-40)
    """
    trace = Trace().launch(1, (0, 2), (10, 20)).launch(2, (3, 4), (20, 40), NCCL, stream=13)
    trace.launch(9, (5, 6), (50, 54))
    return trace


def test_another_stream_does_not_block_by_itself(engine: Engine) -> None:
    assert engine.cuts(on_two_streams())[1] == (20, 50, 0, 0, 30, "resolved")


def test_an_event_wait_makes_a_producer(engine: Engine) -> None:
    gap = engine.last_gap(on_two_streams().edge(3, 13, 7))
    assert (gap["blocking_ns"], gap["comm_blocking_ns"], gap["dependency_stalled_ns"]) == (
        20,
        20,
        10,
    )
    assert (gap["evidence"], gap["producer_class"], gap["producer_role"]) == (
        "resolved",
        "nccl",
        "comm",
    )
    assert (gap["producer_start_ns"], gap["producer_end_ns"]) == (20, 40)


def test_relays_follow_through_streams_without_operations(engine: Engine) -> None:
    # 13 -> 98 -> 99 -> 7
    trace = on_two_streams().edge(3, 13, 98).edge(5, 98, 99, event=2).edge(7, 99, 7, event=3)
    assert engine.cuts(trace)[1] == (20, 50, 0, 20, 10, "resolved")


def test_a_record_sees_only_what_is_before_it(engine: Engine) -> None:
    # the record (id 2) stands before N (id 3) on stream 13: K waits for M only
    # stream 13  MMMM (20-24)   NNNNNNNN (30-45)
    trace = Trace().launch(1, (0, 1), (20, 24), NCCL, stream=13)
    trace.launch(3, (2, 3), (30, 45), NCCL, stream=13).launch(5, (4, 5), (50, 54))
    trace.record(stream=13, event=1, sync_id=1, corr=2)
    trace.wait(stream=7, event=1, sync_id=1, corr=4)
    assert engine.last_gap(trace)["producer_end_ns"] == 24


def test_a_record_that_is_issued_later_resolves_nothing(engine: Engine) -> None:
    trace = on_two_streams()
    trace.wait(stream=7, event=1, sync_id=5, corr=3).record(stream=13, event=1, sync_id=5, corr=4)
    assert engine.cuts(trace)[1] == (20, 50, 0, 0, 30, "unresolved")


def test_a_wait_after_the_kernel_does_not_hold_it(engine: Engine) -> None:
    trace = on_two_streams().record(stream=13, event=1, sync_id=5, corr=3)
    trace.wait(stream=7, event=1, sync_id=5, corr=10)
    assert engine.cuts(trace)[1] == (20, 50, 0, 0, 30, "resolved")


def test_an_operation_replaces_what_earlier_waits_brought(engine: Engine) -> None:
    # the wait is before B (id 5) on stream 7, so K follows B alone: 22-30 ends before N (40)
    trace = on_two_streams().edge(3, 13, 7).launch(5, (4, 5), (22, 30), SPIN)
    gap = engine.last_gap(trace)
    assert (gap["producer_class"], gap["producer_end_ns"], gap["blocking_ns"]) == ("wait", 30, 10)


def test_a_reused_handle_is_told_apart_by_its_sync_id(engine: Engine) -> None:
    # event 1 is recorded for N (sync 50), then again on the empty stream 21 (sync 51)
    trace = on_two_streams().record(stream=13, event=1, sync_id=50, corr=3)
    trace.record(stream=21, event=1, sync_id=51, corr=4)
    trace.wait(stream=7, event=1, sync_id=50, corr=5)
    assert engine.cuts(trace)[1] == (20, 50, 0, 20, 10, "resolved")


def test_of_several_records_the_last_before_the_wait_counts(engine: Engine) -> None:
    trace = on_two_streams().record(stream=13, event=1, sync_id=50, corr=3)
    trace.record(stream=7, event=1, sync_id=50, corr=4)
    trace.record(stream=13, event=1, sync_id=50, corr=6)
    trace.wait(stream=7, event=1, sync_id=50, corr=5)
    assert engine.cuts(trace)[1] == (20, 50, 0, 0, 30, "resolved")


@pytest.mark.parametrize("sync_id", [50, None])
@pytest.mark.parametrize("event", [None, INVALID])
def test_a_wait_whose_event_is_not_known_is_a_wait(
    engine: Engine, event: int | None, sync_id: int | None
) -> None:
    # only 4294967295 says that a row is no event wait
    trace = on_two_streams().record(stream=13, event=1, sync_id=50, corr=3)
    trace.wait(stream=7, event=event, sync_id=sync_id, corr=5)  # type: ignore[arg-type]
    found = (0, 20, 10, "resolved") if sync_id else (0, 0, 30, "unresolved")
    expected = found if event is None else (0, 0, 30, "resolved")
    assert engine.cuts(trace)[1][2:] == expected


@pytest.mark.parametrize("no_id", [None, 0, INVALID])
def test_an_absent_sync_id_never_matches(engine: Engine, no_id: int | None) -> None:
    trace = on_two_streams().record(stream=13, event=1, sync_id=no_id, corr=3)
    trace.wait(stream=7, event=1, sync_id=no_id, corr=4)
    trace.record(stream=21, event=7, sync_id=77, corr=8)  # so the file does hold ids
    assert engine.cuts(trace)[1] == (20, 50, 0, 0, 30, "unresolved")


@pytest.mark.parametrize("version", ["2022.4.2", "2024.6.2", "2025.1.3"])
def test_without_any_id_the_last_record_of_the_event_is_inferred(
    engine: Engine, version: str
) -> None:
    # 2025.1.3 has the column, but it is empty
    trace = on_two_streams()
    trace.version = version
    trace.record(stream=21, event=1, corr=3).record(stream=13, event=1, corr=4)
    trace.record(stream=21, event=2, corr=5).wait(stream=7, event=1, corr=6)
    trace.record(stream=21, event=1, corr=7)
    assert engine.cuts(trace)[1] == (20, 50, 0, 20, 10, "inferred")


def test_one_id_in_either_table_ends_inference(engine: Engine) -> None:
    # the id is on a synchronisation that is no event wait
    trace = on_two_streams().record(stream=13, event=1, corr=3).wait(stream=7, event=1, corr=4)
    trace.wait(stream=INVALID, event=5, sync_id=5, corr=30)
    assert engine.cuts(trace)[1] == (20, 50, 0, 0, 30, "unresolved")


def test_without_event_rows_every_wait_is_unresolved(engine: Engine) -> None:
    trace = on_two_streams()
    trace.version = "2020.4.3"
    trace.record(stream=13, event=1, corr=3).wait(stream=7, event=1, corr=4)
    assert engine.cuts(trace)[1] == (20, 50, 0, 0, 30, "unresolved")


def test_events_of_two_processes_do_not_mix(engine: Engine) -> None:
    trace = on_two_streams().record(stream=13, event=1, sync_id=5, corr=3, pid=200)
    trace.wait(stream=7, event=1, sync_id=5, corr=4)
    assert engine.cuts(trace)[1] == (20, 50, 0, 0, 30, "unresolved")


def test_streams_of_two_contexts_do_not_mix(engine: Engine) -> None:
    # N is on stream 7 too, but of context 2
    trace = Trace().launch(1, (0, 2), (10, 20)).launch(9, (5, 6), (50, 54))
    trace.launch(2, (3, 4), (20, 40), NCCL, context=2)
    assert engine.cuts(trace)[1] == (20, 50, 0, 0, 30, "resolved")


@pytest.mark.parametrize("stream, event", [(7, INVALID), (INVALID, 1), (INVALID, INVALID)])
def test_other_synchronisations_are_no_waits(engine: Engine, stream: int, event: int) -> None:
    trace = on_two_streams().record(stream=13, event=1, sync_id=5, corr=3)
    trace.wait(stream=stream, event=event, sync_id=5, corr=4)
    assert engine.cuts(trace)[1] == (20, 50, 0, 0, 30, "resolved")


def test_a_wait_needs_no_times_of_its_own(engine: Engine) -> None:
    # its row ends before it starts; only its place in the issue order counts
    trace = on_two_streams().record(stream=13, event=1, sync_id=5, corr=3)
    trace.wait(stream=7, event=1, sync_id=5, corr=4, start=9, end=8)
    assert engine.cuts(trace)[1] == (20, 50, 0, 20, 10, "resolved")


def test_a_wait_that_loses_still_was_looked_at(engine: Engine) -> None:
    # inferred wait for A2 (ends 12 on stream 13); stream 7 itself has A (ends 20): producer is A
    trace = Trace("2022.4.2").launch(1, (0, 2), (10, 20))
    trace.launch(2, (3, 4), (10, 12), NCCL, stream=13).launch(9, (5, 6), (50, 54))
    trace.edge(3, 13, 7)
    gap = engine.last_gap(trace)
    assert (gap["producer_name"], gap["producer_end_ns"], gap["evidence"]) == (
        GEMM,
        20,
        "inferred",
    )


def test_an_unresolved_relay_taints_what_passes_through_it(engine: Engine) -> None:
    # 98 waits for a lost record, then for N; 7 waits for 98
    trace = on_two_streams().wait(stream=98, event=9, sync_id=900, corr=3)
    trace.edge(4, 13, 98).edge(6, 98, 7, event=2)
    assert engine.cuts(trace)[1] == (20, 50, 0, 20, 10, "unresolved")


def test_a_resolved_wait_for_nothing_is_none(engine: Engine) -> None:
    # K is alone; it waits for a record on an empty stream
    trace = Trace().launch(5, (0, 2), (10, 20)).edge(1, 13, 7)
    assert engine.cuts(trace) == [(0, 10, 2, 0, 8, "none")]


def test_of_equal_ends_the_lowest_id_is_the_producer(engine: Engine) -> None:
    # stream 7 holds SPIN (id 2, 25-40), stream 13 holds N (id 1, 20-40)
    trace = Trace().launch(1, (0, 1), (20, 40), NCCL, stream=13)
    trace.launch(2, (0, 2), (25, 40), SPIN).edge(3, 13, 7).launch(9, (5, 6), (50, 54))
    assert engine.last_gap(trace)["producer_class"] == "nccl"


def test_an_operation_comes_before_a_record_of_its_id(engine: Engine) -> None:
    # N and the record carry the id 2; the record sees N
    trace = Trace().launch(1, (0, 2), (10, 20)).launch(2, (3, 4), (20, 40), NCCL, stream=13)
    trace.wait(stream=7, event=1, sync_id=5, corr=3)
    trace.record(stream=13, event=1, sync_id=5, corr=2).launch(9, (5, 6), (50, 54))
    assert engine.cuts(trace)[1] == (20, 50, 0, 20, 10, "resolved")


def test_a_record_comes_before_a_wait_of_its_id(engine: Engine) -> None:
    # on stream 98 the record of event 2 and the wait for N carry the id 4: it does not see N
    trace = on_two_streams().record(stream=13, event=1, sync_id=5, corr=3)
    trace.wait(stream=98, event=1, sync_id=5, corr=4)
    trace.record(stream=98, event=2, sync_id=6, corr=4).wait(stream=7, event=2, sync_id=6, corr=5)
    assert engine.cuts(trace)[1] == (20, 50, 0, 0, 30, "resolved")


def test_a_record_of_the_very_id_of_a_wait_was_not_issued_before_it(engine: Engine) -> None:
    trace = on_two_streams().record(stream=13, event=1, sync_id=5, corr=4)
    trace.wait(stream=7, event=1, sync_id=5, corr=4)
    assert engine.cuts(trace)[1] == (20, 50, 0, 0, 30, "unresolved")


def test_operations_of_one_call_are_one_item(engine: Engine) -> None:
    # call 2 puts three operations on stream 7; each follows A, and K follows the one that ends
    # last:  N 20-40, SPIN 22-26, elementwise 45-48 starts late and still follows A
    trace = Trace().launch(1, (0, 2), (10, 20)).launch(2, (3, 4), (20, 40), NCCL)
    trace.kernel(22, 26, SPIN, corr=2).kernel(45, 46, ELEMENTWISE, corr=2)
    trace.launch(3, (5, 6), (60, 64))
    assert [
        (r["gap_start_ns"], r["gap_end_ns"], r["blocking_ns"], r["producer_name"])
        for r in engine.gaps(trace)[1:]
    ] == [(20, 45, 0, GEMM), (46, 60, 0, ELEMENTWISE)]


def test_an_item_stands_for_the_operation_that_ends_last(engine: Engine) -> None:
    trace = Trace().launch(1, (0, 2), (10, 20)).launch(2, (3, 4), (20, 40), NCCL)
    trace.kernel(30, 33, SPIN, corr=2).launch(3, (5, 6), (60, 64))
    assert engine.last_gap(trace)["producer_name"] == NCCL


# ====================================================================== section 6: the labels
def test_a_copy_behind_a_collective_carries_only_its_own_time(engine: Engine) -> None:
    # 20                            50 52 53
    # NNNNNNNNNNNNNNNNNNNNNNNNNNNNNN CC KKKK    blocking 20-52, of it 20-50 is the collective's
    trace = Trace().launch(1, (0, 2), (10, 20)).launch(2, (3, 4), (20, 50), NCCL)
    trace.memcpy(50, 52, corr=3).launch(4, (5, 6), (53, 60))
    gap = engine.last_gap(trace)
    assert (gap["blocking_ns"], gap["comm_blocking_ns"], gap["dependency_stalled_ns"]) == (
        32,
        30,
        1,
    )
    assert (gap["producer_class"], gap["producer_role"]) == ("memcpy", "memcpy")


def test_the_label_stays_where_nothing_ran_before_it(engine: Engine) -> None:
    # 20        30        40   45
    # NNNNNNNNNN          CCCCCKKK   20-30 collective; 30-45 the copy, its own delay included
    trace = Trace().launch(1, (0, 2), (10, 20)).launch(2, (3, 4), (20, 30), NCCL)
    trace.memcpy(40, 45, corr=3).launch(4, (5, 6), (45, 50))
    gap = engine.last_gap(trace)
    assert (gap["blocking_ns"], gap["comm_blocking_ns"]) == (25, 10)


def test_labels_go_back_through_waits(engine: Engine) -> None:
    # stream 13 NNNN 20-35; stream 21 copy 35-38 waits for it; K on 7 waits for the copy
    trace = Trace().launch(1, (0, 2), (10, 20)).launch(2, (3, 4), (20, 35), NCCL, stream=13)
    trace.edge(3, 13, 21).memcpy(35, 38, corr=5, stream=21).edge(6, 21, 7, event=2)
    trace.launch(9, (5, 6), (40, 44))
    gap = engine.last_gap(trace)
    assert (gap["blocking_ns"], gap["comm_blocking_ns"], gap["evidence"]) == (18, 15, "resolved")


def test_the_label_does_not_go_back_while_the_producer_runs(engine: Engine) -> None:
    # N 20-40 runs on beside the copy 25-35 that follows it (overlapping launches)
    trace = Trace().launch(1, (0, 2), (10, 20)).launch(2, (3, 4), (20, 40), NCCL)
    trace.memcpy(25, 35, corr=3).launch(4, (5, 6), (45, 50))
    gap = engine.last_gap(trace)
    assert (gap["blocking_ns"], gap["comm_blocking_ns"]) == (15, 5)


# ========================================================================= section 6: graphs
def test_only_the_first_operations_of_a_launch_follow_it(engine: Engine) -> None:
    # N 20-30 precedes the launch (id 3) on stream 7:
    # nodes: B 32-36 and C 34-38 (started before B ended) are first, D 45-50 is a later one
    trace = Trace().launch(1, (0, 2), (10, 20)).launch(2, (3, 4), (20, 30), NCCL)
    trace.call(5, 6, "cudaGraphLaunch_v10000", corr=3)
    for number, (start, end) in enumerate([(32, 36), (34, 38), (45, 50)]):
        trace.kernel(start, end, ELEMENTWISE, corr=3, node=(1 << 32) + number)
    assert engine.cuts(trace)[1:] == [
        (20, 32, 0, 10, 2, "resolved"),
        (38, 45, 0, 0, 7, "graph"),
    ]
    assert engine.last_gap(trace)["producer_name"] is None


def test_first_operations_are_those_of_every_stream_of_the_launch(engine: Engine) -> None:
    # stream 13 of the launch starts after an operation on stream 7 has ended: a later one
    trace = Trace().launch(1, (0, 2), (10, 20)).launch(2, (0, 2), (20, 60), NCCL, stream=13)
    trace.call(5, 6, "cudaGraphLaunch_v10000", corr=3)
    trace.kernel(22, 30, ELEMENTWISE, corr=3, node=1 << 32)
    trace.kernel(70, 75, ELEMENTWISE, corr=3, node=(1 << 32) + 1, stream=13)
    assert engine.cuts(trace)[2] == (30, 70, 0, 0, 40, "graph")


def test_labels_walk_inside_a_launch(engine: Engine) -> None:
    # launch 2: N 20-40 (node 0), copy 40-44 (node 1); K follows the launch at 50:
    # producer is the copy, which is a later one and follows N for the label
    trace = Trace().launch(1, (0, 2), (10, 20)).launch(3, (5, 6), (50, 54))
    trace.call(3, 4, "cudaGraphLaunch_v10000", corr=2)
    trace.kernel(20, 40, NCCL, corr=2, node=1 << 32).memcpy(40, 44, corr=2, node=(1 << 32) + 1)
    gap = engine.last_gap(trace)
    assert (gap["producer_class"], gap["blocking_ns"], gap["comm_blocking_ns"]) == (
        "memcpy",
        24,
        20,
    )


def test_a_graph_kernel_without_its_launch_has_no_launch(engine: Engine) -> None:
    trace = Trace().launch(1, (0, 2), (10, 20))
    trace.kernel(22, 24, corr=2, node=1 << 32).kernel(30, 34, corr=2, node=(1 << 32) + 1)
    assert [cut[5] for cut in engine.cuts(trace)] == ["none", "no_launch", "no_launch"]


def test_a_whole_graph_is_compute(engine: Engine) -> None:
    # graph-level tracing: one row 40-70 stands for the launch (id 2)
    trace = Trace().launch(1, (0, 2), (10, 20)).graph_exec(40, 70, corr=2)
    trace.call(21, 25, "cudaGraphLaunch_v10000", corr=2).launch(3, (30, 31), (80, 84))
    assert engine.cuts(trace)[1:] == [
        (20, 40, 5, 0, 15, "resolved"),
        (70, 80, 0, 0, 10, "resolved"),
    ]
    gap = engine.last_gap(trace)
    assert (gap["producer_class"], gap["producer_role"]) == ("graph", "compute")


def test_traced_nodes_win_over_the_whole_graph(engine: Engine) -> None:
    # the graph row 15-90 would swallow the gap; a copy node carries its id
    trace = Trace().launch(1, (0, 2), (10, 20)).launch(3, (30, 31), (80, 84))
    trace.graph_exec(15, 90, corr=2).memcpy(40, 44, corr=2, node=1 << 32)
    trace.graph_exec(15, 90, corr=2, pid=200, device=1)  # another process: this one counts
    assert [cut[:2] for cut in engine.cuts(trace)] == [(0, 10), (20, 80), (0, 15)]


# ======================================================================= section 2: the devices
def test_ordinals_are_resolved_per_process(engine: Engine) -> None:
    # both processes call their GPU 0; they are 4 and 5
    trace = Trace("2025.1.3").cuda_device(100, 0, 4).cuda_device(200, 0, 5)
    trace.launch(1, (0, 2), (10, 20)).launch(1, (0, 2), (12, 20), pid=200)
    rows = [(r["device"], r["gap_end_ns"]) for r in engine.gaps(trace)]
    assert rows == [(4, 10), (5, 12)]


def test_an_unmapped_ordinal_is_the_device(engine: Engine) -> None:
    trace = Trace("2024.6.2").launch(1, (0, 2), (10, 20), device=3)
    assert [r["device"] for r in engine.gaps(trace)] == [3]


def test_two_processes_may_share_a_device(engine: Engine) -> None:
    # both drive GPU 0, with the same ids; the gap 20-30 is ended by the second one's kernel
    trace = Trace().launch(1, (0, 2), (10, 20)).launch(1, (22, 23), (30, 40), pid=200)
    assert engine.cuts(trace) == [(0, 10, 2, 0, 8, "none"), (20, 30, 3, 0, 7, "none")]


def test_times_may_be_negative(engine: Engine) -> None:
    trace = Trace().launch(1, (-100, -98), (-90, -80)).launch(2, (-70, -65), (-50, -40))
    assert engine.cuts(trace) == [
        (-100, -90, 2, 0, 8, "none"),
        (-80, -50, 15, 0, 15, "resolved"),
    ]


def test_times_near_the_limit_stay_exact(engine: Engine) -> None:
    t = 1 << 60
    trace = Trace().launch(1, (t, t + 2), (t + 10, t + 20))
    trace.launch(2, (t + 30, t + 35), (t + 50, t + 60))
    assert engine.cuts(trace)[1] == (t + 20, t + 50, 15, 0, 15, "resolved")


def test_the_short_name_is_used_only_where_the_demangled_is_missing(engine: Engine) -> None:
    # an unnamed kernel with the short name of a collective is a collective
    trace = Trace().launch(1, (0, 2), (10, 20)).launch(3, (3, 4), (50, 54), short=NCCL)
    trace.call(3, 4, corr=2).kernel(20, 40, None, short=NCCL, corr=2)
    gap = engine.last_gap(trace)
    assert (gap["next_kernel"], gap["producer_class"], gap["gap_end_ns"]) == (GEMM, "nccl", 50)


# ==================================================================== section 4: the iterations
def steps(*ranges: tuple[int, int | None], version: str = "2026.2.1") -> Trace:
    """Ranges called `step N`, with one kernel at the start of each."""
    trace = Trace(version)
    for number, (start, end) in enumerate(ranges):
        trace.nvtx(start, end, f"step {number}")
        trace.kernel(start, start + 2, corr=number)
    return trace


def test_nvtx_windows_are_the_ranges(engine: Engine) -> None:
    trace = steps((20, 30), (0, 15), (30, 45))
    assert engine.windows(trace, "nvtx:step *") == [
        (0, 15, "steady"),
        (20, 30, "steady"),
        (30, 45, "steady"),
    ]


def test_start_end_ranges_and_registered_texts_count_marks_do_not(engine: Engine) -> None:
    trace = steps((0, 10)).nvtx(10, 20, "step b", event_type=60, registered=True, domain=3)
    trace.kernel(12, 14, corr=50).nvtx(15, None, "step mark", event_type=34)
    assert engine.windows(trace, "nvtx:step *") == [(0, 10, "steady"), (10, 20, "steady")]


@pytest.mark.parametrize(
    "pattern, texts",
    [
        ("step", ["step"]),
        ("step*", ["step", "step 1", "step_%"]),
        ("*step", ["step", "my step"]),
        ("*step*", ["step", "step 1", "step_%", "my step"]),
        ("step_%", ["step_%"]),
        ("s*p*1", ["step 1"]),
        ("STEP*", []),
        ("step.*", []),
        ("*", ["step", "step 1", "step_%", "my step", "[a]"]),
        ("[a]", ["[a]"]),
    ],
)
def test_patterns_match_the_whole_text(engine: Engine, pattern: str, texts: list[str]) -> None:
    trace = Trace()
    starts = {}
    for number, text in enumerate(["step", "step 1", "step_%", "my step", "[a]"]):
        starts[text] = 10 * number
        trace.nvtx(10 * number, 10 * number + 8, text)
        trace.kernel(10 * number, 10 * number + 1, corr=number)
    found = engine.windows(trace, f"nvtx:{pattern}")
    assert [window[0] for window in found] == [starts[text] for text in texts]


def test_of_nested_matches_on_a_thread_the_outermost_counts(engine: Engine) -> None:
    # thread 1: 0 [   2 [ 3 [] ] 9  ] 20     thread 2: 5 [ ] 8    thread 1 again: 15 [   ] 25
    trace = Trace().kernel(0, 1, corr=1).kernel(6, 7, corr=2).kernel(16, 17, corr=3)
    trace.nvtx(0, 20, "s").nvtx(2, 9, "s").nvtx(3, 4, "s").nvtx(5, 8, "s", tid=2)
    trace.nvtx(15, 25, "s", event_type=60).nvtx(1, 19, "not the pattern")
    assert engine.windows(trace, "nvtx:s") == [
        (0, 20, "steady"),
        (5, 8, "steady"),
        (15, 25, "steady"),
    ]


def test_equal_ranges_count_once(engine: Engine) -> None:
    trace = Trace().kernel(0, 1, corr=1).nvtx(0, 20, "s").nvtx(0, 20, "s")
    assert engine.windows(trace, "nvtx:s") == [(0, 20, "steady")]


def test_windows_belong_to_the_devices_of_their_process(engine: Engine) -> None:
    # process 100 drives 0 and 1; process 200 drives 1; process 300 drives nothing
    trace = Trace().kernel(0, 2, corr=1).kernel(1, 2, corr=2, device=1, context=2)
    trace.kernel(22, 24, corr=1, pid=200, device=1)
    trace.nvtx(0, 10, "s", pid=100).nvtx(20, 30, "s", pid=200).nvtx(0, 30, "s", pid=300)
    assert engine.windows(trace, "nvtx:s") == [
        (0, 10, "steady"),
        (0, 10, "steady", 1),
        (20, 30, "steady", 1),
    ]


def test_kernel_windows_run_from_occurrence_to_occurrence(engine: Engine) -> None:
    # G at 0 10 20 30 40; two per iteration
    trace = Trace()
    for number in (3, 1, 0, 4, 2):
        trace.kernel(10 * number, 10 * number + 5, corr=number)
        trace.kernel(10 * number + 6, 10 * number + 7, FLASH, corr=100 + number)
    assert engine.windows(trace, f"kernel:{GEMM}", per_iteration=2) == [
        (0, 20, "steady"),
        (20, 40, "steady"),
        (40, None, "unclosed"),
    ]
    assert engine.windows(trace, "kernel:*sgemm*")[-2:] == [
        (30, 40, "steady"),
        (40, None, "unclosed"),
    ]


def test_the_remainder_starts_at_its_own_occurrence(engine: Engine) -> None:
    # 4 occurrences, 2 per iteration: 0-20 is closed by the third, which opens the remainder
    trace = Trace()
    for number in range(4):
        trace.kernel(10 * number, 10 * number + 5, corr=number)
    assert engine.windows(trace, "kernel:*", per_iteration=2) == [
        (0, 20, "steady"),
        (20, None, "unclosed"),
    ]


def test_kernel_anchors_also_match_the_short_name(engine: Engine) -> None:
    trace = Trace()
    for number in range(2):
        trace.kernel(10 * number, 10 * number + 5, GEMM, short="tiny", corr=number)
    assert engine.windows(trace, "kernel:tiny") == [(0, 10, "steady"), (10, None, "unclosed")]


def test_nccl_anchors_take_only_collectives(engine: Engine) -> None:
    trace = Trace()
    for number in range(2):
        trace.kernel(10 * number, 10 * number + 5, NCCL, corr=number)
        trace.kernel(10 * number + 6, 10 * number + 7, GEMM, corr=100 + number)
    assert engine.windows(trace, "nccl:*") == [(0, 10, "steady"), (10, None, "unclosed")]


def test_an_end_at_the_closing_time_is_unclosed(engine: Engine) -> None:
    trace = steps((0, 10), (20, 49), (30, 50)).nvtx(50, None, "step x").duration(50)
    assert engine.windows(trace, "nvtx:step *") == [
        (0, 10, "steady"),
        (20, 49, "steady"),
        (30, 50, "unclosed"),
        (50, None, "unclosed"),
    ]


@pytest.mark.parametrize(
    "name, value", [("EXPORT_PARAM_TIME_SHIFT", "7"), ("EXPORT_PARAM_TIME_NORMALIZE", "true")]
)
def test_shifted_exports_have_no_closing_time(engine: Engine, name: str, value: str) -> None:
    trace = steps((0, 10), (30, 50)).duration(50).meta(name, value)
    assert engine.windows(trace, "nvtx:step *") == [(0, 10, "steady"), (30, 50, "steady")]


def test_an_unclosed_range_neither_contains_nor_is_contained(engine: Engine) -> None:
    trace = steps((0, 50), (10, 20), (30, 50)).duration(50)
    assert engine.windows(trace, "nvtx:step *") == [
        (0, 50, "unclosed"),
        (10, 20, "steady"),
        (30, 50, "unclosed"),
    ]


def test_a_window_in_which_nothing_starts_has_no_work(engine: Engine) -> None:
    # A runs 0-30, so it is busy in 10-20, yet starts nothing there; a start at the end is outside
    trace = Trace().kernel(0, 30, corr=1).kernel(20, 25, corr=2)
    trace.nvtx(0, 10, "s").nvtx(10, 20, "s").nvtx(20, 30, "s")
    assert [w[2] for w in engine.windows(trace, "nvtx:s")] == [
        "steady",
        "no_device_work",
        "steady",
    ]


def profiled(*calls: tuple[str, int, int]) -> Trace:
    """Three steps 0-10, 20-30, 40-50, and profiler calls of their process."""
    trace = steps((0, 10), (20, 30), (40, 50))
    for number, (name, start, end) in enumerate(calls):
        trace.call(start, end, name, corr=1000 + number, tid=2)
    return trace


@pytest.mark.parametrize(
    "calls, dropped",
    [
        ([("cudaProfilerStart_v4000", 12, 15)], [0]),
        ([("cuProfilerStart", 12, 21)], [0, 1]),  # still running when step 1 starts
        ([("cudaProfilerStop_v4000", 25, 26)], [1, 2]),  # a stop alone: the first counts
        ([("cudaProfilerStop_v4000", 30, 31)], [2]),  # at the end of step 1 is not before it
        ([("cudaProfilerStart", 12, 13), ("cudaProfilerStop", 33, 34)], [0, 2]),
        ([("cudaProfilerStop", -9, -8), ("cudaProfilerStart", -5, -4)], []),
        (
            [
                ("cudaProfilerStart", -5, -4),
                ("cudaProfilerStop", 12, 13),
                ("cudaProfilerStart", 35, 36),
            ],
            [1],
        ),
        ([("cudaProfilerStart", -5, -4), ("cudaProfilerStart", 18, 22)], [1]),
    ],
)
def test_windows_at_the_profilers_edges_are_dropped(
    engine: Engine, calls: list[tuple[str, int, int]], dropped: list[int]
) -> None:
    statuses = [w[2] for w in engine.windows(profiled(*calls), "nvtx:step *")]
    assert [n for n, s in enumerate(statuses) if s == "profiler_boundary"] == dropped
    assert set(statuses) <= {"steady", "profiler_boundary"}


def test_profiler_calls_of_an_unrelated_process_do_not_matter(engine: Engine) -> None:
    trace = steps((0, 10)).call(12, 13, "cudaProfilerStart_v4000", pid=200, corr=1)
    assert engine.windows(trace, "nvtx:step *") == [(0, 10, "steady")]


@pytest.mark.parametrize(
    "begin, end, dropped",
    [
        ((12, 13), (18, 20), []),  # between the steps, ending as step 1 starts
        ((12, 13), (18, 21), [1]),  # the end of the end call counts
        ((30, 31), (34, 35), []),  # begins as step 1 ends
        ((29, 31), (34, 35), [1]),
        ((25, 26), None, [1, 2]),  # never ended
    ],
)
def test_a_window_with_an_open_capture_is_dropped(
    engine: Engine, begin: tuple[int, int], end: tuple[int, int] | None, dropped: list[int]
) -> None:
    trace = steps((0, 10), (20, 30), (40, 50))
    trace.call(*begin, "cudaStreamBeginCapture_v10000", corr=1000, tid=2)
    trace.call(22, 23, "cudaStreamEndCapture_v10000", corr=1001, tid=3)  # of another thread
    if end is not None:
        trace.call(*end, "cudaStreamEndCapture_v10000", corr=1002, tid=2)
    statuses = [w[2] for w in engine.windows(trace, "nvtx:step *")]
    assert [n for n, s in enumerate(statuses) if s == "graph_capture"] == dropped


def test_the_first_reason_that_applies_is_given(engine: Engine) -> None:
    # ordinals: 0 steady-looking, 1 no work, 2, 3, 4 unclosed; the skips count all of them
    trace = Trace().duration(90)
    for number, start in enumerate((0, 20, 40, 60, 80)):
        trace.nvtx(start, start + 10, "s")
        if number != 1:
            trace.kernel(start, start + 2, corr=number)
    options: Row = {"skip_first": 2, "skip_last": 2, "iterations": "3:9"}
    assert [w[2] for w in engine.windows(trace, "nvtx:s", **options)] == [
        "warmup",
        "no_device_work",
        "outside",
        "cooldown",
        "unclosed",
    ]


def test_iterations_are_a_half_open_range_of_ordinals(engine: Engine) -> None:
    trace = steps((0, 10), (20, 30), (40, 50), (60, 70))
    statuses = [w[2] for w in engine.windows(trace, "nvtx:step *", iterations="1:3")]
    assert statuses == ["outside", "steady", "steady", "outside"]


# ======================================================================== section 5: the budget
def test_the_budget_of_a_window_with_overlapped_communication(engine: Engine) -> None:
    # window 0-100
    # stream 7   c AAAAAAAAAA (10-30)      KKKKKKKK (60-80)
    # stream 13         NNNNNNNNNNNNNNNN (20-55)    K waits for N
    trace = Trace().nvtx(0, 100, "s").launch(1, (0, 4), (10, 30))
    trace.launch(2, (4, 5), (20, 55), NCCL, stream=13).edge(3, 13, 7)
    trace.launch(5, (6, 7), (60, 80))
    assert engine.budget(trace, "nvtx:s") == {
        "device": 0,
        "ordinal": 0,
        "iteration": 100,
        "start": 0,
        "end": 100,
        "device_busy": 65,
        "device_idle": 35,
        "noncomm_busy": 40,
        "comm_busy": 35,
        "compute_busy": 40,
        "compute_absent": 60,
        "occupied_not_computing": 25,
        "launch_starved": 4,
        "blocking": 25,
        "dependency_stalled": 11,  # 4-10 and 55-60
        "unattributed": 20,
        "comm_exposed": 25,
        "comm_blocking": 25,
        "comm_overlapped": 10,
        "launch_starved_shadowed": 0,
    }


def test_pieces_and_operations_are_clipped_to_the_window(engine: Engine) -> None:
    # the same trace, window 25-70: A 25-30, N 25-55, K 60-70
    trace = Trace().nvtx(25, 70, "s").launch(1, (0, 4), (10, 30))
    trace.launch(2, (4, 5), (20, 55), NCCL, stream=13).edge(3, 13, 7)
    trace.launch(5, (6, 7), (60, 80))
    budget = engine.budget(trace, "nvtx:s")
    assert budget["device_busy"] == 40
    assert budget["compute_busy"] == 15
    assert budget["comm_busy"] == 30
    assert budget["comm_exposed"] == 25
    assert (budget["blocking"], budget["dependency_stalled"], budget["unattributed"]) == (25, 5, 0)


def test_a_copy_beside_the_collective_hides_it_but_does_not_stop_it_blocking(
    engine: Engine,
) -> None:
    # N 20-40 blocks K at 40; a copy 25-35 on another stream runs beside it
    trace = Trace().nvtx(0, 50, "s").launch(1, (0, 2), (10, 20))
    trace.launch(2, (3, 4), (20, 40), NCCL).launch(4, (5, 6), (40, 50))
    trace.memcpy(25, 35, corr=3, stream=13)
    budget = engine.budget(trace, "nvtx:s")
    assert (budget["comm_exposed"], budget["comm_blocking"], budget["comm_overlapped"]) == (
        10,
        20,
        10,
    )


def test_waiting_kernels_are_busy_but_neither_compute_nor_communication(engine: Engine) -> None:
    # A 0-10, SPIN 10-30, DeepEP 30-40, copy 40-45, K 45-50
    trace = Trace().nvtx(0, 50, "s").kernel(0, 10, corr=1).kernel(10, 30, SPIN, corr=2)
    trace.kernel(30, 40, DEEP_EP, corr=3).memcpy(40, 45, corr=4).kernel(45, 50, corr=5)
    budget = engine.budget(trace, "nvtx:s")
    assert budget["device_busy"] == 50
    assert budget["noncomm_busy"] == 35
    assert budget["comm_busy"] == 10
    assert budget["compute_busy"] == 15
    assert budget["occupied_not_computing"] == 35
    assert budget["comm_exposed"] == 10


def test_parallel_collectives_are_a_union(engine: Engine) -> None:
    trace = Trace().nvtx(0, 50, "s").kernel(0, 10, corr=1)
    trace.kernel(10, 30, NCCL, corr=2).kernel(20, 40, NCCL, corr=3, stream=13)
    budget = engine.budget(trace, "nvtx:s")
    assert (budget["comm_busy"], budget["comm_exposed"], budget["unattributed"]) == (30, 30, 40)


def test_time_without_any_compute_is_unattributed(engine: Engine) -> None:
    trace = Trace().nvtx(0, 50, "s").kernel(10, 30, NCCL, corr=2)
    budget = engine.budget(trace, "nvtx:s")
    assert (budget["compute_absent"], budget["unattributed"], budget["blocking"]) == (50, 50, 0)


def test_the_shadow_is_clipped_like_its_piece(engine: Engine) -> None:
    # N 20-40 is the producer, the call 10-45 starves 20-45; window 30-60
    trace = Trace().nvtx(30, 60, "s").launch(1, (0, 2), (10, 20))
    trace.launch(2, (3, 4), (20, 40), NCCL).launch(3, (10, 45), (50, 60))
    budget = engine.budget(trace, "nvtx:s")
    assert (budget["launch_starved"], budget["launch_starved_shadowed"]) == (15, 10)
    assert (budget["blocking"], budget["dependency_stalled"]) == (0, 5)


def test_only_steady_windows_have_a_budget(engine: Engine) -> None:
    trace = steps((0, 10), (20, 30), (40, 50))
    budget = engine.budget(trace, "nvtx:step *", iterations="1:2")
    assert (budget["start"], budget["end"]) == (20, 30)
