"""The package works where it is installed, not only where it was written."""

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest

from conftest import ROOT, long_test

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


def digests(folder):
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(folder.iterdir())}


@long_test
def test_a_build_elsewhere_and_later_gives_the_same_bytes(built, tmp_path):
    """Path, times, rights, locale, time zone and hash seed do not show; nor does the checkout."""
    shutil.unpack_archive(next(built.glob("*.tar.gz")), tmp_path / "a b", filter="data")
    (root,) = (tmp_path / "a b").iterdir()
    for path in sorted(root.rglob("*")):
        path.chmod(path.stat().st_mode & 0o700)
        os.utime(path, (86400 * 365 * 40, 86400 * 365 * 40))
    env = {**os.environ, "TZ": "Asia/Tokyo", "LC_ALL": "C", "PYTHONHASHSEED": "7"}
    again = tmp_path / "again"
    done = run(
        "bash",
        "-c",
        'umask 077 && "$@"',
        "bash",
        *(sys.executable, "-m", "build", "--no-isolation", "-o", str(again), str(root)),
        env=env,
        cwd="/",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert digests(again) == digests(built)


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
        "SECURITY.md",
        ".ci/requirements.txt",
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
