"""Single SQL files over small tables made by hand: no trace, no model, milliseconds each.

Every SQL file reads relations by name and nothing else, so each can be asked alone. What stands
here a surviving mutant asked for (tests/mutate.py): sentences, orders, limits, defaults.
"""

import re

import pytest


# ---------------------------------------------------------------------------------------- notes
def test_note_windows(ask):
    rows = [
        *[(0, "nvtx:s", "steady")] * 2,
        *[(0, "nvtx:s", "unclosed"), (0, "nvtx:s", "cut"), (0, "nvtx:s", "cut")],
        (1, "nvtx:s", "cut"),
        (2, "nvtx:s", "steady"),
    ]
    tables = {"nsys.iteration": ("device BIGINT, anchor VARCHAR, status VARCHAR", rows)}
    told = [
        ("device 0: n = 2 steady windows of nvtx:s; dropped: 2 cut, 1 unclosed",),
        ("device 1: n = 0 steady windows of nvtx:s; dropped: 1 cut",),
        ("device 2: n = 1 steady windows of nvtx:s",),
    ]
    assert ask("notes/windows", tables) == told
    assert ask("notes/windows", tables, device=1) == [told[1]]


@pytest.mark.parametrize(
    ("lengths", "told"),
    [
        ([35, 10, 10, 10], "0 takes 3.5 times the median of the others: --skip-first 1 leaves it"),
        ([20, 10, 9, 11], "0 takes 2.0 times the median of the others: --skip-first 1 leaves it"),
        ([19, 10, 9, 11], None),
        ([35, 10, 10], None),  # three are too few
        ([35, 10, 10, 35], None),  # and not the first ones only
        ([10, 35, 10, 10], None),
        ([90, 25, 10, 10, 10], "0 to 1 take 2.5 to 9.0 times the median of the others: "
                               "--skip-first 2 leaves them"),
        ([90, 80, 70, 10, 10, 10], None),  # half of them: nobody knows which are usual
        ([0, 0, 0, 0], None),
    ],
)  # fmt: skip
def test_note_slow_start(ask, lengths, told):
    rows = [(1, at, 0, 10) for at in range(9)]
    rows += [(0, at, 100 * at, 100 * at + length) for at, length in enumerate(lengths)]
    columns = "device BIGINT, iteration BIGINT, start_ns BIGINT, end_ns BIGINT"
    found = ask("notes/slow_start", {"nsys.steady": (columns, rows)})
    prefix = "device 0: iterations " if told and told[2:4] == "to" else "device 0: iteration "
    assert found == ([(f"{prefix}{told} out",)] if told else [])


def test_note_slow_start_of_two_devices(ask):
    columns = "device BIGINT, iteration BIGINT, start_ns BIGINT, end_ns BIGINT"
    rows = [
        (device, at, 0, (30 + device if at == 0 else 10)) for at in range(5) for device in (1, 0)
    ]
    found = ask("notes/slow_start", {"nsys.steady": (columns, rows)})
    assert [told[:39] for (told,) in found] == [
        *["device 0: iteration 0 takes 3.0 times t", "device 1: iteration 0 takes 3.1 times t"],
    ]


def test_note_slow_start_counts_windows_that_were_dropped(ask):
    """The option counts all windows, those too that are no longer among the steady ones."""
    columns = "device BIGINT, iteration BIGINT, start_ns BIGINT, end_ns BIGINT"
    rows = [(0, at, 0, 50 if at == 2 else 10) for at in (2, 3, 5, 6)]
    ((told,),) = ask("notes/slow_start", {"nsys.steady": (columns, rows)})
    assert "iteration 2 takes 5.0 times" in told and "--skip-first 3 leaves it out" in told


def test_note_anchor(ask):
    def steady(*rows):
        return {"nsys.steady": ("device BIGINT", list(rows))}

    told = [("anchor taken by auto: why",)]
    assert ask("notes/anchor", steady((0,)), anchor_message="why") == told
    assert ask("notes/anchor", steady((0,))) == []
    assert ask("notes/anchor", steady(), anchor_message="why") == []


def test_note_whole_trace(ask):
    assert ask("notes/whole_trace", {"nsys.steady": ("device BIGINT", [(0,)])}) == []
    assert len(ask("notes/whole_trace", {"nsys.steady": ("device BIGINT", [])})) == 1


def test_note_outside_ranges(ask):
    # device 0: 1 of 4 outside and 2 of 4 without a launch; device 1: 1 of 2 outside; device 2 none;
    # segment 9 of every device lies in no window
    rows = [
        *[(0, 1, 5, None), (0, 1, 5, 10), (0, 2, None, 20), (0, 2, 6, None), (0, 9, None, None)],
        *[(1, 3, None, 1), (1, 3, 4, 2), (1, 9, None, 3)],
        *[(2, 4, 1, 7), (2, 9, None, 8)],
    ]
    windows = [(0, 1), (0, 1), (0, 2), (1, 3), (2, 4), (3, 9)]
    tables = {
        "nsys.range_op": (
            "device BIGINT, segment BIGINT, path_no BIGINT, launch_ns BIGINT",
            rows,
        ),
        "nsys.window_segment": ("device BIGINT, segment BIGINT", windows),
    }
    outside = "% of the operations were launched outside all push/pop ranges of their thread"
    assert ask("notes/outside_ranges", tables) == [
        (f"device 0: 25.0 {outside}, 50.0 % have no launch call",),
        (f"device 1: 50.0 {outside}",),
    ]


def test_note_anchor_shortlist(ask):
    def told(kernels=(), tried=(), ranges=(), **variables):
        tables = {
            "nsys.stream_item": ("device BIGINT, kind BIGINT, name_id BIGINT", list(kernels)),
            "nsys.kernel_family": ("pattern VARCHAR", [(each,) for each in tried]),
            "nsys.nvtx_pattern": ("left_out VARCHAR", [(each,) for each in ranges]),
        }
        found = ask("notes/anchor_shortlist", tables, **variables)
        return [" ".join(text.split(" were")[0].split()) for (text,) in found]

    # three times on one device: 1 and 3; twice on each of two: 2; a copy: 4
    kernels = [(0, 0, 1)] * 3 + [(0, 0, 2), (1, 0, 2)] * 2 + [(1, 0, 3)] * 3 + [(0, 1, 4)] * 3
    assert told(kernels, ["a"]) == ["1 of 2 recurring kernels"]
    assert told(kernels, ["a", "a"]) == ["1 of 2 recurring kernels"]
    assert told(kernels, ["a", "b"]) == []
    # whatever device is reported, auto looks at all
    assert told(kernels, [], device=1) == ["0 of 2 recurring kernels"]
    assert told(ranges=[None, None]) == []
    found = told(kernels, ["a"], [None, "y", "x", "y"])
    assert found == ["1 of 4 recurring names of NVTX ranges", "1 of 2 recurring kernels"]


