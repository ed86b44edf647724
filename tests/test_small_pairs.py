"""Single SQL files about two sides over small tables made by hand, as in test_small_tables."""

import hashlib
from itertools import combinations

import pytest

WINDOW = "pair BIGINT, side VARCHAR, n BIGINT, iteration_ns BIGINT"
WORK = (
    "pair BIGINT, side VARCHAR, iteration BIGINT, role VARCHAR, class VARCHAR, "
    "collective VARCHAR, name VARCHAR, count BIGINT, work_ns BIGINT"
)


def test_pairs_window(ask):
    rows = [(0, "base", 4), (0, "base", 7), (0, "new", 3), (1, "base", 9)]
    columns = "pair BIGINT, side VARCHAR, iteration_ns BIGINT"
    found = ask("pairs/window", {"pair.budget": (columns, rows)})
    assert sorted(found) == [(0, "base", 2, 5), (0, "new", 1, 3), (1, "base", 1, 9)]


def test_pairs_content(ask):
    base = (0, "base")
    work = [
        # gemm: 1 + 2 in window 0, 5 in window 1 and none in window 2
        *[
            (*base, 0, "compute", "gemm", None, "k", 1, 10),
            (*base, 0, "compute", "gemm", None, "l", 2, 20),
        ],
        *[
            (*base, 1, "compute", "gemm", None, "k", 5, 50),
            (*base, 0, "compute", "norm", None, None, 7, 70),
        ],
        *[
            (*base, 1, "compute", "norm", None, None, 7, 72),
            (*base, 0, "compute", "gemm", None, "k", 1, 1),
        ],
        # one name of two classes, for what it is worth
        *[
            (*base, 0, "comm", "nccl", None, "c", 3, 30),
            (*base, 0, "comm", "nccl", None, "d", 3, 30),
        ],
        *[
            (*base, 1, "comm", "nccl", None, "c", 4, 40),
            (*base, 0, "comm", "nccl", "ar", "c", 1, 10),
        ],
        *[
            (*base, 1, "comm", "nccl", "ar", "c", 1, 10),
            (*base, 0, "memcpy", "memcpy", None, "m", 9, 9),
        ],
        *[
            (*base, 0, "comm", "dispatch", None, "c", 2, 20),
            (*base, 1, "comm", "dispatch", None, "c", 2, 20),
        ],
        *[
            (0, "new", 0, "compute", "gemm", None, "k", 8, 80),
            (1, "base", 0, "compute", "gemm", None, "k", 9, 90),
        ],
    ]
    copies = [
        *[(*base, 0, "HtoD", 1, 5, 64), (*base, 0, "HtoD", 2, 5, 64), (*base, 1, "HtoD", 5, 6, 32)],
        *[(*base, 0, "DtoH", 1, 1, 1), (*base, 1, "DtoH", 1, 1, 1)],
        *[(0, "new", 0, "HtoD", 6, 6, 6), (1, "base", 0, "HtoD", 7, 7, 7)],
    ]
    tables = {
        "pair.work": (WORK, work),
        "pair.copy": (
            "pair BIGINT, side VARCHAR, iteration BIGINT, direction VARCHAR, count BIGINT, "
            "work_ns BIGINT, bytes BIGINT",
            copies,
        ),
        "pair.launch": (
            "pair BIGINT, side VARCHAR, iteration BIGINT, kernel_count BIGINT, "
            "launch_call_count BIGINT, graph_launch_count BIGINT, call_count BIGINT",
            [(*base, 0, 1, 2, 3, 4), (*base, 1, 1, 2, 3, 6), (*base, 2, 9, 9, 9, 9)],
        ),
        "pair.window": (WINDOW, [(0, "base", 3, 0), (0, "new", 1, 0), (1, "base", 1, 0)]),
    }
    found = sorted(ask("pairs/content", tables), key=lambda row: row[:4])
    assert [row[2:] for row in found if row[:2] == base] == [
        ("class", "gemm", "gemm", 4.0, 31, 0, 0, 5),
        ("class", "norm", "norm", 7.0, 70, 0, 0, 7),
        ("collective", "dispatch other", "dispatch", 2.0, 20, 0, 0, 2),
        ("collective", "nccl ar", "nccl", 1.0, 10, 0, 0, 1),
        ("collective", "nccl other", "nccl", 4.0, 40, 0, 0, 6),
        ("copy", "DtoH", None, 1.0, 1, 1, 0, 1),
        ("copy", "HtoD", None, 3.0, 6, 32, 0, 5),
        ("kernel", "(no name)", "norm", 7.0, 70, 0, 0, 7),
        ("kernel", "k", "gemm", 2.0, 11, 0, 0, 5),
        ("kernel", "l", "gemm", 0.0, 0, 0, 0, 2),
        ("launch", "CUDA API calls", None, 6.0, 0, 0, 4, 9),
        ("launch", "graph launches", None, 3.0, 0, 0, 3, 9),
        ("launch", "kernel launches", None, 2.0, 0, 0, 2, 9),
        ("launch", "kernels", None, 1.0, 0, 0, 1, 9),
    ]
    assert [(row[:4], row[5]) for row in found if row[:2] != base] == [
        ((0, "new", "class", "gemm"), 8.0),
        ((0, "new", "copy", "HtoD"), 6.0),
        ((0, "new", "kernel", "k"), 8.0),
        ((1, "base", "class", "gemm"), 9.0),
        ((1, "base", "copy", "HtoD"), 7.0),
        ((1, "base", "kernel", "k"), 9.0),
    ]


def test_pairs_content_of_one_window_each(ask):
    # the same key of two kinds, classes or pairs is two things
    rows = [
        *[
            (0, "base", 0, "compute", "x", None, "x", 1, 1),
            (0, "base", 0, "comm", "x", "x", "x", 2, 2),
        ],
    ]
    tables = {
        "pair.work": (WORK, rows),
        "pair.copy": (
            "pair BIGINT, side VARCHAR, iteration BIGINT, direction VARCHAR, count BIGINT, "
            "work_ns BIGINT, bytes BIGINT",
            [],
        ),
        "pair.launch": (
            "pair BIGINT, side VARCHAR, iteration BIGINT, kernel_count BIGINT, "
            "launch_call_count BIGINT, graph_launch_count BIGINT, call_count BIGINT",
            [],
        ),
        "pair.window": (WINDOW, [(0, "base", 1, 0)]),
    }
    assert sorted(row[2:6] for row in ask("pairs/content", tables)) == [
        ("class", "x", "x", 1.0),
        ("collective", "x x", "x", 2.0),
        ("kernel", "x", "x", 1.0),
    ]


