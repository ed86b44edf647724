"""Recipes that show what steps hold, and steps that count, over small tables made by hand."""

import pytest

MS = 10**6


def made(text, rows):
    """'a b:VARCHAR' and rows as a table for `ask`; BIGINT where nothing is said."""
    pairs = (each.partition(":")[::2] for each in text.split())
    columns = ", ".join(f'"{name}" {kind or "BIGINT"}' for name, kind in pairs)
    plain = [tuple(str(each) if isinstance(each, bool) else each for each in row) for row in rows]
    return columns, plain


def steady(*windows):
    return {"nsys.steady": made("device iteration start_ns end_ns", windows)}


THREE = [(0, 0, 0, 10 * MS), (0, 1, 0, 20 * MS), (0, 2, 0, 40 * MS), (1, 0, 0, 4 * MS)]
BUDGET = [
    *("iteration", "device_busy", "device_idle", "noncomm_busy", "comm_busy", "compute_busy"),
    *("compute_absent", "occupied_not_computing", "launch_starved", "blocking"),
    *("dependency_stalled", "unattributed", "comm_exposed", "comm_blocking", "comm_overlapped"),
]


def budget_windows(*rows):
    names = " ".join(f"{name}_ns" for name in [*BUDGET, "launch_starved_shadowed"])
    return {"nsys.budget_window": made(f"device iteration start_ns end_ns {names}", rows)}


def window(device, iteration, start):
    return (device, iteration, start, start + 9, *((start + n) * MS for n in range(16)))


def test_budget(ask):
    rows = [
        window(0, 3, 10),
        window(0, 1, 20),
        window(1, 0, 40),
        window(0, 2, 12),
        window(0, 7, 18),
    ]
    found = ask("recipes/budget", budget_windows(*rows))
    # 10, 12, 18 and 20 ms
    assert found == [
        *[
            (0, name, 15 + n, 10 + n, 20 + n, 15 + n, pytest.approx(100 * (15 + n) / 15), 4)
            for n, name in enumerate(BUDGET)
        ],
        *[
            (1, name, *[40 + n] * 4, pytest.approx(100 * (40 + n) / 40), 1)
            for n, name in enumerate(BUDGET)
        ],
    ]


def test_iterations(ask):
    windows = [
        # numbered as they start; what is not closed ends nowhere, so nothing comes behind its end
        *[(1, 1, 9, 14, "cut"), (0, 2, 30, 45, "steady"), (0, 0, 10, 20, "steady")],
        *[(0, 3, 40, None, "unclosed"), (0, 1, 20, 28, "warmup"), (1, 0, 0, 5, "steady")],
        *[(0, 4, 60, 61, "steady"), (0, 5, 70, 90, "unclosed"), (0, 6, 95, 96, "steady")],
    ]
    columns = "device iteration start_ns end_ns status:VARCHAR anchor:VARCHAR"
    tables = {"nsys.iteration": made(columns, [(*row, "s") for row in windows])}
    found = ask("recipes/iterations", tables)
    assert [row[:4] for row in found] == [row[:4] for row in sorted(windows)]
    # duration in ms, status, anchor, period, gap before
    assert [row[4:] for row in found] == [
        *[(1e-5, "steady", "s", 10, None), (8e-6, "warmup", "s", 10, 0)],
        *[(1.5e-5, "steady", "s", 10, 2), (None, "unclosed", "s", 20, -5)],
        *[(1e-6, "steady", "s", 10, None), (2e-5, "unclosed", "s", 25, 9)],
        *[(1e-6, "steady", "s", None, None), (5e-6, "steady", "s", 9, None)],
        (5e-6, "cut", "s", None, 4),
    ]
    assert ask("recipes/iterations", tables, device=1) == found[-2:]


def test_slowdown(ask):
    columns = (
        "device profiled_median_ns:DOUBLE profiled_min_ns profiled_max_ns profiled_n "
        "unprofiled_median_ns:DOUBLE unprofiled_min_ns unprofiled_max_ns unprofiled_n "
        "unprofiled_outliers slowdown_ns:DOUBLE natural_spread_ns is_material:BOOLEAN"
    )
    row = (12 * MS, 11 * MS, 14 * MS, 5, 10 * MS, 9 * MS, 13 * MS, 6, 1, 2 * MS, 4 * MS, True)
    rows = [(at, *row[:3], at, *row[4:]) for at in (2, 0, 1)]
    assert ask("recipes/slowdown", {"nsys.step_slowdown": made(columns, rows)}) == [
        (at, 12, 11, 14, at, 10, 9, 13, 6, 1, 2, 20, 4, True) for at in range(3)
    ]


def test_budget_windows(ask):
    rows = [window(device, at, 10) for device in (1, 0) for at in (2, 1)]
    assert ask("recipes/budget_windows", budget_windows(*rows)) == sorted(rows)


def kernels(ask, work=(), ops=(), windows=THREE[:3], **variables):
    tables = {
        **steady(*windows),
        "nsys.name_window": made("name_id count work_ns duration_ns min_ns max_ns", work),
        "nsys.op": made("name_id device start_ns end_ns", ops),
        "nsys.op_name": made(
            "name_id name:VARCHAR class:VARCHAR role:VARCHAR",
            [
                *[(1, "b", "gemm", "compute"), (2, "a", "norm", "compute"), (3, None, "x", "comm")],
                *[(4, "b", "gemm", "compute"), (-1, "m", "memcpy", "memcpy")],
                *[(-2, "s", "memset", "memset"), (-3, "g", "graph", "compute")],
            ],
        ),
    }
    return ask("recipes/kernels", tables, **variables)


def test_kernels(ask):
    work = [
        # 2, 4 and 0 ms of windows of 10, 20 and 40
        *[(1, 2, 2 * MS, 3 * MS, 1_000, 2_000), (1, 3, 4 * MS, 7 * MS, 500, 9_000)],
        *[(2, 0, 6 * MS, 0, None, None), (3, 1, MS, MS, 7, 8), (4, 1, MS, MS, 7, 8)],
        *[(-1, 9, 99 * MS, 9, 9, 9), (-2, 9, 99 * MS, 9, 9, 9), (-3, 1, MS, MS, 7, 8)],
    ]
    found = kernels(ask, work)
    assert found == [
        ("a", "norm", "compute", 0, 6, None, None, None, 0),
        ("b", "gemm", "compute", 5, 6, 2_000, 0.5, 9, 10),
        ("(unnamed kernel)", "x", "comm", 1, 1, 1_000, 0.007, 0.008, 0),
        ("b", "gemm", "compute", 1, 1, 1_000, 0.007, 0.008, 0),
        ("g", "graph", "compute", 1, 1, 1_000, 0.007, 0.008, 0),
    ]


def test_kernels_of_the_whole_trace(ask):
    ops = [(1, 0, 0, 3_000), (1, 1, 5_000, 6_000), (2, 0, 0, 4_000), (-1, 0, 0, 99)]
    assert kernels(ask, ops=ops, windows=[]) == [
        ("a", "norm", "compute", 1, 0.004, 4, 4, 4, None),
        ("b", "gemm", "compute", 2, 0.004, 2, 1, 3, None),
    ]
    found = kernels(ask, ops=ops, windows=[], device=1)
    assert [row[:4] for row in found] == [("b", "gemm", "compute", 1)]
    assert kernels(ask, ops=ops) == []
    # by name, then by number
    tie = [(4, 0, 0, 1), (1, 0, 0, 1), (1, 0, 0, 0), (2, 0, 0, 1)]
    assert [row[:4:3] for row in kernels(ask, ops=tie, windows=[])] == [
        ("a", 1),
        ("b", 2),
        ("b", 1),
    ]


