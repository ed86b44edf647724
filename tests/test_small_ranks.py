"""Single SQL files about several ranks over small tables made by hand, as in test_small_tables."""

import pytest


def aligned(ask, pairs, **variables):
    tables = {
        "rank.clock": (
            "member_id BIGINT, host VARCHAR, clock VARCHAR, session_start_ns BIGINT",
            [
                *[(5, "d", "D", 15), (1, "a", "A", 11), (0, "a", "A", 10), (2, "b", "B", 12)],
                *[(3, "b", "B", 13), (4, "c", "C", 14)],
            ],
        ),
        "rank.clock_offset": (
            "clock VARCHAR, origin VARCHAR, offset_ns BIGINT, hops BIGINT",
            [("A", None, 0, 0), ("B", "A", 1_000_000, 1), ("C", "B", 5_000_000, 2)],
        ),
        "rank.end_pair": (
            "lead_id BIGINT, lead_clock VARCHAR, member_id BIGINT, clock VARCHAR, ahead_ns BIGINT",
            pairs,
        ),
    }
    return sorted(ask("ranks/aligned", tables, **variables))


def test_ranks_aligned(ask):
    # residuals in us: 7 and 9 on one clock, 10 and 20 of rank 2 to A, 30 and 40 of rank 4 to B,
    # of these one led by it
    pairs = [
        *[(0, "A", 1, "A", 7_000), (0, "A", 1, "A", -9_000), (0, "A", 2, "B", 1_010_000)],
        *[(0, "A", 2, "B", 980_000), (3, "B", 4, "C", 4_030_000), (4, "C", 3, "B", -4_040_000)],
        (2, "B", 3, "B", 99_000),
    ]
    rows = aligned(ask, pairs, min_matches=2, residual_limit_us=39)
    assert rows == [
        (0, "a", 10, "reference", 0, 0, None, None, None, True),
        (1, "a", 11, "same clock", 0, 2, 8_000, 8_900, 9_000, True),
        (2, "b", 12, "matched ends", 1_000_000, 2, 15_000, 19_500, 20_000, True),
        (3, "b", 13, "matched ends", 1_000_000, 2, 15_000, 19_500, 20_000, True),
        (
            *(4, "c", 14, "matched ends, through other hosts", 5_000_000, 2),
            *(35_000, 39_500, 40_000, False),
        ),
        (5, "d", 15, "none", None, 0, None, None, None, False),
    ]
    # what B shares with C proves nothing about B, and where B is weak C is weak however well it is
    # tied to it
    good = [(3, "B", 4, "C", 4_000_000)] * 10
    for variables, more, kept in (
        ({"min_matches": 3, "residual_limit_us": 40}, good, [0, 1]),
        ({"min_matches": 2, "residual_limit_us": 40}, [], [0, 1, 2, 3, 4]),
        ({"min_matches": 2, "residual_limit_us": 39}, [], [0, 1, 2, 3]),
        ({"min_matches": 2, "residual_limit_us": 19}, good, [0, 1]),
        ({}, [], [0, 1]),
    ):
        found = aligned(ask, pairs + more, **variables)
        assert [row[0] for row in found if row[-1]] == kept, variables


@pytest.mark.parametrize(
    ("residual_ns", "matches", "is_aligned"),
    [(1_000_000, 10, True), (1_000_001, 10, False), (0, 9, False)],
)
def test_ranks_aligned_by_default(ask, residual_ns, matches, is_aligned):
    rows = aligned(ask, [(0, "A", 2, "B", 1_000_000 - residual_ns)] * matches)
    assert rows[2][-1] is is_aligned


def test_ranks_aligned_window(ask):
    tables = {
        "rank.member_window": (
            "member_id BIGINT, iteration BIGINT, iteration_ns BIGINT, start_ns BIGINT, "
            "end_ns BIGINT",
            [(0, 3, 9, 10, 19), (1, 4, 8, 10, 18)],
        ),
        "rank.aligned": (
            "member_id BIGINT, is_aligned BOOLEAN, offset_ns BIGINT",
            [(0, True, 5), (1, False, 7)],
        ),
    }
    assert sorted(ask("ranks/aligned_window", tables)) == [(0, 3, 9, 15, 24), (1, 4, 8, None, None)]


INSTANCE = "kind VARCHAR, name VARCHAR, iteration BIGINT, collective VARCHAR, ordinal BIGINT"