def test_notes_of_what_is_there_or_not(ask):
    def opportunities(*rows, windows=()):
        tables = {
            "nsys.opportunity": ("device BIGINT", list(rows)),
            "nsys.budget_window": (
                "device BIGINT, iteration BIGINT, iteration_ns BIGINT",
                [(device, at, 25_000) for device in (0, 1) for at in range(3)],
            ),
            "nsys.opportunity_window": (
                "device BIGINT, iteration BIGINT, recoverable_ns BIGINT", list(windows)
            ),
        }  # fmt: skip
        return [text for (text,) in ask("notes/opportunity_bound", tables)]

    (nothing,) = opportunities()
    assert nothing.startswith("no launch-starved time that an earlier launch could recover and no ")
    assert nothing.endswith("where blocking is a lower bound there may be some all the same")
    first, second = opportunities((0,), (1,))
    assert first.startswith("actions follow") and second.startswith("bounds are ceilings")
    # three causes, two in each iteration: medians of 10 us each, and 20 us together; a single row
    # needs no sum, and an iteration without any counts 0
    windows = [(0, at, 10_000) for at in (0, 1, 2) for _ in range(2)]
    told = "bounds of all rows together, the median of each iteration's sum: "
    found = opportunities((0,), (0,), (0,), (1,), windows=[*windows, (1, 0, 9_000)])
    assert found[2] == told + "device 0 20.0 us of 25.0 us"
    found = opportunities((0,), (0,), (1,), (1,), windows=[*windows, (1, 0, 9_000), (1, 1, 8_000)])
    assert found[2] == told + "device 0 20.0 us of 25.0 us, device 1 8.0 us of 25.0 us"
    found = opportunities((1,), (1,), windows=[(1, 0, 9_000)])
    assert found[2] == told + "device 1 0.0 us of 25.0 us"
    for rows, said in (([], 1), ([(1,)], 0)):
        table = {"nsys.range_phase": ("path_no BIGINT", rows)}
        assert len(ask("notes/no_phase", table)) == said


def test_note_compute_next(ask):
    # device 0: gemm 60 (g2 40 and g1 20), graph 30, softmax 10, norm below a tenth; device 1: one
    # kernel without a name. 4 of 8 ns are busy on device 0, 1 of 4 on device 1.
    kernels = [
        *[(1, "gemm", "compute", "g1"), (2, "gemm", "compute", "g2"), (3, "graph", "compute", "x")],
        *[(4, "softmax", "compute", "s"), (5, "norm", "compute", "n"), (6, "nccl", "comm", "c")],
        *[(7, "other", "compute", None), (8, "gemm", "compute", "g0")],
    ]
    work = [(0, 1, 200), (0, 2, 200), (0, 2, 198), (0, 3, 300), (0, 4, 100), (0, 5, 2)]
    work += [(0, 6, 9000), (1, 7, 5), (0, 8, 0)]
    tables = {
        "nsys.budget_window": (
            "device BIGINT, compute_busy_ns BIGINT, iteration_ns BIGINT",
            [(0, 4, 8), (0, 4, 8), (0, 1, 9), (1, 1, 4), (2, 1, 2)],
        ),
        "nsys.name_window": ("device BIGINT, name_id BIGINT, work_ns BIGINT", work),
        "nsys.op_name": ("name_id BIGINT, class VARCHAR, role VARCHAR, name VARCHAR", kernels),
    }
    pct = "% of the iteration; for its kernels Nsight Compute is next:"
    assert ask("notes/compute_next", tables) == [
        (
            f"device 0: compute is busy 50.0 {pct} gemm 60 % of compute work, most of it in g2; "
            "whole CUDA graphs 30 % of compute work, whose kernels a capture with "
            "--cuda-graph-trace=node has to show first; softmax 10 % of compute work, most of it "
            "in s",
        ),
        (
            f"device 1: compute is busy 25.0 {pct} other 100 % of compute work, most of it in "
            "(unnamed kernel)",
        ),
    ]


def test_note_compute_next_names_classes_from_a_tenth_on(ask):
    for least, is_named in ((100, True), (99, False)):
        tables = {
            "nsys.budget_window": (
                "device BIGINT, compute_busy_ns BIGINT, iteration_ns BIGINT",
                [(0, 1, 2)],
            ),
            "nsys.name_window": (
                "device BIGINT, name_id BIGINT, work_ns BIGINT",
                [(0, 1, 1000 - least), (0, 2, least)],
            ),
            "nsys.op_name": (
                "name_id BIGINT, class VARCHAR, role VARCHAR, name VARCHAR",
                [(1, "gemm", "compute", "g"), (2, "norm", "compute", "n")],
            ),
        }
        ((told,),) = ask("notes/compute_next", tables)
        assert ("norm 10 %" in told) is is_named and "gemm 90 %" in told


def test_note_unattributed(ask):
    # device 0: all of the time; 1: up to 3 ms; 2: nothing; 3: in one of two windows
    rows = [(0, 5, 5), (0, 7, 7), (1, 3_000_000, 9_000_000), (1, 1_000_000, 9_000_000), (2, 0, 9)]
    rows += [(3, 0, 9), (3, 1_000, 9_000)]
    columns = "device BIGINT, unattributed_ns BIGINT, iteration_ns BIGINT"
    told = ask("notes/unattributed", {"nsys.budget_window": (columns, rows)})
    assert [each.partition(": ")[::2] for (each,) in told] == [
        (
            "device 0",
            "no compute kernel is in the trace from its first window on, so all of their time "
            "stays unattributed; whether none ran or none was captured is unknown",
        ),
        (
            "device 1",
            "up to 3.000 ms of a window lie after the last compute kernel of the device and stay "
            "unattributed",
        ),
        (
            "device 3",
            "up to 0.001 ms of a window lie after the last compute kernel of the device and stay "
            "unattributed",
        ),
    ]


def test_note_shadowed(ask):
    rows = [(1, 1, 4), (1, 0, 4), (0, 5, 10), (0, 0, 0), (2, 0, 4), (3, 49, 100_000)]
    rows += [(4, 51, 100_000), (5, 0, 0)]
    columns = "device BIGINT, launch_starved_shadowed_ns BIGINT, launch_starved_ns BIGINT"
    told = ask("notes/shadowed", {"nsys.budget_window": (columns, rows)})
    assert [each.partition(" of")[0] for (each,) in told] == [
        "device 0: 50.0 % of launch_starved is shadowed: the producer itself was still running, so "
        "faster launching alone cannot recover it".partition(" of")[0],
        "device 1: 12.5 %",
        "device 4: 0.1 %",  # 0.0 % would be nothing to say
    ]


def test_note_shadow_producer(ask):
    """From 1 % of the iteration on, medians; producers of less than 1 % are not named."""
    # device 0: 2 of 100; 1: 1 of 100, of nobody known; 2: less
    rows = [(0, 1, 90), (0, 2, 100), (0, 9, 900), (1, 1, 100), (2, 0.99, 100)]
    rows = [(device, ns * 1_000_000, step * 1_000_000) for device, ns, step in rows]
    tables = {
        "nsys.budget_window": (
            "device BIGINT, launch_starved_shadowed_ns BIGINT, iteration_ns BIGINT", rows
        ),
        "nsys.shadow_producer": (
            "device BIGINT, producer VARCHAR, shadowed_ns BIGINT",
            [(0, "b", 500), (0, "a", 480), (0, "c", 10), (0, "d", 5), (0, "e", 5), (2, "c", 7)],
        ),
    }  # fmt: skip
    told = "device {} per iteration (medians) are launch-starved while the producer of the next "
    rest = (
        "kernel ran anyway{}. That is in no bound: launching earlier alone cannot recover it; "
        "making that operation asynchronous or shorter might, up to that much"
    )
    assert [each for (each,) in ask("notes/shadow_producer", tables)] == [
        told.format("0: 2.0 ms of 100.0 ms") + rest.format(" (b 50 %, a 48 %, c 1 %)"),
        told.format("1: 1.0 ms of 100.0 ms") + rest.format(""),
    ]


