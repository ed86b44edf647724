"""The ranking of what is recoverable: the planted trouble first, its bound right, nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import pytest

import nsys_sql
from simulator import MS, SCENARIOS, simulate
from tracebuilder import TraceBuilder

US = 1_000
ANCHOR = "nvtx:step *"
NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"
HYBRID_EP = "void hybrid_ep::dispatch_kernel<int, 8>(hybrid_ep::dispatch_kernel_param_t<int>)"


Rows = list[dict[str, Any]]


def ask_all(path: Path, *recipes: str, anchor: str = ANCHOR, **options: Any) -> list[Rows]:
    """The rows of several recipes of one opened trace."""
    params, answers = options.pop("params", {}), []
    with nsys_sql.open(path, anchor=anchor, **options) as model:
        for recipe in recipes:
            result = model.result(recipe, **params)
            assert all(check.status == "ok" for check in result.checks)
            names = [column.name for column in result.columns]
            answers.append([dict(zip(names, row, strict=True)) for row in result.rows])
    return answers


def ask(path: Path, recipe: str, **options: Any) -> Rows:
    return ask_all(path, recipe, **options)[0]


@pytest.mark.parametrize(
    ("name", "opportunity"),
    [
        ("late_collective", "blocking nccl AllReduce"),
        ("slow_copy", "blocking copy HtoD"),
        ("host_stall", "launch-starved"),
        ("launch_bound", "launch-starved"),
        ("deepep", "blocking transport combine"),
    ],
)
def test_the_planted_trouble_comes_first(name: str, opportunity: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.sqlite"
    truth = simulate(replace(SCENARIOS[name], steps=3), 6, "2026.2.1", path)
    rows = [row for row in ask(path, "opportunities") if row["device"] == 0]
    assert [row["rank"] for row in rows] == list(range(1, len(rows) + 1))
    assert rows[0]["opportunity"] == opportunity
    keys = [key for key in truth.budget if key[0] == 0]
    if truth.cause.role:
        role = truth.cause.role
        own = {"comm": ("nccl", "transport", "dispatch"), "memcpy": ("memcpy",)}[role]
        planted = [truth.labels[key][role] for key in keys]
    else:
        own = ("launch",)
        budget = [truth.budget[key] for key in keys]
        planted = [b["launch_starved"] - b["launch_starved_shadowed"] for b in budget]
    # two rows of a dispatcher: their medians add up to nearly the median of the sum
    bound = sum(row["recoverable_ms"] for row in rows if row["class"] in own)
    assert bound == pytest.approx(median(planted) / 1e6, rel=0.01)
    whole = median(truth.budget[key]["iteration"] for key in keys) / 1e6
    assert rows[0]["step_ms"] == pytest.approx(whole)
    assert rows[0]["bound_kind"] == "resolved"
    # an immaterial rest of launch-starved time lies beside copies and communication
    assert {row["bound_kind"] for row in rows if row["class"] != "launch"} <= {"resolved"}
    assert rows[0]["is_material"]
    assert (rows[0]["status"], rows[0]["n"]) == ("measured", len(keys))


def test_ceilings_are_the_formula(tmp_path: Path) -> None:
    path = tmp_path / "trace.sqlite"
    simulate(replace(SCENARIOS["slow_copy"], steps=3), 1, "2026.2.1", path)
    rows = ask(path, "opportunities", params={"mfu": 40})
    for row in rows:
        step, bound = row["step_ms"], row["recoverable_ms"]
        assert row["new_step_ceiling_ms"] == pytest.approx(step - bound)
        gain = (step / (step - bound) - 1) * 100
        assert row["throughput_gain_ceiling_pct"] == pytest.approx(gain)
        assert row["new_mfu_ceiling"] == pytest.approx(40 * step / (step - bound))


def test_a_slower_capture_perturbs_every_bound(tmp_path: Path) -> None:
    path = tmp_path / "trace.sqlite"
    simulate(replace(SCENARIOS["slow_copy"], steps=5), 1, "2026.2.1", path)
    plain = ask(path, "opportunities")
    assert plain[0]["new_mfu_ceiling"] is None
    rows, [verdict] = ask_all(path, "opportunities", "verdict", reference_steps="30ms,31ms")
    assert rows[0]["bound_kind"] == "resolved, perturbed"
    assert all(row["bound_kind"].endswith("perturbed") for row in rows)
    assert rows[0]["recoverable_ms"] == plain[0]["recoverable_ms"]
    assert (plain[0]["confidence"], rows[0]["confidence"]) == ("high", "medium")
    assert "perturbed" in verdict["limits"]


def test_the_rows_of_a_window_are_disjoint(tmp_path: Path) -> None:
    """They add up to the unshadowed launch-starved and the blocking time, to the nanosecond."""
    path = tmp_path / "trace.sqlite"
    truth = simulate(replace(SCENARIOS["deepep"], steps=3), 2, "2026.2.1", path)
    with nsys_sql.open(path, anchor=truth.anchor) as model:
        found = {
            (device, iteration): total
            for device, iteration, total in model.query(
                "SELECT device, iteration, sum(recoverable_ns)::BIGINT FROM opportunity_window "
                "GROUP BY device, iteration"
            ).fetchall()
        }
    for key, b in truth.budget.items():
        whole = b["launch_starved"] - b["launch_starved_shadowed"] + b["blocking"]
        assert found[key] == whole


class Steps(TraceBuilder):
    """Steps of 1 ms on stream 7, kernels and their calls by hand; times in us within a step."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.steps, self.corr = steps, 0
        for step in range(steps):
            self.nvtx(step * MS, (step + 1) * MS, f"step {step}")

    def launch(self, step: int, run: tuple[int, int], name: str, **place: Any) -> Steps:
        """A kernel that was launched long before it could run."""
        self.corr += 10
        at = step * MS
        self.call(at, at + US, corr=self.corr)
        if name == "copy":
            self.memcpy(at + run[0] * US, at + run[1] * US, corr=self.corr, **place)
        else:
            self.kernel(at + run[0] * US, at + run[1] * US, name, corr=self.corr, **place)
        return self

    def edge(self, source: int, target: int) -> Steps:
        """`target` waits for what stands on `source` now."""
        self.corr += 10
        self.record(stream=source, event=1, sync_id=self.corr, corr=self.corr)
        self.wait(stream=target, event=1, sync_id=self.corr, corr=self.corr + 1)
        return self


