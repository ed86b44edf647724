"""Before and after: simulated pairs with one planted change, whose place and size are known."""

import csv
import io
import json
import multiprocessing
import re
import statistics
from contextlib import contextmanager
from dataclasses import replace

import pytest

import simulator
from conftest import brief
from nsys_sql import compare, history, partition
from nsys_sql.cli import execute
from nsys_sql.compare import Comparison, Side, threshold
from nsys_sql.errors import AnswerError, UsageError
from nsys_sql.options import Options
from simulator import COMPUTE_STREAM, TP_STREAM, US, Scenario

ANCHOR = Options(anchor="nvtx:step *", threads=1)
PLAIN = Scenario("before", steps=8, layers=2, ranks=2, tp=True, layer_ranges=False)
PARTS = ("compute_busy", "launch_starved", "blocking", "dependency_stalled", "unattributed")


@contextmanager
def changed(target, name, make):
    """Replace one function of the simulator by what `make` makes of it."""
    before = getattr(target, name)
    setattr(target, name, make(before))
    try:
        yield
    finally:
        setattr(target, name, before)


def slower(key, factor):
    """One kernel takes `factor` times as long."""

    def make(launch):
        def own(self, stream, name, ns, call_ns=4_500):
            return launch(self, stream, name, int(ns * factor) if name == key else ns, call_ns)

        return own

    return changed(simulator.Rank, "launch", make)


