"""Steps that cut time into stretches and windows, over small tables, against counting every tick.

Rows are drawn from a seed, a nanosecond is the unit, and what is expected is counted one nanosecond
after the other as METHOD's words have it: a union counts a nanosecond once.
"""

from collections import defaultdict
from random import Random

import pytest

LEAST, GREATEST = -(2**63), 2**63 - 1
# device, iteration, start, end: windows that overlap, that touch, and time between them
STEADY = [
    (0, 0, 0, 20),
    (0, 1, 15, 40),
    (0, 3, 40, 50),
    (0, 4, 55, 60),
    (1, 2, 5, 15),
    (1, 3, 15, 40),  # at borders of the other device, but not those of one of its windows
    (1, 5, 40, 41),
]


def stretches():
    found = {}
    for device in (0, 1):
        borders = sorted({at for of, _, *ends in STEADY if of == device for at in ends})
        borders = [LEAST, *borders, GREATEST]
        found[device] = [*zip(range(len(borders)), borders, borders[1:], strict=False)]
    return found


STRETCHES = stretches()
SEGMENT = (
    "device BIGINT, segment BIGINT, start_ns BIGINT, end_ns BIGINT",
    [(device, *each) for device, of in STRETCHES.items() for each in of],
)
INSIDE = [
    (device, iteration, segment)
    for device, iteration, start, end in STEADY
    for segment, begin, until in STRETCHES[device]
    if start <= begin and until <= end
]
WINDOW_SEGMENT = ("device BIGINT, iteration BIGINT, segment BIGINT", INSIDE)
WINDOWS = {
    "nsys.segment": SEGMENT,
    "nsys.window_segment": WINDOW_SEGMENT,
    "nsys.steady": ("device BIGINT, iteration BIGINT, start_ns BIGINT, end_ns BIGINT", STEADY),
}


def home(device, at):
    """The stretch in which a time lies."""
    return next(number for number, start, end in STRETCHES[device] if start <= at < end)


def placed(row):
    return row["device"], home(row["device"], row["start"]), row["start"], row["end"]


def shared(start, end, begin, until):
    return max(0, min(end, until) - max(start, begin))


def ticks(*spans):
    return {at for start, end in spans for at in range(start, end)}


def within(counted, start, end):
    return sum(start <= at < end for at in counted)


def drawn(seed, n, **choices):
    """Rows with a start, an end, and one of each of the choices."""
    draw, rows = Random(seed), []
    for number in range(n):
        start = draw.randint(-8, 62)
        row = {"id": number, "start": start, "end": start + draw.choice((0, 1, 3, 8, 20, 45))}
        rows.append(row | {name: draw.choice(of) for name, of in choices.items()})
    return rows


def columns(text):
    """'a b:VARCHAR' as the columns of a table; BIGINT where nothing is said."""
    pairs = (each.partition(":")[::2] for each in text.split())
    return ", ".join(f"{name} {kind or 'BIGINT'}" for name, kind in pairs)


def summed(rows, keys):
    """Rows by their key, without those that hold nothing."""
    found = {row[:keys]: row[keys:] for row in rows}
    assert len(found) == len(rows)
    return {key: row for key, row in found.items() if any(row)}


def every_stretch():
    return [(device, *each) for device, of in STRETCHES.items() for each in of]


@pytest.mark.parametrize("seed", [1, 2])
def test_name_segment(ask, seed):
    rows = drawn(seed, 40, device=[0, 1], name=[1, 2], kind=[0, 1, 2, 3, 4])
    tables = {
        **WINDOWS,
        "nsys.stream_item": (
            columns("kind device name_id start_ns end_ns"),
            [(r["kind"], r["device"], r["name"], r["start"], r["end"]) for r in rows],
        ),
    }
    expected = {}
    for device, segment, begin, until in every_stretch():
        for name in (1, 2):
            of = [r for r in rows if (r["device"], r["name"]) == (device, name) and r["kind"] < 4]
            own = [r["end"] - r["start"] for r in of if begin <= r["start"] < until]
            work = sum(shared(r["start"], r["end"], begin, until) for r in of)
            ends = (min(own), max(own)) if own else (None, None)
            if own or work:
                expected[device, segment, name] = (len(own), work, sum(own), *ends)
    assert summed(ask("steps/name_segment", tables), 3) == expected


def gaps(seed, n=25):
    """Gaps with issue and end of blocking in them, each with a producer or none."""
    draw, rows = Random(seed), []
    for number in range(n):
        device, start = draw.randint(0, 1), draw.randint(-8, 62)
        end = start + draw.choice((1, 3, 8, 20, 45))
        issued = draw.choice((start, draw.randint(start, end), end))
        begin = draw.randint(-20, 62)
        until = begin + draw.randint(1, 40)
        has = draw.random() < 0.7
        unblocked = max(issued, min(until, end)) if has else issued
        shadowed = shared(begin, until, start, issued) if has else 0
        row = (number, device, home(device, end), start, issued, unblocked, end, shadowed)
        rows.append((*row, *((number, begin, until) if has else (None,) * 3)))
    return rows


GAP = (
    "op_id device segment start_ns issued_ns unblocked_ns end_ns shadowed_ns producer_id "
    "producer_start_ns producer_end_ns"
)


def causes(rows, parts, device, begin, until):
    starved = blocked = stalled = shadowed = 0
    for _, of, _, start, issued, unblocked, end, _, producer, first, last in rows:
        if of == device:
            starved += shared(start, issued, begin, until)
            blocked += shared(issued, unblocked, begin, until)
            stalled += shared(unblocked, end, begin, until)
            if producer is not None:
                ran = ticks((start, issued)) & ticks((first, last))
                shadowed += within(ran, begin, until)
    comm = sum(
        shared(start, end, begin, until)
        for of, start, end, role in parts
        if of == device and role == "comm"
    )
    return starved, blocked, comm, stalled, shadowed


def blame(seed):
    return [
        (r["device"], r["start"], r["end"] + 1, r["role"])
        for r in drawn(seed, 20, device=[0, 1], role=["comm", "compute"])
    ]