def test_pairs_content_pair(ask):
    columns = (
        "pair BIGINT, side VARCHAR, kind VARCHAR, key VARCHAR, class VARCHAR, count DOUBLE, "
        "work_ns BIGINT, bytes BIGINT"
    )
    rows = [
        *[
            (0, "base", "class", "g", "g", 1.5, 10, 100),
            (0, "new", "class", "g", "g", 2.5, 20, 200),
        ],
        *[(0, "base", "class", "h", "h", 3, 30, 300), (0, "new", "kernel", "g", "g", 4, 40, 400)],
        (1, "new", "class", "g", "g", 5, 50, 500),
    ]
    assert sorted(ask("pairs/content_pair", {"pair.content": (columns, rows)})) == [
        (0, "class", "g", "g", 1.5, 2.5, 10, 20, 100, 200),
        (0, "class", "h", "h", 3.0, 0.0, 30, 0, 300, 0),
        (0, "kernel", "g", "g", 0.0, 4.0, 0, 40, 0, 400),
        (1, "class", "g", "g", 0.0, 5.0, 0, 50, 0, 500),
    ]


GEOMETRY = (
    "pair BIGINT, side VARCHAR, name VARCHAR, iteration BIGINT, count BIGINT, blocks BIGINT, "
    "threads BIGINT"
)
CONTENT_PAIR = (
    "pair BIGINT, kind VARCHAR, key VARCHAR, class VARCHAR, base_count DOUBLE, new_count DOUBLE, "
    "base_work_ns BIGINT, new_work_ns BIGINT"
)
SETTING = "pair BIGINT, side VARCHAR, name VARCHAR, value VARCHAR"


def test_launch_segment(ask):
    def kernel(start, name, grid, block, end=None, process=7, ordinal=0):
        return start, start + 1 if end is None else end, process, ordinal, name, *grid, *block

    grid, block = (4, 3, 2), (8, 4, 2)
    rows = [
        # at the borders of stretches, and before all
        *[kernel(at, 1, grid, block) for at in (0, 99, 100, 200, 299, 300, -1)],
        # the same name with another launch, and kernels without a name
        *[kernel(50, 1, (1, 1, 1), (32, 1, 1)), kernel(50, None, (2, 1, 1), (1, 1, 1024))],
        *[kernel(51, 2, (3, 1, 1), (1, 1, 1)), kernel(51, 3, (1, 1, 1), (2, 1, 1))],
        # of another process the same ordinal is another GPU
        *[kernel(60, 1, grid, block, process=8), kernel(60, 1, grid, block, end=60)],
        *[kernel(60, 1, grid, block, end=59), kernel(0, 1, grid, block, process=9, ordinal=6)],
        # communication, and what cannot be
        kernel(70, 4, grid, block),
        *[kernel(70, 1, (10**6, 10**6, at), (32, 32, 1)) for at in (1, 2)],
        *[kernel(70, 1, grid, (32, 32, at)) for at in (0, 2, None)],
        *[kernel(70, 1, each, block) for each in ((-1, -1, 1), (None, 1, 1), (2**62, 2**62, 9))],
    ]
    tables = {
        "nsys.kernel": (
            "start_ns BIGINT, end_ns BIGINT, process BIGINT, device_ordinal BIGINT, "
            "name_id BIGINT, grid_x BIGINT, grid_y BIGINT, grid_z BIGINT, block_x BIGINT, "
            "block_y BIGINT, block_z BIGINT",
            rows,
        ),
        "nsys.device_map": (
            "process_pid BIGINT, device_ordinal BIGINT, gpu_id BIGINT",
            [(8, 0, 5), (8, 0, None), (7, 6, 9)],
        ),
        "nsys.segment": (
            "device BIGINT, segment BIGINT, start_ns BIGINT, end_ns BIGINT",
            [
                *[(0, at, 100 * at - 100, 100 * at) for at in (1, 2, 3, 4)],
                *[(5, 1, 50, 150), (5, 2, 150, 250)],
            ],
        ),
    }
    assert sorted(ask("steps/launch_segment", tables)) == [
        *[(0, 1, -4, 1, 2, 2048)],
        # of 24 blocks two and one of no length, one of a single block, and the largest
        (0, 1, 1, 5, 3 * 24 + 1 + 10**12, 3 * 24 * 64 + 32 + 1024 * 10**12),
        *[(0, 1, 2, 1, 3, 3), (0, 1, 3, 1, 1, 2), (0, 1, 4, 1, 24, 1536)],
        *[(0, 2, 1, 1, 24, 1536), (0, 3, 1, 2, 48, 3072), (0, 4, 1, 1, 24, 1536)],
        (5, 1, 1, 1, 24, 1536),
    ]


def test_fact_geometry(ask):
    columns = "device BIGINT, segment BIGINT, name_id BIGINT, count BIGINT, blocks BIGINT, "
    rows = [
        *[(0, 1, 1, 1, 10, 100), (0, 2, 1, 2, 20, 200), (0, 3, 1, 4, 40, 400)],
        *[(0, 4, 1, 8, 80, 800), (0, 1, 2, 1, 3, 5), (0, 2, 3, 1, 4, 6), (0, 1, -4, 1, 1, 1)],
        *[(0, 1, 4, 9, 9, 9), (5, 1, 1, 16, 160, 1600), (6, 1, 1, 1, 1, 1)],
    ]
    tables = {
        "nsys.launch_segment": (columns + "threads BIGINT", rows),
        "nsys.op_name": (
            "name_id BIGINT, name VARCHAR, role VARCHAR",
            [
                *[(1, "k", "compute"), (2, "l", "compute"), (3, "l", "compute")],
                *[(-4, None, "compute"), (4, "c", "comm")],
            ],
        ),
        "nsys.window_segment": (
            "device BIGINT, iteration BIGINT, segment BIGINT",
            [(0, 0, 1), (0, 0, 2), (0, 1, 3), (0, 2, 3), (5, 0, 1)],
        ),
    }
    found = ask("facts/geometry", tables)
    assert sorted(found, key=lambda row: (*row[:2], row[2] or "")) == [
        *[(0, 0, None, 1, 1, 1), (0, 0, "k", 3, 30, 300), (0, 0, "l", 2, 7, 11)],
        *[(0, 1, "k", 4, 40, 400), (0, 2, "k", 4, 40, 400), (5, 0, "k", 16, 160, 1600)],
    ]


def sized(ask, kernels, gpus=()):
    """The rows of launch_size by name: kernels as {name: a list of windows of either side}.

    A window is (launches, blocks, threads) of all launches together.
    """
    geometry, content = [], []
    for name, sides in kernels.items():
        counts = []
        for side, windows in zip(("base", "new"), sides, strict=True):
            geometry += [(0, side, name, at, *each) for at, each in enumerate(windows)]
            counts.append(windows[0][0] if windows else 4)
        content.append((0, "kernel", name or "(no name)", "gemm", *counts, 30, 50))
    # of one side only, of a class, of another pair
    content += [
        *[(0, "kernel", "gone", "gemm", 1, 0, 9, 9), (0, "kernel", "new", "gemm", 0, 1, 9, 9)],
        *[(0, "class", "k", "gemm", 1, 1, 9, 9), (1, "kernel", "k", "gemm", 1, 1, 9, 9)],
    ]
    tables = {
        "pair.geometry": (GEOMETRY, geometry),
        "pair.content_pair": (CONTENT_PAIR, content),
        "pair.setting": (
            SETTING,
            [(0, side, "GPU", gpu) for side, gpu in zip(("base", "new"), gpus, strict=False)],
        ),
    }
    found = ask("pairs/launch_size", tables)
    assert [row for row in found if row[0] == 1] == [(1, "k", "gemm", 18, *[None] * 7, "unknown")]
    return {row[1]: row[3:] for row in found if row[0] == 0}


