"""Random adversarial traces, on which the product and the oracle must agree to the nanosecond.

    python tests/fuzz.py --seeds 0:400

A seed is a whole trace and its options, so a difference is reproduced by its seed alone.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from oracle import METRICS, Oracle
from tracebuilder import INVALID, VERSIONS, TraceBuilder

Row = dict[str, Any]

GEMM = "ampere_sgemm_128x64_tn"
FLASH = "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 64, 64, 4> >(int)"
ELEMENTWISE = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>,"
    " std::array<char*, 1ul> >(int, at::native::FillFunctor<float>, std::array<char*, 1ul>)"
)
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
SEND_RECV = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
DEEP_EP = "void deep_ep::intranode::dispatch<8, 768>(int4*, float*, int*)"
SPIN = "spin_kernel"
UNKNOWN = "zzz_my_private_thing"
NAMES = (GEMM, GEMM, FLASH, ELEMENTWISE, ALL_REDUCE, ALL_REDUCE, SEND_RECV, DEEP_EP, SPIN, UNKNOWN)

ODD_TEXTS = (
    *("a?c", "[ab]", "a[!b]", "50%", "x_y", "back\\slash", "it's", "-- x", "(a|b)+", "^a$", "a.c"),
    *("*", "a*b", " lead", "trail ", "a\nb", "a\r\nb", "tab\t", "É", "é", "e\u0301", "\U0001f600x"),
    *("Step", "step", "STEP", "{0}", "$1", "x" * 300, "a" * 40 + "b", "\u202ex", "0"),
)

GAP_COLUMNS = [
    *("device", "gap_start_ns", "gap_end_ns", "launch_starved_ns", "blocking_ns"),
    *("comm_blocking_ns", "dependency_stalled_ns", "launch_starved_shadowed_ns", "next_kernel"),
    *("issue_ns", "producer_name", "producer_class", "producer_role", "producer_start_ns"),
    *("producer_end_ns", "evidence"),
]
WINDOW_COLUMNS = ["device", "iteration", "start_ns", "end_ns", "status"]
BUDGET_COLUMNS = [
    *["device", "iteration", "start_ns", "end_ns"],
    *(f"{metric}_ns" for metric in METRICS),
]


def random_trace(seed: int) -> tuple[TraceBuilder, Row]:
    """A trace that fits no real program, and the options of the run."""
    r = random.Random(seed)
    version = r.choice(VERSIONS)
    trace = TraceBuilder(version, lazy=r.random() < 0.8)
    base = r.choice([0, 0, 0, 1000, -500, (1 << 60) - 700])
    span = r.choice([60, 300, 1000, 3000])

    def at() -> int:
        return base + r.randrange(span)

    def length() -> int:
        return r.choice([0, 1, r.randrange(1, 6), r.randrange(1, 30), r.randrange(1, 80)])

    pids: list[int | None] = [100] if r.random() < 0.5 else [100, 200]
    if r.random() < 0.06:
        pids.append(None)  # rows without a process number
    ordinals = r.choice([[0], [0], [0, 1], [0, 1, 2]])
    contexts = {pid: {device: device + 1 for device in ordinals} for pid in pids}
    streams = [7, 13, 21][: r.choice([1, 2, 3, 3])]
    relays = [98, 99] if r.random() < 0.6 else []
    if r.random() < 0.5:
        for pid in pids:
            for device in ordinals:
                if pid is not None and r.random() < 0.8:
                    gpu = r.choice([device, device + len(ordinals) * (pid // 100 - 1), None])
                    trace.cuda_device(pid, device, gpu)

    lost = r.choice([0.0, 0.0, 0.1, 0.4])
    skew = r.choice([0.0, 0.0, 0.1])
    no_corr = r.choice([0.0, 0.0, 0.0, 0.1])
    invalid = r.choice([0.0, 0.0, 0.05])
    event_share = r.choice([0.0, 0.3, 0.6])
    edge_share = r.choice([0.0, 0.3, 0.6])
    id_style = r.choice(["unique", "unique", "reused", "none", "broken"])
    graph_share = r.choice([0.0, 0.0, 0.2, 0.5])
    clock = dict.fromkeys(pids, r.choice([0, 0, -1, (1 << 31) - 9, (1 << 32) - 9]))
    serial = 0
    handles: dict[int | None, list[tuple[int, int | None]]] = {pid: [] for pid in pids}

    in_order = r.random() < 0.6  # else every time is drawn from the whole span
    steps = r.randrange(5, 41)
    for number_of_step in range(steps):
        pid = r.choice(pids)
        device = r.choice(ordinals)
        context = contexts[pid][device]
        clock[pid] += r.choice([0, 1, 1, 1, 2]) if r.random() < 0.2 else 1
        corr = clock[pid]
        stream = r.choice(streams)
        if r.random() < edge_share:
            # A whole dependency: record, perhaps a relay, wait, and then the operation below.
            path = [r.choice(streams), *relays[: r.choice([0, 0, 1, 2])], stream]
            for source, target in pairwise(path):
                serial += 1
                event = r.randrange(0, 3)
                sync_id: int | None = None if id_style == "none" else serial
                edge: Row = {"pid": pid, "device": device, "context": context, "event": event}
                if r.random() >= lost:
                    trace.record(stream=source, sync_id=sync_id, corr=clock[pid], **edge)
                clock[pid] += r.choice([0, 1])
                start = at()
                trace.wait(
                    stream=target,
                    sync_id=sync_id,
                    corr=clock[pid],
                    start=start,
                    end=start + 1,
                    **edge,
                )
                clock[pid] += r.choice([0, 1, 1])
            corr = clock[pid]
        elif r.random() < event_share:
            stream = r.choice(streams + relays)
            place: Row = {"pid": pid, "device": device, "context": context, "stream": stream}
            place["corr"] = None if r.random() < no_corr else corr
            # Published exports hold wrong device numbers in the rows of events.
            place["device"] = r.choice([device, 0, 9])
            if r.random() < 0.5 or not handles[pid]:
                serial += 1
                sync_id = serial
                if id_style == "reused":
                    sync_id = r.randrange(1, 5)
                elif id_style == "none" or (id_style == "broken" and r.random() < 0.4):
                    sync_id = r.choice([None, 0, INVALID])
                event = r.randrange(0, 4)
                handles[pid].append((event, sync_id))
                if r.random() >= lost:
                    trace.record(event=event, sync_id=sync_id, **place)
            else:
                event, sync_id = r.choice(handles[pid][-3:])
                if r.random() < 0.1:
                    event = INVALID
                if r.random() < 0.1:
                    place["stream"] = INVALID
                start = at()
                end = start - 1 if r.random() < invalid else start + 1
                trace.wait(event=event, sync_id=sync_id, start=start, end=end, **place)
            continue

        in_graph = r.random() < graph_share and pid is not None
        if in_graph:  # a launch shares its id with nothing else
            corr = clock[pid] = clock[pid] + 1
            clock[pid] += 1
        near = base + span * number_of_step // steps
        count = r.choice([1, 2, 3, 4]) if in_graph else r.choice([1, 1, 1, 1, 1, 2, 3])
        first = None
        no_node = r.choice([0.0, 0.0, 0.0, 0.5, 1.0])
        for number in range(count):
            start = near + r.randrange(-20, 20) if in_order else at()
            if first is not None and r.random() < 0.7:
                start = first + r.randrange(0, 20)
            first = start if first is None else first
            end = start + length()
            if r.random() < invalid:
                end = start - 1
            place = {"pid": pid, "device": device, "context": context, "corr": corr}
            place["stream"] = r.choice(streams) if r.random() < 0.4 else stream
            if r.random() < no_corr:
                place["corr"] = None
            node = (3 << 32) | number if in_graph and r.random() >= no_node else None
            kind = r.random()
            if in_graph and count == 1 and kind < 0.6:
                place["corr"] = place["corr"] if r.random() < 0.7 else max(1, corr - 1)
                trace.graph_exec(start, end, **place)
            elif kind < 0.75:
                trace.kernel(start, end, r.choice(NAMES), node=node, **place)
                if r.random() < 0.03:  # a twin that differs only by its name
                    trace.kernel(start, end, r.choice(NAMES), node=node, **place)
            elif kind < 0.9:
                trace.memcpy(start, end, kind=r.choice([1, 2, 8]), node=node, **place)
            else:
                trace.memset(start, end, node=node, **place)
        if r.random() >= lost:
            assert first is not None
            begin = first - length() if r.random() >= skew else first + 1 + length()
            finish = begin + length()
            name = "cudaGraphLaunch_v10000" if in_graph else "cudaLaunchKernel_v7000"
            tid = r.choice([1, 2])
            if r.random() < invalid:
                begin, finish = finish + 1, begin
            trace.call(begin, finish, name, pid=pid, tid=tid, corr=corr)
            if r.random() < 0.15:
                trace.call(begin + 1, finish - 1, "cuLaunchKernel", pid=pid, tid=tid, corr=corr)
            if r.random() < 0.1:
                trace.call(begin, finish + 9, pid=pid, tid=tid, corr=corr)
            if r.random() < 0.1:
                trace.call(begin - 9, finish + 9, pid=pid, tid=tid, corr=corr, event_class=67)

    trace.kernel(at(), base + span + length(), GEMM, corr=clock[100] + 1, stream=streams[0])

    for _ in range(r.choice([2, 4, 8])):
        start = at()
        event_type = r.choice([59, 59, 60, 34])
        closed = r.random() < 0.95 and event_type != 34
        text = r.choice(["step 1", "step 2", "step 3", "optimizer", "a%step_1", "(step.\n1"])
        trace.nvtx(
            start,
            start + r.randrange(-3 if invalid else 0, span) if closed else None,
            text,
            pid=r.choice(pids[:2]) or 100,
            tid=r.choice([1, 2]),
            event_type=event_type,
            registered=r.random() < 0.3,
        )
    if r.random() < 0.4:
        trace.duration(base + span + r.choice([-span // 4, 0, 50]))
        if r.random() < 0.2:
            trace.meta("EXPORT_PARAM_TIME_SHIFT", "5")
    if r.random() < 0.3:
        for _ in range(r.choice([1, 2])):
            name = r.choice(["cudaProfilerStart_v4000", "cuProfilerStart"])
            start = base + r.randrange(-20, span // 2)
            trace.call(start, start + length(), name, pid=r.choice(pids[:2]) or 100, corr=5000)
    if r.random() < 0.3:
        for _ in range(r.choice([1, 2])):
            name = r.choice(["cudaProfilerStop_v4000", "cuProfilerStop"])
            start = base + r.randrange(span // 4, span + 20)
            trace.call(start, start + length(), name, pid=r.choice(pids[:2]) or 100, corr=5001)
    if r.random() < 0.25:
        for _ in range(r.choice([1, 2])):
            start, pid, tid = at(), r.choice(pids[:2]) or 100, r.choice([1, 2])
            trace.call(start, start + 2, "cudaStreamBeginCapture_v10000", pid=pid, tid=tid)
            if r.random() < 0.8:
                start += 1 + length()
                trace.call(start, start + 3, "cudaStreamEndCapture_v10000", pid=pid, tid=tid)

    options: Row = {
        "anchor": r.choice(
            [
                *("nvtx:step *", "nvtx:*", "nvtx:*step_1", "nvtx:(*p.*1", "nvtx:step 1"),
                *("kernel:*gemm*", "kernel:*", "kernel:" + ALL_REDUCE, "nccl:*", "nccl:*Send*"),
            ]
        )
    }
    if not options["anchor"].startswith("nvtx") and r.random() < 0.5:
        options["per_iteration"] = r.choice([2, 3])
    if r.random() < 0.2:
        options["skip_first"] = r.choice([1, 2])
    if r.random() < 0.2:
        options["skip_last"] = 1
    if r.random() < 0.1:
        options["iterations"] = r.choice(["0:2", "1:3", "1:9"])
    if r.random() < 0.2:  # texts that mean something to other languages of patterns
        texts = r.sample(ODD_TEXTS, 4)
        for text in texts * 2:
            start = at()
            trace.nvtx(start, start + r.randrange(span), text, tid=r.choice([1, 2]))
        options["anchor"] = f"nvtx:{odd_pattern(r, r.choice(texts))}"
        options.pop("per_iteration", None)
    elif r.random() < 0.1:
        options["anchor"] = f"kernel:{odd_pattern(r, r.choice(NAMES))}"
    if r.random() < 0.1:
        options["device"] = r.choice(ordinals)
    return trace, options


def odd_pattern(r: random.Random, text: str) -> str:
    """A text with stars in place of some of it, which it may or may not match."""
    parts = list(text)
    for _ in range(r.choice([0, 1, 1, 2])):
        first = r.randrange(len(parts) + 1)
        last = r.randrange(first, min(len(parts), first + 4) + 1)
        parts[first:last] = r.choice([["*"], ["*"], ["*", "*"], ["?"], ["_"]])
    return "".join(parts) or "*"


# ------------------------------------------------------------------------------------- product
def run_product(path: Path, recipe: str, **options: Any) -> list[Row]:
    """The rows of a recipe of the product."""
    import nsys_sql

    with nsys_sql.open(path, **options) as model:
        relation = model.run(recipe)
        return [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]


def product_answers(
    path: Path, options: Row
) -> tuple[dict[str, list[Row] | str], Callable[[str | None], tuple[str, str]]]:
    """The three recipes (an error is its exit code), and the product's own classes."""
    import nsys_sql

    answers: dict[str, list[Row] | str] = {}
    classes: dict[str | None, tuple[str, str]] = {None: ("other", "compute")}
    with nsys_sql.open(path, **options) as model:
        for recipe in ("gaps", "iterations", "budget-windows"):
            try:
                relation = model.run(recipe)
                answers[recipe] = [
                    dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()
                ]
            except nsys_sql.NsysSqlError as error:
                answers[recipe] = f"exit {error.exit_code}: {error}"
        found = model.con.execute("SELECT name, class, role FROM nsys.kernel_name").fetchall()
        classes.update({name: (str(klass), str(role)) for name, klass, role in found})
    return answers, classes.__getitem__