def test_note_between_windows(ask):
    columns = "device BIGINT, window_ns DOUBLE, period_ns DOUBLE, span_ns BIGINT, between_ns BIGINT"
    rows = [(1, 1000, 2000, 1000, 900), (0, 9500, 1e7, 100, 5), (2, 1000, 1000, 100, 4)]
    told = [
        each for (each,) in ask("notes/between_windows", {"nsys.window_period": (columns, rows)})
    ]
    assert [each.partition(" (medians)")[0] for each in told] == [
        "device 0: 5 % of the time lies between the steady windows and is in no budget: a window "
        "takes 9.5 us, from its start to that of the next it is 10.0 ms",
        "device 1: 90 % of the time lies between the steady windows and is in no budget: a window "
        "takes 1.0 us, from its start to that of the next it is 2.0 us",
    ]


def test_note_full_mfu(ask):
    columns = "device BIGINT, rank BIGINT, opportunity VARCHAR, step_ns DOUBLE, median_ns DOUBLE"
    rows = [(0, 1, "o", 100, 40), (0, 2, "p", 100, 90), (1, 1, "o", 100, 39), (2, 1, "o", 9, 9)]

    def told(mfu):
        return [
            each
            for (each,) in ask("notes/full_mfu", {"nsys.opportunity": (columns, rows)}, mfu=mfu)
        ]

    start = "device {}: without the time of o an MFU of {} % would be {} %: above 100 % the given"
    for mfu in (90, 0.9):  # percent or fraction
        assert [each[: len(start) + 4] for each in told(mfu)] == [
            start.format(device, "90.0", would)[: len(start) + 4]
            for device, would in ((0, "150.0"), (1, "147.5"))
        ]
    # 100 % itself is possible
    assert [each[:8] for each in told(60)] == [] and len(told(61)) == 1
    assert told(None) == []
    # 1 is all of it, as a fraction, and 1.5 is a percentage
    assert len(told(1)) == 2 and told(1.5) == []


def test_note_skew(ask):
    # the call of a kernel begins after the gap that the kernel ends
    rows = [(1, 9, 5), (1, 5, 5), (0, 1_000_007, 7), (0, 500_000, 7), (0, None, 7), (2, 1, 2)]
    told = ask(
        "notes/skew", {"nsys.gap_cut": ("device BIGINT, call_start_ns BIGINT, end_ns BIGINT", rows)}
    )
    assert [each.partition(": the")[0] for (each,) in told] == [
        "device 0: 2 kernels that end a gap start before their own launch call, by up to 1.000 ms",
        "device 1: 1 kernels that end a gap start before their own launch call, by up to 0.000 ms",
    ]


def test_note_blocking_bound(ask):
    # device 0: 60 ns none, 20 each of graph and resolved; gaps that only touch 100-200 do not count
    gaps = [
        *[(0, "none", 100, 130), (0, "none", 130, 160), (0, "graph", 160, 180)],
        *[(0, "resolved", 190, 210), (0, "unresolved", 90, 100), (0, "inferred", 200, 210)],
        *[(1, "resolved", 0, 10), (1, "none", 40, 70), (2, "none", 0, 10)],
    ]
    tables = {
        "nsys.gap_cut": ("device BIGINT, evidence VARCHAR, start_ns BIGINT, end_ns BIGINT", gaps),
        "nsys.steady": (
            "device BIGINT, start_ns BIGINT, end_ns BIGINT",
            [(0, 100, 150), (0, 150, 200), (1, 5, 60)],
        ),
        "nsys.unseen_wait": ("device BIGINT, calls BIGINT, unseen BIGINT", [(1, 7, 0)]),
    }
    rest = "; implicit synchronisation of the default stream is not modelled"
    assert ask("notes/blocking_bound", tables) == [
        (
            "device 0: blocking is a lower bound; evidence by time without compute: none 60.0 % (2 "
            f"gaps), graph 20.0 % (1 gaps), resolved 20.0 % (1 gaps){rest}",
        ),
        (
            "device 1: blocking is resolved: every gap has a launch and known dependencies; "
            "evidence by time without compute: none 75.0 % (1 gaps), resolved 25.0 % (1 gaps)"
            f"{rest}",
        ),
    ]
    kinds = ("unresolved", "inferred", "no_launch", "graph", "resolved", "none")
    equal = [(1, evidence, 5, 6) for evidence in kinds]
    tables["nsys.gap_cut"] = (tables["nsys.gap_cut"][0], equal)
    ((told,),) = ask("notes/blocking_bound", tables)
    assert re.findall(r"(\w+) 16\.7 %", told) == sorted(kinds)
    for evidence in kinds:
        tables["nsys.gap_cut"] = (tables["nsys.gap_cut"][0], [(1, evidence, 5, 6)])
        ((told,),) = ask("notes/blocking_bound", tables)
        assert ("a lower bound" in told) == (evidence not in ("resolved", "none"))
    # waits that left no row: resolved is what is in the trace
    for evidence in kinds:
        tables["nsys.gap_cut"] = (tables["nsys.gap_cut"][0], [(1, evidence, 5, 6)])
        tables["nsys.unseen_wait"] = (tables["nsys.unseen_wait"][0], [(0, 1, 1), (1, 7, 2)])
        ((told,),) = ask("notes/blocking_bound", tables)
        assert told.startswith(
            "device 1: blocking is a lower bound: 2 of 7 calls that make a stream wait left no "
            "wait in the trace, so what they held up is unknown; evidence by time without compute, "
            f"of the waits that are in it: {evidence} 100.0 % (1 gaps)"
        )


def test_note_unmatched(ask):
    # of 1 000 ns of kernels, copies apart: a 10, b and c 20 each, d 9 and so below 1 %
    names = [(1, "d", False), (2, "a", False), (3, "c", False), (4, None, False), (5, "k", True)]
    work = [(1, 9), (2, 4), (2, 6), (3, 20), (4, 20), (5, 841), (-1, 999), (-2, 999), (-3, 999)]
    # and five of the same work
    names += [(10 + at, name, False) for at, name in enumerate("tpsrq")]
    work += [(10 + at, 20) for at in range(5)]
    tables = {
        "nsys.name_window": ("name_id BIGINT, work_ns BIGINT", work),
        "nsys.kernel_name": ("name_id BIGINT, name VARCHAR, is_matched BOOLEAN", names),
    }
    told = [each.partition(" of kernel")[0] for (each,) in ask("notes/unmatched", tables)]
    known = "no taxonomy rule knows"
    assert told == [
        *[f"{known} {name} (2.0 %" for name in "cpqrst"],
        f"{known} (unnamed kernel) (2.0 %",
        f"{known} a (1.0 %",
    ]


