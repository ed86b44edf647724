"""The interval macros against Python set algebra on a grid of 21 instants."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from conftest import written

MACROS = Path(__file__).parents[1] / "sql" / "macros"
FOREVER = 2**63 - 1

Row = tuple[int | None, int | None, int | None]  # part, start_ns, end_ns
Window = tuple[int, int, int, int]  # part, window_id, start_ns, end_ns
Cell = tuple[int | None, int]

instant = st.integers(0, 20)
maybe_instant = st.one_of(instant, instant, instant, st.none())
row = st.tuples(st.sampled_from([0, 1, None]), maybe_instant, maybe_instant)
rows = st.lists(row, max_size=9)
window = st.tuples(st.sampled_from([0, 1]), instant, instant)
windows = st.lists(window, max_size=4)

fast = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    """One connection with the macros; each example replaces the tables a, b and w."""
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("CREATE SCHEMA nsys")
        for name in ("interval", "place", "busy"):
            connection.execute((MACROS / f"{name}.sql").read_text())
        yield connection


def put(con: duckdb.DuckDBPyConnection, name: str, data: list[Row]) -> None:
    """Replace table `name` by these rows."""
    con.execute(f"CREATE OR REPLACE TABLE {name} (part BIGINT, start_ns BIGINT, end_ns BIGINT)")
    if data:
        con.execute(f"INSERT INTO {name} VALUES {', '.join(map(written, data))}")


def put_windows(con: duckdb.DuckDBPyConnection, data: list[tuple[int, int, int]]) -> list[Window]:
    """Replace table w by numbered windows."""
    numbered = [(part, i, start, end) for i, (part, start, end) in enumerate(data)]
    con.execute(
        "CREATE OR REPLACE TABLE w (part BIGINT, window_id BIGINT, start_ns BIGINT, end_ns BIGINT)"
    )
    if numbered:
        con.execute(f"INSERT INTO w VALUES {', '.join(map(written, numbered))}")
    return numbered


def cells(data: list[Row]) -> set[Cell]:
    """The (part, instant) cells that valid rows cover."""
    return {
        (part, t)
        for part, start, end in data
        if start is not None and end is not None
        for t in range(start, end)
    }


def islands(con: duckdb.DuckDBPyConnection, query: str) -> set[Cell]:
    """Run a query of islands, check that they are islands, and return their cells."""
    found = con.execute(query).fetchall()
    assert all(start < end for _, start, end in found)
    by_part: dict[int | None, list[tuple[int, int]]] = {}
    for part, start, end in found:
        by_part.setdefault(part, []).append((start, end))
    for spans in by_part.values():
        spans.sort()
        for (_, before), (after, _) in pairwise(spans):
            assert before < after, "islands touch or overlap"
    return cells(found)


@fast
@given(a=rows)
def test_union_and_measure(con: duckdb.DuckDBPyConnection, a: list[Row]) -> None:
    put(con, "a", a)
    assert islands(con, "FROM nsys.iv_union('a', part)") == cells(a)
    measured = dict(con.execute("FROM nsys.iv_measure('a', part)").fetchall())
    expected: dict[int | None, int] = {}
    for part, _ in cells(a):
        expected[part] = expected.get(part, 0) + 1
    assert measured == expected
    once = "WITH u AS (FROM nsys.iv_union('a', part))"
    again = f"{once} FROM nsys.iv_union('u', part) ORDER BY ALL"
    assert con.execute(again).fetchall() == con.execute(f"{once} FROM u ORDER BY ALL").fetchall()


@fast
@given(a=rows)
def test_gaps_are_the_holes_inside(con: duckdb.DuckDBPyConnection, a: list[Row]) -> None:
    put(con, "a", a)
    covered = cells(a)
    hull: set[Cell] = set()
    for part in {p for p, _ in covered}:
        times = [t for p, t in covered if p == part]
        hull |= {(part, t) for t in range(min(times), max(times) + 1)}
    assert islands(con, "FROM nsys.iv_gaps('a', part)") == hull - covered


@fast
@given(a=rows, b=rows)
@example(a=[(0, 0, 20)], b=[(0, 1, 3), (0, 5, 7), (0, 9, 12)])
@example(a=[(0, 1, 3), (0, 5, 7), (0, 9, 12)], b=[(0, 0, 20)])
def test_intersect_and_subtract(con: duckdb.DuckDBPyConnection, a: list[Row], b: list[Row]) -> None:
    put(con, "a", a)
    put(con, "b", b)
    assert islands(con, "FROM nsys.iv_intersect('a', 'b')") == cells(a) & cells(b)
    assert islands(con, "FROM nsys.iv_subtract('a', 'b')") == cells(a) - cells(b)


@fast
@given(a=rows, w=windows)
def test_clip_and_measure_in(
    con: duckdb.DuckDBPyConnection, a: list[Row], w: list[tuple[int, int, int]]
) -> None:
    put(con, "a", a)
    numbered = put_windows(con, w)
    key = "{part: part, id: window_id}"
    clip_then_union = f"""
        WITH clipped AS (FROM nsys.iv_clip('a', 'w')),
        island AS (FROM nsys.iv_union('clipped', {key}))
        SELECT part.id, start_ns, end_ns FROM island ORDER BY ALL
    """
    union_then_clip = """
        WITH island AS (FROM nsys.iv_union('a', part)),
        clipped AS (FROM nsys.iv_clip('island', 'w'))
        SELECT window_id, start_ns, end_ns FROM clipped ORDER BY ALL
    """
    expected = {
        (window_id, t)
        for part, window_id, start, end in numbered
        for t in range(start, end)
        if (part, t) in cells(a)
    }
    assert islands(con, clip_then_union) == expected
    assert con.execute(clip_then_union).fetchall() == con.execute(union_then_clip).fetchall()
    measured = con.execute("SELECT window_id, measure_ns FROM nsys.iv_measure_in('a', 'w')")
    assert dict(measured.fetchall()) == {
        window_id: sum(i == window_id for i, _ in expected)
        for _, window_id, start, end in numbered
        if start < end
    }


def test_clip_keeps_rows_apart(con: duckdb.DuckDBPyConnection) -> None:
    put(con, "a", [(0, 0, 10), (0, 0, 10), (0, 4, 4), (0, 9, 3)])
    put_windows(con, [(0, 5, 20), (0, 2, 8), (1, 0, 20)])
    found = con.execute("FROM nsys.iv_clip('a', 'w') ORDER BY ALL").fetchall()
    assert found == [(0, 0, 5, 10), (0, 0, 5, 10), (0, 1, 2, 8), (0, 1, 2, 8)]


def test_part_is_any_expression(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE OR REPLACE TABLE o AS SELECT * FROM"
        " (VALUES (1, 7, 0, 5), (1, 9, 4, 8), (2, 7, 1, 2)) t(device, stream_id, start_ns, end_ns)"
    )
    query = "SELECT * FROM nsys.iv_measure('o', {}) ORDER BY ALL"
    assert con.execute(query.format("device")).fetchall() == [(1, 8), (2, 1)]
    assert con.execute(query.format("NULL")).fetchall() == [(None, 8)]
    struct = con.execute(query.format("{d: device, s: stream_id}")).fetchall()
    assert [measure for _, measure in struct] == [5, 4, 1]


@pytest.mark.parametrize("name", ["island", "edge", "stretch", "valid", "w", "r", "i", "e", "part"])
def test_argument_may_be_a_cte_of_any_name(con: duckdb.DuckDBPyConnection, name: str) -> None:
    """A CTE hides a table of its name, and no name inside a macro hides the CTE."""
    con.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT 0 part, 0 AS start_ns, 99 AS end_ns")
    try:
        ctes = f"""
            WITH {name} AS (
                SELECT * FROM (VALUES (0, 1, 2, 6), (0, 1, 4, 9), (0, 2, 8, 12))
                    t(part, window_id, start_ns, end_ns)
            )
        """
        calls = {
            f"iv_union('{name}', part)": [(0, 2, 12)],
            f"iv_measure('{name}', part)": [(0, 10)],
            f"iv_gaps('{name}', part)": [],
            f"iv_intersect('{name}', '{name}')": [(0, 2, 12)],
            f"iv_subtract('{name}', '{name}')": [],
            f"iv_measure_in('{name}', '{name}')": [(0, 1, 5), (0, 1, 4), (0, 2, 4)],
        }
        for call, expected in calls.items():
            found = con.execute(f"{ctes} SELECT * FROM nsys.{call} ORDER BY ALL").fetchall()
            if "measure_in" in call:  # windows that share an id are one window of several pieces
                expected = [(0, 1, 9), (0, 2, 4)]
            assert found == expected, call
    finally:
        con.execute(f"DROP TABLE {name}")


Borders = dict[int, list[int]]  # {device: where its stretches begin}

# near each other, far apart, and both: a grid suits the first two, cells of the last are crowded
uneven = st.one_of(
    st.integers(-20, 20),
    st.integers(-(2**62), 2**62),
    st.sampled_from([-FOREVER - 1, -FOREVER, FOREVER - 1, FOREVER]),
)
borders = st.dictionaries(
    st.sampled_from([0, 1]), st.lists(uneven, unique=True, max_size=50).map(sorted), max_size=2
)


def put_stretches(con: duckdb.DuckDBPyConnection, data: Borders) -> None:
    """Replace table `stretches`: of each device from its first border to the end of time."""
    con.execute(
        "CREATE OR REPLACE TABLE stretches"
        " (device BIGINT, segment BIGINT, start_ns BIGINT, end_ns BIGINT)"
    )
    rows = [
        (device, segment, start, end)
        for device, starts in data.items()
        for segment, (start, end) in enumerate(pairwise([*starts, FOREVER]))
    ]
    if rows:
        con.execute(f"INSERT INTO stretches VALUES {', '.join(map(written, rows))}")


@fast
@given(a=st.lists(st.tuples(st.sampled_from([0, 1, 2, None]), uneven, uneven)), at=borders)
@example(a=[(0, t, 0) for t in range(-3, 90)], at={0: [*range(40), 2**61]})
@example(a=[(0, FOREVER, 0), (0, -FOREVER - 1, 0)], at={0: [FOREVER]})
@example(a=[(0, FOREVER, 0), (0, -FOREVER - 1, 0)], at={0: [-FOREVER - 1]})
def test_place(con: duckdb.DuckDBPyConnection, a: list[Row], at: Borders) -> None:
    con.execute("CREATE OR REPLACE TABLE a (device BIGINT, start_ns BIGINT, other BIGINT)")
    if a:
        con.execute(f"INSERT INTO a VALUES {', '.join(map(written, a))}")
    put_stretches(con, at)
    expected = []
    for device, start, other in a:
        ends = [*at.get(device, []), FOREVER]
        begun = sum(each <= start for each in ends[:-1])
        if begun:
            expected.append((device, start, other, begun - 1, ends[begun]))
    found = con.execute("FROM nsys.iv_place('a', 'stretches')").fetchall()
    assert sorted(found) == sorted(expected)


def test_place_sorts_only_what_a_grid_does_not_suit(con: duckdb.DuckDBPyConnection) -> None:
    """Rows of the two ways to one answer, looked up and sorted: each is taken where it suits."""
    con.execute(
        "CREATE OR REPLACE TABLE a AS SELECT 0 AS device, i AS start_ns FROM range(99) t(i)"
    )
    for starts, ways in (([0, 10, 20, 60, 2**61], [99, 0]), ([*range(60), 2**61], [0, 99])):
        put_stretches(con, {0: starts})
        plan = con.execute("EXPLAIN (ANALYZE, FORMAT json) FROM nsys.iv_place('a', 'stretches')")
        [(_, text)] = plan.fetchall()
        [union] = named(json.loads(text), "UNION")
        assert [branch["operator_cardinality"] for branch in union["children"]] == ways


def named(node: dict[str, Any], name: str) -> Iterator[dict[str, Any]]:
    """The operators of this name in a plan."""
    if node.get("operator_name") == name:
        yield node
    for child in node["children"]:
        yield from named(child, name)


@fast
@given(
    rows=st.lists(
        st.tuples(st.integers(0, 11), instant, st.integers(0, 9)),
        max_size=25,
        unique_by=lambda row: row[:2],  # of rows that start together any may come first
    ),
    parts=st.sampled_from([8, 12, 2**58]),
    at=st.sampled_from([0, -(10**18), 2**62, -(2**63) + 9, 2**63 - 99]),
)
def test_reached(
    con: duckdb.DuckDBPyConnection, rows: list[tuple[int, int, int]], parts: int, at: int
) -> None:
    """On one axis and as partitions: what a row adds, which is all that reached_ns is for."""
    rows = [row for row in rows if row[0] < parts]
    put(con, "a", [(part, at + start, at + start + length) for part, start, length in rows])
    con.execute(
        f"CREATE OR REPLACE TABLE scale AS SELECT {parts} AS parts,"
        f" '{at}'::BIGINT AS from_ns, '{at + 30}'::BIGINT AS to_ns"
    )
    expected = []
    for part, start, _ in rows:
        ends = [s + n for p, s, n in rows if p == part and s < start]
        expected.append((part, at + start, at + max([start, *ends])))
    query = (
        "SELECT part, start_ns, greatest(start_ns, reached_ns) FROM nsys.iv_reached('a', 'scale')"
    )
    assert sorted(con.execute(query).fetchall()) == sorted(expected)


# part, start, length, kind, borrowed: parts are even on device 0 and odd on device 1
operation = st.tuples(
    st.integers(0, 11), instant, st.integers(0, 9), st.sampled_from([1, 2, 3]), st.integers(0, 1)
)


@fast
@given(
    rows=st.lists(operation, max_size=25),
    borders=st.lists(instant, unique=True, max_size=3).map(sorted),
    parts=st.sampled_from([8, 9, 12, 2**58]),
    at=st.sampled_from([0, -(10**18), 2**62, -(2**63) + 9, 2**63 - 99]),
    far=st.booleans(),
)
def test_busy(
    con: duckdb.DuckDBPyConnection,
    rows: list[tuple[int, int, int, int, int]],
    borders: list[int],
    parts: int,
    at: int,
    far: bool,
) -> None:
    """Parts on one axis and parts as partitions give the union of each in each stretch.

    The number of parts and their extent say which of both is taken.
    """
    rows = [row for row in rows if row[0] < parts]
    stretches = [
        (device, segment, start, end)
        for device in (0, 1)
        for segment, (start, end) in enumerate(
            pairwise([-FOREVER - 1, *(at + border for border in borders), FOREVER])
        )
    ]
    con.execute(
        "CREATE OR REPLACE TABLE stretches"
        " (device BIGINT, segment BIGINT, start_ns BIGINT, end_ns BIGINT)"
    )
    con.execute(f"INSERT INTO stretches VALUES {', '.join(map(written, stretches))}")
    con.execute(
        "CREATE OR REPLACE TABLE a (part BIGINT, device BIGINT, segment BIGINT, start_ns BIGINT,"
        " end_ns BIGINT, kind INTEGER, borrowed INTEGER)"
    )
    placed = [
        (part, part % 2, sum(b <= start for b in borders), at + start, at + start + length, *rest)
        for part, start, length, *rest in rows
    ]
    if placed:
        con.execute(f"INSERT INTO a VALUES {', '.join(map(written, placed))}")
    extent = (min(at, 0) if far else at, at + 30)
    con.execute(
        f"CREATE OR REPLACE TABLE scale AS SELECT {parts} AS parts,"
        f" '{extent[0]}'::BIGINT AS from_ns, '{extent[1]}'::BIGINT AS to_ns"
    )
    expected = {}
    for device, segment, begin, end in stretches:
        for part in {row[0] for row in rows if row[0] % 2 == device}:
            own = [row for row in rows if row[0] == part]
            inside = [
                {
                    t
                    for _, start, length, kind, _ in own
                    for t in range(start, start + length)
                    if kind <= most and begin <= at + t < end
                }
                for most in (3, 1, 2)
            ]
            began = [row for row in own if begin <= at + row[1] < end]
            told = (len(began), sum(row[4] for row in began), *map(len, inside))
            if any(told):
                expected[part, device, segment] = told
    found = con.execute("FROM nsys.iv_busy('a', 'stretches', 'scale')").fetchall()
    assert {row[:3]: row[3:] for row in found if any(row[3:])} == expected


def test_times_are_bigint(con: duckdb.DuckDBPyConnection) -> None:
    put(con, "a", [(0, 2**62, 2**62 + 5)])
    put_windows(con, [(0, 0, 2**62 + 2)])
    for call in ("iv_measure('a', part)", "iv_measure_in('a', 'w')"):
        described = con.execute(f"DESCRIBE SELECT measure_ns FROM nsys.{call}").fetchall()
        assert described[0][1] == "BIGINT"
    assert con.execute("SELECT measure_ns FROM nsys.iv_measure_in('a', 'w')").fetchall() == [(2,)]


def test_cost_grows_with_rows_only(con: duckdb.DuckDBPyConnection) -> None:
    """Half a million rows in 500 windows; a quadratic window would take minutes anywhere."""
    con.execute(
        "CREATE OR REPLACE TABLE big AS SELECT 0 AS part, i * 10 AS start_ns,"
        " i * 10 + (hash(i) % 30)::BIGINT AS end_ns FROM range(500000) t(i)"
    )
    con.execute(
        "CREATE OR REPLACE TABLE w AS SELECT 0 AS part, i AS window_id, i * 10000 AS start_ns,"
        " (i + 1) * 10000 AS end_ns FROM range(501) t(i)"
    )
    began = time.monotonic()
    total = con.execute("SELECT measure_ns FROM nsys.iv_measure('big', part)").fetchone()
    parts = con.execute("SELECT sum(measure_ns) FROM nsys.iv_measure_in('big', 'w')").fetchone()
    islands_ns = con.execute(
        "SELECT sum(end_ns - start_ns) FROM nsys.iv_union('big', part)"
    ).fetchone()
    assert total == parts == islands_ns
    assert time.monotonic() - began < 30
    con.execute("DROP TABLE big")
