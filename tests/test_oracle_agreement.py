"""The product against the oracle on random traces, and against itself on changed ones."""

from __future__ import annotations

import copy
import os
import re
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from conftest import brief
from fuzz import (
    ALL_REDUCE,
    DEEP_EP,
    ELEMENTWISE,
    FLASH,
    GEMM,
    SPIN,
    Row,
    check_seed,
    compare,
    product_answers,
    random_trace,
)
from tracebuilder import COLUMNS, VERSIONS, TraceBuilder, columns_of, table_exists

pytest.importorskip("nsys_sql.session")

ANCHOR: Row = {"anchor": "nvtx:step *"}

# Published or documented table definitions, where a checkout of them lies beside the repository.
DDL = Path(
    os.environ.get("NSYS_EXPORT_DDL", Path(__file__).parents[2] / "shared" / "schema" / "ddl")
)


@pytest.mark.parametrize("block", range(4))
def test_random_traces_agree(block: int, tmp_path: Path) -> None:
    for seed in range(5 * block, 5 * block + 5):
        assert check_seed(seed, tmp_path) == [], f"seed {seed}"


# ------------------------------------------------------------------------------- metamorphic
def _launch(
    trace: TraceBuilder,
    t: int,
    split: str | None,
    place: Row,
    corr: int,
    call: tuple[int, int],
    run: tuple[int, int],
    name: str = GEMM,
    stream: int = 7,
) -> None:
    trace.call(call[0] + t, call[1] + t, corr=corr, pid=place["pid"])
    start, end = run[0] + t, run[1] + t
    if name == split:
        middle = (start + end) // 2
        trace.kernel(start, middle, name, stream=stream, corr=corr, **place)
        start = middle
    trace.kernel(start, end, name, stream=stream, corr=corr, **place)


def training(
    version: str = "2026.2.1",
    *,
    lazy: bool = True,
    shift: int = 0,
    split: str | None = None,
    copies_of_process: int = 1,
) -> TraceBuilder:
    """Three steps of a small training loop, with a collective, copies, a graph and events.

    `split` cuts every kernel of that name in two abutting ones of the same call.
    """
    trace = TraceBuilder(version, lazy=lazy)
    for number in range(copies_of_process):
        pid = 100 + 100 * number
        place: Row = {"pid": pid, "device": number}
        trace.cuda_device(pid, number, number)
        for step in range(3):
            t = shift + 1000 * step + 3 * number
            corr = 100 * step
            launch = partial(_launch, trace, t, split, place)
            trace.nvtx(t, t + 900, f"step {step}", pid=pid)
            corr += 1
            trace.call(t + 1, t + 4, "cudaMemcpyAsync_v3020", corr=corr, pid=pid)
            trace.memcpy(t + 10, t + 40, corr=corr, **place)
            launch(corr + 1, (5, 7), (45, 150))
            launch(corr + 2, (8, 9), (150, 220), FLASH)
            launch(corr + 3, (10, 12), (150, 400 + 50 * step), ALL_REDUCE, 13)
            launch(corr + 4, (14, 40), (230, 300), ELEMENTWISE)
            corr += 5
            sync_id = step + 1
            trace.record(stream=13, event=1, sync_id=sync_id, corr=corr, **place)
            trace.wait(stream=7, event=1, sync_id=sync_id, corr=corr + 1, **place)
            corr += 2
            trace.call(t + 20, t + 21, "cudaMemcpyAsync_v3020", corr=corr, pid=pid)
            trace.memcpy(t + 405 + 50 * step, t + 410 + 50 * step, kind=8, corr=corr, **place)
            launch(corr + 1, (22, 24), (420 + 50 * step, 600), GEMM)
            launch(corr + 2, (640, 660), (670, 690), SPIN)
            launch(corr + 3, (26, 28), (700, 720), DEEP_EP, 21)
            corr += 4
            trace.call(t + 700, t + 705, "cudaGraphLaunch_v10000", corr=corr, pid=pid)
            for node, (start, end) in enumerate([(710, 730), (735, 760), (765, 800)]):
                trace.kernel(
                    t + start, t + end, ELEMENTWISE, corr=corr, node=(4 << 32) + node, **place
                )
    return trace


Answers = dict[str, Any]
ANSWERED: dict[str, Answers] = {}


@pytest.fixture
def answers(tmp_path: Path) -> Callable[..., Answers]:
    """The product's gaps, iterations and budget-windows of a trace; sorted, so comparable."""

    def ask(trace: TraceBuilder, options: Row = ANCHOR, **how: Any) -> Answers:
        # Most tests compare with one of two traces: what was said of a trace is said again.
        asked = repr((trace.version, trace.lazy, trace.rows, options, how))
        if asked in ANSWERED:
            return copy.deepcopy(ANSWERED[asked])
        path = trace.write(tmp_path / "trace.sqlite", **how)
        got, _ = product_answers(path, options)
        for rows in got.values():
            assert isinstance(rows, list), got
            rows.sort(key=lambda row: str(sorted(row.items(), key=str)))
        ANSWERED[asked] = copy.deepcopy(got)
        return got

    return ask


