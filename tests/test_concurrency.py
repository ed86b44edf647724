"""Many processes on one trace, one cache, one set of partitions, one history, one output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from conftest import long_test
from fuzz_file import execute

TESTS = Path(__file__).parent
COUNT = 8 if os.environ.get("NSYS_SQL_TEST_LONG") else 4
CHILD = """
import json, sys, time
from pathlib import Path
from fuzz_file import execute
trace, folder, number = sys.argv[1:]
start = Path(folder, "start")
print("ready", flush=True)
while not start.exists():
    time.sleep(0.005)
found = []
for line in (
    ["run", "kernels", trace, "--cache", "--threads", "1", "-o", f"{folder}/out.json"],
    ["survey", trace, "--jobs", "1", "--partitions", f"{folder}/parts", "--format", "json"],
    ["history", f"{folder}/h.duckdb", "--add", trace, "--label", f"run={int(number) // 2}",
     "--jobs", "1", "--partitions", f"{folder}/parts", "--quiet"],
    ["build", trace, "-o", f"{folder}/built.duckdb", "--force", "--quiet", "--threads", "1"],
):
    code, out, err = execute(line)
    found.append([code, err, out.decode() if line[0] == "survey" else ""])
print(json.dumps(found))
"""


@long_test
def test_processes_at_the_same_time_all_answer_and_leave_whole_files(fixture_sqlite, tmp_path):
    trace = fixture_sqlite("two_processes")
    before = trace.read_bytes()
    single = tmp_path / "single.json"
    assert execute(["run", "kernels", str(trace), "-o", str(single)])[0] == 0
    folder, cache = tmp_path / "shared", tmp_path / "cache"
    folder.mkdir()
    (tmp_path / "tmp").mkdir()
    env = os.environ | {
        "NSYS_SQL_CACHE": str(cache),
        "TMPDIR": str(tmp_path / "tmp"),
        "PYTHONPATH": str(TESTS),
    }
    children = [
        subprocess.Popen(
            [sys.executable, "-c", CHILD, str(trace), str(folder), str(number)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
        )
        for number in range(COUNT)
    ]
    try:
        for child in children:
            assert child.stdout is not None and child.stdout.readline() == b"ready\n"
        (folder / "start").touch()
        seen = 0
        while any(child.poll() is None for child in children):
            if (folder / "out.json").exists():  # whenever it is there, it is whole
                assert (folder / "out.json").read_bytes() == single.read_bytes()
                seen += 1
            time.sleep(0.01)
        answers = []
        for child in children:
            out, err = child.communicate()
            assert child.returncode == 0, err.decode()
            answers.append(json.loads(out))
    finally:
        for child in children:
            child.kill()
            child.communicate()
    assert seen
    for answer in answers:
        assert [(code, err) for code, err, _ in answer] == [(0, "")] * 4
    surveys = {json.dumps(json.loads(answer[1][2])["rows"]) for answer in answers}
    assert len(surveys) == 1
    assert trace.read_bytes() == before

    # the same result under the same label is one run, whoever came first
    shown = execute(["history", str(folder / "h.duckdb"), "--format", "json"])
    rows = json.loads(shown[1])["rows"]
    assert {row["run"] for row in rows} == {*range(1, COUNT // 2 + 1)}
    assert {row["labels"] for row in rows} == {f"run={n}" for n in range(COUNT // 2)}
    assert len({(row["run"], row["member"]) for row in rows}) == len(rows)

    built = execute(["run", "kernels", str(folder / "built.duckdb"), "--format", "csv"])
    assert built[:2] == execute(["run", "kernels", str(trace), "--format", "csv"])[:2]

    assert [path.suffix for path in cache.iterdir()].count(".duckdb") == 1
    parts = [path.name for path in (folder / "parts").iterdir()]
    assert len(parts) == 1 and parts[0].startswith("part-")
    assert not [*cache.glob(".part*"), *folder.glob(".*"), *(tmp_path / "tmp").iterdir()]
    wanted = {"start", "out.json", "parts", "h.duckdb", "built.duckdb"}
    assert {path.name for path in folder.iterdir()} == wanted
