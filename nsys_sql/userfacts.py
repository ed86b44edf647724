"""Recipes of the user's own across traces: their rows kept beside the facts of each trace, by key.

A recipe with `@key` says which of its columns name the same thing in another trace. It runs on each
trace like any recipe; a survey then shows how its figures lie over the ranks, a comparison how they
changed. Figures are its numbers with a unit, but for points in time, which mean nothing elsewhere.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsys_sql import bulk, humanize, userfiles
from nsys_sql.adapt import literal, quote
from nsys_sql.catalog import Catalog, Column, SqlFile, load_catalog
from nsys_sql.errors import AnswerError, NsysSqlError, UsageError
from nsys_sql.results import Check

if TYPE_CHECKING:
    import duckdb

    from nsys_sql.formats import ColumnLike
    from nsys_sql.partition import Partition
    from nsys_sql.session import Model

ENTRY = "recipes"  # of a partition's manifest
_LEFT_OUT = "the recipe "  # how a catalog's problem with one of them begins
_POINT = re.compile(r"(^|_)(start|end)_ns$")
_NUMBER = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|DOUBLE|FLOAT|REAL|DECIMAL(\(.*\))?")
# Columns of the answers: a key cannot be called so, nor any column as what tells the traces apart.
_ANSWER = frozenset(
    {
        "metric", "position", "value", "base", "new", "delta", "delta_pct", "rank_count", "least",
        "median", "greatest", "least_rank", "greatest_rank", "pairs",
    }
)  # fmt: skip
_FIGURE = frozenset({"base", "new", "delta", "least", "median", "greatest"})
_TRACE = frozenset({"part", "pair", "side", "member_id", "label"})


def figures(file: SqlFile) -> tuple[Column, ...]:
    """The columns of a recipe that can be compared."""
    return tuple(
        each
        for each in file.columns
        if each.unit != "-"
        and each.name not in file.key
        and _NUMBER.fullmatch(each.type)
        and not _POINT.search(each.name)
    )


def objection(file: SqlFile, taken: Iterable[str]) -> NsysSqlError | None:
    """Why a recipe cannot be compared over traces, if so; `taken` are names of other results."""
    if not file.key:
        return UsageError(
            f"{file.label}: it has no @key, so its rows have no counterpart in another trace",
            hint="add `-- @key name, stream_id`: the columns that, beside device, name the same "
            "thing in every trace",
        )
    where = file.at(r"@key\b")
    names = {each.name for each in file.columns}
    if odd := sorted(_ANSWER.intersection(file.key) | (_TRACE & names)):
        where = file.at(rf"@column\s+{odd[0]}\b")
        return UsageError(
            f"{where}: {odd[0]} is what a column of the answer over traces is called",
            hint="give the column another name",
        )
    if not figures(file):
        return UsageError(
            f"{where}: there is no figure to compare",
            hint="a figure is a @column with a number type and a unit: ns, us, ms, bytes, gbps, "
            "pct or count",
        )
    if file.name in taken:
        return UsageError(
            f"{file.label}: there already is a result {file.name}",
            hint="give the file another name",
        )
    return None


def is_asked() -> bool:
    """Whether --recipes stands on the command line, and not in the environment for all commands."""
    import click
    from click.core import ParameterSource

    context = click.get_current_context(silent=True)
    source = context.get_parameter_source("recipes") if context else None
    return source is not ParameterSource.ENVIRONMENT


def fitting(
    catalog: Catalog,
    sources: Sequence[str | Path],
    objection: Callable[[SqlFile], NsysSqlError | None],
    warn: Callable[[str], None],
) -> tuple[SqlFile, ...]:
    """The recipes of these sources that have a role; why others have none is said.

    It is an error where none has. Where the environment names the recipes for all commands, only
    what is wrong is told, and not what has no role in this one.
    """
    found = []
    broken = list(catalog.broken.values())
    idle: list[NsysSqlError] = []
    for file in userfiles.of_sources(catalog, sources):
        problem = objection(file)
        if problem is None:
            found.append(file)
        else:
            idle.append(problem)
    objections = [*broken, *(idle if is_asked() else ())]
    if objections and not found and is_asked():
        raise objections[0]
    for each in objections:
        warn(f"Warning: a recipe is left out: {each.told}")
    return tuple(found)


def asked(
    sources: Sequence[str | Path], taken: Iterable[str], warn: Callable[[str], None]
) -> tuple[SqlFile, ...]:
    """The recipes of these sources that can be compared over traces, as `fitting` finds them."""
    if not sources:
        return ()
    names = frozenset(taken)
    catalog = userfiles.full_catalog(sources)
    for text in catalog.problems:
        if not text.startswith(_LEFT_OUT):  # of those `fitting` tells
            warn(f"Warning: {text}")
    return fitting(catalog, sources, lambda file: objection(file, names), warn)


def own_sources(given: Iterable[str | os.PathLike[str]]) -> tuple[str, ...]:
    """Sources as a worker finds them, wherever it runs: paths are absolute."""
    return tuple(
        os.path.abspath(each) if os.path.exists(each) else os.fspath(each)  # noqa: PTH100,PTH110
        for each in given
    )


def own_parameters(sources: Sequence[str | Path], given: Mapping[str, str]) -> dict[str, str]:
    """Those of the parameters that belong to recipes of these sources."""
    if not (sources and given):
        return {}
    files = userfiles.of_sources(userfiles.full_catalog(sources), sources)
    known = {param.name for file in files for param in file.params}
    return {name: value for name, value in given.items() if name in known}


def digest(file: SqlFile) -> str:
    """Tells one version of a recipe from another."""
    return hashlib.sha256(file.text.encode()).hexdigest()[:16]


def digests(sources: Sequence[str | Path]) -> list[str]:
    """What decides the rows that these sources add: the text of each recipe, and what it reads."""
    if not sources:
        return []
    catalog, ours = userfiles.full_catalog(sources), load_catalog()
    found: dict[str, SqlFile] = {}

    def take(file: SqlFile) -> None:
        if file.name in found or file.name in ours.recipes:
            return
        found[file.name] = file
        audits = (catalog.invariants[each] for each in catalog.entry(file.name).invariants)
        for each in (file, *audits):
            found.setdefault(f"{each.kind} {each.name}", each)
            for name in each.inputs:
                other = name.removeprefix("result_").replace("_", "-")
                if name.startswith("result_") and other in catalog.recipes:
                    take(catalog.recipes[other])

    for file in userfiles.of_sources(catalog, sources):
        if objection(file, ()) is None:
            take(file)
    return sorted(f"{name} {digest(file)}" for name, file in found.items())


# ---------------------------------------------------------------- one trace


def file_name(recipe: str) -> str:
    """The file of a partition with a recipe's rows."""
    return f"{table(recipe)}.parquet"


