"""Whether a change stands out: drift, shift and noise over figures made by hand.

What is expected is counted here in another way: U by looking at every pair of windows, p from all
choices of ranks or from the complementary error function of the standard library.
"""

import math
from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import combinations, pairwise
from statistics import NormalDist

import pytest

SAMPLE = "pair BIGINT, side VARCHAR, number BIGINT, item VARCHAR, value_ns BIGINT"
EXACT = "base_n BIGINT, new_n BIGINT, u BIGINT, at_most DOUBLE"


def sampled(item, *, pair=0, **sides):
    """Rows of pair.sample, the later windows first."""
    return [
        (pair, side, number, item, value)
        for side, values in sides.items()
        for number, value in reversed([*enumerate(values)])
    ]


# ---------------------------------------------------------------------------------------- drift
def alike(*sides):
    """How far neighbours correlate: of both sides together, each around its own mean."""
    off = [[Fraction(value) - Fraction(sum(of), len(of)) for value in of] for of in sides]
    squares = sum(value * value for of in off for value in of)
    return sum(a * b for of in off for a, b in pairwise(of)) / squares


SLOW = [2, 8, 7, 2, 5, 6, 5, 4, 0, 2, 3, 2, 0, 0, 2, 0]
BLOCKS = [0, 0, 0, 6, 6, 6]


def test_drift(ask):
    rows = [
        *sampled("blocks", base=BLOCKS, new=[100 + value for value in BLOCKS]),
        *sampled("blocks", pair=1, base=BLOCKS),  # half alike, which six windows may be by chance
        *sampled("trend", base=range(100)),
        *sampled("trend", pair=1, base=[1000, 0, 1000, 0]),
        *sampled("constant", base=[5, 5, 5], new=[7, 7, 7]),
        *sampled("one", base=[5], new=[9]),
        *sampled("swinging", base=[1, 9] * 6),
    ]
    found = {row[:2]: row[2:] for row in ask("pairs/drift", {"pair.sample": (SAMPLE, rows)})}
    assert alike(BLOCKS, BLOCKS) == alike(BLOCKS) == 0.5
    assert alike(range(100)) > 0.95
    assert found == {
        (0, "blocks"): (True, 3),
        (1, "blocks"): (False, 1),
        (1, "trend"): (False, 1),
        # more than 0.9 widens no further
        (0, "trend"): (True, pytest.approx(float(1 + alike(range(100))) / 0.1)),
        (0, "constant"): (False, 1),
        (0, "one"): (False, 1),
        (0, "swinging"): (False, 1),
    }


def test_drift_is_more_than_chance_allows(ask):
    # 16 windows: 1.64 / 4, and neighbours that correlate by exactly that
    assert alike(SLOW) == Fraction(41, 100)
    rows = sampled("bound", base=SLOW)
    ((*_, is_drifting, widening),) = ask("pairs/drift", {"pair.sample": (SAMPLE, rows)})
    assert (is_drifting, widening) == (False, 1)


# ---------------------------------------------------------------------------------------- shift
@cache
def ways(u, base, new):
    """In how many orders of two sides without equal values is U just u?"""
    if u < 0 or min(base, new) < 0:
        return 0
    if base == 0 or new == 0:
        return int(u == 0)
    # the greatest value is one of the base, and beats all new ones, or it is of the new side
    return ways(u - new, base - 1, new) + ways(u, base, new - 1)


@cache
def at_most(base, new):
    """P(U <= u) for every u."""
    counted = [ways(u, base, new) for u in range(base * new + 1)]
    return tuple(sum(counted[: u + 1]) / sum(counted) for u in range(base * new + 1))


def test_the_ways_of_u_are_all_choices_of_ranks():
    chosen = Counter(sum(ranks) - 6 for ranks in combinations(range(1, 8), 3))
    assert [ways(u, 3, 4) for u in range(13)] == [chosen[u] for u in range(13)]


def exact(*shapes):
    rows = [
        (*shape, u, p) for shape in dict.fromkeys(shapes) for u, p in enumerate(at_most(*shape))
    ]
    return {"pair.u_exact": (EXACT, rows)}


