"""A store of budgets: one DuckDB file to which runs are appended, and how a metric developed.

DuckDB lets one process at a time open a file for writing, so appending waits for its turn and every
run is one transaction: concurrent runs neither lose nor mix rows. The same result under the same
labels is stored once.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import nsys_sql
from nsys_sql import catalog, output, resources, source
from nsys_sql.across import Named
from nsys_sql.adapt import literal
from nsys_sql.catalog import SqlFile, near
from nsys_sql.compare import METRICS, Comparison
from nsys_sql.errors import InputError, NsysSqlError, UsageError
from nsys_sql.options import Options

if TYPE_CHECKING:
    import duckdb

_LAYOUT = 1
_PATIENCE_S = 120.0
_TABLES = (
    "CREATE TABLE IF NOT EXISTS store.layout (version INTEGER)",
    """CREATE TABLE IF NOT EXISTS store.run (
        run_id BIGINT PRIMARY KEY,
        added_at TIMESTAMP,
        content VARCHAR,
        setup VARCHAR,
        anchor VARCHAR,
        gpu VARCHAR,
        nsys_sql_version VARCHAR,
        labels MAP(VARCHAR, VARCHAR)
    )""",
    """CREATE TABLE IF NOT EXISTS store.budget (
        run_id BIGINT,
        member BIGINT,
        rank BIGINT,
        device BIGINT,
        metric VARCHAR,
        median_ns BIGINT,
        min_ns BIGINT,
        max_ns BIGINT,
        mean_ns DOUBLE,
        n BIGINT
    )""",
)
_BUDGET = """
INSERT INTO store.budget
SELECT ?, m.pair, m.rank, m.device, n.item, n.new_ns, n.new_min_ns, n.new_max_ns, n.new_mean_ns,
    n.new_n
