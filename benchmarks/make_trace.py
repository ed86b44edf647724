"""Write a big synthetic export, for timing: python benchmarks/make_trace.py OUT.sqlite --kernels N

The shape is that of a training run that keeps its streams full: 70 % of the kernels are compute on
one FIFO stream per device, 15 % on a second one, 15 % NCCL on two streams that the compute stream
waits for; 5 % copies, 4 % records and 4 % waits; nested NVTX ranges; as many API rows as kernels,
records, waits and copies together. Nearly every compute kernel ends a gap of its own, since launch
gaps are real and no analysis may count on few merged intervals.

Everything is integer arithmetic inside SQLite, so the same arguments give the same file. The
truth is not known; tests/simulator.py is for that.
"""

from __future__ import annotations

import argparse
import sqlite3
import time
from pathlib import Path

SCHEMA_OF_VERSION = {
    "2022.4.2": "3.0.0",
    "2025.1.3": "3.17.2",
    "2026.2.1": "3.25.0",
}
STEP_KERNELS = 15_000  # of one device and step
BLOCK = 100  # kernels of one repeating pattern: 70 main, 15 side, 15 communication

NAMES = (
    "nvjet_tst_256x128_64x4_2x1_v_bz_coopA_bias_TNT",
    "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_TNT",
    "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4>, false, true>"
    "(flash::Flash_fwd_params)",
    "void at::native::vectorized_elementwise_kernel<(int)4,"
    " at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char *, 3>>(int, T2, T3)",
    "void transformer_engine::normalization::rmsnorm_fwd_tuned_kernel<...>",
    "triton_poi_fused_mul_silu_slice_1",
    "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>, float>(int)",
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64_execute_kernel__5x_cublas",
)
NCCL_NAMES = (
    "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)",
    "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)",
    "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)",
)
CALLS = (
    "cudaLaunchKernel_v7000",
    "cudaMemcpyAsync_v3020",
    "cudaEventRecord_v3020",
    "cudaStreamWaitEvent_v3020",
)

# One row per kernel: number n in its device d. A block of 100 kernels lasts 1 ms and is issued in
# this order: 35 on the main stream, events, 15 on the side stream, 8 NCCL, 35 on the main stream,
# 7 NCCL, events, 5 copies. Slots of one stream never overlap, and start after what they wait for;
# h is a cheap hash that makes lengths uneven.
KERNEL_ROWS = """
    WITH RECURSIVE device(d) AS (
        SELECT 0 UNION ALL SELECT d + 1 FROM device WHERE d + 1 < :devices
    ),
    number(n) AS (SELECT :low UNION ALL SELECT n + 1 FROM number WHERE n + 1 < :high),
    numbered AS (
        SELECT
            d,
            n,
            n / 100 AS block,
            n % 100 AS at,
            (n * 2654435761 + d * 40503) % 4294967296 >> 16 AS h
        FROM number, device
    ),
    placed AS (
        SELECT
            *,
            10000000 + block * 1000000 AS block_ns,
            CASE WHEN at < 70 THEN 7 WHEN at < 85 THEN 13 WHEN at < 93 THEN 20 ELSE 24 END
                AS stream,
            10000000 + block * 1000000 + h % 400 + CASE
                WHEN at < 35 THEN at * 12000
                WHEN at < 70 THEN 500000 + (at - 35) * 12000
                WHEN at < 85 THEN 424000 + (at - 70) * 5000
                WHEN at < 93 THEN 440000 + (at - 85) * 14000
                ELSE 600000 + (at - 93) * 50000
            END AS slot_ns,
            CASE
                WHEN at < 70 THEN 9500 + h % 1900
                WHEN at < 85 THEN 3000 + h % 1500
                WHEN at < 93 THEN 12000 + h % 1500
                ELSE 30000 + h % 15000
            END AS length_ns,
            block * 120 + CASE
                WHEN at < 35 THEN at + 1
                WHEN at < 70 THEN at + 28
                WHEN at < 85 THEN at - 30
                WHEN at < 93 THEN at - 30
                ELSE at + 5
            END AS correlation,
            CASE WHEN at < 85 THEN 1 + h % 8 ELSE 9 + block % 3 END AS name
        FROM numbered
    )
"""

# When the host makes the call with place c in its block: nearly half a millisecond ahead, and in
# every eighth block just in time. The calls of a thread never overlap.
CALL_START = """CASE
    WHEN block % 8 > 0 THEN block_ns - 400000 + ({c}) * 3500
    WHEN ({c}) <= 35 THEN block_ns - 17000 + ({c}) * 12000
    ELSE block_ns + 406000 + (({c}) - 35) * 1200 END""".replace("\n   ", "")