def test_communication(ask):
    groups = [
        *[(0, "all", None, None, 1), (0, "all", None, None, 2), (1, "class", "nccl", None, 1)],
        *[(2, "class", "transport", None, 2), (3, "collective", "nccl", "AllReduce", 1)],
        *[(4, "collective", "nccl", "AllGather", 3), (5, "peer_copy", "memcpy", None, 4)],
        *[(6, "fused_compute", "fused_gemm_comm", None, 5), (7, "collective", None, "x", 6)],
        (8, "collective", "nccl", None, 6),
    ]
    # device, iteration, set, count, work, busy, exposed, blocking
    rows = [
        *[(0, 0, 0, 3, 9, 8, 5, 4), (0, 1, 0, 1, 3, 2, 1, 0), (0, 2, 0, 2, 5, 4, 4, 2)],
        *[(0, 1, 1, 2, 6, 6, 2, 1), (0, 2, 1, 4, 8, 8, 4, 3), (1, 0, 0, 0, 0, 0, 0, 0)],
        *[(0, at, 2, 1, 7, 7, 7, 7) for at in range(3)],
        *[(0, at, number, 1, 1, 1, 0, 0) for number in (3, 4, 5, 6, 7, 8) for at in range(3)],
    ]
    tables = {
        **steady(*THREE),
        "nsys.comm_group": made(
            "set_id scope:VARCHAR class:VARCHAR collective:VARCHAR name_id", groups
        ),
        "nsys.comm_window": made(
            "device iteration set_id count work_ns busy_ns exposed_ns blocking_ns",
            [(*row[:4], *(ns * MS for ns in row[4:])) for row in rows],
        ),
    }
    found = ask("recipes/communication", tables)
    assert [row[:4] for row in found] == [
        *[(0, "all", None, None), (0, "nccl_only", "nccl", None), (0, "class", "transport", None)],
        *[
            (0, "class", "nccl", None),
            (0, "collective", None, "x"),
            (0, "collective", "nccl", None),
        ],
        *[(0, "collective", "nccl", "AllGather"), (0, "collective", "nccl", "AllReduce")],
        *[(0, "fused_compute", "fused_gemm_comm", None), (0, "peer_copy", "memcpy", None)],
        (1, "all", None, None),
    ]
    assert found[0][4:] == (2, 5, 4, 4, 2, 1, 25, 3, 9, 2, 8, 1, 5, 0, 4, 3)
    assert found[1][4:] == (2, 6, 6, 2, 1, 4, pytest.approx(200 / 3), 0, 8, 0, 8, 0, 4, 0, 3, 3)
    assert found[3][4:] == found[1][4:]
    assert found[-1][4:] == (*[0] * 6, None, *[0] * 8, 1)


def test_gaps(ask):
    cuts = [
        # device, start, issued, unblocked, end, shadowed, op, issue, producer, its times, its role
        (0, 10, 12, 15, 19, 1, 1, 12, 2, 8, 15, "comm"),
        (0, 5, 5, 5, 9, 0, 3, None, None, None, None, None),
        (1, 10, 11, 20, 20, 0, 4, 11, 3, 8, 30, "compute"),
    ]
    tables = {
        "nsys.gap_cut": made(
            "device start_ns issued_ns unblocked_ns end_ns shadowed_ns op_id issue_ns producer_id "
            "producer_start_ns producer_end_ns producer_role:VARCHAR evidence:VARCHAR",
            [(*cut, f"e{cut[6]}") for cut in cuts],
        ),
        "nsys.blocking_part": made(
            "device gap_start_ns start_ns end_ns role:VARCHAR",
            [
                *[(0, 10, 12, 13, "comm"), (0, 10, 13, 14, "memcpy"), (0, 10, 14, 15, "comm")],
                (1, 10, 11, 20, "compute"),
            ],
        ),
        "nsys.op": made(
            "op_id name_id class:VARCHAR",
            [(1, 11, "gemm"), (2, 12, "nccl"), (3, 13, "norm"), (4, 14, "rope")],
        ),
        "nsys.op_name": made("name_id name:VARCHAR", [(11, "k"), (12, "n"), (14, "r")]),
    }
    unnamed = "(unnamed kernel)"
    found = ask("recipes/gaps", tables)
    assert found == [
        (0, 5, 9, 0, 0, 0, 4, 0, unnamed, None, None, None, None, None, None, "e3"),
        (0, 10, 19, 2, 3, 2, 4, 1, "k", 12, "n", "nccl", "comm", 8, 15, "e1"),
        (1, 10, 20, 1, 9, 0, 0, 0, "r", 11, unnamed, "norm", "compute", 8, 30, "e4"),
    ]
    assert ask("recipes/gaps", tables, device=1) == found[2:]


def test_host_stalls(ask):
    rows = [
        *[(0, "sync", "wait", 1, 2, 6, 1), (0, "sync", "wait", 1, 4, 8, 2)],
        *[(0, "code", None, None, 1, 3, 3), (0, "sync", "wait", 2, 1, 14, 0)],
        *[(0, "a", "z", None, 1, 3, 0), (0, "code", "b", None, 1, 3, 0)],
        *[(0, "code", "b", 1, 1, 3, 0), (1, "code", None, None, 5, 1, 0)],
    ]
    tables = {
        **steady(*THREE),
        "nsys.stall_window": made(
            "iteration device activity:VARCHAR name:VARCHAR path_no count starved_ns busy_ns",
            [(at, *row[:5], row[5] * MS, row[6] * MS) for at, row in enumerate(rows)],
        ),
        "nsys.range_path": made("path_no path:VARCHAR", [(1, "a/b"), (2, "c")]),
    }
    found = ask("recipes/host_stalls", tables)
    assert [row[:4] for row in found] == [
        *[(0, "sync", "wait", "a/b"), (0, "sync", "wait", "c"), (0, "a", "z", None)],
        *[(0, "code", "b", "a/b"), (0, "code", "b", None), (0, "code", None, None)],
        (1, "code", None, None),
    ]
    assert found[0][4:] == (2, 6, 0, 8, 5, 30, 35, 3)
    assert found[1][4:] == (0, 0, 0, 14, 0, 0, 35, 3)
    assert found[-1][4:] == (5, 1, 1, 1, 1, 25, 100, 1)


def test_host_stalls_that_are_small_are_one_row(ask):
    """With the medians of their sum: of two that take turns neither has one."""
    rows = [
        *[(at, 0, "code", None, None, 1, 4900, 0) for at in range(3)],
        *[(0, 0, "call", "b", 1, 2, 99, 9), (1, 0, "call", "a", None, 3, 89, 0)],
        *[(2, 0, "sync", "b", 1, 1, 112, 5), (0, 1, "call", "b", 1, 1, 1, 0)],
        *[(0, 1, "code", None, None, 1, 999, 0), (0, 2, "sync", "c", 1, 1, 99, 0)],
    ]
    tables = {
        **steady(*THREE),
        "nsys.stall_window": made(
            "iteration device activity:VARCHAR name:VARCHAR path_no count starved_ns busy_ns",
            [(*row[:6], row[6] * MS, row[7] * MS) for row in rows],
        ),
        "nsys.range_path": made("path_no path:VARCHAR", [(1, "a/b")]),
    }

    def told(**given):
        found = ask("recipes/host_stalls", tables, **given)
        assert sum(row[10] for row in found if row[0] == 0) == pytest.approx(100)
        return [(*row[:3], *row[4:9]) for row in found]

    code = (0, "code", None, 1, 4900, 4900, 4900, 4900)
    others = [
        (1, "code", None, 1, 999, 999, 999, 999),
        (1, "call", "b", 1, 1, 1, 1, 1),  # a small one alone is not renamed
    ]
    assert told() == [code, (0, "rest", None, 2, 99, 89, 112, 90), *others]
    assert [row[:3] for row in told(min_pct=0)] == [
        *[(0, "code", None), (0, "sync", "b"), (0, "call", "b"), (0, "call", "a")],
        *(row[:3] for row in others),
    ]
    # from its share on a row stands by itself: 112 of 15 000
    assert [row[1] for row in told(min_pct=112 / 150)] == ["code", "sync", "rest", "code", "call"]


