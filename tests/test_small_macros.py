"""Macros asked alone, by hand and on random rows; test_intervals.py has those of intervals."""

from itertools import count, pairwise
from random import Random

import pytest

from conftest import written


@pytest.fixture
def con(ask, bare):
    """The connection with every macro as its file has it now."""
    return bare


def test_kernel_text_reads_the_first_thousand_characters(con):
    for name in ("k" * 1500, "_Z1500" + "k" * 1500):
        function = con.execute("SELECT nsys.kernel_function(?)", [name]).fetchone()[0]
        assert len(function) == 1024 - name.count("_Z1500") * 6 and set(function) == {"k"}


def put(con, name, columns, rows):
    con.execute(f"CREATE OR REPLACE TABLE {name} ({columns})")
    con.execute(f"INSERT INTO {name} VALUES {', '.join(map(written, rows))}")


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
    # at the very times of the others, in a part that they have nothing to do with
    stretches += [(3, start, end) for part, start, end in stretches if part == 1]
    over += [(3, start + 1, end, next(label)) for part, start, end, _ in over if part == 1]
    put(con, "rel", "part BIGINT, start_ns BIGINT, end_ns BIGINT", stretches)
    put(con, "over_rows", "part BIGINT, start_ns BIGINT, end_ns BIGINT, label BIGINT", over)
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


def texts(con, macro, values):
    """{value: what the macro makes of it}."""
    listed = f"SELECT v, {macro}(v) FROM (SELECT unnest(?::VARCHAR[])) AS t (v)"
    return dict(con.execute(listed, [list(values)]).fetchall())


