"""Steps about the host, and steps that pass on: small tables, mostly counted tick by tick."""

from collections import Counter, defaultdict
from itertools import count
from random import Random

import pytest

from test_small_windows import STRETCHES, WINDOWS, home

DRIVE = "process BIGINT, device BIGINT"


def ticks(start, end):
    return set(range(start, end))


def touched(device, start, end):
    """(stretch, its ticks inside [start, end)) of a device of test_small_windows."""
    for number, begin, until in STRETCHES[device]:
        if begin < end and until > start:
            yield number, ticks(max(begin, start), min(until, end))


# ----------------------------------------------------------------------------------- phase_host
def test_phase_host(ask):
    # paths 1 and 2 are of one phase, 3 is only inside a range of it, 5 of none
    phases = [(1, "data", True), (2, "data", True), (3, "data", False), (4, "x", True)]
    drives = [(10, 0), (11, 0), (11, 1), (None, 1)]
    random, ranges = Random(1), []
    for _ in range(120):
        start = random.randrange(-4, 64)
        end = start + random.choice([0, 1, 2, 5, 20])
        process = random.choice([10, 11, None, 12])
        ranges.append((random.randrange(1, 6), process, random.randrange(2), start, end))
    for kept in (*(ranges[at : at + 6] for at in range(0, 60, 6)), ranges):
        tables = {
            **WINDOWS,
            "nsys.range_instance": (
                "path_no BIGINT, process BIGINT, thread BIGINT, start_ns BIGINT, end_ns BIGINT",
                kept,
            ),
            "nsys.range_phase": ("path_no BIGINT, phase VARCHAR, is_named BOOLEAN",
                                 phases),
            "nsys.drive": (DRIVE, drives),
        }  # fmt: skip
        counts, covered = Counter(), defaultdict(set)
        for device in (0, 1):
            for phase in ("data", "x"):
                paths = [row[0] for row in phases if row[1] == phase and row[2]]
                own = [
                    row
                    for row in sorted(kept, key=lambda row: (row[3], -row[4]))
                    if row[0] in paths and (row[1], device) in drives
                ]
                for at, (*_, start, end) in enumerate(own):
                    place = (device, home(device, start), phase)
                    is_outer = all(other[4] < end for other in own[:at])
                    counts[place] += is_outer
                    covered[place] |= set()
                    for number, inside in touched(device, start, end):
                        covered[device, number, phase] |= inside
        found = ask("steps/phase_host", tables)
        assert {row[:3]: row[3:] for row in found} == {
            place: (counts[place], len(inside)) for place, inside in covered.items()
        }
        assert len(found) == len(covered)


# --------------------------------------------------------------------------------- starved_host
CALL = "start_ns BIGINT, end_ns BIGINT, thread BIGINT, name_id BIGINT"
NAMES = {
    **{1: "cudaDeviceSynchronize_v3020", 2: "cudaMalloc", 3: "cudaLaunchKernel", 4: "cuFoo"},
    **{5: "read", 6: "poll"},
}
ACTIVITY = {1: "synchronise", 2: "memory", 3: "launch", 4: "call"}


def nest(random, first, last, depth=2):
    """Stretches inside [first, last) that nest or lie beside each other."""
    at = first
    while depth and at < last:
        start = at + random.randrange(4)
        end = min(start + random.choice([1, 2, 3, 6, 9]), last)
        if start < end:
            yield start, end
            yield from nest(random, start, end, depth - 1)
        at = max(end, at + 1)


