"""More planted changes, hand-made figures for the test of noise, the gate's texts, the pictures."""

import os
import random
import re
import shutil
import sqlite3
import statistics
import tempfile
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import simulator
from conftest import brief, long_test
from nsys_sql import compare_report, partition, report_html
from nsys_sql.cli import execute
from nsys_sql.compare import GATED, Comparison, Side, files, threshold
from nsys_sql.compare_cli import _basis, of_each_pair, sentences
from nsys_sql.errors import UsageError
from nsys_sql.options import Options
from nsys_sql.pictures import Segment
from simulator import COMPUTE_STREAM, MS, US, Scenario
from test_compare import PLAIN, Lab, changed, crossed, differing, item, near, rows, slower

ONE = replace(PLAIN, ranks=1, tp=False, steps=8)
GRAPHS = Scenario("graphs", steps=8, layers=2, graphs="node", layer_ranges=False)
GEMMS = ("qkv", "proj", "fc1", "fc2", "dgrad", "wgrad")
REAL = Path(os.environ.get("NSYS_REAL_EXPORTS", Path(__file__).parents[2] / "shared" / "traces"))


@contextmanager
def named(**names):
    """Kernels under other names."""
    before = dict(simulator.KERNELS)
    simulator.KERNELS.update({k: (n, n, *before[k][2:]) for k, n in names.items()})
    try:
        yield
    finally:
        simulator.KERNELS.update(before)


def slower_and_halved(launch):
    """Every kernel is launched as two of half the length, and one is a tenth slower as well."""

    def own(self, stream, name, ns, call_ns=4_500):
        ns = int(ns * (1.1 if name == "fc1" else 1)) // 2
        launch(self, stream, name, ns, call_ns)
        return launch(self, stream, name, ns, call_ns)

    return own


def moved(launch):
    """One kernel runs on a stream of its own, between two events."""

    def own(self, stream, name, ns, call_ns=4_500):
        if name != "swiglu":
            return launch(self, stream, name, ns, call_ns)
        self.follow(stream, 9)
        op = launch(self, 9, name, ns, call_ns)
        self.follow(9, stream)
        return op

    return own


def recomputed(backward):
    """Activations are computed again in the backward pass."""

    def own(rank, layer):
        for key, us in (("norm", 60), ("qkv", 420), ("attention", 520), ("fc1", 640)):
            rank.launch(COMPUTE_STREAM, key, us * US)
        yield from backward(rank, layer)

    return own


def loading(enter):
    """The host waits for data for 5 ms before each step's range."""

    def own(self, text, domain=0, is_step=False):
        self.cpu(5 * MS if is_step else 0)
        return enter(self, text, domain, is_step)

    return own


def without_graph(_):
    """The nodes of a graph as launches of their own."""

    def own(self, stream, nodes, graph):
        return [self.launch(stream, key, ns) for key, ns in nodes]

    return own


def slow_last(launch):
    """Every kernel of rank 3 takes a tenth longer."""

    def own(self, stream, name, ns, call_ns=4_500):
        return launch(self, stream, name, int(ns * 1.1) if self.rank == 3 else ns, call_ns)

    return own


# what other launches of the very same kernels are, and what is said of them
SET = "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET "
OF_GEMMS = " WHERE demangledName IN (SELECT id FROM StringIds WHERE value LIKE 'nvjet%')"
COLUMNS = [f"{what}{axis}" for what in ("grid", "block") for axis in "XYZ"]
LAUNCHES = {
    "larger": [f"{SET} gridX = 2 * gridX"],
    "smaller": [f"{SET} gridY = 3, gridX = gridX / 12"],
    "tuned": [f"{SET} gridX = 2 * gridX {OF_GEMMS}"],
    "reblocked": [f"{SET} gridX = 2 * gridX, blockX = blockX / 2 {OF_GEMMS}"],
    "turned": [f"{SET} gridY = gridX, gridX = gridY"],
    "untold": [f"ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN {name}" for name in COLUMNS],
}


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    lab = Lab(tmp_path_factory.mktemp("changes"))
    rank = simulator.Rank
    lab.make("one", ONE)
    for name, target, what, how in (
        ("both", rank, "launch", slower_and_halved),
        ("moved", rank, "launch", moved),
        ("recomputed", simulator, "_layer_backward", recomputed),
        ("loading", rank, "range", loading),
    ):
        with changed(target, what, how):
            lab.make(name, ONE)
    with named(norm="my_own_thing_v2"):
        lab.make("renamed", ONE)
    fp8 = {key: simulator.KERNELS[key][0].replace("nvjet_ts", "nvjet_qqts") for key in GEMMS}
    with named(**fp8), ExitStack() as stack:
        for key in GEMMS:
            stack.enter_context(slower(key, 0.6))
        lab.make("fp8", ONE)
    lab.make("stalling", replace(ONE, stall_ns=200 * MS, stall_every=8))
    for name, change in LAUNCHES.items():
        lab.truth[name] = lab.truth["one"]
        shutil.copy(lab.path("one"), lab.path(name))
        with sqlite3.connect(lab.path(name)) as con:
            for sql in change:
                con.execute(sql)
        con.close()
    four = replace(PLAIN, ranks=4, steps=6)
    lab.make("four", four)
    with changed(rank, "launch", slow_last):
        lab.make("four_slow", four)
    lab.make("graphs", GRAPHS)
    with changed(rank, "graph_launch", without_graph):
        lab.make("eager", GRAPHS)
    # an older export of another length that also sampled a metric of the GPU
    lab.truth["old"] = simulator.simulate(
        replace(ONE, steps=11), 4, "2022.4.2", path=lab.path("old")
    )
    with sqlite3.connect(lab.path("old")) as con:
        con.execute("CREATE TABLE GPU_METRICS (timestamp INT, typeId INT, metricId INT, value INT)")
        con.execute("INSERT INTO GPU_METRICS VALUES (1, 2, 3, 4)")
    con.close()
    return lab


