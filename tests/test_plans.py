"""Plans of every step, recipe, note and audit: no operator in them grows with a square.

A plan is judged on a small trace by what stays the same on a large one: by the columns that a join
compares, and by which inputs stay small however long a trace is. What is allowed all the same
stands in ALLOWED, with its reason.
"""

import json
import re
import sqlite3
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache

import pytest
import sqlglot
from sqlglot import exp

import nsys_sql
from nsys_sql.catalog import load_catalog
from nsys_sql.partition import fact_files
from tracebuilder import TraceBuilder

# Columns of which a long trace has no more values than a short one: rows that are only matched by
# these make every pair of them, whatever else is asked of a pair.
COARSE = {
    *("device", "process", "thread", "context_id", "stream_id", "lane", "part"),
    *("kind", "class", "role", "phase", "activity", "evidence", "cause", "collective"),
    *("direction", "way", "source", "destination", "path_no", "set_id", "same_id", "name_id"),
}
# Rows of an input that stay as few on any trace: one a device, or one a process and device.
FEW = 4
PAIRING = {"HASH_JOIN", "NESTED_LOOP_JOIN", "BLOCKWISE_NL_JOIN", "PIECEWISE_MERGE_JOIN", "IE_JOIN",
           "CROSS_PRODUCT", "POSITIONAL_JOIN"}  # fmt: skip
# One window function per key of these is one for every iteration.
PER_ITERATION = {"iteration", "segment"}
REGEX = re.compile(r"\bregexp_|~~?\*|\bsimilar to\b", re.IGNORECASE)

ALLOWED = {
    ("anchor_candidate", "pairs"): "candidates are a few dozen at most",
    ("anchor_choice", "pairs"): "of candidates, a few dozen, one row each is left",
    ("comm_rival", "pairs"): "each operation with the roles that communicate, three at most",
    ("comm_window", "pairs"): "a collective is in two sets: its own, and all of them",
    ("iteration", "pairs"): "stream captures, of which a report has a few before its steady state",
    ("kernel_family", "pairs"): "candidate patterns, of which there are sixty, with distinct names",
    ("nvtx_family", "regex"): "names of domains (event type 75), of which a report has dozens",
    ("nvtx_span", "pairs"): "candidate patterns, of which there are sixty, with distinct stems",
    ("queue_window", "partition"): "rows are summed by depth before, a few for each window",
    ("range_device", "pairs"): "each operation with the ranges around its own, eight at most",
    ("range_phase", "pairs"): "twelve rules with distinct names",
}
# Steps whose rows come with an option: another query stands in for them.
NOT_JUDGED = {"call_site", "metric_given"}


@dataclass(frozen=True)
class Finding:
    """Something in a plan that a long trace would not forgive."""

    kind: str
    detail: str


# ---------------------------------------------------------------- the plan


def children(node):
    return node.get("children", [])


def name(node):
    return node.get("operator_name", "").strip()


def info(node, key):
    found = node.get("extra_info", {}).get(key, [])
    return [found] if isinstance(found, str) else list(found)


def walk(node):
    yield node
    for child in children(node):
        yield from walk(child)


def column(text):
    """The column that one side of a comparison names, without casts."""
    return re.sub(r"\W+$", "", text).rpartition(".")[2].split("(")[-1].split(" ")[0]


def is_fine(condition):
    """Whether a condition pairs a row with those of an equal key that grows with the trace."""
    sides = re.split(r" = | IS NOT DISTINCT FROM ", condition)
    return len(sides) == 2 and not {column(side) for side in sides} <= COARSE


def rows(node):
    return node["operator_cardinality"]


def is_single(node, ctes):
    """Whether a plan gives one row on any trace: an aggregate of all, a constant, a limit."""
    if name(node) in ("UNGROUPED_AGGREGATE", "DUMMY_SCAN", "LIMIT", "STREAMING_LIMIT"):
        return True
    if name(node) == "CTE_SCAN":
        return is_single(ctes[info(node, "CTE Index")[0]], ctes)
    if name(node) in ("PROJECTION", "FILTER", *PAIRING):
        return all(is_single(child, ctes) for child in children(node))
    return False


def is_equal(condition):
    return bool(re.search(r" = | IS NOT DISTINCT FROM ", condition))