def segment_cause(ask, rows, parts):
    tables = {
        **WINDOWS,
        "nsys.gap_cut": (columns(GAP), rows),
        "nsys.blocking_part": (columns("device start_ns end_ns role:VARCHAR"), parts),
    }
    return ask("steps/segment_cause", tables)


@pytest.mark.parametrize("seed", [1, 2])
def test_segment_cause(ask, seed):
    rows, parts = gaps(seed), blame(seed)
    expected = {
        each[:2]: causes(rows, parts, each[0], *each[2:])
        for each in every_stretch()
        if any(causes(rows, parts, each[0], *each[2:]))
    }
    assert summed(segment_cause(ask, rows, parts), 2) == expected


@pytest.mark.parametrize("seed", [1, 2])
def test_call_site_window(ask, seed):
    kernels = drawn(seed, 30, device=[0, 1], kind=["kernel", "kernel", "memcpy"])
    cut = gaps(seed)
    sites = {number: ["a", "b", None][number % 3] for number in range(40) if number % 4}
    tables = {
        **WINDOWS,
        "nsys.op": (
            columns("op_id device kind:VARCHAR start_ns end_ns"),
            [(r["id"], r["device"], r["kind"], r["start"], r["end"]) for r in kernels],
        ),
        "nsys.gap_cut": (columns(GAP), cut),
        "nsys.call_site_op": (columns("op_id call_site:VARCHAR"), [*sites.items()]),
    }
    expected = defaultdict(lambda: [0, 0, 0, 0])
    for device, iteration, begin, until in STEADY:
        for r in kernels:
            if r["device"] == device and r["kind"] == "kernel":
                told = expected[device, iteration, sites.get(r["id"])]
                told[0] += begin <= r["start"] < until
                told[1] += shared(r["start"], r["end"], begin, until)
        for op, of, _, start, issued, unblocked, *_ in cut:
            if of == device:
                told = expected[device, iteration, sites.get(op)]
                told[2] += shared(start, issued, begin, until)
                told[3] += shared(issued, unblocked, begin, until)
    found = summed(ask("steps/call_site_window", tables), 3)
    assert found == {key: tuple(told) for key, told in expected.items() if any(told)}


@pytest.mark.parametrize("seed", [1, 2])
def test_range_device(ask, seed):
    ops = drawn(seed, 35, device=[0, 1], kind=[1, 2, 3], path=[1, 2, 3])
    ancestors = [(1, 1), (2, 2), (2, 1), (9, 9)]  # 2 lies in 1; 3 is no path, 9 a free one
    free = [(r["id"], 9) for r in ops[::3]]
    tables = {
        **WINDOWS,
        "nsys.range_op": (
            columns("op_id device segment start_ns end_ns kind path_no"),
            [(r["id"], *placed(r), r["kind"], r["path"]) for r in ops],
        ),
        "nsys.range_ancestor": (columns("path_no outer_no"), ancestors),
        "nsys.range_free_op": (columns("op_id path_no"), free),
    }
    expected = {}
    for device, segment, begin, until in every_stretch():
        for path in (1, 2, 3, 9):
            inner = [own for own, outer in ancestors if outer == path]
            of = [r for r in ops if r["path"] in inner or (r["id"], path) in free]
            told = unions([r for r in of if r["device"] == device], begin, until)
            if any(told):
                expected[device, segment, path] = told
    assert summed(ask("steps/range_device", tables), 3) == expected


def unions(rows, begin, until):
    """How many start in it, and what all, those that compute, and comm besides cover of it."""
    covered = [
        within(ticks(*((r["start"], r["end"]) for r in rows if r["kind"] <= kind)), begin, until)
        for kind in (3, 1, 2)
    ]
    return (sum(begin <= r["start"] < until for r in rows), *covered)


@pytest.mark.parametrize("seed", [1, 2])
def test_phase_device(ask, seed):
    ops = drawn(
        seed, 45, device=[0, 1], kind=[1, 2, 3], path=[1, 2, 3, None], process=[5, 6, 7, None]
    )
    for number, row in enumerate(ops):
        row["launch"] = row["start"] - number % 7 if number % 5 else None
    named = {1: "forward", 2: "backward"}
    ops[4]["path"] = ops[9]["path"] = None  # those of ranges of other threads
    free = [
        (ops[4]["id"], 2, 11),
        (ops[4]["id"], 1, 12),
        (ops[9]["id"], 3, 12),
        (ops[14]["id"], 1, 3),
    ]
    passes = [(5, 0, 20, "forward"), (5, 25, 45, "optimizer"), (7, 0, 70, "backward")]
    tables = {
        **WINDOWS,
        "nsys.range_op": (
            columns("op_id device segment start_ns end_ns kind path_no process launch_ns"),
            [(r["id"], *placed(r), r["kind"], r["path"], r["process"], r["launch"]) for r in ops],
        ),
        "nsys.range_phase": (columns("path_no phase:VARCHAR"), [*named.items()]),
        "nsys.range_free_op": (columns("op_id path_no range_no"), free),
        "nsys.phase_state": (columns("process start_ns end_ns phase:VARCHAR"), passes),
    }
    for r in ops:
        inside = [
            (number, named[path]) for op, path, number in free if op == r["id"] and path in named
        ]
        own = named.get(r["path"]) or (max(inside)[1] if inside else None)
        at = r["launch"]
        open_then = [
            phase
            for process, start, end, phase in passes
            if process == r["process"] and at is not None and start <= at < end
        ]
        r["borrowed"] = not own and bool(open_then)
        r["phase"] = own or (open_then or ["unattributed"])[0]
    expected = {}
    for device, segment, begin, until in every_stretch():
        for phase in {r["phase"] for r in ops}:
            of = [r for r in ops if (r["device"], r["phase"]) == (device, phase)]
            count, *covered = unions(of, begin, until)
            borrowed = sum(r["borrowed"] and begin <= r["start"] < until for r in of)
            if any((count, *covered)):
                expected[device, segment, phase] = (count, borrowed, *covered)
    assert summed(ask("steps/phase_device", tables), 3) == expected