def test_note_deep_ranges(ask):
    nest = [(1, 9), (2, 11), (1, 8), (0, 12)]
    ranges = [(59, None), (60, 100), (70, 99), (71, 101), (34, None)]
    # of equal ranges one counts
    ranges = [(*each, 7, 3, at, "a") for at, each in enumerate(ranges)]
    ranges += [ranges[1], (*ranges[0][:2], 7, 3, 0, "a")]
    tables = {
        "nsys.range_nest": ("kind BIGINT, depth BIGINT", nest),
        "nsys.nvtx": (
            "event_type BIGINT, end_ns BIGINT, process BIGINT, thread BIGINT, start_ns BIGINT, "
            "text VARCHAR",
            ranges,
        ),
        "nsys.session_end": ("session_end_ns BIGINT", [(100,)]),
    }
    told = [each for (each,) in ask("notes/deep_ranges", tables)]
    assert told == [
        "2 NVTX ranges nest deeper than eight levels (up to 11) and count for the range of level "
        "eight around them",
        "3 NVTX ranges were still open when the capture ended and count until then",
    ]
    tables["nsys.range_nest"] = (tables["nsys.range_nest"][0], nest[2:])
    tables["nsys.nvtx"] = (tables["nsys.nvtx"][0], ranges[2:3])
    assert ask("notes/deep_ranges", tables) == []
    # one is enough, of each type of range
    tables["nsys.range_nest"] = (tables["nsys.range_nest"][0], nest[:1])
    for event_type, n in ((59, 2), (60, 2), (70, 2), (71, 2), (75, 1), (34, 1)):
        tables["nsys.nvtx"] = (tables["nsys.nvtx"][0], [(event_type, None, 7, 3, 1, "a")])
        told = [each for (each,) in ask("notes/deep_ranges", tables)]
        assert [each[:13] for each in told] == ["1 NVTX ranges"] * n


def test_note_perturbed(ask):
    columns = (
        "device BIGINT, profiled_median_ns DOUBLE, profiled_n BIGINT, unprofiled_median_ns DOUBLE, "
        "unprofiled_n BIGINT, slowdown_ns DOUBLE, is_material BOOLEAN, natural_spread_ns BIGINT, "
        "middle_spread_ns DOUBLE, is_other_step BOOLEAN"
    )
    rows = [
        (3, 1100, 5, 1000, 6, 100, False, 200, 100, False),  # within the middle half: not told
        (2, 1100, 5, 1000, 6, 100, False, 200, 99, False),
        (1, 1100, 5, 1000, 1, 100, None, None, None, False),
        (0, 1100, 5, 1000, 6, 100, True, 50, 40, False),
        (4, 900, 5, 1000, 6, -100, True, 50, 40, False),
        (5, 1000, 5, 1000, 6, 0, True, 50, 40, False),
    ]
    # the shorter one by far, of one unprofiled step too
    shorter = [(1, 25_000, 6, 30_000, n, -5_000, material, 1_000, 500, True)
               for n, material in ((3, False), (1, None))]  # fmt: skip
    for row in shorter:
        ((text,),) = ask("notes/perturbed", {"nsys.step_slowdown": (columns, [row])})
        assert text.startswith(
            "device 1: the profiled step of 25.0 us (n = 6) is 16.7 % shorter than the unprofiled "
            f"step of 30.0 us (n = {row[4]}), more than steps differ anyway: the window is probably"
            " not the step that the trainer timed, or the work is another"
        )
    told = [each for (each,) in ask("notes/perturbed", {"nsys.step_slowdown": (columns, rows)})]
    step = "the profiled step of 1.1 us (n = 5) is 10.0 % slower than the unprofiled step of 1.0 us"
    assert [each.partition(": absolute")[0].partition(": one")[0][:150] for each in told] == [
        f"perturbed: device 0: {step} (n = 6), beyond their natural spread of 0.1 us"[:150],
        f"device 1: {step} (n = 1)",
        f"device 2: {step} (n = 6), within their range but beyond that of their middle half"[:150],
    ]


METRIC = {
    "nsys.metric_sample": ("device BIGINT, time_ns BIGINT", []),
    "nsys.metric_given": ("scope VARCHAR, name VARCHAR", []),
    "nsys.device_map": ("device_ordinal BIGINT", []),
    "nsys.op_name": ("name_id BIGINT, name VARCHAR", [(1, "k"), (2, None), (3, "unused")]),
    "nsys.op": ("name_id BIGINT", [(1,), (2,), (1,)]),
}


def limits(ask, **rows):
    tables = {name: (columns, list(given)) for name, (columns, given) in METRIC.items()}
    for name, given in rows.items():
        tables[f"nsys.{name}"] = (tables[f"nsys.{name}"][0], given)
    return [
        each.partition(";")[0].partition(":")[0:3:2]
        for (each,) in ask("notes/metric_limits", tables)
    ]


def test_note_metric_limits(ask):
    samples = [(1, 0), (1, 2_000), (1, 3_000), (1, 4_000), (0, 7)]
    counted = [
        ("device 0", " 1 samples, one every ?"),
        ("device 1", " 4 samples, one every 1.0 us"),
    ]
    assumed = ("metrics name physical GPUs while this trace tells devices only by CUDA ordinal",
               " that device 0 is GPU 0 is an assumption")  # fmt: skip
    given = ("samples are those of another capture, joined by name of the operator and never to a "
             "single launch", "")  # fmt: skip
    assert limits(ask, metric_sample=samples, device_map=[(0,)]) == counted
    assert limits(ask, metric_sample=samples) == [*counted, assumed]
    assert limits(ask) == [("no sample of a known metric falls into the windows shown", "")]
    assert limits(ask, metric_given=[("kernel", "k"), ("class", "unused")]) == [given]
    strange = [("kernel", "unused"), ("kernel", "unused"), ("kernel", "k"), ("kernel", "odd")]
    (_, odd) = limits(ask, metric_given=strange[-1:])
    assert odd[0] == "1 kernels of the other capture do not run in this trace"
    assert limits(ask, metric_given=strange) == [
        given,
        ("2 kernels of the other capture do not run in this trace", " is it the same workload?"),
    ]


# ----------------------------------------------------------------------------------- invariants
BUDGET = {
    **{"iteration_ns": 100, "device_busy_ns": 70, "device_idle_ns": 30, "noncomm_busy_ns": 50},
    **{"compute_busy_ns": 40, "compute_absent_ns": 60, "occupied_not_computing_ns": 30},
    **{"launch_starved_ns": 20, "blocking_ns": 25, "dependency_stalled_ns": 10},
    **{"unattributed_ns": 5, "comm_busy_ns": 30, "comm_exposed_ns": 20, "comm_blocking_ns": 15},
    **{"launch_starved_shadowed_ns": 7, "start_ns": 1, "end_ns": 101},
}
TIGHT = {
    **dict.fromkeys(BUDGET, 0),
    **{"iteration_ns": 9, "device_busy_ns": 9, "noncomm_busy_ns": 9, "compute_busy_ns": 9},
}


def budget(*windows):
    """Rows of nsys.budget_window, (device, iteration, what differs) each."""
    columns = "device BIGINT, iteration BIGINT, " + ", ".join(f"{name} BIGINT" for name in BUDGET)
    rows = [(d, i, *{**BUDGET, **own}.values()) for d, i, own in windows]
    return {"nsys.budget_window": (columns, rows)}


