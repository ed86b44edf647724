"""Single steps over small tables made by hand, as in test_small_tables."""

import shlex
from random import Random

import pytest

CANDIDATE = (
    "kind VARCHAR, pattern VARCHAR, device BIGINT, per_iteration BIGINT, step_ns BIGINT, "
    "rank BIGINT, is_plausible BOOLEAN, is_check BOOLEAN, count BIGINT, first_ns BIGINT, "
    "last_ns BIGINT"
)


def candidate(kind, pattern, rank, step, *, per=1, plausible=True, check=True, first=0, last=1000):
    return (kind, pattern, 0, per, step, rank, plausible, check, 4, first, last)


def choice(ask, *candidates, coarse=(), fine=(), devices=(0,)):
    """Starts of two anchors, (device, ns) each: `coarse` of nvtx:s, `fine` of kernel:k."""
    spans = [("nvtx", "s", *each) for each in coarse] + [("kernel", "k", *each) for each in fine]
    tables = {
        "nsys.anchor_candidate": (CANDIDATE, list(candidates)),
        "nsys.anchor_span": (
            "kind VARCHAR, pattern VARCHAR, device BIGINT, start_ns BIGINT",
            spans,
        ),
        "nsys.drive": ("device BIGINT", [(each,) for each in devices]),
    }
    (row,) = ask("steps/anchor_choice", tables)
    return row


def test_anchor_choice_has_nothing_to_choose_from(ask):
    nothing = ("none", *[None] * 5)
    assert choice(ask, devices=()) == (
        *nothing,
        "the trace holds no device operation, so there is nothing to measure in iterations",
    )
    assert choice(ask) == (
        *nothing,
        "no candidate anchor: no NVTX range and no kernel recurs; pass one with --anchor",
    )
    listed = [
        candidate("nvtx", name, at, 1000, plausible=False) for at, name in enumerate("dcba", 1)
    ]
    assert choice(ask, *listed[::-1]) == (
        *nothing,
        "no candidate anchor is trustworthy: nvtx:d every 1.0 us, nvtx:c every 1.0 us, "
        "nvtx:b every 1.0 us; pass one with --anchor, such as --anchor 'nvtx:d'",
    )
    # as a shell takes it, and whole, or not at all
    for pattern, per in (("it's *", 3), ("k" * 2000, 1), ("k" * 2001, 1)):
        row = choice(ask, candidate("kernel", pattern, 1, 1000, per=per, plausible=False))
        option = row[6].partition("pass one with --anchor")[2].removeprefix(", such as ")
        given = ["--anchor", f"kernel:{pattern}", *(["--per-iteration", "3"] if per > 1 else [])]
        assert shlex.split(option) == ([] if len(pattern) > 2000 else given)


def test_anchor_choice_takes_the_first_that_is_plausible(ask):
    row = choice(
        ask,
        candidate("nvtx", "second", 3, 1000),
        candidate("nvtx", "s", 2, 1000, per=2),
        candidate("kernel", "no check", 4, 999, check=False),
        candidate("kernel", "not plausible", 1, 999, plausible=False, check=False),
    )
    text = "nvtx:s (--per-iteration 2) every 1.0 us, not cross-checked"
    assert row == ("chosen", "nvtx", "s", 2, None, None, text)


def rival(ask, **own):
    """Whether a kernel of step time 100 is checked against an anchor from 0 to 1 000."""
    row = choice(ask, candidate("nvtx", "s", 1, 100), candidate("kernel", "k", 2, 100, **own))
    assert row[:4] == ("chosen", "nvtx", "s", 1)
    return row[4:6] == ("kernel", "k")


@pytest.mark.parametrize(
    ("first", "last", "is_rival"),
    [
        (150, 800, True),  # with half a step before and one behind: 100 to 900, four fifths
        (150, 799, False),
        (151, 800, False),
        (-999, 700, True),  # what lies outside of the other's time does not count
        (-999, 699, False),
        (250, 5000, True),
        (251, 5000, False),
    ],
)
def test_anchor_choice_checks_against_what_spans_four_fifths(ask, first, last, is_rival):
    assert rival(ask, first=first, last=last) is is_rival


def test_anchor_choice_checks_against_the_first_of_another_kind(ask):
    row = choice(
        ask,
        candidate("nvtx", "s", 1, 1000),
        candidate("nvtx", "t", 2, 3),
        candidate("kernel", "later", 5, 3),
        candidate("kernel", "k", 4, 1000, plausible=False),
        candidate("nccl", "no check", 3, 3, check=False),
    )
    text = "nvtx:s every 1.0 us, agrees with kernel:k every 1.0 us"
    assert row == ("chosen", "nvtx", "s", 1, "kernel", "k", text)


def agreed(ask, coarse_ns, fine_ns, *, swapped=False, last=1000, **starts):
    """Whether two anchors agree; the one that comes first is nvtx:s unless swapped."""
    kinds = [("nvtx", "s", coarse_ns), ("kernel", "k", fine_ns)]
    listed = [
        candidate(kind, pattern, at, ns, last=last)
        for at, (kind, pattern, ns) in enumerate(kinds[::-1] if swapped else kinds, 1)
    ]
    row = choice(ask, *listed, **starts)
    assert row[6].startswith("candidate anchors disagree: ") == (row[0] == "ambiguous")
    if row[0] == "ambiguous":
        assert row[1:4] == (None, None, None) and f"--anchor '{listed[0][0]}:" in row[6]
    return row[0] == "chosen"


@pytest.mark.parametrize("swapped", [False, True])
def test_anchor_choice_agrees_within_two_percent(ask, swapped):
    assert agreed(ask, 102, 100, swapped=swapped)
    assert not agreed(ask, 103, 100, swapped=swapped)
    assert not agreed(ask, 200, 100, swapped=swapped)  # no starts: nobody knows


def periods(*counts, length=100, begin=0):
    """Coarse starts a length apart, and in each period so many fine ones; device 0."""
    coarse = [(0, begin + at * length) for at in range(len(counts) + 1)]
    fine = [(0, begin + at * length + 7 * n) for at, of in enumerate(counts) for n in range(of)]
    return {"coarse": coarse, "fine": fine}


@pytest.mark.parametrize("swapped", [False, True])
def test_anchor_choice_agrees_on_a_multiple_in_nine_of_ten_periods(ask, swapped):
    assert agreed(ask, 200, 100, swapped=swapped, **periods(*[2] * 9, 1))
    assert agreed(ask, 204, 100, swapped=swapped, **periods(*[2] * 9, 3))
    assert not agreed(ask, 205, 100, swapped=swapped, **periods(*[2] * 10))
    assert not agreed(ask, 200, 100, swapped=swapped, **periods(*[2] * 8, 1, 3))
    assert not agreed(ask, 200, 100, swapped=swapped, **periods(*[2] * 8, 0, 0))
    # periods before and after the time of both do not count
    whole = periods(0, *[2] * 9, 1, 0, begin=-100)
    assert agreed(ask, 200, 100, swapped=swapped, **whole)
    # those of another device do not lead to a better or worse one
    other = {"coarse": [(1, 0), (1, 100)], "fine": [(1, 5), (2, 5)]}
    joined = {name: whole[name] + other[name] for name in whole}
    assert not agreed(ask, 200, 100, swapped=swapped, **joined)


