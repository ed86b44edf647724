"""What the two sides of a pair have in common, and where their difference lies, over small tables.

The tables of a comparison are made by hand, as in test_small_pairs; what is expected follows
docs/compare.md.
"""

import pytest

# --------------------------------------------------------------------------------- the same part?
CONTENT = (
    "pair BIGINT, kind VARCHAR, key VARCHAR, class VARCHAR, base_count DOUBLE, new_count DOUBLE, "
    "base_work_ns BIGINT, new_work_ns BIGINT, base_bytes BIGINT, new_bytes BIGINT"
)
PART = ["common", "only_base", "only_new", "base_share", "new_share", "whole", "repeated", "moved"]
PART += ["refusal", "compared"]


def parts(ask, *rows, pair=0, others=()):
    """Rows: (class, kernel, base count, new count, base work, new work); classes are summed up."""
    content = [*others]
    classes = {}
    for cls, key, *numbers in rows:
        content.append((pair, "kernel", key, cls, *numbers, 0, 0))
        before = classes.get(cls, (0, 0, 0, 0))
        classes[cls] = tuple(a + b for a, b in zip(before, numbers, strict=True))
    content += [(pair, "class", cls, cls, *numbers, 0, 0) for cls, numbers in classes.items()]
    found = ask("pairs/model_part", {"pair.content_pair": (CONTENT, content)})
    (row,) = [row for row in found if row[0] == pair]
    return dict(zip(PART, row[1:], strict=True))


def decided(found):
    return found["refusal"], found["moved"], found["repeated"]


SAME = (None, None, False)


def gemms(base, new, base_work, new_work):
    # kernels of either side only: nothing says that any of it is run again
    return ("gemm", "old", base, 0, base_work, 0), ("gemm", "new", 0, new, 0, new_work)


def test_model_part_shares_of_work(ask):
    found = parts(
        ask,
        *[("gemm", "k", 2, 2, 60, 50), ("norm", "n", 1, 0, 40, 0), ("norm", "m", 0, 3, 0, 150)],
        *[("norm", "o", 0, 4, 0, 0), ("norm", "p", 0, 0, 7, 9), ("norm", "q", 1, 1, 0, 0)],
        *[("norm", "r", 1, 0, 0, 0), ("norm", "s", 1, 0, 0, 0)],
        others=[(1, "kernel", "k", "graph", 1, 0, 9, 0, 0, 0)],
    )
    assert found == {
        **{"common": 2, "only_base": 3, "only_new": 2, "base_share": 0.6, "new_share": 0.25},
        **{"whole": False, "repeated": False, "moved": None, "refusal": None},
        "compared": "2 GEMMs per iteration against 2",
    }
    # no common kernel, and no work on a side
    found = parts(ask, ("gemm", "k", 2, 0, 60, 0), ("gemm", "l", 0, 2, 0, 0))
    assert (found["base_share"], found["new_share"]) == (0, None)
    for numbers, shares in (((2, 0, 60, 0), (0, None)), ((0, 2, 0, 60), (None, 0))):
        found = parts(ask, ("gemm", "k", *numbers))
        assert (found["base_share"], found["new_share"]) == shares


@pytest.mark.parametrize(
    ("base", "new", "is_other"),
    [
        *[(100, 102, False), (100, 103, True), (103, 100, True), (102, 100, False)],
        *[(1000, 1020, False), (1000, 1021, True), (10, 11, False), (10, 12, True)],
        *[(50, 51, False), (50, 52, True), (10_000, 10_204, False), (10_204, 10_000, False)],
        # of few, one may be half as many again
        *[(1, 2, True), (2, 1, True), (2, 3, True), (3, 4, False), (3, 2, True), (1, 1.5, False)],
    ],
)
def test_model_part_counts_may_differ_by_two_percent_and_by_one(ask, base, new, is_other):
    found = parts(ask, *gemms(base, new, base * 1000, new * 1000))
    told = f"{base} GEMMs per iteration against {new}, and their work goes along"
    assert decided(found) == (
        (f"{told} ({new / base:.2f} times)", None, False) if is_other else SAME
    )
    if not is_other:
        small = "too small a difference to tell another part"
        assert found["compared"] == f"{base} GEMMs per iteration against {new}, {small}"


def test_model_part_says_what_was_compared(ask):
    pieces = ": the same in other pieces, or with small ones added"
    found = parts(ask, *gemms(3, 6, 100, 102), ("attention", "a", 4, 4, 9, 9))
    assert decided(found) == SAME
    assert found["compared"] == (
        "3 GEMMs per iteration against 6, and their work does not go along (1.02 times)"
        f"{pieces}; 4 attention kernels per iteration against 4"
    )
    found = parts(ask, *gemms(3, 6, 0, 0))
    assert found["compared"] == (
        f"3 GEMMs per iteration against 6, and their work does not go along{pieces}"
    )
    small = "too small a difference to tell another part"
    found = parts(ask, ("gemm", "g", 1, 1, 5, 5), ("attention", "a", 0, 0.5, 0, 9))
    assert found["compared"] == (
        f"1 GEMMs per iteration against 1; 0 attention kernels per iteration against 0.5, {small}"
    )
    found = parts(ask, ("norm", "n", 3, 4, 9, 9), ("gemm", "g", 0, 0, 1, 1))
    assert found["compared"] == (
        "no GEMMs and no attention kernels on either side, 3 compute kernels per iteration "
        "against 4"
    )


@pytest.mark.parametrize(
    ("work", "is_other"),
    [
        *[((1000, 2000), True), ((1000, 1000), False), ((1000, 500), False)],
        # half of the logarithm of 4 is that of 2
        *[((1000, 2001), True), ((1000, 1999), False)],
    ],
)
def test_model_part_work_has_to_go_along(ask, work, is_other):
    counts = (10, 40) if work[1] in (2001, 1999) else (10, 20)
    for first, second in ((0, 1), (1, 0)):
        found = parts(ask, *gemms(counts[first], counts[second], work[first], work[second]))
        assert (found["refusal"] is not None) is is_other
    assert found["moved"] is None and not found["repeated"]


def test_model_part_needs_more_than_half_of_the_logarithm(ask):
    # twice the work of four times the kernels is just a half
    assert decided(parts(ask, *gemms(1, 4, 1, 2))) == SAME
    assert decided(parts(ask, *gemms(1, 4, 2, 5)))[0] == (
        "1 GEMMs per iteration against 4, and their work goes along (2.50 times)"
    )
    # so many more of no time at all
    assert decided(parts(ask, *gemms(1, 9, 0, 0))) == SAME
    assert decided(parts(ask, *gemms(1, 9, 0, 5))) == SAME
    assert decided(parts(ask, *gemms(1, 9, 5, 0))) == SAME


