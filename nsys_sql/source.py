"""The file before DuckDB sees it: is it a readable SQLite file, and may it be read in place?"""

from __future__ import annotations

import atexit
import contextlib
import errno
import glob
import hashlib
import importlib.util
import os
import platform
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from nsys_sql import interrupts
from nsys_sql.errors import InputError, UsageError

MAGIC = b"SQLite format 3\x00"
DUCKDB_MAGIC = b"DUCK"
ARROW_STREAM = b"\xff\xff\xff\xff"
ARROW = (".arrow", ".arrows")
_HEADER_BYTES = 100
_UTF_16 = (2, 3)  # as the header of SQLite says it
_SAMPLES, _SAMPLE_BYTES = 16, 1 << 16


@dataclass(frozen=True, slots=True)
class Header:
    """What the first bytes of a file say; `page_count` is None where it is not to be trusted."""

    is_duckdb: bool
    page_size: int
    page_count: int | None
    is_wal: bool
    size: int
    is_parquet: bool = False
    is_arrow: bool = False


def _read_folder(path: Path) -> Header:
    """Check that a folder is a Parquet directory export."""
    names = sorted(each.name for each in path.iterdir())
    if any(name.endswith(".nsys-analysis") for name in names):
        raise InputError(
            f"{path} holds results of `nsys recipe`, not the tables of a report",
            hint="give the report itself, or an export of it",
        )
    if any(name.endswith(".parquet") for name in names):
        return Header(False, 0, None, False, 0, is_parquet=True)
    if any(name.endswith(ARROW) for name in names):
        return _arrow(path, 0)
    inner = sorted({str(p.parent) for end in (".parquet", *ARROW) for p in path.glob(f"*/*{end}")})
    if inner:
        raise InputError(
            f"{path} is a directory, and so is what lies in it",
            hint=f"give the folder with the files: {', '.join(inner[:3])}",
        )
    raise InputError(
        f"{path} is a directory",
        hint="give the .sqlite file that `nsys export` wrote, or the folder of --type=parquetdir",
    )


def _arrow(path: Path, size: int) -> Header:
    """The header of an Arrow export, which takes pyarrow to read."""
    if importlib.util.find_spec("pyarrow") is None:
        raise InputError(
            f"{path} is an Arrow export, and pyarrow, which reads it, is not installed",
            hint="pip install 'nsys-sql[arrow]'; or export with `nsys export --type=parquetdir`, "
            "or --type=sqlite",
        )
    return Header(False, 0, None, False, size, is_arrow=True)


def _refuse_other_export(path: Path, head: bytes) -> None:
    """Tell what a file is that nsys wrote as well, in a form that is not read."""
    if head.startswith(b"PAR1"):
        raise InputError(
            f"{path} is one table of a Parquet export",
            hint=f"give the folder that holds all of them: {path.parent}",
        )
    # nsys exports Arrow streams, which begin in another way
    forms = {b"ARROW1": "an Arrow file, not an export", b"\x89HDF": "an HDF5 export"}
    for magic, form in forms.items():
        if head.startswith(magic):
            raise InputError(
                f"{path} is {form}, which is not read",
                hint="export with `nsys export --type=sqlite`, or --type=parquetdir",
            )


def is_file(path: Path) -> bool:
    """Whether a file is there; InputError where the system does not tell."""
    mode = _mode(path)
    return mode is not None and stat.S_ISREG(mode)


def is_folder(path: Path) -> bool:
    """Whether a folder is there; InputError where the system does not tell."""
    mode = _mode(path)
    return mode is not None and stat.S_ISDIR(mode)


def is_there(path: Path) -> bool:
    """Whether anything is there; InputError where the system does not tell."""
    return _mode(path) is not None


def _mode(path: Path) -> int | None:
    # Path.exists() and its like raise for a folder that may not be entered and a name too long
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENAMETOOLONG):  # nothing can be there
            return None
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:  # a NUL in the path
        return None


def real(path: Path) -> str:
    """The path without links, whether anything is there or not."""
    try:
        return os.path.realpath(path)
    except OSError as error:  # a link that may not be read
        raise InputError(f"{path} cannot be read: {error.strerror}") from None