FROM pair.noise AS n
INNER JOIN pair.member AS m ON m.pair = n.pair AND m.side = 'new'
WHERE n.parent IS NULL
"""


def labels(given: Sequence[str]) -> dict[str, str]:
    """`NAME=VALUE` texts as a mapping."""
    found: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not (name.strip() and equals):
            raise UsageError(f"--label {text!r} is not NAME=VALUE")
        if name.strip() in found:
            raise UsageError(f"--label {name.strip()} is given twice")
        found[name.strip()] = value.strip()
    return found


@lru_cache(maxsize=1)
def query() -> SqlFile:
    """The file of the question."""
    return catalog.parse("history", resources.root() / "sql" / "history" / "history.sql")


def check(path: Path) -> None:
    """Say that a file is no history before any work is done for it; a new one may become one."""
    if source.is_there(path) and not source.is_file(path):
        raise UsageError(f"{path} is no regular file", hint="name a file of DuckDB")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"the folder of {path} does not exist", hint="create it first")
    try:
        with path.open("rb") as file:
            start = file.read(16)
    except FileNotFoundError:
        return
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    if start and start[8:12] != b"DUCK":
        kind = "an SQLite file" if start.startswith(b"SQLite format 3") else "no DuckDB database"
        raise InputError(
            f"{path} is {kind}, and a history is a file of DuckDB",
            hint="name a file that `compare --store` or `history --add` wrote, or a new one",
        )


@contextmanager
def _attached(con: duckdb.DuckDBPyConnection, path: Path, read_only: bool) -> Iterator[None]:
    """The store as catalog `store`; waits while another process has it."""
    import duckdb

    deadline, pause = time.monotonic() + _PATIENCE_S, 0.05
    suffix = " (READ_ONLY)" if read_only else ""
    while True:
        try:
            name = literal(str(output.engine_path(path).absolute()))
            con.execute(f"ATTACH {name} AS store{suffix}")
            break
        except duckdb.Error as error:
            text = " ".join(str(error).split())
            if "could not set lock" not in text.lower():  # "block" is in what tells of damage
                raise InputError(
                    f"{path} cannot be opened as a history: {text}",
                    hint="name a file that --store wrote, or a new one",
                ) from None
            if time.monotonic() > deadline:
                raise InputError(
                    f"{path} is in use by another process", hint="try again when it is done"
                ) from None
        time.sleep(pause)
        pause = min(pause * 1.5, 1.0)
    try:
        yield
    except duckdb.Error as error:
        raise _broken(path, error) or error from None
    finally:
        with suppress(duckdb.Error):  # of a damaged file that went already, which was told
            con.execute("DETACH store")


def _broken(path: Path, error: duckdb.Error) -> InputError | None:
    """What is wrong with a store that DuckDB could open, and not read; None for any other error."""
    import duckdb

    text = " ".join(str(error).split())
    if isinstance(error, duckdb.BinderException | duckdb.CatalogException):
        return InputError(
            f"{path} is a DuckDB database, but no history: {text}",
            hint="name a file that --store wrote",
        )
    kinds = duckdb.SerializationException | duckdb.InternalException | duckdb.FatalException
    told = "corrupt|checksum|could not read enough bytes"
    if isinstance(error, kinds) or re.search(told, text, re.IGNORECASE):
        return InputError(
            f"{path} is damaged: {text}", hint="put a copy back, or store the runs in a new file"
        )
    return None


def _check_layout(con: duckdb.DuckDBPyConnection, path: Path) -> bool:
    """Whether the store has its tables; a file of another kind is an input error."""
    rows = con.execute(
        "SELECT table_name FROM duckdb_tables() WHERE database_name = 'store'"
    ).fetchall()
    names = {row[0] for row in rows}
    if names and not {"layout", "run", "budget"} <= names:
        raise InputError(
            f"{path} is a DuckDB database, but no history", hint="name a file that --store wrote"
        )
    if names:
        version = con.execute("SELECT max(version) FROM store.layout").fetchall()[0][0]
        if version != _LAYOUT:
            raise InputError(f"{path} has layout {version}, this version reads {_LAYOUT}")
    return bool(names)


def append(path: Path, compared: Comparison, given: Mapping[str, str]) -> int | None:
    """Store the budget of the new side; return the number of the run, None if it was there."""
    check(path)
    con = compared.con
    compared.prepare("noise", "setup")
    content = ",".join(sorted({each.key for each in compared.sides["new"].parts}))
    with _attached(con, path, read_only=False):
        try:
            con.execute("BEGIN")
            _check_layout(con, path)
            for statement in _TABLES:
                con.execute(statement)
            con.execute(
                f"INSERT INTO store.layout SELECT {_LAYOUT} WHERE NOT EXISTS (FROM store.layout)"
            )
            names, values = list(given), list(given.values())
            same = con.execute(
                "SELECT 1 FROM store.run WHERE content = ? AND labels = map(?::VARCHAR[], "
                "?::VARCHAR[])",
                [content, names, values],
            ).fetchall()
            if same:
                con.execute("ROLLBACK")
                return None
            number = con.execute("SELECT coalesce(max(run_id), 0) + 1 FROM store.run").fetchall()[
                0
            ][0]
            con.execute(
                "INSERT INTO store.run SELECT ?, now() AT TIME ZONE 'UTC', ?, "
                "(SELECT setup FROM pair.setup), "
                "(SELECT min(anchor) FROM pair.trace WHERE side = 'new'), "
                "(SELECT min(gpu) FROM pair.member WHERE side = 'new'), ?, "
                "map(?::VARCHAR[], ?::VARCHAR[])",
                [number, content, nsys_sql.__version__, names, values],
            )
            con.execute(_BUDGET, [number])
            con.execute("COMMIT")
        except BaseException:
            _rollback(con)
            raise
    return int(number)


def _rollback(con: duckdb.DuckDBPyConnection) -> None:
    import duckdb

    with suppress(duckdb.Error):  # nothing may be open any more
        con.execute("ROLLBACK")


def read(
    path: Path,
    metric: str,
    wanted: Mapping[str, str],
    options: Options | None = None,
    warn: Callable[[str], None] = lambda _: None,
) -> Named:
    """How a metric developed over the runs that carry all of these labels."""
    import duckdb

    from nsys_sql import attached

    own = options or Options()
    name = metric.replace("-", "_")
    if name not in METRICS:
        raise UsageError(
            f"there is no metric {metric!r}",
            hint=near(name, METRICS) or f"metrics: {', '.join(METRICS)}",
        )
    if not source.is_there(path):
        raise InputError(f"{path} does not exist", hint="`nsys-sql compare --store` writes one")
    if not source.is_file(path):
        raise InputError(f"{path} is not a regular file", hint="name a file that --store wrote")
    check(path)
    file = query()
    con = duckdb.connect()
    spill = attached.spill_folder(own.temp_directory)
    try:
        attached.configure(con, spill, own.threads, own.memory_limit)
        con.execute("CREATE TABLE wanted (name VARCHAR, value VARCHAR)")
        for key, value in wanted.items():
            con.execute("INSERT INTO wanted VALUES (?, ?)", [key, value])
        con.execute(f"SET VARIABLE metric = {literal(name)}")
        with _attached(con, path, read_only=True):
            if not _check_layout(con, path):
                raise InputError(
                    f"{path} holds no run yet", hint="`nsys-sql compare --store` appends one"
                )
            try:
                con.execute(f"CREATE TEMP TABLE result_history AS\n{file.body}")
                rows = con.execute("SELECT * FROM result_history").fetchall()
                if wanted and not rows:
                    warn(_no_run(con, path, wanted))
            except duckdb.Error as error:
                text = " ".join(str(error).split())
                failed = NsysSqlError(f"{file.label} failed: {text}")
                raise _broken(path, error) or failed from error
    finally:
        con.close()
        source.remove(spill)
    return Named("history", file.question, file.columns, rows)


def _no_run(con: duckdb.DuckDBPyConnection, path: Path, wanted: Mapping[str, str]) -> str:
    """That no run has all the labels, and which there are: a misspelt one looks like no history."""
    near = con.execute(
        "SELECT e.key || '=' || e.value AS label "
        "FROM store.run AS r, unnest(map_entries(r.labels)) AS u(e) "
        "GROUP BY e.key, e.value ORDER BY max(e.key IN (SELECT name FROM wanted)) DESC, "
        "max(r.run_id) DESC, label LIMIT 5"
    ).fetchall()
    asked = " and ".join(f"{name}={value}" for name, value in wanted.items())
    known = f"; there are {', '.join(row[0] for row in near)}" if near else "; none has a label"
    return f"Warning: no run in {path} is labelled {asked}{known}"


def plot(rows: Sequence[Mapping[str, object]], width: int) -> str:
    """Each run as a line: the range of its windows as dashes, the median as a star."""
    from nsys_sql import humanize

    lows = [int(str(row["min_ns"])) for row in rows]
    highs = [int(str(row["max_ns"])) for row in rows]
    if not rows:
        return ""
    several = len({row["member"] for row in rows}) > 1
    heads = [
        f"{row['run']}" + (f"/{row['member']}" if several else "") + f" {row['labels']}".rstrip()
        for row in rows
    ]
    room = min(max(map(len, heads)), max(12, width // 3))
    space = max(width - room - 16, 20)
    low, high = min(lows), max(highs)
    scale = (space - 1) / (high - low) if high > low else 0.0
    lines = []
    for head, row, first, last in zip(heads, rows, lows, highs, strict=True):
        median = int(str(row["median_ns"]))
        begin, end, at = (round((value - low) * scale) for value in (first, last, median))
        cells = [" "] * space
        cells[begin : end + 1] = "-" * (end + 1 - begin)
        cells[at] = "*"
        name = humanize.shorten(humanize.clean(head), room).ljust(room)
        lines.append(f"{name} |{''.join(cells)}| {humanize.duration(median)}")
    left, right = humanize.duration(low), humanize.duration(high)
    lines.append(f"{'':{room}}  {left}{right.rjust(space - len(left))}")
    return "\n".join(lines)