@pytest.mark.parametrize(
    "wrong",
    [
        {"compute_busy_ns": 51, "compute_absent_ns": 49, "occupied_not_computing_ns": 19},
        {"noncomm_busy_ns": 71},
        {"device_busy_ns": 101, "device_idle_ns": -1, "occupied_not_computing_ns": 61},
        {"device_idle_ns": 31, "occupied_not_computing_ns": 29},
        {"compute_absent_ns": 61, "occupied_not_computing_ns": 31, "unattributed_ns": 6},
        {"occupied_not_computing_ns": 31},
        {"launch_starved_ns": 21},
        {"blocking_ns": 26},
        {"dependency_stalled_ns": 11},
        {"unattributed_ns": 6},
        {"comm_exposed_ns": -1},
        {"comm_exposed_ns": 31},
        {"comm_blocking_ns": -1},
        {"comm_blocking_ns": 26},
        {"launch_starved_shadowed_ns": -1},
        {"launch_starved_shadowed_ns": 21},
        {"unattributed_ns": None},
    ],
    ids=str,
)
def test_invariant_budget_adds_up(ask, wrong):
    windows = [(1, 2, wrong), (1, 1, wrong), (0, 3, wrong), (0, 1, {}), (0, 2, TIGHT)]
    found = [row[:2] for row in ask("invariants/budget_adds_up", budget(*windows))]
    assert found == [(0, 3), (1, 1), (1, 2)]


def test_invariants_of_shares_that_add_up(ask):
    windows = [(1, 2, {}), (1, 1, {}), (0, 3, {}), (0, 2, {}), (0, 1, {}), (2, 1, TIGHT)]
    windows += [(3, 1, TIGHT)]  # and nothing there
    shares = [(0, 1, 0), (0, 2, 0), (0, 3, 1), (1, 1, -1), (2, 1, 0)]  # and how much it is off
    asked = {
        "call_sites_add_up": (
            "nsys.call_site_window",
            "device BIGINT, iteration BIGINT, launch_starved_ns BIGINT, blocking_ns BIGINT",
            [(d, i, *((0, 0) if d == 2 else (20, 20 + off))) for d, i, off in shares],
            [(d, i, 0, 0 if d == 2 else 5) for d, i, _ in shares],
        ),
        "stalls_add_up": (
            "nsys.stall_window",
            "device BIGINT, iteration BIGINT, starved_ns BIGINT",
            [(d, i, 0 if d == 2 else 15 + off) for d, i, off in shares],
            [(d, i, 0 if d == 2 else 5) for d, i, _ in shares],
        ),
    }
    for name, (table, columns, *rows) in asked.items():
        tables = {**budget(*windows), table: (columns, [*rows[0], *rows[1]])}
        found = ask(f"invariants/{name}", tables)
        assert [row[:2] for row in found] == [(0, 3), (1, 1), (1, 2)]
        assert [row[3] for row in found] == ([46, 44, 0] if "site" in name else [21, 19, None])


def test_invariant_blockers_add_up(ask):
    names = ("name_id BIGINT, role VARCHAR", [(1, "comm"), (2, "compute"), (3, "comm")])
    windows = [(1, 1, {}), (0, 4, {}), (0, 3, {}), (0, 2, {}), (0, 1, {}), (2, 1, TIGHT)]
    windows.append((0, 5, {"blocking_ns": 0}))
    windows.append((3, 1, {"comm_blocking_ns": 0}))  # nobody to blame
    rows = [
        *[(0, 1, 1, 10), (0, 1, 3, 5), (0, 1, 2, 10)],
        *[(0, 2, 1, 16), (0, 2, 2, 9)],  # too much of communication
        *[(0, 3, 1, 15), (0, 3, 2, 11)],  # too much of all
        *[(0, 4, 1, 15), (0, 4, 2, 10)],
    ]
    tables = {
        **budget(*windows),
        "nsys.op_name": names,
        "nsys.blocking_window": (
            "device BIGINT, iteration BIGINT, name_id BIGINT, blocking_ns BIGINT",
            rows,
        ),
    }
    found = [row[:2] for row in ask("invariants/blockers_add_up", tables)]
    assert found == [(0, 2), (0, 3), (0, 5), (1, 1), (3, 1)]


def test_invariant_communication_in_budget(ask):
    windows = [(1, 1, {}), (0, 5, {}), (0, 4, {}), (0, 3, {}), (0, 2, {}), (0, 1, {})]
    rows = [
        *[(0, 1, 0, 30, 20, 15), (0, 2, 0, 31, 20, 15), (0, 3, 0, 30, 21, 15)],
        *[(0, 4, 0, 30, 20, 16), (0, 1, 1, 9, 9, 9), (0, 5, 1, 30, 20, 15)],
        (1, 2, 0, 30, 20, 15),
    ]
    columns = (
        "device BIGINT, iteration BIGINT, set_id BIGINT, busy_ns BIGINT, exposed_ns BIGINT, "
        "blocking_ns BIGINT"
    )
    tables = {**budget(*windows), "nsys.comm_window": (columns, rows)}
    found = [row[:2] for row in ask("invariants/communication_in_budget", tables)]
    assert found == [(0, 2), (0, 3), (0, 4), (0, 5), (1, 1)]


def test_invariant_phases_in_budget(ask):
    # of 70 busy and 40 computing: phases of 60 and 30, 35 and 20 overlap and cover both
    windows = [(1, 1, {}), (2, 1, TIGHT), *[(0, i, {}) for i in range(9, -1, -1)]]
    windows.append((3, 1, dict.fromkeys(BUDGET, 0)))
    fine = [(60, 30, 0, 0), (35, 20, 0, 0)]
    phases = {
        (0, 0): [*fine, (0, 0, 0, 0)],
        (0, 1): [(70, 40, 1, 2)],
        (0, 2): [*fine, (71, 0, 0, 0)],
        (0, 3): [(60, 30, 0, 0), (9, 20, 0, 0)],
        (0, 4): [*fine, (0, 41, 0, 0)],
        (0, 5): [(60, 30, 0, 0), (35, 9, 0, 0)],
        (0, 6): [*fine, (0, -1, 0, 0)],
        (0, 7): [*fine, (0, 0, -1, 0)],
        (0, 8): [*fine, (0, 0, 0, -1)],
        (2, 1): [(9, 9, 0, 0)],
    }
    # the least that no phase covers
    windows += [(4, 1, {**dict.fromkeys(BUDGET, 0), "device_busy_ns": 1})]
    windows += [(4, 2, {**dict.fromkeys(BUDGET, 0), "device_busy_ns": 1, "compute_busy_ns": 1})]
    phases[4, 2] = [(1, 0, 0, 0)]
    rows = [(*key, *phase) for key, listed in phases.items() for phase in listed]
    columns = (
        "device BIGINT, iteration BIGINT, busy_ns BIGINT, compute_ns BIGINT, comm_ns BIGINT, "
        "copy_ns BIGINT"
    )
    tables = {**budget(*windows), "nsys.phase_window": (columns, rows)}
    found = [row[:2] for row in ask("invariants/phases_in_budget", tables)]
    assert found == [*[(0, i) for i in range(2, 10)], (1, 1), (4, 1), (4, 2)]