def pairs(plan):
    """Joins that look at more pairs of rows than they can have rows for."""
    found = [node for node in walk(plan) if name(node) == "CTE"]
    ctes = {info(node, "Table Index")[0]: children(node)[0] for node in found}
    for node in walk(plan):
        if name(node) not in PAIRING or len(children(node)) < 2:
            continue
        conditions = info(node, "Conditions")
        sides = children(node)[:2]
        if any(is_equal(each) and is_fine(each) for each in conditions):
            continue
        if any(is_single(side, ctes) or 1 <= rows(side) <= FEW for side in sides):
            continue
        # A key that has few values may still have one row of each on one side.
        is_keyed = bool(conditions) and all(map(is_equal, conditions))
        if is_keyed and rows(node) <= sum(map(rows, sides)):
            continue
        kind = " ".join([name(node), *info(node, "Join Type")])
        what = ", ".join(conditions) or "nothing"
        size = " x ".join(str(rows(side)) for side in sides)
        yield Finding("pairs", f"{kind} on {what} ({size} rows)")


def regexes(plan, names):
    """Regular expressions over more rows than there are distinct names."""
    for node in walk(plan):
        texts = [*info(node, "Projections"), *info(node, "Expression"), *info(node, "Filters")]
        if not any(map(REGEX.search, texts)):
            continue
        read = max(map(rows, children(node)), default=node.get("operator_rows_scanned", 0))
        if read > names:
            yield Finding("regex", f"{name(node)} over {read} rows, of {names} names")


# ---------------------------------------------------------------- the text


@cache
def windows(sql):
    """Window functions whose frame goes by value, and those with a partition an iteration."""
    return tuple(_windows(sql))


def _windows(sql):
    tree = sqlglot.parse_one(sql, dialect="duckdb")
    named = {}
    for select in tree.find_all(exp.Select):
        for each in select.args.get("windows") or ():
            named[select, each.name] = each
    for window in tree.find_all(exp.Window):
        if window.arg_key == "windows":  # the definition of a named one: judged where it is used
            continue
        spec, by, order = window.args.get("spec"), window.args.get("partition_by") or [], None
        order = window.args.get("order")
        base = window.args.get("alias")
        if base is not None:
            owner = window.find_ancestor(exp.Select)
            found = named.get((owner, base.name))
            if found is not None:
                spec = spec or found.args.get("spec")
                by = by or found.args.get("partition_by") or []
                order = order or found.args.get("order")
        text = window.sql(dialect="duckdb")
        if spec is not None and spec.args.get("kind") == "RANGE":
            yield Finding("range frame", text)
        elif spec is None and order is not None and is_aggregate(window.this):
            yield Finding("range frame", f"{text}: without a frame it goes by value")
        if {each.name for each in by} & PER_ITERATION:
            yield Finding("partition", text)


def is_aggregate(function):
    """Whether a window function has a frame at all; ranks, lead and lag have none."""
    while isinstance(function, (exp.IgnoreNulls, exp.RespectNulls, exp.Filter)):
        function = function.this
    return not isinstance(
        function, (exp.RowNumber, exp.Lead, exp.Lag, exp.Rank, exp.DenseRank, exp.Ntile)
    )


# ---------------------------------------------------------------- every file of the catalog


def explain(con, sql):
    text = con.execute(f"EXPLAIN (ANALYZE, FORMAT json) {sql}").fetchall()[0][1]
    return json.loads(text)


def distinct_names(con):
    return con.execute("SELECT greatest(count(*), 64) FROM nsys.string").fetchall()[0][0]


def judge(con, sql):
    plan = explain(con, sql)
    return [*pairs(plan), *regexes(plan, distinct_names(con)), *windows(sql)]


US = 1000
STEPS = 8


def sampled(folder):
    """A trace with sampled metrics, and the call sites of its launches."""
    builder, sites = TraceBuilder(), ["rank,thread,ordinal,call_site"]
    for step in range(STEPS):
        at = step * 1000 * US
        builder.nvtx(at, at + 900 * US, f"step {step}")
        for place, kernel in enumerate(("nvjet_tst_1", "triton_poi_fused_mul_2")):
            start, corr = at + 100 * US * place, 2 * step + place + 1
            builder.call(start + US, start + 5 * US, tid=1, corr=corr)
            builder.kernel(start + 10 * US, start + 80 * US, kernel, corr=corr)
            sites.append(f"0,1,{corr - 1},layer.py:{place}")
    path = builder.cuda_device(100, 0, 0).duration(10**9).write(folder / "sampled.sqlite")
    samples = [(at * 50 * US, 9 << 16, 1, at % 100) for at in range(20 * STEPS)]
    with sqlite3.connect(path) as con:
        con.execute(
            "CREATE TABLE TARGET_INFO_GPU_METRICS (typeId INTEGER, sourceId INTEGER, typeName TEXT,"
            " metricId INTEGER, metricName TEXT)"
        )
        con.execute(
            "CREATE TABLE GPU_METRICS (timestamp INTEGER, typeId INTEGER, metricId INTEGER,"
            " value INTEGER)"
        )
        name = "SM Issue [Throughput %]"
        con.execute("INSERT INTO TARGET_INFO_GPU_METRICS VALUES (589824, 1, 'GPU', 1, ?)", [name])
        con.executemany("INSERT INTO GPU_METRICS VALUES (?, ?, ?, ?)", samples)
    con.close()
    (folder / "sites.csv").write_text("\n".join(sites) + "\n")
    options = {
        "callsites": folder / "sites.csv",
        "metrics_from": path,
        "reference_steps": ",".join(["0.8ms"] * STEPS),
    }
    return path, {"anchor": "nvtx:step *", **options}