def test_starved_host(ask):
    pieces, calls, runtime, states, ops, expected = [], [], [], [], [], {}
    for part in range(24):
        random = Random(part)
        device, thread = part // 3, (part + 100 if part % 5 else None)
        for start, end in [*nest(random, 0, 40, 1)]:
            pieces.append((part, device, start % 4, thread, start - 2, start, end))
        own_calls = [(*each, random.choice([1, 2, 3, 4, 9])) for each in nest(random, 0, 40)]
        own_runtime = [(*each, random.choice([5, 6, 8])) for each in nest(random, 0, 40)]
        own_states = [(*each, random.choice([None, 1, 2])) for each in nest(random, 0, 40, 1)]
        calls += [(*row[:2], thread or 77, row[2]) for row in own_calls]
        runtime += [(*row[:2], thread or 77, row[2]) for row in own_runtime]
        states += [(thread or 77, *row) for row in own_states]
        expected[part] = (device, thread, own_calls, own_runtime, own_states)
    number = count()
    for device in range(8):
        random = Random(1000 + device)
        for start, end in nest(random, 0, 40):
            role = random.choice(["comm", "memcpy", "wait", "memset", "compute"])
            ops.append((next(number), device, start, end, role))
    random.shuffle(calls)
    tables = {
        "nsys.starved_piece": (
            "part BIGINT, device BIGINT, segment BIGINT, thread BIGINT, gap_start_ns BIGINT, "
            "start_ns BIGINT, end_ns BIGINT",
            pieces,
        ),
        "nsys.call": (CALL, calls),
        "nsys.osrt_call": (CALL, runtime),
        "nsys.range_state": (
            "thread BIGINT, start_ns BIGINT, end_ns BIGINT, path_no BIGINT",
            states,
        ),
        "nsys.string": ("string_id BIGINT, value VARCHAR", [*NAMES.items()]),
        "nsys.op": (
            "op_id BIGINT, device BIGINT, start_ns BIGINT, end_ns BIGINT, role VARCHAR",
            ops,
        ),
    }

    def outermost(rows, tick):
        over = [row for row in rows if row[0] <= tick < row[1]]
        return min(over, key=lambda row: (row[0], -row[1], row[2])) if over else None

    told = defaultdict(list)
    for part, device, segment, thread, gap, start, end, busy, *what in ask(
        "steps/starved_host", tables
    ):
        assert (device, thread) == expected[part][:2]
        running = {
            tick
            for _, of, begin, until, role in ops
            if of == device and role != "compute"
            for tick in ticks(begin, until)
        }
        assert busy == len(ticks(start, end) & running) and end > start
        told[part] += [(tick, segment, gap, *what) for tick in ticks(start, end)]
    wanted = defaultdict(list)
    for part, _, segment, thread, gap, start, end in pieces:
        _, _, own_calls, own_runtime, own_states = expected[part]
        if thread is None:
            own_calls = own_runtime = own_states = []
        for tick in ticks(start, end):
            call, system = outermost(own_calls, tick), outermost(own_runtime, tick)
            path = outermost([row for row in own_states if row[2]], tick)
            if thread is None:
                what = ("unknown", None)
            elif call:
                name = {1: "cudaDeviceSynchronize"}.get(call[2]) or NAMES.get(call[2], "(unnamed)")
                what = (ACTIVITY.get(call[2], "call"), name)
            elif system:
                what = ("os_runtime", NAMES.get(system[2], "(unnamed)"))
            else:
                what = ("host_code", None)
            wanted[part].append((tick, segment, gap, *what, path[2] if path else None))
    assert {part: sorted(rows, key=str) for part, rows in told.items()} == {
        part: sorted(rows, key=str) for part, rows in wanted.items()
    }
    # nothing but the device is busy there
    idle = {(device, segment): 0 for _, device, segment, *_ in pieces}
    for part, device, segment, *_, start, end in pieces:
        free = ticks(start, end) - {
            tick
            for _, of, begin, until, role in ops
            if of == device and role != "compute"
            for tick in ticks(begin, until)
        }
        idle[device, segment] += len(free) * (part % 3 == 0)
    # pieces of a device do not overlap, unlike these: one part of each
    first = [row for row in pieces if row[0] % 3 == 0]
    tables["nsys.starved_piece"] = (tables["nsys.starved_piece"][0], first)
    found = ask("steps/starved_idle", tables)
    assert {row[:2]: row[2] for row in found} == {key: ns for key, ns in idle.items() if ns}
    assert len(found) > 10


# ------------------------------------------------------------------------------ call_site_thread
SITE = "rank BIGINT, thread BIGINT, ordinal BIGINT, call_site VARCHAR, stack VARCHAR"
LAUNCH = "process BIGINT, thread BIGINT, ordinal BIGINT, correlation_id BIGINT, start_ns BIGINT"
A, B = (7 << 24) + 11, (7 << 24) + 12  # two threads of the trace


def threads(ask, sites, launches, **variables):
    """Sites: {thread: ordinals} of rank 0; launches: {thread: times of launches}."""
    rows = sites
    if isinstance(sites, dict):
        rows = [(0, thread, at, "x", None) for thread, of in sites.items() for at in of]
    tables = {
        "nsys.call_site": (SITE, rows),
        "nsys.launch_call": (
            LAUNCH, [(7, thread, 0, 0, at) for thread, of in launches.items() for at in of]
        ),
    }  # fmt: skip
    found = ask("steps/call_site_thread", tables, **variables)
    return {row[:2]: row[2:] for row in sorted(found, key=str)}


def test_call_site_thread_knows_three_ways_to_name_a_thread(ask):
    launches = {A: [5, 9, 7], B: [4, 4]}
    two = {A: (3, 3, None), B: (2, 2, None)}
    assert threads(ask, {A: [0, 1, 2], B: [1, 0]}, launches) == {
        (thread, thread): of for thread, of in two.items()
    }
    assert threads(ask, {11: [0, 1, 2], 12: [1, 0]}, launches) == {
        (thread & 0xFFFFFF, thread): of for thread, of in two.items()
    }
    # numbers go by the first launch: B is 0
    assert threads(ask, {1: [0, 1, 2], 0: [1, 0]}, launches) == {**{(0, B): two[B], (1, A): two[A]}}
    # of equal first launches by the thread
    tied = {A: [5, 9, 7], B: [5, 6]}
    assert threads(ask, {0: [0, 1, 2], 1: [1, 0]}, tied) == {(0, A): two[A], (1, B): two[B]}
    # the ids may be those of some of the threads, numbers are of all
    assert threads(ask, {A: [0, 1, 2]}, launches) == {(A, A): (3, 3, None)}
    assert threads(ask, {11: [0, 1, 2]}, launches) == {(11, A): (3, 3, None)}
    who = "2 (thread 12), 3 (thread 11)"
    assert threads(ask, {0: [0, 1]}, launches) == {
        (0, None): (2, 0, f"thread 0 makes no launch in the trace, whose threads launch {who}")
    }


