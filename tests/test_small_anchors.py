"""Steps that find and cut windows, against their definitions: many tiny random cases at once.

Every case is a device and a process of its own, so that one query answers all of them and no two
may mix. Times come from a short range: most of them meet, touch or repeat.
"""

from itertools import count, pairwise
from random import Random

import pytest

NVTX = (
    "row_id BIGINT, process BIGINT, thread BIGINT, start_ns BIGINT, end_ns BIGINT, "
    "event_type BIGINT, text VARCHAR, domain_id BIGINT"
)
DRIVE = "process BIGINT, device BIGINT"
OP = (
    "op_id BIGINT, kind VARCHAR, start_ns BIGINT, end_ns BIGINT, device BIGINT, process BIGINT, "
    "correlation_id BIGINT, name_id BIGINT"
)


def session(end):
    return {"nsys.session_end": ("session_end_ns BIGINT", [(end,)])}


def some_ranges(random, processes, *, each=9, texts=("step 1", "step 2", "stepper", "other", None)):
    """NVTX rows: (row, process, thread, start, end, type, text, domain)."""
    rows, number = [], count()
    for process in processes:
        for _ in range(each):
            start = random.choice([None, *range(10), *range(10)])
            end = random.choice([None, *range(13), *range(3, 13)])
            kind = random.choice([59, 60, 70, 71, 59, 60, 70, 71, 75, 58])
            text = random.choice(texts)
            rows.append((next(number), process, random.randrange(2), start, end, kind, text, 0))
    random.shuffle(rows)
    return rows


def outermost(rows):
    """The rows of a thread that lie in no other of them; of equal ones the first."""
    ordered = sorted(rows, key=lambda row: (row[3], -row[4], row[0]))
    return [
        row
        for at, row in enumerate(ordered)
        if not any(
            other[1:3] == row[1:3] and other[3] <= row[3] and other[4] >= row[4]
            for other in ordered[:at]
        )
    ]


def is_range(row):
    return row[5] in (59, 60, 70, 71)


@pytest.mark.parametrize("end", [10, None])
def test_nvtx_window(ask, end):
    rows = some_ranges(Random(1), [None, *range(60)])
    rows += [(1000 + row[0], *row[1:]) for row in rows[::2]]
    tables = {"nsys.nvtx": (NVTX, rows), **session(end)}
    found = ask("steps/nvtx_window", tables, anchor_kind="nvtx", anchor_pattern="step*")
    valid = [
        row
        for row in rows
        if is_range(row) and (row[6] or "").startswith("step") and row[3] is not None
        if row[4] is None or row[4] >= row[3]
    ]
    still_open = [row for row in valid if row[4] is None or (end is not None and row[4] >= end)]
    closed = outermost([row for row in valid if row not in still_open])
    # of equal ones the first
    first = {row[1:5]: row for row in sorted(still_open, reverse=True)}
    assert len(first) < len(still_open)
    still_open = [*first.values()]
    assert sorted(found, key=str) == sorted(
        [(*row[:5], False) for row in closed] + [(*row[:5], True) for row in still_open], key=str
    )
    assert len(closed) > 80 and len(still_open) > 5
    assert ask("steps/nvtx_window", tables, anchor_kind="kernel", anchor_pattern="step*") == []
    assert ask("steps/nvtx_window", tables, anchor_pattern="*") == []
    one = ask("steps/nvtx_window", tables, anchor_kind="nvtx", anchor_pattern="other")
    assert {rows[0] for rows in one} <= {row[0] for row in rows if row[6] == "other"}


