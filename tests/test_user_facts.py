"""Recipes of the user's own over several traces, and as tracks of a timeline."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from conftest import ROOT
from nsys_sql import catalog, partition, userfacts, userfiles
from nsys_sql.cli import execute
from nsys_sql.options import Options
from test_user_recipes import installed
from tracebuilder import TraceBuilder

US, MS = 1_000, 1_000_000
ANCHOR = ["--anchor", "nvtx:step *", "--threads", "1"]
# Work of each class: of a step, and when.
WORK = """-- work — how much work of each class does a step hold?
--
-- @grain     one row per device and class
-- @needs     kernel
-- @key       class
-- @param     least_us DOUBLE = 0  leave out what is shorter
-- @column    device BIGINT - GPU
-- @column    class VARCHAR - class of the kernels
-- @column    first_start_ns BIGINT ns when it begins, which no other trace shares
-- @column    work_us DOUBLE us work of a step
-- @column    kernels BIGINT count kernels
-- @column    n BIGINT - steps
-- @invariant some kernels > 0
WITH params AS (
    SELECT coalesce(getvariable('least_us'), 0)::DOUBLE AS least_us
),
steps AS (
    SELECT device, count(*) AS n FROM nsys.steady GROUP BY device
)
SELECT
    o.device,
    o.class,
    min(o.start_ns) AS first_start_ns,
    sum(o.end_ns - o.start_ns)::BIGINT / 1e3 / any_value(s.n) AS work_us,
    count(*) AS kernels,
    any_value(s.n) AS n,
FROM nsys.op AS o
INNER JOIN steps AS s ON s.device = o.device
WHERE o.kind = 'kernel' AND o.end_ns - o.start_ns >= (SELECT least_us FROM params) * 1000
GROUP BY o.device, o.class
ORDER BY o.device, o.class;
"""
# Each communication kernel as an interval.
SPANS = """-- spans — when does communication run?
--
-- @grain  one row per kernel
-- @column device BIGINT - GPU
-- @column track VARCHAR - its stream
-- @column name VARCHAR - its class
-- @column start_ns BIGINT ns start
-- @column duration_ns BIGINT ns length
-- @column note VARCHAR - a text
SELECT
    device,
    'stream ' || stream_id AS track,
    class AS name,
    start_ns,
    end_ns - start_ns AS duration_ns,
    'a "quoted" text' AS note,
