"""What a person and a program get to see of the same rows."""

import csv
import io
import json
import math
import os
from dataclasses import dataclass, replace

import duckdb
import pytest

from conftest import brief
from nsys_sql import bulk, commands, humanize, output, report_text
from nsys_sql.adapt import quote
from nsys_sql.catalog import Column
from nsys_sql.formats import Report, blocks, markdown
from nsys_sql.render import grid, render, titles


@dataclass
class Check:
    name: str
    status: str
    detail: str


def column(name, type_="BIGINT", unit="-", description=""):
    return Column(name, type_, unit, description)


KERNELS = (column("kernel", "VARCHAR"), column("count"), column("work_ms", "DOUBLE", "ms"))
LONG = "void cutlass::gemm::kernel::" + "x" * 300 + "<float, 128>(Params)"


def report(columns=KERNELS, rows=(("k", 1, 2.5),), recipe="kernels", **more):
    trace = {"path": "a.sqlite"}
    return Report(recipe, "0.1.0", trace, "what ran?", columns=columns, rows=rows, **more)


@pytest.mark.parametrize(
    ("value", "name", "unit", "text"),
    [
        (None, "busy_ns", "ns", "-"),
        (0, "busy_ns", "ns", "0"),
        (456, "busy_ns", "ns", "456 ns"),
        (1234, "busy_ns", "ns", "1.234 us"),
        (999_960, "busy_ns", "ns", "1.000 ms"),
        (999_949, "busy_ns", "ns", "999.9 us"),
        (29_390_000_000, "busy_ns", "ns", "29.39 s"),
        (-1500, "busy_ns", "ns", "-1.500 us"),
        (812.3456, "median_ms", "ms", "812.3 ms"),
        (0.0004, "median_ms", "ms", "400 ns"),
        (1_234_567_890, "start_ns", "ns", "1.234568 s"),
        (-1_500, "gap_start_ns", "ns", "-0.000002 s"),
        (100, "share_pct", "pct", "100%"),
        (99.97, "share_pct", "pct", "100%"),
        (12.345, "share_pct", "pct", "12.3%"),
        (0.001, "share_pct", "pct", "<0.01%"),
        (0, "share_pct", "pct", "0%"),
        (512, "copied_bytes", "bytes", "512 B"),
        (8_000_000, "copied_bytes", "bytes", "8 MB"),
        (23.456, "rate_gbps", "gbps", "23.46 GB/s"),
        (1234567, "count", "count", "1,234,567"),
        (1234567, "stream_id", "-", "1234567"),
        (math.nan, "x", "-", "-"),
        (1_500_000, "delta_ns", "+ns", "+1.500 ms"),
        (-1_500_000, "delta_ns", "+ns", "-1.500 ms"),
        (0, "delta_ns", "+ns", "0"),
        (0.001, "delta_pct", "+pct", "<+0.01%"),
        (-0.001, "delta_pct", "+pct", ">-0.01%"),
        (3.25, "delta", "+-", "+3.250"),
        (None, "delta_ns", "+ns", "-"),
        (True, "is_matched", "-", "yes"),
    ],
)
def test_a_value_reads_in_a_fitting_unit(value, name, unit, text):
    assert humanize.cell(value, name, unit) == text


def test_no_control_character_reaches_a_terminal():
    nasty = "a\x1b[31mred\nb\tc\r\u202ed\x00\udc80"
    shown = humanize.clean(nasty)
    assert shown.isprintable()
    assert shown.startswith("a\\x1b[31mred\\nb\\tc\\r\\u202ed\\x00")
    table = render([report(rows=((nasty, 1, 2.5),), notes=[nasty])], "table")
    assert "\x1b" not in table and "\r" not in table


def test_names_are_cut_in_the_middle_of_a_table_and_nowhere_else():
    rows = ((LONG, 1, 2.5),)
    table = render([report(rows=rows)], "table", width=80)
    assert max(len(line) for line in table.splitlines()) <= 80
    assert "void cutlass" in table and "128>(Params)" in table and "..." in table
    assert LONG in render([report(rows=rows)], "csv")
    assert LONG in render([report(rows=rows)], "json")
    assert LONG.replace("<", "\\<").replace(">", "\\>") in render([report(rows=rows)], "markdown")


def test_shorten_keeps_both_ends():
    assert humanize.shorten("abcdefghijkl", 9) == "abc...jkl"
    assert humanize.shorten("abc", 9) == "abc"
    assert all(len(humanize.shorten("x" * 50, n)) <= n for n in range(60))


