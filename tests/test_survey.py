"""Several ranks: the method recomputed by hand over the exports, and scenarios with a known answer.

The recomputation reads the SQLite files with nothing but Python: windows from NVTX ranges, the
collective from the kernel's name, ordinals, matches, offsets, transfer proxy and jitter wait.
"""

import json
import os
import re
import sqlite3
import statistics
import warnings
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

import rankbuilder
from conftest import brief, long_test
from nsys_sql import partition, ranks, report_html, survey, survey_report, tasks
from nsys_sql.cli import execute
from nsys_sql.errors import NsysSqlError, UsageError
from nsys_sql.options import Options
from rankbuilder import DP, EP, MS, TP, US, Run, buckets, grid, pipeline, stages, transformer
from simulator import SCENARIOS, Scenario, simulate_ranks

ANCHOR = Options(anchor="nvtx:step *")
TWO_HOSTS = ["a"] * 4 + ["b"] * 4


def opened(folder, mapping="ranks.yaml", options=ANCHOR, **more):
    """A survey of all exports of a folder, partitions made in this process."""
    found = ranks.read(folder / mapping) if mapping else None
    traces = found.traces if found else sorted(folder.glob("*.sqlite"))
    outcomes = tasks.collect(traces, folder / "parts", options, jobs=1)
    assert [each.failure for each in outcomes] == [None] * len(traces)
    parts = {each.partition.key: each.partition for each in outcomes}
    return survey.Survey(list(parts.values()), found, **more)


def rows(opened_survey, name):
    return opened_survey.result(name).dicts()


def finding(opened_survey, name):
    return [row for row in rows(opened_survey, "verdict") if row["finding"] == name]


# ---------------------------------------------------------------- recomputed by hand


def read_rank(path, pid):
    """(windows, collectives) of an export on its wall clock: nothing of the product is used."""
    con = sqlite3.connect(path)
    (utc,) = con.execute("SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME").fetchone()
    ranges = con.execute(
        "SELECT e.start, e.end FROM NVTX_EVENTS e LEFT JOIN StringIds s ON s.id = e.textId "
        "WHERE coalesce(e.text, s.value) LIKE 'step %' AND (e.globalTid >> 24) & 16777215 = ? "
        "ORDER BY e.start",
        (pid,),
    ).fetchall()
    kernels = con.execute(
        "SELECT k.start, k.end, k.streamId, k.correlationId, s.value "
        "FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.demangledName "
        "WHERE (k.globalPid >> 24) & 16777215 = ? ORDER BY k.correlationId",
        (pid,),
    ).fetchall()
    con.close()
    found = []
    for start, end, stream, _, name in kernels:
        kinds = ("AllReduce", "AllGather", "ReduceScatter", "SendRecv", "dispatch", "combine")
        kind = next((kind for kind in kinds if kind in name), None)
        if kind is None:
            continue
        for at, (first, last) in enumerate(ranges):
            if first <= start < last:
                found.append((at, stream, kind, utc + start, utc + end))
    return [(utc + s, utc + e) for s, e in ranges], found


def brute_force(folder):
    """METHOD section 9 over the files of a folder: matches, offsets, proxies and waits."""
    mapping = yaml.safe_load((folder / "ranks.yaml").read_text())
    entries = {entry["rank"]: entry for entry in mapping["ranks"]}
    data = {rank: read_rank(folder / e["trace"], 4000 + rank) for rank, e in entries.items()}
    instances = defaultdict(dict)  # (kind, name, window, type, ordinal) -> rank -> (start, end)
    counts = defaultdict(lambda: defaultdict(int))
    for rank, entry in entries.items():
        for window, stream, kind, start, end in data[rank][1]:
            for group, name in entry["groups"].items():
                if mapping["groups"][group]["stream"] == stream:
                    key = (group, name, window, kind)
                    instances[(*key, counts[key][rank])][rank] = (start, end)
                    counts[key][rank] += 1
    members = defaultdict(set)
    for rank, entry in entries.items():
        for group, name in entry["groups"].items():
            members[group, name].add(rank)
    matched = {}
    for key, who in instances.items():
        of = counts[key[:4]]
        if set(of) == members[key[:2]] and len(set(of.values())) == 1 and len(of) > 1:
            matched[key] = who
    unmatched = sum(len(who) for key, who in instances.items() if key not in matched)
    home = entries[min(entries)]["host"]
    apart = defaultdict(list)
    for who in matched.values():
        there = sorted(rank for rank in who if entries[rank]["host"] == home)
        if there:
            for rank, (_, end) in who.items():
                if entries[rank]["host"] != home:
                    apart[entries[rank]["host"]].append(who[there[0]][1] - end)
    offsets = {host: statistics.median(values) for host, values in apart.items()}
    waits, proxies = defaultdict(list), {}
    for key, who in matched.items():
        proxies[key] = min(end - start for start, end in who.values())
        for rank, (start, end) in who.items():
            waits[rank, key[0], key[1], key[3]].append(end - start - proxies[key])
    return matched, unmatched, offsets, apart, proxies, waits


SIMULATED = {
    "8 ranks": Run(
        8,
        grid(4, 2),
        transformer(4, slow=lambda rank, step: 1 * MS if rank == 5 else 0),
        hosts=TWO_HOSTS,
        clock_ahead_ns={"b": 37 * MS},
        steps=4,
    ),
    "16 ranks": Run(
        16,
        grid(4, 4),
        transformer(4, layers=2, slow=lambda rank, step: 300 * US if rank == step else 0),
        hosts=["a"] * 8 + ["b"] * 8,
        clock_ahead_ns={"b": -1_234_567_891},
        steps=4,
        seed=3,
    ),
}


