"""Steps from host issue order to the cause of a gap, over small tables, against a plain walk.

The walk goes through the items of a process one after the other and keeps a state for each stream:
an operation sets it, a record looks at it, a wait betters it by what its record saw.
"""

from random import Random

import pytest

NONE = 4294967295
RECORD, WAIT = 4 << 40, 5 << 40
OPERATION = (
    "row_id BIGINT, start_ns BIGINT, end_ns BIGINT, device_ordinal BIGINT, process BIGINT, "
    "context_id BIGINT, stream_id BIGINT, correlation_id BIGINT"
)
EVENT = (
    "row_id BIGINT, process BIGINT, context_id BIGINT, stream_id BIGINT, correlation_id BIGINT, "
    "event_id BIGINT, sync_id BIGINT"
)
ITEM = (
    "item_id BIGINT, kind UTINYINT, start_ns BIGINT, end_ns BIGINT, device BIGINT, "
    "process BIGINT, context_id BIGINT, stream_id BIGINT, lane BIGINT, correlation_id BIGINT, "
    "name_id BIGINT, is_node BOOLEAN, event_key BIGINT, prev_id BIGINT, prev_start_ns BIGINT, "
    "prev_end_ns BIGINT, prev_name_id BIGINT, prev_correlation_id BIGINT"
)
NAMES = [each.split()[0] for each in ITEM.split(", ")]


def plain(rows):
    """Rows as `ask` can write them down."""
    return [tuple(str(each) if isinstance(each, bool) else each for each in row) for row in rows]


def items(ask, kernels=(), copies=(), sets=(), graphs=(), records=(), waits=(), **given):
    """nsys.stream_item by id. Kernels, copies and sets have their node last, kernels a name too."""
    tables = {
        "nsys.kernel": (f"{OPERATION}, name_id BIGINT, graph_node_id BIGINT", list(kernels)),
        "nsys.memcpy": (f"{OPERATION}, graph_node_id BIGINT", list(copies)),
        "nsys.memset": (f"{OPERATION}, graph_node_id BIGINT", list(sets)),
        "nsys.graph_exec": (OPERATION, list(graphs)),
        "nsys.cuda_event": (EVENT, list(records)),
        "nsys.sync": (EVENT, list(waits)),
        "nsys.device_map": (
            "process_pid BIGINT, device_ordinal BIGINT, gpu_id BIGINT",
            list(given.get("devices", ())),
        ),
        "nsys.event_pairing": ("is_inferred BOOLEAN", [(str(given.get("inferred", False)),)]),
    }
    found = [dict(zip(NAMES, row, strict=True)) for row in ask("steps/stream_item", tables)]
    assert len({row["item_id"] for row in found}) == len(found)
    return {row["item_id"]: row for row in found}


def test_stream_item_lists_every_operation(ask):
    place = (0, 5, 1, 7)
    kernels = [
        *[(1, 10, 20, *place, 3, 40, None), (2, 10, 9, *place, 4, 40, None)],
        *[(3, 10, 10, *place, None, None, 9), (4, 30, None, *place, 5, 40, 0)],
    ]
    copies = [(1, 5, 6, *place, 8, 77), (2, 6, 5, *place, 8, 77), (3, 6, 6, *place, 8, 0)]
    sets = [(1, 7, 8, *place, 9, 0), (2, 8, 7, *place, 9, 0), (3, 8, 8, *place, 9, 12)]
    graphs = [(1, 50, 60, *place, 30), (2, 60, 50, *place, 31), (3, 60, 60, *place, 32)]
    found = items(ask, kernels, copies, sets, graphs)
    shown = {
        key: (row["kind"], row["start_ns"], row["end_ns"], row["correlation_id"], row["name_id"])
        for key, row in found.items()
    }
    assert shown == {
        **{1: (0, 10, 20, 3, 40), 3: (0, 10, 10, None, -4)},
        **{(1 << 40) + 1: (1, 5, 6, 8, -1), (2 << 40) + 1: (2, 7, 8, 9, -2)},
        **{(2 << 40) + 3: (2, 8, 8, 9, -2), (3 << 40) + 1: (3, 50, 60, 30, -3)},
        **{(1 << 40) + 3: (1, 6, 6, 8, -1), (3 << 40) + 3: (3, 60, 60, 32, -3)},
    }
    nodes = {key for key, row in found.items() if row["is_node"]}
    assert nodes == {3, (1 << 40) + 1, (2 << 40) + 3}
    assert {row["is_node"] for row in found.values()} == {True, False}
    assert {row["event_key"] for row in found.values()} == {None}


