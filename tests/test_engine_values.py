"""Values that DuckDB refuses: text in integer columns, bytes that are no UTF-8, odd types."""

import shutil
import sqlite3

import duckdb
import pytest

import nsys_sql

KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"


def write(path, script, rows=()):
    database = sqlite3.connect(path)
    database.executescript(script)
    for sql, values in rows:
        database.execute(sql, values)
    database.commit()
    database.close()
    return path


def rows(model, sql):
    return model.rows(model.query(sql))


STRINGS = "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
ADD_STRING = "INSERT INTO StringIds VALUES (?, CAST(? AS TEXT))"
KERNELS = (
    f'CREATE TABLE {KERNEL} ("start" INTEGER, "end" INTEGER, deviceId INTEGER, streamId INTEGER, '
    "shortName INTEGER, globalPid INTEGER);"
)

# a string that names nothing is not handed out
NAMED = (
    "CREATE TABLE ThreadNames (globalTid INTEGER, nameId INTEGER); "
    "INSERT INTO ThreadNames VALUES (1, 1), (1, 2), (1, 3), (1, 4), (1, 5); "
)


def test_invalid_utf8_keeps_its_bytes_as_escapes(tmp_path):
    path = write(
        tmp_path / "t.sqlite",
        STRINGS + NAMED + "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, "
        "eventType INTEGER, text TEXT, textId INTEGER);",
        [
            (ADD_STRING, (1, "größe".encode())),
            (ADD_STRING, (2, b"A\xffB")),
            (ADD_STRING, (3, b"")),
            ("INSERT INTO NVTX_EVENTS VALUES (1, 2, 59, CAST(? AS TEXT), NULL)", (b"\xfe1",)),
            ("INSERT INTO NVTX_EVENTS VALUES (3, 4, 59, NULL, 2)", ()),
        ],
    )
    with nsys_sql.open(path) as model:
        assert rows(model, "SELECT * FROM string ORDER BY string_id") == [
            (1, "größe"),
            (2, "A\\xFFB"),
            (3, ""),
        ]
        assert rows(model, "SELECT row_id, text FROM nvtx ORDER BY start_ns") == [
            (1, "\\xFE1"),
            (2, "A\\xFFB"),
        ]


def test_the_environment_is_no_name_whatever_its_encoding(tmp_path):
    path = write(
        tmp_path / "t.sqlite",
        STRINGS + NAMED + "CREATE TABLE ProcessStreams (globalPid INTEGER, filenameId INTEGER, "
        "contentId INTEGER); INSERT INTO ProcessStreams VALUES (1, 4, 5);",
        [
            (ADD_STRING, (1, b"TOKEN=abc\x00HOME=/root\x00")),
            (ADD_STRING, (2, b"TOKEN=\xff\x00HOME=/root\x00")),
            (ADD_STRING, (3, b"gemm")),
            (ADD_STRING, (4, b"/var/log/stdout.log")),
            (ADD_STRING, (5, b"logged in as somebody")),
        ],
    )
    with nsys_sql.open(path) as model:
        assert rows(model, "FROM string") == [(3, "gemm")]


def test_text_in_an_integer_column_counts_as_missing_and_is_counted(tmp_path):
    path = write(
        tmp_path / "t.sqlite",
        KERNELS + f"INSERT INTO {KERNEL} VALUES (1, 2, 0, 7, 1, 16777216), "
        "(3, 'seven', 0, 7, 1, 16777216), (5, 6, 0, 7.5, 'x', NULL), (7, 8, 0, 7, x'00', 1e300);",
    )
    with nsys_sql.open(path) as model:
        # a view over the trace, read by the query itself
        assert rows(model, "SELECT row_id, end_ns, stream_id, process FROM kernel ORDER BY 1") == [
            (1, 2, 7, 1),
            (2, None, 7, 1),
            (3, 6, None, None),
            (4, 8, 7, None),
        ]
        assert f"1 values of {KERNEL}.end are not integers and count as missing" in (
            model.trace.warnings
        )
        assert f"2 values of {KERNEL}.shortName are not integers and count as missing" in (
            model.trace.warnings
        )
    with nsys_sql.open(path) as model:
        # a step that reads the view
        assert rows(model, "SELECT op_id & 255, end_ns FROM op ORDER BY 1") == [
            (1, 2),
            (3, 6),
            (4, 8),
        ]


@pytest.mark.parametrize(("where", "recipe"), [("KERNEL", "budget"), ("RUNTIME", "launches")])
def test_a_script_repairs_what_run_repairs(fixture_sqlite, tmp_path, where, recipe):
    """Whether a view, a materialised relation or both read the table that holds the bad values."""
    trace = shutil.copy(fixture_sqlite("event_waits"), tmp_path / "odd.sqlite")
    table = f"CUPTI_ACTIVITY_KIND_{where}"
    write(
        trace,
        f"UPDATE {table} SET \"end\" = 'late' WHERE rowid = 3;"
        f"UPDATE {table} SET correlationId = x'00' WHERE rowid = 5;"
        "UPDATE StringIds SET value = CAST(x'67ff' AS TEXT) WHERE id = (SELECT min(id) FROM "
        "StringIds);",
    )
    with nsys_sql.open(trace, anchor="nvtx:step *") as model:
        script = model.script(recipe)
        counted = [text for text in model.trace.warnings if "count as missing" in text]
        assert len(counted) == 2
    with nsys_sql.open(trace, anchor="nvtx:step *") as model, duckdb.connect() as con:
        assert con.execute(script).fetchall() == model.run(recipe).fetchall() != []


def test_columns_without_or_with_other_types_are_read_as_what_they_hold(tmp_path):
    path = write(
        tmp_path / "t.sqlite",
        f'CREATE TABLE {KERNEL} ("start", "end" REAL, deviceId TEXT, streamId NUMERIC, shortName);'
        f"INSERT INTO {KERNEL} VALUES (9007199254740993, 9007199254740994, 1, 7, 1);"
        "CREATE TABLE StringIds (id, value); INSERT INTO StringIds VALUES (1, 'gemm');",
    )
    with nsys_sql.open(path) as model:
        assert rows(model, "SELECT start_ns, device_ordinal, stream_id, name_id FROM kernel") == [
            (9007199254740993, 1, 7, 1)
        ]
        assert rows(model, "FROM string") == [(1, "gemm")]


def test_ids_beyond_the_signed_range_stay_what_sqlite_holds(tmp_path):
    path = write(
        tmp_path / "t.sqlite",
        KERNELS + f"INSERT INTO {KERNEL} VALUES (1, 9223372036854775807, 0, 4294967295, 1, "
        "-144115188075855872);",
    )
    with nsys_sql.open(path) as model:
        assert rows(model, "SELECT end_ns, stream_id, process FROM kernel") == [
            (9223372036854775807, 4294967295, -8589934592)
        ]
        assert model.trace.warnings == ()