def work(lab, name, key):
    """The median work of a kernel per step, and its median count, as the export tells them."""
    con = sqlite3.connect(lab.path(name))
    found = []
    for start, end in lab.truth[name].windows[0]:
        found.append(
            con.execute(
                'SELECT coalesce(sum(k."end" - k.start), 0), count(*) FROM '
                "CUPTI_ACTIVITY_KIND_KERNEL AS k JOIN StringIds AS s ON s.id = k.demangledName "
                "WHERE s.value = ? AND k.start >= ? AND k.start < ?",
                (key, start, end),
            ).fetchone()
        )
    con.close()
    return tuple(statistics.median(column) for column in zip(*found, strict=True))


def agrees(lab, compared, base, new, pair=0):
    """Every part of the budget has the difference that the simulator knows, to a rounding."""
    for metric in ("iteration", "compute_busy", "launch_starved", "blocking", "dependency_stalled"):
        delta = item(compared, metric, pair)["delta_ns"]
        assert abs(delta - lab.delta(base, new, metric, pair)) <= 1, metric


# ---------------------------------------------------------------- planted changes


def test_a_kernel_that_is_slower_and_launched_twice_as_often(lab):
    name = simulator.KERNELS["fc1"][0]
    (before, few), (after, many) = (work(lab, n, name) for n in ("one", "both"))
    assert (few, many) == (2, 4)
    with lab.compare("one", "both") as compared:
        assert compared.refusals == []
        row = next(r for r in rows(compared, "kernels") if r["kernel"] == name)
        assert near(row["delta_ns"], after - before)
        assert near(row["count_ns"], before) and near(row["speed_ns"], after - 2 * before)
        agrees(lab, compared, "one", "both")
        assert {"model", "launches"} <= {r["topic"] for r in differing(compared).values()}


def test_a_kernel_on_another_stream_is_no_change(lab):
    with lab.compare("one", "moved") as compared:
        agrees(lab, compared, "one", "moved")
        assert rows(compared, "verdict")[0]["verdict"] == "no change"
        assert list(differing(compared)) == ["CUDA API calls per iteration"]


def test_recomputed_activations_are_told_and_not_refused(lab):
    with lab.compare("one", "recomputed") as compared:
        assert compared.refusals == []
        aspects = differing(compared)
        assert "recomputed" in aspects["model part"]["detail"]
        assert aspects["gemm kernels per iteration"]["new"] == "22"
        agrees(lab, compared, "one", "recomputed")
        (verdict,) = rows(compared, "verdict")
        assert (verdict["carrier"], verdict["inside"]) == ("compute_busy", "gemm")
        name = simulator.KERNELS["qkv"][0]
        (before, _), (after, _) = (work(lab, n, name) for n in ("one", "recomputed"))
        row = next(r for r in rows(compared, "kernels") if r["kernel"] == name)
        assert near(row["delta_ns"], after - before) and near(row["count_ns"], before)


def test_a_new_name_of_another_class_keeps_its_counterpart(lab):
    with lab.compare("one", "renamed") as compared:
        assert item(compared, "iteration")["delta_ns"] == 0
        assert item(compared, "compute_busy:norm")["verdict"] == "less"
        assert item(compared, "compute_busy:other")["verdict"] == "more"
        old, new = simulator.KERNELS["norm"][0], "my_own_thing_v2"
        found = {r["kernel"]: r for r in rows(compared, "kernels")}
        assert (found[old]["counterpart"], found[new]["counterpart"]) == (new, old)
        assert found[old]["delta_ns"] == -found[new]["delta_ns"]
        assert {"norm kernels per iteration", "other kernels per iteration"} <= set(
            differing(compared)
        )


def test_another_precision_is_told(lab):
    with lab.compare("one", "fp8") as compared:
        aspect = differing(compared)["precision of GEMMs per iteration"]
        assert (aspect["base"], aspect["new"]) == ("bf16 18", "fp8 18")
        agrees(lab, compared, "one", "fp8")
        gemm = item(compared, "compute_busy:gemm")
        assert gemm["verdict"] == "less" and near(gemm["pct_of_base"], -40)
        assert "model" in gemm["label"]


