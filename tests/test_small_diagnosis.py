"""Recipes that sum windows up, over small tables made by hand, as in test_small_tables."""

import pytest


def table(rows, **columns):
    """A table for `ask` of rows that are dicts: what a row leaves out is its column's default."""
    kinds = {int: "BIGINT", str: "VARCHAR", bool: "BOOLEAN", float: "DOUBLE"}
    texts, defaults = [], {}
    for name, default in columns.items():
        kind = default if isinstance(default, type) else type(default)
        defaults[name] = None if isinstance(default, type) else default
        texts.append(f'"{name}" {kinds[kind]}')
    made = []
    for row in rows:
        assert row.keys() <= defaults.keys()
        values = (defaults | row).values()
        made.append(tuple(str(each).lower() if isinstance(each, bool) else each for each in values))
    return ", ".join(texts), made


def steady(*windows):
    """(device, iteration, start, end) of each steady window."""
    names = ("device", "iteration", "start_ns", "end_ns")
    rows = [dict(zip(names, each, strict=True)) for each in windows]
    return {"nsys.steady": table(rows, device=int, iteration=int, start_ns=int, end_ns=int)}


def near(row):
    """A row whose floats are compared as such."""
    return tuple(pytest.approx(each) if isinstance(each, float) else each for each in row)


# ------------------------------------------------------------------------------------- launches
LAUNCHED = [
    *("launch_bound_kernels", "api_calls", "kernel_launch_calls", "graph_launch_calls"),
    *("kernels", "kernels_with_own_call", "kernels_started_before_call_returned"),
    *("kernels_of_shared_call", "kernels_without_call", "kernels_before_call"),
]
COUNTS = [
    *("bound_count", "call_count", "launch_call_count", "graph_launch_count", "kernel_count"),
    *("one_count", "early_count", "many_count", "unknown_count", "skewed_count"),
]


def test_launches(ask):
    windows = [(0, 3, 100), (0, 1, 700), (0, 2, 200), (1, 1, 50)]  # device, iteration, base value
    kernels = [
        # from the start of the call 1, 2 and 5 us; from its end less than nothing, 0.5 and 4 us
        *[(0, 5, 11_000, 10_000, 11_400, "one"), (0, 5, 12_000, 10_000, 11_500, "one")],
        (0, 6, 15_000, 10_000, 11_000, "one"),
        *[(0, 6, 99_000, 10_000, 11_000, "many"), (0, 9, 99_000, 10_000, 11_000, "one")],
        *[(1, 6, 99_000, 10_000, 11_000, "one"), (1, 7, 13_000, 10_000, 11_000, "one")],
    ]
    tables = {
        **steady(*[(device, at, 0, 9) for device, at, _ in windows], (2, 1, 0, 9)),
        "nsys.window_segment": (
            "device BIGINT, segment BIGINT",
            [(0, 5), (0, 5), (0, 6), (1, 7), (2, 5)],
        ),
        "nsys.kernel_launch": (
            "device BIGINT, segment BIGINT, start_ns BIGINT, call_start_ns BIGINT, "
            "call_end_ns BIGINT, launch VARCHAR",
            kernels,
        ),
        "nsys.launch_window": (
            "device BIGINT, iteration BIGINT, " + ", ".join(f"{name} BIGINT" for name in COUNTS),
            [
                (device, at, *(base + 1000 * n for n in range(len(COUNTS))))
                for device, at, base in windows
            ],
        ),
        "nsys.queue_window": (
            "device BIGINT, iteration BIGINT, median_depth DOUBLE, max_depth BIGINT, "
            "empty_ns BIGINT",
            [(device, at, base / 8, base, base * 10**6) for device, at, base in windows],
        ),
        "nsys.budget_window": (
            "device BIGINT, iteration BIGINT, launch_starved_ns BIGINT, "
            "launch_starved_shadowed_ns BIGINT",
            [(device, at, base * 10**5, base * 10**4) for device, at, base in windows],
        ),
    }
    found = ask("recipes/launches", tables)
    names = [
        *("latency_from_call_start", "latency_from_call_end", "queue_depth_median"),
        *("queue_depth_max", "queue_empty", "launch_bound_kernels", "launch_starved"),
        *("launch_starved_shadowed", *LAUNCHED[1:]),
    ]
    assert [row[:2] for row in found] == [
        *[(device, name) for device in (0, 1) for name in names],
        *[(2, name) for name in names[:2]],
    ]
    rows = {row[:2]: row[2:] for row in found}
    assert rows[0, names[0]] == ("us", "kernel", 1, 2, *near((4.4, 4.94)), 5, 3)
    assert rows[0, names[1]] == ("us", "kernel", 0, 0.5, *near((3.3, 3.93)), 4, 3)
    assert rows[1, names[0]] == ("us", "kernel", *[3] * 5, 1)
    assert rows[1, names[1]] == ("us", "kernel", *[2] * 5, 1)
    for name in names[:2]:
        assert rows[2, name] == ("us", "kernel", *[None] * 5, 0)
    units = {
        **{"queue_depth_median": ("count", 0.125), "queue_depth_max": ("count", 1)},
        **{"queue_empty": ("ms", 1), "launch_starved": ("ms", 0.1)},
        "launch_starved_shadowed": ("ms", 0.01),
    }
    for name, (unit, factor) in units.items():
        low, middle, high = (pytest.approx(base * factor) for base in (100, 200, 700))
        assert rows[0, name] == (unit, "iteration", low, middle, None, None, high, 3)
    for n, name in enumerate(LAUNCHED):
        low, middle, high = (base + 1000 * n for base in (100, 200, 700))
        assert rows[0, name] == ("count", "iteration", low, middle, None, None, high, 3)
        assert rows[1, name] == (
            *("count", "iteration", 50 + 1000 * n, 50 + 1000 * n),
            *(None, None, 50 + 1000 * n, 1),
        )


# -------------------------------------------------------------------------------------- streams
def streams(ask, rows, windows, nulls=()):
    tables = {
        **steady(*windows),
        "nsys.stream_window": table(
            rows,
            device=0,
            iteration=0,
            process=(1 << 24) + 7,
            context_id=1,
            stream_id=7,
            **{"class": "gemm"},
            count=1,
            work_ns=0,
            added_ns=0,
            first_start_ns=100,
            last_end_ns=200,
        ),
        "nsys.null_stream": (
            "process BIGINT, context_id BIGINT, stream_id BIGINT",
            list(nulls),
        ),
    }
    return ask("recipes/streams", tables)


MS = 10**6


def test_streams(ask):
    rows = [
        # stream 7: busy 2, 0 and 9 ms of three windows of 10, 20 and 30 ms
        *[
            {"work_ns": 3 * MS, "added_ns": 2 * MS, "count": 2, "first_start_ns": 50},
            {"iteration": 2, "work_ns": 5 * MS, "added_ns": 4 * MS, "last_end_ns": 50 + 3 * MS},
        ],
        {"iteration": 2, "work_ns": 8 * MS, "added_ns": 5 * MS, "class": "norm", "count": 4},
        # stream 8: the same class in all three
        *[
            {"iteration": at, "stream_id": 8, "work_ns": 4 * MS, "added_ns": (3 + at) * MS}
            for at in range(3)
        ],
        # classes of equal work: by count, then by name
        *[
            {"stream_id": 9, "class": name, "count": count, "work_ns": 2, "added_ns": 1}
            for name, count in (("b", 1), ("c", 2), ("a", 1))
        ],
        # of no length at all
        {"stream_id": 10, "class": "memset"},
    ]
    windows = [(0, 0, 0, 10 * MS), (0, 1, 0, 20 * MS), (0, 2, 0, 30 * MS)]
    process = (1 << 24) + 7
    found = streams(ask, rows, windows, [(process, 1, 8), (process, 2, 7), (9, 1, 9)])
    assert [(*row[:7], *row[13:]) for row in found] == [
        (0, 7, 1, 8, True, "gemm", "gemm 100.0 %", 100, 200, 0.0001, 3),
        (0, 7, 1, 7, False, "norm", "norm 50.0 %, gemm 50.0 %", 50, 50 + 3 * MS, 3.0, 3),
        (0, 7, 1, 9, False, "c", "c 33.3 %, a 33.3 %, b 33.3 %", 100, 200, 0.0001, 3),
        (0, 7, 1, 10, False, "memset", "memset 0.0 %", 100, 200, 0.0001, 3),
    ]
    # count, work, busy: median, min, max; share of the middle window of 20 ms
    assert [row[7:13] for row in found] == [
        (1, 4, 4, 3, 5, 20.0),
        (2, 3, 2, 0, 9, 10.0),
        (0, 0, 0, 0, 3e-6, 0.0),
        (0, 0, 0, 0, 0, 0.0),
    ]