@pytest.mark.parametrize("end", [10, None])
def test_nvtx_span(ask, end):
    rows = some_ranges(Random(2), [None, *range(60)])
    stems = {"step 1": "step *", "step 2": "step *", "stepper": "stepper", "other": "other"}
    patterns = [("step *", 0), ("st*", 1), ("stepper", 2)]
    families = [("step *", "step *", "step *"), ("stepper", "stepper", "stepper")]
    drives = [(process, device) for process in [None, *range(60)] for device in (process, 99)]
    tables = {
        "nsys.nvtx": (NVTX, rows),
        **session(end),
        "nsys.drive": (DRIVE, drives[2:]),
        "nsys.nvtx_pattern": (
            "pattern VARCHAR, strength BIGINT, left_out VARCHAR",
            [*[(*each, None) for each in patterns], ("other", 2, "at most 60")],
        ),
        "nsys.nvtx_family": (
            "stem VARCHAR, pattern VARCHAR, fold VARCHAR",
            # the same stem of a library and of the program: still one member
            [*families, *families, ("other", "other", "other")],
        ),
    }
    expected = []
    for pattern, strength in patterns:
        matching = {
            text
            for text, stem in stems.items()
            if stem == pattern or (pattern == "st*" and stem.startswith("st"))
        }
        valid = [
            row
            for row in rows
            if is_range(row) and row[6] in matching and None not in row[3:5]
            if row[3] <= row[4] < (end or 99)
        ]
        for row in outermost(valid):
            for process, device in drives[2:]:
                if process == row[1]:
                    expected.append((pattern, strength, device, *row[3:5]))
    assert sorted(ask("steps/nvtx_span", tables)) == sorted(expected)
    assert len(expected) > 200
    # a process that nobody knows drives a device too
    unknown = {**tables, "nsys.drive": (DRIVE, [(None, 5)])}
    own = {row[2] for row in ask("steps/nvtx_span", unknown)}
    assert own == {5}


def test_nvtx_span_knows_a_family_by_its_fold(ask):
    # the pattern of a family with one text only has a digit in it, its fold has none
    tables = {
        "nsys.nvtx": (NVTX, [(1, 1, 1, 0, 5, 59, "conv2d", 0), (2, 1, 1, 6, 8, 59, "conv3d x", 0)]),
        **session(99),
        "nsys.drive": (DRIVE, [(1, 4)]),
        "nsys.nvtx_pattern": (
            "pattern VARCHAR, strength BIGINT, left_out VARCHAR",
            [("conv2d", 2, None), ("conv*d x", 1, None), ("conv*", 0, None)],
        ),
        "nsys.nvtx_family": (
            "stem VARCHAR, pattern VARCHAR, fold VARCHAR",
            [("conv2d", "conv2d", "conv*d"), ("conv3d x", "conv3d x", "conv*d x")],
        ),
    }
    assert sorted(ask("steps/nvtx_span", tables)) == [
        *[("conv*", 0, 4, 0, 5), ("conv*", 0, 4, 6, 8)],
        *[("conv*d x", 1, 4, 6, 8), ("conv2d", 2, 4, 0, 5)],
    ]


def families(ask, *rows, end=100):
    """Texts, or (text, start, end, type, process, domain), to {stem: the rest of its row}."""
    full = []
    for number, row in enumerate(rows):
        text, *rest = (row,) if isinstance(row, str) else row
        given = dict(zip(("start", "end", "type", "process", "domain"), rest, strict=False))
        start, until = given.get("start", 10 * number), given.get("end", 10 * number + 4)
        kind, process, domain = (given.get(k, d) for k, d in
                                 (("type", 59), ("process", 1), ("domain", 0)))  # fmt: skip
        full.append((number, process, 1, start, until, kind, text, domain))
    found = ask("steps/nvtx_family", {"nsys.nvtx": (NVTX, full), **session(end)})
    return {(row[0], row[1]): row[2:] for row in found}


def test_nvtx_family_counts_closed_ranges_of_a_stem(ask):
    found = families(
        ask,
        *[("step 1", 0, 4), ("step 2", 1, 9), ("step 10", 20, 20, 60), ("step 3", 30, 29)],
        *[("step 4", 50, 100), ("step 5", 50, 99, 70), ("step 6", 50, 101), ("step 7", 50, 60, 75)],
        *[("step 8", 50, 60, 58), (None, 1, 2), ("step 9", 60, None), ("conv2d", 0, 6, 71)],
        *[("conv2d", 1, 3)],
    )
    assert found == {
        # 4 + 8 + 0 + 49
        ("step *", False): ("step *", "step *", 4, 61, 0),
        # a digit in a name that never changes is no number
        ("conv2d", False): ("conv2d", "conv*d", 2, 8, 2),
    }
    assert families(ask, ("step 1", 0, 400), end=None) == {
        ("step *", False): ("step 1", "step *", 1, 400, 0)
    }