def test_nvtx(ask):
    rows = [
        *[(0, 2, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10), (0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)],
        *[(0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1), (1, 2, 9, 1, 1, 1, 1, 1, 1, 1, 1, 1)],
    ]
    tables = {
        **steady(*THREE),
        "nsys.range_window": made(
            "device path_no count host_ns host_work_ns op_count span_ns busy_ns compute_ns "
            "comm_ns copy_ns idle_ns",
            [
                (*row[:3], *(MS * ns for ns in row[3:5]), row[5], *(MS * ns for ns in row[6:]))
                for row in rows
            ],
        ),
        "nsys.range_path": made(
            "path_no path:VARCHAR is_free:BOOLEAN depth", [(1, "a", False, 1), (2, "b", True, 3)]
        ),
    }
    assert ask("recipes/nvtx", tables) == [
        (0, "a", "push_pop", 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 3),
        (0, "b", "start_end", 3, 1, 2, 0, 4, 3, 4, 5, 6, 0, 8, 7, 8, 9, 10, 30, 3),
        (1, "b", "start_end", 3, 9, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 25, 1),
    ]


def test_phases(ask):
    phases = [
        *("data", "forward", "backward", "grad_sync", "optimizer", "evaluation", "checkpoint"),
        "unattributed",
    ]
    rows = [(0, phase, 1, 1, 0, 0, 1, 1, 1, 1) for phase in sorted(phases)]
    rows += [(0, "forward", 3, 5, 8, 2, 6, 7, 8, 9), (1, "data", 2, 3, 4, 1, 4, 5, 6, 7)]
    tables = {
        **steady(*THREE),
        "nsys.phase_window": made(
            "device phase:VARCHAR count host_ns op_count borrowed_count busy_ns compute_ns comm_ns "
            "copy_ns",
            [(*row[:3], MS * row[3], *row[4:6], *(MS * ns for ns in row[6:])) for row in rows],
        ),
    }
    found = ask("recipes/phases", tables)
    assert [row[:2] for row in found] == [*[(0, phase) for phase in phases], (1, "data")]
    assert found[0][2:] == (0, 0, 0, None, 0, 0, 1, 0, 0, 0, 0, 3)
    assert found[1][2:] == (1, 1, 0, 25, 1, 0, 6, 1, 1, 1, 5, 3)
    assert found[-1][2:] == (2, 3, 4, 25, 4, 4, 4, 5, 6, 7, 100, 1)


def test_processes(ask):
    first, other = (1 << 24) + 5, (2 << 24) + 5
    ops = [
        *[(first, 0, "kernel"), (other, 2, "kernel"), (first, 0, "memcpy"), (first, 1, "memset")],
        *[(first, 1, "graph"), (6, 3, "kernel"), (None, 4, "graph")],
    ]
    rows = {
        "op": made("process device kind:VARCHAR", ops),
        "call": made("process thread", [(first, 1), (other, 1), (first, 2), (7, 1), (None, 4)]),
        "nvtx": made("process", [(first,), (8,), (None,), (None,)]),
    }

    def told(*present):
        names = ("kernel", "memcpy", "memset", "graph_exec", "api_call", "nvtx")
        capability = [(name, name in present) for name in names]
        tables = {f"nsys.{name}": each for name, each in rows.items()}
        tables["nsys.capability"] = made("relation:VARCHAR is_present:BOOLEAN", capability)
        return ask("recipes/processes", tables)

    assert told("kernel", "memcpy", "memset", "graph_exec", "api_call", "nvtx") == [
        (5, "0, 1, 2", 2, 1, 1, 1, 3, 1, 2),
        (6, "3", 1, 0, 0, 0, 0, 0, 0),
        (7, None, 0, 0, 0, 0, 1, 0, 1),
        (8, None, 0, 0, 0, 0, 0, 1, 0),
        (None, "4", 0, 0, 0, 1, 1, 2, 1),
    ]
    for at, name in enumerate(("kernel", "memcpy", "memset", "graph_exec", "api_call", "nvtx"), 2):
        row = told(name)[0]
        known = {at, 8} if name == "api_call" else {at}
        assert {n for n in range(2, 9) if row[n] is not None} == known


def test_taxonomy(ask):
    kernels = [(1, 0, 30), (1, 50, 60), (2, 0, 60), (None, 0, 60), (3, 5, 4), (4, 0, 40)]
    names = [
        *[(1, "a", "gemm", True), (2, "b", "other", False), (None, None, "other", False)],
        *[(4, "c", "norm", True), (3, "d", "norm", True), (5, "e", "norm", True)],
    ]
    tables = {
        "nsys.kernel": made("name_id start_ns end_ns", kernels),
        "nsys.kernel_name": made(
            "name_id name:VARCHAR class:VARCHAR is_matched:BOOLEAN role:VARCHAR "
            "collective:VARCHAR rule:VARCHAR",
            [(*row, "r", "c", "t") for row in names],
        ),
    }
    found = ask("recipes/taxonomy", tables)
    assert [(*row[:2], row[4], *row[6:]) for row in found] == [
        ("b", "other", False, 1, 60, 30, 2),
        (None, "other", False, 1, 60, 30, None),
        ("a", "gemm", True, 2, 40, 20, 1),
        ("c", "norm", True, 1, 40, 20, 4),
        ("d", "norm", True, 0, 0, 0, 3),
        ("e", "norm", True, 0, 0, 0, 5),
    ]
    assert found[0][2:4] == ("r", "c") and found[0][5] == "t"
    tables["nsys.kernel"] = made("name_id start_ns end_ns", [(1, 5, 5)])
    assert {row[8] for row in ask("recipes/taxonomy", tables)} == {0}


def anchors(ask, choice, *rows):
    numbers = (
        "per_iteration count median_period_ns min_period_ns max_period_ns variation_pct "
        "steady_pct share_pct"
    )
    tables = {
        "nsys.anchor_candidate": made(
            "rank kind:VARCHAR pattern:VARCHAR device is_plausible:BOOLEAN reason:VARCHAR "
            + numbers,
            [(*row, *range(8)) for row in rows],
        ),
        "nsys.anchor_choice": made(
            "status:VARCHAR rival_kind:VARCHAR rival_pattern:VARCHAR", [choice]
        ),
    }
    return [(*row[:3], row[4], *row[-2:]) for row in ask("recipes/anchors", tables)]


def test_anchors(ask):
    rows = [
        *[(2, "kernel", "k", 1, True, None), (2, "kernel", "k", 0, True, None)],
        *[(1, "nvtx", "s", 0, True, None), (3, "kernel", "s", 0, False, "too few")],
        (4, "nvtx", "k", 0, False, None),
    ]
    for choice, first, second in (
        *[(("chosen", "kernel", "k"), "taken, agrees with kernel:k", "cross-check: agrees")],
        (
            ("ambiguous", "kernel", "k"),
            *("stops: disagrees with kernel:k", "cross-check: disagrees"),
        ),
        (
            ("chosen", None, None),
            *("taken, not cross-checked", "plausible, but others come first"),
        ),
    ):
        assert anchors(ask, choice, *rows) == [
            (1, "nvtx", "s", 0, True, first),
            (2, "kernel", "k", 0, False, second),
            (2, "kernel", "k", 1, False, second),
            (3, "kernel", "s", 0, False, "too few"),
            (4, "nvtx", "k", 0, False, "plausible, but others come first"),
        ]
    found = anchors(ask, ("none", None, None), (1, "nvtx", "s", 0, False, "too few"))
    assert found == [(1, "nvtx", "s", 0, False, "too few")]


# ---------------------------------------------------------------------------------------- steps
METRICS = [
    "sm_issue",
    "tensor_active",
    "dram_read",
    "dram_write",
    "nvlink_rx",
    "nvlink_tx",
    "sms_active",
]


