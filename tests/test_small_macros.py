"""Macros asked alone, by hand and on random rows; test_intervals.py has those of intervals."""

from itertools import count, pairwise
from random import Random

import pytest


@pytest.fixture
def con(ask, bare):
    """The connection with every macro as its file has it now."""
    return bare


@pytest.mark.parametrize(
    ("name", "activity"),
    [
        ("cudaStreamSynchronize", "synchronise"),
        ("cuCtxSynchronize", "synchronise"),
        ("cudaDeviceSynchronize", "synchronise"),
        ("cudaMemcpy", "synchronise"),
        ("cudaMemcpy2D", "synchronise"),
        ("cuMemcpyHtoD_v2", "synchronise"),
        ("cuMemsetD8_v2", "synchronise"),
        ("cudaMemcpyAsync", "call"),
        ("cuMemsetD8Async", "call"),
        ("cudaMalloc", "memory"),
        ("cudaMallocAsync", "memory"),
        ("cuMemAlloc_v2", "memory"),
        ("cuMemMap", "memory"),
        ("cudaLaunchKernel", "launch"),
        ("cuLaunchKernelEx", "launch"),
        ("cudaGraphLaunch", "launch"),
        ("cudaLaunchHostFunc", "launch"),
        ("cudaGraphInstantiate", "call"),
        ("cudaEventRecord", "call"),
        ("cudaStreamWaitEvent", "call"),
        ("mycudaMemcpy", "call"),
        ("mycudaMalloc", "call"),
    ],
)
def test_what_the_host_does_in_a_call(con, name, activity):
    assert con.execute("SELECT nsys.call_activity(?)", [name]).fetchone() == (activity,)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cudaLaunchKernel_v7000", "cudaLaunchKernel"),
        ("cudaLaunchKernel_ptsz", "cudaLaunchKernel"),
        ("cudaLaunchKernel_v7000_ptsz", "cudaLaunchKernel"),
        ("cuMemsetD8_v2_ptds", "cuMemsetD8_v2"),
        ("cuMemcpyHtoD_v2", "cuMemcpyHtoD_v2"),
        ("cudaFoo_v123", "cudaFoo_v123"),
    ],
)
def test_a_call_loses_the_version_of_its_interface_only(con, name, text):
    # a driver call's own _v2 has fewer than four figures
    assert con.execute("SELECT nsys.call_text(?)", [name]).fetchone() == (text,)


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0.0 us"),
        (1_500, "1.5 us"),
        (999_999, "1000.0 us"),
        (1_000_000, "1.0 ms"),
        (999_999_999, "1000.0 ms"),
        (1_000_000_000, "1.00 s"),
    ],
)
def test_a_duration_takes_the_next_unit_when_it_is_full(con, ns, text):
    assert con.execute("SELECT nsys.duration_text(?)", [ns]).fetchone() == (text,)


@pytest.mark.parametrize(
    ("end", "session_end", "is_unclosed"),
    [(9, 10, False), (10, 10, True), (11, 10, True), (None, 10, True), (None, None, True),
     (11, None, False)],
)  # fmt: skip
def test_a_range_is_open_from_the_session_end_on(con, end, session_end, is_unclosed):
    asked = con.execute("SELECT nsys.is_unclosed(?::BIGINT, ?::BIGINT)", [end, session_end])
    assert asked.fetchone() == (is_unclosed,)


@pytest.mark.parametrize(
    ("level", "length", "kept"),
    [(2, 60, 60), (2, 61, 60), (3, 120, 120), (3, 121, 120), (4, 500, 500)],
)
def test_a_long_kernel_name_is_cut_for_a_pattern(con, level, length, kept):
    found = con.execute("SELECT nsys.kernel_pattern(?, ?)", ["k" * length, level]).fetchone()[0]
    assert found == "k" * kept + "*" * (kept < length)


