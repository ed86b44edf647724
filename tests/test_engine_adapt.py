"""Adapters fitted to what a trace has, and the catalog that holds them."""

import re
import sqlite3
from pathlib import Path

import duckdb
import pytest
import sqlglot
from sqlglot import exp

import nsys_sql
from conftest import brief
from nsys_sql import compare, session, survey
from nsys_sql.adapt import adapt, uses
from nsys_sql.catalog import Column, Optional, load_catalog, parse
from nsys_sql.errors import InputError, NsysSqlError
from nsys_sql.options import Options, param_value
from nsys_sql.plan import Planner, Shape, source_tables
from nsys_sql.taxonomy import load_rules, macro_sql

CATALOG = load_catalog()
ADAPTERS = [*CATALOG.adapters.values(), *(f for v in CATALOG.variants.values() for f in v)]
DDL = Path(__file__).resolve().parents[2] / "shared" / "schema" / "ddl"


# ---------------------------------------------------------------- adapt(): text to text


def test_nothing_absent_changes_nothing():
    sql = 'SELECT t."a" AS a -- why\nFROM trace."T" AS t'
    assert adapt(sql, {"T": {"a": "BIGINT"}}) == sql


def test_an_absent_column_becomes_a_typed_null_in_place():
    sql = 'SELECT coalesce(t."a", t."b") AS a FROM trace."T" AS t WHERE t."b" > 1'
    assert adapt(sql, {"T": {"a": "BIGINT"}}, [Optional("T", "b", "DOUBLE")]) == (
        'SELECT coalesce(t."a", CAST(NULL AS DOUBLE)) AS a FROM trace."T" AS t '
        "WHERE CAST(NULL AS DOUBLE) > 1"
    )


def test_an_absent_table_becomes_an_empty_typed_relation():
    sql = (
        'SELECT t."a" AS a, u."b" AS b FROM trace."T" AS t LEFT JOIN trace."U" AS u ON u.rowid = 1'
    )
    optional = [Optional("U", None, None), Optional("U", "b", "VARCHAR")]
    adapted = adapt(sql, {"T": {"a": "BIGINT"}}, optional)
    assert '(SELECT CAST(NULL AS VARCHAR) AS "b", CAST(NULL AS BIGINT) AS "rowid" WHERE false)' in (
        adapted
    )


def test_the_driving_table_absent_leaves_an_empty_select_of_the_header():
    adapted = adapt(
        'SELECT t."a" AS x FROM trace."T" AS t',
        {},
        [Optional("T", None, None)],
        columns=[Column("x", "VARCHAR", "-", "")],
    )
    assert adapted == "-- this trace has no T\nSELECT\n    CAST(NULL AS VARCHAR) AS x\nWHERE false"


def test_names_compare_without_case_and_rowid_is_always_there():
    sql = 'SELECT t.rowid AS r, t."deviceId" AS d FROM trace."Tab" AS t'
    assert adapt(sql, {"TAB": {"DEVICEID": "BIGINT"}}) == sql


def test_a_table_found_elsewhere_is_written_so():
    sql = 'SELECT t."a" AS a FROM trace."T" AS t'
    assert adapt(sql, {"T": {"a": "BIGINT"}}, references={"t": 'trace."T_V2"'}).endswith(
        'FROM trace."T_V2" AS t'
    )


@pytest.mark.parametrize(
    ("tables", "what"),
    [({}, "table T is missing"), ({"T": {}}, r"T\.a is missing from this trace")],
)
def test_what_is_not_optional_is_an_input_error(tables, what):
    with pytest.raises(InputError, match=what) as caught:
        adapt('SELECT t."a" AS a FROM trace."T" AS t', tables)
    assert caught.value.exit_code == 3
    assert caught.value.hint


def test_every_source_needs_an_alias_of_its_own():
    with pytest.raises(NsysSqlError, match="alias"):
        adapt('SELECT 1 FROM trace."T"', {"T": {}})


def test_uses_tells_columns_with_the_types_they_should_have():
    (use,) = uses(
        'SELECT t."n" AS name, t."x" + 1 AS x, t."y" AS y FROM trace."T" AS t',
        [Optional("T", "y", "DOUBLE")],
        [Column("name", "VARCHAR", "-", ""), Column("x", "BIGINT", "-", "")],
    )
    assert use.table == "T"
    assert use.columns == {"n": "VARCHAR", "x": "BIGINT", "y": "DOUBLE"}


# ---------------------------------------------------------------- the adapters themselves