def test_stream_item_leaves_out_graphs_whose_nodes_were_traced(ask):
    place = (0, 5, 1, 7)
    graphs = [(at, 0, 1, *place, at) for at in (11, 12, 13, 14, 15, 16)]
    graphs += [(17, 0, 1, 0, None, 1, 7, 17), (18, 0, 1, 0, None, 1, 7, 18)]
    kernels = [
        *[
            (1, 0, 1, *place, 11, 4, 9),
            (2, 1, 0, *place, 12, 4, 9),
            (3, 0, 1, 0, 6, 1, 7, 13, 4, 9),
        ],
        (4, 0, 1, 0, None, 1, 7, 17, 4, 9),
    ]
    copies = [(1, 5, 5, *place, 14, 9), (2, 5, 4, *place, 16, 9)]
    found = items(ask, kernels, copies, [(1, 5, 5, *place, 15, 9)], graphs)
    left = [key - (3 << 40) for key, row in found.items() if row["kind"] == 3]
    assert sorted(left) == [12, 13, 16, 18]


def test_stream_item_tells_the_physical_device(ask):
    # two processes that both say 0; the mapping knows 24 bits of the process
    devices = [(5, 0, 3), (6, 0, 2), (6, 0, 4), (6, 1, None), (6, 0, None)]
    places = [((1 << 24) + 5, 0), (6, 0), (6, 1), (7, 0), (None, 0), (5, None)]
    kernels = [
        (at, 0, 1, ordinal, process, 1, 7, at, 4, 0)
        for at, (process, ordinal) in enumerate(places, 1)
    ]
    found = items(ask, kernels, devices=devices)
    assert [found[at]["device"] for at in range(1, 7)] == [3, 4, 1, 0, 0, None]


@pytest.mark.parametrize("inferred", [False, True])
def test_stream_item_knows_events(ask, inferred):
    place = (5, 1, 7)
    records = [
        *[(1, *place, 3, 70, 80), (2, *place, None, 70, 80), (3, *place, 4, 70, 0)],
        *[(4, *place, 5, 70, NONE), (5, *place, 6, 70, None), (6, 5, 1, NONE, 7, 70, 81)],
    ]
    waits = [
        *[(1, *place, 13, 70, 80), (2, *place, None, 70, 80), (3, 5, 1, NONE, 14, 70, 80)],
        *[(4, *place, 15, NONE, 80), (5, *place, 16, 71, 0)],
        # what is not told is not 4294967295
        *[(6, 5, 1, None, 17, 72, 82), (7, *place, 18, None, 83)],
    ]
    found = items(ask, records=records, waits=waits, inferred=inferred)
    keys = {key: row["event_key"] for key, row in found.items()}
    if inferred:
        assert keys == {
            **{RECORD + at: 70 for at in (1, 3, 4, 5, 6)},
            **{WAIT + 1: 70, WAIT + 5: 71, WAIT + 6: 72, WAIT + 7: None},
        }
    else:
        assert keys == {
            **{RECORD + 1: 80, RECORD + 3: None, RECORD + 4: None, RECORD + 5: None},
            **{RECORD + 6: 81, WAIT + 1: 80, WAIT + 5: None, WAIT + 6: 82, WAIT + 7: 83},
        }
    assert {row["kind"] for row in found.values()} == {4, 5}
    assert {row["device"] for row in found.values()} == {None}


