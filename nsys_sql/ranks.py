"""The rank mapping: which report holds which rank, and which collectives belong to which group.

A rank is what the mapping says and never read from the name of a file. Every mistake is told with
its line. `skeleton` writes a mapping to fill in, from what the reports themselves say.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from nsys_sql import source
from nsys_sql.catalog import YAML_LOADER, near
from nsys_sql.errors import InputError, UsageError

_TOLD = 400  # characters of a mapping's own words in a message
_TOP = ("ranks", "groups", "world_size")
_ENTRY = ("trace", "rank", "host", "stage", "groups", "process", "device")
_RULE = ("stream", "class", "type", "name", "communicator")


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of `ranks`: every trace it matches shares what it says; None is not said."""

    traces: tuple[Path, ...]
    line: int
    rank: int | None = None
    host: str | None = None
    stage: int | None = None
    groups: Mapping[str, str] = field(default_factory=dict)
    process: int | None = None
    device: int | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """Which collectives are a group's own: all that is given must match."""

    stream: tuple[int, ...] = ()
    cls: tuple[str, ...] = ()
    type: tuple[str, ...] = ()
    name: str | None = None
    communicator: tuple[str, ...] = ()

    @property
    def pattern(self) -> str | None:
        """The name pattern as a regular expression, `*` matches any text."""
        if self.name is None:
            return None
        return "(?s)" + ".*".join(re.escape(part) for part in self.name.split("*"))


@dataclass(frozen=True, slots=True)
class RankMap:
    """A validated mapping; `world_size` is the number of ranks of the run where it is given."""

    path: Path | None = None
    entries: tuple[Entry, ...] = ()
    rules: Mapping[str, Rule] = field(default_factory=dict)
    world_size: int | None = None

    @property
    def traces(self) -> tuple[Path, ...]:
        """Every trace that the mapping names, in its order."""
        return tuple(dict.fromkeys(trace for entry in self.entries for trace in entry.traces))

    def of(self, trace: Path) -> tuple[Entry, ...]:
        """The entries of a trace."""
        wanted = source.real(trace)
        return tuple(
            entry
            for entry in self.entries
            if any(source.real(each) == wanted for each in entry.traces)
        )


class _Reader:
    """A mapping file as nodes that know their lines."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def error(self, node: yaml.Node, text: str, hint: str | None = None) -> UsageError:
        shown = text if len(text) <= _TOLD else f"{text[:_TOLD]} and so on"
        return UsageError(f"{self.path}:{node.start_mark.line + 1}: {shown}", hint=hint)

    def mapping(
        self, node: yaml.Node, known: Sequence[str] | None, what: str
    ) -> Iterator[tuple[str, yaml.Node, yaml.Node]]:
        """Key, key node and value node of a YAML mapping; unknown and repeated keys are errors."""
        if not isinstance(node, yaml.MappingNode):
            raise self.error(node, f"{what} must be a mapping of keys to values")
        seen: set[str] = set()
        for key_node, value in node.value:
            key = str(key_node.value)
            if known is not None and key not in known:
                listed = ", ".join(known)
                raise self.error(
                    key_node,
                    f"unknown key {key!r} in {what}",
                    hint=near(key, known) or f"known keys: {listed}",
                )
            if key in seen:
                raise self.error(key_node, f"{key!r} stands twice in {what}")
            seen.add(key)
            yield key, key_node, value

    def items(self, node: yaml.Node) -> list[yaml.Node]:
        return list(node.value) if isinstance(node, yaml.SequenceNode) else [node]

    def text(self, node: yaml.Node, what: str) -> str:
        if not isinstance(node, yaml.ScalarNode) or node.tag.endswith(":null"):
            raise self.error(node, f"{what} must be one value")
        return str(node.value)

    def integer(self, node: yaml.Node, what: str) -> int:
        text = self.text(node, what)
        if not re.fullmatch(r"\d{1,18}", text, re.ASCII):
            raise self.error(node, f"{what} is {text!r}, not a whole number from 0 on")
        return int(text)

    @staticmethod
    def is_unknown(node: yaml.Node) -> bool:
        """Whether a value was left open: `rank: ` or `rank: null`, as in a skeleton."""
        return isinstance(node, yaml.ScalarNode) and node.tag.endswith(":null")


def read(path: Path) -> RankMap:
    """Read and validate a mapping file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the mapping {path} cannot be read: {error}") from None
    try:
        root = yaml.compose(text, Loader=YAML_LOADER)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or error
        raise UsageError(f"{path}{line}: not valid YAML: {problem}") from None
    reader = _Reader(path)
    if root is None:
        raise UsageError(f"{path} is empty", hint="`nsys-sql survey --init` writes a skeleton")
    entries: list[Entry] = []
    rules: dict[str, Rule] = {}
    world: int | None = None
    for key, _, node in reader.mapping(root, _TOP, "the mapping"):
        if reader.is_unknown(node):
            continue
        if key == "world_size":
            world = reader.integer(node, "world_size")
        elif key == "groups":
            for kind, _, rule in reader.mapping(node, None, "groups"):
                rules[kind] = _rule(reader, rule, f"group {kind}")
        else:
            if not isinstance(node, yaml.SequenceNode):
                raise reader.error(node, "ranks must be a list of entries")
            entries += [_entry(reader, each) for each in node.value]
    if not entries:
        raise UsageError(f"{path}: there is no entry under `ranks`")
    _check(reader, entries, rules, root)
    if world is not None:
        highest = max((entry.rank for entry in entries if entry.rank is not None), default=-1)
        if highest >= world:
            raise UsageError(f"{path}: rank {highest} is outside world_size {world}")
    return RankMap(path, tuple(entries), rules, world)