def test_pairs_launch_size(ask):
    def told(base, new, gpus=()):
        (row,) = sized(ask, {"k": (base, new)}, gpus).values()
        return row[-1]

    static = [(2, 200, 25_600)] * 3
    assert told(static, static) == "same"
    assert sized(ask, {None: (static, static[:1])}) == {
        "(no name)": (80, 100.0, 100.0, 12_800.0, 12_800.0, 25_600.0, 25_600.0, 1.0, "same"),
    }
    # twice the grid, the same in two pieces, twice the blocks of half the size, other tiles
    assert told(static, [(2, 400, 51_200)]) == told([(2, 400, 51_200)], static) == "resized"
    assert told(static, [(4, 200, 25_600)]) == "cut"
    assert told(static, [(2, 400, 25_600)]) == "retuned"
    assert told(static, [(2, 200, 51_200)]) == "resized"
    # more launches of the same grid are counted elsewhere
    assert told(static, [(4, 400, 51_200)]) == "same"
    # two percent are none
    assert told(static, [(2, 204, 26_112)]) == "same"
    assert told(static, [(2, 205, 26_240)]) == "resized"
    assert told([(2, 204, 26_112)], static) == "same"
    # of any length: the middle halves of the windows overlap, or not; one window tells nothing
    lengths = [(1, n, 128 * n) for n in (10, 20, 30, 40, 50)]
    assert told(lengths, [(1, n, 128 * n) for n in (20, 40, 50, 60, 70)]) == "same"
    assert told(lengths, [(1, n, 128 * n) for n in (20, 50, 60, 70, 80)]) == "resized"
    assert told([(1, n, 128 * n) for n in (20, 50, 60, 70, 80)], lengths) == "resized"
    assert told(static, [*static, (2, 900, 90_000)]) == "same"
    for nothing in ((static, []), ([], static), ([], [])):
        assert told(*nothing) == "unknown"


def test_pairs_launch_size_follows_the_multiprocessors(ask):
    def told(new, *gpus):
        (row,) = sized(ask, {"k": ([(1, 100, 100)], [(1, new, new)])}, gpus).values()
        return row[-1]

    a, b = "A (100 SM, 1 MHz, 1 MiB)", "B (150 SM, 1 MHz, 1 MiB)"
    assert told(150, a, b) == told(152, a, b) == "filled"
    assert told(100, a, b) == "same" and told(200, a, b) == told(145, a, b) == "resized"
    assert told(150, a, a) == told(150, a) == told(150, a, "B (? SM, 1 MHz, 1 MiB)") == "resized"
    # of two boards nobody knows which one it was
    assert told(150, a, f"{b}; {a}") == told(150, f"{a}; {b}", b) == "resized"
    assert told(101, a, "B (101 SM, 1 MHz, 1 MiB)") == "same"


SIZE = (
    "pair BIGINT, name VARCHAR, class VARCHAR, work_ns BIGINT, base_total DOUBLE, "
    "new_total DOUBLE, factor DOUBLE, kind VARCHAR"
)


def changes(ask, *kernels, alone=0, gpus=("x", "x")):
    """launch_change of kernels (class, work, threads before and after, kind); `alone` is other
    work."""
    size = [
        (0, f"k{at}", cls, work, base, new, new / base, kind)
        for at, (cls, work, base, new, kind) in enumerate(kernels)
    ]
    content = [(0, "kernel", f"k{at}", "c", 1, 1, row[3], 0) for at, row in enumerate(size)]
    content += [(0, "kernel", "x", "c", 0, 1, 0, alone), (0, "class", "c", "c", 1, 1, 99, 99)]
    tables = {
        "pair.launch_size": (SIZE, size),
        "pair.content_pair": (CONTENT_PAIR, [*content, (3, "kernel", "x", "c", 1, 1, 0, 0)]),
        "pair.setting": (
            SETTING,
            [(0, side, "GPU", gpu) for side, gpu in zip(("base", "new"), gpus, strict=True)],
        ),
    }
    found = {row[0]: row[1:] for row in ask("pairs/launch_change", tables)}
    assert found[3] == (*[0] * 10, None, None, None, False, 0, False)
    return found[0]


def test_pairs_launch_change(ask):
    rows = [
        *[("gemm", 40, 10, 20, "resized"), ("norm", 10, 10, 30, "resized")],
        *[("rope", 5, 8, 8, "cut"), ("rope", 15, 8, 8, "retuned"), ("rope", 10, 9, 9, "filled")],
        *[("rope", 10, 7, 7, "same"), ("rope", 5, 99, 9, "unknown")],
    ]
    assert changes(ask, *rows, alone=5) == (
        *(6, 2, 1, 1, 1, 0.9, 0.5, 0.05, 0.15, 0.1, 52.0, 82.0, 2.0, False),
        *(pytest.approx(0.8), False),
    )
    # the median by work
    rows = [("gemm", w, 10, f * 10, "resized") for w, f in ((30, 4), (30, 2), (40, 3))]
    assert changes(ask, *rows)[12] == 3
    assert changes(ask, *rows, ("gemm", 40, 10, 20, "resized"))[12] == 2


def test_pairs_launch_change_tells_other_work(ask):
    def is_other(*kernels, **more):
        return changes(ask, *kernels, **more)[-1]

    double = [(cls, 10, 10, 20, "resized") for cls in ("gemm", "norm", "norm")]
    half = [(cls, work, new, old, kind) for cls, work, old, new, kind in double]
    assert is_other(*double) and is_other(*half)
    # two names, or one class: kernels that are tuned together
    assert not is_other(*double[:2]) and not is_other(*double[1:], double[1])
    # 5 % of the work
    assert is_other(*double, alone=570) and not is_other(*double, alone=571)
    # the rest in the other direction: a fifth of it, or more
    tuned = ("rope", 7, 10, 5, "resized")
    assert is_other(*double, tuned) and not is_other(*double, (*tuned[:1], 8, *tuned[2:]))
    # all threads together go along
    assert not is_other(*double, ("rope", 1, 90, 60, "resized"))
    assert not is_other(*double, ("rope", 1, 900, 905, "same"), ("rope", 1, 900, 875, "same"))
    # another GPU: half of what can be told
    same = ("rope", 30, 10, 10, "same")
    assert is_other(*double, same, gpus="xy")
    assert not is_other(*double, same, ("rope", 1, 10, 10, "same"), gpus="xy")
    assert is_other(*double, same, ("rope", 1, 10, 10, "same"))