def streamed(ask, rows, steady, **variables):
    tables = {
        **(WINDOWS if steady else {name: (text, []) for name, (text, _) in WINDOWS.items()}),
        "nsys.stream_item": (
            columns("kind device process lane context_id stream_id name_id start_ns end_ns"),
            [(r["kind"], r["device"], *r["stream"], r["name"], r["start"], r["end"]) for r in rows],
        ),
        "nsys.op_name": (columns("name_id class:VARCHAR"), [(1, "gemm"), (2, "norm"), (3, "gemm")]),
    }
    return ask("steps/stream_window", tables, **variables)


STREAMS = [
    *[(5, 1, 1, 7), (6, 1, 1, 7), (5, 2, 2, 7), (5, 3, 1, 8)],
    *[(None, 1, 1, 7), (5, 4, None, None)],
]


@pytest.mark.parametrize("seed", [1, 2, None])
def test_stream_window(ask, seed):
    rows = drawn(
        seed or 3, 60, device=[0, 1], kind=[0, 1, 2, 3, 4, 5], stream=STREAMS, name=[1, 2, 3]
    )
    rows += [{**rows[0], "start": 0, "end": 0, "kind": 0, "device": 0}]
    for row in rows:  # what has no time on the device is no operation
        if row["kind"] > 3:
            row["device"] = None
    windows = STEADY if seed else [(device, None, LEAST, GREATEST) for device in (0, 1)]
    found = streamed(ask, rows, bool(seed))
    expected, busy = {}, {}
    for device, iteration, begin, until in windows:
        for stream in STREAMS:
            key = (device, iteration, stream[0], *stream[2:])
            of = [
                r for r in rows if (r["device"], r["stream"]) == (device, stream) and r["kind"] < 4
            ]
            busy[key] = within(ticks(*((r["start"], r["end"]) for r in of)), begin, until)
            for cls, names in (("gemm", (1, 3)), ("norm", (2,))):
                mine = [r for r in of if r["name"] in names]
                started = [r for r in mine if begin <= r["start"] < until]
                work = sum(shared(r["start"], r["end"], begin, until) for r in mine)
                if started or work:
                    first = min((r["start"] for r in started), default=None)
                    last = max((r["end"] for r in started), default=None)
                    expected[(*key, cls)] = (len(started), work, first, last)
    told = {row[:6]: (*row[6:8], *row[9:]) for row in found}
    assert len(told) == len(found) and told == expected
    added = defaultdict(int)
    for row in found:
        added[row[:5]] += row[8]
    assert added == {key: ns for key, ns in busy.items() if key in added}
    assert sum(busy.values()) == sum(added.values())
    if not seed:
        alone = streamed(ask, rows, False, device=1)
        assert sorted(alone, key=str) == sorted((r for r in found if r[0] == 1), key=str)


OPS = {1: "compute", 2: "comm", 3: "memcpy", 4: "wait", 5: "memset"}
SWEEP = (
    "device segment start_ns end_ns role:VARCHAR item_id process correlation_id prev_id "
    "prev_start_ns prev_end_ns prev_name_id compute_until_ns comm_until_ns other_until_ns"
)


def swept(ask, ops):
    """nsys.sweep of operations with a name of OPS."""
    tables = {
        **WINDOWS,
        "nsys.stream_item": (
            columns(
                "device start_ns end_ns name_id item_id process lane correlation_id prev_id "
                "prev_start_ns prev_end_ns prev_name_id"
            ),
            [
                (
                    *(r["device"], r["start"], r["end"], r["name"], r["id"], 5, r["lane"]),
                    *(r["correlation"], *(r["id"] + n for n in (70, 80, 90, 60))),
                )
                for r in ops
            ],
        ),
        "nsys.op_name": (columns("name_id role_code:VARCHAR"), [*OPS.items()]),
    }
    return ask("steps/sweep", tables)


def test_sweep(ask):
    ops = drawn(4, 40, device=[0, 1], name=list(OPS), lane=[1, 2], correlation=[1, 2, 3, None])
    found = swept(ask, ops)
    lasting = [r for r in ops if r["end"] > r["start"]]

    def place(r):
        nothing = r["correlation"] is None
        return (r["start"], nothing, r["correlation"] or 0, r["lane"], r["id"])

    rows = {row[5]: row for row in found if row[5] is not None}
    assert rows.keys() == {r["id"] for r in lasting}
    for r in lasting:
        before = [o for o in lasting if o["device"] == r["device"] and place(o) < place(r)]

        def latest(wanted, before=before):
            return max((o["end"] for o in before if wanted(OPS[o["name"]])), default=None)

        number = r["id"]
        assert rows[number] == (
            *(r["device"], home(r["device"], r["start"]), r["start"], r["end"], OPS[r["name"]]),
            *(number, 5, r["correlation"], 70 + number, 80 + number, 90 + number, 60 + number),
            latest(lambda role: role == "compute"),
            latest(lambda role: role == "comm"),
            latest(lambda role: role != "comm"),
        )
    borders = [row for row in found if row[5] is None]
    assert sorted(row[:3] for row in borders) == [
        (device, segment - 1, start) for device, segment, start, _ in every_stretch() if segment
    ]
    for row in borders:
        before = [o["end"] for o in lasting if o["device"] == row[0] and o["start"] < row[2]]
        assert max((each for each in row[13:] if each is not None), default=None) == max(
            before, default=None
        )