def _entry(reader: _Reader, node: yaml.Node) -> Entry:
    found: dict[str, Any] = {"line": node.start_mark.line + 1}
    for key, key_node, value in reader.mapping(node, _ENTRY, "an entry of ranks"):
        if key == "trace":
            found["traces"] = _traces(reader, value)
        elif reader.is_unknown(value):
            continue
        elif key == "groups":
            found["groups"] = {
                kind: reader.text(name, f"group {kind}")
                for kind, _, name in reader.mapping(value, None, "groups")
                if not reader.is_unknown(name)
            }
        elif key == "host":
            found["host"] = reader.text(value, "host")
        else:
            found[key] = reader.integer(value, key)
        del key_node
    if "traces" not in found:
        raise reader.error(node, "an entry of ranks needs a trace")
    entry = Entry(**found)
    if entry.rank is not None and len(entry.traces) > 1:
        raise reader.error(
            node,
            f"rank {entry.rank} is given for {len(entry.traces)} traces",
            hint="all that a glob matches shares the entry: leave the rank out, or list the traces",
        )
    return entry


def _traces(reader: _Reader, node: yaml.Node) -> tuple[Path, ...]:
    text = reader.text(node, "trace")
    base = reader.path.parent
    if not glob.has_magic(text):
        return (base / text,)
    found = sorted(glob.glob(str(base / text), recursive=True))  # noqa: PTH207 (absolute ones)
    if not found:
        raise reader.error(node, f"no file matches {text!r}")
    return tuple(Path(each) for each in found)


def _rule(reader: _Reader, node: yaml.Node, what: str) -> Rule:
    found: dict[str, Any] = {}
    for key, key_node, value in reader.mapping(node, _RULE, what):
        if reader.is_unknown(value):
            continue
        items = reader.items(value)
        if not items:
            raise reader.error(key_node, f"{key} of {what} is an empty list")
        if key == "stream":
            found["stream"] = tuple(reader.integer(each, f"stream of {what}") for each in items)
        elif key == "name":
            found["name"] = reader.text(value, f"name of {what}")
        else:
            texts = tuple(reader.text(each, f"{key} of {what}") for each in items)
            found["cls" if key == "class" else key] = texts
    if not found:
        raise reader.error(
            node,
            f"{what} does not say which collectives are its own",
            hint=f"give any of {', '.join(_RULE)}",
        )
    return Rule(**found)


def _check(
    reader: _Reader, entries: Sequence[Entry], rules: Mapping[str, Rule], root: yaml.Node
) -> None:
    """What no entry can tell by itself: repeated ranks, traces named twice, groups without use."""
    by_rank: dict[int, Entry] = {}
    by_place: dict[tuple[str, int | None, int | None], Entry] = {}
    for entry in entries:
        if entry.rank is not None:
            if entry.rank in by_rank:
                raise UsageError(
                    f"{reader.path}:{entry.line}: rank {entry.rank} stands on line "
                    f"{by_rank[entry.rank].line} already"
                )
            by_rank[entry.rank] = entry
        for trace in entry.traces:
            place = (source.real(trace), entry.process, entry.device)
            if place in by_place:
                raise UsageError(
                    f"{reader.path}:{entry.line}: {trace.name} stands on line "
                    f"{by_place[place].line} already",
                    hint="tell several ranks of one file apart by process or device",
                )
            by_place[place] = entry
    used = {kind for entry in entries for kind in entry.groups}
    for kind in rules:
        if kind not in used:
            raise reader.error(
                root,
                f"groups has a rule for {kind!r}, but no rank is in such a group",
                hint=near(kind, used),
            )


# ---------------------------------------------------------------------------- who is where


@dataclass(frozen=True, slots=True)
class Candidate:
    """A device of a report that may be a rank: with steady windows."""

    part: str
    device: int
    pids: tuple[int, ...]
    has_compute: bool
    gpu: str | None


@dataclass(frozen=True, slots=True)
class Member:
    """A sampled rank: a device of a report, and what the mapping says of it where it lists it."""

    part: str
    device: int
    gpu: str | None
    rank: int | None
    label: str
    host: str | None
    stage: int | None
    groups: Mapping[str, str]
    is_listed: bool = False


