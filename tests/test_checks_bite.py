"""Every check of every SQL file is seen to fail: an answer is doctored, and it alone must object.

A doctoring is an error that a wrong query could make: a nanosecond counted twice or lost, a piece
below zero, a row that is gone, a NULL. It takes the place of the SELECT of a recipe, or of a step
that stands between the budget and what an audit compares with it. The catalogue is enumerated: a
check without a doctoring fails `test_every_check_has_a_doctoring`.
"""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import MappingProxyType

import pytest

import nsys_sql
import rankbuilder
import test_callsites
import test_metrics
from fuzz import ALL_REDUCE, GEMM
from nsys_sql import catalog, compare, history, partition, ranks, survey, tasks
from nsys_sql.across import Files
from nsys_sql.cli import execute
from nsys_sql.compare import Comparison, Side, threshold
from nsys_sql.options import Options
from rankbuilder import MS, Run, grid, transformer
from tracebuilder import TraceBuilder


@dataclass(frozen=True)
class Doctoring:
    """`change` of the first row `where` of a file's answer; None loses these rows altogether.

    `file` is a recipe, or a step that `recipe` reads. `also` are checks that the same row cannot
    pass either: they say the same thing in other words, or about the same column.
    """

    recipe: str
    check: str
    change: dict[str, str] | None
    where: str = "true"
    trace: str = "event_waits"
    file: str = ""
    also: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        what = "lost" if self.change is None else ",".join(self.change)
        return f"{self.recipe}-{self.check}-{what}"


def windows(check, where="true", also=(), **change):
    return Doctoring("budget-windows", check, change, where, also=also)


def gaps(check, also=(), **change):
    return Doctoring("gaps", check, change, "blocking_ns > 1", also=also)


def budget(where="true", **change):
    return Doctoring("budget", "budget_adds_up", change, where, file="budget_window")


def ranges(**change):
    return Doctoring("nvtx", "ranges_in_budget", change, file="range_window", trace="phases")


def phases(change, where="true"):
    return Doctoring("phases", "phases_in_budget", change, where, "phases", "phase_window")