@pytest.fixture(scope="module", params=brief(1, sorted(SIMULATED, reverse=True)))
def simulated(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    # an export per rank, and one per host with eight processes
    rankbuilder.write(SIMULATED[request.param], folder, per_host=request.param == "16 ranks")
    with opened(folder) as found:
        yield request.param, found, brute_force(folder)


def test_matches_are_those_found_by_hand(simulated):
    _, found, (matched, unmatched, _, _, proxies, _) = simulated
    survey_rows = rows(found, "collectives")
    assert sum(row["matched_count"] for row in survey_rows) == len(matched) > 0
    assert sum(row["unmatched_count"] for row in survey_rows) == unmatched == 0
    got = found.con.execute(
        "SELECT i.kind, i.name, i.iteration, i.collective, i.ordinal, m.rank, i.duration_ns, "
        "i.transfer_proxy_ns, i.jitter_wait_ns FROM rank.matched AS i "
        "JOIN rank.member AS m USING (member_id)"
    ).fetchall()
    assert len(got) == sum(map(len, matched.values()))
    for *key, rank, duration, proxy, wait in got:
        start, end = matched[tuple(key)][rank]
        assert (duration, proxy) == (end - start, proxies[tuple(key)])
        assert wait == duration - proxy >= 0


def test_offsets_and_residuals_are_those_found_by_hand(simulated):
    name, found, (_, _, offsets, apart, _, _) = simulated
    ahead = SIMULATED[name].clock_ahead_ns["b"]
    by_host = {row["host"]: row for row in rows(found, "alignment")}
    assert offsets.keys() == {"b"}
    assert by_host["b"]["offset_ms"] * MS == pytest.approx(offsets["b"], abs=1)
    assert by_host["b"]["offset_ms"] * MS == pytest.approx(-ahead, abs=400)
    assert by_host["b"]["method"] == "matched ends" and by_host["b"]["is_aligned"]
    there = [row for row in rows(found, "alignment") if row["host"] == "b"]
    assert sum(row["n"] for row in there) == len(apart["b"])
    residuals = [abs(value - round(offsets["b"])) for value in apart["b"]]
    worst = max(row["residual_max_us"] for row in there) * US
    assert worst == pytest.approx(max(residuals), abs=1)
    assert {row["method"] for row in rows(found, "alignment") if row["host"] == "a"} == {
        "reference",
        "same clock",
    }


def test_jitter_wait_per_rank_is_that_found_by_hand(simulated):
    name, found, (_, _, _, _, _, waits) = simulated
    steps = SIMULATED[name].steps
    listed = rows(found, "jitter")
    assert len(listed) == len(waits)
    for row in listed:
        own = waits[row["rank"], row["kind"], row["name"], row["collective"]]
        per = len(own) // steps
        sums = [sum(own[at * per : (at + 1) * per]) for at in range(steps)]
        assert row["matched_count"] == len(own)
        assert row["jitter_wait_work_ms"] * MS == pytest.approx(statistics.median(sums), abs=1)
        assert row["jitter_wait_max_ms"] * MS == pytest.approx(max(sums), abs=1)


def test_a_planted_straggler_is_named_and_a_rotating_one_is_not(simulated):
    name, found, _ = simulated
    named = finding(found, "straggler")
    if name == "8 ranks":
        assert [row["rank"] for row in named] == [5]
        assert named[0]["value_ms"] == pytest.approx(1, rel=0.1) and named[0]["share_pct"] == 100
        # the others of its group wait, it does not
        wait = {
            row["rank"]: row["jitter_wait_work_ms"]
            for row in rows(found, "jitter")
            if row["collective"] == "AllReduce"
        }
        assert wait[5] < 0.1 and all(wait[rank] > 0.9 for rank in (4, 6, 7))
        slow = [row for row in rows(found, "groups") if row["metric"] == "noncomm_busy"]
        assert [(row["slowest"], row["pattern"]) for row in slow] == [("rank 5", "repeats")]
    else:
        assert not named
        (row,) = finding(found, "rotating")
        assert row["rank"] is None and "no rank is to blame" in row["statement"]
    assert not finding(found, "start_skew") and not finding(found, "late_finish")


def test_every_result_has_its_declared_columns_and_holds_its_checks(simulated):
    _, found, _ = simulated
    for name in survey.RESULTS:
        result = found.result(name)
        described = found.con.execute(f"DESCRIBE result_{name}").fetchall()
        assert [(row[0], row[1]) for row in described] == [
            (column.name, column.type) for column in result.columns
        ], name
        assert all(check.status == "ok" for check in result.checks)
        assert result.rows or name == "unmatched"


@pytest.fixture(scope="module")
def four(tmp_path_factory):
    folder = tmp_path_factory.mktemp("four")
    rankbuilder.write(Run(4, grid(2, 2), transformer(2, layers=1), steps=4), folder)
    return folder


# ---------------------------------------------------------------- scenarios


@long_test
def test_two_of_sixteen_ranks_with_a_longer_window_that_starts_earlier(tmp_path):
    """Start skew, a verdict about two ranks only, the dispatcher and NCCL apart and together."""
    layers = 219  # 3 collectives each, in 8 steps, and 5 more in the first: 5,261

    def program(rank, step):
        layer = [
            ("collective", "dispatch", 20 * US, "ep0"),
            ("compute", "gemm", 50 * US),
            ("collective", "combine", 30 * US, "ep0"),
            ("collective", "AllReduce", 10 * US, "tp0"),
        ]
        more = [layer[-1]] * 5 if step == 0 else []
        return [("compute", "gemm", 300 * US), *more, *layer * layers]

    everybody = list(range(16))
    run = Run(
        16,
        {"ep0": (everybody, EP), "tp0": (everybody, TP)},
        program,
        steps=8,
        period_ns=400 * MS,
        hosts=["a"] * 8 + ["b"] * 8,
        clock_ahead_ns={"b": 5 * MS},
        captured=[3, 12],
        window_starts_early_ns={12: 102 * MS},
    )
    rankbuilder.write(run, tmp_path)
    mapping = yaml.safe_load((tmp_path / "ranks.yaml").read_text())
    (tmp_path / "ranks.yaml").write_text(yaml.safe_dump(mapping | {"world_size": 16}))
    with opened(tmp_path) as found:
        (scope,) = finding(found, "scope")
        assert "2 sampled ranks only: 14 of 16 ranks were not sampled" in scope["statement"]
        (skew,) = finding(found, "start_skew")
        assert skew["rank"] == 12 and skew["value_ms"] == pytest.approx(102, abs=0.1)
        assert not finding(found, "straggler") and not finding(found, "late_finish")
        aligned = {row["rank"]: row for row in rows(found, "alignment")}
        assert aligned[12]["n"] == 5_261 and aligned[12]["residual_p95_us"] < 1
        assert aligned[12]["offset_ms"] == pytest.approx(-5, abs=0.001)
        assert aligned[12]["earlier_start_ms"] == pytest.approx(102, abs=0.1)
        assert abs(aligned[12]["later_end_ms"]) < 0.001
        table = {row["rank"]: row for row in rows(found, "survey")}
        for rank in (3, 12):
            row = table[rank]
            early = 102 if rank == 12 else 0  # it waits in its first dispatch
            assert row["nccl_busy_ms"] == pytest.approx(0.010 * layers, rel=0.1)
            assert row["transport_busy_ms"] == pytest.approx(early + 0.050 * layers, rel=0.1)
            apart = row["nccl_busy_ms"] + row["transport_busy_ms"]
            assert row["comm_busy_ms"] == pytest.approx(apart, rel=1e-3)  # they never overlap
        assert (
            table[12]["collectives"] == f"AllReduce {layers}, combine {layers}, dispatch {layers}"
        )
        assert table[12]["iteration_ms"] - table[3]["iteration_ms"] == pytest.approx(102, abs=0.1)
        listed = rows(found, "collectives")
        assert sum(row["matched_count"] for row in listed) == 5_261
        assert not any(row["unmatched_count"] for row in listed)
        waits = {
            row["rank"]: row for row in rows(found, "jitter") if row["collective"] == "dispatch"
        }
        assert waits[12]["jitter_wait_work_ms"] == pytest.approx(102, abs=0.5)


@pytest.mark.parametrize("slow_ns", brief(1, [300 * US, 0]))
def test_who_waits_for_one_that_began_early_waits_for_nobody(tmp_path, slow_ns):
    """Of a pair one begins 0.9 ms early: the other is no straggler, unless it is slow as well."""
    run = Run(
        4,
        grid(2, 2),
        transformer(2, slow=lambda rank, step: slow_ns if rank == 3 else 0),
        steps=6,
        window_starts_early_ns={2: 900 * US},
        period_ns=4 * MS,
    )
    rankbuilder.write(run, tmp_path)
    with opened(tmp_path) as found:
        (skew,) = finding(found, "start_skew")
        assert skew["rank"] == 2 and skew["value_ms"] == pytest.approx(0.9, rel=0.02)
        named = finding(found, "straggler")
        assert len(named) == (slow_ns > 0)
        for row in named:
            assert row["rank"] == 3 and row["value_ms"] == pytest.approx(0.3, rel=0.05)
            assert "It computes 0.3 ms longer than the others" in row["statement"]
        assert len(finding(found, "no straggler")) == (slow_ns == 0)


def test_a_shifted_rank_is_late_by_its_own_fault(tmp_path):
    """Windows that start and end later than the others' are no start skew."""
    slow = rankbuilder.transformer(2, layers=1)

    def program(rank, step):
        more = [("compute", "adam", 2 * MS)] if rank == 1 else []
        return [*slow(rank, step), *more]  # slow after the last collective: the next step is late

    rankbuilder.write(Run(2, grid(2, 1), program, steps=6), tmp_path, per_host=True)
    with opened(tmp_path) as found:
        (named,) = finding(found, "straggler")
        assert named["rank"] == 1 and named["value_ms"] == pytest.approx(2, rel=0.1)


def test_the_simulator_of_training_steps_over_two_hosts(tmp_path):
    """Four ranks in one group each, clocks 250 ms apart, the last rank computes more."""
    ahead = (0,) * 2 + (250 * MS,) * 2
    scenario = Scenario(
        "ranks", 4, 1, 4, tp=True, dp=True, straggler_ns=2 * MS, clock_offsets_ns=ahead
    )
    truths = simulate_ranks(scenario, 1, "2026.2.1", tmp_path)
    text = (tmp_path / "ranks.yaml").read_text()
    for rank in range(4):
        text = text.replace(f"host: node{rank},", f"host: {'ab'[rank // 2]},")
    (tmp_path / "ranks.yaml").write_text(text)
    with opened(tmp_path) as found:
        for row in rows(found, "alignment"):
            offset = truths[row["rank"]].offsets[row["rank"]]
            assert row["is_aligned"]
            assert abs(row["offset_ms"] * MS - offset) <= max(1, (row["residual_max_us"] or 0) * US)
        (named,) = finding(found, "straggler")
        assert named["rank"] == 3 and named["value_ms"] == pytest.approx(2, rel=0.15)
        assert "uneven load" in named["statement"]  # it runs kernels that the others do not
        table = {row["rank"]: row for row in rows(found, "survey")}
        for rank, truth in truths.items():
            budgets = list(truth.budget.values())
            for metric in ("iteration", "noncomm_busy", "comm_busy", "comm_blocking"):
                wanted = statistics.median(budget[metric] for budget in budgets) / 1e6
                assert table[rank][f"{metric}_ms"] == pytest.approx(wanted), (rank, metric)


@pytest.mark.parametrize("longer_ns", brief(1, [3 * MS, 0]))
def test_a_bubble_makes_no_straggler_and_an_uneven_stage_is_told(longer_ns, tmp_path):
    """Two stages of one rank each, that hand over by SendRecv; the second may compute more."""
    scenario = replace(SCENARIOS["pipeline"], steps=4, straggler_ns=longer_ns)
    truths = simulate_ranks(scenario, 4, "2026.2.1", tmp_path)
    with opened(tmp_path) as found:
        listed = rows(found, "pipeline")
        for row in listed:
            budgets = truths[row["rank"]].budget.values()
            bubbles = [b["iteration"] - b["noncomm_busy"] for b in budgets]
            assert row["bubble_ms"] * MS == pytest.approx(statistics.median(bubbles))
            waits = statistics.median(b["comm_blocking"] for b in budgets)
            assert row["sendrecv_blocking_ms"] * MS == pytest.approx(waits) and waits > 2 * MS
            assert row["sendrecv_count"] == 2 * scenario.microbatches and row["bubble_pct"] > 10
        uneven = finding(found, "stage imbalance")
        if longer_ns:
            assert uneven[0]["value_ms"] == pytest.approx(3, rel=0.05)
            assert uneven[0]["statement"].startswith("Stage 1 is the busiest")
            loads = [row["stage_load_pct"] for row in listed]
            assert loads == pytest.approx([91.4, 108.6], abs=0.5)
        else:
            assert not uneven
        assert not finding(found, "straggler") and not finding(found, "rotating")
        budgets = {(row["stage"], row["metric"]) for row in rows(found, "stages")}
        assert {(stage, "blocking") for stage in (0, 1)} < budgets


def step_ms(truth, rank=0):
    """The usual length of a step, of those in which the ranks do not only get into step."""
    return statistics.median(e - s for (r, at), (s, e) in truth.windows.items() if r == rank) / MS


@pytest.mark.parametrize("case", brief(1, ["slow", "late", "hardly", "even", "three of four"]))
def test_what_collectives_beside_compute_cost_is_counted_once(case, tmp_path):
    """Gradients in 16 buckets: each is late by more than the one before, the step by the last."""
    slow, late = {"slow": (400, 0), "late": (0, 400), "hardly": (9, 0)}.get(case, (0, 0))
    if case == "three of four":
        program = buckets(16, slow=lambda rank, step: 400 * US if rank != 2 else 0)
    else:
        program = buckets(
            16,
            slow=lambda rank, step: slow * US if rank == 2 else 0,
            late=lambda rank, step: late * US if rank == 2 else 0,
        )
    run = Run(4, {"dp0": (range(4), DP)}, program)
    _, even = rankbuilder.simulate(replace(run, program=buckets(16)))
    longer = step_ms(rankbuilder.write(run, tmp_path, per_host=True)) - step_ms(even)
    with opened(tmp_path) as found:
        lateness = [row for row in rows(found, "arrival") if row["rank"] == 2]
        named = finding(found, "straggler") + finding(found, "rotating")
        if case in ("slow", "late"):
            assert longer == pytest.approx(0.4, rel=0.05)
            assert lateness[0]["late_work_ms"] > 2  # what the buckets are late, all together
            (row,) = named
            assert row["rank"] == 2 and row["value_ms"] == pytest.approx(longer, rel=0.1)
            computes = re.search(r"It computes ([\d.]+|no) (ms )?longer", row["statement"])[1]
            assert "less than half" not in row["statement"]
            assert ("look at its host" in row["statement"]) == (computes == "no")
            assert computes == "no" or float(computes) == pytest.approx(0.4, rel=0.1)
            assert (computes == "no") == (case == "late")
            typical = [row["rank"] for row in rows(found, "representatives")][1:]
            assert len(typical) == 1 and typical != [2]
        else:
            assert not named
            (row,) = finding(found, "no straggler")
            slower = "But rank 0, rank 1, rank 3 are slower than the fastest of their group"
            assert (slower in row["statement"]) == (case == "three of four")


@pytest.mark.parametrize("slow", brief(1, [0, 3, None]))
def test_a_slow_rank_of_a_pipeline_is_found_in_spite_of_the_bubble(slow, tmp_path):
    """Two stages with two replicas: all of them wait for their turns, and for the slow one."""
    shape = Run(4, stages(2), pipeline(2), stages=(0, 0, 1, 1))
    run = replace(shape, program=pipeline(2, slow=lambda rank: 1.4 if rank == slow else 1))
    _, even = rankbuilder.simulate(shape)
    longer = step_ms(rankbuilder.write(run, tmp_path, per_host=True)) - step_ms(even)
    with opened(tmp_path) as found:
        bubbles = [row["sendrecv_jitter_work_ms"] for row in rows(found, "pipeline")]
        assert min(bubbles) > 0.5  # of every rank, the slow one included
        (waiting,) = [row for row in finding(found, "waiting") if "SendRecv" in row["statement"]]
        assert waiting["share_pct"] > 90 and "the bubble" in waiting["statement"]
        named = finding(found, "straggler")
        assert [row["rank"] for row in named] == ([] if slow is None else [slow])
        repeats = {
            row["slow"]
            for row in rows(found, "groups")
            if row["metric"] == "noncomm_busy" and row["pattern"] == "repeats"
        }
        assert repeats == {f"rank {row['rank']}" for row in named}
        uneven = finding(found, "stage imbalance")
        assert len(uneven) == len(named) and not finding(found, "rotating")
        for row in named:
            assert longer > 0.6 and row["value_ms"] == pytest.approx(longer, rel=0.1)
            assert f"Stage {slow // 2} is the busiest" in uneven[0]["statement"]
            assert "the others wait for the busiest" in uneven[0]["statement"]


@pytest.mark.parametrize(
    ("late", "awaited"), brief(1, [(600 * US, "stage 0,"), (0, "the busiest,")])
)
def test_the_stage_that_is_waited_for_need_not_be_the_busiest(late, awaited, tmp_path):
    """Stage 1 computes 0.2 ms more than stage 0, whose host may be 0.6 ms late in every step."""

    def program(rank, step):
        handover = ("collective", "SendRecv", 10 * US, "pp0")
        work = ("compute", "gemm", (1000 + 200 * rank) * US)
        return [("host", late), work, handover] if rank == 0 else [handover, work]

    run = Run(2, {"pp0": ([0, 1], TP)}, program, steps=6, stages=(0, 1))
    rankbuilder.write(run, tmp_path, per_host=True)
    with opened(tmp_path) as found:
        (row,) = finding(found, "stage imbalance")
        assert row["statement"].startswith("Stage 1 is the busiest (1.2 ms")
        assert f"the others wait for {awaited} which waits least" in row["statement"]
        assert ("look at its host" in row["statement"]) == (late > 0)
        last = {row["rank"]: row["last_pct"] for row in rows(found, "arrival")}
        assert last[0 if late else 1] > 80


def test_unequal_counts_and_missing_windows_are_unmatched_and_counted(tmp_path):
    base = transformer(2, layers=1)

    def program(rank, step):
        more = ("collective", "AllReduce", 50 * US, "odd0")
        return [*base(rank, step), more] if step == 1 and rank in (0, 2) else base(rank, step)

    groups = grid(2, 2) | {"odd0": ([0, 2], TP)}
    run = Run(4, groups, program, steps=4, first_step={3: 1})
    rankbuilder.write(run, tmp_path, per_host=True)
    mapping = yaml.safe_load((tmp_path / "ranks.yaml").read_text())
    for entry in mapping["ranks"]:
        entry["groups"].pop("odd", None)
    mapping["groups"].pop("odd", None)
    # rank 3 lacks its first window: its ordinals are one behind, and its last one has no partner
    (tmp_path / "ranks.yaml").write_text(yaml.safe_dump(mapping))
    matched, unmatched, *_ = brute_force(tmp_path)
    with opened(tmp_path) as found:
        listed = rows(found, "collectives")
        assert sum(row["matched_count"] for row in listed) == len(matched)
        assert sum(row["unmatched_count"] for row in listed) == unmatched > 0
        reasons = {row["reason"] for row in rows(found, "unmatched")}
        assert "a member has no such steady window" in reasons
        assert "the counts of the members differ" in reasons
        (row,) = finding(found, "unmatched")
        assert f"{unmatched} of " in row["statement"]


def test_without_a_mapping_everything_is_provisional(four):
    with opened(four, mapping=None) as found:
        assert len(found.members) == 4 and all(member.rank is None for member in found.members)
        (row,) = finding(found, "provisional")
        assert "there is no mapping" in row["statement"]
        assert "compared by totals only" in finding(found, "unmatched")[0]["statement"]
        assert len(rows(found, "survey")) == 4 and not rows(found, "collectives")
        assert not finding(found, "straggler")
        # nothing tells that the reports share a host
        assert sum(row["is_aligned"] for row in rows(found, "alignment")) == 1


def test_several_ranks_in_one_file_are_told_by_process_or_device(tmp_path):
    run = Run(4, grid(4, 1), transformer(4), steps=4, hosts=["a"] * 4)
    rankbuilder.write(run, tmp_path, per_host=True)
    (trace,) = tmp_path.glob("*.sqlite")
    entries = [
        {"trace": trace.name, "rank": 10 + rank, "groups": {"tp": "tp0"}}
        | ({"process": 4000 + rank} if rank % 2 else {"device": rank})
        for rank in range(4)
    ]
    mapping = {"ranks": entries, "groups": {"tp": {"type": "allreduce"}}}
    (tmp_path / "ranks.yaml").write_text(yaml.safe_dump(mapping))
    with opened(tmp_path) as found:
        assert [(m.rank, m.device) for m in found.members] == [(10, 0), (11, 1), (12, 2), (13, 3)]
        (row,) = rows(found, "collectives")
        assert (row["matched_count"], row["unmatched_count"]) == (4 * 3, 0)
        assert all(row["is_aligned"] for row in rows(found, "alignment"))  # one report, one clock
        left = {row["collective"] for row in rows(found, "unmatched")}
        assert left == {"ReduceScatter", "AllGather"}  # of a group that has no rule
    del entries[1:]
    entries[0].pop("device")
    (tmp_path / "ranks.yaml").write_text(yaml.safe_dump(mapping))
    with pytest.raises(NsysSqlError, match=r"no rank is left.*say which is rank 10"):
        opened(tmp_path)


def test_communicators_make_groups_where_the_export_names_them(tmp_path):
    run = Run(4, grid(2, 2), transformer(2, layers=2), steps=4)
    rankbuilder.write(run, tmp_path)
    for entry in yaml.safe_load((tmp_path / "ranks.yaml").read_text())["ranks"]:
        con = sqlite3.connect(tmp_path / entry["trace"])
        for stream, group in ((TP, entry["groups"]["tp"]), (rankbuilder.DP, entry["groups"]["dp"])):
            payload = {"NCCL communicator ID": f"c-{group}", "Message size [bytes]": 4096}
            con.execute(
                "INSERT INTO NVTX_EVENTS (start, end, eventType, globalTid, domainId, text,"
                " jsonText) SELECT r.start - 100, r.end + 100, 59, r.globalTid, 1, 'nccl', ?"
                " FROM CUPTI_ACTIVITY_KIND_RUNTIME r JOIN CUPTI_ACTIVITY_KIND_KERNEL k"
                " USING (correlationId) WHERE k.streamId = ?",
                (json.dumps(payload), stream),
            )
        con.commit()
        con.close()
    text = yaml.safe_load((tmp_path / "ranks.yaml").read_text())
    for entry in text["ranks"]:
        entry.pop("groups")
    (tmp_path / "plain.yaml").write_text(yaml.safe_dump({"ranks": text["ranks"]}))
    with opened(tmp_path, "plain.yaml") as found:
        listed = rows(found, "collectives")
        assert {row["name"] for row in listed} == {"c-tp0", "c-tp1", "c-dp0", "c-dp1"}
        assert {row["kind"] for row in listed} == {"communicator"}
        assert all(row["unmatched_count"] == 0 and row["bytes"] == 4096 for row in listed)


# ---------------------------------------------------------------- the mapping


BAD = {
    "unknown key": ("ranks:\n  - {trace: a.sqlite, rnk: 1}\n", r":2: unknown key 'rnk'.*"),
    "unknown top": ("rank:\n  - {trace: a.sqlite}\n", r":1: unknown key 'rank'"),
    "rule key": (
        "ranks:\n  - {trace: a, groups: {tp: t}}\ngroups:\n  tp: {streams: 20}\n",
        r":4: unknown key 'streams'",
    ),
    "not a number": ("ranks:\n  - trace: a\n    rank: one\n", r":3: rank is 'one'"),
    "twice": (
        "ranks:\n  - {trace: a, rank: 1}\n  - {trace: b, rank: 1}\n",
        r":3: rank 1 stands on line 2 already",
    ),
    "same trace": (
        "ranks:\n  - {trace: a, rank: 1}\n  - {trace: ./a, rank: 2}\n",
        r":3: a stands on line 2 already",
    ),
    "no trace": ("ranks:\n  - {rank: 1}\n", r":2: an entry of ranks needs a trace"),
    "empty rule": (
        "ranks:\n  - {trace: a, groups: {tp: t}}\ngroups:\n  tp: {}\n",
        r":4: group tp does not say",
    ),
    "idle rule": ("ranks:\n  - {trace: a}\ngroups:\n  tp: {stream: 1}\n", "no rank is in such"),
    "glob": ("ranks:\n  - {trace: 'no*.sqlite'}\n", r":2: no file matches"),
    "yaml": ("ranks: [\n  - x: {\n", r":\d+: not valid YAML"),
    "world": ("ranks:\n  - {trace: a, rank: 9}\nworld_size: 8\n", "outside world_size"),
}


@pytest.mark.parametrize("case", sorted(BAD))
def test_a_mistake_in_the_mapping_is_told_with_its_line(case, tmp_path):
    text, message = BAD[case]
    path = tmp_path / "ranks.yaml"
    path.write_text(text)
    with pytest.raises(UsageError, match=message) as caught:
        ranks.read(path)
    assert caught.value.exit_code == 2


def test_matches_of_a_glob_share_the_entry(tmp_path):
    for name in ("x1.sqlite", "x2.sqlite", "y.sqlite"):
        (tmp_path / name).touch()
    path = tmp_path / "ranks.yaml"
    path.write_text("ranks:\n  - {trace: 'x*.sqlite', host: n0, stage: 1}\n  - {trace: y.sqlite}\n")
    found = ranks.read(path)
    assert [trace.name for trace in found.traces] == ["x1.sqlite", "x2.sqlite", "y.sqlite"]
    assert found.of(tmp_path / "x2.sqlite")[0].host == "n0"
    path.write_text("ranks:\n  - {trace: 'x*.sqlite', rank: 0}\n")
    with pytest.raises(UsageError, match="rank 0 is given for 2 traces"):
        ranks.read(path)


# ---------------------------------------------------------------- command line and partitions


def some_ranks(folder, target, count):
    """Copy the first ranks of a run."""
    mapping = yaml.safe_load((folder / "ranks.yaml").read_text())
    mapping["ranks"] = mapping["ranks"][:count]
    for entry in mapping["ranks"]:
        (target / entry["trace"]).write_bytes((folder / entry["trace"]).read_bytes())
    (target / "ranks.yaml").write_text(yaml.safe_dump(mapping))


def command(folder, *more, parts="parts"):
    return execute(
        [
            *("survey", "--ranks", str(folder / "ranks.yaml"), "--anchor", "nvtx:step *"),
            *("--partitions", str(folder / parts), "--jobs", "1", *more),
        ]
    )


def test_json_is_the_envelope_with_traces_and_named_results(four, capsysbinary):
    assert command(four, "--format", "json") == 0
    found = json.loads(capsysbinary.readouterr().out)
    assert found["recipe"] == "survey" and len(found["traces"]) == 4
    assert {rank["rank"] for trace in found["traces"] for rank in trace["ranks"]} == {0, 1, 2, 3}
    assert [row["rank"] for row in found["rows"]] == [0, 1, 2, 3]
    assert list(found["results"]) == list(survey.RESULTS[1:])
    assert found["results"]["verdict"]["rows"][0]["finding"] == "scope"
    assert all(check["status"] == "ok" for check in found["checks"])
    units = {column["name"]: column["unit"] for column in found["columns"]}
    assert units["iteration_ms"] == "ms"
    assert str(four) not in json.dumps(found["rows"])


def test_formats_results_and_parameters(four, capsysbinary, tmp_path):
    assert command(four) == 0
    table = capsysbinary.readouterr().out.decode()
    assert table.startswith("survey - ") and "survey verdict" in table and "--result" in table
    assert command(four, "--format", "csv", "--result", "jitter") == 0
    lines = capsysbinary.readouterr().out.decode().splitlines()
    assert lines[0].startswith("rank,label,kind") and len(lines) == 1 + 4 * 3
    target = tmp_path / "heat.parquet"
    assert command(four, "--format", "parquet", "--result", "heatmap", "-o", str(target)) == 0
    assert target.read_bytes()[:4] == b"PAR1"
    capsysbinary.readouterr()
    assert command(four, "--param", "threshold_pc=2") == 2
    assert "did you mean 'threshold_pct'" in capsysbinary.readouterr().err.decode()
    assert command(four, "--result", "nonsense") == 2
    assert command(four, "--format", "markdown", "--result", "verdict") == 0


@pytest.fixture
def named(four, tmp_path):
    """Two ranks whose group has a name that is none in HTML or Markdown."""
    some_ranks(four, tmp_path, 2)
    mapping = yaml.safe_load((tmp_path / "ranks.yaml").read_text())
    for entry in mapping["ranks"]:
        entry["groups"] = {"tp": "<b>&|tp"}
        entry["host"] = "<script>alert(1)</script>"
    mapping["groups"] = {"tp": mapping["groups"]["tp"]}
    (tmp_path / "ranks.yaml").write_text(yaml.safe_dump(mapping))
    return tmp_path


@pytest.mark.parametrize("is_rich", brief(1, [True, False]))
def test_a_page_shows_ranks_by_iterations_and_orders_of_arrival(named, is_rich, monkeypatch):
    if is_rich:
        pytest.importorskip("plotly")
    else:
        monkeypatch.setattr(report_html, "find_spec", lambda _: None)
    wanted = "heatmap=iteration,jitter_wait_work,blocking,nonsense"
    assert command(named, "--param", wanted, "-o", str(named / "page.html")) == 0
    text = (named / "page.html").read_text()
    page = text.split("<script>", maxsplit=1)[0]
    assert text.count("<script>") == is_rich
    assert "<b>&" not in text and "&lt;b&gt;&amp;|tp" in text
    assert "<script>alert" not in text and "&lt;script&gt;alert(1)" in text
    shown = re.findall(r"<h3>([^<]*)</h3>", page)
    maps = ["Step time", "Blocking", "Jitter wait", "Who comes last"]
    assert shown == [*maps, "Arrival at AllReduce of tp"]
    # ranks by iterations of three metrics, who comes last, and bars where they are not plotly's
    tiles = page.count("<rect ")
    assert tiles == 3 * 2 * 4 + 2 if is_rich else tiles > 3 * 2 * 4 + 2
    assert "rank 1, iteration 3: " in page and "no heat map of &#x27;nonsense&#x27;" in page
    heads = re.findall(r"<h2[^>]*>\d (.*)</h2>", page)
    assert heads[:5] == [
        "Survey", "Verdict", "Iterations of the ranks", "Alignment", "Collectives"
    ]  # fmt: skip


def test_reports_are_told_by_the_name_of_the_output(named, capsysbinary):
    assert command(named, "-o", str(named / "page.md")) == 0
    text = (named / "page.md").read_text()
    assert text.startswith("# Survey of 2 ranks\n") and "result `survey`" in text
    assert "\\<b\\>&\\|tp" in text and re.search(r"(?<!\\)<", text) is None
    assert command(named, "-o", str(named / "page.json")) == 0
    found = json.loads((named / "page.json").read_text())
    assert list(found["results"]) == list(survey.RESULTS[1:])
    assert command(named, "-o", str(named / "page.txt")) == 0
    assert (named / "page.txt").read_text().startswith("survey - ")
    assert capsysbinary.readouterr().out == b""


def test_many_tiles_are_merged_to_the_greatest_and_a_scale_does_not_magnify_noise():
    row = {"metric": "iteration", "stage": 0}
    tiles = [
        row | {"label": f"rank {r}", "rank": r, "iteration": i, "value_ms": 100 + (r == i == 7)}
        for r in range(300)
        for i in range(100)
        if (r, i) != (0, 99)
    ]
    (heat,) = survey_report._heat_maps(tiles)
    assert len(heat.rows) == 300 and len(heat.columns) == 50 and heat.columns[3] == "6 to 7"
    assert heat.rows[7][1][3] == (101, "rank 7, iteration 7: 101 ms")
    assert "greatest figure of 2 iterations" in heat.caption
    assert heat.scale == (101 * 0.98, 101)
    text = "".join(report_html._tiles(heat))
    assert text.count("<rect ") == 300 * 50 and len(text) < 3_000_000


def test_a_second_run_reads_no_trace_and_from_parquet_none_at_all(
    four, tmp_path, capsysbinary, monkeypatch
):
    assert command(four, "--format", "json") == 0
    first = capsysbinary.readouterr().out
    monkeypatch.setattr("nsys_sql.session.open", None)
    assert command(four, "--format", "json") == 0
    second = capsysbinary.readouterr()
    assert second.out == first and b"4 of 4 traces were read before" in second.err
    kept = ["survey", "--from-parquet", str(four / "parts"), "--ranks", str(four / "ranks.yaml")]
    assert execute([*kept, "--anchor", "nvtx:step *", "--format", "json"]) == 0
    third = json.loads(capsysbinary.readouterr().out)
    assert third["rows"] == json.loads(first)["rows"]
    assert execute(["survey", "--from-parquet", str(tmp_path)]) == 3


def test_other_options_or_another_trace_make_another_partition(four, tmp_path):
    trace = sorted(four.glob("*.sqlite"))[0]
    copy = tmp_path / trace.name
    copy.write_bytes(trace.read_bytes())
    one = partition.key_of(copy, ANCHOR)[0]
    assert partition.key_of(copy, replace(ANCHOR, threads=3, memory_limit="1GB"))[0] == one
    assert partition.key_of(copy, replace(ANCHOR, skip_first=1))[0] != one
    with copy.open("r+b") as file:
        file.seek(4096 + 7)
        file.write(b"x")
    assert partition.key_of(copy, ANCHOR)[0] != one


def test_a_broken_rank_is_reported_and_loses_nobody(four, tmp_path, capsysbinary):
    some_ranks(four, tmp_path, 2)
    bad, *good = sorted(tmp_path.glob("*.sqlite"))
    bad.write_bytes(bad.read_bytes()[:5000])
    assert command(tmp_path, "--format", "json") == 3
    out = capsysbinary.readouterr()
    found = json.loads(out.out)
    assert len(found["rows"]) == len(good) == 1 and b"truncated" in out.err
    broken = [trace for trace in found["traces"] if "error" in trace]
    assert len(broken) == 1 and broken[0]["path"] == str(bad)
    scope = found["results"]["verdict"]["rows"][0]["statement"]
    assert "1 of 2 ranks were not sampled" in scope and "1 report could not be used" in scope
    assert not list((tmp_path / "parts").glob(".part-*"))  # nothing half-written stays


def test_two_processes_do_the_same_as_one(four, tmp_path, capsysbinary):
    some_ranks(four, tmp_path, 2)
    assert command(tmp_path, "--format", "csv") == 0
    one = capsysbinary.readouterr().out
    assert command(tmp_path, "--format", "csv", "--jobs", "2", parts="two") == 0
    assert capsysbinary.readouterr().out == one


def deadly(trace, folder, options):
    """A task whose worker dies of one trace; it stands here so that other processes find it."""
    if "killer" in trace:
        os._exit(9)
    return trace, None


def test_a_trace_that_kills_its_worker_loses_nobody():
    traces = [Path(name) for name in ("a", "killer", "b", "c", "d")]
    options = Options(threads=1, memory_limit="256MB")
    found = dict(tasks._local(traces, Path("."), options, 2, deadly))
    path, failure = found.pop(Path("killer"))
    assert path is None and "died" in failure.message and failure.exit_code == 3
    assert {trace.name: answer for trace, answer in found.items()} == {
        name: (name, None) for name in "abcd"
    }


def test_a_dask_cluster_does_the_same(four, tmp_path, capsysbinary):
    distributed = pytest.importorskip("distributed")
    some_ranks(four, tmp_path, 2)
    assert command(tmp_path, "--format", "csv") == 0
    one = capsysbinary.readouterr().out
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster:
            address = cluster.scheduler_address
            assert command(tmp_path, "--format", "csv", "--scheduler", address, parts="d") == 0
    assert capsysbinary.readouterr().out == one
    assert execute(["survey", str(four / "ranks.yaml"), "--scheduler", "nowhere.json"]) == 2


def test_a_rank_whose_windows_count_other_steps_is_told(tmp_path):
    run = Run(3, grid(3, 1), transformer(3, layers=1), steps=4, first_step={2: 1})
    rankbuilder.write(run, tmp_path, per_host=True)
    with opened(tmp_path) as found:
        (row,) = finding(found, "other steps")
        assert row["rank"] == 2 and row["statement"].startswith("Windows of rank 2 start and end")
        assert not finding(found, "straggler")  # late by a step is not late


def test_a_rank_that_waited_for_one_that_was_not_captured_is_not_blamed_alone(tmp_path):
    """Rank 3 is slow and was not captured; rank 2 waits for it, and rank 0 for rank 2."""
    slow = transformer(2, layers=1, slow=lambda rank, step: 500 * US if rank == 3 else 0)
    rankbuilder.write(Run(4, grid(2, 2), slow, steps=3, captured=[0, 2]), tmp_path)
    with opened(tmp_path) as found:
        (row,) = finding(found, "straggler")
        assert row["rank"] is None and row["share_pct"] == 100
        assert "rank 2, or a member of tp1 that was not sampled, holds" in row["statement"]


def test_init_writes_what_the_reports_say_and_leaves_the_rest_open(four, capsysbinary):
    traces = [str(path) for path in sorted(four.glob("*.sqlite"))]
    target = four / "new.yaml"
    start = ["survey", *traces, "--anchor", "nvtx:step *", "--partitions", str(four / "parts")]
    assert execute([*start, "--init", "-o", str(target)]) == 0
    text = target.read_text()
    assert "NVIDIA H100" in text and "1 AllReduce" in text and "stream 20" in text
    found = ranks.read(target)
    assert len(found.entries) == 4
    assert all(
        (entry.rank, entry.host, entry.stage, dict(entry.groups)) == (None, None, None, {})
        for entry in found.entries
    )
    assert [os_path.resolve() for os_path in found.traces] == [Path(t).resolve() for t in traces]
    capsysbinary.readouterr()


def test_every_fact_has_its_declared_columns(four):
    import duckdb

    path = next((four / "parts").glob("part-*"), None)
    if path is None:
        path = partition.write_partition(next(four.glob("*.sqlite")), four / "parts", ANCHOR)
    for file in partition.fact_files():
        described = duckdb.sql(f"DESCRIBE FROM '{path}/{file.name}.parquet'").fetchall()
        declared = [("part", "VARCHAR"), *((c.name, c.type) for c in file.columns)]
        assert [row[:2] for row in described] == declared, file.name
