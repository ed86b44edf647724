"""The simulator keeps its own rules, and what is measured on its exports is what it planted."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import nsys_sql
from conftest import brief
from oracle import Oracle
from simulator import (
    EXAMPLE,
    EXAMPLE_HEADER,
    KERNELS,
    MS,
    SCENARIOS,
    Truth,
    megatron_like,
    simulate,
    simulate_ranks,
    sql_text,
)
from tracebuilder import VERSIONS

ROOT = Path(__file__).parents[1]
ROLE_OF_NAME = {name: role for name, _, role, _, _ in KERNELS.values()}
# no event rows; waits without ids; a device table and ids; the newest
SOME_VERSIONS = ("2020.3", "2022.4.2", "2025.1.3", "2026.4")


def classify(name: str | None) -> tuple[str, str]:
    """Class and role of a simulated kernel, by what the simulator says of itself."""
    return "any", ROLE_OF_NAME[name] if name else "compute"


def rows(path: Path, query: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def assert_budget(found: list[dict[str, int]], truth: Truth) -> None:
    """Every metric of every window, to the nanosecond."""
    assert {(row["device"], row["iteration"]) for row in found} == set(truth.budget)
    for row in found:
        expected = truth.budget[row["device"], row["iteration"]]
        assert {metric: row[f"{metric}_ns"] for metric in expected} == expected


# ---- the simulator by itself


def test_same_arguments_same_export() -> None:
    scenario = replace(SCENARIOS["tp_overlap"], steps=2, layers=2)
    assert sql_text(scenario, 5, "2026.2.1") == sql_text(scenario, 5, "2026.2.1")
    assert sql_text(scenario, 5, "2026.2.1") != sql_text(scenario, 6, "2026.2.1")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", SCENARIOS)
def test_truth_adds_up(name: str, version: str) -> None:
    truth = simulate(replace(SCENARIOS[name], steps=2), 1, version)
    for m in truth.budget.values():
        assert 0 <= m["compute_busy"] <= m["noncomm_busy"] <= m["device_busy"] <= m["iteration"]
        assert m["occupied_not_computing"] + m["device_idle"] == m["compute_absent"]
        assert 0 <= m["comm_exposed"] <= m["comm_busy"]
        assert 0 <= m["comm_blocking"] <= m["blocking"]
        assert 0 <= m["launch_starved_shadowed"] <= m["launch_starved"]
        assert 0 <= m["unattributed"] <= MS // 2


@pytest.mark.parametrize("name", SCENARIOS)
def test_streams_are_fifo_and_threads_are_serial(name: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.sqlite"
    simulate(SCENARIOS[name], 2, "2026.2.1", path)
    for table, owner in (("KERNEL", "globalPid, streamId"), ("RUNTIME", "globalTid")):
        over = f"OVER (PARTITION BY {owner} ORDER BY correlationId, start)"
        query = f"""
            SELECT count(*) FROM (
                SELECT start, lag("end") {over} AS before FROM CUPTI_ACTIVITY_KIND_{table}
            ) WHERE start < before
        """
        assert rows(path, query) == [(0,)], table
    early = """
        SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL AS k
        JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS r
            ON r.correlationId = k.correlationId AND r.globalTid >> 24 = k.globalPid >> 24
        WHERE k.start < r."end"
    """
    assert rows(path, early) == [(0,)]


@pytest.mark.parametrize("version", brief(2, SOME_VERSIONS))
@pytest.mark.parametrize("name", SCENARIOS)
def test_truth_is_what_the_rows_say(name: str, version: str, tmp_path: Path) -> None:
    """The simulator knows its decisions, the oracle reads the rows: they must agree."""
    path = tmp_path / "trace.sqlite"
    truth = simulate(replace(SCENARIOS[name], steps=3), 3, version, path)
    oracle = Oracle(path, classify)
    assert len(oracle.all_gaps) == truth.gaps
    windows = oracle.windows(anchor=truth.anchor)
    assert {w.status for w in windows} == {"steady"}
    assert_budget(oracle.budget_rows(windows), truth)


PLANTED = {
    "late_collective": 4 * MS,
    "host_stall": 8 * MS,
    "slow_copy": 4 * 48_000_000 // 25,
    "deepep": 4 * 750_000 * 3 // 4,
    "pipeline": 3 * MS,
    "relay": MS,
    "launch_bound": MS,
}


@pytest.mark.parametrize("name", PLANTED)
def test_the_planted_trouble_is_there(name: str) -> None:
    """On some device, each step loses what was planted to the cause that was planted."""
    truth = simulate(name, 4)
    other = max(("launch_starved", "blocking"), key=lambda m: m != truth.cause.metric)
    windows = [key for key in truth.budget if key[0] == 0]
    for key in windows:
        assert truth.cause.ns[key] >= PLANTED[name]
        assert truth.cause.ns[key] > 3 * truth.budget[key][other]


def test_megatron_like_scales() -> None:
    for wanted in (1_000, 5_000):
        truth = simulate(megatron_like(wanted, steps=1))
        assert 0.7 * wanted < truth.kernels / 2 < 1.3 * wanted


def test_ranks_keep_their_own_clocks(tmp_path: Path) -> None:
    offsets = (0, 2_500_000, -40_000)
    scenario = replace(
        SCENARIOS["tp_overlap"],
        ranks=3,
        steps=3,
        straggler_ns=3 * MS,
        clock_offsets_ns=offsets,
    )
    truths = simulate_ranks(scenario, 0, "2026.2.1", tmp_path)
    assert (tmp_path / "ranks.yaml").read_text().count("trace:") == 3
    ends = []
    for rank, truth in truths.items():
        path = tmp_path / f"rank{rank}.sqlite"
        [(epoch,)] = rows(path, "SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME")
        query = """
            SELECT k."end" FROM CUPTI_ACTIVITY_KIND_KERNEL AS k
            JOIN StringIds AS s ON s.id = k.shortName
            WHERE s.value LIKE 'nccl%AllReduce%' ORDER BY k.start
        """
        ends.append([epoch + end + truth.offsets[rank] for (end,) in rows(path, query)])
        oracle = Oracle(path, classify)
        assert_budget(oracle.budget_rows(oracle.windows(anchor=truth.anchor)), truth)
    spread = [max(same) - min(same) for same in zip(*ends, strict=True)]
    assert len(spread) == 3 * 12
    assert max(spread) < 1_000  # a collective ends on all of its ranks together


# ---- files made with it


def test_the_example_is_what_the_simulator_writes() -> None:
    text = (ROOT / "fixtures" / "example.sql").read_text()
    assert text == EXAMPLE_HEADER + sql_text(EXAMPLE, 1, "2026.2.1")
    assert len(text) < 400_000


@pytest.mark.parametrize("path", sorted((ROOT / "fixtures").glob("*.sql")), ids=lambda p: p.stem)
def test_fixture_says_how_to_read_it(path: Path, tmp_path: Path) -> None:
    text = path.read_text()
    assert text.startswith("-- options: --anchor ")
    assert text.isascii()
    assert path.stem == "example" or len(text) < 60_000
    target = tmp_path / "fixture.sqlite"
    connection = sqlite3.connect(target)
    connection.executescript(text)
    connection.close()
    untyped = [
        (table, column)
        for (table,) in rows(target, "SELECT name FROM sqlite_master WHERE type = 'table'")
        for _, column, kind, *_ in rows(target, f"PRAGMA table_info({table})")
        if not kind
    ]
    assert not untyped


@pytest.mark.parametrize("version", ["2022.4.2", "2025.1.3", "2026.2.1"])
def test_big_traces_are_plausible(version: str, tmp_path: Path) -> None:
    path = tmp_path / "big.sqlite"
    script = ROOT / "benchmarks" / "make_trace.py"
    arguments = [str(path), "--kernels", "4000", "--devices", "2", "--version", version]
    subprocess.run([sys.executable, str(script), *arguments], check=True, stdout=subprocess.DEVNULL)
    [(kernels,)] = rows(path, "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL")
    [(calls,)] = rows(path, "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME")
    assert kernels == 4000
    assert kernels < calls < 1.2 * kernels
    oracle = Oracle(path, lambda name: ("x", "comm" if "nccl" in (name or "") else "compute"))
    compute = sum(op.kind == "kernel" and op.role == "compute" for op in oracle.operations)
    assert len(oracle.all_gaps) > 0.97 * compute
    evidence = {gap.evidence for gap in oracle.all_gaps}
    assert evidence <= {"none", "resolved", "inferred"}
    assert any(gap.labels for gap in oracle.all_gaps)
    assert any(gap.launch_starved[1] > gap.launch_starved[0] for gap in oracle.all_gaps[1:])


# ---- the product


VERSION_MATTERS = ("relay", "two_processes", "graphs_whole", "late_collective")
PRODUCT_CASES = [(name, "2026.2.1") for name in SCENARIOS]
PRODUCT_CASES += brief(
    4, [(name, version) for version in SOME_VERSIONS for name in VERSION_MATTERS]
)


@pytest.mark.parametrize(("name", "version"), PRODUCT_CASES)
def test_the_product_finds_it(name: str, version: str, tmp_path: Path) -> None:
    """Every budget metric of every window is the simulator's, and so is the planted cause."""
    path = tmp_path / "trace.sqlite"
    truth = simulate(replace(SCENARIOS[name], steps=3), 6, version, path)
    with nsys_sql.open(path, anchor=truth.anchor) as model:
        relation = model.run("budget-windows")
        found = [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]
        gaps = model.run("gaps").fetchall()
    assert_budget(found, truth)
    assert len(gaps) == truth.gaps
    for row in found:
        key = (row["device"], row["iteration"])
        if truth.cause.role == "comm":
            assert row["comm_blocking_ns"] == truth.cause.ns[key]
        elif truth.cause.role:
            other = sum(ns for role, ns in truth.labels[key].items() if role != truth.cause.role)
            assert row["blocking_ns"] - other == truth.cause.ns[key]
        elif truth.cause.metric:
            assert row[f"{truth.cause.metric}_ns"] == truth.cause.ns[key]


def test_the_product_reads_the_example(tmp_path: Path) -> None:
    path = tmp_path / "trace.sqlite"
    truth = simulate(EXAMPLE, 1, "2026.2.1", path)
    with nsys_sql.open(path, anchor=truth.anchor) as model:
        relation = model.run("budget-windows")
        found = [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]
    assert_budget(found, truth)
    stalled = [truth.budget[0, step] for step in (3, 7)]
    assert all(m["launch_starved"] > 5 * MS for m in stalled)
    assert all(m["comm_exposed"] - m["comm_blocking"] > 2 * MS for m in stalled)