def bounds(ask, base, new, *, widening=None, known=None, **variables):
    tables = {
        "pair.sample": (SAMPLE, sampled("x", base=base, new=new) + sampled("y", base=[1])),
        "pair.measured": (
            "pair BIGINT, item VARCHAR, base_n BIGINT, new_n BIGINT",
            [(0, "x", len(base), len(new))],
        ),
        "pair.drift": (
            "pair BIGINT, item VARCHAR, is_drifting BOOLEAN, widening DOUBLE",
            [
                *[(0, "x", widening is not None, widening or 1.0)],
                *[(1, "x", False, 99.0), (0, "y", True, 99.0)],
            ],
        ),
        "pair.u_exact": (EXACT, [(len(base), len(new), u, p) for u, p in enumerate(known or [])]),
    }
    return [row[2:] for row in ask("pairs/shift", tables, **variables)]


def apart(base, new):
    """Figures whose differences are all different, and these in their order."""
    base, new = list(range(base)), [1000 * value for value in range(new)]
    return base, new, sorted(b - a for a in base for b in new)


def test_shift_takes_the_places_that_belong_to_u(ask):
    base, new, differences = apart(5, 4)
    for known, alpha, below in (
        ([0.02, 0.03, 0.05, 0.3], 0.05, 0),
        ([0.02, 0.025, 0.026, 0.3], 0.05, 1),  # at most a half of it on each side
        ([0.02, 0.025, 0.026, 0.3], 0.052, 2),
        ([0.02, 0.025, 0.026, 0.3], 0.6, 3),
    ):
        found = bounds(ask, base, new, known=known, interval_alpha=alpha)
        assert found == [(differences[below], differences[-1 - below])]
    assert bounds(ask, base, new, known=[0.02, 0.03]) == [(differences[0], differences[-1])]
    # too few windows, and numbers that leave nothing between the bounds
    assert bounds(ask, base, new, known=[0.0251]) == []
    assert bounds(ask, [1], [3], known=[0.01, 0.02]) == []
    assert bounds(ask, [1], [3], known=[0.01]) == [(2, 2)]
    assert bounds(ask, [1, 2], [5, 7], known=[0.01] * 2) == [(4, 5)]
    assert bounds(ask, [1, 2], [5, 7], known=[0.01] * 3) == []
    # other numbers of windows tell nothing
    assert bounds(ask, base, new, known=()) == []


@pytest.mark.parametrize(
    ("base", "new", "alpha", "widening"),
    [
        *[(21, 20, 0.05, None), (20, 21, 0.01, None), (8, 7, 0.05, 1.0), (8, 7, 0.05, 2.25)],
        *[(200, 190, 0.05, None), (200, 190, 0.4, None), (190, 200, 0.0005, 1.5)],
    ],
)
def test_shift_of_many_windows_takes_the_normal_distribution(ask, base, new, alpha, widening):
    base, new, differences = apart(base, new)
    total = len(differences)
    spread = math.sqrt(total * (len(base) + len(new) + 1) / 12 * (widening or 1))
    below = total / 2 - 0.5 - NormalDist().inv_cdf(1 - alpha / 2) * spread
    # the quantile is good to 4.5e-4
    error = 4.5e-4 * spread
    options = [
        (differences[at], differences[-1 - at])
        for at in range(math.floor(below - error), math.floor(below + error) + 1)
    ]
    (found,) = bounds(ask, base, new, widening=widening, interval_alpha=alpha)
    assert found in options and len(options) < 3


def test_shift_of_400_pairs_of_windows_is_exact(ask):
    base, new, differences = apart(20, 20)
    assert bounds(ask, base, new, known=[0.02, 0.03]) == [(differences[0], differences[-1])]
    assert bounds(ask, base, new, known=[0.02, 0.03], widening=1.0) != [
        (differences[0], differences[-1])
    ]