def test_pairs_message(ask):
    columns = "pair BIGINT, side VARCHAR, class VARCHAR, collective VARCHAR, bytes BIGINT"
    rows = [
        *[(0, "base", "nccl", "AllReduce", n) for n in (10, 21, None)],
        *[(0, "new", "nccl", "AllReduce", 8), (0, "base", "nccl", "AllGather", 8)],
        *[(0, "base", "nccl", "Reduce", None), (0, "new", "nccl", "Reduce", None)],
        *[(1, "base", "nccl", "Reduce", None), (1, "new", "nccl", "Reduce", 3)],
        *[(0, "base", "other", "Reduce", 4), (0, "new", "other", "Reduce", 5)],
    ]
    assert sorted(ask("pairs/message", {"pair.collective": (columns, rows)})) == [
        *[(0, "nccl AllReduce", 16, 8), (0, "nccl Reduce", None, None)],
        *[(0, "other Reduce", 4, 5), (1, "nccl Reduce", None, 3)],
    ]


def test_pairs_outlier(ask):
    def told(base, new, pair=0, **params):
        rows = [(pair, side, at, None, None, "iteration", ns)
                for side, values in (("base", base), ("new", new))
                for at, ns in enumerate(values)]  # fmt: skip
        rows += [(pair, "new", 0, None, None, "period", 10**9), (9, "new", 0, None, None, "x", 1)]
        medians = [sorted(values)[(len(values) - 1) // 2] for values in (base, new)]
        tables = {
            "pair.sample": (SAMPLE, rows),
            "pair.measured": (
                "pair BIGINT, item VARCHAR, base_ns BIGINT, new_ns BIGINT",
                [(pair, "iteration", *medians), (pair, "period", 1, 1)],
            ),
            "pair.window": (WINDOW, [(pair, "base", len(base), medians[0]), (pair, "new", 1, 7)]),
        }
        (row,) = ask("pairs/outlier", tables, **params)
        return row[1:]

    calm = [1000, 999, 1001, 998, 1002]
    assert told(calm, calm) == (5, 5, 0, 0, 0.0, 0.0, False)
    # one of five, or the one that there was and is no more; a shorter one is far off too
    assert told(calm, [*calm[1:], 2000]) == (5, 5, 0, 1, 0.0, 199.8, True)
    assert told([*calm[1:], 2000], calm)[2:] == (1, 0, 199.8, 0.0, True)
    assert told(calm, [*calm[1:], 500])[3:] == (1, 0.0, -99.8, True)
    # of both sides alike, of fewer than five
    assert told([*calm[1:], 2000], [*calm[1:], 2001])[2:] == (1, 1, 199.8, 200.0, False)
    assert told(calm, [1000, 1000, 1000, 2000])[3:] == (1, 0.0, 250.0, False)
    # less than 1 % of the base's iteration in all, or by itself
    assert told(calm, [*calm[1:], 1048])[3:] == (1, 0.0, pytest.approx(9.4), False)
    assert told(calm, [*calm[1:], 1052])[3:] == (1, 0.0, pytest.approx(10.2), True)
    assert told([1000] * 5, [*[1000] * 4, 1010])[3] == 0
    assert told([1000] * 5, [*[1000] * 4, 1011])[3:] == (1, 0.0, 2.2, False)
    assert told([1000] * 5, [*[1000] * 4, 1011], min_change_pct=0.1)[3:] == (1, 0.0, 2.2, True)
    assert told(calm, calm, min_change_pct=0)[-1] is False
    # eight standard deviations, of both sides together
    wide = [1000 + 10 * at for at in range(-20, 21)]
    assert told(wide, wide)[2:4] == (0, 0)
    spread = 8 * 1.4826 * 100
    for at, far in ((int(spread), 0), (int(spread) + 1, 1)):
        assert told(wide, [*wide[1:-1], *[1000] * 2, 1000 + at])[3] == far, at
    # six of them over the root of 41
    assert told(wide, [*wide[1:], 6600])[3:] == (1, 0.0, pytest.approx(136, 0.01), False)
    assert told(wide, [*wide[1:], 6800])[3:] == (1, 0.0, pytest.approx(141, 0.01), True)
    # a quarter of what the median changed
    later = [ns + 800 for ns in calm]
    assert told(calm, [*later[1:], 2798])[-1] is False
    assert told(calm, [*later[1:], 2806])[-1] is True


def test_pairs_gemm_precision(ask):
    names = {
        "fp4": ["cutlass_e2m1", "nvf4", "nvfp4", "mxfp4", "gemm_fp4"],
        "fp8": ["x_e4m3", "x_e5m2", "fp8_gemm", "mxfp8", "float8", "nvjet_qqt", "nvjet_sm90_rr"],
        "bf16": ["sm80_bf16_f16", "bfloat16", "nvjet_tst", "nvjet_sm100_tt"],
        "f16": ["ampere_f16_s16816", "half_t", "hgemm", "h884gemm", "nvjet_hsh"],
        "tf32": ["x_tf32f32", "s1688gemm", "nvjet_sss"],
        "f64": ["dgemm", "f64", "gemm<double>"],
        "int8": ["i8i8", "int8", "s8s8"],
        "f32": ["f32f32", "sgemm", "gemm<float>"],
        "unknown": ["gemm", "offp4"],
    }
    rows = [(0, "base", "kernel", key, "gemm", 1.0) for keys in names.values() for key in keys]
    rows += [
        *[(0, "base", "kernel", "hgemm", "norm", 1.0), (0, "base", "class", "hgemm", "gemm", 1.0)],
        *[(0, "base", "kernel", "hgemm", "gemm", 0.0), (0, "new", "kernel", "hgemm", "gemm", 0.5)],
        *[(0, "new", "kernel", "half_t", "fused_gemm_comm", 1.0)],
        *[(1, "new", "kernel", "dgemm", "gemm", 7.0)],
    ]
    columns = "pair BIGINT, side VARCHAR, kind VARCHAR, key VARCHAR, class VARCHAR, count DOUBLE"
    counts = ", ".join(f"{name} {len(keys)}" for name, keys in sorted(names.items()))
    assert sorted(ask("pairs/gemm_precision", {"pair.content": (columns, rows)})) == [
        *[(0, "base", counts), (0, "new", "f16 1.5"), (1, "new", "f64 7")],
    ]


OUTLIER = (
    "pair BIGINT, base_n BIGINT, new_n BIGINT, base_far BIGINT, new_far BIGINT, "
    "base_adds_ns DOUBLE, new_adds_ns DOUBLE, is_told BOOLEAN"
)


def test_pairs_label(ask):
    conditions = [
        *[(None, "iteration", "window", "differs"), (None, "iteration", "first", "differs")],
        *[(0, "model", "parts", "refused"), (0, "model", "parts", "refused")],
        *[
            (0, "iteration", "anchor", "refused"),
            (0, "copies", "x", "same"),
            (1, "copies", "x", "unknown"),
        ],
        (1, "capture", "x", "differs"),
    ]
    tables = {
        "pair.condition": (
            "pair BIGINT, topic VARCHAR, aspect VARCHAR, status VARCHAR",
            conditions,
        ),
        "pair.window": (WINDOW, [(0, "base", 1, 1), (0, "new", 1, 1), (1, "base", 1, 1)]),
        "pair.outlier": (OUTLIER, []),
    }
    assert sorted(ask("pairs/label", tables)) == [
        (0, "FORCED, not comparable: anchor, parts; differs: iteration"),
        (1, "differs: capture, iteration"),
    ]
    tables["pair.condition"] = (tables["pair.condition"][0], conditions[5:7])
    assert sorted(ask("pairs/label", tables)) == [(0, None), (1, None)]
    # what medians do not see is said where it matters
    far = [(0, 10, 12, 0, 1, 0.0, 2.5e6, "true"), (1, 10, 12, 3, 0, 5.0, -1e4, "false")]
    tables["pair.outlier"] = (OUTLIER, far)
    outliers = "outliers: 0 of 10 and 1 of 12 iterations, +2.5 ms per iteration"
    assert sorted(ask("pairs/label", tables)) == [(0, outliers), (1, None)]
    for adds, said in ((-1e5, "-0.1 ms"), (-99_000.0, "-99 us")):
        tables["pair.outlier"] = (OUTLIER, [(0, 10, 12, 0, 1, 0.0, adds, "true")])
        assert max(row[1] or "" for row in ask("pairs/label", tables)) == (
            f"outliers: 0 of 10 and 1 of 12 iterations, {said} per iteration"
        )
    tables["pair.outlier"] = (OUTLIER, far)
    tables["pair.condition"] = (tables["pair.condition"][0], conditions[:1])
    assert sorted(ask("pairs/label", tables)) == [
        *[(0, f"differs: iteration; {outliers}"), (1, "differs: iteration")],
    ]


SAMPLE = (
    "pair BIGINT, side VARCHAR, number BIGINT, parent VARCHAR, class VARCHAR, item VARCHAR, "
    "value_ns BIGINT"
)


def test_pairs_measured(ask):
    rows = [
        *[(0, "base", at, "p", "c", "x", ns) for at, ns in enumerate((1, 4, 9, 2))],
        *[(0, "new", at, "p", "c", "x", ns) for at, ns in enumerate((5, 3, 7))],
        *[(0, "base", at, None, None, "y", ns) for at, ns in enumerate((1, 2))],
        *[(0, "new", at, None, None, "y", ns) for at, ns in enumerate((2, 1))],
        *[(1, "base", 0, None, None, "x", 6), (1, "new", 0, None, None, "x", 8)],
        *[(0, "base", 0, None, None, "only base", 6), (0, "new", 0, None, None, "only new", 6)],
    ]
    assert sorted(ask("pairs/measured", {"pair.sample": (SAMPLE, rows)})) == [
        (0, "x", "p", "c", 4, 3, 3, 5, 1, 9, 3, 7, False, 4.0, 5.0),
        (0, "y", None, None, 2, 2, 1, 1, 1, 2, 1, 2, True, 1.5, 1.5),
        (1, "x", None, None, 1, 1, 6, 8, 6, 6, 8, 8, False, 6.0, 8.0),
    ]


METRICS = [
    *("iteration", "device_busy", "device_idle", "noncomm_busy", "comm_busy", "compute_busy"),
    *("compute_absent", "occupied_not_computing", "launch_starved", "blocking"),
    *("dependency_stalled", "unattributed", "comm_exposed", "comm_blocking", "comm_overlapped"),
    "launch_starved_shadowed",
]


def test_pairs_sample(ask):
    def budget(pair, side, iteration, start):
        return (pair, side, iteration, start, *(start + at for at in range(len(METRICS))))

    windows = [
        *[budget(0, "base", 2, 100), budget(0, "base", 1, 40), budget(0, "base", 4, 900)],
        *[budget(0, "new", 2, 7000), budget(0, "new", 3, 7100), budget(1, "base", 3, 5)],
    ]
    work = [
        *[
            (0, "base", 1, "compute", "gemm", None, "k", 1, 5),
            (0, "base", 1, "compute", "gemm", None, "l", 1, 6),
        ],
        *[
            (0, "base", 1, "comm", "nccl", None, "c", 1, 9),
            (0, "base", 2, "compute", "gemm", None, "k", 1, 8),
        ],
        (0, "base", 1, "compute", "norm", None, "n", 1, 7),
    ]
    blocking = [(0, "new", 2, "nccl", 3), (0, "new", 2, "nccl", 4), (0, "base", 4, "gemm", 1)]
    tables = {
        "pair.budget": (
            "pair BIGINT, side VARCHAR, iteration BIGINT, start_ns BIGINT, "
            + ", ".join(f"{name}_ns BIGINT" for name in METRICS),
            windows,
        ),
        "pair.work": (WORK, work),
        "pair.blocking": (
            "pair BIGINT, side VARCHAR, iteration BIGINT, class VARCHAR, blocking_ns BIGINT",
            blocking,
        ),
    }
    found = ask("pairs/sample", tables)
    plain = [row for row in found if row[3] is None and row[5] != "period"]
    assert sorted(plain) == sorted(
        (*row[:3], None, None, name, ns)
        for row in windows
        for name, ns in zip(METRICS, row[4:], strict=True)
    )
    assert [row for row in found if row[5] == "period"] == [
        (0, "base", 1, None, None, "period", 60),
        (0, "new", 2, None, None, "period", 100),
    ]
    places = [(0, "base", 1), (0, "base", 2), (0, "base", 4), (0, "new", 2), (0, "new", 3)]
    values = {
        ("blocking", "gemm"): (0, 0, 1, 0, 0),
        ("blocking", "nccl"): (0, 0, 0, 7, 0),
        ("compute_busy", "gemm"): (11, 8, 0, 0, 0),
        ("compute_busy", "norm"): (7, 0, 0, 0, 0),
    }
    assert sorted(row for row in found if row[3]) == sorted(
        (*place, parent, of, f"{parent}:{of}", ns)
        for (parent, of), numbers in values.items()
        for place, ns in zip(places, numbers, strict=True)
    )


def setup(ask, **changed):
    rows = {
        "asked": [("new", "window", "range"), ("base", "window", "device"), ("new", "device", "0")],
        "trace": [(0, "new", "nvtx:s"), (0, "base", "nvtx:other")],
        "member": [(0, "new", "H100"), (0, "base", "A100"), (None, "new", "B200")],
        "content": [
            *[(0, "new", "class", "gemm", 1.5), (0, "new", "class", "attention", 2)],
            *[(0, "base", "class", "gemm", 9), (0, "new", "class", "norm", 3)],
            *[(0, "new", "kernel", "gemm", 8), (0, "new", "class", "fused_gemm_comm", 1)],
        ],
    } | changed
    columns = {
        "asked": "side VARCHAR, name VARCHAR, value VARCHAR",
        "trace": "pair BIGINT, side VARCHAR, anchor VARCHAR",
        "member": "pair BIGINT, side VARCHAR, gpu VARCHAR",
        "content": "pair BIGINT, side VARCHAR, kind VARCHAR, key VARCHAR, count DOUBLE",
    }
    ((found,),) = ask("pairs/setup", {f"pair.{n}": (columns[n], rows[n]) for n in columns})
    assert len(found) == 8
    return found


def test_pairs_setup(ask):
    own = setup(ask)
    told = (
        *("anchor of 0=nvtx:s", "gpu of 0=H100", "kernels of 0 attention=2"),
        *("kernels of 0 fused_gemm_comm=1", "kernels of 0 gemm=1.5", "option window=range"),
    )
    assert own == hashlib.sha256("\n".join(told).encode()).hexdigest()[:8]
    content = [(0, "new", "class", "gemm", 1.5), (0, "new", "class", "attention", 2)]
    same = {
        "asked": [("new", "window", "range")],
        "trace": [(0, "new", "nvtx:s")],
        "member": [(0, "new", "H100")],
        "content": [(0, "new", "class", "fused_gemm_comm", 1), *content],
    }
    assert setup(ask, **same) == own
    others = [
        *[{"asked": [("new", "window", "device")]}, {"asked": [("new", "per iteration", "range")]}],
        *[{"asked": [("new", "window", None)]}, {"asked": []}, {"content": content}],
        *[{"trace": [(1, "new", "nvtx:s")]}, {"trace": [(0, "new", "nvtx:t")]}],
        *[{"member": [(0, "new", None)]}, {"member": [(0, "new", "A100")]}, {"member": []}],
        {"content": [*same["content"][:2], (0, "new", "class", "attention", 3)]},
    ]
    digests = [setup(ask, **{**same, **other}) for other in others]
    assert len({own, *digests}) == len(others) + 1


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (4, 3)])
def test_pairs_u_exact_counts_every_choice_of_ranks(ask, shape):
    columns = "base_n BIGINT, new_n BIGINT"
    rows = [shape, shape, (0, 3), (20, 21)]
    base, new = shape
    sums = [sum(each) for each in combinations(range(1, base + new + 1), base)]
    expected = {}
    for total in sorted(set(sums)):
        u = total - base * (base + 1) // 2
        expected[base, new, u] = sum(each <= total for each in sums) / len(sums)
    found = ask("pairs/u_exact", {"pair.measured": (columns, rows)})
    assert {row[:3]: row[3] for row in found} == pytest.approx(expected)
    assert len(found) == len(expected)


