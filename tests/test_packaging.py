"""The package works where it is installed, not only where it was written."""

import os
import subprocess
import sys
import tarfile
import zipfile

import pytest

from conftest import ROOT

pytest.importorskip("build")
pytest.importorskip("hatchling")


def run(*command, **more):
    return subprocess.run(
        command, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL, **more
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder with the sdist, and the wheel that was built from that sdist."""
    folder = tmp_path_factory.mktemp("dist")
    done = run(sys.executable, "-m", "build", "--no-isolation", "-o", str(folder), str(ROOT))
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_the_sdist_is_complete(built):
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert names >= {
        "recipes.yaml",
        "sql/recipes/budget.sql",
        "fixtures/example.sql",
        "tests/conftest.py",
        "docs/recipes.md",
        "README.md",
        "CHANGELOG.md",
        "LICENSE",
        "pyproject.toml",
    }


def test_the_wheel_runs_from_anywhere(built, tmp_path):
    with zipfile.ZipFile(next(built.glob("*.whl"))) as archive:
        archive.extractall(tmp_path / "site")
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    where = run(sys.executable, "-c", "import nsys_sql; print(nsys_sql.__file__)", cwd="/", env=env)
    assert where.stdout.startswith(str(tmp_path)), where.stderr
    listed = run(sys.executable, "-m", "nsys_sql", "list", cwd="/", env=env)
    assert listed.returncode == 0 and "budget" in listed.stdout, listed.stderr
    trace = str(tmp_path / "example.sqlite")
    made = run(sys.executable, "-m", "nsys_sql", "example", trace, cwd="/", env=env)
    assert made.returncode == 0, made.stderr
    budget = run(sys.executable, "-m", "nsys_sql", "run", "budget", trace, cwd="/", env=env)
    assert budget.returncode == 0 and "compute_busy" in budget.stdout, budget.stderr
