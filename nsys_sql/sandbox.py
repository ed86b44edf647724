"""What an ad-hoc query may do: read. Decided on DuckDB's own syntax tree, before it runs.

DuckDB's switches alone do not suffice: with external access off, `sqlite_scan` and `ATTACH` of
the SQLite extension still open any file. So table functions are allowed by name only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from nsys_sql.errors import UsageError

_TABLE_FUNCTIONS = frozenset(
    {
        "duckdb_columns",
        "duckdb_databases",
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
_SCALAR_FUNCTIONS_REFUSED = frozenset(
    {
        "current_setting",
        "getenv",
        "json_execute_serialized_sql",
        "nextval",
        "query",
        "query_table",
        "which_secret",
        "write_log",
    }
)
_SCALAR_PREFIXES_REFUSED = ("read_", "sqlite_", "parquet_", "write_", "glob")
# Tables of a trace that hold the target's environment, command line or output.
SECRET_TABLES = frozenset(
    {
        "analysis_file",
        "export_meta_data",
        "meta_data_capture",
        "meta_data_export",
        "processstreams",
        "stringids",
        "target_info_system_env",
    }
)


@dataclass(frozen=True, slots=True)
class Reads:
    """The names a query mentions, lower case: relations, functions, and short strings."""

    tables: frozenset[str]
    functions: frozenset[str]
    texts: frozenset[str]


def inspect(tree: Mapping[str, Any], macros: Iterable[str], alias: str, scrubbed: str) -> Reads:
    """Refuse what a query must not do; return what it mentions.

    `tree` is what json_serialize_sql returned, `alias` the database of the trace, `scrubbed` how
    the names of rebuilt tables start.
    """
    if tree.get("error"):
        message = str(tree.get("error_message", "it cannot be parsed"))
        if tree.get("error_type") == "not implemented":
            message = "only SELECT is run, without PIVOT"
        raise UsageError(f"the query is refused: {message}")
    statements = tree.get("statements", ())
    if len(statements) != 1:
        raise UsageError(f"one query is expected, not {len(statements)}")
    known = {name.lower() for name in macros}
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


def _table(node: Mapping[str, Any], alias: str, scrubbed: str) -> str:
    name = str(node.get("table_name", "")).lower()
    places = [str(node.get(part) or "").lower() for part in ("catalog_name", "schema_name")]
    is_hidden = (alias.lower() in places and name in SECRET_TABLES) or name.startswith(
        scrubbed.lower()
    )
    if is_hidden:
        raise UsageError(
            f"the query is refused: {name} holds the environment of the profiled program",
            hint="read nsys.string, nsys.export_info, nsys.capture_info or nsys.system_env",
        )
    return name