FROM nsys.op
WHERE role = 'comm'
ORDER BY device, start_ns, op_id;
"""


def write(folder: Path, **texts: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.sql").write_text(text, encoding="utf-8")
    return folder


def make_trace(path: Path, product_us: int, reduce_us: int | None = 100) -> Path:
    """Three steps: a product, and an all-reduce of two halves that overlap on two streams."""
    trace, corr = TraceBuilder(), 0
    for step in range(3):
        at = step * MS
        trace.nvtx(at, at + 900 * US, f"step {step}")
        runs = [(10, product_us, "ampere_sgemm_128x64_tn", 7)]
        if reduce_us is not None:
            runs += [(400 + i, reduce_us, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", 20)
                     for i in (0, 50)]  # fmt: skip
        for start, length, name, stream in runs:
            corr += 1
            trace.call(at + US, at + 2 * US, corr=corr)
            begin = at + start * US
            trace.kernel(begin, begin + length * US, name, stream=stream, corr=corr)
    return trace.write(path)


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("facts")
    return {
        "base": make_trace(folder / "base.sqlite", 100),
        "new": make_trace(folder / "new.sqlite", 150),
        "alone": make_trace(folder / "alone.sqlite", 150, None),
    }


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return ["--partitions", str(tmp_path_factory.mktemp("parts")), "--jobs", "1"]


def table(capsys: pytest.CaptureFixture[str]) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(capsys.readouterr().out)))


# ---------------------------------------------------------------- comparisons and surveys


def test_a_comparison_holds_them_by_key(traces, parts, tmp_path, capsys) -> None:
    mine = write(tmp_path / "mine", work=WORK)
    given = [str(traces["base"]), str(traces["new"]), "--recipes", str(mine), *ANCHOR, *parts]
    assert execute(["compare", *given, "--result", "work", "--format", "csv"]) == 0
    rows = table(capsys)
    assert [(r["class"], r["metric"]) for r in rows] == [
        ("gemm", "work_us"), ("nccl", "work_us"), ("gemm", "kernels"), ("nccl", "kernels"),
    ]  # fmt: skip
    gemm, nccl = rows[:2]
    assert [float(gemm[each]) for each in ("base", "new", "delta", "delta_pct")] == [
        100, 150, 50, 50,
    ]  # fmt: skip
    assert [float(nccl[each]) for each in ("base", "new", "delta")] == [200, 200, 0]
    # in every form, as a result and a section of its own
    assert execute(["compare", *given, "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert len(told["results"]["work"]["rows"]) == 4
    assert any(check["name"] == "some" and check["status"] == "ok" for check in told["checks"])
    page = tmp_path / "page.md"
    assert execute(["compare", *given, "-o", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert "## 7 Recipes of your own" in text and "how much work of each class" in text


def test_what_one_side_lacks_is_not_zero(traces, parts, tmp_path, capsys) -> None:
    mine = write(tmp_path / "mine", work=WORK)
    given = [str(traces["new"]), str(traces["alone"]), "--recipes", str(mine), *ANCHOR, *parts]
    assert execute(["compare", *given, "--force", "--result", "work", "--format", "csv"]) == 0
    nccl = next(row for row in table(capsys) if row["class"] == "nccl")
    assert (float(nccl["base"]), nccl["new"], nccl["delta"]) == (200, "", "")


def test_parameters_reach_the_recipe(traces, parts, tmp_path, capsys) -> None:
    mine = write(tmp_path / "mine", work=WORK)
    given = [str(traces["new"]), "--recipes", str(mine), *ANCHOR, *parts]
    wanted = ["--result", "work", "--format", "csv", "--param", "least_us=120"]
    assert execute(["survey", *given, *wanted]) == 0
    (gemm,) = [row for row in table(capsys) if row["metric"] == "work_us"]
    assert (gemm["class"], gemm["rank_count"], float(gemm["least"])) == ("gemm", "1", 150)
    assert execute(["survey", *given, *wanted[:-1], "leest_us=120"]) == 2
    assert "there is no parameter 'leest_us'" in capsys.readouterr().err


def test_a_survey_shows_who_differs(traces, parts, tmp_path, capsys) -> None:
    mine = write(tmp_path / "mine", work=WORK)
    mapping = tmp_path / "ranks.yaml"
    listed = "".join(
        f"  - {{trace: {traces[name]}, rank: {rank}}}\n"
        for rank, name in enumerate(("base", "new", "alone"))
    )
    mapping.write_text(f"ranks:\n{listed}", encoding="utf-8")
    given = ["survey", "--ranks", str(mapping), "--recipes", str(mine), *ANCHOR, *parts]
    assert execute([*given, "--result", "work", "--format", "csv"]) == 0
    rows = {(row["class"], row["metric"]): row for row in table(capsys)}
    gemm, nccl = rows["gemm", "work_us"], rows["nccl", "work_us"]
    told = [float(gemm[each]) for each in ("rank_count", "least", "median", "greatest")]
    assert told == [3, 100, 150, 150]
    assert (gemm["least_rank"], gemm["greatest_rank"]) == ("rank 0", "rank 1")
    assert float(nccl["rank_count"]) == 2
    page = tmp_path / "page.md"
    assert execute([*given, "-o", str(page)]) == 0
    assert "Recipes of your own\n" in page.read_text(encoding="utf-8")
    # a recipe that was changed since the traces were read is not mixed with what was read
    write(mine, work=WORK.replace("/ 1e3", "/ 1e6"))
    folder = parts[1]
    again = ["survey", "--from-parquet", folder, "--recipes", str(mine), *ANCHOR]
    assert execute([*again, "--result", "work", "--format", "csv"]) == 4
    assert "another version of this recipe" in capsys.readouterr().err


def test_a_name_with_a_dash_and_no_device(traces, parts, tmp_path, capsys) -> None:
    text = (
        "-- all-work — how much work is there?\n--\n-- @grain one row\n-- @key kind\n"
        "-- @column kind VARCHAR - kind\n-- @column work_ns BIGINT ns work\n"
        "SELECT kind::VARCHAR AS kind, sum(end_ns - start_ns)::BIGINT AS work_ns\n"
        "FROM nsys.op GROUP BY kind ORDER BY kind;\n"
    )
    mine = write(tmp_path / "mine", all_work=text)
    given = [str(traces["base"]), str(traces["new"]), "--recipes", str(mine), *ANCHOR, *parts]
    target = tmp_path / "x.parquet"
    assert execute(["compare", *given, "--result", "all-work", "-o", str(target)]) == 0
    rows = duckdb.sql(f"SELECT kind, base, new FROM '{target}'").fetchall()
    assert rows == [("kernel", 900_000, 1_050_000)]
    assert execute(["survey", *given, "--result", "all_work", "-o", str(target)]) == 0
    assert duckdb.sql(f"SELECT rank_count, greatest FROM '{target}'").fetchall() == [(2, 1_050_000)]


def test_whole_trace_figures_of_two_devices_are_told_once(tmp_path, parts, capsys) -> None:
    """And are read as `run` shows them: the one recipe without a device, the other with one."""
    for name, length in (("base", 100), ("new", 150)):
        trace = TraceBuilder()
        for step in range(3):
            at = step * MS
            trace.nvtx(at, at + 900 * US, f"step {step}")
            for device in (0, 1):
                corr, begin = 2 * step + device + 1, at + (10 + device) * US
                trace.call(at + US, at + 2 * US, corr=corr)
                trace.kernel(begin, begin + length * US + 1, "ampere_sgemm_128x64_tn",
                             device=device, corr=corr)  # fmt: skip
        trace.write(tmp_path / f"{name}.sqlite")
    text = (
        "-- whole — how much is there?\n--\n-- @grain one row per class\n-- @key class\n"
        "-- @column class VARCHAR - class\n-- @column work DOUBLE ms its unit is not in its name\n"
        "-- @column kernels BIGINT count kernels\n"
        "SELECT class, 128361.065::DOUBLE AS work, 12345 * count(*) AS kernels\n"
        "FROM nsys.op GROUP BY class ORDER BY class;\n"
    )
    mine = write(tmp_path / "mine", work=WORK, whole=text)
    names = [str(tmp_path / "base.sqlite"), str(tmp_path / "new.sqlite")]
    given = [*names, "--recipes", str(mine), *ANCHOR, *parts]
    assert execute(["compare", *given, "--result", "whole", "--format", "csv"]) == 0
    rows = table(capsys)
    assert [(r["pairs"], r["metric"], float(r["base"]), float(r["delta"])) for r in rows] == [
        ("all", "work", 128361.065, 0), ("all", "kernels", 6 * 12345, 0),
    ]  # fmt: skip
    assert execute(["compare", *given, "--result", "work", "--format", "csv"]) == 0
    assert [row["pair"] for row in table(capsys)] == ["0", "0", "1", "1"]
    assert execute(["survey", *given, "--result", "whole", "--format", "csv"]) == 0
    assert [(r["rank_count"], r["least_rank"]) for r in table(capsys)] == [
        ("2", "report 1 device 0 and 1 more")
    ] * 2
    page = tmp_path / "page.md"
    for command, count in (("compare", 2), ("survey", 3)):
        assert execute([command, *given, "--result", "whole"]) == 0
        shown = capsys.readouterr().out
        assert shown.count("128.4 s") == count and shown.count("74,070") == count, shown
        assert execute([command, *given, "-o", str(page)]) == 0
        shown = page.read_text(encoding="utf-8")
        assert shown.count("128.4 s") == count and shown.count("74,070") == count, shown
    assert execute(["compare", *given, "--result", "work"]) == 0
    assert "100.0 us  150.0 us  +50.00 us" in capsys.readouterr().out


def test_rows_without_a_device_speak_for_the_pairs_of_their_traces(tmp_path) -> None:
    text = (
        "-- whole — how much?\n--\n-- @grain one row per class\n-- @key class\n"
        "-- @column class VARCHAR - class\n-- @column work_ns BIGINT ns work\n"
        "SELECT 'a' AS class, 1::BIGINT AS work_ns ORDER BY class;\n"
    )
    file = catalog.parse("recipe", write(tmp_path / "mine", whole=text) / "whole.sql")
    con = duckdb.connect()
    con.execute("CREATE SCHEMA base; CREATE SCHEMA new; CREATE SCHEMA pair; CREATE SCHEMA rank")
    con.execute("CREATE TABLE pair.member (pair BIGINT, side VARCHAR, part VARCHAR, device BIGINT)")
    con.execute(
        "CREATE TABLE pair.label AS FROM (VALUES (0, 'x'), (1, 'y'), (2, NULL)) t(pair, label)"
    )
    con.execute(
        "CREATE TABLE rank.member AS SELECT pair AS member_id, part, 0 AS device, 'rank ' || pair "
        "AS label FROM (VALUES (0, 'p'), (1, 'p'), (2, 'q'), (3, 'p')) t(pair, part)"
    )
    # the base has one trace of two devices and one of one; the last device has no counterpart
    for side in ("base", "new"):
        con.execute(
            f"INSERT INTO pair.member VALUES (0, '{side}', 'p', 0), (1, '{side}', 'p', 1), "
            f"(2, '{side}', 'q', 0), (NULL, '{side}', 'q', 1)"
        )
    for schema, work in (("base", 1), ("new", 3), ("rank", 5)):
        con.execute(
            f"CREATE TABLE {schema}.result_whole AS FROM (VALUES ('p', 'a', {work}), "
            f"('q', 'a', {work})) t(part, class, work_ns)"
        )
    rows = con.execute(userfacts.over_pairs(file)[0]).fetchall()
    assert [row[:1] + row[3:6] + row[7:] for row in rows] == [
        ("0, 1", 1, 3, 2, "x | y"), ("2", 1, 3, 2, None),
    ]  # fmt: skip
    con.execute("DELETE FROM pair.member WHERE pair = 2")
    assert [row[0] for row in con.execute(userfacts.over_pairs(file)[0]).fetchall()] == ["all"]
    (row,) = con.execute(userfacts.over_ranks(file)[0]).fetchall()
    assert row == ("a", "work_ns", 2, 5, 5, 5, "rank 0 and 2 more", "rank 0 and 2 more")


def test_partitions_know_which_recipes_they_hold(traces, tmp_path) -> None:
    mine = write(tmp_path / "mine", work=WORK, spans=SPANS)

    def key(*recipes: str) -> str:
        return partition.key_of(traces["base"], Options(recipes=recipes))[0]

    plain, first = key(), key(str(mine))
    assert key(str(mine / "work.sql")) == first != plain
    write(mine, spans=SPANS + "\n")  # it has no key, so it is in no partition
    assert key(str(mine)) == first
    # what a recipe reads counts as its own text does
    read = WORK.replace("-- work", "-- read").replace("-- @key       class\n", "")
    write(mine, read=read, work=WORK.replace("FROM nsys.op AS o", "FROM result_read AS o"))
    second = key(str(mine))
    write(mine, read=read + "\n")
    assert len({plain, first, second, key(str(mine))}) == 4


REFUSED = {
    "none": (WORK.replace("-- @key       class\n", ""), "none.sql: it has no @key"),
    "odd": (WORK.replace("@key       class", "@key       klass"),
            "odd.sql:5: @key names klass, which is no @column; did you mean 'class'?"),
    "taken": (WORK.replace(" n BIGINT", " part BIGINT").replace("AS n,\nFROM", "AS part,\nFROM"),
              "taken.sql:12: part is what a column of the answer"),
    "plain": (WORK.replace("DOUBLE us", "DOUBLE -").replace("BIGINT count", "BIGINT -"),
              "plain.sql:5: there is no figure to compare"),
    "members": (WORK, "members.sql: there already is a result members"),
}  # fmt: skip


def test_a_recipe_without_a_role_is_refused_in_one_line(traces, parts, tmp_path, capsys):
    every = tmp_path / "every"
    given = [str(traces["base"]), str(traces["new"]), *ANCHOR, *parts, "--result", "members"]
    for name, (text, words) in REFUSED.items():
        texts = {name: text.replace("-- work", f"-- {name}")}
        write(every, **texts)
        mine = write(tmp_path / name, **texts)
        assert execute(["compare", *given, "--recipes", str(mine)]) == 2
        out, err = capsys.readouterr()
        assert out == "" and words in err and err.count("\n") == 1, err
    # beside one that has a role they are left out, and said so
    write(every, work=WORK, broken=WORK.replace("@grain", "@grian"))
    write(every / "notes", said="-- said — what?\nSELECT 'x' AS note;\n")
    assert execute(["compare", *given, "--recipes", str(every)]) == 0
    err = capsys.readouterr().err
    others = ("broken.sql:3: unknown tag @grian", "said.sql is not read: no recipe names this note")
    for words in (*(words for _, words in REFUSED.values()), *others):
        assert sum(words in line for line in err.splitlines()) == 1, err


def test_what_goes_wrong_on_a_trace_is_told_and_costs_nothing_else(traces, parts, tmp_path, capsys):
    repeated = WORK.replace("-- work", "-- repeated").replace("@key       class", "@key       n")
    missing = WORK.replace("-- work", "-- missing").replace(
        "@needs     kernel", "@needs gpu_metric"
    )
    failing = WORK.replace("-- work", "-- failing").replace(
        "min(o.start", "min(o.class::BIGINT + o.start"
    )
    secret = tmp_path / "secret.csv"
    secret.write_text("device,class\n0,secret\n", encoding="utf-8")
    reading = WORK.replace("-- work", "-- reading").replace(
        "FROM nsys.op AS o", f"FROM read_csv('{secret}') AS o"
    )
    mine = write(tmp_path / "mine", work=WORK, repeated=repeated, missing=missing, failing=failing,
                 reading=reading)  # fmt: skip
    given = [str(traces["base"]), "--recipes", str(mine), *ANCHOR, *parts]
    assert execute(["survey", *given, "--result", "work"]) == 0
    err = capsys.readouterr().err
    for words in (
        "recipe repeated is without base.sqlite: 2 rows have the same key (device 0, n 3)",
        "recipe missing is without base.sqlite: missing: this export has no gpu metric",
        "recipe failing is without base.sqlite: ",
        "failing.sql:23: Conversion Error: Could not convert string 'gemm' to INT64",
        "try_cast(x AS TYPE) gives NULL for what does not fit",
        "reading.sql:27: table function read_csv() is not allowed",
    ):
        assert words in err, err
    assert execute(["survey", *given, "--result", "failing"]) == 4
    assert "recipe failing is without" in capsys.readouterr().err


def test_a_failing_check_of_a_recipe_ends_with_its_code(traces, parts, tmp_path, capsys) -> None:
    mine = write(tmp_path / "mine", work=WORK.replace("some kernels > 0", "some kernels > 3"))
    given = [str(traces["base"]), "--recipes", str(mine), *ANCHOR, *parts]
    assert execute(["survey", *given, "--result", "work"]) == 5
    assert "FAILED some: base.sqlite: 1 of 2 rows" in capsys.readouterr().out


# ---------------------------------------------------------------- by name and by environment


def test_recipes_of_a_package_are_given_by_its_name(traces, parts, monkeypatch, tmp_path, capsys):
    mine = write(tmp_path / "mine", work=WORK)
    installed(monkeypatch, team=mine)
    given = ["compare", str(traces["base"]), str(traces["new"]), *ANCHOR, *parts]
    assert execute([*given, "--result", "work"]) == 2  # it is there, and was not asked for
    capsys.readouterr()
    assert execute([*given, "--result", "work", "--recipes", "team", "--format", "csv"]) == 0
    assert len(table(capsys)) == 4
    assert execute(["list", "--recipes", str(mine)]) == 0  # the same folder once more
    assert capsys.readouterr().out.count("\nwork ") == 1
    assert execute(["list", "--recipes", "tame"]) == 2
    assert "no such file or folder; installed are team" in capsys.readouterr().err
    assert userfiles.places("team") == (mine,)


def test_the_environment_names_recipes_for_every_command(
    traces, parts, monkeypatch, tmp_path, capsys
) -> None:
    one = write(tmp_path / "one", work=WORK)
    two = write(tmp_path / "two", spans=SPANS)
    monkeypatch.setenv("NSYS_SQL_RECIPES", f"{one}:{two}")
    assert execute(["list"]) == 0
    out = capsys.readouterr().out
    assert "\nwork " in out and "\nspans " in out
    # what has no role in one command is no reason to refuse it, or to say so each time
    monkeypatch.setenv("NSYS_SQL_RECIPES", str(two))
    given = ["compare", str(traces["base"]), str(traces["new"]), *ANCHOR, *parts]
    assert execute([*given, "--result", "members"]) == 0
    assert "spans" not in capsys.readouterr().err
    assert len(events(traces["base"], tmp_path / "e.json")) > 6
    assert '"cat":"spans"' in (tmp_path / "e.json").read_text(encoding="utf-8")
    assert capsys.readouterr().err == ""


# ---------------------------------------------------------------- timelines


def events(trace: Path, target: Path, *options: str) -> list[dict[str, Any]]:
    assert execute(["timeline", str(trace), "-o", str(target), *ANCHOR, *options]) == 0
    return json.loads(target.read_text(encoding="utf-8"))["traceEvents"]


def test_intervals_of_a_recipe_are_tracks(traces, tmp_path, capsys) -> None:
    mine = write(tmp_path / "mine", spans=SPANS, work=WORK)
    found = events(traces["base"], tmp_path / "t.json", "--recipes", str(mine))
    plain = events(traces["base"], tmp_path / "t.json")
    assert found[: len(plain)] == plain
    own = [event for event in found if event.get("cat") == "spans"]
    assert [(e["ts"], e["dur"], e["name"]) for e in sorted(own, key=lambda e: e["ts"])] == [
        (1000 * step + at, 100, "nccl") for step in range(3) for at in (400, 450)
    ]
    assert own[0]["args"] == {"note": 'a "quoted" text'}
    # two of a step overlap: each has a track, between the derived ones and the streams
    tracks = {
        e["tid"]: e["args"]["name"]
        for e in found[len(plain) :]
        if e["ph"] == "M" and e["name"] == "thread_name"
    }
    assert tracks == {3: "spans: stream 20", 4: "spans: stream 20 (overlapping)"}
    assert {e["tid"] for e in own} == {3, 4}
    assert "work.sql: it is no track of a timeline, for want of start_ns, end_ns" in (
        capsys.readouterr().err
    )
    limited = events(
        traces["base"], tmp_path / "t.json", "--iterations", "1:2", "--recipes", str(mine)
    )
    assert {e["ts"] for e in limited if e.get("cat") == "spans"} == {1400, 1450}


def test_a_timeline_refuses_what_is_no_track(traces, tmp_path, capsys) -> None:
    mine = write(tmp_path / "mine", work=WORK)
    target = tmp_path / "t.json"
    assert (
        execute(["timeline", str(traces["base"]), "-o", str(target), "--recipes", str(mine)]) == 2
    )
    err = capsys.readouterr().err
    assert "no track of a timeline" in err and err.count("\n") == 1
    assert not target.exists()


def test_rows_without_an_interval_are_counted(traces, tmp_path, capsys) -> None:
    odd = SPANS.replace(
        "end_ns - start_ns AS", "CASE WHEN start_ns < 1000000 THEN -1 END::BIGINT AS"
    )
    mine = write(tmp_path / "mine", spans=odd)
    found = events(traces["base"], tmp_path / "t.json", "--recipes", str(mine))
    assert not [event for event in found if event.get("cat") == "spans"]
    assert "recipe spans: 6 rows have no device, start or end" in capsys.readouterr().err
    write(mine, spans=odd.replace("END::BIGINT", "END"))
    target = tmp_path / "u.json"
    given = ["timeline", str(traces["base"]), "-o", str(target), "--recipes", str(mine)]
    assert execute(given) == 2
    assert "column duration_ns is declared BIGINT" in capsys.readouterr().err
    assert not target.exists()


def test_many_tracks_stay_in_order(tmp_path) -> None:
    from nsys_sql import tracks

    lanes = tracks._lanes([(0, at, at + 10, "x", "x", {}) for at in (0, 3, 6, 10, 20)])
    assert [[row[1] for row in lane] for lane in lanes] == [[0, 10, 20], [3], [6]]
    assert tracks._micro(-1_500) == "-1.500" and tracks._micro(1_000_001) == "1000.001"


def test_a_history_has_no_place_for_them(tmp_path, capsys) -> None:
    assert execute(["history", str(tmp_path / "runs.duckdb"), "--recipes", "mine"]) == 2
    err = capsys.readouterr().err
    assert "a history keeps the metrics of the budget" in err and err.count("\n") == 1


# ---------------------------------------------------------------- the worked example


def test_the_example_has_a_key() -> None:
    catalog = userfiles.full_catalog([ROOT / "examples" / "recipes"])
    file = catalog.recipe("alone")
    assert userfacts.objection(file, ()) is None
    assert [each.name for each in userfacts.figures(file)] == [
        "alone_work_ms", "alone_work_max_ms", "work_ms",
    ]  # fmt: skip