def test_nvtx_family_folds_numbers_that_change(ask):
    # two stems of one fold: what stands in the middle is a number too
    found = families(ask, "layer 1 fwd", "layer 2 fwd", "layer2", "a3b", "a3b")
    assert {key[0]: row[:2] for key, row in found.items()} == {
        "layer 1 fwd": ("layer * fwd", "layer * fwd"),
        "layer 2 fwd": ("layer * fwd", "layer * fwd"),
        "layer*": ("layer2", "layer*"),
        "a3b": ("a3b", "a*b"),
    }


def test_nvtx_family_knows_libraries_by_their_domains(ask):
    found = families(
        ask,
        ("NCCL", 0, None, 75, 1, 7),
        ("my nccl", 0, None, 75, 1, 8),
        ("cublas", 0, None, 59, 1, 9),  # a range, not the name of a domain
        ("NCCL", 0, None, 75, 1, 7),
        *[("step 1", 0, 2, 59, 1, 7), ("step 2", 3, 4, 59, 1, 7), ("step 3", 5, 9, 59, 1, 8)],
        *[("step 4", 5, 7, 59, 2, 7), ("step 5", 5, 6, 59, 1, 9)],
    )
    assert found == {
        ("step *", True): ("step *", "step *", 2, 3, 9),
        ("step *", False): ("step *", "step *", 3, 4 + 2 + 1, 0),
    }


@pytest.mark.parametrize(
    ("strength", "texts"),
    [
        (0, "step|Step 12|step_3|train_step #4|global step 5|my step|iteration=7|batch: 9|steps 4"),
        (0, "ProfilerStep#3|iter(12)|train/iter 3|step [3]|training step 2|step 3 of 9"),
        (0, "step, seq = 12, op_id = 9|x step, op_id = 4"),
        (1, "micro_step 3|warmup iteration 2|substep 1|one step more|sub-batch 4|iter - b"),
        (1, "step x, seq = 4|steps of x"),
        (2, "forward step|load batch|optimizer.step|train|x|stepper|nextstep|evaluation step"),
        (2, "sync|loss|warm|micro|footstep 3|data step|stepwise|grad, x|batches"),
        (9, "aten::mm|c10d::x|autograd::step|torch::step|nccl step|cudnnStep|MPI_Step|c10d::step"),
        (9, "mm, seq = 4, op_id = 3|mm, op_id = 7|backward, seq = 4|mm, seq = 1 x"),
    ],
)
def test_nvtx_family_tells_what_is_named_like_a_step(ask, strength, texts):
    found = families(ask, *texts.split("|"))
    wrong = {key[0]: row[4] for key, row in found.items() if row[4] != strength}
    assert wrong == {}