@pytest.mark.parametrize("seed", [5, 6, 7])
def test_budget_window(ask, seed):
    names = [1, 2, 3, 5] if seed == 7 else list(OPS)
    ops = drawn(seed, 40, device=[0, 1], name=names, lane=[1, 2], correlation=[1, 2, 3, None])
    if seed == 6:  # a device that only copies, and one whose last compute ends early
        ops = [{**r, "name": 3 if r["device"] or r["start"] > 20 else r["name"]} for r in ops]
    sweep = {"nsys.sweep": (columns(SWEEP), swept(ask, ops))}
    noncomm = ask("steps/noncomm_union", sweep)
    tables = {
        **sweep,
        "nsys.noncomm_union": (columns("device segment noncomm_busy_ns"), noncomm),
    }
    union = ask("steps/segment_union", tables)
    rows, parts = gaps(seed), blame(seed)
    numbers = "device_busy_ns noncomm_busy_ns comm_busy_ns compute_busy_ns comm_exposed_ns"
    cause = "launch_starved_ns blocking_ns comm_blocking_ns dependency_stalled_ns shadowed_ns"
    tables = {
        **WINDOWS,
        **sweep,
        "nsys.segment_union": (columns(f"device segment {numbers}"), union),
        "nsys.segment_cause": (
            columns(f"device segment {cause}"),
            segment_cause(ask, rows, parts),
        ),
    }
    found = ask("steps/budget_window", tables)
    assert [row[:4] for row in sorted(found)] == sorted(STEADY)
    for device, iteration, begin, until in STEADY:
        of = [r for r in ops if r["device"] == device]

        def covered(*roles, of=of, begin=begin, until=until):
            spans = ((r["start"], r["end"]) for r in of if OPS[r["name"]] in roles)
            return {at for at in ticks(*spans) if begin <= at < until}

        busy, comm, compute = covered(*OPS.values()), covered("comm"), covered("compute")
        exposed = comm - covered("compute", "memcpy", "wait", "memset")
        starved, blocked, by_comm, stalled, shadowed = causes(rows, parts, device, begin, until)
        ends = [r["end"] for r in of if OPS[r["name"]] == "compute" and r["end"] > r["start"]]
        last = max(ends, default=begin)
        length = until - begin
        (row,) = (row[4:] for row in found if row[:2] == (device, iteration))
        assert row == (
            *(length, len(busy), length - len(busy), len(covered("compute", "wait")), len(comm)),
            *(len(compute), length - len(compute), len(busy) - len(compute), starved, blocked),
            *(stalled, min(length, max(0, until - last)), len(exposed), by_comm),
            *(len(comm) - len(exposed), shadowed),
        )


@pytest.mark.parametrize("seed", [1, 2])
def test_comm_piece_and_window(ask, seed):
    draw = Random(seed)
    ops = drawn(seed, 30, device=[0, 1], name=[1, 2, 3], role=["comm", "compute"])
    tables = {
        **WINDOWS,
        "nsys.comm_op": (
            columns("op_id device name_id role:VARCHAR start_ns end_ns"),
            [(r["id"], r["device"], r["name"], r["role"], r["start"], r["end"]) for r in ops],
        ),
    }
    pieces = ask("steps/comm_piece", tables)
    assert [row[0] for row in pieces] == [*range(1, len(pieces) + 1)]
    expected = []
    for r in ops:
        for segment, begin, until in STRETCHES[r["device"]]:
            if (r["device"], segment) in {(device, number) for device, _, number in INSIDE}:
                starts = begin <= r["start"] < until
                if starts or (r["start"] < begin < r["end"]):
                    clipped = (max(r["start"], begin), min(r["end"], until))
                    expected.append((r["device"], segment, r["name"], r["role"], starts, *clipped))
    assert sorted(row[1:] for row in pieces) == sorted(expected)

    # sets: 0 all, 1 and 2 names of their own, 3 the same as 2; cover of rivals up to a time
    groups = [(1, 0, 0), (2, 0, 0), (3, 0, 0), (1, 1, 1), (2, 2, 2), (2, 3, 2)]
    rivals = {device: ticks(*[(draw.randint(-5, 60),) * 2 for _ in "ab"]) for device in (0, 1)}
    rivals = {device: {at for at in range(-10, 70) if draw.random() < 0.4} for device in rivals}
    blames = [
        (device, segment, draw.choice(ops)["id"], draw.randint(1, 9))
        for device, segment, *_ in every_stretch()
        for _ in range(2)
    ]
    tables |= {
        "nsys.comm_piece": (
            columns(
                "piece_id device segment name_id role:VARCHAR is_start:BOOLEAN start_ns end_ns"
            ),
            [(*row[:5], str(row[5]), *row[6:]) for row in pieces],
        ),
        "nsys.comm_rival": (
            columns("piece_id rival_start_ns rival_end_ns"),
            [(row[0], *(within(rivals[row[1]], -99, at) for at in row[6:])) for row in pieces],
        ),
        "nsys.comm_group": (columns("name_id set_id same_id"), groups),
        "nsys.blame_segment": (columns("device segment op_id blocking_ns"), blames),
    }
    found = summed(ask("steps/comm_window", tables), 3)
    names = {row["id"]: row["name"] for row in ops}
    expected = {}
    for device, iteration, begin, until in STEADY:
        of_window = {s for d, i, s in INSIDE if (d, i) == (device, iteration)}
        for number in range(4):
            members = [name for name, of, _ in groups if of == number]
            of = [r for r in ops if r["device"] == device and r["name"] in members]
            covered = {
                at for at in ticks(*((r["start"], r["end"]) for r in of)) if begin <= at < until
            }
            told = (
                sum(begin <= r["start"] < until for r in of),
                sum(shared(r["start"], r["end"], begin, until) for r in of),
                *(len(covered), len(covered - rivals[device])),
                sum(
                    ns
                    for d, segment, op, ns in blames
                    if d == device and segment in of_window and names[op] in members
                ),
            )
            if any(told):
                expected[device, iteration, number] = told
    assert found == expected
    # a window without any still has its row of all
    quiet = {**tables, "nsys.comm_piece": (tables["nsys.comm_piece"][0], [])}
    quiet["nsys.blame_segment"] = (tables["nsys.blame_segment"][0], [])
    assert sorted(ask("steps/comm_window", quiet)) == sorted((*row[:2], *[0] * 6) for row in STEADY)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_range_free_op(ask, seed):
    ranges = drawn(seed, 14, path=[1, 2], thread=[8, 9])
    launches = drawn(seed + 10, 40, thread=[8, 9, 10])
    tables = {
        "nsys.range_instance": (
            columns("range_no path_no thread start_ns end_ns"),
            [
                # push/pop ranges have numbers from 0 on
                (
                    -1 - r["id"] if r["id"] % 7 else r["id"],
                    r["path"],
                    r["thread"],
                    r["start"],
                    r["end"],
                )
                for r in ranges
            ],
        ),
        "nsys.range_op": (
            columns("op_id thread launch_ns"),
            [(r["id"], r["thread"], r["start"]) for r in launches],
        ),
    }
    expected = set()
    free = [r for r in ranges if r["id"] % 7 and r["end"] > r["start"]]
    for path in (1, 2):
        for thread in (8, 9):
            of = sorted(
                (r for r in free if (r["path"], r["thread"]) == (path, thread)),
                key=lambda r: (r["start"], r["id"]),
            )
            islands = []
            for r in of:
                if islands and r["start"] <= islands[-1][1]:
                    number, end, start = islands[-1]
                    islands[-1] = (max(number, -1 - r["id"]), max(end, r["end"]), start)
                else:
                    islands.append((-1 - r["id"], r["end"], r["start"]))
            for number, end, start in islands:
                expected |= {
                    (path, number, o["id"])
                    for o in launches
                    if o["thread"] == thread and start <= o["start"] < end
                }
    found = ask("steps/range_free_op", tables)
    assert len(found) == len(expected) and set(found) == expected