def test_what_lies_between_iterations_is_told_and_can_be_gated(lab, capsys):
    with lab.compare("one", "loading") as compared:
        (verdict,) = rows(compared, "verdict")
        assert verdict["verdict"] == "no change"
        assert near(verdict["between_ns"], 5_000_000)
        period = next(r for r in rows(compared, "budget") if r["metric"] == "period")
        assert period["verdict"] == "slower" and period["base_n"] == 7
    both = ("compare", lab.path("one"), lab.path("loading"), "--quiet")
    assert lab.cli(*both, "--fail-on", "iteration > +3%") == 0
    assert "+5 ms lie between iterations" in " ".join(capsys.readouterr().out.split())
    assert lab.cli(*both, "--fail-on", "period > +3%") == 6
    capsys.readouterr()


def test_one_slow_rank_computes_and_the_others_wait(lab):
    with lab.compare("four", "four_slow") as compared:
        for pair, (carrier, inside) in enumerate(
            [("blocking", "nccl")] * 3 + [("compute_busy", "gemm")]
        ):
            (verdict,) = rows(compared, "verdict", pair)
            assert (verdict["verdict"], verdict["carrier"]) == ("slower", carrier)
            assert verdict["inside"] == inside
            agrees(lab, compared, "four", "four_slow", pair)
            delta = item(compared, "blocking:nccl", pair)["delta_ns"]
            assert abs(delta - lab.delta("four", "four_slow", "comm_blocking", pair)) <= 1
        page = compare_report.render(
            compared, [compared.result(name) for name in ("budget", "reconciliation")], "html", {}
        )
        assert "Both budgets, pair 3" in page


def test_graphs_are_told_before_any_delta(lab):
    with lab.compare("eager", "graphs") as compared:
        aspects = differing(compared)
        assert aspects["CUDA graphs"]["new"] == "by node"
        assert aspects["graph launches per iteration"]["new"] == "2"
        assert "launches" in rows(compared, "verdict")[0]["label"]
        agrees(lab, compared, "eager", "graphs")


@pytest.mark.parametrize(
    ("new", "topic", "status", "said"),
    brief(
        4,
        [
            (
                "larger",
                "workload",
                "differs",
                "have 2 times the threads in a launch (median by work",
            ),
            ("tuned", "launches", "differs", "and so do kernels tuned anew under their n"),
            ("untold", "launches", "unknown", "one of the reports does not tell"),
            ("reblocked", "launches", "differs", "have as many threads in other blocks: tuned"),
            ("smaller", "workload", "differs", "have 0.25 times the threads in a launch"),
            ("turned", "launches", "same", "have the same grids and blocks"),
        ],
    ),
)
def test_launch_geometry_tells_other_work_from_other_kernels(lab, new, topic, status, said):
    """And what differs is a label, not a refusal."""
    with lab.compare("one", new) as compared:
        found = {row["aspect"]: row for row in compared.result("comparability").dicts()}
        row = found.pop("launch geometry")
        assert (row["topic"], row["status"]) == (topic, status) and said in row["detail"]
        assert all(row["status"] != "differs" for row in found.values())
        (verdict,) = rows(compared, "verdict")
        assert verdict["label"] == (f"differs: {topic}" if status == "differs" else None)
        is_told = "probably not the same amount of work" in next(sentences([verdict]))
        assert is_told == (topic == "workload") == (verdict["work_factor"] is not None)


def test_iterations_that_medians_do_not_see_are_told(lab, capsys):
    with lab.compare("one", "stalling") as compared:
        (verdict,) = rows(compared, "verdict")
        steps = {
            name: [v["iteration"] for v in lab.truth[name].budget.values()]
            for name in ("one", "stalling")
        }
        # the same medians, and a mean that is 200 ms / 8 more
        added = statistics.mean(steps["stalling"]) - statistics.mean(steps["one"])
        assert near(added, 25 * MS, 0.1) and verdict["verdict"] != "slower"
        assert near(verdict["outliers_ns"], added)
        assert (verdict["base_outliers"], verdict["new_outliers"]) == (0, 1)
        label = f"outliers: 0 of 8 and 1 of 8 iterations, {added / MS:+.3g} ms per iteration"
        assert verdict["label"] == label == item(compared, "iteration")["label"]
        (said,) = sentences([verdict])
        assert "which medians do not see: 0 of 8 iterations, then 1 of 8, lie far from" in said
    both = ("compare", lab.path("one"), lab.path("stalling"))
    gate = ("--fail-on", "iteration > +3%")
    assert lab.cli(*both, *gate) == lab.cli(*both, *gate, "--quiet") == 0
    err = capsys.readouterr().err
    assert err == (
        "Warning: iteration > +3% is crossed by the means, not by the medians that count: "
        "iteration_mean gates them\n"
    )
    assert crossed(lab, capsys, "one", "stalling", "iteration_mean > +3%") == [
        "iteration_mean > +3%"
    ]
    assert crossed(lab, capsys, "one", "stalling", "launch_starved_mean > 1s") == []


def test_an_older_longer_export_with_gpu_metrics_compares(lab):
    for base, new in (("old", "one"), ("one", "old")):
        with lab.compare(base, new) as compared:
            aspects = differing(compared)
            assert {"nsys export", "recorded"} <= set(aspects)
            assert "gpu_metric" in aspects["recorded"]["base" if base == "old" else "new"]
            assert rows(compared, "verdict")[0]["verdict"] == "no change"
            agrees(lab, compared, base, new)