def table(recipe: str) -> str:
    """The table of a recipe's rows over traces."""
    return "result_" + recipe.replace("-", "_")


def write(model: Model, folder: Path, part: str) -> dict[str, dict[str, Any]]:
    """Write the rows of each recipe with a key; what is wrong with one costs the others nothing."""
    told: dict[str, dict[str, Any]] = {}
    for file in userfiles.of_sources(model.catalog, model.options.recipes):
        if objection(file, ()) is not None:
            continue
        entry: dict[str, Any] = {"digest": digest(file), "problem": None, "checks": []}
        try:
            rows = model.run(file.name).project(f"{literal(part)} AS part, *")
            bulk.write_parquet(rows, folder / file_name(file.name))
            entry["checks"] = [
                [each.name, each.status, each.detail]
                for each in model.checks
                if each.recipe == file.name
            ]
        except (AnswerError, UsageError) as error:
            entry["problem"] = error.told
        told[file.name] = entry
    return told


def warnings(model: Model) -> list[str]:
    """What is odd about a trace. What is wrong with recipes is told once, and not for each."""
    return [text for text in model.trace.warnings if text not in model.catalog.problems]


# ---------------------------------------------------------------- many traces


@dataclass(slots=True)
class Loaded:
    """What came of loading: a result of its own each, the checks, and what is missing."""

    results: dict[str, SqlFile] = field(default_factory=dict)
    checks: dict[str, list[Check]] = field(default_factory=dict)
    units: dict[str, dict[str, str]] = field(default_factory=dict)  # of the figures of each
    notes: list[str] = field(default_factory=list)


def load(
    con: duckdb.DuckDBPyConnection,
    schemas: Mapping[str, Sequence[Partition]],
    files: Sequence[SqlFile],
    query: Callable[[SqlFile], tuple[str, Sequence[Column]]],
    command: str,
) -> Loaded:
    """Create <schema>.result_<recipe> from the partitions of each schema; make results of them."""
    from nsys_sql import partition  # which needs this module

    found = Loaded()
    for file in files:
        problems: list[str] = []
        checks: list[Check] = []
        columns = ", ".join(f"{quote(each.name)} {each.type}" for each in file.columns)
        is_somewhere = False
        for schema, parts in schemas.items():
            place = f"{schema}.{table(file.name)}"
            con.execute(f"CREATE TABLE {place} (part VARCHAR, {columns})")
            for part in {each.key: each for each in parts}.values():
                entry = part.manifest.get(ENTRY, {}).get(file.name)
                problem = _problem(file, entry)
                if problem is not None:
                    problems.append(f"{Path(part.trace).name}: {problem}")
                    continue
                partition.insert(con, place, [part.path / file_name(file.name)])
                checks += (
                    Check(name, status, f"{Path(part.trace).name}: {detail}", command)
                    for name, status, detail in entry["checks"]
                )
                if (twice := _repeated(con, place, file, part.key)) is not None:
                    con.execute(f"DELETE FROM {place} WHERE part = {literal(part.key)}")
                    problems.append(f"{Path(part.trace).name}: {twice}")
                    continue
                is_somewhere = True
        if problems:
            shown = "; ".join(list(dict.fromkeys(problems))[:3])
            more = f"; and {len(problems) - 3} more" if len(problems) > 3 else ""
            found.notes.append(f"recipe {file.name} is without {shown}{more}")
        if is_somewhere:
            sql, answered = query(file)
            found.results[file.name] = SqlFile(
                kind="result",
                name=file.name,
                path=file.path,
                text=sql,
                body=sql,
                question=file.question,
                columns=tuple(answered),
                is_user=True,
            )
            found.checks[file.name] = checks
            found.units[file.name] = {each.name: each.unit for each in figures(file)}
    return found