def read_header(path: Path) -> Header:
    """Check that a path is a readable SQLite or DuckDB file, or an export folder."""
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            return _read_folder(path)
        if not stat.S_ISREG(mode):
            raise InputError(f"{path} is not a regular file", hint="save it to a file first")
        with path.open("rb") as file:
            head = file.read(_HEADER_BYTES)
            size = os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:  # a NUL in the path
        raise InputError(f"{str(path)!r} is no path: {error}") from None
    try:
        os.path.abspath(path).encode("utf-8")  # noqa: PTH100
    except UnicodeEncodeError:
        raise InputError(
            f"{path} has a name that is no UTF-8, and DuckDB opens no such file",
            hint="give it another name, or a link with one",
        ) from None
    if size == 0:
        raise InputError(f"{path} is empty", hint="export the report again")
    if head[8:12] == DUCKDB_MAGIC:
        return Header(True, 0, None, False, size)
    if head.startswith(ARROW_STREAM):
        return _arrow(path, size)
    if not head.startswith(MAGIC):
        _refuse_other_export(path, head)
        raise InputError(
            f"{path} is not an SQLite database, or it is encrypted",
            hint="export the report first: `nsys export --type=sqlite REPORT.nsys-rep`",
        )
    if len(head) < _HEADER_BYTES:
        raise InputError(f"{path} is truncated: {size} bytes", hint="copy or export it again")
    if int.from_bytes(head[56:60], "big") in _UTF_16:
        # what SQLite gives as hex digits, where a value is odd, would be other texts
        raise InputError(
            f"{path} holds its texts in UTF-16, which no export does",
            hint="export the report again",
        )
    page_size = int.from_bytes(head[16:18], "big")
    page_size = 65536 if page_size == 1 else page_size
    # SQLite itself trusts the page count only where both change counters agree.
    is_counted = head[24:28] == head[92:96]
    page_count = int.from_bytes(head[28:32], "big") if is_counted else 0
    return Header(False, page_size, page_count or None, 2 in head[18:20], size)


def check_size(path: Path, header: Header) -> str | None:
    """Refuse a file shorter than its header says; return a warning for one that is longer."""
    if header.page_count is None:
        return None
    wanted = header.page_size * header.page_count
    if header.size < wanted:
        raise InputError(
            f"{path} is truncated: {header.size} bytes of {wanted}",
            hint="copy it again, or export the report again",
        )
    if header.size > wanted:
        return f"the file is {header.size - wanted} bytes longer than its SQLite header says"
    return None


def companions(path: Path) -> list[Path]:
    """The -wal and -journal files beside a database that hold something."""
    found = []
    for suffix in ("-wal", "-journal"):
        companion = path.with_name(path.name + suffix)
        with contextlib.suppress(OSError):
            if companion.stat().st_size > 0:
                found.append(companion)
    return found


def _members(path: Path) -> list[Path]:
    """The files of a trace: itself, or those of the folder."""
    if not path.is_dir():
        return [path]
    found = sorted(path.glob("*.parquet"))
    return found or arrow_files(path)


def arrow_files(folder: Path) -> list[Path]:
    """The files of an Arrow directory export, one a table."""
    return sorted(path for path in folder.iterdir() if path.name.endswith(ARROW))


def size(path: Path) -> int:
    """The bytes of a trace, or 0 where it cannot be told."""
    try:
        return sum(file.stat().st_size for file in _members(path))
    except OSError:
        return 0


def stamp(path: Path) -> tuple[tuple[int, int, int], ...] | None:
    """Size, time of change and identity of the files: equal before and after means unchanged."""
    try:
        found = [file.stat() for file in _members(path)]
    except OSError:
        return None
    return tuple((each.st_size, each.st_mtime_ns, each.st_ino) for each in found)