# -------------------------------------------------------------------------------------- compare
LABEL = {"pair.label": ("pair BIGINT, label VARCHAR", [(0, "said"), (7, "other")])}
WINDOWS = {"pair.window": (WINDOW, [(0, "base", 3, 0), (0, "new", 1, 0), (1, "base", 1, 0)])}


def test_compare_copies(ask):
    base = (0, "base", "HtoD", "dma", "a", "b")
    rows = [
        # 2 and 4 in three windows, 6 in the one of the new side
        *[(*base, 2, 30, 10), (*base, 4, 70, 50), (0, "new", *base[2:], 6, 80, 40)],
        *[
            (0, "new", "DtoH", "dma", "a", "b", 1, 10, 0),
            (0, "new", "HtoD", "p2p", "a", "b", 1, 1, 1),
        ],
        *[
            (0, "new", "HtoD", "dma", "c", "b", 1, 2, 1),
            (0, "new", "HtoD", "dma", "a", "d", 1, 3, 1),
        ],
        *[
            (0, "base", "HtoH", "dma", "a", "b", 9, 9, 9),
            (1, "base", "HtoD", "dma", "a", "b", 7, 7, 7),
        ],
    ]
    tables = {
        **LABEL,
        **WINDOWS,
        "pair.copy": (
            "pair BIGINT, side VARCHAR, direction VARCHAR, way VARCHAR, source VARCHAR, "
            "destination VARCHAR, count BIGINT, bytes BIGINT, work_ns BIGINT, duration_ns BIGINT",
            [(*row, 2 * row[-1]) for row in rows],
        ),
    }
    # what occurs in one window of three has a median of 0; bandwidth is that of whole durations
    assert ask("compare/copies", tables) == [
        (0, "DtoH", "dma", "a", "b", 0, 1, 0, 10, 0, 0, 0, None, None, "said"),
        (0, "HtoD", "dma", "a", "b", 2, 6, 30, 80, 10, 40, 30, 100 / 120, 1, "said"),
        (0, "HtoD", "dma", "a", "d", 0, 1, 0, 3, 0, 1, 1, None, 1.5, "said"),
        (0, "HtoD", "dma", "c", "b", 0, 1, 0, 2, 0, 1, 1, None, 1, "said"),
        (0, "HtoD", "p2p", "a", "b", 0, 1, 0, 1, 0, 1, 1, None, 0.5, "said"),
        (1, "HtoD", "dma", "a", "b", 7, 0, 7, 0, 7, 0, -7, 0.5, None, None),
    ]