def test_no_two_columns_have_one_heading():
    names = (
        ("carrier", "VARCHAR", "-"), ("carrier_ns", "BIGINT", "+ns"), ("slowest", "VARCHAR", "-"),
        ("slowest_ms", "DOUBLE", "ms"), ("work_ms", "DOUBLE", "ms"),
    )  # fmt: skip
    columns = [Column(*each, "") for each in names]
    expected = ["carrier", "carrier_delta", "slowest", "slowest_ms", "work"]
    assert titles(columns) == expected
    assert report_text.heads(columns) == ["carrier", "carrier ns", "slowest", "slowest ms", "work"]
    shown = grid(columns, [("blocking", 5, "rank 3", 1.5, 2.5)], 200)
    assert shown.split()[:3] == ["carrier_", "slowest_", "carrier"]


def test_a_table_says_what_it_leaves_out():
    many = report(rows=tuple((f"k{i}", i, 1.0) for i in range(10)))
    cut = render([many], "table", limit=3)
    assert "k2" in cut and "k3" not in cut
    assert "... 7 more rows (--limit 0 for all, or --format csv)" in cut
    assert "more rows" not in render([many], "table", limit=0)
    assert len(json.loads(render([many], "json", limit=3))["rows"]) == 10


def test_a_table_of_anchors_leaves_out_what_nobody_takes():
    verdicts = ["taken, not cross-checked", *["range of a library"] * 28, "plausible, but ..."]
    rows = [(at // 2, f"name {at}", verdict) for at, verdict in enumerate(verdicts)]
    columns = (column("rank"), column("pattern", "VARCHAR"), column("verdict", "VARCHAR"))
    given = report(columns, rows, "anchors")
    shown = render([given], "table", limit=200)
    assert [each for each in range(30) if f"name {each} " in shown] == [*range(20), 29]
    assert "... 9 more rows (--limit 0 for all" in shown
    assert "more rows" not in render([given], "table", limit=0)
    for form in ("csv", "markdown", "json"):
        assert render([given], form).count("name ") == 30
    assert render([replace(given, recipe="other")], "table", limit=30).count("name ") == 30


def test_an_empty_result_is_said():
    assert "(no rows)" in render([report(rows=())], "table")


def test_failed_checks_stand_above_the_rows_and_notes_below():
    text = render(
        [
            report(
                checks=[
                    Check("fine", "ok", ""),
                    Check("bounded", "warn", "0.7 ms"),
                    Check("adds_up", "fail", "2 rows"),
                ],
                notes=["a lower bound"],
            )
        ],
        "table",
    )
    assert text.index("FAILED adds_up: 2 rows") < text.index("WARNING bounded: 0.7 ms")
    assert text.index("WARNING bounded") < text.index("kernel") or "kernels" in text
    assert text.index("work") < text.index("Notes\n- a lower bound")
    assert "fine" not in text


def test_json_is_the_envelope():
    big = 2**63 - 1
    text = render(
        [
            report(
                columns=(*KERNELS, column("big")),
                rows=(("a\x1b\U0001f600", None, math.nan, big),),
                parameters={"anchor": "auto"},
                checks=[Check("adds_up", "ok", "")],
                notes=["n"],
            )
        ],
        "json",
    )
    assert text.endswith("}\n") and "NaN" not in text and "\U0001f600" in text
    data = json.loads(text)
    assert list(data) == [
        "recipe",
        "nsys_sql_version",
        "trace",
        "parameters",
        "columns",
        "rows",
        "checks",
        "notes",
    ]
    assert data["columns"][2] == {
        "name": "work_ms",
        "type": "DOUBLE",
        "unit": "ms",
        "description": "",
    }
    expected = {"kernel": "a\x1b\U0001f600", "count": None, "work_ms": None, "big": big}
    assert data["rows"] == [expected]
    assert data["checks"] == [{"name": "adds_up", "status": "ok", "detail": ""}]


def test_several_traces():
    two = [report(), Report("kernels", "0.1.0", {"path": "b"}, "", failure={"message": "no"})]
    data = json.loads(render(two, "json"))
    assert [set(item) & {"rows", "error"} for item in data] == [{"rows"}, {"error"}]
    assert render(two, "csv") == "trace,kernel,count,work_ms\na.sqlite,k,1,2.5\n"
    both = render([report(), report()], "table")
    assert both.count("a.sqlite") == 2


def test_csv_survives_a_reader():
    rows = (('a,"b"\nc', None, 0.1), ("", 0, 1e-30), (" pad", 2**70, math.inf))
    text = render([report(rows=rows)], "csv")
    assert "\r" not in text
    assert list(csv.reader(io.StringIO(text)))[1:] == [
        ['a,"b"\nc', "", "0.1"],
        ["", "0", "1e-30"],
        [" pad", str(2**70), ""],
    ]
    assert '\n"",0,' in text  # an empty text is not NULL
    alone = report(columns=KERNELS[:1], rows=((None,),))
    assert render([alone], "csv") == 'kernel\n""\n'


def test_markdown_cells_cannot_break_out():
    text = markdown(report(rows=(("a|b<script>\n# c`", 1, 2.5),)))
    row = next(line for line in text.splitlines() if line.startswith("| a"))
    assert row == "| a\\|b\\<script\\>\\\\n# c\\` | 1 | 2.5 |"


def test_names_of_columns_are_shown_as_cells_are():
    columns = [column("\x1b[31mx", "BIGINT", "-"), column("a\u202e\n|<b>", "VARCHAR", "-")]
    columns += [column("a_b", "BIGINT", "-"), column("_c_", "BIGINT", "-")]
    told = report(columns=columns, rows=((1, "x", 2, 3),))
    assert "\\x1b[31mx  a\\u202e\\n|<b>  a_b  _c_" in render([told], "table")
    assert "| \\\\x1b\\[31mx | a\\\\u202e\\\\n\\|\\<b\\> | a_b | \\_c\\_ |" in markdown(told)
    assert render([told], "csv").startswith('\x1b[31mx,"a\u202e\n|<b>",a_b,_c_\n')


BUDGET = tuple(
    column(name, kind, unit)
    for name, kind, unit in (
        ("device", "BIGINT", "-"),
        ("metric", "VARCHAR", "-"),
        ("median_ms", "DOUBLE", "ms"),
        ("min_ms", "DOUBLE", "ms"),
        ("max_ms", "DOUBLE", "ms"),
        ("mean_ms", "DOUBLE", "ms"),
        ("pct_of_iteration", "DOUBLE", "pct"),
        ("n", "BIGINT", "count"),
    )
)


def test_a_budget_is_a_tree_per_device():
    metrics = ["iteration", "compute_absent", "compute_busy", "comm_busy", "brand_new"]
    rows = [(d, m, 10.0, 9.0, 11.0, 10.0, 100.0, 5) for d in (0, 1) for m in metrics]
    text = render([report(columns=BUDGET, rows=rows, recipe="budget")], "table", limit=1)
    assert text.count("brand_new") == 2 and text.count("\ndevice ") == 2
    lines = text.splitlines()
    block = lines[lines.index(next(x for x in lines if x.startswith("device 0"))) :]
    assert [line.split("  10 ms")[0].rstrip() for line in block[2:5]] == [
        "iteration",
        "  = compute_busy",
        "  + compute_absent",
    ]
    assert "9 ms .. 11 ms" in text and "more rows" not in text


ODD = (
    "plain", "", " ", "a,b", 'say "x"', "two\nlines", "cr\r", " lead", "trail ", "\u00a0edge",
    "a b", "\\n", "\u2028", "\x7f", "\x1f", "\x85", "é𝄞", None,
)  # fmt: skip


@pytest.fixture
def bulky():
    """`bulky(types, rows)`: a table with such rows, as a report and as what bulk makes of it."""
    con = duckdb.connect()

    def make(types, rows, form, lead=None):
        columns = [column(f'c{at} "', kind) for at, kind in enumerate(types)]
        listed = ", ".join(f"{quote(c.name)} {c.type}" for c in columns)
        con.execute(f"CREATE OR REPLACE TABLE t ({listed})")
        con.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(types))})", rows)
        whole = report(columns, con.execute("FROM t").fetchall())
        lines = list(bulk.of_table(con, "t", columns, form, lead))
        return whole, replace(whole, rows=(), lines=lines)

    yield make
    con.close()


