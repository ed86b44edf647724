"""Recipe capture: what is missing, what is odd, and nothing that names a person or a machine."""

import sqlite3

import pytest

import nsys_sql
from tracebuilder import INVALID, TraceBuilder, global_tid

GEMM = "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_TNT"
NO_WINDOWS = "nvtx:none"


def facts(path, **options):
    with nsys_sql.open(path, **{"anchor": NO_WINDOWS} | options) as model:
        result = model.result("capture")
        assert all(check.status == "ok" for check in result.checks)
        found = {}
        for section, item, value, status, detail, remedy in result.rows:
            assert (section, item) not in found
            found[section, item] = (value, status, detail or "", remedy or "")
        return found


def simple(version="2026.2.1"):
    builder = TraceBuilder(version)
    for corr in (1, 2, 3, 4):
        builder.call(corr * 100, corr * 100 + 10, corr=corr)
        builder.kernel(corr * 100 + 20, corr * 100 + 60, GEMM, corr=corr)
    return builder


def sql(path, *statements):
    with sqlite3.connect(path) as con:
        for statement, rows in statements:
            con.executemany(statement, rows) if rows else con.execute(statement)
    con.close()
    return path


def diagnostics(path, *messages):
    return sql(
        path,
        (
            "CREATE TABLE DIAGNOSTIC_EVENT (timestamp INTEGER, timestampType INTEGER,"
            " source INTEGER, severity INTEGER, text TEXT, globalPid INTEGER)",
            None,
        ),
        ("INSERT INTO DIAGNOSTIC_EVENT VALUES (0, 0, 1, ?, ?, 0)", messages),
    )


def test_versions_and_missing_tables_with_the_flag_that_brings_them(tmp_path):
    found = facts(simple().write(tmp_path / "a.sqlite"))
    assert found["export", "exporter version"][:2] == ("2026.2.1.0", "ok")
    assert found["export", "schema version"][0] == "3.25.0"
    assert found["tables", "kernel"][:2] == ("4 rows", "ok")
    for table, flag in (
        ("nvtx", "--trace=nvtx"),
        ("osrt_call", "--trace=osrt"),
        ("cuda_event", "--cuda-event-trace=true"),
    ):
        value, status, cost, remedy = found["tables", table]
        assert (value, status) == (None, "missing") and cost and flag in remedy
    assert found["metrics", "GPU metrics"][:2] == (None, "missing")
    assert "--cuda-event-trace=true" in found["next capture", "timing"][0]
    assert "--gpu-metrics-devices=all" in found["next capture", "metrics"][0]
    assert found["dependencies", "waits unresolved"][0] is None  # unknown, not zero


def test_invalid_rows_skew_and_correlation(tmp_path):
    builder = simple()
    builder.kernel(900, 800, GEMM, corr=8).kernel(None, 800, GEMM, corr=9)
    builder.kernel(500, 560, GEMM, corr=5).call(750, 760, corr=5)
    builder.kernel(600, 660, GEMM, corr=6)
    builder.call(700, 690, corr=7)
    found = facts(builder.write(tmp_path / "a.sqlite"))
    assert found["invalid rows", "kernel"][:2] == ("2", "warn")
    assert found["invalid rows", "api_call"][:2] == ("1", "warn")
    assert found["launches", "kernels with their CUDA call, process 100"][:2] == ("83.3 %", "warn")
    skew = found["launches", "kernels that start before their call, process 100"]
    assert skew[:2] == ("1", "warn") and "0.000 ms" in skew[2]


def test_correlation_is_not_the_call_stack(tmp_path):
    builder = simple()
    found = facts(builder.write(tmp_path / "a.sqlite"))
    assert found["launches", "kernels with their CUDA call, process 100"][:2] == ("100.0 %", "ok")
    stack = found["launches", "kernels with a source call stack, process 100"]
    assert stack[:2] == ("0.0 %", "missing") and "--callsites" in stack[3]
    # a backtrace copy of one call (event class 67) holds its chain
    builder.raw(
        "CUPTI_ACTIVITY_KIND_RUNTIME",
        start=100,
        end=110,
        eventClass=67,
        globalTid=global_tid(100, 1),
        correlationId=1,
        nameId=1,
        returnValue=0,
        callchainId=5,
    )
    stack = facts(builder.write(tmp_path / "b.sqlite"))[
        "launches", "kernels with a source call stack, process 100"
    ]
    assert stack[:2] == ("25.0 %", "warn")


