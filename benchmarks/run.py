"""Time nsys-sql beside its peers: python benchmarks/run.py [--kernels 300000 3000000 10000000]

Makes its own traces with make_trace.py and runs, each in a new process:

- the reference: SQLite's own sum of `end - start` over the kernel and the API table;
- `nsys-sql run budget` from SQLite, from a folder of Parquet files and from a built database, a
  second time in one session, and within --memory-limit; `build`, `kernels` and `report`;
- every other recipe that needs nothing but a trace (--recipes none leaves them out);
- what else can do a part of this: the `sqlite3` program and `nsys stats` where they are on PATH,
  and with --with-peers nsys-ai and unions by numpy, pandas and polars, installed for this run only.

Commands take turns, so that a noisy neighbour hits all alike; the table has the least and the
median of the wall seconds. A ratio is to the reference of the same size, least by least. The peak
is the process's VmHWM, as read until a hundredth of a second before its end. The exponent is that
of the least wall time from the size before. The machine decides the seconds: compare the ratios.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import platform
import re
import resource
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tabulate import tabulate

HERE = Path(__file__).parent
ROOT = HERE.parent
PROGRAM = [sys.executable, "-m", "nsys_sql"]
REFERENCE = "sqlite3 scan (reference)"
PEERS = ("nsys-ai", "numpy", "pandas", "polars")
SKILLS = ("top_kernels", "gpu_idle_gaps", "overlap_breakdown")
# They answer from something else beside the trace, which these traces do not have.
NEEDS_MORE = ("call-sites", "metrics", "slowdown")
SCAN = "; ".join(
    f'SELECT count(*), sum("end" - start) FROM CUPTI_ACTIVITY_KIND_{name}'
    for name in ("KERNEL", "RUNTIME")
)
HEADERS = ("kernels", "command", "n", "min s", "median s", "ratio", "CPU s", "peak MB", "exponent")


@dataclass(slots=True)
class Job:
    """A command and what was measured of it: seconds of wall and CPU, MB at the peak.

    `prints_seconds`: its output begins with the seconds that count. `fresh` is removed before each
    run. `needs` is a file or folder and the command that makes it, which is not measured. `once`: a
    repeat would say nothing new. `failure` is the first line of what went wrong.
    """

    name: str
    command: Sequence[str]
    prints_seconds: bool = False
    fresh: Sequence[Path] = ()
    needs: tuple[Path, Sequence[str]] | None = None
    once: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    walls: list[float] = field(default_factory=list)
    cpus: list[float] = field(default_factory=list)
    peak: float = 0.0
    failure: str = ""

    def run(self, timeout: float) -> None:
        """Run it once more, unless it failed before.

        As on most machines Python may keep what it compiled: else every run of this package, which
        pip installs as it stands for development, compiles itself, and an installed peer does not.
        """
        if self.failure or (self.once and self.walls):
            return
        for path in self.fresh:
            remove(path)
        if self.needs and not self.needs[0].exists():
            say(f"making {self.needs[0].name}")
            subprocess.run(self.needs[1], check=True, stdout=subprocess.DEVNULL)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            env = os.environ | self.env
            env.pop("PYTHONDONTWRITEBYTECODE", None)
            begin = time.perf_counter()
            try:
                child = subprocess.Popen(self.command, stdout=out, stderr=err, env=env)
            except OSError as error:
                self.failure = str(error)
                return
            usage, peak = wait(child, timeout)
            wall = time.perf_counter() - begin
            if usage is None:
                self.failure = f"not done after {timeout:g} s"
            elif child.returncode != 0:
                err.seek(0)
                lines = err.read().decode(errors="replace").strip().splitlines()
                self.failure = next(
                    (line for line in lines if "rror" in line), f"exit code {child.returncode}"
                )
            else:
                if self.prints_seconds:
                    out.seek(0)
                    wall = float(out.read().split()[0])
                self.walls.append(wall)
                self.cpus.append(usage.ru_utime + usage.ru_stime)
                self.peak = max(self.peak, peak / 1024)


def wait(
    child: subprocess.Popen[bytes], timeout: float
) -> tuple[resource.struct_rusage | None, int]:
    """Wait for a child; what it used, None where it was ended for being late, and its peak in KiB.

    The peak is read while it runs: what the system adds up at the end also counts the parent from
    which the child was split off.
    """
    deadline = time.monotonic() + timeout
    status, pause, peak = Path(f"/proc/{child.pid}/status"), 0.001, 0
    while True:
        with contextlib.suppress(OSError, IndexError):
            peak = max(peak, int(status.read_text().split("VmHWM:")[1].split()[0]))
        pid, code, usage = os.wait4(child.pid, os.WNOHANG)
        if pid:
            child.returncode = os.waitstatus_to_exitcode(code)
            return usage, peak or usage.ru_maxrss
        if time.monotonic() > deadline:
            child.kill()
            child.wait()
            return None, peak
        time.sleep(pause)
        pause = min(pause * 1.1, 0.01)


def remove(path: Path) -> None:
    """A file or a folder, if it is there."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def say(text: str) -> None:
    """Progress, on standard error."""
    print(text, file=sys.stderr, flush=True)


