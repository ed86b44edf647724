"""Timeline events as Perfetto's protobuf, a packet at a time.

Its times are unsigned: events before 0 need all of them moved, by the `shift` of `write`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import IO, Any

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import (  # type: ignore[import-untyped,unused-ignore]
    TrackDescriptor,
    TrackEvent,
)
from perfetto.trace_builder.proto_builder import (  # type: ignore[import-untyped,unused-ignore]
    StreamingTraceProtoBuilder,
)

_SEQUENCE = 1
_LEAST_INT, _MOST_INT, _MOST_UINT = -(1 << 63), (1 << 63) - 1, (1 << 64) - 1


def write(rows: Iterator[tuple[Any, ...]], file: IO[bytes], shift: int = 0) -> None:
    """Write rows of the recipe trace-events; a slice becomes its begin and its end."""
    writer = _Writer(StreamingTraceProtoBuilder(file), shift)
    for device, track, kind, start, duration, name, category, arrow, event in rows:
        if kind == "process":
            writer.describe(device, None, name, 0)
        elif kind == "order":
            place = json.loads(event)["args"]["sort_index"]
            writer.describe(device, track, name, place)
        elif kind == "slice":
            begin = writer.event(device, track, start, TrackEvent.TYPE_SLICE_BEGIN)
            begin.track_event.name = name
            begin.track_event.categories.append(category)
            for key, value in json.loads(event)["args"].items():
                note = begin.track_event.debug_annotations.add()
                note.name = key
                _annotate(note, value)
            writer.write(begin)
            end = writer.event(device, track, start + duration, TrackEvent.TYPE_SLICE_END)
            writer.write(end)
        elif kind in ("arrow_start", "arrow_end"):
            point = writer.event(device, track, start, TrackEvent.TYPE_INSTANT)
            point.track_event.name = name
            flows = "flow_ids" if kind == "arrow_start" else "terminating_flow_ids"
            getattr(point.track_event, flows).append(arrow)
            writer.write(point)


def _annotate(note: Any, value: object) -> None:
    """An argument of a slice; whole numbers that no field holds go as text."""
    if isinstance(value, bool):
        note.bool_value = value
    elif isinstance(value, int) and _LEAST_INT <= value <= _MOST_INT:
        note.int_value = value
    elif isinstance(value, int) and 0 <= value <= _MOST_UINT:
        note.uint_value = value
    else:
        note.string_value = str(value)


class _Writer:
    """Packets of one file, whose tracks have ids as they come."""

    def __init__(self, builder: Any, shift: int) -> None:
        self._builder = builder
        self._shift = shift
        self._ids: dict[tuple[int, int | None], int] = {}

    def _uuid(self, device: int, track: int | None) -> int:
        return self._ids.setdefault((device, track), len(self._ids) + 1)

    def write(self, packet: Any) -> None:
        self._builder.write_packet(packet)

    def describe(self, device: int, track: int | None, name: str, place: int) -> None:
        packet = self._builder.create_packet()
        described = packet.track_descriptor
        described.uuid = self._uuid(device, track)
        described.name = name
        if track is None:
            described.child_ordering = TrackDescriptor.EXPLICIT
        else:
            described.parent_uuid = self._uuid(device, None)
            described.sibling_order_rank = place
        self.write(packet)

    def event(self, device: int, track: int, at: int, kind: int) -> Any:
        packet = self._builder.create_packet()
        packet.timestamp = at + self._shift
        packet.trusted_packet_sequence_id = _SEQUENCE
        packet.track_event.type = kind
        packet.track_event.track_uuid = self._uuid(device, track)
        return packet
