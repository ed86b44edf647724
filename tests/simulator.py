"""A discrete simulator of LLM training whose exports come with the truth about themselves.

Host threads issue calls, streams are FIFO, events carry CUDA's meaning, a collective ends on all
of its ranks together. A kernel starts when its call is over and its launch has travelled, and when
whatever its stream waits for has ended. Since the simulator decides each start, it knows why it
was late: ``Truth`` splits the absent compute of each window by these decisions and never looks at
the rows that are written.

    python tests/simulator.py late_collective out.sqlite --version 2024.6.2
    python tests/simulator.py relay --sql               # the same export as SQL text
    python tests/simulator.py --example                 # the text of fixtures/example.sql

All times are integer nanoseconds. The same scenario and seed give the same export.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from tracebuilder import INVALID, VERSIONS, TraceBuilder, global_pid, global_tid, table_exists

US = 1_000
MS = 1_000_000
EPOCH = 1_780_000_000_000_000_000  # wall clock of the simulation's time zero

COMPUTE_STREAM, TP_STREAM, DP_STREAM, COPY_STREAM, RELAY_STREAM = 7, 20, 24, 28, 32

# key -> (demangled name, short name, role, threads of a block, registers of a thread)
KERNELS: dict[str, tuple[str, str, str, int, int]] = {}


def _kernel(
    key: str, name: str, short: str = "", role: str = "compute", block: int = 128, regs: int = 64
) -> None:
    KERNELS[key] = (name, short or name, role, block, regs)


_ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<(int)4, {}>(int, T2, T3)"
_VEC = "vectorized_elementwise_kernel"
_kernel("qkv", "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_TNT", block=384, regs=168)
_kernel("proj", "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT", block=384, regs=168)
_kernel("fc1", "nvjet_tst_256x128_64x4_2x1_v_bz_coopA_bias_TNT", block=384, regs=168)
_kernel("fc2", "nvjet_tst_192x208_64x4_1x1_h_bz_coopB_bias_TNT", block=384, regs=168)
_kernel("dgrad", "nvjet_tst_256x128_64x4_2x1_v_bz_coopA_NNT", block=384, regs=168)
_kernel("wgrad", "nvjet_tss_256x128_64x4_2x1_v_bz_coopA_NTT", block=384, regs=168)
_kernel(
    "gemm_small",
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64_warpgroupsize1x1x1"
    "_execute_segment_k_off_kernel__5x_cublas",
    regs=90,
)
_kernel(
    "attention",
    "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false, false,"
    " cutlass::bfloat16_t>, false, true, false, false, true, true, false>(flash::Flash_fwd_params)",
    "flash_fwd_kernel",
    regs=255,
)
_kernel(
    "attention_bwd",
    "void flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<128, 64, 128,"
    " 8, 2, 4, 2, false, false, cutlass::bfloat16_t>, false, true, false, false, true, true>"
    "(flash::Flash_bwd_params)",
    "flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel",
    block=256,
    regs=255,
)
_kernel(
    "norm",
    "void transformer_engine::normalization::rmsnorm_fwd_tuned_kernel<...>",
    "rmsnorm_fwd_tuned_kernel",
)
_kernel(
    "norm_bwd",
    "void transformer_engine::normalization::rmsnorm_bwd_tuned_kernel<...>",
    "rmsnorm_bwd_tuned_kernel",
)
_kernel("swiglu", "triton_poi_fused_mul_silu_slice_1", regs=32)
_kernel(
    "add",
    _ELEMENTWISE.format("at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char *, 3>"),
    _VEC,
    regs=32,
)
_kernel(
    "mul",
    _ELEMENTWISE.format(
        "at::native::BinaryFunctor<float, float, float,"
        " at::native::binary_internal::MulFunctor<float>>, std::array<char *, 3>"
    ),
    _VEC,
    regs=32,
)
_kernel(
    "fill",
    _ELEMENTWISE.format("at::native::FillFunctor<float>, std::array<char *, 1>"),
    _VEC,
    regs=16,
)
_kernel(
    "loss",
    "void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, c10::BFloat16, float, float,"
    " at::native::(anonymous namespace)::LogSoftMaxForwardEpilogue>(float*, c10::BFloat16 const*,"
    " int)",
    "cunn_SoftMaxForward",
    block=1024,
)
_kernel(
    "grad_norm",
    "void multi_tensor_apply_kernel<TensorListMetadata<1>, L2NormFunctor<float>, float*, float*,"
    " bool, int>(int, int volatile*, TensorListMetadata<1>, L2NormFunctor<float>, float*, float*,"
    " bool, int)",
    "multi_tensor_apply_kernel",
    block=320,
)
_kernel(
    "adam",
    "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>, float, float, float,"
    " float, float, float, adamMode_t, float>(int, int volatile*, TensorListMetadata<4>,"
    " AdamFunctor<float>, float, float, float, float, float, float, adamMode_t, float)",
    "multi_tensor_apply_kernel",
    block=512,
)
for _key, _op in (
    ("all_reduce", "AllReduce_Sum_bf16_RING_LL"),
    ("reduce_scatter", "ReduceScatter_Sum_f32_RING_LL"),
    ("all_gather", "AllGather_RING_LL"),
    ("send_recv", "SendRecv"),
):
    _args = "(ncclDevKernelArgsStorage<(unsigned long)4096>)"
    _kernel(_key, f"ncclDevKernel_{_op}{_args}", f"ncclDevKernel_{_op}", "comm", block=544, regs=96)
_EP = "void deep_ep::internode::"
_kernel("ep_notify", f"{_EP}notify_dispatch<false, 2>(...)", "notify_dispatch", "comm", block=512)
_kernel(
    "ep_dispatch",
    f"{_EP}dispatch<false, 2, false, 7, 4>(int4*, float*, long*, float*,"
    " deep_ep::internode::SourceMeta*, ...)",
    "dispatch",
    "comm",
    block=512,
    regs=128,
)
_kernel("ep_combine", f"{_EP}combine<false, 2, __nv_bfloat16, 7>(...)", "combine", "comm", 768, 128)
_kernel("graph", "", "", "compute")


@dataclass(eq=False, slots=True)
class Op:
    """A device operation. `producer` and `stream_producer` are what it followed with and without
    the help of events; `issue` is the end of its call, or its start where the call ends later."""

    kind: str  # kernel, memcpy, memset, graph
    key: str  # of KERNELS, or the kind
    role: str
    device: int
    process: int
    stream: int
    corr: int
    issue: int
    start: int = 0
    end: int = 0
    producer: Op | None = None
    stream_producer: Op | None = None
    follows_in_graph: Op | None = None
    is_later_node: bool = False
    payload: int = 0  # bytes of a copy or a set, graph id of a whole graph
    copy_kind: int = 0
    pinned: bool = True
    node: int | None = None


def better(a: Op | None, b: Op | None) -> Op | None:
    """The candidate that ends later; of equal ends the lower correlation id, then the start."""
    if a is None or b is None:
        return a or b
    return a if (a.end, -a.corr, -a.start) >= (b.end, -b.corr, -b.start) else b


@dataclass(eq=False, slots=True)
class State:
    """What the next operation of a stream has to follow: really, and as far as without events."""

    real: Op | None = None
    stream_only: Op | None = None


@dataclass(eq=False, slots=True)
class Rendezvous:
    """A collective that is still waiting for the other ranks of its group."""

    group: str
    size: int
    duration: int
    op: Op
    stream: int


Program = Generator[Rendezvous, None, None]


@dataclass(frozen=True, slots=True)
class Scenario:
    """What is simulated; every knob is a number of things or of nanoseconds."""

    name: str = "plain"
    steps: int = 6
    layers: int = 4
    ranks: int = 1
    ordinals_are_local: bool = False  # every process calls its GPU 0
    tp: bool = False
    dp: bool = False
    pipeline: bool = False
    microbatches: int = 4
    deepep: bool = False
    offload: bool = False
    graphs: str = ""  # "", node, whole
    relay: bool = False
    late_ns: int = 0  # a collective per step whose peer comes so much later
    late_hidden_ns: int = 0  # the same for one that other compute covers
    stall_ns: int = 0  # host pause with an empty device, every step
    stall_every: int = 1
    kernel_scale: float = 1.0
    tiny: bool = False
    kernels_per_step: int = 0  # extra small kernels, to reach a size
    straggler_ns: int = 0  # extra compute of the last rank, every step
    pageable: bool = False
    range_text: str = "step {}"
    registered_ranges: bool = False
    layer_ranges: bool = True
    clock_offsets_ns: tuple[int, ...] = ()
    cause: str = ""  # metric that the planted trouble must show up in
    cause_role: str = ""  # role of the label, for blocking


SCENARIOS: dict[str, Scenario] = {
    s.name: s
    for s in (
        Scenario("plain"),
        Scenario("tp_overlap", ranks=2, tp=True, dp=True),
        Scenario(
            "late_collective",
            ranks=2,
            tp=True,
            late_ns=4 * MS,
            cause="blocking",
            cause_role="comm",
        ),
        Scenario("slow_copy", offload=True, cause="blocking", cause_role="memcpy"),
        Scenario("host_stall", stall_ns=8 * MS, cause="launch_starved"),
        Scenario("launch_bound", tiny=True, layers=12, cause="launch_starved"),
        Scenario("deepep", ranks=2, deepep=True, cause="blocking", cause_role="comm"),
        Scenario("graphs_node", graphs="node"),
        Scenario("graphs_whole", graphs="whole"),
        Scenario("two_processes", ranks=2, ordinals_are_local=True, dp=True),
        Scenario("relay", ranks=2, tp=True, relay=True, cause="blocking", cause_role="comm"),
        Scenario("pipeline", ranks=2, pipeline=True, cause="blocking", cause_role="comm"),
    )
}


def megatron_like(n_kernels: int, steps: int = 4, **knobs: object) -> Scenario:
    """A tensor- and data-parallel run of about `n_kernels` kernels per step and rank."""
    layers = max(2, min(96, n_kernels // 60))
    base = Scenario(
        "megatron_like", steps=steps, layers=layers, ranks=2, tp=True, dp=True, layer_ranges=False
    )
    extra = max(0, n_kernels - layers * 25 - 10)
    return replace(base, kernels_per_step=extra, **knobs)  # type: ignore[arg-type]


@dataclass(slots=True)
class Cause:
    """The planted trouble: the metric it must show in, the role of its label, ns per window."""

    metric: str
    role: str
    ns: dict[tuple[int, int], int]  # (device, ordinal of the window) -> ns


@dataclass(slots=True)
class Truth:
    """What a measurement of the export has to find, in ns."""

    version: str
    windows: dict[int, list[tuple[int, int]]]  # device -> windows in (start, end) order
    budget: dict[tuple[int, int], dict[str, int]]  # (device, ordinal) -> metric of section 5 -> ns
    labels: dict[tuple[int, int], dict[str, int]]  # (device, ordinal) -> role -> blocking ns
    cause: Cause
    gaps: int
    kernels: int
    anchor: str = "nvtx:step *"
    offsets: dict[int, int] = field(default_factory=dict)

    def total(self, metric: str) -> int:
        """Sum over all windows of all devices."""
        return sum(values[metric] for values in self.budget.values())


class Rank:
    """One process: a host clock, streams, events; every method is a CUDA or an NVTX call."""

    def __init__(self, world: World, rank: int) -> None:
        self.world = world
        self.rank = rank
        self.pid = 4711 + rank
        self.context = 1 if world.scenario.ordinals_are_local else 1 + rank
        self.random = random.Random(world.seed * 1000 + rank)
        self.now = 400 * US + self.random.randrange(20 * US)
        self.tid = self.pid
        self.states: dict[int, State] = {}
        self.free_at: dict[int, int] = {}
        self.correlation = 100
        self.sync_id = 0
        self.events: dict[int, tuple[State, int, int]] = {}  # handle -> (seen, ready at, sync id)
        self.handle = 0
        self.graph_ids = 0
        self.b = world.builder

    # ---- host

    @property
    def ordinal(self) -> int:
        return 0 if self.world.scenario.ordinals_are_local else self.rank

    def around(self, ns: int, spread: float = 0.1) -> int:
        """A random duration near `ns`."""
        return max(1, int(ns * (1 + self.random.uniform(-spread, spread))))

    def cpu(self, ns: int) -> None:
        """Host work outside CUDA."""
        self.now += ns

    def call(self, name: str, ns: int) -> tuple[int, int]:
        """A CUDA call of about so many ns; returns (correlation id, end)."""
        self.cpu(self.around(6_000 if self.world.scenario.tiny else 1_200))
        self.correlation += self.random.choice((1, 1, 1, 2, 3))
        start = self.now
        self.now += self.around(ns)
        self.b.call(start, self.now, name, pid=self.pid, tid=self.tid, corr=self.correlation)
        return self.correlation, self.now

    def extend_call(self, until: int) -> None:
        """Let the last call return later: it blocks."""
        if until > self.now:
            self.now = until
            self.b.rows["CUPTI_ACTIVITY_KIND_RUNTIME"][-1]["end"] = until

    @contextmanager
    def range(self, text: str, domain: int = 0, is_step: bool = False) -> Iterator[None]:
        start, tid = self.now, self.tid
        yield
        self.cpu(300)
        if is_step:
            self.world.windows.append((self, start, self.now))
        self.world.first = min(self.world.first, start)
        registered = domain != 0 or self.world.scenario.registered_ranges
        self.b.nvtx(
            start, self.now, text, pid=self.pid, tid=tid, domain=domain, registered=registered
        )

    @contextmanager
    def thread(self, tid_offset: int) -> Iterator[None]:
        """Issue from another host thread, as autograd does."""
        before, self.tid = self.tid, self.pid + tid_offset
        self.cpu(8 * US)
        yield
        self.tid = before
        self.cpu(8 * US)

    # ---- device

    def _state(self, stream: int) -> State:
        return self.states.setdefault(stream, State())

    def _place(self, op: Op, earliest: int, spacing: int) -> None:
        """Set producers and start of an operation that is put on its stream now."""
        state = self._state(op.stream)
        op.producer, op.stream_producer = state.real, state.stream_only
        ready = self.free_at.get(op.stream, 0)
        op.start = max(earliest, ready + spacing if ready else 0)
        op.issue = min(op.issue, op.start)

    def _occupy(self, op: Op, is_traced: bool = True) -> None:
        """Make an operation the one that its stream has to follow."""
        if is_traced:
            self.states[op.stream] = State(op, op)
        self.free_at[op.stream] = op.end

    def _op(self, kind: str, key: str, role: str, stream: int, corr: int, issue: int) -> Op:
        op = Op(kind, key, role, self.world.device(self), self.rank, stream, corr, issue)
        self.world.ops.append((self, op))
        return op

    def launch(self, stream: int, key: str, ns: int, call_ns: int = 4_500) -> Op:
        """A kernel of about `ns`."""
        corr, issued = self.call("cudaLaunchKernel_v7000", call_ns)
        op = self._op("kernel", key, KERNELS[key][2], stream, corr, issued)
        self._place(op, issued + self.around(1_500), self.around(900, 0.3))
        op.end = op.start + self.around(ns, 0.03)
        self._occupy(op)
        return op

    def collective(
        self, stream: int, key: str, ns: int, group: str, size: int
    ) -> Generator[Rendezvous, None, Op]:
        """A collective of `size` ranks: all of them end it together."""
        corr, issued = self.call("cudaLaunchKernelExC_v11060", 5_000)
        op = self._op("kernel", key, "comm", stream, corr, issued)
        self._place(op, issued + self.around(1_800), self.around(900, 0.3))
        yield Rendezvous(group, size, ns, op, stream)
        self._occupy(op)
        return op

    def memcpy(self, stream: int, kind: int, size: int, gbps: float, pinned: bool = True) -> Op:
        """A copy; a pageable one holds its caller until it is done."""
        corr, issued = self.call("cudaMemcpyAsync_v3020", 5_000)
        op = self._op("memcpy", "memcpy", "memcpy", stream, corr, issued)
        op.payload, op.copy_kind, op.pinned = size, kind, pinned
        self._place(op, issued + self.around(1_500), self.around(1_000, 0.3))
        op.end = op.start + max(900, int(size / gbps))
        self._occupy(op)
        if not pinned:
            self.extend_call(op.end + 2 * US)
        return op

    def memset(self, stream: int, size: int) -> Op:
        corr, issued = self.call("cudaMemsetAsync_v3020", 3_500)
        op = self._op("memset", "memset", "memset", stream, corr, issued)
        op.payload = size
        self._place(op, issued + self.around(1_400), self.around(900, 0.3))
        op.end = op.start + max(800, size // 1500)
        self._occupy(op)
        return op

    # ---- events

    def event(self) -> int:
        """One of a few handles, so that they are reused as frameworks reuse them."""
        self.handle = self.handle % 24 + 1
        return self.handle

    def record(self, stream: int, handle: int) -> None:
        corr, _ = self.call("cudaEventRecord_v3020", 1_800)
        self.sync_id += 1
        state = self._state(stream)
        seen = State(state.real, state.stream_only)
        ready = self.free_at.get(stream, 0)
        self.events[handle] = (seen, ready, self.sync_id)
        self.b.record(
            stream=stream,
            event=handle,
            corr=corr,
            sync_id=self.sync_id,
            timestamp=0,
            pid=self.pid,
            device=self.ordinal,
            context=self.context,
        )

    def wait(self, stream: int, handle: int) -> None:
        corr, end = self.call("cudaStreamWaitEvent_v3020", 1_300)
        seen, ready, sync_id = self.events[handle]
        state = self._state(stream)
        self.states[stream] = State(better(state.real, seen.real), state.stream_only)
        self.free_at[stream] = max(self.free_at.get(stream, 0), ready)
        self.b.wait(
            stream=stream,
            event=handle,
            corr=corr,
            sync_id=sync_id,
            start=end - 900,
            end=end - 200,
            pid=self.pid,
            context=self.context,
        )

    def follow(self, after: int, before: int) -> None:
        """Let stream `before` wait for what stream `after` has so far, through a relay if told."""
        handle = self.event()
        self.record(after, handle)
        if self.world.scenario.relay:
            self.wait(RELAY_STREAM, handle)
            handle = self.event()
            self.record(RELAY_STREAM, handle)
        self.wait(before, handle)

    def stream_sync(self, stream: int) -> None:
        self._sync("cudaStreamSynchronize_v3020", stream, self.free_at.get(stream, 0))

    def device_sync(self) -> None:
        self._sync("cudaDeviceSynchronize_v3020", INVALID, max(self.free_at.values(), default=0))

    def _sync(self, name: str, stream: int, until: int) -> None:
        corr, _ = self.call(name, 2_500)
        start = self.b.rows["CUPTI_ACTIVITY_KIND_RUNTIME"][-1]["start"]
        self.extend_call(until + 4 * US)
        self.b.wait(
            stream=stream,
            event=INVALID,
            corr=corr,
            sync_id=0,
            start=start + 400,
            end=self.now - 300,
            pid=self.pid,
            context=self.context,
        )

    # ---- CUDA graphs

    def graph_launch(self, stream: int, nodes: list[tuple[str, int]], graph: int) -> list[Op]:
        """Replay a chain of kernels by one call: node rows, or one row for all of them."""
        corr, issued = self.call("cudaGraphLaunch_v10000", 9_000)
        begin = issued + self.around(4_000)
        ops: list[Op] = []
        if self.world.scenario.graphs == "whole":
            op = self._op("graph", "graph", "compute", stream, corr, issued)
            op.payload = graph
            self._place(op, begin, self.around(900, 0.3))
            op.end = op.start + sum(self.around(ns, 0.03) + 1_100 for _, ns in nodes)
            ops.append(op)
        else:
            for at, (key, ns) in enumerate(nodes):
                op = self._op("kernel", key, KERNELS[key][2], stream, corr, issued)
                op.node = (graph << 32) | (at + 1)
                if at == 0:
                    self._place(op, begin, self.around(900, 0.3))
                else:
                    op.is_later_node = True
                    op.follows_in_graph = ops[-1]
                    op.start = ops[-1].end + self.around(1_100)
                    op.issue = min(op.issue, op.start)
                op.end = op.start + self.around(ns, 0.03)
                ops.append(op)
        self._occupy(ops[-1], is_traced=ops[-1].kind != "graph" or self.world.traces_graphs)
        return ops


class World:
    """All processes of one simulation, and what they did."""

    def __init__(self, scenario: Scenario, seed: int, version: str) -> None:
        self.scenario = scenario
        self.seed = seed
        self.version = version
        self.builder = TraceBuilder(version)
        self.ops: list[tuple[Rank, Op]] = []
        self.windows: list[tuple[Rank, int, int]] = []
        self.first = 1 << 62
        self.traces_graphs = table_exists("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", version)
        self.ranks = [Rank(self, r) for r in range(scenario.ranks)]

    def device(self, rank: Rank) -> int:
        """The physical GPU, or what an export without the device table makes of it."""
        if table_exists("TARGET_INFO_CUDA_DEVICE", self.version):
            return rank.rank
        return rank.ordinal

    def run(self, program: Callable[[Rank], Program]) -> None:
        """Run all ranks; a rank rests at a collective until its group is complete."""
        running = {rank.rank: program(rank) for rank in self.ranks}
        arrived: dict[str, list[tuple[int, Rendezvous]]] = {}
        ready = list(running)
        while ready:
            number = ready.pop(0)
            met = next(running[number], None)
            if met is None:
                continue
            present = arrived.setdefault(met.group, [])
            present.append((number, met))
            if len(present) < met.size:
                continue
            end = max(m.op.start for _, m in present) + max(m.duration for _, m in present)
            for other, m in present:
                m.op.end = end + self.ranks[other].random.randrange(400)
                ready.append(other)
            del arrived[met.group]
        assert not arrived, "a collective was never joined by all of its group"


# ---- programs


def training(rank: Rank) -> Program:
    """A training run, as the scenario says."""
    s = rank.world.scenario
    rank.world.first = min(rank.world.first, rank.now)
    rank.launch(COMPUTE_STREAM, "fill", 20 * US)
    rank.cpu(150 * US)
    rank.device_sync()
    rank.cpu(rank.around(300 * US))
    graph = 0
    for step in range(s.steps):
        with rank.range(s.range_text.format(step), is_step=True):
            if s.stall_ns and step % s.stall_every == s.stall_every - 1:
                with rank.range("next_batch"):
                    rank.cpu(s.stall_ns)
            else:
                rank.cpu(rank.around(60 * US))
            rank.memcpy(COPY_STREAM, 1, 524_288, 22.0, pinned=not s.pageable)
            rank.follow(COPY_STREAM, COMPUTE_STREAM)
            if s.pipeline:
                yield from _pipeline_step(rank)
            elif s.graphs:
                graph += 1
                _graph_step(rank, 2)
            else:
                with rank.range("forward"):
                    if s.dp and step:
                        rank.follow(DP_STREAM, COMPUTE_STREAM)  # the gathered parameters
                    for layer in range(s.layers):
                        yield from _layer_forward(rank, step, layer)
                    rank.launch(COMPUTE_STREAM, "loss", _ns(rank, 300 * US))
                    yield from _filler(rank)
                with rank.thread(60), rank.range("backward"):
                    for layer in reversed(range(s.layers)):
                        yield from _layer_backward(rank, layer)
            yield from _optimizer(rank)
            with rank.range("loss.item"):
                rank.memcpy(COMPUTE_STREAM, 2, 4, 10.0, pinned=False)
                rank.stream_sync(COMPUTE_STREAM)


def _ns(rank: Rank, ns: int) -> int:
    scenario = rank.world.scenario
    return 2_400 if scenario.tiny else int(ns * scenario.kernel_scale)


def _filler(rank: Rank) -> Program:
    for _ in range(rank.world.scenario.kernels_per_step):
        rank.launch(COMPUTE_STREAM, "mul", 6 * US)
    yield from ()


def _all_reduce(rank: Rank, step: int, layer: int, is_last: bool) -> Program:
    """Tensor parallelism's sum after a row-parallel product: the next kernel needs it."""
    s = rank.world.scenario
    late = s.late_ns if is_last and layer == s.layers // 2 else 0
    if late and rank.rank == 1:
        rank.stream_sync(COMPUTE_STREAM)
        rank.cpu(late)  # the peer comes late: it was busy on its host
    rank.follow(COMPUTE_STREAM, TP_STREAM)
    with rank.range("ncclAllReduce", domain=1):
        yield from rank.collective(TP_STREAM, "all_reduce", _ns(rank, 140 * US), "tp", s.ranks)
    rank.follow(TP_STREAM, COMPUTE_STREAM)


