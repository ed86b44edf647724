import marimo

app = marimo.App(width="medium", app_title="Gaps")


@app.cell
def _():
    import os
    import subprocess
    import sys
    import tempfile
    from pathlib import Path

    import duckdb
    import marimo as mo
    import matplotlib.pyplot as plt

    import nsys_sql

    return Path, duckdb, mo, nsys_sql, os, plt, subprocess, sys, tempfile


@app.cell
def _(mo):
    mo.md(
        """
        # When did the device not compute, and why?

        Recipe `gaps` of nsys-sql in a marimo notebook: pasted unchanged, changed, and plotted.
        Set `NSYS_SQL_TRACE` to a trace of your own; without it, the example trace is built.

            pip install 'nsys-sql[notebooks]' && marimo edit notebooks/gaps.py
        """
    )
    return


@app.cell
def _(Path, duckdb, nsys_sql, os, subprocess, sys, tempfile):
    trace = os.environ.get("NSYS_SQL_TRACE")
    if trace is None:
        trace = Path(tempfile.mkdtemp()) / "example.sqlite"
        subprocess.run([sys.executable, "-m", "nsys_sql", "example", str(trace)], check=True)

    con = duckdb.connect()
    model = nsys_sql.attach(con, trace, anchor=os.environ.get("NSYS_SQL_ANCHOR", "auto"))
    # The relations are read by the SQL cells; naming them in the result orders the cells.
    nsys = model.catalog.recipes.keys()
    return con, nsys


@app.cell
def _(mo):
    mo.md("""The recipe [`gaps.sql`](../sql/recipes/gaps.sql), unchanged:""")
    return


@app.cell
def _(con, mo, nsys):
    assert nsys
    gaps = mo.sql(
        """
-- gaps — when did a device compute nothing, and what was each gap waiting for?
--
-- Every gap before a compute kernel over the whole report, not clipped to windows, with the
-- kernel that ends it, when that was issued, and the operation it had to wait for wherever one
-- exists. A gap is cut into launch-starved, blocking and dependency-stalled in this order; the
-- producer is followed through event waits and relays (pitfalls 8 and 9), never read off what
-- happens to run in the gap.
--
-- @grain     one row per gap of a device
-- @reads     nsys.gap_cut, nsys.blocking_part, nsys.op, nsys.op_name
-- @needs     kernel | graph_exec
-- @windows   optional
-- @column    device BIGINT - physical GPU of the report
-- @column    gap_start_ns BIGINT ns begin of the gap
-- @column    gap_end_ns BIGINT ns start of the kernel that ends it
-- @column    launch_starved_ns BIGINT ns the kernel was not yet launched
-- @column    blocking_ns BIGINT ns launched, and its producer still ran
-- @column    comm_blocking_ns BIGINT ns part of blocking that a comm kernel is to blame for
-- @column    dependency_stalled_ns BIGINT ns launched, and no producer explains the delay
-- @column    launch_starved_shadowed_ns BIGINT ns launch-starved while the producer itself ran
-- @column    next_kernel VARCHAR - kernel or graph that ends the gap
-- @column    issue_ns BIGINT ns end of its API call, its own start at the latest; NULL unknown
-- @column    producer_name VARCHAR - operation it had to wait for
-- @column    producer_class VARCHAR - class of the producer
-- @column    producer_role VARCHAR - role of the producer
-- @column    producer_start_ns BIGINT ns start of the producer
-- @column    producer_end_ns BIGINT ns end of the producer
-- @column    evidence VARCHAR - no_launch, graph, unresolved, inferred, resolved or none
-- @invariant pieces_add_up launch_starved_ns + blocking_ns + dependency_stalled_ns = gap_end_ns - gap_start_ns
-- @invariant pieces_not_negative least(launch_starved_ns, blocking_ns, dependency_stalled_ns) >= 0
-- @invariant comm_in_blocking comm_blocking_ns BETWEEN 0 AND blocking_ns
-- @invariant shadow_in_starved launch_starved_shadowed_ns BETWEEN 0 AND launch_starved_ns
-- @pitfall   7, 8, 9
WITH params AS (
    SELECT getvariable('device')::BIGINT AS device
),
comm_part AS (
    SELECT device, gap_start_ns, sum(end_ns - start_ns)::BIGINT AS comm_blocking_ns
    FROM nsys.blocking_part
    WHERE role = 'comm'
    GROUP BY device, gap_start_ns
)
SELECT
    c.device,
    c.start_ns AS gap_start_ns,
    c.end_ns AS gap_end_ns,
    c.issued_ns - c.start_ns AS launch_starved_ns,
    c.unblocked_ns - c.issued_ns AS blocking_ns,
    coalesce(b.comm_blocking_ns, 0) AS comm_blocking_ns,
    c.end_ns - c.unblocked_ns AS dependency_stalled_ns,
    c.shadowed_ns AS launch_starved_shadowed_ns,
    coalesce(kn.name, '(unnamed kernel)') AS next_kernel,
    c.issue_ns,
    CASE WHEN p.op_id IS NOT NULL THEN coalesce(pn.name, '(unnamed kernel)') END AS producer_name,
    p.class AS producer_class,
    c.producer_role::VARCHAR AS producer_role,
    c.producer_start_ns,
    c.producer_end_ns,
    c.evidence::VARCHAR AS evidence,
FROM nsys.gap_cut AS c
INNER JOIN params AS o ON o.device IS NULL OR o.device = c.device
INNER JOIN nsys.op AS k ON k.op_id = c.op_id
LEFT JOIN nsys.op_name AS kn ON kn.name_id = k.name_id
LEFT JOIN nsys.op AS p ON p.op_id = c.producer_id
LEFT JOIN nsys.op_name AS pn ON pn.name_id = p.name_id
LEFT JOIN comm_part AS b ON b.device = c.device AND b.gap_start_ns = c.start_ns
ORDER BY c.device, c.start_ns;
        """,
        engine=con,
    )
    return (gaps,)


