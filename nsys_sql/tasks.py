"""Partitions of many traces: one task each, on local processes or on a Dask cluster.

Both engines run the same function and hand out its outcomes as they come. A trace that fails, or
that takes its worker down with it, is an outcome like any other and loses nobody else.
"""

from __future__ import annotations

import importlib
import os
import signal
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsys_sql import interrupts, partition, source
from nsys_sql.errors import NsysSqlError, UsageError, out_of_memory
from nsys_sql.options import Options
from nsys_sql.partition import Partition

if TYPE_CHECKING:
    from multiprocessing.context import BaseContext

_ATTEMPTS = 2
# How long a worker that is told to end may take to remove what it made.
_CLEAN_UP_S = 0.5
_busy: list[str] = []  # what a worker works on


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a trace has no partition."""

    message: str
    hint: str | None
    exit_code: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one trace."""

    trace: Path
    partition: Partition | None
    failure: Failure | None = None
    is_resumed: bool = False


Progress = Callable[[int, int, str], None]


def run_task(trace: str, folder: str, options: Options) -> tuple[str | None, Failure | None]:
    """Make one partition: what a worker runs. Errors come back as values."""
    try:
        path = partition.write_partition(Path(trace), Path(folder), options)
        return str(path), None
    except NsysSqlError as error:
        return None, Failure(str(error), error.hint, error.exit_code)
    except MemoryError:
        return None, Failure("not enough memory", "lower --jobs, or give a --memory-limit", 3)
    except Exception as error:
        if (lacking := out_of_memory(error)) is not None:
            return None, Failure(str(lacking), lacking.hint, lacking.exit_code)
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(last.filename).name}:{last.lineno}"
        return None, Failure(f"{type(error).__name__}: {error} ({place})", None, 1)


def collect(
    traces: Sequence[Path],
    folder: Path,
    options: Options,
    *,
    jobs: int | None = None,
    scheduler: str | None = None,
    progress: Progress | None = None,
) -> list[Outcome]:
    """The partition of every trace, in the order given; finished ones are not made again."""
    found: dict[Path, Outcome] = {}
    for trace in traces:
        try:
            done = partition.find(trace, folder, options)
        except NsysSqlError as error:
            found[trace] = _failed(trace, Failure(str(error), error.hint, error.exit_code))
        else:
            if done is not None:
                found[trace] = Outcome(trace, done, is_resumed=True)
    left = [trace for trace in traces if trace not in found]
    if left:
        engine = (
            _dask(left, folder, options, scheduler)
            if scheduler is not None
            else _local(left, folder, options, jobs)
        )
        for trace, (path, failure) in engine:
            found[trace] = _outcome(trace, path, failure)
            if progress is not None:
                progress(len(found), len(traces), trace.name)
        _sweep(folder, found.values())
    return [found[trace] for trace in traces]


def _sweep(folder: Path, outcomes: Iterable[Outcome]) -> None:
    """Remove what workers that died left half-written, where the partition is there by now.

    Another run may be making the same partition at this moment: what a live process of this
    machine owns stays, and of other machines only what is old goes.
    """
    done = {each.partition.key for each in outcomes if each.partition is not None}
    found = (path for path in folder.glob(".part-*-*") if path.name.split("-")[1] in done)
    source.sweep(found, is_aging=True)


def _failed(trace: Path, failure: Failure) -> Outcome:
    return Outcome(trace, None, failure)


def _outcome(trace: Path, path: str | None, failure: Failure | None) -> Outcome:
    if failure is not None or path is None:
        return _failed(trace, failure or Failure("the task returned nothing", None, 1))
    done = partition.read(Path(path))
    if done is None:
        return _failed(
            trace,
            Failure(
                f"its partition {path} cannot be seen from here",
                "give --partitions a folder that all workers share",
                3,
            ),
        )
    return Outcome(trace, done)


# ---------------------------------------------------------------------------- local processes