def test_metric_operator(ask):
    ops = [
        # samples at 10, 20, ... 60: over 10-30 three of them, none between two, one at its start
        *[(1, "gemm", 0, 10, 31), (1, "gemm", 0, 20, 25), (2, "norm", 0, 30, 41)],
        *[(3, "gemm", 0, 11, 20), (4, "gemm", 0, 50, 51), (-1, "memcpy", 0, 60, 61)],
        *[(5, "gemm", 0, 50, 60), (2, "norm", 1, 10, 61), (6, "gemm", 0, 40, 41)],
        *[(-2, "memset", 1, 15, 16), (-3, "graph", 1, 15, 16)],
    ]
    samples = [
        (n, device, 10 * n if not device else 15, *(100 * n + at for at in range(6)), None)
        for n, device in [*((n, 0) for n in range(1, 7)), (7, 1)]
    ]
    tables = {
        "nsys.op": made("name_id class:VARCHAR device start_ns end_ns", ops),
        "nsys.metric_sample": made(
            "number device time_ns " + " ".join(f"{name}:DOUBLE" for name in METRICS), samples
        ),
        "nsys.op_name": made(
            "name_id name:VARCHAR",
            [(n, f"k{n}") for n in (1, 2, 3, 4, 5)] + [(-1, "m"), (-2, "s"), (-3, "g")],
        ),
    }
    found = ask("steps/metric_operator", tables)
    assert {row[:5] for row in found} == {
        (0, "class", "gemm", 5, 3),  # 10, 20, 30, 40, 50; of 30 and 40 norm has a part
        (0, "class", "norm", 2, 0),
        (0, "class", "memcpy", 1, 1),
        (0, "kernel", "k1", 3, 2),
        (0, "kernel", "k2", 2, 0),
        (0, "kernel", "k4", 1, 0),
        (0, "kernel", "k5", 1, 0),
        (0, "kernel", None, 1, 0),
        (1, "class", "norm", 1, 0),
        (1, "class", "memset", 1, 0),
        (1, "class", "graph", 1, 0),
        (1, "kernel", "k2", 1, 0),
        (1, "kernel", "g", 1, 0),  # a whole graph has a row, what is no kernel has none
    }
    assert len(found) == 13 * len(METRICS)
    of_k1 = {row[5]: row[6:] for row in found if row[1:3] == ("kernel", "k1")}
    assert of_k1 == {
        **{name: (600 + 3 * at, 3) for at, name in enumerate(METRICS[:6])},
        "sms_active": (None, 0),
    }


WINDOWS = {
    **steady((0, 0, 10, 30), (0, 1, 40, 50), (1, 0, 10, 20)),
    "nsys.segment": made(
        "device segment start_ns end_ns",
        [
            *[(0, 0, -99, 10), (0, 1, 10, 30), (0, 2, 30, 40), (0, 3, 40, 50), (0, 4, 50, 999)],
            *[(1, 0, -99, 10), (1, 1, 10, 20), (1, 2, 20, 999)],
        ],
    ),
    "nsys.window_segment": made("device iteration segment", [(0, 0, 1), (0, 1, 3), (1, 0, 1)]),
}


def test_capture_window(ask):
    statuses = [(0, "steady")] * 2 + [(0, "warmup")] * 3 + [(0, "cut"), (1, "cut"), (3, "cut")]
    items = [(0, 0, at) for at in (9, 10, 29, 30, 40, 49, 50)] + [(0, 1, 10), (0, 4, 10)]
    items += [(1, 0, 10), (1, 0, 25), (2, 0, 15), (3, 3, 1), (4, 5, 1)]
    tables = {
        **WINDOWS,
        "nsys.iteration": made(
            "device status:VARCHAR anchor:VARCHAR", [(*row, "nvtx:s") for row in statuses]
        ),
        "nsys.stream_item": made("device kind start_ns", items),
    }
    assert sorted(ask("steps/capture_window", tables)) == [
        (0, "nvtx:s", 2, "1 cut, 3 warmup", 7, 3),
        (1, "nvtx:s", 1, "1 cut", 2, 1),
        (2, None, 0, None, 1, 1),
        (3, "nvtx:s", 0, "1 cut", 0, 0),
    ]


def test_capture_row(ask):
    times = [(0, 5), (5, 5), (5, 4), (None, 4), (4, None)]
    places = [(5, 0), (5, 1)]
    tables = {}
    for at, name in enumerate(("kernel", "memcpy", "memset", "graph_exec")):
        rows = [(*places[0], *each) for each in times] + [(*places[1], 1, 2)] * (at + 1)
        tables[f"nsys.{name}"] = made("process device_ordinal start_ns end_ns", rows)
    for at, name in enumerate(("api_call", "sync", "osrt_call")):
        tables[f"nsys.{name}"] = made("start_ns end_ns", [*times, *[(1, 2)] * at])
    ranges = [(*each, kind) for each in times for kind in (59, 60, 70, 71, 34)]
    tables["nsys.nvtx"] = made("start_ns end_ns event_type", ranges)
    assert sorted(ask("steps/capture_row", tables), key=str) == sorted(
        [
            *[
                row
                for at, name in enumerate(("kernel", "memcpy", "memset", "graph_exec"))
                for row in ((name, 5, 0, 5, 3), (name, 5, 1, at + 1, 0))
            ],
            *[("api_call", None, None, 5, 3), ("sync", None, None, 6, 3)],
            # a range without an end is open
            *[("osrt_call", None, None, 7, 3), ("nvtx", None, None, 20, 8)],
        ],
        key=str,
    )


def test_capture_launch(ask):
    items = [
        *[(1, 0, 5, 1, 100), (2, 0, 5, 2, 100), (3, 0, 5, 3, 100), (4, 0, 5, 9, 100)],
        *[(5, 1, 5, 1, 100), (6, 0, 6, 1, 100), (7, 0, None, 1, 100), (8, 0, 5, None, 100)],
    ]
    calls = [(5, 1, 90), (5, 2, 101), (5, 3, 130), (6, 1, 100)]
    chains = [(5, 1, 7), (5, 1, 8), (5, 2, 0), (5, 3, None), (5, 9, 1), (6, 2, 4), (5, None, 4)]
    tables = {
        "nsys.stream_item": made("item_id kind process correlation_id start_ns", items),
        "nsys.outermost_call": made("process correlation_id start_ns", calls),
        "nsys.api_call": made("process correlation_id callchain_id", chains),
    }
    assert sorted(ask("steps/capture_launch", tables), key=str) == [
        (5, 5, 3, 2, 2, 30),
        (6, 1, 1, 0, 0, None),
        (None, 1, 0, 0, 0, None),
    ]


def test_opportunity_window(ask):
    ops = [
        (1, 1, "nccl", "comm"),
        (2, 2, "memcpy", "memcpy"),
        (3, 3, "nccl", "comm"),
        (4, 9, "x", "wait"),
    ]
    blames = [
        *[(0, 1, 1, 5), (0, 1, 3, 6), (0, 3, 1, 7), (0, 1, 2, 8), (0, 2, 1, 99), (1, 1, 4, 9)],
        (0, 1, 1, 10),
    ]
    budgets = [(0, 0, 20, 5), (0, 1, 9, 9), (1, 0, 30, 0), (1, 7, 4, 1)]
    idle = [(0, 1, 4), (0, 1, 1), (0, 3, 2), (1, 1, 50), (0, 2, 99)]
    tables = {
        **WINDOWS,
        "nsys.blame_segment": made("device segment op_id blocking_ns", blames),
        "nsys.op": made("op_id name_id class:VARCHAR role:VARCHAR", ops),
        "nsys.op_name": made(
            "name_id collective:VARCHAR", [(1, "AllReduce"), (2, "no"), (3, "AllGather")]
        ),
        "nsys.copy_op": made("op_id direction:VARCHAR", [(2, "HtoD"), (1, "no")]),
        "nsys.starved_idle": made("device segment idle_ns", idle),
        "nsys.budget_window": made(
            "device iteration launch_starved_ns launch_starved_shadowed_ns", budgets
        ),
    }
    assert sorted(ask("steps/opportunity_window", tables), key=str) == sorted(
        [
            *[(0, 0, "blocking", "nccl", "comm", "AllReduce", 15, 0)],
            *[(0, 0, "blocking", "nccl", "comm", "AllGather", 6, 0)],
            *[(0, 0, "blocking", "memcpy", "memcpy", "HtoD", 8, 0)],
            *[(0, 1, "blocking", "nccl", "comm", "AllReduce", 7, 0)],
            *[(1, 0, "blocking", "x", "wait", None, 9, 0)],
            # what is not idle has something beside it
            *[(0, 0, "launch", "launch", None, None, 15, 10)],
            *[(1, 0, "launch", "launch", None, None, 30, 0)],
            *[(1, 7, "launch", "launch", None, None, 3, 3)],
        ],
        key=str,
    )