def test_model_part_of_work_without_names(ask):
    others = [(0, "class", "gemm", "gemm", 4, 8, 40, 80, 0, 0)]
    found = parts(ask, ("norm", "n", 1, 1, 1, 1), others=others)
    assert found["refusal"].startswith("4 GEMMs per iteration against 8")


def test_model_part_without_gemms_is_another(ask):
    for base, new in ((2, 0), (0, 2)):
        found = parts(ask, ("gemm", "k", base, new, 9 * base, 9 * new), ("norm", "n", 1, 1, 1, 1))
        assert decided(found) == (f"{base} GEMMs per iteration against {new}", None, False)
    # a single one is one
    found = parts(ask, ("gemm", "k", 1, 0, 9, 0), ("norm", "n", 1, 1, 1, 1))
    assert decided(found) == ("1 GEMMs per iteration against 0", None, False)


def test_model_part_counts_gemms_with_communication_inside(ask):
    found = parts(ask, ("gemm", "k", 4, 2, 40, 20), ("fused_gemm_comm", "f", 0, 2, 0, 20))
    assert decided(found) == SAME
    found = parts(ask, ("fused_gemm_comm", "f", 4, 0, 40, 0), ("fused_gemm_comm", "g", 0, 8, 0, 80))
    assert decided(found)[0].startswith("4 GEMMs per iteration against 8")


def test_model_part_attention_of_one_side_is_another_way(ask):
    gemm = ("gemm", "k", 4, 4, 40, 40)
    for base, new in ((3, 0), (0, 3)):
        found = parts(ask, gemm, ("attention", "a", base, new, 9 * base, 9 * new))
        counts = f"{base} attention kernels per iteration against {new}"
        assert decided(found) == (None, counts, False)
    # on both sides it tells a part like GEMMs do
    found = parts(ask, gemm, ("attention", "a", 3, 0, 30, 0), ("attention", "b", 0, 6, 0, 60))
    assert decided(found) == (
        "3 attention kernels per iteration against 6, and their work goes along (2.00 times)",
        *(None, False),
    )
    both = parts(
        ask,
        *gemms(4, 8, 40, 80),
        *[("attention", "a", 3, 0, 30, 0), ("attention", "b", 0, 6, 0, 60)],
    )
    assert [each.split(" per")[0] for each in both["refusal"].split("; ")] == [
        *("3 attention kernels", "4 GEMMs"),
    ]


@pytest.mark.parametrize(
    ("kept", "own", "is_repeated"),
    [
        *[(50, 0, True), (49, 0, False)],  # half of the base's work runs equally often
        *[(50, 15, True), (50, 16, False)],  # 5 % of all of the work is of one side only
    ],
)
def test_model_part_recomputed_activations(ask, kept, own, is_repeated):
    # 10 and 10 of `kept` and of the rest once more: of both sides 100 + 200 less `own`
    rest = 100 - kept
    rows = [
        *[("gemm", "same", 10, 10, kept, kept), ("gemm", "again", 10, 30, rest, 200 - kept - own)],
        ("gemm", "own", 0, 5, 0, own),
    ]
    found = parts(ask, *rows)
    assert found["repeated"] is is_repeated
    assert (found["refusal"] is None) is is_repeated
    assert found["moved"] is None
    # of so little work 5 % is less than a nanosecond
    little = [("gemm", "same", 9, 9, 5, 5), ("gemm", "again", 2, 9, 2, 6)]
    assert decided(parts(ask, *little)) == (None, None, True)
    # no more recomputed: half of the base's work still has to run equally often
    found = parts(ask, ("gemm", "same", 9, 9, 100, 100), ("gemm", "again", 20, 9, 100, 50))
    assert decided(found) == (None, None, True)
    found = parts(ask, ("gemm", "same", 9, 9, 99, 99), ("gemm", "again", 20, 9, 101, 50))
    assert not found["repeated"] and found["refusal"]


def test_model_part_attention_again(ask):
    # as many GEMMs as before, and attention once more
    found = parts(
        ask,
        *[("gemm", "k", 4, 4, 40, 40), ("attention", "f", 2, 2, 20, 20)],
        ("attention", "g", 2, 4, 10, 30),
    )
    assert decided(found) == (None, None, True)


def lacking(ask, work, *rows, base=4, new=8, times=100):
    """Twice the GEMMs, of `times` ns each; `rows` is what else there is."""
    return parts(ask, *gemms(base, new, base * times, new * times), *rows)["moved"] is not None


def test_model_part_moved_to_kernels_of_no_known_class(ask):
    # the base lacks GEMMs of 400 ns: kernels of 200 ns that only it runs make up for a half
    def other(base, new, base_work, new_work, key="u", cls="other"):
        return (cls, key, base, new, base_work, new_work)

    assert lacking(ask, 400, other(1, 0, 200, 0))
    assert not lacking(ask, 400, other(1, 0, 199, 0))
    assert not lacking(ask, 400, other(1, 1, 200, 0))  # the new side runs it too
    assert not lacking(ask, 400, other(1, 0, 200, 0, cls="norm"))
    assert not lacking(ask, 400, other(0, 1, 0, 200))  # of the side that has more GEMMs
    # less what is more of the same on the other side
    assert lacking(ask, 400, other(1, 0, 250, 0), other(0, 1, 0, 50, "v"))
    assert not lacking(ask, 400, other(1, 0, 249, 0), other(0, 1, 0, 50, "v"))
    # seen from the other side
    assert lacking(ask, 400, other(0, 1, 0, 200), base=8, new=4)
    assert not lacking(ask, 400, other(0, 1, 0, 199), base=8, new=4)
    assert not lacking(ask, 400, other(1, 0, 200, 0), base=8, new=4)
    found = parts(ask, *gemms(4, 8, 400, 800), other(1, 0, 200, 0))
    assert decided(found) == (None, "4 GEMMs per iteration against 8", False)


def attention(base, new, base_work, new_work):
    return ("attention", "a", base, 0, base_work, 0), ("attention", "b", 0, new, 0, new_work)


def test_model_part_moved_to_the_other_family(ask):
    # the base lacks 400 ns of GEMMs; it has 200 ns more of attention, with as many kernels
    assert lacking(ask, 400, *attention(4, 4, 300, 100))
    assert not lacking(ask, 400, *attention(4, 4, 299, 100))
    assert not lacking(ask, 400, *attention(4, 4, 100, 300))
    # together they make up for a half
    other = ("other", "u", 1, 0, 100, 0)
    assert lacking(ask, 400, *attention(4, 4, 200, 100), other)
    assert not lacking(ask, 400, *attention(4, 4, 199, 100), other)
    # what speaks against one of them takes nothing from the other
    assert lacking(ask, 400, *attention(4, 4, 100, 900), ("other", "u", 1, 0, 200, 0))


