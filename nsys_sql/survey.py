"""Several ranks: partitions of all traces into one DuckDB, then SQL across ranks, one file each.

`sql/ranks` holds the steps, `sql/survey` the results. Everything lives in schema `rank` of an
in-memory database: the facts of all partitions with a column `part`, and what the mapping says.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from nsys_sql import across, partition, ranks, userfacts
from nsys_sql.across import Across, Files, Named, references
from nsys_sql.catalog import SqlFile
from nsys_sql.errors import AnswerError
from nsys_sql.partition import Partition
from nsys_sql.ranks import Candidate, Member, RankMap

SCHEMA = "rank"
# In the order in which a reader needs them; the survey table comes first.
RESULTS = (
    "survey",
    "verdict",
    "groups",
    "representatives",
    "alignment",
    "collectives",
    "jitter",
    "arrival",
    "unmatched",
    "communication",
    "pipeline",
    "stages",
    "heatmap",
    "arrivals",
)
# Results that are the data of pictures: long, and of no use as a table.
PICTURES = ("heatmap", "arrivals")
_TABLES = {
    "part": "part VARCHAR, trace VARCHAR, host_hash VARCHAR, product_version VARCHAR",
    "member": "member_id BIGINT, part VARCHAR, device BIGINT, gpu VARCHAR, rank BIGINT, "
    "label VARCHAR, host VARCHAR, stage BIGINT, is_listed BOOLEAN",
    "declared": "member_id BIGINT, kind VARCHAR, name VARCHAR",
    "rule": "kind VARCHAR, streams BIGINT[], classes VARCHAR[], types VARCHAR[], "
    "pattern VARCHAR, communicators VARCHAR[]",
    "scope": "world_size BIGINT, sampled BIGINT, failed BIGINT, is_mapped BOOLEAN",
}


def files() -> Files:
    """The steps and the results, each by name."""
    return across.files("ranks", "survey")


def _facts() -> tuple[str, ...]:
    """The facts that any of the cross-rank SQL reads."""
    texts = [file.body for file in files().all()]
    named = {name for text in (*texts, _SIGHTINGS, _STREAMS) for name in references(SCHEMA, text)}
    return tuple(file.name for file in partition.fact_files() if file.name in named | {"device"})


class Survey(Across):
    """The ranks of several partitions in one DuckDB: a context manager.

    `con` holds everything, `members` are the sampled ranks in order, `notes` what limits them.
    """

    schema = SCHEMA
    command = "survey"
    title = "a survey"
    order = RESULTS

    def __init__(
        self,
        parts: Sequence[Partition],
        mapping: RankMap | None = None,
        *,
        failed: int = 0,
        recipes: Sequence[SqlFile] = (),
        params: Mapping[str, object] | None = None,
        threads: int | None = None,
        memory_limit: str | None = None,
        temp_directory: str | None = None,
    ) -> None:
        if not parts:
            raise AnswerError("there is no partition to survey")
        super().__init__(threads, memory_limit, temp_directory)
        self.sql = files()
        self.mapping = mapping or RankMap()
        self.parts = tuple(parts)
        try:
            self._set_parameters(params or {})
            self._load(failed)
            schemas = {SCHEMA: self.parts}
            query, of = userfacts.over_ranks, f"{self.command} recipe"
            self._take(userfacts.load(self.con, schemas, recipes, query, of))
        except BaseException:
            self.close()
            raise

    # ------------------------------------------------------------------ what is known

    def _load(self, failed: int) -> None:
        self._create_tables(_TABLES)
        partition.load(self.con, SCHEMA, self.parts, _facts())
        self.members = self._members()
        shown = display_names([each.trace for each in self.parts])
        self._insert(
            "part",
            (
                (
                    each.key,
                    name,
                    each.manifest.get("host_hash"),
                    each.manifest["trace"].get("product_version"),
                )
                for each, name in zip(self.parts, shown, strict=True)
            ),
        )
        self._insert(
            "member",
            (
                (i, m.part, m.device, m.gpu, m.rank, m.label, m.host, m.stage, m.is_listed)
                for i, m in enumerate(self.members)
            ),
        )
        self._insert(
            "declared",
            (
                (i, kind, name)
                for i, m in enumerate(self.members)
                for kind, name in sorted(m.groups.items())
            ),
        )
        self._insert(
            "rule",
            (
                (
                    kind,
                    list(rule.stream) or None,
                    [each.lower() for each in rule.cls] or None,
                    [each.lower() for each in rule.type] or None,
                    rule.pattern,
                    list(rule.communicator) or None,
                )
                for kind, rule in self.mapping.rules.items()
            ),
        )
        declared = [entry.rank for entry in self.mapping.entries if entry.rank is not None]
        world = self.mapping.world_size
        if world is None and len(declared) > len(self.members):
            world = len(declared)  # at least these ranks exist
        self._insert("scope", [(world, len(self.members), failed, self.mapping.path is not None)])
        self._note_what_differs()

    def _members(self) -> list[Member]:
        rows = self.con.execute(
            "SELECT part, device, list(DISTINCT pid ORDER BY pid), sum(compute_count) > 0, max(gpu)"
            f" FROM {SCHEMA}.device WHERE steady_count > 0 GROUP BY part, device"
            " ORDER BY part, device"
        ).fetchall()
        candidates = [Candidate(r[0], r[1], tuple(r[2] or ()), bool(r[3]), r[4]) for r in rows]
        places = [(each.key, Path(each.trace)) for each in self.parts]
        found, problems = ranks.members(self.mapping, places, candidates)
        self.notes += problems
        if not found:
            raise AnswerError(
                "no rank is left to survey" + (f": {problems[0]}" if problems else ""),
                hint="look at the mapping",
            )
        return found

    def _note_what_differs(self) -> None:
        anchors = self.con.execute(
            f"SELECT anchor, count(*) FROM {SCHEMA}.trace GROUP BY anchor ORDER BY 2 DESC, 1"
        ).fetchall()
        if len(anchors) > 1:
            listed = ", ".join(f"{anchor} ({count})" for anchor, count in anchors)
            self.notes.append(
                f"the reports have different anchors, so their iterations may not mean the same: "
                f"{listed}; give one with --anchor"
            )
        merged = self.con.execute(
            f"SELECT count(*) FROM {SCHEMA}.trace WHERE session_count > 1"
        ).fetchall()[0][0]
        if merged:
            self.notes.append(
                f"{merged} reports hold several sessions, and nothing tells which clock start "
                "belongs to which process: the earliest is taken"
            )
        rules = set(self.mapping.rules)
        unruled = {kind for m in self.members for kind in m.groups} - rules
        if unruled:
            self.notes.append(
                f"groups {', '.join(sorted(unruled))} have no rule that says which collectives "
                "are their own: nothing is matched in them"
            )

    # ------------------------------------------------------------------ answers

    def results(self, names: Iterable[str] = RESULTS) -> list[Named]:
        """Several results, in order."""
        return [self.result(name) for name in names]

    # ------------------------------------------------------------------ a mapping to fill in

    def skeleton(
        self, base: Path, hosts: Mapping[str, str], failed: Sequence[tuple[str, str]]
    ) -> str:
        """A mapping with what the reports say; `hosts` are names of hosts by partition."""
        rows = self.con.execute(_SIGHTINGS).fetchall()
        traces = {each.key: each for each in self.parts}
        alone: dict[str, int] = {}
        for row in rows:
            alone[row[0]] = alone.get(row[0], 0) + 1
        sightings = []
        order = {each.key: at for at, each in enumerate(self.parts)}
        for part, device, pid, gpu, board, session, collectives in sorted(
            rows, key=lambda row: (order[row[0]], row[1])
        ):
            manifest = traces[part].manifest
            host_hash = manifest.get("host_hash")
            sightings.append(
                ranks.Sighting(
                    trace=os.path.relpath(traces[part].trace, base),
                    device=device,
                    pid=pid,
                    gpu=gpu,
                    board=board,
                    host_hash=host_hash,
                    host=hosts.get(part),
                    session_start=session,
                    collectives=collectives,
                    is_alone=alone[part] == 1,
                )
            )
        streams = self.con.execute(_STREAMS).fetchall()
        return ranks.skeleton(sightings, streams, failed)


_SIGHTINGS = f"""
WITH per_window AS (
    SELECT part, device, iteration, coalesce(collective, 'other') AS collective,
        sum(count)::BIGINT AS n
    FROM {SCHEMA}.work WHERE role = 'comm'
    GROUP BY part, device, iteration, coalesce(collective, 'other')
),
windows AS (
    SELECT part, device, count(*) AS n FROM {SCHEMA}.budget GROUP BY part, device
),
typical AS (
    SELECT p.part, p.device, p.collective, nsys.padded_median(list(p.n), any_value(w.n)) AS n
    FROM per_window AS p
    INNER JOIN windows AS w ON w.part = p.part AND w.device = p.device
    GROUP BY p.part, p.device, p.collective
),
spelled AS (
    SELECT part, device,
        string_agg(printf('%g', n::DOUBLE) || ' ' || collective, ', ' ORDER BY collective) AS text
    FROM typical WHERE n > 0 GROUP BY part, device
)
SELECT
    d.part,
    d.device,
    CASE WHEN count(*) = 1 THEN min(d.pid) END AS pid,
    max(d.gpu) AS gpu,
    max(d.board) AS board,
    strftime(make_timestamp(max(t.session_start_ns) // 1000), '%Y-%m-%d %H:%M:%S.%f UTC'),
    max(s.text) AS collectives
FROM {SCHEMA}.device AS d
INNER JOIN {SCHEMA}.trace AS t ON t.part = d.part
LEFT JOIN spelled AS s ON s.part = d.part AND s.device = d.device
WHERE d.steady_count > 0 AND d.compute_count > 0
GROUP BY d.part, d.device
"""
_STREAMS = f"""
WITH typed AS (
    SELECT stream_id, class, collective, part, device, count(*) AS n
    FROM {SCHEMA}.collective
    GROUP BY stream_id, class, collective, part, device
),
named AS (
    SELECT stream_id, class || ' ' || collective AS what, count(*) AS devices
    FROM typed GROUP BY stream_id, class, collective
)
SELECT stream_id, string_agg(what, ', ' ORDER BY what), 'on ' || max(devices) || ' devices'
FROM named
WHERE stream_id IS NOT NULL
GROUP BY stream_id ORDER BY stream_id
"""


def display_names(paths: Sequence[str]) -> list[str]:
    """The paths without the folders that all of them share."""
    if len(paths) == 1:
        return [Path(paths[0]).name]
    try:
        common = os.path.commonpath([str(Path(path).parent) for path in paths])
    except ValueError:
        return list(paths)
    return [os.path.relpath(path, common) for path in paths]