def test_stream_item_follows_the_one_before_it_on_its_stream(ask):
    def kernel(row_id, start, end, correlation, process=5, context=1, stream=7):
        return (row_id, start, end, 0, process, context, stream, correlation, 100 + row_id, 0)

    kernels = [
        *[kernel(1, 90, 95, 1), kernel(2, 10, 20, 2), kernel(3, 30, 40, 3)],
        # one call: by their ends, of equal ends the later start first, then the greater number
        *[kernel(4, 50, 62, 5), kernel(5, 52, 60, 5), kernel(6, 51, 62, 5), kernel(7, 51, 62, 5)],
        kernel(8, 70, 71, 8),
        # other streams, and what has no place in the order
        *[
            kernel(9, 0, 1, 4, process=6),
            kernel(10, 0, 1, 4, context=2),
            kernel(11, 0, 1, 4, stream=8),
        ],
        *[kernel(12, 0, 1, None), kernel(13, 2, 3, None), kernel(14, 5, 6, 4, stream=None)],
        *[kernel(15, 5, 6, 4, context=None), kernel(16, 5, 6, 4, process=None)],
    ]
    copies = [(1, 63, 64, 0, 5, 1, 7, 6, 0)]
    records = [(1, 5, 1, 7, 6, 70, 80), (2, 5, 1, 7, 7, 70, 81)]
    waits = [(1, 5, 1, 7, 6, 70, 80)]
    found = items(ask, kernels, copies, records=records, waits=waits)
    order = [1, 2, 3, 5, 7, 6, 4, (1 << 40) + 1, RECORD + 1, WAIT + 1, RECORD + 2, 8]
    expected = dict(zip(order, [None, *order], strict=False))
    assert {key: row["prev_id"] for key, row in found.items()} == {
        **expected,
        **dict.fromkeys([9, 10, 11, 12, 13, 14, 15, 16]),
    }
    for row in found.values():
        before = found.get(row["prev_id"], {})
        for name in ("start_ns", "end_ns", "name_id", "correlation_id"):
            assert row[f"prev_{name}"] == before.get(name)
    lanes = {(row["context_id"], row["stream_id"]): row["lane"] for row in found.values()}
    assert len(set(lanes.values()) - {None}) == len(lanes) == 5


# --------------------------------------------------------------------------------- the producer
def drawn(seed):
    """A list of rows for `items`: two processes of three streams, with events between them."""
    draw = Random(seed)
    kernels, copies, records, waits = [], [], [], []
    correlation = 0
    for number in range(1, 90):
        correlation += draw.choice((1, 1, 2))
        process = draw.choice((5, 6))
        place = (process, draw.choice((1, 2)), draw.choice((7, 8)))
        kind = draw.random()
        start = draw.randint(0, 60)
        times = (start, start + draw.choice((0, 3, 5, 9, 30)))
        event = draw.randint(1, 4)
        if kind < 0.4:
            kernels.append((number, *times, 0, *place, correlation, number, 0))
            if draw.random() < 0.3:  # another of the same call
                late = (start + 2, start + draw.choice((2, 9, 12)))
                kernels.append((number + 500, *late, 0, *place, correlation, number, 0))
        elif kind < 0.45:
            copies.append((number, *times, 0, *place, correlation, 0))
        elif kind < 0.72:
            records.append((number, *place, correlation, event, draw.choice((event, event, 0))))
        else:
            waits.append((number, *place, correlation, event, draw.choice((event, event, 9, None))))
    return {"kernels": kernels, "copies": copies, "records": records, "waits": waits}