@pytest.mark.parametrize(
    ("more", "kernels", "is_moved"), [(8, 2, True), (9, 2, False), (4, 1, True), (5, 1, False)]
)
def test_model_part_up_to_four_gemms_for_each_attention_kernel(ask, more, kernels, is_moved):
    for new in (True, False):
        counts = (10, 10 + more) if new else (10 + more, 10)
        ones = (kernels, 0) if new else (0, kernels)
        rows = (
            *gemms(*counts, counts[0] * 1000, counts[1] * 1000),
            ("attention", "a", *ones, *ones),
        )
        found = parts(ask, *rows)
        assert (found["refusal"] is None) is is_moved
        # of two families whose counts differ the attention comes first
        shown = f"{counts[0]} GEMMs per iteration against {counts[1]}"
        told = [each for each in (found["moved"] or "").split(", ") if "GEMM" in each]
        assert told == ([shown] if is_moved else [])
        # attention on both sides stands for nothing
        found = parts(ask, *rows, ("attention", "c", 1, 1, 0, 0))
        assert found["refusal"] is not None
    # fewer GEMMs where attention kernels are: nothing was replaced
    found = parts(ask, *gemms(10 + more, 10, 9000, 5000), ("attention", "a", 5, 0, 5, 0))
    assert found["refusal"] is not None


def test_model_part_without_products_of_matrices(ask):
    def bare(common, base, new, counts=(10, 20)):
        return parts(
            ask,
            *[("norm", "n", 1, 1, common, common), ("norm", "b", counts[0] - 1, 0, base, 0)],
            ("norm", "m", 0, counts[1] - 1, 0, new),
        )

    told = (
        "10 compute kernels per iteration against 20, and only {}% of the work is in kernels "
        "of both"
    )
    assert decided(bare(40, 60, 60)) == (told.format(40), None, False)
    assert bare(496, 504, 504)["refusal"] == told.format(50)
    assert bare(50, 50, 60)["refusal"] == told.format(45)
    assert bare(50, 60, 50)["refusal"] == told.format(45)
    assert bare(50, 50, 50)["refusal"] is None
    # nearly as many kernels
    assert bare(40, 60, 60, (100, 102))["refusal"] is None
    assert bare(40, 60, 60, (100, 103))["refusal"] is not None
    assert bare(40, 60, 60, (103, 100))["refusal"] is not None
    assert bare(40, 60, 60, (10, 11))["refusal"] is None
    assert bare(40, 60, 60, (11, 10))["refusal"] is None
    assert bare(40, 60, 60, (10, 12))["refusal"] is not None
    # a GEMM of half of the windows of one side tells nothing
    for base, new in ((0, 0.5), (0.5, 0)):
        found = parts(
            ask,
            *[("norm", "b", 10, 0, 60, 0), ("norm", "m", 0, 20, 0, 60)],
            ("gemm", "g", base, new, base, new),
        )
        assert "compute kernels per iteration against" in found["refusal"]
    # attention alone tells a part
    found = parts(
        ask,
        *[("norm", "b", 9, 0, 60, 0), ("norm", "m", 0, 99, 0, 60), ("attention", "a", 2, 2, 1, 1)],
    )
    assert decided(found) == SAME


def test_model_part_inside_whole_graphs_cannot_be_told(ask):
    found = parts(ask, *gemms(10, 20, 100, 200), ("graph", "g", 1, 0, 5, 0))
    assert found["whole"] and found["refusal"] is None
    found = parts(ask, *gemms(10, 20, 100, 200), ("graph", "g", 0, 0, 5, 0))
    assert not found["whole"] and found["refusal"] is not None


def test_model_part_keeps_pairs_apart(ask):
    def content(pair, *rows):
        return [
            row
            for cls, key, *numbers in rows
            for row in (
                (pair, "kernel", key, cls, *numbers, 0, 0),
                (pair, "class", cls, cls, *numbers, 0, 0),
            )
        ]

    others = [
        *content(1, ("gemm", "k", 10, 20, 1, 9), ("attention", "a", 5, 5, 900, 10)),
        *content(1, ("other", "u", 9, 0, 999, 0), ("graph", "g", 1, 1, 1, 1)),
        *content(2, ("gemm", "k", 10, 10, 100, 100), ("attention", "b", 9, 0, 900, 0)),
        *content(2, ("other", "u", 0, 9, 0, 999), ("norm", "n", 9, 9, 999, 900)),
        # a copy is no kernel, and a collective no class
        *[
            (0, "copy", "HtoD", "gemm", 9, 1, 9, 1, 0, 0),
            (0, "class", "x", "norm", 9, 0, 9, 1, 0, 0),
        ],
    ]
    for rows in (gemms(4, 8, 400, 800), gemms(4, 4, 400, 400), [("norm", "x", 5, 5, 1, 2)]):
        assert parts(ask, *rows, others=others) == parts(ask, *rows)


# ------------------------------------------------------------------------------------ conditions
# of launch_change: the numbers of names and their shares of the work, and the rest as it may be
CHANGE = (
    "pair BIGINT, told BIGINT, resized BIGINT, cut BIGINT, retuned BIGINT, filled BIGINT, "
    "told_share DOUBLE, resized_share DOUBLE, cut_share DOUBLE, retuned_share DOUBLE, "
    "filled_share DOUBLE, base_threads DOUBLE, new_threads DOUBLE, factor DOUBLE, "
    "is_other_gpu BOOLEAN, changed_share DOUBLE, is_other_work BOOLEAN"
)


def conditions(ask, **rows):
    """What is told of each aspect: (pair, topic, aspect): (base, new, status, detail)."""
    columns = {
        "scope": (
            "base_count BIGINT, new_count BIGINT, base_ranks VARCHAR, new_ranks VARCHAR, "
            "base_world BIGINT, new_world BIGINT"
        ),
        "asked": "side VARCHAR, name VARCHAR, value VARCHAR",
        "trace": "pair BIGINT, side VARCHAR, anchor VARCHAR",
        "model_part": (
            "pair BIGINT, common BIGINT, only_base BIGINT, only_new BIGINT, base_share DOUBLE, "
            "new_share DOUBLE, has_whole_graph BOOLEAN, is_repeated BOOLEAN, moved VARCHAR, "
            "refusal VARCHAR, compared VARCHAR"
        ),
        "content_pair": CONTENT,
        "gemm_precision": "pair BIGINT, side VARCHAR, formats VARCHAR",
        "geometry": "pair BIGINT, side VARCHAR",
        "launch_change": CHANGE,
        "message": "pair BIGINT, key VARCHAR, base_bytes BIGINT, new_bytes BIGINT",
        "setting": "pair BIGINT, side VARCHAR, name VARCHAR, value VARCHAR",
        "evidence": "pair BIGINT, side VARCHAR, evidence VARCHAR, gap_count BIGINT",
        "member": "pair BIGINT",
        "window": "pair BIGINT, side VARCHAR, n BIGINT",
    }
    tables = {f"pair.{name}": (text, list(rows.get(name, []))) for name, text in columns.items()}
    found = {}
    for pair, position, topic, aspect, *rest in ask("pairs/condition", tables):
        assert (pair, topic, aspect) not in found
        found[pair, topic, aspect] = (*rest, position)
    return found


