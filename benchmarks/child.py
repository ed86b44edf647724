"""What run.py measures in processes of their own: python benchmarks/child.py JOB ARGUMENT...

    scan TRACE.sqlite             the reference: SQLite's own sum over the kernel and the API table
    parquet TRACE.sqlite FOLDER   the trace as a folder of Parquet files, one a table
    warm TRACE.duckdb             a second budget in a session that is open; prints its seconds
    union WAY TRACE.sqlite        the union of all kernels per device; prints its seconds and ns

WAY is sql, numpy, pandas or polars. Reading the trace is not in the seconds of a union: all begin
with the numbers in memory. Each needs only what it uses: unions of peers run without nsys-sql.
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

TABLES = ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME")


def connect(trace: str) -> sqlite3.Connection:
    """The trace, read only."""
    return sqlite3.connect(f"{Path(trace).absolute().as_uri()}?mode=ro", uri=True)


def scan(trace: str) -> None:
    """Count and total length of both big tables."""
    con = connect(trace)
    for table in TABLES:
        print(con.execute(f'SELECT count(*), sum("end" - start) FROM {table}').fetchone())


def parquet(trace: str, folder: str) -> None:
    """Copy every table that has rows."""
    import nsys_sql

    Path(folder).mkdir(parents=True)
    with nsys_sql.open(trace) as model:
        for table in model.trace.tables:
            target = str(Path(folder) / f"{table}.parquet").replace("'", "''")
            model.con.execute(f"COPY (SELECT * FROM trace.\"{table}\") TO '{target}'")


def warm(trace: str) -> None:
    """Budget twice; the second is measured."""
    import nsys_sql

    with nsys_sql.open(trace) as model:
        model.result("budget")
        begin = time.perf_counter()
        model.result("budget")
        print(time.perf_counter() - begin)


def union(way: str, trace: str) -> None:
    """Time the union of one way; the total tells that all ways agree."""
    rows = connect(trace).execute(f'SELECT deviceId, start, "end" FROM {TABLES[0]}').fetchall()
    prepare, compute = WAYS[way]
    data = prepare(rows)
    del rows
    begin = time.perf_counter()
    total = compute(data)
    print(time.perf_counter() - begin, int(total))


def _in_duckdb(rows: list[tuple[int, int, int]]) -> Any:
    import duckdb

    from nsys_sql import resources

    con = duckdb.connect()
    con.execute("CREATE SCHEMA nsys")
    con.execute((resources.root() / "sql" / "macros" / "interval.sql").read_text(encoding="utf-8"))
    # through a file: millions of parameters would take minutes
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "span.csv"
        with file.open("w") as out:
            out.writelines(f"{device},{start},{end}\n" for device, start, end in rows)
        con.execute(
            f"CREATE TABLE span AS FROM read_csv('{file}', header = false, columns = "
            "{'device': 'BIGINT', 'start_ns': 'BIGINT', 'end_ns': 'BIGINT'})"
        )
    return con


def _sql(con: Any) -> int:
    total = con.execute("SELECT sum(measure_ns) FROM nsys.iv_measure('span', device)").fetchone()
    return int(total[0])


def _arrays(rows: list[tuple[int, int, int]]) -> Any:
    import numpy

    return numpy.array(rows, dtype=numpy.int64)


def _numpy(data: Any) -> int:
    import numpy

    total = 0
    for device in numpy.unique(data[:, 0]):
        own = data[data[:, 0] == device]
        own = own[numpy.argsort(own[:, 1], kind="stable")]
        start, end = own[:, 1], own[:, 2]
        reached = numpy.maximum.accumulate(end)
        before = numpy.concatenate(([start[0]], reached[:-1]))
        total += int(numpy.maximum(end - numpy.maximum(start, before), 0).sum())
    return total


def _frame(rows: list[tuple[int, int, int]]) -> Any:
    import pandas

    return pandas.DataFrame(rows, columns=["device", "start", "end"])


def _pandas(data: Any) -> int:
    data = data.sort_values(["device", "start"], kind="stable")
    reached = data.groupby("device")["end"].cummax()
    before = reached.groupby(data["device"]).shift(fill_value=-1)
    return int((data["end"] - data["start"].clip(lower=before)).clip(lower=0).sum())


def _table(rows: list[tuple[int, int, int]]) -> Any:
    import polars

    return polars.DataFrame(rows, schema=["device", "start", "end"], orient="row")


def _polars(data: Any) -> int:
    import polars

    end, start = polars.col("end"), polars.col("start")
    before = end.cum_max().shift(1, fill_value=-1).over("device")
    own = (end - polars.max_horizontal(start, before)).clip(lower_bound=0)
    return int(data.sort("device", "start").select(own.sum()).item())


WAYS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], int]]] = {
    "sql": (_in_duckdb, _sql),
    "numpy": (_arrays, _numpy),
    "pandas": (_frame, _pandas),
    "polars": (_table, _polars),
}
JOBS: dict[str, Callable[..., None]] = {
    "scan": scan,
    "parquet": parquet,
    "warm": warm,
    "union": union,
}

if __name__ == "__main__":
    JOBS[sys.argv[1]](*sys.argv[2:])
