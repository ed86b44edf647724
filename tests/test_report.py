"""The six sections in Markdown, HTML and JSON: what is said, what is escaped, what is missing."""

from __future__ import annotations

import base64
import gzip
import json
import re
import sqlite3
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import nsys_sql
from nsys_sql import report_html, report_text
from nsys_sql.catalog import Column
from nsys_sql.cli import execute
from nsys_sql.commands import trace_facts
from nsys_sql.formats import Report
from nsys_sql.report import (
    SECTIONS,
    Part,
    Section,
    Shown,
    _advice,
    _capture,
    _communication,
    _table,
    _verdict,
)
from nsys_sql.report import part as make
from tracebuilder import TraceBuilder

EVIL = "void evil<</script><script>alert(1)</script>&\"'|`x`>(int)"
US, MS = 1_000, 1_000_000


def write_trace(path: Path, name: str = EVIL) -> Path:
    """Three steps of 1 ms: an evil kernel, then a collective that the next product waits for."""
    trace, corr = TraceBuilder(), 0

    def launch(at: int, run: tuple[int, int], kernel: str, stream: int) -> None:
        nonlocal corr
        corr += 10
        trace.call(at, at + US, corr=corr)
        trace.kernel(at + run[0] * US, at + run[1] * US, kernel, stream=stream, corr=corr)

    for step in range(3):
        at = step * MS
        trace.nvtx(at, at + MS, f"step <b>{step}</b>")
        launch(at, (10, 300), name, 7)
        launch(at, (250, 500), "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(args)", 20)
        corr += 10
        trace.record(stream=20, event=1, sync_id=corr, corr=corr)
        trace.wait(stream=7, event=1, sync_id=corr, corr=corr + 1)
        launch(at, (500, 990), "ampere_sgemm_128x64_tn", 7)
    return trace.write(path)


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_trace(tmp_path_factory.mktemp("report") / "evil.sqlite")


@pytest.fixture(scope="module")
def part(trace: Path) -> Part:
    """What is reported of the trace; made once, rendered often."""
    with nsys_sql.open(trace, anchor="nvtx:step *") as model:
        return make(model, trace_facts(model), {"anchor": "x"}, {"mfu": "40"}, lambda _: None)


@pytest.fixture(scope="module")
def report(part: Part) -> dict[str, Any]:
    return json.loads(report_text.json_text([part]))


def rows(result: dict[str, Any]) -> list[dict[str, Any]]:
    return result["rows"]


def test_sections_in_the_order_of_the_contract(report: dict[str, Any]) -> None:
    [part] = report["traces"]
    assert [s["title"] for s in part["sections"]] == list(SECTIONS)
    assert [s["number"] for s in part["sections"]] == [1, 2, 3, 4, 5, 6]


def test_the_verdict_is_one_paragraph_of_what_the_recipes_say(report: dict[str, Any]) -> None:
    [part] = report["traces"]
    [verdict] = part["sections"][0]["sentences"]
    assert "dominant cost is compute" in verdict
    assert "blocking nccl AllReduce: 200 us" in verdict
    assert "n = 3" in verdict
    [fact] = rows(part["results"]["verdict"])
    assert fact["recoverable_ms"] == 0.2
    best = rows(part["results"]["opportunities"])[0]
    assert best["new_mfu_ceiling"] == pytest.approx(40 / 0.8)
    budget = {row["metric"]: row["median_ms"] for row in rows(part["results"]["budget"])}
    assert budget["comm_blocking"] == 0.2


def test_what_was_not_captured_is_named(report: dict[str, Any]) -> None:
    sections = report["traces"][0]["sections"]
    missing = {each["recipe"]: each["reason"] for s in sections for each in s["not_captured"]}
    assert "--reference-steps" in missing["slowdown"]
    assert "--gpu-metrics-devices" in missing["metrics"]


def test_every_claim_has_a_status(report: dict[str, Any]) -> None:
    claims = rows(report["traces"][0]["results"]["claims"])
    assert {row["status"] for row in claims} <= {"measured", "inferred", "unverified"}
    listed = [row["claim"] for row in claims if row["claim"].startswith("bound of opportunity")]
    assert len(listed) == len(rows(report["traces"][0]["results"]["opportunities"]))


