"""Unprofiled steps: lists and trainer logs in exact nanoseconds, and the slowdown they show."""

import json

import pytest
from click.testing import CliRunner

import nsys_sql
from nsys_sql import reference
from tracebuilder import TraceBuilder

S, MS = 10**9, 10**6
GEMM = "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_TNT"


def durations(steps):
    return [step.duration_ns for step in steps]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("29.39s,29.41s", [29_390_000_000, 29_410_000_000]),
        ("812ms", [812_000_000]),
        (" 1.5 s , 250us, 7ns", [1_500_000_000, 250_000, 7]),
        ("0.1s,0.2s,0.3s", [100_000_000, 200_000_000, 300_000_000]),
        ("34.600000001s", [34_600_000_001]),  # a float would round this away
        ("0.5min,1e3ms", [30 * S, S]),
        ("812MS, 5 \u00b5s,1 second", [812 * MS, 5_000, S]),
    ],
)
def test_lists_are_exact(text, expected):
    assert durations(reference.read(text)) == expected


LOGS = {
    "megatron": (
        " [2025-04-13 23:41:12] iteration       10/    1000 | consumed samples: 160 | elapsed time "
        "per iteration (ms): 812.3 | learning rate: 1.0E-04 | global batch size:    16 |\n"
        "time (ms) | forward-compute: 53.79\n"
        " iteration       20/    1000 | elapsed time per iteration (ms): 1147.6 | lm loss: 7.3 |\n",
        [(10, 812_300_000), (20, 1_147_600_000)],
    ),
    "nemo": (
        "Training epoch 0, iteration 1/249 | lr: 3.9e-06 | global_step: 1 | reduced_train_loss: 1.1"
        " | train_step_timing in s: 2.505 | consumed_samples: 16\n"
        "Training epoch 0, iteration 2/249 | global_step: 2 | train_step_timing in s: 2.5\n",
        [(1, 2_505_000_000), (2, 2_500_000_000)],
    ),
    "progress bar": (
        "Epoch 0: : 50%|#| 50/100 [10:48<00:00, global_step=98.00, train_step_timing in s=3.130]\r"
        "Epoch 0: : 50%|#| 50/100 [10:48<00:00, global_step=98.00, train_step_timing in s=3.130]\r"
        "Epoch 0: : 51%|#| 51/100 [10:51<00:00, global_step=99.00, train_step_timing in s=3.140]\n",
        [(98, 3_130_000_000), (99, 3_140_000_000)],
    ),
    "json": (
        '{"step": 16, "data": {"global_step": 16.0, "train_step_timing in s": 92.25}}\n',
        [(16, 92_250_000_000)],
    ),
    "bridge": (
        "Step Time : 29.39s GPU utilization: 412.1MODEL_TFLOP/s/GPU\n"
        "Step Time : 29.41s GPU utilization: 411.9MODEL_TFLOP/s/GPU\n",
        [(0, 29_390_000_000), (1, 29_410_000_000)],
    ),
    "plain label": (
        "\x1b[32mstep 3 loss 2.1 step_time: 0.812\x1b[0m\nstep 4 loss 2.0 step_time: 0.9\n",
        [(3, 812_000_000), (4, 900_000_000)],
    ),
    "unit in the label": (
        "iteration_time_ms=812\niter time (s): 1.25\n",
        [(0, 812_000_000), (1, 1_250_000_000)],
    ),
    "lightning csv": (
        "epoch,step,train_loss,train_step_timing in s,val_loss\n"
        "0,9,7.1,29.39,\n0,9,,,7.3\n0,19,7.0,29.41,\n",
        [(9, 29_390_000_000), (19, 29_410_000_000)],
    ),
    "csv with a unit": ("iteration_time_ms,loss\n812,2\n813,2\n", [(0, 812 * MS), (1, 813 * MS)]),
    "lines": ("# unprofiled\n29.39s\n\n29.41 s\n", [(0, 29_390_000_000), (1, 29_410_000_000)]),
}