def test_anchor_choice_takes_no_multiple_above_64(ask):
    many = {"last": 64_000}
    for multiple, is_agreed in ((64, True), (65, False)):
        starts = periods(*[multiple] * 10, length=6_400)
        assert agreed(ask, 100 * multiple, 100, **many, **starts) is is_agreed


def test_anchor_choice_agrees_one_to_one_where_the_medians_do_not(ask):
    assert agreed(ask, 150, 100, **periods(1, 1))
    assert not agreed(ask, 150, 100, **periods(1))  # one period is no evidence
    assert not agreed(ask, 150, 100, **periods(1, 1, 2))
    assert not agreed(ask, 150, 100, **periods(1, 1, 0))
    # first to last start: 100 on one side, 102, 103, 98 or 97 on the other
    coarse = [(0, 0), (0, 100), (0, 205)]
    for last, is_agreed in ((102, True), (103, False)):
        assert agreed(ask, 150, 100, coarse=coarse, fine=[(0, 0), (0, last)]) is is_agreed
    coarse = [(0, 0), (0, 102), (0, 205)]
    for first, is_agreed in ((2, True), (1, True)):
        starts = {"coarse": coarse, "fine": [(0, first), (0, 102)]}
        assert agreed(ask, 150, 100, **starts) is is_agreed
    assert not agreed(ask, 150, 100, coarse=coarse, fine=[(0, 3), (0, 102)])
    # every device has to
    both = periods(1, 1)
    other = {"coarse": [(1, 0), (1, 100), (1, 200)], "fine": [(1, 0), (1, 107)]}
    assert not agreed(ask, 150, 100, **{name: both[name] + other[name] for name in both})


SPAN = (
    "kind VARCHAR, pattern VARCHAR, strength BIGINT, per_iteration BIGINT, device BIGINT, "
    "start_ns BIGINT, end_ns BIGINT"
)
WORK = (
    "kind VARCHAR, pattern VARCHAR, device BIGINT, window_work_ns BIGINT, extent_work_ns BIGINT, "
    "device_work_ns BIGINT"
)


def spans(kind, pattern, starts, *, strength=2, per=1, device=0, length=50, end=None):
    """Windows from each start: NVTX of a length, kernels up to the next start."""
    if kind == "nvtx":
        ends = [start + length for start in starts]
    else:
        starts, ends = starts[:-1], starts[1:]
    return [
        (kind, pattern, strength, per, device, *each) for each in zip(starts, ends, strict=True)
    ]


def candidates(ask, *anchors, work=None):
    """Rows by anchor. `work`: anchor name -> (in its windows, in its extent, of the device)."""
    rows = [row for each in anchors for row in each]
    names = {(row[0], row[1], row[4]) for row in rows}
    done = [(*name, *((work or {}).get(name[1]) or (90, 100, 100))) for name in sorted(names)]
    tables = {"nsys.anchor_span": (SPAN, rows), "nsys.anchor_work": (WORK, done)}
    return {(row[0], row[1], row[3]): row for row in ask("steps/anchor_candidate", tables)}


COLUMNS = (
    *("kind", "pattern", "per_iteration", "device", "count", "median", "min", "max", "variation"),
    *("steady", "share", "first", "last", "step", "rank", "is_plausible", "is_check", "reason"),
)


def one(ask, anchor, **more):
    found = candidates(ask, anchor, **more)
    (row,) = found.values()
    return dict(zip(COLUMNS, row, strict=True))


def at(*periods):
    """Starts from 0 with these periods."""
    return [sum(periods[:n]) for n in range(len(periods) + 1)]


def test_anchor_candidate_measures_periods_without_the_first(ask):
    # periods 300, 100, 110, 111, 90: the median 110; of the four after the first all but 90 are
    # within a tenth, deviations 10, 0, 1, 20
    row = one(
        ask, spans("nvtx", "s", at(300, 100, 110, 111, 90)[::-1], per=2), work={"s": (40, 50, 200)}
    )
    assert row == {
        **{"kind": "nvtx", "pattern": "s", "per_iteration": 2, "device": 0, "count": 6},
        **{"median": 110, "min": 90, "max": 300, "variation": 100 / 110, "steady": 75.0},
        **{"share": 20.0, "first": 0, "last": 761, "step": 110, "rank": 1, "is_plausible": False},
        **{"is_check": False, "reason": "covers too little of the device work"},
    }
    # the last window of a kernel has a period too: it ends where the next one starts
    row = one(ask, spans("kernel", "k", at(300, 100, 110, 111, 90)))
    assert (row["count"], row["median"], row["min"], row["steady"]) == (5, 110, 90, 75.0)
    # of two periods the first counts as well
    assert one(ask, spans("kernel", "k", at(100, 150)))["steady"] == 50.0
    assert one(ask, spans("kernel", "k", at(100, 150, 150)))["steady"] == 100.0
    assert candidates(ask, spans("kernel", "k", at(100))) == {}


@pytest.mark.parametrize(
    ("strength", "step", "work", "reason"),
    [
        (9, 100, (90, 100, 100), "range of a library"),
        (2, 0, (90, 100, 100), "its windows start together"),
        (0, 100, (0, 100, 100), "no device work starts in it"),
        (0, 100, (0, 0, 0), "no device work starts in it"),
        (1, 100, (1, 100, 100), None),
        (2, 100, (1, 100, 100), "covers too little of the device work"),
        (2, 100, (79, 100, 100), "covers too little of the device work"),
        (2, 100, (80, 100, 100), None),
        (2, 100, (329, 329, 1000), "covers too little of the device work"),
        (2, 100, (330, 330, 1000), None),
    ],
)
def test_anchor_candidate_says_why_not_a_range(ask, strength, step, work, reason):
    starts = at(step, step, step)
    row = one(ask, spans("nvtx", "s", starts, strength=strength), work={"s": work})
    assert (row["is_plausible"], row["reason"]) == (reason is None, reason)