def test_streams_of_a_trace_without_a_steady_window(ask):
    found = streams(ask, [{"added_ns": 3 * MS, "work_ns": 4 * MS, "count": 6}], [])
    assert found == [
        (0, 7, 1, 7, None, "gemm", "gemm 100.0 %", 6, 4, 3, 3, 3, None, 100, 200, 0.0001, 0),
    ]


def test_streams_are_told_apart_by_device_process_and_context(ask):
    rows = [
        {"class": name, "work_ns": work, "added_ns": work, **key}
        for name, work, key in (
            *[("a", 2 * MS, {}), ("b", 9 * MS, {"context_id": 2}), ("c", 9 * MS, {"process": 5})],
            *[("d", 9 * MS, {"stream_id": None}), ("e", 9 * MS, {"process": None})],
            *[("f", 9 * MS, {"context_id": None}), ("g", 1 * MS, {"device": 1})],
            ("h", 9 * MS, {"stream_id": 1}),
        )
    ]
    windows = [(0, 0, 0, 10 * MS), (1, 0, 0, 4 * MS)]
    nulls = [(5, 1, 7), (None, 1, 7), ((1 << 24) + 7, None, 8)]
    found = streams(ask, rows, windows, nulls)
    assert [(row[0], row[1], *row[2:7], row[9], row[12]) for row in found] == [
        (0, 5, 1, 7, True, "c", "c 100.0 %", 9, 90.0),
        (0, 7, 1, 1, None, "h", "h 100.0 %", 9, 90.0),
        (0, 7, 1, None, None, "d", "d 100.0 %", 9, 90.0),
        (0, 7, 2, 7, None, "b", "b 100.0 %", 9, 90.0),
        (0, 7, None, 7, False, "f", "f 100.0 %", 9, 90.0),
        (0, None, 1, 7, True, "e", "e 100.0 %", 9, 90.0),
        (0, 7, 1, 7, None, "a", "a 100.0 %", 2, 20.0),
        (1, 7, 1, 7, None, "g", "g 100.0 %", 1, 25.0),
    ]


# --------------------------------------------------------------------------------------- copies
def copies(ask, rows, windows, syncs=(), **variables):
    tables = {
        **steady(*windows),
        "nsys.copy_window": table(
            rows,
            device=0,
            iteration=0,
            process=(1 << 24) + 7,
            context_id=1,
            stream_id=7,
            direction="HtoD",
            way="host",
            source="pinned",
            destination="device",
            count=1,
            bytes=0,
            work_ns=MS,
            busy_ns=0,
            blocking_ns=0,
            duration_ns=0,
            engine_added_ns=0,
        ),
        "nsys.pageable_sync": (
            "process BIGINT, context_id BIGINT, stream_id BIGINT",
            list(syncs),
        ),
    }
    return ask("recipes/copies", tables, **variables)


THREE = [(0, 0, 0, 10 * MS), (0, 1, 0, 20 * MS), (0, 2, 0, 30 * MS)]


def test_copies(ask):
    rows = [
        *[
            {"count": 2, "bytes": 64, "work_ns": 4 * MS, "busy_ns": 3 * MS, "blocking_ns": 2 * MS},
            {"iteration": 1, "count": 5, "bytes": 32, "work_ns": 2 * MS, "busy_ns": MS},
        ],
        {"iteration": 2, "bytes": 4, "work_ns": 9 * MS, "busy_ns": 8 * MS, "blocking_ns": MS},
    ]
    for row, duration in zip(rows, (10, 5, 5), strict=True):
        row |= {"duration_ns": duration, "engine_added_ns": row["busy_ns"]}
    # another stream of the same direction keeps the engine busy in one window more
    rows += [{"iteration": 1, "stream_id": 9, "engine_added_ns": 4 * MS, "work_ns": 2}]
    (first, second) = copies(ask, rows, THREE)
    assert first == (
        *(0, 7, 1, 7, "HtoD", "host", "pinned", "device", 2, 32, 4, 3, 15, 5, 1, 5, 25),
        *(False, "blocks compute", 1, 8, 0, 2, 3),
    )
    assert second == (
        *(0, 7, 1, 9, "HtoD", "host", "pinned", "device", 0, 0, 0, 0, 0, None, 0, 5, 25),
        *(False, "no claim", 0, 0, 0, 0, 3),
    )


@pytest.mark.parametrize(
    ("engine", "blocking", "way", "verdict"),
    [
        *[(9, 0, "host", "engine saturated"), (9, 0, "peer", "engine saturated")],
        *[(9, 0, "staged peer", "engine saturated"), (9, 0, "device", "no claim")],
        *[(9, 0, "memset", "no claim"), (8.999, 0, "host", "no claim")],
        *[(9, 0.1, "host", "engine saturated, blocks compute"), (1, 0.1, "host", "blocks compute")],
        *[(1, 0.099, "host", "no claim"), (9, 0.1, "memset", "blocks compute")],
    ],
)
def test_copies_claim_a_bottleneck(ask, engine, blocking, way, verdict):
    row = {"engine_added_ns": int(engine * MS), "blocking_ns": int(blocking * MS), "way": way}
    windows = [(0, 0, 0, 10 * MS)]
    (found,) = copies(ask, [row], windows)
    assert found[18] == verdict
    halves = {"saturated_pct": engine * 10 + 1, "blocking_pct": 1000.0 * blocking + 1}
    (found,) = copies(ask, [row], windows, **halves)
    assert found[18] == "no claim"


def test_copies_that_block_nothing_block_nothing(ask):
    (found,) = copies(ask, [{"blocking_ns": 0}], [(0, 0, 0, 10 * MS)], blocking_pct=0)
    assert found[18] == "no claim"
    (found,) = copies(ask, [{"blocking_ns": 1}], [(0, 0, 0, 10 * MS)], blocking_pct=0)
    assert found[18] == "blocks compute"


def test_copies_of_pageable_memory(ask):
    sides = [
        *[("pageable", "device", 7), ("device", "pageable", 7), ("pageable", "device", 8)],
        *[("device", "pageable", 8), ("pinned", "device", 7), ("pageable", None, 7)],
        *[(None, "device", 7), ("pinned", None, 7), (None, None, 7)],
    ]
    found = {}
    for source, destination, stream in sides:
        row = {"source": source, "destination": destination, "stream_id": stream}
        syncs = [((1 << 24) + 7, 1, 7), ((1 << 24) + 7, 2, 8), (9, 1, 8)]
        (told,) = copies(ask, [row], [(0, 0, 0, 10)], syncs)
        found[source, destination, stream] = told[17]
    assert [*found.values()] == [True, True, False, False, False, True, None, None, None]
    for key in ({"process": None}, {"context_id": None}):
        row = {"source": "pageable", **key}
        sync = (key.get("process", (1 << 24) + 7), key.get("context_id", 1), 7)
        (told,) = copies(ask, [row], [(0, 0, 0, 10)], [sync])
        assert told[17] is True
    row = {"source": "pageable", "destination": None, "way": "memset"}
    (told,) = copies(ask, [row], [(0, 0, 0, 10)], [((1 << 24) + 7, 1, 7)])
    assert told[17] is False