def _problem(file: SqlFile, entry: Mapping[str, Any] | None) -> str | None:
    if entry is None:
        return "it was read without this recipe"
    if entry["digest"] != digest(file):
        return "it was read with another version of this recipe"
    problem: str | None = entry["problem"]
    return problem


def _has_device(file: SqlFile) -> bool:
    return any(column.name == "device" for column in file.columns)


def _place(file: SqlFile) -> list[str]:
    """The columns that tell a row within a trace: device, where there is one, and the key."""
    is_told = _has_device(file) and "device" not in file.key
    return [*(["device"] if is_told else []), *file.key]


def _repeated(con: duckdb.DuckDBPyConnection, place: str, file: SqlFile, part: str) -> str | None:
    columns = _place(file)
    listed = ", ".join(map(quote, columns))
    row = con.execute(
        f"SELECT {listed}, count(*) FROM {place} WHERE part = {literal(part)} "
        f"GROUP BY {listed} HAVING count(*) > 1 ORDER BY count(*) DESC, {listed} LIMIT 1"
    ).fetchone()
    if row is None:
        return None
    values = ", ".join(f"{n} {v}" for n, v in zip(columns, row[:-1], strict=True))
    return f"{row[-1]} rows have the same key ({values}); {file.at('@key')} must tell them apart"


def _keys(file: SqlFile) -> list[Column]:
    """The columns of the key in an answer; the device is told by rank or pair."""
    return [each for each in file.columns if each.name in file.key and each.name != "device"]


def _long(file: SqlFile, source: str, before: str) -> str:
    """One row for each figure of each row of `source`."""
    keys = "".join(f"r.{quote(each.name)}, " for each in _keys(file))
    return "\n    UNION ALL\n".join(
        f"    SELECT {before}, {keys}{literal(each.name)} AS metric, {at} AS position, "
        f"r.{quote(each.name)}::DOUBLE AS value FROM {source} AS r"
        for at, each in enumerate(figures(file))
    )


# Who a row speaks for: the device that it names, else all devices of its trace, told once.
_RANK = "SELECT part, device, member_id, label FROM rank.member"
_RANKS = """SELECT
        part,
        min(member_id) AS member_id,
        min_by(label, member_id)
        || CASE WHEN count(*) > 1 THEN format(' and {} more', count(*) - 1) ELSE '' END AS label,
    FROM rank.member
    GROUP BY part"""
_PAIR = """SELECT
        b.pair,
        b.pair AS told,
        l.label,
        b.part AS base_part,
        b.device AS base_device,
        n.part AS new_part,
        n.device AS new_device,
    FROM pair.member AS b
    INNER JOIN pair.member AS n ON n.pair = b.pair AND n.side = 'new'
    LEFT JOIN pair.label AS l ON l.pair = b.pair
    WHERE b.side = 'base'"""
_PAIRS = """SELECT
        min(b.pair) AS pair,
        CASE
            WHEN count(*) = sum(count(*)) OVER () THEN 'all'
            ELSE string_agg(b.pair::VARCHAR, ', ' ORDER BY b.pair)
        END AS told,
        string_agg(DISTINCT l.label, ' | ' ORDER BY l.label) AS label,
        b.part AS base_part,
        n.part AS new_part,
    FROM pair.member AS b
    INNER JOIN pair.member AS n ON n.pair = b.pair AND n.side = 'new'
    LEFT JOIN pair.label AS l ON l.pair = b.pair
    WHERE b.side = 'base'
    GROUP BY b.part, n.part"""