# Each conjunct of a check has a doctoring of its own.
RECIPES = (
    windows("busy_nested", noncomm_busy_ns="compute_busy_ns - 1"),
    windows("busy_nested", noncomm_busy_ns="device_busy_ns + 1"),
    windows(
        "busy_nested",
        device_busy_ns="iteration_ns + 1",
        device_idle_ns="-1",
        occupied_not_computing_ns="compute_absent_ns + 1",
        also=("busy_and_idle",),
    ),
    windows("busy_nested", noncomm_busy_ns="NULL"),
    windows(
        "busy_and_idle",
        device_idle_ns="device_idle_ns + 1",
        occupied_not_computing_ns="occupied_not_computing_ns - 1",
    ),
    windows("compute_splits", compute_busy_ns="compute_busy_ns - 1"),
    windows("absent_splits", occupied_not_computing_ns="occupied_not_computing_ns + 1"),
    windows("causes_add_up", dependency_stalled_ns="dependency_stalled_ns + 1"),
    windows("causes_add_up", unattributed_ns="unattributed_ns - 1"),
    windows("causes_add_up", blocking_ns="NULL", also=("comm_in_blocking",)),
    windows("exposed_in_comm", comm_exposed_ns="comm_busy_ns + 1"),
    windows("exposed_in_comm", comm_exposed_ns="-1"),
    windows("comm_in_blocking", comm_blocking_ns="blocking_ns + 1"),
    windows("comm_in_blocking", comm_blocking_ns="-1"),
    windows("shadow_in_starved", launch_starved_shadowed_ns="launch_starved_ns + 1"),
    windows("shadow_in_starved", launch_starved_shadowed_ns="-1"),
    windows(
        "nothing_unattributed",
        unattributed_ns="500001",
        dependency_stalled_ns="compute_absent_ns - launch_starved_ns - blocking_ns - 500001",
    ),
    gaps("pieces_add_up", dependency_stalled_ns="dependency_stalled_ns + 1"),
    gaps("pieces_add_up", gap_end_ns="NULL"),
    gaps(
        "pieces_not_negative",
        dependency_stalled_ns="-1",
        blocking_ns="blocking_ns + dependency_stalled_ns + 1",
    ),
    gaps(
        "pieces_not_negative",
        launch_starved_ns="-1",
        blocking_ns="blocking_ns + launch_starved_ns + 1",
        also=("shadow_in_starved",),
    ),
    gaps(
        "pieces_not_negative",
        blocking_ns="-1",
        dependency_stalled_ns="dependency_stalled_ns + blocking_ns + 1",
        also=("comm_in_blocking",),
    ),
    gaps("comm_in_blocking", comm_blocking_ns="blocking_ns + 1"),
    gaps("comm_in_blocking", comm_blocking_ns="-1"),
    gaps("shadow_in_starved", launch_starved_shadowed_ns="launch_starved_ns + 1"),
    gaps("shadow_in_starved", launch_starved_shadowed_ns="-1"),
    Doctoring("top-gaps", "pieces_add_up", {"blocking_ms": "blocking_ms + 1e-5"}),
    Doctoring("top-gaps", "pieces_add_up", {"dependency_stalled_ms": "NULL"}),
    Doctoring("host-stalls", "idle_in_starved", {"device_idle_ms": "median_ms + 1e-6"}),
    Doctoring("communication", "exposed_in_busy", {"exposed_max_ms": "busy_max_ms + 1e-6"}),
    Doctoring("communication", "exposed_in_busy", {"exposed_min_ms": "-1e-6"}),
    Doctoring("communication", "busy_in_work", {"busy_max_ms": "work_max_ms + 1e-6"}),
    Doctoring("communication", "busy_in_work", {"busy_ms": "work_ms + 1e-6"}),
    Doctoring("copies", "busy_in_engine", {"busy_ms": "engine_busy_ms + 1e-6"}),
    Doctoring("streams", "busy_in_work", {"busy_max_ms": "busy_ms - 1e-6"}),
    Doctoring(
        "streams", "busy_in_work", {"busy_ms": "work_ms + 1e-6", "busy_max_ms": "work_ms + 1"}
    ),
    Doctoring("launches", "ordered", {"min": "median + 1"}, "n > 0"),
    Doctoring("launches", "ordered", {"max": "median - 1"}, "n > 0 AND median > 1"),
    Doctoring("launches", "not_negative", {"min": "-1"}, "n > 0"),
    Doctoring("blockers", "evidence_adds_up", {"inferred_pct": "inferred_pct + 0.1"}),
    Doctoring("blockers", "evidence_adds_up", {"resolved_pct": "NULL"}),
    Doctoring(
        "opportunities", "ceiling_is_difference", {"new_step_ceiling_ms": "step_ms"}, "rank = 1"
    ),
    Doctoring(
        "opportunities",
        "bound_within_step",
        {"recoverable_ms": "step_ms + 1", "max_ms": "step_ms + 1", "new_step_ceiling_ms": "-1"},
        "rank = 1",
    ),
    Doctoring(
        "opportunities",
        "bound_within_step",
        {"recoverable_ms": "-1", "min_ms": "-1", "new_step_ceiling_ms": "step_ms + 1"},
        "rank = 1",
    ),
    Doctoring("opportunities", "spread_around_median", {"min_ms": "recoverable_ms + 1e-6"}),
    Doctoring("opportunities", "spread_around_median", {"max_ms": "recoverable_ms - 1e-6"}),
    Doctoring("slowdown", "reference_typical", {"unprofiled_max_ms": "1.6 * unprofiled_median_ms"}),
    Doctoring("anchors", "ordered", {"min_period_ns": "median_period_ns + 1"}),
    Doctoring("anchors", "share", {"share_pct": "100.5"}),
    Doctoring("anchors", "share", {"share_pct": "-1"}),
    Doctoring("iterations", "ordered", {"end_ns": "start_ns - 1"}),
    Doctoring("iterations", "steady_closed", {"end_ns": "NULL"}, "status = 'steady'"),
    Doctoring("taxonomy", "classified", {"class": "NULL"}),
    Doctoring("taxonomy", "classified", {"role": "NULL"}),
    Doctoring("taxonomy", "matched", {"is_matched": "false", "work_pct": "1"}),
    Doctoring("capture", "known_status", {"status": "'fine'"}),
    Doctoring("capture", "known_status", {"status": "NULL"}),
    Doctoring("metrics", "exclusive_share", {"exclusivity_pct": "100.5"}, trace="metrics"),
    Doctoring("metrics", "exclusive_share", {"exclusivity_pct": "-1"}, trace="metrics"),
    Doctoring(
        "metrics",
        "unsampled_unknown",
        {"samples": "0"},
        "sm_issue_pct IS NOT NULL",
        trace="metrics",
    ),
    Doctoring("call-sites", "link_rate", {"link_rate_pct": "100.5"}, trace="call sites"),
    Doctoring("call-sites", "link_rate", {"link_rate_pct": "-1"}, trace="call sites"),
)
MOVED = "(SELECT min(n.name_id) FROM nsys.op_name AS n WHERE n.role = 'compute')"
AUDITS = (
    budget(noncomm_busy_ns="compute_busy_ns - 1"),
    budget(noncomm_busy_ns="device_busy_ns + 1"),
    budget(
        device_busy_ns="iteration_ns + 1",
        device_idle_ns="-1",
        occupied_not_computing_ns="compute_absent_ns + 1",
    ),
    budget(
        device_idle_ns="device_idle_ns + 1",
        occupied_not_computing_ns="occupied_not_computing_ns - 1",
    ),
    budget(compute_busy_ns="compute_busy_ns - 1"),
    budget(occupied_not_computing_ns="occupied_not_computing_ns + 1"),
    budget(dependency_stalled_ns="dependency_stalled_ns + 1"),
    budget(unattributed_ns="unattributed_ns - 1"),
    budget(blocking_ns="NULL"),
    budget(comm_exposed_ns="comm_busy_ns + 1"),
    budget(comm_exposed_ns="-1"),
    budget(comm_blocking_ns="blocking_ns + 1"),
    budget(comm_blocking_ns="-1"),
    budget(launch_starved_shadowed_ns="launch_starved_ns + 1"),
    budget(launch_starved_shadowed_ns="-1"),
    Doctoring(
        "blockers",
        "blockers_add_up",
        {"blocking_ns": "blocking_ns + 1"},
        "name_id < 0",
        file="blocking_window",
    ),
    Doctoring(
        "blockers", "blockers_add_up", {"blocking_ns": "blocking_ns - 1"}, file="blocking_window"
    ),
    Doctoring(
        "blockers",
        "blockers_add_up",
        {"name_id": MOVED},
        "name_id IN (SELECT n.name_id FROM nsys.op_name AS n WHERE n.role = 'comm')",
        file="blocking_window",
    ),
    Doctoring("blockers", "blockers_add_up", None, "iteration = 0", file="blocking_window"),
    Doctoring(
        "call-sites",
        "call_sites_add_up",
        {"launch_starved_ns": "launch_starved_ns + 1"},
        trace="call sites",
        file="call_site_window",
    ),
    Doctoring(
        "call-sites",
        "call_sites_add_up",
        {"blocking_ns": "blocking_ns + 1"},
        trace="call sites",
        file="call_site_window",
    ),
    Doctoring(
        "call-sites",
        "call_sites_add_up",
        None,
        "iteration = 1",
        trace="call sites",
        file="call_site_window",
    ),
    *(
        Doctoring(
            "communication",
            "communication_in_budget",
            {column: f"{column} - 1"},
            "set_id = 0",
            file="comm_window",
        )
        for column in ("busy_ns", "exposed_ns", "blocking_ns")
    ),
    Doctoring(
        "communication",
        "communication_in_budget",
        None,
        "set_id = 0 AND iteration = 1",
        file="comm_window",
    ),
    phases({"busy_ns": "busy_ns + 1000000000"}),
    phases({"compute_ns": "compute_ns + 1000000000"}),
    phases({"busy_ns": "0"}, "phase = 'backward'"),
    phases({"compute_ns": "0"}, "phase = 'backward'"),
    *(phases({column: "-1"}, "phase = 'data'") for column in ("compute_ns", "comm_ns", "copy_ns")),
    phases(None, "iteration = 0"),
    *(
        ranges(**{column: f"{column} + 1000000000", "span_ns": "span_ns + 1000000000"})
        for column in ("compute_ns", "comm_ns", "copy_ns", "idle_ns")
    ),
    ranges(busy_ns="1000000000"),
    ranges(busy_ns="-1"),
    ranges(compute_ns="-1", idle_ns="idle_ns + compute_ns + 1"),
    ranges(comm_ns="-1", idle_ns="idle_ns + comm_ns + 1"),
    ranges(copy_ns="-1", idle_ns="idle_ns + copy_ns + 1"),
    ranges(idle_ns="-1", copy_ns="copy_ns + idle_ns + 1"),
    ranges(idle_ns="idle_ns + 1"),
    ranges(host_ns="-1"),
    ranges(host_ns="host_work_ns + 1"),
    ranges(host_ns="1000000001", host_work_ns="1000000001"),
    ranges(host_ns="NULL"),
    Doctoring(
        "host-stalls", "stalls_add_up", {"starved_ns": "starved_ns + 1"}, file="stall_window"
    ),
    Doctoring("host-stalls", "stalls_add_up", None, "iteration = 1", file="stall_window"),
)


