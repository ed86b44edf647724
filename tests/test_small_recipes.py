"""Single recipes over small tables made by hand, as in test_small_tables."""

import json

import pytest

# ------------------------------------------------------------------------------------- capture
RELATIONS = [
    *("kernel", "memcpy", "memset", "api_call", "sync", "cuda_event", "graph_exec", "nvtx"),
    *("osrt_call", "sched_event", "device_map", "string", "diagnostic", "overhead"),
    *("cuda_overhead", "gpu_metric"),
]
TABLES = {
    "capability": "relation VARCHAR, is_present BOOLEAN",
    "export_info": "name VARCHAR, value VARCHAR",
    "capture_info": "name VARCHAR, value VARCHAR",
    "system_env": "name VARCHAR, value VARCHAR",
    "analysis": "duration_ns BIGINT",
    "session_start": "utc_ns BIGINT",
    "diagnostic": "severity BIGINT, text VARCHAR",
    "device_map": "process_pid BIGINT, device_ordinal BIGINT, gpu_id BIGINT",
    "nvtx": "event_type BIGINT, end_ns BIGINT, start_ns BIGINT, process BIGINT, thread BIGINT, "
    "text VARCHAR",
    "session_end": "session_end_ns BIGINT",
    "overhead": "start_ns BIGINT, end_ns BIGINT",
    "cuda_overhead": "start_ns BIGINT, end_ns BIGINT",
    "gpu_metric_info": "metric_name VARCHAR",
    "control_call": "control VARCHAR",
    "event_wait": "is_found BOOLEAN",
    "cuda_event": "row_id BIGINT",
    "unseen_wait": "device BIGINT, calls BIGINT, unseen BIGINT",
    "sync": "stream_id BIGINT, event_id BIGINT, correlation_id BIGINT",
    "event_pairing": "is_inferred BOOLEAN",
    "capture_row": "relation VARCHAR, process BIGINT, device_ordinal BIGINT, rows BIGINT, "
    "invalid_rows BIGINT",
    "capture_launch": "process BIGINT, kernels BIGINT, linked BIGINT, skewed BIGINT, "
    "worst_ns BIGINT, chained BIGINT",
    "capture_graph": "launches BIGINT, node_ops BIGINT, whole_ops BIGINT, blind BIGINT",
    "capture_window": "device BIGINT, steady_windows BIGINT, anchor VARCHAR, dropped VARCHAR, "
    "kernels BIGINT, outside_kernels BIGINT",
}


@pytest.fixture
def capture(ask):
    """`capture(relations that are present, table=rows)`: the facts in order."""

    def facts(present, **given):
        rows = {
            "capability": [(each, each in present) for each in RELATIONS],
            "event_pairing": [(False,)],
            "capture_graph": [(0, 0, 0, 0)],
            "session_end": [(None,)],
            "cuda_event": [(1,)] if "cuda_event" in present else [],
            **given,
        }
        # a range starts at 0 unless the row says more, each on a thread of its own
        rows["nvtx"] = [
            row if len(row) == 6 else (*(*row, 0)[:3], 7, at, "a")
            for at, row in enumerate(rows.get("nvtx", []))
        ]
        tables = {f"nsys.{n}": (columns, rows.get(n, [])) for n, columns in TABLES.items()}
        return ask("recipes/capture", tables)

    return facts


def shown(facts):
    """A line per fact; long texts by their ends."""
    return "".join(
        " | ".join(
            [
                *(section, item, (value or "-")[:20].strip(), status),
                *((detail or "-")[-6:].strip(), (remedy or "-")[-6:].strip()),
            ]
        )
        + "\n"
        for section, item, value, status, detail, remedy in facts
    )


NOTHING = """\
export | exporter version | - | missing | y name | -
export | schema version | - | missing | y name | -
export | capture version | - | missing | ported | -
export | recorded event types | - | missing | t tell | -
export | partial export | - | missing | ptions | -
export | session length | - | missing | ng end | -
clock | time shift or normalisation | - | missing | ptions | -
clock | wall clock of the session start | - | missing | start | -
mode | CUDA instrumentation | - | missing | l mode | -
mode | CUDA graph tracing | - | missing | traced | -
diagnostics | errors | - | missing | untold | newer
diagnostics | warnings | - | missing | untold | newer
diagnostics | information | - | missing | untold | newer
tables | kernel | - | missing | o gaps | e=cuda
tables | memcpy | - | missing | traced | e=cuda
tables | memset | - | missing | traced | e=cuda
tables | api_call | - | missing | idence | e=cuda
tables | sync | - | missing | bound | e=cuda
tables | cuda_event | - | missing | bound | e=true
tables | graph_exec | - | missing | traced | -
tables | nvtx | - | missing | anchor | e=nvtx
tables | osrt_call | - | missing | cause | e=osrt
tables | sched_event | - | missing | t show | s-tree
tables | device_map | - | missing | l GPUs | newer
tables | string | - | missing | sified | -
graphs | graph launches | - | missing | - | -
graphs | operations of traced nodes | - | missing | e told | e=cuda
graphs | executions traced as a whole | - | missing | e told | e=cuda
dependencies | event waits | - | missing | nknown | -
dependencies | waits resolved by eventSyncId | - | missing | - | -
dependencies | waits paired by inference | - | missing | - | -
dependencies | waits unresolved | - | missing | - | -
iterations | profiler start calls | - | missing | state | -
iterations | profiler stop calls | - | missing | uffers | -
iterations | open NVTX ranges | - | missing | - | -
overhead | recorded activity of the profiler | - | missing | e step | -steps
overhead | recorded activity of CUDA tracing | - | missing | e step | -
metrics | GPU metrics | - | missing | t them | below
next capture | timing | nsys profile --trace | ok | calls | -
next capture | metrics | nsys profile --trace | ok | _TRACE | -
"""