def test_copies_are_ordered_and_told_apart(ask):
    base = {"work_ns": MS}
    ordered = [
        *[{"work_ns": 2 * MS, "direction": "PtoP", "way": "peer"}, {**base, "direction": "DtoH"}],
        *[{**base, "way": "device"}, {**base, "process": 5}, base, {**base, "stream_id": 8}],
        *[{**base, "stream_id": 8, "destination": "x"}, {**base, "stream_id": 8, "source": "x"}],
        *[{**base, "stream_id": 8, "source": None, "destination": "x"}],
        *[{**base, "stream_id": 8, "source": None, "destination": None}],
        *[{**base, "context_id": 2}, {**base, "process": (2 << 24) + 7, "context_id": 2}],
        {"work_ns": 9 * MS, "way": "memset", "direction": "memset"},
    ]
    other = [{**base, "device": 1, "engine_added_ns": 2 * MS, "direction": "DtoH"}]
    windows = [(0, 0, 0, 10 * MS), (1, 0, 0, 4 * MS)]
    found = copies(ask, [*other, *ordered[::-1]], windows)
    names = ("direction", "way", "source", "destination", "stream_id", "context_id")
    defaults = dict(zip(names, ("HtoD", "host", "pinned", "device", 7, 1), strict=True))
    expected = [
        tuple(({"device": 0} | defaults | row).get(name) for name in ("device", *names))
        for row in [*ordered, *other]
    ]
    assert [(row[0], *row[4:8], row[3], row[2]) for row in found] == expected
    assert [row[1] for row in found if row[2] == 1][:4] == [7, 7, 7, 5]
    assert found[-1][15:17] == (2, 50) and found[1][15:17] == (0, 0)


# -------------------------------------------------------------------------------------- verdict
BUDGET = (
    "iteration_ns compute_busy_ns compute_absent_ns dependency_stalled_ns unattributed_ns "
    "comm_busy_ns comm_exposed_ns comm_blocking_ns launch_starved_ns launch_starved_shadowed_ns"
)
OPPORTUNITY = {
    **{"device": 0, "rank": 1, "opportunity": "o", "class": str, "cause": "blocking"},
    **{"role": str, "detail": str, "median_ns": 0, "min_ns": 0, "max_ns": 0, "step_ns": 100 * MS},
    **{"n": 3, "n_present": 3, "absent_ns": 0, "bound_kind": "k", "confidence": "c"},
    **{"is_material": True, "certain_pct": 100.0, "inferred_pct": 0.0, "gaps": 1, "longest_ns": 0},
    **{"long_pct": 0.0, "beside_pct": 0.0, "step_min_ns": 0, "step_max_ns": 0, "unseen_waits": 0},
}


def judged(ask, budgets, recipe="verdict", **rows):
    """budgets: (device, iteration, **changes) of windows of 100 ms, 60 of them compute."""
    numbers = dict.fromkeys(BUDGET.split(), 0)
    numbers |= {"iteration_ns": 100 * MS, "compute_busy_ns": 60 * MS, "compute_absent_ns": 40 * MS}
    tables = {
        "nsys.budget_window": table(
            budgets, device=0, iteration=0, start_ns=0, end_ns=1000, **numbers
        ),
        "nsys.opportunity": table(rows.get("opportunity", []), **OPPORTUNITY),
        "nsys.name_window": table(rows.get("work", []), device=0, name_id=1, work_ns=1),
        "nsys.op_name": (
            "name_id BIGINT, class VARCHAR, role VARCHAR",
            [
                *[(1, "gemm", "compute"), (2, "other", "compute"), (3, "graph", "compute")],
                *[(4, "nccl", "comm"), (5, "gemm", "compute"), (6, "attention", "compute")],
            ],
        ),
        "nsys.kernel_name": (
            "name_id BIGINT, is_matched BOOLEAN",
            [(1, "true"), (2, "false"), (3, "true")],
        ),
        "nsys.gap_cut": table(
            rows.get("gaps", []), device=0, start_ns=0, end_ns=10, evidence="resolved"
        ),
        "nsys.step_slowdown": table(
            rows.get("slowdown", []),
            device=0,
            is_material=bool,
            slowdown_ns=0,
            unprofiled_median_ns=1000,
            unprofiled_n=4,
            is_other_step=False,
        ),
        "nsys.iteration": table(
            rows.get("iterations", []), device=0, status="steady", anchor="nvtx:s"
        ),
        "nsys.unseen_wait": table(rows.get("unseen", []), device=0, calls=9, unseen=0),
        "nsys.shadow_producer": table(
            rows.get("shadow", []), device=0, producer="copy HtoD", shadowed_ns=1
        ),
        "nsys.window_period": table(
            rows.get("periods", []),
            **{"device": 0, "window_ns": 1e7, "period_ns": 2e7, "span_ns": 100, "between_ns": 0},
        ),
    }
    return ask(f"recipes/{recipe}", tables)


def windows(*changes, device=0):
    return [{"device": device, "iteration": at, **each} for at, each in enumerate(changes)]


def test_verdict_passes_on_medians(ask):
    values = [7 * MS, 3 * MS, 4 * MS]
    names = ["comm_busy_ns", "comm_exposed_ns", "comm_blocking_ns"]
    lengths = (90, 100, 102)
    changes = [
        {
            "iteration_ns": length * MS,
            "compute_absent_ns": (length - 60) * MS,
            "dependency_stalled_ns": n * 1000,
            "unattributed_ns": n,
            **{name: value + k * MS for k, name in enumerate(names)},
        }
        for n, (value, length) in enumerate(zip(values, lengths, strict=True))
    ]
    opportunity = {
        **{"opportunity": "launch", "median_ns": 20 * MS, "min_ns": 2 * MS, "max_ns": 50 * MS},
        **{"bound_kind": "upper", "confidence": "low", "is_material": True},
    }
    other = {"rank": 2, "opportunity": "second", "median_ns": 30 * MS}
    work = [{"work_ns": 30}, {"name_id": 5, "work_ns": 30}, {"name_id": 2, "work_ns": 6}]
    work += [{"name_id": 4, "work_ns": 999}, {"name_id": 6, "work_ns": 34}]
    (row,) = judged(ask, windows(*changes), opportunity=[other, opportunity], work=work)
    assert row == (
        *(0, 3, 100, 90, 102, "compute", 60, 60, 60, 60, "gemm", 60, 40, pytest.approx(0.001001)),
        *(
            4,
            5,
            6,
            0,
            0,
            None,
            False,
            False,
            "launch",
            20,
            2,
            50,
            pytest.approx(25),
            "upper",
            "low",
            True,
            None,
        ),
    )


def test_verdict_without_an_opportunity(ask):
    (row,) = judged(ask, windows({}, {}, {}))
    assert row[5:12] == ("compute", 60, 60, 60, 60, None, None)
    assert row[22:] == (*[None] * 7, False, None)
    # work of no length has no share
    (row,) = judged(ask, windows({}, {}, {}), work=[{"work_ns": 0}])
    assert row[10:12] == ("gemm", None)
    # a step that is all bound has no ceiling
    (row,) = judged(ask, windows({}, {}, {}), opportunity=[{"median_ns": 100 * MS}])
    assert row[26] is None


def test_verdict_tells_what_no_launch_recovers(ask):
    """Shadowed time from 1 % of the iteration on, medians, and by whom; small shares unnamed."""
    name = "launch_starved_shadowed_ns"
    shadow = [{"shadowed_ns": 66}, {"producer": "b", "shadowed_ns": 33}, {"device": 1}]
    changes = [{name: 2 * MS}, {name: MS}, {name: 0}]
    (row,) = judged(ask, windows(*changes), shadow=[*shadow, {"producer": "c", "shadowed_ns": 1}])
    assert row[17:22] == (1, 1, "copy HtoD 66 %, b 33 %, c 1 %", True, False)
    (row,) = judged(ask, windows(*changes), shadow=[*shadow, {"producer": "c", "shadowed_ns": 0}])
    assert row[19] == "copy HtoD 67 %, b 33 %"
    (row,) = judged(ask, windows(*[{name: MS - 1}] * 3))
    assert row[19:22] == (None, False, False)
    assert judged(ask, windows({name: MS}), gaps=[{"evidence": "inferred"}, {}])[0][21] is True


@pytest.mark.parametrize(
    ("opportunities", "changes", "cost"),
    [
        *[([61], {}, "o"), ([60], {}, "compute"), ([20, 70], {}, "second"), ([70, 70], {}, "o")],
        ([61], {"launch_starved_shadowed_ns": 61 * MS}, "o"),
        *[
            (
                [59],
                {"launch_starved_shadowed_ns": 61 * MS, "dependency_stalled_ns": 61 * MS},
                "launch-starved while the producer ran anyway",
            ),
            (
                [59],
                {"dependency_stalled_ns": 61 * MS, "unattributed_ns": 61 * MS},
                "dependency-stalled",
            ),
        ],
        ([59], {"unattributed_ns": 61 * MS}, "unattributed"),
    ],
)
def test_verdict_names_the_largest_share(ask, opportunities, changes, cost):
    rows = [
        {"rank": rank, "opportunity": name, "median_ns": ms * MS}
        for rank, (name, ms) in enumerate(zip(("o", "second"), opportunities, strict=False), 1)
    ]
    found = judged(ask, windows(changes, changes, changes), opportunity=rows)
    assert found[0][5] == cost
    assert found[0][6] == found[0][7] == (60 if cost == "compute" else max(61, *opportunities))