@pytest.mark.parametrize("file", ADAPTERS, ids=lambda file: file.path.name)
def test_an_adapter_keeps_the_house_rules(file):
    tree = sqlglot.parse_one(file.body, read="duckdb")
    assert isinstance(tree, exp.Select)
    assert [each.alias_or_name for each in tree.expressions] == [c.name for c in file.columns]
    assert file.question.endswith("?")
    assert file.grain
    for use in uses(file.body, file.optional, file.columns):
        assert any(each.table == use.table and each.column is None for each in file.optional)
    # The relation is about the table it selects from, and capability says so.
    origin = tree.find(exp.From)
    assert file.source_table == (origin.this.name if origin else None)
    for column in tree.find_all(exp.Column):
        assert column.table, f"{column.sql()} has no qualifier"
    for line in file.text.splitlines():
        assert len(line) <= 100


@pytest.mark.parametrize("name", sorted(CATALOG.variants))
def test_variants_have_the_columns_of_the_newest_adapter(name):
    for variant in CATALOG.variants[name]:
        assert variant.when
        assert [(c.name, c.type) for c in variant.columns] == [
            (c.name, c.type) for c in CATALOG.adapters[name].columns
        ]


def test_metadata_adapters_read_a_list_of_names_only():
    for name in ("system_env", "export_info", "capture_info"):
        for file in (CATALOG.adapters[name], *CATALOG.variants.get(name, ())):
            assert " IN (\n" in file.body, f"{file.label} must filter by name"
            listed = set(re.findall(r"^\s+'([\w:]+)',?$", file.body, re.MULTILINE))
            assert listed
            for word in ("ENV", "COMMAND", "ARGUMENT", "HOST", "USER", "PATH", "DIR", "_FILE"):
                for each in listed - {"TargetInstallDir"}:
                    assert word not in each.upper(), each


def test_a_table_called_v2_stands_in_for_an_absent_base():
    shape = Shape({"KERNEL_V2": {"a": "BIGINT"}, "kernel_v10": {"b": "BIGINT"}, "Other": {}})
    assert shape.find("Kernel") == "kernel_v10"
    assert shape.has("kernel", "B")
    assert not shape.has("kernel", "a")
    assert Shape({"KERNEL_V2": {}, "kernel": {}}).find("KERNEL") == "kernel"


def test_the_name_cuda_graph_events_has_two_meanings():
    old = Shape({"CUDA_GRAPH_EVENTS": {"start": "BIGINT", "graphNodeId": "BIGINT"}})
    new = Shape({"CUDA_GRAPH_EVENTS": {"start": "BIGINT", "graphId": "BIGINT"}})
    for shape, nodes, graphs in ((old, True, False), (new, False, True)):
        planner = Planner(CATALOG, shape, Options())
        assert planner.is_present("graph_node_event") is nodes
        assert planner.is_present("graph_event") is graphs


# ---------------------------------------------------------------- every known export schema


def _ddl_versions():
    return sorted(DDL.glob("*.sql")) if DDL.is_dir() else []


@pytest.mark.skipif(not DDL.is_dir(), reason="no schema files beside the checkout")
@pytest.mark.parametrize(
    "script", brief(8, _ddl_versions()[::2] + _ddl_versions()[1::2]), ids=lambda path: path.stem
)
def test_all_adapters_fit_every_known_schema(script, tmp_path):
    path = tmp_path / "t.sqlite"
    database = sqlite3.connect(path)
    database.executescript(script.read_text(encoding="utf-8"))
    wanted = {table for file in ADAPTERS for table in source_tables(file)}
    tables = [
        row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type='table'")
    ]
    for table in wanted & set(tables):
        columns = database.execute(
            f'SELECT name, type FROM pragma_table_info("{table}")'
        ).fetchall()
        values = ", ".join("1" if "INT" in type_ else "'x'" for _, type_ in columns)
        database.execute(f'INSERT INTO "{table}" VALUES ({values})')
    database.commit()
    database.close()
    with nsys_sql.open(path) as model:
        present = set(model.trace.present)
        for name, file in CATALOG.adapters.items():
            rows = model.query(f"SELECT * FROM nsys.{name}")
            found = [(c, str(t)) for c, t in zip(rows.columns, rows.types, strict=True)]
            assert found == [(c.name, c.type) for c in file.columns], name
            if name not in ("system_env", "export_info", "capture_info", "string"):
                assert bool(len(rows)) == (name in present), name
        assert {"string", "kernel", "memcpy", "memset", "api_call", "nvtx"} <= present
        assert model.trace.warnings == ()
    if script.stem.startswith("2020"):
        assert "session_start" not in present


# ---------------------------------------------------------------- headers