def test_call_site_thread_says_why_a_thread_does_not_fit(ask):
    launches = {A: [5, 9, 7], B: [4, 4]}

    def told(sites, launches=launches, **variables):
        return {key[0]: row[2] for key, row in threads(ask, sites, launches, **variables).items()}

    who = "2 (thread 12), 3 (thread 11)"
    assert told({A: [0, 1, 2], 99: [0]}) == {
        thread: f"thread {thread} makes no launch in the trace, whose threads launch {who}"
        for thread in (A, 99)
    }
    assert told({11: [0]}, {}) == {
        11: "thread 11 makes no launch in the trace, whose threads launch nothing"
    }
    assert told({A: [0, 1], B: [0, 1, 2]}) == {
        A: f"thread {A} makes 2 launches in the file and 3 in the trace",
        B: f"thread {B} makes 3 launches in the file and 2 in the trace",
    }
    for ordinals in ([0, 1, 1], [1, 2, 3], [0, 1, 3], [0, 2, 3], [-1, 0, 1]):
        assert told({A: ordinals}) == {
            A: f"the launch ordinals of thread {A} do not count from 0 to 2"
        }
    assert told({A: [2, 0, 1]}) == {A: None}
    # one id of the operating system in two processes
    other = (8 << 24) + 11
    assert told({11: [0, 1, 2]}, {A: [5, 9, 7], other: [1, 2, 3]}) == {
        11: "thread 11 is several threads here: name its globalTid"
    }
    assert told([(0, None, 0, "x", None)] * 2) == {None: "2 rows have no integer as thread"}
    # of another rank
    sites = [(rank, thread, 0, "x", None) for rank in (10, 2, 1, None) for thread in (A, A, B)]
    assert told(sites) == {None: "the file has no rank 0, only 1, 2, 10, ?"}
    assert told([(None, A, 0, "x", None)]) == {None: "the file has no rank 0, only ?"}
    assert told(sites[1:2], {A: [0]}, rank=10) == {A: None}
    assert told([], {}) == {}


def test_call_site_op(ask):
    tables = {
        "nsys.op": (
            "op_id BIGINT, kind VARCHAR, process BIGINT, correlation_id BIGINT",
            [(1, "kernel", 7, 5), (2, "kernel", 7, 6), (3, "kernel", 8, 5), (4, "memcpy", 7, 5),
             (5, "kernel", 7, 9), (6, "kernel", None, 5), (7, "kernel", 7, 7)],
        ),
        "nsys.launch_call": (LAUNCH, [(7, A, 0, 5, 1), (7, A, 1, 6, 2), (8, B, 0, 5, 3),
                                      (7, A, 2, 7, 4)]),
        "nsys.call_site_thread": ("file_thread BIGINT, thread BIGINT", [(11, A), (12, B)]),
        "nsys.call_site": (
            SITE, [(0, 11, 0, "a", "s"), (0, 11, 1, None, "t"), (0, 12, 0, "b", None),
                   (1, 11, 0, "other", "x"), (0, 11, 2, "c", "u")],
        ),
    }  # fmt: skip
    assert sorted(ask("steps/call_site_op", tables)) == [
        (1, "a", "s"),
        (3, "b", None),
        (7, "c", "u"),
    ]
    assert ask("steps/call_site_op", tables, rank=1) == [(1, "other", "x")]


# --------------------------------------------------------------------------------- metric_sample
METRICS = {
    3: "SM Issue [Throughput %]",
    4: "Tensor Active [Throughput %]",
    5: "DRAM Read Bandwidth [Throughput %]",
    6: "DRAM Write Bandwidth [Throughput %]",
    7: "NVLink RX Responses User Data [Throughput %]",
    8: "NVLink TX Responses User Data [Throughput %]",
    9: "SMs Active [Throughput %]",
    10: "SM Issue [count]",
    11: "PCIe RX [Throughput %]",
}


def samples(ask, metrics=(), documents=(), *, windows=WINDOWS, info=None):
    """Metrics: (gpu, time, metric, value[, type]); documents: (type, time, JSON)."""
    listed = [(1, *each) for each in METRICS.items()] if info is None else info
    tables = {
        **windows,
        "nsys.gpu_metric": (
            "gpu_id BIGINT, time_ns BIGINT, metric_id BIGINT, value BIGINT, type_id BIGINT",
            [(*each, 1)[:5] for each in metrics],
        ),
        "nsys.gpu_metric_info": (
            "type_id BIGINT, metric_id BIGINT, metric_name VARCHAR", listed
        ),
        "nsys.generic_event": ("type_id BIGINT, time_ns BIGINT, data VARCHAR", list(documents)),
    }  # fmt: skip
    return ask("steps/metric_sample", tables)


NOTHING = {name: (of[0], []) for name, of in WINDOWS.items()}