VALUES = {
    "812 milliseconds": 812_000_000,
    "812 msec loss: 2.1": 812_000_000,
    "812 (ms)": 812_000_000,
    "812 [ms], lr 1": 812_000_000,
    "812ms/step | loss 2": 812_000_000,
    "812 ms per iteration": 812_000_000,
    "0.8s/it, v_num=3": 800_000_000,
    "812 usec": 812_000,
    "1.5 minutes": 90 * S,
    "0.5 h": 1800 * S,
    "8.12e-01": 812_000_000,
    ".812": 812_000_000,
    "0.812.": 812_000_000,
    "0.8 (0.9) | loss 2": 800_000_000,
    "0.8 loss: 2.1": 800_000_000,
    "0.8 learning_rate=1e-4": 800_000_000,
    "0.8 samples/sec: 9.8": 800_000_000,
    "0.8 min: 0.4 max: 0.9": 800_000_000,
    "0.8 5 tokens": 800_000_000,
    "1,234.5 ms": 1_234_500_000,
    "1,234,567 us": 1_234_567_000,
    "\x1b[1m812\x1b[0m\x1b[K ms": 812_000_000,
    "0.2 data_step_time: 0.1": 200_000_000,
}


@pytest.mark.parametrize("value", VALUES)
def test_a_number_of_a_log_with_what_follows_it(tmp_path, value):
    path = tmp_path / "train.log"
    path.write_text(f"step 1 step time: {value}\n")
    assert [tuple(step) for step in reference.read(str(path))] == [(1, VALUES[value])]


@pytest.mark.parametrize(
    "line",
    [
        "step time: 812 ticks",
        "step time: 812ticks",
        "step time: 812 (ticks)",
        "step time: 812 loss 2.1",
        "step time: 1,234",
        "step time (ms): 1,234",
        "step time: 0,812 s",
        "step time: 1.234,5 ms",
        "step time: 1 234.5 ms",
        "step_time_ms=1'234.5",
        "step time: 1:02",
        "step time: 1m30s",
        "step time: 1 min 30 s",
        "step time: 0.8 min 0.4",
        "step_time_min: 0.4, step_time_max: 0.9",
        "step time: 3/1000",
        "step time: 0.8-0.9",
        "step time: 812 \u00b1 3 ms",
        "step time: 812 (815 ms)",
        "step time: 1.2it/s",
        "step time: 1.2 steps/sec",
        "step time: 812 ms/token",
        "step_time_ms: 0.8 s",
        "step time: -812 ms",
        'step_time: 812, "unit": "ms"',
        "decode step time: 0.2 train_step_time: 0.8 step time: 0.9",
    ],
)
def test_a_number_that_may_mean_two_things_is_an_error_with_its_line(tmp_path, line):
    path = tmp_path / "train.log"
    path.write_bytes(f"hello\rworld\r\n{line}\n".encode())
    with pytest.raises(nsys_sql.InputError, match=r"train\.log:2: "):
        reference.read(str(path))


def test_files_of_windows_and_of_spreadsheets(tmp_path):
    path = tmp_path / "list.txt"
    for encoding in ("utf-8-sig", "utf-16"):
        path.write_bytes("812ms\r\n815 MS\r\n".encode(encoding))
        assert durations(reference.read(str(path))) == [812 * MS, 815 * MS]
    path.write_text('step,eval/step_time,step_time_ms\n1,9,"1,234.5"\n2,9,812 msec\n3,,nan\n')
    assert [tuple(s) for s in reference.read(str(path))] == [(1, 1_234_500_000), (2, 812 * MS)]
    for cell, said in (("1,234.5", "3 values under 2 names"), ("812 ticks", "not known")):
        path.write_text(f"step,step_time_ms\n1,812\n2,{cell}\n")
        with pytest.raises(nsys_sql.InputError, match=rf"list\.txt:3: .*{said}"):
            reference.read(str(path))


def test_lines_of_any_length(tmp_path):
    path = tmp_path / "train.log"
    path.write_text(f"{'=' * 200_000}\nstep 3 {'a step_' * 30_000} step time: 0.8\n")
    assert [tuple(step) for step in reference.read(str(path))] == [(3, 800 * MS)]
    path.write_text(f"step,step_time\n1,0.8\n2,{'0' * 200_000}\n")
    with pytest.raises(nsys_sql.InputError, match=r"train\.log:3: field larger"):
        reference.read(str(path))