def test_opportunity_evidence(ask):
    def gap(start, issued, unblocked, shadowed, evidence, device=0):
        return (device, start, 100 + start, issued, unblocked, shadowed, evidence)

    gaps = [
        *[
            gap(10, 15, 15, 1, "resolved"),
            gap(16, 18, 20, 0, "none"),
            gap(21, 24, 24, 0, "inferred"),
        ],
        *[gap(25, 28, 28, 3, "resolved"), gap(40, 40, 45, 0, "resolved"), gap(46, 46, 46, 0, "x")],
        *[
            gap(35, 39, 39, 0, "resolved"),
            gap(10, 12, 12, 0, "graph", 1),
            gap(47, 47, 48, 0, "inferred"),
        ],
    ]
    parts = [
        *[(0, 16, 18, 19, 1), (0, 16, 19, 20, 2), (0, 40, 40, 44, 1), (0, 40, 44, 45, 3)],
        *[(0, 47, 47, 48, 1), (0, 35, 35, 36, 1), (1, 40, 40, 41, 1)],
    ]
    tables = {
        **WINDOWS,
        "nsys.gap_cut": made(
            "device start_ns op_id issued_ns unblocked_ns shadowed_ns evidence:VARCHAR", gaps
        ),
        "nsys.blocking_part": made("device gap_start_ns start_ns end_ns op_id", parts),
        "nsys.stream_item": made("item_id name_id", [(1, 11), (2, 12), (3, 13)]),
        "nsys.op_name": made(
            "name_id class:VARCHAR role:VARCHAR collective:VARCHAR",
            [
                *[(11, "nccl", "comm", "AllReduce"), (12, "memcpy", "memcpy", "no")],
                (13, "nccl", "comm", "AllGather"),
            ],
        ),
        "nsys.copy_op": made("op_id direction:VARCHAR", [(1, "no"), (2, "HtoD")]),
    }
    # of launches 4, 2 and 3 ns; a stall from 4 ns on
    assert sorted(ask("steps/opportunity_evidence", tables, stall_ms=4e-6), key=str) == sorted(
        [
            (0, "launch", "launch", None, 3, 9, 6, 3, 4, 4),
            (0, "blocking", "nccl", "AllReduce", 3, 6, 4, 1, 4, 4),
            (0, "blocking", "memcpy", "HtoD", 1, 1, 0, 0, 0, 1),
            (0, "blocking", "nccl", "AllGather", 1, 1, 1, 0, 0, 1),
            (1, "launch", "launch", None, 1, 2, 0, 0, 0, 2),
        ],
        key=str,
    )
    assert {row[8] for row in ask("steps/opportunity_evidence", tables)} == {0}
    long = [gap(10, 10 + MS, 10 + MS, 0, "none"), gap(11, 10 + MS, 10 + MS, 0, "none")]
    tables["nsys.gap_cut"] = made(
        "device start_ns op_id issued_ns unblocked_ns shadowed_ns evidence:VARCHAR", long
    )
    assert [row[8] for row in ask("steps/opportunity_evidence", tables) if row[1] == "launch"] == [
        MS
    ]


def slowed(ask, steps, windows, **variables):
    tables = {
        **steady(*windows),
        "nsys.reference_step": made("step duration_ns", list(enumerate(steps))),
    }
    return ask("steps/step_slowdown", tables, **variables)


def test_step_slowdown(ask):
    windows = [(0, 0, 0, 110), (0, 1, 0, 130), (0, 2, 0, 120), (1, 0, 5, 105)]
    found = sorted(slowed(ask, [100, 104, 96, 102, 98], windows))
    # quartiles 98 and 102
    assert found == [
        (0, 120, 110, 130, 3, 100, 96, 104, 5, 0, 8, 4, 20, True, False),
        (1, 100, 100, 100, 1, 100, 96, 104, 5, 0, 8, 4, 0, False, False),
    ]
    # just the spread is not more than it
    assert slowed(ask, [100, 104, 96, 102, 98], [(0, 0, 0, 108)])[0][-2] is False
    assert slowed(ask, [100, 104, 96, 102, 98], [(0, 0, 0, 109)])[0][-2] is True
    # a single step has no spread
    single = (100, 100, 100, 1, 0, None, None, 10, None, False)
    assert slowed(ask, [100], windows[:1])[0][5:] == single
    assert slowed(ask, [], windows) == []


@pytest.mark.parametrize(
    ("steps", "length", "is_other"),
    [
        # the spread is 8, then 2 % of 100; a single step has the 2 % alone
        *[([100, 104, 96, 102, 98], 92, False), ([100, 104, 96, 102, 98], 91, True)],
        *[([100, 100, 101], 98, False), ([100, 100, 101], 97, True)],
        *[([100], 98, False), ([100], 97, True), ([100, 104, 96, 102, 98], 130, False)],
    ],
)
def test_windows_that_are_shorter_by_far_are_no_steps_of_the_trainer(ask, steps, length, is_other):
    assert slowed(ask, steps, [(0, 0, 0, length)])[0][-1] is is_other


def test_step_slowdown_without_outliers(ask):
    windows = [(0, 0, 0, 1200)]
    # quartiles 1000 and 1000: 1 % of the median around them
    steps = [1000] * 8 + [1010, 990, 1011, 989]
    (row,) = slowed(ask, steps, windows)
    assert row[6:12] == (989, 1011, 12, 2, 20, 0)
    # quartiles 980 and 1020: three times 40
    steps = [980, 1020, 1000, 980, 1020, 860, 1140, 859, 1141]
    (row,) = slowed(ask, [980] * 9 + [1020] * 9 + steps[5:], windows)
    assert row[6:12] == (859, 1141, 22, 2, 280, 40)


def test_step_slowdown_of_some_of_the_reference(ask):
    steps = [1, 2, 3, 4, 5]
    for given, n, low, high in (
        *[({"reference_from": 1}, 4, 2, 5), ({"reference_to": 3}, 3, 1, 3)],
        ({"reference_from": 1, "reference_to": 3}, 2, 2, 3),
    ):
        (row,) = slowed(ask, steps, [(0, 0, 0, 9)], **given)
        assert (row[8], row[6], row[7]) == (n, low, high)


def test_session_end(ask):
    def end(*info, durations=(5, 9)):
        tables = {
            "nsys.export_info": made("name:VARCHAR value:VARCHAR", info),
            "nsys.analysis": made("duration_ns", [(each,) for each in durations]),
        }
        ((found,),) = ask("steps/session_end", tables)
        return found

    assert end() == 9
    assert end(durations=()) is None
    for name in ("EXPORT_TIME_SHIFT", "EXPORT_PARAM_TIME_SHIFT"):
        assert end((name, "0")) == 9
        assert end((name, "-20")) is None
    for value, told in (("false", 9), ("0", 9), ("True", None), ("yes", None), ("1", None)):
        assert end(("EXPORT_PARAM_TIME_NORMALIZE", value)) == told
    assert end(("EXPORT_TIMEXSHIFT", "5"), ("EXPORT_TIMEXNORMALIZE", "true")) == 9
    assert end(("TIME_SHIFT", "0"), ("TIME_NORMALIZE", "true")) is None


def test_starved_piece(ask):
    cuts = [
        *[(0, 1, 5, 8, 12, 35), (0, 2, 12, 13, 41, 44), (1, 3, 3, 4, 12, 15)],
        *[(0, 4, 3, 4, 30, 39), (0, 5, None, None, 45, 60), (0, 6, 1, 2, 20, 20)],
        (0, 7, 1, 2, 25, 30),
    ]
    tables = {
        **WINDOWS,
        "nsys.gap_cut": made("device op_id call_start_ns call_end_ns start_ns issued_ns", cuts),
        "nsys.stream_item": made(
            "item_id process correlation_id", [(n, 5, 70 + n) for n in range(1, 8)]
        ),
        "nsys.outermost_call": made(
            "process correlation_id thread",
            [*[(5, 70 + n, 9 if n % 2 else 8) for n in range(1, 7)], (6, 77, 4)],
        ),
    }
    found = sorted(ask("steps/starved_piece", tables), key=str)
    assert found == [
        (1, 0, 3, 8, 41, 41, 44),
        (2, 0, 1, 9, 12, 12, 30),
        (3, 0, 1, None, 25, 25, 30),
        (3, 0, 3, None, 45, 45, 50),
        (4, 1, 1, 9, 12, 12, 15),
    ]