@pytest.mark.parametrize(
    ("periods", "strength", "reason"),
    [
        ((100,), 2, "recurs too seldom"),
        ((100,), 1, None),
        ((100, 100), 2, None),
        # three of five are enough for a range, and the mean may be off by a tenth
        ((100, 100, 100, 100, 120, 125), 2, None),
        ((100, 100, 100, 120, 120, 55), 2, "its period is not steady"),
        ((100, 100, 100, 100, 100, 150), 2, None),
        ((100, 100, 100, 100, 100, 151), 2, "its period is not steady"),
        ((100, 100, 100, 100, 100, 50), 2, None),
        ((100, 100, 100, 100, 100, 49), 2, "its period is not steady"),
    ],
)
def test_anchor_candidate_wants_a_steady_range(ask, periods, strength, reason):
    row = one(ask, spans("nvtx", "s", at(*periods), strength=strength))
    assert row["reason"] == reason


@pytest.mark.parametrize(
    ("periods", "work", "reason"),
    [
        ((100,) * 6, (1, 2, 2), None),
        ((100,) * 6, (49, 100, 100), "spans too little of the device work"),
        ((100, 100, 100, 100, 100, 111), (50, 50, 100), None),
        ((100, 100, 100, 100, 111, 111), (50, 50, 100), "its period is not steady"),
    ],
)
def test_anchor_candidate_wants_a_steady_kernel_of_half_the_work(ask, periods, work, reason):
    row = one(ask, spans("kernel", "k", at(*periods)), work={"k": work})
    assert row["reason"] == reason
    # what spans too little may still be checked against, if it is steady
    is_steady = reason != "its period is not steady"
    assert row["is_check"] is (is_steady and reason != "its windows start together")


def test_anchor_candidate_checks_against_no_library(ask):
    row = one(ask, spans("nvtx", "s", at(100, 100, 100), strength=9))
    assert row["is_check"] is False


def ranking(ask, *anchors, **more):
    found = candidates(ask, *anchors, **more)
    return [row[1] for row in sorted(found.values(), key=lambda row: row[14])]


def test_anchor_candidate_prefers_what_says_most(ask):
    even = at(100, 100, 100)
    # plausible first, then by strength
    assert ranking(
        ask,
        spans("nvtx", "a", even, strength=9),
        spans("nvtx", "b", even, strength=3),
        spans("nvtx", "c", even, strength=1),
        spans("nvtx", "d", even, strength=2),
    ) == ["c", "d", "b", "a"]
    # more of the work, in quarters: 100, then 75 to 99 by the longer period, in steps of 5 %
    work = {"a": (80, 100, 100), "b": (99, 100, 100), "c": (100, 100, 100), "d": (81, 100, 100)}
    assert ranking(
        ask,
        spans("nvtx", "a", at(200, 200, 200)),
        spans("nvtx", "b", even),
        spans("nvtx", "c", at(50, 50, 50)),
        spans("nvtx", "d", at(400, 400, 400)),
        work=work,
    ) == ["c", "d", "a", "b"]
    # those that need no count, then the steadier, then those with more work, then the name
    uneven = at(*[100] * 9, 111)
    work = {"d": (91, 100, 100), "e": (90, 100, 100), "a": (90, 100, 100)}
    assert ranking(
        ask,
        spans("nvtx", "e", even),
        spans("nvtx", "a", even),
        spans("nvtx", "b", uneven),
        spans("nvtx", "c", even, per=2),
        spans("nvtx", "d", even),
        work=work,
    ) == ["d", "a", "e", "b", "c"]


def test_anchor_candidate_tells_kinds_of_one_pattern_apart(ask):
    rows = [("nccl", "p", 3, 1, 0, at, at + 100) for at in (0, 100, 200, 300)] + [
        ("kernel", "p", 5, 1, 0, at, at + 40) for at in (0, 40, 80, 120)
    ]
    work = [("nccl", "p", 0, 90, 100, 100), ("kernel", "p", 0, 60, 100, 200)]
    tables = {"nsys.anchor_span": (SPAN, rows), "nsys.anchor_work": (WORK, work)}
    found = sorted(ask("steps/anchor_candidate", tables))
    told = [{name: row[at] for at, name in enumerate(COLUMNS)} for row in found]
    assert [(row["kind"], row["median"], row["share"], row["step"]) for row in told] == [
        *[("kernel", 40, 30.0, 40), ("nccl", 100, 90.0, 100)],
    ]


def test_anchor_candidate_prefers_kernels_that_support_each_other(ask):
    # 100 and 102 imply the same step time, the longer 200 stands alone
    assert ranking(
        ask,
        spans("kernel", "a", at(200, 200, 200)),
        spans("kernel", "b", at(100, 100, 100)),
        spans("kernel", "c", at(102, 102, 102)),
    ) == ["b", "c", "a"]
    assert ranking(
        ask,
        spans("kernel", "a", at(200, 200, 200)),
        spans("kernel", "b", at(100, 100, 100)),
        spans("kernel", "c", at(103, 103, 103)),
    ) == ["a", "b", "c"]
    # one that is not plausible supports nobody, and neither does another kind
    assert ranking(
        ask,
        spans("kernel", "a", at(200, 200, 200)),
        spans("kernel", "b", at(100, 100, 100)),
        spans("kernel", "c", at(100, 100, 100)),
        spans("nccl", "d", at(100, 100, 100), strength=3),
        work={"c": (1, 100, 100)},
    ) == ["a", "b", "d", "c"]


def test_anchor_candidate_is_taken_for_all_devices_or_none(ask):
    # medians 100 and 300 on two devices, 400 on a third: the step is the middle one
    anchors = [
        spans("nvtx", "s", at(100, 100, 100)),
        spans("nvtx", "s", at(300, 300, 300), device=1),
        spans("nvtx", "s", at(400, 400, 400), device=2),
        spans("nvtx", "t", at(100), device=1),
    ]
    found = candidates(ask, *anchors)
    assert {row[13] for key, row in found.items() if key[1] == "s"} == {300}
    assert {key[2]: row[5] for key, row in found.items() if key[1] == "s"} == {
        0: 100,
        1: 300,
        2: 400,
    }
    # all work is that of three devices: 90 of 300 in t, on one device
    assert found["nvtx", "t", 1][17] == "recurs too seldom"
    work = {"s": (30, 30, 100)}
    assert candidates(ask, *anchors[:2], work=work)["nvtx", "s", 0][17] is not None
    assert candidates(ask, *anchors[:1], work=work)["nvtx", "s", 0][17] is not None
    assert candidates(ask, *anchors[:2], work={"s": (40, 50, 100)})["nvtx", "s", 0][17] is None