CALL_LENGTH = "CASE WHEN block % 8 = 0 AND ({c}) > 35 THEN 700 + h % 300 ELSE 2000 + h % 1200 END"


def tables(version: str) -> dict[str, str]:
    """Table name -> column definitions of the version, the ones that get rows."""
    modern = version != "2022.4.2"
    newest = version == "2026.2.1"
    green = " greenContextId INTEGER," if modern else ""
    place = (
        f"deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL,{green}"
        " streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER"
    )
    span = "start INTEGER NOT NULL, end INTEGER NOT NULL"
    sync_id = ", eventSyncId INTEGER" if modern else ""
    sizes = "gridX gridY gridZ blockX blockY blockZ staticSharedMemory dynamicSharedMemory"
    sizes += " localMemoryPerThread localMemoryTotal gridId"
    numbers = ", ".join(f"{name} INTEGER NOT NULL" for name in sizes.split())
    late = "qmdBulkReleaseDone qmdPreexitDone qmdLastCtaDone graphId clusterX clusterY clusterZ"
    late += " clusterSchedulingPolicy maxPotentialClusterSize maxActiveClusters"
    late += " sharedMemoryRequestedPercentage"
    extra = "".join(f", {name} INTEGER" for name in late.split()) if newest else ""
    extra += ", tensorSizeMinusOneElements TEXT NOT NULL" if newest else ""
    nvtx = "rangeId category color text:TEXT globalTid endGlobalTid textId domainId uint64Value"
    nvtx += " int64Value doubleValue:REAL uint32Value int32Value floatValue:REAL jsonTextId"
    nvtx += " jsonText:TEXT" + (" binaryData:TEXT" if modern else "")
    payload = ", ".join(
        f"{name} {kind or 'INTEGER'}" for name, _, kind in (n.partition(":") for n in nvtx.split())
    )
    found = {
        "StringIds": "id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL",
        "CUPTI_ACTIVITY_KIND_KERNEL": f"{span}, {place}, demangledName INTEGER NOT NULL,"
        " shortName INTEGER NOT NULL, mangledName INTEGER, launchType INTEGER,"
        f" cacheConfig INTEGER, registersPerThread INTEGER NOT NULL, {numbers},"
        " sharedMemoryExecuted INTEGER, graphNodeId INTEGER, sharedMemoryLimitConfig INTEGER"
        + extra,
        "CUPTI_ACTIVITY_KIND_MEMCPY": f"{span}, {place}, bytes INTEGER NOT NULL,"
        " copyKind INTEGER NOT NULL, deprecatedSrcId INTEGER, srcKind INTEGER, dstKind INTEGER,"
        " srcDeviceId INTEGER, srcContextId INTEGER, dstDeviceId INTEGER, dstContextId INTEGER,"
        " migrationCause INTEGER, graphNodeId INTEGER, virtualAddress INTEGER"
        + (", copyCount INTEGER" if modern else ""),
        "CUPTI_ACTIVITY_KIND_RUNTIME": f"{span}, eventClass INTEGER NOT NULL, globalTid INTEGER,"
        " correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL,"
        " callchainId INTEGER",
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": f"{span}, {place},"
        + (" deprecatedSyncType INTEGER," if modern else "")
        + f" syncType INTEGER NOT NULL, eventId INTEGER NOT NULL{sync_id}",
        "CUPTI_ACTIVITY_KIND_CUDA_EVENT": ("timestamp INTEGER, " if newest else "")
        + f"{place}, eventId INTEGER NOT NULL{sync_id}",
        "NVTX_EVENTS": "start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL,"
        f" {payload}",
        "TARGET_INFO_SESSION_START_TIME": "utcEpochNs INTEGER, utcTime TEXT, localTime TEXT",
        "ANALYSIS_DETAILS": "globalVid INTEGER NOT NULL, duration INTEGER NOT NULL,"
        " startTime INTEGER NOT NULL, stopTime INTEGER NOT NULL",
    }
    if modern:
        found["TARGET_INFO_CUDA_DEVICE"] = "gpuId INTEGER, cudaId INTEGER NOT NULL, pid INTEGER"
    found["META_DATA_EXPORT" if modern else "EXPORT_META_DATA"] = "name TEXT NOT NULL, value TEXT"
    return found