def test_statistic_pads_with_zeros(con):
    for n in range(1, 7):
        for size in range(n + 1):
            values = [7, 3, 12, 5, 3, 9][:size]
            padded = sorted(values + [0] * (n - size))
            asked = con.execute(
                "SELECT nsys.padded_median(v, n), nsys.padded_min(v, n), nsys.padded_max(v, n), "
                "nsys.padded_middle(v, n), [nsys.padded_at(v, n, p) FOR p IN range(1, n + 1)] "
                "FROM (SELECT ?::BIGINT[] AS v, ?::BIGINT AS n)",
                [values, n],
            ).fetchone()
            median = (padded[(n - 1) // 2] + padded[n // 2]) / 2
            assert asked == (median, padded[0], padded[-1], int(median), padded)


def test_memory_kinds_are_those_of_the_exporter(con):
    kinds = ["pageable", "pinned", "device", "array", "managed", "device static", "managed static"]
    asked = (
        "SELECT nsys.memory_kind(n) FROM (SELECT unnest([0, 1, 2, 3, 4, 5, 6, 7, 99, NULL]) AS n)"
    )
    assert [row[0] for row in con.execute(asked).fetchall()] == [*kinds, None, None, None]


def test_metric_kind_is_told_by_the_name(con):
    named = {
        **dict.fromkeys(["SM Issue", "SMs issue [Throughput %]", "sms Issue x"], "sm_issue"),
        **dict.fromkeys(["Tensor Active [Throughput %]", "TENSOR ACTIVE"], "tensor_active"),
        **dict.fromkeys(["DRAM Read Bandwidth [%]", "VRAM read", "ram read"], "dram_read"),
        **dict.fromkeys(["DRAM Write Bandwidth [%]", "VRAM write"], "dram_write"),
        "NVLink RX Responses User Data [Throughput %]": "nvlink_rx",
        "NVLink RX Response User Data": "nvlink_rx",
        "NVLink TX Responses User Data [Throughput %]": "nvlink_tx",
        "NVLink TX Response User Data": "nvlink_tx",
        **dict.fromkeys(["SM Active", "SMs Active [Throughput %]"], "sms_active"),
        **dict.fromkeys(["SM Issue [count]", "SMs Active [", "SM Issues", "my SM Issue"]),
        **dict.fromkeys(["NVLink RX Requests User Data [Throughput %]", "Tensor Activeness", ""]),
        **dict.fromkeys(["DRAM Reads", "DRAM Read [MB/s]", "xdram write", "PCIe RX"]),
    }
    assert texts(con, "nsys.metric_kind", named) == named


def test_pattern_matches_the_whole_text(con):
    cases = [
        *[("step 1", "step *", True), ("step ", "step *", True), ("step", "step *", False)],
        *[("my step 1", "step *", False), ("my step 1", "*step*", True), ("Step", "step", False)],
        *[("a%b", "a%b", True), ("axb", "a%b", False), ("a_b", "a_b", True), ("axb", "a_b", False)],
        *[("a!b", "a!b", True), ("a!%b", "a!%b", True), ("ab", "a!b", False), ("", "*", True)],
        *[("a?b", "a?b", True), ("axb", "a?b", False), ("[ab]", "[ab]", True), ("x", "", False)],
        *[("a\nb", "a*b", True), ("a*b", "a*b", True), (None, "*", None), ("abab", "a*b", True)],
    ]
    for text, pattern, is_match in cases:
        asked = con.execute("SELECT nsys.matches(?::VARCHAR, ?)", [text, pattern]).fetchone()
        assert asked == (is_match,), (text, pattern)


def test_pattern_stems_cut_the_number_at_the_end(con):
    stems = {
        **{"step 12": "step *", "step 0": "step *", "step9": "step*", "12": "*", "s1x": "s1x"},
        **{"mm, seq = 4, op_id = 7": "mm, seq = *", "mm, op_id = 7, sizes = 1": "mm, op_id = *"},
        **{"a, seq = 1, seq = 2": "a, seq = *", "a, seq": "a, seq", "": "", "x:": "x:"},
        **{"9/": "9/", "a, op_id = 3, seq = 4": "a, op_id = 3, seq = *"},
    }
    assert texts(con, "nsys.text_stem", stems) == stems
    folds = {"a1b22*c": "a*b*c", "step *": "step *", "1*2 3": "* *", "x": "x", "conv2d": "conv*d"}
    assert texts(con, "nsys.text_fold", folds) == folds


def test_pattern_of_a_kernel_ends_where_its_arguments_begin(con):
    named = {
        **{"void f<int>(int)": "void f<*", "f(int)": "f(*", "plain": "plain"},
        **{"(anonymous namespace)::f<1>": "(anonymous namespace)::f<*"},
        **{"void <unnamed>::g(int)": "void <unnamed>::g(*", "<x>": "<*"},
    }
    first = "SELECT nsys.kernel_pattern(?, 1)"
    assert {name: con.execute(first, [name]).fetchone()[0] for name in named} == named


def test_range_text_keeps_numbers_that_are_part_of_a_word(con):
    folds = {
        **{"layer 3 x": "layer * x", "conv2d": "conv2d", "a1": "a*", "a1_b22": "a*_b*", "*": "*"},
        **{"1.2.3": "*.*.*", "x **": "x *", "step*": "step*", "2d3": "2d*", "7*8": "*"},
        **{"mm, seq = *": "mm", "mm, op_id = *": "mm", "mm, seq = * x": "mm, seq = * x"},
        **{"fwd 12a": "fwd 12a", "a, seq = *, op_id = *": "a, seq = *"},
    }
    assert texts(con, "nsys.range_fold", folds) == folds
    stems = {"layer 3": "layer *", "x" * 300: "x" * 200, "y" * 199 + "12": "y" * 199 + "*"}
    assert texts(con, "nsys.range_stem", stems) == stems
    assert con.execute("SELECT nsys.range_stem(NULL)").fetchone() == ("(unnamed)",)


PARTS = 150


@pytest.fixture
def two_sets(con):
    """Rows of two sets and of windows in many parts, most of them touching; their cells by part."""
    random = Random(11)

    def rows(of):
        start, end = (random.choice([None, *range(13)]) for _ in range(2))
        return (random.choice([of, of, of, None if of == 0 else of]), start, end)

    found = {name: [rows(p) for p in range(PARTS) for _ in range(4)] for name in "ab"}
    windows = [
        (part, at, random.randrange(12), random.randrange(1, 14))
        for part in range(PARTS)
        for at in range(2)
    ]
    for name, listed in found.items():
        put(con, name, "part BIGINT, start_ns BIGINT, end_ns BIGINT", listed)
    put(con, "w", "part BIGINT, window_id BIGINT, start_ns BIGINT, end_ns BIGINT", windows)
    yield found["a"], cells(found["a"]), cells(found["b"]), windows
    con.execute("DROP TABLE a; DROP TABLE b; DROP TABLE w")


def cells(rows):
    found = {}
    for part, start, end in rows:
        if start is not None and end is not None:
            found.setdefault(part, set()).update(range(start, end))
    return {part: inside for part, inside in found.items() if inside}


def runs(by_part):
    """Rows of islands: (part, start, end)."""
    return sorted(
        (
            (part, at, next(end for end in count(at) if end not in inside))
            for part, inside in by_part.items()
            for at in inside
            if at - 1 not in inside
        ),
        key=str,
    )


def test_interval_sets_of_many_parts(con, two_sets):
    rows, a, b, windows = two_sets

    def asked(query):
        return sorted(con.execute(f"FROM nsys.{query}").fetchall(), key=str)

    assert asked("iv_union('a', part)") == runs(a)
    measured = [(part, len(inside)) for part, inside in a.items()]
    assert asked("iv_measure('a', part)") == sorted(measured, key=str)
    hulls = {part: set(range(min(inside), max(inside))) - inside for part, inside in a.items()}
    assert asked("iv_gaps('a', part)") == runs(hulls)
    both = {part: inside & b.get(part, set()) for part, inside in a.items()}
    assert asked("iv_intersect('a', 'b')") == runs(both)
    alone = {part: inside - b.get(part, set()) for part, inside in a.items()}
    assert asked("iv_subtract('a', 'b')") == runs(alone)
    clipped = [
        (part, window, max(start, begin), min(end, until))
        for part, start, end in rows
        for of, window, begin, until in windows
        if part == of and None not in (start, end) and begin < until
        if max(start, begin) < min(end, until)
    ]
    assert asked("iv_clip('a', 'w')") == sorted(clipped, key=str)
    inside = [
        (part, window, len(a.get(part, set()) & set(range(begin, until))))
        for part, window, begin, until in windows
        if begin < until
    ]
    assert asked("iv_measure_in('a', 'w')") == sorted(inside, key=str)