@pytest.mark.parametrize(
    "wrong",
    [
        *[{"busy_ns": -1}, {"busy_ns": 71}, {"compute_ns": -1}, {"compute_ns": 41}],
        *[{"comm_ns": -1}, {"comm_ns": 31}, {"copy_ns": -1}, {"idle_ns": -1}],
        *[{"span_ns": 59}, {"span_ns": 101}, {"host_ns": -1}, {"host_ns": 91}],
        *[{"host_ns": 101, "host_work_ns": 200}, {"host_ns": None}],
    ],
    ids=str,
)
def test_invariant_ranges_in_budget(ask, wrong):
    fine = {"busy_ns": 50, "compute_ns": 30, "comm_ns": 15, "copy_ns": 5, "idle_ns": 10}
    fine |= {"span_ns": 60, "host_ns": 80, "host_work_ns": 90}
    most = {"busy_ns": 70, "compute_ns": 40, "comm_ns": 30, "copy_ns": 0, "idle_ns": 30}
    most |= {"span_ns": 100, "host_ns": 100, "host_work_ns": 100}
    # a part that is off makes the others fit, so that nothing else is
    rest = sum({**fine, **wrong}[name] for name in ("compute_ns", "comm_ns", "copy_ns", "idle_ns"))
    broken = {**fine, "span_ns": rest, **wrong}
    if wrong == {"span_ns": 101}:
        broken["idle_ns"] = 51
    least = dict.fromkeys(fine, 0)
    rows = [(1, 1, 2, broken), (1, 1, 1, broken), (0, 2, 1, broken), (0, 1, 3, broken)]
    rows += [(0, 1, 1, fine), (0, 1, 2, most), (0, 2, 2, least)]
    columns = "device BIGINT, iteration BIGINT, path_no BIGINT, "
    columns += ", ".join(f"{name} BIGINT" for name in fine)
    tables = {
        **budget((0, 1, {}), (0, 2, {}), (1, 1, {})),
        "nsys.range_window": (columns, [(*row[:3], *row[3].values()) for row in rows]),
    }
    found = ask("invariants/ranges_in_budget", tables)
    assert found == [(0, 1, 3), (0, 2, 1), (1, 1, 1), (1, 1, 2)]


# ---------------------------------------------------------------------------------------- facts
# one row for each thing that tells rows apart, and the first of them twice
NAMES = (
    "name_id BIGINT, name VARCHAR, class VARCHAR, role VARCHAR, collective VARCHAR",
    [
        *[(1, "n", "c", "comm", "x"), (2, "n", "c", "comm", "x"), (3, "n", "d", "comm", "x")],
        *[(4, "n", "c", "compute", "x"), (5, "n", "c", "comm", "y"), (6, "m", "c", "comm", "x")],
    ],
)
BY_NAME = [
    *[(0, 0, 1, 1, 10), (0, 0, 2, 2, 20), (0, 0, 3, 3, 30), (0, 0, 4, 4, 40), (0, 0, 5, 5, 50)],
    *[(0, 1, 1, 6, 60), (1, 0, 1, 7, 70)],
]


def test_fact_blocking(ask):
    columns = "device BIGINT, iteration BIGINT, name_id BIGINT, count BIGINT, blocking_ns BIGINT"
    found = ask(
        "facts/blocking", {"nsys.op_name": NAMES, "nsys.blocking_window": (columns, BY_NAME)}
    )
    assert sorted(found) == [
        (0, 0, "c", "comm", "x", 3, 30),
        (0, 0, "c", "comm", "y", 5, 50),
        (0, 0, "c", "compute", "x", 4, 40),
        (0, 0, "d", "comm", "x", 3, 30),
        (0, 1, "c", "comm", "x", 6, 60),
        (1, 0, "c", "comm", "x", 7, 70),
    ]


def test_fact_work(ask):
    columns = "device BIGINT, iteration BIGINT, name_id BIGINT, count BIGINT, work_ns BIGINT"
    rows = [*BY_NAME, (0, 0, 6, 8, 80)]
    found = ask("facts/work", {"nsys.op_name": NAMES, "nsys.name_window": (columns, rows)})
    assert sorted(found) == [
        (0, 0, "m", "c", "comm", "x", 8, 80),
        (0, 0, "n", "c", "comm", "x", 3, 30),
        (0, 0, "n", "c", "comm", "y", 5, 50),
        (0, 0, "n", "c", "compute", "x", 4, 40),
        (0, 0, "n", "d", "comm", "x", 3, 30),
        (0, 1, "n", "c", "comm", "x", 6, 60),
        (1, 0, "n", "c", "comm", "x", 7, 70),
    ]


def test_fact_evidence(ask):
    columns = "device BIGINT, evidence VARCHAR, unblocked_ns BIGINT, issued_ns BIGINT"
    rows = [(0, "none", 9, 4), (0, "none", 3, 1), (1, "none", 8, 7), (0, "graph", 5, 5)]
    found = ask("facts/evidence", {"nsys.gap_cut": (columns, rows)})
    assert sorted(found) == [(0, "graph", 1, 0), (0, "none", 2, 7), (1, "none", 1, 1)]


SEGMENTS = {
    # windows 0 (stretches 1 and 2) and 1 (stretch 3) of device 0, window 0 (stretch 1) of device 1
    "nsys.segment": (
        "device BIGINT, segment BIGINT, start_ns BIGINT, end_ns BIGINT",
        [
            *[(0, 1, 0, 100), (0, 2, 100, 200), (0, 3, 200, 300), (0, 4, 300, 400)],
            *[(1, 1, 50, 150), (1, 2, 150, 250)],
        ],
    ),
    "nsys.window_segment": (
        "device BIGINT, iteration BIGINT, segment BIGINT",
        [(0, 0, 1), (0, 0, 2), (0, 1, 3), (1, 0, 1)],
    ),
}


def test_fact_copy(ask):
    columns = (
        "device BIGINT, direction VARCHAR, way VARCHAR, source VARCHAR, destination VARCHAR, "
        "segment BIGINT, count BIGINT, bytes BIGINT, duration_ns BIGINT, work_ns BIGINT"
    )
    base = (0, "up", "dma", "a", "b")
    rows = [
        # one that runs past the end of the window: counted before it, its work on both sides
        *[(*base, 1, 1, 1, 2, 1), (*base, 2, 1, 10, 50, 20), (*base, 3, 0, 0, 0, 30)],
        *[(*base, 2, 1, 100, 3, 3), (*base, 3, 1, 1000, 4, 4), (*base, 4, 1, 7, 7, 7)],
        *[(0, "down", "dma", "a", "b", 1, 1, 2, 1, 1), (0, "up", "p2p", "a", "b", 1, 1, 3, 2, 2)],
        *[(0, "up", "dma", "c", "b", 1, 1, 4, 3, 3), (0, "up", "dma", "a", "d", 1, 1, 5, 4, 4)],
        *[(1, "up", "dma", "a", "b", 1, 1, 6, 10, 10), (*base, 0, 1, 7, 7, 7)],
    ]
    found = ask("facts/copy", {**SEGMENTS, "nsys.copy_piece": (columns, rows)})
    assert sorted(found) == [
        (0, 0, "down", "dma", "a", "b", 1, 2, 1, 1),
        (0, 0, "up", "dma", "a", "b", 3, 111, 55, 24),
        (0, 0, "up", "dma", "a", "d", 1, 5, 4, 4),
        (0, 0, "up", "dma", "c", "b", 1, 4, 3, 3),
        (0, 0, "up", "p2p", "a", "b", 1, 3, 2, 2),
        (0, 1, "up", "dma", "a", "b", 1, 1000, 4, 34),
        (1, 0, "up", "dma", "a", "b", 1, 6, 10, 10),
    ]