def oracle_answers(oracle: Oracle, options: Row) -> dict[str, list[Row]]:
    """The same three recipes, by definition."""
    device = options.get("device")
    windows = oracle.windows(**{k: v for k, v in options.items() if k != "device"})
    found: dict[str, list[Row]] = {
        "gaps": [gap.row() for gap in oracle.all_gaps],
        "iterations": [
            {
                "device": window.device,
                "iteration": window.iteration,
                "start_ns": window.start,
                "end_ns": window.end,
                "status": window.status,
            }
            for window in windows
        ],
        "budget-windows": oracle.budget_rows(windows),
    }
    return {
        name: [row for row in rows if device in (None, row["device"])]
        for name, rows in found.items()
    }


def differences(product: dict[str, list[Row] | str], oracle: dict[str, list[Row]]) -> list[str]:
    """What differs, one line each."""
    found = []
    for recipe, columns, key in (
        ("gaps", GAP_COLUMNS, 2),
        ("iterations", WINDOW_COLUMNS, 2),
        ("budget-windows", BUDGET_COLUMNS, 2),
    ):
        got, expected = product[recipe], oracle[recipe]
        if isinstance(got, str):
            # Without a kernel table nobody knows what is 0, though the definition gives numbers.
            is_refused = got.startswith("exit 4") and (not expected or "has no kernel" in got)
            if not is_refused:
                found.append(f"{recipe}: product {got}, oracle has {len(expected)} rows")
            continue
        keys = columns[:key]
        by_key = {tuple(row[c] for c in keys): row for row in got}
        if len(by_key) != len(got):
            found.append(f"{recipe}: the product repeats a key")
        for row in expected:
            other = by_key.pop(tuple(row[c] for c in keys), None)
            if other is None:
                found.append(f"{recipe}: only the oracle has {row}")
                continue
            for column in columns:
                # Copies, sets and graph executions have no kernel name to agree on.
                unnamed = column in ("next_kernel", "producer_name") and row[column] is None
                if not unnamed and row[column] != other[column]:
                    found.append(
                        f"{recipe} {tuple(row[c] for c in keys)}: {column} is"
                        f" {other[column]!r}, by definition {row[column]!r}"
                    )
        found += [f"{recipe}: only the product has {row}" for row in by_key.values()]
    return found