def limits(ask, changes=({}, {}, {}), **rows):
    return judged(ask, windows(*changes), **rows)[0][-1]


def test_verdict_tells_its_limits(ask):
    assert limits(ask) is None
    assert limits(ask, ({},)) == "only 1 steady iteration"
    assert limits(ask, ({}, {})) == "only 2 steady iterations"
    length = "iteration_ns"
    assert limits(ask, ({length: 90 * MS}, {}, {length: 110 * MS})) is None
    told = "iterations differ by 21 % of their median"
    assert limits(ask, ({length: 90 * MS}, {}, {length: 111 * MS})) == told
    # 1 % of 100 ms
    causes = {"dependency_stalled_ns": 600_000, "unattributed_ns": 400_000}
    told = "1.000 ms are dependency-stalled or unattributed, without a known cause"
    assert limits(ask, (causes,) * 3) == told
    assert limits(ask, ({**causes, "unattributed_ns": 399_999},) * 3) is None
    work = [{"work_ns": 90}, {"name_id": 2, "work_ns": 10}]
    assert limits(ask, work=work) == "10 % of the compute work is of kernels of class other"
    work = [{"work_ns": 91}, {"name_id": 2, "work_ns": 9}, {"name_id": 4, "work_ns": 1}]
    assert limits(ask, work=work) is None
    graph = "whole CUDA graphs count as compute, what ran inside is not in the trace"
    assert limits(ask, work=[{"work_ns": 5}, {"name_id": 3, "work_ns": 6}]) == graph
    assert limits(ask, work=[{"work_ns": 6}, {"name_id": 3, "work_ns": 5}]) is None
    told = (
        "5 % of the time lies between the windows and is in no budget: a window takes 10.0 ms, "
        "from its start to that of the next it is 20.0 ms (medians)"
    )
    assert limits(ask, periods=[{"between_ns": 5}, {"device": 1, "between_ns": 50}]) == told
    assert limits(ask, periods=[{"between_ns": 4}]) is None
    # of equal work the first by name
    assert limits(ask, work=[{"name_id": 6}, {"name_id": 3}]) is None


def test_verdict_tells_what_is_not_known_of_gaps(ask):
    bound = (
        "blocking is a lower bound: {} % of the time without compute lies in gaps whose launch or "
        "dependencies are not fully known"
    )
    for evidence in ("unresolved", "inferred", "graph"):
        gaps = [{"evidence": evidence}, {"end_ns": 30}]
        assert limits(ask, gaps=gaps) == bound.format(25)
    gaps = [{"evidence": "no_launch"}, {"evidence": "graph", "end_ns": 30}]
    assert limits(ask, gaps=gaps) == bound.format(100) + (
        "; launch-starved is a lower bound: 25 % of the time without compute lies in gaps without "
        "a launch, and what the host was late with there stands in blocking and dependency-stalled"
    )
    assert limits(ask, gaps=[{}, {"evidence": "none"}]) is None
    for unseen in (3, 9):
        for gaps in ([{}], []):
            (row,) = judged(ask, windows({}, {}, {}), gaps=gaps, unseen=[{"unseen": unseen}])
            assert row[21] is True and row[-1] == (
                f"blocking is a lower bound: {unseen} of 9 calls that make a stream wait left no "
                "wait in the trace, so what they held up is unknown"
            )
    assert limits(ask, unseen=[{}, {"device": 1, "unseen": 1}]) is None
    # windows from 0 to 1000: what only touches them does not count
    outside = [{"start_ns": 1000, "end_ns": 2000}, {"start_ns": -9, "end_ns": 0}]
    gaps = [{"evidence": "graph", **each} for each in outside]
    assert limits(ask, gaps=[*gaps, {}]) is None
    inside = [{"start_ns": 999, "end_ns": 1019}, {"start_ns": -19, "end_ns": 1}]
    gaps = [{"evidence": "graph", **each} for each in inside]
    assert limits(ask, gaps=[*gaps, {"end_ns": 60}]) == bound.format(40)
    assert limits(ask, gaps=[{"evidence": "graph", "device": 1}, {}]) is None
    apart = [{"start_ns": at, "end_ns": at + 10} for at in (500, 50, 70)]
    gaps = [{"start_ns": 300, "end_ns": 310, "evidence": "graph"}]
    assert judged(ask, windows(*apart), gaps=gaps)[0][-1] == bound.format(100)
    # all windows of a device together
    found = judged(
        ask,
        windows({"start_ns": 500, "end_ns": 600}, {"start_ns": 50, "end_ns": 60}, {}),
        gaps=[{"start_ns": 55, "end_ns": 595, "evidence": "graph"}],
    )
    assert found[0][-1] == bound.format(100)


def test_verdict_tells_of_warmup_and_of_the_profiler(ask):
    told = "the ranges that mark iterations are named as warmup ({})"
    for anchor in ("nvtx:WarmUp", "nvtx:warm-up*", "kernel:warm_up", "nvtx:a warm up"):
        assert limits(ask, iterations=[{"anchor": anchor}] * 2) == told.format(anchor)
    assert limits(ask, iterations=[{"anchor": "nvtx:warm"}]) is None
    assert limits(ask, iterations=[{"anchor": "nvtx:warmup", "status": "cut"}]) is None
    assert limits(ask, iterations=[{"anchor": "nvtx:warmup", "device": 1}]) is None
    slow = "perturbed: the profiled step is 12.5 % slower than the unprofiled one"
    for material, ns, text in (
        *[(True, 125, slow), (False, 125, None), (None, 125, slow), (None, 0, None)],
        (True, 0, slow.replace("12.5", "0.0")),
    ):
        assert limits(ask, slowdown=[{"is_material": material, "slowdown_ns": ns}]) == text
    other = {"is_material": False, "slowdown_ns": -125, "is_other_step": True}
    assert limits(ask, slowdown=[other]) == (
        "the iteration is 12.5 % shorter than the unprofiled step, so it is probably not what the "
        "trainer calls a step"
    )


def test_verdict_of_several_devices_and_all_limits_in_order(ask):
    changes = [{"iteration_ns": 90 * MS}, {"iteration_ns": 120 * MS}]
    changes = [{**each, "unattributed_ns": 70 * MS} for each in changes]
    work = [{"name_id": 3, "work_ns": 8}, {"name_id": 2, "work_ns": 2}]
    found = judged(
        ask,
        [*windows({}, {}, {}, device=1), *windows(*changes)],
        work=[*work, {"device": 1, "name_id": 1}],
        gaps=[{"evidence": "graph"}],
        slowdown=[{"is_material": True, "slowdown_ns": 100}],
        opportunity=[{"device": 1, "median_ns": 75 * MS, "is_material": False}],
    )
    assert [row[0] for row in found] == [0, 1]
    assert [each.split()[0] for each in found[0][-1].split("; ")] == [
        *("only", "iterations", "blocking", "whole", "20", "70.000", "perturbed:"),
    ]
    assert found[0][5] == "unattributed" and found[0][10:12] == ("graph", 80)
    assert found[1][-1] is None and found[1][5] == "o" and found[1][-2] is False
    assert found[1][10:12] == ("gemm", 100)


# --------------------------------------------------------------------------------------- claims
def claims(ask, budgets=None, **rows):
    found = judged(ask, budgets or windows({}, {}), "claims", **rows)
    return {(row[0], row[1]): row[2:] for row in found}


def test_claims_of_every_device(ask):
    found = claims(ask, [*windows({}, device=1), *windows({}, {})], iterations=[{}, {}])
    assert [*found] == [
        (device, position) for device in (0, 1) for position in (10, 20, 910, 920, 930)
    ]
    assert found[0, 10] == ("iterations and their times", "measured", "anchor nvtx:s, n = 2")
    assert found[1, 10][2] == "anchor unknown, n = 1"
    assert [found[0, at][1] for at in (20, 910, 920, 930)] == ["measured", *["unverified"] * 3]
    assert found[0, 930][2] == "no unprofiled reference steps were given"