FINE = """\
export | exporter version | 2026.2.1 | ok | exist | -
export | schema version | 3.25 | ok | y name | -
export | capture version | 2026.1 | ok | ported | -
export | recorded event types | CUDA, NVTX | ok | t tell | -
export | partial export | false | ok | urpose | -
export | session length | 1.500 s | ok | closed | -
clock | time shift or normalisation | false | ok | ession | -
clock | wall clock of the session start | known | ok | by it | -
mode | CUDA instrumentation | - | missing | l mode | -
mode | CUDA graph tracing | node | ok | by one | -
diagnostics | errors | 0 | ok | apture | -
diagnostics | warnings | 0 | ok | apture | -
diagnostics | information | 1 | ok | apture | -
tables | kernel | 15 rows | ok | - | -
tables | memcpy | present | ok | - | -
tables | memset | present | ok | - | -
tables | api_call | present | ok | - | -
tables | sync | 0 rows | ok | - | -
tables | cuda_event | present | ok | - | -
tables | graph_exec | present | ok | - | -
tables | nvtx | 2 rows | ok | - | -
tables | osrt_call | present | ok | - | -
tables | sched_event | present | ok | - | -
tables | device_map | present | ok | - | -
tables | string | present | ok | - | -
invalid rows | kernel | 0 | ok | - | -
invalid rows | nvtx | 0 | ok | - | -
launches | kernels with their CUDA call, process 100 | 100.0 % | ok | f code | -
launches | kernels that start before their call, process 100 | 0 | ok | - | -
launches | kernels with a source call stack, process 100 | 100.0 % | ok | chain | -
graphs | graph launches | 1 | ok | - | -
graphs | operations of traced nodes | 4 | ok | graphs | -
graphs | executions traced as a whole | 0 | ok | - | -
graphs | launches without any device row | 0 | ok | - | -
devices | process 100, CUDA ordinal 0 | device 3 | ok | trace | -
dependencies | event waits | 2 | ok | - | -
dependencies | waits resolved by eventSyncId | 2 | ok | record | -
dependencies | waits paired by inference | 0 | ok | - | -
dependencies | waits unresolved | 0 | ok | - | -
iterations | steady windows, device 0 | 4 | ok | nvtx:s | -
iterations | steady windows, device 1 | 1 | ok | nvtx:s | -
iterations | kernels outside steady windows, device 0 | 0 | ok | - | -
iterations | profiler start calls | 1 | ok | state | -
iterations | profiler stop calls | 2 | ok | uffers | -
iterations | open NVTX ranges | 0 | ok | - | -
overhead | recorded activity of the profiler | 1.500 ms | ok | e step | -steps
overhead | recorded activity of CUDA tracing | 2.000 ms | ok | e step | -
metrics | GPU metrics | 0 of the metrics tha | ok | out it | -
next capture | timing | nothing to add | ok | calls | -
"""

POOR = """\
export | exporter version | - | missing | y name | -
export | schema version | - | missing | y name | -
export | capture version | - | missing | ported | -
export | recorded event types | - | missing | t tell | -
export | partial export | true | warn | issing | -times
export | session length | - | missing | ng end | -
clock | time shift or normalisation | true | warn | by it | malize
clock | wall clock of the session start | 2 starts | warn | rocess | -
mode | CUDA instrumentation | software | ok | erhead | -
mode | CUDA graph tracing | graph | warn | e told | e=node
diagnostics | errors | 5 | warn | apture | -
diagnostics | warnings | 6 | warn | apture | -
diagnostics | information | 1 | ok | apture | -
diagnostics | CUDA tracing might not have been started correctly (warning) | 1 | warn | rainer | -
diagnostics | a permission was missing (error) | 1 | warn | absent | -
diagnostics | about clocks or timestamps (error) | 1 | warn | itself | -
diagnostics | events lost or incomplete (warning) | 1 | warn | oo low | s does
diagnostics | hardware tracing not supported, software used (warning) | 1 | warn | racing | -
diagnostics | no NVTX events collected in a process (warning) | 1 | warn | rainer | -
diagnostics | not all CUDA events might have been collected (error) | 1 | warn | oo low | s does
diagnostics | not all CUDA events might have been collected (warning) | 1 | warn | oo low | s does
diagnostics | other messages (error) | 2 | warn | itself | -
diagnostics | other messages (warning) | 1 | warn | itself | -
tables | kernel | 16 rows | ok | - | -
tables | memcpy | - | missing | traced | e=cuda
tables | memset | - | missing | traced | e=cuda
tables | api_call | 8 rows | ok | - | -
tables | sync | present | ok | - | -
tables | cuda_event | - | missing | bound | e=true
tables | graph_exec | - | missing | traced | -
tables | nvtx | present | ok | - | -
tables | osrt_call | - | missing | cause | e=osrt
tables | sched_event | - | missing | t show | s-tree
tables | device_map | - | missing | l GPUs | newer
tables | string | - | missing | sified | -
invalid rows | api_call | 1 | warn | easure | -
invalid rows | kernel | 4 | warn | easure | -
launches | kernels with their CUDA call, process 100 | 100.0 % | ok | f code | -
launches | kernels with their CUDA call, unknown process | 75.0 % | warn | e time | ration
launches | kernels that start before their call, process 100 | 0 | ok | - | -
launches | kernels that start before their call, unknown process | 2 | warn | shown | driver
launches | kernels with a source call stack, process 100 | 0.0 % | missing | r rate | lsites
launches | kernels with a source call stack, unknown process | 25.0 % | warn | chain | lsites
graphs | graph launches | 3 | ok | - | -
graphs | operations of traced nodes | 0 | ok | - | -
graphs | executions traced as a whole | 2 | warn | e told | e=node
graphs | launches without any device row | 1 | warn | r them | newer
devices | process 100, CUDA ordinal 1 | device 1 | warn | ne GPU | newer
devices | unknown process, CUDA ordinal unknown | - | warn | ne GPU | newer
dependencies | event waits | 4 | ok | - | -
dependencies | waits resolved by eventSyncId | 0 | ok | record | -
dependencies | waits paired by inference | 1 | warn | ferred | newer
dependencies | waits unresolved | 3 | warn | gaps) | e=true
iterations | steady windows, device unknown | 0 | warn | 2 cut | h step
iterations | kernels outside steady windows, device unknown | 4 | warn | tistic | -
iterations | profiler start calls | 0 | ok | state | -
iterations | profiler stop calls | 0 | ok | uffers | -
iterations | open NVTX ranges | 4 | warn | indows | ended
overhead | recorded activity of the profiler | - | missing | e step | -steps
overhead | recorded activity of CUDA tracing | - | missing | e step | -
metrics | GPU metrics | - | missing | t them | ts own
next capture | timing | nsys profile --trace | ok | calls | -
next capture | metrics | nsys profile --trace | ok | _TRACE | -
"""


