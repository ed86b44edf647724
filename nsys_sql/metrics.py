"""GPU metrics of one capture as a query that another model can read (`--metrics-from`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nsys_sql.adapt import literal

STEP = "metric_given"
# Operators are joined by name, so the sums of all devices of the other capture go together.
QUERY = """
SELECT
    scope,
    name,
    sum(samples)::BIGINT AS samples,
    sum(exclusive_samples)::BIGINT AS exclusive_samples,
    metric,
    sum(value_sum) AS value_sum,
    sum(value_count)::BIGINT AS value_count,
FROM nsys.metric_operator
WHERE name IS NOT NULL
GROUP BY scope, name, metric
ORDER BY scope, name, metric
"""
_TYPES = ("VARCHAR", "VARCHAR", "BIGINT", "BIGINT", "VARCHAR", "DOUBLE", "BIGINT")
_NAMES = ("scope", "name", "samples", "exclusive_samples", "metric", "value_sum", "value_count")


def select(rows: Iterable[Sequence[object]]) -> str:
    """Rows of QUERY as a query; one that returns nothing where there are none."""
    listed = [f"    ({', '.join(map(_value, row))})" for row in rows]
    values = ",\n".join(listed or [f"    ({', '.join(['NULL'] * len(_NAMES))})"])
    columns = ",\n".join(
        f"    CAST(m.{name} AS {kind}) AS {name}" for name, kind in zip(_NAMES, _TYPES, strict=True)
    )
    where = "" if listed else "\nWHERE false"
    return f"SELECT\n{columns}\nFROM (VALUES\n{values}\n) AS m({', '.join(_NAMES)}){where}"


def _value(value: object) -> str:
    if value is None:
        return "NULL"
    return literal(value) if isinstance(value, str) else repr(value)