def test_claims_of_names(ask):
    work = [{"work_ns": 3}, {"name_id": 2, "work_ns": 1}, {"name_id": 9, "work_ns": 50}]
    assert claims(ask, work=work)[0, 30][1:] == (
        *("inferred", "rules on kernel names; 75.0 % of kernel work matched one"),
    )
    assert "; 0.0 %" in claims(ask, work=[{"name_id": 2}])[0, 30][2]
    assert (0, 30) not in claims(ask)
    assert "; 100.0 %" in claims(ask, work=[{}, {"device": 1, "name_id": 2}])[0, 30][2]


def test_claims_of_gaps(ask):
    def told(*evidence):
        gaps = [{"evidence": each} for each in evidence]
        found = claims(ask, gaps=gaps)
        return [(found[0, at][1], *shares(found[0, at][2])) for at in (40, 50)]

    def shares(text):
        return [float(each) for each in text.split() if each.replace(".", "").isdigit()]

    assert told("resolved", "none") == [("measured", 0), ("measured", 0, 0)]
    assert told("resolved", "inferred") == [("measured", 0), ("inferred", 50, 0)]
    assert told("resolved", "unresolved") == [("measured", 0), ("inferred", 0, 50)]
    for launchless in ("no_launch", "graph"):
        assert told(launchless, *["none"] * 3) == [("inferred", 25), ("inferred", 0, 25)]
    # nearly all of it unknown
    many = ["unresolved"] * 18
    assert told("resolved", *many) == [("measured", 0), ("inferred", 0, 94.7)]
    assert told("resolved", *many, "unresolved") == [("measured", 0), ("unverified", 0, 95)]
    # waits without a row: some, and all of them
    for unseen, status in ((0, "measured"), (1, "inferred"), (8, "inferred"), (9, "unverified")):
        found = claims(ask, gaps=[{}], unseen=[{"unseen": unseen}, {"device": 1, "unseen": 9}])
        assert found[0, 50][1] == status
        assert found[0, 50][2].endswith("left no wait in the trace") == (unseen > 0)
    assert (0, 40) not in claims(ask) and (0, 50) not in claims(ask)
    outside = [{"start_ns": 1000, "end_ns": 2000}, {"start_ns": -9, "end_ns": 0}, {"device": 1}]
    assert (0, 40) not in claims(ask, gaps=outside)
    inside = [
        {"start_ns": 999, "end_ns": 1029, "evidence": "inferred"},
        {"start_ns": -9, "end_ns": 1},
    ]
    assert "75.0 % rests" in claims(ask, gaps=inside)[0, 50][2]
    apart = windows({"start_ns": 500, "end_ns": 600}, {"start_ns": 50, "end_ns": 60})
    assert (0, 40) in claims(ask, apart, gaps=[{"start_ns": 300, "end_ns": 310}])


def test_claims_of_what_no_launch_recovers(ask):
    name = "launch_starved_shadowed_ns"
    shadow = [{"shadowed_ns": 3}, {"producer": "b", "shadowed_ns": 4}, {"device": 1}]
    changes = windows({name: 2 * MS}, {name: MS}, {name: 0})
    told = "1.0 ms of 100.0 ms per iteration (medians{}), in no bound: an earlier launch alone "
    told += "cannot recover it, another way to do that operation may"
    found = claims(ask, changes, shadow=shadow)[0, 45]
    assert found[1:] == ("unverified", told.format(", most of it beside b"))
    assert claims(ask, changes)[0, 45][2] == told.format("")
    assert (0, 45) not in claims(ask, windows({name: MS - 1}))


def test_claims_of_what_has_no_cause(ask):
    assert (0, 60) not in claims(ask)
    found = claims(ask, windows({"dependency_stalled_ns": 1}, {}))
    assert found[0, 60] == (
        *("cause of dependency-stalled time", "unverified"),
        "no dependency in the trace explains it",
    )


def test_claims_of_opportunities(ask):
    rows = [
        {"rank": 2, "opportunity": "b", "certain_pct": 49.9, "confidence": "low"},
        {"rank": 1, "opportunity": "a", "certain_pct": 50.0, "bound_kind": "upper"},
        {"rank": 1, "opportunity": "x", "device": 1},
    ]
    found = claims(ask, opportunity=rows)
    assert [*found] == [
        *[(0, at) for at in (10, 20, 101, 102, 900, 910, 920, 930)],
        *[(1, at) for at in (101, 900)],
    ]
    known = "% of it with known launch and dependencies"
    assert found[0, 101] == (
        *("bound of opportunity 1: a", "measured", f"upper, confidence c; 50 {known}"),
    )
    assert found[0, 102] == (
        *("bound of opportunity 2: b", "inferred", f"k, confidence low; 49 {known}"),
    )
    assert found[0, 900][1] == "inferred"


def test_claims_of_the_profiler(ask):
    found = claims(ask, slowdown=[{"slowdown_ns": 125}, {"device": 1, "slowdown_ns": 500}])
    assert found[0, 930] == (
        *("slowdown by the profiler", "measured"),
        "12.5 % against 4 unprofiled steps; that they are the same workload is taken on trust",
    )


# -------------------------------------------------------------------------------- opportunities
def advised(ask, *rows, **variables):
    tables = {"nsys.opportunity": table(rows, **OPPORTUNITY)}
    return ask("recipes/opportunities", tables, **variables)


def test_opportunities_are_ceilings(ask):
    row = {"median_ns": 20 * MS, "min_ns": 10 * MS, "max_ns": 30 * MS, "class": "nccl"}
    (found,) = advised(ask, row, mfu=40)
    row |= {"step_min_ns": 90 * MS, "step_max_ns": 110 * MS}
    (found,) = advised(ask, row, mfu=40)
    assert found[:19] == (
        *(0, 1, "o", "nccl", 20, 10, 30, 3, "k", 100, 90, 110, 80, pytest.approx(25), 50, False),
        *("c", True, "measured"),
    )
    assert advised(ask, row)[0][14:16] == (None, None)
    (all_of_it,) = advised(ask, {"median_ns": 100 * MS}, mfu=40)
    assert all_of_it[12:16] == (0, None, None, None)
    # 80 / 100 of the step is left: percent or fraction, and 100 % itself is possible
    for mfu, is_above in ((80, False), (81, True), (0.8, False), (0.81, True), (1, True)):
        assert advised(ask, row, mfu=mfu)[0][15] is is_above, mfu
    for certain, status in ((49.9, "inferred"), (50.0, "measured"), (50.5, "measured")):
        (other,) = advised(ask, {"certain_pct": certain})
        assert other[18] == status


def test_opportunities_tell_their_evidence(ask):
    row = {"median_ns": 20 * MS, "absent_ns": 50 * MS, "n_present": 2, "certain_pct": 66.9}
    row |= {"gaps": 7, "longest_ns": 1_234_567}
    told = (
        "20.0 % of the iteration, 40.0 % of its time without compute; in 2 of 3 iterations; "
        "66 % of it with known launch and dependencies{}; 7 gaps, longest 1.235 ms{}"
    )

    def evidence(**changes):
        return advised(ask, {**row, **changes})[0][19]

    assert evidence() == told.format("", "")
    assert evidence(inferred_pct=12.0) == told.format(", 12 % inferred", "")
    assert evidence(cause="launch", long_pct=34.0) == told.format("", ", 34 % of it in pauses")
    assert evidence(unseen_waits=5) == told.format(
        ", as far as waits are in the trace (5 are not)", ""
    )
    beside = ", {} % of it while copies, communication or spinning kernels ran"
    assert evidence(beside_pct=1.0) == told.format("", beside.format(1))
    assert evidence(beside_pct=0.99) == told.format("", "")
    both = evidence(cause="launch", long_pct=34.0, beside_pct=5.0)
    assert both == told.format("", ", 34 % of it in pauses" + beside.format(5))
    assert ", 0.0 % of its time without compute" in evidence(absent_ns=0)