# A window takes the sum of its stretches: device 0 has 0 and 1, which share stretch 3, and 5
SUMMED = made("device iteration segment", [(0, 0, 1), (0, 0, 3), (0, 1, 3), (0, 5, 7), (1, 0, 3)])


def test_name_window(ask):
    rows = [
        *[(0, 1, 9, 1, 10, 100, 4, 40), (0, 3, 9, 2, 20, 200, 3, 70), (0, 3, 8, 4, 5, 6, 7, 8)],
        *[(0, 2, 9, 64, 64, 64, 1, 99), (1, 3, 9, 8, 8, 8, 8, 8), (1, 1, 9, 64, 64, 64, 1, 99)],
    ]
    names = "device segment name_id count work_ns duration_ns min_ns max_ns"
    tables = {"nsys.window_segment": SUMMED, "nsys.name_segment": made(names, rows)}
    assert sorted(ask("steps/name_window", tables)) == [
        *[(0, 0, 8, 4, 5, 6, 7, 8), (0, 0, 9, 3, 30, 300, 3, 70), (0, 1, 8, 4, 5, 6, 7, 8)],
        *[(0, 1, 9, 2, 20, 200, 3, 70), (1, 0, 9, 8, 8, 8, 8, 8)],
    ]


def test_range_window(ask):
    host = [(0, 1, 9, 1, 10, 100, 50), (0, 3, 9, 2, 20, 200, 60), (1, 1, 9, 64, 64, 64, 64)]
    device = [(0, 1, 9, 4, 40, 20, 30), (0, 3, 9, 8, 45, 22, 33), (1, 3, 8, 1, 7, 2, 4)]
    tables = {
        "nsys.window_segment": SUMMED,
        "nsys.range_segment": made(
            "device segment path_no count host_ns host_work_ns span_ns", host
        ),
        "nsys.range_device": made(
            "device segment path_no op_count busy_ns compute_ns compute_comm_ns", device
        ),
    }
    assert sorted(ask("steps/range_window", tables)) == [
        (0, 0, 9, 3, 30, 300, 12, 110, 85, 42, 21, 22, 25),
        (0, 1, 9, 2, 20, 200, 8, 60, 45, 22, 11, 12, 15),
        (1, 0, 8, 0, 0, 0, 1, 0, 7, 2, 2, 3, -7),
    ]


def test_phase_window(ask):
    host = [(0, 1, "data", 1, 10), (0, 3, "data", 2, 20), (1, 1, "data", 64, 64)]
    device = [(0, 1, "data", 4, 1, 40, 20, 30), (0, 3, "data", 8, 2, 45, 22, 33)]
    device += [(1, 3, "forward", 3, 0, 7, 2, 4), (1, 2, "forward", 64, 64, 64, 64, 64)]
    tables = {
        "nsys.window_segment": SUMMED,
        "nsys.phase_host": made("device segment phase:VARCHAR count host_ns", host),
        "nsys.phase_device": made(
            "device segment phase:VARCHAR op_count borrowed_count busy_ns compute_ns "
            "compute_comm_ns",
            device,
        ),
    }
    assert sorted(ask("steps/phase_window", tables)) == [
        (0, 0, "data", 3, 30, 12, 3, 85, 42, 21, 22),
        (0, 1, "data", 2, 20, 8, 2, 45, 22, 11, 12),
        (1, 0, "forward", 0, 0, 3, 0, 7, 2, 2, 3),
    ]


def test_stall_window(ask):
    rows = [
        *[(0, 1, "a", "f", 1, 10, 15, 1), (0, 1, "a", "f", 1, 20, 28, 2)],
        *[(0, 3, "a", "f", 1, 30, 31, 0), (0, 3, "b", "f", 1, 30, 32, 0)],
        *[(0, 3, "a", "g", 1, 30, 33, 0), (0, 3, "a", None, None, 30, 34, 0)],
        *[(0, 2, "a", "f", 1, 0, 99, 9), (1, 3, "a", "f", 2, 30, 35, 3)],
    ]
    names = "device segment activity:VARCHAR name:VARCHAR path_no start_ns end_ns busy_ns"
    tables = {"nsys.window_segment": SUMMED, "nsys.starved_host": made(names, rows)}
    others = [("b", "f", 1, 1, 2, 0), ("a", "g", 1, 1, 3, 0), ("a", None, None, 1, 4, 0)]
    assert sorted(ask("steps/stall_window", tables), key=str) == sorted(
        [
            *[(0, 0, "a", "f", 1, 3, 14, 3), (0, 1, "a", "f", 1, 1, 1, 0)],
            *[(0, at, *other) for at in (0, 1) for other in others],
            (1, 0, "a", "f", 2, 1, 5, 3),
        ],
        key=str,
    )


def test_blame_segment(ask):
    parts = [
        *[(0, 7, "comm", 5, 12), (0, 7, "comm", 12, 14), (0, 8, "memcpy", 5, 12)],
        *[(0, 7, "comm", 29, 51), (1, 7, "comm", 19, 20), (1, 7, "comm", 20, 21)],
    ]
    tables = {
        **WINDOWS,
        "nsys.blocking_part": made("device op_id role:VARCHAR start_ns end_ns", parts),
    }
    assert sorted(ask("steps/blame_segment", tables)) == [
        *[(0, 0, 7, "comm", 5), (0, 0, 8, "memcpy", 5), (0, 1, 7, "comm", 5)],
        *[(0, 1, 8, "memcpy", 2), (0, 2, 7, "comm", 10), (0, 3, 7, "comm", 10)],
        *[(0, 4, 7, "comm", 1), (1, 1, 7, "comm", 1), (1, 2, 7, "comm", 1)],
    ]


def test_graph_op(ask):
    def node(number, start, end, *, process=5, call=7, is_node=True, kind=0):
        return (number, process, call, start, end, 100 + number, is_node, kind)

    rows = [
        # the first ones start before any has ended, or with the first
        *[node(1, 10, 20), node(2, 19, 40), node(3, 20, 30), node(4, 25, 26)],
        *[node(5, 10, 90, call=8), node(6, 5, 7, call=None), node(7, 12, 13, process=6)],
        node(8, 0, 1, process=None),
        # of a launch whose nodes are not told: kernels, copies and sets
        *[node(20 + kind, 10, 10, call=9, is_node=False, kind=kind) for kind in range(6)],
        *[node(30, 15, 16, call=9, is_node=False), node(31, 0, 1, call=4, is_node=False)],
        *[
            node(32, 0, 1, process=6, call=9, is_node=False),
            node(33, 10, 12, call=9, is_node=False),
        ],
    ]
    names = [(1, "cudaGraphLaunch_v10000"), (2, "cuGraphLaunch"), (3, "cudaLaunchKernel")]
    tables = {
        "nsys.stream_item": made(
            "item_id process correlation_id start_ns end_ns name_id is_node:BOOLEAN kind", rows
        ),
        "nsys.string": made("string_id value:VARCHAR", names),
        "nsys.outermost_call": made(
            "process correlation_id name_id", [(5, 9, 1), (5, 4, 3), (6, 3, 2)]
        ),
    }
    found = {row[0]: row[1:] for row in ask("steps/graph_op", tables)}
    assert {number: row[-1] for number, row in found.items()} == {
        **{1: False, 2: False, 3: True, 4: True, 5: False, 7: False, 8: False},
        # what starts with the first one is no later one, though that had no length
        **{20: False, 21: False, 22: False, 30: True, 33: False},
    }
    assert found[4][:5] == (5, 7, 25, 26, 104)