def test_markdown_goes_to_standard_output(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["report", str(trace), "--anchor", "nvtx:step *"]) == 0
    text = capsys.readouterr().out
    heads = re.findall(r"^## (\d) (.*)$", text, re.MULTILINE)
    assert heads == [(str(number), title) for number, title in enumerate(SECTIONS, 1)]
    assert "<script>" not in text.replace("\\<", "")
    tables = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(tables) > 40
    assert all(line.endswith(" |") for line in tables)


class Page(HTMLParser):
    """Collects what a browser would run or load, and the text."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts, self.loaded, self.open, self.text = 0, [], [], ""
        self.headings: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.scripts += tag == "script"
        self.loaded += [
            v for n, v in attrs if n in ("src", "href") and not (v or "").startswith("#")
        ]

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if "script" in self.open or "style" in self.open:
            return
        self.text += data
        if self.open and self.open[-1] == "h2":
            self.headings.append(data)


@pytest.mark.parametrize("is_rich", [True, False])
def test_html_is_one_closed_escaped_file(
    is_rich: bool, part: Part, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_rich:
        pytest.importorskip("plotly")
    else:
        monkeypatch.setattr(report_html, "find_spec", lambda _: None)
    text = report_html.html([part])
    assert len(text) < (2_200_000 if is_rich else 200_000)
    own = text.split("<script>")[-1] if is_rich else text
    assert "alert(1)</script>" not in own.removesuffix("</script>\n</body>\n</html>\n")
    assert "<b>0</b>" not in text
    if is_rich:  # what the page unpacks leads out of no script, and draws what has a place
        (packed,) = re.findall(r'const PACKED = "([^"]+)"', text)
        _, _, data = gzip.decompress(base64.b64decode(packed)).decode().rpartition("\n")
        assert data.startswith("const PICTURES = [{") and "<" not in data and "evil" in data
        places = [each["id"] for each in json.loads(data[len("const PICTURES = ") : -1])]
        assert places and places == re.findall(r'<div class="plot" id="([^"]+)">', text)
    page = Page()
    page.feed(text)
    assert page.scripts == is_rich
    assert page.loaded == []
    assert page.headings == [f"{number} {title}" for number, title in enumerate(SECTIONS, 1)]
    assert "evil<</script>" in page.text
    assert "200 us" in page.text
    assert ("<svg" in own) != is_rich
    assert "prefers-color-scheme: dark" in text


def test_a_trace_without_kernels_still_gets_its_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And a file that is not there takes no other's report away."""
    trace = TraceBuilder().nvtx(0, MS, "step 0").nvtx(MS, 2 * MS, "step 1")
    path = trace.write(tmp_path / "empty.sqlite")
    assert execute(["report", str(path), str(tmp_path / "missing.sqlite")]) == 4
    shown = capsys.readouterr()
    assert shown.out.count("# Report of ") == 1
    assert "No verdict: this export has no kernel and no graph exec table" in shown.out
    assert "Not captured or not answered, budget, " in shown.out
    assert "--trace=cuda" in shown.out
    assert [line[:7] for line in shown.err.splitlines()] == ["Error: "] * 2
    assert "missing.sqlite" in shown.err


def test_only_known_kinds_of_report(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["report", str(trace), "-o", "report.pdf"]) == 2
    assert "name it .md, .html or .json" in capsys.readouterr().err


def test_no_device_hides_behind_another(tmp_path: Path) -> None:
    columns = [Column("device", "BIGINT", "-", ""), Column("what", "VARCHAR", "-", "")]
    found = [(device, f"{device}.{place}") for device in range(3) for place in range(9)]
    shown = Shown("host-stalls", 3, "Host", rows=8)
    table = _table(Report("host-stalls", "0", {}, columns=columns, rows=found), shown)
    assert [row[1] for row in table.rows] == [
        *("0.0", "0.1", "0.2", "1.0", "1.1", "1.2", "2.0", "2.1"),
    ]
    assert report_text.more(table) == "19 more rows: nsys-sql run host-stalls TRACE"
    one = _table(Report("host-stalls", "0", {}, columns=columns, rows=found[:9]), shown)
    assert report_text.more(one) == "1 more row: nsys-sql run host-stalls TRACE"


def sections_of(path: Path, **given: str) -> list[Section]:
    with nsys_sql.open(path, anchor="nvtx:step *") as model:
        return make(model, trace_facts(model), {"anchor": "x"}, given, lambda _: None).sections