def two_phases(path):
    """Two steps of an empty data phase, forward with a collective, and backward with a copy."""
    trace = TraceBuilder()
    for step in range(2):
        at, corr = 1000 * step, 10 * step
        trace.nvtx(at, at + 900, f"step {step}").nvtx(at + 1, at + 9, "next_batch")
        trace.nvtx(at + 10, at + 100, "forward").nvtx(at + 110, at + 200, "backward")
        for number, (call, start, end, name, stream) in enumerate(
            [(10, 100, 200, GEMM, 7), (30, 150, 300, ALL_REDUCE, 13), (110, 310, 500, GEMM, 7)]
        ):
            trace.call(at + call, at + call + 9, corr=corr + number)
            trace.kernel(at + start, at + end, name, stream=stream, corr=corr + number)
        trace.call(at + 130, at + 139, "cudaMemcpyAsync_v3020", corr=corr + 5)
        trace.memcpy(at + 520, at + 540, corr=corr + 5)
    return trace.write(path)


def doctored(file, doctoring):
    """The file with the doctoring around its SELECT; the columns keep their types."""
    body = file.body
    if doctoring.change is None:
        sql = f"FROM (\n{body}\n) AS answer\nWHERE ({doctoring.where}) IS NOT TRUE"
    else:
        types = {column.name: column.type for column in file.columns}
        one = f"({doctoring.where}) AND row_number() OVER (PARTITION BY ({doctoring.where})) = 1"
        changed = ", ".join(
            f"CASE WHEN {one} THEN ({value})::{types[name]} ELSE {name} END AS {name}"
            for name, value in doctoring.change.items()
        )
        sql = f"SELECT * REPLACE ({changed})\nFROM (\n{body}\n) AS answer"
    return replace(file, body=sql, text=f"{file.text}\n-- doctored")