def test_the_bases_own_anchor_may_count_otherwise(lab):
    own = Options(anchor="kernel:*Adam*", per_iteration=2, threads=1)
    other = Options(anchor="kernel:*L2Norm*", threads=1)
    parts = [partition.ensure(lab.path("one"), lab.folder / "parts", o) for o in (own, other)]
    with Comparison(Side(parts[:1], own), Side(parts[1:], other)) as compared:
        assert compared.refusals == []
        assert differing(compared)["per iteration"]["base"] == "2"
        assert rows(compared, "verdict")[0]["verdict"] == "no change"
    same = replace(other, per_iteration=2)
    part = partition.ensure(lab.path("one"), lab.folder / "parts", same)
    with Comparison(Side(parts[1:], other), Side([part], same)) as compared:
        assert any(text.startswith("per iteration: 1 against 2") for text in compared.refusals)


# ---------------------------------------------------------------- model part


def bare():
    """A comparison without traces: its steps can be given what they read by hand."""
    compared = object.__new__(Comparison)
    super(Comparison, compared).__init__(1, None, None)
    compared.sql = files()
    compared._create_tables({})
    return compared


# kernel -> (class, count, work in ms) per iteration
SMALL = {"mm": ("gemm", 20, 80), "flash_fwd": ("attention", 4, 10), "norm": ("norm", 8, 4)}


def like(*, drop=(), times=1, suffix="", **more):
    """SMALL without some kernels, so many times as deep, under other names, with others."""
    kept = {
        name + suffix: (kind, n * times, ms * times)
        for name, (kind, n, ms) in SMALL.items()
        if name not in drop
    }
    return kept | more


MODELS = [
    # some or all of attention under a name of no class
    (like(bwd=("attention", 4, 20)), like(my_bwd=("other", 4, 20)), "moved"),
    (like(bwd=("attention", 4, 20)), like(drop=["flash_fwd"], x=("other", 8, 30)), "moved"),
    (like(), like(norm2=("norm", 8, 3)), "same"),
    # all GEMMs, or some
    (like(), like(drop=["mm"], triton_mm=("other", 20, 78)), "moved"),
    (like(mm2=("gemm", 20, 80)), like(my_mm=("other", 20, 60)), "moved"),
    # attention as products and a softmax, then as one kernel, and the other way round
    (like(drop=["flash_fwd"], bmm=("gemm", 8, 24), sm=("elementwise", 4, 9)), like(), "moved"),
    (like(), like(drop=["flash_fwd"], bmm=("gemm", 8, 24)), "moved"),
    (like(), like(drop=["flash_fwd"], bmm=("gemm", 40, 160)), "refused"),
    # cut in other pieces
    (like(), like(drop=["mm"], mm_half=("gemm", 40, 84)), "same"),
    # more layers: of the same names, of others, and with kernels of no class on both sides
    (like(), like(times=2), "refused"),
    (like(), like(times=2, suffix="_sm100"), "refused"),
    (like(a=("other", 8, 30)), like(times=2, suffix="_v2", b=("other", 16, 60)), "refused"),
    # too little of no class to make up for the rest, or none at all
    (like(), like(times=2, drop=["norm"], a=("other", 8, 30)), "refused"),
    (like(a=("other", 3, 20)), like(times=2), "refused"),
    (like(), like(drop=["mm"]), "refused"),
]


def test_names_may_change_freely_and_depth_may_not():
    """Each case is a pair of devices: contents of both sides, and what the model part is called."""
    compared = bare()
    try:
        columns = (
            "pair BIGINT, kind VARCHAR, key VARCHAR, class VARCHAR, base_count DOUBLE, new_count "
            "DOUBLE, base_work_ns BIGINT, new_work_ns BIGINT, base_bytes BIGINT, new_bytes BIGINT"
        )
        compared.con.execute(f"CREATE TABLE pair.content_pair ({columns})")
        for pair, (base, new, _) in enumerate(MODELS):
            compared._insert(
                "content_pair",
                (
                    (pair, "kernel", name, (base.get(name) or new[name])[0],
                     *(side.get(name, (0, 0, 0))[1] for side in (base, new)),
                     *(side.get(name, (0, 0, 0))[2] * MS for side in (base, new)), 0, 0)
                    for name in {**base, **new}
                ),
            )  # fmt: skip
        compared.con.execute(
            "INSERT INTO pair.content_pair SELECT pair, 'class', class, class, sum(base_count), "
            "sum(new_count), sum(base_work_ns), sum(new_work_ns), 0, 0 FROM pair.content_pair "
            "GROUP BY pair, class"
        )
        compared._built = {"content_pair"}
        compared.prepare("model_part")
        told = compared.con.execute(
            "SELECT refusal, moved FROM pair.model_part ORDER BY pair"
        ).fetchall()
    finally:
        compared.close()
    assert len(told) == len(MODELS)
    for (base, new, expected), (refusal, moved) in zip(MODELS, told, strict=True):
        found = "refused" if refusal else "moved" if moved else "same"
        assert found == expected, (base, new, refusal, moved)


# ---------------------------------------------------------------- noise