def test_capture_of_nothing(capture):
    facts = capture([])
    assert shown(facts) == NOTHING
    (command,) = [row[2] for row in facts if row[:2] == ("next capture", "timing")]
    assert " --cuda-event-trace=true " in command and "--cuda-graph-trace" not in command


def test_capture_without_a_fault(capture):
    facts = capture(
        RELATIONS,
        export_info=[
            *[("EXPORT_PRODUCT_VERSION", "2026.2.1"), ("EXPORT_SCHEMA_VERSION", "3.25")],
            *[("EXPORT_PARAM_TIME_SHIFT", "0"), ("EXPORT_PARAM_TIME_NORMALIZE", "false")],
            *[("EXPORT_PARAM_TABLES_TO_EXPORT", ""), ("OTHER", "1")],
        ],
        system_env=[("CaptureVersion", "2026.1"), ("CaptureVersion", ""), ("Other", "zzz")],
        capture_info=[
            *[("CAPTURE_EVENT_TYPE", "NVTX"), ("CAPTURE_EVENT_TYPE", "CUDA")],
            *[("CAPTURE_EVENT_TYPE", "CUDA"), ("CUDA_GRAPH_TRACE_OPTIONS:MODE", "Node")],
        ],
        analysis=[(1_500_000_000,)],
        session_start=[(5,), (None,)],
        diagnostic=[(1, "fine")],
        device_map=[(100, 0, 3), (100, 0, 2), (100, 1, 9), (101, 0, 9)],
        nvtx=[(59, 99), (34, None)],
        session_end=[(100,)],
        overhead=[(0, 1_000_000), (5, 4), (0, 500_000), (7, 7)],
        cuda_overhead=[(0, 2_000_000), (5, 4), (7, 7)],
        control_call=[("profiler_start",), ("profiler_stop",), ("profiler_stop",)],
        event_wait=[(True,), (True,)],
        capture_row=[
            *[("kernel", 16777316, 0, 10, 0), ("kernel", 16777316, 0, 5, 0)],
            *[("nvtx", None, None, 2, 0), ("sync", 7, 7, 0, 0)],
        ],
        capture_launch=[(16777316, 15, 15, 0, None, 15)],
        capture_graph=[(1, 4, 0, 0)],
        capture_window=[(0, 4, "nvtx:s", None, 15, 0), (1, 1, "nvtx:s", None, 0, 0)],
    )
    assert shown(facts) == FINE


def test_capture_with_every_fault(capture):
    lost = "Not all CUDA events might have been collected."
    facts = capture(
        ["kernel", "api_call", "sync", "diagnostic", "nvtx"],
        export_info=[
            *[("EXPORT_PARAM_TIME_SHIFT", "-5"), ("EXPORT_PARAM_TABLES_TO_EXPORT", "x")],
        ],
        capture_info=[("CUDA_GRAPH_TRACE_OPTIONS:MODE", "Graph")],
        session_start=[(5,), (6,)],
        diagnostic=[
            *[(3, lost), (2, lost), (2, "No NVTX events collected. x"), (3, "hm"), (3, "hm")],
            *[(2, "CUDA profiling might have not been started correctly."), (3, "clock x")],
            *[(2, "events were dropped"), (2, "software instrumented"), (3, "no privilege")],
            *[(1, "Insufficient permission"), (2, "hardware tracing is not supported")],
        ],
        nvtx=[(59, 100), (60, None), (70, 101), (71, 100), (34, None), (59, 99)],
        session_end=[(100,)],
        event_wait=[(True,), (False,), (False,), (False,)],
        event_pairing=[(True,)],
        capture_row=[
            *[("kernel", None, None, 10, 3), ("kernel", 100, 1, 6, 1)],
            ("api_call", None, None, 8, 1),
        ],
        capture_launch=[(None, 16, 12, 2, 1_500_000, 4), (100, 4, 4, 0, None, 0)],
        capture_graph=[(3, 0, 2, 1)],
        capture_window=[(None, 0, None, "2 cut", 16, 4)],
    )
    assert shown(facts) == POOR
    (command,) = [row[2] for row in facts if row[:2] == ("next capture", "timing")]
    assert " --cuda-event-trace=true --cuda-graph-trace=node " in command