def compare(path: Path, options: Row) -> list[str]:
    """Run both on one file."""
    answers, classify = product_answers(path, options)
    return differences(answers, oracle_answers(Oracle(path, classify), options))


def check_seed(seed: int, directory: Path) -> list[str]:
    """The differences of one seed."""
    trace, options = random_trace(seed)
    path = trace.write(directory / f"seed{seed}.sqlite", shuffle=seed if seed % 2 else False)
    try:
        return compare(path, options)
    finally:
        path.unlink()


def main() -> int:
    """Compare a range of seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0:200", help="first:last, half-open")
    parser.add_argument("--keep-going", action="store_true", help="do not stop at a difference")
    parser.add_argument("--write", metavar="FILE", help="only write the trace of the first seed")
    arguments = parser.parse_args()
    first, _, last = arguments.seeds.partition(":")
    seeds = range(int(first), int(last) if last else int(first) + 1)
    if arguments.write:
        trace, options = random_trace(seeds[0])
        trace.write(arguments.write)
        print(arguments.write, trace.version, options)
        return 0
    failed = 0
    with tempfile.TemporaryDirectory() as directory:
        for seed in seeds:
            found = check_seed(seed, Path(directory))
            if not found:
                continue
            failed += 1
            trace, options = random_trace(seed)
            print(f"seed {seed} ({trace.version}, {options}): {len(found)} differences")
            print(*found[:5], sep="\n")
            if not arguments.keep_going:
                return 1
    print(f"{len(seeds) - failed} of {len(seeds)} seeds agree")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