def statuses(found):
    return {aspect: row[2] for (_, _, aspect), row in found.items()}


def test_condition_topology(ask):
    found = conditions(ask, scope=[(8, 8, "0-7", "0-7", 8, 8)])
    assert statuses(found) == {
        **{"devices or ranks": "same", "ranks": "same", "world size": "same"},
    }
    assert {row[3] for row in found.values()} == {None}
    found = conditions(ask, scope=[(8, 4, "0-7", "0-3", 8, 4)])
    assert found == {
        (None, "topology", "devices or ranks"): (
            *("8", "4", "refused"),
            *("the work of an iteration is spread differently: nothing has a counterpart", 10),
        ),
        (None, "topology", "ranks"): (
            *("0-7", "0-3", "refused", "other ranks of the run: ranks have different work", 11),
        ),
        (None, "topology", "world size"): (
            *("8", "4", "refused", "another number of ranks in the run", 12),
        ),
    }
    # who does not say what it is says nothing
    for unknown in ((8, 8, None, "0", None, 8), (8, 8, "0", None, 8, None)):
        assert statuses(conditions(ask, scope=[unknown])) == {"devices or ranks": "same"}


def anchors(ask, base, new, asked=None, **options):
    asked = asked or (base, new)
    rows = [("base", "anchor", asked[0]), ("new", "anchor", asked[1])]
    for name, values in options.items():
        sides = zip(("base", "new"), values, strict=True)
        rows += [(side, name.replace("_", " "), value) for side, value in sides]
    trace = [(0, "base", base), (0, "new", new)]
    found = conditions(ask, asked=rows, trace=trace)
    return {aspect: row[2:4] for (_, _, aspect), row in found.items()}


OTHER = "an iteration does not mean the same on both sides"
MEANT = "one for each side was asked for: taken to mean the same"


def test_condition_iteration_anchor(ask):
    assert anchors(ask, "nvtx:s", "nvtx:s") == {"anchor": ("same", None)}
    assert anchors(ask, "nvtx:s", "nvtx:t") == {"anchor": ("differs", MEANT)}
    assert anchors(ask, "nvtx:s", "kernel:s") == {"anchor": ("refused", OTHER)}
    for asked in (("auto", "nvtx:t"), ("nvtx:s", "auto"), ("auto", "auto")):
        assert anchors(ask, "nvtx:s", "nvtx:t", asked) == {"anchor": ("refused", OTHER)}
    assert anchors(ask, "nvtx:s", "nvtx:s", ("auto", "auto")) == {"anchor": ("same", None)}


def test_condition_iteration_options(ask):
    def told(name, *values, base="nvtx:s", new="nvtx:s"):
        return anchors(ask, base, new, **{name: values})[name.replace("_", " ")]

    assert told("per_iteration", "1", "1") == ("same", None)
    assert told("per_iteration", "1", "2") == ("refused", OTHER)
    own = "with an anchor of its own for each side: taken to mean the same"
    assert told("per_iteration", "1", "2", new="nvtx:t") == ("differs", own)
    assert told("per_iteration", "1", None, new="nvtx:t") == ("differs", own)
    assert told("per_iteration", "2", "2", new="nvtx:t") == ("same", None)
    assert told("per_iteration", "1", "2", new="kernel:t") == ("refused", OTHER)
    assert told("window", "range", "device") == ("refused", OTHER)
    assert told("window", "range", "device", new="nvtx:t") == ("refused", OTHER)
    assert told("window", "range", "range") == ("same", None)
    assert told("iterations", "0:5", "5:9") == ("differs", "other iterations of the run")
    assert told("iterations", "0:5", None) == ("differs", "other iterations of the run")
    assert told("iterations", None, None) == ("same", None)


def test_condition_iteration_of_several_pairs(ask):
    asked = [
        *[("base", "anchor", "nvtx:s"), ("new", "anchor", "nvtx:t")],
        *[("base", "per iteration", "1"), ("new", "per iteration", "2")],
    ]
    trace = [(0, "base", "nvtx:s"), (0, "new", "nvtx:t"), (1, "base", "nvtx:u")]
    found = conditions(ask, asked=asked, trace=[*trace, (1, "new", "nvtx:u")])
    assert {key: row[:3] for key, row in found.items()} == {
        (0, "iteration", "anchor"): ("nvtx:s", "nvtx:t", "differs"),
        (1, "iteration", "anchor"): ("nvtx:u", "nvtx:u", "same"),
        # one pair has the same anchor on both sides, and so may not count otherwise
        (None, "iteration", "per iteration"): ("1", "2", "refused"),
    }
    assert [row[4] for row in found.values() if row[2] == "refused"] == [21]
    found = conditions(ask, asked=asked, trace=[*trace, (1, "new", "nvtx:v")])
    assert found[None, "iteration", "per iteration"][2] == "differs"


BLANK = {
    **{"pair": 0, "common": 3, "only_base": 0, "only_new": 0, "base_share": 1, "new_share": 1},
    **{"has_whole_graph": "false", "is_repeated": "false", "moved": None, "refusal": None},
    "compared": "c",
}


def test_condition_model_part(ask):
    def told(**changed):
        rows = [tuple({**BLANK, **changed}.values())]
        found = conditions(ask, model_part=rows)
        assert found[0, "model", "model part"][4] == 30
        return found[0, "model", "model part"][2:4]

    assert told() == ("same", "c; names may have changed")
    assert told(refusal="so many") == ("refused", "so many")
    assert told(refusal="so many", moved="m", is_repeated="true") == ("refused", "so many")
    inside = "the inside of CUDA graphs that were traced as a whole cannot be told"
    assert told(has_whole_graph="true", moved="m", is_repeated="true") == ("unknown", inside)
    moved = (
        "m: computed in another way, or by kernels whose names tell no class; taken for the same "
        "part"
    )
    assert told(moved="m", is_repeated="true") == ("differs", moved)
    assert told(moved="m") == ("differs", moved)
    again = (
        "some GEMMs or attention kernels run more often on one side, most of the work does not: "
        "recomputed activations, or the like"
    )
    assert told(is_repeated="true") == ("differs", again)