def test_metric_sample_reads_the_windows_of_a_device(ask):
    # windows 0 to 50 and 55 to 60 of device 0, 5 to 41 of device 1
    times = [-1, 0, 19, 49, 50, 54, 55, 59, 60]
    found = samples(
        ask, [(0, at, 3, at) for at in times] + [(1, at, 3, 9) for at in (4, 5, 40, 41)]
    )
    assert [row[:4] for row in found] == [
        *[(at + 1, 0, time, time) for at, time in enumerate([0, 19, 49, 55, 59])],
        *[(6, 1, 5, 9), (7, 1, 40, 9)],
    ]
    # without a window all count, also of a device that runs nothing
    found = samples(ask, [(2, 9, 3, 1), (0, 7, 3, 2)], windows=NOTHING)
    assert [row[:4] for row in found] == [(1, 0, 7, 2), (2, 2, 9, 1)]
    assert samples(ask, [(2, 9, 3, 1)]) == []


def test_metric_sample_gives_each_metric_its_column(ask):
    row = [(0, 5, metric, 10 * metric) for metric in METRICS]
    assert samples(ask, row) == [(1, 0, 5, 30, 40, 50, 60, 70, 80, 90)]
    for metric in range(3, 10):
        ((*_, values),) = [(1, row[3:]) for row in samples(ask, [(0, 5, metric, 7)])]
        assert values == tuple(7 if metric == 3 + at else None for at in range(7))
    # values of one time are averaged; a metric without a name that tells is no sample
    assert samples(ask, [(0, 5, 3, 7), (0, 5, 3, 8)])[0][3] == 7.5
    assert samples(ask, [(0, 5, 3, 7), (0, 5, 3, 7), (0, 5, 3, 10)])[0][3] == 8
    assert samples(ask, [(0, 5, 10, 7), (0, 5, 11, 7), (0, 5, 99, 7), (0, None, 3, 7)]) == []
    # ids are those of a type, and may have several names
    assert samples(ask, [(0, 5, 3, 7, 2)]) == []
    twice = [(1, 3, "SM Issue [Throughput %]"), (1, 3, "SMs Issue"), (2, 3, "SMs Active")]
    assert samples(ask, [(0, 5, 3, 7, 1), (0, 6, 3, 8, 2)], info=twice) == [
        (1, 0, 5, 7, *[None] * 6),
        (2, 0, 6, *[None] * 6, 8),
    ]


def test_metric_sample_reads_documents(ask):
    told = '{"SM Issue [Throughput %]": "12.5", "SMs Active": "7", "x": "1", "DRAM Read": "?"}'
    more = '{"Tensor Active": "3", "SM": "y"}'
    rows = [(256 + 1, 6, told), (512 + 1, 5, more), (1, 5, '{"DRAM Write": "4", "SM": null}')]
    junk = [(1, 7, "SM, no document"), (1, 7, '{"Tensor Active": "3"}'), (1, 7, None)]
    found = samples(ask, documents=[*rows, *junk])
    assert found == [
        (1, 1, 5, None, 3, None, 4, None, None, None),
        (2, 1, 6, 12.5, None, None, None, None, None, 7),
    ]
    # where there is a table of samples, documents are something else
    assert [row[1:4] for row in samples(ask, [(0, 9, 3, 1)], rows)] == [(0, 9, 1)]


# ------------------------------------------------------------------------------- steps that pass on
def test_event_pairing_is_by_the_handle_where_no_row_has_an_id(ask):
    def is_inferred(records, waits):
        tables = {
            f"nsys.{name}": ("sync_id BIGINT", [(each,) for each in rows])
            for name, rows in (("cuda_event", records), ("sync", waits))
        }
        ((found,),) = ask("steps/event_pairing", tables)
        return found

    nothing = [None, 0, 4294967295]
    assert is_inferred([], []) is True
    assert is_inferred(nothing, nothing) is True
    for one in (1, -1, 4294967294, 4294967296):
        assert is_inferred([*nothing, one], nothing) is False
        assert is_inferred(nothing, [one, *nothing]) is False


@pytest.mark.parametrize("file", ["call_site", "reference_step", "metric_given"])
def test_what_an_option_brings_is_empty_without_it(ask, file):
    assert ask(f"steps/{file}", {}) == []


def test_note_whole_graph(ask):
    rows = [(1, 3), (0, 2)]
    found = ask("notes/whole_graph", {"nsys.whole_graph": ("device BIGINT, count BIGINT", rows)})
    assert [each[:27] for (each,) in found] == [
        *["device 0: 2 CUDA graph exec", "device 1: 3 CUDA graph exec"],
    ]


def test_control_call(ask):
    names = {
        1: "cudaProfilerStart_v4000", 2: "cuProfilerStart", 3: "cuProfilerStop",
        4: "cudaStreamBeginCapture_v10000", 5: "cuStreamEndCapture_ptsz", 6: "cudaProfilerStarted",
        7: "xcudaProfilerStart", 8: "cudaMalloc", 9: "cudaProfilerStop",
        10: "cuProfilerInitialize", 11: "cuStreamBeginCaptureToGraph",
    }  # fmt: skip
    tables = {
        "nsys.string": ("string_id BIGINT, value VARCHAR", [*names.items()]),
        "nsys.cuda_call": (
            "process BIGINT, thread BIGINT, start_ns BIGINT, end_ns BIGINT, name_id BIGINT",
            [(7, 8, at, at + 20, at) for at in [*names, 99]],
        ),
    }
    found = ask("steps/control_call", tables)
    assert {row[3]: row[0] for row in found} == {
        **{1: "profiler_start", 2: "profiler_start", 3: "profiler_stop", 9: "profiler_stop"},
        **{4: "capture_begin", 5: "capture_end", 11: "capture_begin"},
    }
    assert {(row[1], row[2], row[4] - row[3]) for row in found} == {(7, 8, 20)}