def test_the_time_of_a_part_is_no_step(tmp_path):
    path = tmp_path / "train.log"
    path.write_text(
        "step 5 eval step time: 9 s\nstep 1,005 forward step time: 0.2 step time: 0.8\n"
        "step 1,006 step time: 0.9\n"
    )
    found = [tuple(step) for step in reference.read(str(path))]
    assert found == [(1005, 800 * MS), (1006, 900 * MS)]
    path.write_text("val_step_time: 9 s\n")
    with pytest.raises(nsys_sql.InputError, match="no step time that is known"):
        reference.read(str(path))


@pytest.mark.parametrize("name", sorted(LOGS))
def test_files(tmp_path, name):
    text, expected = LOGS[name]
    path = tmp_path / "train.log"
    path.write_bytes(text.encode())
    assert [tuple(step) for step in reference.read(str(path))] == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("29.39", "neither a list of durations nor a file"),
        ("29.39s,fast", "neither a list of durations nor a file"),
        ("0s", "is '0s'"),
        ("999999999999s", "value 1 is"),
        ("-3s", "neither a list"),
    ],
)
def test_lists_that_say_nothing(text, message):
    with pytest.raises(nsys_sql.UsageError, match=message):
        reference.read(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no step time"),
        ("loss 2.3\nthroughput 400\n", "holds no step time"),
        ("Epoch 0: 80%|###| 40/50 [00:33<00:08,  1.21it/s, v_num=3]\n", "holds no step time"),
        ("step,step_time\n1,\n", "holds no step time"),
        ("step,step_time\n1,0\n", "a step of 0"),
        ("29.39s\nabout half a minute\n", "no duration with a unit"),
        ("elapsed time per iteration (ms): 0\n", "a step of 0 ms"),
    ],
)
def test_files_that_say_nothing(tmp_path, text, message):
    path = tmp_path / "train.log"
    path.write_text(text)
    with pytest.raises(nsys_sql.InputError, match=message):
        reference.read(str(path))


def trace(path, lengths):
    """Steps of the given lengths, each with one kernel, and an overhead table of 0.23 s."""
    builder, at = TraceBuilder(), 0
    for number, length in enumerate(lengths):
        builder.nvtx(at, at + length, f"step {number}").call(at, at + 10, corr=number + 1)
        builder.kernel(at + 20, at + length - 20, GEMM, corr=number + 1)
        at += length + 1000
    builder.duration(at + S)
    path = builder.cuda_device(100, 0, 0).write(path)
    import sqlite3

    with sqlite3.connect(path) as con:
        con.execute(
            "CREATE TABLE PROFILER_OVERHEAD (start INTEGER, end INTEGER, globalTid INTEGER,"
            " nameId INTEGER, returnValue INTEGER)"
        )
        con.execute("INSERT INTO PROFILER_OVERHEAD VALUES (0, 230000000, 0, 1, 0)")
    con.close()
    return path


def run(path, recipe, steps, **params):
    with nsys_sql.open(path, anchor="nvtx:step *", reference_steps=steps) as model:
        result = model.result(recipe, **params)
        names = [column.name for column in result.columns]
        return [dict(zip(names, row, strict=True)) for row in result.rows], result


def test_the_slowdown_is_measured_and_the_overhead_table_is_not_used(tmp_path):
    path = trace(tmp_path / "t.sqlite", [34_590_000_000, 34_600_000_000, 34_620_000_000])
    rows, result = run(path, "slowdown", "29.39s,29.35s,29.44s")
    (row,) = rows
    assert round(row["slowdown_pct"], 1) == 17.7
    assert (row["profiled_median_ms"], row["unprofiled_median_ms"]) == (34600, 29390)
    assert (row["profiled_n"], row["unprofiled_n"]) == (3, 3)
    assert row["slowdown_ms"] == 5210  # not 230
    assert row["natural_spread_ms"] == 90 and row["is_material"] is True
    note = next(note for note in result.notes if note.startswith("perturbed"))
    assert "17.7 % slower" in note and "n = 3" in note
    for recipe in ("budget", "opportunities"):
        assert note in run(path, recipe, "29.39s,29.35s,29.44s")[1].notes
    assert not any("perturbed" in note for note in run(path, "budget", None)[1].notes)


