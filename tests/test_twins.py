"""A second set of GPUs and processes, which does the same at another time, changes no answer.

The tables of one small trace are laid beside a copy of themselves: other devices, processes,
threads and operations, an hour later, with the same correlation ids, streams and names. Whatever
asks them then has to give its answer twice, the second time with those numbers and times, and
nothing that mixes the two.
"""

import re
from collections import Counter
from dataclasses import replace

import pytest

import nsys_sql
from conftest import ROOT, long_test
from nsys_sql import catalog
from simulator import SCENARIOS, simulate

pytestmark = long_test
LATER, ROWS, FAR = 3_600_000_000_000, 1_000_000, 1 << 60
TIMES = (
    *("start_ns", "end_ns", "at_ns", "next_ns", "time_ns", "issued_ns", "unblocked_ns", "stop_ns"),
    *("call_start_ns", "call_end_ns", "gap_start_ns", "producer_start_ns", "producer_end_ns"),
    *("prev_start_ns", "prev_end_ns", "op_start_ns", "op_end_ns", "follows_start_ns"),
    *("follows_end_ns", "opens_ns", "ready_ns", "launch_ns"),
    *("first_start_ns", "last_end_ns", "comm_until_ns", "compute_until_ns", "other_until_ns"),
    *("first_ns", "last_ns", "issue_ns", "gap_end_ns"),
)
OPS = (
    *("op_id", "item_id", "prev_id", "before_id", "producer_id", "follows_id", "last_id"),
    *("gap_op_id", "row_id", "source_id"),
)
OWNED = {"device", "gpu_id", "process", "process_pid", "pid", "thread", "run", "piece_id", *OPS}
# Numbers that count through all devices go on behind those of the first set.
COUNTED = {
    "run": "SELECT max(run) FROM one.nsys.stream_event",
    "position": "SELECT max(position) FROM one.nsys.stream_event",
    "piece_id": "SELECT max(piece_id) FROM one.nsys.comm_piece",
    "part": "SELECT max(part) FROM one.nsys.starved_piece",
    "range_no": "SELECT max(range_no) FROM one.nsys.range_nest",
    "rank": "SELECT count(DISTINCT rank) FILTER (WHERE rank > 0) FROM one.nsys.event_run",
}
# What adds up over all devices, tells their number or writes them into a text, what numbers rows in
# no order, and what needs a capture of another kind.
OTHERS = {
    *("recipes/kernels", "recipes/taxonomy", "recipes/capture", "recipes/devices"),
    *("recipes/processes", "recipes/trace_events", "recipes/step_timeline", "steps/capture_row"),
    *("steps/nvtx_family", "steps/kernel_name", "steps/comm_piece", "notes/metric_limits"),
    *("recipes/metrics", "steps/metric_sample", "steps/metric_operator", "recipes/call_sites"),
    *("steps/call_site_thread", "steps/call_site_op", "steps/call_site_window"),
}
# They make every step that the others need.
RECIPES = (
    *("anchors", "blockers", "capture", "claims", "communication", "copies", "host-stalls"),
    *("launches", "nvtx", "phases", "streams"),
)
CATALOG = catalog.load_catalog()
FILES = {
    **{f"steps/{name}": file for name, file in CATALOG.steps.items()},
    **{f"recipes/{name.replace('-', '_')}": file for name, file in CATALOG.recipes.items()},
    **{f"notes/{name}": file for name, file in CATALOG.notes.items()},
}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A trace with every step made; `one` holds its tables, `two` those and their copies."""
    path = tmp_path_factory.mktemp("twins") / "trace.sqlite"
    given = {"steps": 4, "layers": 1, "offload": True, "relay": True, "stall_ns": 2_000_000}
    simulate(replace(SCENARIOS["tp_overlap"], **given), path=path)
    with nsys_sql.open(path) as model:
        model.con.execute("PRAGMA disable_optimizer")  # as in the fixture `bare`
        for recipe in RECIPES:
            model.run(recipe)
        con = model.con
        for name in ("one", "two"):
            con.execute(f"ATTACH ':memory:' AS {name}; CREATE SCHEMA {name}.nsys")
        tables = "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'nsys'"
        views = "SELECT view_name FROM duckdb_views() WHERE schema_name = 'nsys' AND NOT internal"
        for (table,) in con.execute(f"{tables} UNION {views} ORDER BY ALL").fetchall():
            con.execute(f"CREATE TABLE one.nsys.{table} AS FROM memory.nsys.{table}")
        # nothing is unclosed, an hour later everything would be, and all begin in the same way
        con.execute("UPDATE one.nsys.session_end SET session_end_ns = NULL")
        con.execute(f"UPDATE one.nsys.report_start SET start_ns = -{2 * FAR}")
        yield model
        con.execute("USE memory")


@pytest.fixture(scope="module")
def shifts(model):
    """What is added to a column of a copy, by name."""
    counted = {name: model.con.execute(sql).fetchone()[0] for name, sql in COUNTED.items()}
    levels = {f"level_{at}": counted["range_no"] << 24 for at in range(1, 9)}
    return {
        **{"device": 100, "gpu_id": 100, "process": 5000, "process_pid": 5000, "pid": 5000},
        **{"thread": 5000 << 24, "end_thread": 5000 << 24, **levels, **counted},
        **dict.fromkeys(OPS, ROWS),
        **dict.fromkeys(TIMES, LATER),
    }


def shift_of(file, name, shifts):
    # `rank` and `position` mean something else where no events are
    is_event = file.partition("/")[2].startswith(("event_", "stream_event"))
    return 0 if name in ("rank", "position") and not is_event else shifts.get(name, 0)


@pytest.fixture(scope="module")
def two(model, shifts):
    """The tables of `one` with a copy of every row that belongs to a device or process."""
    con = model.con
    rows = "SELECT table_name FROM duckdb_tables() WHERE database_name = 'one'"
    for (table,) in con.execute(rows).fetchall():
        columns = [row[0] for row in con.execute(f"DESCRIBE one.nsys.{table}").fetchall()]
        copied = []
        for name in columns:
            by = shift_of(f"steps/{table}", name, shifts)
            if name == "outer_nos":
                copied.append(f"list_transform(outer_nos, LAMBDA x: x + {shifts['range_no']})")
            elif name == "rank" and by:
                copied.append(f"CASE WHEN rank > 0 THEN rank + {by} ELSE rank END")
            elif by:
                copied.append(
                    f"CASE WHEN {name} BETWEEN -{FAR} AND {FAR} THEN {name} + {by} ELSE {name} END"
                )
            else:
                copied.append(name)
        con.execute(
            f"CREATE TABLE two.nsys.{table} AS FROM one.nsys.{table}"
            + f" UNION ALL SELECT {', '.join(copied)} FROM one.nsys.{table}"
            * bool(OWNED & {*columns})
        )
    return con


def answer(con, where, file):
    con.execute(f"USE {where}")
    found = con.execute((ROOT / f"sql/{file}.sql").read_text(encoding="utf-8"))
    return [column[0] for column in found.description], found.fetchall()


def later(file, columns, row, shifts):
    """What the copy answers where the first set answers `row`."""
    changed = []
    for name, value in zip(columns, row, strict=True):
        if isinstance(value, str) and file.startswith("notes/"):
            value = re.sub(r"device (\d+)", lambda found: f"device {int(found[1]) + 100}", value)
        elif name == "outer_nos":
            value = [each + shifts["range_no"] for each in value]
        elif type(value) is int and abs(value) < FAR:
            by = shift_of(file, name, shifts)
            value += by if value or name != "rank" else 0
        changed.append(value)
    return tuple(changed)


def test_twins_are_two_of_everything(two):
    """The macros too; a file of its own below is what each test reads."""
    for where in ("one", "two"):
        two.execute(f"USE {where}")
        for path in sorted((ROOT / "sql" / "macros").glob("*.sql")):
            two.execute(path.read_text(encoding="utf-8"))
    asked = "SELECT count(*) FROM {}.nsys.op"
    one, both = (two.execute(asked.format(name)).fetchone()[0] for name in ("one", "two"))
    assert both == 2 * one > 200


@pytest.mark.parametrize("file", sorted(FILES.keys() - OTHERS))
def test_twins_get_the_answer_twice(two, shifts, file):
    columns, rows = answer(two, "one", file)
    _, found = answer(two, "two", file)
    expected = list(rows)
    if OWNED & {*columns} or re.search(r"device \d", str(rows)):
        expected += [later(file, columns, row, shifts) for row in rows]
    assert Counter(map(repr, found)) == Counter(map(repr, expected))
