"""The user's cache: exports of reports and ingested traces, each one file that appears whole.

What surveys and comparisons read of a trace, its partition, is a folder there.

A file's name says what it was made from, so it is never stale: another content, version or option
is another name. Runs that make the same file at the same time each make their own; the first one
to finish wins, and nobody waits.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nsys_sql import output
from nsys_sql import source as files
from nsys_sql.errors import InputError

_SUFFIXES = {"export": ".sqlite", "ingest": ".duckdb"}
_PART = ".part-"


@dataclass(frozen=True, slots=True)
class Entry:
    """One cached file, or folder of a partition, and where it comes from."""

    path: Path
    kind: str
    source: str
    size: int
    made: float


def folder() -> Path:
    """Where cached files go: $NSYS_SQL_CACHE, else $XDG_CACHE_HOME/nsys-sql, else ~/.cache."""
    if given := os.environ.get("NSYS_SQL_CACHE"):
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "nsys-sql"


def partitions() -> Path:
    """Where surveys and comparisons keep what they read, unless they are told another place."""
    return folder() / "partitions"


def place(kind: str, made_from: Mapping[str, object]) -> Path:
    """The path of a cached file, whether it is there or not."""
    text = json.dumps(made_from, sort_keys=True, default=str)
    key = hashlib.sha256(text.encode()).hexdigest()[:32]
    return folder() / f"{kind}-{key}{_SUFFIXES[kind]}"


@contextmanager
def making(target: Path, source: Path) -> Iterator[Path]:
    """A path to write to, which becomes `target` when the block ends, unless that is there."""
    base = target.parent
    try:
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
        files.sweep(base.glob(f"{_PART}*"), is_aging=True)
        scratch = Path(tempfile.mkdtemp(prefix=f"{_PART}{files.owner()}-", dir=base))
    except OSError as error:
        raise InputError(
            f"the cache {base} cannot be written: {error.strerror}",
            hint="set NSYS_SQL_CACHE to a folder that can",
        ) from None
    try:
        file = scratch / f"trace{target.suffix}"
        with files.half_made(scratch):
            yield file
        file.chmod(0o600)
        with file.open("rb") as written:
            os.fsync(written.fileno())  # a name that outlives a power cut must not stand for less
        note = scratch / "note.json"
        made = {"source": os.path.abspath(source), "made": time.time()}  # noqa: PTH100
        note.write_text(json.dumps(made), encoding="utf-8")
        with contextlib.suppress(OSError):
            note.replace(target.with_suffix(".json"))
        with contextlib.suppress(FileExistsError):  # made by another run: its file stays
            _link(file, target)
    except OSError as error:
        raise _unwritten(base, error.strerror or str(error)) from None
    except Exception as error:  # DuckDB could not write what it made
        if (reason := output.unwritten(error, base)) is None:
            raise
        raise _unwritten(base, reason) from None
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _unwritten(base: Path, reason: str) -> InputError:
    return InputError(
        f"the cache {base} cannot be written: {reason}",
        hint="set NSYS_SQL_CACHE to a folder with enough room, or go without --cache",
    )


def _link(file: Path, target: Path) -> None:
    """Give a finished file its name, never in place of another one where links work."""
    try:
        os.link(file, target)
    except FileExistsError:
        raise
    except OSError:
        file.replace(target)


def entries() -> list[Entry]:
    """Every cached file, the newest first."""
    found = []
    for kind, suffix in _SUFFIXES.items():
        for path in folder().glob(f"{kind}-*{suffix}"):
            source = ""
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                note = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
                source = str(note["source"])
            with contextlib.suppress(OSError):
                status = path.stat()
                found.append(Entry(path, kind, source, status.st_size, status.st_mtime))
    for path in partitions().glob("part-*"):
        source = ""
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            manifest = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
            source = str(manifest["trace"]["path"])
        with contextlib.suppress(OSError):
            size = sum(each.stat().st_size for each in path.iterdir())
            found.append(Entry(path, "partition", source, size, path.stat().st_mtime))
    return sorted(found, key=lambda each: (-each.made, str(each.path)))


def clear() -> tuple[int, int]:
    """Remove all that is cached; how many entries went, and their bytes.

    Runs that have opened one keep it, and what is being made is left alone.
    """
    count = size = 0
    for entry in entries():
        try:
            if entry.kind == "partition":
                shutil.rmtree(entry.path)
            else:
                entry.path.unlink()
        except OSError:
            continue
        count, size = count + 1, size + entry.size
    base = folder()
    for kind in _SUFFIXES:
        for note in base.glob(f"{kind}-*.json"):
            note.unlink(missing_ok=True)
    for place in (base, partitions()):
        # what a run is making at this moment is its own
        files.sweep(place.glob(f"{_PART}*"), is_aging=True)
    return count, size