# ---------------------------------------------------------------- peers


@dataclass(frozen=True, slots=True)
class Peers:
    """Other programs that were installed for this run: their Python, their home, their versions."""

    python: str
    home: Path
    versions: Mapping[str, str]


def install(folder: Path) -> Peers | None:
    """The peers in an environment of their own; None, with a line that says why, where that fails.

    nsys-ai reads SQLite through DuckDB's extension, which it would download: the copy that nsys-sql
    installs from its package is put where that DuckDB looks, with the same version of DuckDB.
    """
    import duckdb

    place, home = folder / "peers", folder / "home"
    python = str(place / "bin" / "python")
    wanted = [*PEERS, f"duckdb=={duckdb.__version__}"]
    wanted.append(f"duckdb-extension-sqlite-scanner=={duckdb.__version__}")
    if not Path(python).exists():
        say(f"installing {', '.join(PEERS)}")
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        for command in ([sys.executable, "-m", "venv", str(place)], [*pip, *wanted]):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                lines = (done.stderr or done.stdout).strip().splitlines() or ["no reason given"]
                say(f"missing: peers could not be installed: {lines[-1]}")
                remove(place)
                return None
    own = duckdb.execute("PRAGMA platform").fetchall()[0][0]
    target = home / ".duckdb" / "extensions" / f"v{duckdb.__version__}" / own
    target.mkdir(parents=True, exist_ok=True)
    for found in place.rglob("sqlite_scanner.duckdb_extension"):
        shutil.copy(found, target)
    code = (
        "import importlib.metadata as m, sys\nprint(*(f'{n}={m.version(n)}' for n in sys.argv[1:]))"
    )
    told = subprocess.run([python, "-c", code, *PEERS], capture_output=True, text=True, check=True)
    return Peers(python, home, dict(each.split("=", 1) for each in told.stdout.split()))


def kernel_summary(nsys: str) -> str:
    """The name that this version of nsys has for its summary of kernels: it changed in 2023."""
    told = subprocess.run([nsys, "--version"], capture_output=True, text=True, check=True).stdout
    year = re.search(r"\b(20\d\d)\.", told)
    return "gpukernsum" if year and int(year[1]) < 2023 else "cuda_gpu_kern_sum"