def test_graphs_that_left_no_row_are_blind(tmp_path):
    builder = simple("2022.4.2")
    for corr in (10, 11):
        builder.call(corr * 100, corr * 100 + 5, "cudaGraphLaunch_v10000", corr=corr)
    found = facts(builder.write(tmp_path / "a.sqlite"))
    assert found["graphs", "graph launches"][0] == "2"
    blind_key = ("graphs", "launches without any device row")
    blind = found[blind_key]
    assert blind[:2] == ("2", "warn") and "--cuda-graph-trace=node" in blind[3]
    assert "--cuda-graph-trace=node" in found["next capture", "timing"][0]
    builder = simple("2024.6.2").capture_meta("PROCESS_0:CUDA_GRAPH_TRACE_OPTIONS:MODE", "Node")
    builder.call(1000, 1005, "cudaGraphLaunch_v10000", corr=10)
    found = facts(builder.write(tmp_path / "c.sqlite"))
    # what was asked for need not be asked for again
    mode, blind = (found[key] for key in (("mode", "CUDA graph tracing"), blind_key))
    assert mode[:2] == ("node", "warn") and not mode[3]
    assert "nodes were to be traced" in blind[2] and "node" not in blind[3].split()
    builder = simple()
    builder.call(1000, 1005, "cudaGraphLaunch_v10000", corr=10).graph_exec(1010, 1100, corr=10)
    builder.call(1100, 1105, "cudaGraphLaunch_v10000", corr=11)
    builder.kernel(1110, 1120, GEMM, corr=11, node=1 << 32).kernel(
        1120, 1130, GEMM, corr=11, node=(1 << 32) | 1
    )
    found = facts(builder.write(tmp_path / "b.sqlite"))
    assert found["graphs", "launches without any device row"][:2] == ("0", "ok")
    assert found["graphs", "operations of traced nodes"][0] == "2"
    assert found["graphs", "executions traced as a whole"][:2] == ("1", "warn")


def test_devices_by_mapping_or_by_ordinal_only(tmp_path):
    builder = simple().kernel(10, 20, GEMM, pid=200, corr=1)
    by_ordinal = facts(builder.write(tmp_path / "a.sqlite"))
    assert by_ordinal["devices", "process 200, CUDA ordinal 0"][:2] == ("device 0", "warn")
    builder.cuda_device(100, 0, 0).cuda_device(200, 0, 5)
    mapped = facts(builder.write(tmp_path / "b.sqlite"))
    assert mapped["devices", "process 200, CUDA ordinal 0"][:2] == ("device 5", "ok")


@pytest.mark.parametrize("sync_id", [7, None])
def test_event_waits(tmp_path, sync_id):
    builder = simple()
    builder.record(stream=7, event=1, corr=21, sync_id=sync_id)
    builder.wait(stream=8, event=1, corr=22, sync_id=sync_id)
    builder.wait(stream=8, event=2, corr=23, sync_id=sync_id and 9)
    builder.wait(stream=INVALID, event=INVALID, corr=24)  # a device synchronisation
    found = facts(builder.write(tmp_path / "a.sqlite"))
    values = [
        found["dependencies", item][0]
        for item in (
            "event waits",
            "waits resolved by eventSyncId",
            "waits paired by inference",
            "waits unresolved",
        )
    ]
    assert values == (["2", "1", "0", "1"] if sync_id else ["2", "0", "1", "1"])
    assert found["dependencies", "waits unresolved"][1] == "warn"
    assert "50.0 %" in found["dependencies", "waits unresolved"][2]
    assert found["dependencies", "waits unresolved"][3].startswith("a capture range that begins")
    assert ("dependencies", UNSEEN) not in found  # no call that makes a stream wait


UNSEEN = "calls that make a stream wait without a wait, device 0"


def test_records_that_were_not_captured_come_with_the_option_for_them(tmp_path):
    """A table of records without a row is as little as no table where there are waits."""
    # recorded by another process, or not: the table is there
    for is_empty, has_waits in ((True, True), (True, False), (False, True)):
        builder = simple().record(stream=7, event=1, corr=21, sync_id=7)
        if has_waits:
            builder.wait(stream=8, event=2, corr=22, sync_id=9)
        path = builder.write(tmp_path / f"{is_empty}{has_waits}.sqlite")
        if is_empty:
            sql(path, ("DELETE FROM CUPTI_ACTIVITY_KIND_CUDA_EVENT", None))
        found = facts(path)
        command = found["next capture", "timing"][0]
        assert ("--cuda-event-trace=true" in command) == (is_empty and has_waits)
        remedy = found["dependencies", "waits unresolved"][3]
        if has_waits:
            told = "nsys profile --cuda-event-trace=true"
            assert remedy == (
                told if is_empty else "a capture range that begins before the records do"
            )
        else:
            assert remedy == ""


def test_calls_that_made_a_stream_wait_and_left_no_wait(tmp_path):
    """The API table knows of waits that the synchronisation table lacks."""
    builder = simple().record(stream=7, event=1, corr=21, sync_id=7)
    for corr, name in ((22, "cudaStreamWaitEvent_v3020"), (23, "cuStreamWaitEvent_ptsz")):
        builder.call(450 + corr, 451 + corr, name, corr=corr)
    builder.wait(stream=8, event=1, corr=22, sync_id=7)
    found = facts(builder.write(tmp_path / "a.sqlite"))["dependencies", UNSEEN]
    assert found[:2] == ("1", "warn") and found[2].startswith("50.0 % of 2 calls")
    builder.wait(stream=8, event=1, corr=23, sync_id=7)
    found = facts(builder.write(tmp_path / "b.sqlite"))["dependencies", UNSEEN]
    assert found == ("0", "ok", "", "")