def _layer_forward(rank: Rank, step: int, layer: int) -> Program:
    s = rank.world.scenario
    c = COMPUTE_STREAM
    with _layer_range(rank, layer):
        if s.offload:
            # fetched when it is needed instead of one layer ahead, into the buffer just used
            rank.follow(c, COPY_STREAM)
            rank.memcpy(COPY_STREAM, 1, 48_000_000, 24.0)
            rank.follow(COPY_STREAM, c)
        rank.launch(c, "norm", _ns(rank, 60 * US))
        rank.launch(c, "qkv", _ns(rank, 420 * US))
        rank.launch(c, "attention", _ns(rank, 520 * US))
        rank.launch(c, "proj", _ns(rank, 180 * US))
        if s.straggler_ns and rank.rank == s.ranks - 1:
            rank.launch(c, "gemm_small", s.straggler_ns // s.layers)
        if s.tp:
            yield from _all_reduce(rank, step, layer, False)
        rank.launch(c, "add", _ns(rank, 40 * US))
        rank.launch(c, "norm", _ns(rank, 60 * US))
        if s.deepep:
            yield from _experts(rank)
        else:
            rank.launch(c, "fc1", _ns(rank, 640 * US))
            rank.launch(c, "swiglu", _ns(rank, 70 * US))
            rank.launch(c, "fc2", _ns(rank, 600 * US))
        if s.tp:
            yield from _all_reduce(rank, step, layer, True)
        rank.launch(c, "add", _ns(rank, 40 * US))


@contextmanager
def _layer_range(rank: Rank, layer: int) -> Iterator[None]:
    if rank.world.scenario.layer_ranges:
        with rank.range(f"layer {layer}"):
            yield
    else:
        yield


def _experts(rank: Rank) -> Program:
    """Mixture of experts by DeepEP: the host itself polls for the counts."""
    s, c = rank.world.scenario, COMPUTE_STREAM
    rank.follow(c, TP_STREAM)
    notify = yield from rank.collective(TP_STREAM, "ep_notify", 30 * US, "ep", s.ranks)
    rank.now = max(rank.now, notify.end + 5 * US)
    yield from rank.collective(TP_STREAM, "ep_dispatch", 350 * US, "ep", s.ranks)
    rank.follow(TP_STREAM, c)
    rank.launch(c, "fc1", _ns(rank, 300 * US))
    rank.launch(c, "swiglu", _ns(rank, 50 * US))
    rank.launch(c, "fc2", _ns(rank, 280 * US))
    rank.follow(c, TP_STREAM)
    yield from rank.collective(TP_STREAM, "ep_combine", 400 * US, "ep", s.ranks)
    rank.follow(TP_STREAM, c)


def _layer_backward(rank: Rank, layer: int) -> Program:
    s = rank.world.scenario
    c = COMPUTE_STREAM
    rank.launch(c, "dgrad", _ns(rank, 620 * US))
    if s.tp:
        # the sum of the input's gradient runs beside the product for the weight's gradient
        rank.follow(c, TP_STREAM)
        hidden = s.late_hidden_ns if layer == s.layers // 2 else 0
        with rank.range("ncclAllReduce", domain=1):
            yield from rank.collective(
                TP_STREAM, "all_reduce", _ns(rank, 140 * US) + hidden, "tp", s.ranks
            )
    rank.launch(c, "wgrad", _ns(rank, 640 * US))
    rank.launch(c, "wgrad", _ns(rank, 600 * US))
    if s.tp:
        rank.follow(TP_STREAM, c)
    rank.launch(c, "norm_bwd", _ns(rank, 90 * US))
    rank.launch(c, "attention_bwd", _ns(rank, 1_150 * US))
    rank.launch(c, "dgrad", _ns(rank, 400 * US))
    rank.launch(c, "wgrad", _ns(rank, 410 * US))
    if s.dp and layer % 2 == 0:
        rank.follow(c, DP_STREAM)
        with rank.range("ncclReduceScatter", domain=1):
            yield from rank.collective(
                DP_STREAM, "reduce_scatter", _ns(rank, 900 * US), "dp", s.ranks
            )


def _optimizer(rank: Rank) -> Program:
    s, c = rank.world.scenario, COMPUTE_STREAM
    with rank.range("optimizer"):
        if s.dp:
            rank.follow(DP_STREAM, c)
        rank.memset(c, 65_536)
        rank.launch(c, "grad_norm", _ns(rank, 180 * US))
        rank.launch(c, "adam", _ns(rank, 700 * US))
        rank.launch(c, "adam", _ns(rank, 650 * US))
        if s.dp:
            rank.follow(c, DP_STREAM)
            with rank.range("ncclAllGather", domain=1):
                yield from rank.collective(
                    DP_STREAM, "all_gather", _ns(rank, 600 * US), "dp", s.ranks
                )


def _pipeline_step(rank: Rank) -> Program:
    """All forward passes, then all backward passes; stages hand over by SendRecv."""
    s, c = rank.world.scenario, COMPUTE_STREAM
    last = s.ranks - 1
    for forward in (True, False):
        with rank.range("forward" if forward else "backward"):
            for _ in range(s.microbatches):
                source = rank.rank - 1 if forward else rank.rank + 1
                target = rank.rank + 1 if forward else rank.rank - 1
                if 0 <= source <= last:
                    yield from _hand_over(rank, source, rank.rank)
                    rank.follow(TP_STREAM, c)
                for _ in range(s.layers):
                    rank.launch(c, "fc1" if forward else "dgrad", _ns(rank, 300 * US))
                    if not forward:
                        rank.launch(c, "wgrad", _ns(rank, 300 * US))
                if s.straggler_ns and rank.rank == last:
                    rank.launch(c, "gemm_small", s.straggler_ns // (2 * s.microbatches))
                if 0 <= target <= last:
                    rank.follow(c, TP_STREAM)
                    yield from _hand_over(rank, rank.rank, target)


def _hand_over(rank: Rank, source: int, target: int) -> Program:
    group = f"pp{min(source, target)}"
    yield from rank.collective(TP_STREAM, "send_recv", 90 * US, group, 2)


def _graph_step(rank: Rank, graph: int) -> None:
    s = rank.world.scenario
    forward = [("norm", 60), ("qkv", 420), ("attention", 520), ("fc1", 640), ("fc2", 600)]
    backward = [("dgrad", 620), ("wgrad", 640), ("attention_bwd", 1_150), ("norm_bwd", 90)]
    for at, nodes in enumerate((forward * s.layers, backward * s.layers)):
        with rank.range("backward" if at else "forward"):
            rank.graph_launch(
                COMPUTE_STREAM, [(key, _ns(rank, us * US)) for key, us in nodes], graph + at
            )
            rank.launch(COMPUTE_STREAM, "loss", _ns(rank, 200 * US))


# ---- truth

Span = tuple[int, int]


def union(spans: Iterable[Span]) -> list[Span]:
    """Islands of a set of spans."""
    islands: list[Span] = []
    for start, end in sorted(span for span in spans if span[1] > span[0]):
        if islands and start <= islands[-1][1]:
            if end > islands[-1][1]:
                islands[-1] = (islands[-1][0], end)
        else:
            islands.append((start, end))
    return islands


def covered(islands: Iterable[Span], window: Span) -> int:
    """How much of a window the islands cover."""
    return sum(max(0, min(e, window[1]) - max(s, window[0])) for s, e in islands)


@dataclass(slots=True)
class Gap:
    """A stretch without compute, cut into pieces; labels are (start, end, role) of blocking."""

    starved: Span
    blocking: Span
    stalled: Span
    shadowed: Span
    labels: list[tuple[int, int, str]]


def _cut(k: Op, g0: int, g1: int, has_events: bool) -> Gap:
    def follows(op: Op) -> Op | None:
        return op.producer if has_events else op.stream_producer

    producer = None if k.is_later_node else follows(k)
    issued = max(g0, min(k.issue, g1))
    ready = max(issued, min(producer.end, g1)) if producer else issued
    shadow = (issued, issued)
    if producer:
        low = min(max(producer.start, g0), issued)
        shadow = (low, max(low, min(producer.end, issued)))
    labels: list[tuple[int, int, str]] = []
    x, low, high = producer, issued, ready
    while x is not None and low < high:
        y = x.follows_in_graph if x.is_later_node else follows(x)
        cut = low
        if y is not None:
            cut = max(low, min(high, x.start, y.end))
        if cut < high:
            labels.append((cut, high, x.role))
        x, high = y, cut
    return Gap((g0, issued), (issued, ready), (ready, g1), shadow, labels)


def _gaps(ops: list[tuple[Rank, Op]], first: int, has_events: bool) -> Iterator[Gap]:
    """The gaps of one device before its compute operations."""
    compute = [(r, op) for r, op in ops if op.role == "compute" and op.end > op.start]
    compute.sort(key=lambda x: (x[1].start, x[1].corr, x[0].pid, x[0].context, x[1].stream))
    reached = first
    for _, op in compute:
        if op.start > reached:
            yield _cut(op, reached, op.start, has_events)
        reached = max(reached, op.end)


ROLES = ("compute", "comm", "memcpy", "memset")


def _truth(world: World) -> Truth:
    has_events = table_exists("CUPTI_ACTIVITY_KIND_CUDA_EVENT", world.version)
    visible = [(r, op) for r, op in world.ops if world.traces_graphs or op.kind != "graph"]
    first = min(
        [world.first]
        + [op.start for _, op in visible]
        + [row["start"] for row in world.builder.rows["CUPTI_ACTIVITY_KIND_RUNTIME"]]
    )
    windows: dict[int, list[Span]] = {}
    budget: dict[tuple[int, int], dict[str, int]] = {}
    labels: dict[tuple[int, int], dict[str, int]] = {}
    gap_count = 0
    for device in sorted({op.device for _, op in visible}):
        ops = [(r, op) for r, op in visible if op.device == device]
        drivers = {r.rank for r, _ in ops}
        windows[device] = sorted((s, e) for r, s, e in world.windows if r.rank in drivers)
        spans = {role: union((o.start, o.end) for _, o in ops if o.role == role) for role in ROLES}
        busy = union(span for role in ROLES for span in spans[role])
        not_comm = union(span for role in ROLES if role != "comm" for span in spans[role])
        gaps = list(_gaps(ops, first, has_events))
        gap_count += len(gaps)
        for at, w in enumerate(windows[device]):
            near = [g for g in gaps if g.starved[0] < w[1] and g.stalled[1] > w[0]]
            by_role = dict.fromkeys(ROLES, 0)
            for g in near:
                for start, end, role in g.labels:
                    by_role[role] += covered([(start, end)], w)
            m = {"iteration": w[1] - w[0], "device_busy": covered(busy, w)}
            m["device_idle"] = m["iteration"] - m["device_busy"]
            m["noncomm_busy"] = m["compute_busy"] = covered(spans["compute"], w)
            m["comm_busy"] = covered(spans["comm"], w)
            m["compute_absent"] = m["iteration"] - m["compute_busy"]
            m["occupied_not_computing"] = m["device_busy"] - m["compute_busy"]
            m["launch_starved"] = covered((g.starved for g in near), w)
            m["blocking"] = covered((g.blocking for g in near), w)
            m["dependency_stalled"] = covered((g.stalled for g in near), w)
            m["unattributed"] = m["compute_absent"] - sum(
                m[x] for x in ("launch_starved", "blocking", "dependency_stalled")
            )
            m["comm_exposed"] = m["device_busy"] - covered(not_comm, w)
            m["comm_blocking"] = by_role["comm"]
            m["comm_overlapped"] = m["comm_busy"] - m["comm_exposed"]
            m["launch_starved_shadowed"] = covered((g.shadowed for g in near), w)
            budget[device, at] = m
            labels[device, at] = by_role
    s = world.scenario
    cause = Cause(s.cause, s.cause_role, {})
    for key, m in budget.items():
        if s.cause:
            cause.ns[key] = labels[key][s.cause_role] if s.cause_role else m[s.cause]
    return Truth(
        world.version,
        windows,
        budget,
        labels,
        cause,
        gap_count,
        sum(op.kind == "kernel" for _, op in visible),
        anchor="nvtx:" + s.range_text.format("*"),
    )


# ---- writing


def _fill(world: World) -> None:
    """Put the operations and what describes the machine into the builder."""
    b = world.builder
    grid = 0
    for rank, op in world.ops:
        place = {
            "pid": rank.pid,
            "device": rank.ordinal,
            "context": rank.context,
            "stream": op.stream,
            "corr": op.corr,
        }
        if op.kind == "kernel":
            name, short, _, block, registers = KERNELS[op.key]
            grid += 1
            b.kernel(
                op.start,
                op.end,
                name,
                short=short,
                node=op.node,
                gridX=16 if op.role == "comm" else 132,
                blockX=block,
                registersPerThread=registers,
                gridId=grid,
                graphId=None if op.node is None else op.node >> 32,
                **place,  # type: ignore[arg-type]
            )
        elif op.kind == "memcpy":
            host = 1 if op.pinned else 0
            source, target = (host, 2) if op.copy_kind == 1 else (2, host)
            b.memcpy(
                op.start,
                op.end,
                kind=op.copy_kind,
                size=op.payload,
                srcKind=source,
                dstKind=target,
                copyCount=1,
                **place,  # type: ignore[arg-type]
            )
        elif op.kind == "memset":
            b.memset(op.start, op.end, size=op.payload, **place)  # type: ignore[arg-type]
        else:
            b.graph_exec(op.start, op.end, graph=op.payload, **place)  # type: ignore[arg-type]
    for rank in world.ranks:
        b.process(rank.pid, "python3")
        b.cuda_device(rank.pid, rank.ordinal, rank.rank)
        b.gpu(
            rank.rank,
            "NVIDIA H100 80GB HBM3",
            vmId=1 << 48,
            busLocation=f"0000:{0x1B + rank.rank * 0x26:02x}:00.0",
            isDiscrete=1,
            totalMemory=85_017_624_576,
            memoryBandwidth=3_352_320_000_000,
            clockRate=1_980_000_000,
            smCount=132,
            chipName="GH100",
            cuDevice=0,
            computeMajor=9,
            computeMinor=0,
        )
        b.raw("ThreadNames", nameId=b.string("python3"), globalTid=global_tid(rank.pid, rank.pid))
        b.raw(
            "ThreadNames",
            nameId=b.string("pt_autograd_0"),
            globalTid=global_tid(rank.pid, rank.pid + 60),
        )
        for stream in sorted({op.stream for r, op in world.ops if r is rank} | set(rank.states)):
            b.raw(
                "TARGET_INFO_CUDA_STREAM",
                streamId=stream,
                hwId=0,
                vmId=1,
                processId=rank.pid,
                contextId=rank.context,
                priority=0,
                flag=1 if stream == COMPUTE_STREAM else 2,
            )
        if any(row["domainId"] == 1 for row in b.rows["NVTX_EVENTS"]):
            b.nvtx(20 * US, None, "NCCL", pid=rank.pid, tid=rank.pid, event_type=75, domain=1)
    if world.scenario.graphs:
        mode = "Node" if world.scenario.graphs == "node" else "Graph"
        b.capture_meta("CUDA_GRAPH_TRACE_OPTIONS:MODE", mode)
    b.duration(max(rank.now for rank in world.ranks) + 5 * MS)
    b.session_start(EPOCH)


def _world(scenario: Scenario, seed: int, version: str) -> World:
    world = World(scenario, seed, version)
    world.run(training)
    return world


def simulate(
    scenario: Scenario | str, seed: int = 0, version: str = "2026.2.1", path: str | Path = ""
) -> Truth:
    """Simulate, write the export to `path` (nothing where it is empty), and return the truth."""
    if isinstance(scenario, str):
        scenario = SCENARIOS[scenario]
    world = _world(scenario, seed, version)
    truth = _truth(world)
    if path:
        _fill(world)
        world.builder.write(path)
    return truth


def simulate_ranks(
    scenario: Scenario, seed: int, version: str, folder: str | Path
) -> dict[int, Truth]:
    """One export per rank, each on its own clock, as `rank<i>.sqlite` with a `ranks.yaml`.

    Rank i's clock is ahead by `clock_offsets_ns[i]`, and its session began i seconds early.
    `Truth.offsets` holds what has to be added to wall-clock times of each rank to undo it."""
    folder = Path(folder)
    whole = _world(replace(scenario, ordinals_are_local=True), seed, version)
    truths: dict[int, Truth] = {}
    lines = ["ranks:"]
    for rank in whole.ranks:
        own = World(replace(scenario, ordinals_are_local=True), seed, version)
        own.ranks = [rank]
        own.ops = [(r, op) for r, op in whole.ops if r is rank]
        own.windows = [w for w in whole.windows if w[0] is rank]
        own.first = whole.first
        pid = global_pid(rank.pid)
        for table, rows in whole.builder.rows.items():
            for row in rows:
                process = row.get("globalPid", row.get("globalTid"))
                if process is None or process >> 24 == (pid or 0) >> 24:
                    own.builder.rows[table].append(dict(row))
        own.builder._string_ids = whole.builder._string_ids
        own.first = min(row["start"] for row in own.builder.rows["CUPTI_ACTIVITY_KIND_RUNTIME"])
        truths[rank.rank] = _truth(own)
        _fill(own)
        own.builder.rows["StringIds"] = [
            {"id": number, "value": text} for text, number in own.builder._string_ids.items()
        ]
        offsets = scenario.clock_offsets_ns
        offset = offsets[rank.rank] if rank.rank < len(offsets) else 0
        early = rank.rank * 1_000 * MS
        for rows in own.builder.rows.values():
            for row in rows:
                for column in ("start", "end", "duration"):
                    if row.get(column) is not None:
                        row[column] += early
        for row in own.builder.rows["TARGET_INFO_SESSION_START_TIME"]:
            row["utcEpochNs"] += offset - early
        truth = truths[rank.rank]
        truth.offsets = {rank.rank: -offset}
        truth.windows = {
            device: [(start + early, end + early) for start, end in spans]
            for device, spans in truth.windows.items()
        }
        own.builder.write(folder / f"rank{rank.rank}.sqlite")
        lines.append(
            f"  - {{trace: rank{rank.rank}.sqlite, rank: {rank.rank}, host: node{rank.rank},"
            f" stage: {rank.rank if scenario.pipeline else 0}, groups: {{tp: tp0, dp: dp0}}}}"
        )
    lines += ["groups:", f"  tp: {{stream: {TP_STREAM}}}", f"  dp: {{stream: {DP_STREAM}}}"]
    (folder / "ranks.yaml").write_text("\n".join(lines) + "\n")
    return truths


def dump(connection: sqlite3.Connection) -> Iterator[str]:
    """An export as SQL text. Columns that never change stand once beside the rows."""
    tables = connection.execute(
        "SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY rowid"
    ).fetchall()
    for name, sql in tables:
        yield _wrap(sql.replace('"', ""), ", ") + ";"
        cursor = connection.execute(f'SELECT * FROM "{name}" ORDER BY rowid')
        columns = [column[0] for column in cursor.description]
        rows = cursor.fetchall()
        if not rows:
            continue
        fixed = {
            at for at in range(len(columns)) if len(rows) > 1 and len({r[at] for r in rows}) == 1
        }
        moving = [at for at in range(len(columns)) if at not in fixed]
        values = ",\n".join(
            "(" + ",".join(_literal(row[at]) for at in moving) + ")" for row in rows
        )
        if not fixed:
            yield f"INSERT INTO {name} VALUES\n{values};"
            continue
        order = {at: f"column{i + 1}" for i, at in enumerate(moving)}
        chosen = ", ".join(order.get(at, "") or _literal(rows[0][at]) for at in range(len(columns)))
        yield _wrap(f"INSERT INTO {name} SELECT {chosen}", ", ") + f" FROM (VALUES\n{values});"


def _wrap(text: str, at: str, width: int = 98) -> str:
    lines = [""]
    for piece in text.split(at):
        if lines[-1] and len(lines[-1]) + len(piece) > width:
            lines.append("    ")
        lines[-1] += piece + at
    return "\n".join(line.rstrip() for line in lines).removesuffix(at.rstrip())


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value)


def sql_text(scenario: Scenario, seed: int, version: str) -> str:
    """The export of a scenario as SQL text."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.sqlite"
        simulate(scenario, seed, version, path)
        connection = sqlite3.connect(path)
        try:
            return "\n".join(dump(connection)) + "\n"
        finally:
            connection.close()


EXAMPLE = Scenario(
    "example",
    steps=8,
    layers=4,
    ranks=2,
    ordinals_are_local=True,
    tp=True,
    dp=True,
    late_ns=6 * MS,
    late_hidden_ns=3 * MS,
    stall_ns=5 * MS,
    stall_every=4,
    kernel_scale=4.0,
    range_text="training_step_{}",
    layer_ranges=False,
)

EXAMPLE_HEADER = """\
-- options: --anchor nvtx:training_step_*
--
-- The shipped example: 8 steps of a small Megatron-like run, two processes that each call their
-- GPU device 0. Written by `python tests/simulator.py --example > fixtures/example.sql`.
--
-- One step of a rank, not to scale (F forward, B backward, O optimizer, # waiting):
--
--   compute  stream  7  F F ..... F F  B B B B B B  O O ...
--   TP       stream 20      ###AR          AR #####             all-reduce
--   DP       stream 24                  RS    RS         AG     reduce-scatter, all-gather
--   copies   stream 28  h                                       host to device
--
-- * In each forward pass one all-reduce takes 6 ms longer, because rank 1's host comes late to
--   it. Rank 0 needs the sum at once: there the collective is blocking. On rank 1 the same time
--   is the host's.
-- * In each backward pass one all-reduce takes 3 ms longer beside products that need longer still:
--   it is overlapped and costs nothing.
-- * Every fourth step the data loader holds the host for 5 ms. The all-gather of the step before
--   then runs alone, exposed, and blocks nothing: there was nothing to launch.
"""


def main() -> None:
    """Write one scenario to a file, or SQL text to standard output."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("scenario", nargs="?", choices=sorted(SCENARIOS))
    parser.add_argument("out", nargs="?", help="file to write")
    parser.add_argument("--version", default="2026.2.1", choices=VERSIONS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kernels", type=int, help="a megatron-like run of so many per step")
    parser.add_argument("--sql", action="store_true", help="print SQL text")
    parser.add_argument("--example", action="store_true", help="print fixtures/example.sql")
    options = parser.parse_args()
    if options.example:
        sys.stdout.write(EXAMPLE_HEADER + sql_text(EXAMPLE, 1, "2026.2.1"))
        return
    if options.kernels:
        scenario = megatron_like(options.kernels)
    elif options.scenario:
        scenario = SCENARIOS[options.scenario]
    else:
        parser.error("name a scenario, or give --kernels or --example")
    if options.sql:
        sys.stdout.write(sql_text(scenario, options.seed, options.version))
    elif options.out:
        simulate(scenario, options.seed, options.version, options.out)
    else:
        parser.error("give a file to write, or --sql")


if __name__ == "__main__":
    main()
