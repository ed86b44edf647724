"""The measuring method once more, as slow and plain Python.

Nothing here is shared with the SQL: rows are read by column name with sqlite3, every measure is
written as its definition reads, and nothing is fast.  The SQL is compared with it to the
nanosecond.

Where the method leaves a choice, this module takes:

* rows whose process is not known (NULL) share streams and an issue order of their own, but they
  join nothing across tables: no call, no record; and an id that is NULL joins nothing either;
* an operation, record or wait without a correlation id has no place in host issue order: it has
  no predecessor, is nobody's predecessor, and moves no state;
* last ties (equal end, correlation id and start) go to the kind (kernel, copy, set, graph), then
  to the row order;
* an operation is inside a CUDA graph when it carries a graph node id, or when its call is a
  GraphLaunch; "the launch" is every such operation of that (process, correlation id);
* each operation of a launch follows what precedes the launch on the operation's own stream;
* every wait since the last operation of a stream went into its state, also one that lost, and
  with it every wait that went into the state that its record saw;
* records and waits are placed by correlation id alone: their times are not read, but a row that
  ends before it starts is invalid there as everywhere;
* an NVTX range whose end is NULL is a valid (unclosed) range; one that ends before it starts is
  not a range; nesting compares closed bounds, and equal ranges count once;
* `nccl:` means kernels of class nccl whose name matches; names match in whole, with `*` as the
  only wildcard;
* an iteration without an end sorts after the ones with the same start;
* "the last start" of the profiler is the one with the greatest start, then the greatest end; a
  stop comes after it when it begins after that start began.
"""

from __future__ import annotations

import re
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

NO_IDS = (None, 0, 4294967295)
INVALID = 4294967295
_OPERATION, _RECORD, _WAIT = range(3)  # the order under one correlation id
KINDS = ("kernel", "memcpy", "memset", "graph")
METRICS = (
    "iteration",
    "device_busy",
    "device_idle",
    "noncomm_busy",
    "comm_busy",
    "compute_busy",
    "compute_absent",
    "occupied_not_computing",
    "launch_starved",
    "blocking",
    "dependency_stalled",
    "unattributed",
    "comm_exposed",
    "comm_blocking",
    "comm_overlapped",
    "launch_starved_shadowed",
)

Interval = tuple[int, int]
Stream = tuple[int | None, int | None, int | None]
Classify = Callable[[str | None], tuple[str, str]]


# ---------------------------------------------------------------------------------- intervals
def union(intervals: Iterable[Interval]) -> list[Interval]:
    """Disjoint, sorted, non-empty intervals that cover the same instants."""
    merged: list[Interval] = []
    for start, end in sorted(i for i in intervals if i[1] > i[0]):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def measure(intervals: Iterable[Interval]) -> int:
    """How many nanoseconds the intervals cover together."""
    return sum(end - start for start, end in union(intervals))


def clip(interval: Interval, window: Interval) -> Interval:
    """The part of the interval inside the window; possibly empty."""
    start = max(interval[0], window[0])
    return (start, max(start, min(interval[1], window[1])))


def clip_all(intervals: Iterable[Interval], window: Interval) -> list[Interval]:
    """Each interval clipped to the window."""
    return [clip(interval, window) for interval in intervals]


def minus(left: Iterable[Interval], right: Iterable[Interval]) -> int:
    """How much of the left union is in no interval of the right."""
    left, right = list(left), list(right)
    return measure(left + right) - measure(right)


# --------------------------------------------------------------------------------------- rows
@dataclass(frozen=True)
class Operation:
    """A valid operation of a device."""

    kind: str
    row_id: int
    start: int
    end: int
    process: int | None
    device: int
    context: int | None
    stream: int | None
    corr: int | None
    name: str | None
    short_name: str | None
    klass: str
    role: str
    in_graph: bool

    @property
    def stream_key(self) -> Stream:
        return (self.process, self.context, self.stream)

    @property
    def last_tie(self) -> tuple[int, int]:
        return (KINDS.index(self.kind), self.row_id)


@dataclass(frozen=True)
class Call:
    """A valid CUDA API call (no backtrace copy)."""

    row_id: int
    start: int
    end: int
    process: int | None
    thread: int | None
    corr: int | None
    name: str


@dataclass(frozen=True)
class Range:
    """An NVTX range."""

    row_id: int
    start: int
    end: int | None
    process: int | None
    thread: int | None
    text: str | None