@contextmanager
def judged(samples):
    """The verdicts of hand-made figures: pair -> (base, new), each item -> figures."""
    compared = bare()
    # through a file: so many parameters of a statement would take longer than all the rest
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "sample.csv"
        with file.open("w") as out:
            out.write("pair,side,number,item,value_ns\n")
            for pair, both in samples.items():
                for side, items in zip(("base", "new"), both, strict=True):
                    for name, values in items.items():
                        out.writelines(
                            f"{pair},{side},{at},{name},{int(value)}\n"
                            for at, value in enumerate(values)
                        )
        compared.con.execute(
            "CREATE TABLE pair.sample AS SELECT pair::BIGINT AS pair, side, number::BIGINT AS "
            "number, NULL::VARCHAR AS parent, NULL::VARCHAR AS class, item, value_ns::BIGINT AS "
            f"value_ns FROM read_csv('{file}', header = true)"
        )
    compared.con.execute(
        "CREATE TABLE pair.window AS SELECT pair, side, count(*) AS n, "
        "nsys.padded_middle(list(value_ns), count(*)) AS iteration_ns "
        "FROM pair.sample WHERE item = 'iteration' GROUP BY pair, side"
    )
    compared._built = {"sample", "window"}
    try:
        compared.prepare("noise")
        yield compared.con
    finally:
        compared.close()


def test_what_a_verdict_rests_on_stands_beside_it():
    """p is never read for what decided: windows that drift, many quantities, few windows."""
    rising = [1000 + at for at in range(8)]
    source, many = random.Random(7), [0.0]
    while len(many) < 60:
        many.append(0.6 * many[-1] + source.gauss(0, 9))
    many = [1000 + round(value) for value in many]
    mixed = source.sample(many, len(many))
    whole = {"iteration": [1000, 1006, 1002, 1004, 1001, 1005, 1003, 1007]}
    filler = {f"part{at}": [at] * 8 for at in range(20)}
    near_by = ([40, 52, 44, 56, 48, 60, 64, 68], [65, 81, 69, 77, 85, 73, 62, 89])
    with judged(
        {
            0: ({"iteration": rising}, {"iteration": [value + 100 for value in rising]}),
            1: (
                whole | {"x": near_by[0]} | filler,
                whole | {"x": near_by[1]} | filler,
            ),
            2: ({"iteration": [1000, 1300]}, {"iteration": [1400, 1800]}),
            3: ({"iteration": whole["iteration"]}, {"iteration": rising}),
            # the same figures in an order that drifts, and in one that does not
            4: ({"iteration": many}, {"iteration": [value + 1 for value in many]}),
            5: ({"iteration": mixed}, {"iteration": [value + 1 for value in mixed]}),
        }
    ) as con:
        found = {
            (pair, name): rest
            for pair, name, *rest in con.execute(
                "SELECT pair, item, verdict, basis, p_value, low_ns, high_ns FROM pair.noise"
            ).fetchall()
        }
        widths = dict(con.execute("SELECT pair, widening FROM pair.drift WHERE item = 'iteration'")
                      .fetchall())  # fmt: skip
    verdict, basis, p, low, high = found[0, "iteration"]
    assert (verdict, basis) == ("slower", "ranges far apart, drift") and p > 0.01
    # neighbours that are alike widen the bounds as well, here beyond all differences
    assert widths[0] > 2 and low is None and high is None
    *_, low, high = found[4, "iteration"]
    *_, near, far = found[5, "iteration"]
    assert widths[4] > 1 == widths[5] and low < near < 0 < far < high
    assert "but the ranges lie far apart" in _basis(basis) and "drift" in _basis(basis)
    verdict, basis, p, *_ = found[1, "x"]
    assert (verdict, basis) == ("cannot tell", "p above alpha / 22")
    assert 0.01 / 22 < p <= 0.01
    assert found[1, "part3"][:2] == ["no change", "same figures"]
    assert found[2, "iteration"][:2] == ["cannot tell", "too few windows"]
    assert found[3, "iteration"][:2] == ["no change", "same figures"]
    assert _basis("p") == _basis("bounds") == ""


def verdicts(con):
    return con.execute(
        "SELECT pair, item, verdict, p_value FROM pair.noise ORDER BY pair, item"
    ).fetchall()


def test_few_windows_repeats_and_identical_figures():
    whole = [1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007]
    few, wide = [1000, 1002, 1004], [1000, 1400, 1800]
    filler = {f"part{at}": [at] * 8 for at in range(40)}
    with (
        judged(
            {
                0: ({"iteration": few}, {"iteration": [1001, 1003, 1005]}),  # within 1 %
                1: ({"iteration": few}, {"iteration": [1001, 1003, 1020]}),  # not within
                2: ({"iteration": wide}, {"iteration": wide}),  # the very same
                3: ({"iteration": wide}, {"iteration": [1000, 1400, 1801]}),
                # all beyond all, with repeats inside a side: exact, and enough for many quantities
                4: (
                    {"iteration": whole, "x": [0] * 8} | filler,
                    {"iteration": whole, "x": [50] * 8} | filler,
                ),
                5: (
                    {"iteration": whole[:5], "x": [0] * 5},
                    {"iteration": whole[:5], "x": [50, 51, 52, 53, 54]},
                ),
                6: (
                    {"iteration": whole[:5], "x": [0] * 5},
                    {"iteration": whole[:5], "x": [50, 51, 52, 53, 90]},
                ),
            }
        ) as con
    ):
        found = {(pair, name): (verdict, p) for pair, name, verdict, p in verdicts(con)}
    assert [found[pair, "iteration"][0] for pair in range(4)] == [
        "no change", "cannot tell", "no change", "cannot tell",
    ]  # fmt: skip
    assert found[4, "x"][0] == "more" and found[4, "x"][1] == pytest.approx(2 / 12870)
    assert found[4, "part7"][0] == "no change"
    # five and five cannot reach a 500th: far apart is what decides
    assert found[5, "x"][0] == "more" and found[6, "x"][0] == "cannot tell"