def fact(facts, section, item):
    (row,) = [row[2:] for row in facts if row[:2] == (section, item)]
    return row


# In each case: messages of the profiler and recorded events with the instrumentation they tell; how
# graphs were traced, with their counts, what is said of it and whether node tracing is advised; an
# option of the export, and whether times were moved or the export is partial; a table that lacks.
@pytest.mark.parametrize(
    ("messages", "events", "hardware", "graphs", "said", "option", "told", "lacking"),
    [
        (
            *(
                [],
                "cuda-hw",
                "hardware",
                ("Node", 1, 1, 0, 1),
                ("warn", "operations inside", False),
            ),
            *(("TIME_SHIFT", "10"), (True, False), "kernel"),
        ),
        (
            *([], "CUDA Hardware", "hardware", ("Node", 1, 1, 1, 0)),
            *(("warn", "operations inside", False), ("TIME_SHIFT", "true"), (False, False), "nvtx"),
        ),
        (
            *([], "cuda", None, ("Graph", 1, 0, 0, 0), ("ok", "a graph, where one", False)),
            *(("TIME_NORMALIZE", "True"), (True, False), "api_call"),
        ),
        (
            *(["Hardware-based event tracing"], "cuda", "hardware", ("Graph", 1, 0, 1, 0)),
            *(("warn", "a graph, where one", True), ("TIME_NORMALIZE", "YES"), (True, False)),
            "osrt_call",
        ),
        (
            *(["Hardware tracing", "software instrumented"], "cuda-hw", "software"),
            *((None, 1, 0, 0, 1), ("missing", "the capture does not", True)),
            *(("TIME_NORMALIZE", "no"), (False, False), "cuda_event"),
        ),
        (
            *(["hardware tracing is not supported"], "cuda", None, (None, 1, 0, 0, 0)),
            *(("missing", "the capture does not", False), ("TIMES_TO_EXPORT", "1"), (False, True)),
            "memcpy",
        ),
        (
            *(["hardware tracing", "hardware tracing is not available"], "cuda", "hardware"),
            *(("Node", 0, 0, 0, 0), ("ok", "operations inside", False), ("OTHER", "1")),
            *((False, False), "sync"),
        ),
    ],
)
def test_capture_tells_how_it_was_made(
    capture, messages, events, hardware, graphs, said, option, told, lacking
):
    mode, *counts = graphs
    facts = capture(
        [each for each in RELATIONS if each != lacking],
        diagnostic=[(1, text) for text in messages],
        capture_info=[
            ("CAPTURE_EVENT_TYPE", events),
            *([("CUDA_GRAPH_TRACE_OPTIONS:MODE", mode)] if mode else []),
        ],
        capture_graph=[tuple(counts)],
        export_info=[(f"EXPORT_PARAM_{option[0]}", option[1])],
    )
    found = fact(facts, "mode", "CUDA instrumentation")
    assert found[:2] == (hardware, "missing" if hardware is None else "ok")
    assert found[2].startswith("the profiler says so") == (hardware == "software")
    found = fact(facts, "mode", "CUDA graph tracing")
    assert (found[1], found[2][: len(said[1])], found[3] is not None) == said
    assert ("yet some launches" in found[2]) == (mode == "Node" and counts[3] > 0)
    if lacking != "api_call":
        blind = fact(facts, "graphs", "launches without any device row")
        assert (blind[3] or "").startswith("export the") == (mode == "Node" and counts[3] > 0)
    moved = fact(facts, "clock", "time shift or normalisation")
    partial = fact(facts, "export", "partial export")
    assert (moved[0], partial[0]) == tuple(str(each).lower() for each in told)
    timing = fact(facts, "next capture", "timing")[0]
    is_lacking = lacking not in ("memcpy", "sync") or any(counts[2:])
    assert timing.startswith("nsys profile" if is_lacking else "nothing to add")
    assert ("--cuda-graph-trace=node" in timing) == any(counts[2:])