@pytest.fixture(scope="module")
def models(fixture_sqlite, tmp_path_factory):
    """Models of traces that have rows for every step, with the operators that large ones get."""
    traces = {
        "example": (fixture_sqlite("example"), {}),
        "graph_nodes": (fixture_sqlite("graph_nodes"), {"anchor": "nvtx:decode *"}),
        "sampled": sampled(tmp_path_factory.mktemp("plans")),
    }
    with ExitStack() as opened:
        found = {}
        for each, (path, options) in traces.items():
            found[each] = opened.enter_context(nsys_sql.open(path, keep_steps=True, **options))
            for setting in ("asof_loop_join_threshold", "nested_loop_join_threshold"):
                found[each].con.execute(f"SET {setting} = 0")
            found[each]._build(["string", "kernel_class"])
        yield found


def judge_all(model, recipes):
    """What is found in each file that recipes and facts run on this trace: {label: findings}."""
    found, execute = {}, model._execute
    label_of = {
        file.body.strip().rstrip(";"): file.label
        for group in ("steps", "recipes", "notes", "invariants")
        for file in getattr(model.catalog, group).values()
    }

    def judge_and_execute(sql):
        body = re.sub(r"^CREATE (OR REPLACE |TEMP )?TABLE \S+ AS\n", "", sql)
        label = label_of.get(body.strip().rstrip(";"))
        if label is not None and label not in found:
            found[label] = judge(model.con, body)
        return execute(sql)

    model._execute = judge_and_execute
    try:
        for recipe in recipes or model.catalog.recipes:
            if model.why_not(recipe) is None:
                model.result(recipe)
        if recipes is None:
            model._build(sorted({name for file in fact_files() for name in file.inputs}))
    finally:
        model._execute = execute
    return found


@pytest.fixture(scope="module")
def judged(models):
    only = {"sampled": ("metrics", "call-sites", "slowdown")}
    return {each: judge_all(model, only.get(each)) for each, model in models.items()}


def short(label):
    return label.rpartition("/")[2].removesuffix(".sql")


def test_no_plan_grows_with_a_square(judged):
    told = {
        f"{label}: {finding.kind}: {finding.detail}"
        for found in judged.values()
        for label, findings in found.items()
        for finding in findings
        if (short(label), finding.kind) not in ALLOWED
    }
    assert not told, "\n".join(sorted(told))


def test_nothing_is_allowed_that_no_plan_does(judged):
    seen = {
        (short(label), finding.kind)
        for found in judged.values()
        for label, findings in found.items()
        for finding in findings
    }
    assert ALLOWED.keys() - seen == set()


def test_every_file_is_judged_but_those_for_what_the_fixtures_do_not_hold(judged):
    seen = {label for found in judged.values() for label in found}
    catalog = load_catalog()
    files = [*catalog.steps.values(), *catalog.notes.values(), *catalog.invariants.values()]
    missing = {short(f.label) for f in files if f.label not in seen and not f.is_view}
    assert missing == NOT_JUDGED


# ---------------------------------------------------------------- what it would not let pass