def test_busy_communication_and_copies_that_nothing_waits_for(tmp_path: Path) -> None:
    """NCCL is 38 % and copies are 20 % of the summed time, beside compute that never stops."""
    trace = Steps(4)
    for step in range(4):
        trace.launch(step, (2, 502), "ampere_sgemm_128x64_tn", stream=7)
        trace.launch(step, (502, 1002), "ampere_sgemm_128x128_tn", stream=7)
        trace.launch(step, (10, 915), NCCL, stream=20)
        trace.launch(step, (20, 496), "copy", stream=28)
    path = trace.write(tmp_path / "trace.sqlite")
    kernels, opportunities, [verdict] = ask_all(
        path, "kernels", "opportunities", "verdict", anchor="kernel:ampere_sgemm_128x64*"
    )
    copies = 3 * 0.476
    total = sum(row["work_ms"] for row in kernels) + copies
    nccl = sum(row["work_ms"] for row in kernels if row["class"] == "nccl")
    assert nccl / total == pytest.approx(0.38, abs=0.001)
    assert copies / total == pytest.approx(0.20, abs=0.001)
    assert opportunities == []
    assert (verdict["dominant_cost"], verdict["dominant_pct"]) == ("compute", 100)
    assert verdict["opportunity"] is None
    assert verdict["comm_blocking_ms"] == 0


def test_hybrid_ep_and_a_late_prefetch_are_told_apart(tmp_path: Path) -> None:
    """Per step: HybridEP's dispatch blocks 200 us, then a host-to-device copy blocks 120 us."""
    trace = Steps(5)
    for step in range(5):
        trace.launch(step, (10, 200), "ampere_sgemm_128x64_tn", stream=7)
        trace.launch(step, (150, 400), HYBRID_EP, stream=20)
        trace.edge(20, 7)
        trace.launch(step, (400, 500), "ampere_sgemm_128x128_tn", stream=7)
        trace.launch(step, (420, 620), "copy", stream=28, kind=1)
        trace.edge(28, 7)
        trace.launch(step, (620, 900), "ampere_sgemm_64x64_tn", stream=7)
    path = trace.write(tmp_path / "trace.sqlite")
    rows = {row["opportunity"]: row for row in ask(path, "opportunities")}
    assert list(rows)[:2] == ["blocking transport dispatch", "blocking copy HtoD"]
    dispatch, copy = (rows[name] for name in list(rows)[:2])
    assert (dispatch["recoverable_ms"], copy["recoverable_ms"]) == (0.2, 0.12)
    assert "dispatcher" in dispatch["action"]
    assert "prefetch" in copy["action"]
    assert dispatch["confidence"] == "high"