def test_fact_comm(ask):
    group = [(1, "all", None, None), (1, "all", None, None), (2, "class", "nccl", None)]
    window = [(0, 0, 1, 1, 2, 3, 4, 5), (0, 0, 2, 6, 7, 8, 9, 10), (0, 1, 2, 1, 1, 1, 1, 1)]
    tables = {
        "nsys.comm_group": (
            "set_id BIGINT, scope VARCHAR, class VARCHAR, collective VARCHAR",
            group,
        ),
        "nsys.comm_window": (
            "device BIGINT, iteration BIGINT, set_id BIGINT, count BIGINT, work_ns BIGINT, "
            "busy_ns BIGINT, exposed_ns BIGINT, blocking_ns BIGINT",
            window,
        ),
    }
    assert sorted(ask("facts/comm", tables)) == [
        (0, 0, "all", None, None, 1, 2, 3, 4, 5),
        (0, 0, "class", "nccl", None, 6, 7, 8, 9, 10),
        (0, 1, "class", "nccl", None, 1, 1, 1, 1, 1),
    ]


def test_fact_device(ask):
    tables = {
        "nsys.gpu": ("gpu_id BIGINT, name VARCHAR", [(0, "A"), (0, "B"), (2, "A"), (3, "C")]),
        "nsys.gpu_identity": ("gpu_id BIGINT, board VARCHAR", [(0, "x"), (0, "y"), (3, "z")]),
        "nsys.device_map": ("gpu_id BIGINT", [(0,), (2,), (2,)]),
        "nsys.steady": ("device BIGINT", [(0,), (0,), (1,)]),
        "nsys.op": (
            "device BIGINT, process BIGINT, role VARCHAR, start_ns BIGINT, end_ns BIGINT",
            [
                *[(0, 16777316, "compute", 5, 9), (0, 16777316, "comm", 4, 6)],
                *[(0, 16777316, "memcpy", 6, 11), (0, 101, "compute", 1, 2), (3, 7, "comm", 0, 1)],
            ],
        ),
    }
    rows = sorted(ask("facts/device", tables), key=lambda row: row[:2])
    assert rows == [
        (0, 101, 101, "B", "y", 1, 1, 0, 2, 1, 2),
        (0, 16777316, 100, "B", "y", 3, 1, 1, 2, 4, 11),
        (3, 7, 7, None, None, 1, 0, 1, 0, 0, 1),
    ]
    # boards of one name only: a GPU that CUDA ordinals do not lead to is of that name as well
    tables["nsys.gpu"] = ("gpu_id BIGINT, name VARCHAR", [(0, "A"), (1, "A")])
    assert [row[3] for row in ask("facts/device", tables)] == ["A", "A", "A"]


def test_fact_trace(ask):
    tables = {
        "nsys.session_start": ("utc_ns BIGINT", [(7,), (5,)]),
        "nsys.report_start": ("start_ns BIGINT", [(3,)]),
        "nsys.iteration": (
            "anchor VARCHAR, status VARCHAR",
            [("nvtx:s", "steady"), ("nvtx:s", "cut"), ("nvtx:s", "steady")],
        ),
    }
    assert ask("facts/trace", tables) == [(5, 2, 3, "nvtx:s", 3, 2)]


SETTING = {
    "nsys.gpu": (
        "name VARCHAR, chip_name VARCHAR, gpu_id BIGINT, sm_count BIGINT, clock_hz BIGINT, "
        "memory_bytes BIGINT",
        [
            *[("B", "b", 0, 132, 1_980_000_000, 85_899_345_920), ("A", "a", 1, 8, None, 1_572_864)],
            *[("B", "b", 2, 132, 1_980_000_000, 85_899_345_920), ("no", "n", None, None, 1, 1)],
        ],
    ),
    "nsys.device_map": ("gpu_id BIGINT", [(7,), (None,)]),
    "nsys.system_env": (
        "name VARCHAR, value VARCHAR",
        [
            *[("NvDriverVersion", "570"), ("CudaDriverVersion", "12"), ("CpuDescription", "cpu")],
            *[("CpuDescription", "abacus"), ("OsDescription", "os"), ("CaptureVersion", "2026.1")],
            *[("CaptureVersion", ""), ("Other", "zzz"), ("Another", "000")],
        ],
    ),
    "nsys.export_info": (
        "name VARCHAR, value VARCHAR",
        [("EXPORT_PRODUCT_VERSION", "2026.2"), ("Other", "zzz"), ("Another", "000")],
    ),
    "nsys.capability": (
        "relation VARCHAR, is_present BOOLEAN",
        [("nvtx", True), ("kernel", True), ("sync", False), ("string", True)],
    ),
    "nsys.op": ("kind VARCHAR, is_node BOOLEAN", [("kernel", False)]),
    "nsys.graph_op": ("op_id BIGINT", []),
    "nsys.control_call": ("control VARCHAR", [("synchronise",)]),
    "nsys.capture_info": (
        "name VARCHAR, value VARCHAR",
        [
            *[("TRACE_A:B", "2"), ("TRACE_A:B", "1"), ("START_DELAY_MS", "1")],
            *[("RUN_DURATION_MS", "1"), ("other", "o")],
        ],
    ),
}


def test_fact_setting(ask):
    assert sorted(ask("facts/setting", SETTING)) == [
        ("CPU", "cpu"),
        ("CUDA driver", "12"),
        ("CUDA graphs", "none"),
        ("GPU", "A (8 SM, ? MHz, 2 MiB); B (132 SM, 1980 MHz, 81920 MiB)"),
        ("NVIDIA driver", "570"),
        ("nsys capture", "2026.1"),
        ("nsys export", "2026.2"),
        ("operating system", "os"),
        ("other", "o"),
        ("profiler range", "whole run"),
        ("recorded", "kernel, nvtx"),
        ("trace a b", "1, 2"),
    ]


def test_fact_setting_of_gpus_that_are_hardly_known(ask):
    def told(*gpus, mapped=()):
        own = {
            "nsys.gpu": (SETTING["nsys.gpu"][0], list(gpus)),
            "nsys.device_map": ("gpu_id BIGINT", [(each,) for each in mapped]),
        }
        return dict(ask("facts/setting", {**SETTING, **own}))["GPU"]

    old, other = ("H", None, 0, None, None, None), ("I", None, 1, None, None, 1 << 20)
    # nothing is known to run CUDA: all that is listed; else only what is
    assert told(old, other) == "H (?); I (? SM, ? MHz, 1 MiB)"
    assert told(old, other, mapped=[0]) == "H (?)"
    assert told(old, ("X", None, 2, 8, 10**6, None)) == "X (8 SM, 1 MHz, ? MiB)"
    assert told(old, ("X", None, 2, 8, 10**6, None), mapped=[0]) == "H (?); X (8 SM, 1 MHz, ? MiB)"
    # the chip where there is no name, and nothing of a row that says nothing
    assert told((None, "GH100", 0, None, None, None), (None, "GH100", 1, None, None, None)) == (
        "GH100 (?)"
    )
    assert told((None, None, 0, 4, None, None)) == "? (4 SM, ? MHz, ? MiB)"
    assert told((None, None, 0, None, 10**6, None)) == "? (? SM, 1 MHz, ? MiB)"
    assert told((None, None, 0, None, None, 1 << 40)) == "? (? SM, ? MHz, 1048576 MiB)"
    assert told((None, None, 0, None, None, None)) is None