def walked(found):
    """By operation: the one it had to wait for, and whether a wait on the way was lost or found."""

    def better(one, other):
        if one is None or other is None:
            return one or other
        ranks = [
            (-o["end_ns"], o["correlation_id"], o["start_ns"], o["item_id"]) for o in (one, other)
        ]
        return one if ranks[0] <= ranks[1] else other

    state, seen, answer = {}, {}, {}
    ordered = sorted(
        (row for row in found.values() if row["correlation_id"] is not None),
        key=lambda row: (row["correlation_id"], max(row["kind"], 3), row["item_id"]),
    )
    for row in ordered:
        stream = (row["process"], row["lane"])
        now = state.get(stream, (None, None, False, False))
        if row["kind"] < 4:
            # the operations of one call are one item
            same = now[1] == row["correlation_id"]
            before = now[4] if same else (now[0], *now[2:4])
            answer[row["item_id"]] = (before[0]["item_id"] if before[0] else None, *before[1:])
            last = (
                row
                if not same
                else max((now[0], row), key=lambda o: (o["end_ns"], -o["start_ns"], -o["item_id"]))
            )
            state[stream] = (last, row["correlation_id"], False, False, before)
        elif row["kind"] == 4:
            if row["event_key"] is not None:
                seen[row["process"], row["event_key"]] = (now[0], now[2])
        else:
            known = seen.get((row["process"], row["event_key"]))
            best = better(now[0], known[0] if known else None)
            lost = now[2] or known is None or known[1]
            state[stream] = (best, None, lost, now[3] or known is not None)
    return answer


def depended(ask, found, graph=()):
    tables = {
        "nsys.stream_item": (ITEM, plain(tuple(row.values()) for row in found.values())),
        "nsys.graph_op": (
            "op_id BIGINT, process BIGINT, correlation_id BIGINT, start_ns BIGINT, "
            "end_ns BIGINT, name_id BIGINT, is_later BOOLEAN",
            list(graph),
        ),
    }
    made = [
        (
            "stream_event",
            "item_id BIGINT, is_wait BOOLEAN, process BIGINT, event_key BIGINT, "
            "correlation_id BIGINT, run BIGINT, position BIGINT, is_first BOOLEAN, "
            "prev_id BIGINT, prev_start_ns BIGINT, prev_end_ns BIGINT, prev_name_id BIGINT, "
            "prev_correlation_id BIGINT",
        ),
        (
            "event_run",
            "run BIGINT, last_id BIGINT, rank BIGINT, op_id BIGINT, op_start_ns BIGINT, "
            "op_end_ns BIGINT, op_name_id BIGINT",
        ),
        (
            "event_wait",
            "item_id BIGINT, run BIGINT, position BIGINT, is_found BOOLEAN, rank BIGINT, "
            "before_id BIGINT",
        ),
        ("event_relay", "item_id BIGINT, rank BIGINT, is_lost BOOLEAN"),
        (
            "stream_state",
            "item_id BIGINT, producer_id BIGINT, producer_start_ns BIGINT, "
            "producer_end_ns BIGINT, producer_name_id BIGINT, is_lost BOOLEAN, "
            "is_waited BOOLEAN",
        ),
    ]
    for name, columns in made:
        tables[f"nsys.{name}"] = (columns, plain(ask(f"steps/{name}", tables)))
    rows = ask("steps/dependency", tables)
    assert len({row[0] for row in rows}) == len(rows)
    return {row[0]: row[1:] for row in rows}


@pytest.mark.parametrize("inferred", [False, True])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_dependency_is_a_walk_in_issue_order(ask, seed, inferred):
    found = items(ask, **drawn(seed), inferred=inferred)
    known = depended(ask, found)
    for number, (producer, lost, waited) in walked(found).items():
        if number in known:
            row = known[number]
            of = found.get(producer, {})
            told = (producer, of.get("start_ns"), of.get("end_ns"), of.get("name_id"))
            assert row == (*told, False, lost, waited, *told), (number, row)
        else:
            # what follows an operation of another call needs no row
            assert (found[number]["prev_id"], False, False) == (producer, lost, waited)
    assert sum(lost for _, lost, _ in walked(found).values()) > 0