def doctored_catalog(found, doctoring):
    name = doctoring.file or doctoring.recipe
    if doctoring.file:
        steps = MappingProxyType({**found.steps, name: doctored(found.steps[name], doctoring)})
        return replace(found, steps=steps)
    return replace(found, recipes={**found.recipes, name: doctored(found.recipe(name), doctoring)})


@pytest.fixture(scope="module")
def healthy(models):
    """`healthy(trace, recipe)`: the checks of the answer as it is, all of them ok."""
    known = {}

    def checks(trace, recipe):
        if (trace, recipe) not in known:
            known[trace, recipe] = models(trace).result(recipe).checks
        assert failing(known[trace, recipe]) == {}
        return {check.name for check in known[trace, recipe]}

    return checks


@pytest.fixture(scope="module")
def models(fixture_sqlite, tmp_path_factory):
    """`models(name)`: an open model; those that need more than a fixture are made here."""
    folder = tmp_path_factory.mktemp("checks")
    built = {}

    def make(name):
        if name == "metrics":
            path = test_metrics.trace(folder / "metrics.sqlite")
            test_metrics.sample(path, range(0, 400, 10), lambda at, name: 50)
            return nsys_sql.open(path, anchor=test_metrics.NO_WINDOWS)
        if name == "call sites":
            path = test_callsites.trace(folder / "sites.sqlite")
            sites = test_callsites.write(folder / "sites.csv")
            return nsys_sql.open(path, anchor="nvtx:step *", callsites=sites)
        if name == "phases":
            return nsys_sql.open(two_phases(folder / "phases.sqlite"), anchor="nvtx:step *")
        path = fixture_sqlite(name)
        return nsys_sql.open(path, anchor="nvtx:step*", reference_steps="1.9ms,1.8ms")

    def model(name):
        if name not in built:
            built[name] = make(name)
        return built[name]

    yield model
    for each in built.values():
        each.close()