def test_compare_communication(ask):
    scopes = ["peer_copy", "fused_compute", "collective", "class", "all"]
    rows = [(0, "base", scope, "c", "x", 1, 2, 3, 4) for scope in scopes for _ in range(2)]
    rows += [
        *[(0, "new", "class", "c", "x", 11, 22, 33, 44), (0, "new", "class", "b", "x", 0, 1, 0, 0)],
        *[(0, "new", "class", "c", "w", 1, 0, 0, 0), (0, "base", "class", "a", "x", 9, 9, 9, 9)],
        *[(1, "base", "all", None, None, 5, 6, 7, 8), (0, "new", "class", "a", "z", 0, 0, 1, 1)],
    ]
    tables = {
        **LABEL,
        **WINDOWS,
        "pair.comm": (
            "pair BIGINT, side VARCHAR, scope VARCHAR, class VARCHAR, collective VARCHAR, "
            "count BIGINT, work_ns BIGINT, exposed_ns BIGINT, blocking_ns BIGINT",
            rows,
        ),
    }
    gone = (1, 0, 2, 0, -2, 3, 0, -3, 4, 0, -4, "said")
    assert ask("compare/communication", tables) == [
        (0, "all", "c", "x", *gone),
        (0, "class", "b", "x", 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, "said"),
        (0, "class", "c", "w", 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, "said"),
        (0, "class", "c", "x", 1, 11, 2, 22, 20, 3, 33, 30, 4, 44, 40, "said"),
        *[(0, scope, "c", "x", *gone) for scope in ("collective", "fused_compute", "peer_copy")],
        (1, "all", None, None, 5, 0, 6, 0, -6, 7, 0, -7, 8, 0, -8, None),
    ]


def crossed(ask, thresholds, noise, recorded=()):
    tables = {
        **LABEL,
        "pair.threshold": (
            "position BIGINT, threshold VARCHAR, metric VARCHAR, comparison VARCHAR, "
            "amount DOUBLE, kind VARCHAR",
            [(at, f"t{at}", *each) for at, each in enumerate(thresholds)],
        ),
        "pair.noise": (
            "pair BIGINT, item VARCHAR, base_ns BIGINT, new_ns BIGINT, verdict VARCHAR, "
            "base_mean_ns DOUBLE, new_mean_ns DOUBLE",
            [(*row, *row[2:4]) if len(row) == 5 else row for row in noise],
        ),
        "pair.setting": ("pair BIGINT, name VARCHAR, value VARCHAR", list(recorded)),
    }
    return ask("compare/gate", tables)


