"""The same trace gives the same bytes: whatever the order of its rows, the threads, the place."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import nsys_sql
from conftest import long_test
from fuzz_file import columns, execute, q, tables
from nsys_sql import output
from tracebuilder import TraceBuilder

GEMM = "ampere_sgemm_128x64_tn"
FILL = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float> >(int)"
REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
TESTS = Path(__file__).parent
KEY = re.compile(r"\b[0-9a-f]{20,64}\b")  # of a partition: it tells two files apart


def ties() -> TraceBuilder:
    """Steps in which much happens at the same time, on streams, threads and devices alike."""
    trace = TraceBuilder()
    for pid in (200, 100):
        trace.cuda_device(pid, 0, pid // 100 - 1)
        for number in range(3):
            begin, corr = 10_000 * number, 100 * number
            trace.nvtx(begin, begin + 10_000, f"step {number}", pid=pid)
            for tid in (1, 2):
                for name, end in (("forward", 5000), ("layer", 4000), ("layer", 3000)):
                    trace.nvtx(begin + 10, begin + end, name, pid=pid, tid=tid)
            for stream in (13, 7, 21):
                for place, name in enumerate((FILL, GEMM, REDUCE)):
                    corr += 1
                    at = begin + 1000 * place
                    trace.call(at, at + 100, corr=corr, pid=pid, tid=1 + stream % 2)
                    trace.kernel(at + 300, at + 900, name, stream=stream, corr=corr, pid=pid)
                corr += 1
                trace.call(begin + 4000, begin + 4100, "cudaMemcpyAsync", corr=corr, pid=pid)
                trace.memcpy(begin + 4500, begin + 4700, kind=1, stream=stream, corr=corr, pid=pid)
            wait = "cudaStreamSynchronize_v3020"
            trace.call(begin + 6000, begin + 7000, wait, corr=corr + 1, pid=pid)
            trace.call(begin + 6000, begin + 7000, wait, corr=corr + 1, pid=pid, tid=2)
            for tid in (1, 2):
                trace.os_call(begin + 6000, begin + 7000, "poll", pid=pid, tid=tid)
            trace.call(begin + 7100, begin + 7200, corr=corr + 2, pid=pid)
            trace.kernel(begin + 7500, begin + 9000, GEMM, corr=corr + 2, pid=pid)
    return trace


def shuffle(path: Path, seed: int) -> None:
    """Put the rows of every table into another order, under other row ids, in a new file."""
    r = random.Random(seed)
    with closing(sqlite3.connect(path)) as con:
        for table in tables(con):
            if any(row[5] for row in con.execute(f"PRAGMA table_info({q(table)})")):
                continue
            rows = con.execute(f"SELECT * FROM {q(table)}").fetchall()
            r.shuffle(rows)
            con.execute(f"DELETE FROM {q(table)}")
            marks = ", ".join("?" * len(columns(con, table)))
            con.executemany(f"INSERT INTO {q(table)} VALUES ({marks})", rows)
        con.commit()
        con.execute("PRAGMA page_size = 1024")
        con.execute("VACUUM")


def answers(path: Path, threads: int) -> dict[str, str]:
    """Every recipe with its rows, checks and notes."""
    found = {}
    with nsys_sql.open(path, anchor="nvtx:step*", threads=threads) as model:
        for name in model.catalog.recipes:
            try:
                result = model.result(name)
                found[name] = repr((result.rows, result.checks, result.notes))
            except nsys_sql.NsysSqlError as error:
                found[name] = f"{error.exit_code} {error} {error.hint}"
    return found


@pytest.fixture
def tied(tmp_path):
    return ties().write(tmp_path / "t.sqlite")


def test_no_recipe_depends_on_the_order_of_rows_or_the_number_of_threads(tied):
    wanted = answers(tied, 1)
    assert sum(not text.startswith("4 ") for text in wanted.values()) > 20
    shuffle(tied, 1)
    found = answers(tied, 4)
    assert [name for name in wanted if found[name] != wanted[name]] == []


def lines(trace: str, other: str, folder: str) -> list[list[str]]:
    """Command lines of every kind of output."""
    anchor = ["--anchor", "nvtx:step*"]
    jobs = ["--jobs", "1", "--partitions", f"{folder}/parts"]
    found = [
        *(["run", "kernels", trace, *anchor, "--format", f] for f in ("table", "csv", "markdown")),
        ["run", "budget", trace, "--format", "json"],
        ["run", "budget", trace, other, "--format", "json"],
        ["inspect", trace, "--format", "json"],
        ["show", "budget", trace],
        ["sql", trace, "SELECT * FROM nsys.op ORDER BY ALL", "--format", "csv"],
        ["sql", trace, "SELECT TIMESTAMPTZ '2020-01-01 12:00:00+02' AS t, 'I' ILIKE 'i' AS i"],
        ["list"],
        ["describe", "budget"],
        ["timeline", trace, *anchor, "-o", f"{folder}/t.json"],
        ["timeline", trace, *anchor, "-o", f"{folder}/t.json.gz"],
        *(["report", trace, *anchor, "-o", f"{folder}/r{s}"] for s in (".html", ".md", ".json")),
        *(
            ["survey", trace, other, *anchor, *jobs, "-o", f"{folder}/s{s}"]
            for s in (".html", ".json")
        ),
        *(["compare", trace, other, *jobs, "-o", f"{folder}/c{s}"] for s in (".html", ".json")),
    ]
    return found if os.environ.get("NSYS_SQL_TEST_LONG") else found[::9]


def everything(trace: str, other: str, folder: str, threads: str) -> dict[str, str]:
    """What every command writes, as hexadecimal digits of its bytes."""
    found = {}
    for line in lines(trace, other, folder):
        more = [] if line[0] in ("list", "describe") else ["--threads", threads]
        code, out, err = execute([*line, *more])
        name = " ".join(line)
        found[name] = f"{code} {out.hex()} {err.encode().hex()}"
        if "-o" in line:
            found[name] += Path(line[line.index("-o") + 1]).read_bytes().hex()
    return found


def elsewhere(arguments: list[str], cwd: Path, **env: str) -> dict[str, str]:
    """`everything` in a process of its own, in another place."""
    own = {name: value for name, value in os.environ.items() if name not in ("LANG", "LC_ALL")}
    path = os.pathsep.join([str(TESTS), str(TESTS.parent)])
    done = subprocess.run(
        [sys.executable, __file__, *arguments],
        capture_output=True,
        cwd=cwd,
        env=own | {"PYTHONPATH": path, "COLUMNS": "100"} | env,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def masked(text: str) -> str:
    """An output without the keys of partitions, which tell two files apart."""
    code, *parts = text.split(" ")
    return " ".join([code, *(KEY.sub("KEY", bytes.fromhex(p).decode("latin-1")) for p in parts)])


def test_every_output_is_the_same_bytes_in_every_place(tied, tmp_path):
    here, there, folder = tmp_path / "here", tmp_path / "there", tmp_path / "out"
    for each in (here, there, folder):
        each.mkdir()
    other = shutil.copyfile(tied, tmp_path / "u.sqlite")
    arguments = [str(tied), str(other), str(folder)]
    wanted = elsewhere([*arguments, "1"], here, LC_ALL="C", TZ="UTC", PYTHONHASHSEED="0")
    assert all(text[0] == "0" for text in wanted.values())
    assert not any("\r" in masked(text) for name, text in wanted.items() if ".gz" not in name)
    place = {"LC_ALL": "tr_TR.UTF-8", "TZ": "Pacific/Chatham", "PYTHONHASHSEED": "7"}
    shuffle(tied, 2)
    shutil.rmtree(folder / "parts")
    found = elsewhere([*arguments, "4"], there, LANG="tr_TR.UTF-8", **place)
    differs = [name for name in wanted if masked(found[name]) != masked(wanted[name])]
    # op_id and the row ids of the file are the only thing that may differ, and only here
    assert [name for name in differs if "nsys.op" not in name] == []


@long_test
def test_a_pipe_gets_the_bytes_that_a_file_gets(tied, tmp_path):
    line = [sys.executable, "-m", "nsys_sql", "run", "budget", str(tied), "--format", "table"]
    env = os.environ | {"COLUMNS": "100", "PYTHONIOENCODING": "latin-1"}
    piped = subprocess.run(line, capture_output=True, check=True, env=env).stdout
    with (tmp_path / "file").open("wb") as file:
        subprocess.run(line, stdout=file, check=True, env=env)
    named = execute([*line[3:], "-o", str(tmp_path / "named")])
    assert named[0] == 0
    assert (tmp_path / "file").read_bytes() == piped
    assert piped.endswith(b"\n") and b"\r" not in piped


def test_lines_end_with_a_line_feed_whatever_the_platform_has(tied, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "linesep", "\r\n")
    target = tmp_path / "out.csv"
    assert execute(["run", "budget", str(tied), "-o", str(target)])[0] == 0
    assert b"\r" not in target.read_bytes()
    output.write_text("a\nb\n", target)
    assert target.read_bytes() == b"a\nb\n"


if __name__ == "__main__":
    json.dump(everything(*sys.argv[1:]), sys.stdout)