def test_windows_profiler_calls_and_open_ranges(tmp_path):
    builder = simple().duration(10_000).call(0, 5, "cuProfilerStart", corr=90)
    builder.nvtx(150, 250, "step 0").nvtx(250, 350, "step 1").nvtx(400, 10_000, "open")
    path = builder.write(tmp_path / "a.sqlite")
    found = facts(path, anchor="nvtx:step *")
    assert found["iterations", "steady windows, device 0"][0] == "2"
    assert found["iterations", "kernels outside steady windows, device 0"][:2] == ("2", "warn")
    assert found["iterations", "profiler start calls"][0] == "1"
    assert found["iterations", "profiler stop calls"][0] == "0"
    assert found["iterations", "open NVTX ranges"][:2] == ("1", "warn")
    # of equal ones one counts, and is a window; ranges of other names, starts or threads are others
    for thread, start, name in ((1, 400, "open"), (2, 400, "open"), (1, 400, "o"), (1, 5, "open")):
        builder.nvtx(start, 10_000, name, tid=thread)
    builder.nvtx(360, 10_000, "step 2").nvtx(360, 10_000, "step 2")
    found = facts(builder.write(path), anchor="nvtx:step *")
    assert found["iterations", "open NVTX ranges"][:2] == ("5", "warn")
    assert found["iterations", "steady windows, device 0"][2].endswith("; dropped: 1 unclosed")
    without = facts(path)
    assert without["iterations", "steady windows, device 0"][:2] == ("0", "warn")


def test_a_moved_or_partial_export_is_told(tmp_path):
    builder = simple().meta("EXPORT_PARAM_TIME_SHIFT", "500")
    builder.meta("EXPORT_PARAM_TABLES_TO_EXPORT", "NVTX_EVENTS")
    found = facts(builder.write(tmp_path / "a.sqlite"))
    assert found["clock", "time shift or normalisation"][:2] == ("true", "warn")
    assert found["export", "partial export"][:2] == ("true", "warn")
    assert facts(simple("2020.3").write(tmp_path / "b.sqlite"))[
        "clock", "time shift or normalisation"
    ][:2] == (None, "missing")


def test_the_overhead_table_is_not_called_the_slowdown(tmp_path):
    path = sql(
        simple().write(tmp_path / "a.sqlite"),
        (
            "CREATE TABLE PROFILER_OVERHEAD (start INTEGER, end INTEGER, globalTid INTEGER,"
            " nameId INTEGER)",
            None,
        ),
        ("INSERT INTO PROFILER_OVERHEAD VALUES (?, ?, 0, 1)", [(0, 200_000_000), (9, 30_000_009)]),
    )
    value, status, detail, remedy = facts(path)["overhead", "recorded activity of the profiler"]
    assert (value, status) == ("230.000 ms", "ok")
    assert "not the slowdown" in detail and "--reference-steps" in remedy


SECRET = "alice@gpu-node-17.corp /home/alice/run.sh --token=s3cr3t C:\\Users\\alice"


def test_messages_are_told_by_topic_and_never_by_text(tmp_path):
    path = diagnostics(
        simple().write(tmp_path / "a.sqlite"),
        (2, f"Not all CUDA events might have been collected. {SECRET}"),
        (2, f"GPU Metrics: Insufficient permission for {SECRET}"),
        (3, f"{SECRET}"),
        (1, f"Process was launched by the profiler, see {SECRET}"),
        (
            1,
            "CUDA hardware tracing is not supported on this system. A legacy (software"
            " instrumented) trace was collected instead.",
        ),
    )
    found = facts(path)
    assert found["diagnostics", "errors"][:2] == ("1", "warn")
    assert found["diagnostics", "warnings"][:2] == ("2", "warn")
    assert found["diagnostics", "information"][:2] == ("2", "ok")
    lost = found["diagnostics", "not all CUDA events might have been collected (warning)"]
    assert lost[:2] == ("1", "warn") and "too low" in lost[2]
    assert found["mode", "CUDA instrumentation"][:2] == ("software", "ok")
    refused = found["metrics", "GPU metrics"]
    assert refused[:2] == (None, "missing") and "no failure of the workload" in refused[2]
    for key, fact in found.items():
        for text in (*key, *fact):
            assert not any(word in (text or "") for word in ("alice", "s3cr3t", "corp", "/home"))


def test_nothing_of_the_environment_is_read(tmp_path):
    builder = simple().capture_meta("CUDA_GRAPH_TRACE_OPTIONS:MODE", "Node")
    builder.capture_meta("COMMAND_LINE", SECRET).capture_meta("ENVIRONMENT", SECRET)
    builder.meta("EXPORT_PARAM_INPUT_FILE", SECRET).meta("EXPORT_USER", SECRET)
    found = facts(builder.write(tmp_path / "a.sqlite"))
    assert found["mode", "CUDA graph tracing"][:2] == ("node", "ok")
    assert "alice" not in str(found)


def test_traces_without_kernels_or_windows_answer_too(tmp_path, fixture_sqlite):
    found = facts(fixture_sqlite("no_kernels"), anchor="auto")
    assert found["tables", "kernel"][:2] == (None, "missing")
    assert ("graphs", "graph launches") in found