CONTROL = "control VARCHAR, process BIGINT, thread BIGINT, start_ns BIGINT, end_ns BIGINT"
FOREVER = 2**63 - 1


def controlled(ask, step, *calls, drives=((1, 0),)):
    """Calls: (control, start, end[, process, thread])."""
    rows = [(name, *(rest or (1, 5)), start, end) for name, start, end, *rest in calls]
    tables = {"nsys.control_call": (CONTROL, rows), "nsys.drive": (DRIVE, list(drives))}
    return sorted(ask(f"steps/{step}", tables))


def test_profiler_span(ask):
    def spans(*calls, **more):
        return controlled(ask, "profiler_span", *calls, **more)

    assert spans() == [(0, -FOREVER, -FOREVER, None)]
    start, stop = "profiler_start", "profiler_stop"
    assert spans((start, 5, 9), (stop, 20, 21), (start, 30, 33), ("capture_begin", 1, 2)) == [
        *[(0, -FOREVER, FOREVER, 20), (0, 5, 9, 20), (0, 30, 33, None)],
    ]
    # only a stop bounds what was on from the begin; the first one does
    assert spans((stop, 8, 9), (stop, 20, 21)) == [(0, -FOREVER, -FOREVER, 8)]
    # a stop at the very start is of another span; of two calls at a time the later end counts
    assert spans((start, 5, 9), (start, 5, 7), (stop, 5, 6), (stop, 6, 8)) == [
        *[(0, -FOREVER, FOREVER, 5), (0, 5, 9, 6)],
    ]
    # every device by its own processes, the one that nobody knows included
    found = spans(
        (start, 5, 9, 1, 1), (stop, 7, 8, 2, 1), (start, 3, 4, None, 1), (stop, 30, 31, 4, 1),
        drives=[(1, 0), (2, 0), (2, 1), (None, 2), (3, 3)],
    )  # fmt: skip
    assert found == [
        *[(0, -FOREVER, FOREVER, 7), (0, 5, 9, 7), (1, -FOREVER, -FOREVER, 7)],
        *[(2, -FOREVER, FOREVER, None), (2, 3, 4, None), (3, -FOREVER, -FOREVER, None)],
    ]


def test_capture_span(ask):
    begin, end = "capture_begin", "capture_end"
    found = controlled(
        ask, "capture_span",
        (begin, 5, 6, 1, 1), (end, 5, 7, 1, 1), (begin, 10, 11, 1, 1), (end, 12, 20, 1, 1),
        (end, 30, 31, 1, 1), (begin, 40, 41, 1, 1), (end, 50, 51, 1, 2), (end, 50, 52, 2, 1),
        (begin, 60, 61, None, 1), ("profiler_start", 1, 2, 1, 1), (begin, 45, 46, 1, 2),
        drives=[(1, 0), (1, 1), (None, 4)],
    )  # fmt: skip
    own = [(5, 7), (10, 20), (40, FOREVER), (45, 51)]
    assert found == [*[(device, *each) for device in (0, 1) for each in own], (4, 60, FOREVER)]


def test_anchor_window(ask):
    tables = {
        "nsys.nvtx_window": (
            "row_id BIGINT, process BIGINT, start_ns BIGINT, end_ns BIGINT, is_unclosed BOOLEAN",
            [(1, 7, 0, 5, False), (2, 7, 6, None, True), (3, None, 1, 2, False), (4, 9, 3, 4, 1)],
        ),
        "nsys.device_window": (
            "device BIGINT, row_id BIGINT, start_ns BIGINT, end_ns BIGINT, is_workless BOOLEAN",
            [(0, 1, 20, 25, False), (1, 2, 30, None, True)],
        ),
        "nsys.kernel_window": ("device BIGINT, start_ns BIGINT, end_ns BIGINT",
                               [(5, 0, 9), (5, 9, None)]),
        "nsys.drive": (DRIVE, [(7, 0), (7, 1), (None, 2), (8, 3)]),
    }  # fmt: skip
    moved = [(0, 20, 25, False, False, 1), (1, 30, None, True, True, 2)]
    kernels = [(5, 0, 9, False, False, None), (5, 9, None, True, False, None)]
    plain = [
        *[(device, 0, 5, False, False, 1) for device in (0, 1)],
        *[(device, 6, None, True, False, 2) for device in (0, 1)],
        (2, 1, 2, False, False, 3),
    ]
    # a step makes no window of the other kind: both are here to see which of them is taken
    for mode, ranges in ((None, plain), ("range", plain), ("device", [])):
        found = ask("steps/anchor_window", tables, **({"window_mode": mode} if mode else {}))
        assert sorted(found, key=str) == sorted([*ranges, *moved, *kernels], key=str)