def test_ranks_arrival_instance(ask):
    # one instance of four aligned ranks, and for each key another that differs in it; in the last
    # one a rank is not aligned, so the order follows from durations: 30, 20 and 20
    base = ("tp", "g", 0, "ar", 0)
    others = [
        *[("pp", "g", 0, "ar", 0), ("tp", "h", 0, "ar", 0), ("tp", "g", 1, "ar", 0)],
        *[("tp", "g", 0, "rs", 0), ("tp", "g", 0, "ar", 1)],
    ]
    ends = [9_500, 8_500, 9_000, 10_000]  # 1 000 apart at most with the offset of rank 1
    rows = [(m, *base, 4, 100 + 10 * m, 50, m, 1000 * (m + 1), ends[m]) for m in range(4)]
    rows += [(m, *key, 2, 9, 8, 7, 77, 9_001 * (1 - m)) for key in others for m in (0, 1)]
    rows += [
        (m, "dp", "g", 0, "ar", 0, 3, d, 20, d - 20, 5, 9_000 * m)
        for m, d in ((0, 30), (2, 20), (4, 20))
    ]
    # of two clocks that are not aligned only members of one of them compare
    rows += [(m, "ep", "g", 0, "ar", 0, 3, 9, 9, 0, 5, 9_000 * (m // 6)) for m in (4, 5, 6)]
    rows += [(m, "ep", "h", 0, "ar", 0, 3, 9, 9, 0, 5, 1_001 * (m // 5)) for m in (4, 5)]
    tables = {
        "rank.matched": (
            f"member_id BIGINT, {INSTANCE}, members BIGINT, duration_ns BIGINT, "
            "transfer_proxy_ns BIGINT, jitter_wait_ns BIGINT, start_ns BIGINT, end_ns BIGINT",
            rows,
        ),
        "rank.aligned": (
            "member_id BIGINT, is_aligned BOOLEAN, offset_ns BIGINT",
            [
                *[(0, True, 0), (1, True, 500), (2, True, 0), (3, True, 0), (4, False, 9)],
                *[(5, False, 0), (6, False, None)],
            ],
        ),
        "rank.clock": (
            "member_id BIGINT, clock VARCHAR",
            [*[(m, f"{m}") for m in range(4)], (4, "x"), (5, "x"), (6, "y")],
        ),
        # 2 000 is the typical window 0, 20 000 that of window 1
        "rank.member_window": (
            "iteration BIGINT, iteration_ns BIGINT",
            [(0, 2_000), (0, 1_000), (0, 90_000), (1, 20_000)],
        ),
    }

    def shown(start=0):
        tables["rank.matched"][1][0] = (0, *base, 4, 100, 50, 0, 1000, ends[0] + start)
        found = ask("ranks/arrival_instance", tables)
        return {row[:6]: row[6:-1] for row in found}, {row[1:6] for row in found if row[-1]}

    found, apart = shown()
    assert len(found) == len(rows)
    # ends 9 001 apart are too much for a window of 2 000, not for one of 20 000; 1 000 are not
    two = {("dp", "g", 0, "ar", 0), ("ep", "h", 0, "ar", 0)}
    assert apart == {*two, *others} - {("tp", "g", 1, "ar", 0)}
    assert shown(-501)[1] - apart == {base} and shown(-500)[1] == apart
    found, _ = shown()
    # arrivals 1000, 2500, 3000, 4000: the lower middle one is 2500
    assert [found[(m, *base)] for m in range(4)] == [
        (4, 100, 50, 0, True, 0, 0, False),
        (4, 110, 50, 1, True, 1500, 0, False),
        (4, 120, 50, 2, True, 2000, 500, False),
        (4, 130, 50, 3, True, 3000, 1500, True),
    ]
    for key in others:
        assert [found[(m, *key)] for m in (0, 1)] == [
            (2, 9, 8, 7, True, 0, 0, False),
            (2, 9, 8, 7, True, 500, 500, True),
        ]
    assert [found[m, "dp", "g", 0, "ar", 0] for m in (0, 2, 4)] == [
        (3, 30, 20, 10, False, 0, 0, False),
        (3, 20, 20, 0, False, 10, 0, True),
        (3, 20, 20, 0, False, 10, 0, False),
    ]


def test_ranks_blame(ask):
    columns = (
        "member_id BIGINT, iteration BIGINT, iteration_ns BIGINT, caused_ns BIGINT, "
        "is_timed BOOLEAN"
    )
    rows = [
        *[(0, 0, 100, 1, True), (1, 0, 100, 0, True), (2, 0, 9000, -5, True)],
        *[(0, 1, 100, -7, True), (1, 1, 100, 2, True), (2, 1, 100, 3, False)],
    ]
    tables = {"rank.delay": (columns, rows)}

    def blamed(**variables):
        return sorted(ask("ranks/blame", tables, **variables), key=str)

    # both that exceed the threshold are named
    assert blamed() == [(0, None, None, True), (1, 1, 2, False), (1, 2, 3, False)]
    assert [row[:2] for row in blamed(threshold_pct=0.9)] == [(0, 0), (1, 1), (1, 2)]
    assert [row[:2] for row in blamed(threshold_pct=2)] == [(0, None), (1, 2)]
    tables = {"rank.delay": (columns, [(5, 0, 10_000, 100, True), (5, 1, 10_000, 101, True)])}
    assert blamed() == [(0, None, None, True), (1, 5, 101, True)]
    # nobody holds others up for longer than the longest window of all
    over = [(0, 0, 90, 100, True), (1, 0, 100, 0, True), (0, 1, 100, 101, True)]
    tables = {"rank.delay": (columns, over)}
    assert blamed() == [(0, 0, 100, True), (1, None, None, True)]


def test_ranks_blind(ask):
    why = "why"
    instances = [
        *[(0, "tp", "g", 0, "ar", 30), (0, "tp", "g", 1, "ar", 30), (0, "tp", "g", 0, "rs", 7)],
        *[(0, "dp", "g", 0, "ar", 9), (0, "dp", "h", 0, "ar", 100), (1, "dp", "g", 0, "ar", 11)],
    ]
    tables = {
        "rank.instance": (
            "member_id BIGINT, kind VARCHAR, name VARCHAR, iteration BIGINT, collective VARCHAR, "
            "duration_ns BIGINT",
            instances,
        ),
        "rank.match_set": (
            "kind VARCHAR, name VARCHAR, iteration BIGINT, collective VARCHAR, members BIGINT, "
            "reason VARCHAR",
            [
                *[("tp", "g", 0, "ar", 1, why), ("tp", "g", 1, "ar", 1, why)],
                *[("tp", "g", 0, "rs", 1, why), ("dp", "g", 0, "ar", 2, why)],
                ("dp", "h", 0, "ar", 2, None),
            ],
        ),
        "rank.arrival_instance": (
            "member_id BIGINT, kind VARCHAR, name VARCHAR, duration_ns BIGINT, is_apart BOOLEAN",
            [(0, "dp", "h", 100, True), (1, "dp", "h", 60, False)],
        ),
        "rank.member_window": ("member_id BIGINT", [(0,), (0,), (1,)]),
        "rank.scope": ("world_size BIGINT, sampled BIGINT", [(3, 2)]),
    }
    alone = (0, "tp", "g", True, 33.5)
    rest = [(0, "dp", "g", False, 4.5), (0, "dp", "h", False, 50.0), (1, "dp", "g", False, 11.0)]
    assert sorted(ask("ranks/blind", tables)) == sorted([alone, *rest])
    # where all ranks were sampled, a group of one has no other member
    for scope, kept in (((2, 2), []), ((None, 2), [alone])):
        tables["rank.scope"] = (tables["rank.scope"][0], [scope])
        assert sorted(ask("ranks/blind", tables)) == sorted([*kept, *rest])


def off_steps(ask, starts, *, ends=None, aligned=(), clocks=None, met=()):
    """Members whose windows of 100 start there (end 100 later): `met` are (member, is_apart)."""
    ends = ends or {}
    tables = {
        "rank.member_window": (
            "member_id BIGINT, iteration BIGINT, iteration_ns BIGINT, start_ns BIGINT, "
            "end_ns BIGINT",
            [
                (m, i, 100, at + 1000 * i, ends.get(m, at + 100) + 1000 * i)
                for m, at in starts.items()
                for i in ((1,) if m == 4 else (0, 1))
            ],
        ),
        "rank.aligned": (
            "member_id BIGINT, is_aligned BOOLEAN, offset_ns BIGINT",
            [(m, m in dict(aligned), dict(aligned).get(m)) for m in starts],
        ),
        "rank.clock": (
            "member_id BIGINT, clock VARCHAR",
            [(m, (clocks or {}).get(m, "A")) for m in starts],
        ),
        "rank.arrival_instance": ("member_id BIGINT, is_apart BOOLEAN", list(met)),
    }
    return sorted(ask("ranks/off_step", tables))


def test_ranks_off_step(ask):
    # on one clock, aligned or not, and on clocks that are aligned
    starts = {0: 0, 1: 51, 2: -60, 3: 0, 4: 50}
    assert off_steps(ask, starts) == [(1, 51.0), (2, -60.0)]
    assert off_steps(ask, starts, clocks={2: "B"}) == [(1, 51.0)]
    moved = {m: at + 5000 * (m == 1) for m, at in starts.items()}
    zero = dict.fromkeys(starts, 0) | {1: -5000}
    other = {1: "B"}
    assert off_steps(ask, moved, aligned=zero.items(), clocks=other) == [(1, 51.0), (2, -60.0)]
    # a window that only starts or ends elsewhere counts the same steps, the lesser of both counts
    assert off_steps(ask, {0: 0, 1: 0, 2: -90}, ends={2: 100}) == []
    assert off_steps(ask, {0: 0, 1: 0, 2: -90}, ends={2: 190}) == []
    assert off_steps(ask, {0: 0, 1: 0, 2: 90}, ends={2: 155}) == [(2, 55.0)]
    assert off_steps(ask, {0: 0, 1: 0, 2: -90}, ends={2: 45}) == [(2, -55.0)]
    assert off_steps(ask, {0: 0, 1: 0, 2: -90}, ends={2: 50}) == []
    # so does one whose matched collectives end with those of others, however late it is
    zero = dict.fromkeys(starts, 0).items()
    met = [(1, False), (1, False), (2, False), (2, True)]
    assert off_steps(ask, starts, aligned=zero, met=met) == [(2, -60.0)]


def test_ranks_clock(ask):
    tables = {
        "rank.member": (
            "member_id BIGINT, host VARCHAR, part VARCHAR",
            [(0, "h", "p"), (1, None, "p"), (2, None, "q"), (3, "h", "r"), (4, None, "s")],
        ),
        "rank.trace": (
            "part VARCHAR, session_start_ns BIGINT",
            [("p", 1), ("q", 2), ("r", None), ("s", None)],
        ),
        "rank.part": (
            "part VARCHAR, host_hash VARCHAR",
            [("p", "x"), ("q", None), ("r", "x"), ("s", "y")],
        ),
    }
    assert sorted(ask("ranks/clock", tables)) == [
        (0, "h", "host h", 1),
        (1, "host x", "hash x", 1),
        (2, None, "report q", 2),
        (3, "h", "report r", None),
        (4, "host y", "report s", None),
    ]


def test_ranks_clock_offset(ask):
    # A is the reference; B is met 3 times (ahead 10, 12, 30), C once as the leader of A (A ahead of
    # it by 5), D through B (2 times, 7) and through C (once, 9), E through D only, F never
    pairs = [
        *[("A", "B", 10), ("A", "B", 12), ("A", "B", 30), ("A", "A", 99), ("C", "A", 5)],
        *[("B", "D", 7), ("B", "D", 7), ("C", "D", 9), ("D", "E", 1), ("F", "G", 1)],
    ]
    tables = {
        "rank.end_pair": ("lead_clock VARCHAR, clock VARCHAR, ahead_ns BIGINT", pairs),
        "rank.clock": (
            "member_id BIGINT, clock VARCHAR",
            [(3, "B"), (1, "A"), (2, "A"), (4, "C"), (5, "F")],
        ),
    }
    assert sorted(ask("ranks/clock_offset", tables)) == [
        *[("A", None, 0, 0), ("B", "A", 12, 1), ("C", "A", -5, 1), ("D", "B", 19, 2)],
        ("E", "D", 20, 3),
    ]
    # both ways between two clocks are one link, in whole nanoseconds however far they are apart
    far = 1_780_000_000_000_000_001
    pairs = [("A", "B", far), ("A", "B", far + 2), ("A", "B", far + 3), ("A", "B", far + 3)]
    pairs += [("B", "C", 1), ("C", "B", -2), ("C", "B", -3), ("B", "D", 7), ("C", "D", 9)]
    pairs += [("D", "B", -8), ("D", "C", -9), ("D", "C", -9)]
    tables["rank.end_pair"] = (tables["rank.end_pair"][0], pairs)
    assert sorted(ask("ranks/clock_offset", tables)) == [
        *[("A", None, 0, 0), ("B", "A", far + 3, 1), ("C", "B", far + 5, 2)],
        ("D", "B", far + 11, 2),
    ]
    # half a nanosecond goes away from 0, whichever clock leads
    for sign in (1, -1):
        tables["rank.end_pair"] = (
            tables["rank.end_pair"][0],
            [("A", "B", 2 * sign), ("A", "B", 3 * sign), ("C", "A", -2 * sign)],
        )
        offsets = {row[0]: row[2] for row in ask("ranks/clock_offset", tables)}
        assert offsets == {"A": 0, "B": 3 * sign, "C": 2 * sign}


def delays(ask, instances, windows, stages, other=()):
    """Windows end with what is exposed; `other` are (member, iteration, ns) that match nothing."""
    tables = {
        "rank.arrival_instance": (
            "member_id BIGINT, iteration BIGINT, kind VARCHAR, name VARCHAR, late_ns BIGINT, "
            "jitter_wait_ns BIGINT, is_last BOOLEAN, is_timed BOOLEAN, is_apart BOOLEAN",
            [(*row, False) if len(row) == 8 else row for row in instances],
        ),
        "rank.instance": (
            "member_id BIGINT, iteration BIGINT, duration_ns BIGINT",
            [*[(row[0], row[1], row[5]) for row in instances], *other],
        ),
        "rank.aligned_window": (
            "member_id BIGINT, iteration BIGINT, iteration_ns BIGINT, start_ns BIGINT, "
            "end_ns BIGINT",
            [row[:5] for row in windows],
        ),
        "rank.member_window": (
            "member_id BIGINT, iteration BIGINT, comm_exposed_ns BIGINT, comm_blocking_ns BIGINT",
            [(*row[:2], row[5], row[6] if len(row) > 6 else 0) for row in windows],
        ),
        "rank.member": ("member_id BIGINT, stage BIGINT", list(stages.items())),
    }
    return sorted(ask("ranks/delay", tables))


def test_ranks_delay(ask):
    # rank 0: groups tp (late 10 + 20) and dp (late 25): only the greater counts, waits add up;
    # pp spans two stages: it tells what held a rank up, not that it is late
    instances = [
        *[(0, 0, "tp", "g", 10, 1, True, True), (0, 0, "tp", "g", 20, 2, False, True)],
        *[(0, 0, "dp", "g", 25, 4, True, True), (0, 0, "pp", "g", 900, 8, True, True)],
        *[(1, 0, "tp", "g", 0, 16, False, True), (1, 0, "pp", "g", 5, 32, False, False)],
        *[(2, 0, "pp", "g", 7, 64, False, True), (0, 1, "tp", "g", 6, 0, False, True)],
        *[(0, 0, "tp", "h", 29, 128, False, True), (1, 1, "tp", "g", 0, 0, False, True)],
    ]
    # window 0: rank 0 starts 30 after the typical start and ends 12 after the typical end; rank 1
    # loses 450 more than it. window 1: it is late by 6, of which rank 1 loses 5
    windows = [(0, 0, 100, 1030, 1130, 50), (1, 0, 118, 1000, 1118, 500)]
    windows += [(2, 0, 9, 5000, 6000, 0), (0, 1, 70, None, None, 3), (1, 1, 70, None, None, 7, 8)]
    rows = delays(ask, instances, windows, {0: 0, 1: 0, 2: 1})
    assert rows == [
        (0, 0, 100, 30, 143, 5, 3, True, 18, 450, 0, 30 - 18),
        (0, 1, 70, 6, 0, 1, 0, True, 0, 5, 0, 5),
        (1, 0, 118, 0, 48, 2, 0, False, 0, 0, 48, -48),
        (1, 1, 70, 0, 0, 1, 0, True, 0, 0, 0, 0),
    ]
    # an instance whose members cannot have met says nothing: what was exposed may have been in it
    apart = [(0, 0, "tp", "g", 900, 900, True, False, True)]
    first, *others = delays(ask, instances + apart, windows, {0: 0, 1: 0, 2: 1})
    assert first == (*rows[0][:9], 500, *rows[0][10:]) and others == rows[1:]
    # without stages no group spans any
    late = {row[:2]: row[3] for row in delays(ask, instances, windows, {0: None, 1: None, 2: None})}
    assert late == {(0, 0): 900, (0, 1): 6, (1, 0): 5, (1, 1): 0, (2, 0): 7}


def losses(ask, late, jitter, lost, groups=(("dp", "g", (0, 1)),), other=(), blocking=(0,) * 9):
    """(lost, held, caused) of each rank in one window."""
    instances = [
        (m, 0, kind, name, late[m], jitter[m] if at == 0 else 0, False, True)
        for at, (kind, name, who) in enumerate(groups)
        for m in who
    ]
    windows = [(m, 0, 1000, None, None, ns, blocking[m]) for m, ns in enumerate(lost)]
    rows = delays(ask, instances, windows, {m: 0 for m, _ in enumerate(lost)}, other)
    return [row[-3:] for row in rows]


def test_ranks_delay_is_no_more_than_others_lose_by_it(ask):
    # 40 buckets beside compute, each late by the same delay: the others lose it once, at the end
    assert losses(ask, (400, 0), (0, 400), (5, 15))[0] == (10, 0, 10)
    # the bubble of a pipeline and the transfer are in both; waits in it are no excuse
    assert losses(ask, (90, 0), (300, 312), (300, 312))[0] == (12, 0, 12)
    # a rank that lost as much itself only passes it on
    assert losses(ask, (90, 0), (80, 90), (80, 80))[0] == (0, 0, 0)
    # what it waited beyond the least of all is not its own: counted from both ends
    graded = losses(ask, (0, 0, 20, 40), (60, 40, 20, 0), (60, 40, 20, 0), [("dp", "g", range(4))])
    assert graded == [(0, 60, -60), (0, 40, -40), (20, 20, 0), (40, 0, 40)]
    # what compute waited for counts, too, where copies run beside it; exposed alone may be less
    assert losses(ask, (90, 0), (0, 90), (5, 5), blocking=(5, 35))[0] == (30, 0, 30)
    assert losses(ask, (90, 0), (0, 90), (5, 35), blocking=(0, 5))[0] == (30, 0, 30)
    # of several that are late the others are the usual ones, to one half of the group
    four = [("dp", "g", range(4))]
    assert losses(ask, (9, 9, 0, 0), (0, 0, 9, 9), (1, 1, 9, 9), four)[:2] == [(8, 0, 8)] * 2
    assert losses(ask, (9, 9, 9, 0), (0, 0, 0, 9), (1, 1, 1, 9), four)[0] == (0, 0, 0)


def test_ranks_delay_takes_a_slow_transfer_or_an_unseen_wait_for_no_excuse(ask):
    # 70 more than the other in collectives without a matched wait, 60 of it exposed
    assert losses(ask, (90, 0), (0, 60), (60, 60), other=[(0, 0, 80), (1, 0, 10)])[0][-1] == 60
    assert losses(ask, (90, 0), (0, 60), (60, 60), other=[(0, 0, 30), (1, 0, 10)])[0][-1] == 20
    # as much as the others have explains nothing
    assert losses(ask, (90, 0), (0, 60), (60, 60), other=[(0, 0, 80), (1, 0, 80)])[0][-1] == 0
    # of two groups the one counts in which it causes most
    groups = [("dp", "g", (0, 1)), ("tp", "g", (0, 2))]
    assert losses(ask, (50, 0, 0), (0, 9, 9), (0, 10, 20), groups)[0] == (20, 0, 20)


def test_ranks_delay_of_a_window_that_ends_earlier_than_usual(ask):
    # it starts 10 late and ends 3 early: all of the 10 explain lateness; what one loses that starts
    # 10 early is 10 less
    instances = [(m, 0, "tp", "g", 50 * (m == 1), 0, False, True) for m in (0, 1, 2)]
    windows = [(0, 0, 100, 1000, 1100, 80), (1, 0, 87, 1010, 1097, 0), (2, 0, 120, 990, 1110, 80)]
    rows = delays(ask, instances, windows, {0: 0, 1: 0, 2: 0})
    assert [row[-4:] for row in rows] == [(0, 0, 0, 0), (10, 70, 0, 40), (0, 0, 0, 0)]


def test_ranks_delay_of_a_group_that_starts_earlier_than_usual(ask):
    # dp starts 10 before the others and ends 10 after them: 10 of what it is late are its own
    instances = [(m, 0, "tp", "g", 50, 0, False, True) for m in (0, 1, 2)]
    instances += [(m, 0, "dp", "g", 50, 0, False, True) for m in (3, 4)]
    windows = [(m, 0, 100, 1000, 1100, 0) for m in (0, 1, 2)]
    windows += [(m, 0, 120, 990, 1110, 30 * (m == 4)) for m in (3, 4)]
    rows = delays(ask, instances, windows, dict.fromkeys(range(5)))
    assert [row[3] for row in rows] == [50, 50, 50, 40, 40]
    assert rows[3][-3:] == (20, 0, 20)
    # what ends as much earlier is only elsewhere in time
    windows[3:] = [(m, 0, 100, 990, 1090, 30 * (m == 4)) for m in (3, 4)]
    rows = delays(ask, instances, windows, dict.fromkeys(range(5)))
    assert [row[3] for row in rows] == [50] * 5
    assert rows[3][-3:] == (30, 0, 30)


def test_ranks_end_pair(ask):
    # the reference rank is 1 (clock A); where no rank of A takes part the least rank leads
    base = ("tp", "g", 0, "ar", 0)
    others = [
        *[("pp", "g", 0, "ar", 0), ("tp", "h", 0, "ar", 0), ("tp", "g", 1, "ar", 0)],
        *[("tp", "g", 0, "rs", 0), ("tp", "g", 0, "ar", 1)],
    ]
    rows = [(*base, m, e) for m, e in ((3, 70), (2, 90), (1, 100))]
    rows += [(*key, m, e) for key in others for m, e in ((2, 60), (3, 75))]
    tables = {
        "rank.matched": (f"{INSTANCE}, member_id BIGINT, end_ns BIGINT", rows),
        "rank.clock": ("member_id BIGINT, clock VARCHAR", [(2, "B"), (1, "A"), (3, "A")]),
    }
    found = ask("ranks/end_pair", tables)
    assert sorted(found) == sorted(
        [(1, "A", 2, "B", 10), (1, "A", 3, "A", 30), *[(3, "A", 2, "B", 15)] * len(others)]
    )
    tables["rank.clock"] = ("member_id BIGINT, clock VARCHAR", [(2, "B"), (1, "A"), (3, "C")])
    assert sorted(set(ask("ranks/end_pair", tables))) == [
        *[(1, "A", 2, "B", 10), (1, "A", 3, "C", 30), (2, "B", 3, "C", -15)],
    ]


def test_ranks_feature(ask):
    rows = [
        # part p device 0: gemm 1 + 2 of two kernels in window 0, gemm 5 in window 1
        *[
            ("p", 0, 0, "compute", "gemm", None, "k", 1),
            ("p", 0, 0, "compute", "gemm", None, "l", 2),
        ],
        *[("p", 0, 1, "compute", "gemm", None, "k", 5), ("p", 0, 0, "comm", "nccl", None, "c", 4)],
        *[("p", 0, 1, "comm", "nccl", None, "d", 3), ("p", 0, 1, "comm", "nccl", None, "c", 1)],
        *[("p", 0, 0, "comm", "nccl", "ar", "c", 6), ("p", 0, 1, "comm", "nccl", "ar", "c", 6)],
        *[
            ("p", 0, 0, "memcpy", "memcpy", None, "m", 9),
            ("p", 1, 0, "compute", "gemm", None, "k", 7),
        ],
        *[("q", 0, 0, "compute", "gemm", None, "k", 7), ("q", 0, 0, "comm", "nccl", "ar", "c", 7)],
    ]
    tables = {
        "rank.member": (
            "member_id BIGINT, part VARCHAR, device BIGINT",
            [(0, "p", 0), (1, "p", 1), (2, "q", 0)],
        ),
        "rank.work": (
            "part VARCHAR, device BIGINT, iteration BIGINT, role VARCHAR, class VARCHAR, "
            "collective VARCHAR, name VARCHAR, count BIGINT",
            rows,
        ),
        "rank.member_window": ("member_id BIGINT", [(0,), (0,), (1,), (2,), (2,), (2,)]),
    }
    assert sorted(ask("ranks/feature", tables)) == [
        (0, "class", "gemm", 4.0),
        (0, "collective", "ar", 6.0),
        (0, "collective", "other", 4.0),
        (0, "kernel", "k", 3.0),
        (0, "kernel", "l", 1.0),
        (1, "class", "gemm", 7.0),
        (1, "kernel", "k", 7.0),
    ]


def fingerprints(ask, features, stages):
    tables = {
        "rank.member": ("member_id BIGINT, stage BIGINT", list(stages.items())),
        "rank.feature": ("member_id BIGINT, kind VARCHAR, key VARCHAR, count DOUBLE", features),
    }
    return sorted(ask("ranks/fingerprint", tables))


def test_ranks_fingerprint(ask):
    same = [("kernel", "k", 1.5), ("collective", "rs", 2), ("collective", "ar", 1)]
    features = [(m, *each) for m in (1, 2, 4) for each in same]
    features += [(3, *each) for each in reversed(same)] + [(2, "class", "gemm", 1)]
    features += [(4, "class", "b", 2.5), (4, "class", "a", 2), (4, "kernel", "l", 1)]
    rows = fingerprints(ask, features, {1: 0, 2: 0, 3: 0, 4: None, 5: 1})
    assert [(row[0], row[1], *row[3:]) for row in rows] == [
        (1, 0, 0, "ar 1, rs 2", None, 1),
        (2, 0, 1, "ar 1, rs 2", "gemm 1", 1),
        (3, 0, 0, "ar 1, rs 2", None, 1),
        (4, None, 3, "ar 1, rs 2", "a 2, b 2.5", 2),
        (5, 1, 2, None, None, 0),
    ]
    prints = [row[2] for row in rows]
    assert prints[0] == prints[2] and len({*prints}) == 4 and {len(each) for each in prints} == {8}
    # the same work in two stages is two groups; a count, a key or a kind makes another print
    rows = fingerprints(ask, [(m, *each) for m in (1, 2) for each in same], {1: 0, 2: 1})
    assert [row[3] for row in rows] == [0, 1] and rows[0][2] == rows[1][2]
    for other in [("kernel", "k", 2), ("kernel", "l", 1.5), ("class", "k", 1.5)]:
        features = [(1, *each) for each in same] + [(2, *each) for each in (*same[1:], other)]
        assert [row[3] for row in fingerprints(ask, features, {1: 0, 2: 0})] == [0, 1]


COLLECTIVE = (
    "part VARCHAR, device BIGINT, stream_id BIGINT, class VARCHAR, collective VARCHAR, "
    "name VARCHAR, communicator VARCHAR, iteration BIGINT, correlation_id BIGINT, op_id BIGINT, "
    "start_ns BIGINT, end_ns BIGINT, bytes BIGINT"
)
RULE = (
    "kind VARCHAR, streams BIGINT[], classes VARCHAR[], types VARCHAR[], communicators VARCHAR[], "
    "pattern VARCHAR"
)


def instances(ask, ops, rules, memberships, *, session=1000):
    tables = {
        "rank.member": (
            "member_id BIGINT, part VARCHAR, device BIGINT",
            [(0, "p", 0), (1, "p", 1)],
        ),
        "rank.membership": ("member_id BIGINT, kind VARCHAR, name VARCHAR", memberships),
        "rank.rule": (RULE, rules),
        "rank.collective": (COLLECTIVE, ops),
        "rank.trace": ("part VARCHAR, session_start_ns BIGINT", [("p", session)]),
    }
    return sorted(ask("ranks/instance", tables))


def sent(op_id, corr, start, *, device=0, stream=7, type="ar", name="sum", comm="c", iteration=0):
    end = start + 10
    return ("p", device, stream, "Nccl", type, name, comm, iteration, corr, op_id, start, end, 64)


@pytest.mark.parametrize(
    ("rule", "kept"),
    [
        ((None, None, None, None, None), [1, 2, 3, 4, 5]),
        (([7], None, None, None, None), [1, 3, 4, 5]),
        ((None, ["nccl"], None, None, None), [1, 2, 3, 4, 5]),
        ((None, ["other"], None, None, None), []),
        ((None, None, ["ar"], None, None), [1, 2, 4, 5]),
        ((None, None, None, ["d"], None), [5]),
        ((None, None, None, None, "su"), []),
        ((None, None, None, None, "su."), [1, 2, 3, 5]),
        (([7], ["nccl"], ["ar"], ["c"], "sum"), [1]),
    ],
)
def test_ranks_instance_takes_what_fits_the_whole_rule(ask, rule, kept):
    ops = [
        *[sent(1, 1, 0), sent(2, 2, 20, stream=8), sent(3, 3, 40, type="RS")],
        *[sent(4, 4, 60, name="max"), sent(5, 5, 80, comm="d")],
    ]
    found = instances(ask, ops, [("tp", *rule)], [(0, "tp", "g")])
    assert sorted(row[7] // 20 + 1 - 50 for row in found) == kept
    assert {row[:3] for row in found} <= {(0, "tp", "g")}


def test_ranks_instance_counts_in_host_issue_order(ask):
    ops = [
        *[sent(1, 9, 0), sent(2, 5, 20), sent(3, None, 10), sent(4, 5, 20, name="a")],
        *[sent(5, 1, 30, type="rs"), sent(6, 2, 40, iteration=1), sent(7, 3, 50, device=1)],
        sent(8, 9, -5),
    ]
    rules = [("tp", None, None, None, None, None), ("dp", None, None, ["ar"], None, None)]
    members = [(0, "tp", "g"), (0, "tp", "h"), (1, "tp", "g"), (0, "dp", "g")]
    found = instances(ask, ops, rules, members)
    issued = [20, 20, -5, 0, 10]
    for kind, name in (("tp", "g"), ("tp", "h"), ("dp", "g")):
        own = [row for row in found if row[:5] == (0, kind, name, 0, "ar")]
        assert [(row[5], row[7] - 1000) for row in own] == [*enumerate(issued)]
    rest = [(*row[:3], row[3:6]) for row in found if row[3] or row[4] == "rs" or row[0]]
    assert rest == [
        (0, "dp", "g", (1, "ar", 0)),
        (0, "tp", "g", (0, "rs", 0)),
        (0, "tp", "g", (1, "ar", 0)),
        (0, "tp", "h", (0, "rs", 0)),
        (0, "tp", "h", (1, "ar", 0)),
        (1, "tp", "g", (0, "ar", 0)),
    ]
    assert {(row[8] - row[7], row[9], row[10]) for row in found} == {(10, 10, 64)}
    (alone,) = instances(ask, [sent(1, 1, 3)], rules[:1], members[:1], session=None)
    assert alone[7:9] == (3, 13)


def test_ranks_instance_by_communicator_where_no_rule_is(ask):
    ops = [sent(1, 1, 0), sent(2, 2, 20, comm="d"), sent(3, 3, 40, comm=None)]
    members = [(0, "communicator", "c"), (0, "communicator", "d"), (0, "tp", "c")]
    found = instances(ask, ops, [], members)
    assert [(*row[:3], row[5], row[7]) for row in found] == [
        (0, "communicator", "c", 0, 1000),
        (0, "communicator", "d", 0, 1020),
    ]


def test_ranks_match_set(ask):
    # g of tp: ranks 0 and 1; window 0 both, window 1 rank 0 only, window 2 both; s has one member
    count = {
        ("tp", "g", 0, "ar"): {0: 2, 1: 2},
        ("tp", "g", 0, "rs"): {0: 2, 1: 1},
        ("tp", "g", 0, "ag"): {0: 3},
        ("tp", "g", 1, "ar"): {0: 2},
        ("tp", "h", 0, "ar"): {0: 1, 1: 1, 2: 1},
        ("dp", "g", 0, "ar"): {0: 1, 2: 1},
        ("dp", "s", 0, "ar"): {0: 1},
    }
    rows = [(m, *key) for key, of in count.items() for m, n in of.items() for _ in range(n)]
    members = [
        *[(0, "tp", "g"), (1, "tp", "g"), (0, "tp", "h"), (1, "tp", "h"), (2, "tp", "h")],
        *[(0, "dp", "g"), (2, "dp", "g"), (0, "dp", "s")],
    ]
    tables = {
        "rank.membership": ("member_id BIGINT, kind VARCHAR, name VARCHAR", members),
        "rank.instance": (
            "member_id BIGINT, kind VARCHAR, name VARCHAR, iteration BIGINT, collective VARCHAR",
            rows,
        ),
        "rank.member_window": (
            "member_id BIGINT, iteration BIGINT",
            [(0, 0), (0, 1), (1, 0), (2, 0)],
        ),
    }
    differ, window = "the counts of the members differ", "a member has no such steady window"
    assert sorted(ask("ranks/match_set", tables)) == [
        ("dp", "g", 0, "ar", 2, 2, 1, 1, 2, None),
        ("dp", "s", 0, "ar", 1, 1, 1, 1, 1, "only one member was sampled"),
        ("tp", "g", 0, "ag", 2, 1, 3, 3, 3, differ),
        ("tp", "g", 0, "ar", 2, 2, 2, 2, 4, None),
        ("tp", "g", 0, "rs", 2, 2, 1, 2, 3, differ),
        ("tp", "g", 1, "ar", 2, 1, 2, 2, 2, window),
        ("tp", "h", 0, "ar", 3, 3, 1, 1, 3, None),
    ]


def test_ranks_matched(ask):
    base = ("tp", "g", 0, "ar", 0)
    keys = [
        *[base, ("pp", "g", 0, "ar", 0), ("tp", "h", 0, "ar", 0), ("tp", "g", 1, "ar", 0)],
        *[("tp", "g", 0, "rs", 0), ("tp", "g", 0, "ar", 1)],
    ]
    rows = [(m, *key, 10 * at + m) for at, key in enumerate(keys, 1) for m in (0, 3)]
    sets = [(*key[:4], at, None) for at, key in enumerate(keys[:5], 2)]
    tables = {
        "rank.instance": (
            f"member_id BIGINT, {INSTANCE}, duration_ns BIGINT",
            [*rows, (0, "tp", "g", 2, "ar", 0, 1)],
        ),
        "rank.match_set": (
            "kind VARCHAR, name VARCHAR, iteration BIGINT, collective VARCHAR, members BIGINT, "
            "reason VARCHAR",
            [*sets, ("tp", "g", 2, "ar", 9, "why")],
        ),
    }
    found = sorted(ask("ranks/matched", tables))
    members = {each[:4]: each[4] for each in sets}
    assert found == sorted((*row, row[6] - row[0], row[0], members[row[1:5]]) for row in rows)


def test_ranks_member_window(ask):
    tables = {
        "rank.member": (
            "member_id BIGINT, part VARCHAR, device BIGINT",
            [(0, "p", 0), (1, "p", 1), (2, "q", 0)],
        ),
        "rank.budget": (
            "part VARCHAR, device BIGINT, iteration BIGINT, start_ns BIGINT, end_ns BIGINT, "
            "busy_ns BIGINT",
            [("p", 0, 4, 10, 20, 5), ("p", 1, 5, 30, 40, 6), ("q", 0, 6, 50, 60, 7)],
        ),
        "rank.trace": ("part VARCHAR, session_start_ns BIGINT", [("p", 100), ("q", None)]),
    }
    assert sorted(ask("ranks/member_window", tables)) == [
        *[(0, 4, 5, 110, 120), (1, 5, 6, 130, 140), (2, 6, 7, 50, 60)],
    ]


def test_ranks_membership(ask):
    tables = {
        "rank.declared": (
            "member_id BIGINT, kind VARCHAR, name VARCHAR",
            [(0, "tp", "g"), (0, "tp", "g"), (1, "dp", "g")],
        ),
        "rank.rule": ("kind VARCHAR", [("tp",)]),
        "rank.member": (
            "member_id BIGINT, part VARCHAR, device BIGINT",
            [(0, "p", 0), (1, "p", 1), (2, "q", 0)],
        ),
        "rank.collective": (
            "part VARCHAR, device BIGINT, communicator VARCHAR",
            [("p", 0, "c"), ("p", 0, "c"), ("p", 1, "d"), ("q", 0, None)],
        ),
    }
    assert ask("ranks/membership", tables) == [(0, "tp", "g")]
    tables["rank.rule"] = ("kind VARCHAR", [])
    assert sorted(ask("ranks/membership", tables)) == [
        *[(0, "communicator", "c"), (1, "communicator", "d")],
    ]


def test_ranks_metric(ask):
    names = [
        *("iteration", "device_busy", "device_idle", "noncomm_busy", "comm_busy", "compute_busy"),
        *("compute_absent", "occupied_not_computing", "launch_starved", "blocking"),
        *("dependency_stalled", "unattributed", "comm_exposed", "comm_blocking"),
        *("comm_overlapped", "launch_starved_shadowed"),
    ]
    columns = ", ".join(f"{name}_ns BIGINT" for name in names)
    values = [100 + 7 * at for at in range(len(names))]
    tables = {
        "rank.member_window": (f"member_id BIGINT, iteration BIGINT, {columns}", [(3, 4, *values)]),
        "rank.instance": (
            "member_id BIGINT, iteration BIGINT",
            [(3, 4), (3, 4), (3, 5), (3, 6), (4, 4), (4, 7), (5, 1)],
        ),
        "rank.matched": (
            "member_id BIGINT, iteration BIGINT, jitter_wait_ns BIGINT",
            [(3, 4, 1), (3, 4, 2), (3, 5, 4), (4, 4, 8)],
        ),
    }
    expected = [(3, 4, at, name, values[at]) for at, name in enumerate(names)]
    waits = [(3, 4, 3), (3, 5, 4), (4, 4, 8)]
    expected += [(m, i, 16, "jitter_wait_work", ns) for m, i, ns in waits]
    assert sorted(ask("ranks/metric", tables)) == sorted(expected)
    # a window without a collective is 0 where others match, one whose collectives match nothing is
    # unknown, and so is all of a rank that never matches
    more = [(m, i, *values) for m, i in ((3, 6), (3, 7), (5, 0), (5, 1))]
    tables["rank.member_window"] = (tables["rank.member_window"][0], [(3, 4, *values), *more])
    waited = [row for row in ask("ranks/metric", tables) if row[2] == 16]
    assert sorted(row[:2] + row[-1:] for row in waited) == sorted([*waits, (3, 7, 0)])


def test_ranks_slower(ask):
    # by itself, where the medians are 1 % of the shortest iteration apart, in most windows
    busy = {0: (50, 50, 50, 58), 1: (51, 51, 51, 50), 2: (50, 50, 50, 50), 3: (90, 90, 90, 90)}
    tables = {
        "rank.fingerprint": (
            "member_id BIGINT, group_id BIGINT",
            [(0, 0), (1, 0), (2, 0), (3, 1)],
        ),
        "rank.member_window": (
            "member_id BIGINT, iteration BIGINT, iteration_ns BIGINT, noncomm_busy_ns BIGINT, "
            "compute_busy_ns BIGINT, launch_starved_ns BIGINT",
            [(m, i, 100 + m, ns, 7, 50 - ns) for m, of in busy.items() for i, ns in enumerate(of)],
        ),
    }

    def found(**variables):
        return sorted(ask("ranks/slower", tables, **variables))

    longer = [(0, "iteration", 1, 1.0), (0, "iteration", 2, 2.0)]
    starved = [(0, "launch_starved", 0, 1.0), (0, "launch_starved", 2, 1.0)]
    assert found() == [*longer, *starved, (0, "noncomm_busy", 1, 1.0)]
    assert found(threshold_pct=1.1) == [(0, "iteration", 2, 2.0)]
    assert (0, "noncomm_busy", 1, 1.0) not in found(repeat_pct=75.1)


def test_ranks_straggler(ask):
    columns = "iteration BIGINT, member_id BIGINT, caused_ns BIGINT"
    rows = [(0, 1, 4), (1, 1, 8), (2, 1, 6), (3, None, None), (0, 2, 5), (1, 2, 5), (3, 0, 9)]
    tables = {"rank.blame": (columns, rows)}
    assert ask("ranks/straggler", tables) == [(1, 4, 3, 6.0)]
    assert sorted(ask("ranks/straggler", tables, repeat_pct=50)) == [(1, 4, 3, 6.0), (2, 4, 2, 5.0)]
    assert ask("ranks/straggler", tables, repeat_pct=75.1) == []


def stage_loads(ask, *, blind=(), more=(), windows=()):
    """Stages 0 (ranks 0, 1), 1 (rank 2) and 2 (rank 3); pp couples 0 and 1, pq 1 and 2."""
    jitter = [
        *[(0, 0, "pp", "g", 10, False), (0, 0, "pp", "g", 5, False), (0, 1, "pp", "g", 13, False)],
        *[(0, 0, "dp", "g", 70, False), (1, 0, "dp", "g", 70, False), (1, 0, "pp", "h", 17, False)],
        *[(2, 0, "pp", "g", 1, False), (2, 0, "pq", "g", 2, False), (2, 1, "pq", "g", 4, False)],
        *[(2, 0, "pp", "h", 0, False), (3, 0, "pq", "g", 60, False), (3, 1, "pq", "g", 5, False)],
        *more,
    ]
    exposed = {(0, 0): (100, 0), (3, 0): (9, 0), (3, 1): (0, 3)}
    spans = [(0, 0, 10), (0, 1, 12), (1, 0, 20), (2, 0, 30), (2, 1, 32), (3, 0, 8), (3, 1, 8)]
    tables = {
        **members((0, 0, 0), (1, 0, 1), (2, 1, 2), (3, 2, 3), (4, None, 4)),
        "rank.member_window": (
            "member_id BIGINT, iteration BIGINT, iteration_ns BIGINT, noncomm_busy_ns BIGINT, "
            "comm_exposed_ns BIGINT, comm_blocking_ns BIGINT",
            [(m, i, 40 + m, ns, *exposed.get((m, i), (50, 0))) for m, i, ns in (*spans, *windows)],
        ),
        "rank.arrival_instance": (
            "member_id BIGINT, iteration BIGINT, kind VARCHAR, name VARCHAR, "
            "jitter_wait_ns BIGINT, is_apart BOOLEAN",
            jitter,
        ),
        "rank.instance": (
            "member_id BIGINT, kind VARCHAR, name VARCHAR",
            [(row[0], *row[2:4]) for row in jitter],
        ),
        "rank.blind": ("member_id BIGINT, kind VARCHAR", list(blind)),
    }
    return sorted(ask("ranks/stage_load", tables))


def test_ranks_stage_load(ask):
    # stage 0: 15, 13 and 17; stage 1: 3 and 4; stage 2: 60 and 5, of which 9 and 3 are no loss of
    # anybody else's; dp is inside a stage and does not count
    rows = [(0, 40.0, 12.0, 15.0), (1, 42.0, 31.0, 3.5), (2, 43.0, 8.0, 6.0)]
    assert stage_loads(ask) == rows
    # instances whose members cannot have met count for nothing
    assert stage_loads(ask, more=[(0, 0, "pp", "g", 30, True)]) == rows
    # a window without such a collective counts 0
    assert stage_loads(ask, windows=[(2, 2, 31)])[1][2:] == (31.0, 3.0)
    # what one of the ranks waits in collectives across stages that match nothing is not known
    assert [row[3] for row in stage_loads(ask, blind=[(1, "pp")])] == [None, 3.5, 6.0]
    assert stage_loads(ask, blind=[(1, "dp")]) == rows
    # nor of a rank that has none
    assert [row[3] for row in stage_loads(ask, windows=[(4, 0, 9)])] == [15.0, 3.5, 6.0]


def skewed(ask, windows, groups, p95=None, **variables):
    tables = {
        "rank.aligned_window": (
            "member_id BIGINT, iteration BIGINT, iteration_ns BIGINT, start_ns BIGINT, "
            "end_ns BIGINT",
            windows,
        ),
        "rank.fingerprint": ("member_id BIGINT, group_id BIGINT", list(groups.items())),
        "rank.aligned": (
            "member_id BIGINT, p95_ns DOUBLE",
            [(member, (p95 or {}).get(member)) for member in groups],
        ),
    }
    return sorted(ask("ranks/skew", tables, **variables))


def test_ranks_skew(ask):
    # group 0: rank 1 is the fastest, 1 000 ns; rank 0 as fast, but one window is not common
    windows = [
        *[(1, 0, 1000, 5000, 6000), (1, 1, 1000, 7000, 8000), (0, 0, 1000, 5000, 6000)],
        *[(2, 0, 1010, 4990, 6000), (3, 0, 1100, 4900, 6000), (4, 0, 1100, 5000, 6100)],
        *[(5, 0, 1100, 4950, 6050), (6, 0, 1100, None, None), (7, 1, 1011, 6989, 8000)],
        *[(8, 0, 50, 0, 50), (9, 0, 1100, 4911, 6011), (10, 0, 1100, 4989, 6089)],
        (11, 0, 1300, 4730, 6030),
    ]
    groups = dict.fromkeys(range(12), 0) | {8: 1}
    found = skewed(ask, windows, groups)
    assert [(row[0], row[1], row[3], *row[4:]) for row in found] == [
        (1, 0, 1, 0, 0, 0, 10, "as long"),
        (2, 0, 1, 10, 10, 0, 10, "as long"),
        (3, 0, 1, 100, 100, 0, 10, "start_skew"),
        (4, 0, 1, 100, 0, 100, 10, "late_finish"),
        (5, 0, 1, 100, 50, 50, 10, "start_skew and late_finish"),
        (6, 0, 1, 100, None, None, 10, "longer, clocks not aligned"),
        (9, 0, 1, 100, 89, 11, 10, "start_skew and late_finish"),
        (10, 0, 1, 100, 11, 89, 10, "start_skew and late_finish"),
        (11, 0, 1, 300, 270, 30, 10, "start_skew"),
    ]


def test_ranks_skew_is_no_finer_than_the_clocks(ask):
    windows = [(0, 0, 1000, 0, 1000), (1, 0, 1040, 0, 1040), (2, 0, 1041, 0, 1041)]
    groups = dict.fromkeys((0, 1, 2), 0)
    # twice what the worse of the two clocks leaves, or the threshold
    for p95, tolerances in (({}, [10, 10]), ({0: 20}, [40, 40]), ({0: 20, 2: 21}, [40, 42])):
        assert [row[-2] for row in skewed(ask, windows, groups, p95)] == tolerances
    found = skewed(ask, windows, groups, {0: 20, 1: 1, 2: 1})
    assert [row[-1] for row in found] == ["as long", "late_finish"]
    assert [row[-2] for row in skewed(ask, windows, groups, threshold_pct=2)] == [20, 20]
    # what nobody knows of the clocks sets no limit
    assert [row[-2] for row in skewed(ask, windows, groups, threshold_pct=0.1)] == [1, 1]


# --------------------------------------------------------------------------------------- survey
def members(*rows):
    """(member_id, stage, device) each; rank, label and gpu follow from the id."""
    listed = [
        (
            *(m, 10 + m if m < 9 else None, f"rank {10 + m}", s, "p" if m < 5 else "q", d),
            *(f"gpu {m}", m < 9 or m >= 20),
        )
        for m, s, d in rows
    ]
    columns = (
        "member_id BIGINT, rank BIGINT, label VARCHAR, stage BIGINT, part VARCHAR, device BIGINT, "
        "gpu VARCHAR, is_listed BOOLEAN"
    )
    return {"rank.member": (columns, listed)}


def test_survey_alignment(ask):
    tables = {
        **members((1, 0, 0), (0, 0, 1)),
        "rank.aligned": (
            "member_id BIGINT, host VARCHAR, session_start_ns BIGINT, method VARCHAR, "
            "offset_ns BIGINT, median_ns DOUBLE, p95_ns DOUBLE, max_ns BIGINT, n BIGINT, "
            "is_aligned BOOLEAN",
            [
                (1, "b", 6, "none", None, None, None, None, 0, False),
                (0, "a", 5, "reference", 1_500_000, 1_500, 2_500.0, 3_500, 4, True),
            ],
        ),
        "rank.skew": (
            "member_id BIGINT, peer_id BIGINT, longer_ns DOUBLE, earlier_start_ns DOUBLE, "
            "later_end_ns DOUBLE, judgement VARCHAR",
            [(1, 0, 1_500_000, 2_500_000, 3_500_000, "as long")],
        ),
    }
    assert ask("survey/alignment", tables) == [
        (10, "a", 5, "reference", 1.5, 1.5, 2.5, 3.5, 4, True, *[None] * 5),
        (11, "b", 6, "none", *[None] * 4, 0, False, "rank 10", 1.5, 2.5, 3.5, "as long"),
    ]


ARRIVAL = (
    f"member_id BIGINT, {INSTANCE}, after_first_ns BIGINT, late_ns BIGINT, jitter_wait_ns BIGINT, "
    "transfer_proxy_ns BIGINT, is_last BOOLEAN, is_timed BOOLEAN"
)


def test_survey_arrival(ask):
    rows = [
        (0, "tp", "g", 0, "ar", 0, 1_000, 10_000, 0, 0, True, True),
        (0, "tp", "g", 0, "ar", 1, 2_000, 20_000, 0, 0, False, True),
        (0, "tp", "g", 1, "ar", 0, 9_000, 60_000, 0, 0, False, True),
        (0, "tp", "g", 1, "rs", 0, 1_000, 10_000, 0, 0, True, False),
        (0, "tp", "h", 1, "ar", 0, 1_000, 10_000, 0, 0, True, True),
        (0, "dp", "g", 1, "ar", 0, 1_000, 10_000, 0, 0, False, True),
        (0, "dp", "g", 2, "ar", 0, 1_000, 10_000, 0, 0, False, False),
        (1, "tp", "g", 0, "ar", 0, 1_000, 10_000, 0, 0, True, True),
    ]
    tables = {**members((1, 0, 0), (0, 0, 1)), "rank.arrival_instance": (ARRIVAL, rows)}
    found = ask("survey/arrival", tables)
    assert [(*row[:1], *row[2:7]) for row in found] == [
        (10, "dp", "g", "ar", 2, 0),
        (10, "tp", "g", "ar", 3, 1),
        (10, "tp", "g", "rs", 1, 1),
        (10, "tp", "h", "ar", 1, 1),
        (11, "tp", "g", "ar", 1, 1),
    ]
    assert [found[0][-1], found[1][-1], found[2][-1]] == [
        "durations",
        "aligned starts",
        "durations",
    ]
    assert found[1][1] == "rank 10" and found[1][7] == pytest.approx(100 / 3)
    # late in all 90 us, in two windows
    assert found[1][8:12] == (2.0, 20.0, 60.0, 0.045)


def test_survey_arrivals(ask):
    # tp ar: instances that spread over 5, 9, 9, 1 us and more; dp ar and tp rs: one each
    spread = {("tp", "g", "ar", 0, 0): 5_000, ("tp", "h", "ar", 1, 0): 9_000}
    spread |= {("tp", "g", "ar", 1, 1): 9_000, ("tp", "g", "ar", 1, 0): 9_000}
    spread |= {("tp", "g", "ar", 2, 0): 1_000, ("tp", "g", "ar", 3, 0): 2_000}
    spread |= {("dp", "g", "ar", 0, 0): 3_000, ("tp", "g", "rs", 0, 0): 4_000}
    rows = [
        (m, k, n, i, c, o, of if m == 0 else 0, 0, 1_000 * m, 2_000, False, k == "tp")
        for (k, n, c, i, o), of in spread.items()
        for m in (2, 1, 0)
    ]
    tables = {
        **members((1, 0, 0), (0, 0, 1), (2, 0, 2)),
        "rank.arrival_instance": (ARRIVAL, rows),
    }
    found = ask("survey/arrivals", tables)
    assert [row[:5] for row in found[::3]] == [
        ("dp", "g", "ar", 0, 0),
        ("tp", "g", "ar", 1, 0),
        ("tp", "g", "ar", 1, 1),
        ("tp", "h", "ar", 1, 0),
        ("tp", "g", "ar", 0, 0),
        ("tp", "g", "ar", 3, 0),
        ("tp", "g", "rs", 0, 0),
    ]
    assert [row[5:] for row in found[:3]] == [
        (11, "rank 11", 1, 0.0, 1.0, 2.0, "durations"),
        (12, "rank 12", 2, 0.0, 2.0, 2.0, "durations"),
        (10, "rank 10", 3, 3.0, 0.0, 2.0, "durations"),
    ]
    assert found[3][-1] == "aligned starts"
    assert [row[7] for row in found] == [1, 2, 3] * 7
    short = ask("survey/arrivals", tables, instances=1)
    assert [row[:5] for row in short] == [row[:5] for row in (*found[:6], *found[18:])]


def test_survey_collectives(ask):
    # tp g ar: two ranks, instances (0, 0), (0, 1), (1, 0), and an unmatched window; tp g rs only
    # unmatched; tp h ar and dp g ar with the same numbers but one
    durations = {(0, 0): (10, 30), (0, 1): (20, 20), (1, 0): (40, 10)}
    matched, arrivals = [], []
    for kind, name in (("tp", "g"), ("tp", "h"), ("dp", "g")):
        for (iteration, ordinal), of in durations.items():
            for member, ns in enumerate(of):
                proxy = min(of)
                key = (member, kind, name, iteration, "ar", ordinal)
                matched.append((*key, ns * 1000, proxy * 1000, (ns - proxy) * 1000, 64 + member))
                arrivals.append((*key, 0, 0, 0, 0, ns == proxy, (kind, member) != ("dp", 1)))
    sets = [
        *[
            ("tp", "g", "ar", 2, 4, None),
            ("tp", "g", "ar", 2, 2, None),
            ("tp", "g", "ar", 2, 3, "w"),
        ],
        *[("tp", "g", "rs", 3, 3, "b"), ("tp", "g", "rs", 2, 3, "a"), ("tp", "g", "rs", 3, 3, "b")],
        *[("tp", "h", "ar", 2, 6, None), ("dp", "g", "ar", 2, 6, None)],
    ]
    tables = {
        **members((1, 0, 0), (0, 0, 1)),
        "rank.match_set": (
            "kind VARCHAR, name VARCHAR, collective VARCHAR, members BIGINT, operations BIGINT, "
            "reason VARCHAR",
            sets,
        ),
        "rank.matched": (
            f"member_id BIGINT, {INSTANCE}, duration_ns BIGINT, transfer_proxy_ns BIGINT, "
            "jitter_wait_ns BIGINT, bytes BIGINT",
            matched,
        ),
        "rank.arrival_instance": (ARRIVAL, arrivals),
    }
    rows = ask("survey/collectives", tables)
    # proxies 10 20 10 for each rank: window 0 30, window 1 10; waits 0 20 0 0 30 0: windows 10, 15
    share = 100 * 50 / 130
    numbers = (10.0, 0.0, 30.0, 0.02, 0.0125, share)
    by_rank = ("rank 10", pytest.approx(200 / 3))
    assert rows == [
        ("dp", "g", "ar", 2, 3, 6, 0, None, *numbers, *by_rank, "durations", 64),
        ("tp", "g", "ar", 2, 3, 9, 3, "w", *numbers, *by_rank, "aligned starts", 64),
        ("tp", "g", "rs", 3, 0, 9, 9, "b", *[None] * 10),
        ("tp", "h", "ar", 2, 3, 6, 0, None, *numbers, *by_rank, "aligned starts", 64),
    ]


COMM = (
    "part VARCHAR, device BIGINT, iteration BIGINT, scope VARCHAR, class VARCHAR, "
    "collective VARCHAR, count BIGINT, work_ns BIGINT, busy_ns BIGINT, exposed_ns BIGINT, "
    "blocking_ns BIGINT"
)


def test_survey_communication(ask):
    sets = [
        *[("peer_copy", None, None), ("collective", "nccl", "ar"), ("class", "nccl", None)],
        *[("all", None, None), ("class", "dispatch", None), ("fused_compute", None, None)],
        ("collective", None, "ag"),
    ]
    rows = [
        ("p", 0, at, *each, n, n * 1_000_000, n * 2_000_000, n * 3_000_000, n * 4_000_000)
        for each in sets
        for at, n in enumerate((2, 6))
    ]
    rows.append(("p", 1, 0, "all", None, None, 9, 1, 1, 1, 1))
    tables = {
        **members((0, 0, 0), (1, 0, 1), (7, 0, 0)),
        "rank.comm": (COMM, rows),
        "rank.member_window": ("member_id BIGINT", [(0,), (0,), (0,), (1,), (7,)]),
    }
    found = ask("survey/communication", tables)
    assert [row[2:5] for row in found[:7]] == [
        *[("all", None, None), ("class", "dispatch", None), ("class", "nccl", None)],
        *[("collective", None, "ag"), ("collective", "nccl", "ar")],
        *[("fused_compute", None, None), ("peer_copy", None, None)],
    ]
    # 2 and 6 in three windows: the third counts 0
    assert {(row[:2], row[5:]) for row in found[:7]} == {
        ((10, "rank 10"), (2.0, 2.0, 4.0, 6.0, 8.0, 3)),
    }
    assert [row[:1] + row[5:6] for row in found[7:]] == [(11, 9.0)]


SLOWER = "group_id BIGINT, metric VARCHAR, member_id BIGINT, longer_ns DOUBLE"


def groups(ask, windows, prints, **variables):
    """Windows: (member, iteration, iteration_ns, noncomm_ns); two more metrics follow from them."""
    tables = {
        **members(*[(m, None, 0) for m in prints]),
        "rank.fingerprint": (
            "member_id BIGINT, group_id BIGINT, stage BIGINT",
            [(m, group, group or None) for m, group in prints.items()],
        ),
        "rank.member_window": (
            "member_id BIGINT, iteration BIGINT, iteration_ns BIGINT, noncomm_busy_ns BIGINT, "
            "compute_busy_ns BIGINT, launch_starved_ns BIGINT",
            [(m, i, ns, busy, busy - 1, 5) for m, i, ns, busy in windows],
        ),
    }
    tables["rank.slower"] = (SLOWER, ask("ranks/slower", tables, **variables))
    return ask("survey/groups", tables, **variables)


def test_survey_groups(ask):
    # noncomm: rank 10 is at 50, 50, 50, 58, rank 11 at 51, 51, 51, 50, rank 12 at 50 always
    busy = {0: (50, 50, 50, 58), 1: (51, 51, 51, 50), 2: (50, 50, 50, 50)}
    windows = [(m, i, 100, ns) for m, of in busy.items() for i, ns in enumerate(of)]
    windows += [(3, 0, 100, 70), (4, 0, 100, 80)]
    prints = {2: 0, 1: 0, 0: 0, 3: 1, 4: 2}
    rows = groups(ask, windows, prints)
    assert [(row[0], row[2], row[-1]) for row in rows] == [
        *[("G0", "iteration", "no spread"), ("G0", "noncomm_busy", "repeats")],
        *[("G0", "compute_busy", "repeats"), ("G0", "launch_starved", "no spread")],
        *[("G1", "iteration", "alone"), ("G1", "noncomm_busy", "alone")],
        *[("G1", "compute_busy", "alone"), ("G1", "launch_starved", "alone")],
        *[("G2", "iteration", "alone"), ("G2", "noncomm_busy", "alone")],
        *[("G2", "compute_busy", "alone"), ("G2", "launch_starved", "alone")],
    ]
    ranks = "rank 10, rank 11, rank 12"
    assert rows[0] == (
        *("G0", None, "iteration", 3, ranks, 0.0001, "rank 10", 0.0001, None, 0.0001),
        *(0.0, 0.0, None, None, 4, "no spread"),
    )
    assert rows[1] == (
        *("G0", None, "noncomm_busy", 3, ranks, 0.00005, "rank 10", 0.00005, "rank 11", 0.000051),
        *(0.000001, 1.0, "rank 11", 75.0, 4, "repeats"),
    )
    assert rows[4][12:] == (None, None, 0, "alone")
    assert rows[2][5:10] == (0.000049, "rank 10", 0.000049, "rank 11", 0.00005)
    assert rows[4][1] == 1 and rows[3][5] == 0.000005
    assert groups(ask, windows, prints, threshold_pct=1.1)[1][-1] == "no spread"
    assert groups(ask, windows, prints, repeat_pct=75.1)[1][-1] == "rotates"


def test_survey_groups_name_all_that_are_slow_again_and_again(ask):
    # two are as slow as each other and take turns by a hair; a third is slow in one window only
    busy = {0: (50, 50, 50, 50), 1: (60, 61, 60, 61), 2: (61, 60, 61, 60), 3: (50, 50, 50, 90)}
    windows = [(m, i, 100, ns) for m, of in busy.items() for i, ns in enumerate(of)]
    row = groups(ask, windows, dict.fromkeys(busy, 0))[1]
    assert row[8] == "rank 11" and row[12:] == ("rank 11, rank 12", 25.0, 4, "repeats")
    # in turns, each is slower than the other in half of the windows
    turns = [(m, i, 100, 50 + 10 * (i == m) + 3 * (m > i)) for m in (0, 1) for i in (0, 1)]
    assert groups(ask, turns, {0: 0, 1: 0})[1][12:] == (None, 50.0, 2, "rotates")
    # what the slowest lacks, or has alone, does not count; of equals every one is the slowest
    lone = [(0, 0, 100, 50), (0, 1, 100, 50), (0, 2, 100, 50), (1, 0, 100, 60), (1, 3, 100, 60)]
    assert groups(ask, lone, {0: 0, 1: 0})[1][12:] == ("rank 11", 100.0, 1, "repeats")
    # another group has slow ranks of its own, and without a spread nobody is slow
    more = [(m, i, 100, 50 + 40 * (m == 4)) for m in (3, 4) for i in (0, 1)]
    rows = groups(ask, turns + more, {0: 0, 1: 0, 3: 1, 4: 1})
    assert [row[12] for row in rows if row[2] == "noncomm_busy"] == [None, "rank 14"]
    shift = [(0, i, 100, 50 + 2 * i) for i in range(4)]
    shift += [(1, i, 100, 50 + 2 * ((i + 1) % 4)) for i in range(4)]
    assert groups(ask, shift, {0: 0, 1: 0})[1][12::3] == (None, "no spread")
    assert groups(ask, shift, {0: 0, 1: 0}, threshold_pct=0)[1][12] == "rank 11"
    even = [(m, i, 100, 50 + (m == 1) * i) for m in (0, 1) for i in (0, 1, 2)]
    assert groups(ask, even, {0: 0, 1: 0})[1][8:15:5] == ("rank 11", 100.0)


def test_survey_heatmap(ask):
    metrics = [(0, "iteration"), (1, "device_busy"), (3, "noncomm_busy"), (16, "jitter_wait_work")]
    rows = [(m, i, seq, name, 1_500_000) for m in (1, 0) for i in (1, 0) for seq, name in metrics]
    tables = {
        **members((0, None, 0), (1, 4, 1)),
        "rank.metric": (
            "member_id BIGINT, iteration BIGINT, seq BIGINT, metric VARCHAR, ns BIGINT",
            rows,
        ),
    }

    def shown(**variables):
        return [(row[0], row[1], row[4]) for row in ask("survey/heatmap", tables, **variables)]

    def tiles(*names):
        return [(name, rank, i) for name in names for rank in (10, 11) for i in (0, 1)]

    assert shown() == tiles("iteration", "noncomm_busy", "jitter_wait_work")
    assert shown(heatmap="all") == tiles(*[name for _, name in metrics])
    assert shown(heatmap="device_busy") == tiles("device_busy")
    assert ask("survey/heatmap", tables)[-1][2:] == ("rank 11", 4, 1, 1.5)


def test_survey_jitter(ask):
    # rank 10, tp g ar: windows 0 (waits 1 + 3 of 5 + 7) and 1 (2 of 4), no match in window 2
    rows = [
        *[(0, "tp", "g", 0, "ar", 0, 5, 4, 1), (0, "tp", "g", 0, "ar", 1, 7, 4, 3)],
        *[(0, "tp", "g", 1, "ar", 0, 4, 2, 2), (0, "tp", "g", 0, "rs", 0, 8, 8, 0)],
        *[(0, "tp", "h", 0, "ar", 0, 9, 3, 6), (0, "dp", "g", 0, "ar", 0, 10, 3, 7)],
        (1, "tp", "g", 0, "ar", 0, 0, 0, 0),
    ]
    million = [(*row[:6], *(ns * 1_000_000 for ns in row[6:])) for row in rows]
    more = [(0, "tp", "g", 2, "ar", 0, 0, 0, 0), (1, "tp", "g", 0, "ag", 0, 0, 0, 0)]
    tables = {
        **members((0, 0, 0), (1, 0, 1)),
        "rank.instance": (
            "member_id BIGINT, kind VARCHAR, name VARCHAR, iteration BIGINT, collective VARCHAR",
            [row[:5] for row in rows + more],
        ),
        "rank.matched": (
            f"member_id BIGINT, {INSTANCE}, duration_ns BIGINT, transfer_proxy_ns BIGINT, "
            "jitter_wait_ns BIGINT",
            million,
        ),
        "rank.member_window": ("member_id BIGINT", [(0,), (0,), (0,), (1,)]),
    }
    unknown = [None] * 6
    assert [(row[0], *row[2:]) for row in ask("survey/jitter", tables)] == [
        (10, "dp", "g", "ar", 1, 0, 0.0, 0.0, 0.0, 0.0, 7.0, 70.0, 3),
        # window 2 holds one that matches nothing, so it says nothing
        (10, "tp", "g", "ar", 3, 1, 8.0, 5.0, 3.0, 2.0, 4.0, 37.5, 2),
        (10, "tp", "g", "rs", 1, 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 3),
        (10, "tp", "h", "ar", 1, 0, 0.0, 0.0, 0.0, 0.0, 6.0, pytest.approx(200 / 3), 3),
        (11, "tp", "g", "ag", 0, 1, *unknown, 0),
        (11, "tp", "g", "ar", 1, 0, 0.0, 0.0, 0.0, 0.0, 0.0, None, 1),
    ]


def test_survey_pipeline(ask):
    # stage 0: ranks 10 and 11 busy 60 and 80 of 100; stage 1: rank 12 busy 30; rank 17 without
    windows = [(0, 100, 50), (0, 100, 60), (0, 100, 99), (1, 100, 80), (2, 200, 30), (7, 100, 10)]
    million = [(m, a * 1_000_000, b * 1_000_000) for m, a, b in windows] + [(7, 0, 0)]
    comm = [
        *[("p", 0, 0, "collective", None, "SendRecv", 2, 0, 1_000_000, 2_000_000, 3_000_000)],
        *[("p", 0, 1, "collective", None, "SendRecv", 4, 0, 3_000_000, 4_000_000, 5_000_000)],
        *[("p", 0, 0, "collective", None, "AllReduce", 9, 0, 9, 9, 9)],
        *[("p", 0, 0, "other", None, "SendRecv", 9, 0, 9, 9, 9)],
        *[("p", 1, 0, "collective", None, "SendRecv", 7, 0, 7_000_000, 7_000_000, 7_000_000)],
    ]
    waits = [
        *[
            (0, 0, "SendRecv", 1_000_000),
            (0, 0, "SendRecv", 2_000_000),
            (0, 1, "SendRecv", 4_000_000),
        ],
        *[(0, 1, "AllReduce", 99_000_000), (1, 0, "SendRecv", 5_000_000)],
    ]
    tables = {
        **members((0, 0, 0), (1, 0, 1), (2, 1, 2), (7, None, 0)),
        "rank.member_window": (
            "member_id BIGINT, iteration_ns BIGINT, noncomm_busy_ns BIGINT",
            million,
        ),
        "rank.comm": (COMM, comm),
        "rank.instance": (
            "member_id BIGINT, iteration BIGINT, collective VARCHAR",
            [row[:3] for row in waits],
        ),
        "rank.matched": (
            "member_id BIGINT, iteration BIGINT, collective VARCHAR, jitter_wait_ns BIGINT",
            waits,
        ),
    }
    found = ask("survey/pipeline", tables)
    assert [row[0] for row in found] == [10, 11, 12, 17]
    # the stages are busy for 70 and 30: 140 % and 60 % of their mean
    assert [row[3:9] for row in found] == [
        (100.0, 60.0, 40.0, 40.0, 70.0, 140.0),
        (100.0, 80.0, 20.0, 20.0, 70.0, 140.0),
        (200.0, 30.0, 170.0, 85.0, 30.0, 60.0),
        (50.0, 5.0, 45.0, 90.0, None, None),
    ]
    assert [row[9:] for row in found] == [
        (2.0, 1.0, 2.0, 3.0, 3.0, 3),
        (7.0, 7.0, 7.0, 7.0, 5.0, 1),
        (0.0, 0.0, 0.0, 0.0, None, 1),
        (0.0, 0.0, 0.0, 0.0, None, 2),
    ]
    # a third window without SendRecv counts 0, one whose SendRecv match nothing is left out
    tables["rank.instance"][1].extend([(0, 2, "SendRecv"), (0, 9, "AllReduce")])
    assert ask("survey/pipeline", tables)[0][-2] == 3.5


def test_survey_pipeline_orders_by_stage(ask):
    tables = {
        **members((0, 1, 0), (1, None, 0), (2, 0, 0), (3, 0, 0)),
        "rank.member_window": (
            "member_id BIGINT, iteration_ns BIGINT, noncomm_busy_ns BIGINT",
            [(m, 10, 0) for m in range(4)],
        ),
        "rank.comm": (COMM, []),
        "rank.instance": ("member_id BIGINT, iteration BIGINT, collective VARCHAR", []),
        "rank.matched": (
            "member_id BIGINT, iteration BIGINT, collective VARCHAR, jitter_wait_ns BIGINT",
            [],
        ),
    }
    found = ask("survey/pipeline", tables)
    assert [(row[0], row[8]) for row in found] == [(12, None), (13, None), (10, None), (11, None)]


def test_survey_representatives(ask):
    # group 0: medians 10, 20, 24, 40 (middle 22: rank 11, before rank 12); group 1: 30, 40 (35)
    windows = [(0, 10), (1, 20), (1, 1), (1, 99), (2, 24), (3, 40), (7, 40), (6, 30)]
    tables = {
        **members((0, 5, 0), (1, 5, 1), (2, 5, 2), (3, 5, 3), (6, None, 1), (7, None, 2)),
        "rank.fingerprint": (
            "member_id BIGINT, group_id BIGINT, stage BIGINT",
            [(0, 0, 5), (1, 0, 5), (2, 0, 5), (3, 0, 5), (6, 1, None), (7, 1, None)],
        ),
        "rank.member_window": (
            "member_id BIGINT, iteration_ns BIGINT",
            [(m, ns * 1_000_000) for m, ns in windows],
        ),
        "rank.part": ("part VARCHAR, trace VARCHAR", [("p", "P.sqlite"), ("q", "Q.sqlite")]),
        "rank.straggler": ("member_id BIGINT", []),
    }
    assert ask("survey/representatives", tables) == [
        (13, "rank 13", "slowest iteration of all sampled ranks", "G0", 40.0, 3, "P.sqlite"),
        (11, "rank 11", "typical of stage 5, fingerprint group G0", "G0", 20.0, 1, "P.sqlite"),
        (
            *(16, "rank 16", "typical of stage (unknown), fingerprint group G1", "G1"),
            *(30.0, 1, "Q.sqlite"),
        ),
    ]
    # a straggler is typical only where there is nobody else
    tables["rank.straggler"] = ("member_id BIGINT", [(1,), (6,), (7,)])
    assert [row[0] for row in ask("survey/representatives", tables)] == [13, 12, 16]


def test_survey_stages(ask):
    values = [
        *[(0, 0, "iteration", 10), (0, 0, "iteration", 30), (0, 0, "iteration", 20)],
        *[(1, 0, "iteration", 40), (0, 1, "device_busy", 5), (2, 0, "iteration", 7)],
        (7, 0, "iteration", 8),
    ]
    tables = {
        **members((0, 1, 0), (1, 1, 0), (2, 0, 0), (7, None, 0)),
        "rank.metric": (
            "member_id BIGINT, seq BIGINT, metric VARCHAR, ns BIGINT",
            [(m, seq, name, ns * 1_000_000) for m, seq, name, ns in values],
        ),
    }
    assert ask("survey/stages", tables) == [
        (0, "iteration", 1, 7.0, 7.0, 7.0),
        (1, "iteration", 2, 30.0, 20.0, 40.0),
        (1, "device_busy", 1, 5.0, 5.0, 5.0),
        (None, "iteration", 1, 8.0, 8.0, 8.0),
    ]


def test_survey_survey(ask):
    names = ["iteration", "noncomm_busy", "compute_busy", "comm_busy", "comm_exposed"]
    names += ["comm_blocking", "launch_starved", "device_idle"]
    windows = [(0, *(n + at for at in range(8))) for n in (1, 2, 6)] + [(1, *range(20, 28))]
    comm = [
        *[
            ("p", 0, 0, "class", "nccl", None, 1, 1, 4, 1, 1),
            ("p", 0, 1, "class", "nccl", None, 1, 1, 6, 1, 1),
        ],
        *[("p", 0, 0, "class", "transport", None, 1, 1, 5, 1, 1)],
        *[("p", 0, 1, "class", "transport", None, 1, 1, 7, 1, 1)],
        *[("p", 0, 2, "class", "dispatch", None, 1, 1, 3, 1, 1)],
        *[("p", 0, i, "class", "dispatch", None, 1, 1, 9, 1, 1) for i in (0, 1)],
        *[("p", 0, i, "other", "nccl", None, 1, 1, 99, 1, 1) for i in (0, 1)],
        *[("p", 1, 0, "class", "nccl", None, 1, 1, 8, 1, 1)],
    ]
    comm += [("q", 0, i, "class", "nccl", None, 1, 1, 99, 1, 1) for i in (0, 1)]
    copies = [("p", 0, 0, 1), ("p", 0, 0, 2), ("p", 0, 1, 9), ("p", 0, 2, 4), ("q", 0, 0, 77)]
    million = 1_000_000
    tables = {
        **members((1, None, 1), (0, 3, 0)),
        "rank.part": ("part VARCHAR, trace VARCHAR", [("p", "P.sqlite"), ("q", "Q.sqlite")]),
        "rank.clock": ("member_id BIGINT, host VARCHAR", [(0, "h"), (1, "i")]),
        "rank.fingerprint": (
            "member_id BIGINT, group_id BIGINT, collectives VARCHAR, fingerprint VARCHAR",
            [(0, 0, "ar 1", "f0"), (1, 1, "ar 2", "f1")],
        ),
        "rank.member_window": (
            "member_id BIGINT, " + ", ".join(f"{name}_ns BIGINT" for name in names),
            [(row[0], *(n * million for n in row[1:])) for row in windows],
        ),
        "rank.comm": (COMM, [(*row[:8], row[8] * million, *row[9:]) for row in comm]),
        "rank.copy": (
            "part VARCHAR, device BIGINT, iteration BIGINT, work_ns BIGINT",
            [(*row[:3], row[3] * million) for row in copies],
        ),
    }
    assert ask("survey/survey", tables) == [
        (
            *(10, 3, "h", "G0", 3, 2.0, 1.0, 6.0, 3.0, 4.0, 4.0, 5.0, 9.0, 5.0, 6.0, 7.0, 4.0),
            *(8.0, 9.0, "ar 1", "f0", "gpu 0", 0, "P.sqlite"),
        ),
        (
            *(11, None, "i", "G1", 1, 20.0, 20.0, 20.0, 21.0, 22.0, 8.0, 0.0, 0.0, 23.0, 24.0),
            *(25.0, 0.0, 26.0, 27.0, "ar 2", "f1", "gpu 1", 1, "P.sqlite"),
        ),
    ]


def test_survey_unmatched(ask):
    sets = [("tp", "g", i, "ar", 2, "b") for i in range(9, -1, -1)]
    sets += [
        ("tp", "g", 0, "ar", 5, "a"),
        ("tp", "g", 0, "rs", 5, "a"),
        ("tp", "h", 0, "ar", 1, "a"),
    ]
    sets += [("dp", "z", 0, "ar", 1, "a"), ("dp", "g", 0, "ar", 1, None)]
    # of part p, session start 100: the operation at 10 is an instance, those at 20 are not
    ops = [
        ("p", 0, 0, "ar", 10),
        ("p", 0, 0, "ar", 20),
        ("p", 0, 1, "ar", 20),
        ("p", 0, 1, "rs", 10),
    ]
    ops += [
        ("p", 0, 1, "ar", 10),
        ("p", 1, 0, "ar", 10),
        ("q", 0, 0, "ag", 30),
        ("q", 0, 0, "ag", 31),
    ]
    tables = {
        **members((0, 0, 0), (1, 0, 1), (7, 0, 0)),
        "rank.match_set": (
            "kind VARCHAR, name VARCHAR, iteration BIGINT, collective VARCHAR, "
            "operations BIGINT, reason VARCHAR",
            sets,
        ),
        "rank.collective": (
            "part VARCHAR, device BIGINT, iteration BIGINT, collective VARCHAR, start_ns BIGINT",
            ops,
        ),
        "rank.trace": ("part VARCHAR, session_start_ns BIGINT", [("p", 100), ("q", None)]),
        "rank.instance": (
            "member_id BIGINT, iteration BIGINT, collective VARCHAR, start_ns BIGINT",
            [(0, 0, "ar", 110), (0, 0, "ar", 110), (7, 0, "ag", 30)],
        ),
    }
    outside = "belongs to no group with a rule"
    assert ask("survey/unmatched", tables) == [
        ("dp", "z", "ar", "a", 1, 1, "0"),
        ("tp", "g", "ar", "a", 1, 5, "0"),
        ("tp", "g", "ar", "b", 10, 20, "0, 1, 2, 3, 4, 5, 6, 7"),
        ("tp", "g", "rs", "a", 1, 5, "0"),
        ("tp", "h", "ar", "a", 1, 1, "0"),
        (None, None, "ag", outside, 1, 1, "0"),
        (None, None, "ar", outside, 2, 4, "0, 1"),
        (None, None, "rs", outside, 1, 1, "1"),
    ]


VERDICT = {
    "scope": "sampled BIGINT, world_size BIGINT, failed BIGINT, is_mapped BOOLEAN",
    "aligned": "member_id BIGINT, is_aligned BOOLEAN, method VARCHAR, offset_ns BIGINT",
    "off_step": "member_id BIGINT, off_ns DOUBLE",
    "blame": "iteration BIGINT, member_id BIGINT, caused_ns BIGINT, is_timed BOOLEAN",
    "blind": "member_id BIGINT, kind VARCHAR, name VARCHAR, is_alone BOOLEAN, ns DOUBLE",
    "instance": "member_id BIGINT, kind VARCHAR, name VARCHAR",
    "skew": "member_id BIGINT, peer_id BIGINT, longer_ns DOUBLE, earlier_start_ns DOUBLE, "
    "later_end_ns DOUBLE, judgement VARCHAR",
    "match_set": "operations BIGINT, reason VARCHAR, kind VARCHAR, name VARCHAR, "
    "collective VARCHAR",
    "slower": SLOWER,
    "stage_load": "stage BIGINT, iteration_ns DOUBLE, busy_ns DOUBLE, wait_ns DOUBLE",
    "matched": "kind VARCHAR, collective VARCHAR, jitter_wait_ns BIGINT, duration_ns BIGINT",
    "fingerprint": "member_id BIGINT, group_id BIGINT, fingerprint VARCHAR",
    "member_window": "member_id BIGINT, noncomm_busy_ns BIGINT, iteration_ns BIGINT",
}
STRAGGLER = "member_id BIGINT, windows BIGINT, n BIGINT, caused_ns DOUBLE"
MS = 1_000_000
THREE = members((0, 1, 0), (1, 1, 1), (2, 1, 2))


def verdict(ask, members=THREE, params=None, **rows):
    """The findings from the tables given; of the others only that all collectives match."""
    rows = {"match_set": [(1, None)], **rows}
    rows["match_set"] = [(*row, None, None, None)[:5] for row in rows["match_set"]]
    tables = {f"rank.{name}": (columns, rows.get(name, [])) for name, columns in VERDICT.items()}
    params = params or {}
    tables["rank.straggler"] = (STRAGGLER, ask("ranks/straggler", tables, **params))
    return ask("survey/verdict", members | tables, **params)


def said(found, finding):
    return [row[1:] for row in found if row[0] == finding]


@pytest.mark.parametrize(
    ("scope", "statement"),
    [
        ((4, 4, 0, True), " only: these are all."),
        (
            (4, 6, 0, True),
            " only: 2 of 6 ranks were not sampled, and one of them may be the true straggler.",
        ),
        (
            (4, None, 1, True),
            " only; how many ranks the run has is not known (world_size of the mapping tells), and "
            "one that was not captured may be the true straggler. 1 report could not be used.",
        ),
    ],
)
def test_survey_verdict_tells_its_scope(ask, scope, statement):
    found = verdict(ask, scope=[scope])
    told = f"The verdict is about the 4 sampled ranks{statement}"
    assert found == [("scope", None, None, None, told)]


def test_survey_verdict_is_provisional_without_a_mapping(ask):
    unmapped = members((0, 1, 0), (9, None, 0), (10, None, 1))
    rest = (
        ". Ranks, stages and groups of those are unknown, so nothing can be said about stages, "
        "matching collectives or arrival; `survey --init` writes a mapping to fill in."
    )
    for is_mapped, what in (
        (True, "2 reports are not in the mapping"),
        (False, "there is no mapping"),
    ):
        found = verdict(ask, unmapped, scope=[(3, 3, 0, is_mapped)])
        assert said(found, "provisional") == [(None, None, None, f"Provisional: {what}{rest}")]
        assert [row[0] for row in found] == ["scope", "provisional"]
    assert said(verdict(ask, scope=[(3, 3, 0, True)]), "provisional") == []
    # an entry without a rank is in the mapping, and what it says of stage and groups holds
    ranked, listed = members((0, 1, 0)), members((20, 1, 0), (21, 1, 1))
    for who, what in ((listed, "2 of the sampled (rank 30, ...)"), (ranked, None)):
        found = said(verdict(ask, who, scope=[(2, 2, 0, True)]), "provisional")
        told = f"Provisional: the mapping gives no rank for {what}: they go by the number of the "
        told += "report. Stages and groups hold where it gives them."
        assert found == ([(None, None, None, told)] if what else [])
    one = members((20, 1, 0), (9, None, 1))
    (unlisted, unranked) = said(verdict(ask, one, scope=[(2, 2, 0, True)]), "provisional")
    assert "1 reports are not in the mapping" in unlisted[-1]
    assert "no rank for 1 of the sampled (rank 30): they" in unranked[-1]


def test_survey_verdict_on_clocks(ask):
    clocks = [(0, True, "reference", 0), (1, False, "none", None), (2, True, "same clock", 0)]
    (row,) = verdict(ask, aligned=clocks)
    assert row[:4] == ("alignment", None, None, None) and row[4].startswith(
        "1 of 3 ranks are not aligned: their starts and ends are not compared"
    )
    clocks[1] = (1, True, "same clock", 0)
    assert verdict(ask, aligned=clocks) == []


def test_survey_verdict_on_windows_of_other_steps(ask):
    five = members(*[(m, 1, m) for m in range(5)])
    rest = (
        " start and end more than half an iteration away from those of others on the same clock: "
        "their ordinals count other steps, and their collectives blame nobody. Choose the same "
        "steps with --iterations."
    )
    found = verdict(ask, five, off_step=[(2, 60 * MS), (1, -51 * MS)])
    told = f"Windows of 2 ranks (rank 11, ...){rest}"
    assert found == [("other steps", None, 4.5, None, told)]
    found = verdict(ask, five, off_step=[(2, 60 * MS)])
    assert found == [("other steps", 12, 60.0, None, f"Windows of rank 12{rest}")]
    # a clock of its own that is off by more than half an iteration may be another step as well
    clocks = [(0, True, "reference", 0), (1, True, "same clock", 0), (2, True, "matched ends", -70)]
    clocks += [(3, True, "matched ends", 50), (4, True, "matched ends, through other hosts", 60)]
    more = {
        "aligned": [(*row[:3], row[3] * MS) for row in clocks],
        "member_window": [(m, 9, 100 * MS) for m in range(5)],
    }
    assert verdict(ask, five, **more) == [
        (
            *("other clock", None, 70.0, None),
            "The clocks of 2 ranks are off by more than half an iteration, or the windows there "
            "count other steps.",
        ),
    ]
    found = verdict(ask, five, **more, off_step=[(2, 60 * MS)])
    assert found[0][4].startswith("The clock of 1 rank is off by")
    found = verdict(ask, five, **more, off_step=[(2, 60 * MS), (4, 60 * MS)])
    assert [row[0] for row in found] == ["other steps"]


def test_survey_verdict_on_what_found_no_match(ask):
    assert said(verdict(ask, match_set=[]), "unmatched") == [
        *[
            (
                None,
                None,
                None,
                "No group of collectives is known: ranks are compared by totals only.",
            )
        ],
    ]
    none = [(2, "b"), (3, "a"), (3, "b")]
    assert said(verdict(ask, match_set=none), "unmatched") == [
        (
            *(None, None, 100.0),
            "No collective matches (b): ranks are compared by totals only, and nothing is said "
            "about transfer or waiting.",
        ),
    ]
    assert said(verdict(ask, match_set=[*none, (24, None)]), "unmatched") == [
        (None, None, 25.0, "8 of 32 operations of the groups match nothing, mostly because b."),
    ]
    (row,) = said(verdict(ask, match_set=[(3, None), (1, "a")]), "unmatched")
    assert row[2] == 25.0
    assert said(verdict(ask, match_set=[(24, None)]), "unmatched") == []


def blamed(ask, *culprits, caused=None, is_timed=True, **more):
    """The finding where these ranks (None: nobody) hold the others up, window by window."""
    caused = caused or [5 * MS] * len(culprits)
    rows = [(i, m, ns, is_timed) for i, (m, ns) in enumerate(zip(culprits, caused, strict=True))]
    prints = [(0, 0, "f"), (1, 0, "f"), (2, 1, "g")]
    rows = [(i, m, ns if m is not None else None, timed) for i, m, ns, timed in rows]
    (row,) = verdict(ask, blame=rows, fingerprint=prints, **more)
    return row


def test_survey_verdict_on_a_straggler(ask):
    row = blamed(ask, 1, 1, 1, 0, caused=[4 * MS, 6 * MS, 5 * MS, 90 * MS])
    told = (
        "Among the sampled ranks rank 11 holds the others up in 3 of 4 windows, by 5 ms "
        "(median) beyond what held it up itself"
    )
    assert row == ("straggler", 11, 5.0, 75.0, f"{told}.")
    alone = ". No other sampled rank of its stage does the same work: look for uneven load before "
    row = blamed(ask, 2, 2, 2, None)
    told = told.replace("rank 11", "rank 12")
    assert row == ("straggler", 12, 5.0, 75.0, f"{told}{alone}a slow device.")
    (row,) = verdict(ask, members((2, 1, 0)), blame=[(0, 2, MS, True)], fingerprint=[(2, 0, "f")])
    assert row[0] == "straggler" and alone not in row[4]
    inferred = blamed(ask, 1, is_timed=False)
    assert inferred[4].endswith("itself (order of arrival inferred from durations).")
    for share in (75.1, 75.6):
        strict = blamed(ask, 1, 1, 1, 0, params={"repeat_pct": share})
        assert strict[0] == "rotating" and strict[1] is None


@pytest.mark.parametrize(
    ("busy", "told"),
    [
        # 5 ms are caused: half of that more than the others of the stage is what makes it late
        ([(1, 8), (1, 9), (1, 90), (0, 6.5)], "computes 2.5 ms longer than the others of its st"),
        ([(1, 8), (1, 9), (1, 90), (0, 7)], "computes 2 ms longer than the others of its stage ("),
        ([(1, 9), (0, 8)], "computes no longer than the others of its stage: look at its host"),
        ([(1, 9)], "beyond what held it up itself."),
        ([(0, 9)], "beyond what held it up itself."),
    ],
)
def test_survey_verdict_on_what_makes_a_straggler_late(ask, busy, told):
    windows = [(member, int(ms * MS), 100 * MS) for member, ms in busy]
    found = blamed(ask, 1, 1, 1, 0, member_window=windows)[4]
    assert told in found and ("less than half of that" in found) == ("computes 2 ms" in found)


def test_survey_verdict_names_all_that_hold_others_up_again_and_again(ask):
    culprits = {0: (1, 2), 1: (1, 2), 2: (2, 1), 3: (0,)}
    rows = [(i, m, (4 + m) * MS, True) for i, of in culprits.items() for m in of]
    busy = [(m, ms * MS, 100 * MS) for m, ms in ((0, 10), (1, 15), (2, 19))]
    found = verdict(ask, blame=rows, member_window=busy)
    assert [row[:4] for row in found] == [
        *[("straggler", 12, 6.0, 75.0), ("straggler", 11, 5.0, 75.0)],
    ]
    # each against those of the stage that hold nobody up
    assert "computes 9 ms longer" in found[0][4] and "computes 5 ms longer" in found[1][4]


@pytest.mark.parametrize(
    ("blind", "busy", "told"),
    [
        ([("tp1", True, 2.5)], 0, ", or a member of tp1 that was not sampled, holds"),
        ([("tp1", True, 2.4)], 0, None),
        ([("tp1", True, 1.2), ("dp0", True, 1.3)], 0, ", or a member of dp0, tp1 that was not sam"),
        ([("tp1", False, 9)], 2.4, ", or a member of tp1 whose collectives match nothing, holds"),
        ([("tp1", True, 9)], 2.5, None),
    ],
)
def test_survey_verdict_on_a_straggler_that_may_have_waited_unseen(ask, blind, busy, told):
    rows = [(1, "k", name, alone, ns * MS) for name, alone, ns in blind]
    rows.append((0, "k", "z", True, 99 * MS))
    windows = [(0, 0, 100 * MS), (1, int(busy * MS), 100 * MS)]
    row = blamed(ask, 1, 1, 1, 1, blind=rows, member_window=windows)
    assert row[:4] == ("straggler", None if told else 11, 5.0, 100.0)
    assert (f"rank 11{told}" if told else "rank 11 holds the others up") in row[4]


def test_survey_verdict_tells_unseen_waits_of_their_own_straggler_only(ask):
    # nothing is known of what they compute; the longest of the collectives comes first
    blind = [(1, "k", "a", False, 4 * MS), (1, "k", "b", False, 5 * MS), (0, "k", "c", True, MS)]
    rows = [(i, m, (4 + m) * MS, True) for i in range(4) for m in (0, 1)]
    first, second = verdict(ask, blame=rows, blind=blind)
    assert first[:2] == ("straggler", None) and second[:2] == ("straggler", 10)
    assert "rank 11, or a member of b, a whose collectives match nothing, holds" in first[4]
    assert "rank 10 holds" in second[4]


def test_survey_verdict_on_culprits_that_change(ask):
    row = blamed(ask, 1, 0, None, None, caused=[2 * MS, 4 * MS, 99, 99])
    assert row == (
        *("rotating", None, 3.0, 50.0),
        "In 2 of 4 windows a rank holds the others up, but it is another one from window to window "
        "(2 ranks): no rank is to blame.",
    )
    row = blamed(ask, 1, 1, None, None)
    assert row == (
        *("occasional", None, 5.0, 50.0),
        "A rank holds the others up in 2 of 4 windows only: no straggler.",
    )
    row = blamed(ask, 1, 0, None, None, None)
    assert row[0] == "occasional" and row[3] == 40.0
    row = blamed(ask, None, None, is_timed=False)
    assert row == (
        *("no straggler", None, None, 0.0),
        "No sampled rank holds the others up by more than 1 % of an iteration (order of arrival "
        "inferred from durations).",
    )
    assert "more than 2.5 % of" in blamed(ask, None, params={"threshold_pct": 2.5})[4]
    # two that hold up equally often are both named
    rows = [(i, m, 5 * MS, True) for i, m in enumerate((1, 0, 0, 1))]
    found = verdict(ask, blame=rows, params={"repeat_pct": 50})
    assert [row[:4] for row in found] == [("straggler", m, 5.0, 50.0) for m in (10, 11)]


def test_survey_verdict_on_longer_windows(ask):
    rows = [
        (2, 0, 3 * MS, 2.5 * MS, 0.5 * MS, "start_skew and late_finish"),
        (1, 0, 3 * MS, 3 * MS, 0, "start_skew"),
        (0, 2, 3 * MS, 0, 3.5 * MS, "late_finish"),
    ]
    longer = "ms longer than those of"
    assert verdict(ask, skew=rows) == [
        (
            *("late_finish", 10, 3.0, None),
            f"Windows of rank 10 are 3 {longer} rank 12: they end 3.5 ms later.",
        ),
        (
            *("start_skew", 11, 3.0, None),
            f"Windows of rank 11 are 3 {longer} rank 10: they start 3 ms earlier and end with "
            "them. That is start skew, not a straggler.",
        ),
        (
            *("start_skew and late_finish", 12, 3.0, None),
            f"Windows of rank 12 are 3 {longer} rank 10: they start 2.5 ms earlier and end 0.5 ms "
            "later.",
        ),
    ]
    # starts and ends of windows that count other steps do not compare
    for member, kept in ((2, [11]), (0, [])):
        found = verdict(ask, skew=rows, off_step=[(member, MS)])
        assert [row[1] for row in found if row[0] != "other steps"] == kept
    rows = [(1, 0, 3 * MS, None, None, "longer, clocks not aligned"), (2, 0, 1, 1, 1, "as long")]
    assert verdict(ask, skew=rows) == [
        (
            *("longer", 11, 3.0, None),
            f"Windows of rank 11 are 3 {longer} rank 10. Without aligned clocks that is no proof "
            "of a late finish.",
        ),
    ]


def test_survey_verdict_on_waiting(ask):
    rows = [
        *[("tp", "ar", 30, 50), ("tp", "ar", 20, 49), ("dp", "ar", 50, 100), ("tp", "rs", 1, 8)],
        ("tp", "none", 0, 0),
    ]
    found = verdict(ask, matched=rows)
    assert [(row[0], *row[3:]) for row in found] == [
        (
            *("waiting", 100 * 50 / 99),
            "Collectives of tp (ar): 50.5 % of the time in matched instances is jitter wait. Look "
            "for the late member or uneven load, not for bandwidth.",
        ),
        (
            *("waiting", 50.0),
            "Collectives of dp (ar): 50 % of the time in matched instances is jitter wait, the "
            "rest is the transfer proxy: an upper bound where members were not sampled.",
        ),
        (
            *("waiting", 12.5),
            "Collectives of tp (rs): 12.5 % of the time in matched instances is jitter wait, the "
            "rest is the transfer proxy: an upper bound where members were not sampled.",
        ),
    ]
    for world, exact in ((3, True), (4, False), (None, False)):
        found = said(verdict(ask, matched=rows, scope=[(3, world, 0, True)]), "waiting")
        assert found[1][-1].endswith("the rest is the transfer proxy.") == exact


def test_survey_verdict_on_waiting_across_stages(ask):
    # of a group across stages, 20 % and 90 % are the pipeline's; the other group of the kind counts
    # as well, another kind does not
    two = members((0, 0, 0), (1, 1, 1))
    groups = [(0, "pp", "g"), (1, "pp", "g"), (0, "dp", "g"), (0, "pp", "h")]
    rows = [("pp", "ar", 2, 10), ("pp", "sr", 9, 10), ("dp", "ar", 9, 10)]
    found = said(verdict(ask, two, matched=rows, instance=groups), "waiting")
    (sr, dp), (ar,) = found[:2], found[2:]
    pipeline = "Its groups span stages, so the bubble and the schedule of the pipeline are in that:"
    told = {row[-1].split(":")[0]: pipeline in row[-1] for row in found}
    assert [told[f"Collectives of {what}"] for what in ("pp (ar)", "pp (sr)", "dp (ar)")] == [
        *[True, True, False],
    ]
    assert "Look for the late member" in {sr[-1][15:17]: sr, dp[-1][15:17]: dp}["dp"][-1]
    assert ar[-1].endswith("by itself it tells neither of a late member nor of bandwidth.")


def test_survey_verdict_on_neighbours_in_one_group(ask):
    four = members((0, 0, 0), (1, 1, 1), (2, 2, 2), (9, None, 0))
    differ = "the counts of the members differ"

    def told(stages, *sets):
        groups = [(m, "pp", "g") for m in range(stages)]
        return said(verdict(ask, four, match_set=sets, instance=groups), "unmatched")[0][-1]

    advice = (
        " pp g spans 3 stages: where they hand over to their neighbours by SendRecv, each pair of "
        "neighbours needs a group of its own, told apart by stream or communicator."
    )
    some, other = (5, differ, "pp", "g", "SendRecv"), (9, None, "dp", "g", "AllReduce")
    assert told(3, some) == (
        f"No collective matches ({differ}): ranks are compared by totals only, and nothing is said "
        f"about transfer or waiting.{advice}"
    )
    assert told(3, some, other) == (
        f"5 of 14 operations of the groups match nothing, mostly because {differ}.{advice}"
    )
    for stages, sets in (
        *[
            (2, some),
            (3, (5, differ, "pp", "g", "AllReduce")),
            (3, (5, "a", "pp", "g", "SendRecv")),
        ],
        *[(3, (5, differ, "pp", "h", "SendRecv")), (3, (5, differ, "dp", "g", "SendRecv"))],
    ):
        assert advice[:5] not in told(stages, sets, other)


def test_survey_verdict_on_slow_ranks_for_whom_nobody_waits(ask):
    none = "No sampled rank is seen to hold the others up by more than 1 % of an iteration"
    lag = [(0, "noncomm_busy", 1, 3 * MS), (0, "compute_busy", 1, 2 * MS)]
    hosts = [(0, "launch_starved", m, (4 + m) * MS) for m in (0, 2)]
    seen = ": what the others wait does not show it."
    row = blamed(ask, None, slower=lag + hosts)
    assert row == (
        *("no straggler", None, None, 0.0),
        f"{none}. But rank 11 is slower than the fastest of its group again and again, by 3 ms "
        f"(noncomm_busy, result groups){seen}",
    )
    more = [*lag, (1, "compute_busy", 0, 4 * MS)]
    rest = (
        "But rank 10, rank 11 are slower than the fastest of their group again and again, by up to "
        "4 ms (compute_busy, result groups)"
    )
    assert blamed(ask, None, slower=more)[-1] == f"{none}. {rest}{seen}"
    # a host may only wait for its device
    assert blamed(ask, None, slower=hosts, is_timed=False)[-1] == (
        f"{none} (order of arrival inferred from durations). But rank 10, rank 12 are "
        "launch-starved longer than the fastest of their group again and again, by up to 6 ms "
        f"(result groups){seen}"
    )
    # where others are seen to wait nothing else is said of that
    assert blamed(ask, 1, 0, slower=more)[-1].endswith(f"no rank is to blame. {rest}.")
    # a longer iteration is told elsewhere, and of a straggler enough is said
    assert "But" not in blamed(ask, None, slower=[(0, "iteration", 1, 3 * MS)])[-1]
    assert "But" not in blamed(ask, 1, slower=lag)[-1]


def test_survey_verdict_on_uneven_stages(ask):
    coupled = [(m, "pp", "g") for m in (0, 1)] + [(2, "tp", "g"), (9, "tp", "g")]
    four = members((0, 0, 0), (1, 1, 1), (2, 2, 2), (9, None, 0))

    def found(*busy, waits=(5, 3, 5), instance=coupled, **params):
        rows = [
            (stage, 100 * MS, ns * MS, None if wait is None else wait * MS)
            for stage, (ns, wait) in enumerate(zip(busy, waits, strict=False))
        ]
        return verdict(ask, four, params=params, stage_load=rows, instance=instance)

    (row,) = found(99, 101, 100)
    assert row == (
        *("stage imbalance", None, 2.0, 2.0),
        "Stage 1 is the busiest (101 ms without communication), stage 0 the least (99 ms): the "
        "others wait for the busiest, which waits least in the collectives across stages (5 ms in "
        "stage 0, 3 ms in stage 1, 5 ms in stage 2).",
    )
    assert found(99.5, 100.5, 100) == []
    assert len(found(99.5, 100.5, 100, threshold_pct=0.9)) == 1
    assert found(100) == []
    (row,) = found(101, 99, 99)
    assert "Stage 0 is the busiest" in row[4] and "stage 1 the least" in row[4]
    (row,) = found(99, 101, 101)
    assert "Stage 1 is the busiest" in row[4]
    # nobody waits for a stage that no collective couples with another
    for busy, instance in (((99, 101, 100), []), ((99, 99, 101), coupled)):
        (row,) = found(*busy, instance=instance)
        assert row[4].endswith("with another stage, so whether others wait for it is not known.")
    # nor is anything known where a stage has collectives across that match nothing
    (row,) = found(99, 101, 100, waits=(5, 3, None))
    assert "(99 ms). The collectives across stages do not all match, so whether" in row[4]
    # the busiest waits itself: it is the other that is late, by more than 1 % of an iteration
    (row,) = found(99, 101, 100, waits=(3, 5, 4))
    assert row[4].endswith(
        "stage 0 the least (99 ms), but the others wait for stage 0, which waits least in the "
        "collectives across stages (3 ms in stage 0, 5 ms in stage 1, 4 ms in stage 2): look at "
        "its host (launch-starved) first."
    )
    for waits, params in (((3, 4, 3), {}), ((3.5, 3, 3.5), {}), ((4, 5, 5), {})):
        (row,) = found(99, 101, 100, waits=waits, **params)
        assert row[4].endswith(" does not show who waits for whom."), waits
    for waits, params, awaited in (
        ((3, 4, 3), {"threshold_pct": 0.9}, "stage 0"),
        ((4, 3, 3), {}, "the"),
    ):
        (row,) = found(99, 101, 100, waits=waits, **params)
        assert f"the others wait for {awaited}" in row[4]


def test_survey_verdict_orders_limits_first(ask):
    found = verdict(
        ask,
        scope=[(3, 3, 0, True)],
        aligned=[(1, False, "none", None)],
        blame=[(0, 1, MS, True)],
        match_set=[],
        skew=[(2, 0, MS, 0, MS, "late_finish"), (1, 0, MS, MS, 0, "start_skew")],
        matched=[("tp", "ar", 1, 2), ("dp", "ar", 1, 2), ("tp", "rs", 2, 2)],
    )
    assert [(row[0], row[4].split(":")[0][-8:]) for row in found[-3:]] == [
        *[("waiting", " tp (rs)"), ("waiting", " dp (ar)"), ("waiting", " tp (ar)")],
    ]
    assert [row[0] for row in found[:-3]] == [
        *["scope", "alignment", "unmatched", "straggler", "start_skew", "late_finish"],
    ]