@dataclass(frozen=True)
class State:
    """What the next operation of a stream follows, and how it is known."""

    op: Operation | None = None
    evidence: frozenset[str] = frozenset()


@dataclass
class Window:
    """An iteration of a device."""

    device: int
    iteration: int
    start: int
    end: int | None
    status: str = "steady"


@dataclass
class Gap:
    """An interval without compute, and the pieces it is cut into."""

    device: int
    start: int
    end: int
    next_op: Operation
    issue: int | None
    producer: Operation | None
    evidence: str
    launch_starved: Interval
    blocking: Interval
    dependency_stalled: Interval
    labels: list[tuple[int, int, Operation]] = field(default_factory=list)

    @property
    def shadowed(self) -> Interval:
        if self.producer is None:
            return (self.start, self.start)
        return clip((self.producer.start, self.producer.end), self.launch_starved)

    @property
    def comm_labels(self) -> list[Interval]:
        return [(a, b) for a, b, op in self.labels if op.role == "comm"]

    def row(self) -> dict[str, Any]:
        """The row of the `gaps` recipe."""
        producer = self.producer
        return {
            "device": self.device,
            "gap_start_ns": self.start,
            "gap_end_ns": self.end,
            "launch_starved_ns": measure([self.launch_starved]),
            "blocking_ns": measure([self.blocking]),
            "comm_blocking_ns": measure(self.comm_labels),
            "dependency_stalled_ns": measure([self.dependency_stalled]),
            "launch_starved_shadowed_ns": measure([self.shadowed]),
            "next_kernel": self.next_op.name,
            "issue_ns": self.issue,
            "producer_name": producer and producer.name,
            "producer_class": producer and producer.klass,
            "producer_role": producer and producer.role,
            "producer_start_ns": producer and producer.start,
            "producer_end_ns": producer and producer.end,
            "evidence": self.evidence,
        }


def none_last(value: int | None) -> tuple[bool, int]:
    """A sort key that puts what is missing behind everything."""
    return (value is None, value or 0)


def better(left: Operation | None, right: Operation | None) -> Operation | None:
    """The better of two predecessors."""
    candidates = [op for op in (left, right) if op is not None]
    key = lambda op: (-op.end, none_last(op.corr), op.start, op.last_tie)  # noqa: E731
    return min(candidates, key=key, default=None)


def bare_call_name(name: str) -> str:
    """The name without the suffixes that tell its ABI and default stream."""
    return re.sub(r"(_v\d+|_ptsz|_ptds)*$", "", name)


def matches(pattern: str, text: str | None) -> bool:
    """Whole-text match; `*` is any run of characters."""
    if text is None:
        return False
    regex = ".*".join(re.escape(part) for part in pattern.split("*"))
    return re.fullmatch(regex, text, re.DOTALL) is not None