@pytest.mark.parametrize(
    ("name", "function", "words"),
    [
        ("void ns::f<(int)4>(T1)", "ns::f", "ns::f"),
        ("ns::f<4>(int)", "ns::f", "ns::f"),
        ("_ZN2ns1fILi4EEEvi", "ns::f", "ns::f"),
        ("_Z3fooi", "foo", "foo"),
        ("_Z10ncclKernelPv", "ncclKernel", "nccl kernel"),
        ("_ZN2at6native13reduce_kernelILi512EEEvT_", "at::native::reduce_kernel",
         "at::native::reduce kernel"),
        ("_ZN1a1b1c1d1e1f1g1h1iE", "a::b::c::d::e::f::g::h", "a::b::c::d::e::f::g::h"),
        ("_ZN12_GLOBAL__N_11fEv", "f", "f"),
        ("_ZNK2ns1gEv", "ns::g", "ns::g"),
        ("_ZN49_GLOBAL__N__abcdefgh_7_file_cu_0123456789abcdefgh3runEv", "run", "run"),
        ("void <unnamed>::f(int)", "f", "f"),
        ("void (anonymous namespace)::g<1>(int)", "g", "g"),
        ("static inline void h(int)", "h", "h"),
        ("std::enable_if<true, void>::type ns::k<int>(int)", "ns::k", "ns::k"),
        ("ns::LayerNormFwd_v2", "ns::LayerNormFwd_v2", "ns::layer norm fwd v2"),
        ("ampere_bf16_s16816gemm", "ampere_bf16_s16816gemm", "ampere bf16 s16816gemm"),
        ("RMSNormKernel", "RMSNormKernel", "rms norm kernel"),
    ],
)  # fmt: skip
def test_kernel_text_tells_the_function_and_its_words(con, name, function, words):
    asked = con.execute("SELECT nsys.kernel_function(?)", [name])
    assert asked.fetchone() == (function,)
    assert con.execute("SELECT nsys.kernel_words(?)", [function]).fetchone() == (words,)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("_ZN2ns1fILi4EEEvi", "_ZN::ns::fILi::EEEvi"),
        ("void <unnamed>::f{anonymous}", "void (anonymous namespace)::f(anonymous namespace)"),
        ("k" * 5000, "k" * 4096),
        ("_Z" + "k" * 5000, "_Z" + "k" * 4094),
    ],
)
def test_kernel_text_is_bounded_and_of_one_spelling(con, name, text):
    assert con.execute("SELECT nsys.kernel_text(?)", [name]).fetchone() == (text,)


def covered(stretches, over):
    """iv_cover by definition: {(part, stretch): [(start, end, label)]}, instant by instant.

    Rows that cross leave their label open; the traces here nest, or lie beside each other.
    """
    found = {}
    for part, first, last in stretches:
        if last <= first:
            continue
        edges = {first, last}
        for other, start, end, _ in over:
            if other == part:
                edges |= {each for each in (start, end) if first < each < last}
        pieces = []
        for start, end in pairwise(sorted(edges)):
            here = [row for row in over if row[0] == part and row[1] <= start and end <= row[2]]
            label = min(here, key=lambda row: (row[1], -row[2], row[3]))[3] if here else None
            if pieces and pieces[-1][1:] == (start, label):
                pieces[-1] = (pieces[-1][0], end, label)
            else:
                pieces.append((start, end, label))
        found[part, first] = pieces
    return found


def nested(random, first, last, depth, label):
    """Rows that nest inside [first, last), with labels that tell them apart."""
    rows, at = [], first
    while at < last and depth:
        start = at + random.randrange(0, 4) * random.choice([1, 400_000])
        end = start + random.randrange(0, 6) * random.choice([1, 300_000, 1_000_000])
        end = min(end, last)
        if end <= start:
            break
        rows.append((start, end, next(label)))
        rows += nested(random, start, end, depth - 1, label)
        at = end
    return rows


@pytest.mark.parametrize("seed", range(30))
def test_stretches_are_cut_where_the_outermost_row_begins_or_ends(con, seed):
    random, label = Random(seed), count()
    stretches, over = [], []
    for part in (1, 2):
        at = 0
        for _ in range(4):
            start = at + random.randrange(0, 5) * random.choice([1, 350_000])
            at = start + random.randrange(0, 6) * random.choice([1, 500_000, 1_000_000])
            stretches.append((part, start, at))
        over += [(part, *row) for row in nested(random, 0, 12_000_000, 3, label)]
    over.append((1, 5, 5, next(label)))
    for name, columns, rows in (
        ("rel", "part BIGINT, start_ns BIGINT, end_ns BIGINT", stretches),
        ("over_rows", "part BIGINT, start_ns BIGINT, end_ns BIGINT, label BIGINT", over),
    ):
        con.execute(f"CREATE OR REPLACE TABLE {name} ({columns})")
        con.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(rows[0]))})", rows)
    rows = con.execute("FROM nsys.iv_cover('rel', 'over_rows') ORDER BY ALL").fetchall()
    merged = {}
    for part, stretch, start, end, named in rows:
        pieces = merged.setdefault((part, stretch), [])
        if pieces:
            assert pieces[-1][1] == start  # disjoint, and nothing left out
        if pieces and pieces[-1][2] == named:
            pieces[-1] = (pieces[-1][0], end, named)
        else:
            pieces.append((start, end, named))
    assert merged == covered(stretches, over)