def halved(self_launch):
    """Every kernel is launched as two of half the length."""

    def own(self, stream, name, ns, call_ns=4_500):
        self_launch(self, stream, name, ns // 2, call_ns)
        return self_launch(self, stream, name, ns // 2, call_ns)

    return own


def without_overlap(collective):
    """Compute waits for every collective at once."""

    def own(self, stream, *rest):
        op = yield from collective(self, stream, *rest)
        self.follow(stream, COMPUTE_STREAM)
        return op

    return own


def one_more(optimizer):
    """One more all-reduce before the optimizer, which waits for it."""

    def own(rank):
        rank.follow(COMPUTE_STREAM, TP_STREAM)
        yield from rank.collective(TP_STREAM, "all_reduce", 500 * US, "tp", 2)
        rank.follow(TP_STREAM, COMPUTE_STREAM)
        yield from optimizer(rank)

    return own


class Lab:
    """Simulated exports by name, with their truth and their partitions."""

    def __init__(self, folder):
        self.folder, self.truth, self.parts = folder, {}, {}

    def make(self, name, scenario, seed=1):
        self.truth[name] = simulator.simulate(scenario, seed, path=self.path(name))
        return name

    def path(self, name):
        return self.folder / f"{name}.sqlite"

    def side(self, *names):
        for name in names:
            if name not in self.parts:
                self.parts[name] = partition.ensure(self.path(name), self.folder / "parts", ANCHOR)
        return Side([self.parts[name] for name in names], ANCHOR)

    def compare(self, base, new, **more):
        return Comparison(self.side(base), self.side(new), **more)

    def cli(self, *arguments):
        more = (
            "--partitions",
            str(self.folder / "parts"),
            "--anchor",
            "nvtx:step *",
            "--jobs",
            "1",
        )
        return execute([*map(str, arguments), *more, "--threads", "1"])

    def delta(self, base, new, metric, device=0):
        """The difference of the medians that the simulator knows."""
        medians = [
            statistics.median(
                v[metric] for (d, _), v in self.truth[n].budget.items() if d == device
            )
            for n in (base, new)
        ]
        return medians[1] - medians[0]


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """The base, a second run of the same, and one run for each planted change."""
    lab = Lab(tmp_path_factory.mktemp("compare"))
    lab.make("base", PLAIN)
    lab.make("again", PLAIN, seed=2)
    with slower("fc1", 1.1):
        lab.make("slower", PLAIN)
    with changed(simulator.Rank, "launch", halved):
        lab.make("doubled", PLAIN)
    with changed(simulator.Rank, "collective", without_overlap):
        lab.make("serial", PLAIN)
    with changed(simulator, "_optimizer", one_more):
        lab.make("more", PLAIN)
    lab.make("ranks", replace(PLAIN, ranks=3))
    lab.make("deeper", replace(PLAIN, layers=3))
    lab.make("tiny", replace(PLAIN, tiny=True, steps=6))
    with changed(simulator.Rank, "launch", halved):
        lab.make("tiny_doubled", replace(PLAIN, tiny=True, steps=6))
    return lab


def rows(compared, name, pair=0):
    return [row for row in compared.result(name).dicts() if row.get("pair", pair) == pair]


def item(compared, name, pair=0):
    return next(r for r in rows(compared, "reconciliation", pair) if r["item"] == name)


def differing(compared):
    found = compared.result("comparability").dicts()
    return {row["aspect"]: row for row in found if row["status"] == "differs"}


def crossed(lab, capsys, base, new, *texts):
    """The thresholds that a gate with all of these says were crossed; its code agrees."""
    gate = [part for text in texts for part in ("--fail-on", text)]
    code = lab.cli("compare", lab.path(base), lab.path(new), "--quiet", *gate)
    err = capsys.readouterr().err
    told = [text for text in texts for _ in range(err.count(f"CROSSED {text}: "))]
    assert len(told) == err.count("CROSSED") and code == (6 if told else 0), err
    return list(dict.fromkeys(told))


def near(value, expected, share=0.01):
    return abs(value - expected) <= share * abs(expected)


# ---------------------------------------------------------------- reconciliation

PAIRS = (
    ("base", "slower"),
    ("base", "doubled"),
    ("base", "serial"),
    ("base", "more"),
    ("base", "again"),
    ("tiny", "tiny_doubled"),
)


@pytest.mark.parametrize(("base", "new"), brief(3, PAIRS))
def test_parts_add_up_and_agree_with_the_truth(lab, base, new):
    with lab.compare(base, new) as compared:
        for pair in (0, 1):
            found = {row["item"]: row for row in rows(compared, "reconciliation", pair)}
            levels = [row["delta_ns"] for row in found.values() if row["level"] == 1]
            assert sum(levels) == found["iteration"]["delta_ns"]
            for parent in ("compute_busy", "blocking"):
                inside = [r["delta_ns"] for r in found.values() if r["parent"] == parent]
                assert sum(inside) == found[parent]["delta_ns"]
            for metric in ("iteration", *PARTS):
                assert abs(found[metric]["delta_ns"] - lab.delta(base, new, metric, pair)) <= 1
            classes = {}
            for row in rows(compared, "kernels", pair):
                assert row["speed_ns"] + row["count_ns"] == row["delta_ns"]
                classes[row["class"]] = classes.get(row["class"], 0) + row["delta_ns"]
            for name, delta in classes.items():
                assert found[f"compute_busy:{name}"]["delta_ns"] == delta
        checks = [c for name in compare.RESULTS for c in compared.result(name).checks]
        assert checks and all(check.status == "ok" for check in checks)


def test_a_slower_kernel_is_laid_to_its_row(lab):
    with lab.compare("base", "slower") as compared:
        name = simulator.KERNELS["fc1"][0]
        found = {row["kernel"]: row for row in rows(compared, "kernels")}
        planted = 2 * 64_000  # two layers, a tenth of 640 us
        assert near(found[name]["speed_ns"], planted) and found[name]["count_ns"] == 0
        assert near(found[name]["avg_pct"], 10)
        others = [r for r in found.values() if r["kernel"] not in (name, None)]
        assert all(row["delta_ns"] == 0 for row in others)
        assert near(item(compared, "compute_busy:gemm")["delta_ns"], planted)
        assert near(item(compared, "compute_busy")["delta_ns"], planted)
        assert near(item(compared, "iteration")["delta_ns"], planted)
        assert differing(compared) == {}
        # 1 % of the iteration decides what matters, and the planted change is about that
        assert item(compared, "compute_busy:gemm")["verdict"] in ("more", "small")


def test_doubled_launches_change_counts_and_not_the_model_part(lab):
    with lab.compare("base", "doubled") as compared:
        assert compared.refusals == []
        aspects = differing(compared)
        assert (
            aspects["kernel launches per iteration"]["base"]
            != (aspects["kernel launches per iteration"]["new"])
        )
        assert "gemm kernels per iteration" in aspects
        kernels = [r for r in rows(compared, "kernels") if r["match"] == "both"]
        for row in kernels:
            assert row["new_count"] == 2 * row["base_count"]
            # twice the launches at half the time: count and speed cancel
            assert near(row["count_ns"], row["base_work_ns"]) and row["speed_ns"] < 0
        (verdict,) = rows(compared, "verdict")
        assert "launches" in verdict["label"]


def test_doubled_launches_of_a_launch_bound_run_starve_it(lab):
    with lab.compare("tiny", "tiny_doubled") as compared:
        (verdict,) = rows(compared, "verdict")
        assert verdict["verdict"] == "slower" and verdict["carrier"] == "launch_starved"
        assert near(verdict["carrier_ns"], lab.delta("tiny", "tiny_doubled", "launch_starved"))


def test_lost_overlap_is_blocking_by_nccl(lab):
    with lab.compare("base", "serial") as compared:
        (verdict,) = rows(compared, "verdict")
        assert (verdict["verdict"], verdict["carrier"], verdict["inside"]) == (
            "slower",
            "blocking",
            "nccl",
        )
        blocking = item(compared, "blocking:nccl")["delta_ns"]
        assert near(blocking, lab.delta("base", "serial", "comm_blocking"))
        assert near(blocking, 2 * 140_000, 0.2)  # one collective of each of two layers
        everything = next(r for r in rows(compared, "communication") if r["scope"] == "all")
        assert near(everything["delta_blocking_ns"], blocking)
        assert near(everything["delta_exposed_ns"], lab.delta("base", "serial", "comm_exposed"))
        assert everything["base_count"] == everything["new_count"]


def test_one_more_collective_is_labelled_and_found(lab):
    with lab.compare("base", "more") as compared:
        aspects = differing(compared)
        assert aspects["nccl AllReduce per iteration"]["base"] == "6"
        assert aspects["nccl AllReduce per iteration"]["new"] == "7"
        assert near(item(compared, "blocking:nccl")["delta_ns"], 500_000)
        assert item(compared, "iteration")["verdict"] == "slower"
        assert "communication" in item(compared, "iteration")["label"]
        row = next(r for r in rows(compared, "communication") if r["collective"] == "AllReduce")
        assert near(row["delta_blocking_ns"], 500_000)


# ---------------------------------------------------------------- comparability


@pytest.mark.parametrize(
    ("new", "reason"),
    [("ranks", "devices or ranks: 2 against 3"), ("deeper", "model part")],
)
def test_what_cannot_be_compared_is_refused(lab, new, reason, capsys):
    with lab.compare("base", new) as compared:
        assert any(reason in text for text in compared.refusals)
        with pytest.raises(AnswerError):
            compared.result("reconciliation")
    assert lab.cli("compare", lab.path("base"), lab.path(new), "--fail-on", "iteration > +3%") == 4
    out, err = capsys.readouterr()
    assert "refused" in out and "reconciliation" not in out and err.count("Error:") == 1
    assert "- neither report tells: CPU, " in out and "unknown" not in out
    assert ("--taxonomy" in err) == (new == "deeper")
    assert "and 4 more: --result comparability" in str(
        compare.refusal([str(at) for at in range(7)])
    )
    assert lab.cli("compare", lab.path("base"), lab.path(new), "--format", "csv") == 4
    assert capsys.readouterr().out == ""


def test_forced_comparisons_say_so_everywhere(lab, capsys):
    arguments = ("compare", lab.path("base"), lab.path("deeper"), "--force")
    assert lab.cli(*arguments, "--fail-on", "iteration > +3%") == 6
    out, err = capsys.readouterr()
    assert re.search(r"CROSSED iteration > \+3%: .*, slower \[FORCED, not comparable: model", err)
    assert out.count("FORCED, not comparable") >= len(re.findall("^compare ", out, re.MULTILINE))
    assert lab.cli(*arguments, "--format", "json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["forced"] and found["refused"]
    for result in (found, *found["results"].values()):
        if result is not found["results"]["members"]:
            assert all("FORCED" in row["label"] for row in result["rows"])


def test_another_anchor_is_refused(lab):
    other = Options(anchor="kernel:*Adam*", per_iteration=2, threads=1)
    part = partition.ensure(lab.path("base"), lab.folder / "parts", other)
    with Comparison(lab.side("base"), Side([part], other)) as compared:
        assert any(text.startswith("anchor: ") for text in compared.refusals)
        assert any(text.startswith("per iteration: 1 against 2") for text in compared.refusals)


def test_an_anchor_for_each_side_is_taken_to_mean_the_same(lab):
    other = Options(anchor="nvtx:*tep *", threads=1)
    part = partition.ensure(lab.path("base"), lab.folder / "parts", other)
    with Comparison(Side([part], other), lab.side("again")) as compared:
        assert compared.refusals == []
        assert differing(compared)["anchor"]["base"] == "nvtx:*tep *"


# ---------------------------------------------------------------- noise


def test_two_runs_of_the_same_are_no_change(lab):
    with lab.compare("base", "again") as compared:
        for pair in (0, 1):
            for row in rows(compared, "budget", pair):
                assert row["verdict"] in ("small", "no change", "cannot tell"), row
            assert rows(compared, "verdict", pair)[0]["verdict"] == "no change"


def test_too_few_windows_cannot_tell(lab):
    few = replace(ANCHOR, iterations="2:4")
    parts = [
        partition.ensure(lab.path(name), lab.folder / "parts", few) for name in ("base", "more")
    ]
    with Comparison(Side(parts[:1], few), Side(parts[1:], few)) as compared:
        assert rows(compared, "verdict")[0]["verdict"] == "cannot tell"
        assert item(compared, "iteration")["low_ns"] is None
    # the very same figures are no change, however few
    with Comparison(Side(parts[:1], few), Side(parts[:1], few)) as compared:
        assert rows(compared, "verdict")[0]["verdict"] == "no change"


def test_u_is_exact(lab):
    """All ways to choose the base's ranks, counted by brute force."""
    from itertools import combinations

    with lab.compare("base", "again") as compared:
        compared.prepare("sample", "u_exact")
        found = dict(
            compared.con.execute("SELECT u, at_most FROM pair.u_exact WHERE base_n = 8").fetchall()
        )
        sums = [sum(chosen) - 36 for chosen in combinations(range(1, 17), 8)]
        for u in (0, 1, 13, 32, 64):
            assert found[u] == pytest.approx(sum(s <= u for s in sums) / len(sums))


# ---------------------------------------------------------------- command line


def test_the_gate(lab, capsys):
    both = ("compare", lab.path("base"), lab.path("more"), "--quiet")
    assert lab.cli(*both, "--fail-on", "iteration > +2%") == 6
    out, err = capsys.readouterr()
    assert "compare gate" in out and "CROSSED iteration > +2%" in err
    texts = {
        "iteration > +30%": False,
        "blocking>=+0.4ms": True,
        "blocking > 1s": False,
        "comm_blocking > 1us": True,
        "comm-overlapped < -50%": False,
    }
    assert crossed(lab, capsys, "base", "more", *texts) == [t for t in texts if texts[t]]
    assert crossed(lab, capsys, "base", "more", *(t for t in texts if not texts[t])) == []
    for text in ("iteration", "iteration > 3%", "iteraton > +3%", "iteration > +3", "x > 1ms"):
        assert lab.cli(*both, "--fail-on", text) == 2, text
    capsys.readouterr()


@pytest.mark.parametrize(
    "param", ["alpha=2", "alpha=0", "interval_alpha=0", "min_change_pct=-1", "alpha=-0.1"]
)
def test_a_parameter_has_a_range(lab, param, capsys, monkeypatch):
    """And it is told before a trace is read."""
    monkeypatch.setattr(partition, "find", None)
    assert lab.cli("compare", lab.path("base"), lab.path("more"), "--param", param) == 2
    err = capsys.readouterr().err
    name = param.partition("=")[0]
    assert f"parameter {param} is out of range; {name} is " in err and err.count("\n") == 1


def test_thresholds():
    assert threshold("iteration > -2.5us") == compare.Threshold(
        "iteration > -2.5us", "iteration", ">", "change", -2500.0
    )
    with pytest.raises(UsageError, match="no metric 'iterations'"):
        threshold("iterations > +3%")


def test_formats(lab, tmp_path, capsys):
    both = ("compare", lab.path("base"), lab.path("slower"), "--quiet")
    assert lab.cli(*both, "--format", "json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [t["side"] for t in found["traces"]] == ["base", "new"]
    assert next(iter(found)) == "recipe" and list(found).index("comparability") < (
        list(found).index("rows")
    )
    assert lab.cli(*both, "--format", "csv") == 0
    read = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [r["item"] for r in read] == [r["item"] for r in found["rows"]]
    for name in ("x.html", "x.md", "x.json"):
        assert lab.cli(*both, "-o", tmp_path / name) == 0
    assert json.loads((tmp_path / "x.json").read_text())["recipe"] == "compare"
    page = (tmp_path / "x.html").read_text()
    assert "Both budgets, pair 1" in page and "From base to new, pair 0" in page
    assert (tmp_path / "x.md").read_text().startswith("# base.sqlite before, slower.sqlite after")
    assert lab.cli(*both, "--format", "parquet", "-o", tmp_path / "x.parquet") == 0
    assert lab.cli(*both, "--result", "budgets") == 2
    assert lab.cli("compare", lab.path("base")) == 2
    assert lab.cli("compare", lab.path("base"), tmp_path / "none.sqlite") == 3
    capsys.readouterr()


def test_lists_are_paired_by_rank(tmp_path, capsys):
    """A file per rank on both sides, named so that only the mapping can pair them."""
    scenario = replace(PLAIN, steps=4, ordinals_are_local=True)
    for name, seed in (("a", 1), ("b", 2)):
        (tmp_path / name).mkdir()
        simulator.simulate_ranks(scenario, seed, "2026.2.1", tmp_path / name)
    (tmp_path / "b" / "rank0.sqlite").rename(tmp_path / "b" / "zz.sqlite")
    mapping = (tmp_path / "b" / "ranks.yaml").read_text().replace("rank0.sqlite", "zz.sqlite")
    (tmp_path / "b" / "ranks.yaml").write_text(mapping)
    lab = Lab(tmp_path)
    maps = ("--base-ranks", tmp_path / "a/ranks.yaml", "--ranks", tmp_path / "b/ranks.yaml")
    assert lab.cli("compare", *maps, "--result", "members", "--format", "json") == 0
    found = json.loads(capsys.readouterr().out)["rows"]
    assert [(r["pair"], r["side"], r["rank"]) for r in found] == [
        (0, "base", 0), (0, "new", 0), (1, "base", 1), (1, "new", 1),
    ]  # fmt: skip
    assert found[1]["trace"] == "zz.sqlite"
    listed = ("--base", tmp_path / "a/rank0.sqlite", "--base", tmp_path / "a/rank1.sqlite")
    assert lab.cli("compare", *listed, tmp_path / "b/zz.sqlite", "--quiet") == 4
    assert "2 against 1" in capsys.readouterr().err


# ---------------------------------------------------------------- history


def _append(folder, number, names):
    """What one of several processes at once does."""
    from pathlib import Path

    parts = [partition.read(Path(name)) for name in names]
    side = Side(parts, ANCHOR)
    with Comparison(side, side) as compared:
        history.append(Path(folder) / "many.duckdb", compared, {"run": str(number)})


def test_history(lab, tmp_path, capsys):
    store = tmp_path / "runs.duckdb"
    for at, name in enumerate(("base", "more")):
        arguments = ("--store", store, "--label", f"commit=c{at}", "--label", "branch=main")
        assert lab.cli("compare", lab.path("base"), lab.path(name), "--quiet", *arguments) == 0
        assert lab.cli("compare", lab.path("base"), lab.path(name), *arguments) == 0  # once only
    assert "was there already" in capsys.readouterr().err
    add = ("history", store, "--add", lab.path("deeper"), "--label", "commit=c2")
    assert lab.cli(*add) == 0
    capsys.readouterr()

    def show(*more):
        return execute(["history", *map(str, (store, *more)), "--threads", "1"])

    assert show("--format", "json") == 0
    found = json.loads(capsys.readouterr().out)["rows"]
    assert [(r["run"], r["member"]) for r in found] == [(r, m) for r in (1, 2, 3) for m in (0, 1)]
    assert found[2]["labels"] == "branch=main, commit=c1"
    assert found[2]["change_pct"] == pytest.approx(
        100 * (found[2]["median_ns"] / found[0]["median_ns"] - 1)
    )
    assert found[4]["change_pct"] is None  # another setup: three layers
    assert found[4]["setup"] != found[2]["setup"]
    assert show("--label", "branch=main", "--metric", "blocking") == 0
    out = capsys.readouterr().out
    assert "2/1 branch=main, commit=c1" in out and "*" in out and "c2" not in out
    assert show("--label", "branch=mian", "--label", "commit=c1", "--format", "csv") == 0
    out, said = capsys.readouterr()
    assert len(out.splitlines()) == 1
    assert "no run in" in said and "labelled branch=mian and commit=c1; there are" in said
    assert "branch=main" in said
    assert show("-o", tmp_path / "h.html") == 0
    assert (
        "<svg" in (tmp_path / "h.html").read_text() or "plot" in (tmp_path / "h.html").read_text()
    )
    assert show("--metric", "latency") == 2
    assert execute(["history", str(tmp_path / "none.duckdb")]) == 3
    capsys.readouterr()
    # what would be ignored is refused, and no file is taken for a history that is none
    for more, said in (
        (("--anchor", "auto"), "--anchor says how a trace is read"),
        (("--jobs", 1), "--jobs says how a trace is read"),
        (("--param", "alpha=0.1"), "a history has no parameters"),
        (("--add", lab.path("base"), "-o", tmp_path / "x.json"), "--output has no effect with"),
        (("--add", lab.path("base"), "--metric", "blocking"), "--metric has no effect with"),
    ):
        assert show(*more) == 2
        assert said in capsys.readouterr().err
    (tmp_path / "x.duckdb").write_text("none of these")
    for path, said in (
        (lab.path("base"), "is an SQLite file"), (tmp_path / "x.duckdb", "is no DuckDB database"),
    ):  # fmt: skip
        for more in ((), ("--add", lab.path("base"))):
            assert execute(["history", *map(str, (path, *more))]) == 3
            err = capsys.readouterr().err
            assert said in err and err.count("\n") == 1 and "extension" not in err
    assert lab.cli("compare", *[lab.path("base")] * 2, "--store", tmp_path / "x.duckdb") == 3
    capsys.readouterr()


def test_concurrent_runs_are_all_stored(lab, tmp_path):
    names = [str(each.path) for each in lab.side("base").parts]
    context = multiprocessing.get_context("spawn")
    running = [
        context.Process(target=_append, args=(str(tmp_path), number, names)) for number in range(3)
    ]
    for each in running:
        each.start()
    for each in running:
        each.join()
    assert [each.exitcode for each in running] == [0, 0, 0]
    found = history.read(tmp_path / "many.duckdb", "iteration", {}).dicts()
    assert sorted({row["labels"] for row in found}) == ["run=0", "run=1", "run=2"]
    assert sorted({row["run"] for row in found}) == [1, 2, 3]