def over_ranks(file: SqlFile) -> tuple[str, Sequence[Column]]:
    """How the figures of a recipe lie over the ranks of a survey."""
    keys = [quote(each.name) for each in _keys(file)]
    listed = "".join(f"{name}, " for name in keys)
    has_device = _has_device(file)
    sql = f"""WITH speaker AS (
    {_RANK if has_device else _RANKS}
),
held AS (
    SELECT m.member_id, m.label, r.*
    FROM rank.{table(file.name)} AS r
    INNER JOIN speaker AS m ON m.part = r.part{" AND m.device = r.device" if has_device else ""}
),
figure AS (
{_long(file, "held", "r.member_id, r.label")}
)
SELECT
    {listed}metric,
    count(*) AS rank_count,
    min(value) AS least,
    median(value) AS median,
    max(value) AS greatest,
    min_by(label, (value, member_id)) AS least_rank,
    max_by(label, (value, -member_id)) AS greatest_rank,
FROM figure
WHERE value IS NOT NULL
GROUP BY {listed}metric, position
ORDER BY position, greatest - least DESC, {listed}metric"""
    told = (
        Column("metric", "VARCHAR", "-", "figure of the recipe, its unit in its name"),
        Column(
            "rank_count",
            "BIGINT",
            "-",
            f"{'ranks' if has_device else 'traces'} that have it; absent is not 0",
        ),
        Column("least", "DOUBLE", "-", "least of them"),
        Column("median", "DOUBLE", "-", "median of them"),
        Column("greatest", "DOUBLE", "-", "greatest of them"),
        Column("least_rank", "VARCHAR", "-", "who has the least"),
        Column("greatest_rank", "VARCHAR", "-", "who has the greatest"),
    )
    return sql, (*_keys(file), *told)


def over_pairs(file: SqlFile) -> tuple[str, Sequence[Column]]:
    """How the figures of a recipe changed from the base to the new side."""
    keys = [quote(each.name) for each in _keys(file)]
    listed = "".join(f"{name}, " for name in keys)
    has_device = _has_device(file)
    sides = "\n    UNION ALL\n".join(
        f"    SELECT p.pair, '{side}' AS side, r.* FROM {side}.{table(file.name)} AS r\n"
        f"    INNER JOIN speaker AS p ON p.{side}_part = r.part"
        + (f" AND p.{side}_device = r.device" if has_device else "")
        for side in ("base", "new")
    )
    last = "".join(f", b.{name}" for name in keys)
    shown = "pair" if has_device else "pairs"
    sql = f"""WITH speaker AS (
    {_PAIR if has_device else _PAIRS}
),
held AS (
{sides}
),
figure AS (
{_long(file, "held", "r.pair, r.side")}
),
beside AS (
    SELECT
        pair, {listed}metric, position,
        max(value) FILTER (WHERE side = 'base') AS base,
        max(value) FILTER (WHERE side = 'new') AS new,
    FROM figure
    GROUP BY pair, {listed}metric, position
)
SELECT
    p.told AS {shown}, {"".join(f"b.{name}, " for name in keys)}b.metric, b.base, b.new,
    b.new - b.base AS delta,
    100 * (b.new - b.base) / nullif(b.base, 0) AS delta_pct,
    p.label,
FROM beside AS b
INNER JOIN speaker AS p ON p.pair = b.pair
WHERE b.base IS NOT NULL OR b.new IS NOT NULL
ORDER BY b.pair, b.position, abs(coalesce(b.new, 0) - coalesce(b.base, 0)) DESC{last}"""
    told = (
        Column("metric", "VARCHAR", "-", "figure of the recipe, its unit in its name"),
        Column("base", "DOUBLE", "-", "of the base; NULL where it has none"),
        Column("new", "DOUBLE", "-", "of the new side; NULL where it has none"),
        Column("delta", "DOUBLE", "-", "new less base; NULL where a side has none"),
        Column("delta_pct", "DOUBLE", "pct", "of the base"),
        Column("label", "VARCHAR", "-", "what both sides do not have in common"),
    )
    pair = (
        Column("pair", "BIGINT", "-", "devices or ranks that were compared, see members")
        if has_device
        else Column("pairs", "VARCHAR", "-", "pairs that it speaks for, `all` where for every one")
    )
    return sql, (pair, *_keys(file), *told)


def readable(
    columns: Sequence[ColumnLike], rows: Iterable[Sequence[Any]], units: Mapping[str, str]
) -> list[tuple[Any, ...]]:
    """Rows as a person reads them: each figure, as text, in the unit that its recipe declares.

    `units` are those of the figures. Without any, the rows are none of a recipe over traces.
    """
    if not units:
        return [tuple(row) for row in rows]
    names = [column.name for column in columns]
    at = names.index("metric")

    def text(name: str, value: object, metric: str) -> object:
        if name not in _FIGURE or value is None:
            return value
        sign = "+" if name == "delta" else ""
        if isinstance(value, float) and value.is_integer():  # a number of things, say
            value = int(value)
        return humanize.cell(value, metric, sign + units[metric])

    return [
        tuple(text(name, value, row[at]) for name, value in zip(names, row, strict=True))
        for row in rows
    ]