def test_condition_kernels_by_name(ask):
    def told(**changed):
        rows = [tuple({**BLANK, **changed}.values())]
        return conditions(ask, model_part=rows)[0, "model", "compute kernels by name"]

    hold = "names on both sides; they hold {} of the base's compute work, {} of the new side's"
    assert told() == ("3 names", "3 names", "same", "3 " + hold.format("100.0%", "100.0%"), 31)
    assert told(only_base=2, base_share=0.25, new_share=None) == (
        *("5 names", "3 names", "differs", "3 " + hold.format("25.0%", "nothing"), 31),
    )
    assert told(only_new=1, base_share=None, new_share=0.125) == (
        *("3 names", "4 names", "differs", "3 " + hold.format("nothing", "12.5%"), 31),
    )


def test_condition_content(ask):
    rows = [
        *[
            ("class", "gemm", 4, 4),
            ("class", "norm", 4.5, 3),
            ("collective", "nccl AllReduce", 2, 2),
        ],
        *[("launch", "CUDA API calls", 1, 0), ("kernel", "k", 1, 2), ("copy", "HtoD", 0, 1)],
        *[("class", "other", 0, 0), ("copy", "DtoH", 0, 0)],
    ]
    content = [(0, kind, key, key, base, new, 0, 0, 0, 0) for kind, key, base, new in rows]
    content += [
        *[(0, "copy", "DtoD", "x", 2, 2, 0, 0, 64, 32), (0, "copy", "PtoP", "x", 2, 2, 0, 0, 0, 1)],
        *[(0, "class", "x", "x", 0, 0, 0, 0, 5, 5), (1, "copy", "HtoH", "x", 0, 0, 0, 0, 7, 7)],
    ]
    found = conditions(ask, content_pair=content)
    assert {row[3] for row in found.values()} == {"median over the steady windows"}
    assert {key: (*row[:3], row[4]) for key, row in found.items()} == {
        (0, "model", "gemm kernels per iteration"): ("4", "4", "same", 32),
        (0, "model", "norm kernels per iteration"): ("4.5", "3", "differs", 32),
        (0, "communication", "nccl AllReduce per iteration"): ("2", "2", "same", 40),
        (0, "launches", "CUDA API calls per iteration"): ("1", "0", "differs", 42),
        (0, "copies", "HtoD copies per iteration"): ("0", "1", "differs", 44),
        (0, "copies", "DtoD copies per iteration"): ("2", "2", "same", 44),
        (0, "copies", "PtoP copies per iteration"): ("2", "2", "same", 44),
        (0, "copies", "DtoD bytes per iteration"): ("64", "32", "differs", 45),
        (0, "copies", "PtoP bytes per iteration"): ("0", "1", "differs", 45),
        (1, "copies", "HtoH bytes per iteration"): ("7", "7", "same", 45),
    }


LAUNCHED = {
    **{"told": 4, "resized": 0, "cut": 0, "retuned": 0, "filled": 0, "told_share": 0.9},
    **{"resized_share": 0, "cut_share": 0, "retuned_share": 0, "filled_share": 0},
    **{"base_threads": 2e6, "new_threads": 5e7, "factor": None, "is_other_gpu": "false"},
    **{"changed_share": 0, "is_other_work": "false"},
}


def launched(ask, sides=("base", "new"), **changed):
    row = (0, *(LAUNCHED | changed).values())
    rows = [(0, side) for side in sides]
    found = conditions(ask, launch_change=[row], geometry=[*rows, (1, "base"), (1, "new")])
    ((key, (*told, position)),) = found.items()
    assert key[2] == "launch geometry" and position == 33
    assert told[:2] == ["2 million threads per iteration", "50 million threads per iteration"]
    return key[1], *told[2:]


def test_condition_launch_geometry(ask):
    same = "4 names on both sides, with 90.0% of the compute work, have the same grids and blocks"
    assert launched(ask) == ("launches", "same", same)
    # less than a hundredth is told, and no difference
    assert launched(ask, resized=1, resized_share=0.009, changed_share=0.009)[1:] == (
        *("same", same + ", but for 0.9%"),
    )
    assert launched(ask, told_share=0.5)[1] == "same" and launched(ask, told_share=0.49)[1] == (
        "unknown"
    )
    with_ = "on both sides, with {}% of the compute work, have "
    does = "a changed batch size, sequence length or parallel split does this, and "
    more = {"resized": 3, "resized_share": 0.25, "changed_share": 0.25, "factor": 2}
    twice = f"3 of 4 names {with_.format('25.0')}2 times the threads in a launch (median by work)"
    assert launched(ask, **more, is_other_work="true") == (
        *("workload", "differs"),
        f"{twice}, kernels of several classes alike: {does}then it is other work",
    )
    tuned = f"{does}so do kernels tuned anew under their names"
    assert launched(ask, **more)[1:] == ("differs", f"{twice}: {tuned}")
    assert launched(ask, **more, is_other_gpu="true")[2] == f"{twice}: {tuned}, and another GPU"
    one = more | {"resized": 1, "factor": 0.125, "told_share": 0.2}
    assert launched(ask, **one) == (
        *("launches", "differs"),
        f"1 of 4 names {with_.format('25.0')}0.125 times the threads in a launch: {tuned}",
    )
    others = {
        "cut": 1,
        "cut_share": 0.01,
        "retuned": 2,
        "retuned_share": 0.02,
        "filled": 3,
        "filled_share": 0.03,
    }
    assert launched(ask, **others, changed_share=0.06)[1:] == (
        "differs",
        f"1 of 4 names {with_.format('1.0')}other numbers of threads in a launch, and more or "
        "fewer launches that make up for it: the same in other pieces; "
        f"2 of 4 names {with_.format('2.0')}as many threads in other blocks: tuned anew; "
        f"3 of 4 names {with_.format('3.0')}other grids, by as much as the number of "
        "multiprocessors differs",
    )


def test_condition_launch_geometry_that_is_not_told(ask):
    none = {"told": 0, "told_share": 0}
    for sides, detail in (
        *[((), "neither report tells"), (["new"], "one of the reports does not tell")],
        (("base", "new"), "no kernel that tells it has the same name on both sides"),
    ):
        assert launched(ask, sides, **none) == ("launches", "unknown", detail)
    assert launched(ask, ["base"], **none)[2] == "one of the reports does not tell"