def test_nothing_is_advised_where_nothing_is_material(tmp_path: Path) -> None:
    trace = TraceBuilder()
    for step in range(4):
        at = step * MS
        trace.nvtx(at, at + MS, f"step {step}").call(at, at + US, corr=step + 1)
        trace.kernel(at + 2 * US, at + MS, "ampere_sgemm_128x64_tn", corr=step + 1)
    section = sections_of(trace.write(tmp_path / "t.sqlite"))[4]
    assert section.sentences == ["None reaches 1% of the iteration (median)."]
    assert [table.recipe for table in section.tables] == ["opportunities"]
    assert section.advice == []


def test_what_no_launch_recovers_is_told(tmp_path: Path) -> None:
    """The host waits for a synchronous copy: no row has its 600 us, and both places say so."""
    trace = TraceBuilder()
    for step in range(4):
        at, corr = step * MS, 10 * step
        trace.nvtx(at, at + MS, f"step {step}")
        trace.call(at, at + 602 * US, "cudaMemcpy_v3020", corr=corr + 1)
        trace.memcpy(at + 2 * US, at + 602 * US, kind=1, corr=corr + 1)
        trace.call(at + 603 * US, at + 604 * US, corr=corr + 2)
        trace.kernel(at + 605 * US, at + MS, "ampere_sgemm_128x64_tn", corr=corr + 2)
    verdict, _, _, _, opportunities, _ = sections_of(trace.write(tmp_path / "t.sqlite"))
    told = (
        "For 600 us or 60.0% the next kernel was not launched while its producer ran anyway (copy "
        "HtoD 100 %). That is in no ceiling: launching earlier alone cannot recover it; making "
        "that operation asynchronous or shorter might, up to that much."
    )
    [paragraph] = verdict.sentences
    assert "dominant cost is launch-starved while the producer ran anyway, 600 us" in paragraph
    assert (
        "No launch-starved time that an earlier launch could recover and no known blocking time "
        f"reaches 1% of the iteration (median). {told}" in paragraph
    )
    assert opportunities.sentences == [
        "None reaches 1% of the iteration (median).",
        f"Device 0: {told}",
    ]


@pytest.mark.parametrize("lost", ["SYNCHRONIZATION", "CUDA_EVENT"])
def test_unknown_dependencies_are_not_called_none(lost: str, tmp_path: Path) -> None:
    """A kernel waits for a collective, and the trace lacks the waits, or the records."""
    trace, corr = TraceBuilder(), 0
    for step in range(4):
        at = step * MS
        trace.nvtx(at, at + MS, f"step {step}")
        for run, stream in (((5, 100), 7), ((100, 700), 20), ((701, 1000), 7)):
            corr += 10
            if run[0] == 701:
                trace.record(stream=20, event=1, sync_id=corr, corr=corr)
                trace.call(at + 2 * US, at + 3 * US, "cudaStreamWaitEvent_v3020", corr=corr + 1)
                trace.wait(stream=7, event=1, sync_id=corr, corr=corr + 1)
            name = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(args)" if stream == 20 else "nvjet_a"
            trace.call(at + 3 * US, at + 4 * US, corr=corr + 2)
            trace.kernel(at + run[0] * US, at + run[1] * US, name, stream=stream, corr=corr + 2)
    path = trace.write(tmp_path / "t.sqlite")
    [paragraph] = sections_of(path)[0].sentences
    assert "blocking nccl AllReduce: 600 us" in paragraph
    assert "lower bound" not in paragraph
    with sqlite3.connect(path) as con:
        con.execute(f"DROP TABLE CUPTI_ACTIVITY_KIND_{lost}")
    con.close()
    verdict, _, budget, _, opportunities, claims = sections_of(path)
    assert "no known blocking time reaches 1%" in verdict.sentences[0]
    assert "blocking is a lower bound" in verdict.sentences[0]
    assert any("blocking is a lower bound" in note for note in budget.notes)
    assert opportunities.sentences[1:] == [
        "There may be more blocking time than is known: dependencies are not fully known on device "
        "0 (limits of the verdict)."
    ]
    # nothing claims to be complete
    said = " ".join(
        [*verdict.sentences, *budget.notes, *opportunities.sentences, *opportunities.notes]
    )
    assert "nothing is recoverable" not in said and "resolved: every" not in said
    status = {row[1]: row[2] for row in claims.tables[0].rows}
    assert status["blocking time and the operation to blame"] == "unverified"