def test_dependency_through_relays(ask):
    # stream 7 -> 8 -> 9, each only handing on: the kernel of 9 waits for that of 7
    def place(stream):
        return (5, 1, stream)

    kernels = [
        *[(1, 0, 50, 0, *place(7), 1, 1, 0), (2, 60, 70, 0, *place(9), 9, 2, 0)],
        (3, 0, 10, 0, *place(9), 2, 3, 0),
    ]
    records = [(1, *place(7), 3, 1, 1), (2, *place(8), 5, 2, 2)]
    waits = [(1, *place(8), 4, 1, 1), (2, *place(9), 6, 2, 2)]
    assert depended(ask, items(ask, kernels, records=records, waits=waits)) == {
        2: (1, 0, 50, 1, False, False, True, 1, 0, 50, 1),
    }
    # the relay lost its record
    lost = depended(ask, items(ask, kernels, records=records[1:], waits=waits))
    assert lost == {2: (3, 0, 10, 3, False, True, True, 3, 0, 10, 3)}
    # a wait that comes first has nothing to wait for
    early = [(1, *place(8), 4, 1, 1), (2, *place(9), 4, 2, 2)]
    assert depended(ask, items(ask, kernels, records=records, waits=early))[2][:6] == (
        *(3, 0, 10, 3, False, True),
    )


def test_dependency_inside_a_graph(ask):
    # launch 8 of process 5 behind a kernel: later nodes follow what ended last before them
    def kernel(number, start, end, correlation, stream=7):
        return (number, start, end, 0, 5, 1, stream, correlation, number, 1)

    kernels = [
        *[kernel(1, 0, 10, 7), kernel(2, 20, 30, 8), kernel(3, 21, 35, 8, 8)],
        *[
            kernel(4, 35, 40, 8),
            kernel(5, 34, 50, 8, 8),
            kernel(6, 60, 60, 8),
            kernel(7, 33, 35, 8),
        ],
    ]
    nodes = [
        *[(2, False), (3, False), (4, True), (5, True), (6, True), (7, True)],
    ]
    by_number = {row[0]: row for row in kernels}
    graph = [(at, 5, 8, *by_number[at][1:3], 100 + at, str(is_later)) for at, is_later in nodes]
    graph += [(90, 6, 8, 0, 34, 190, "False"), (91, 5, 9, 0, 34, 191, "False")]
    found = depended(ask, items(ask, kernels), graph)
    nothing = (None, None, None, None, True, False, False)
    assert found == {
        # of equal ends the earliest start
        **{4: (*nothing, 3, 21, 35, 103), 5: (*nothing, 2, 20, 30, 102)},
        **{7: (*nothing, 2, 20, 30, 102), 6: (*nothing, None, None, None, None)},
    }


# -------------------------------------------------------------------------------------- the gap
def test_gap_cut(ask):
    names = [
        "device",
        "segment",
        "start_ns",
        "end_ns",
        "op_id",
        "call_start_ns",
        "call_end_ns",
        "producer_id",
        "producer_start_ns",
        "producer_end_ns",
    ]
    columns = ", ".join(f"{name} BIGINT" for name in names)

    def cut(call, producer):
        """A gap from 100 to 200: issue and end of blocking, issue time, shadowed."""
        row = (0, 4, 100, 200, 9, *(call or (None, None)), *(producer or (None,) * 3))
        tables = {
            "nsys.gap_call": (
                f"{columns}, producer_role VARCHAR, evidence VARCHAR",
                [(*row, "comm", "resolved")],
            ),
        }
        (found,) = ask("steps/gap_cut", tables)
        assert found[:3] + found[5:9] + found[10:14] + found[15:] == (
            *(0, 4, 100, 200, 9, *row[5:7], *row[7:], "comm", "resolved"),
        )
        return (found[3], found[4], found[9], found[14])

    # no call, or one that begins after its kernel, tells no issue time
    assert cut(None, None) == (100, 100, None, 0)
    assert cut((201, 250), None) == (100, 100, None, 0)
    assert cut((200, 250), None) == (200, 200, 200, 0)
    assert cut((90, 250), None) == (200, 200, 200, 0)
    assert cut((90, 99), None) == (100, 100, 99, 0)
    assert cut((90, 130), None) == (130, 130, 130, 0)
    # blocking lasts until the producer ends, and no longer than the gap
    assert cut((90, 130), (1, 50, 150)) == (130, 150, 130, 30)
    assert cut((90, 130), (1, 140, 250)) == (130, 200, 130, 0)
    assert cut((90, 130), (1, 50, 120)) == (130, 130, 130, 20)
    assert cut((90, 130), (1, 110, 120)) == (130, 130, 130, 10)
    assert cut((90, 130), (1, 50, 90)) == (130, 130, 130, 0)
    assert cut(None, (1, 50, 150)) == (100, 150, None, 0)