def test_capture_of_waits_and_counters(capture):
    # inferred, but none found; records are there, so a longer range is the remedy
    facts = capture(RELATIONS, event_wait=[(False,)] * 2, event_pairing=[(True,)])
    inferred = fact(facts, "dependencies", "waits paired by inference")
    assert inferred == ("0", "ok", None, None)
    assert fact(facts, "dependencies", "waits unresolved") == (
        "2",
        "warn",
        "100.0 % of waits have no record in the trace: blocking is a lower bound in gaps that end "
        "behind one (see evidence in gaps)",
        "a capture range that begins before the records do",
    )
    # waits without a correlation id: of no stream or no event they are none
    none = 4294967295
    sync = [(7, 1, None), (None, 1, None), (7, None, None), (7, 1, 5)]
    sync += [(none, 1, None), (7, none, None)]
    facts = capture(RELATIONS, event_wait=[(True,)] * 5, sync=sync)
    assert fact(facts, "dependencies", "event waits")[0] == "8"
    unplaced = (
        "37.5 % of waits have no correlation id (3), and so no place in the issue order: no gap "
        "shows as evidence what they held up, and blocking is a lower bound everywhere"
    )
    assert fact(facts, "dependencies", "waits unresolved") == ("3", "warn", unplaced, None)
    facts = capture(RELATIONS, event_wait=[(True,)] * 3 + [(False,)] * 2, sync=sync)
    value, _, detail, remedy = fact(facts, "dependencies", "waits unresolved")
    assert (value, detail.split("; ")[1]) == ("5", unplaced)
    assert detail.startswith("25.0 % of waits have no record") and remedy is not None
    # ranges that lack a start, or end before it, are invalid and not open
    facts = capture(RELATIONS, nvtx=[(59, None, None), (59, 20, None), (59, 20, 30), (59, 20, 20)],
                    session_end=[(20,)])  # fmt: skip
    assert fact(facts, "iterations", "open NVTX ranges")[0] == "1"
    # of equal ranges one counts
    one = (59, None, 3, 7, 1, "a")
    others = [(59, None, 4, 7, 1, "a"), (59, None, 3, 8, 1, "a"), (59, None, 3, 7, 2, "a")]
    others += [(59, None, 3, 7, 1, "b"), (59, None, 3, 7, 1, None)]
    facts = capture(RELATIONS, nvtx=[one, *others, one, *others[-1:]])
    assert fact(facts, "iterations", "open NVTX ranges")[0] == "6"
    # a table of records without a row is as little as none, where there are waits
    for waits, remedy in (([(False,)], "nsys profile --cuda-event-trace=true"), ([], None)):
        facts = capture(RELATIONS, event_wait=waits, cuda_event=[])
        assert fact(facts, "dependencies", "waits unresolved")[3] == remedy
        timing = fact(facts, "next capture", "timing")[0]
        assert ("--cuda-event-trace=true" in timing) == (remedy is not None)
    # calls that made a stream wait
    facts = capture(RELATIONS, unseen_wait=[(0, 8, 2), (1, 8, 0)])
    name = "calls that make a stream wait without a wait, device "
    told = "25.0 % of 8 calls: what they held up is unknown, blocking is a lower bound"
    assert fact(facts, "dependencies", f"{name}0")[:3] == ("2", "warn", told)
    assert fact(facts, "dependencies", f"{name}1") == ("0", "ok", None, None)
    # an invalid wait orders its stream all the same
    rows = [("sync", None, None, 4, 1), ("kernel", 1, 0, 4, 1)]
    facts = capture(RELATIONS, capture_row=rows)
    invalid = "25.000 % of its rows end before they start, or lack a time: "
    assert fact(facts, "invalid rows", "kernel")[2] == invalid + "they take part in no measure"
    assert fact(facts, "invalid rows", "sync")[2] == (
        invalid + "no time of them is used; the event waits among them order their streams all the "
        "same"
    )
    names = ["SMs Active [%]", "SM Active", "DRAM Read", "odd"]
    facts = capture(RELATIONS, gpu_metric_info=[(name,) for name in names])
    assert fact(facts, "metrics", "GPU metrics")[0].startswith("2 of the metrics")
    # without its table nothing is said about calls, though there are rows of launches
    facts = capture(["kernel"], capture_launch=[(100, 4, 0, 0, None, 0)])
    told = fact(facts, "launches", "kernels with their CUDA call, process 100")
    assert told[:2] == (None, "missing")
    assert not [row for row in facts if "before their call" in row[1]]


def test_capture_of_one_of_each(capture):
    """One row of whatever may be wrong is enough, and shares are told in full."""
    facts = capture(
        RELATIONS,
        diagnostic=[(3, "hm"), (2, "hm"), (1, "hm")],
        capture_row=[("kernel", 101, 0, 8, 1), ("nvtx", None, None, 1, 0)],
        capture_launch=[(101, 8, 7, 1, 1_000, 7)],
        capture_graph=[(1, 1, 1, 1)],
        event_wait=[(True,), (True,), (True,), (False,)],
        capture_window=[(0, 1, "nvtx:s", "1 cut", 8, 1)],
        nvtx=[(59, None)],
        device_map=[(101, 0, 3)],
        overhead=[(0, 1_000)],
        cuda_overhead=[(3, 4), (6, 1_000_005)],
        gpu_metric_info=[("SM Issue",)],
        export_info=[("EXPORT_PARAM_TIME_SHIFT", "1")],
        analysis=[(1_000_000,), (None,)],
        session_start=[(0,)],
    )
    found = {row[1].partition(",")[0]: (row[2], row[3], (row[4] or "")[:8]) for row in facts}
    assert {name: found[name] for name in found if found[name][1] == "warn"} == {
        "time shift or normalisation": ("true", "warn", "all time"),
        "errors": ("1", "warn", "messages"),
        "warnings": ("1", "warn", "messages"),
        "other messages (error)": ("1", "warn", "read the"),
        "other messages (warning)": ("1", "warn", "read the"),
        "kernel": ("1", "warn", "12.500 %"),
        "kernels with their CUDA call": ("87.5 %", "warn", "7 of 8 k"),
        "kernels that start before their call": ("1", "warn", "by up to"),
        "kernels with a source call stack": ("87.5 %", "warn", "7 of 8 k"),
        "executions traced as a whole": ("1", "warn", "they cou"),
        "launches without any device row": ("1", "warn", "blind: t"),
        "waits unresolved": ("1", "warn", "25.0 % o"),
        "kernels outside steady windows": ("1", "warn", "12.5 % o"),
        "open NVTX ranges": ("1", "warn", "never cl"),
    }
    told = ("operations of traced nodes", "session length", "GPU metrics", "steady windows")
    assert [found[name] for name in told] == [
        *[("1", "ok", "many ope"), ("0.001 s", "ok", "NVTX ran")],
        *[("1 of the metrics that recipe metrics reads", "ok", "sampling")],
        ("1", "ok", "anchor n"),
    ]
    overheads = ("recorded activity of the profiler", "recorded activity of CUDA tracing")
    assert [found[name][0] for name in overheads] == ["0.001 ms", "1.000 ms"]
    assert fact(facts, "launches", "kernels that start before their call, process 101")[
        2
    ].startswith("by up to 0.001 ms: ")
    remedies = {row[1] for row in facts if row[5]}
    assert {"launches without any device row", "executions traced as a whole"} <= remedies
    assert "kernels with a source call stack, process 101" in remedies