def test_nvtx_pattern_takes_sixty_of_those_that_recur(ask):
    def told(*rows):
        columns = "pattern VARCHAR, strength BIGINT, range_count BIGINT, range_ns BIGINT"
        return ask("steps/nvtx_pattern", {"nsys.nvtx_family": (columns, rows)})

    found = told(
        # of one pattern the counts add up, the best name counts
        *[("twice", 2, 1, 5), ("twice", 0, 1, 5), ("once", 0, 1, 99), ("many", 0, 100_001, 99)],
        *[
            ("full", 2, 99_999, 9),
            ("full", 2, 1, 9),
            ("more", 1, 60_000, 1),
            ("more", 1, 40_001, 1),
        ],
    )
    many = "none with over 100 000 ranges"
    assert sorted(found) == [
        *[("full", 2, None), ("many", 0, many), ("more", 1, many), ("twice", 0, None)]
    ]
    # by strength, then by time, then by name; operators take no place
    listed = [(f"{at:02}", 2, 2, 100) for at in range(70)]
    tried = {row[0] for row in told(*listed[::-1], ("op", 0, 100_001, 500)) if row[2] is None}
    assert tried == {f"{at:02}" for at in range(60)}
    changed = [*listed[:-3], ("67", 2, 2, 101), ("68", 1, 2, 1), ("69", 9, 2, 900)]
    out = {row[0] for row in told(*changed[::-1]) if row[2] == "at most 60"}
    assert out == {f"{at:02}" for at in (*range(58, 67), 69)}
    assert told() == []
    assert told(("", 0, 5, 5), ("a", 0, 5, 5)) == [("a", 0, None)]  # an empty one cannot be given


# ----------------------------------------------------------------------------------- kernels
FAMILY = "kind VARCHAR, pattern VARCHAR, strength BIGINT, name_id BIGINT"


def some_kernels(random, devices, *, each=14, names=3):
    """op rows in no order: every device a process with the number 100 more."""
    rows, number = [], count()
    for device in devices:
        for _ in range(each):
            start, kind = random.randrange(60), random.choice(["kernel"] * 9 + ["memcpy"])
            name, corr = random.randrange(names), random.choice([None, *range(6)])
            end = start + random.randrange(4)
            rows.append((next(number), kind, start, end, device, device + 100, corr, name))
    random.shuffle(rows)
    return rows


@pytest.mark.parametrize("per", [None, 1, 2, 3])
def test_kernel_window(ask, per):
    ops = some_kernels(Random(3), range(30))
    tables = {"nsys.op": (OP, ops), "nsys.anchor_kernel": ("name_id BIGINT", [(1,), (2,), (9,)])}
    expected = []
    for device in range(30):
        starts = sorted(
            op[2] for op in ops if op[4] == device and op[1] == "kernel" and op[7] in (1, 2)
        )[:: per or 1]
        expected += [(device, *pair) for pair in pairwise(starts)]
        expected += [(device, start, None) for start in starts[-1:]]
    options = {} if per is None else {"per_iteration": per}
    assert sorted(ask("steps/kernel_window", tables, **options), key=str) == sorted(
        expected, key=str
    )