def called(ask, sweep, *, start=50, calls=(), dependencies=(), inferred=False):
    """What is told of gaps: sweep is (item, start, compute until, correlation, previous)."""
    tables = {
        "nsys.sweep": (
            "device BIGINT, segment BIGINT, start_ns BIGINT, role VARCHAR, item_id BIGINT, "
            "process BIGINT, correlation_id BIGINT, prev_id BIGINT, prev_start_ns BIGINT, "
            "prev_end_ns BIGINT, prev_name_id BIGINT, compute_until_ns BIGINT",
            sweep,
        ),
        "nsys.report_start": ("start_ns BIGINT", [(start,)]),
        "nsys.outermost_call": (
            "process BIGINT, correlation_id BIGINT, start_ns BIGINT, end_ns BIGINT",
            list(calls),
        ),
        "nsys.dependency": (
            "op_id BIGINT, producer_id BIGINT, producer_start_ns BIGINT, producer_end_ns BIGINT, "
            "producer_name_id BIGINT, is_later BOOLEAN, is_lost BOOLEAN, is_waited BOOLEAN",
            plain(dependencies),
        ),
        "nsys.event_pairing": ("is_inferred BOOLEAN", [(str(inferred),)]),
        "nsys.op_name": ("name_id BIGINT, role_code VARCHAR", [(1, "comm"), (2, "compute")]),
    }
    return ask("steps/gap_call", tables)


def moment(item, start, until, *, role="compute", process=5, correlation=7, previous=True):
    before = (30 + item, 1, 2, 1) if previous else (None,) * 4
    return (0, 3, start, role, item, process, correlation, *before, until)


def test_gap_call_finds_gaps(ask):
    rows = [
        *[moment(1, 90, None), moment(2, 100, 90), moment(3, 120, 120), moment(4, 130, 140)],
        *[moment(5, 200, 199), moment(6, 300, 200, role="comm")],
    ]
    calls = [(5, 7, 80, 85), (6, 7, 1, 2), (5, 8, 1, 2)]
    found = called(ask, rows, calls=calls)
    producer = [(30 + at, 1, 2, "comm", "resolved") for at in (1, 2, 5)]
    assert found == [
        (0, 3, 50, 90, 1, 80, 85, *producer[0]),
        (0, 3, 90, 100, 2, 80, 85, *producer[1]),
        (0, 3, 199, 200, 5, 80, 85, *producer[2]),
    ]
    assert called(ask, rows[:1], start=90) == []
    assert len(called(ask, rows[:1], start=89)) == 1