def test_opportunities_advise_by_the_cause(ask):
    actions = [
        *[("Find what holds the host", {"cause": "launch", "long_pct": 50.0})],
        *[("CUDA graphs", {"cause": "launch", "long_pct": 49.9, "class": "transport"})],
        *[
            (
                "See first whether the host waits",
                {"cause": "launch", "long_pct": at, "beside_pct": 50},
            )
            for at in (0.0, 100.0)
        ],
        *[("Find what holds", {"cause": "launch", "long_pct": 50.0, "beside_pct": 49.9})],
        *[("MoE communication overlap", {"class": "transport", "role": "comm"})],
        *[("MoE communication overlap", {"class": "dispatch", "role": "comm"})],
        *[("MoE communication overlap", {"detail": "dispatch"})],
        *[("MoE communication overlap", {"detail": "combine"})],
        *[("MoE: overlap", {"detail": "AllToAll", "role": "comm"})],
        *[("Pipeline", {"detail": "SendRecv", "role": "comm"})],
        *[("TP and DP", {"detail": "AllReduce", "role": "comm"})],
        *[
            ("CPU offloading", {"role": "memcpy", "detail": detail})
            for detail in ("HtoD", "DtoH", "unified HtoD", "unified DtoH")
        ],
        *[("Compute waits", {"role": "compute", "detail": "HtoD"})],
        *[("See what is copied", {"role": "memcpy", "detail": "DtoD"})],
        *[("See which buffers", {"role": "memset"}), ("Find what the spinning", {"role": "wait"})],
    ]
    for text, row in actions:
        (found,) = advised(ask, row)
        assert found[20].startswith(text), row
        start = "capture again with the change only: blocking"
        if row.get("cause") == "launch":
            start = "capture again with the change only: launch_starved"
        elif row.get("role") == "comm":
            start = "capture all ranks"
        assert found[21].startswith(start), row


def test_opportunities_in_order(ask):
    rows = [{"device": device, "rank": rank} for device in (1, 0) for rank in (3, 1, 2)]
    found = advised(ask, *rows)
    assert [row[:2] for row in found] == [(device, rank) for device in (0, 1) for rank in (1, 2, 3)]


# ----------------------------------------------------------------------------------- call sites
def test_call_sites(ask):
    names = [
        "device",
        "iteration",
        "call_site",
        "launches",
        "work_ns",
        "launch_starved_ns",
        "blocking_ns",
    ]
    rows = [
        *[(0, 0, "a", 2, 30, 10, 1), (0, 2, "a", 3, 50, 40, 7), (0, 1, "b", 4, 9, 60, 60)],
        *[(0, at, None, 1, 8, 20, 0) for at in range(3)],
        *[(0, 1, "c", 5, 0, 0, 0), (0, 1, "d", 5, 0, 0, 0), (0, 1, "e", 6, 0, 0, 0)],
        *[(1, 0, "a", 9, 6, 1, 2), (2, 0, None, 0, 0, 0, 0)],
    ]
    made = [dict(zip(names, (*row[:4], *(MS * n for n in row[4:])), strict=True)) for row in rows]
    kinds = dict.fromkeys(names, int) | {"call_site": str}
    stacks = [("a", "x"), ("a", "y"), ("a", "y"), ("b", "p"), ("b", "q"), ("zz", "z")]
    tables = {
        **steady(*THREE, (1, 0, 0, 5), (2, 0, 0, 5)),
        "nsys.call_site_window": table(made, **kinds),
        "nsys.call_site_op": ("call_site VARCHAR, stack VARCHAR", stacks),
    }
    found = ask("recipes/call_sites", tables)
    # in the order of the median of both times, then of launches
    assert [row[:4] for row in found] == [
        *[(0, None, None, 3), (0, "a", "y", 5), (0, "e", None, 6), (0, "c", None, 5)],
        *[(0, "d", None, 5), (0, "b", "q", 4), (1, "a", "y", 9), (2, None, None, 0)],
    ]
    assert found[1][4:] == (30, 10, 0, 40, 1, 0, 7, 3, pytest.approx(100 * 25 / 28))
    assert found[5][4:12] == (0, 0, 0, 60, 0, 0, 60, 3)
    assert found[6][4:] == (6, 1, 1, 1, 2, 2, 2, 1, 100)
    assert found[7][-1] is None


# ------------------------------------------------------------------------------------- blockers
def test_blockers(ask):
    names = [
        *("device", "iteration", "name_id", "process", "context_id", "stream_id", "waiting_id"),
        *("evidence", "count", "blocking_ns"),
    ]
    first, none = (5, 1, 7), (None, None, None)
    rows = [
        # all-reduce of stream 7: 6, 0 and 9 ms
        *[(0, 0, 1, *first, 3, "resolved", 1, 4 * MS), (0, 0, 1, *first, 4, "inferred", 2, 2 * MS)],
        *[(0, 2, 1, *first, 3, "unresolved", 3, MS), (0, 2, 1, *first, 4, "no_launch", 4, 3 * MS)],
        (0, 2, 1, *first, 5, "resolved", 1, 5 * MS),
        # the same kernel elsewhere
        *[(0, 1, 1, 5, 1, 8, 3, "inferred", 1, 2 * MS), (0, 1, 1, 5, 2, 7, 4, "inferred", 1, 3)],
        *[(0, 1, 1, 6, 1, 7, 4, "inferred", 1, 2), (0, 1, 1, *none, 5, "unresolved", 1, 9)],
        *[(0, 1, 2, *none, 3, "no_launch", 1, 8), (1, 0, 1, *first, 4, "no_launch", 7, MS)],
    ]
    kinds = dict.fromkeys(names, int) | {"evidence": str}
    tables = {
        **steady(*THREE, (1, 0, 0, 4 * MS)),
        "nsys.blocking_window": table([dict(zip(names, r, strict=True)) for r in rows], **kinds),
        "nsys.op_name": (
            "name_id BIGINT, name VARCHAR, class VARCHAR, role VARCHAR",
            [
                *[(1, "ar", "nccl", "comm"), (2, None, "other", "compute")],
                *[(3, "g", "gemm", "compute"), (4, "f", "norm", "compute")],
                (5, None, "attention", "compute"),
            ],
        ),
    }
    found = ask("recipes/blockers", tables)
    total = 17 * MS + 3 + 2 + 9 + 8
    assert near(found[0]) == (
        *(0, "ar", "nccl", "comm", 5, 1, 7, 3, 6, 0, 9, 30, pytest.approx(100 * 15 * MS / total)),
        *(pytest.approx(60), pytest.approx(2 / 0.15), pytest.approx(1 / 0.15), 20),
        # 5 ms each: the name tells, and one without comes first
        *("(unnamed kernel)", "attention", pytest.approx(5 / 0.15), 3),
    )
    assert [(*row[:8], row[10], *row[13:]) for row in found[1:]] == [
        (0, "ar", "nccl", "comm", 5, 1, 8, 0, 2, 0, 100, 0, 0, "g", "gemm", 100, 3),
        (
            0,
            "ar",
            "nccl",
            "comm",
            *none,
            0,
            9e-6,
            0,
            0,
            100,
            0,
            "(unnamed kernel)",
            "attention",
            100,
            3,
        ),
        (
            0,
            "(unnamed kernel)",
            "other",
            "compute",
            *none,
            0,
            8e-6,
            0,
            0,
            0,
            100,
            "g",
            "gemm",
            100,
            3,
        ),
        (0, "ar", "nccl", "comm", 5, 2, 7, 0, 3e-6, 0, 100, 0, 0, "f", "norm", 100, 3),
        (0, "ar", "nccl", "comm", 6, 1, 7, 0, 2e-6, 0, 100, 0, 0, "f", "norm", 100, 3),
        (1, "ar", "nccl", "comm", *first, 7, 1, 0, 0, 0, 100, "f", "norm", 100, 1),
    ]
    assert [row[11:13] for row in found[-1:]] == [(25, 100)]