def windows_of_bursts(starts_by_device):
    """What kernel_span says of one kernel: occurrences per iteration, and windows by device."""
    sizes = []
    for starts in starts_by_device.values():
        distances = sorted(b - a for a, b in pairwise(starts))
        if not distances:
            continue
        usual = distances[(len(distances) + 1) // 2 - 1]  # the lower one of two middle ones
        first = [
            0,
            *(at for at in range(1, len(starts)) if starts[at] - starts[at - 1] > 3 * usual),
        ]
        sizes.append([b - a for a, b in pairwise(first)])
    bursts = sum(map(len, sizes))
    grouped = [
        size
        for size in {each for found in sizes for each in found}
        if 5 * sum(found.count(size) for found in sizes) >= 4 * bursts
        if sum(found.count(size) for found in sizes) >= 2 * sum(size in found for found in sizes)
    ]
    per = max(grouped, default=1)
    return per, {
        device: list(pairwise(starts[::per])) for device, starts in starts_by_device.items()
    }


def bursts(*sizes, pause=100, distance=10, begin=0):
    starts, at = [], begin
    for size in sizes:
        starts += [at + distance * n for n in range(size)]
        at = starts[-1] + pause
    return starts


BURSTS = {
    # kernel -> {device: starts}; the last burst of a device is not known to be whole
    "threes": {0: bursts(3, 3, 3, 2)},
    "pause of three": {0: bursts(3, 3, 3, 3, pause=30)},
    "pause of more": {0: bursts(3, 3, 3, 3, pause=31)},
    "four of five": {0: bursts(2, 2, 2, 2, 3, 2)},
    "three of four": {0: bursts(2, 2, 2, 3, 2)},
    "one of them": {0: bursts(3, 3)},
    "two of them": {0: bursts(3, 3, 3)},
    "both devices": {0: bursts(2, 2, 2, 2), 1: bursts(2, 2, 2, 2, begin=7)},
    "one each": {0: bursts(2, 2), 1: bursts(2, 2, begin=7)},
    "devices that differ": {0: bursts(2, 2, 2, 2), 1: bursts(4, 4, 4, 4)},
    "one device more": {0: bursts(*[2] * 9), 1: bursts(3, 3, begin=5)},
    "no pause": {0: bursts(9), 2: bursts(1)},
    "equal times": {0: [0, 0, 0, 5, 5, 5, 10, 10, 10]},
    "pauses of one device only": {0: bursts(3, 3, 3, 3, 3), 1: bursts(1, 1, 1)},
}


PER_ITERATION = {
    **{"threes": 3, "pause of three": 1, "pause of more": 3, "four of five": 2},
    **{"three of four": 1, "one of them": 1, "two of them": 3, "both devices": 2},
    **{"one each": 1, "devices that differ": 1, "one device more": 2, "no pause": 1},
    **{"equal times": 3, "pauses of one device only": 3},
}


def test_kernel_span(ask):
    given, random = dict(BURSTS), Random(4)
    for at in range(60):
        given[f"random {at}"] = {
            device: bursts(
                *(random.choice([2, 2, 2, 2, 3]) for _ in range(random.randrange(1, 8))),
                pause=random.choice([30, 31, 90]),
                begin=device,
            )
            for device in range(random.randrange(1, 4))
        }
    families, rows, number = [], [], count()
    for name_id, (name, by_device) in enumerate(given.items()):
        kind, strength = (("nccl", 3), ("kernel", 5))[name_id % 2]
        families.append((kind, name, strength, name_id))
        for device, starts in by_device.items():
            rows += [
                (next(number), "kernel", start, start + 1, device, 1, 1, name_id)
                for start in starts
            ]
    # of one pattern may be several names, and only kernels of it count
    families.append(("nccl", "threes", 3, 1000))
    rows[3] = (*rows[3][:7], 1000)
    rows += [
        (next(number), "memcpy", 5, 6, 0, 1, 1, 0),
        (next(number), "kernel", 5, 6, 0, 1, 1, 77),
    ]
    random.shuffle(rows)
    found = ask(
        "steps/kernel_span", {"nsys.op": (OP, rows), "nsys.kernel_family": (FAMILY, families)}
    )
    told = {row[1]: row[3] for row in found}
    assert {name: told.get(name, 1) for name in PER_ITERATION} == PER_ITERATION
    expected = []
    for kind, name, strength, _ in families[:-1]:
        per, windows = windows_of_bursts(given[name])
        for device, pairs in windows.items():
            expected += [(kind, name, strength, per, device, *pair) for pair in pairs]
    assert sorted(found) == sorted(expected)
    assert {row[3] for row in found} == {1, 2, 3}


NAMES = "name_id BIGINT, name VARCHAR, class VARCHAR"


def test_anchor_kernel(ask):
    tables = {
        "nsys.kernel_name": (
            NAMES,
            [(1, "ns::adam<float>", "optimizer"), (2, "ncclAdam", "nccl"), (3, "gemm", "gemm"),
             (None, None, "other"), (5, "x", "other")],
        ),
        "nsys.kernel": (
            "name_id BIGINT, short_name_id BIGINT",
            [(1, 11), (1, 11), (2, 12), (3, 13), (None, 11), (9, 11), (5, None), (3, 13)],
        ),
        "nsys.string": (
            "string_id BIGINT, value VARCHAR", [(11, "adam"), (12, "nccl"), (13, "adamant")]
        ),
    }  # fmt: skip

    def found(kind, pattern):
        rows = ask("steps/anchor_kernel", tables, anchor_kind=kind, anchor_pattern=pattern)
        return sorted(row[0] for row in rows)

    assert found("kernel", "adam") == [1]  # by the short name, of all names only
    assert found("kernel", "adam*") == [1, 3]
    assert found("kernel", "*dam<*") == [1]
    assert found("kernel", "nccl*") == [2]
    assert found("nccl", "nccl*") == found("nccl", "*") == [2]
    assert found("nccl", "adam*") == found("nccl", "ns*") == []
    assert found("kernel", "*") == [1, 2, 3, 5]
    assert found("nvtx", "*") == found("", "*") == found(None, "*") == found("kernel", None) == []


ITEM = "item_id BIGINT, device BIGINT, kind BIGINT, name_id BIGINT, start_ns BIGINT, end_ns BIGINT"


def family(ask, *kernels, others=()):
    """Kernels: (name, class, starts by device or of device 0). {(pattern, strength): name ids}."""
    names, items = [], []
    for name_id, (name, kind, starts) in enumerate(kernels):
        names.append((name_id, name, kind))
        for device, each in (starts if isinstance(starts, dict) else {0: starts}).items():
            items += [(0, device, 0, name_id, start, start + 5) for start in each]
    items += [(0, *each) for each in others]
    tables = {"nsys.stream_item": (ITEM, items), "nsys.kernel_name": (NAMES, names)}
    found = {}
    for kind, pattern, strength, name_id in ask("steps/kernel_family", tables):
        assert kind == ("nccl" if strength == 3 else "kernel")
        found.setdefault((pattern, strength), set()).add(name_id)
    return found


def test_kernel_family_recurs_through_half_of_the_time(ask):
    rest = ("rest", "gemm", [0, 100])  # too seldom, but the device works from 0 to 100
    assert family(ask, rest, ("k", "gemm", [20, 60, 70])) == {("k", 5): {1}}
    assert family(ask, rest, ("k", "gemm", [20, 60, 69])) == {}
    assert family(ask, rest, ("k", "gemm", [20, 70])) == {}
    # copies are work too, events are none, and other devices do not matter
    longer = [(0, 1, -1, 120, 121)]
    assert family(ask, rest, ("k", "gemm", [20, 60, 79]), others=longer) == {}
    assert family(ask, rest, ("k", "gemm", [20, 60, 80]), others=longer) == {("k", 5): {1}}
    for apart in ((0, 4, None, 900, None), (1, 1, -1, 900, 901)):
        assert family(ask, rest, ("k", "gemm", [20, 60, 70]), others=[apart]) == {("k", 5): {1}}
    # a kernel counts where one device has enough of it
    k = {0: [0, 50, 100], 1: [0, 900]}
    assert family(ask, ("k", "gemm", k)) == {("k", 5): {0}}
    assert family(ask, ("k", "gemm", {0: [0, 50], 1: [0, 900]})) == {}
    assert family(ask, (None, "gemm", [0, 50, 100])) == {}
    assert family(ask, ("", "gemm", [0, 50, 100])) == {}


def test_kernel_family_takes_no_kernel_that_runs_all_the_time(ask, bare):
    tables = {
        "nsys.stream_item": (ITEM, []),
        "nsys.kernel_name": (NAMES, [(1, "k", "gemm"), (0, "more", "gemm")]),
    }
    ask("steps/kernel_family", tables)
    # 10 000 runs of the one, 10 001 of the other
    bare.execute(
        "INSERT INTO nsys.stream_item SELECT 0, 0, 0, r % 2, r, r + 5 FROM range(20001) AS t (r)"
    )
    assert ask("steps/kernel_family", {}) == [("kernel", "k", 5, 1)]


def test_kernel_family_takes_two_of_equal_counts(ask):
    def rows(*classes, times=3, first=0):
        return [
            (f"{kind}{at}", kind, [first + at, *range(50, 50 + times)])
            for kind in classes
            for at in range(4)
        ]

    # the two that come first, of collectives, optimizer kernels and others each
    assert sorted(family(ask, *rows("nccl", "optimizer", "gemm"))) == [
        *[("gemm0", 5), ("gemm1", 5), ("nccl0", 3), ("nccl1", 3)],
        *[("optimizer0", 4), ("optimizer1", 4)],
    ]
    # all other classes are one
    assert sorted(family(ask, *rows("gemm", "norm"))) == [("gemm0", 5), ("norm0", 5)]
    # of the same begin the first by name
    same = [(name, "gemm", [0, 1, 2]) for name in "cbad"]
    assert sorted(family(ask, *same)) == [("a", 5), ("b", 5)]


def test_kernel_family_keeps_the_rarest(ask):
    def rows(kind, number):
        # two of each count: 3, 3, 4, 4 and so on, the second a bit later
        return [
            (f"{kind}_{at:02}", kind, [at % 2, *range(200, 202 + at // 2)]) for at in range(number)
        ]

    found = family(ask, *rows("nccl", 10)[::-1], *rows("optimizer", 9), *rows("gemm", 27)[::-1])
    assert sorted(found) == sorted(
        [(f"nccl_{at:02}", 3) for at in range(8)]
        + [(f"optimizer_{at:02}", 4) for at in range(8)]
        + [(f"gemm_{at:02}", 5) for at in range(24)]
    )
    # where only one of two has room: the one that begins first, then the first by name
    nine = [("z", "nccl", [0, 200, 201, *range(300, 304)]), ("y", "nccl", [1, *range(200, 206)])]
    tied = [*rows("nccl", 7), *nine]
    assert ("z", 3) in family(ask, *tied) and ("y", 3) not in family(ask, *tied)


def test_kernel_family_spells_a_pattern_as_short_as_it_can(ask):
    even = [0, 50, 100]
    long = "k" * 60
    found = family(
        ask,
        ("void f<int>(int)", "gemm", [0, 50, 100]),
        ("void f2<int>(int)", "gemm", [1, 50, 100, 110]),
        ("void g<int>(int)", "gemm", [2, 50, 100, 110, 120]),
        ("void g<char>(int)", "gemm", [3]),
        (long + "ab", "gemm", [0, 50, 100, 1, 2, 3]),
        (long + "cd", "gemm", [0]),
        ("nccl(x)", "nccl", [0, 60, 90]),
        ("nccl(y)", "other", [0]),  # matches, but is no collective: the pattern is of nccl only
        ("only", "gemm", [0, 1, 2, 3, 4, 5, 100]),
    )
    assert found == {
        ("void f<*", 5): {0},
        ("void f2<*", 5): {1},
        ("void g<int>(int)", 5): {2},
        (long + "ab", 5): {4},
        ("nccl(*", 3): {6},
        ("only", 5): {8},
    }
    # one name with several ids is one kernel, and a whole name may be a pattern of several
    assert family(ask, ("f(x)", "gemm", even), ("f(x)", "gemm", [7])) == {("f(*", 5): {0, 1}}
    assert family(ask, ("k*", "gemm", even), ("kk", "gemm", [7])) == {("k*", 5): {0, 1}}


# ------------------------------------------------------------------------ windows by device time
RANGE = (
    "row_id BIGINT, process BIGINT, start_ns BIGINT, end_ns BIGINT, is_unclosed BOOLEAN, "
    "thread BIGINT"
)
CALL = "process BIGINT, correlation_id BIGINT, start_ns BIGINT"


def range_windows(ranges, calls, ops, drives):
    """device_window by definition: {(device, row): (start, end, is workless)}."""
    launched = {}
    for process, correlation, start in calls:
        if None not in (process, correlation):
            key = (process, correlation)
            launched[key] = min(start, launched.get(key, start))
    found = {}
    for process, device in drives:
        with_work = []
        for row in ranges:
            row_id, owner, start, end, is_unclosed, _ = row
            if owner != process:
                continue
            until = 99 if is_unclosed else end
            inside = [
                op
                for op in ops
                if op[4] == device and op[5] == owner and start <= launched.get(op[5:7], -1) < until
            ]
            found[device, row_id] = (start, end, True)
            if inside:
                first, last = min(op[2] for op in inside), max(op[3] for op in inside)
                with_work.append((first, start, last, row_id, end, is_unclosed))
        with_work.sort()
        for at, (first, _, last, row_id, end, is_unclosed) in enumerate(with_work):
            if is_unclosed:
                until = None if end is not None and first > end else end
            else:
                until = with_work[at + 1][0] if at + 1 < len(with_work) else last
            found[device, row_id] = (first, until, False)
    return found


def test_device_window(ask):
    random = Random(5)
    ranges, calls, ops, drives, number = [], [], [], [(None, 7)], count()
    for process in [None, *range(80)]:
        for _ in range(random.randrange(1, 6)):
            start = random.randrange(8)
            end = random.choice([start + random.randrange(5)] * 3 + [9])
            is_unclosed = end == 9
            end = random.choice([end, None]) if is_unclosed else end
            row = (next(number), process, start, end, "true" if is_unclosed else "false", 0)
            ranges.append(row)
        for correlation in [None, 1, 2, 3, 4, 5]:
            calls += [
                (process, correlation, random.randrange(10)) for _ in range(random.randrange(1, 3))
            ]
        for _ in range(6):
            start, device = random.randrange(4, 16), random.choice([7, 8])
            correlation = random.choice([None, 1, 2, 3, 4, 5, 6])
            ops.append(
                (next(number), "kernel", start, start + random.randrange(4), device, process,
                 correlation, 0)
            )  # fmt: skip
        if process is not None:
            drives += [(process, 7), (process, 8)]
    random.shuffle(ranges)
    random.shuffle(ops)
    tables = {
        "nsys.nvtx_window": (RANGE, ranges),
        "nsys.drive": (DRIVE, drives),
        "nsys.op": (OP, ops),
        "nsys.cuda_call": (CALL, calls),
    }
    plain = [(*row[:4], row[4] == "true", row[5]) for row in ranges]
    found = ask("steps/device_window", tables, window_mode="device")
    expected = range_windows(plain, calls, ops, drives)
    assert {row[:2]: row[2:] for row in found} == expected
    assert len(found) == len(expected) and sum(not row[4] for row in found) > 100
    assert ask("steps/device_window", tables) == []
    assert ask("steps/device_window", tables, window_mode="range") == []


SPANS = "kind VARCHAR, pattern VARCHAR, device BIGINT, start_ns BIGINT, end_ns BIGINT"


def test_anchor_work(ask):
    # work is added up in buckets of 2^20 ns: edges and operations lie beside and on their borders
    random, border = Random(6), 1 << 20
    times = sorted({at * border + off for at in range(4) for off in (-1, 0, 1, 500)})
    spans, items, expected = [], [], []
    for device in range(25):
        own = []
        for _ in range(random.randrange(1, 12)):
            start, work = random.choice(times), random.choice([1, 20, 300])
            items.append((0, device, random.choice([0, 1, 3]), 0, start, start + work))
            own.append((start, work))
        items.append((0, None, 4, None, None, None))
        for kind, pattern in (("nvtx", "a"), ("nvtx", "b"), ("nccl", "a")):
            windows = [sorted(random.choices(times, k=2)) for _ in range(random.randrange(1, 5))]
            spans += [(kind, pattern, device, *window) for window in windows]
            inside = sum(
                work for at, work in own if any(start <= at < end for start, end in windows)
            )
            first, last = min(w[0] for w in windows), max(w[1] for w in windows)
            extent = sum(work for at, work in own if first <= at < last)
            whole = sum(work for _, work in own)
            expected.append((kind, pattern, device, inside, extent, whole))
    random.shuffle(spans)
    spans.append(("kernel", "a", 99, 0, border))  # of a device without work
    tables = {"nsys.anchor_span": (SPANS, spans), "nsys.stream_item": (ITEM, items)}
    assert sorted(ask("steps/anchor_work", tables)) == sorted(expected)