def test_the_training_trace_agrees_with_the_oracle(tmp_path: Path) -> None:
    path = training(copies_of_process=2).write(tmp_path / "trace.sqlite")
    assert compare(path, ANCHOR) == []


@pytest.mark.parametrize("seed", brief(1, [1, 2, 3]))
def test_row_order_means_nothing(answers: Callable[..., Answers], seed: int) -> None:
    trace = training(copies_of_process=2)
    assert answers(trace) == answers(trace, shuffle=seed)


def test_a_table_suffix_means_nothing(answers: Callable[..., Answers]) -> None:
    trace = training(copies_of_process=2)
    assert answers(trace) == answers(trace, suffix="_V2")


def test_empty_tables_mean_nothing(answers: Callable[..., Answers]) -> None:
    assert answers(training()) == answers(training(lazy=False))


@pytest.mark.parametrize("shift", brief(2, [-123_456_789, 1 << 60, -1_700]))
def test_a_shift_of_all_times_shifts_only_times(
    answers: Callable[..., Answers], shift: int
) -> None:
    def shifted(answer: Answers) -> Answers:
        times = re.compile(r"^(start|end|gap_start|gap_end|issue|producer_start|producer_end)_ns$")
        return {
            recipe: sorted(
                str(
                    {
                        name: value + shift if times.match(name) and value is not None else value
                        for name, value in row.items()
                    }
                )
                for row in rows
            )
            for recipe, rows in answer.items()
        }

    moved = answers(training(shift=shift))
    plain = shifted(answers(training()))
    assert plain == {recipe: sorted(str(row) for row in rows) for recipe, rows in moved.items()}


@pytest.mark.parametrize("name", brief(3, [GEMM, ALL_REDUCE, SPIN, FLASH, ELEMENTWISE, DEEP_EP]))
def test_splitting_a_kernel_changes_only_what_counts_kernels(
    answers: Callable[..., Answers], name: str
) -> None:
    # Two abutting halves of one call are one item: every union, the bounds of the gaps, their
    # cut and their evidence must stay.  What may change is where the producer starts, and with
    # it the shadow of the starved part.
    may_change = {"producer_start_ns", "launch_starved_shadowed_ns"}

    def kept(answer: Answers) -> Answers:
        return {
            recipe: sorted(
                str({column: value for column, value in row.items() if column not in may_change})
                for row in rows
            )
            for recipe, rows in answer.items()
        }

    assert kept(answers(training())) == kept(answers(training(split=name)))


def test_a_second_process_with_the_same_ids_changes_nothing_on_the_first_device(
    answers: Callable[..., Answers],
) -> None:
    both = answers(training(copies_of_process=2))
    first = {recipe: [row for row in rows if row["device"] == 0] for recipe, rows in both.items()}
    assert first == answers(training())


# Tables that the analyses lean on, and those without which there is no anchor or no name.
LEANT_ON = tuple(
    f"CUPTI_ACTIVITY_KIND_{name}"
    for name in ("RUNTIME", "SYNCHRONIZATION", "CUDA_EVENT", "MEMCPY", "MEMSET")
)
NEEDED = ("StringIds", "CUPTI_ACTIVITY_KIND_KERNEL", "NVTX_EVENTS")


@pytest.mark.parametrize(
    "table",
    brief(5, [*LEANT_ON, *(each for each in COLUMNS if each not in (*LEANT_ON, *NEEDED))]),
)
def test_every_table_but_the_kernels_may_be_missing(table: str, tmp_path: Path) -> None:
    trace = training(copies_of_process=2, lazy=False)
    path = trace.write(tmp_path / "trace.sqlite", drop=[table])
    assert compare(path, ANCHOR) == []


def test_kernel_anchors_need_no_ranges(tmp_path: Path) -> None:
    path = training().write(tmp_path / "trace.sqlite", drop=["NVTX_EVENTS"])
    assert compare(path, {"anchor": f"kernel:{FLASH}"}) == []


@pytest.mark.parametrize(
    "version", brief(4, sorted(VERSIONS, key=lambda each: VERSIONS.index(each) % 3))
)
def test_every_version_agrees(version: str, tmp_path: Path) -> None:
    path = training(version, copies_of_process=2).write(tmp_path / "trace.sqlite")
    assert compare(path, ANCHOR) == []


# ------------------------------------------------------------------------- the tests' own parts
@pytest.mark.parametrize("version", VERSIONS)
def test_the_builder_lays_out_columns_as_the_exporter_does(version: str) -> None:
    definitions = DDL / f"{version}.sql"
    if not definitions.exists():
        pytest.skip("no table definitions at hand")
    connection = sqlite3.connect(":memory:")
    connection.executescript(definitions.read_text())
    for table in COLUMNS:
        real = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        own = list(columns_of(table, version)) if table_exists(table, version) else []
        # Of the GPU's description only what analyses read is written.
        assert [name for name in real if table != "TARGET_INFO_GPU" or name in own] == own


def test_a_seed_is_a_trace() -> None:
    first, options = random_trace(7)
    again, same_options = random_trace(7)
    assert (first.rows, options) == (again.rows, same_options)
