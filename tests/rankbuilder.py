"""Small runs of many ranks: one export per rank, with the truth about who waited for whom.

Every rank runs a program of kernels and collectives on its device, one after another. A collective
begins on a rank when that rank gets there and ends on all members together. A hidden one runs
beside what follows it, on a stream of its own and after those before it there, until the rank
joins. Clocks, hosts, skewed windows, late hosts and slow ranks are knobs; the names of the files
say nothing about the ranks.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tracebuilder import TraceBuilder

US, MS = 1_000, 1_000_000
EPOCH = 1_780_000_000_000_000_000
COMPUTE, TP, DP, EP = 7, 20, 24, 28
NAMES = {
    "gemm": "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_TNT",
    "norm": "void transformer_engine::normalization::rmsnorm_fwd_tuned_kernel<...>",
    "adam": "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>>(int)",
    "AllReduce": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096>)",
    "AllGather": "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096>)",
    "ReduceScatter": "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096>)",
    "SendRecv": "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096>)",
    "dispatch": "void deep_ep::internode::dispatch<false, 2, false, 7, 4>(int4*, float*)",
    "combine": "void deep_ep::internode::combine<false, 2, __nv_bfloat16, 7>(int4*)",
}
# ("compute", key, ns), ("host", ns), ("collective" or "hidden", key, ns, group) or ("join", group)
Item = tuple[object, ...]
Program = Callable[[int, int], Sequence[Item]]  # (rank, step) -> items


@dataclass(frozen=True)
class Run:
    """What is simulated; `groups` maps a name to (ranks, stream)."""

    ranks: int
    groups: Mapping[str, tuple[Sequence[int], int]]
    program: Program
    steps: int = 5
    period_ns: int = 0  # a step begins no earlier than this after the one before
    hosts: Sequence[str] = ()
    clock_ahead_ns: Mapping[str, int] = field(default_factory=dict)
    window_starts_early_ns: Mapping[int, int] = field(default_factory=dict)
    captured: Sequence[int] | None = None
    first_step: Mapping[int, int] = field(default_factory=dict)  # rank -> first captured step
    seed: int = 0
    stages: Sequence[int] = ()  # of each rank; all of stage 0 where there are none


@dataclass
class Truth:
    """start/end of every collective on true time: (rank, group, step, key) -> spans in order."""

    spans: dict[tuple[int, str, int, str], list[tuple[int, int]]] = field(default_factory=dict)
    windows: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)


def simulate(run: Run) -> tuple[dict[int, list[tuple]], Truth]:
    """All events of each rank on true time: (kind, name key, stream, start, end)."""
    noise = random.Random(run.seed)
    now = [2 * MS + noise.randrange(50 * US) for _ in range(run.ranks)]
    events: dict[int, list[tuple]] = {rank: [] for rank in range(run.ranks)}
    truth = Truth()
    begun = [0] * run.ranks
    queues: dict[tuple[str, int], list[int]] = {}  # when each hidden collective was issued
    free: dict[tuple[str, int], int] = {}  # when the one before it there ends

    def meet(group: str, step: int, key: str, ns: int, began: Mapping[int, int]) -> None:
        end = max(began.values()) + ns
        for rank, start in began.items():
            over = end + noise.randrange(400)
            events[rank].append(("kernel", key, run.groups[group][1], start, over))
            truth.spans.setdefault((rank, group, step, key), []).append((start, over))
            free[group, rank] = over

    for step in range(run.steps):
        programs = {rank: list(run.program(rank, step)) for rank in range(run.ranks)}
        for rank in range(run.ranks):
            early = run.window_starts_early_ns.get(rank, 0)
            now[rank] = max(now[rank] + 20 * US, begun[rank] + run.period_ns) - early
            begun[rank] = now[rank] + early
            truth.windows[rank, step] = (now[rank], 0)
            now[rank] += 30 * US
        at = dict.fromkeys(programs, 0)
        arrived: dict[str, dict[int, int]] = {}
        ready = list(programs)
        while ready:
            rank = ready.pop()
            while at[rank] < len(programs[rank]):
                item = programs[rank][at[rank]]
                if item[0] == "compute":
                    start = now[rank] + 2 * US
                    now[rank] = start + int(item[2] * (1 + noise.uniform(-0.004, 0.004)))
                    events[rank].append(("kernel", item[1], COMPUTE, start, now[rank]))
                    at[rank] += 1
                    continue
                if item[0] == "host":
                    now[rank] += item[1]
                    at[rank] += 1
                    continue
                if item[0] == "join":
                    if queues.get((item[1], rank)):
                        break
                    now[rank] = max(now[rank], free.get((item[1], rank), 0))
                    at[rank] += 1
                    continue
                kind, key, ns, group = item
                members, _ = run.groups[group]
                start = now[rank] + 3 * US
                if kind == "hidden":
                    queues.setdefault((group, rank), []).append(start)
                    at[rank] += 1
                    if all(queues.get((group, member)) for member in members):
                        issued = {member: queues[group, member].pop(0) for member in members}
                        began = {m: max(s, free.get((group, m), 0) + US) for m, s in issued.items()}
                        meet(group, step, key, ns, began)
                        ready += [member for member in members if member != rank]
                    continue
                arrived.setdefault(group, {})[rank] = start
                if len(arrived[group]) < len(members):
                    break
                meet(group, step, key, ns, arrived[group])
                for other in arrived.pop(group):
                    now[other] = free[group, other]
                    at[other] += 1
                    if other != rank:
                        ready.append(other)
        for rank in range(run.ranks):
            assert at[rank] == len(programs[rank]), "a collective was never joined by its group"
            now[rank] += 10 * US
            start, _ = truth.windows[rank, step]
            truth.windows[rank, step] = (start, now[rank])
            events[rank].append(("range", f"step {step}", 0, start, now[rank]))
    return events, truth


def _fill(
    builder: TraceBuilder, rank: int, events: Sequence[tuple], shift: int, device: int, first: int
) -> int:
    pid, correlation, last = 4000 + rank, 10, 0
    for kind, name, stream, start, end in sorted(events, key=lambda e: e[3]):
        start, end = start + shift, end + shift
        if kind == "range":
            if int(name.split()[1]) >= first:
                builder.nvtx(start, end, name, pid=pid, tid=pid)
            continue
        correlation += 1
        issued = start - 8 * US
        builder.call(issued, issued + 2 * US, pid=pid, tid=pid, corr=correlation)
        builder.kernel(
            start,
            end,
            NAMES[name],
            short=name,
            pid=pid,
            device=device,
            stream=stream,
            corr=correlation,
        )
        last = max(last, end)
    builder.process(pid, "python3")
    return last


def write(run: Run, folder: Path, version: str = "2026.2.1", per_host: bool = False) -> Truth:
    """One export per captured rank, or one per host, and ranks.yaml.

    The session of the n-th export began n * 0.1 s early.
    """
    events, truth = simulate(run)
    captured = list(run.captured if run.captured is not None else range(run.ranks))
    hosts = run.hosts or ["node0"] * run.ranks
    files: dict[str, list[int]] = {}
    for rank in captured:
        files.setdefault(hosts[rank] if per_host else str(rank), []).append(rank)
    entries = []
    for at, held in enumerate(files.values()):
        early = at * 100 * MS
        builder = TraceBuilder(version)
        last = 0
        name = f"report{(at * 7 + 3) % 997}.sqlite"
        for device, rank in enumerate(held):
            first = run.first_step.get(rank, 0)
            last = max(last, _fill(builder, rank, events[rank], early, device, first))
            builder.gpu(device, "NVIDIA H100 80GB HBM3")
            builder.cuda_device(4000 + rank, device, device)
            entry = {"trace": name, "rank": rank, "host": hosts[rank]}
            entry["stage"] = run.stages[rank] if run.stages else 0
            entry |= {"process": 4000 + rank} if len(held) > 1 else {}
            entries.append(entry | {"groups": _membership(run, rank)})
        builder.duration(last + 5 * MS)
        ahead = run.clock_ahead_ns.get(hosts[held[0]], 0)
        builder.session_start(EPOCH - early + ahead)
        builder.write(folder / name)
    kinds = {kind: run.groups[name][1] for e in entries for kind, name in e["groups"].items()}
    mapping = {
        "ranks": entries,
        "groups": {kind: {"stream": stream} for kind, stream in kinds.items()},
    }
    (folder / "ranks.yaml").write_text(yaml.safe_dump(mapping, sort_keys=False))
    return truth


def _membership(run: Run, rank: int) -> dict[str, str]:
    """Groups are named by kind and number: tp0, tp1, dp0, ..."""
    return {
        name.rstrip("0123456789"): name
        for name, (members, _) in run.groups.items()
        if rank in members
    }


def grid(tp: int, dp: int) -> dict[str, tuple[list[int], int]]:
    """Groups of a tp x dp grid: tp neighbours, dp across."""
    found: dict[str, tuple[list[int], int]] = {
        f"tp{d}": ([d * tp + t for t in range(tp)], TP) for d in range(dp)
    }
    found |= {f"dp{t}": ([d * tp + t for d in range(dp)], DP) for t in range(tp)}
    return found


def transformer(
    tp: int,
    layers: int = 3,
    slow: Callable[[int, int], int] = lambda rank, step: 0,
    gemm_ns: int = 400 * US,
) -> Program:
    """Layers with a tensor-parallel sum each, then data-parallel reduction; `slow` adds compute."""

    def program(rank: int, step: int) -> list[Item]:
        items: list[Item] = []
        for _ in range(layers):
            items.append(("compute", "norm", 20 * US))
            items.append(("compute", "gemm", gemm_ns + slow(rank, step) // layers))
            items.append(("collective", "AllReduce", 90 * US, f"tp{rank // tp}"))
        items.append(("collective", "ReduceScatter", 200 * US, f"dp{rank % tp}"))
        items.append(("compute", "adam", 150 * US))
        items.append(("collective", "AllGather", 150 * US, f"dp{rank % tp}"))
        return items

    return program


def buckets(
    count: int,
    slow: Callable[[int, int], int] = lambda rank, step: 0,
    late: Callable[[int, int], int] = lambda rank, step: 0,
    gemm_ns: int = 200 * US,
    transfer_ns: int = 60 * US,
) -> Program:
    """A backward pass whose gradients are reduced in buckets beside it; the last ones stand out."""

    def program(rank: int, step: int) -> list[Item]:
        items: list[Item] = [("host", late(rank, step))]
        for _ in range(count):
            items.append(("compute", "gemm", gemm_ns + slow(rank, step) // count))
            items.append(("hidden", "AllReduce", transfer_ns, "dp0"))
        return [*items, ("join", "dp0"), ("compute", "adam", 100 * US)]

    return program


def pipeline(
    replicas: int,
    microbatches: int = 3,
    forward_ns: int = 200 * US,
    slow: Callable[[int], float] = lambda rank: 1,
    late: Callable[[int], int] = lambda rank: 0,
) -> Program:
    """Two stages with `replicas` ranks each: all forward, all backward with reduction beside it.

    Each stage has a bubble while the other has nothing for it. A replica is a group pp, a stage a
    group dp. Backward takes twice as long as forward.
    """

    def program(rank: int, step: int) -> list[Item]:
        stage, replica = divmod(rank, replicas)
        handover: Item = ("collective", "SendRecv", 10 * US, f"pp{replica}")
        forward: Item = ("compute", "gemm", int(forward_ns * slow(rank)))
        items: list[Item] = [("host", late(rank))]
        for _ in range(microbatches):
            items += [handover, forward] if stage else [forward, handover]
        for at in range(microbatches):
            backward: list[Item] = []
            for _ in range(2):
                backward.append(forward)
                if at == microbatches - 1:
                    backward.append(("hidden", "AllReduce", 30 * US, f"dp{stage}"))
            items += [*backward, handover] if stage else [handover, *backward]
        return [*items, ("join", f"dp{stage}"), ("compute", "adam", 50 * US)]

    return program


def stages(replicas: int) -> dict[str, tuple[list[int], int]]:
    """Groups of two stages: pp couples the replicas of a rank, dp those of a stage."""
    found = {f"pp{r}": ([r, replicas + r], TP) for r in range(replicas)}
    return found | {f"dp{s}": ([s * replicas + r for r in range(replicas)], DP) for s in (0, 1)}