@contextmanager
def doctored_model(model, doctoring):
    """The model with the doctored file in the place of its own; what it made is made again."""
    before = model.catalog, model.planner
    model.catalog = doctored_catalog(model.catalog, doctoring)
    model.planner = replace(model.planner, catalog=model.catalog)
    try:
        yield model
    finally:
        model.catalog, model.planner = before


def failing(checks):
    return {check.name: check for check in checks if check.status != "ok"}


@pytest.mark.parametrize("doctoring", [*RECIPES, *AUDITS], ids=lambda each: each.id)
def test_a_doctored_answer_fails_its_check_alone(doctoring, models, healthy):
    model = models(doctoring.trace)
    assert doctoring.check in healthy(doctoring.trace, doctoring.recipe)
    with doctored_model(model, doctoring):
        found = failing(model.result(doctoring.recipe).checks)
    assert found.keys() == {doctoring.check, *doctoring.also}
    entry = model.catalog.recipe(doctoring.recipe)
    is_warning = doctoring.check in {each.name for each in entry.warnings}
    assert found[doctoring.check].status == ("warn" if is_warning else "fail")
    count, shown = re.match(
        r"(\d+)(?: of \d+)? rows: \((.+)", found[doctoring.check].detail
    ).groups()
    assert int(count) >= 1 and "=" in shown
    for name, value in (doctoring.change or {}).items():
        if value == "NULL" and f"{name}=" in shown:
            assert f"{name}=None" in shown


# ------------------------------------------------------------------------- on the command line
FIRST = {each.check: each for each in (RECIPES[0], RECIPES[16], AUDITS[0])}


@pytest.mark.parametrize(
    ("check", "form"),
    [
        ("busy_nested", "table"),
        ("busy_nested", "markdown"),
        ("nothing_unattributed", "csv"),
        ("nothing_unattributed", "json"),
        ("budget_adds_up", "table"),
        ("budget_adds_up", "json"),
        ("budget_adds_up", "csv"),
    ],
)
def test_the_command_line_shows_the_rows_and_exits_with_5(
    check, form, fixture_sqlite, monkeypatch, capfd
):
    doctoring = FIRST[check]
    found = doctored_catalog(catalog.load_catalog(), doctoring)
    monkeypatch.setattr(catalog, "_packaged", lambda: found)
    path = str(fixture_sqlite(doctoring.trace))
    arguments = ["run", doctoring.recipe, path, "--anchor", "nvtx:step*", "--threads", "1"]
    code = execute([*arguments, "--format", form])
    out, err = capfd.readouterr()
    is_warning = check == "nothing_unattributed"
    assert code == (0 if is_warning else 5)
    if form == "json":
        told = {each["name"]: each for each in json.loads(out)["checks"]}[check]
        assert told["status"] == ("warn" if is_warning else "fail")
        assert json.loads(out)["rows"]  # the result is still printed
        text = told["detail"]
    else:
        text = " ".join((err if form == "csv" else out).split())
        assert check in text
    assert re.search(r"1( of 2)? rows: \(device=0, iteration=0", text), text


# ------------------------------------------------------------------- several ranks, before/after
ACROSS = (
    Doctoring("collectives", "all_counted", {"matched_count": "matched_count + 1"}),
    Doctoring("collectives", "all_counted", {"unmatched_count": "unmatched_count + 1"}),
    Doctoring("collectives", "parts_of_durations", {"jitter_pct": "100.5"}),
    Doctoring("collectives", "parts_of_durations", {"jitter_pct": "-0.5"}),
    Doctoring("comparability", "known_status", {"status": "'fine'"}),
    Doctoring("comparability", "known_status", {"status": "NULL"}),
    Doctoring(
        "reconciliation", "parts_add_up", {"delta_ns": "delta_ns + 1"}, "item LIKE 'residual%'"
    ),
    Doctoring("reconciliation", "parts_add_up", {"delta_ns": "delta_ns - 1"}, "item = 'iteration'"),
    Doctoring("kernels", "parts_add_up", {"speed_ns": "speed_ns + 1"}),
    Doctoring("kernels", "parts_add_up", {"count_ns": "NULL"}),
    Doctoring("gate", "told", {"is_crossed": "NULL"}),
)