def peer_jobs(trace: Path, folder: Path, peers: Peers | None) -> Iterator[Job]:
    """What others do; a line says what is missing."""
    child = str(HERE / "child.py")
    program, nsys = shutil.which("sqlite3"), shutil.which("nsys")
    if program:
        # immutable would skip locks that Python's driver takes too
        yield Job("sqlite3 program, scan", [program, "-readonly", str(trace), SCAN])
    else:
        say("missing: the sqlite3 program is not on PATH")
    if nsys:
        report = kernel_summary(nsys)
        stats = [nsys, "stats", "--report", report, "--format", "csv", str(trace)]
        yield Job(f"nsys stats {report}", stats)
    else:
        say("missing: nsys is not on PATH, so `nsys stats` is not compared")
    yield Job("union: SQL macro", [sys.executable, child, "union", "sql", str(trace)], True)
    if peers is None:
        return
    for way in ("numpy", "pandas", "polars"):
        yield Job(f"union: {way}", [peers.python, child, "union", way, str(trace)], True)
    # it keeps what it read beside the trace: every run starts without that
    own = folder / "nsys-ai"
    own.mkdir(exist_ok=True)
    link = own / trace.name
    if not link.exists():
        try:
            os.link(trace, link)
        except OSError:
            shutil.copy(trace, link)
    program = str(Path(peers.python).parent / "nsys-ai")
    kept = [own / f"{trace.stem}{end}" for end in (".nsys-cache", ".nsys-cache.build.lock")]
    for skill in SKILLS:
        command = [program, "skill", "run", skill, str(link)]
        yield Job(f"nsys-ai {skill}", command, fresh=kept, env={"HOME": str(peers.home)})


# ---------------------------------------------------------------- what is measured


def own_jobs(trace: Path, folder: Path, limit: str | None, recipes: str) -> Iterator[Job]:
    """What nsys-sql does with one trace, and with its other forms."""
    child = [sys.executable, str(HERE / "child.py")]
    parquet, built = trace.with_suffix(".parquetdir"), trace.with_suffix(".duckdb")
    run = [*PROGRAM, "run"]
    quiet = ["--quiet", "--format", "csv"]
    yield Job("budget", [*run, "budget", str(trace), *quiet])
    if limit:
        name = f"budget, --memory-limit {limit}"
        yield Job(name, [*run, "budget", str(trace), *quiet, "--memory-limit", limit])
    copy = (parquet, [*child, "parquet", str(trace), str(parquet)])
    yield Job("budget from Parquet", [*run, "budget", str(parquet), *quiet], needs=copy)
    build = [*PROGRAM, "build", str(trace), "-o", str(built), "--quiet"]
    made = (built, build)
    yield Job("build", build, fresh=[built], once=True)
    yield Job("budget from .duckdb", [*run, "budget", str(built), *quiet], needs=made)
    yield Job("budget again, .duckdb open", [*child, "warm", str(built)], True, needs=made)
    yield Job("kernels", [*run, "kernels", str(trace), *quiet])
    yield Job("kernels from .duckdb", [*run, "kernels", str(built), *quiet], needs=made)
    page = folder / "report.html"
    yield Job("report", [*PROGRAM, "report", str(trace), "-o", str(page), "--quiet"], fresh=[page])
    if recipes == "none":
        return
    for file in sorted((ROOT / "sql" / "recipes").glob("*.sql")):
        recipe = file.stem.replace("_", "-")
        if recipe not in ("budget", "kernels", *NEEDS_MORE):
            yield Job(recipe, [*run, recipe, str(trace), *quiet], once=True)


def measure(jobs: Sequence[Job], runs: int, timeout: float) -> None:
    """Every job in turn, again and again. The first that comes to a trace reads it into memory."""
    for number in range(runs):
        for job in jobs:
            before = len(job.walls)
            job.run(timeout)
            if job.failure and number == 0:
                say(f"failed: {job.name}: {job.failure}")
            elif len(job.walls) > before:
                say(f"  {job.name}: {job.walls[-1]:.2f} s")


def rows(
    kernels: int, jobs: Sequence[Job], before: Mapping[str, tuple[int, float]]
) -> Iterator[list[object]]:
    """The lines of the table of one size."""
    reference = next(job for job in jobs if job.name == REFERENCE)
    for job in jobs:
        if job.failure:
            yield [kernels, f"{job.name}: {job.failure[:90]}", 0, *[None] * 6]
            continue
        least = min(job.walls)
        exponent = None
        if job.name in before and least > 0:
            smaller, wall = before[job.name]
            exponent = math.log(least / wall) / math.log(kernels / smaller)
        ratio = least / min(reference.walls) if reference.walls else None
        yield [
            kernels,
            job.name,
            len(job.walls),
            least,
            statistics.median(job.walls),
            ratio,
            # what a job says of itself is not what the process used
            None if job.prints_seconds else statistics.median(job.cpus),
            job.peak,
            exponent,
        ]