def test_time_between_windows_is_told(tmp_path: Path) -> None:
    """Ranges of 1 ms, 2 ms apart: half of the time is in no budget."""
    trace = TraceBuilder()
    for step in range(4):
        at = 2 * step * MS
        trace.nvtx(at, at + MS, f"step {step}").call(at, at + US, corr=step + 1)
        trace.kernel(at + 2 * US, at + MS, "ampere_sgemm_128x64_tn", corr=step + 1)
    verdict, _, budget = sections_of(trace.write(tmp_path / "t.sqlite"))[:3]
    told = (
        "50 % of the time lies between the {}windows and is in no budget: a window takes 1.0 ms, "
    )
    told += "from its start to that of the next it is 2.0 ms (medians)"
    assert f"Limits: {told.format('')}." in verdict.sentences[0]
    assert f"device 0: {told.format('steady ')}; shares and ceilings are those of the window" in (
        budget.notes
    )


def test_an_mfu_above_100_is_told_as_impossible(trace: Path) -> None:
    """A fifth of the step is recoverable: 80 % is possible without it, 81 % is not."""
    for mfu, is_told in (("80", False), ("0.81", True)):
        section = sections_of(trace, mfu=mfu)[4]
        ceiling = dict(section.advice[0].lines)["Ceiling"]
        assert ("; above 100% the given MFU and this bound cannot both hold" in ceiling) == is_told
        assert any("above 100 % the given MFU" in note for note in section.notes) == is_told


def test_a_ceiling_is_without_exactly_this_time(report: dict[str, Any]) -> None:
    """One made of a lower bound holds for what the trace shows only; none is a promise."""
    results = report["traces"][0]["results"]
    [fact], best = rows(results["verdict"]), rows(results["opportunities"])[0]
    for kind, words in (
        ("resolved", "25% more throughput without exactly this time."),
        ("lower bound", "25% more throughput without what the trace shows of it."),
        ("lower bound, perturbed", "25% more throughput without what the trace shows of it."),
    ):
        told = " ".join(_verdict([fact | {"bound_kind": kind}]))
        assert words in told.replace("25.0%", "25%")
        ceiling = dict(_advice(best | {"bound_kind": kind}).lines)["Ceiling"]
        assert ceiling.endswith(words.removeprefix("25% more throughput").removesuffix("."))
        assert ceiling.startswith("step 1 ms (1 ms to 1 ms) to 800 us, throughput +25")
        assert "at most" not in told + ceiling


def test_blocking_above_exposed_is_explained(report: dict[str, Any]) -> None:
    row = {"device": 0, "comm_busy_ms": 3.0, "comm_exposed_ms": 1.0, "comm_blocking_ms": 1.1}
    first = next(_communication([row]))
    assert "1.100 ms blocking" in first and "more than is exposed" in first
    assert "bound" not in first
    assert "more than" not in next(_communication([row | {"comm_blocking_ms": 1.0}]))


def test_a_long_iteration_is_capped(fixture_sqlite: Any) -> None:
    with nsys_sql.open(fixture_sqlite("example"), anchor="nvtx:training_step_*") as model:
        whole = model.run("step-timeline").fetchall()
        few = model.run("step-timeline", max_marks=40).fetchall()
    assert all(row[9] == 1 for row in whole)
    assert len(few) <= 40 < len(whole)
    assert sum(row[9] for row in few) == len(whole)
    assert sum(row[8] for row in few) == pytest.approx(sum(row[8] for row in whole))


def test_every_option_that_changes_the_numbers_is_told() -> None:
    """A 0 among them: device 0 is a choice, no warm-up step is none."""
    facts = dict.fromkeys(("path", "capture_version", "product_version", "schema_version"))
    given = {"anchor": "auto", "device": 0, "skip_first": 0, "skip_last": 2, "per_iteration": 1}
    given |= {"iterations": None, "window": "range", "taxonomy": [], "min_us": 0}
    told = [*_capture(facts | {"warnings": []}, given, {})]
    assert "Options: anchor auto, device 0, skip-last 2, min-us 0." in told
