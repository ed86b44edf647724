"""Recipe call-sites: launches joined by (rank, thread, ordinal), with the link rate, or refused."""

import csv

import duckdb
import pytest

import nsys_sql
from tracebuilder import TraceBuilder, global_tid

GEMM = "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_TNT"
ADD = "triton_poi_fused_mul_silu_slice_1"
US = 1000


def trace(path, graph=False):
    """Two steps; thread 1 launches a gemm and late an add, thread 2 a gemm that waits for it."""
    builder = TraceBuilder()
    for step in range(2):
        at, corr = step * 1000 * US, step * 10
        builder.nvtx(at, at + 900 * US, f"step {step}", tid=1)
        builder.call(at, at + 10 * US, tid=1, corr=corr + 1)
        builder.kernel(at + 10 * US, at + 100 * US, GEMM, corr=corr + 1)
        builder.call(
            at + 200 * US, at + 300 * US, "cudaLaunchKernelExC_v11060", tid=1, corr=corr + 2
        )
        builder.kernel(at + 300 * US, at + 400 * US, ADD, corr=corr + 2)
        builder.call(at + 310 * US, at + 320 * US, "cuLaunchKernelEx", tid=2, corr=corr + 3)
        builder.kernel(at + 450 * US, at + 500 * US, GEMM, corr=corr + 3)
        builder.call(
            at + 330 * US, at + 340 * US, "cudaLaunchHostFunc_v10000", tid=2, corr=corr + 4
        )
        builder.call(at + 340 * US, at + 350 * US, "cudaMemcpyAsync_v3020", tid=1, corr=corr + 5)
        if graph:
            builder.call(at + 600 * US, at + 610 * US, "cudaGraphLaunch_v10000", corr=corr + 6)
            for number in range(3):
                start = at + (620 + 10 * number) * US
                builder.kernel(start, start + 5 * US, ADD, corr=corr + 6, node=1 << 32 | number)
    return builder.cuda_device(100, 0, 0).duration(10**9).write(path)


SITES = {1: ["layer.py:10", "loss.py:20"] * 2, 2: ["mlp.py:30"] * 2}


def write(path, sites=SITES, rank=0, header=("rank", "thread", "ordinal", "call_site")):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        for thread, places in sites.items():
            for ordinal, place in enumerate(places):
                writer.writerow([rank, thread, ordinal, place][: len(header)])
    return path


def ask(path, sites, **params):
    with nsys_sql.open(path, anchor="nvtx:step *", callsites=sites) as model:
        result = model.result("call-sites", **params)
        names = [column.name for column in result.columns]
        assert all(check.status == "ok" for check in result.checks)
        return {row[1]: dict(zip(names, row, strict=True)) for row in result.rows}


def refusal(path, sites, **params):
    with pytest.raises(nsys_sql.AnswerError) as refused:
        ask(path, sites, **params)
    return str(refused.value)


def test_work_and_gaps_go_to_the_launching_line(tmp_path):
    found = ask(trace(tmp_path / "t.sqlite"), write(tmp_path / "s.csv"))
    late = found["loss.py:20"]
    assert (late["launches"], late["n"], late["link_rate_pct"]) == (2, 2, 100)
    assert late["work_ms"] == 0.1
    # the add was launched only 200 us after the gemm had ended
    assert late["launch_starved_ms"] == 0.2 and late["blocking_ms"] == 0
    waiting = found["mlp.py:30"]
    assert waiting["launch_starved_ms"] == 0 and waiting["blocking_ms"] == 0
    first = found["layer.py:10"]
    assert first["work_ms"] == 0.09
    # 10 us at the begin of each step; the gap before the second begins 500 us into the first
    starved = [first[f"launch_starved_{name}ms"] for name in ("min_", "", "max_")]
    assert starved == [0.01, 0.21, 0.41]
    assert late["stack"] is None
    assert next(iter(found)) == "layer.py:10"


def test_graphs_have_no_call_site_and_lower_the_link_rate(tmp_path):
    found = ask(trace(tmp_path / "t.sqlite", graph=True), write(tmp_path / "s.csv"))
    assert {row["link_rate_pct"] for row in found.values()} == {50}
    assert found[None]["launches"] == 6


@pytest.mark.parametrize("way", ["globalTid", "number"])
def test_threads_by_other_names(tmp_path, way):
    path = trace(tmp_path / "t.sqlite")
    name = {1: global_tid(100, 1), 2: global_tid(100, 2)} if way == "globalTid" else {1: 0, 2: 1}
    sites = write(tmp_path / "s.csv", {name[thread]: SITES[thread] for thread in SITES})
    assert ask(path, sites).keys() == {"layer.py:10", "loss.py:20", "mlp.py:30"}


