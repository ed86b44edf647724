"""The benchmark runs, on a tiny trace: what it prints is whole, and what fails is told."""

import importlib.util
import random
import sys
from pathlib import Path

import pytest

import oracle

FOLDER = Path(__file__).parents[1] / "benchmarks"


def _script(name):
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


run, child = _script("run"), _script("child")


def test_a_tiny_run(tmp_path, capsys, monkeypatch):
    bad = run.Job("peer of no use", [sys.executable, "-c", "raise SystemExit('no Error: alas')"])
    absent = run.Job("absent peer", [str(tmp_path / "none")])
    late = run.Job("late peer", [sys.executable, "-c", "import time; time.sleep(60)"])
    told = run.Job("told peer", [sys.executable, "-c", "print(12.5, 7)"], True)
    monkeypatch.setattr(run, "peer_jobs", lambda *_: iter([bad, absent, told]))
    late.run(0.2)
    assert late.failure == "not done after 0.2 s"
    page = tmp_path / "table.md"
    given = ["--runs", "1", "--only", "^budget$|Parquet|peer", "--folder", str(tmp_path)]
    run.main(["--kernels", "3000", *given, "--markdown", str(page)])
    out, err = capsys.readouterr()
    assert "--with-peers would also time" in err and "failed: peer of no use" in err
    lines = [line.split("|") for line in page.read_text().splitlines() if "|" in line]
    cells = [[cell.strip() for cell in line[1:-1]] for line in lines]
    assert tuple(cells[0]) == run.HEADERS
    found = {row[1]: row for row in cells[2:]}
    for name in (run.REFERENCE, "budget", "budget from Parquet"):
        row = found[name]
        assert (row[0], row[2], row[8]) == ("3000", "1", "-") and 0 < float(row[3]) <= float(row[4])
        assert float(row[7]) > 5  # no Python is smaller
    assert float(found[run.REFERENCE][5]) == 1
    assert float(found["told peer"][3]) == 12.5
    assert any("alas" in name for name in found)
    assert any(name.startswith("absent peer: ") for name in found)
    assert "cores" in out and "DuckDB" in out


def test_ratios_and_exponents():
    jobs = [
        run.Job(run.REFERENCE, [], walls=[0.5, 0.7], cpus=[0.4], peak=20.0),
        run.Job("budget", [], walls=[9.0, 4.0, 5.0], cpus=[8.0, 7.0, 9.0], peak=900.0),
        run.Job("union", [], prints_seconds=True, walls=[0.1], cpus=[3.0]),
    ]
    _, budget, union = run.rows(1000, jobs, {"budget": (100, 0.4)})
    assert budget == [1000, "budget", 3, 4.0, 5.0, 8.0, 8.0, 900.0, pytest.approx(1.0)]
    assert union[6] is None and union[8] is None


def test_what_is_on_the_list():
    jobs = list(run.own_jobs(Path("x.sqlite"), Path(), "1GB", "all"))
    names = [job.name for job in jobs]
    assert len(set(names)) == len(names)
    recipes = {file.stem.replace("_", "-") for file in (run.ROOT / "sql" / "recipes").glob("*.sql")}
    assert recipes - set(names) == set(run.NEEDS_MORE) and recipes > set(run.NEEDS_MORE)
    assert "budget, --memory-limit 1GB" in names
    fewer = [job.name for job in run.own_jobs(Path("x.sqlite"), Path(), None, "none")]
    # budget and kernels stay, the limit does not
    assert len(fewer) == len(names) - (len(recipes) - len(run.NEEDS_MORE) - 2) - 1


@pytest.mark.parametrize("way", sorted(child.WAYS))
def test_unions_agree(way):
    if way in ("numpy", "pandas", "polars"):
        pytest.importorskip(way)
    source = random.Random(3)
    rows = []
    for _ in range(2000):
        start = source.randrange(50_000)
        rows.append((source.randrange(3), start, start + source.randrange(60)))
    expected = sum(oracle.measure([r[1:] for r in rows if r[0] == d]) for d in range(3))
    prepare, compute = child.WAYS[way]
    assert int(compute(prepare(rows))) == expected


@pytest.mark.parametrize(
    ("version", "report"),
    [
        ("2022.4.2.1-df9881f", "gpukernsum"),
        ("2024.2.3.38-242334140272v0", "cuda_gpu_kern_sum"),
        ("unknown", "cuda_gpu_kern_sum"),
    ],
)
def test_the_kernel_summary_has_the_name_of_its_version(tmp_path, version, report):
    nsys = tmp_path / "nsys"
    nsys.write_text(f"#!/bin/sh\necho NVIDIA Nsight Systems version {version}\n")
    nsys.chmod(0o755)
    assert run.kernel_summary(str(nsys)) == report