@pytest.mark.parametrize(
    ("comparison", "kept"),
    [(">", [11]), (">=", [10, 11]), ("<", [9]), ("<=", [9, 10])],
)
def test_compare_gate_crosses_what_is_asked(ask, comparison, kept):
    noise = [(pair, "iteration", 100, 100 + ns, "v") for pair, ns in enumerate((9, 10, 11))]
    for kind, amount in (("percent", 10), ("change", 10), ("level", 110)):
        found = crossed(ask, [("iteration", comparison, amount, kind)], noise)
        assert [row[5] for row in found if row[7]] == kept
    low = comparison[0] == "<"
    assert found[0] == ("t0", 0, "iteration", 100, 109, 9, 9.0, low, low, "v", "said")


def test_compare_gate_against_nothing(ask):
    noise = [(0, "iteration", 0, 1, "v"), (1, "iteration", 0, 0, "v")]
    found = crossed(ask, [("iteration", ">", 1e9, "percent")], noise)
    assert [(row[1], row[6], row[7]) for row in found] == [(0, None, True), (1, None, False)]
    found = crossed(ask, [("iteration", ">=", 0, "percent")], noise)
    assert [row[7] for row in found] == [True, True]
    assert [row[7] for row in crossed(ask, [("iteration", "<", 0, "percent")], noise)] == [
        False
    ] * 2


def test_compare_gate_of_means(ask):
    noise = [(0, "iteration", 100, 100, "v", 99.6, 120.4), (1, "iteration", 10, 30, "v", 20, 20)]
    asked = [(name, ">", 10, "percent") for name in ("iteration", "iteration_mean")]
    assert [row[1:9] for row in crossed(ask, asked, noise)] == [
        (0, "iteration", 100, 100, 0, 0.0, False, True),
        (1, "iteration", 10, 30, 20, 200.0, True, False),
        (0, "iteration_mean", 100, 120, 20, 20.0, True, True),
        (1, "iteration_mean", 20, 20, 0, 0.0, False, False),
    ]
    # a level and a change of means, and a mean of what was not recorded
    noise.append((0, "blocking", 1, 1, "v", 5, 9))
    asked = [("blocking_mean", ">=", 9, "level"), ("blocking_mean", "<", 4, "change")]
    assert [row[7] for row in crossed(ask, asked, noise)] == [True, False]
    assert crossed(ask, asked, noise, [(0, "recorded", "kernel")]) == []


def test_compare_gate_asks_nothing_of_what_was_not_recorded(ask):
    metrics = [
        *("iteration", "period", "device_busy", "launch_starved", "launch_starved_shadowed"),
        *("blocking", "comm_blocking", "dependency_stalled"),
    ]
    noise = [(pair, metric, 1, 1, "v") for pair in (1, 0) for metric in metrics]
    thresholds = [(metric, ">", 1, "level") for metric in metrics]

    def left(*values):
        rows = [(0, "recorded", value) for value in values] + [(0, "GPU", "api_call")]
        found = crossed(ask, thresholds, noise, [*rows, (1, "recorded", "api_call, kernel")])
        assert [row[2] for row in found if row[1] == 1] == metrics
        assert [(row[0], row[1]) for row in found] == sorted((row[0], row[1]) for row in found)
        return [row[2] for row in found if row[1] == 0]

    assert left("api_call, kernel") == left("graph_exec, api_call") == metrics
    assert left() == metrics
    assert left("kernel") == left("kernel, api_call", "kernel") == metrics[:3]
    assert left("api_call") == left("api_call, kernel", "api_call") == metrics[:2]
    assert left(None) == metrics[:2]


def test_compare_members(ask):
    rows = [
        *[(1, "new", 4, 0, "g", "N"), (0, "new", 3, 1, "h", "M"), (1, "base", 2, 0, "g", "B")],
        *[(0, "base", 1, 0, "g", "A"), (None, "new", 9, 9, "g", "X")],
    ]
    columns = "pair BIGINT, side VARCHAR, rank BIGINT, device BIGINT, gpu VARCHAR, trace VARCHAR"
    assert ask("compare/members", {**WINDOWS, "pair.member": (columns, rows)}) == [
        (0, "base", 1, 0, "g", 3, "A"),
        (0, "new", 3, 1, "h", 1, "M"),
        (1, "base", 2, 0, "g", 1, "B"),
        (1, "new", 4, 0, "g", None, "N"),
    ]


def test_compare_comparability(ask):
    columns = (
        "pair BIGINT, position BIGINT, topic VARCHAR, aspect VARCHAR, status VARCHAR, "
        "base VARCHAR, new VARCHAR, detail VARCHAR"
    )
    rows = [
        *[(0, 5, "t", "a", "same", "x", "x", "d"), (1, 5, "t", "a", "same", "x", "x", "d")],
        *[
            (None, 6, "t", "b", "unknown", "x", "x", "d"),
            (0, 7, "t", "c", "differs", "x", "y", "d"),
        ],
        *[(1, 7, "t", "c", "differs", "x", "z", "d"), (1, 7, "t", "c", "differs", "w", "z", "d")],
        *[(1, 7, "s", "z", "differs", "x", "z", "d"), (1, 7, "t", "b", "differs", "x", "z", "d")],
        *[(1, 7, "t", "c", "differs", "x", "z", "e"), (1, 8, "a", "a", "refused", "x", "z", "e")],
        (1, 3, "z", "z", "refused", "x", "z", "e"),
    ]
    window = [(0, "base", 3, 0), (1, "base", 1, 0), (0, "new", 3, 0), (1, "new", 3, 0)]
    tables = {"pair.condition": (columns, rows), "pair.window": (WINDOW, window)}
    assert ask("compare/comparability", tables) == [
        ("z", "z", "refused", "x", "z", "1", "e"),
        ("a", "a", "refused", "x", "z", "1", "e"),
        ("s", "z", "differs", "x", "z", "1", "d"),
        ("t", "b", "differs", "x", "z", "1", "d"),
        ("t", "c", "differs", "w", "z", "1", "d"),
        ("t", "c", "differs", "x", "y", "0", "d"),
        ("t", "c", "differs", "x", "z", "1", "d"),
        ("t", "c", "differs", "x", "z", "1", "e"),
        ("t", "b", "unknown", "x", "x", "all", "d"),
        ("t", "a", "same", "x", "x", "all", "d"),
    ]
    tables["pair.window"] = (WINDOW, [*window, (2, "base", 1, 0)])
    assert ask("compare/comparability", tables)[-1][5] == "0, 1"
    # by number, not by text
    more = [(pair, 5, "t", "a", "same", "x", "x", "d") for pair in (10, 2)]
    tables["pair.condition"] = (columns, [*rows, *more])
    assert ask("compare/comparability", tables)[-1][5] == "0, 1, 2, 10"