def insert(con: sqlite3.Connection, table: str, source: str, **values: object) -> None:
    """Insert rows: `source` is one `<expression> AS <column>` a line, then `--from` and the rest.
    Columns that the version does not have are left out; columns without a line are NULL."""
    known = [row[1] for row in con.execute(f"PRAGMA table_info({table})")]
    lines, rest = source.split("--from", 1)
    pairs = [line.strip().rsplit(" AS ", 1) for line in lines.strip().splitlines()]
    pairs = [pair for pair in pairs if pair[1] in known]
    con.execute(
        f"{KERNEL_ROWS} INSERT INTO {table} ({', '.join(name for _, name in pairs)})"
        f" SELECT {', '.join(expression for expression, _ in pairs)} {rest}",
        values,
    )


def fill(con: sqlite3.Connection, version: str, kernels: int, devices: int) -> None:
    """Create all tables and their rows."""
    for table, columns in tables(version).items():
        con.execute(f"CREATE TABLE {table} ({columns})")
    names = NAMES + NCCL_NAMES + CALLS
    con.executemany("INSERT INTO StringIds VALUES (?, ?)", list(enumerate(names, start=1)))
    calls = {name: i for i, name in enumerate(names, start=1) if name in CALLS}
    per_device = max(BLOCK, kernels // devices // BLOCK * BLOCK)
    low = 0
    while low < per_device:
        high = min(per_device, low + 500_000)
        common = {"devices": devices, "low": low, "high": high}
        fill_device_rows(con, common)
        fill_calls(con, common, calls)
        con.commit()
        low = high
    fill_steps(con, per_device, devices)
    end = per_device // BLOCK * 1_000_000 + 50_000_000
    con.execute("INSERT INTO ANALYSIS_DETAILS VALUES (?, ?, 0, 0)", (1 << 48, end))
    con.execute(
        "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1780000000000000000, NULL, NULL)"
    )
    if "TARGET_INFO_CUDA_DEVICE" in tables(version):
        con.executemany(
            "INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (?, ?, ?)",
            [(device, device, 4711 + device) for device in range(devices)],
        )
    meta = "META_DATA_EXPORT" if version != "2022.4.2" else "EXPORT_META_DATA"
    con.executemany(
        f"INSERT INTO {meta} VALUES (?, ?)",
        [
            ("EXPORT_PRODUCT_VERSION", f"{version}.0"),
            ("EXPORT_SCHEMA_VERSION", SCHEMA_OF_VERSION[version]),
        ],
    )


# Process 4711 + d drives device d.
PID = "((1 << 48) | ((4711 + d) << 24))"


def fill_device_rows(con: sqlite3.Connection, common: dict[str, object]) -> None:
    """Kernels and copies. The launch call of a kernel ends well before it, or just before it."""
    insert(
        con,
        "CUPTI_ACTIVITY_KIND_KERNEL",
        f"""
            slot_ns AS start
            slot_ns + length_ns AS end
            d AS deviceId
            1 AS contextId
            stream AS streamId
            correlation AS correlationId
            {PID} AS globalPid
            name AS demangledName
            name AS shortName
            1 AS launchType
            0 AS cacheConfig
            64 AS registersPerThread
            132 AS gridX
            1 AS gridY
            1 AS gridZ
            256 AS blockX
            1 AS blockY
            1 AS blockZ
            0 AS staticSharedMemory
            65536 AS dynamicSharedMemory
            0 AS localMemoryPerThread
            0 AS localMemoryTotal
            n AS gridId
            '[]' AS tensorSizeMinusOneElements
        --from FROM placed""",
        **common,
    )
    insert(
        con,
        "CUPTI_ACTIVITY_KIND_MEMCPY",
        f"""
            block_ns + 510000 + at * 4000 AS start
            block_ns + 512000 + at * 4000 + h % 7000 AS end
            d AS deviceId
            1 AS contextId
            28 AS streamId
            block * 120 + 110 + at / 14 AS correlationId
            {PID} AS globalPid
            65536 + h AS bytes
            1 + at / 14 % 2 AS copyKind
            1 + at / 14 % 2 AS srcKind
            2 - at / 14 % 2 AS dstKind
            1 AS copyCount
        --from FROM placed WHERE at < 70 AND at % 14 = 0""",
        **common,
    )


# Records and waits of a block, as (stream, place in the block, handle): the communication streams
# wait for compute, compute waits for communication, as frameworks write it.
EVENTS = (
    (7, 36, 1, "record"),
    (20, 37, 1, "wait"),
    (7, 38, 2, "record"),
    (13, 39, 2, "wait"),
    (20, 106, 3, "record"),
    (7, 107, 3, "wait"),
    (24, 108, 0, "record"),
    (7, 109, 0, "wait"),
)


def fill_calls(con: sqlite3.Connection, common: dict[str, object], calls: dict[str, int]) -> None:
    """API calls, and the rows that records and waits leave."""
    launch, copy, record, wait = (calls[name] for name in CALLS)

    def runtime(place: str, name: str, rest: str) -> None:
        begin = CALL_START.format(c=place)
        insert(
            con,
            "CUPTI_ACTIVITY_KIND_RUNTIME",
            f"""
                {begin} AS start
                {begin} + {CALL_LENGTH.format(c=place)} AS end
                0 AS eventClass
                ((1 << 48) | ((4711 + d) << 24) | (4711 + d)) AS globalTid
                block * 120 + {place} AS correlationId
                {name} AS nameId
                0 AS returnValue
            --from FROM placed{rest}""",
            **common,
        )

    runtime("correlation % 120", str(launch), "")
    runtime("110 + at / 14", str(copy), " WHERE at < 70 AND at % 14 = 0")
    con.execute("CREATE TEMP TABLE IF NOT EXISTS pattern (stream, place, handle, is_wait)")
    con.execute("DELETE FROM temp.pattern")
    con.executemany(
        "INSERT INTO temp.pattern VALUES (?, ?, ?, ?)",
        [(stream, place, handle, kind == "wait") for stream, place, handle, kind in EVENTS],
    )
    called = f"CASE WHEN p.is_wait THEN {wait} ELSE {record} END"
    runtime("p.place", called, ", temp.pattern AS p WHERE at = 0")
    at_first = "--from FROM placed, temp.pattern AS p WHERE at = 0"
    wait_start = CALL_START.format(c="p.place")
    event = f"""
            d AS deviceId
            1 AS contextId
            p.stream AS streamId
            block * 120 + p.place AS correlationId
            {PID} AS globalPid
            (block * 4 + p.handle) % 64 + 1 AS eventId
            block * 4 + p.handle + 1 AS eventSyncId
    """
    insert(
        con,
        "CUPTI_ACTIVITY_KIND_CUDA_EVENT",
        f"0 AS timestamp{event}{at_first} AND NOT p.is_wait",
        **common,
    )
    insert(
        con,
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
        f"""{wait_start} + 100 AS start
            {wait_start} + 600 AS end
            2 AS syncType{event}{at_first} AND p.is_wait""",
        **common,
    )


def fill_steps(con: sqlite3.Connection, per_device: int, devices: int) -> None:
    """NVTX: `step i`, and a range per block inside it."""
    per_step = max(1, STEP_KERNELS // BLOCK)
    rows = []
    for device in range(devices):
        tid = (1 << 48) | ((4711 + device) << 24) | (4711 + device)
        blocks = per_device // BLOCK
        for first in range(0, blocks, per_step):
            last = min(blocks, first + per_step)
            start, end = 10_000_000 + first * 1_000_000, 10_000_000 + last * 1_000_000
            rows.append((start, end, 59, f"step {first // per_step}", tid, 0))
            for block in range(first, last):
                at = 10_000_000 + block * 1_000_000
                rows.append((at + 500, at + 400_000, 59, f"layer {block - first}", tid, 0))
                rows.append((at + 500_000, at + 900_000, 59, "mlp", tid, 0))
    con.executemany(
        "INSERT INTO NVTX_EVENTS (start, end, eventType, text, globalTid, domainId)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        rows,
    )
    con.commit()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--kernels", type=int, default=300_000, help="in all (default 300000)")
    parser.add_argument("--devices", type=int, default=1, help="processes with one GPU each")
    parser.add_argument("--version", default="2026.2.1", choices=SCHEMA_OF_VERSION)
    options = parser.parse_args()
    began = time.monotonic()
    options.out.unlink(missing_ok=True)
    con = sqlite3.connect(options.out)
    con.execute("PRAGMA journal_mode = OFF")
    con.execute("PRAGMA synchronous = OFF")
    fill(con, options.version, options.kernels, options.devices)
    con.execute("PRAGMA journal_mode = DELETE")
    con.commit()
    con.close()
    size = options.out.stat().st_size // 1_000_000
    print(f"{options.out}: {size} MB in {time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    main()
