"""Write tiny Nsight Systems SQLite exports, in the layout of several exporter versions.

A row is kept as a plain dictionary and laid out only in ``write``: a column that the chosen
version does not have is dropped, and so is a whole table, exactly as an older exporter would drop
them.  No column is declared NOT NULL, because tests need rows that are broken on purpose.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Row = dict[str, Any]

# Exporters from old to new, with the schema version that each writes into its metadata.
SCHEMA_OF_VERSION: dict[str, str | None] = {
    "2020.3": None,
    "2020.4.3": None,
    "2021.5": "2.7.1",
    "2022.2.1": "2.9.1",
    "2022.4.2": "3.0.0",
    "2023.4.4": "3.7.2",
    "2024.6.2": "3.16.1",
    "2025.1.3": "3.17.2",
    "2026.1.1": "3.24.14",
    "2026.2.1": "3.25.0",
    "2026.4": "3.28.1",
}
VERSIONS: tuple[str, ...] = tuple(SCHEMA_OF_VERSION)

INVALID = 4294967295  # how an absent 32-bit id is stored

# The real columns and their order.  `name>=version` came later, `name<version` went away;
# the table's own range stands in TABLE_RANGES.
_PLACE = "deviceId contextId greenContextId>=2023.4.4 streamId correlationId globalPid"
COLUMNS: dict[str, str] = {
    "StringIds": "id value",
    "CUPTI_ACTIVITY_KIND_KERNEL": f"start end {_PLACE} demangledName shortName"
    " mangledName>=2021.5 launchType cacheConfig registersPerThread gridX gridY gridZ"
    " blockX blockY blockZ staticSharedMemory dynamicSharedMemory localMemoryPerThread"
    " localMemoryTotal gridId sharedMemoryExecuted graphNodeId sharedMemoryLimitConfig>=2021.5"
    " qmdBulkReleaseDone>=2026.1.1 qmdPreexitDone>=2026.1.1 qmdLastCtaDone>=2026.1.1"
    " graphId>=2026.1.1 clusterX>=2026.1.1 clusterY>=2026.1.1 clusterZ>=2026.1.1"
    " clusterSchedulingPolicy>=2026.1.1 maxPotentialClusterSize>=2026.1.1"
    " maxActiveClusters>=2026.1.1 sharedMemoryRequestedPercentage>=2026.1.1"
    " tensorSizeMinusOneElements>=2026.2.1",
    "CUPTI_ACTIVITY_KIND_MEMCPY": f"start end {_PLACE} bytes copyKind deprecatedSrcId srcKind"
    " dstKind srcDeviceId srcContextId dstDeviceId dstContextId migrationCause>=2021.5"
    " graphNodeId virtualAddress>=2021.5 copyCount>=2025.1.3",
    "CUPTI_ACTIVITY_KIND_MEMSET": f"start end {_PLACE} value bytes graphNodeId memKind",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": f"start end {_PLACE} graphId graphExecId",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start end eventClass globalTid correlationId nameId"
    " returnValue callchainId>=2020.4.3",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": f"start end {_PLACE} deprecatedSyncType>=2025.1.3"
    " syncType eventId eventSyncId>=2025.1.3",
    "CUPTI_ACTIVITY_KIND_CUDA_EVENT": f"timestamp>=2026.1.1 {_PLACE} eventId eventSyncId>=2025.1.3",
    "NVTX_EVENTS": "start end eventType rangeId category color text globalTid endGlobalTid textId"
    " domainId uint64Value int64Value doubleValue:REAL uint32Value int32Value floatValue:REAL"
    " jsonTextId jsonText binaryData>=2024.6.2 eventId>=2026.4",
    "OSRT_API": "start end eventClass globalTid correlationId<2021.5 nameId returnValue"
    " nestingLevel callchainId argumentsId>=2026.1.1",
    "TARGET_INFO_CUDA_DEVICE": "gpuId cudaId pid uuid>=2026.1.1 numMultiprocessors>=2026.1.1",
    "TARGET_INFO_GPU": "vmId deviceId<2021.5 id>=2021.5 name busLocation isDiscrete"
    " totalMemory>=2021.5 memoryBandwidth>=2021.5 clockRate>=2021.5 smCount>=2021.5"
    " uuid>=2021.5 chipName>=2021.5 cuDevice>=2021.5 computeMajor>=2021.5 computeMinor>=2021.5",
    "TARGET_INFO_CUDA_STREAM": "streamId hwId vmId processId contextId priority flag",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs utcTime localTime systemClockNs>=2026.1.1"
    " sessionStartCntVctNs>=2026.4",
    "PROCESSES": "globalPid pid name",
    "ThreadNames": "nameId priority globalTid",
    "ANALYSIS_DETAILS": "globalVid duration startTime stopTime",
    "EXPORT_META_DATA": "name value",
    "META_DATA_EXPORT": "name value",
    "META_DATA_CAPTURE": "name value",
}
TABLE_RANGES: dict[str, str] = {
    "CUPTI_ACTIVITY_KIND_CUDA_EVENT": ">=2021.5",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": ">=2024.6.2",
    "TARGET_INFO_CUDA_DEVICE": ">=2025.1.3",
    "TARGET_INFO_SESSION_START_TIME": ">=2021.5",
    "PROCESSES": ">=2021.5",
    "ANALYSIS_DETAILS": ">=2021.5",
    "EXPORT_META_DATA": ">=2021.5<2023.4.4",
    "META_DATA_EXPORT": ">=2023.4.4",
    "META_DATA_CAPTURE": ">=2023.4.4",
}
_TEXT = {
    *("value", "text", "jsonText", "binaryData", "name", "uuid", "busLocation", "chipName"),
    *("utcTime", "localTime", "tensorSizeMinusOneElements"),
}
_KERNEL_DEFAULTS: Row = {
    "launchType": 1,
    "cacheConfig": 0,
    "registersPerThread": 32,
    **dict.fromkeys(("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"), 1),
    **dict.fromkeys(
        (
            "staticSharedMemory",
            "dynamicSharedMemory",
            "localMemoryPerThread",
            "localMemoryTotal",
            "gridId",
        ),
        0,
    ),
    "tensorSizeMinusOneElements": "[]",
}


def _holds(condition: str, version: str) -> bool:
    """Whether `>=A<B` (either part may be missing) holds for the version."""
    since, _, until = condition.partition("<")
    since = since.removeprefix(">=")
    at = VERSIONS.index(version)
    return (not since or at >= VERSIONS.index(since)) and (not until or at < VERSIONS.index(until))


def table_exists(table: str, version: str) -> bool:
    """Whether exports of the version can hold the table at all."""
    return _holds(TABLE_RANGES.get(table, ""), version)


def columns_of(table: str, version: str) -> dict[str, str]:
    """Column name -> declared type, in the order of the version."""
    columns: dict[str, str] = {}
    for item in COLUMNS[table].split():
        cut = min((item.index(sign) for sign in (">=", "<") if sign in item), default=len(item))
        name, _, kind = item[:cut].partition(":")
        if _holds(item[cut:], version):
            columns[name] = kind or ("TEXT" if name in _TEXT else "INTEGER")
    return columns


def global_pid(pid: int | None) -> int | None:
    """The export's process number: virtual machine 1, then the pid, then no thread."""
    return None if pid is None else (1 << 48) | (pid << 24)