def cpus() -> int:
    """Processors that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def _share(options: Options, jobs: int) -> Options:
    """What one of so many workers may use: threads and memory are divided, unless given."""
    threads = options.threads or max(1, cpus() // jobs)
    limit = options.memory_limit
    if limit is None:
        try:
            total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        except (ValueError, OSError, AttributeError):
            total = 0
        limit = f"{max(total * 7 // 10 // jobs >> 20, 256)}MiB" if total else None
    return replace(options, threads=threads, memory_limit=limit, keep_steps=True)


Answer = tuple[str | None, Failure | None]
Task = Callable[[str, str, Options], Answer]


def _local(
    traces: Sequence[Path],
    folder: Path,
    options: Options,
    jobs: int | None,
    task: Task = run_task,
) -> Iterator[tuple[Path, Answer]]:
    jobs = min(jobs or cpus(), len(traces))
    own = _share(options, jobs)
    if jobs == 1:
        for trace in traces:
            yield trace, task(str(trace), str(folder), own)
        return
    import multiprocessing

    context = multiprocessing.get_context("spawn")
    waiting = list(reversed(traces))
    while waiting:
        suspects: list[Path] = []
        yield from _pool(waiting, suspects, jobs, context, folder, own, task)
        for trace in suspects:  # one of them killed its worker: each gets one of its own
            alone, dead = [trace], list[Path]()
            yield from _pool(alone, dead, 1, context, folder, own, task)
            if dead:
                yield trace, (None, _DEATH)


def _follow_parent(temp: str) -> None:
    """Let a worker end with the process that started it, however that one ends.

    `temp` is the folder for temporary files that the parent found. To find it Python makes a file
    and removes it, which a worker that is ended in between would leave.
    """
    import multiprocessing

    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
        os.kill(os.getpid(), signal.SIGTERM)

    # Ctrl-C on a terminal reaches all processes; it is the parent that decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tempfile.tempdir = temp
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if os.name == "posix":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    interrupts.listen(_CLEAN_UP_S, is_idle=lambda: not _busy)
    threading.Thread(target=watch, daemon=True).start()


def _in_worker(task: Task, trace: str, folder: str, options: Options) -> Answer:
    """Run a task; a worker that was told to end goes when it has unwound."""
    _busy.append(trace)
    try:
        return task(trace, folder, options)
    finally:
        if interrupts.is_ending():
            interrupts.end_hard(1)
        _busy.pop()


@contextmanager
def _ctrl_c_later() -> Iterator[None]:
    """Hold Ctrl-C back: a worker that begins now is deaf to it until it knows what to do."""
    if os.name != "posix":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _pool(
    waiting: list[Path],
    suspects: list[Path],
    jobs: int,
    context: BaseContext,
    folder: Path,
    options: Options,
    task: Task,
) -> Iterator[tuple[Path, Answer]]:
    """Work off `waiting` from its end, until it is empty or a worker dies.

    No more tasks than workers are handed out, so that a death leaves few suspects: those whose
    task was running then.
    """
    running: dict[Future[Answer], Path] = {}
    with ProcessPoolExecutor(jobs, context, _follow_parent, (tempfile.gettempdir(),)) as pool:
        try:
            while (waiting and not suspects) or running:
                while waiting and not suspects and len(running) < jobs:
                    trace = waiting.pop()
                    try:
                        with _ctrl_c_later():
                            running[
                                pool.submit(_in_worker, task, str(trace), str(folder), options)
                            ] = trace
                    except BrokenExecutor:
                        waiting.append(trace)
                        if not running:
                            return
                        break
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    trace = running.pop(future)
                    error = future.exception()
                    if error is None:
                        yield trace, future.result()
                    elif isinstance(error, BrokenExecutor):
                        suspects.append(trace)
                    else:
                        yield trace, (None, Failure(f"{type(error).__name__}: {error}", None, 1))
        except BaseException:
            # Nobody waits for what is no longer wanted.
            for worker in tuple(getattr(pool, "_processes", None) or {}):
                with suppress(OSError):
                    os.kill(worker, signal.SIGTERM)
            pool.shutdown(wait=True, cancel_futures=True)
            # of workers that had no time to
            source.sweep(folder.glob(".part-*"))
            source.sweep_temporary(options.temp_directory)
            raise


_DEATH = Failure(
    "its worker process died twice",
    "it may have run out of memory: try --jobs 1 or a --memory-limit",
    3,
)


# ---------------------------------------------------------------------------- Dask


def _dask(
    traces: Sequence[Path], folder: Path, options: Options, scheduler: str
) -> Iterator[tuple[Path, Answer]]:
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError:
        raise UsageError(
            "--scheduler needs Dask, which is not installed",
            hint="pip install 'nsys-sql[dask]'",
        ) from None
    own = replace(options, keep_steps=True)
    if "://" not in scheduler and not source.is_file(Path(scheduler)):  # Dask would wait for it
        raise UsageError(
            f"there is no scheduler file {scheduler}",
            hint="give tcp://HOST:PORT, or the file of dask scheduler --scheduler-file",
        )
    given: dict[str, Any] = (
        {"address": scheduler} if "://" in scheduler else {"scheduler_file": scheduler}
    )
    try:
        client = distributed.Client(**given, timeout="30s")
    except (OSError, ValueError, TimeoutError) as error:
        raise UsageError(
            f"the Dask scheduler {scheduler} cannot be reached: {error}",
            hint="give tcp://HOST:PORT, or the file of dask scheduler --scheduler-file",
        ) from None
    with client:
        target = os.path.abspath(folder)  # noqa: PTH100
        futures = {
            client.submit(
                run_task,
                os.path.abspath(trace),  # noqa: PTH100
                target,
                own,
                pure=False,
                retries=_ATTEMPTS - 1,
            ): trace
            for trace in traces
        }
        for future in distributed.as_completed(futures):
            trace = futures[future]
            reason = future.exception()
            if reason is None:
                yield trace, future.result()
            else:
                text = f"{type(reason).__name__}: {reason}"
                yield trace, (None, Failure(text, "look into the logs of the Dask workers", 3))