# -------------------------------------------------------------------------------- trace events
def trace_events(ask, *, ops, gaps=(), iterations=(), steady=(), **variables):
    tables = {
        "nsys.op": (
            "op_id BIGINT, device BIGINT, process BIGINT, context_id BIGINT, stream_id BIGINT, "
            "lane BIGINT, correlation_id BIGINT, kind VARCHAR, class VARCHAR, name_id BIGINT, "
            "start_ns BIGINT, end_ns BIGINT",
            ops,
        ),
        "nsys.op_name": ("name_id BIGINT, name VARCHAR", [(1, "k"), (2, None)]),
        "nsys.gap_cut": (
            "device BIGINT, start_ns BIGINT, issued_ns BIGINT, unblocked_ns BIGINT, "
            "end_ns BIGINT, op_id BIGINT, producer_id BIGINT, evidence VARCHAR",
            list(gaps),
        ),
        "nsys.iteration": (
            "device BIGINT, iteration BIGINT, start_ns BIGINT, end_ns BIGINT, status VARCHAR, "
            "anchor VARCHAR",
            list(iterations),
        ),
        "nsys.steady": ("device BIGINT, start_ns BIGINT, end_ns BIGINT", list(steady)),
    }
    return ask("recipes/trace_events", tables, **variables)


def run(op_id, lane, start, end, *, device=0, process=16777316, name=1, of="gemm", stream=None):
    stream = lane if stream is None else stream
    return (op_id, device, process, 1, stream, lane, op_id, "kernel", of, name, start, end)


OPS = [
    *[run(1, 7, 0, 10), run(2, 7, 5, 20, of="norm"), run(3, 7, 20, 30), run(6, 7, 12, 14, name=2)],
    *[run(4, 8, 0, 15, of="nccl"), run(5, 7, 3, 6, device=1, process=None, name=9)],
]
GAPS = [
    *[(0, 10, 12, 15, 20, 3, 4, "resolved"), (0, 30, 30, 30, 31, 9, 4, "none")],
    *[
        (0, 40, 41, 41, 41, 9, None, "none"),
        (1, 0, 0, 1, 1, 5, 1, "graph"),
        (0, 0, 0, 0, 0, 1, 4, "x"),
    ],
]
ITERATIONS = [
    (0, 0, 0, 20, "steady", "nvtx:s"),
    (0, 1, 20, 40, "cut", "nvtx:s"),
    (0, 2, 9, 9, "x", "y"),
]
STEADY = [(0, 0, 12), (0, 12, 20)]


def test_trace_events(ask):
    found = trace_events(ask, ops=OPS, gaps=GAPS, iterations=ITERATIONS, steady=STEADY)
    slices = [row[:7] for row in found if row[2] == "slice"]
    assert sorted(slices) == sorted(
        [
            *[(0, 1, "slice", 0, 20, "iteration 0", "iteration")],
            *[(0, 1, "slice", 20, 20, "iteration 1", "iteration")],
            *[(0, 2, "slice", 10, 2, "launch-starved", "cause")],
            *[(0, 2, "slice", 12, 3, "blocking", "cause")],
            *[(0, 2, "slice", 15, 5, "dependency-stalled", "cause")],
            *[(0, 2, "slice", 30, 1, "dependency-stalled", "cause")],
            *[(0, 2, "slice", 40, 1, "launch-starved", "cause")],
            *[(1, 2, "slice", 0, 1, "blocking", "cause")],
            # what starts while another of its lane runs is beside, and cut where the next starts
            *[(0, 10, "slice", 0, 10, "gemm", "gemm"), (0, 10, "slice", 20, 10, "gemm", "gemm")],
            *[(0, 11, "slice", 5, 7, "norm", "norm"), (0, 11, "slice", 12, 2, "gemm", "gemm")],
            *[(0, 12, "slice", 0, 15, "nccl", "nccl"), (1, 10, "slice", 3, 3, "gemm", "gemm")],
        ]
    )
    arrows = [(*row[:4], row[7]) for row in found if row[2].startswith("arrow")]
    # in the order of what waited: on device 1 from 3, then on device 0 from 20
    assert sorted(arrows, key=lambda row: (row[4], row[2])) == [
        *[(1, 10, "arrow_end", 3, 1), (0, 10, "arrow_start", 9, 1)],
        *[(0, 10, "arrow_end", 20, 2), (0, 12, "arrow_start", 14, 2)],
    ]
    named = [(*row[:2], row[5]) for row in found if row[2] in ("process", "track")]
    assert sorted(named, key=lambda row: (row[0], row[1] or 0)) == [
        *[(0, None, "GPU 0"), (0, 1, "iterations"), (0, 2, "why no compute")],
        *[(0, 10, "stream 7 (process 100, context 1)")],
        *[(0, 11, "stream 7 (process 100, context 1, overlapping)")],
        *[(0, 12, "stream 8 (process 100, context 1)")],
        *[(1, None, "GPU 1"), (1, 1, "iterations"), (1, 2, "why no compute")],
        *[(1, 10, "stream 7 (process ?, context 1)")],
    ]
    order = [row[:2] for row in found if row[2] == "order"]
    assert sorted(order) == sorted(row[:2] for row in named if row[1])
    keys = [(row[3] is not None, row[3] or 0, -(row[4] or 0)) for row in found]
    assert keys == sorted(keys)