def test_blockers_of_equal_time_in_order(ask):
    keys = [
        *[(2, 5, 1, 7), (1, 5, 1, 7), (1, 5, 1, 8), (1, 5, 2, 1), (1, 6, 1, 1)],
        *[(3, 5, 1, 7), (4, 5, 1, 7)],
    ]
    names = ["name_id", "process", "context_id", "stream_id"]
    rows = [dict(zip(names, key, strict=True)) for key in keys]
    tables = {
        **steady((0, 0, 0, 10)),
        "nsys.blocking_window": table(
            rows[::-1],
            **dict.fromkeys(names, int),
            device=0,
            iteration=0,
            waiting_id=1,
            evidence="resolved",
            count=1,
            blocking_ns=5,
        ),
        "nsys.op_name": (
            "name_id BIGINT, name VARCHAR, class VARCHAR, role VARCHAR",
            [
                (1, "b", "x", "comm"),
                (2, "a", "y", "comm"),
                (3, "c", "x", "comm"),
                (4, "c", "y", "comm"),
            ],
        ),
    }
    found = ask("recipes/blockers", tables)
    assert [(row[1], row[2], row[4], row[5], row[6]) for row in found] == [
        *[("a", "y", 5, 1, 7), ("b", "x", 5, 1, 7), ("b", "x", 5, 1, 8), ("b", "x", 5, 2, 1)],
        *[("b", "x", 6, 1, 1), ("c", "x", 5, 1, 7), ("c", "y", 5, 1, 7)],
    ]


# -------------------------------------------------------------------------------------- metrics
def counted(ask, samples=(), given=(), work=(), ops=(), windows=((0, 0, 0, 10),), **variables):
    columns = {
        **{"scope": "kernel", "name": "k", "samples": 8, "exclusive_samples": 4},
        **{"metric": "sm_issue", "value_sum": 0.0, "value_count": 1},
    }
    tables = {
        **steady(*windows),
        "nsys.metric_operator": table(samples, device=0, **columns),
        "nsys.metric_given": table(given, **columns),
        "nsys.name_window": table(work, device=0, name_id=1, count=1, work_ns=MS),
        "nsys.op": table(ops, device=0, name_id=1, start_ns=0, end_ns=MS),
        "nsys.op_name": (
            "name_id BIGINT, name VARCHAR, class VARCHAR, role VARCHAR",
            [
                *[(1, "k", "gemm", "compute"), (2, "k", "gemm", "compute")],
                *[(3, None, "other", "compute"), (4, "l", "gemm", "compute")],
                *[(-1, "memcpy", "memcpy", "memcpy"), (-2, "memset", "memset", "memset")],
                *[(5, "m", "gemm", "compute"), (6, "k", "norm", "compute")],
            ],
        ),
    }
    return ask("recipes/metrics", tables, **variables)


METRICS = [
    *("sm_issue", "tensor_active", "dram_read", "dram_write", "nvlink_rx", "nvlink_tx"),
    "sms_active",
]


def test_metrics(ask):
    work = [
        *[{"count": 2}, {"name_id": 2, "count": 3, "work_ns": 2 * MS}, {"name_id": 3}],
        *[{"name_id": -1, "count": 9, "work_ns": 5 * MS}, {"name_id": -2}, {"device": 1}],
        *[{"name_id": 4, "work_ns": 2}, {"name_id": 5, "work_ns": 2}, {"name_id": 6, "work_ns": 2}],
    ]
    samples = [
        {"metric": name, "value_sum": 10.0 * n * (7 - n), "value_count": n or None}
        for n, name in enumerate(METRICS)
    ]
    samples += [
        *[{"name": "l", "value_count": 0, "value_sum": 1.0, "exclusive_samples": 8}],
        *[{"scope": "class", "name": "gemm", "value_sum": 7.0}, {"device": 1, "samples": 100}],
        {"name": None, "value_sum": 3.0, "exclusive_samples": 7},
    ]
    found = counted(ask, samples, work=work)
    assert [(*row[:9], *row[10:12], row[-1]) for row in found] == [
        ("class", 0, "memcpy", "memcpy", "memcpy", 9, 5, 0, None, None, None, "this trace"),
        ("class", 0, "gemm", "gemm", "compute", 7, 3.000004, 8, 50, 7, None, "this trace"),
        ("class", 0, "memset", "memset", "memset", 1, 1, 0, None, None, None, "this trace"),
        ("class", 0, "other", "other", "compute", 1, 1, 0, None, None, None, "this trace"),
        ("class", 0, "norm", "norm", "compute", 1, 2e-6, 0, None, None, None, "this trace"),
        ("class", 1, "gemm", "gemm", "compute", 1, 1, 0, None, None, None, "this trace"),
        ("kernel", 0, "k", "gemm", "compute", 5, 3, 8, 50, None, 60, "this trace"),
        ("kernel", 0, "(unnamed kernel)", "other", "compute", 1, 1, 8, 87.5, 3, None, "this trace"),
        ("kernel", 0, "k", "norm", "compute", 1, 2e-6, 8, 50, None, 60, "this trace"),
        ("kernel", 0, "l", "gemm", "compute", 1, 2e-6, 8, 100, None, None, "this trace"),
        ("kernel", 0, "m", "gemm", "compute", 1, 2e-6, 0, None, None, None, "this trace"),
        ("kernel", 1, "k", "gemm", "compute", 1, 1, 100, 4, 0, None, "this trace"),
    ]
    assert found[6][10:17] == (None, 60, 50, 40, 30, 20, 10)
    # at least 90 % of the samples without another
    assert [row[9] for row in found[6:11]] == [True, True, True, False, None]
    told = counted(ask, samples, work=work, exclusive_pct=87.5)
    assert [row[9] for row in told[6:11]] == [True, False, True, False, None]
    told = counted(ask, samples, work=work, device=1)
    assert told == [found[5], found[11]]


def test_metrics_of_another_capture(ask):
    work = [{}, {"name_id": 4}, {"name_id": 5, "device": 1}]
    given = [
        {"value_sum": 6.0, "value_count": 2},
        *[
            {"scope": "class", "name": "gemm", "value_sum": 5.0},
            {"scope": "class", "value_sum": 9.0},
        ],
    ]
    found = counted(ask, [{"name": "l", "value_sum": 1.0}], given, work=work)
    assert [(*row[:3], row[7], row[10], row[-1]) for row in found] == [
        ("class", 0, "gemm", 8, 5, "other capture"),
        ("class", 1, "gemm", 8, 5, "other capture"),
        ("kernel", 0, "k", 8, 3, "other capture"),
        ("kernel", 0, "l", 0, None, "other capture"),
        ("kernel", 1, "m", 0, None, "other capture"),
    ]
    # one row makes it another capture's; a class is no kernel of that name
    found = counted(ask, [], [{"scope": "class", "name": "k", "value_sum": 4.0}], work=work)
    assert [(*row[:3], row[7], row[10], row[-1]) for row in found] == [
        *[("class", at, "gemm", 0, None, "other capture") for at in (0, 1)],
        *[("kernel", 0, name, 0, None, "other capture") for name in "kl"],
        ("kernel", 1, "m", 0, None, "other capture"),
    ]


def test_metrics_without_a_steady_window_are_of_the_whole_trace(ask):
    ops = [{}, {"start_ns": 5, "end_ns": 5 + MS}, {"name_id": 4, "end_ns": 3}, {"device": 1}]
    found = counted(ask, ops=ops, windows=())
    assert [(*row[:3], *row[5:7]) for row in found] == [
        *[("class", 0, "gemm", 3, 2.000003), ("class", 1, "gemm", 1, 1)],
        *[("kernel", 0, "k", 2, 2), ("kernel", 0, "l", 1, 3e-6), ("kernel", 1, "k", 1, 1)],
    ]
    assert counted(ask, ops=ops) == []


# -------------------------------------------------------------------------------- step timeline
TIMELINE = {
    **{"device": 0, "process": 5, "context_id": 1, "stream_id": 7, "lane": 1, "class": "gemm"},
    **{"name_id": 1, "role": "compute", "start_ns": 0, "end_ns": 10},
}


def timeline(ask, ops, gaps=(), windows=((0, 3, 100, 200),), **variables):
    tables = {
        **steady(*windows),
        "nsys.op": table(ops, **TIMELINE),
        "nsys.op_name": ("name_id BIGINT, name VARCHAR", [(1, "k"), (2, None), (3, "a")]),
        "nsys.gap_cut": table(gaps, device=0, start_ns=0, issued_ns=0, unblocked_ns=0, end_ns=0),
    }
    return ask("recipes/step_timeline", tables, **variables)


def marks(found):
    """Lane, class, start, duration, busy (ns), how many, name."""
    return [(row[3], row[5], *(round(ms * 1e6) for ms in row[6:9]), *row[9:11]) for row in found]