@app.cell
def _(mo):
    mo.md("""Changed: how much of the time without compute is in gaps of which length, by cause?""")
    return


@app.cell
def _(con, mo, nsys):
    assert nsys
    lengths = mo.sql(
        """
        SELECT
            device,
            floor(log10(greatest(end_ns - start_ns, 1)))::INTEGER AS magnitude,
            count(*) AS gaps,
            sum(issued_ns - start_ns)::BIGINT / 1e6 AS launch_starved_ms,
            sum(unblocked_ns - issued_ns)::BIGINT / 1e6 AS blocking_ms,
            sum(end_ns - unblocked_ns)::BIGINT / 1e6 AS dependency_stalled_ms,
        FROM nsys.gap_cut
        GROUP BY device, magnitude
        ORDER BY device, magnitude;
        """,
        engine=con,
    )
    return (lengths,)


@app.cell
def _(lengths, plt):
    units = ("ns", "us", "ms", "s")
    causes = ["launch_starved_ms", "blocking_ms", "dependency_stalled_ms"]
    rows = lengths.to_dicts() if hasattr(lengths, "to_dicts") else lengths.to_dict("records")
    devices = sorted({row["device"] for row in rows})
    figure, axes = plt.subplots(1, len(devices), sharey=True, squeeze=False, figsize=(9, 3.5))
    for axis, device in zip(axes[0], devices, strict=True):
        own = [row for row in rows if row["device"] == device]
        labels = [
            f"{10 ** (row['magnitude'] % 3)} {units[min(row['magnitude'] // 3, 3)]}" for row in own
        ]
        base = [0.0] * len(own)
        for cause in causes:
            values = [row[cause] for row in own]
            axis.bar(labels, values, bottom=base, label=cause.removesuffix("_ms"))
            base = [low + value for low, value in zip(base, values, strict=True)]
        axis.set_title(f"device {device}")
        axis.set_xlabel("gaps of this length, up to ten times it")
    axes[0][0].set_ylabel("time without compute, ms")
    axes[0][-1].legend()
    figure.tight_layout()
    figure
    return (figure,)


if __name__ == "__main__":
    app.run()