def test_parquet_column_names_rank_and_stack(tmp_path):
    sites = tmp_path / "sites [1].parquet"
    rows = ", ".join(
        f"({rank}, {thread}, {ordinal}, '{place}', '{'deep' if ordinal else 'flat'}')"
        for rank in (0, 3)
        for thread, places in SITES.items()
        for ordinal, place in enumerate(places[: 1 if rank == 0 else None])
    )
    duckdb.connect().execute(
        f'COPY (SELECT col0 AS Rank, col1 AS TID, col2 AS "Launch Ordinal", col3 AS CallSite,'
        f" col4 AS Stack FROM (VALUES {rows})) TO '{sites}' (FORMAT parquet)"
    )
    path = trace(tmp_path / "t.sqlite")
    found = ask(path, sites, rank=3)
    assert found["loss.py:20"]["stack"] == "deep"
    assert "thread 1 makes 1 launches in the file and 4 in the trace" in refusal(path, sites)
    assert "no rank 5, only 0, 3" in refusal(path, sites, rank=5)


@pytest.mark.parametrize(
    ("sites", "message"),
    [
        (
            {1: SITES[1][:3], 2: SITES[2]},
            "thread 1 makes 3 launches in the file and 4 in the trace",
        ),
        ({7: SITES[1], 9: SITES[2]}, "thread 7 makes no launch in the trace, whose threads launch"),
        ({"main": SITES[1]}, "4 rows have no integer as thread"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path, sites, message):
    assert message in refusal(trace(tmp_path / "t.sqlite"), write(tmp_path / "s.csv", sites))


def test_ordinals_with_a_gap_are_refused(tmp_path):
    sites = tmp_path / "s.csv"
    sites.write_text(
        "rank,thread,ordinal,call_site\n"
        + "".join(f"0,1,{ordinal},x.py:1\n" for ordinal in (0, 1, 1, 3))
    )
    assert "do not count from 0 to 3" in refusal(trace(tmp_path / "t.sqlite"), sites)


def test_a_thread_left_out_of_the_file_stays_without_call_site(tmp_path):
    found = ask(trace(tmp_path / "t.sqlite"), write(tmp_path / "s.csv", {1: SITES[1]}))
    assert found[None]["launches"] == 2
    assert found["loss.py:20"]["link_rate_pct"] == pytest.approx(100 * 4 / 6)


def test_files_that_are_no_call_sites(tmp_path):
    path = trace(tmp_path / "t.sqlite")
    headless = write(tmp_path / "h.csv", header=("rank", "thread", "ordinal"))
    with pytest.raises(nsys_sql.InputError) as wrong:
        nsys_sql.open(path, callsites=headless)
    assert "no column for call site" in str(wrong.value)
    assert "rank, thread, launch ordinal, call site" in wrong.value.hint
    for name, data in (("gone.csv", None), ("empty.csv", b""), ("bad.parquet", b"PAR1 no")):
        file = tmp_path / name
        if data is not None:
            file.write_bytes(data)
        with pytest.raises(nsys_sql.InputError) as wrong:
            nsys_sql.open(path, callsites=file)
        assert name in str(wrong.value)
    only_header = write(tmp_path / "n.csv", {})
    with pytest.raises(nsys_sql.InputError, match="holds no launch"):
        nsys_sql.open(path, callsites=only_header)


def test_the_recipe_asks_for_the_file(tmp_path):
    with nsys_sql.open(trace(tmp_path / "t.sqlite")) as model:
        with pytest.raises(nsys_sql.AnswerError) as refused:
            model.run("call-sites")
        assert "--callsites" in refused.value.hint


def test_the_report_holds_them_or_says_why_not(tmp_path, capsys):
    from nsys_sql.cli import execute

    path = str(trace(tmp_path / "t.sqlite"))
    given = ["report", path, "--anchor", "nvtx:step *", "--callsites"]
    assert execute([*given, str(write(tmp_path / "s.csv"))]) == 0
    text = capsys.readouterr().out
    assert "recipe `call-sites`" in text and "link rate %" in text and "loss.py:20" in text
    short = write(tmp_path / "short.csv", {1: ["layer.py:10"], 2: ["mlp.py:30"] * 2})
    assert execute([*given, str(short)]) == 0
    text = capsys.readouterr().out
    assert "recipe `call-sites`" not in text
    assert "call-sites: the call sites do not fit this trace" in text
    assert "1 launches in the file and 4 in the trace" in text