class Oracle:
    """One export, measured by the definition."""

    def __init__(self, path: str | Path, classify: Classify) -> None:
        self.classify = classify
        self._path = path
        self._tables = {
            re.sub(r"_V\d+$", "", row["name"]): row["name"]
            for row in self._query("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
        self._gpu_of = {
            (row["pid"], row["cudaId"]): row["gpuId"]
            for row in self._rows("TARGET_INFO_CUDA_DEVICE")
        }
        self.strings = {row["id"]: row["value"] for row in self._rows("StringIds")}
        self.calls = self._read_calls()
        self._calls_by_id: dict[tuple[int | None, int | None], list[Call]] = defaultdict(list)
        for call in self.calls:
            self._calls_by_id[call.process, call.corr].append(call)
        self.ranges = self._read_ranges()
        self.operations = self._read_operations()
        self.drives: dict[int | None, set[int]] = defaultdict(set)
        for op in self.operations:
            self.drives[op.process].add(op.device)
        self.launches: dict[tuple[int | None, int], list[Operation]] = defaultdict(list)
        for op in self.operations:
            if op.in_graph and op.corr is not None:
                self.launches[op.process, op.corr].append(op)
        self.before = self._walk_streams()

    # ------------------------------------------------------------------------------- reading
    def _query(self, sql: str) -> list[dict[str, Any]]:
        with closing(sqlite3.connect(f"file:{self._path}?mode=ro", uri=True)) as connection:
            connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
            found = connection.execute(sql)
            names = [column[0] for column in found.description]
            return [dict(zip(names, row, strict=True)) for row in found]

    def _rows(self, table: str) -> list[dict[str, Any]]:
        if table not in self._tables:
            return []
        return self._query(f'SELECT rowid AS _row, * FROM "{self._tables[table]}"')

    def _timed(self, table: str) -> list[dict[str, Any]]:
        """The valid rows of a table whose rows need a start and an end."""
        return [
            row
            for row in self._rows(table)
            if row["start"] is not None and row["end"] is not None and row["end"] >= row["start"]
        ]

    @staticmethod
    def _process(number: int | None) -> int | None:
        return None if number is None else number >> 24

    def _read_calls(self) -> list[Call]:
        return [
            Call(
                row["_row"],
                row["start"],
                row["end"],
                self._process(row["globalTid"]),
                row["globalTid"],
                row["correlationId"],
                self.strings.get(row["nameId"], ""),
            )
            for row in self._timed("CUPTI_ACTIVITY_KIND_RUNTIME")
            if row["eventClass"] != 67
        ]

    def _read_ranges(self) -> list[Range]:
        ranges = []
        for row in self._rows("NVTX_EVENTS"):
            start, end = row["start"], row["end"]
            if row["eventType"] not in (59, 60, 70, 71) or start is None:
                continue
            if end is not None and end < start:
                continue
            text = row["text"] if row["text"] is not None else self.strings.get(row["textId"])
            thread = row["globalTid"]
            ranges.append(Range(row["_row"], start, end, self._process(thread), thread, text))
        return ranges

    def _device(self, process: int | None, ordinal: int) -> int:
        gpu = None if process is None else self._gpu_of.get((process & 0xFFFFFF, ordinal))
        return ordinal if gpu is None else int(gpu)

    def _read_operations(self) -> list[Operation]:
        operations: list[Operation] = []
        for kind, table in (
            ("kernel", "CUPTI_ACTIVITY_KIND_KERNEL"),
            ("memcpy", "CUPTI_ACTIVITY_KIND_MEMCPY"),
            ("memset", "CUPTI_ACTIVITY_KIND_MEMSET"),
            ("graph", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"),
        ):
            taken = {(op.process, op.corr) for op in operations if op.corr is not None}
            for row in self._timed(table):
                process, corr = self._process(row["globalPid"]), row["correlationId"]
                if kind == "graph" and (process, corr) in taken:
                    continue  # traced nodes win over the whole-graph row
                name = short_name = None
                klass, role = {
                    "memcpy": ("memcpy", "memcpy"),
                    "memset": ("memset", "memset"),
                    "graph": ("graph", "compute"),
                }.get(kind, ("", ""))
                in_graph = False
                if kind == "kernel":
                    short_name = self.strings.get(row["shortName"])
                    name = self.strings.get(row["demangledName"], short_name)
                    klass, role = self.classify(name)
                if kind != "graph":
                    call = self.call_of(process, corr)
                    launched = call is not None and "GraphLaunch" in (call.name or "")
                    in_graph = row["graphNodeId"] is not None or launched
                operations.append(
                    Operation(
                        kind,
                        row["_row"],
                        row["start"],
                        row["end"],
                        process,
                        self._device(process, row["deviceId"]),
                        row["contextId"],
                        row["streamId"],
                        corr,
                        name,
                        short_name,
                        klass,
                        role,
                        in_graph,
                    )
                )
        return operations

    # ------------------------------------------------------------------------ host issue order
    def call_of(self, process: int | None, corr: int | None) -> Call | None:
        """The outermost call of (process, correlation id)."""
        if process is None or corr is None:
            return None
        calls = self._calls_by_id.get((process, corr), [])
        return min(calls, key=lambda call: (call.start, -call.end, call.row_id), default=None)

    def issue(self, op: Operation) -> int | None:
        """When the host had issued the operation, or None where that is not known."""
        call = self.call_of(op.process, op.corr)
        if call is None or call.start > op.start:
            return None
        return min(call.end, op.start)

    def _walk_streams(self) -> dict[Operation, State]:
        """What precedes each operation on its stream, by walking each process in issue order."""
        waits, records = [], []
        for row in self._rows("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"):
            if INVALID not in (row["streamId"], row["eventId"]):
                waits.append(row)
        records = self._rows("CUPTI_ACTIVITY_KIND_CUDA_EVENT")
        every_row = self._rows("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION") + records
        ids_exist = any(row.get("eventSyncId") not in NO_IDS for row in every_row)
        id_column = "eventSyncId" if ids_exist else "eventId"

        items: dict[tuple[int | None, int, Stream], list[Operation]] = defaultdict(list)
        for op in self.operations:
            if op.corr is not None:
                items[op.process, op.corr, op.stream_key].append(op)
        queue: dict[int | None, list[tuple[int, int, int, Any]]] = defaultdict(list)
        for (process, corr, _), item in items.items():
            queue[process].append((corr, _OPERATION, 0, item))
        for rank, rows in ((_RECORD, records), (_WAIT, waits)):
            for row in rows:
                if row["correlationId"] is not None:
                    queue[self._process(row["globalPid"])].append(
                        (row["correlationId"], rank, row["_row"], row)
                    )

        before: dict[Operation, State] = {op: State() for op in self.operations}
        for process, steps in queue.items():
            state: dict[Stream, State] = defaultdict(State)
            records_of: dict[int, list[tuple[int, State]]] = defaultdict(list)
            for corr, rank, _, what in sorted(steps, key=lambda step: step[:3]):
                if rank == _OPERATION:
                    stream = what[0].stream_key
                    best = None
                    for op in what:
                        before[op] = state[stream]
                        best = better(best, op)
                    state[stream] = State(best)
                    continue
                stream = (process, what["contextId"], what["streamId"])
                event = what[id_column]
                if rank == _RECORD:
                    if not ids_exist or event not in NO_IDS:
                        records_of[event].append((corr, state[stream]))
                    continue
                # a record of the very call that waits was not issued before it
                before_it = [saw for issued, saw in records_of[event] if issued < corr]
                if not before_it or process is None:
                    state[stream] = State(state[stream].op, state[stream].evidence | {"unresolved"})
                else:
                    state[stream] = State(
                        better(state[stream].op, before_it[-1].op),
                        state[stream].evidence
                        | before_it[-1].evidence
                        | {"resolved" if ids_exist else "inferred"},
                    )
        return before

    def is_later(self, op: Operation) -> bool:
        """Whether the operation is inside a graph and not among the first ones of its launch."""
        if not op.in_graph or op.corr is None:
            return False
        launch = self.launches[op.process, op.corr]
        first_start = min(other.start for other in launch)
        first_end = min(other.end for other in launch)
        return not (op.start < first_end or op.start == first_start)

    def producer(self, op: Operation) -> Operation | None:
        """What the operation had to follow."""
        return None if self.is_later(op) else self.before[op].op

    def followed(self, op: Operation) -> Operation | None:
        """Its producer as the walk of the labels sees it."""
        if not self.is_later(op):
            return self.producer(op)
        if op.end == op.start or op.corr is None:
            return None
        best = None
        for other in self.launches[op.process, op.corr]:
            if other is not op and other.end <= op.start:
                best = better(best, other)
        return best

    def labels(self, op: Operation, start: int, end: int) -> list[tuple[int, int, Operation]]:
        """Which operation each instant of [start, end) is blamed on, beginning at `op`."""
        if start >= end:
            return []
        parts = []
        followed = self.followed(op)
        early = clip((start, end), (start, min(end, op.start)))  # the instants t < op.start
        if followed is None:
            early = (start, start)
        else:
            early = clip(early, (start, followed.end))  # ... at which `followed` has not ended
            parts += self.labels(followed, *early)
        if early[1] < end:
            parts.append((early[1], end, op))
        return parts

    def evidence(self, op: Operation) -> str:
        """How the producer of the operation is known."""
        if self.issue(op) is None:
            return "no_launch"
        if self.is_later(op):
            return "graph"
        known = self.before[op]
        if "unresolved" in known.evidence:
            return "unresolved"
        if "inferred" in known.evidence:
            return "inferred"
        return "none" if known.op is None else "resolved"

    # ------------------------------------------------------------------------------------ gaps
    def first_instant(self) -> int:
        """The earliest start of any operation, call or range of the report."""
        things: list[Any] = [*self.operations, *self.calls, *self.ranges]
        return min(int(thing.start) for thing in things)

    def gaps(self) -> list[Gap]:
        """Every interval without compute, of every device, in order."""
        gaps = []
        for device in sorted({op.device for op in self.operations}):
            compute = [
                op
                for op in self.operations
                if op.device == device and op.role == "compute" and op.end > op.start
            ]
            gap_start = self.first_instant()
            for busy in union((op.start, op.end) for op in compute):
                if busy[0] > gap_start:
                    gaps.append(self._cut(device, gap_start, busy[0], compute))
                gap_start = busy[1]
        return gaps

    def _cut(self, device: int, g0: int, g1: int, compute: list[Operation]) -> Gap:
        next_op = min(
            (op for op in compute if op.start == g1),
            key=lambda op: (
                none_last(op.corr),
                none_last(op.process),
                none_last(op.context),
                none_last(op.stream),
                op.last_tie,
            ),
        )
        issue, producer = self.issue(next_op), self.producer(next_op)
        cut = g0 if issue is None else max(g0, min(issue, g1))
        cut_2 = cut if producer is None else max(cut, min(producer.end, g1))
        gap = Gap(
            device,
            g0,
            g1,
            next_op,
            issue,
            producer,
            self.evidence(next_op),
            (g0, cut),
            (cut, cut_2),
            (cut_2, g1),
        )
        if producer is not None:
            gap.labels = self.labels(producer, cut, cut_2)
        return gap

    # ------------------------------------------------------------------------------ iterations
    def windows(
        self,
        anchor: str,
        per_iteration: int = 1,
        skip_first: int = 0,
        skip_last: int = 0,
        iterations: str | None = None,
    ) -> list[Window]:
        """Every window of every device, with its status."""
        kind, _, pattern = anchor.partition(":")
        duration = self._closing_time()
        result = []
        for device in sorted({op.device for op in self.operations}):
            if kind == "nvtx":
                bounds = self._nvtx_bounds(device, pattern, duration)
            else:
                bounds = self._kernel_bounds(device, kind, pattern, per_iteration)
            bounds.sort(key=lambda window: (window[0], none_last(window[1])))
            for ordinal, (start, end) in enumerate(bounds):
                window = Window(device, ordinal, start, end)
                unclosed = end is None or (
                    kind == "nvtx" and duration is not None and end >= duration
                )
                if unclosed:
                    window.status = "unclosed"
                elif not self._has_work(window):
                    window.status = "no_device_work"
                elif not self._inside_profiler(window):
                    window.status = "profiler_boundary"
                elif self._captures_graph(window):
                    window.status = "graph_capture"
                elif ordinal < skip_first:
                    window.status = "warmup"
                elif ordinal >= len(bounds) - skip_last:
                    window.status = "cooldown"
                elif iterations is not None:
                    first, _, last = iterations.partition(":")
                    if ordinal < int(first or 0) or (last and ordinal >= int(last)):
                        window.status = "outside"
                result.append(window)
        return result

    def _closing_time(self) -> int | None:
        """When exporters close what is open, or None where that cannot be told."""
        meta = {
            row["name"] or "": row["value"]
            for table in ("META_DATA_EXPORT", "EXPORT_META_DATA")
            for row in self._rows(table)
        }
        for name, value in meta.items():
            if name.endswith("_TIME_SHIFT") and value not in (None, "", "0"):
                return None
            if name.endswith("_TIME_NORMALIZE") and value not in (None, "", "0", "false"):
                return None
        durations = [row["duration"] for row in self._rows("ANALYSIS_DETAILS")]
        return max(durations, default=None)

    def _nvtx_bounds(
        self, device: int, pattern: str, duration: int | None
    ) -> list[tuple[int, int | None]]:
        bounds: list[tuple[int, int | None]] = []
        matching = [
            r
            for r in self.ranges
            if device in self.drives.get(r.process, ()) and matches(pattern, r.text)
        ]
        closed = [
            r for r in matching if r.end is not None and (duration is None or r.end < duration)
        ]
        for inner in matching:
            contained = inner in closed and any(
                outer.thread == inner.thread
                and outer.start <= inner.start
                and inner.end <= outer.end  # type: ignore[operator]
                and (
                    (outer.start, outer.end) != (inner.start, inner.end)
                    or outer.row_id < inner.row_id
                )
                for outer in closed
            )
            # an open range nests in none, and of equal ones the first is the window
            repeated = inner not in closed and any(
                (outer.process, outer.thread, outer.start, outer.end)
                == (inner.process, inner.thread, inner.start, inner.end)
                and outer.row_id < inner.row_id
                for outer in matching
            )
            if not contained and not repeated:
                bounds.append((inner.start, inner.end))
        return bounds

    def _kernel_bounds(
        self, device: int, kind: str, pattern: str, per_iteration: int
    ) -> list[tuple[int, int | None]]:
        starts = sorted(
            op.start
            for op in self.operations
            if op.device == device
            and op.kind == "kernel"
            and (kind == "kernel" or op.klass == "nccl")
            and (matches(pattern, op.name) or matches(pattern, op.short_name))
        )
        edges: list[int | None] = [*starts[::per_iteration], None]
        return [(start, end) for start, end in pairwise(edges) if start is not None]

    def _has_work(self, window: Window) -> bool:
        return any(
            op.device == window.device and window.start <= op.start < (window.end or 0)
            if window.end is not None
            else False
            for op in self.operations
        )

    def _calls_on(self, device: int, *names: str) -> list[Call]:
        return [
            call
            for call in self.calls
            if device in self.drives.get(call.process, ()) and bare_call_name(call.name) in names
        ]

    def _inside_profiler(self, window: Window) -> bool:
        starts = self._calls_on(window.device, "cudaProfilerStart", "cuProfilerStart")
        stops = self._calls_on(window.device, "cudaProfilerStop", "cuProfilerStop")
        if starts:
            begun = [call for call in starts if call.start <= window.start]
            if not begun:
                return False
            last = max(begun, key=lambda call: (call.start, call.end))
            if last.end > window.start:
                return False
            stops = [call for call in stops if call.start > last.start]
        first_stop = min((call.start for call in stops), default=None)
        return first_stop is None or window.end is None or first_stop >= window.end

    def _captures_graph(self, window: Window) -> bool:
        for begin in self.calls:
            if "BeginCapture" not in begin.name or window.end is None:
                continue
            if window.device not in self.drives.get(begin.process, ()):
                continue
            ends = [
                call
                for call in self.calls
                if call.thread == begin.thread
                and "EndCapture" in call.name
                and call.start >= begin.start
            ]
            end = min(ends, key=lambda call: (call.start, call.end), default=None)
            if begin.start < window.end and (end is None or end.end > window.start):
                return True
        return False

    # ---------------------------------------------------------------------------------- budget
    def budget(self, window: Window) -> dict[str, int]:
        """Every metric of one window of one device."""
        assert window.end is not None
        bounds = (window.start, window.end)
        ops = [op for op in self.operations if op.device == window.device]

        def of(*, comm: bool) -> list[Interval]:
            return clip_all(
                (
                    (op.start, op.end)
                    for op in ops
                    if op.kind in ("kernel", "graph") and (op.role == "comm") == comm
                ),
                bounds,
            )

        every = clip_all(((op.start, op.end) for op in ops), bounds)
        comm = of(comm=True)
        other = clip_all(((op.start, op.end) for op in ops if op.role != "comm"), bounds)
        compute = clip_all(((op.start, op.end) for op in ops if op.role == "compute"), bounds)
        gaps = [gap for gap in self.all_gaps if gap.device == window.device]

        values = {"iteration": window.end - window.start}
        values["device_busy"] = measure(every)
        values["device_idle"] = values["iteration"] - values["device_busy"]
        values["noncomm_busy"] = measure(of(comm=False))
        values["comm_busy"] = measure(comm)
        values["compute_busy"] = measure(compute)
        values["compute_absent"] = values["iteration"] - values["compute_busy"]
        values["occupied_not_computing"] = values["device_busy"] - values["compute_busy"]
        values["launch_starved"] = measure(clip_all((g.launch_starved for g in gaps), bounds))
        values["blocking"] = measure(clip_all((g.blocking for g in gaps), bounds))
        values["dependency_stalled"] = measure(
            clip_all((g.dependency_stalled for g in gaps), bounds)
        )
        values["unattributed"] = (
            values["compute_absent"]
            - values["launch_starved"]
            - values["blocking"]
            - values["dependency_stalled"]
        )
        values["comm_exposed"] = minus(comm, other)
        values["comm_blocking"] = measure(
            clip_all((part for g in gaps for part in g.comm_labels), bounds)
        )
        values["comm_overlapped"] = values["comm_busy"] - values["comm_exposed"]
        values["launch_starved_shadowed"] = measure(clip_all((g.shadowed for g in gaps), bounds))
        return values

    @property
    def all_gaps(self) -> list[Gap]:
        """The gaps, cut once."""
        if not hasattr(self, "_gaps"):
            self._gaps = self.gaps()
        return self._gaps

    def budget_rows(self, windows: list[Window]) -> list[dict[str, int]]:
        """The rows of the `budget-windows` recipe."""
        return [
            {
                "device": window.device,
                "iteration": window.iteration,
                "start_ns": window.start,
                "end_ns": window.end or 0,
                **{f"{name}_ns": value for name, value in self.budget(window).items()},
            }
            for window in windows
            if window.status == "steady"
        ]