def test_steady(ask):
    rows = [(0, 0, 0, 5, "warmup"), (0, 1, 5, 9, "steady"), (1, 0, 0, 4, "steady")]
    columns = "device BIGINT, iteration BIGINT, start_ns BIGINT, end_ns BIGINT, status VARCHAR"
    tables = {"nsys.iteration": (columns, rows)}
    assert sorted(ask("steps/steady", tables)) == [(0, 1, 5, 9), (1, 0, 0, 4)]
    assert ask("steps/steady", tables, device=1) == [(1, 0, 0, 4)]
    assert ask("steps/steady", tables, device=2) == []


def test_segments_of_windows(ask):
    columns = "device BIGINT, iteration BIGINT, start_ns BIGINT, end_ns BIGINT"
    windows = {
        "nsys.steady": (columns, [(0, 0, 0, 20), (0, 1, 10, 30), (0, 3, 30, 31), (1, 2, 5, 9)])
    }
    least = -(2**63)
    stretches = ask("steps/segment", windows)
    assert sorted(stretches) == [
        *[(0, 0, least, 0), (0, 1, 0, 10), (0, 2, 10, 20), (0, 3, 20, 30), (0, 4, 30, 31)],
        *[(0, 5, 31, FOREVER), (1, 0, least, 5), (1, 1, 5, 9), (1, 2, 9, FOREVER)],
    ]
    columns = "device BIGINT, segment BIGINT, start_ns BIGINT, end_ns BIGINT"
    found = ask("steps/window_segment", {**windows, "nsys.segment": (columns, stretches)})
    assert sorted(found) == [
        *[(0, 0, 1), (0, 0, 2), (0, 1, 2), (0, 1, 3), (0, 3, 4), (1, 2, 1)],
    ]


def test_range_state_and_its_paths(ask):
    level = [f"level_{at}" for at in range(1, 9)]
    columns = "thread BIGINT, process BIGINT, at_ns BIGINT, next_ns BIGINT, depth BIGINT, " + (
        "kind BIGINT, " + ", ".join(f"{each} BIGINT" for each in level)
    )
    ranges = {number: number << 24 | 7 for number in range(1, 10)}

    def open_ones(*numbers):
        return [*(ranges[each] for each in numbers), *[None] * (8 - len(numbers))]

    eight = open_ones(*range(1, 9))
    rows = [
        (1, 5, 0, 4, 1, 1, *open_ones(1)),
        (1, 5, 4, 9, 2, 1, *open_ones(1, 2)),
        (1, 5, 9, 9, 3, 1, *open_ones(1, 2, 3)),  # two changes at one time: the last one holds
        (1, 5, 9, 12, 2, 0, *open_ones(1, 2, 3)),
        (1, 5, 12, 13, 3, 2, *open_ones(1, 2, 4)),  # of no length: what was open stays open
        (1, 5, 13, 14, 1, 2, *open_ones(1)),
        (1, 5, 14, 20, 9, 1, *eight),
        (1, 5, 20, 21, 10, 2, *eight),
        (1, 5, 21, None, 0, 0, *open_ones()),
    ]
    paths = [(number, 10 + number) for number in (1, 2, 8)]
    tables = {
        "nsys.range_nest": (columns, rows),
        "nsys.range_instance": ("range_no BIGINT, path_no BIGINT", paths),
    }
    assert [row[2:] for row in sorted(ask("steps/range_state", tables))] == [
        *[(0, 4, 1, 11), (4, 9, 2, 12), (9, 12, 2, 12), (12, 13, 2, 12), (13, 14, None, None)],
        *[(14, 20, 8, 18), (20, 21, 8, 18), (21, FOREVER, None, None)],
    ]


def test_range_name(ask):
    texts = ["layer 1", "layer 2", "layer 1 x", "layer 2 x", "conv2d", None, "mark", "a, seq = 4"]
    kinds = [59, 60, 70, 71, 59, 59, 34, 60]
    tables = {"nsys.nvtx": ("text VARCHAR, event_type BIGINT", [*zip(texts, kinds, strict=True)])}
    assert sorted(ask("steps/range_name", tables)) == [
        *[("(unnamed)", 1, "(unnamed)"), ("a, seq = *", 2, "a"), ("conv2d", 3, "conv2d")],
        *[("layer *", 4, "layer *"), ("layer 1 x", 5, "layer * x"), ("layer 2 x", 5, "layer * x")],
    ]