def test_equal_values_and_neighbours_change_p():
    """The correction of the normal approximation for ties and for likeness, by hand."""
    base, new = [1, 3, 2, 4, 1, 3, 2, 4], [3, 5, 4, 6, 3, 5, 4, 6]
    rising = [sorted(base), sorted(new)]
    with judged({0: ({"iteration": base}, {"iteration": new}),
                 1: ({"iteration": rising[0]}, {"iteration": rising[1]})}) as con:  # fmt: skip
        (_, _, _, plain), (_, _, _, alike) = verdicts(con)
    u = sum((b > n) + (b == n) / 2 for b in base for n in new)
    every = base + new
    ties = sum(t**3 - t for t in (every.count(value) for value in set(every)))
    spread = 8 * 8 / 12 * (17 - ties / (16 * 15))
    normal = statistics.NormalDist()

    def p(variance):
        return 2 * (1 - normal.cdf((abs(u - 32) - 0.5) / variance**0.5))

    assert plain == pytest.approx(p(spread), abs=1e-6)
    off = [[value - statistics.mean(side) for value in side] for side in rising]
    above = sum(a * b for side in off for a, b in pairwise(side))
    r = above / sum(a * a for side in off for a in side)
    assert r > 1.64 / 4
    assert alike == pytest.approx(p(spread * (1 + r) / (1 - r)), abs=1e-6)


def test_false_alarms_and_power():
    """160 pairs of the same and 80 of a change by 3 %, the parts of each iteration noisy."""
    source = random.Random(20)

    def run(noise, factor=1.0, n=12):
        items = {"iteration": []} | {f"part{at}": [] for at in range(12)}
        for _ in range(n):
            parts = [1_000_000 * factor * max(0.1, source.gauss(1, noise)) for _ in range(12)]
            scale = max(0.1, source.gauss(1, noise))
            for at, value in enumerate(parts):
                items[f"part{at}"].append(value * scale)
            items["iteration"].append(sum(parts) * scale)
        return items

    noises = (0.005, 0.01, 0.03, 0.1)
    same = {at: (run(noises[at % 4]), run(noises[at % 4])) for at in range(160)}
    with judged(same) as con:
        alarms = {
            name: con.execute(
                "SELECT count(DISTINCT pair) FROM pair.noise "
                "WHERE verdict IN ('more', 'less', 'slower', 'faster')" + more
            ).fetchone()[0]
            for name, more in (("iteration", " AND item = 'iteration'"), ("any", ""))
        }
    assert alarms["iteration"] <= 4 and alarms["any"] <= 8, alarms

    def drifting(n=12):
        found, off = [], source.gauss(0, 0.03)
        for _ in range(n):
            off = 0.8 * off + source.gauss(0, 0.02)
            found.append(1_000_000 * (1 + off))
        return {"iteration": found}

    with judged({at: (drifting(), drifting()) for at in range(150)}) as con:
        (alarms,) = con.execute(
            "SELECT count(*) FROM pair.noise WHERE verdict IN ('more', 'less', 'slower', 'faster')"
        ).fetchone()
    assert alarms <= 30  # twice as many without regard to the neighbours
    planted = {at: (run(0.01), run(0.01, 1.03)) for at in range(80)}
    with judged(planted) as con:
        (found,) = con.execute(
            "SELECT count(*) FROM pair.noise WHERE verdict = 'slower' AND item = 'iteration'"
        ).fetchone()
    assert found >= 77


# ---------------------------------------------------------------- gate

PIECES = st.sampled_from(
    [*GATED, "iteratoin", "", " ", ">", "<", ">=", "<=", "==", "=", "+", "-", "\u00b1", "\u2212",
     "3", "0", "1e9", "nan", "inf", "9" * 400, ".", "1.5", "%", "ms", "us", "\u00b5s", "s", "ns",
     "h", "\u0663", "\uff11", "\n", "\x00", "'", ";", "iteration > +3%"]
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.one_of(st.lists(PIECES, max_size=8).map("".join), st.text(max_size=30)))
def test_a_threshold_is_read_right_or_refused(text):
    try:
        read = threshold(text)
    except UsageError:
        return
    assert read.metric in GATED and abs(read.amount) < 1e21
    shown = re.sub(r"\s", "", text.lower().replace("-", "_", text.count("-")))
    assert shown.startswith(read.metric + read.comparison)
    assert (read.kind == "percent") == shown.endswith("%")
    assert (read.kind == "level") == (not set("+_") & set(shown[len(read.metric) :]))