def test_condition_bytes_of_collectives(ask):
    rows = [
        *[(0, "nccl AllReduce", 100, 102), (0, "nccl AllGather", 100, 103)],
        *[(0, "nccl Reduce", 5, None), (0, "x other", None, None), (0, "y other", None, None)],
        *[(1, "nccl Reduce", 103, 100), (1, "nccl AllGather", None, 3)],
    ]
    told = "mean of the messages whose size NVTX payloads of NCCL tell"
    one = "one of the reports does not tell"
    per = " bytes per operation"
    assert conditions(ask, message=rows) == {
        (0, "communication", "nccl AllReduce" + per): ("100", "102", "same", told, 41),
        (0, "communication", "nccl AllGather" + per): ("100", "103", "differs", told, 41),
        (0, "communication", "nccl Reduce" + per): ("5", None, "unknown", one, 41),
        (0, "communication", "bytes of collectives"): (
            *(None, None, "unknown", "neither report tells", 55),
        ),
        (1, "communication", "nccl Reduce" + per): ("103", "100", "differs", told, 41),
        (1, "communication", "nccl AllGather" + per): (None, "3", "unknown", one, 41),
    }


def test_condition_precision(ask):
    def told(base, new):
        rows = [(0, "base", base), (0, "new", new), (1, "new", "f64 1")]
        (row,) = conditions(ask, gemm_precision=rows).values()
        assert row == (base, new, row[2], "input format as far as the names tell it", 35)
        return row[2]

    assert told("bf16 4", "bf16 4") == "same"
    assert told("bf16 4", "fp8 4") == "differs"
    assert told("bf16 4", None) == "differs"
    assert told("unknown 4", "unknown 4") == "unknown"
    assert told("unknown 4", "unknown 5") == "differs"
    assert told("bf16 1, unknown 4", "bf16 1, unknown 4") == "same"


def test_condition_settings(ask):
    machine, software = ("machine", 50), ("software", 51)
    other, told = "another machine", "as the report tells it"
    names = {
        **{"GPU": (*machine, other), "CPU": (*machine, other)},
        **{"NVIDIA driver": (*software, told), "CUDA driver": (*software, told)},
        **{"operating system": (*software, told), "nsys version": ("software", 52, told)},
        **{"CUDA graphs": ("launches", 46, "launches and gaps of graphs are seen otherwise")},
        "recorded": ("capture", 53, "a table without rows is usually left out of an export"),
        "nsysx": ("capture", 53, told),
    }
    for base, new, status, detail in (
        *[("a", "a", "same", None), ("a", "b", "differs", None)],
        *[("a", None, "unknown", "one of the reports does not tell")],
        *[(None, "a", "unknown", "one of the reports does not tell")],
        (None, None, "unknown", "neither report tells"),
    ):
        rows = [
            (0, side, name, value)
            for name in names
            for side, value in (("base", base), ("new", new))
        ]
        found = conditions(ask, setting=[*rows, (1, "base", "GPU", "c")])
        assert found.pop((1, "machine", "GPU"))[:3] == ("c", None, "unknown")
        assert found == {
            (0, topic, name): (base, new, status, detail or meant, position)
            for name, (topic, position, own) in names.items()
            # what a difference would mean is not said of what is the same
            for meant in [None if status == "same" and own != told else own]
        }


@pytest.mark.parametrize(
    ("base", "new", "status"),
    [
        *[("H (?)", "A (?)", "differs"), ("H (?)", "H (?)", "same")],
        ("H (?)", "H (132 SM, 1980 MHz, 81559 MiB)", "unknown"),
        ("H (132 SM, ? MHz, 1 MiB)", "H (132 SM, 9 MHz, 1 MiB)", "unknown"),
        ("H (132 SM, ? MHz, 1 MiB)", "H (132 SM, 9 MHz, 2 MiB)", "differs"),
        *[("H (?)", "H (1 SM); A (2 SM)", "differs"), ("H (?)", "HH (?)", "differs")],
        *[("H.0 (?)", "HA0 (1 SM)", "differs"), ("? (1 SM)", "H (1 SM)", "unknown")],
    ],
)
def test_condition_of_gpus_that_are_hardly_known(ask, base, new, status):
    for first, second in ((base, new), (new, base)):
        rows = [(0, "base", "GPU", first), (0, "new", "GPU", second)]
        found = conditions(ask, setting=rows)[0, "machine", "GPU"]
        details = {"unknown": "one of the reports does not tell all of it", "same": None}
        assert found[2:4] == (status, details.get(status, "another machine"))
    # of a CPU it is a name like any other
    rows = [(0, "base", "CPU", "H (?)"), (0, "new", "CPU", "H (1)")]
    assert conditions(ask, setting=rows)[0, "machine", "CPU"][2] == "differs"


def test_condition_evidence(ask):
    well = "shares of all gaps; both sides are explained about equally well"
    one = (
        "launches or dependencies are unknown on one side only: the differences of launch_starved "
        "and blocking are those of the captures"
    )

    def told(base, new):
        rows = [(0, "base", name, n) for name, n in base] + [(0, "new", name, n) for name, n in new]
        (row,) = conditions(ask, evidence=rows).values()
        assert row[4] == 54
        return row[:4]

    good = [("resolved", 3), ("none", 1), ("resolved", 4)]
    shown = "none 12%, resolved 88%"
    assert told(good, good) == (shown, shown, "same", well)
    for weak in ("no_launch", "unresolved", "inferred", "graph"):
        bad = [(weak, 3), ("resolved", 2)]
        told_bad = ", ".join(sorted([f"{weak} 60%", "resolved 40%"]))
        assert told(good, bad) == (shown, told_bad, "differs", one)
    assert told(bad, good) == (told_bad, shown, "differs", one)
    assert told(bad, bad)[2:] == ("same", well)
    half = [("graph", 2), ("resolved", 2)]
    assert told(good, half)[2:] == told(half, good)[2:] == ("same", well)
    assert told(half, bad)[2:] == told(bad, half)[2:] == ("differs", one)
    # half of both of two
    assert told(good, [("graph", 1), ("inferred", 2), ("none", 2)])[2] == "differs"
    # another pair
    rows = [(pair, side, "graph", 1 + pair) for pair in (0, 1) for side in ("base", "new")]
    found = conditions(ask, evidence=[*rows, (1, "new", "none", 3), (2, "base", "none", 1)])
    assert {key: row[:3] for key, row in found.items()} == {
        (0, "capture", "evidence of gaps"): ("graph 100%", "graph 100%", "same"),
        (1, "capture", "evidence of gaps"): ("graph 100%", "graph 40%, none 60%", "differs"),
    }


