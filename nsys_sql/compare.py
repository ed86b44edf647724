"""Before and after: the facts of two runs in one DuckDB, compared by SQL, one file a question.

`sql/pairs` holds the steps, `sql/compare` the results. Schemas `base` and `new` hold the facts of
the two sides as survey and comparison share them; in schema `pair` each fact stands once more, for
both sides, with the pair of devices or ranks it belongs to.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

from nsys_sql import across, partition, ranks, userfacts
from nsys_sql.across import Across, Files, Named
from nsys_sql.catalog import SqlFile, near
from nsys_sql.errors import AnswerError, UsageError
from nsys_sql.options import Options
from nsys_sql.partition import Partition
from nsys_sql.ranks import Candidate, Member, RankMap
from nsys_sql.survey import display_names

SCHEMA = "pair"
SIDES = ("base", "new")
# In the order in which a reader needs them: what may be compared comes before any delta.
RESULTS = (
    "comparability",
    "members",
    "verdict",
    "reconciliation",
    "kernels",
    "communication",
    "copies",
    "budget",
    "gate",
)
# Answered even where the two sides may not be compared.
ALWAYS = ("comparability", "members")
METRICS = (
    "iteration",
    "period",
    "device_busy",
    "device_idle",
    "noncomm_busy",
    "comm_busy",
    "compute_busy",
    "compute_absent",
    "occupied_not_computing",
    "launch_starved",
    "blocking",
    "dependency_stalled",
    "unattributed",
    "comm_exposed",
    "comm_blocking",
    "comm_overlapped",
    "launch_starved_shadowed",
)
# What a threshold may name: the median of a metric, or its mean.
GATED = (*METRICS, *(f"{metric}_mean" for metric in METRICS))
_THRESHOLD = re.compile(
    r"\s*(?P<metric>\w[\w-]*)\s*(?P<comparison>[<>]=?)\s*(?P<sign>[+-]?)\s*"
    r"(?P<number>\d+(?:\.\d*)?|\.\d+)\s*(?P<unit>%|ns|us|ms|s)\s*",
    re.ASCII,
)
_SHOWN_REASONS = 3
_MOST = 1e12  # seconds and percent; what is never crossed is a mistake, not a threshold
_UNIT_NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_TABLES = {
    "member": "pair BIGINT, side VARCHAR, part VARCHAR, device BIGINT, gpu VARCHAR, rank BIGINT, "
    "label VARCHAR, trace VARCHAR",
    "asked": "side VARCHAR, name VARCHAR, value VARCHAR",
    "scope": "base_count BIGINT, new_count BIGINT, base_ranks VARCHAR, new_ranks VARCHAR, "
    "base_world BIGINT, new_world BIGINT",
    "threshold": "position BIGINT, threshold VARCHAR, metric VARCHAR, comparison VARCHAR, "
    "kind VARCHAR, amount DOUBLE",
}


@dataclass(frozen=True, slots=True)
class Threshold:
    """One `--fail-on`: `kind` is level (ns), change (ns) or percent (of the base)."""

    text: str
    metric: str
    comparison: str
    kind: str
    amount: float


@dataclass(frozen=True, slots=True)
class Side:
    """One side: the partitions of its traces, its mapping of ranks, and how it was read."""

    parts: Sequence[Partition]
    options: Options
    mapping: RankMap = field(default_factory=RankMap)


def threshold(text: str) -> Threshold:
    """Read a `--fail-on`.

    >>> threshold("iteration > +3%").kind, threshold("blocking >= 2ms").amount
    ('percent', 2000000.0)
    >>> threshold("iteration_mean > +3%").metric
    'iteration_mean'
    """
    found = _THRESHOLD.fullmatch(text)
    if found is None:
        raise UsageError(
            f"--fail-on {text!r} cannot be read",
            hint="METRIC > +3% or +2ms is a change from the base, METRIC > 500ms a level",
        )
    metric = found["metric"].replace("-", "_").lower()
    if metric not in GATED:
        raise UsageError(
            f"--fail-on {text!r}: there is no metric {metric!r}",
            hint=near(metric, GATED)
            or f"metrics: {', '.join(METRICS)}; each with _mean for its mean",
        )
    amount = float(found["number"]) * (-1 if found["sign"] == "-" else 1)
    if not abs(amount) < _MOST:
        raise UsageError(f"--fail-on {text!r}: no change or time is as large as that")
    if found["unit"] == "%":
        if not found["sign"]:
            raise UsageError(
                f"--fail-on {text!r}: {found['number']}% of what?",
                hint=f"write {metric} {found['comparison']} +{found['number']}% for a change",
            )
        return Threshold(text.strip(), metric, found["comparison"], "percent", amount)
    kind = "change" if found["sign"] else "level"
    return Threshold(
        text.strip(), metric, found["comparison"], kind, amount * _UNIT_NS[found["unit"]]
    )


def files() -> Files:
    """The steps and the results, each by name."""
    return across.files("pairs", "compare")


class Comparison(Across):
    """Two runs in one DuckDB: a context manager. `notes` is what limits the comparison.

    `refusals` says why the two may not be compared; results but for ALWAYS then raise, unless
    `force` was given.
    """

    schema = SCHEMA
    command = "compare"
    title = "a comparison"
    order = RESULTS

    def __init__(
        self,
        base: Side,
        new: Side,
        *,
        force: bool = False,
        thresholds: Sequence[Threshold] = (),
        recipes: Sequence[SqlFile] = (),
        params: Mapping[str, object] | None = None,
        threads: int | None = None,
        memory_limit: str | None = None,
        temp_directory: str | None = None,
    ) -> None:
        super().__init__(threads, memory_limit, temp_directory)
        self.sql = files()
        self.sides = dict(zip(SIDES, (base, new), strict=True))
        self.force = force
        self.thresholds = tuple(thresholds)
        try:
            self._set_parameters(params or {})
            self._load()
            schemas = {side: given.parts for side, given in self.sides.items()}
            query, of = userfacts.over_pairs, f"{self.command} recipe"
            self._take(userfacts.load(self.con, schemas, recipes, query, of))
            self.refusals = self._refusals()
        except BaseException:
            self.close()
            raise

    # ------------------------------------------------------------------ what is known

    def _load(self) -> None:
        self._create_tables(_TABLES)
        found: dict[str, list[Member]] = {}
        for side, given in self.sides.items():
            self.con.execute(f"CREATE SCHEMA {side}")
            unique = {each.key: each for each in given.parts}
            partition.load(self.con, side, unique.values())
            found[side] = self._members(side, given)
            self._insert("asked", ((side, name, v) for name, v in _asked(given.options)))
        self._pair(found)
        for file in partition.fact_files():
            self._relate(file)
        self._insert(
            "threshold",
            (
                (at, t.text, t.metric, t.comparison, t.kind, t.amount)
                for at, t in enumerate(self.thresholds)
            ),
        )

    def _relate(self, file: SqlFile) -> None:
        """A view of a fact of both sides, with the pair that each row belongs to."""
        has_device = any(column.name == "device" for column in file.columns)
        where = "m.part = f.part" + (" AND m.device = f.device" if has_device else "")
        of = " UNION ALL ".join(
            f"SELECT m.pair, m.side, f.* EXCLUDE (part) FROM {side}.{file.name} AS f "
            f"INNER JOIN {SCHEMA}.member AS m ON {where} AND m.side = '{side}' "
            "WHERE m.pair IS NOT NULL"
            for side in SIDES
        )
        self.con.execute(f"CREATE VIEW {SCHEMA}.{file.name} AS {of}")

    def _members(self, side: str, given: Side) -> list[Member]:
        rows = self.con.execute(
            "SELECT part, device, list(DISTINCT pid ORDER BY pid), sum(compute_count) > 0, max(gpu)"
            f" FROM {side}.device WHERE steady_count > 0 GROUP BY part, device"
            " ORDER BY part, device"
        ).fetchall()
        candidates = [Candidate(r[0], r[1], tuple(r[2] or ()), bool(r[3]), r[4]) for r in rows]
        places = list({each.key: Path(each.trace) for each in given.parts}.items())
        found, problems = ranks.members(given.mapping, places, candidates)
        self.notes += [f"{side}: {text}" for text in problems]
        if not found:
            raise AnswerError(
                f"the {side} side has no device with a steady iteration"
                + (f": {problems[0]}" if problems else ""),
                hint="`nsys-sql run iterations TRACE` lists the iterations",
            )
        return found

    def _pair(self, found: Mapping[str, Sequence[Member]]) -> None:
        """Give counterparts the same number: by rank where both sides know it, else by order."""
        known = all(m.rank is not None for members in found.values() for m in members)
        by_rank = known and all(
            len({m.rank for m in members}) == len(members) for members in found.values()
        )
        pairs: list[tuple[Member | None, Member | None]]
        if by_rank:
            first, second = ({m.rank: m for m in found[side]} for side in SIDES)
            order = sorted({*first, *second}, key=lambda rank: rank or 0)
            pairs = [(first.get(rank), second.get(rank)) for rank in order]
        else:
            pairs = list(zip_longest(found["base"], found["new"]))
        matched = [pair for pair in pairs if None not in pair]
        numbers = {id(pair): at for at, pair in enumerate(matched)}
        rows = []
        for pair in pairs:
            for side, member in zip(SIDES, pair, strict=True):
                if member is not None:
                    rows.append((numbers.get(id(pair)), side, *self._described(side, member)))
        self._insert("member", rows)
        if len(matched) < len(pairs):
            self.notes.append(
                f"{len(pairs) - len(matched)} devices or ranks have no counterpart and take part "
                "in nothing"
            )
        listed = (
            [", ".join(str(m.rank) for m in found[side]) for side in SIDES]
            if known
            else [None, None]
        )
        worlds = [self.sides[side].mapping.world_size for side in SIDES]
        counts = [len(found[side]) for side in SIDES]
        self._insert("scope", [(*counts, *listed, *worlds)])

    def _described(self, side: str, member: Member) -> tuple[object, ...]:
        parts = list({each.key: each for each in self.sides[side].parts}.values())
        names = display_names([each.trace for each in parts])
        trace = next(n for n, e in zip(names, parts, strict=True) if e.key == member.part)
        label = f"rank {member.rank}" if member.rank is not None else trace
        if member.rank is None:
            label += f" device {member.device}"
        return member.part, member.device, member.gpu, member.rank, label, trace

    def _refusals(self) -> list[str]:
        """Why the two sides may not be compared, in words."""
        self.prepare("condition")
        rows = self.con.execute(
            f"SELECT topic, aspect, base, new, detail, min(pair) FROM {SCHEMA}.condition "
            "WHERE status = 'refused' GROUP BY ALL "
            "ORDER BY min(position), topic, aspect, base, new, detail"
        ).fetchall()
        texts = []
        for _, aspect, base, new, detail, pair in rows:
            values = f": {base} against {new}" if base is not None or new is not None else ""
            where = f" (pair {pair})" if pair is not None and len(rows) > 1 else ""
            texts.append(f"{aspect}{values}, {detail}{where}")
        return list(dict.fromkeys(texts))

    # ------------------------------------------------------------------ answers

    def result(self, name: str) -> Named:
        """One of RESULTS by name."""
        is_known = name in RESULTS or name in self.own
        if self.refusals and not self.force and is_known and name not in ALWAYS:
            raise refusal(self.refusals)
        return super().result(name)


def refusal(reasons: Sequence[str]) -> AnswerError:
    """The error of two sides that may not be compared."""
    shown = list(reasons[:_SHOWN_REASONS])
    if len(reasons) > len(shown):
        shown.append(f"and {len(reasons) - len(shown)} more: --result comparability")
    own = "name kernels of your own with --taxonomy, " if "model part" in str(reasons) else ""
    return AnswerError(
        f"these cannot be compared: {'; '.join(shown)}",
        hint=f"choose captures that can, {own}or --force a comparison, which is then labelled so",
    )


def _asked(options: Options) -> list[tuple[str, str | None]]:
    """The options that decide which iterations are compared."""
    names = ("anchor", "per_iteration", "skip_first", "skip_last", "iterations", "window")
    found: list[tuple[str, Any]] = [(n.replace("_", " "), getattr(options, n)) for n in names]
    return [(name, None if value is None else str(value)) for name, value in found]