@pytest.fixture(scope="module")
def across(fixture_sqlite, tmp_path_factory):
    """By result: a comparison of one trace with itself, or a survey of two small ranks."""
    folder = tmp_path_factory.mktemp("across")
    anchor = Options(anchor="nvtx:step*", threads=1)
    part = partition.ensure(fixture_sqlite("event_waits"), folder / "parts", anchor)
    side = Side([part], anchor)
    rankbuilder.write(
        Run(2, grid(2, 1), transformer(2, slow=lambda rank, step: MS), steps=2), folder
    )
    mapping = ranks.read(folder / "ranks.yaml")
    parts = [
        each.partition
        for each in tasks.collect(
            mapping.traces, folder / "parts", Options(anchor="nvtx:step *"), jobs=1
        )
    ]
    with (
        Comparison(side, side, thresholds=[threshold("iteration > +1%")], threads=1) as compared,
        survey.Survey(parts, mapping, threads=1) as surveyed,
    ):
        yield lambda name: surveyed if name in survey.RESULTS else compared


@pytest.mark.parametrize("doctoring", ACROSS, ids=lambda each: each.id)
def test_a_doctored_result_across_traces_fails_its_check_alone(doctoring, across, monkeypatch):
    asked, name = across(doctoring.recipe), doctoring.recipe
    assert failing(asked.result(name).checks) == {}
    file = doctored(asked.sql.results[name], doctoring)
    monkeypatch.setattr(asked, "sql", Files(asked.sql.steps, {**asked.sql.results, name: file}))
    found = failing(asked.result(name).checks)
    assert found.keys() == {doctoring.check}
    assert found[doctoring.check].status == "fail"
    assert re.match(r"\d+ of \d+ rows: \(", found[doctoring.check].detail)


def test_compare_exits_with_5_when_a_check_fails(fixture_sqlite, tmp_path, monkeypatch, capfd):
    files = compare.files()
    file = doctored(files.results["kernels"], ACROSS[8])
    broken = Files(files.steps, {**files.results, "kernels": file})
    monkeypatch.setattr(compare, "files", lambda: broken)
    path = str(fixture_sqlite("event_waits"))
    arguments = ["compare", path, path, "--anchor", "nvtx:step*"]
    arguments += ["--jobs", "1", "--threads", "1", "--partitions", str(tmp_path)]
    assert execute([*arguments, "--result", "kernels"]) == 5
    out, err = capfd.readouterr()
    assert "parts_add_up" in out + err and "rows: (" in out + err


# ---------------------------------------------------------------------------------- completeness
def all_checks():
    """(recipe or result, check) of everything that has one."""
    found = catalog.load_catalog()
    for name, file in found.recipes.items():
        for each in (*file.invariants, *file.warnings):
            yield name, each.name
    for name in found.invariants:
        yield None, name
    for files in (compare.files(), survey.files()):
        for name, file in files.results.items():
            for each in (*file.invariants, *file.warnings):
                yield name, each.name


@pytest.mark.parametrize(("name", "check"), list(all_checks()))
def test_every_check_has_a_doctoring(name, check):
    known = {(each.recipe, each.check) for each in (*RECIPES, *ACROSS)}
    known |= {(None, each.check) for each in AUDITS}
    assert (name, check) in known, "doctor an answer until this check fails, and add it here"


def test_a_check_elsewhere_is_the_check_of_a_recipe_that_reads_it():
    """Only recipes, results and audits are evaluated: what a step's header states is no check.

    It may state what a recipe that reads the step does check, word for word.
    """
    found = catalog.load_catalog()
    silent = [
        *found.adapters.values(),
        *(variant for each in found.variants.values() for variant in each),
        *found.macros.values(),
        *found.steps.values(),
        *found.notes.values(),
        *found.invariants.values(),
        *compare.files().steps.values(),
        *survey.files().steps.values(),
        *partition.fact_files(),
        history.query(),
    ]
    for file in silent:
        readers = [recipe for recipe in found.recipes.values() if file.name in recipe.inputs]
        checked = {check for recipe in readers for check in recipe.invariants}
        assert set(file.invariants) <= checked and not file.warnings, file.label


def test_every_audit_belongs_to_a_recipe():
    found = catalog.load_catalog()
    used = {name for recipe in found.recipes for name in found.entry(recipe).invariants}
    assert used == set(found.invariants)
    for doctoring in AUDITS:
        assert doctoring.check in found.entry(doctoring.recipe).invariants