def test_a_header_is_read_with_its_long_lines():
    file = parse(
        "recipe",
        Path("sql/recipes/two_words.sql"),
        """-- two-words — why?
--
-- Prose.
--
-- @grain one row
-- @reads nsys.op,
--        nsys.gap
-- @param n BIGINT = 3   how many
-- @column a_ns BIGINT ns the time
-- @invariant positive a_ns >= 0
-- @needs kernel|graph_exec, nvtx
-- @pitfall 1, 22
SELECT 1::BIGINT AS a_ns FROM nsys.op, nsys.iv_union('result_x', 1) WHERE getvariable('n') > 0;
""",
    )
    assert (file.name, file.question, file.prose) == ("two-words", "why?", "Prose.")
    assert file.reads == ("op", "gap")
    assert set(file.calls) == {"op", "iv_union", "result_x"}
    assert file.variables == ("n",)
    assert (file.params[0].default, file.params[0].description) == ("3", "how many")
    assert file.needs == (("kernel", "graph_exec"), ("nvtx",))
    assert file.pitfalls == (1, 22)
    assert not file.body.endswith(";")


@pytest.mark.parametrize(
    ("text", "inside", "outside", "words"),
    [
        (
            "[0, 100]",
            ("0", "100", "1e2", "+3.5"),
            ("-1", "100.1", "1e300"),
            "at least 0 and at most",
        ),
        ("(0,1)", ("0.01", "1e-300"), ("0", "1", "-0.0", "2"), "above 0 and below 1"),
        ("[1,)", ("1", "1e9"), ("0", "0.999"), "at least 1"),
        ("(, -2]", ("-2", "-3"), ("-1",), "at most -2"),
    ],
)
def test_a_parameter_may_have_a_range(text, inside, outside, words):
    header = f"-- x — why?\n-- @param n DOUBLE = NULL {text} how much (of all)\nSELECT 1;\n"
    (param,) = parse("recipe", Path("x.sql"), header).params
    assert (param.default, param.description) == ("NULL", "how much (of all)")
    for value in inside:
        assert value in param_value(param, value)
    for value in outside:
        with pytest.raises(NsysSqlError, match="out of range") as caught:
            param_value(param, value)
        assert words in caught.value.hint and "how much" in caught.value.hint


@pytest.mark.parametrize("text", ["[a, b]", "[1..2, 3]", "[-, 3]"])
def test_what_is_no_range_is_told(text):
    header = f"-- x — why?\n-- @param n DOUBLE = 1 {text} how much\nSELECT 1;\n"
    try:
        (param,) = parse("recipe", Path("x.sql"), header).params
    except NsysSqlError as error:
        assert "is no range" in str(error)
    else:  # then it is the description
        assert param.range is None and param.description == f"{text} how much"


def test_a_range_of_something_that_is_no_number():
    header = "-- x — why?\n-- @param n FLOAT4 = 1 [0, 1] how much\nSELECT 1;\n"
    (param,) = parse("recipe", Path("x.sql"), header).params
    with pytest.raises(NsysSqlError, match="is not a FLOAT4"):
        param_value(param, "x")


def test_parameters_of_one_name_are_one_and_their_defaults_are_in_range():
    files = [*CATALOG.steps.values(), *CATALOG.recipes.values()]
    files += [*compare.files().all(), *survey.files().all()]
    seen = {}
    for param in (param for file in files for param in file.params):
        first = seen.setdefault(param.name, param)
        assert (param.type, param.default, param.range) == (first.type, first.default, first.range)
        if param.range is not None and param.default != "NULL":
            assert param.range.holds(float(param.default)), param
    assert {"alpha", "top", "mfu", "threshold_pct"} <= {n for n, p in seen.items() if p.range}


def test_an_unknown_tag_names_the_nearest_one():
    with pytest.raises(NsysSqlError, match="unknown tag @colum") as caught:
        parse("step", Path("x.sql"), "-- x — y?\n-- @colum a\nSELECT 1;\n")
    assert "column" in caught.value.hint


@pytest.mark.parametrize("recipe", sorted(CATALOG.recipes))
def test_the_named_windows_of_a_script_are_unique(recipe):
    """DuckDB parses a script as a whole and refuses a window name that a statement before used."""
    planner = Planner(CATALOG, Shape({}), Options(), lambda: macro_sql(load_rules()))
    seen = {}
    for statement in planner.plan([recipe]):
        for name in set(re.findall(r"\bWINDOW\s+(\w+)\s+AS\b", statement.sql)):
            assert name not in seen, f"{statement.name} and {seen[name]}: rename window {name}"
            seen[name] = statement.name


def test_importing_the_package_loads_neither_duckdb_nor_sqlglot():
    import subprocess
    import sys

    code = "import sys, nsys_sql; print([m for m in ('duckdb', 'sqlglot') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert session.duckdb is duckdb