# ----------------------------------------------------------------------------------- range_nest
def nest(ask, ranges, *, ops=(), others=()):
    """Ranges: (thread, start, end, text). What range_nest says, by thread in order."""
    rows = [(at, t, 10 * t, 59, *rest) for at, (t, *rest) in enumerate(ranges)]
    names = sorted({text for *_, text in [*ranges, *others]})  # all of them have one
    tables = {
        "nsys.nvtx": (
            "row_id BIGINT, thread BIGINT, process BIGINT, event_type BIGINT, start_ns BIGINT, "
            "end_ns BIGINT, text VARCHAR",
            [*rows, *others],
        ),
        "nsys.range_name": (
            "stem VARCHAR, name_no BIGINT",
            [*map(tuple, map(reversed, enumerate(names, 1)))],
        ),
        "nsys.op": ("end_ns BIGINT", [(each,) for each in ops]),
    }
    found = ask("steps/range_nest", tables)
    return sorted(found, key=lambda row: (row[0], row[2], row[4], row[5]))


def walked(ranges):
    """The same by a stack. Of starts at one time the longest comes first, then the earlier row."""
    names = sorted({text for *_, text in ranges})
    order = sorted(range(len(ranges)), key=lambda at: (*ranges[at][:2], -ranges[at][2], at))
    number = {at: n for n, at in enumerate(order, 1)}
    found = []
    for thread in sorted({row[0] for row in ranges}):
        events = []
        for at in order:
            t, start, end, text = ranges[at]
            if t == thread:
                packed = (number[at] << 24) + names.index(text) + 1
                events.append((start, 1 if end > start else 2, number[at], end, packed))
                if end > start:
                    events.append((end, 0, number[at], end, packed))
        stack = []
        events.sort()
        for n, (at_ns, kind, no, end, packed) in enumerate(events):
            if kind == 0:
                stack.pop()  # of ends at one time it does not matter whose
            else:
                stack.append(packed)
            following = events[n + 1][0] if n + 1 < len(events) else None
            levels = (stack + [None] * 8)[:8]
            found.append(
                (thread, 10 * thread, at_ns, following, kind, no, end, len(stack), *levels)
            )
            if kind == 2:
                stack.pop()
    return found


def nested(random, thread, first, last, depth):
    rows, at = [], first
    while depth and at < last:
        start = at + random.randrange(3)
        end = min(last, start + random.randrange(1 + (last - first)))
        if start > last:
            break
        rows.append((thread, start, end, random.choice("abc")))
        rows += nested(random, thread, start, end, depth - 1)
        at = end + random.randrange(2)
        if end == start:
            at += 1
    return rows


@pytest.mark.parametrize("seed", range(4))
def test_range_nest_is_a_walk_with_a_stack(ask, seed):
    random = Random(seed)
    ranges = [(2, 2 * at, 60 - 2 * at, "a") for at in range(12)]  # twelve deep
    ranges += [(2, 59 - 2 * at, 59 - 2 * at, "b") for at in range(12)]
    ranges += nested(random, 1, 0, 60, 4) + nested(random, 3, 0, 9, 3) + [(3, 70, 70, "b")]
    ranges += [(4, 0, 99, "c")] * 5 + nested(random, 4, 0, 90, 5)  # about the eighth level
    random.shuffle(ranges)
    assert nest(ask, ranges) == walked(ranges)


def test_range_nest_of_what_is_open_or_no_range(ask):
    # an open range ends with the report: its last operation, or the last end or start of a range
    others = [
        *[(90, 1, 10, 60, 0, 999, "start/end"), (91, 1, 10, 34, 0, None, "mark")],
        *[(92, None, None, 59, 0, 5, "no thread"), (93, 1, 10, 59, 9, 5, "ends before its start")],
        (94, 1, 10, 70, 40, None, "b"),
    ]
    found = nest(ask, [(1, 10, None, "a"), (1, 20, 30, "b")], ops=[50, 45], others=others)
    assert [(row[2], row[4], row[6], row[7]) for row in found] == [
        *[(10, 1, 50, 1), (20, 1, 30, 2), (30, 0, 30, 1), (40, 1, 50, 2)],
        *[(50, 0, 50, 1), (50, 0, 50, 0)],
    ]
    assert {row[6] for row in nest(ask, [(1, 10, None, "a")], ops=[3])} == {10}
    assert {row[6] for row in nest(ask, [(1, 10, None, "a"), (1, 11, 80, "b")])} == {80}


# ---------------------------------------------------------------------------------- opportunity
OPPORTUNITY = {
    "opportunity_window": "device BIGINT, cause VARCHAR, class VARCHAR, role VARCHAR, "
    "detail VARCHAR, recoverable_ns BIGINT, beside_ns BIGINT",
    "opportunity_evidence": "device BIGINT, cause VARCHAR, class VARCHAR, detail VARCHAR, "
    "gaps BIGINT, total_ns BIGINT, certain_ns BIGINT, inferred_ns BIGINT, long_ns BIGINT, "
    "longest_ns BIGINT",
    "budget_window": "device BIGINT, iteration_ns BIGINT, compute_absent_ns BIGINT, "
    "start_ns BIGINT, end_ns BIGINT",
    "gap_cut": "device BIGINT, evidence VARCHAR, start_ns BIGINT, end_ns BIGINT",
    "step_slowdown": "device BIGINT, is_material BOOLEAN, slowdown_ns DOUBLE",
    "unseen_wait": "device BIGINT, calls BIGINT, unseen BIGINT",
}
WINDOWS = [(0, 1000, 300, 100 * at, 100 * at + 100) for at in range(5)]


def opportunities(ask, **rows):
    rows = {"budget_window": WINDOWS, **rows}
    tables = {f"nsys.{n}": (columns, rows.get(n, [])) for n, columns in OPPORTUNITY.items()}
    return sorted(ask("steps/opportunity", tables), key=lambda row: row[:2])