def test_calls_that_share_an_id(ask):
    # 64 + 1 twice, 2 only once, in the next block 65 once; of process 6 the same id
    calls = [
        *[(10, 20, 5, 1, 65, 3), (10, 30, 5, 2, 65, 8), (11, 40, 5, 3, 65, 7), (5, 6, 5, 1, 66, 9)],
        *[(1, 2, 5, 1, 2, 9), (1, 2, 6, 1, 65, 9), (3, 4, 5, 1, None, 9), (10, 30, 5, 1, 65, 9)],
        (10, 30, 5, 1, 65, 4),
    ]
    names = "start_ns end_ns process thread correlation_id name_id"
    tables = {"nsys.call": made(names, calls)}
    doubled = ask("steps/doubled_call", tables)
    assert sorted(doubled) == [(5, 6, 5, 1, 66, 9), (10, 30, 5, 1, 65, 4)]
    tables["nsys.doubled_call"] = made(names, doubled)
    assert sorted(ask("steps/outermost_call", tables), key=str) == sorted(
        [*doubled, (1, 2, 5, 1, 2, 9), (1, 2, 6, 1, 65, 9), (3, 4, 5, 1, None, 9)], key=str
    )
    tables["nsys.doubled_call"] = made(names, [])
    assert sorted(ask("steps/outermost_call", tables), key=str) == sorted(calls, key=str)


def test_launch_call(ask):
    names = [
        *[(1, "cudaLaunchKernel_v7000"), (2, "cuLaunchKernel"), (3, "cudaLaunchHostFunc")],
        *[(4, "cudaGraphLaunch"), (5, "cudaLaunchCooperativeKernel"), (6, "xcudaLaunchKernel")],
    ]
    calls = [
        # the runtime call and the driver call inside it; of equal starts the longer
        *[
            (5, 8, 70, 10, 20, 1),
            (5, 9, 70, 11, 19, 2),
            (5, 9, 71, 30, 35, 2),
            (5, 8, 71, 30, 40, 1),
        ],
        *[(5, 8, None, 5, 6, 5), (5, 8, None, 50, 51, 5), (6, 8, 70, 1, 2, 1)],
        *[(5, 8, 72 + number, 60, 61, number) for number in (3, 4, 6)],
    ]
    tables = {
        "nsys.string": made("string_id value:VARCHAR", names),
        "nsys.call": made("process thread correlation_id start_ns end_ns name_id", calls),
    }
    assert sorted(ask("steps/launch_call", tables), key=str) == sorted(
        [
            *[(6, 8, 0, 70, 1), (5, 8, 1, None, 5), (5, 8, 2, 70, 10), (5, 8, 3, 71, 30)],
            (5, 8, 4, None, 50),
        ],
        key=str,
    )


def test_op_launch(ask):
    sweep = [
        *[(1, 0, 2, 10, 20, "compute", 5, 70), (2, 0, 2, 11, 20, "comm", 6, 70)],
        *[(3, 0, 2, 12, 20, "comm", 5, None), (None, 0, 2, 12, None, None, None, None)],
    ]
    ops = [
        *[
            (4, 0, 9, 9, "compute", 5, 70),
            (5, 0, 10, 10, "compute", 5, 71),
            (6, 0, 10, 11, "x", 5, 70),
        ],
        (7, 2, 10, 10, "compute", 5, 70),
    ]
    tables = {
        **WINDOWS,
        "nsys.sweep": made(
            "item_id device segment start_ns end_ns role:VARCHAR process correlation_id", sweep
        ),
        "nsys.op": made("op_id device start_ns end_ns role:VARCHAR process correlation_id", ops),
        "nsys.outermost_call": made(
            "process correlation_id thread start_ns end_ns", [(5, 70, 8, 1, 2), (6, 71, 9, 3, 4)]
        ),
    }
    call, none = (8, 1, 2), (None, None, None)
    assert sorted(ask("steps/op_launch", tables)) == [
        (1, 0, 2, 10, 20, "compute", 5, 70, *call),
        (2, 0, 2, 11, 20, "comm", 6, 70, *none),
        (3, 0, 2, 12, 20, "comm", 5, None, *none),
        (4, 0, 0, 9, 9, "compute", 5, 70, *call),
        (5, 0, 1, 10, 10, "compute", 5, 71, *none),
        (7, 2, 0, 10, 10, "compute", 5, 70, *call),
    ]


def test_range_instance_of_start_end_ranges(ask):
    ranges = [
        *[(1, 60, 5, 8, 10, 20, "a"), (2, 71, 5, 8, 30, None, "b"), (3, 59, 5, 8, 1, 2, "a")],
        *[(4, 60, 5, 9, 40, 35, "a"), (5, 60, 6, 9, 50, 50, "a"), (6, 60, 6, 9, 1, 2, "unknown")],
    ]
    paths = [(1, [1], True), (2, [2], True), (3, [1], False), (4, [2, 1], False)]
    paths.append((5, [1] * 8, False))
    # numbers of names below, of ranges above 24 bits
    nested = [
        *[
            (11, 5, 8, 1, 9, 1, [(1 << 24) + 1]),
            (12, 5, 8, 2, 8, 2, [(9 << 24) + 2, (7 << 24) + 1]),
        ],
        (13, 5, 8, 3, 4, 0, [(1 << 24) + 1]),
        (15, 5, 8, 5, 6, 9, [(n << 24) + 1 for n in range(21, 29)]),  # deeper than is told apart
    ]
    levels = " ".join(f"level_{n}" for n in range(1, 9))
    rows = [
        (*row[:5], 1 if number else 0, row[5], *(row[6] + [None] * 8)[:8])
        for number, row in enumerate(nested, 1)
    ]
    rows.append((14, 5, 8, 3, 4, 0, 1, (1 << 24) + 1, *[None] * 7))

    def found(last):
        tables = {
            "nsys.nvtx": made(
                "row_id event_type process thread start_ns end_ns text:VARCHAR", ranges
            ),
            "nsys.op": made("end_ns", [(last,), (7,)]),
            "nsys.range_nest": made(
                f"range_no process thread at_ns end_ns kind depth {levels}", rows
            ),
            "nsys.range_name": made("stem:VARCHAR name_no", [("a", 1), ("b", 2)]),
            "nsys.range_path": made("path_no name_nos:BIGINT[] is_free:BOOLEAN", paths),
        }
        return sorted(ask("steps/range_instance", tables), key=lambda row: row[0])

    nests = [(11, 3, 5, 8, 1, 9, [1]), (12, 4, 5, 8, 2, 8, [9, 7])]
    free = [(-3, 1, 6, 9, 50, 50, []), (-2, 2, 5, 8, 30, 60, []), (-1, 1, 5, 8, 10, 20, [])]
    assert found(60) == [*free, *nests]
    # an open range lasts until the last operation or start/end range
    assert found(7)[1] == (-2, 2, 5, 8, 30, 50, [])


def test_op_and_what_is_read_off_the_items(ask):
    rows = [
        (kind + 1, kind, 10, 20, None if kind > 3 else kind % 3, 5, 1, 7, 70, kind, 40 + kind)
        for kind in range(6)
    ]
    rows += [(9, 3, 3, 4, 2, 6, 1, 7, None, 9, None), (10, 3, 5, 6, 0, 5, 1, 7, None, 9, 49)]
    tables = {
        "nsys.stream_item": made(
            "item_id kind start_ns end_ns device process context_id stream_id lane correlation_id "
            "name_id is_node:BOOLEAN",
            [(*row, row[0] == 2) for row in rows],
        ),
        "nsys.op_name": made(
            "name_id class:VARCHAR role_code:VARCHAR",
            [(40, "gemm", "compute"), (41, "memcpy", "memcpy"), (44, "x", "comm")],
        ),
    }
    found = sorted(ask("steps/op", tables))
    assert found == [
        (1, "kernel", 10, 20, 0, 5, 1, 7, 70, 0, 40, "gemm", "compute", False),
        (2, "memcpy", 10, 20, 1, 5, 1, 7, 70, 1, 41, "memcpy", "memcpy", True),
        (3, "memset", 10, 20, 2, 5, 1, 7, 70, 2, 42, None, None, False),
        (4, "graph", 10, 20, 0, 5, 1, 7, 70, 3, 43, None, None, False),
        (9, "graph", 3, 4, 2, 6, 1, 7, None, 9, None, None, None, False),
        (10, "graph", 5, 6, 0, 5, 1, 7, None, 9, 49, None, None, False),
    ]
    assert sorted(ask("steps/drive", tables)) == [(5, 0), (5, 1), (5, 2), (6, 2)]
    assert sorted(ask("steps/whole_graph", tables)) == [(0, 2), (2, 1)]