def test_trace_events_of_each_lane_have_a_track_of_their_own(ask):
    def lane(number, process, context, stream, lane, start=0):
        row = run(number, lane, start, start + 9, process=process, stream=stream)
        return (*row[:3], context, *row[4:])

    ops = [
        *[lane(1, 6, 1, 7, 1), lane(2, 5, 2, 7, 2), lane(3, 5, 1, 8, 3), lane(4, 5, 1, 7, 5)],
        *[lane(5, 5, 1, 7, 4), lane(6, 5, 1, 7, 4, 3)],
    ]
    found = trace_events(ask, ops=ops)
    tracks = {row[1]: row[5] for row in found if row[2] == "track" and row[1] > 2}
    assert [tracks[at] for at in sorted(tracks)] == [
        *["stream 7 (process 5, context 1)", "stream 7 (process 5, context 1, overlapping)"],
        *["stream 7 (process 5, context 1)", "stream 8 (process 5, context 1)"],
        *["stream 7 (process 5, context 2)", "stream 7 (process 6, context 1)"],
    ]
    slices = [row[1] for row in found if row[2] == "slice"]
    assert slices == [10, 12, 13, 14, 15, 11]  # as they start, then by track


def test_trace_events_of_two_devices_have_nothing_in_common(ask):
    # one process, one stream and one time on both; each ends a gap behind the other's operation
    ops = [
        *[run(1, 7, 0, 10), run(2, 7, 10, 20), run(3, 7, 15, 30, of="norm")],
        *[run(4, 7, 5, 12, device=1), run(5, 7, 12, 40, device=1)],
    ]
    gaps = [(0, 10, 10, 11, 15, 3, 1, "x"), (1, 5, 5, 6, 12, 5, 4, "y")]
    iterations = [(0, 0, 0, 20, "steady", "s"), (1, 0, 5, 40, "steady", "s")]
    found = trace_events(ask, ops=ops, gaps=gaps, iterations=iterations)
    slices = sorted((*row[:2], *row[3:5], row[5]) for row in found if row[2] == "slice")
    assert slices == [
        *[(0, 1, 0, 20, "iteration 0"), (0, 2, 10, 1, "blocking")],
        *[(0, 2, 11, 4, "dependency-stalled"), (0, 10, 0, 10, "gemm"), (0, 10, 10, 10, "gemm")],
        *[(0, 11, 15, 15, "norm"), (1, 1, 5, 35, "iteration 0"), (1, 2, 5, 1, "blocking")],
        *[(1, 2, 6, 6, "dependency-stalled"), (1, 10, 5, 7, "gemm"), (1, 10, 12, 28, "gemm")],
    ]
    # only what touches the windows of its own device, before and behind
    steady = [(0, 10, 20), (1, 12, 14)]
    found = trace_events(
        ask, ops=ops, gaps=gaps, iterations=iterations, steady=steady, skip_first=1
    )
    kept = sorted((row[0], row[3]) for row in found if row[2] == "slice" and row[1] != 1)
    assert kept == [(0, 10), (0, 10), (0, 11), (0, 15), (1, 12)]