def test_launch_window(ask):
    names = {
        **{1: "cudaLaunchKernel_v7000", 2: "cuLaunchKernelEx", 3: "cudaGraphLaunch_v10000"},
        **{
            4: "cudaMemcpyAsync",
            5: "cudaLaunchCooperativeKernel",
            6: "cuLaunch",
            7: "cuLaunchGrid",
        },
        **{8: "cuGraphLaunch", 9: "cudaLaunchHostFunc_v10000", 10: "xcudaLaunchKernel"},
        **{11: "cudaGraphInstantiate", 12: "cudaLaunch_v3020"},
    }
    calls = [(5, at, number) for at, number in enumerate(names)] + [
        (6, 16, 1),
        (9, 5, 1),
        (5, 15, 1),
    ]
    kernels = [
        *[
            (0, 0, "one", 1),
            (0, 5, "many", None),
            (0, 15, "unknown", None),
            (0, 15, "skewed", None),
        ],
        *[(0, 18, "one", 18), (0, 19, "one", 20), (0, 20, "one", 30), (0, -1, "one", 5)],
        (1, 5, "many", None),
    ]
    cuts = [(0, 3, 4), (0, 4, 4), (0, 16, 19), (0, 52, 54), (1, 6, 6)]
    tables = {
        **WINDOWS,
        "nsys.drive": (columns("process device"), [(5, 0), (6, 0), (6, 1)]),
        "nsys.call": (columns("process start_ns name_id"), calls),
        "nsys.string": (columns("string_id value:VARCHAR"), [*names.items()]),
        "nsys.kernel_launch": (
            columns("device segment start_ns launch:VARCHAR call_end_ns"),
            [(device, home(device, at), at, *rest) for device, at, *rest in kernels],
        ),
        "nsys.gap_cut": (
            columns("device segment start_ns issued_ns"),
            [(device, home(device, start), start, issued) for device, start, issued in cuts],
        ),
    }
    found = {row[:2]: row[2:] for row in ask("steps/launch_window", tables)}
    # calls, launches, of graphs; kernels: all, one, many, unknown, skewed, early; bound
    assert found == {
        (0, 0): (14, 8, 2, 6, 3, 1, 1, 1, 2, 2),
        (0, 1): (2, 2, 0, 5, 3, 0, 1, 1, 2, 1),
        (0, 3): (0,) * 10,
        (0, 4): (0,) * 10,
        (1, 2): (0, 0, 0, 1, 0, 1, 0, 0, 0, 0),
        (1, 3): (1, 1, *[0] * 8),
        (1, 5): (0,) * 10,
    }


