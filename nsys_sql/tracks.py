"""Recipes of the user's own in a timeline: each that gives intervals is a track of its device.

An interval is a row with `device`, `start_ns` and `end_ns` (or `duration_ns`). Its text is the
column `name`, else the recipe's; a column `track` divides a recipe into tracks; the others are its
arguments. A track of a viewer holds no slices that overlap: such a one gets a further track.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from nsys_sql import formats, userfacts
from nsys_sql.adapt import quote
from nsys_sql.catalog import SqlFile
from nsys_sql.errors import AnswerError, NsysSqlError, UsageError

if TYPE_CHECKING:
    from nsys_sql.session import Model

# (device, track, kind, start, duration, name, category, arrow, event), as recipe trace-events
Row = tuple[Any, ...]
Warn = Callable[[str], None]
# Between the two derived tracks and the streams there is room for some; more come after all.
_FIRST, _ROOM, _BEYOND = 3, 7, 1_000_000
_END = 1 << 63  # of the times of a trace
_FIXED = ("device", "track", "name", "start_ns", "end_ns", "duration_ns")


def objection(file: SqlFile) -> NsysSqlError | None:
    """Why a recipe is no track, if so."""
    types = {column.name: column.type for column in file.columns}
    lacking = [each for each in ("device", "start_ns") if types.get(each) != "BIGINT"]
    if "BIGINT" not in (types.get("end_ns"), types.get("duration_ns")):
        lacking.append("end_ns")
    if not lacking:
        return None
    return UsageError(
        f"{file.label}: it is no track of a timeline, for want of {', '.join(lacking)}",
        hint="a track is a recipe with the BIGINT columns device, start_ns and end_ns or "
        "duration_ns; name and track may be texts",
    )


def wanted(model: Model, warn: Warn) -> tuple[SqlFile, ...]:
    """The recipes of --recipes that are tracks, as `userfacts.fitting` finds them."""
    if not model.options.recipes:
        return ()
    told = model.trace.warnings  # the model tells of broken ones by itself

    def say(text: str) -> None:
        if not any(each.endswith(text.partition("left out: ")[2]) for each in told):
            warn(text)

    return userfacts.fitting(model.catalog, model.options.recipes, objection, say)


def rows(
    model: Model, files: Iterable[SqlFile], given: Mapping[str, str], warn: Warn
) -> Iterator[Row]:
    """The events of these recipes: names of tracks, then slices in order of their start.

    A recipe that is wrong is left out and named, and is an error where no other is sound.
    """
    tracks: dict[tuple[int, str], list[Row]] = {}
    wrong: list[UsageError] = []
    is_sound = False
    for file in files:
        known = {param.name for param in file.params}
        try:
            relation = model.run(file.name, **{k: v for k, v in given.items() if k in known})
            is_sound = True
        except AnswerError as error:
            warn(f"Warning: a recipe is left out: {error.told}")
            continue
        except UsageError as error:
            wrong.append(error)
            continue
        for name, interval in _intervals(model, file, relation, warn):
            tracks.setdefault((interval[0], name), []).append(interval)
    if wrong and not is_sound:
        raise wrong[0]
    for each in wrong:
        warn(f"Warning: a recipe is left out: {each.told}")
    named = {row[0] for row in model.con.execute("SELECT DISTINCT device FROM nsys.op").fetchall()}
    counted: dict[int, int] = {}
    for (device, name), found in tracks.items():
        if device not in named:
            named.add(device)
            yield _naming(device, None, "process", f"GPU {device}")
        for lane, intervals in enumerate(_lanes(found)):
            place = counted[device] = counted.get(device, -1) + 1
            number = _FIRST + place if place < _ROOM else _BEYOND + place
            text = name + (" (overlapping)" if lane else "")
            yield _naming(device, number, "track", text)
            yield _naming(device, number, "order", text)
            yield from (_slice(number, each) for each in intervals)


def _intervals(model: Model, file: SqlFile, relation: Any, warn: Warn) -> Iterator[tuple[str, Row]]:
    """(track, (device, start, end, name, category, arguments)) of each row that is one."""
    names = [column.name for column in file.columns]
    fixed = set(_FIXED) & set(names)
    # A time or an interval goes as DuckDB's text, like anything that is no plain value of JSON.
    texts = [
        f"CAST({quote(each.name)} AS VARCHAR)" if "TIME" in each.type or each.type == "DATE"
        else quote(each.name)
        for each in file.columns
    ]  # fmt: skip
    limits = _limits(model)
    lost = 0
    for values in relation.project(", ".join(texts)).fetchall():
        row = dict(zip(names, values, strict=True))
        start, end = row["start_ns"], row.get("end_ns")
        if end is None and start is not None and row.get("duration_ns") is not None:
            end = start + row["duration_ns"]
        if row["device"] is None or start is None or end is None or not start <= end < _END:
            lost += 1
            continue
        least, most = limits.get(row["device"], (start, end + 1) if not limits else (end, start))
        if end <= least or start >= most:
            continue
        track = row.get("track")
        text = row.get("name")
        more = {name: value for name, value in row.items() if name not in fixed}
        yield (
            file.name if track is None else f"{file.name}: {track}",
            (row["device"], start, end, file.name if text is None else str(text), file.name, more),
        )
    if lost:
        warn(
            f"Warning: recipe {file.name}: {lost} rows have no device, start or end, or an end "
            "before the start or beyond 64 bits"
        )


def _limits(model: Model) -> dict[int, tuple[int, int]]:
    """From where to where a timeline goes on each device; nothing where it is whole."""
    options = model.options
    if options.iterations is None and not (options.skip_first or options.skip_last):
        return {}
    found = model.con.execute(
        "SELECT device, min(start_ns), max(end_ns) FROM nsys.steady GROUP BY device"
    ).fetchall()
    return {device: (start, end) for device, start, end in found}


def _lanes(intervals: list[Row]) -> list[list[Row]]:
    """As few lanes as can be in which no interval overlaps another."""
    lanes: list[list[Row]] = []
    for each in sorted(intervals, key=lambda row: (row[1], -row[2])):
        lane = next((lane for lane in lanes if lane[-1][2] <= each[1]), None)
        if lane is None:
            lanes.append([each])
        else:
            lane.append(each)
    return lanes


def _naming(device: int, track: int | None, kind: str, name: str) -> Row:
    """The event that names a process or a track, or gives a track its place."""
    event: dict[str, object] = {"ph": "M", "pid": device}
    if track is not None:
        event["tid"] = track
    if kind == "order":
        event |= {"name": "thread_sort_index", "args": {"sort_index": track}}
    else:
        what = "process_name" if kind == "process" else "thread_name"
        event |= {"name": what, "args": {"name": name}}
    return (device, track, kind, None, None, name, None, None, _compact(event))


def _slice(track: int, interval: Row) -> Row:
    device, start, end, name, category, more = interval
    head = _compact({"ph": "X", "pid": device, "tid": track})[:-1]
    tail = _compact({"name": name, "cat": category, "args": formats.plain(more)})[1:]
    # microseconds with decimals: a float would lose nanoseconds
    event = f'{head},"ts":{_micro(start)},"dur":{_micro(end - start)},{tail}'
    return (device, track, "slice", start, end - start, name, category, None, event)


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _micro(ns: int) -> str:
    return f"{'-' if ns < 0 else ''}{abs(ns) // 1000}.{abs(ns) % 1000:03d}"