def test_gap_call_tells_the_evidence(ask):
    def evidence(calls=((5, 7, 80, 85),), *, previous=True, inferred=False, dependency=None):
        rows = [moment(1, 90, None, previous=previous)]
        known = [(1, *dependency)] if dependency else []
        ((*found,),) = called(ask, rows, calls=calls, dependencies=known, inferred=inferred)
        return (*found[7:11], found[11])

    producer = (31, 1, 2, "comm")
    other, nothing = (40, 3, 4, 2), (None,) * 4
    assert evidence() == (*producer, "resolved")
    assert evidence(previous=False) == (*nothing, "none")
    assert evidence(()) == (*producer, "no_launch")
    assert evidence([(5, 7, 91, 99)]) == (*producer, "no_launch")
    assert evidence([(5, 7, 90, 99)]) == (*producer, "resolved")
    told = (40, 3, 4, "compute")
    for later, lost, waited, inferred, text in (
        *[(True, True, True, True, "graph"), (False, True, True, True, "unresolved")],
        *[(False, False, True, True, "inferred"), (False, False, True, False, "resolved")],
        (False, False, False, True, "resolved"),
    ):
        row = (*other, later, lost, waited)
        assert evidence(inferred=inferred, dependency=row) == (*told, text)
        assert evidence((), inferred=inferred, dependency=row) == (*told, "no_launch")
    # the dependency knows better than the stream
    assert evidence(dependency=(*nothing, False, False, False)) == (*nothing, "none")


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_blocking_part_puts_the_blame_on_what_did_not_wait_itself(ask, seed):
    """At each nanosecond of blocking: back from the producer while that had not begun."""
    draw = Random(seed)
    ops, follows, known = {}, {}, []
    for number in range(1, 40):
        start = draw.randint(0, 80)
        ops[number] = (start, start + draw.randint(1, 30))
        follows[number] = draw.choice((None, *range(max(1, number - 6), number)))
    rows = []
    for number, (start, end) in ops.items():
        # one in three is told by a dependency, against the order of its stream
        before = follows[number]
        of_dependency = number % 3 == 0
        if of_dependency:
            known.append((number, before, *(ops[before] if before else (None, None)), before))
        stream = draw.choice(list(ops)) if of_dependency else before
        rows.append(
            (number, number, start, end, stream, *(ops[stream] if stream else (None,) * 2), stream)
        )
    cuts = []
    for number, (_, end) in ops.items():
        issued = draw.randint(0, 90)
        if issued < end:
            cuts.append((0, issued - 5, 1000 + number, issued, draw.randint(issued, end), number))
    roles = {number: "comm" if number % 2 else "memcpy" for number in ops}
    tables = {
        "nsys.gap_cut": (
            "device BIGINT, start_ns BIGINT, op_id BIGINT, issued_ns BIGINT, "
            "unblocked_ns BIGINT, producer_id BIGINT, producer_start_ns BIGINT, "
            "producer_role VARCHAR",
            [(*cut, ops[cut[-1]][0], roles[cut[-1]]) for cut in cuts],
        ),
        "nsys.stream_item": (
            "item_id BIGINT, name_id BIGINT, start_ns BIGINT, end_ns BIGINT, prev_id BIGINT, "
            "prev_start_ns BIGINT, prev_end_ns BIGINT, prev_name_id BIGINT",
            rows,
        ),
        "nsys.dependency": (
            "op_id BIGINT, follows_id BIGINT, follows_start_ns BIGINT, follows_end_ns BIGINT, "
            "follows_name_id BIGINT",
            known,
        ),
        "nsys.op_name": ("name_id BIGINT, role_code VARCHAR", [*roles.items()]),
    }
    blamed = {}
    for device, gap, gap_op, start, end, op, role in ask("steps/blocking_part", tables):
        assert device == 0 and start < end and role == roles[op]
        for at in range(start, end):
            assert (gap, gap_op, at) not in blamed
            blamed[gap, gap_op, at] = op
    expected = {}
    for _, gap, gap_op, issued, unblocked, producer in cuts:
        for at in range(issued, unblocked):
            op = producer
            while at < ops[op][0] and follows[op] and ops[follows[op]][1] > at:
                op = follows[op]
            expected[gap, gap_op, at] = op
    assert blamed == expected