# Each was in a step once, or is what one writes first.
BAD = {
    "windows with the stretches between their borders": (
        "pairs",
        """SELECT w.iteration, s.segment FROM nsys.steady AS w INNER JOIN nsys.segment AS s
           ON s.device = w.device AND s.start_ns >= w.start_ns AND s.end_ns <= w.end_ns""",
    ),
    "windows with operations": (
        "pairs",
        """SELECT w.iteration, count(*) FROM nsys.steady AS w INNER JOIN nsys.op AS o
           ON o.start_ns < w.end_ns AND o.end_ns > w.start_ns GROUP BY w.iteration""",
    ),
    "windows with operations of a device, filtered afterwards": (
        "pairs",
        """SELECT w.iteration, count(*) FROM nsys.steady AS w, nsys.op AS o
           WHERE o.device = w.device AND o.start_ns + o.end_ns BETWEEN 2 * w.start_ns
           AND 2 * w.end_ns GROUP BY w.iteration""",
    ),
    "what crosses a border with all later stretches": (
        "pairs",
        """SELECT s.segment, o.op_id FROM nsys.op AS o INNER JOIN nsys.segment AS s
           ON s.device = o.device AND s.start_ns > o.start_ns AND s.start_ns < o.end_ns""",
    ),
    "gaps with the operations of their stream": (
        "pairs",
        """SELECT g.op_id, max(o.end_ns) FROM nsys.op AS g INNER JOIN nsys.op AS o
           ON o.process = g.process AND o.stream_id = g.stream_id AND o.end_ns <= g.start_ns
           GROUP BY g.op_id""",
    ),
    "an existence that compares times": (
        "pairs",
        """SELECT count(*) FROM nsys.op AS o WHERE EXISTS (SELECT 1 FROM nsys.steady AS w
           WHERE w.device = o.device AND w.start_ns <= o.start_ns AND w.end_ns > o.start_ns)""",
    ),
    "every pair": (
        "pairs",
        "SELECT count(*) FROM nsys.steady AS a, nsys.steady AS b WHERE a.end_ns < b.end_ns",
    ),
    "names looked at for every operation": (
        "regex",
        """SELECT count(*) FROM nsys.op AS o INNER JOIN nsys.string AS s ON s.string_id = o.name_id
           WHERE regexp_matches(s.value || o.device, 'nccl|sm[0-9]+')""",
    ),
    "the taxonomy for every operation": (
        "regex",
        """SELECT nsys.kernel_class(s.value || o.device) AS class, count(*) FROM nsys.op AS o
           INNER JOIN nsys.string AS s ON s.string_id = o.name_id GROUP BY ALL""",
    ),
    "a frame by value": (
        "range frame",
        """SELECT max(end_ns) OVER (PARTITION BY device ORDER BY start_ns
           RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) FROM nsys.op""",
    ),
    "no frame, which goes by value": (
        "range frame",
        "SELECT max(end_ns) OVER (PARTITION BY device ORDER BY start_ns) FROM nsys.op",
    ),
    "a named window without a frame": (
        "range frame",
        """SELECT sum(end_ns) OVER before FROM nsys.op
           WINDOW before AS (PARTITION BY device ORDER BY start_ns)""",
    ),
    "a window function for each iteration": (
        "partition",
        """SELECT max(start_ns) OVER (PARTITION BY device, iteration ORDER BY start_ns
           ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) FROM nsys.steady""",
    ),
}
GOOD = {
    "windows with the stretches they list": """
        SELECT w.iteration, count(*) FROM nsys.window_segment AS w
        INNER JOIN nsys.name_segment AS n ON n.device = w.device AND n.segment = w.segment
        GROUP BY w.iteration""",
    "the stretch an operation starts in": """
        SELECT s.segment, count(*) FROM nsys.op AS o
        ASOF JOIN nsys.segment AS s ON s.device = o.device AND s.start_ns <= o.start_ns
        GROUP BY s.segment""",
    "operations with one row": """
        WITH span AS (SELECT min(start_ns) AS a, max(end_ns) AS b FROM nsys.steady)
        SELECT count(*) FROM nsys.op, span WHERE start_ns >= a AND start_ns < b""",
    "operations with one row a device": """
        WITH span AS (SELECT device, min(start_ns) AS a FROM nsys.steady GROUP BY device)
        SELECT count(*) FROM nsys.op AS o INNER JOIN span AS s
        ON s.device = o.device AND o.start_ns >= s.a""",
    "names looked at once": """
        WITH matching AS (SELECT string_id FROM nsys.string WHERE regexp_matches(value, 'nccl'))
        SELECT count(*) FROM nsys.op WHERE name_id IN (SELECT string_id FROM matching)""",
    "a frame by rows": """
        SELECT row_number() OVER in_order, lead(end_ns) OVER in_order, max(end_ns) OVER (
            PARTITION BY device ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
        FROM nsys.op WINDOW in_order AS (PARTITION BY device ORDER BY start_ns, op_id)""",
}


@pytest.fixture(scope="module")
def example(models):
    """A model with the steps that the queries below read."""
    for recipe in ("budget", "nvtx", "communication", "launches"):
        models["example"].result(recipe)
    return models["example"]


@pytest.mark.parametrize("name", BAD)
def test_a_query_that_a_long_trace_would_not_forgive_is_found(name, example):
    kind, sql = BAD[name]
    found = judge(example.con, sql)
    assert kind in {finding.kind for finding in found}, found


@pytest.mark.parametrize("name", GOOD)
def test_a_query_that_is_as_it_should_be_is_let_pass(name, example):
    assert judge(example.con, GOOD[name]) == []