def global_tid(pid: int | None, tid: int) -> int | None:
    """The export's thread number."""
    process = global_pid(pid)
    return None if process is None else process | tid


def process_of(pid: int) -> int:
    """The process number that the measuring method uses."""
    return (1 << 24) | pid


class TraceBuilder:
    """Collects rows, then writes one export."""

    def __init__(self, version: str = "2026.2.1", lazy: bool = True) -> None:
        if version not in SCHEMA_OF_VERSION:
            raise ValueError(f"unknown exporter version {version!r}")
        self.version = version
        self.lazy = lazy
        self.rows: dict[str, list[Row]] = {table: [] for table in COLUMNS}
        self._string_ids: dict[str, int] = {}

    def raw(self, table: str, **columns: Any) -> TraceBuilder:
        """Add a row as it is."""
        self.rows[table].append(columns)
        return self

    def string(self, text: str) -> int:
        """The id of a text in StringIds."""
        if text not in self._string_ids:
            self._string_ids[text] = len(self._string_ids) + 1
            self.raw("StringIds", id=self._string_ids[text], value=text)
        return self._string_ids[text]

    def _place(
        self, pid: int | None, device: int, context: int, stream: int, corr: int | None
    ) -> Row:
        return {
            "globalPid": global_pid(pid),
            "deviceId": device,
            "contextId": context,
            "streamId": stream,
            "correlationId": corr,
        }

    def kernel(
        self,
        start: int | None,
        end: int | None,
        name: str | None = "ampere_sgemm_128x64_tn",
        *,
        short: str | None = None,
        pid: int | None = 100,
        device: int = 0,
        context: int = 1,
        stream: int = 7,
        corr: int | None = None,
        node: int | None = None,
        **columns: Any,
    ) -> TraceBuilder:
        """A kernel; `node` makes it a node of a CUDA graph."""
        short = short if short is not None else (name or "unnamed")
        return self.raw(
            "CUPTI_ACTIVITY_KIND_KERNEL",
            start=start,
            end=end,
            demangledName=None if name is None else self.string(name),
            shortName=self.string(short),
            graphNodeId=node,
            **_KERNEL_DEFAULTS | self._place(pid, device, context, stream, corr) | columns,
        )

    def memcpy(
        self,
        start: int | None,
        end: int | None,
        *,
        kind: int = 1,
        size: int = 1024,
        pid: int | None = 100,
        device: int = 0,
        context: int = 1,
        stream: int = 7,
        corr: int | None = None,
        node: int | None = None,
        **columns: Any,
    ) -> TraceBuilder:
        """A copy, host to device by default."""
        defaults: Row = {"srcKind": 1, "dstKind": 2, "copyKind": kind, "bytes": size}
        return self.raw(
            "CUPTI_ACTIVITY_KIND_MEMCPY",
            start=start,
            end=end,
            graphNodeId=node,
            **defaults | self._place(pid, device, context, stream, corr) | columns,
        )

    def memset(
        self,
        start: int | None,
        end: int | None,
        *,
        size: int = 1024,
        pid: int | None = 100,
        device: int = 0,
        context: int = 1,
        stream: int = 7,
        corr: int | None = None,
        node: int | None = None,
        **columns: Any,
    ) -> TraceBuilder:
        """A memory set."""
        defaults: Row = {"value": 0, "bytes": size, "memKind": 2}
        return self.raw(
            "CUPTI_ACTIVITY_KIND_MEMSET",
            start=start,
            end=end,
            graphNodeId=node,
            **defaults | self._place(pid, device, context, stream, corr) | columns,
        )

    def graph_exec(
        self,
        start: int | None,
        end: int | None,
        *,
        pid: int | None = 100,
        device: int = 0,
        context: int = 1,
        stream: int = 7,
        corr: int | None = None,
        graph: int = 1,
    ) -> TraceBuilder:
        """A whole execution of a CUDA graph."""
        return self.raw(
            "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
            start=start,
            end=end,
            graphId=graph,
            graphExecId=graph,
            **self._place(pid, device, context, stream, corr),
        )

    def call(
        self,
        start: int | None,
        end: int | None,
        name: str = "cudaLaunchKernel_v7000",
        *,
        pid: int | None = 100,
        tid: int = 1,
        corr: int | None = None,
        event_class: int = 0,
    ) -> TraceBuilder:
        """A CUDA API call; event class 67 is the copy that backtraces leave."""
        return self.raw(
            "CUPTI_ACTIVITY_KIND_RUNTIME",
            start=start,
            end=end,
            eventClass=event_class,
            globalTid=global_tid(pid, tid),
            correlationId=corr,
            nameId=self.string(name),
            returnValue=0,
        )

    def os_call(
        self, start: int, end: int, name: str, *, pid: int | None = 100, tid: int = 1
    ) -> TraceBuilder:
        """A traced call of the operating system runtime."""
        return self.raw(
            "OSRT_API",
            start=start,
            end=end,
            eventClass=27,
            globalTid=global_tid(pid, tid),
            nameId=self.string(name),
            returnValue=0,
            callchainId=0,
        )

    def wait(
        self,
        *,
        stream: int,
        event: int,
        corr: int | None,
        sync_id: int | None = None,
        start: int = 0,
        end: int = 0,
        pid: int | None = 100,
        device: int = 0,
        context: int = 1,
    ) -> TraceBuilder:
        """A synchronisation row: an event wait, unless stream or event is INVALID."""
        return self.raw(
            "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
            start=start,
            end=end,
            syncType=0,
            eventId=event,
            eventSyncId=sync_id,
            **self._place(pid, device, context, stream, corr),
        )

    def record(
        self,
        *,
        stream: int,
        event: int,
        corr: int | None,
        sync_id: int | None = None,
        timestamp: int | None = 0,
        pid: int | None = 100,
        device: int = 0,
        context: int = 1,
    ) -> TraceBuilder:
        """An event record on a stream."""
        return self.raw(
            "CUPTI_ACTIVITY_KIND_CUDA_EVENT",
            timestamp=timestamp,
            eventId=event,
            eventSyncId=sync_id,
            **self._place(pid, device, context, stream, corr),
        )

    def nvtx(
        self,
        start: int | None,
        end: int | None,
        text: str,
        *,
        pid: int | None = 100,
        tid: int = 1,
        event_type: int = 59,
        domain: int = 0,
        registered: bool = False,
    ) -> TraceBuilder:
        """A range (59 push/pop, 60 start/end) or another NVTX row."""
        rows = self.rows["NVTX_EVENTS"]
        return self.raw(
            "NVTX_EVENTS",
            start=start,
            end=end,
            eventType=event_type,
            rangeId=len(rows) + 1 if event_type == 60 else None,
            text=None if registered else text,
            textId=self.string(text) if registered else None,
            globalTid=global_tid(pid, tid),
            domainId=domain,
            eventId=len(rows) + 1,
        )

    def cuda_device(self, pid: int, ordinal: int, gpu: int | None) -> TraceBuilder:
        """Which GPU a process means by a CUDA ordinal."""
        return self.raw(
            "TARGET_INFO_CUDA_DEVICE", pid=pid, cudaId=ordinal, gpuId=gpu, numMultiprocessors=108
        )

    def gpu(self, number: int, name: str = "GPU", **columns: Any) -> TraceBuilder:
        """A GPU of the machine."""
        defaults: Row = {"vmId": 0, "id": number, "deviceId": number, "name": name}
        return self.raw("TARGET_INFO_GPU", **defaults | columns)

    def process(self, pid: int, name: str) -> TraceBuilder:
        """A process of the machine."""
        return self.raw("PROCESSES", globalPid=global_pid(pid), pid=pid, name=name)

    def duration(self, nanoseconds: int) -> TraceBuilder:
        """The length of the session, up to which exporters close open ranges."""
        return self.raw(
            "ANALYSIS_DETAILS", globalVid=1 << 48, duration=nanoseconds, startTime=0, stopTime=0
        )

    def session_start(self, utc_ns: int) -> TraceBuilder:
        """The wall clock of time zero."""
        return self.raw("TARGET_INFO_SESSION_START_TIME", utcEpochNs=utc_ns)

    def meta(self, name: str, value: str) -> TraceBuilder:
        """A row of the export's metadata, whatever its table is called in the version."""
        for table in ("EXPORT_META_DATA", "META_DATA_EXPORT"):
            self.raw(table, name=name, value=value)
        return self

    def capture_meta(self, name: str, value: str) -> TraceBuilder:
        """A row of the capture's metadata."""
        return self.raw("META_DATA_CAPTURE", name=name, value=value)

    def _own_meta(self) -> Iterable[Row]:
        schema = SCHEMA_OF_VERSION[self.version]
        if schema is None:
            return
        values = {"EXPORT_PRODUCT_VERSION": f"{self.version}.0", "EXPORT_SCHEMA_VERSION": schema}
        parts = zip(("MAJOR", "MINOR", "MICRO"), schema.split("."), strict=True)
        values |= {f"EXPORT_SCHEMA_VERSION_{part}": number for part, number in parts}
        if _holds(">=2023.4.4", self.version):
            values |= {"EXPORT_PARAM_TIME_NORMALIZE": "false", "EXPORT_PARAM_TIME_SHIFT": "0"}
        for table in ("EXPORT_META_DATA", "META_DATA_EXPORT"):
            for row in self.rows[table]:
                values.pop(row.get("name"), None)
        for name, value in values.items():
            yield {"name": name, "value": value}

    def write(
        self,
        path: str | Path,
        shuffle: int | bool = False,
        suffix: str = "",
        drop: Iterable[str] = (),
    ) -> Path:
        """Write the file; `shuffle` reorders rows (an integer seeds it), `suffix` ends the names
        of the CUPTI tables, `drop` leaves tables out."""
        path = Path(path)
        path.unlink(missing_ok=True)
        order = random.Random(int(shuffle))
        left_out = set(drop)
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA synchronous = OFF")  # nobody reads it after a power failure
        connection.execute("BEGIN")
        for table, own_rows in self.rows.items():
            if not table_exists(table, self.version) or table in left_out:
                continue
            rows = list(own_rows)
            if table in ("EXPORT_META_DATA", "META_DATA_EXPORT"):
                rows.extend(self._own_meta())
            if self.lazy and not rows:
                continue
            if shuffle:
                order.shuffle(rows)
            columns = columns_of(table, self.version)
            name = table + (suffix if table.startswith("CUPTI_") else "")
            declared = ", ".join(
                f'"{column}" {kind}{" PRIMARY KEY" if table == "StringIds" and not at else ""}'
                for at, (column, kind) in enumerate(columns.items())
            )
            connection.execute(f'CREATE TABLE "{name}" ({declared})')
            marks = ", ".join("?" * len(columns))
            connection.executemany(
                f'INSERT INTO "{name}" VALUES ({marks})',
                [[row.get(column) for column in columns] for row in rows],
            )
        connection.commit()
        connection.close()
        return path
