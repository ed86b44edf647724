"""The taxonomy: names of many code bases, the order of rules, files of a user, and its speed."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
import yaml

import nsys_sql
from nsys_sql import resources
from nsys_sql.errors import UsageError
from nsys_sql.taxonomy import COLLECTIVES, Taxonomy, _refuse_twins, load_rules, macro_sql
from tracebuilder import TraceBuilder

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "kernels" / "kernel_names.tsv"

NAMES = Path(__file__).parent / "kernel_names.tsv"


def connect(taxonomy: Taxonomy) -> duckdb.DuckDBPyConnection:
    """A database with the macros of kernel names."""
    con = duckdb.connect()
    con.execute("CREATE SCHEMA nsys")
    text = (resources.root() / "sql" / "macros" / "kernel_text.sql").read_text(encoding="utf-8")
    for statement in con.extract_statements(text):
        con.execute(statement)
    for macro in macro_sql(taxonomy):
        con.execute(macro)
    return con


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    """The packaged taxonomy."""
    with connect(load_rules()) as connection:
        yield connection


def call(con: duckdb.DuckDBPyConnection, macro: str, name: str | None) -> str | None:
    """One value of one macro."""
    row = con.execute(f"SELECT nsys.{macro}($1::VARCHAR)", [name]).fetchone()
    assert row is not None
    value: str | None = row[0]
    return value


def read(file: Path) -> list[dict[str, str]]:
    """The rows of a table of names."""
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


def classes(con: duckdb.DuckDBPyConnection, names: list[str]) -> dict[str, str]:
    """The class of each name as steps see it: unmatched is other."""
    return dict(
        con.execute(
            "SELECT name, coalesce(nsys.kernel_class(name), 'other') FROM unnest($1) AS n(name)",
            [names],
        ).fetchall()
    )


def kernel_class(con: duckdb.DuckDBPyConnection, name: str) -> str:
    """The class of one name."""
    return classes(con, [name])[name]


def test_names_of_many_code_bases(con: duckdb.DuckDBPyConnection) -> None:
    # Awkward members of each family on purpose: names that hold a word of another class.
    rows = read(NAMES)
    found = classes(con, [row["name"] for row in rows])
    wrong = [(r["class"], found[r["name"]], r["name"]) for r in rows]
    assert [entry for entry in wrong if entry[0] != entry[1]] == []
    assert {row["class"] for row in rows} == {rule.gives for rule in load_rules().rules}


def test_collectives(con: duckdb.DuckDBPyConnection) -> None:
    rows = [row for row in read(NAMES) if row["collective"]]
    found = {row["name"]: call(con, "kernel_collective", row["name"]) for row in rows}
    wrong = [(r["collective"], found[r["name"]], r["name"]) for r in rows]
    assert [entry for entry in wrong if entry[0] != entry[1]] == []
    assert {row["collective"] for row in rows} == set(COLLECTIVES)


def corpus_class(fine: str) -> str:
    """The class of a fine class of the corpus."""
    fine = fine.split(" (")[0]
    for starts, name in (
        (("fused_gemm_comm",), "fused_gemm_comm"),
        (("fused_comm_",), "fused_comm"),
        (("gemm", "grouped_gemm"), "gemm"),
        (("convolution",), "conv"),
        (("attention",), "attention"),
        (("norm", "fused_norm"), "norm"),
        (("quant_cast", "transpose_cast"), "quantize"),
        (("optimizer", "grad_norm", "grad_scale", "multi_tensor"), "optimizer"),
        (("nccl",), "nccl"),
        (("ep_control", "ep_packing", "moe_permute", "moe_finalize"), "dispatch"),
        (("moe_router", "other"), "other"),
    ):
        if fine.startswith(starts) and not fine.endswith("_wait"):
            return name
    if fine.endswith("_wait"):
        return "wait"
    transport = ("ep_", "p2p_", "remote_", "userbuffers_", "custom_", "nvshmem_", "ubx_", "flag_")
    return "transport" if fine.startswith(transport) else "elementwise"


@pytest.mark.skipif(not CORPUS.exists(), reason="no corpus of kernel names beside the repository")
def test_corpus(con: duckdb.DuckDBPyConnection) -> None:
    taxonomy = load_rules()
    rows = read(CORPUS)
    found = classes(con, [row["name"] for row in rows])
    pairs = []
    for row in rows:
        expected = corpus_class(row["class"])
        # Two kernels are filed by who runs them; all they do is spin.
        if row["name"].startswith(("at::cuda::(anonymous namespace)::spin_", "tiny_delay")):
            expected = "wait"
        pairs.append((row["name"], expected, found[row["name"]]))
    wrong = [pair for pair in pairs if pair[1] != pair[2]]
    roles = [p for p in wrong if taxonomy.role(p[1]) != taxonomy.role(p[2])]
    assert not [p for p in roles if taxonomy.role(p[2]) == "comm"], "computation called comm"
    assert len(roles) <= 0.01 * len(pairs), roles
    assert len(wrong) <= 0.05 * len(pairs), wrong


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("void ns::f<(int)4, g(int)>(T1)", "ns::f"),
        ("void (anonymous namespace)::f<int>(int)", "f"),
        ("void a::<unnamed>::f<int>(int)", "a::f"),
        ("a::{anonymous}::f", "a::f"),
        ("std::enable_if<(((8)>(0)))&&a::b<c>::exists, void>::type n::f<c, 8>(c*)", "n::f"),
        ("_ZN2ns1fILi4EEEvi", "ns::f"),
        ("_Z3fooI3barEvT_", "foo"),
        ("_Z3foo3bar", "foo"),
        ("_ZN12_GLOBAL__N_16kernelEv", "kernel"),
        ("_ZN9999ab", "ab"),
        ("_Z", ""),
        ("", ""),
        ("<>", ""),
        (None, None),
    ],
)
def test_function(con: duckdb.DuckDBPyConnection, name: str | None, function: str | None) -> None:
    assert call(con, "kernel_function", name) == function


def test_words_split_every_spelling(con: duckdb.DuckDBPyConnection) -> None:
    for function in ("ns::layer_norm_fwd", "ns::LayerNormFwd", "ns::layerNorm_Fwd"):
        assert call(con, "kernel_words", function) == "ns::layer norm fwd"
    assert call(con, "kernel_words", "fusedRMSNormV2") == "fused rms norm v2"


def test_one_kernel_in_all_spellings(con: duckdb.DuckDBPyConnection) -> None:
    spellings = [
        "deep_ep::intranode::dispatch",
        "void deep_ep::intranode::dispatch<8, 768, 8192>(int4*, float*)",
        "void deep_ep::intranode::dispatch<(int)8, (int)768, (int)8192>(int4 *, float *)",
        "_ZN7deep_ep9intranode8dispatchILi8ELi768ELi8192EEEvP4int4Pf",
        "dispatch",
    ]
    assert classes(con, spellings) == dict.fromkeys(spellings, "transport")


def test_no_name_matches_nothing(con: duckdb.DuckDBPyConnection) -> None:
    assert call(con, "kernel_class", None) is None
    assert call(con, "kernel_class", "") is None
    assert call(con, "kernel_rule", "nobody_knows_this") is None


def test_every_class_has_a_role() -> None:
    taxonomy = load_rules()
    assert {taxonomy.role(rule.gives) for rule in taxonomy.rules} <= {"compute", "comm", "wait"}
    assert taxonomy.role("fused_gemm_comm") == taxonomy.role("graph") == "compute"
    assert taxonomy.role("no such class") is None


def test_user_rules_come_first(tmp_path: Path) -> None:
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    first.write_text(
        "classes: {physics: compute, transport: wait}\n"
        "rules:\n"
        "  - {class: physics, function: '^jacobi'}\n"
        "  - {class: physics, exact: [volta_sgemm_64x64_nn]}\n"
        "  - {class: norm, function: 'gemm', pattern: 'Special<'}\n"
        "collectives:\n"
        "  - {collective: Broadcast, exact: dispatch}\n",
        encoding="utf-8",
    )
    second.write_text(
        "rules: [{class: physics, words: 'bgk', name: mine}, {class: gemm, function: jacobi_mm}]\n",
        encoding="utf-8",
    )
    with connect(load_rules([first, second])) as con:
        assert kernel_class(con, "jacobi_kernel") == "physics"
        assert kernel_class(con, "jacobi_mm") == "gemm", "the last file goes first"
        assert kernel_class(con, "volta_sgemm_64x64_nn") == "physics"
        assert kernel_class(con, "volta_sgemm_64x64_nt") == "gemm"
        assert kernel_class(con, "my_gemm<Special<1>>") == "norm", "all tests of a rule must hold"
        assert kernel_class(con, "my_gemm<Other<1>>") == "gemm"
        assert call(con, "kernel_rule", "lbBgkCollide") == "mine"
        assert call(con, "kernel_rule", "jacobi_kernel") == "first:1"
        assert call(con, "kernel_rule", "nvjet_x") != "first:1"
        assert call(con, "class_role", "physics") == "compute"
        assert call(con, "class_role", "transport") == "wait", "a role can be overridden"
        assert call(con, "kernel_collective", "dispatch") == "Broadcast"


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        ("rules: [{class: gem, exact: [a]}]", "rules 1: class 'gem'", "Did you mean gemm"),
        ("rules: [{class: gemm, exact: [a]}, {class: gemm}]", "rules 2 has no test", "exact"),
        ("rules: [{exact: [a]}]", "rules 1 has no class", "gemm"),
        ("rules: [{class: gemm, patern: a}]", "rules 1: key 'patern'", "pattern"),
        ("rules: [{class: gemm, pattern: '('}]", "rules 1: pattern is not", "Escape"),
        ("rules: [{class: gemm, pattern: '(?!a)b'}]", "RE2", "Look-around"),
        (r"rules: [{class: gemm, pattern: '(a)\1'}]", "RE2", "Look-around"),
        ("rules: [{class: gemm, pattern: 3}]", "no pattern: 3", "single quotes"),
        ("rules: [{class: gemm, exact: [3]}]", "exact is no list", "exact: [name"),
        ("rules: [gemm]", "rules 1 is no mapping", "class: NAME"),
        ("rules: {class: gemm}", "rules is no list", "class: NAME"),
        ("classes: {mine: computing}", "role of class mine 'computing'", "compute"),
        ("classes: [mine]", "classes is no mapping", "class: role"),
        ("rule: []", "key 'rule'", "Did you mean rules"),
        ("collectives: [{collective: AllRed, exact: [a]}]", "collectives 1", "AllReduce"),
        ("rules: [{class: gemm, pattern: a: b}]", "is not YAML", "quotes"),
        ("rules: []\nrules: []", "mine.yaml:2: rules stands here for the second", "Make one"),
        ("rules:\n- {class: gemm,\n   exact: a,\n   exact: b}", ":4: exact stands", "Make one"),
        ("classes: {x: comm,\n  x: wait}", "mine.yaml:2: x stands here", "Make one"),
        ("rules:\n- class: graph\n  exact: a", "mine.yaml:2: rules 1: graph is no", "gemm"),
        ("rules:\n- {class: norm, exact: b}\n- {class: memcpy, exact: a}", ":3: rules 2", "gemm"),
        ("rules:\n\n- {class: memset, exact: a}", "mine.yaml:3: rules 1: memset is", "gemm"),
        ("classes:\n  mine: memcpy", "mine.yaml:2: role of class mine", "compute, comm, wait"),
        ("classes:\n  graph: comm", "mine.yaml:2: graph is no class of kernels", "another name"),
        ("a: &a [*a]", "key 'a'", "rules"),
        ("just text", "has no rules", "rules:"),
        ("", "has no rules", "rules:"),
    ],
)
def test_bad_files_say_where_and_what_to_do(
    tmp_path: Path, text: str, said: str, hint: str
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as raised:
        load_rules([file])
    assert raised.value.exit_code == 2
    assert "mine.yaml" in str(raised.value)
    assert said in str(raised.value)
    assert raised.value.hint is not None
    assert hint in raised.value.hint


def test_a_missing_file_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere\.yaml cannot be read"):
        load_rules([tmp_path / "nowhere.yaml"])


def test_quotes_in_a_rule_stay_text(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text('rules: [{class: gemm, pattern: "it\'s", name: "a\'b"}]\n', encoding="utf-8")
    with connect(load_rules([file])) as con:
        assert call(con, "kernel_rule", "void it's<1>()") == "a'b"


def test_many_and_long_names(con: duckdb.DuckDBPyConnection) -> None:
    names = [row["name"] for row in read(NAMES)]
    con.execute(
        "CREATE OR REPLACE TABLE nsys.string AS SELECT (row_number() OVER ())::BIGINT AS string_id,"
        " m.name || r.range AS value FROM unnest($1) AS m(name), range(25) AS r",
        [names],
    )
    con.execute(
        "CREATE OR REPLACE TABLE nsys.stream_item AS "
        "SELECT 0::UTINYINT AS kind, string_id AS name_id FROM nsys.string"
    )
    found = con.execute(sql_of("steps/kernel_name.sql")).fetchall()
    assert len(found) == 25 * len(names)
    # a name of 10 MB is judged by its beginning
    for start in ("nvjet_tst_128x64<", "void nvjet_tst_128x64<"):
        assert con.execute(
            "SELECT nsys.kernel_class($1 || repeat('ab<cd::(1aX_', 800000))", [start]
        ).fetchone() == ("gemm",)
    for start in ("void a::f<b<", "_ZN1a1bI", "f(", "a_B"):
        assert (
            con.execute(
                "SELECT nsys.kernel_class($1 || repeat('ab<cd::(1aX_', 800000))", [start]
            ).fetchone()
            is not None
        )


def sql_of(step: str) -> str:
    """The SELECT of a step or recipe."""
    return (resources.root() / "sql" / step).read_text(encoding="utf-8")


def test_no_kernel_loses_its_row(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE OR REPLACE TABLE nsys.string AS FROM (VALUES "
        "(1::BIGINT, 'nvjet_a'), (2, 'ncclDevKernel_AllReduce_Sum_f32_RING_LL'), (3, 'jacobi'), "
        "(9, 'not in use')) AS s(string_id, value)"
    )
    con.execute(
        "CREATE OR REPLACE TABLE nsys.stream_item AS FROM (VALUES "
        "(0::UTINYINT, 1::BIGINT), (0, 1), (0, 2), (0, 3), (0, -4), (0, 7), (0, 3), (1, -1), "
        "(4, NULL)) AS i(kind, name_id)"
    )
    con.execute(
        "CREATE OR REPLACE TABLE nsys.kernel AS FROM (VALUES "
        "(1::BIGINT, 0::BIGINT, 10::BIGINT), (1, 20, 30), (2, 0, 40), (3, 5, 6), "
        "(NULL, 0, 7), (7, 0, 8), (3, 9, 8)) AS k(name_id, start_ns, end_ns)"
    )
    con.execute("CREATE OR REPLACE TABLE nsys.kernel_name AS " + sql_of("steps/kernel_name.sql"))
    rows = con.execute(
        "SELECT name_id, class, role, collective, is_matched FROM nsys.kernel_name ORDER BY name_id"
    ).fetchall()
    assert rows == [
        (1, "gemm", "compute", None, True),
        (2, "nccl", "comm", "AllReduce", True),
        (3, "other", "compute", None, False),
        (7, "other", "compute", None, False),
        (None, "other", "compute", None, False),
    ]
    found = con.execute(sql_of("recipes/taxonomy.sql")).fetchall()
    assert [(row[9], row[4], row[6], row[7]) for row in found] == [
        (7, False, 1, 8),
        (None, False, 1, 7),
        (3, False, 1, 1),
        (2, True, 1, 40),
        (1, True, 2, 20),
    ]
    assert sum(row[8] for row in found) == pytest.approx(100)


def test_nothing_stands_twice_in_the_packaged_file() -> None:
    file = resources.root() / "sql" / "taxonomy.yaml"
    with file.open(encoding="utf-8") as text:
        _refuse_twins(file, yaml.compose(text, Loader=yaml.CSafeLoader))


def test_rules_that_decide_nothing_are_told(tmp_path: Path) -> None:
    path = TraceBuilder().kernel(0, 10, "jacobi_kernel").write(tmp_path / "t.sqlite")
    file = tmp_path / "mine.yaml"
    file.write_text(
        "rules:\n"
        "  - {class: gemm, function: '^jacobi'}\n"
        "  - {class: norm, function: '^jacobi', name: late}\n"
        "  - {class: norm, function: jakobi}\n",
        encoding="utf-8",
    )
    for own, notes in (
        ((file,), ("2 of 3 rules of --taxonomy decide no kernel of this trace: late, mine:3",)),
        ((), ()),
    ):
        with nsys_sql.open(path, taxonomy=own) as model:
            result = model.result("taxonomy")
            assert [row[1] for row in result.rows] == ["gemm" if own else "other"]
            assert result.notes == notes
    with nsys_sql.open(path, taxonomy=(file,)) as model:
        built = model.query("SELECT nsys.own_rules()").fetchall()
        assert built == [(["mine:1", "late", "mine:3"],)]