def test_opportunity_measures_over_all_windows(ask):
    # launch: 10, 30, 20, 0 and none in the fifth window; two of the same key but one of each
    window = [(0, "launch", "launch", None, None, ns, ns // 10) for ns in (10, 30, 20, 0)]
    window += [(0, "blocking", "nccl", "comm", "ar", 9, 0)] * 3
    window += [(0, "blocking", "nccl", "comm", "rs", 9, 0)] * 3
    window += [(0, "blocking", "memcpy", "memcpy", "HtoD", 8, 0)] * 3
    window += [(0, "blocking", "norm", "compute", None, 8, 0)] * 4
    window += [(0, "blocking", "none", "compute", None, 0, 0)] * 5
    window += [(1, "launch", "launch", None, None, 7, 1)]
    evidence = [
        *[
            (0, "launch", "launch", None, 3, 60, 30, 15, 6, 25),
            (0, "blocking", "nccl", "ar", 1, 10, 9, 0, 0, 9),
        ],
        *[
            (1, "launch", "launch", None, 9, 9, 9, 9, 9, 9),
            (0, "blocking", "launch", None, 8, 1, 1, 1, 1, 1),
        ],
    ]
    budget = [*WINDOWS[:4], (0, 2000, 900, 400, 500), (1, 50, 20, 0, 50)]
    rows = opportunities(
        ask, opportunity_window=window, opportunity_evidence=evidence, budget_window=budget
    )
    assert {row[:1] + row[-3:] for row in rows} == {(0, 1000, 2000, 0), (1, 50, 50, 0)}
    assert [row[:20] for row in rows] == [
        (
            *(0, 1, "launch-starved", "launch", "launch", None, None, 10, 0, 30, 5, 3, 1000, 300),
            *(3, 50, 25, 10, 25, 10),
        ),
        (
            *(0, 2, "blocking nccl ar", "blocking", "nccl", "comm", "ar", 9, 0, 9, 5, 3, 1000, 300),
            *(1, 90, 0, 0, 9, 0),
        ),
        (
            *(0, 3, "blocking nccl rs", "blocking", "nccl", "comm", "rs", 9, 0, 9, 5, 3, 1000, 300),
            *(0, 0, 0, 0, 0, 0),
        ),
        (
            *(0, 4, "blocking norm", "blocking", "norm", "compute", None, 8, 0, 8, 5, 4, 1000, 300),
            *(0, 0, 0, 0, 0, 0),
        ),
        (
            *(0, 5, "blocking copy HtoD", "blocking", "memcpy", "memcpy", "HtoD", 8, 0, 8, 5, 3),
            *(1000, 300, 0, 0, 0, 0, 0, 0),
        ),
        (
            *(1, 1, "launch-starved", "launch", "launch", None, None, 7, 7, 7, 1, 1, 50, 20),
            *(9, 100, 100, 100, 9, pytest.approx(100 / 7)),
        ),
    ]


KINDS = [
    ("blocking", ["resolved", "none"], 0, "resolved"),
    ("blocking", ["unresolved"], 0, "lower bound"),
    ("blocking", ["inferred"], 0, "lower bound"),
    ("blocking", ["no_launch"], 0, "mixed bound"),
    ("launch", ["no_launch"], 0, "lower bound"),
    ("blocking", ["graph"], 9, "lower bound"),
    ("launch", ["resolved", "none"], 4, "resolved"),
    ("launch", ["resolved"], 5, "upper bound"),
    ("launch", ["inferred"], 0, "upper bound"),
    ("launch", ["graph"], 4, "lower bound"),
    ("launch", ["graph"], 5, "mixed bound"),
    ("launch", ["no_launch", "unresolved"], 0, "mixed bound"),
    # gaps that only touch the windows say nothing
    ("launch", [("graph", 500, 600), ("graph", -9, 0)], 0, "resolved"),
    ("launch", [("graph", 499, 600)], 0, "lower bound"),
    ("launch", [("graph", -9, 1)], 0, "lower bound"),
    ("launch", ["resolved"], 49, "upper bound"),
]
# the same with calls that made a stream wait and left no wait in the trace
UNSEEN = [
    *[("blocking", ["resolved"], 0, "lower bound"), ("launch", ["resolved"], 0, "upper bound")],
    *[("blocking", ["no_launch"], 0, "mixed bound"), ("launch", ["graph"], 0, "mixed bound")],
]
# the slowdown is material, by how much; then whether the bound is perturbed
SLOW = [(True, 5, True), (False, 5, False), (None, 1, True), (None, 0, False), (None, None, False)]


def each_device(rows):
    return [(device, *row) for device, listed in enumerate(rows) for row in listed]


def test_opportunity_tells_the_kind_of_bound(ask):
    # a device for each case: 100 in each of five windows that end at 500
    cases = [*KINDS, *[("blocking", [], 0, "resolved")] * (len(SLOW) + 1)]
    rows = opportunities(
        ask,
        opportunity_window=each_device(
            [[(cause, cause, "comm", None, 100, beside)] * 5 for cause, _, beside, _ in cases]
        ),
        gap_cut=each_device(
            [
                [(e, 0, 500) if isinstance(e, str) else e for e in evidence]
                for _, evidence, *_ in cases
            ]
        ),
        step_slowdown=[(len(KINDS) + at, *slow[:2]) for at, slow in enumerate(SLOW)],
        opportunity_evidence=each_device(
            [[(cause, cause, None, 1, 100, 100, 0, 0, 0)] for cause, *_ in cases]
        ),
        budget_window=each_device([[window[1:] for window in WINDOWS]] * len(cases)),
    )
    told = [row[20:22] for row in rows]
    assert told[: len(KINDS)] == [(kind, "high") for *_, kind in KINDS]
    assert told[len(KINDS) :] == [
        *[("resolved, perturbed", "medium") if bad else ("resolved", "high") for *_, bad in SLOW],
        ("resolved", "high"),
    ]


def test_opportunity_is_less_sure_where_something_else_may_be_the_reason(ask):
    """Waits that left no row, or another operation in half of launch-starved time."""
    half = [("launch", ["resolved"], beside, "upper bound") for beside in (49, 50, 100)]
    cases = [*UNSEEN, ("blocking", ["resolved"], 0, "resolved"), *half]
    rows = opportunities(
        ask,
        opportunity_window=each_device(
            [[(cause, cause, "comm", None, 100, beside)] * 5 for cause, _, beside, _ in cases]
        ),
        gap_cut=each_device([[(e, 0, 500) for e in evidence] for _, evidence, *_ in cases]),
        opportunity_evidence=each_device(
            [[(cause, cause, None, 1, 100, 100, 0, 0, 0)] for cause, *_ in cases]
        ),
        budget_window=each_device([[window[1:] for window in WINDOWS]] * len(cases)),
        unseen_wait=[*[(at, 9, 1) for at in range(len(UNSEEN))], (len(UNSEEN), 9, 0)],
    )
    assert [row[20] for row in rows] == [kind for *_, kind in cases]
    assert [row[21] for row in rows] == [
        *["medium"] * len(UNSEEN),
        *("high", "high", "medium", "medium"),
    ]
    assert [row[-1] for row in rows] == [*[1] * len(UNSEEN), *[0] * 4]


def test_unseen_wait(ask):
    """Calls that make a stream wait, once each, by device; those with a wait, or in a capture."""
    names = [(1, "cudaStreamWaitEvent_v3020"), (2, "cuStreamWaitEvent_ptsz"), (4, "cudaMalloc")]
    names += [(3, "cuStreamWaitValue32_v2"), (5, "cudaStreamWaitEvents no such call")]
    names += [(6, "my cudaStreamWaitEvent")]
    calls = [
        # seen, and the call inside it; of another process; in a capture; after it; of no device
        *[
            (1, 10, 1, 7),
            (2, 11, 1, 7),
            (1, 12, 2, 7),
            (1, 45, 3, 7),
            (2, 61, 3, 7),
            (1, 60, 4, 7),
            (1, 5, 5, 9),
        ],
        *[(3, 70, 6, 7), (4, 71, 7, 7), (6, 72, 8, 7), (1, 73, None, 7), (1, 74, 1, 8)],
    ]
    tables = {
        "nsys.string": ("string_id BIGINT, value VARCHAR", names),
        "nsys.call": (
            "name_id BIGINT, start_ns BIGINT, correlation_id BIGINT, process BIGINT", calls
        ),
        "nsys.stream_event": (
            "is_wait BOOLEAN, process BIGINT, correlation_id BIGINT",
            [("true", 7, 1), ("true", 7, 1), ("false", 7, 2), ("true", 9, 6), ("true", 8, 1)],
        ),
        "nsys.drive": ("process BIGINT, device BIGINT", [(7, 0), (7, 1), (8, 1), (None, 2)]),
        "nsys.capture_span": (
            "device BIGINT, start_ns BIGINT, end_ns BIGINT", [(0, 20, 40), (0, 45, 60)]
        ),
    }  # fmt: skip
    assert sorted(ask("steps/unseen_wait", tables)) == [(0, 4, 3), (1, 6, 4)]
    tables["nsys.string"] = (tables["nsys.string"][0], names[2:3])
    assert ask("steps/unseen_wait", tables) == []


def test_window_period(ask):
    windows = {
        0: [(0, 10), (20, 30), (41, 50), (60, 70)],  # 30 of 60 between
        1: [(0, 10), (10, 20), (20, 31)],  # none
        2: [(0, 15), (10, 12), (13, 14), (30, 31)],  # three at once: 15 of 30
        4: [(5, 9)],
    }
    rows = [(d, at, *each) for d, listed in windows.items() for at, each in enumerate(listed)]
    # the window between is dropped: what lies there is not known to be between
    rows += [(3, 0, 0, 10), (3, 2, 50, 60), (3, 3, 70, 80)]
    tables = {
        "nsys.steady": (
            "device BIGINT, iteration BIGINT, start_ns BIGINT, end_ns BIGINT", rows
        )
    }  # fmt: skip
    assert sorted(ask("steps/window_period", tables)) == [
        *[(0, 3, 10, 20, 60, 31), (1, 2, 10, 10, 20, 0), (2, 3, 2, 10, 30, 15)],
        (3, 1, 10, 20, 20, 10),
    ]


def test_shadow_producer(ask):
    """Copies by direction, collectives by type; gaps that end or begin in a steady window."""
    gaps = [
        *[(0, 5, 1, 1, 30), (0, 6, 1, 2, 20), (0, 7, 1, 3, 4), (0, 8, 1, 4, 9), (0, 9, 1, 1, 3)],
        *[(0, 2, 1, 5, 1), (0, 19, 2, 5, 2), (0, 30, 2, 5, 99), (0, 9, 1, 5, 0), (1, 9, 1, 1, 7)],
        (0, 9, 1, None, 0),
    ]
    tables = {
        "nsys.gap_cut": (
            "device BIGINT, start_ns BIGINT, segment BIGINT, producer_id BIGINT, "
            "shadowed_ns BIGINT",
            gaps,
        ),
        "nsys.segment": (
            "device BIGINT, segment BIGINT, start_ns BIGINT, end_ns BIGINT",
            [
                (device, at, start, end)
                for device in (0, 1)
                for at, (start, end) in enumerate([(-99, 5), (5, 20), (20, 99)])
            ],
        ),
        "nsys.window_segment": ("device BIGINT, segment BIGINT", [(0, 1), (0, 1), (1, 2)]),
        "nsys.stream_item": (
            "item_id BIGINT, device BIGINT, name_id BIGINT",
            [(1, 0, -1), (2, 0, -1), (3, 0, 6), (4, 1, 7), (5, 0, 8)],
        ),
        "nsys.op_name": (
            "name_id BIGINT, class VARCHAR, role VARCHAR, collective VARCHAR",
            [
                *[(-1, "memcpy", "memcpy", None), (6, "nccl", "comm", "AllReduce")],
                *[(7, "gemm", "compute", None), (8, "memset", "memset", None)],
            ],
        ),
        "nsys.copy_op": ("op_id BIGINT, direction VARCHAR", [(1, "HtoD"), (2, "DtoH"), (5, "x")]),
    }
    assert sorted(ask("steps/shadow_producer", tables)) == [
        *[(0, "copy DtoH", 20), (0, "copy HtoD", 33), (0, "gemm of another device", 9)],
        *[(0, "memset", 3), (0, "nccl AllReduce", 4)],
    ]


SURE = [
    *[([80, 100, 100, 100, 130], 95, "high"), ([80, 100, 100, 100, 131], 95, "medium")],
    *[([100] * 5, 94, "medium"), ([100] * 5, 50, "medium"), ([100] * 5, 49, "low")],
    *[([100] * 4, 100, "medium"), ([100] * 3, 100, "medium"), ([100] * 2, 100, "low")],
    *[([10] * 3, 100, "medium"), ([9] * 3, 100, "medium")],
]


def test_opportunity_tells_how_sure_it_is(ask):
    rows = opportunities(
        ask,
        opportunity_window=each_device(
            [[("blocking", "c", "comm", None, ns, 0) for ns in values] for values, _, _ in SURE]
        ),
        opportunity_evidence=each_device(
            [[("blocking", "c", None, 1, 100, certain, 0, 0, 0)] for _, certain, _ in SURE]
        ),
        budget_window=each_device(
            [[window[1:] for window in WINDOWS[: len(values)]] for values, _, _ in SURE]
        ),
    )
    assert [row[21] for row in rows] == [confidence for *_, confidence in SURE]
    assert [row[22] for row in rows] == [values[0] >= 10 for values, _, _ in SURE]  # 1 % of 1 000


# --------------------------------------------------------------------------------------- ranges
def test_range_path_is_made_of_names_from_the_outside_in(ask):
    def packed(*names):
        listed = [(at << 24) + name for at, name in enumerate(names, 1)]
        return (*listed, *[None] * (8 - len(listed)))

    nest = [
        *[(1, 1, *packed(2)), (1, 2, *packed(2, 1)), (1, 2, *packed(2, 1)), (2, 2, *packed(1, 2))],
        *[
            (1, 8, *packed(*[1] * 8)),
            (1, 9, *packed(*[1] * 8)),
            (0, 1, *packed(3)),
            (0, 0, *packed()),
        ],
    ]
    levels = ", ".join(f"level_{at} BIGINT" for at in range(1, 9))
    tables = {
        "nsys.range_nest": (f"kind BIGINT, depth BIGINT, {levels}", nest),
        "nsys.nvtx": (
            "event_type BIGINT, text VARCHAR",
            [(60, "free 1"), (71, "free 2"), (59, "b"), (34, "b")],
        ),
        "nsys.range_name": (
            "stem VARCHAR, name_no BIGINT, name VARCHAR",
            [("a", 1, "A"), ("b", 2, "B"), ("c", 3, "C"), ("free *", 4, "free *"), ("aa", 1, "A")],
        ),
    }
    assert sorted(ask("steps/range_path", tables)) == [
        (1, False, 8, [1] * 8, " / ".join("A" * 8)),
        (2, False, 2, [1, 2], "A / B"),
        (3, False, 1, [2], "B"),
        (4, False, 2, [2, 1], "B / A"),
        (5, True, 1, [4], "free *"),
    ]


NAMED = [
    ("autograd::engine::evaluate_function: optimizer", "backward"),
    ("AddmmBackward0", "backward"),
    ("autograd forward-backward", None),
    ("fwd_bwd evaluation", None),
    ("validation data loader", "evaluation"),
    ("data_loader get batch save_checkpoint", "data"),
    ("fetch data load-checkpoint", "data"),
    ("checkpoint save all-grads-sync", "checkpoint"),
    ("optimizer grads reduce", "grad_sync"),
    ("finalize-model-grads", "grad_sync"),
    ("Optimizer.step clip_grad backward", "optimizer"),
    ("zero_grad backward", "optimizer"),
    ("backward", "backward"),
    ("forward", "forward"),
    ("model.training_step", "forward"),
    ("training_steps", None),
    # what two rules know belongs to the first of them
    ("autograd::engine optimizer", "backward"),
    ("forward backward evaluation", None),
    ("eval dataloader", "evaluation"),
    ("prefetch load batch save_checkpoint", "data"),
    ("save_checkpoint grads sync", "checkpoint"),
    ("grads sync of the optimizer", "grad_sync"),
    ("clip_grad of backward", "optimizer"),
    ("bwd x fwd", "backward"),
    ("fwd.training_step", "forward"),
]


def test_range_phase_of_a_name(ask):
    names = [(at, name) for at, (name, _) in enumerate(NAMED)]
    tables = {
        "nsys.range_name": ("name_no BIGINT, name VARCHAR", names),
        "nsys.range_path": (
            "path_no BIGINT, depth BIGINT, name_nos BIGINT[]",
            [(at, 1, [at]) for at, _ in names],
        ),
    }
    assert sorted(ask("steps/range_phase", tables)) == [
        (at, phase, True) for at, (_, phase) in enumerate(NAMED) if phase
    ]


def test_range_phase_of_a_path_is_that_of_the_innermost_named(ask):
    names = ["forward", "backward", "optimizer", "other"]
    paths = {1: [1], 2: [2, 1], 3: [1, 3], 4: [3, 4], 5: [4, 4], 6: [1, 2, 4], 7: [2, 3, 1]}
    tables = {
        "nsys.range_name": ("name_no BIGINT, name VARCHAR", list(enumerate(names, 1))),
        "nsys.range_path": (
            "path_no BIGINT, depth BIGINT, name_nos BIGINT[]",
            [(path, len(of), of) for path, of in paths.items()],
        ),
    }
    assert sorted(ask("steps/range_phase", tables)) == [
        *[(1, "forward", True), (2, "backward", True), (3, "optimizer", True)],
        *[(4, "optimizer", False), (6, "backward", False), (7, "backward", True)],
    ]


def test_phase_state_is_where_exactly_one_pass_is_open(ask):
    phases = ["forward", "backward", "grad_sync", "optimizer", "data"]
    # alone one after the other, then each overlaps the next; the last is of a start/end range
    states = [(1, 10 * at, 10 * at + 9, at) for at in range(5)]
    states += [(1, 100 + 10 * at, 115 + 10 * at, at) for at in range(4)]
    states += [(1, 200, 220, 0), (1, 205, 210, 0), (1, 202, 204, 4), (2, 0, 5, 1), (2, 4, 9, 1)]
    instances = [
        (1, -1, 300, 320, 3),
        (1, -2, 310, 310, 2),
        (1, 1, 305, 306, 1),
        (1, -3, 315, 330, 9),
    ]
    tables = {
        "nsys.range_state": (
            "process BIGINT, start_ns BIGINT, end_ns BIGINT, path_no BIGINT",
            states,
        ),
        "nsys.range_instance": (
            "process BIGINT, range_no BIGINT, start_ns BIGINT, end_ns BIGINT, path_no BIGINT",
            instances,
        ),
        "nsys.range_phase": ("path_no BIGINT, phase VARCHAR", list(enumerate(phases))),
    }
    found = sorted(ask("steps/phase_state", tables))
    merged = []
    for process, start, end, phase in found:
        if merged and merged[-1][0] == process and merged[-1][2:] == [start, phase]:
            merged[-1][2] = end
        else:
            merged.append([process, start, end, phase])
    assert merged == [
        *[[1, 10 * at, 10 * at + 9, phases[at]] for at in range(4)],
        *[[1, 100, 110, "forward"], [1, 115, 120, "backward"], [1, 125, 130, "grad_sync"]],
        *[[1, 135, 145, "optimizer"], [1, 200, 220, "forward"], [1, 300, 320, "optimizer"]],
        [2, 0, 9, "backward"],
    ]


# --------------------------------------------------------------------- cut at borders of stretches
BORDERS = (
    "device BIGINT, segment BIGINT, start_ns BIGINT, end_ns BIGINT",
    [
        *[(0, 1, -99, 0), (0, 2, 0, 100), (0, 3, 100, 150), (0, 4, 150, 200), (0, 5, 200, 999)],
        *[(1, 1, -99, 120), (1, 2, 120, 999)],
    ],
)


def test_blocking_segment_is_cut_at_borders(ask):
    # gap at 10: a part 10-100 that ends at a border, and one from 100 over two borders to 170
    parts = [(0, 10, 7, 1, 10, 100), (0, 10, 7, 2, 100, 170), (1, 10, 8, 3, 10, 121)]
    parts += [(0, 180, 9, 1, 180, 190), (0, 180, 9, 2, 190, 195)]
    tables = {
        "nsys.segment": BORDERS,
        "nsys.blocking_part": (
            "device BIGINT, gap_start_ns BIGINT, gap_op_id BIGINT, op_id BIGINT, "
            "start_ns BIGINT, end_ns BIGINT",
            parts,
        ),
        "nsys.gap_cut": (
            "device BIGINT, start_ns BIGINT, evidence VARCHAR",
            [(0, 10, "resolved"), (0, 180, "inferred"), (1, 10, "graph"), (1, 180, "x")],
        ),
        "nsys.op": (
            "op_id BIGINT, name_id BIGINT, process BIGINT, context_id BIGINT, stream_id BIGINT",
            [(at, 10 * at, 5, 6, 7 + at) for at in (1, 2, 3, 7, 8, 9)],
        ),
    }
    assert sorted(ask("steps/blocking_segment", tables)) == [
        (0, 2, 10, 5, 6, 8, 70, "resolved", 1, 90),
        (0, 3, 20, 5, 6, 9, 70, "resolved", 1, 50),
        (0, 4, 10, 5, 6, 8, 90, "inferred", 1, 10),
        (0, 4, 20, 5, 6, 9, 70, "resolved", 0, 20),
        (0, 4, 20, 5, 6, 9, 90, "inferred", 1, 5),
        (1, 1, 30, 5, 6, 10, 80, "graph", 1, 110),
        (1, 2, 30, 5, 6, 10, 80, "graph", 0, 1),
    ]


def test_copy_piece_is_cut_at_borders_and_counted_once_where_pieces_overlap(ask):
    def copy(op_id, start, end, *, device=0, stream=7, direction="HtoD", way="host"):
        place = (op_id, device, 5, 6, stream, op_id, start, end, 1000 + op_id)
        return (*place, direction, way, "a", "b")

    def elsewhere(row, process, context):
        return (*row[:2], process, context, *row[4:])

    others = [elsewhere(copy(7, 97, 99), 5, 9), elsewhere(copy(8, 96, 98), 4, 6)]
    rows = [
        *others,
        *[copy(1, 90, 170), copy(2, 95, 110), copy(3, 96, 99, stream=8)],
        *[
            copy(4, 96, 98, direction="DtoH"),
            copy(5, 50, 120, device=1),
            copy(6, 97, 99, way="peer"),
        ],
    ]
    tables = {
        "nsys.segment": BORDERS,
        "nsys.copy_op": (
            "op_id BIGINT, device BIGINT, process BIGINT, context_id BIGINT, stream_id BIGINT, "
            "correlation_id BIGINT, start_ns BIGINT, end_ns BIGINT, bytes BIGINT, "
            "direction VARCHAR, way VARCHAR, source VARCHAR, destination VARCHAR",
            rows,
        ),
    }
    found = ask("steps/copy_piece", tables)
    # nothing of theirs is in a stream of the same number elsewhere, but the engine is one
    assert sorted(row[9:] for row in found if row[2:4] != (5, 6)) == [
        *[(1, 1007, 2, 2, 2, 0), (1, 1008, 2, 2, 2, 0)],
    ]
    found = [row for row in found if row[2:4] == (5, 6)]
    assert {row[7:9] for row in found} == {("a", "b")}
    # count, bytes, whole, here, new of its stream and way, new of its direction
    assert sorted((*row[:2], row[4], *row[5:7], *row[9:]) for row in found) == [
        (0, 2, 7, "DtoH", "host", 1, 1004, 2, 2, 2, 2),
        (0, 2, 7, "HtoD", "host", 1, 1001, 80, 10, 10, 10),
        (0, 2, 7, "HtoD", "host", 1, 1002, 15, 5, 0, 0),
        (0, 2, 7, "HtoD", "peer", 1, 1006, 2, 2, 2, 0),
        (0, 2, 8, "HtoD", "host", 1, 1003, 3, 3, 3, 0),
        (0, 3, 7, "HtoD", "host", 0, 0, 0, 10, 0, 0),
        (0, 3, 7, "HtoD", "host", 0, 0, 0, 50, 50, 50),
        (0, 4, 7, "HtoD", "host", 0, 0, 0, 20, 20, 20),
        (1, 1, 7, "HtoD", "host", 1, 1005, 70, 70, 70, 70),
    ]


def test_copy_op_tells_the_way_of_a_copy(ask):
    # kind of the copy, of source and destination, devices; then direction and way
    cases = [
        *[((0, 0, 2, 0, 0), ("unknown", "unknown")), ((1, 0, 2, 0, 0), ("HtoD", "host"))],
        *[((2, 2, 0, 0, 0), ("DtoH", "host")), ((3, 0, 2, 0, 0), ("HtoA", "host"))],
        *[((4, 2, 0, 0, 0), ("AtoH", "host")), ((5, 2, 2, 0, 0), ("AtoA", "device"))],
        *[((6, 2, 2, 0, 0), ("AtoD", "device")), ((7, 2, 2, 0, 0), ("DtoA", "device"))],
        *[((8, 2, 2, 0, 0), ("DtoD", "device")), ((8, 2, 2, 0, 1), ("DtoD", "peer"))],
        *[((9, 0, 0, 0, 0), ("HtoH", "host")), ((10, 2, 2, 0, 1), ("PtoP", "peer"))],
        *[
            ((11, 0, 2, 0, 0), ("unified HtoD", "host")),
            ((12, 2, 0, 0, 0), ("unified DtoH", "host")),
        ],
        *[
            ((13, 2, 2, 0, 0), ("unified DtoD", "device")),
            ((13, 2, 2, 0, 1), ("unified DtoD", "peer")),
        ],
        *[((1, 2, 2, 0, 1), ("HtoD", "staged peer")), ((2, 5, 2, 0, 1), ("DtoH", "staged peer"))],
        *[((1, 2, 5, 0, 1), ("HtoD", "staged peer")), ((1, 5, 3, 0, 1), ("HtoD", "host"))],
        *[((14, 2, 2, 0, 1), ("unknown", "unknown")), ((7, 2, 2, 0, 1), ("DtoA", "device"))],
        ((None, None, None, None, None), ("unknown", "unknown")),
    ]
    ops = [((1 << 40) + at, "memcpy") for at in range(len(cases))]
    ops += [((2 << 40) + 1, "memset"), (1, "kernel"), ((1 << 40) + 99, "memcpy")]
    tables = {
        "nsys.memcpy": (
            "row_id BIGINT, bytes BIGINT, copy_kind BIGINT, src_kind BIGINT, dst_kind BIGINT, "
            "src_device BIGINT, dst_device BIGINT",
            [(at, 64 + at, *case) for at, (case, _) in enumerate(cases)],
        ),
        "nsys.memset": ("row_id BIGINT, bytes BIGINT, mem_kind BIGINT", [(1, 8, 2)]),
        "nsys.op": (
            "op_id BIGINT, kind VARCHAR, device BIGINT, process BIGINT, context_id BIGINT, "
            "stream_id BIGINT, correlation_id BIGINT, start_ns BIGINT, end_ns BIGINT",
            [(*op, 0, 5, 6, 7, 8, 1, 2) for op in ops],
        ),
    }
    found = sorted(ask("steps/copy_op", tables))
    assert [(row[0] - (1 << 40), *row[8:11]) for row in found[:-1]] == [
        (at, 64 + at, *told) for at, (_, told) in enumerate(cases)
    ]
    assert found[-1][:1] + found[-1][8:11] == ((2 << 40) + 1, 8, "memset", "memset")