def identity(path: Path) -> dict[str, object]:
    """What tells whether a trace is still the same: its content is sampled, not read.

    The log beside an SQLite file is part of it: rows may be there alone. So is the time at which
    anything about a file changed, which no program can set: content may be replaced by as many
    bytes, and the time of its change put back.
    """
    digest = hashlib.sha256()
    total, changed = 0, 0
    try:
        beside = [] if path.is_dir() else companions(path)
        for member in (*_members(path), *beside):
            status = member.stat()
            if not stat.S_ISREG(status.st_mode):  # a pipe would be waited for
                raise InputError(f"{member} is not a regular file", hint="save it to a file first")
            total += status.st_size
            changed = max(changed, status.st_mtime_ns)
            name = member.name if member != path else ""
            digest.update(f"{name}\0{status.st_size}\0{status.st_ctime_ns}\0".encode())
            with member.open("rb") as file:
                step = max(_SAMPLE_BYTES, status.st_size // _SAMPLES)
                last = max(0, status.st_size - _SAMPLE_BYTES)
                for at in (*range(0, status.st_size, step), last):
                    file.seek(at)
                    digest.update(file.read(_SAMPLE_BYTES))
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    return {
        "path": os.path.abspath(path),  # noqa: PTH100 (symlinks stay)
        "size": total,
        "mtime_ns": changed,
        "sample": digest.hexdigest()[:32],
    }


_folders: set[Path] = set()
_half_made: set[Path] = set()
_swept: set[Path] = set()
_PREFIX = "nsys-sql-"
_OLD_S = 24 * 3600


@lru_cache(maxsize=1)
def _world() -> str:
    """Where a process number means something: this start of this machine, or this container."""
    told = [platform.node()]
    with contextlib.suppress(OSError):
        told.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii"))
    with contextlib.suppress(OSError):
        told.append(str(Path("/proc/self/ns/pid").stat().st_ino))
    return hashlib.sha256("\0".join(told).encode()).hexdigest()[:8]


def owner() -> str:
    """A part of a name that says which process makes a temporary file, or made it and died."""
    return f"{_world()}.{os.getpid()}"


def _lives(name: str) -> bool | None:
    """Whether the process that a name carries runs; None where that cannot be told from here."""
    found = re.search(r"(?:^|[.-])([0-9a-f]{8})\.([0-9]{1,10})(?=[.-]|$)", name)
    if found is None or found[1] != _world() or os.name != "posix":
        return None
    try:
        os.kill(int(found[2]), 0)
    except ProcessLookupError:
        return False
    except OverflowError:
        return None
    except OSError:
        pass
    return True


def is_left_over(name: str, is_old: bool = False) -> bool:
    """Whether the process that a name carries was here and is no more.

    Of one of another machine only its age tells: `is_old`.
    """
    lives = _lives(name)
    return is_old if lives is None else not lives


def sweep(paths: Iterable[Path], is_aging: bool = False) -> None:
    """Remove those of these files and folders that killed runs of this user have left.

    With `is_aging`, what another machine made goes too when it is a day old.
    """
    with contextlib.suppress(OSError):
        for path in paths:
            with contextlib.suppress(OSError):
                status = path.lstat()
                is_old = is_aging and time.time() - status.st_mtime > _OLD_S
                if status.st_uid != os.getuid() or not is_left_over(path.name, is_old):
                    continue
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink()


def _temporary(temp_directory: str | None) -> Path:
    return Path(temp_directory or tempfile.gettempdir())


def sweep_temporary(temp_directory: str | None) -> None:
    """Remove the private folders of runs that were killed."""
    sweep(_temporary(temp_directory).glob(f"{_PREFIX}*"))


def private_folder(temp_directory: str | None) -> Path:
    """A new folder that only this user may read; `remove` it, or it goes at exit.

    What a killed run left there before goes now.
    """
    base = _temporary(temp_directory)
    if base not in _swept:
        _swept.add(base)
        sweep_temporary(temp_directory)
    try:
        folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{owner()}-", dir=base))
    except OSError as error:
        # full is what it may become at any time; all else is wrong from the start
        is_wrong = temp_directory is not None and error.errno != errno.ENOSPC
        raise (UsageError if is_wrong else InputError)(
            f"no temporary folder can be made in {base}: {error.strerror}",
            hint="choose another with --temp-directory",
        ) from None
    _folders.add(folder)
    return folder


def remove(folder: Path) -> None:
    """Remove a private folder with everything in it."""
    shutil.rmtree(folder, ignore_errors=True)
    _folders.discard(folder)


@contextlib.contextmanager
def half_made(path: Path) -> Iterator[Path]:
    """Know of a file or folder that is not whole before the block ends, should the run end hard."""
    _half_made.add(path)
    try:
        yield path
    finally:
        _half_made.discard(path)


@atexit.register
def _remove_all() -> None:
    for folder in tuple(_folders):
        remove(folder)


def _remove_half_made() -> None:
    _remove_all()
    for base in tuple(_swept):  # a folder that was made a moment ago and is not in the list yet
        for path in base.glob(f"{_PREFIX}{owner()}-*"):
            shutil.rmtree(path, ignore_errors=True)
    for path in tuple(_half_made):
        shutil.rmtree(path, ignore_errors=True)
        for each in path.parent.glob(f"{glob.escape(path.name)}*"):  # DuckDB's log beside it
            with contextlib.suppress(OSError):
                each.unlink()


interrupts.at_hard_end(_remove_half_made)


def settled_copy(path: Path, beside: Sequence[Path], folder: Path) -> Path:
    """Copy a database with its log into `folder`, and fold the log into the copy there."""
    import sqlite3

    files = [path, *beside]
    before = [stamp(file) for file in files]
    copy = folder / "trace.sqlite"
    try:
        for file in files:
            settled = folder / (copy.name + file.name[len(path.name) :])
            settled.touch(mode=0o600)
            shutil.copyfile(file, settled)
    except OSError as error:
        raise InputError(
            f"{path} cannot be copied to {folder}: {error.strerror}",
            hint="choose a folder with enough room with --temp-directory",
        ) from None
    if before != [stamp(file) for file in files] or companions(path) != list(beside):
        raise InputError(
            f"{path} changed while it was copied", hint="wait until its writer has finished"
        )
    try:
        with contextlib.closing(sqlite3.connect(copy)) as database:
            # Applies the log: a WAL is checkpointed, a hot journal rolled back.
            database.execute("SELECT count(*) FROM sqlite_master").fetchall()
            database.execute("PRAGMA journal_mode = DELETE").fetchall()
    except sqlite3.Error as error:
        if "full" in str(error):
            raise InputError(
                f"{path} cannot be copied to {folder}: {error}",
                hint="choose a folder with enough room with --temp-directory",
            ) from None
        raise InputError(
            f"{path} is damaged, or not readable as SQLite: {error}",
            hint="copy it again with the files beside it, or export the report again",
        ) from None
    return copy