@pytest.mark.parametrize(
    ("kinds", "nodes", "graphs"),
    [
        (["kernel"], [], "none"),
        (["kernel"], [1], "by node"),
        (["kernel", "node"], [], "by node"),
        (["graph"], [], "as a whole"),
        (["kernel", "graph"], [1], "by node and as a whole"),
    ],
)
def test_fact_setting_of_graphs(ask, kinds, nodes, graphs):
    own = {
        "nsys.op": (
            "kind VARCHAR, is_node BOOLEAN",
            [("kernel" if each == "node" else each, each == "node") for each in kinds],
        ),
        "nsys.graph_op": ("op_id BIGINT", [(each,) for each in nodes]),
        "nsys.control_call": ("control VARCHAR", [("profiler start",), ("other",)]),
    }
    found = dict(ask("facts/setting", {**SETTING, **own}))
    assert (found["CUDA graphs"], found["profiler range"]) == (graphs, "by calls")


def collectives(ask, payloads, calls, ops, nvtx):
    tables = {
        **SEGMENTS,
        "nsys.op": (
            "op_id BIGINT, device BIGINT, process BIGINT, context_id BIGINT, stream_id BIGINT, "
            "correlation_id BIGINT, class VARCHAR, name_id BIGINT, start_ns BIGINT, end_ns BIGINT, "
            "role VARCHAR",
            ops,
        ),
        "nsys.nvtx_payload": ("row_id BIGINT, payload VARCHAR", payloads),
        "nsys.nvtx": (
            "row_id BIGINT, thread BIGINT, event_type BIGINT, start_ns BIGINT, end_ns BIGINT",
            nvtx,
        ),
        "nsys.outermost_call": (
            "process BIGINT, correlation_id BIGINT, thread BIGINT, start_ns BIGINT, end_ns BIGINT",
            calls,
        ),
        "nsys.op_name": (
            "name_id BIGINT, name VARCHAR, collective VARCHAR",
            [(1, "sum", "all_reduce"), (2, "odd", None)],
        ),
    }
    return sorted(ask("facts/collective", tables))


def op(op_id, process, corr, start, *, device=0, role="comm", name=1):
    return (op_id, device, process, 1, 7, corr, "nccl", name, start, start + 5, role)


def test_fact_collective(ask):
    # stretches: 0-100 and 100-200 window 0, 200-300 window 1, then none; device 1: 50-150
    ops = [
        *[op(1, 8, 1, 0), op(2, 8, 2, 99), op(3, 8, 3, 100), op(4, 8, 4, 200), op(5, 8, 5, 300)],
        *[op(6, 8, 6, 60, device=1), op(7, 8, 7, 49, device=1), op(8, 8, 8, 10, role="compute")],
        op(9, 9, 1, 20, name=2),
    ]
    ranges = [(1, 11, 59, 0, 10), (2, 11, 60, 20, 30), (3, 12, 61, 40, 50), (4, 12, 59, 60, 70)]
    ranges += [(5, 11, 59, 80, None), (6, 12, 59, 25, 100)]
    payloads = [
        (1, '{"NCCL communicator ID": 17, "Message size [bytes]": 4096}'),
        (2, '{"Communicator": "c2", "bytes": "88"}'),
        (3, '{"communicator": "no such type"}'),
        (4, "{}"),
        (5, '{"communicator": "never ends"}'),
    ]
    calls = [
        *[(8, 1, 11, 0, 9), (8, 2, 11, 20, 30), (8, 3, 11, 25, 31)],
        *[(8, 4, 12, 45, 46), (8, 6, 12, 60, 61), (9, 1, 11, 85, 86)],
    ]
    found = collectives(ask, payloads, calls, ops, ranges)
    shown = [(*row[:3], row[3], row[6], row[7], row[9], *row[10:]) for row in found]
    assert shown == [
        (0, 0, 1, 8, 1, "all_reduce", "sum", 0, 5, "17", 4096),
        (0, 0, 2, 8, 2, "all_reduce", "sum", 99, 104, "c2", 88),
        (0, 0, 3, 8, 3, "all_reduce", "sum", 100, 105, None, None),
        (0, 0, 9, 9, 1, "other", "odd", 20, 25, None, None),
        (0, 1, 4, 8, 4, "all_reduce", "sum", 200, 205, None, None),
        (1, 0, 6, 8, 6, "all_reduce", "sum", 60, 65, None, None),
    ]


# -------------------------------------------------------------------------------------- history
def stored(**more):
    labels = "{b=x, a=y}"
    return {
        "store.run": (
            "run_id BIGINT, added_at TIMESTAMP, labels MAP(VARCHAR, VARCHAR), setup VARCHAR",
            [
                (1, "2026-01-02 03:04:05", labels, "s"),
                (2, "2026-01-03 00:00:00", "{a=y}", "s"),
                (3, "2026-01-04 00:00:00", "{}", "t"),
                (4, "2026-01-05 00:00:00", "{a=n}", "s"),
            ],
        ),
        "store.budget": (
            "run_id BIGINT, member BIGINT, rank BIGINT, metric VARCHAR, median_ns BIGINT, "
            "min_ns BIGINT, max_ns BIGINT, n BIGINT",
            [
                *[(2, 1, 5, "iteration", 100, 90, 110, 3), (2, 0, 4, "iteration", 150, 1, 2, 3)],
                *[(1, 0, 4, "iteration", 200, 1, 2, 3), (1, 1, 5, "iteration", 0, 0, 0, 3)],
                *[(3, 0, 4, "iteration", 300, 1, 2, 3), (4, 0, 4, "iteration", 300, 1, 2, 3)],
                *[(1, 0, 4, "blocking", 1, 1, 1, 3), (4, 0, 4, "blocking", 2, 2, 2, 3)],
            ],
        ),
        "wanted": ("name VARCHAR, value VARCHAR", []),
        **more,
    }


def test_history(ask):
    found = ask("history/history", stored())
    assert [(*row[:4], row[5], row[7], row[11]) for row in found] == [
        (1, "2026-01-02 03:04:05", "a=y, b=x", 0, "s", 200, None),
        (1, "2026-01-02 03:04:05", "a=y, b=x", 1, "s", 0, None),
        (2, "2026-01-03 00:00:00", "a=y", 0, "s", 150, -25.0),
        (2, "2026-01-03 00:00:00", "a=y", 1, "s", 100, None),
        (3, "2026-01-04 00:00:00", "", 0, "t", 300, None),
        (4, "2026-01-05 00:00:00", "a=n", 0, "s", 300, 100.0),
    ]
    blocking = ask("history/history", stored(), metric="blocking")
    assert [(row[0], row[7], row[11]) for row in blocking] == [(1, 1, None), (4, 2, 100.0)]


def test_history_of_labelled_runs(ask):
    def runs(*wanted):
        tables = stored(wanted=("name VARCHAR, value VARCHAR", list(wanted)))
        return sorted({row[0] for row in ask("history/history", tables)})

    assert runs(("a", "y")) == [1, 2]
    assert runs(("a", "y"), ("b", "x")) == [1]
    assert runs(("b", None)) == [2, 3, 4]