def test_material_means_beyond_the_natural_spread(tmp_path):
    path = trace(tmp_path / "t.sqlite", [1_000_000, 1_100_000, 1_200_000])
    within, result = run(path, "slowdown", "1.0ms,1.1ms")
    assert within[0]["is_material"] is False and not any("slower" in n for n in result.notes)
    (single,), result = run(path, "slowdown", "1ms")
    assert single["is_material"] is None and single["natural_spread_ms"] is None
    assert any("one step shows no natural spread" in note for note in result.notes)


def test_steps_of_warmup_do_not_hide_a_slowdown(tmp_path):
    path = trace(tmp_path / "t.sqlite", [1_180_000] * 3)
    log = tmp_path / "train.log"
    log.write_text(
        "".join(
            f"step {n} step_time: {value} ms\n"
            for n, value in enumerate((9.0, 1.0, 1.01, 1.0, 1.0, 1.02, 1.0))
        )
    )
    (row,), result = run(path, "slowdown", str(log))
    # the step of warmup is told and no natural spread
    assert row["unprofiled_outliers"] == 1 and row["natural_spread_ms"] == pytest.approx(0.02)
    assert row["is_material"] is True and row["unprofiled_max_ms"] == 9
    assert [check.status for check in result.checks] == ["warn"]
    (row,), result = run(path, "slowdown", str(log), reference_from=1)
    assert row["is_material"] is True and row["unprofiled_n"] == 6
    assert [check.status for check in result.checks] == ["ok"]


def test_the_log_of_a_whole_run_holds_warmup_profiled_steps_and_the_flush(tmp_path):
    path = trace(tmp_path / "t.sqlite", [34_590_000_000, 34_600_000_000, 34_620_000_000])
    log = tmp_path / "train.log"
    own = {1: 61_234.5, 20: 34_590.0, 21: 34_600.0, 22: 34_620.0, 23: 47_000.0}
    log.write_text(
        "".join(
            f" [2025-04-13 23:41:12] iteration {n:8d}/    1000 | consumed samples: {n * 16:12d} | "
            f"elapsed time per iteration (ms): {own.get(n, 29_390 + 10 * (n % 5 - 2)):.1f} | "
            "throughput per GPU (TFLOP/s/GPU): 400.2 | learning rate: 1.0E-04 |\n"
            for n in range(1, 60)
        )
    )
    (row,), result = run(path, "slowdown", str(log))
    assert (row["unprofiled_n"], row["unprofiled_outliers"]) == (59, 5)
    assert round(row["slowdown_pct"], 1) == 17.7
    assert row["natural_spread_ms"] == 40 and row["is_material"] is True
    assert any(note.startswith("perturbed") for note in result.notes)


def test_steps_of_two_kinds_are_natural(tmp_path):
    path = trace(tmp_path / "t.sqlite", [1_250_000] * 3)
    (row,), _ = run(path, "slowdown", ",".join(["1ms", "1.3ms"] * 4))
    assert row["unprofiled_outliers"] == 0 and row["natural_spread_ms"] == pytest.approx(0.3)
    assert row["is_material"] is False


def test_many_steps_under_the_profiler_pass_for_natural_and_it_is_told(tmp_path):
    path = trace(tmp_path / "t.sqlite", [1_180_000] * 3)
    (row,), result = run(path, "slowdown", ",".join(["1ms"] * 6 + ["1.08ms"] * 2 + ["1.2ms"] * 3))
    assert row["unprofiled_outliers"] == 0 and row["is_material"] is False
    assert any("choose with reference_from" in note for note in result.notes)


def test_the_command_line(tmp_path):
    from nsys_sql.cli import cli

    path = str(trace(tmp_path / "t.sqlite", [1_100_000] * 3))
    arguments = ["run", "slowdown", path, "--format", "json", "--reference-steps", "1ms,1.01ms"]
    found = json.loads(CliRunner().invoke(cli, arguments, standalone_mode=False).stdout)
    assert found["parameters"]["reference_steps"] == "1ms,1.01ms"
    assert found["rows"][0]["is_material"] is True
    with pytest.raises(nsys_sql.AnswerError) as refused:
        run(path, "slowdown", None)
    assert "--reference-steps" in refused.value.hint