def test_trace_events_are_those_of_the_format(ask):
    found = trace_events(ask, ops=OPS, gaps=GAPS[:1], iterations=ITERATIONS[:1])
    told = {(row[2], row[0], row[1], row[3]): json.loads(row[8]) for row in found}
    at = {"pid": 0, "tid": 12}
    whole = {"name": "k", "duration_ns": 15}
    assert told["slice", 0, 12, 0] == {
        **{"ph": "X", **at, "ts": 0.0, "dur": 0.015, "name": "nccl", "cat": "nccl", "args": whole},
    }
    assert told["slice", 0, 11, 5]["args"]["duration_ns"] == 15  # the whole, though it is cut
    assert told["slice", 0, 11, 12]["args"]["name"] == "(unnamed kernel)"
    assert told["slice", 0, 1, 0]["args"] == {"status": "steady", "anchor": "nvtx:s"}
    assert told["slice", 0, 2, 12]["args"] == {"evidence": "resolved"}
    blocked = {"id": 1, "name": "blocked by", "cat": "blocked by"}
    assert told["arrow_start", 0, 12, 14] == {"ph": "s", **at, "ts": 0.014, **blocked}
    assert told["arrow_end", 0, 10, 20] == {
        **{"ph": "f", "bp": "e", "pid": 0, "tid": 10, "ts": 0.02, **blocked},
    }
    assert told["process", 1, None, None] == {
        **{"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "GPU 1"}},
    }
    assert told["track", 0, 1, None]["args"] == {"name": "iterations"}
    assert told["order", 0, 12, None] == {
        **{"ph": "M", **at, "name": "thread_sort_index", "args": {"sort_index": 12}},
    }


def test_trace_events_of_chosen_iterations(ask):
    ends = [run(1, 7, -5, 0), run(2, 7, -5, 1), run(3, 8, 19, 25), run(4, 9, 20, 21)]
    given = {"ops": ends, "iterations": ITERATIONS, "steady": STEADY}
    for variables, kept in [
        ({"iteration_from": 0, "skip_first": 0, "skip_last": 0}, [-5, -5, 19, 20]),
        *[({name: 1}, [-5, 19]) for name in ("iteration_from", "skip_first", "skip_last")],
        ({"iteration_to": 9}, [-5, 19]),
    ]:
        found = trace_events(ask, **given, **variables)
        starts = [row[3] for row in found if row[2] == "slice" and row[1] > 9]
        assert starts == kept, variables
    found = trace_events(ask, **{**given, "ops": OPS, "gaps": GAPS}, skip_first=1)
    # what touches the windows of 0 to 20, whole; a device without a steady window has its name
    assert {row[3] for row in found if row[2] == "slice"} == {0, 5, 10, 12, 15}
    assert {row[2] for row in found if row[0] == 1} == {"process", "track", "order"}


def test_trace_events_of_iterations_that_overlap(ask):
    windows = [
        # two threads take turns; the fourth is alone again and in the first track
        *[(0, 0, 10), (1, 5, 15), (2, 10, 20), (3, 20, 30)],
        # three at a time; the last ends before the one below it, and cuts nothing
        *[(4, 40, 50), (5, 41, 60), (6, 42, 55), (7, 50, 52)],
        # two start together behind the end of none: the third of its track cuts the first
        *[(8, 70, 90), (9, 70, 72), (10, 75, 80), (11, 85, 86)],
    ]
    iterations = [(0, number, start, end, "steady", "s") for number, start, end in windows]
    other = [(0, 0, 9), (1, 20, 30), (2, 25, 35)]
    found = trace_events(
        ask, ops=[run(1, 7, 0, 1), run(2, 7, 0, 1, device=1)],
        iterations=[*iterations, *((1, n, a, b, "steady", "s") for n, a, b in other)],
    )  # fmt: skip
    slices = [row for row in found if row[2] == "slice" and row[6] == "iteration"]
    assert [(row[1], row[3], row[4]) for row in slices if row[0] == 1] == [
        *[(1, 0, 9), (1, 20, 10), (2000001, 25, 10)],
    ]
    tracks = {}
    for row in slices:
        if row[0] == 0:
            number = int(row[5].removeprefix("iteration "))
            tracks.setdefault(row[1], []).append((number, row[3], row[3] + row[4]))
    assert tracks == {
        1: [(0, 0, 10), (2, 10, 20), (3, 20, 30), (4, 40, 50), (7, 50, 52), (9, 70, 72),
            (10, 75, 80)],
        2000001: [(1, 5, 15), (5, 41, 60), (8, 70, 85), (11, 85, 86)],
        2000002: [(6, 42, 55)],
    }  # fmt: skip
    told = {row[5]: json.loads(row[8])["args"] for row in slices if row[0] == 0}
    cut = {"status": "steady", "anchor": "s", "duration_ns": 20}
    assert told["iteration 8"] == cut and "duration_ns" not in told["iteration 7"]
    named = {row[:2]: row[5] for row in found if row[2] == "track"}
    assert named[0, 1] == named[1, 1] == "iterations"
    assert named[0, 2000001] == named[0, 2000002] == "iterations (overlapping)"
    places = {row[:2]: json.loads(row[8])["args"]["sort_index"] for row in found
              if row[2] == "order"}  # fmt: skip
    assert [places[0, track] for track in (1, 2000001, 2000002, 2, 10)] == [-1, 0, 1, 2, 10]
    assert {track: place for (device, track), place in places.items() if device == 1} == {
        **{1: 0, 2000001: 1, 2: 2, 10: 10},
    }


def test_trace_events_of_one_device(ask):
    found = trace_events(ask, ops=OPS, gaps=GAPS, iterations=ITERATIONS, device=1)
    assert {row[0] for row in found} == {1}


def test_devices(ask):
    ops = [
        *[(0, 16777317, "kernel", 5, 9), (0, 100, "kernel", 4, 6), (0, 100, "memcpy", 6, 11)],
        *[(None, 100, "memset", 1, 2), (1, 9, "graph", 3, 4), (1, 9, "graph", 5, 6)],
    ]
    tables = {
        "nsys.gpu": ("gpu_id BIGINT, name VARCHAR", [(0, "A"), (0, "B"), (1, "C"), (2, "C")]),
        "nsys.device_map": ("gpu_id BIGINT", [(0,), (2,)]),
        "nsys.capability": (
            "relation VARCHAR, is_present BOOLEAN",
            [(name, True) for name in ("kernel", "memcpy", "memset", "graph_exec")],
        ),
        "nsys.op": (
            "device BIGINT, process BIGINT, kind VARCHAR, start_ns BIGINT, end_ns BIGINT",
            ops,
        ),
    }
    assert ask("recipes/devices", tables) == [
        (0, "B", "100, 101", 2, 1, 0, 0, 4, 11),
        (1, None, "9", 0, 0, 0, 2, 3, 6),
        (None, None, "100", 0, 0, 1, 0, 1, 2),
    ]
    # boards of one name: devices that no ordinal leads to are of that name too; nothing captured
    tables["nsys.gpu"] = ("gpu_id BIGINT, name VARCHAR", [(1, "C"), (2, "C")])
    tables["nsys.capability"] = (tables["nsys.capability"][0], [("kernel", False)])
    assert [row[1:7] for row in ask("recipes/devices", tables)] == [
        *[("C", "100, 101", *[None] * 4), ("C", "9", *[None] * 4), ("C", "100", *[None] * 4)],
    ]
