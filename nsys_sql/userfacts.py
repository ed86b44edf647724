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

from nsys_sql import userfiles
from nsys_sql.adapt import literal, quote
from nsys_sql.catalog import Catalog, Column, SqlFile, load_catalog
from nsys_sql.errors import AnswerError, NsysSqlError, UsageError
from nsys_sql.results import Check

if TYPE_CHECKING:
    import duckdb

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
        "median", "greatest", "least_rank", "greatest_rank",
    }
)  # fmt: skip
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
            rows.write_parquet(str(folder / file_name(file.name)))
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
    notes: list[str] = field(default_factory=list)


def load(
    con: duckdb.DuckDBPyConnection,
    schemas: Mapping[str, Sequence[Partition]],
    files: Sequence[SqlFile],
    query: Callable[[SqlFile], tuple[str, Sequence[Column]]],
    command: str,
) -> Loaded:
    """Create <schema>.result_<recipe> from the partitions of each schema; make results of them."""
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
                kept = literal(str(part.path / file_name(file.name)))
                con.execute(f"INSERT INTO {place} FROM read_parquet([{kept}])")
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
    return found


def _problem(file: SqlFile, entry: Mapping[str, Any] | None) -> str | None:
    if entry is None:
        return "it was read without this recipe"
    if entry["digest"] != digest(file):
        return "it was read with another version of this recipe"
    problem: str | None = entry["problem"]
    return problem


def _place(file: SqlFile) -> list[str]:
    """The columns that tell a row within a trace: device, where there is one, and the key."""
    has_device = any(column.name == "device" for column in file.columns)
    return [*(["device"] if has_device and "device" not in file.key else []), *file.key]


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


def _member(file: SqlFile) -> str:
    """How a row finds the devices that it speaks for: all of its trace, if it names none."""
    has_device = any(column.name == "device" for column in file.columns)
    return "m.part = r.part" + (" AND m.device = r.device" if has_device else "")


def over_ranks(file: SqlFile) -> tuple[str, Sequence[Column]]:
    """How the figures of a recipe lie over the ranks of a survey."""
    keys = [quote(each.name) for each in _keys(file)]
    listed = "".join(f"{name}, " for name in keys)
    sql = f"""WITH held AS (
    SELECT m.member_id, m.label, r.*
    FROM rank.{table(file.name)} AS r
    INNER JOIN rank.member AS m ON {_member(file)}
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
        Column("rank_count", "BIGINT", "-", "ranks that have it; absent is not 0"),
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
    sides = "\n    UNION ALL\n".join(
        f"    SELECT m.pair, m.side, r.* FROM {side}.{table(file.name)} AS r\n"
        f"    INNER JOIN pair.member AS m ON m.side = '{side}' AND {_member(file)}\n"
        "    WHERE m.pair IS NOT NULL"
        for side in ("base", "new")
    )
    last = "".join(f", b.{name}" for name in keys)
    sql = f"""WITH held AS (
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
    b.pair, {"".join(f"b.{name}, " for name in keys)}b.metric, b.base, b.new,
    b.new - b.base AS delta,
    100 * (b.new - b.base) / nullif(b.base, 0) AS delta_pct,
    l.label,
FROM beside AS b
LEFT JOIN pair.label AS l ON l.pair = b.pair
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
    pair = Column("pair", "BIGINT", "-", "devices or ranks that were compared, see members")
    return sql, (pair, *_keys(file), *told)