@pytest.mark.parametrize("seed", [1, 2])
def test_queue_window(ask, seed):
    rows = drawn(seed, 40, device=[0, 1], launch=["one", "one", "many"])
    tables = {
        **WINDOWS,
        "nsys.kernel_launch": (
            columns("device launch:VARCHAR call_end_ns start_ns"),
            # some start before their call has returned
            [
                (r["device"], r["launch"], r["start"], r["end"] - (3 if r["id"] % 4 == 0 else 0))
                for r in rows
            ],
        ),
    }
    found = {row[:2]: row[2:] for row in ask("steps/queue_window", tables)}
    queued = [
        (row[0], row[2], row[3]) for row in tables["nsys.kernel_launch"][1] if row[1] == "one"
    ]
    for device, iteration, begin, until in STEADY:
        depths = sorted(
            sum(of == device and start <= at < end for of, start, end in queued)
            for at in range(begin, until)
        )
        half = depths[(len(depths) - 1) // 2]
        assert found.pop((device, iteration)) == (half, depths[-1], depths.count(0))
    assert not found


def test_queue_window_of_a_host_far_ahead(ask):
    # 8194 and 8195 kernels in the queue are told as 8194; the greatest depth is exact
    rows = [(0, "one", -9, 70)] * 8194 + [(0, "one", 12, 70)]
    tables = {
        **WINDOWS,
        "nsys.kernel_launch": (columns("device launch:VARCHAR call_end_ns start_ns"), rows),
    }
    found = {row[:2]: row[2:] for row in ask("steps/queue_window", tables)}
    assert found[0, 0] == (8194, 8195, 0) and found[0, 1] == (8194, 8195, 0)


@pytest.mark.parametrize("seed", [1, 2])
def test_range_segment(ask, seed):
    rows = drawn(seed, 40, device=[0, 1], path=[1, 2], side=[True, False])
    tables = {
        **WINDOWS,
        "nsys.range_extent": (
            columns("device path_no is_device:BOOLEAN start_ns end_ns"),
            [(r["device"], r["path"], str(r["side"]), r["start"], r["end"]) for r in rows],
        ),
    }
    expected = {}
    for device, segment, begin, until in every_stretch():
        for path in (1, 2):
            of = [r for r in rows if (r["device"], r["path"]) == (device, path)]
            host = [r for r in of if not r["side"]]
            covered = ticks(*((r["start"], r["end"]) for r in host))
            span = ticks(*((r["start"], r["end"]) for r in of if r["side"]))
            told = (
                sum(begin <= r["start"] < until for r in host),
                within(covered, begin, until),
                sum(shared(r["start"], r["end"], begin, until) for r in host),
                within(span, begin, until),
            )
            if any(told):
                expected[device, segment, path] = told
    assert summed(ask("steps/range_segment", tables), 3) == expected


@pytest.mark.parametrize("seed", [8, 9])
def test_comm_rival_is_what_other_roles_cover(ask, seed):
    names = [1, 1, 2, 3, 4, 5]
    ops = drawn(seed, 40, device=[0, 1], name=names, lane=[1, 2], correlation=[1, 2, 3, None])
    ops = [r for r in ops if r["end"] > r["start"]]
    # pieces of communication of one device, and of compute of both, that may overlap
    wanted = [r for r in ops if r["name"] == 1 or (r["name"] == 2 and not r["device"])]
    pieces = [
        (n, r["device"], OPS[r["name"]], r["start"], r["end"]) for n, r in enumerate(wanted[2:], 1)
    ]
    tables = {
        "nsys.comm_piece": (columns("piece_id device role:VARCHAR start_ns end_ns"), pieces),
        "nsys.sweep": (columns(SWEEP), swept(ask, ops)),
    }
    found = {row[0]: row[1:] for row in ask("steps/comm_rival", tables)}
    assert found.keys() == {piece[0] for piece in pieces}
    for device in (0, 1):
        for role in ("comm", "compute"):
            of = [piece for piece in pieces if piece[1:3] == (device, role)]
            rivals = ticks(
                *(
                    (r["start"], r["end"])
                    for r in ops
                    if r["device"] == device and OPS[r["name"]] != role
                )
            )
            # from where it is counted does not matter, only what is added
            offsets = {
                found[number][side] - sum(least <= t < at for t in rivals)
                for number, _, _, *ends in of
                for least in [min((piece[3] for piece in of), default=0)]
                for side, at in enumerate(ends)
            }
            assert len(offsets) <= 1


def test_kernel_launch(ask):
    memcpy = (1 << 40) + 1
    rows = [
        # number, device, start, process, correlation, call
        *[(1, 0, 5, 5, 1, 1, 3), (2, 0, 6, 5, 2, 7, 9), (3, 0, 6, 5, 3, None, None)],
        *[(4, 0, 7, 5, 4, 1, 3), (5, 0, 8, 5, 4, 1, 3), (6, 1, 9, 5, 4, 1, 3)],
        *[(7, 0, 9, 6, 4, 1, 3), (8, 0, 9, 5, 5, 1, 3), (9, 0, 9, 5, None, None, None)],
        *[(10, 0, 9, 5, None, None, None), (11, 0, 10, None, 6, 1, 3), (12, 0, 10, None, 6, 1, 3)],
        *[(13, 0, 10, 5, 7, 10, 12), (memcpy, 0, 10, 5, 1, 1, 3)],
        # before the first window, and behind the last with its call before its end or behind it
        *[(14, 0, -1, 5, 8, -3, -2), (15, 0, 0, 5, 9, -3, -2), (16, 0, 60, 5, 10, 50, 59)],
        *[(17, 0, 60, 5, 11, 50, 60), (18, 0, 59, 5, 12, 59, 70), (19, 2, 5, 5, 13, 1, 3)],
        (20, 0, 60, 5, 14, None, None),
    ]
    tables = {
        **WINDOWS,
        "nsys.op_launch": (
            columns(
                "op_id device segment start_ns process correlation_id call_start_ns call_end_ns"
            ),
            [(number, device, 4, *rest) for number, device, *rest in rows],
        ),
        "nsys.graph_op": (columns("op_id"), [(8,)]),
    }
    found = ask("steps/kernel_launch", tables)
    assert {row[2]: row[6] for row in found} == {
        **dict.fromkeys([1, 7, 13, 15, 16, 18], "one"),
        **dict.fromkeys([4, 5, 6, 8, 11, 12], "many"),
        **dict.fromkeys([3, 9, 10], "unknown"),
        2: "skewed",
    }
    calls = {number: tuple(rest[-2:]) for number, _, *rest in rows}
    starts = {number: start for number, _, start, *_ in rows}
    for device, segment, number, start, *call, launch in found:
        assert (device, segment, start) == (1 if number == 6 else 0, 4, starts[number])
        assert tuple(call) == (calls[number] if launch == "one" else (None, None))


def longest(ask, cut, hosts=(), ops=(), calls=(), states=(), **variables):
    """Rows of the recipe top-gaps as dicts, times in ns; of each gap the kernel is its number."""
    items = [(number, number, 5, number, device, 900, 901) for number, device, *_ in cut]
    tables = {
        **WINDOWS,
        "nsys.gap_cut": (
            columns(f"{GAP} call_start_ns producer_role:VARCHAR evidence:VARCHAR"),
            [(*row, 3, "comm" if row[8] else None, "resolved") for row in cut],
        ),
        "nsys.stream_item": (
            columns("item_id name_id process correlation_id device start_ns end_ns"),
            [*items, *ops],
        ),
        "nsys.op_name": (
            columns("name_id name:VARCHAR role:VARCHAR"),
            [(number, f"k{number}" if number % 5 else None, "compute") for number in range(40)]
            + [(-1, "memcpy", "memcpy")],
        ),
        "nsys.outermost_call": (columns("process correlation_id thread"), list(calls)),
        "nsys.starved_host": (
            columns("device gap_start_ns start_ns end_ns activity:VARCHAR name:VARCHAR path_no"),
            list(hosts),
        ),
        "nsys.range_state": (columns("thread start_ns path_no"), list(states)),
        "nsys.range_path": (columns("path_no path:VARCHAR"), [(1, "a"), (2, "a/b"), (3, "c")]),
    }
    names = (
        "device rank iteration start length starved blocking stalled before after producer role "
        "activity function path evidence"
    )
    found = []
    for row in ask("recipes/top_gaps", tables, **variables):
        told = dict(zip(names.split(), row, strict=True))
        for name in ("length", "starved", "blocking", "stalled"):
            told[name] = round(told[name] * 1e6)
        found.append(told)
    return found


def disjoint(seed):
    """Gaps of two devices, one after the other."""
    draw, rows = Random(seed), []
    for device in (0, 1):
        at = -10
        while at < 70:
            start = at + draw.randint(1, 3)
            at = end = start + draw.choice((1, 2, 5, 9, 9, 16))
            issued = draw.randint(start, end)
            unblocked = draw.randint(issued, end)
            number = len(rows) + 1
            producer = number - 1 if number % 3 else None
            segment = home(device, end)
            rows.append((number, device, segment, start, issued, unblocked, end, 0, producer, 1, 2))
    return rows


@pytest.mark.parametrize(("seed", "top"), [(1, 1), (2, 3), (2, 1000), (1, 1000000)])
def test_top_gaps(ask, seed, top):
    cut, expected = disjoint(seed), []
    for device in (0, 1):
        of = []
        for number, own, _, start, issued, unblocked, end, _, producer, *_ in cut:
            for at, iteration, begin, until in STEADY:
                if own == at == device and shared(start, end, begin, until):
                    ends = ((start, end), (start, issued), (issued, unblocked), (unblocked, end))
                    row = [shared(*each, begin, until) for each in ends]
                    of.append((-row[0], start, iteration, max(start, begin), number, producer, row))
        for rank, (_, _, iteration, start, number, producer, row) in enumerate(sorted(of)[:top], 1):
            names = [
                f"k{each}" if each % 5 else "(unnamed kernel)" for each in (number, producer or 0)
            ]
            expected.append(
                (device, rank, iteration, start, *row, names[0], names[1] if producer else None)
            )
    found = longest(ask, cut, top=top)
    keys = ["device", "rank", "iteration", "start", "length", "starved", "blocking", "stalled"]
    assert [tuple(row[key] for key in (*keys, "after", "producer")) for row in found] == expected
    assert {row["role"] for row in found if row["producer"]} <= {"comm"}
    assert {row["role"] for row in found if not row["producer"]} <= {None}
    assert {row["evidence"] for row in found} == {"resolved"}
    if top == 1000:
        assert len(longest(ask, cut)) == sum(row["rank"] <= 20 for row in found)


def test_top_gaps_of_overlapping_windows_take_one_place_among_the_longest(ask):
    # the longest lies in both windows of 15 to 20, and so do its two rows; the third is the next
    spans = [(16, 20), (21, 24), (41, 43), (3, 4)]
    cut = [
        (at, 0, home(0, start), start, start, start, end, 0, None, 1, 2)
        for at, (start, end) in enumerate(spans, 1)
    ]
    found = longest(ask, cut, top=3)
    assert [(row["iteration"], row["start"], row["length"]) for row in found] == [
        *[(0, 16, 4), (1, 16, 4), (1, 21, 3)],
    ]


def test_top_gaps_tell_what_came_before(ask):
    def before(*ops):
        items = [
            (100 + at, name, 5, call, device, start, end)
            for at, (name, call, device, start, end) in enumerate(ops)
        ]
        (found,) = longest(ask, [(1, 0, home(0, 12), 3, 12, 12, 12, 0, None, 1, 2)], ops=items)
        return found["before"]

    assert before() is None
    assert before((2, 7, 0, 1, 3)) == "k2"
    assert before((5, 7, 0, 1, 3)) == "(unnamed kernel)"
    for other in ((2, 7, 0, 3, 3), (2, 7, 1, 1, 3), (2, 7, 0, 1, 4), (-1, 7, 0, 1, 3)):
        assert before(other) is None
    # of several the lowest correlation id, none last, then the earliest start, then the name
    assert before((2, 8, 0, 1, 3), (3, 7, 0, 2, 3)) == "k3"
    assert before((2, None, 0, 1, 3), (3, 7, 0, 2, 3)) == "k3"
    assert before((2, 7, 0, 2, 3), (3, 7, 0, 1, 3)) == "k3"
    assert before((3, 7, 0, 1, 3), (2, 7, 0, 1, 3)) == "k2"


def test_top_gaps_tell_what_the_host_did(ask):
    cut = [
        (1, 0, home(0, 30), 2, 30, 30, 30, 0, None, 1, 2),
        (2, 1, home(1, 20), 2, 9, 9, 9, 0, None, 1, 2),
    ]
    calls = [(5, 1, 8), (6, 1, 9), (5, 2, 9)]
    # the call of every gap begins at 3
    states = [(8, 1, 1), (8, 3, 2), (8, 4, 3), (9, 0, 3)]

    def host(*pieces):
        found = longest(ask, cut, pieces, calls=calls, states=states)
        keys = ("device", "iteration", "activity", "function", "path")
        return [tuple(row[key] for key in keys) for row in found]

    # 2-20 in window 0 and 15-30 in window 1
    assert host() == [
        *[(0, 0, None, None, "a/b"), (0, 1, None, None, "a/b"), (1, 2, None, None, "c")],
    ]
    pieces = [
        *[(0, 2, 2, 10, "sync", "wait", 1), (0, 2, 10, 15, "code", None, None)],
        *[(0, 2, 15, 20, "code", None, None), (0, 2, 20, 29, "sync", "wait", 1)],
        *[(1, 9, 5, 9, "x", "y", 1), (0, 3, 15, 20, "x", "y", 1)],
    ]
    assert host(*pieces) == [
        *[(0, 0, "code", None, None), (0, 1, "sync", "wait", "a"), (1, 2, None, None, "c")],
    ]
    # of the same time by activity, then function, then path
    even = [
        (0, 2, at, at + 1, *each)
        for at, each in enumerate([("b", "a", 1), ("a", "c", 1), ("a", "b", 3), ("a", "b", 2)], 2)
    ]
    assert host(*even)[0] == (0, 0, "a", "b", "a/b")


# ------------------------------------------------------------------------------------ iterations
def iterations(ask, windows, ops=((0, 0, 5),), profiler=(), captures=(), **variables):
    tables = {
        "nsys.anchor_window": (
            columns("device start_ns end_ns source_id is_unclosed:BOOLEAN is_workless:BOOLEAN"),
            windows,
        ),
        "nsys.stream_item": (columns("device kind start_ns"), list(ops)),
        "nsys.profiler_span": (
            columns("device opens_ns ready_ns stop_ns"),
            list(profiler) or [(device, LEAST, LEAST, None) for device in (0, 1)],
        ),
        "nsys.capture_span": (columns("device start_ns end_ns"), list(captures)),
    }
    found = ask("steps/iteration", tables, **variables)
    assert {row[5] for row in found} <= {
        ":".join(variables.get(name, "") for name in ("anchor_kind", "anchor_pattern"))
    }
    return sorted(row[:5] for row in found)


def window(start, end, device=0, source=0, unclosed=False, workless=False):
    return (device, start, end, source, str(unclosed), str(workless))


def told(ask, windows, **given):
    return [row[4] for row in iterations(ask, windows, **given)]


def test_iteration_numbers_all_windows(ask):
    rows = [
        *[window(10, 30, source=4), window(10, 20, source=5), window(5, 50, source=6)],
        *[window(10, None, source=1, unclosed=True), window(10, 20, 1), window(10, 20, source=2)],
    ]
    found = iterations(ask, rows, anchor_kind="nvtx", anchor_pattern="s")
    assert [row[:4] for row in found] == [
        *[(0, 0, 5, 50), (0, 1, 10, 20), (0, 2, 10, 20), (0, 3, 10, 30), (0, 4, 10, None)],
        (1, 0, 10, 20),
    ]
    assert [row[4] for row in found] == [
        "steady",
        *["no_device_work"] * 3,
        "unclosed",
        "no_device_work",
    ]


def test_iteration_needs_an_operation_that_starts_in_it(ask):
    mega = 1 << 20
    rows = [window(10, 20)]
    assert told(ask, rows, ops=[(0, 0, 10)]) == ["steady"]
    assert told(ask, rows, ops=[(0, 3, 19)]) == ["steady"]
    for at in (9, 20):
        assert told(ask, rows, ops=[(0, 0, at)]) == ["no_device_work"]
    assert told(ask, rows, ops=[(0, 0, 9), (0, 0, 15), (0, 0, 99)]) == ["steady"]
    assert told(ask, rows, ops=[(1, 0, 15)]) == ["no_device_work"]
    # over several buckets of a millisecond
    rows = [window(mega - 5, 3 * mega)]
    for at, status in (
        *[(3 * mega - 1, "steady"), (mega - 5, "steady"), (2 * mega + 9, "steady")],
        *[(3 * mega, "no_device_work"), (mega - 6, "no_device_work")],
    ):
        assert told(ask, rows, ops=[(0, 0, at)]) == [status]
    assert told(ask, [window(5 * mega, 9 * mega)], ops=[(0, 0, 7 * mega)]) == ["steady"]
    near = [(0, 0, 5 * mega + 3), (0, 0, 5 * mega + 9)]
    for start, status in ((3, "steady"), (4, "no_device_work")):
        rows_near = [window(5 * mega + start, 5 * mega + 9)]
        assert told(ask, rows_near, ops=near) == [status]
    ops = [(0, 0, 3 * mega + 4), (0, 0, 2 * mega + 9), (0, 0, 5)]
    assert told(ask, rows, ops=ops) == ["steady"]
    assert told(ask, rows, ops=[(0, 3, 2 * mega)]) == ["steady"]
    assert told(ask, rows, ops=[(0, 4, 2 * mega), (0, 0, 5 * mega)]) == ["no_device_work"]
    assert told(ask, [window(10, 20, workless=True)], ops=[(0, 0, 15)]) == ["no_device_work"]


OPEN = [(0, 0, at) for at in range(0, 100, 5)]


def test_iteration_touches_the_profiler(ask):
    def status(*spans):
        (found,) = told(ask, [window(10, 20)], ops=OPEN, profiler=spans)
        return found

    assert status((0, LEAST, LEAST, None)) == "steady"
    # started by the start of the window, and stopped at its end at the earliest
    assert status((0, 3, 10, 20)) == "steady"
    assert status((0, 3, 11, 20)) == "profiler_boundary"
    assert status((0, 3, 10, 19)) == "profiler_boundary"
    # the last start that had begun by then
    assert status((0, 3, 4, 5), (0, 10, 10, None)) == "steady"
    assert status((0, 3, 4, 50), (0, 10, 12, None)) == "profiler_boundary"
    assert status((0, 3, 4, 50), (0, 11, 12, 13)) == "steady"
    assert status((0, 3, 4, 50), (1, 9, 12, 13)) == "steady"


def test_iteration_with_an_open_capture(ask):
    for span, status in (
        *[((0, 19, 30), "graph_capture"), ((0, 20, 30), "steady"), ((0, 5, 11), "graph_capture")],
        *[((0, 5, 10), "steady"), ((1, 5, 30), "steady"), ((0, 5, 30), "graph_capture")],
    ):
        assert told(ask, [window(10, 20)], ops=OPEN, captures=[span] * 2) == [status]


def test_iteration_that_the_caller_leaves_out(ask):
    rows = [window(10 * at, 10 * at + 10) for at in range(5)] + [window(10, 20, 1)]
    ops = [*OPEN, (1, 0, 10)]

    def left(**variables):
        return [row[1] for row in iterations(ask, rows, ops, **variables) if row[4] == "steady"]

    assert left() == [0, 1, 2, 3, 4, 0]
    assert left(skip_first=1) == [1, 2, 3, 4]
    assert left(skip_last=1) == [0, 1, 2, 3]
    assert left(iteration_from=1, iteration_to=4) == [1, 2, 3]
    assert left(iteration_from=3) == [3, 4]
    assert left(iteration_to=1) == [0, 0]
    found = iterations(ask, rows, ops, skip_first=2, skip_last=2, iteration_to=1)
    assert [row[4] for row in found] == [*["warmup"] * 2, "outside", *["cooldown"] * 2, "warmup"]


def test_iteration_drops_for_the_first_reason_that_applies(ask):
    later = {"captures": [(0, 0, 99)], "skip_first": 1, "skip_last": 1, "iteration_to": 0}
    boundary = {"profiler": [(0, 0, 50, None)]}
    unclosed = [window(10, 20, unclosed=True, workless=True)]
    assert told(ask, unclosed, ops=[], **boundary, **later) == ["unclosed"]
    assert told(ask, [window(10, 20)], ops=[], **boundary, **later) == ["no_device_work"]
    for missing, status in (
        *[((), "profiler_boundary"), (("profiler",), "graph_capture")],
        *[
            (("profiler", "captures"), "warmup"),
            (("profiler", "captures", "skip_first"), "cooldown"),
        ],
        *[(("profiler", "captures", "skip_first", "skip_last"), "outside")],
    ):
        given = {name: each for name, each in {**boundary, **later}.items() if name not in missing}
        assert told(ask, [window(10, 20)], ops=OPEN, **given) == [status]
