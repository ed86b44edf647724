"""Recipe metrics: samples found by name, exclusivity, what is unknown, and a separate capture."""

import json
import sqlite3

import pytest

import nsys_sql
from tracebuilder import TraceBuilder

GEMM = "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_TNT"
NORM = "void transformer_engine::normalization::rmsnorm_fwd_tuned_kernel<...>"
NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"
NO_WINDOWS = "nvtx:none"
NAMES = {
    "SM Issue [Throughput %]": 11,
    "Tensor Active [Throughput %]": 7,
    "DRAM Read Bandwidth [Throughput %]": 3,
    "DRAM Write Bandwidth [Throughput %]": 4,
    "NVLink RX Requests User Data [Throughput %]": 21,
    "NVLink RX Responses User Data [Throughput %]": 22,
    "SMs Active [Throughput %]": 1,
    "SMs Active [Avg]": 2,
}


def trace(path, shift=0):
    """One gemm alone, one beside a collective, and a norm too short for any sample."""
    builder = TraceBuilder()
    builder.kernel(0 + shift, 100 + shift, GEMM, corr=1)
    builder.kernel(100 + shift, 105 + shift, NORM, corr=2)
    builder.kernel(200 + shift, 300 + shift, GEMM, corr=3)
    builder.kernel(250 + shift, 400 + shift, NCCL, stream=20, corr=4)
    for at, corr in ((0, 1), (100, 2), (200, 3), (250, 4)):
        builder.call(max(0, at - 1), at, corr=corr)
    return builder.cuda_device(100, 0, 0).write(path)


def sample(path, times, values, gpu=0, scale=1, ids=None):
    """Write one sample of the metrics at each time: values by a part of their name."""
    ids = ids or NAMES
    type_id = (9 << 16) | gpu
    with sqlite3.connect(path) as con:
        con.execute(
            "CREATE TABLE IF NOT EXISTS TARGET_INFO_GPU_METRICS"
            " (typeId INTEGER, sourceId INTEGER, typeName TEXT, metricId INTEGER,"
            " metricName TEXT)"
        )
        con.execute(
            "CREATE TABLE IF NOT EXISTS GPU_METRICS"
            " (timestamp INTEGER, typeId INTEGER, metricId INTEGER, value INTEGER)"
        )
        con.executemany(
            "INSERT INTO TARGET_INFO_GPU_METRICS VALUES (?, 1, 'GPU', ?, ?)",
            [(type_id, number, name) for name, number in ids.items()],
        )
        con.executemany(
            "INSERT INTO GPU_METRICS VALUES (?, ?, ?, ?)",
            [
                (at, type_id, number, values(at, name) * scale)
                for at in times
                for name, number in ids.items()
            ],
        )
    con.close()
    return path


def values(at, name):
    return {"SM Issue": 40, "Tensor A": 60 if at < 200 else 20}.get(name[:8], at % 7)


def rows(path, recipe="metrics", **options):
    with nsys_sql.open(path, **{"anchor": NO_WINDOWS} | options) as model:
        result = model.result(recipe)
        assert all(check.status == "ok" for check in result.checks)
        names = [column.name for column in result.columns]
        return [dict(zip(names, row, strict=True)) for row in result.rows], result.notes


def by_operator(found, scope="kernel"):
    return {row["operator"]: row for row in found if row["scope"] == scope}


def test_samples_exclusivity_and_means(tmp_path):
    path = sample(trace(tmp_path / "a.sqlite"), range(10, 400, 20), values)
    found, notes = rows(path)
    kernels = by_operator(found)
    gemm = kernels[GEMM]
    # 10, 30 .. 90 alone; 210, 230 alone; 250, 270, 290 beside the collective
    assert (gemm["samples"], gemm["exclusivity_pct"], gemm["is_contaminated"]) == (10, 70, True)
    assert gemm["sm_issue_pct"] == 40
    assert gemm["tensor_active_pct"] == (5 * 60 + 5 * 20) / 10
    assert gemm["nvlink_tx_pct"] is None  # not sampled at all
    assert gemm["work_ms"] == pytest.approx(200 / 1e6) and gemm["count"] == 2
    assert kernels[NCCL]["samples"] == 8 and kernels[NCCL]["exclusivity_pct"] == 62.5
    classes = by_operator(found, "class")
    assert classes["gemm"]["samples"] == 10 and classes["nccl"]["role"] == "comm"
    assert any("20 samples, one every 0.0 us" in note for note in notes)


def test_unsampled_is_unknown_and_never_zero(tmp_path):
    path = sample(trace(tmp_path / "a.sqlite"), range(10, 400, 20), values)
    norm = by_operator(rows(path)[0])[NORM]
    assert norm["samples"] == 0
    measured = [value for name, value in norm.items() if name.endswith("_pct")]
    assert measured == [None] * 8 and norm["is_contaminated"] is None