def test_shift_keeps_pairs_and_quantities_apart(ask):
    sides = {
        (0, "x"): ([1, 5, 9], [40, 20, 10]),
        (0, "y"): ([100, 300, 500], [7, 8, 1]),
        (1, "x"): ([2, 3, 2], [2000, 1000]),
        (1, "y"): (range(250), [10**6, 10**5, 10**7]),
    }
    rows = [
        row
        for (pair, item), (base, new) in sides.items()
        for row in sampled(item, pair=pair, base=base, new=new)
    ]
    tables = {
        "pair.sample": (SAMPLE, rows),
        "pair.measured": (
            "pair BIGINT, item VARCHAR, base_n BIGINT, new_n BIGINT",
            [(*key, len(base), len(new)) for key, (base, new) in sides.items()],
        ),
        "pair.drift": (
            "pair BIGINT, item VARCHAR, is_drifting BOOLEAN, widening DOUBLE",
            [(*key, False, 1.0) for key in sides],
        ),
        # the second difference, the third, and of two new windows the first
        "pair.u_exact": (
            EXACT,
            [(3, 3, 0, 0.01), (3, 3, 1, 0.02), (3, 3, 2, 0.03), (3, 2, 0, 0.02), (2, 3, 2, 0.01)],
        ),
    }
    middle = 300 - 0.5 - NormalDist().inv_cdf(0.975) * math.sqrt(600 * 204 / 12)
    kept = [at for at in range(250) if at % 5]
    many = sorted(new - base for base in kept for new in (10**6, 10**5, 10**7))
    expected = []
    for (pair, item), (base, new) in sides.items():
        differences = sorted(b - a for a in base for b in new)
        low, high = {(0, "x"): (1, -2), (0, "y"): (1, -2), (1, "x"): (0, -1)}.get(
            (pair, item), (0, 0)
        )
        expected.append((pair, item, differences[low], differences[high]))
    expected[-1] = (1, "y", many[math.floor(middle)], many[-1 - math.floor(middle)])
    assert sorted(ask("pairs/shift", tables)) == expected


def test_shift_of_drifting_windows_may_have_no_bounds(ask):
    # 3 windows each: 4.5 - 0.5 - 1.96 x 2.29 < 0
    assert bounds(ask, [1, 2, 3], [4, 5, 6], widening=1.0) == []
    # at 0.1: 4 - 1.645 x 2.29 = 0.23
    assert bounds(ask, [1, 2, 3], [4, 5, 6], widening=1.0, interval_alpha=0.1) == [(1, 5)]


def test_shift_spreads_200_windows_evenly(ask):
    # of 400 windows every second one, of 250 four of five; 200 are taken as they are
    for n, kept in (
        (400, range(1, 400, 2)),
        (201, range(1, 201)),
        (250, [at for at in range(250) if at % 5]),
        (200, range(200)),
    ):
        base = [at * at for at in range(n)]
        new = [10**6 * at for at in range(5)]
        differences = sorted(b - base[at] for at in kept for b in new)
        assert len(differences) == 1000
        spread = math.sqrt(1000 * 206 / 12)
        below = math.floor(500 - 0.5 - NormalDist().inv_cdf(0.975) * spread)
        expected = (differences[below], differences[-1 - below])
        assert bounds(ask, base, new) == [expected]
        # on the other side
        ((low, high),) = bounds(ask, new, base)
        assert (-high, -low) == expected
    # the exact places of 201 windows are not those of the 200 that are taken
    assert bounds(ask, range(201), [1000], known=[0.01]) == []
    assert bounds(ask, range(200), [1000], known=[0.01]) == [(801, 1000)]


# ---------------------------------------------------------------------------------------- noise
def judged(ask, figures, *, pair=0, drift=(), shift=(), iteration_ns=100, other=None, **variables):
    """Verdicts by item; figures: {item: (base, new)}, shift: {item: (low, high)}."""
    tables = inputs(figures, pair, dict(drift), dict(shift), iteration_ns)
    for name, (_, rows) in (other or {}).items():
        kept = tables[name][1]
        tables[name] = (tables[name][0], kept + [row for row in rows if row not in kept])
    names = [
        *("pair", "item", "parent", "class", "base_n", "new_n", "base_ns", "new_ns"),
        *("base_min_ns", "base_max_ns", "new_min_ns", "new_max_ns", "base_mean_ns"),
        *("new_mean_ns", "u", "p_value", "low_ns", "high_ns", "stands_out", "material_ns"),
        *("verdict", "basis"),
    ]
    found = [dict(zip(names, row, strict=True)) for row in ask("pairs/noise", tables, **variables)]
    assert len(found) == len({(row["pair"], row["item"]) for row in found})
    return {row["item"]: row for row in found if row["pair"] == pair}


