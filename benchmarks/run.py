"""Time the main job against a bare scan: python benchmarks/run.py [--kernels 300000 3000000]

Makes its own traces with make_trace.py, then runs in turn, each in a new process:

- the reference: SQLite's own sum of `end - start` over the kernel and the API table;
- `nsys-sql run budget` with its whole attribution;
- `nsys-sql run kernels`.

Prints wall and CPU seconds (medians), the ratio of each to the reference of the same size and run,
the peak memory, and the exponent with which wall time grows from one size to the next. The machine
decides the seconds; the ratios are what to compare.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tabulate import tabulate

HERE = Path(__file__).parent
REFERENCE = """
import sqlite3, sys
con = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
for table in ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"):
    print(con.execute(f'SELECT count(*), sum("end" - start) FROM {table}').fetchone())
"""


@dataclass(frozen=True, slots=True)
class Figure:
    """Medians over the runs of one command: seconds of wall and CPU, and MB at the peak."""

    wall: float
    cpu: float
    peak: float


def measure(command: Sequence[str], runs: int) -> Figure:
    """Run a command `runs` times after one warm-up; its output is thrown away."""
    walls, cpus, peaks = [], [], []
    for number in range(runs + 1):
        begin = time.perf_counter()
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - begin
        assert child.stderr is not None
        errors = child.stderr.read().decode()
        if os.waitstatus_to_exitcode(status) != 0:
            raise SystemExit(f"{' '.join(command)} failed:\n{errors}")
        if number:
            walls.append(wall)
            cpus.append(usage.ru_utime + usage.ru_stime)
            peaks.append(usage.ru_maxrss / 1024)
    return Figure(statistics.median(walls), statistics.median(cpus), max(peaks))


def main() -> None:
    """Make the traces, run everything, print the table."""
    raw = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--kernels", type=int, nargs="+", default=[300_000, 3_000_000])
    parser.add_argument("--runs", type=int, default=3, help="counted runs of each command")
    parser.add_argument("--folder", type=Path, help="keep the traces here and use them again")
    parser.add_argument("--memory-limit", help="passed on to nsys-sql")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        rows: list[list[object]] = []
        before: dict[str, tuple[int, float]] = {}
        for kernels in sorted(arguments.kernels):
            trace = folder / f"{kernels}.sqlite"
            if not trace.exists():
                make = [sys.executable, str(HERE / "make_trace.py"), str(trace)]
                subprocess.run([*make, "--kernels", str(kernels)], check=True, stdout=sys.stderr)
            limit = ["--memory-limit", arguments.memory_limit] if arguments.memory_limit else []
            program = [sys.executable, "-m", "nsys_sql", "run"]
            commands = {
                "sqlite3 scan": [sys.executable, "-c", REFERENCE, str(trace)],
                "budget": [*program, "budget", str(trace), *limit],
                "kernels": [*program, "kernels", str(trace), *limit],
            }
            figures = {name: measure(each, arguments.runs) for name, each in commands.items()}
            reference = figures["sqlite3 scan"]
            for name, figure in figures.items():
                exponent: object = None
                if name in before:
                    smaller, wall = before[name]
                    exponent = math.log(figure.wall / wall) / math.log(kernels / smaller)
                before[name] = (kernels, figure.wall)
                rows.append(
                    [
                        kernels,
                        name,
                        figure.wall,
                        figure.wall / reference.wall,
                        figure.cpu,
                        figure.cpu / reference.cpu,
                        figure.peak,
                        exponent,
                    ]
                )
        headers = ["kernels", "command", "wall s", "ratio", "CPU s", "CPU ratio", "peak MB"]
        headers.append("exponent")
        print(
            tabulate(
                rows,
                headers,
                floatfmt=("d", "", ".2f", ".1f", ".2f", ".1f", ".0f", ".2f"),
                missingval="-",
            )
        )


if __name__ == "__main__":
    main()