def test_threshold_is_a_parameter(tmp_path):
    path = sample(trace(tmp_path / "a.sqlite"), range(10, 400, 20), values)
    with nsys_sql.open(path, anchor=NO_WINDOWS) as model:
        model.run("metrics", exclusive_pct=70)
        row = model.con.sql(f"SELECT is_contaminated FROM result_metrics WHERE operator = '{GEMM}'")
        assert row.fetchall() == [(False,)]


def test_ids_mean_nothing_and_units_count(tmp_path):
    """Other ids, other order: same result; requests and averages in warps are not read."""
    first, _ = rows(sample(trace(tmp_path / "a.sqlite"), range(10, 400, 20), values))
    other = {name: 100 - number for name, number in reversed(NAMES.items())}
    second, _ = rows(sample(trace(tmp_path / "b.sqlite"), range(10, 400, 20), values, ids=other))
    assert first == second
    only = {"NVLink RX Requests User Data [Throughput %]": 1, "SMs Active [Avg]": 2}
    third, notes = rows(sample(trace(tmp_path / "c.sqlite"), range(10, 400, 20), values, ids=only))
    assert {row["samples"] for row in third} == {0}
    assert any("no sample of a known metric" in note for note in notes)


def test_samples_belong_to_their_gpu(tmp_path):
    path = sample(trace(tmp_path / "a.sqlite"), range(10, 400, 20), values, gpu=1)
    assert {row["samples"] for row in rows(path)[0]} == {0}


def test_old_json_samples(tmp_path):
    path = trace(tmp_path / "a.sqlite")
    with sqlite3.connect(path) as con:
        con.execute(
            "CREATE TABLE GENERIC_EVENTS (rawTimestamp INTEGER, timestamp INTEGER,"
            " typeId INTEGER, data TEXT)"
        )
        texts = [
            (
                at,
                json.dumps(
                    {
                        "SM Issue": str(at),
                        "SM Active": "90",
                        "Tensor Active / FP16 Active": "5",
                        "GPC Clock Frequency": "x",
                    }
                ),
            )
            for at in (20, 40)
        ]
        texts += [(60, "no JSON about the SM"), (80, None), (90, '{"other": "SM"}')]
        con.executemany("INSERT INTO GENERIC_EVENTS VALUES (0, ?, 256, ?)", texts)
    con.close()
    gemm = by_operator(rows(path)[0])[GEMM]
    assert (gemm["samples"], gemm["sm_issue_pct"], gemm["sms_active_pct"]) == (2, 30, 90)
    assert gemm["tensor_active_pct"] == 5 and gemm["dram_read_pct"] is None


def test_a_separate_capture_gives_samples_and_this_one_work(tmp_path):
    metrics = sample(
        trace(tmp_path / "m.sqlite", shift=5000),
        range(5010, 5400, 20),
        lambda at, name: values(at - 5000, name),
    )
    path = trace(tmp_path / "t.sqlite")
    before = metrics.read_bytes()
    found, notes = rows(path, metrics_from=metrics)
    gemm = by_operator(found)[GEMM]
    assert (gemm["samples"], gemm["exclusivity_pct"], gemm["tensor_active_pct"]) == (10, 70, 40)
    assert gemm["samples_of"] == "other capture" and gemm["work_ms"] == pytest.approx(200 / 1e6)
    assert by_operator(found)[NORM]["samples"] == 0
    assert any("never to a single launch" in note for note in notes)
    assert metrics.read_bytes() == before


def test_without_metrics_the_recipe_says_what_to_do(tmp_path):
    path = trace(tmp_path / "a.sqlite")
    with (
        nsys_sql.open(path, anchor=NO_WINDOWS) as model,
        pytest.raises(nsys_sql.AnswerError) as refused,
    ):
        model.run("metrics")
    assert "--gpu-metrics-devices=all" in refused.value.hint
    assert "--metrics-from" in refused.value.hint
    with pytest.raises(nsys_sql.AnswerError):
        nsys_sql.open(path, metrics_from=path)


def test_samples_outside_steady_windows_take_no_part(tmp_path):
    builder = TraceBuilder()
    for step in range(3):
        at = step * 1000
        builder.nvtx(at, at + 900, f"step {step}").call(at, at + 1, corr=step + 1)
        builder.kernel(at + 10, at + 500, GEMM, corr=step + 1)
    path = builder.cuda_device(100, 0, 0).write(tmp_path / "a.sqlite")
    sample(path, range(0, 3000, 100), values)
    found, _ = rows(path, anchor="nvtx:step *", skip_first=1)
    gemm = by_operator(found)[GEMM]
    assert (gemm["count"], gemm["samples"], gemm["exclusivity_pct"]) == (2, 8, 100)


def test_the_script_of_the_joined_metrics_needs_no_other_file(tmp_path):
    import duckdb

    metrics = sample(trace(tmp_path / "m.sqlite"), range(10, 400, 20), values)
    path = trace(tmp_path / "t.sqlite")
    with nsys_sql.open(path, anchor=NO_WINDOWS, metrics_from=metrics) as model:
        script = model.script("metrics")
        expected = model.result("metrics").rows
    assert str(metrics) not in script
    metrics.unlink()
    assert duckdb.connect().execute(script).fetchall() == expected