@pytest.mark.parametrize("form", ["csv", "json"])
def test_many_rows_have_the_bytes_of_few(bulky, form, monkeypatch):
    monkeypatch.setattr(bulk, "BATCH", 4)
    numbers = (0.0, -0.0, 0.1, 1e16, 1e15, 1e-5, -2.5e300, math.nan, math.inf, -math.inf, None)
    rows = [
        (text, numbers[at % len(numbers)], None if at % 3 else 2**63 - at, bool(at % 2))
        for at, text in enumerate(ODD)
        if form == "csv" or not any(each < " " for each in text or "")
    ]
    whole, fast = bulky(("VARCHAR", "DOUBLE", "HUGEINT", "BOOLEAN"), rows, form)
    assert render([fast], form) == render([whole], form)
    tame = [("plain, or not", 1.5, 1, True), ('"', 2.0, 2, None)] * 3
    whole, fast = bulky(("VARCHAR", "DOUBLE", "HUGEINT", "BOOLEAN"), tame, form)
    assert render([fast], form) == render([whole], form)


def test_many_rows_carry_their_trace_and_are_no_blank_lines(bulky):
    whole, fast = bulky(("VARCHAR",), [(None,), ("",), ("x",)], "csv")
    assert render([fast], "csv") == render([whole], "csv")
    whole, fast = bulky(("BIGINT",), [(1,), (None,)], "csv", "a.sqlite")
    assert render([fast] * 2, "csv") == render([whole] * 2, "csv")
    whole, fast = bulky(("BIGINT",), [(1,), (None,)], "json")
    assert render([fast] * 2, "json") == render([whole] * 2, "json")