def test_cuda_call(ask):
    times = [(5, 9, 0), (5, 5, None), (5, 4, 0), (None, 4, 0), (4, None, 0), (5, 9, 67), (6, 9, 68)]
    rows = [(*each, 7, 8, 70 + at, 1) for at, each in enumerate(times)]
    names = "start_ns end_ns event_class process thread correlation_id name_id"
    found = ask("steps/cuda_call", {"nsys.api_call": made(names, rows)})
    assert found == [(5, 9, 7, 8, 70, 1), (5, 5, 7, 8, 71, 1), (6, 9, 7, 8, 76, 1)]


def test_comm_op(ask):
    ops = [
        *[(1, 0, 11, "comm", "nccl", 1, 2), (2, 0, 12, "compute", "gemm", 1, 2)],
        *[(3, 1, 13, "compute", "fused_gemm_comm", 3, 4), (4, 0, 14, "memcpy", "memcpy", 1, 2)],
    ]
    copies = [(4, 0, "host", 1, 2), (5, 0, "peer", 5, 6), (6, 1, "staged peer", 7, 8)]
    tables = {
        "nsys.op": made("op_id device name_id role:VARCHAR class:VARCHAR start_ns end_ns", ops),
        "nsys.copy_op": made("op_id device way:VARCHAR start_ns end_ns", copies),
    }
    assert sorted(ask("steps/comm_op", tables)) == [
        *[(1, 0, 11, "comm", 1, 2), (3, 1, 13, "compute", 3, 4)],
        *[(5, 0, -11, "memcpy", 5, 6), (6, 1, -12, "memcpy", 7, 8)],
    ]


def test_comm_group(ask):
    names = [
        *[
            (1, "comm", "nccl", "AllReduce"),
            (2, "comm", "nccl", None),
            (3, "comm", "nccl", "AllReduce"),
        ],
        *[(4, "comm", "transport", "dispatch"), (5, "compute", "fused_gemm_comm", None)],
        *[(6, "compute", "gemm", None), (7, "memcpy", "memcpy", "x")],
    ]
    columns = "name_id role:VARCHAR class:VARCHAR collective:VARCHAR"
    sets = {}
    same = {}
    for number, first, *key, name in ask(
        "steps/comm_group", {"nsys.op_name": made(columns, names)}
    ):
        sets.setdefault((number, *key), set()).add(name)
        same[number] = first
    assert sets == {
        (0, "all", None, None): {1, 2, 3, 4, None},
        **{(1, "class", "nccl", None): {1, 2, 3}, (2, "class", "transport", None): {4}},
        (3, "collective", "nccl", "AllReduce"): {1, 3},
        (4, "collective", "nccl", "other"): {2},
        (5, "collective", "transport", "dispatch"): {4},
        (6, "fused_compute", "fused_gemm_comm", None): {5},
        **{(7, "peer_copy", "peer", None): {-11}, (8, "peer_copy", "staged peer", None): {-12}},
    }
    assert same == {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 2, 6: 6, 7: 7, 8: 8}
    # without any communication there is still the set of all of it
    assert ask("steps/comm_group", {"nsys.op_name": made(columns, [])})[0][:3] == (0, 0, "all")


def test_range_op(ask):
    rows = [
        *[
            (1, 0, 10, 20, "compute", 8, 5),
            (2, 0, 10, 20, "comm", 8, 4),
            (3, 0, 1, 2, "wait", 8, 9),
        ],
        *[
            (4, 0, 1, 2, "memcpy", 9, 9),
            (5, 0, 1, 2, "compute", None, None),
            (6, 9, 1, 2, "x", 8, 5),
        ],
        (7, 1, 1, 2, "compute", 8, 12),
    ]
    tables = {
        **WINDOWS,
        "nsys.op_launch": made(
            "op_id device start_ns end_ns role:VARCHAR thread call_start_ns segment process",
            [(*row, 3, 4) for row in rows],
        ),
        "nsys.range_state": made(
            "thread start_ns range_no path_no",
            [(8, 5, 21, 31), (8, 10, None, None), (8, 12, 22, 32)],
        ),
    }
    assert sorted(ask("steps/range_op", tables)) == [
        (1, 0, 3, 10, 20, 1, 4, 8, 5, 21, 31),
        (2, 0, 3, 10, 20, 2, 4, 8, 4, None, None),
        (3, 0, 3, 1, 2, 3, 4, 8, 9, 21, 31),
        (4, 0, 3, 1, 2, 3, 4, 9, 9, None, None),
        (5, 0, 3, 1, 2, 1, 4, None, None, None, None),
        (7, 1, 3, 1, 2, 1, 4, 8, 12, 22, 32),
    ]


def test_null_stream(ask):
    contexts = [(5, 1, 13), (5, 2, None), (6, 3, 4)]
    streams = [(5, 2, 9, 3), (5, 2, 8, 3), (5, 2, 1, 2), (7, 1, 5, 1), (5, 1, 14, 3)]
    used = [
        ((1 << 24) + 5, 1),
        ((1 << 24) + 5, 2),
        (6, 1),
        (6, 2),
        (6, 3),
        (7, 1),
        (None, 1),
        (5, 3),
    ]
    tables = {
        "nsys.cuda_context": made("process_pid context_id null_stream_id", contexts),
        "nsys.cuda_stream": made("process_pid context_id stream_id flag", streams),
        "nsys.op": made("process context_id", used * 2),
    }
    assert sorted(ask("steps/null_stream", tables), key=str) == sorted(
        [
            *[((1 << 24) + 5, 1, 13), ((1 << 24) + 5, 2, 8), (6, 1, 7), (6, 3, 4), (7, 1, 7)],
            (None, 1, 7),
        ],
        key=str,
    )


def test_report_start(ask):
    def start(items=(), calls=(), ranges=()):
        tables = {
            "nsys.stream_item": made("start_ns", [(each,) for each in items]),
            "nsys.call": made("start_ns", [(each,) for each in calls]),
            "nsys.nvtx": made("start_ns end_ns event_type", ranges),
        }
        ((found,),) = ask("steps/report_start", tables)
        return found

    assert start([9, 5, None], [6, 7], [(8, 9, 59)]) == 5
    assert start([9], [6, 7], [(8, 9, 59)]) == 6
    for kind in (59, 60, 70, 71):
        assert start([9], [6], [(3, 4, kind), (4, 5, kind)]) == 3
        assert start([9], [6], [(3, None, kind)]) == 3
    assert start([9], [6], [(3, 4, 34), (3, 2, 59), (5, 5, 59)]) == 5
    assert start() is None


def test_capture_graph(ask):
    names = [
        (1, "cudaGraphLaunch_v10000"),
        (2, "cuGraphLaunch"),
        (3, "cudaLaunchKernel"),
        (4, "GraphLaunch"),
    ]
    calls = [(5, 1, 1), (5, 1, 2), (5, 2, 2), (6, 1, 1), (5, 3, 3), (5, 4, 4), (5, 5, 1)]
    ops = [(5, 1, "kernel"), (5, 1, "kernel"), (6, 2, "kernel"), (5, 2, "graph"), (5, 3, "graph")]
    tables = {
        "nsys.string": made("string_id value:VARCHAR", names),
        "nsys.call": made("process correlation_id name_id", calls),
        "nsys.op": made("process correlation_id kind:VARCHAR", ops),
        "nsys.graph_op": made("op_id", [(1,), (2,), (3,)]),
        "nsys.stream_item": made(
            "is_node:BOOLEAN correlation_id",
            [("true", 1), ("true", None), ("true", None), ("false", None), (None, None)],
        ),
    }
    # two operations of nodes have no correlation id and so no launch
    # launches 5:1, 5:2, 5:5 and 6:1, of which two have operations
    assert ask("steps/capture_graph", tables) == [(4, 2, 5, 2)]