def machine(peers: Peers | None) -> str:
    """What was measured on, and with which versions. No names of hosts or users."""
    import duckdb

    import nsys_sql

    cpu, memory = "", ""
    cpuinfo, meminfo = Path("/proc/cpuinfo"), Path("/proc/meminfo")
    if cpuinfo.exists():
        names = [n for n in cpuinfo.read_text().splitlines() if n.startswith("model name")]
        cpu = names[0].partition(":")[2].strip() + ", " if names else ""
    if meminfo.exists():
        memory = f"{int(meminfo.read_text().split()[1]) / 1024**2:.0f} GiB, "
    versions = {
        "Python": platform.python_version(),
        "DuckDB": duckdb.__version__,
        "SQLite": sqlite3.sqlite_version,
        "nsys-sql": nsys_sql.__version__,
        **(peers.versions if peers else {}),
    }
    return (
        f"{cpu}{len(os.sched_getaffinity(0))} cores, {memory}{platform.system()} "
        f"{platform.machine()}; " + ", ".join(f"{n} {v}" for n, v in versions.items())
    )


def table(lines: Sequence[Sequence[object]], form: str) -> str:
    """The table for a terminal (`simple`) or for Markdown (`pipe`)."""
    digits = ("d", "", "d", ".2f", ".2f", ".1f", ".2f", ".0f", ".2f")
    return tabulate(lines, HEADERS, tablefmt=form, floatfmt=digits, missingval="-")


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    raw = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--kernels", type=int, nargs="+", default=[300_000, 3_000_000])
    parser.add_argument("--runs", type=int, default=3, help="runs of each command")
    parser.add_argument("--folder", type=Path, help="keep the traces here and use them again")
    parser.add_argument("--memory-limit", default="1GB", help="of one budget more; '' for none")
    parser.add_argument("--recipes", choices=("all", "none"), default="all")
    parser.add_argument("--only", default="", metavar="REGEX", help="commands by their name")
    parser.add_argument("--with-peers", action="store_true", help="install and time others too")
    parser.add_argument("--timeout", type=float, default=900, help="seconds of one run at most")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table here too")
    return parser.parse_args(given)


def main(given: Sequence[str] | None = None) -> None:
    """Make the traces, run everything, print the table."""
    options = arguments(given)
    with tempfile.TemporaryDirectory() as scratch:
        folder: Path = options.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        peers = install(folder) if options.with_peers else None
        if not options.with_peers:
            say("missing: --with-peers would also time nsys-ai, numpy, pandas and polars")
        lines: list[list[object]] = []
        before: dict[str, tuple[int, float]] = {}
        for kernels in sorted(options.kernels):
            trace = folder / f"{kernels}.sqlite"
            if not trace.exists():
                make = [sys.executable, str(HERE / "make_trace.py"), str(trace)]
                subprocess.run(
                    [*make, "--kernels", str(kernels)], check=True, stdout=subprocess.DEVNULL
                )
            scan = [sys.executable, str(HERE / "child.py"), "scan", str(trace)]
            jobs = [
                Job(REFERENCE, scan),
                *own_jobs(trace, folder, options.memory_limit, options.recipes),
                *peer_jobs(trace, folder, peers),
            ]
            jobs = [j for j in jobs if j.name == REFERENCE or re.search(options.only, j.name)]
            say(f"{kernels} kernels, {trace.stat().st_size / 1e6:.0f} MB")
            measure(jobs, options.runs, options.timeout)
            lines += rows(kernels, jobs, before)
            before = {job.name: (kernels, min(job.walls)) for job in jobs if job.walls}
        told = machine(peers)
        print(table(lines, "simple"), f"\n{told}")
        if options.markdown:
            text = f"{table(lines, 'pipe')}\n\n{told}\n"
            options.markdown.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
