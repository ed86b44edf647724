"""What comes from others: pinned by hash, signed, and under licences that are listed."""

import re
import shutil

import duckdb
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from conftest import ROOT
from nsys_sql import attached
from nsys_sql.cli import execute

try:
    import tomllib
except ImportError:  # Python 3.10
    tomllib = pytest.importorskip("tomli")

LOCK = (ROOT / ".ci" / "requirements.txt").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
# The extras of CI; the others are for those who work on the package.
EXTRAS = ("test", "notebooks", "shell", "report", "perfetto", "dask", "arrow")


# ---------------------------------------------------------------- the lock


def pins():
    """Each entry of the lock: (requirement, its hashes)."""
    lines = [line for line in LOCK.splitlines() if line and not line.lstrip().startswith("#")]
    entries = re.split(r"\n(?=\S)", "\n".join(lines))
    for entry in entries:
        head, *hashes = (part.strip() for part in re.split(r"\\\n", entry))
        yield Requirement(head), hashes


def test_every_release_in_the_lock_is_exact_and_hashed():
    found = list(pins())
    assert len(found) > 50
    for requirement, hashes in found:
        assert re.fullmatch(r"==[0-9][0-9A-Za-z.+!-]*", str(requirement.specifier)), requirement
        assert hashes, requirement
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", each) for each in hashes)


def test_the_lock_names_no_place():
    assert not re.search(r"://|--(extra-)?index-url|--find-links|--trusted-host|\s/", LOCK)


@pytest.mark.parametrize("python", ["3.10", "3.11", "3.12", "3.13"])
def test_the_lock_holds_what_the_project_asks_for(python):
    """As pyproject.toml says it today: a new dependency, or another bound, needs `make lock`."""
    extras = PROJECT["project"]["optional-dependencies"]
    asked = [*PROJECT["build-system"]["requires"], *PROJECT["project"]["dependencies"]]
    asked += [text for extra in EXTRAS for text in extras[extra]]
    asked += [
        line
        for line in (ROOT / ".ci" / "build.in").read_text(encoding="utf-8").splitlines()
        if not line.startswith("#")
    ]
    linux = {
        "python_version": python,
        "python_full_version": f"{python}.9",
        "sys_platform": "linux",
        "os_name": "posix",
        "platform_machine": "x86_64",
        "implementation_name": "cpython",
    }
    pinned = {}
    for requirement, _ in pins():
        if requirement.marker is None or requirement.marker.evaluate(linux):
            name = canonicalize_name(requirement.name)
            assert name not in pinned, f"{name} is pinned twice for Python {python}"
            pinned[name] = next(iter(requirement.specifier)).version
    for text in asked:
        wanted = Requirement(text)
        assert pinned[canonicalize_name(wanted.name)] in wanted.specifier, text


def test_every_extra_is_in_the_lock_or_only_for_development():
    assert set(PROJECT["project"]["optional-dependencies"]) == {*EXTRAS, "dev"}


def test_ci_installs_by_hash_and_then_fetches_nothing():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    installs = re.findall(r'^"\$\{pip\[@\]\}" (.*)$', script, re.MULTILINE)
    assert "--require-hashes" in installs[0] and "-r .ci/requirements.txt" in installs[0]
    assert installs[1:] and all('"${offline[@]}"' in line for line in installs[1:])
    assert re.search(r"^offline=\(--no-index .*--no-build-isolation\)$", script, re.MULTILINE)


# ---------------------------------------------------------------- licences


def listed():
    """The packages of docs/licences.md by the title of their table, those with them apart."""
    text = (ROOT / "docs" / "licences.md").read_text(encoding="utf-8")
    direct, along = {}, set()
    for section in text.split("\n## ")[1:]:
        title, _, rows = section.partition("\n")
        extra = re.match(r"Extra `(\w+)`", title)
        direct[extra[1] if extra else ""] = set(
            re.findall(r"^\| `([\w-]+)` \|", rows, re.MULTILINE)
        )
        along.update(re.findall(r"^\| with: `([\w-]+)` \|", rows, re.MULTILINE))
    assert not re.search(r"\| (not said)? *\|\n", text)
    return direct, along


def test_the_licence_of_every_dependency_is_listed():
    """`make licences` writes the page again when this fails."""
    extras = PROJECT["project"]["optional-dependencies"]
    wanted = {
        extra: {
            canonicalize_name(Requirement(text).name)
            for text in texts
            if not text.startswith("nsys-sql")
        }
        for extra, texts in {"": PROJECT["project"]["dependencies"], **extras}.items()
    }
    wanted["dev"] |= wanted["test"]
    direct, along = listed()
    assert direct == wanted
    here = {
        canonicalize_name(requirement.name)
        for requirement, _ in pins()
        if requirement.marker is None
        or requirement.marker.evaluate({"python_full_version": "3.11.9", "sys_platform": "linux"})
    }
    assert here - {"editables"} <= along.union(*direct.values())


# ---------------------------------------------------------------- the extension


def changed(file, target, what):
    """A copy of the extension with one bit of its code turned, or without its signature."""
    shutil.copyfile(file, target)
    with target.open("r+b") as copy:
        if what == "code":
            copy.seek(1 << 20)
            (byte,) = copy.read(1)
            copy.seek(1 << 20)
            copy.write(bytes([byte ^ 1]))
        else:
            size = target.stat().st_size
            copy.seek(size - 256)
            if what == "signature":
                copy.write(bytes(256))
            else:
                copy.truncate(1000)
    return target


@pytest.mark.usefixtures("signatures_checked")
@pytest.mark.parametrize("what", ["code", "signature", "length"])
def test_an_extension_that_nobody_signed_is_refused(
    fixture_sqlite, tmp_path, monkeypatch, capsys, what
):
    file = attached.extension_file()
    if file is None:
        pytest.skip("the extension came another way")
    copy = changed(file, tmp_path / file.name, what)
    monkeypatch.setattr(attached, "extension_file", lambda: copy)
    assert execute(["run", "devices", str(fixture_sqlite("event_waits"))]) == 3
    out, err = capsys.readouterr()
    assert not out and err.count("\n") == 1
    assert err.startswith(f"Error: DuckDB refuses {copy}: it is damaged, or not the extension")
    assert "pip install --force-reinstall duckdb-extension-sqlite-scanner==" in err


@pytest.mark.usefixtures("signatures_checked")
def test_the_shipped_extension_is_loaded_with_signatures_checked(fixture_sqlite):
    import nsys_sql

    with nsys_sql.open(fixture_sqlite("event_waits")) as model:
        asked = "SELECT current_setting('allow_unsigned_extensions')"
        assert model.con.execute(asked).fetchone() == (False,)
        loaded = model.con.execute(
            "SELECT extension_version, install_mode FROM duckdb_extensions() "
            "WHERE loaded AND extension_name = 'sqlite_scanner'"
        ).fetchall()
        assert len(loaded) == 1


def test_no_code_of_ours_turns_the_check_off():
    for path in [*ROOT.glob("nsys_sql/**/*.py"), *ROOT.glob("sql/**/*.sql")]:
        assert "allow_unsigned" not in path.read_text(encoding="utf-8"), path


def test_without_the_extension_the_remedy_is_told(monkeypatch, tmp_path):
    monkeypatch.setattr(attached, "extension_file", lambda: None)
    con = duckdb.connect(config={"extension_directory": str(tmp_path)})
    with pytest.raises(attached.InputError, match="cannot load its SQLite extension") as caught:
        attached.load_sqlite(con)
    assert caught.value.hint == (
        f"pip install duckdb-extension-sqlite-scanner=={duckdb.__version__}"
    )
    con.close()
