"""Rows that take part in no measure, and rows that stand there twice: told, never silent.

What is counted stands in memory by then. A table of the trace is only read again where it holds
more rows than became operations or calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from nsys_sql.adapt import quote
from nsys_sql.plan import SCHEMA, Planner

Query = Callable[[str], list[tuple[Any, ...]]]
# By their number in nsys.stream_item.
_KINDS = ("kernel", "memcpy", "memset", "graph_exec")
# No work on a GPU takes as long: a collective that hangs is ended after minutes. Not in BIGINT,
# whose range two times may leave between them.
_HOUR_NS = 3.6e12
_TOO_LONG = "last over an hour, which no work on a GPU does: they count as they stand there"
_IN_A_RANGE = "event_type IN (59, 60, 70, 71) AND"
_BEFORE = ("prev_id", "prev_start_ns", "prev_end_ns", "prev_correlation_id", "correlation_id")


def told(step: str, planner: Planner, duckdb: Query, sqlite: Query | None) -> Iterator[str]:
    """What is odd about the rows behind a step that was made: sentences for the user.

    `duckdb` and `sqlite` run a query on the model and, where the trace is an SQLite file, on it.
    """
    if step == "op":
        items = _place("stream_item", planner)
        columns = {row[0] for row in duckdb(f"DESCRIBE {items}")}
        twice = "0"
        if columns.issuperset(_BEFORE):  # else nothing that is asked for needs the order
            # Of one call two operations of a stream begin and end together only if it is one.
            twice = (
                "count(*) FILTER (WHERE prev_correlation_id = correlation_id "
                "AND prev_id >> 40 = kind AND prev_start_ns = start_ns AND prev_end_ns = end_ns "
                "AND end_ns > start_ns)"
            )
        # A column that nothing asks for is not there; the lower part of a lane is its stream.
        missing = {"device": "device IS NULL", "lane": "lane % 8589934592 = 0"}
        counts = ", ".join(
            f"count(*) FILTER (WHERE {where})" if name in columns else "0"
            for name, where in missing.items()
        )
        found = duckdb(
            f"SELECT kind, count(*), {twice}, {counts} FROM {items} WHERE kind < 4 GROUP BY kind"
        )
        endless = _endless(items, columns, "kind", duckdb)
        counted = {int(kind): tuple(map(int, numbers)) for kind, *numbers in found}
        for kind, relation in enumerate(_KINDS):
            rows, doubles, homeless, adrift = counted.get(kind, (0, 0, 0, 0))
            yield from _invalid(relation, rows, planner, duckdb, sqlite)
            if endless.get(kind):
                yield f"{_rows(endless[kind], relation, planner)} {_TOO_LONG}"
            if homeless:
                yield (
                    f"{_rows(homeless, relation, planner)} name no device: they are in the work of "
                    "none"
                )
            if adrift:
                yield (
                    f"{_rows(adrift, relation, planner)} name no stream: they count as one stream, "
                    "and what they waited for is not known"
                )
            if doubles:
                yield (
                    f"{_rows(doubles, relation, planner)} repeat the one before to the nanosecond: "
                    "they count in counts and in work, and not in unions"
                )
    elif step == "call":
        calls = _place("call", planner)
        rows = int(duckdb(f"SELECT count(*) FROM {calls}")[0][0])
        yield from _invalid("api_call", rows, planner, duckdb, sqlite)
        columns = {row[0] for row in duckdb(f"DESCRIBE {calls}")}
        if count := sum(_endless(calls, columns, "0", duckdb).values()):
            yield f"{_rows(count, 'api_call', planner)} {_TOO_LONG}"
    elif step in ("nvtx_span", "nvtx_window"):
        yield from _invalid("nvtx", -1, planner, duckdb, sqlite)


def _endless(place: str, columns: set[str], kind: str, duckdb: Query) -> dict[int, int]:
    """How many rows last too long, by kind; none is looked at where all of them took less."""
    if not columns.issuperset(("start_ns", "end_ns")):
        return {}
    span = duckdb(f"SELECT max(end_ns)::DOUBLE - min(start_ns) FROM {place}")[0][0]
    if span is None or span <= _HOUR_NS:
        return {}
    return dict(
        duckdb(
            f"SELECT {kind} AS kind, count(*) FROM {place} "
            f"WHERE end_ns::DOUBLE - start_ns > {_HOUR_NS} GROUP BY ALL"
        )
    )


def _invalid(
    relation: str, valid: int, planner: Planner, duckdb: Query, sqlite: Query | None
) -> Iterator[str]:
    """How many rows end before they start or lack a time, if any; `valid` are known to be good."""
    if not planner.is_present(relation):
        return
    place, table = _place(relation, planner), _table(relation, planner)
    if valid >= 0:
        if sqlite is not None and table is not None:
            most = sqlite(f"SELECT max(rowid) AS most FROM {quote(table)}")[0][0]
        else:
            most = duckdb(f"SELECT count(*) FROM {place}")[0][0]
        if int(most or 0) <= valid:
            return
    where = "(end_ns >= start_ns) IS NOT TRUE"
    if relation == "nvtx":  # a range without an end is open, which is another thing
        where = f"{_IN_A_RANGE} (start_ns IS NULL OR end_ns < start_ns)"
    count = int(duckdb(f"SELECT count(*) FROM {place} WHERE {where}")[0][0])
    if count:
        yield (
            f"{_rows(count, relation, planner)} end before they start or lack a time: they take "
            "part in no measure"
        )


def _place(name: str, planner: Planner) -> str:
    """Where a relation or step stands: in a database that `build` made they are not made again."""
    is_built = planner.shape.relations is not None
    return f"{planner.alias}.{SCHEMA}.{name}" if is_built else f"{planner.schema}.{name}"


def _table(relation: str, planner: Planner) -> str | None:
    source = planner.adapter(relation).source_table
    return None if source is None else planner.shape.find(source)


def _rows(count: int, relation: str, planner: Planner) -> str:
    return f"{count} rows of {_table(relation, planner) or relation}"