def kernels(ask, *rows, measured=()):
    """Kernels: (class, key, base_count, new_count, base_work, new_work) of pair 0."""
    tables = {
        **LABEL,
        "pair.content_pair": (
            "pair BIGINT, class VARCHAR, key VARCHAR, base_count DOUBLE, new_count DOUBLE, "
            "base_work_ns BIGINT, new_work_ns BIGINT, kind VARCHAR",
            [(0, *row, "kernel") for row in rows] + [(0, "x", "x", 9, 9, 9, 9, "class")],
        ),
        "pair.measured": (
            "pair BIGINT, class VARCHAR, parent VARCHAR, base_ns BIGINT, new_ns BIGINT",
            list(measured),
        ),
    }
    return ask("compare/kernels", tables)


def test_compare_kernels_split_into_number_and_speed(ask):
    found = kernels(
        ask,
        ("gemm", "k", 4, 6, 4_000, 9_000),  # 1 us each, then 1.5: 2 more are 2 us, the rest 3 us
        ("gemm", "l", 3, 2, 1_000, 1_000),  # a third less: -333.3
        ("norm", "m", 0, 5, 10, 500),
        ("norm", "n", 5, 0, 700, 10),
        ("norm", "o", 0, 0, 0, 0),
        measured=[
            *[(0, "gemm", "compute_busy", 5_100, 10_000), (0, "norm", "compute_busy", 700, 500)],
            *[(0, "gemm", "blocking", 1, 2), (0, "rope", "compute_busy", 3, 5)],
            (1, "gemm", "compute_busy", 8, 9),
        ],
    )
    assert [(*row[:8], *row[9:14]) for row in found] == [
        (0, "gemm", "k", "both", 4, 6, 1.0, 1.5, 4_000, 9_000, 5_000, 3_000, 2_000),
        (0, "norm", "n", "both", 5, 0, 0.14, None, 700, 10, -690, 0, -690),
        (0, "norm", "m", "both", 0, 5, None, 0.1, 10, 500, 490, 0, 490),
        (0, "gemm", "l", "both", 3, 2, pytest.approx(1 / 3), 0.5, 1_000, 1_000, 0, 333, -333),
        (0, "gemm", None, "residual", *[None] * 6, -100, -100, 0),
        (0, "rope", None, "residual", *[None] * 6, 2, 2, 0),
        (0, "norm", None, "residual", *[None] * 6, 0, 0, 0),
        (1, "gemm", None, "residual", *[None] * 6, 1, 1, 0),
    ]
    assert [row[8] for row in found[:4]] == [50.0, None, None, pytest.approx(50)]
    assert [row[-1] for row in found[-2:]] == ["said", None]


def counterparts(ask, *rows):
    return {row[2]: (row[3], row[-2]) for row in kernels(ask, *rows) if row[2]}


def test_compare_kernels_tells_counterparts(ask):
    found = counterparts(
        ask,
        *[("gemm", "old", 4, 0, 9, 0), ("gemm", "new", 0, 4, 0, 7)],
        *[("norm", "old one", 4, 0, 8, 0), ("rope", "new one", 0, 4, 0, 6)],
        *[("gemm", "a", 2, 0, 5, 0), ("gemm", "b", 2, 0, 4, 0), ("gemm", "c", 0, 2, 0, 3)],
        *[("gemm", "d", 3, 0, 5, 0), ("gemm", "e", 0, 3, 0, 4), ("gemm", "f", 0, 3, 0, 3)],
        *[("gemm", "g", 7, 7, 5, 5), ("gemm", "h", 8, 0, 5, 0), ("gemm", "i", 0, 9, 0, 5)],
    )
    assert found == {
        "old": ("only base", "new"),
        "new": ("only new", "old"),
        # what is left of all classes
        "old one": ("only base", "new one"),
        "new one": ("only new", "old one"),
        **dict.fromkeys("abdh", ("only base", None)),
        **dict.fromkeys("cefi", ("only new", None)),
        "g": ("both", None),
    }
    found = counterparts(
        ask, *[("norm", "x", 1, 0, 1, 0), ("norm", "y", 1, 0, 1, 0), ("rope", "z", 0, 1, 0, 1)]
    )
    assert {pair for _, pair in found.values()} == {None}
    found = counterparts(
        ask, *[("norm", "x", 1, 0, 1, 0), ("rope", "y", 0, 1, 0, 1), ("conv", "z", 0, 1, 0, 1)]
    )
    assert {pair for _, pair in found.values()} == {None}


def test_compare_kernels_names_the_two_sides_of_counterparts(ask):
    # whichever of the names comes first
    rows = [("gemm", "a", 4, 0, 9, 0), ("gemm", "z", 0, 4, 0, 7), ("norm", "y", 5, 0, 9, 0)]
    found = counterparts(ask, *rows, ("rope", "b", 0, 5, 0, 7))
    assert {name: pair for name, (_, pair) in found.items()} == {
        **{"a": "z", "z": "a", "y": "b", "b": "y"},
    }


def test_compare_kernels_of_equal_deltas_go_by_class_and_name(ask):
    rows = [("norm", "a", 1, 1, 5, 9), ("gemm", "c", 1, 1, 5, 9), ("gemm", "b", 1, 1, 9, 5)]
    found = kernels(ask, *rows, ("rope", "d", 1, 1, 1, 9))
    assert [row[1:3] for row in found] == [
        *[("rope", "d"), ("gemm", "b"), ("gemm", "c"), ("norm", "a")],
    ]


def test_compare_kernels_keeps_pairs_apart(ask):
    columns = (
        "pair BIGINT, class VARCHAR, key VARCHAR, base_count DOUBLE, new_count DOUBLE, "
        "base_work_ns BIGINT, new_work_ns BIGINT, kind VARCHAR"
    )
    rows = [
        *[(0, "gemm", "old", 4, 0, 9, 0, "kernel"), (0, "gemm", "new", 0, 4, 0, 7, "kernel")],
        *[(1, "gemm", "old", 2, 0, 5, 0, "kernel"), (1, "norm", "new", 0, 3, 0, 4, "kernel")],
    ]
    tables = {
        **LABEL,
        "pair.content_pair": (columns, rows),
        "pair.measured": (
            "pair BIGINT, class VARCHAR, parent VARCHAR, base_ns BIGINT, new_ns BIGINT",
            [(pair, "gemm", "compute_busy", 10, 10) for pair in (1, 0)],
        ),
    }
    found = ask("compare/kernels", tables)
    assert [(*row[:4], row[11], *row[14:]) for row in found] == [
        (0, "gemm", "old", "only base", -9, "new", "said"),
        (0, "gemm", "new", "only new", 7, "old", "said"),
        (0, "gemm", None, "residual", 2, None, "said"),
        (1, "gemm", "old", "only base", -5, None, None),
        (1, "norm", "new", "only new", 4, None, None),
        (1, "gemm", None, "residual", 5, None, None),
    ]