# --------------------------------------------------------------------------------------- results
NOISE = {
    **{"pair": "BIGINT", "item": "VARCHAR", "parent": "VARCHAR", "class": "VARCHAR"},
    **{"base_n": "BIGINT", "new_n": "BIGINT", "base_ns": "BIGINT", "new_ns": "BIGINT"},
    **{"base_min_ns": "BIGINT", "base_max_ns": "BIGINT", "new_min_ns": "BIGINT"},
    **{"new_max_ns": "BIGINT", "base_mean_ns": "DOUBLE", "new_mean_ns": "DOUBLE"},
    **{"p_value": "DOUBLE", "low_ns": "BIGINT", "high_ns": "BIGINT", "stands_out": "BOOLEAN"},
    **{"material_ns": "DOUBLE", "verdict": "VARCHAR", "basis": "VARCHAR"},
}


def quantity(item, base, new, pair=0, stands_out=True, **changed):
    parent, _, of = item.partition(":")
    row = {
        **{"pair": pair, "item": item, "parent": parent if of else None, "class": of or None},
        **{"base_n": 5, "new_n": 6, "base_ns": base, "new_ns": new, "base_min_ns": base - 1},
        **{"base_max_ns": base + 2, "new_min_ns": new - 3, "new_max_ns": new + 4},
        **{"base_mean_ns": base + 0.25, "new_mean_ns": new + 0.5, "p_value": 0.125},
        **{"low_ns": new - base - 5, "high_ns": new - base + 6},
        **{"stands_out": stands_out, "material_ns": 10.0, "verdict": "v", "basis": "b"},
    } | changed
    return tuple(str(value).lower() if isinstance(value, bool) else value for value in row.values())


SAID = {"pair.label": ("pair BIGINT, label VARCHAR", [(0, "said"), (7, "other")])}


def noise(*rows):
    columns = ", ".join(f'"{name}" {kind}' for name, kind in NOISE.items())
    return {**SAID, "pair.noise": (columns, list(rows))}


def test_compare_budget(ask):
    metrics = [
        *("iteration", "period", "device_busy", "device_idle", "noncomm_busy", "comm_busy"),
        *("compute_busy", "compute_absent", "occupied_not_computing", "launch_starved"),
        *("blocking", "dependency_stalled", "unattributed", "comm_exposed", "comm_blocking"),
        *("comm_overlapped", "launch_starved_shadowed"),
    ]
    rows = [quantity(name, 200, 230) for name in sorted(metrics)]
    rows += [quantity("blocking:nccl", 1, 2), quantity("blocking", 0, 5, pair=1)]
    rows += [quantity("iteration", 50, 40, pair=1)]
    found = ask("compare/budget", noise(*rows[::-1]))
    assert [row[:2] for row in found] == [
        *[(0, name) for name in metrics],
        *[(1, "iteration"), (1, "blocking")],
    ]
    assert found[0][2:] == (
        *(200, 230, 30, 15.0, 25, 36, 0.125, "v", "b", 199, 202, 227, 234, 200.25, 230.5),
        *(5, 6, "said"),
    )
    assert [row[4:6] for row in found[-2:]] == [(-10, -20.0), (5, None)]
    assert found[-1][-1] is None


def reconciled(ask, *rows):
    return ask("compare/reconciliation", noise(*rows))


def test_compare_reconciliation(ask):
    found = reconciled(
        ask,
        *[quantity("iteration", 1000, 1300), quantity("unattributed", 0, 0)],
        *[quantity("blocking", 100, 190), quantity("compute_busy", 700, 800)],
        *[quantity("launch_starved", 150, 240), quantity("dependency_stalled", 60, 50)],
        *[quantity("blocking:nccl", 60, 100), quantity("blocking:memcpy", 20, 80)],
        *[quantity("compute_busy:gemm", 500, 650), quantity("compute_busy:norm", 250, 90)],
        *[quantity("compute_busy:attention", 20, 30), quantity("compute_busy:rope", 10, 20)],
        *[quantity("period", 9, 9), quantity("device_busy", 9, 9)],
        *[quantity("iteration", 10, 0, pair=1), quantity("blocking", 0, 3, pair=1)],
    )
    assert [row[:7] for row in found] == [
        (0, 0, "iteration", None, 1000, 1300, 300),
        (0, 1, "compute_busy", "iteration", 700, 800, 100),
        (0, 2, "compute_busy:norm", "compute_busy", 250, 90, -160),
        (0, 2, "compute_busy:gemm", "compute_busy", 500, 650, 150),
        (0, 2, "compute_busy:attention", "compute_busy", 20, 30, 10),
        (0, 2, "compute_busy:rope", "compute_busy", 10, 20, 10),
        # 100 is 150 + 10 + 10 - 160 and 90 more
        (0, 2, "compute_busy:overlap and residual", "compute_busy", None, None, 90),
        (0, 1, "launch_starved", "iteration", 150, 240, 90),
        (0, 1, "blocking", "iteration", 100, 190, 90),
        (0, 2, "blocking:memcpy", "blocking", 20, 80, 60),
        (0, 2, "blocking:nccl", "blocking", 60, 100, 40),
        (0, 2, "blocking:residual of medians", "blocking", None, None, -10),
        (0, 1, "dependency_stalled", "iteration", 60, 50, -10),
        (0, 1, "unattributed", "iteration", 0, 0, 0),
        # 300 is 100 + 90 + 90 - 10 and 30 more
        (0, 1, "residual of medians", "iteration", None, None, 30),
        (1, 0, "iteration", None, 10, 0, -10),
        (1, 1, "blocking", "iteration", 0, 3, 3),
        (1, 2, "blocking:residual of medians", "blocking", None, None, 3),
        (1, 1, "residual of medians", "iteration", None, None, -13),
    ]
    shares = {row[:3]: row[7:9] for row in found}
    assert shares[0, 1, "compute_busy"] == (pytest.approx(100 / 7), 10.0)
    assert shares[0, 2, "blocking:nccl"] == (pytest.approx(200 / 3), 4.0)
    assert shares[0, 1, "unattributed"] == (None, 0.0)
    assert shares[0, 1, "residual of medians"] == (None, 3.0)
    assert shares[1, 1, "blocking"] == (None, 30.0)
    assert found[0][9:] == (295, 306, 0.125, "v", "b", 999, 1002, 1297, 1304, 5, 6, "said")
    # a remainder has nothing but its delta and how many windows there are
    assert found[6][9:] == (*[None] * 9, 5, 6, "said")
    assert {row[-1] for row in found[-4:]} == {None}


def test_compare_reconciliation_of_nothing(ask):
    found = reconciled(ask, quantity("iteration", 0, 5))
    assert [row[2:9] for row in found] == [
        ("iteration", None, 0, 5, 5, None, None),
        ("residual of medians", "iteration", None, None, 5, None, None),
    ]


