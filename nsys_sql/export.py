"""Reports (.nsys-rep): exported by the `nsys` on PATH into the cache, never beside the report."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from nsys_sql import cache, interrupts, source
from nsys_sql.errors import InputError

SUFFIXES = (".nsys-rep", ".qdrep")
Progress = Callable[[str], None]
_OPTIONS = ("--type=sqlite", "--force-overwrite=true")
_POLL_S = 0.2
_CHUNK = 1 << 22
_TOLD = 400  # characters of what nsys said


def is_report(path: Path) -> bool:
    """Whether a path is a report by its name, and no database under a report's name."""
    if path.suffix.lower() not in SUFFIXES or not source.is_file(path):
        return False
    try:
        with path.open("rb") as file:
            head = file.read(16)
    except OSError:
        return False
    return head != source.MAGIC and head[8:12] != source.DUCKDB_MAGIC


def exported(report: Path, progress: Progress) -> Path:
    """The SQLite export of a report: from the cache, or made now."""
    program = shutil.which("nsys")
    if program is None:
        raise InputError(
            f"{report} is a report, and there is no nsys on PATH to export it with",
            hint="where Nsight Systems is installed: "
            f"`nsys export --type=sqlite {report.name}`, then give the .sqlite file",
        )
    version = _version(program)
    before = source.stamp(report)
    made_from = {"content": _digest(report, progress), "nsys": version, "options": _OPTIONS}
    target = cache.place("export", made_from)
    if target.is_file():
        return target
    with cache.making(target, report) as file:
        _run(
            [program, "export", *_OPTIONS, f"--output={file}", str(report.absolute())],
            report,
            file,
            version,
            progress,
        )
        if source.stamp(report) != before:
            raise InputError(
                f"{report} changed while it was exported",
                hint="wait until its writer has finished, then run again",
            )
    return target


def _version(program: str) -> str:
    try:
        done = subprocess.run(
            [program, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"{program} cannot be run: {error}") from None
    return " ".join(done.stdout.decode("utf-8", "replace").split())


def _digest(report: Path, progress: Progress) -> str:
    """The SHA-256 of the report's whole content."""
    digest, shown = hashlib.sha256(), time.monotonic()
    try:
        with report.open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
                if time.monotonic() - shown > 1:
                    shown = time.monotonic()
                    progress(f"{report.name}: {file.tell() >> 20} MiB looked at")
    except OSError as error:
        raise InputError(f"{report} cannot be read: {error.strerror}") from None
    return digest.hexdigest()


def _run(command: list[str], report: Path, file: Path, version: str, progress: Progress) -> None:
    """Run the export in the folder of its output, saying how far it is."""
    began = time.monotonic()
    log = file.with_name("nsys.log")
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=file.parent,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        interrupts.at_hard_end(process.kill)
        try:
            while True:
                try:
                    code = process.wait(_POLL_S)
                    break
                except subprocess.TimeoutExpired:
                    size = 0
                    with contextlib.suppress(OSError):
                        size = file.stat().st_size
                    progress(
                        f"{report.name}: exporting with {version or 'nsys'}, "
                        f"{time.monotonic() - began:.0f} s, {size >> 20} MiB written"
                    )
        except BaseException:
            process.terminate()
            process.wait()
            raise
    if code != 0 or not file.is_file():
        said = log.read_text(encoding="utf-8", errors="replace").split("\n")
        last = next((line.strip() for line in reversed(said) if line.strip()), "it said nothing")
        raise InputError(
            f"{report} could not be exported, nsys ended with {code}: {last[:_TOLD]}",
            hint="an nsys older than the one that wrote the report cannot read it",
        )