def members(
    mapping: RankMap, parts: Sequence[tuple[str, Path]], candidates: Sequence[Candidate]
) -> tuple[list[Member], list[str]]:
    """The sampled ranks in order of rank, and what the mapping or the reports leave open."""
    found: list[Member] = []
    problems: list[str] = []
    for at, (part, trace) in enumerate(parts):
        here = [each for each in candidates if each.part == part]
        usable = [each for each in here if each.has_compute] or here
        entries = mapping.of(trace)
        if mapping.path is not None and not entries:
            problems.append(f"{trace}: the mapping does not name it, its ranks are unknown")
        if not entries:
            found += [_unmapped(each, at, len(usable)) for each in usable]
            continue
        for entry in entries:
            chosen = [
                each
                for each in (usable if entry.device is None else here)
                if (entry.device is None or each.device == entry.device)
                and (entry.process is None or entry.process in each.pids)
            ]
            where = f"{mapping.path}:{entry.line}"
            if len(chosen) == 1:
                found.append(_mapped(chosen[0], entry, at, 1))
            elif not chosen:
                given = "".join(
                    f" {name} {value}"
                    for name, value in (("process", entry.process), ("device", entry.device))
                    if value is not None
                )
                problems.append(f"{where}: {trace} has no steady window of{given or ' any device'}")
            elif entry.rank is None:
                found += [_mapped(each, entry, at, len(chosen)) for each in chosen]
            else:
                listed = ", ".join(
                    f"device {c.device} (process {', '.join(map(str, c.pids))})" for c in chosen
                )
                problems.append(
                    f"{where}: {trace} holds several devices: {listed}; "
                    f"say which is rank {entry.rank} by device: or process:"
                )
    seen: dict[tuple[str, int], Member] = {}
    for member in found:
        place = (member.part, member.device)
        if place in seen:
            problems.append(
                f"{mapping.path}: {seen[place].label} and {member.label} are the same device "
                f"{member.device} of one report: only the first is kept"
            )
        else:
            seen[place] = member
    ordered = sorted(seen.values(), key=lambda m: (m.rank is None, m.rank or 0))
    return ordered, problems


def _mapped(candidate: Candidate, entry: Entry, at: int, count: int) -> Member:
    unknown = _unmapped(candidate, at, count).label
    label = unknown if entry.rank is None else f"rank {entry.rank}"
    return Member(
        candidate.part,
        candidate.device,
        candidate.gpu,
        entry.rank,
        label,
        entry.host,
        entry.stage,
        entry.groups,
        True,
    )


def _unmapped(candidate: Candidate, at: int, count: int) -> Member:
    label = f"report {at + 1}" + (f" device {candidate.device}" if count > 1 else "")
    return Member(candidate.part, candidate.device, candidate.gpu, None, label, None, None, {})


# ---------------------------------------------------------------------------- --init


@dataclass(frozen=True, slots=True)
class Sighting:
    """What a report says about one device of its: comments and selectors of a skeleton."""

    trace: str
    device: int
    pid: int | None
    gpu: str | None
    board: str | None
    host_hash: str | None
    host: str | None
    session_start: str | None
    collectives: str | None
    is_alone: bool


def skeleton(
    sightings: Sequence[Sighting],
    streams: Sequence[tuple[int, str, str]],
    failed: Sequence[tuple[str, str]],
) -> str:
    """A mapping to fill in. What the reports do not tell is left open, never guessed."""
    lines = [
        "# Which report holds which rank. Fill in what is null; a rank is never taken from the",
        "# name of a file. host: one name for all reports with one clock. stage: pipeline stage.",
        "# groups: for each kind of parallelism (tp, dp, pp, cp, ep) the name of the rank's group,",
        "# for example {tp: tp0, dp: dp3}.",
        "# world_size: 16        # ranks of the whole run, where not all of them were captured",
        "ranks:",
    ]
    for each in sightings:
        facts = [
            each.gpu,
            f"board {each.board}" if each.board else None,
            f"host hash {each.host_hash}" if each.host_hash else None,
            f"session {each.session_start}" if each.session_start else None,
            f"per iteration: {each.collectives}" if each.collectives else "no collectives",
        ]
        lines.append(f"  # {'; '.join(fact for fact in facts if fact)}")
        place = ""
        if not each.is_alone:
            place = f", device: {each.device}"
        lines.append(
            f"  - {{trace: {_quoted(each.trace)}, rank: null, host: {_quoted(each.host)}, "
            f"stage: null, groups: {{}}{place}}}"
        )
    for trace, reason in failed:
        lines.append(f"  # not usable: {_one_line(trace)}: {_one_line(reason)}")
    lines += [
        "# Which collectives are a group's own: any of stream, class, type, name (* matches any",
        "# text), communicator; all that is given must match. Without this nothing is matched.",
        "groups: null",
        "#  tp: {stream: 20}",
        "#  dp: {type: [ReduceScatter, AllGather], stream: 21}",
    ]
    if streams:
        lines.append("# Streams that carry communication:")
        lines += [f"#   stream {stream}: {what} ({devices})" for stream, what, devices in streams]
    return "\n".join(lines) + "\n"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _quoted(text: str | None) -> str:
    if text is None:
        return "null"
    if re.fullmatch(r"[A-Za-z_][\w./-]*", text, re.ASCII) and text.lower() not in (
        *("null", "true", "false", "yes", "no", "on", "off", "y", "n"),
    ):
        return text
    return "'" + text.replace("'", "''") + "'"