def test_unknown_dependencies_make_a_lower_bound(tmp_path: Path) -> None:
    """Waits whose record is missing: what is blocking is a lower bound, and says so."""
    trace = Steps(3)
    for step in range(3):
        trace.launch(step, (10, 200), "ampere_sgemm_128x64_tn", stream=7)
        trace.launch(step, (150, 400), NCCL, stream=20)
        trace.edge(20, 7)
        trace.launch(step, (400, 500), "ampere_sgemm_128x128_tn", stream=7)
        trace.wait(stream=7, event=9, sync_id=123456, corr=trace.corr + 1)
        trace.launch(step, (600, 900), "ampere_sgemm_64x64_tn", stream=7)
    path = trace.write(tmp_path / "trace.sqlite")
    rows, [verdict], claimed = ask_all(path, "opportunities", "verdict", "claims")
    blocking = next(row for row in rows if row["class"] == "nccl")
    assert blocking["bound_kind"] == "lower bound"
    assert blocking["recoverable_ms"] == 0.2
    assert "lower bound" in verdict["limits"]
    claims = {row["claim"]: row["status"] for row in claimed}
    assert claims["iterations and their times"] == "measured"
    assert "source-verified" not in claims.values()


def test_iterations_that_are_named_as_warmup_limit_the_verdict(tmp_path: Path) -> None:
    trace = Steps(3)
    for step in range(3):
        trace.launch(step, (10, 900), "ampere_sgemm_128x64_tn", stream=7)
        trace.nvtx(step * MS, (step + 1) * MS, f"Warm-up Step {step}")
    path = trace.write(tmp_path / "trace.sqlite")
    [plain] = ask(path, "verdict")
    [verdict] = ask(path, "verdict", anchor="nvtx:Warm-up Step *")
    assert "named as warmup" not in (plain["limits"] or "")
    assert "named as warmup (nvtx:Warm-up Step *)" in verdict["limits"]


def test_a_host_that_waits_for_the_device_is_no_late_data_loader(tmp_path: Path) -> None:
    """It waits for a collective of another stream, which is no producer of its next kernel."""
    trace = Steps(6)
    for step in range(6):
        trace.launch(step, (2, 200), "ampere_sgemm_128x64_tn", stream=7)
        trace.launch(step, (100, 700), NCCL, stream=20)
        at = step * MS
        trace.call(at + 3 * US, at + 700 * US, "cudaEventSynchronize_v3020", corr=trace.corr + 1)
        trace.call(at + 701 * US, at + 702 * US, corr=trace.corr + 2)
        trace.kernel(at + 703 * US, at + MS, "ampere_sgemm_128x128_tn", corr=trace.corr + 2)
    path = trace.write(tmp_path / "trace.sqlite")
    row = ask(path, "opportunities")[0]
    assert (row["opportunity"], row["recoverable_ms"]) == ("launch-starved", 0.503)
    assert (row["bound_kind"], row["confidence"], row["n"]) == ("upper bound", "medium", 6)
    assert row["action"].startswith("See first whether the host waits for the device (recipe host-")
    assert "99 % of this time" in row["action"]


def test_a_pause_in_one_step_is_not_typical(tmp_path: Path) -> None:
    """The median is small, the range shows the pause, and its evidence says in how many."""
    path = tmp_path / "trace.sqlite"
    scenario = replace(SCENARIOS["host_stall"], steps=5, stall_every=5)
    simulate(scenario, 1, "2026.2.1", path)
    [row] = [row for row in ask(path, "opportunities") if row["class"] == "launch"]
    assert row["recoverable_ms"] < 1 < 7 < row["max_ms"]
    assert row["confidence"] == "medium"