@pytest.mark.parametrize(
    "text",
    ["period", "iteration > 3%", "iteration > \u00b13%", "iteration > \u22123%", "iteration = +3%",
     "iteration > +3 minutes", "iteration > + -3%", f"iteration > +{'9' * 400}%", "> +3%", "",
     "iteration > +3% and blocking > 2ms", "iteration > +\u0663%", "gemm > +3%"],
)  # fmt: skip
def test_a_bad_threshold_names_what_is_wrong(text):
    with pytest.raises(UsageError, match="--fail-on"):
        threshold(text)


def test_what_was_not_measured_is_never_a_pass(lab, capsys):
    both = ("compare", lab.path("one"), lab.path("loading"), "--quiet", "--iterations", "3:4")
    assert lab.cli(*both, "--fail-on", "iteration > +900%") == 0
    assert lab.cli(*both, "--fail-on", "period > +900%") == 4
    assert "two steady iterations in a row" in capsys.readouterr().err
    none = (*both[:-1], "70:80", "--fail-on", "iteration > +900%")
    assert lab.cli(*none) == 4
    capsys.readouterr()


@pytest.fixture(scope="module")
def lacking(fixture_sqlite, tmp_path_factory):
    """`lacking(table)`: the example without a table, and where its partition is kept."""
    made = {}

    def find(table):
        if table not in made:
            folder = tmp_path_factory.mktemp("lacking")
            path = shutil.copyfile(fixture_sqlite("example"), folder / "without.sqlite")
            with closing(sqlite3.connect(path)) as con:
                con.execute(f"DROP TABLE {table}")
                con.commit()
            made[table] = path, folder / "parts"
        return made[table]

    return find


@pytest.mark.parametrize(
    ("table", "metric", "code"),
    [
        ("CUPTI_ACTIVITY_KIND_RUNTIME", "launch_starved", 4),
        ("CUPTI_ACTIVITY_KIND_RUNTIME", "dependency_stalled", 4),
        ("CUPTI_ACTIVITY_KIND_RUNTIME", "compute_busy", 0),
        ("CUPTI_ACTIVITY_KIND_KERNEL", "compute_busy", 4),
        ("CUPTI_ACTIVITY_KIND_KERNEL", "iteration", 0),
    ],
)
def test_what_a_capture_lacks_is_never_a_pass(lacking, capsys, table, metric, code):
    without, parts = lacking(table)
    arguments = [without, without, "--quiet", "--jobs", "1", "--partitions", parts]
    gate = [*arguments, "--result", "gate", "--fail-on", f"{metric} > +1%"]
    assert execute(["compare", *map(str, gate)]) == code
    assert ("was not measured" in capsys.readouterr().err) == (code == 4)


