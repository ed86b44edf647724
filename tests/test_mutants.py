"""The mutants of tests/mutate.py: what is made of a text, and that the list of equivalents is true.

Further below are tests that a surviving mutant asked for: each states a rule that no other test
would have missed.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain, count, pairwise

import pytest
import yaml

import nsys_sql
from fuzz import (
    ALL_REDUCE,
    DEEP_EP,
    ELEMENTWISE,
    FLASH,
    GEMM,
    compare,
    random_trace,
    run_product,
)
from mutate import EQUIVALENT, ROOT, catalogue, in_turn, sampled, score
from sqlmutants import mutants
from tracebuilder import TraceBuilder


def made(sql, kind):
    """What becomes of a text, for one kind of change."""
    return [
        " ".join(mutant.apply(sql).split()) for mutant in mutants("x", sql) if mutant.kind == kind
    ]


@pytest.mark.parametrize(
    ("kind", "sql", "becomes"),
    [
        ("comparison", "SELECT a <= b", ["SELECT a < b"]),
        ("comparison", "SELECT a = b", ["SELECT a <> b"]),
        ("comparison", "SELECT a >> 24, a << 2", []),
        ("and/or", "CREATE OR REPLACE MACRO f(a) AS a", []),
        ("and/or", "SELECT a AND b OR c", ["SELECT a OR b OR c", "SELECT a AND b AND c"]),
        ("and/or", "SELECT x BETWEEN 1 AND y", []),
        ("and/or", "SELECT x BETWEEN 1 AND y AND z", ["SELECT x BETWEEN 1 AND y OR z"]),
        ("sign", "SELECT a + b, -c", ["SELECT a - b, -c"]),
        ("sign", "SELECT f(a) - 1 FROM t WHERE a = -1", ["SELECT f(a) + 1 FROM t WHERE a = -1"]),
        (
            "min/max",
            "SELECT least(a, max(b))",
            ["SELECT greatest(a, max(b))", "SELECT least(a, min(b))"],
        ),
        ("lag/lead", "SELECT lag(a) OVER w", ["SELECT lead(a) OVER w"]),
        (
            "coalesce",
            "SELECT coalesce(a, f(b, c))",
            ["SELECT coalesce(f(b, c))", "SELECT coalesce(a)"],
        ),
        ("nulls first/last", "FROM t ORDER BY a NULLS LAST", ["FROM t ORDER BY a NULLS FIRST"]),
        ("order", "FROM t ORDER BY a DESC", ["FROM t ORDER BY a ASC"]),
        ("order", "FROM t ORDER BY a NULLS LAST", ["FROM t ORDER BY a DESC NULLS LAST"]),
        ("order key dropped", "FROM t ORDER BY a, b", ["FROM t ORDER BY b", "FROM t ORDER BY a"]),
        ("left join", "FROM a LEFT JOIN b ON c", ["FROM a INNER JOIN b ON c"]),
        ("left join", "FROM a ASOF LEFT JOIN b ON c", ["FROM a ASOF JOIN b ON c"]),
        ("union all", "FROM a UNION ALL FROM b", ["FROM a UNION FROM b"]),
        ("is not", "SELECT a IS NULL", ["SELECT a IS NOT NULL"]),
        ("is not", "SELECT a IS NOT DISTINCT FROM b", ["SELECT a IS DISTINCT FROM b"]),
        ("not dropped", "SELECT NOT a", ["SELECT a"]),
        ("constant", "SELECT a + 2", ["SELECT a + (1)", "SELECT a + 3"]),
        ("constant", "SELECT a::DECIMAL(18, 3), true", ["SELECT a::DECIMAL(18, 3), false"]),
        ("constant", "FROM t WHERE EXISTS (SELECT 1 FROM u)", []),
        (
            "frame",
            "SELECT f() OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)",
            [
                "SELECT f() OVER (ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
                "SELECT f() OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)",
            ],
        ),
        (
            "condition dropped",
            "FROM t WHERE a BETWEEN 1 AND 2 AND (b OR c) GROUP BY d",
            [
                "FROM t WHERE true AND (b OR c) GROUP BY d",
                "FROM t WHERE a BETWEEN 1 AND 2 AND true GROUP BY d",
            ],
        ),
        ("condition dropped", "FROM t WHERE a OR b", []),
        ("condition dropped", "FROM t WHERE a IS DISTINCT FROM b", ["FROM t WHERE true"]),
        (
            "condition dropped",
            "SELECT x WHERE (a AND b) IS NOT TRUE",
            [
                "SELECT x WHERE true",
                "SELECT x WHERE (true AND b) IS NOT TRUE",
                "SELECT x WHERE (a AND true) IS NOT TRUE",
            ],
        ),
        (
            "partition key dropped",
            "SELECT f() OVER (PARTITION BY a, b ORDER BY c)",
            [
                "SELECT f() OVER (PARTITION BY b ORDER BY c)",
                "SELECT f() OVER (PARTITION BY a ORDER BY c)",
            ],
        ),
        ("partition key dropped", "SELECT f() OVER (PARTITION BY a)", ["SELECT f() OVER ()"]),
        ("group key dropped", "FROM t GROUP BY a, b", ["FROM t GROUP BY b", "FROM t GROUP BY a"]),
        (
            "branch dropped",
            "SELECT CASE WHEN a THEN 1 WHEN b THEN 2 ELSE 3 END",
            [
                "SELECT CASE WHEN b THEN 2 ELSE 3 END",
                "SELECT CASE WHEN a THEN 1 ELSE 3 END",
                "SELECT CASE WHEN a THEN 1 WHEN b THEN 2 END",
            ],
        ),
        ("branch dropped", "SELECT sum(CASE WHEN a THEN b END)", ["SELECT sum((NULL))"]),
        ("distinct dropped", "SELECT count(DISTINCT a)", ["SELECT count( a)"]),
    ],
)
def test_what_is_made_of_a_text(kind, sql, becomes):
    assert Counter(made(sql, kind)) == Counter(becomes)


def test_headers_and_texts_are_left_alone():
    sql = "-- x — is 1 = 1?\n-- @invariant a b < 2\nSELECT 'a < 1 AND b' AS \"c = 1\";"
    assert mutants("x", sql) == []


def test_a_mutant_shows_its_lines():
    sql = "SELECT a\nFROM t\nWHERE a <\n    b;"
    (mutant,) = [each for each in mutants("x", sql) if each.kind == "comparison"]
    assert (mutant.line, mutant.shown(sql)) == (3, ("WHERE a <", "WHERE a <="))


def test_every_file_has_mutants_and_a_sample_is_part_of_them():
    for file, text in catalogue(ROOT, ["sql/steps", "sql/invariants"]).items():
        found = mutants(file, text)
        assert len({each.apply(text) for each in found} - {text}) == len(found), file
        part = sampled(found, 0.3, 1)
        assert part == sampled(found[::-1], 0.3, 1) and set(part) <= set(found)
        assert sampled(found, 0.1, 1) == part[: len(sampled(found, 0.1, 1))]


def test_every_equivalent_is_still_a_mutant_with_a_reason():
    listed = yaml.safe_load(EQUIVALENT.read_text(encoding="utf-8"))
    texts = catalogue(ROOT, sorted({each["file"] for each in listed}))
    shown = {file: {m.shown(text) for m in mutants(file, text)} for file, text in texts.items()}
    for each in listed:
        becomes = each["becomes"] if isinstance(each["becomes"], list) else [each["becomes"]]
        for new in becomes:
            assert (each["was"], new) in shown[each["file"]], (each["file"], each["was"], new)
        lines = [" ".join(line.split()) for line in texts[each["file"]].splitlines()]
        if then := each.get("then"):  # which of several such lines it is
            assert (each["was"], then) in pairwise(lines), (each["file"], then)
        assert len(each["reason"].split()) > 3


def test_the_score_counts_what_it_says():
    def outcome(result, folder="steps"):
        return {
            "file": f"sql/{folder}/x.sql",
            "line": 1,
            "start": next(places),
            "kind": "constant",
            "was": "1",
            "becomes": "2",
            "result": result,
            "passed": ["a", "b", "c"],
            "of": 5,
        }

    places = count()
    found = [*map(outcome, ["killed", "killed", "timeout", "survived", "invalid"])]
    found += [{**found[0], "result": "survived"}, found[0]]  # told twice: the last one counts
    of = sum(len(mutants(*file)) for file in catalogue(ROOT, ["sql/steps"]).items())
    told = score(found)
    assert f"| steps | {of} | 4 | 2 | 1 | 1 | 0 | 75 % | 30 %-95 % |" in told
    assert "sql/steps/x.sql:1: constant (3 of 5 tests)" in told


def test_a_run_takes_of_every_folder_in_turn():
    found = [
        m for file in catalogue(ROOT, ["sql/notes", "sql/history"]).items() for m in mutants(*file)
    ]
    taken = [each.file.split("/")[1] for each in in_turn(sampled(found, 1, 1), "2,notes=3")]
    assert Counter(taken) == {"notes": 3, "history": 2} and taken[-1] == "notes"


# ------------------------------------------------------------------ what survivors asked for
def relation(tmp_path, trace, sql):
    with nsys_sql.open(trace.write(tmp_path / "trace.sqlite")) as model:
        return model.query(sql).fetchall()


def test_a_stream_priority_is_read_as_signed(tmp_path):
    trace = TraceBuilder().kernel(0, 1)
    for stream, exported in ((7, 0), (8, (1 << 32) - 5), (9, 1 << 31), (10, (1 << 31) - 1)):
        trace.raw(
            "TARGET_INFO_CUDA_STREAM",
            streamId=stream,
            processId=100,
            contextId=1,
            priority=exported,
        )
    rows = relation(tmp_path, trace, "SELECT stream_id, priority FROM cuda_stream ORDER BY ALL")
    assert rows == [(7, 0), (8, -5), (9, -(1 << 31)), (10, (1 << 31) - 1)]


def test_a_payload_is_its_text_or_the_text_it_names(tmp_path):
    trace = TraceBuilder().kernel(0, 1).nvtx(0, 1, "bare")
    trace.raw("NVTX_EVENTS", start=0, end=1, eventType=59, text="own", jsonText="{1}")
    named = trace.string("{2}")
    trace.raw("NVTX_EVENTS", start=0, end=1, eventType=59, text="named", jsonTextId=named)
    rows = relation(
        tmp_path,
        trace,
        "SELECT n.text, p.payload FROM nvtx_payload AS p INNER JOIN nvtx AS n USING (row_id)"
        " ORDER BY ALL",
    )
    assert rows == [("named", "{2}"), ("own", "{1}")]


# ---------------------------------------------------------- what happens on one device stays there
def busy_steps(trace, pid, device, begin=0, stretch=1, period=1000):
    """Three steps with two collectives, copies, a graph, events, ranges and a late launch.

    Every number but the ids is stretched: two devices with other stretches share all ids and no
    time.
    """
    place = {"pid": pid, "device": device}
    for step in range(3):
        t, corr = begin + period * step, 100 * step

        def at(ns, t=t):
            return t + ns * stretch

        def launch(number, call, run, name=GEMM, stream=7, at=at, corr=corr, **more):
            trace.call(at(call[0]), at(call[1]), corr=corr + number, pid=pid)
            start, end = at(run[0]), at(run[1])
            trace.kernel(start, end, name, stream=stream, corr=corr + number, **place, **more)

        trace.nvtx(at(0), at(900), f"step {step}", pid=pid)
        for first, last, text in ((2, 30, "forward"), (4, 9, "layer"), (31, 60, "backward")):
            trace.nvtx(at(first), at(last), text, pid=pid)
        trace.call(at(1), at(4), "cudaMemcpyAsync_v3020", corr=corr + 1, pid=pid)
        trace.memcpy(at(10), at(40), corr=corr + 1, **place)
        launch(2, (5, 7), (45, 150))
        launch(3, (10, 12), (150, 400 + 50 * step // stretch), ALL_REDUCE, 13)
        launch(4, (14, 40), (230, 300), ELEMENTWISE)
        trace.record(stream=13, event=1, sync_id=step + 1, corr=corr + 5, **place)
        trace.wait(stream=7, event=1, sync_id=step + 1, corr=corr + 6, **place)
        launch(7, (41, 43), (460, 600), FLASH)
        trace.call(at(44), at(620), "cudaStreamSynchronize_v3020", corr=corr + 8, pid=pid)
        launch(9, (640, 660), (670, 690))
        launch(10, (50, 52), (500, 560), DEEP_EP, 21)
        trace.call(at(700), at(705), "cudaGraphLaunch_v10000", corr=corr + 11, pid=pid)
        for node, (first, last) in enumerate([(710, 730), (735, 760), (765, 800)]):
            run, graph = (at(first), at(last)), (4 << 32) + node
            trace.kernel(*run, ELEMENTWISE, corr=corr + 11, node=graph, **place)
        trace.call(at(710), at(715), "cudaMemsetAsync_v3020", corr=corr + 12, pid=pid)
        trace.memset(at(820), at(830), corr=corr + 12, stream=21, **place)
    trace.cuda_device(pid, device, device)
    return trace


# Answers about a device that nothing on another device may change. Elsewhere other devices are
# meant to count: the anchor that fits all of them, the names of the trace, what was captured.
OF_A_DEVICE = (
    *("iterations", "budget", "budget-windows", "gaps", "communication", "blockers", "copies"),
    *("streams", "host-stalls", "launches", "nvtx", "phases", "top-gaps", "opportunities"),
    *("step-timeline", "kernels", "trace-events"),
)


@pytest.fixture(scope="module")
def alone_and_beside(tmp_path_factory):
    """The same process and device alone, and beside another one with the same ids."""
    folder = tmp_path_factory.mktemp("beside")
    alone = busy_steps(TraceBuilder(), 100, 0).write(folder / "alone.sqlite")
    both = busy_steps(TraceBuilder(), 100, 0)
    busy_steps(both, 200, 1, begin=137, stretch=2, period=1900)
    beside = both.write(folder / "beside.sqlite", shuffle=5)
    options = {"anchor": "nvtx:step *", "device": 0}
    with nsys_sql.open(alone, **options) as first, nsys_sql.open(beside, **options) as second:
        yield first, second


@pytest.mark.parametrize("recipe", OF_A_DEVICE)
def test_another_device_with_the_same_ids_changes_no_answer(recipe, alone_and_beside):
    def answer(model):
        result = model.result(recipe)
        names = [column.name for column in result.columns]
        rows = [dict(zip(names, row, strict=True)) for row in result.rows]
        assert all(check.status != "fail" for check in result.checks)
        return [row for row in rows if row.get("device", 0) == 0]

    first, second = map(answer, alone_and_beside)
    assert first and first == second


# ------------------------------------------------- what crosses a window's border is cut, not lost
@pytest.mark.parametrize("seed", [28, 29])
def test_every_audit_holds_on_traces_that_fit_no_program(seed, tmp_path):
    trace, options = random_trace(seed)
    asked = ("blockers", "communication", "host-stalls", "nvtx", "phases", "streams", "copies")
    rows = 0
    with nsys_sql.open(trace.write(tmp_path / "trace.sqlite"), **options) as model:
        for recipe in asked:
            result = model.result(recipe)
            assert [c for c in result.checks if c.status == "fail"] == [], recipe
            rows += len(result.rows)
    assert rows > 15


# --------------------------------------------------------------- traces that no other test is like
TIMES = ("start", "end", "timestamp", "duration")


@pytest.mark.parametrize("seed", [8, 20, 28, 29, 41])
def test_random_traces_agree_on_a_scale_of_milliseconds(seed, tmp_path):
    """Random traces last microseconds; some SQL looks into cells of a millisecond first."""
    trace, options = random_trace(seed)
    for row in chain.from_iterable(trace.rows.values()):
        row.update({name: row[name] * 300_007 for name in TIMES if row.get(name) is not None})
    assert compare(trace.write(tmp_path / "trace.sqlite"), options) == []


def test_rows_without_a_context_are_those_of_one(tmp_path):
    """A NULL is a context like any other: the same rows with and without it give the same gaps."""
    answers = []
    for context in (1, None):
        trace = busy_steps(TraceBuilder(), 100, 0)
        for row in chain.from_iterable(trace.rows.values()):
            if "contextId" in row:
                row["contextId"] = context
        path = trace.write(tmp_path / f"{context}.sqlite")
        answers.append(run_product(path, "gaps", anchor=f"kernel:{FLASH}"))
    assert answers[0] and answers[0] == answers[1]


@pytest.mark.parametrize("swapped", [False, True])
def test_of_two_producers_that_end_together_the_lowest_correlation_id_counts(swapped, tmp_path):
    # A 0-10; X (corr 5, or 3) 12-40 on stream 13, Y (corr 3, or 5) 20-40 on 21; K waits for both
    first, second = (3, 5) if swapped else (5, 3)
    trace = TraceBuilder().call(0, 1, corr=1).kernel(0, 10, corr=1)
    trace.call(2, 3, corr=first).kernel(12, 40, ALL_REDUCE, stream=13, corr=first)
    trace.call(4, 5, corr=second).kernel(20, 40, DEEP_EP, stream=21, corr=second)
    for stream, corr in ((13, 6), (21, 8)):
        trace.record(stream=stream, event=stream, sync_id=corr, corr=corr)
        trace.wait(stream=7, event=stream, sync_id=corr, corr=corr + 1)
    trace.call(6, 7, corr=10).kernel(50, 60, GEMM, corr=10)
    path = trace.write(tmp_path / "trace.sqlite")
    gap = max(run_product(path, "gaps", anchor="kernel:*"), key=lambda row: row["gap_end_ns"])
    assert gap["gap_end_ns"] == 50
    assert gap["producer_start_ns"] == (12 if swapped else 20)  # the one that has corr 3


@pytest.mark.parametrize(
    ("streams", "contexts"), [((7, 21), (1, 1)), ((21, 7), (1, 1)), ((7, 21), (2, 1))]
)
def test_of_kernels_of_one_call_that_start_together_context_then_stream_decides(
    streams, contexts, tmp_path
):
    trace = TraceBuilder().call(0, 1, corr=1).kernel(0, 10, corr=1).call(2, 3, corr=2)
    for name, stream, context in zip((GEMM, FLASH), streams, contexts, strict=True):
        trace.kernel(50, 60, name, stream=stream, context=context, corr=2)
    path = trace.write(tmp_path / "trace.sqlite")
    gap = max(run_product(path, "gaps", anchor="kernel:*"), key=lambda row: row["gap_end_ns"])
    first = (contexts[0], streams[0]) < (contexts[1], streams[1])
    assert gap["next_kernel"] == (GEMM if first else FLASH)


def test_what_reaches_into_a_window_adds_to_an_equal_length_inside_it(tmp_path):
    # compute and a collective 10-30 reach 10 into the window 20-60, others 40-50 are 10 inside it
    trace = TraceBuilder().nvtx(20, 60, "s")
    for corr, (start, end) in enumerate([(10, 30), (40, 50)]):
        trace.call(2 * corr, 2 * corr + 1, corr=corr + 1)
        trace.kernel(start, end, corr=corr + 1)
        trace.kernel(start, end, ALL_REDUCE, stream=13, corr=corr + 11)
    path = trace.write(tmp_path / "trace.sqlite")
    (window,) = run_product(path, "budget-windows", anchor="nvtx:s")
    busy = [window[f"{name}_busy_ns"] for name in ("device", "noncomm", "comm", "compute")]
    assert busy == [20, 20, 20, 20]