FAR = (
    "pair BIGINT, base_far BIGINT, new_far BIGINT, base_adds_ns DOUBLE, new_adds_ns DOUBLE, "
    "is_told BOOLEAN"
)


def verdicts(ask, *rows, names=None, far=(), work=()):
    members = names or [
        (0, "new", "rank 5"),
        (0, "base", "rank 4"),
        (9, "base", "x"),
        (9, "new", "y"),
    ]
    columns = "pair BIGINT, side VARCHAR, label VARCHAR"
    tables = {
        "pair.member": (columns, members),
        "pair.outlier": (FAR, list(far)),
        "pair.launch_change": ("pair BIGINT, factor DOUBLE, is_other_work BOOLEAN", list(work)),
    }
    return ask("compare/verdict", {**noise(*rows), **tables})


def test_compare_verdict_passes_on_the_iteration(ask):
    ((*found,),) = verdicts(ask, quantity("iteration", 200, 250, verdict="slower"))
    assert found == [
        *(0, "rank 4", "rank 5", 200, 250, 50, 25.0, 45, 56, 0.125, 5, 6, "slower", "b"),
        *[None] * 7,
        *(200.25, 250.5, None, None, None, None, "said"),
    ]
    ((*found,),) = verdicts(ask, quantity("iteration", 0, 5))
    assert found[5:7] == [5, None]


def carried(ask, verdict, iteration, *rows):
    (row,) = verdicts(ask, quantity("iteration", *iteration, verdict=verdict), *rows)
    return row[14:18]


def test_compare_verdict_names_what_carries_it(ask):
    rows = [
        *[quantity("compute_busy", 100, 190), quantity("blocking", 100, 180)],
        *[quantity("launch_starved", 100, 400, stands_out=False)],
        *[quantity("dependency_stalled", 400, 100), quantity("unattributed", 5, 5)],
        *[quantity("device_busy", 0, 999), quantity("comm_exposed", 0, 999)],
        *[quantity("compute_busy:gemm", 10, 90), quantity("compute_busy:norm", 10, 95)],
        *[quantity("compute_busy:rope", 900, 100), quantity("compute_busy:other", 0, 181)],
        *[quantity("blocking:nccl", 0, 150)],
    ]
    assert carried(ask, "slower", (900, 1000), *rows) == ("compute_busy", 90, "norm", 85)
    assert carried(ask, "small", (900, 1000), *rows) == ("compute_busy", 90, "norm", 85)
    # twice as much as the whole, and no more
    rows[10] = quantity("compute_busy:other", 0, 180)
    assert carried(ask, "slower", (900, 1000), *rows) == ("compute_busy", 90, "other", 180)
    # in the direction of the iteration
    assert carried(ask, "faster", (1000, 900), *rows) == ("dependency_stalled", -300, None, None)
    for told in ("no change", "cannot tell"):
        assert carried(ask, told, (900, 1000), *rows) == (None, None, None, None)
    # an iteration that did not change has no direction, and so nothing carries it
    assert carried(ask, "small", (900, 900), *rows[:4]) == (None, None, None, None)


def test_compare_verdict_inside_follows_the_carrier(ask):
    rows = [
        *[quantity("blocking", 190, 100), quantity("blocking:nccl", 90, 10)],
        *[quantity("blocking:memcpy", 90, 9), quantity("blocking:memset", 0, 85)],
        *[quantity("blocking:graph", 190, 9), quantity("blocking:same", 9, 9)],
    ]
    # 181 is more than twice 90
    assert carried(ask, "faster", (1000, 900), *rows) == ("blocking", -90, "memcpy", -81)
    rows[4] = quantity("blocking:graph", 189, 9)
    assert carried(ask, "faster", (1000, 900), *rows) == ("blocking", -90, "graph", -180)


def test_compare_verdict_of_equal_deltas_goes_by_name(ask):
    rows = [
        *[quantity("launch_starved", 1, 9), quantity("blocking", 1, 9)],
        *[quantity("blocking:nccl", 1, 5), quantity("blocking:memcpy", 1, 5)],
    ]
    assert carried(ask, "slower", (10, 20), *rows) == ("blocking", 8, "memcpy", 4)


def test_compare_verdict_tells_what_lies_between(ask):
    def between(iteration, period, **changed):
        rows = quantity("iteration", *iteration), quantity("period", *period, **changed)
        (row,) = verdicts(ask, *rows)
        return row[18:21]

    # 10 ns is material
    for told in ("slower", "faster"):
        assert between((100, 120), (200, 230), verdict=told) == (200, 230, 10)
        assert between((100, 120), (200, 229), verdict=told) == (200, 229, None)
        assert between((100, 120), (230, 240), verdict=told) == (230, 240, -10)
    for told in ("small", "no change", "cannot tell"):
        assert between((100, 120), (200, 300), verdict=told) == (200, 300, None)


def test_compare_verdict_keeps_pairs_apart(ask):
    rows = [
        *[quantity("iteration", 900, 1000, verdict="slower"), quantity("blocking", 0, 50)],
        *[quantity("blocking:nccl", 0, 40), quantity("period", 900, 1000, verdict="slower")],
        *[
            quantity("iteration", 900, 800, pair=1, verdict="faster"),
            quantity("blocking", 0, 70, 1),
        ],
        *[quantity("compute_busy", 70, 60, 1), quantity("compute_busy:gemm", 70, 65, 1)],
        *[quantity("compute_busy:norm", 70, 69, 0), quantity("period", 0, 9, 1)],
    ]
    names = [(1, "base", "c"), (0, "new", "b"), (0, "base", "a"), (1, "new", "d")]
    found = verdicts(ask, *rows[::-1], names=names)
    assert [(*row[:3], *row[14:21], row[27]) for row in found] == [
        (0, "a", "b", "blocking", 50, "nccl", 40, 900, 1000, None, "said"),
        (1, "c", "d", "compute_busy", -10, "gemm", -5, 0, 9, None, None),
    ]


def test_compare_verdict_tells_of_outliers_and_of_other_work(ask):
    rows = [quantity("iteration", 900, 1000, pair, new_n=n) for pair, n in enumerate((5, 5, 4))]
    names = [(pair, side, side) for pair in range(3) for side in ("base", "new")]
    far = [(0, 1, 3, 5.0, 2.5, "true"), (1, 4, 5, 1.0, 9.0, "false"), (2, 1, 2, 0, 0, "false")]
    work = [(0, 2.5, "false"), (1, 0.5, "true")]
    found = verdicts(ask, *rows, names=names, far=far, work=work)
    assert [row[21:27] for row in found] == [
        (900.25, 1000.5, 1, 3, -2.5, None),
        (900.25, 1000.5, 4, 5, None, 0.5),
        (900.25, 1000.5, None, None, None, None),
    ]
