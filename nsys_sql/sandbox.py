"""What an ad-hoc query may do: read. Decided on DuckDB's own syntax tree, before it runs.

DuckDB's switches alone do not suffice: with external access off, `sqlite_scan` and `ATTACH` of
the SQLite extension still open any file. So table functions are allowed by name only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nsys_sql.errors import UsageError, one_line

if TYPE_CHECKING:
    from nsys_sql.macros import Macro

_TABLE_FUNCTIONS = frozenset(
    {
        "duckdb_columns",
        "duckdb_functions",
        "duckdb_schemas",
        "duckdb_tables",
        "duckdb_types",
        "duckdb_views",
        "generate_series",
        "generate_subscripts",
        "histogram",
        "histogram_values",
        "json_each",
        "json_tree",
        "pragma_show",
        "pragma_storage_info",
        "pragma_table_info",
        "range",
        "repeat",
        "repeat_row",
        "summary",
        "test_all_types",
        "unnest",
    }
)
# What tells of this machine or acts on it, and what takes SQL as text: that would pass by the
# syntax tree, and to plan it already opens a file that `sqlite_scan` names.
_SCALAR_FUNCTIONS_REFUSED = frozenset(
    {
        "current_setting",
        "currval",
        "getenv",
        "nextval",
        "query",
        "query_table",
        "which_secret",
        "write_log",
    }
)
_SCALAR_PREFIXES_REFUSED = (
    "glob",
    "json_deserialize_",
    "json_execute_",
    "json_serialize_",
    "parquet_",
    "read_",
    "sqlite_",
    "write_",
)
# Tables of a trace that hold the target's environment, command line or output.
SECRET_TABLES = frozenset(
    {
        "analysis_file",
        "cupti_activity_kind_jit",
        "diagnostic_event",
        "export_meta_data",
        "meta_data_capture",
        "meta_data_export",
        "processes",
        "processstreams",
        "stringids",
        "target_info_nic_info",
        "target_info_system_env",
    }
)


# Views of DuckDB that tell what this machine is like.
_TABLES_REFUSED = frozenset(
    {
        "duckdb_databases",  # paths hold the names of users
        "duckdb_logs",
        "duckdb_secrets",
        "duckdb_settings",
        "pg_settings",
        "pragma_database_list",
    }
)
# Parameters of our table macros that name a relation, which DuckDB would also take for a file.
RELATION_PARAMETERS = frozenset(
    {"p_rel", "p_a", "p_b", "p_windows", "p_over", "p_stretches", "p_scale"}
)
# What DuckDB would take for a file, or for another address of data.
_FILE = re.compile(r"[/\\*?:]|\.\w+$")
_PLAIN_NAME = re.compile(r"\w+(\.\w+){0,2}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Reads:
    """The names a query mentions, lower case: relations, functions, and short strings."""

    tables: frozenset[str]
    functions: frozenset[str]
    texts: frozenset[str]


def inspect(
    tree: Mapping[str, Any], macros: Mapping[str, Macro], alias: str, scrubbed: str
) -> Reads:
    """Refuse what a query must not do; return what it mentions.

    `tree` is what json_serialize_sql returned, `alias` the database of the trace, `scrubbed` how
    the names of rebuilt tables start.
    """
    if tree.get("error"):
        message = str(tree.get("error_message", "it cannot be parsed"))
        if tree.get("error_type") == "not implemented":
            message = "only SELECT is run, without PIVOT"
        raise UsageError(f"the query is refused: {one_line(message)}")
    statements = tree.get("statements", ())
    if len(statements) != 1:
        raise UsageError(f"one query is expected, not {len(statements)}")
    known = {name.lower(): macro for name, macro in macros.items()}
    tables: set[str] = set()
    functions: set[str] = set()
    texts: set[str] = set()
    for node in _nodes(statements[0]):
        kind = node.get("type")
        if kind == "BASE_TABLE" or (kind == "SHOW_REF" and node.get("table_name")):
            tables.add(_table(node, alias, scrubbed))
        elif kind == "TABLE_FUNCTION":
            name = _function_name(node.get("function", {}))
            if name not in known and name not in _TABLE_FUNCTIONS:
                raise UsageError(
                    f"the query is refused: table function {name}() is not allowed",
                    hint="an ad-hoc query reads the trace and nothing else",
                )
            if name in known:
                _arguments(known[name], node.get("function", {}), alias, scrubbed)
        elif node.get("class") == "FUNCTION":
            name = _function_name(node)
            functions.add(name)
            is_ours = name in known and name not in _SCALAR_FUNCTIONS_REFUSED
            if not is_ours and (
                name in _SCALAR_FUNCTIONS_REFUSED or name.startswith(_SCALAR_PREFIXES_REFUSED)
            ):
                raise UsageError(f"the query is refused: function {name}() is not allowed")
        elif kind == "VALUE_CONSTANT":
            text = node.get("value", {}).get("value")
            if isinstance(text, str) and len(text) < 200:
                texts.add(text.lower())
    return Reads(frozenset(tables), frozenset(functions), frozenset(texts))


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    """Every object of the tree, parents first."""
    stack = [value]
    while stack:
        each = stack.pop()
        if isinstance(each, dict):
            yield each
            stack.extend(each.values())
        elif isinstance(each, list):
            stack.extend(each)


def _function_name(node: Mapping[str, Any]) -> str:
    return str(node.get("function_name", "")).lower()


def _arguments(macro: Macro, node: Mapping[str, Any], alias: str, scrubbed: str) -> None:
    """A macro reads what it is told to: only a relation by its plain name."""
    children = node.get("children", ())
    for number, child in enumerate(children):
        parameter = str(child.get("alias") or "").lower()
        if not parameter and number < len(macro.parameters):
            parameter = macro.parameters[number].lower()
        if parameter not in RELATION_PARAMETERS:
            continue
        text = child.get("value", {}).get("value") if "value" in child else None
        if not isinstance(text, str) or not _PLAIN_NAME.fullmatch(text):
            raise UsageError(
                f"the query is refused: nsys.{macro.name}() takes the name of a relation as text",
                hint="for example 'nsys.op', or the name of a WITH query",
            )
        *places, name = text.lower().split(".")
        _refuse_hidden(name, places, alias, scrubbed)


def _table(node: Mapping[str, Any], alias: str, scrubbed: str) -> str:
    name = str(node.get("table_name", "")).lower()
    places = [str(node.get(part) or "").lower() for part in ("catalog_name", "schema_name")]
    if _FILE.search(name) and not any(places):
        raise UsageError(
            f"the query is refused: {name} is a file, or looks like one",
            hint="an ad-hoc query reads the trace and nothing else",
        )
    if name in _TABLES_REFUSED:
        raise UsageError(f"the query is refused: {name} is not about the trace")
    _refuse_hidden(name, places, alias, scrubbed)
    return name


def is_secret(table: str) -> bool:
    """Whether a table of a trace, in any version of it, holds what nobody is to see."""
    return re.sub(r"_v[0-9]+$", "", table.lower()) in SECRET_TABLES


def _refuse_hidden(name: str, places: list[str], alias: str, scrubbed: str) -> None:
    if (alias.lower() in places and is_secret(name)) or name.startswith(scrubbed.lower()):
        raise UsageError(
            f"the query is refused: {name} holds the environment of the profiled program",
            hint="read nsys.string, nsys.export_info, nsys.capture_info or nsys.system_env",
        )