def test_a_report_never_replaces_its_history(fixture_sqlite, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    trace = str(fixture_sqlite("example"))
    both = ["compare", trace, trace, "--jobs", "1", "--partitions", "parts", "--format", "json"]
    assert execute([*both, "--store", "./h.duckdb", "-o", "h.duckdb"]) == 2
    assert "would overwrite the history" in capsys.readouterr().err
    assert not (tmp_path / "h.duckdb").exists()


def test_from_a_base_of_zero_every_increase_is_more(lab, capsys):
    """The eager run has no graph; nothing else of these two is 0 on one side only."""
    texts = {
        "unattributed > +1000%": False,
        "unattributed > +0%": False,
        "unattributed >= +0%": True,
        "unattributed < -10%": False,
        "unattributed <= 0ns": True,
    }
    assert crossed(lab, capsys, "one", "one", *texts) == [t for t in texts if texts[t]]


# ---------------------------------------------------------------- pictures


def _rows(base, new, steps, n=(8, 9)):
    whole = {"level": 0, "pair": 0, "item": "iteration", "verdict": "more", "delta_ns": new - base}
    whole |= {"base_ns": base, "new_ns": new, "base_n": n[0], "new_n": n[1]}
    return [whole] + [
        {"level": 1, "pair": 0, "item": name, "delta_ns": delta, "verdict": verdict}
        for name, delta, verdict in steps
    ]


@pytest.mark.parametrize(
    ("base", "new", "deltas"),
    [
        (15_700_000, 15_960_000, (300_000, -50_000, 0, 9_000, 1_000)),
        (15_960_000, 15_700_000, (-300_000, 50_000, 0, -9_000, -1_000)),
        (45_000_000, 15_000_000, (-30_000_000, 0, 0, 0, 0)),
        (15_000_000, 45_000_000, (30_000_000, 1, -1, 0, 0)),
        (15_000_000, 15_000_000, (5_000_000, -5_000_000, 0, 0, 0)),
        (7, 7, (0, 0, 0, 0, 0)),
    ],
)
def test_the_steps_lead_from_base_to_new(base, new, deltas):
    verdict = ["more", "no change", "no change", "cannot tell", None]
    steps = list(zip("abcde", deltas, verdict, strict=True))
    picture = compare_report._waterfall(0, "", _rows(base, new, steps))
    first, *middle, last = picture.rows
    at = first[1][0].length
    assert at == base / 1e6
    for (label, segments), (_, delta, said) in zip(middle, steps, strict=True):
        assert bool(segments) == bool(delta)
        for segment in segments:
            assert segment.group == ("more" if delta > 0 else "less")
            assert ("+" if delta > 0 else "-") in label
            assert segment.start == pytest.approx(min(at, at + delta / 1e6))
            assert (segment.density == 1) == (said in ("more", "less", "small"))
            at += delta / 1e6
    assert at == pytest.approx(last[1][0].length) == pytest.approx(new / 1e6)
    lows = [s.start + s.length for _, segments in picture.rows for s in segments]
    assert 0 <= picture.origin <= min(lows)
    # an axis is cut only where that is needed to see the steps, and says so
    assert bool(picture.origin) == ("not at 0" in picture.caption)
    assert picture.origin == 0 or picture.origin > 0.25 * base / 1e6
    assert "n = 8 and 9" in picture.caption


def test_many_pairs_share_a_picture():
    budgets, every = [], []
    for pair in range(9):
        for name, value in zip(
            ("iteration", "compute_busy", "launch_starved", "blocking", "dependency_stalled",
             "unattributed"), (100, 60, 20, 15, 5, 0), strict=True,
        ):  # fmt: skip
            budgets.append(
                {"pair": pair, "metric": name, "base_mean_ns": value * 1e6,
                 "new_mean_ns": value * 2e6}
            )  # fmt: skip
        every += [
            row | {"pair": pair, "delta_ns": pair}
            for row in _rows(100_000_000, 100_000_000 + pair, [("a", pair, "more")])
        ]
    first, *others = compare_report._pictures(budgets, every)
    assert [name for name, _ in first.rows[:3]] == ["0 base", "0 new", "1 base"]
    assert len(first.rows) == 18
    for name, segments in first.rows:
        ends = [0, *(s.start + s.length for s in segments)]
        assert [s.start for s in segments] == pytest.approx(ends[:-1])
        assert ends[-1] == pytest.approx(100 if name.endswith("base") else 200)
    assert [each.name for each in others] == [f"waterfall-{pair}" for pair in (5, 6, 7, 8)]


def test_no_pair_hides_behind_another():
    rows = [{"pair": pair, "at": at} for pair in range(3) for at in range(40)]
    assert [(r["pair"], r["at"]) for r in of_each_pair(rows, 9)] == [
        (pair, at) for pair in range(3) for at in range(3)
    ]
    assert len(of_each_pair(rows[:40], 20)) == 20
    assert len(of_each_pair(rows, 2)) == 9  # a few of each are always shown
    assert of_each_pair([], 20) == []


def test_names_are_no_tags_and_pale_is_pale(monkeypatch):
    from nsys_sql.pictures import Picture

    picture = Picture("x", "x", "x", "ms", [("<b>", [Segment("more", 0, 1, "<i>", 0.35)])])
    svg = "".join(report_html._bars(picture))
    assert "<b>" not in svg and "<i>" not in svg and 'fill-opacity="0.42"' in svg
    script = (Path(report_html.__file__).parent / "page" / "report.js").read_text()
    assert "plain(n.length > long" in script and "replace(/</g, '&lt;')" in script


# ---------------------------------------------------------------- real exports

# Those with a budget and enough iterations: the others would only cost time here.
CAPTURES = [
    path
    for name in ("cs336-2024.6*", "jax-2025.5*", "nsysai-2026.2*")
    for path in sorted(REAL.glob(f"{name}.sqlite"))
]


@pytest.mark.skipif(not CAPTURES, reason="no real exports here: NSYS_REAL_EXPORTS names a folder")
@pytest.mark.parametrize(
    "path",
    [
        *CAPTURES[-1:],
        *(pytest.param(path, marks=long_test) for path in CAPTURES[:-1]),
    ],
    ids=lambda path: path.stem[:30],
)
def test_a_real_capture_has_not_changed_since_itself(path, tmp_path):
    plain = Options(threads=1)
    part = partition.ensure(path, tmp_path, plain)
    with Comparison(Side([part], plain), Side([part], plain)) as compared:
        first, last = compared.con.execute(
            "SELECT min(iteration), max(iteration) + 1 FROM pair.budget WHERE side = 'base'"
        ).fetchone()
        assert {r["verdict"] for r in compared.result("verdict").dicts()} == {"no change"}
        assert {r["verdict"] for r in compared.result("budget").dicts()} == {"no change"}
        assert {r["status"] for r in compared.result("comparability").dicts()} <= {
            "same", "unknown"
        }  # fmt: skip
    middle = (first + last) // 2
    halves = [replace(plain, iterations=f"{a}:{b}") for a, b in ((first, middle), (middle, last))]
    parts = [partition.ensure(path, tmp_path, half) for half in halves]
    with Comparison(*(Side([p], h) for p, h in zip(parts, halves, strict=True))) as compared:
        assert compared.refusals == []
        assert {r["verdict"] for r in compared.result("verdict").dicts()} <= {
            "no change", "cannot tell"
        }  # fmt: skip