def test_step_timeline_shows_the_window_nearest_the_median(ask):
    # lengths 100, 90, 111 and 96: the median is 98, and the earlier of two as near is shown
    windows = [(0, 1, 0, 90), (0, 4, 400, 500), (0, 2, 100, 211), (0, 3, 300, 396)]
    windows += [(1, 7, 1000, 1050)]
    ops = [
        *[{"start_ns": at, "end_ns": at + 20} for at in (280, 290, 310, 395, 396, 400)],
        *[{"start_ns": 330, "end_ns": 330}, {"start_ns": 290, "end_ns": 300}],
        {"device": 1, "start_ns": 1000, "end_ns": 1050},
    ]
    found = timeline(ask, ops, windows=windows)
    assert [row[:3] for row in found] == [*[(0, 3, 96e-6)] * 4, (1, 7, 50e-6)]
    assert marks(found) == [
        *[("stream 7", "gemm", 0, 10, 10, 1, "k"), ("stream 7", "gemm", 10, 20, 20, 1, "k")],
        *[("stream 7", "gemm", 30, 0, 0, 1, "k"), ("stream 7", "gemm", 95, 1, 1, 1, "k")],
        ("stream 7", "gemm", 0, 50, 50, 1, "k"),
    ]
    assert [row[11] for row in found] == [1, 2, 3, 4, 5]


def test_step_timeline_shows_why_compute_pauses(ask):
    gaps = [
        {"start_ns": 90, "issued_ns": 110, "unblocked_ns": 130, "end_ns": 135},
        {"start_ns": 150, "issued_ns": 150, "unblocked_ns": 150, "end_ns": 160},
        {"start_ns": 80, "issued_ns": 90, "unblocked_ns": 95, "end_ns": 100},
        {"device": 1, "issued_ns": 150, "unblocked_ns": 160, "end_ns": 170},
    ]
    ops = [
        *[{"start_ns": 135, "end_ns": 150}, {"start_ns": 170, "end_ns": 180}],
        *[{"start_ns": 185, "end_ns": 185}, {"start_ns": 190, "end_ns": 195, "role": "comm"}],
        {"device": 1, "start_ns": 150, "end_ns": 190},
    ]
    found = [row for row in marks(timeline(ask, ops, gaps)) if row[0] == "cause"]
    assert found == [
        ("cause", "launch-starved", 0, 10, 10, 1, "launch-starved"),
        ("cause", "blocking", 10, 20, 20, 1, "blocking"),
        ("cause", "dependency-stalled", 30, 5, 5, 1, "dependency-stalled"),
        ("cause", "dependency-stalled", 50, 10, 10, 1, "dependency-stalled"),
        # after the last compute of the device
        ("cause", "unattributed", 80, 20, 20, 1, "unattributed"),
    ]
    found = marks(timeline(ask, [{"start_ns": 110, "end_ns": 120, "role": "comm"}]))
    assert found[0] == ("cause", "unattributed", 0, 100, 100, 1, "unattributed")
    found = marks(timeline(ask, [{"start_ns": 110, "end_ns": 200}]))
    assert [row[0] for row in found] == ["stream 7"]


def lanes(ask, *ops):
    found = timeline(ask, [{"start_ns": 110, "end_ns": 200, **each} for each in ops])
    return [row[3:5] for row in found]


def test_step_timeline_names_lanes(ask):
    assert lanes(ask, {}, {"lane": 2, "stream_id": 8}) == [("stream 7", 1), ("stream 8", 2)]
    assert lanes(ask, {"stream_id": None}) == [("stream ?", 1)]
    # the same number in two contexts
    assert lanes(
        ask, {"lane": 2, "context_id": 2}, {}, {"lane": 3, "stream_id": 8, "context_id": 3}
    ) == [("context 1 stream 7", 1), ("context 2 stream 7", 2), ("stream 8", 3)]
    assert lanes(ask, {"process": (1 << 24) + 6}, {"lane": 2, "stream_id": 3}) == [
        *[("process 5 stream 3", 1), ("process 6 stream 7", 2)],
    ]
    # by process, context and stream, in this order
    assert lanes(
        ask,
        *[{"lane": 1, "context_id": 2, "stream_id": 8}, {"lane": 2, "stream_id": 9}],
        {"lane": 3, "process": 4, "context_id": 3, "stream_id": 10},
    ) == [
        *[("process 4 stream 10", 1), ("process 5 stream 9", 2), ("process 5 stream 8", 3)],
    ]
    # lanes of two processes may have one number
    assert lanes(ask, {"process": 6}, {"stream_id": 3}) == [
        *[("process 5 stream 3", 1), ("process 6 stream 7", 2)],
    ]
    found = lanes(ask, {"process": None}, {"process": None, "lane": 2})
    assert found == [("context 1 stream 7", 1), ("context 1 stream 7", 2)]
    ops = [{"start_ns": 110, "end_ns": 200}, {"device": 1, "process": 6, "lane": 4, "end_ns": 5}]
    found = timeline(ask, ops, windows=[(0, 3, 100, 200), (1, 1, 0, 5)])
    assert [row[3:5] for row in found] == [("stream 7", 1), ("stream 7", 1)]


def test_step_timeline_names_kernels(ask):
    ops = [{"start_ns": 110, "end_ns": 200, "name_id": name} for name in (3, 2, 9, 1)]
    assert [row[-1] for row in marks(timeline(ask, ops))] == [
        *("(unnamed kernel)", "(unnamed kernel)", "a", "k"),
    ]


def test_step_timeline_of_operations_that_start_together(ask):
    ops = [{"start_ns": 110, "end_ns": end} for end in (130, 120, 200, 140)]
    found = marks(timeline(ask, ops))
    assert [row[3] for row in found] == [10, 20, 30, 90]


def test_step_timeline_merges_what_is_short(ask):
    # 10 slots of 10 ns in the one lane
    ops = [
        *[{"start_ns": 100, "end_ns": 102}, {"start_ns": 105, "end_ns": 108, "class": "norm"}],
        *[{"start_ns": 109, "end_ns": 112, "class": "norm", "name_id": 3}],
        *[{"start_ns": 103, "end_ns": 113}, {"start_ns": 110, "end_ns": 119}],
        *[{"start_ns": 199, "end_ns": 200}, {"start_ns": 150, "end_ns": 200, "role": "compute"}],
    ]
    ops += [{"start_ns": 120 + at, "end_ns": 121 + at} for at in range(20)]
    found = marks(timeline(ask, ops, max_marks=20))
    assert found == [
        # 2 of gemm, 3 + 3 of norm
        ("stream 7", "norm", 0, 12, 8, 3, None),
        ("stream 7", "gemm", 3, 10, 10, 1, "k"),
        ("stream 7", "gemm", 10, 9, 9, 1, "k"),
        ("stream 7", "gemm", 20, 10, 10, 10, None),
        ("stream 7", "gemm", 30, 10, 10, 10, None),
        ("stream 7", "gemm", 50, 50, 50, 1, "k"),
        ("stream 7", "gemm", 99, 1, 1, 1, "k"),
    ]
    assert len(timeline(ask, ops, max_marks=26)) < 27
    assert len(timeline(ask, ops, max_marks=27)) == 27
    assert len(timeline(ask, ops)) == 27
    # of equal time the later class by name
    even = [{"start_ns": 101, "end_ns": 102, "class": each} for each in ("b", "c", "a")]
    assert marks(timeline(ask, even, max_marks=1))[1:] == [("stream 7", "c", 1, 1, 3, 3, None)]


def test_step_timeline_keeps_its_promise_where_a_stream_overlaps_itself(ask):
    ops = [{"start_ns": 100 + at % 7, "end_ns": 150 + at} for at in range(40)]
    ops += [{"lane": 2, "stream_id": 8, "start_ns": 100, "end_ns": 200}] * 4
    ops += [{"start_ns": 190, "end_ns": 191}]
    for most in (2, 3, 4, 5, 11, 12, 20, 43):
        found = timeline(ask, ops, max_marks=most)
        assert len({row[3] for row in found}) <= len(found) <= most
        assert sum(row[9] for row in found) == 45  # nothing is lost
    assert len(timeline(ask, ops, max_marks=1)) == 2
    # five slots a lane, and so the five longest; others last 78 ns and less
    longest = [row for row in marks(timeline(ask, ops, max_marks=20)) if row[5] == 1]
    assert sorted(row[3] for row in longest if row[0] == "stream 7") == [1, *[85] * 5]