def test_range_ancestor(ask):
    paths = [
        *[(1, [7], 1, False), (2, [7, 8], 2, False), (3, [7, 8, 7], 3, False), (4, [8], 1, False)],
        *[(5, [7], 1, True), (6, [8, 7], 2, False), (7, [8], 1, True)],
    ]
    columns = "path_no BIGINT, name_nos BIGINT[], depth BIGINT, is_free BOOLEAN"
    found = ask("steps/range_ancestor", {"nsys.range_path": (columns, paths)})
    assert sorted(found) == [
        *[(1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (3, 3), (4, 4), (5, 5), (6, 4), (6, 6), (7, 7)],
    ]


def test_range_extent(ask):
    instances = [
        # range, path, process, outer ones and itself, start, end
        *[(1, 11, 7, [1], 0, 50), (2, 12, 7, [1, 2], 5, 9), (3, 12, 7, [1, 3], 20, 30)],
        *[(-1, 13, 7, [], 2, 40), (4, 11, 8, [4], 1, 2), (5, 14, None, [5], 3, 4)],
        (6, 15, 9, [6], 3, 4),
    ]
    ops = [
        # op, device, range, start, end
        *[(1, 0, 2, 10, 19), (2, 0, 2, 12, 15), (3, 0, 3, 60, 70), (4, 0, 1, 71, 72)],
        *[(5, 0, None, 80, 99), (6, 1, 3, 5, 6), (7, 0, None, 200, 300)],
    ]
    free = [(-1, 5), (-1, 1), (-1, 6)]
    columns = "range_no BIGINT, path_no BIGINT, process BIGINT, outer_nos BIGINT[], "
    tables = {
        "nsys.range_instance": (columns + "start_ns BIGINT, end_ns BIGINT", instances),
        "nsys.range_op": (
            "op_id BIGINT, device BIGINT, range_no BIGINT, start_ns BIGINT, end_ns BIGINT", ops
        ),
        "nsys.range_free_op": ("range_no BIGINT, op_id BIGINT", free),
        "nsys.drive": (DRIVE, [(7, 0), (7, 1), (8, 1), (None, 1), (9, 2)]),
        "nsys.steady": ("device BIGINT", [(0,), (0,), (1,)]),
    }  # fmt: skip
    found = sorted(ask("steps/range_extent", tables))
    assert [row for row in found if row[2]] == [
        # the outer range holds what its inner ones launched
        *[(0, 11, True, 10, 72), (0, 12, True, 10, 19), (0, 12, True, 60, 70)],
        *[(0, 13, True, 10, 99), (1, 11, True, 5, 6), (1, 12, True, 5, 6), (1, 13, True, 5, 6)],
    ]
    own = [(11, 0, 50), (12, 5, 9), (12, 20, 30), (13, 2, 40)]
    assert [(row[0], row[1], *row[3:]) for row in found if not row[2]] == [
        *[(0, *each) for each in own],
        *[(1, *each) for each in sorted([*own, (11, 1, 2), (14, 3, 4)])],
    ]


def test_copy_window(ask):
    key = (
        "process BIGINT, context_id BIGINT, stream_id BIGINT, direction VARCHAR, way VARCHAR, "
        "source VARCHAR, destination VARCHAR"
    )
    a, b = (7, 1, 2, "HtoD", "host", "pinned", "device"), (7, 1, 3, None, None, None, None)
    columns = (
        "count BIGINT, bytes BIGINT, duration_ns BIGINT, work_ns BIGINT, engine_added_ns BIGINT, "
        "added_ns BIGINT"
    )
    pieces = [
        # device, stretch: those of window 0 are 1 and 2, of window 1 2 to 4
        *[(0, 1, *a, 1, 2, 3, 4, 5, 6), (0, 2, *a, 10, 20, 30, 40, 50, 60)],
        *[(0, 3, *b, 100, 200, 300, 400, 500, 600), (0, 0, *a, 9, 9, 9, 9, 9, 9)],
    ]
    windows = [(0, 0, 1), (0, 0, 2), (0, 1, 2), (0, 1, 3), (0, 1, 4), (1, 0, 1)]
    tables = {
        "nsys.copy_piece": (f"device BIGINT, segment BIGINT, {key}, {columns}", pieces),
        "nsys.copy_op": (f"op_id BIGINT, {key}", [(5, *a), (6, *b)]),
        "nsys.blame_segment": (
            "device BIGINT, segment BIGINT, op_id BIGINT, role VARCHAR, blocking_ns BIGINT",
            [(0, 2, 5, "memcpy", 7), (0, 4, 6, "memset", 8), (0, 2, 5, "comm", 99),
             (0, 2, 9, "memcpy", 99), (1, 1, 5, "memcpy", 3)],
        ),
        "nsys.window_segment": ("device BIGINT, iteration BIGINT, segment BIGINT", windows),
    }  # fmt: skip
    assert sorted(ask("steps/copy_window", tables), key=str) == [
        # count, bytes, duration, work, busy, engine, blocking
        (0, 0, *a, 11, 22, 33, 44, 66, 55, 7),
        (0, 1, *a, 10, 20, 30, 40, 60, 50, 7),
        (0, 1, *b, 100, 200, 300, 400, 600, 500, 8),
        (1, 0, *a, 0, 0, 0, 0, 0, 0, 3),
    ]


def test_pageable_sync(ask):
    pageable, pinned = ("pageable", "device"), ("pinned", "device")
    copies = [
        # process, context, stream, correlation, end: each in a stream of its own
        *[(1, 1, 10, 1, 50, *pageable), (1, 1, 11, 2, 50, *pageable[::-1])],
        *[(1, 1, 12, 3, 50, *pinned), (1, 1, 13, 4, 50, *pageable), (1, 1, 14, 5, 50, *pageable)],
        *[(1, 2, 10, None, 50, *pageable), (2, 1, 10, 1, 50, *pageable)],
        *[(None, 1, 15, 1, 50, *pageable), (1, None, 16, 9, 50, *pageable)],
        *[(1, 1, 17, 6, 50, *pageable), (1, 1, 18, 7, 50, *pageable)],
    ]
    none = 4294967295
    tables = {
        "nsys.copy_op": (
            "process BIGINT, context_id BIGINT, stream_id BIGINT, correlation_id BIGINT, "
            "end_ns BIGINT, source VARCHAR, destination VARCHAR",
            copies,
        ),
        "nsys.null_stream": (
            "process BIGINT, context_id BIGINT, stream_id BIGINT",
            [(1, 1, 10), (1, 1, 12), (None, 1, 15), (1, None, 16)],
        ),
        "nsys.sync": (
            "process BIGINT, context_id BIGINT, stream_id BIGINT, event_id BIGINT",
            [(1, 1, 13, none), (1, 1, none, none), (1, 1, 14, 5), (1, 1, 14, None)],
        ),
        "nsys.outermost_call": (
            "process BIGINT, correlation_id BIGINT, end_ns BIGINT",
            [(1, 2, 50), (1, 6, 49), (2, 7, 99), (1, 3, 99), (1, 5, 40)],
        ),
    }
    found = ask("steps/pageable_sync", tables)
    assert sorted(found, key=str) == sorted(
        [(1, 1, 10), (1, 1, 11), (1, 1, 13), (None, 1, 15), (1, None, 16)], key=str
    )


def test_blocking_window(ask):
    key = (5, 7, 1, 2, 9, "event")
    columns = (
        "device BIGINT, segment BIGINT, name_id BIGINT, process BIGINT, context_id BIGINT, "
        "stream_id BIGINT, waiting_id BIGINT, evidence VARCHAR, count BIGINT, blocking_ns BIGINT"
    )
    changed = [tuple(None if at == n else each for n, each in enumerate(key)) for at in range(6)]
    rows = [(0, 1, *key, 1, 10), (0, 2, *key, 2, 20), (1, 1, *key, 4, 40), (0, 9, *key, 8, 80)]
    rows += [(0, 1, *each, 1, 1) for each in changed]
    tables = {
        "nsys.blocking_segment": (columns, rows),
        "nsys.window_segment": (
            "device BIGINT, iteration BIGINT, segment BIGINT",
            [(0, 0, 1), (0, 0, 2), (0, 1, 2), (1, 0, 1)],
        ),
    }
    assert sorted(ask("steps/blocking_window", tables), key=str) == sorted(
        [
            *[(0, 0, *key, 3, 30), (0, 1, *key, 2, 20), (1, 0, *key, 4, 40)],
            *[(0, 0, *each, 1, 1) for each in changed],
        ],
        key=str,
    )


def test_op_name_and_kernel_name(ask, bare):
    # rules that tell as little as they can: of a class by the function, comm by its class
    for macro in (
        "match_rule(n, t, f, w) AS CASE WHEN f = 'gemm' THEN 1 WHEN w = 'all reduce' THEN 2 END",
        "rule_class(r) AS CASE r WHEN 1 THEN 'gemm' WHEN 2 THEN 'nccl' END",
        "class_role(c) AS CASE c WHEN 'nccl' THEN 'comm' ELSE 'compute' END",
        "match_collective(n, t, f, w) AS 4",
        "rule_collective(r) AS 'collective ' || r",
        "rule_label(r) AS 'rule ' || r",
    ):
        bare.execute(f"CREATE OR REPLACE MACRO nsys.{macro}")
    items = [(0, 1), (0, 1), (0, 2), (0, -4), (1, -1), (0, 3), (0, 9), (4, 5)]
    strings = [(1, "void gemm<int>(int)"), (2, "AllReduce"), (3, "other"), (5, "gemm")]
    kernels = ask(
        "steps/kernel_name",
        {
            "nsys.stream_item": ("kind BIGINT, name_id BIGINT", items),
            "nsys.string": ("string_id BIGINT, value VARCHAR", strings),
        },
    )
    assert sorted(kernels, key=str) == [
        (1, "void gemm<int>(int)", "gemm", "compute", None, True, "rule 1"),
        (2, "AllReduce", "nccl", "comm", "collective 4", True, "rule 2"),
        (3, "other", "other", "compute", None, False, None),
        (9, None, "other", "compute", None, False, None),
        (None, None, "other", "compute", None, False, None),
    ]
    columns = (
        "name_id BIGINT, name VARCHAR, class VARCHAR, role VARCHAR, collective VARCHAR, "
        "is_matched BOOLEAN, rule VARCHAR"
    )
    names = {
        row[0]: row[1:] for row in ask("steps/op_name", {"nsys.kernel_name": (columns, kernels)})
    }
    compute = ("compute", "compute", None)
    assert names == {
        1: ("void gemm<int>(int)", "gemm", *compute),
        2: ("AllReduce", "nccl", "comm", "comm", "collective 4"),
        3: ("other", "other", *compute),
        9: (None, "other", *compute),
        -1: ("memcpy", "memcpy", "memcpy", "memcpy", None),
        -2: ("memset", "memset", "memset", "memset", None),
        -3: ("graph", "graph", *compute),
        -4: (None, "other", *compute),
    }