@pytest.mark.parametrize(
    ("kind", "value", "form"),
    [("VARCHAR", "a\x1fb", "json"), ("VARCHAR", "a\nb", "json"), ("DECIMAL(9,2)", 1, "csv"),
     ("BIGINT[]", [1], "json")],
)  # fmt: skip
def test_what_only_python_tells_is_left_to_it(bulky, kind, value, form, monkeypatch):
    asked = []
    monkeypatch.setattr(
        bulk.formats, "blocks", lambda *given: asked.append(given) or blocks(*given)
    )
    whole, fast = bulky((kind,), [(value,)] * 3, form)
    assert len(asked) == 1 and render([fast], form) == render([whole], form)


def chosen(output, form, **more):
    """Options of a command that writes what a recipe answers."""
    found = {"params": (), "output": output, "form": form, "limit": 2, "quiet": True}
    found |= {"anchor": "nvtx:step *", "taxonomy": (), "per_iteration": 1, "skip_first": 0}
    found |= {"skip_last": 0, "iterations": None, "device": None, "window": "range"}
    return found | more


@pytest.mark.parametrize("form", brief(2, ["csv", "json", "table"]))
def test_a_command_writes_many_rows_as_it_writes_few(form, fixture_sqlite, tmp_path, monkeypatch):
    trace, texts = fixture_sqlite("event_waits"), []
    options = chosen(tmp_path / "out", form, anchor="auto")
    for many in (bulk.MANY, 1):
        monkeypatch.setattr(bulk, "MANY", many)
        for traces in ([trace], [trace, trace]):
            assert commands.run("taxonomy", traces, options, pytest.fail) == 0
            texts.append(options["output"].read_bytes())
    assert texts[0] == texts[2]
    assert texts[1] == texts[3]
    assert b"more rows" in texts[0] or form != "table"


@pytest.mark.parametrize(("form", "by_python"), [("csv", False), ("json", True)])
def test_many_rows_are_made_while_they_are_written(
    form, by_python, fixture_sqlite, tmp_path, monkeypatch
):
    """Of a result of any length one block is in memory, and a run cut short leaves no part."""
    target, made, ahead, last = tmp_path / "out", [], [], [99]
    batches, write = bulk._batches, output.write_parts

    def counted(*given):
        for batch in batches(*given):
            if len(made) == last[0]:
                raise KeyboardInterrupt
            made.append(batch)
            yield batch

    def looked_at(pieces, path):
        def each():
            for written, piece in enumerate(pieces):
                ahead.append(len(made) - written)
                yield piece

        write(each(), path)

    monkeypatch.setattr(bulk, "MANY", 1)
    monkeypatch.setattr(bulk, "BATCH", 5)
    monkeypatch.setattr(bulk, "_batches", counted)
    monkeypatch.setattr(output, "write_parts", looked_at)
    if by_python:
        monkeypatch.setattr(bulk, f"_{form}", lambda *_: None)
    traces, options = [fixture_sqlite("event_waits")], chosen(target, form, anchor="auto")
    assert commands.run("gaps", traces, options, pytest.fail) == 0
    assert len(made) > 1 and max(ahead) <= 1
    before = target.read_bytes()
    made[:], last[:] = [], [1]
    with pytest.raises(KeyboardInterrupt):
        commands.run("gaps", traces, options, pytest.fail)
    assert target.read_bytes() == before and os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize("form", ["csv", "json"])
def test_a_query_writes_many_rows_as_it_writes_few(form, fixture_sqlite, tmp_path, monkeypatch):
    query = (
        "SELECT i AS n_ns, 'a,' || i AS text, [i] AS list, DATE '2026-01-01' + i::INTEGER AS day, "
        "i / 3 AS part FROM range(7) AS r(i)"
    )
    options, texts = chosen(tmp_path / "out", form), []
    for many in (100, 7, 2):
        monkeypatch.setattr(bulk, "MANY", many)
        assert commands.sql(fixture_sqlite("event_waits"), query, options, pytest.fail) == 0
        texts.append(options["output"].read_bytes())
    assert texts[0] == texts[1] == texts[2]


def test_what_has_no_answer_touches_no_file(tmp_path):
    target = tmp_path / "out.csv"
    target.write_text("as it was", encoding="utf-8")
    told = []
    traces = [tmp_path / "a.sqlite", tmp_path / "b.sqlite"]
    for form in ("csv", "markdown"):
        assert commands.run("gaps", traces, chosen(target, form), told.append) == 3
    assert len(told) == 4 and target.read_text(encoding="utf-8") == "as it was"