def inputs(figures, pair, drift, shift, iteration_ns):
    def middle(values):
        return (sorted(values)[(len(values) - 1) // 2] + sorted(values)[len(values) // 2]) // 2

    measured = [
        (
            *(pair, item, f"parent of {item}", f"class of {item}", len(base), len(new)),
            *(middle(base), middle(new), min(base), max(base), min(new), max(new)),
            *(sorted(base) == sorted(new), sum(base) / len(base), sum(new) / len(new)),
        )
        for item, (base, new) in figures.items()
    ]
    shapes = [(len(base), len(new)) for base, new in figures.values()]
    return {
        "pair.sample": (
            SAMPLE,
            [
                row
                for item, (base, new) in figures.items()
                for row in sampled(item, pair=pair, base=base, new=new)
            ],
        ),
        "pair.measured": (
            "pair BIGINT, item VARCHAR, parent VARCHAR, class VARCHAR, base_n BIGINT, "
            "new_n BIGINT, base_ns BIGINT, new_ns BIGINT, base_min_ns BIGINT, base_max_ns BIGINT, "
            "new_min_ns BIGINT, new_max_ns BIGINT, is_identical BOOLEAN, base_mean_ns DOUBLE, "
            "new_mean_ns DOUBLE",
            measured,
        ),
        "pair.window": (
            "pair BIGINT, side VARCHAR, n BIGINT, iteration_ns BIGINT",
            [(pair, "base", 9, iteration_ns), (pair, "new", 9, 7 * iteration_ns)],
        ),
        "pair.drift": (
            "pair BIGINT, item VARCHAR, is_drifting BOOLEAN, widening DOUBLE",
            [(pair, item, item in drift, drift.get(item, 1.0)) for item in figures],
        ),
        "pair.shift": (
            "pair BIGINT, item VARCHAR, low_ns BIGINT, high_ns BIGINT",
            [(pair, item, *shift[item]) for item in figures if item in shift],
        ),
        **exact(*(shape for shape in shapes if math.prod(shape) <= 400)),
    }


def probable(base, new, widening=None):
    """U and p, as the header and docs/compare.md say."""
    u = sum((b > n) + (b == n) / 2 for b in base for n in new)
    pairs, total = len(base) * len(new), len(base) + len(new)
    ties = sum(t**3 - t for t in Counter([*base, *new]).values())
    variance = pairs / 12 * (total + 1 - ties / (total * (total - 1))) * (widening or 1)
    off = max(abs(u - pairs / 2) - 0.5, 0)
    if off == 0:
        return u, 1.0
    if widening is None and pairs <= 400 and (ties == 0 or u in (0, pairs)):
        return u, min(1.0, 2 * at_most(len(base), len(new))[int(min(u, pairs - u))])
    return u, math.erfc(off / math.sqrt(2 * variance))


FEW, MANY = [3, 9, 4, 1, 7], [2, 5, 8, 6, 15, 14]


@pytest.mark.parametrize(
    ("base", "new", "widening"),
    [
        *[(FEW, MANY, None), (MANY, FEW, None), (FEW, MANY, 2.5), ([1, 2, 3], [4, 5, 6], None)],
        *[([1, 1, 2], [3, 3, 3, 3], None), ([3, 3, 3, 3], [1, 1, 2], None)],
        *[([1, 1, 2], [3, 3, 3, 3], 1.5), ([1, 2, 2, 3, 3], [2, 3, 3, 4, 4, 4, 5], None)],
        *[([5, 5], [5, 5, 5], None), ([1, 4], [2, 3], None), ([1], [2], None)],
        *[([1], [2, 3], 1.0), ([1, 4], [2, 3], 1.0), ([5, 5], [5, 5, 5], 2.0)],
        *[([1, 2, 3], [2, 3, 4], None), ([2, 2, 2], [2, 2, 3], None)],
        (range(0, 80, 2), range(11, 31, 2), None),  # 400 pairs of windows
        (range(0, 82, 2), range(11, 31, 2), None),  # 410
        (range(0, 80, 2), range(31, 61, 2), None),
        (range(0, 40), range(10, 50), None),
    ],
)
def test_noise_tells_how_probable_a_difference_is(ask, base, new, widening):
    drift = {} if widening is None else {"x": widening}
    found = judged(ask, {"x": (base, new)}, drift=drift)["x"]
    u, p = probable(base, new, widening)
    assert found["u"] == u
    assert found["p_value"] == (1 if p == 1 else pytest.approx(p, rel=1e-9, abs=2e-7))
    assert (found["base_n"], found["new_n"]) == (len(base), len(new))


def verdict(found):
    return found["verdict"], found["basis"]


def test_noise_tells_what_stands_out_and_matters(ask):
    low, high = [100, 101, 102, 103, 104], [106, 105, 107, 108, 109]
    figures = dict.fromkeys(("iteration", "period", "blocking"), (low, high))
    turned = dict.fromkeys(figures, (high, low))
    # 1 % of 500 is what it takes
    for ns, words in ((500, ("slower", "slower", "more")), (501, ("small",) * 3)):
        found = judged(ask, figures, iteration_ns=ns)
        assert [verdict(row) for row in found.values()] == [(word, "p") for word in words]
        assert {row["material_ns"] for row in found.values()} == {ns / 100}
        assert all(row["stands_out"] for row in found.values())
    for ns, words in ((500, ("faster", "faster", "less")), (501, ("small",) * 3)):
        found = judged(ask, turned, iteration_ns=ns)
        assert [verdict(row) for row in found.values()] == [(word, "p") for word in words]
    assert verdict(judged(ask, figures, min_change_pct=5.01)["iteration"]) == ("small", "p")
    assert verdict(judged(ask, figures, min_change_pct=5)["iteration"]) == ("slower", "p")
    # 2 of 252 choices of ranks are as far apart
    assert found["iteration"]["p_value"] == 2 / 252
    assert verdict(judged(ask, figures, alpha=2 / 252)["iteration"]) == ("slower", "p")
    few = ("cannot tell", "too few windows")
    assert verdict(judged(ask, figures, alpha=2 / 253)["iteration"]) == few


def test_noise_passes_on_what_was_measured(ask):
    found = judged(ask, {"x": ([1, 2, 4], [9, 7, 8, 30])}, pair=3, shift={"x": (5, 8)})["x"]
    assert found == {
        **{"pair": 3, "item": "x", "parent": "parent of x", "class": "class of x"},
        **{"base_n": 3, "new_n": 4, "base_ns": 2, "new_ns": 8, "base_min_ns": 1},
        **{"base_max_ns": 4, "new_min_ns": 7, "new_max_ns": 30},
        **{"base_mean_ns": pytest.approx(7 / 3), "new_mean_ns": 13.5, "low_ns": 5, "high_ns": 8},
        **{"u": 0, "p_value": pytest.approx(2 / 35), "stands_out": False, "material_ns": 1},
        **{"verdict": "cannot tell", "basis": "too few windows"},
    }


@pytest.mark.parametrize(
    ("base", "new", "is_apart"),
    [
        *[([0, 1, 2], [9, 10, 11], True), ([0, 1, 2], [8, 9, 10], False)],  # 3 times 2
        *[([9, 10, 11], [0, 1, 2], True), ([8, 9, 10], [0, 1, 2], False)],
        *[([0, 1, 1], [8, 9, 10], True), ([0, 0, 0], [7, 8, 9], True)],
        *[([0, 1, 2], [9, 9, 9], True), ([0, 1, 2], [8, 8, 8], False)],
        *[([0, 0, 0], [6, 7, 8], False), ([0, 0, 0], [1, 1, 1], True)],
        *[([0, 0], [9, 9, 9], False), ([0, 0, 0, 0], [9, 9], False)],
    ],
)
def test_noise_of_few_windows_takes_ranges_far_apart(ask, base, new, is_apart):
    found = judged(ask, {"x": (base, new)})["x"]
    changed = "more" if new > base else "less"
    expected = (changed, "ranges far apart") if is_apart else ("cannot tell", "too few windows")
    assert verdict(found) == expected
    assert found["stands_out"] is is_apart


def test_noise_of_two_windows_never_stands_out(ask):
    # 2 of 6 choices of ranks
    figures = {"x": ([0, 1], [900, 901])}
    assert verdict(judged(ask, figures, alpha=0.9)["x"]) == ("cannot tell", "too few windows")


BELOW = list(range(0, 40, 4))
SAME = (BELOW, [value + 1 for value in BELOW])


def test_noise_tells_no_change_by_the_bounds(ask):
    figures = {"x": SAME}
    for shift, is_within in (
        *[((-10, 10), True), ((-11, 10), False), ((-10, 11), False), ((3, 4), True)],
        *[((11, 12), False), ((-12, -11), False)],
    ):
        found = judged(ask, figures, shift={"x": shift}, iteration_ns=1000)["x"]
        assert not found["stands_out"]
        assert verdict(found) == (
            ("no change", "bounds") if is_within else ("cannot tell", "p and bounds")
        )


def test_noise_tells_no_change_of_three_windows_by_all_differences(ask):
    within, few = ("no change", "ranges"), ("cannot tell", "too few windows")
    for base, new, expected in (
        *[([10, 12, 15], [11, 13, 20], within), ([10, 12, 15], [11, 13, 21], few)],
        *[([11, 13, 20], [10, 12, 15], within), ([11, 13, 21], [10, 12, 15], few)],
        *[([10, 15], [11, 13, 20], few), ([10, 12, 15], [11, 20], few)],
    ):
        assert verdict(judged(ask, {"x": (base, new)}, iteration_ns=1000)["x"]) == expected
    # with bounds, these decide
    found = judged(
        ask, {"x": ([10, 12, 15], [11, 13, 20])}, shift={"x": (1, 11)}, iteration_ns=1000
    )
    assert verdict(found["x"]) == few


def test_noise_of_the_same_figures_is_no_change(ask):
    for figures in (([4, 9], [9, 4]), ([4], [4]), (range(20), range(20))):
        found = judged(ask, {"x": figures}, drift={"x": 2.0}, shift={"x": (-50, 50)})["x"]
        assert verdict(found) == ("no change", "same figures")


def test_noise_that_stands_out_without_a_change_of_the_median(ask):
    # both medians are 5, and still nearly all of one side lie at or below the other
    figures = {"x": ([0] * 10 + [5] * 11, [5] * 11 + [9] * 10)}
    for percent in (0, 1):
        found = judged(ask, figures, min_change_pct=percent)["x"]
        assert found["stands_out"] and found["p_value"] < 1e-4
        assert verdict(found) == ("cannot tell", "p and bounds")
    found = judged(ask, figures, shift={"x": (0, 1)})["x"]
    assert verdict(found) == ("no change", "bounds")


def test_noise_asks_the_iteration_first(ask):
    low, high = [100, 101, 102, 103, 104], [105, 106, 107, 108, 109]
    lost = ("cannot tell", "p above alpha / 2")
    # p is 0.0079, and the iteration does not stand out: 0.01 / 2
    found = judged(ask, {"iteration": (low, low[::-1]), "x": (low, high)})
    assert verdict(found["x"]) == lost and not found["x"]["stands_out"]
    assert verdict(judged(ask, {"x": (low, high)})["x"]) == ("more", "p")
    assert verdict(judged(ask, {"x": (low, high), "y": (low, high)})["x"]) == lost
    found = judged(ask, {"iteration": (low, high), "x": (low, high), "y": (high, low)})
    assert [found[item]["verdict"] for item in ("iteration", "x", "y")] == [
        "slower",
        "more",
        "less",
    ]
    # 0.0079 is just 0.0079
    exactly = {"alpha": 4 / 252}
    assert verdict(judged(ask, {"x": (low, high), "y": (low, high)}, **exactly)["x"])[0] == "more"
    # another pair is another question
    other = inputs({"y": (low, high), "x": (low, low)}, 1, {}, {"x": (7, 8)}, 9000)
    assert verdict(judged(ask, {"x": (low, high)}, other=other)["x"]) == ("more", "p")


def test_noise_keeps_pairs_and_quantities_apart(ask):
    first = {"iteration": (FEW, [3, 5]), "x": (MANY, FEW), "y": ([7, 8, 8, 4], [7, 7, 9, 50])}
    second = {"x": ([9, 1, 2, 2, 5], [8, 8, 3]), "z": (FEW, MANY)}
    drift, shift = {"x": 3.0}, {"x": (-1, 1), "z": (2, 3)}
    others = {"drift": {"z": 5.0}, "shift": {"y": (4, 5), "x": (6, 7)}}
    alone = judged(ask, first, drift=drift, shift=shift), judged(ask, second, pair=1, **others)
    one = inputs(first, 0, drift, shift, 100)
    two = inputs(second, 1, *others.values(), 100)
    assert judged(ask, first, drift=drift, shift=shift, other=two) == alone[0]
    assert judged(ask, second, pair=1, **others, other=one) == alone[1]
    for found, figures, options in ((alone[0], first, drift), (alone[1], second, others["drift"])):
        for item, (base, new) in figures.items():
            u, p = probable(base, new, options.get(item))
            assert (found[item]["u"], found[item]["p_value"]) == (u, pytest.approx(p, abs=2e-7))
    assert [(row["low_ns"], row["high_ns"]) for row in alone[1].values()] == [(6, 7), (None, None)]


def test_noise_of_a_few_windows_against_many(ask):
    # 402 pairs of windows: no exact p, and only drift lets ranges decide
    figures = {"x": (range(134), [9000, 9001, 9002])}
    assert judged(ask, figures)["x"]["p_value"] == pytest.approx(
        probable(*figures["x"])[1], abs=2e-7
    )
    assert verdict(judged(ask, figures)["x"]) == ("more", "p")
    strict = {"alpha": 0.001}
    assert verdict(judged(ask, figures, **strict)["x"]) == ("cannot tell", "p and bounds")
    found = judged(ask, figures, drift={"x": 1.0}, **strict)["x"]
    assert verdict(found) == ("more", "ranges far apart, drift")


def test_noise_of_many_quantities_takes_ranges_far_apart(ask):
    low, high = [100, 101, 102, 103, 104], [117, 118, 119, 120, 121]
    nothing = (low, low[::-1])
    # too few windows for 0.005, but not for 0.008
    found = judged(ask, {"iteration": nothing, "x": (low, high)})["x"]
    assert verdict(found) == ("more", "ranges far apart") and found["stands_out"]
    found = judged(ask, {"iteration": nothing, "x": (low, high)}, alpha=0.016)["x"]
    assert verdict(found) == ("more", "p")
    # windows enough: p alone decides
    far = [value + 1000 for value in range(8)]
    wide = {"iteration": nothing, "x": (range(8), far)}
    found = judged(ask, wide, drift={"x": 4.0})["x"]
    assert 0.05 < found["p_value"] < 0.2
    assert verdict(found) == ("cannot tell", "p above alpha / 2, drift")
    assert not found["stands_out"]


def test_noise_of_drifting_windows(ask):
    # ranges far apart stand out though p is above alpha
    figures = {"x": (range(8), [value + 1000 for value in range(8)])}
    found = judged(ask, figures, drift={"x": 4.0})["x"]
    assert found["p_value"] > 0.05
    assert verdict(found) == ("more", "ranges far apart, drift")
    near = {"x": (range(8), [value + 9 for value in range(8)])}
    assert verdict(judged(ask, near)["x"]) == ("more", "p")
    assert verdict(judged(ask, near, drift={"x": 4.0})["x"]) == (
        "cannot tell",
        "p and bounds, drift",
    )
    assert verdict(judged(ask, near, drift={"x": 1.01})["x"]) == ("more", "p, drift")
    within = judged(ask, near, drift={"x": 4.0}, shift={"x": (-1, 1)})["x"]
    assert verdict(within) == ("no change", "bounds, drift")
    # no three windows reach 0.1, but the normal approximation does not know that
    three = {"x": ([1, 2, 3], [91, 92, 93])}
    found = judged(ask, three, drift={"x": 1.0}, alpha=0.09)["x"]
    assert found["p_value"] < 0.09
    assert verdict(found) == ("more", "ranges far apart, drift")
