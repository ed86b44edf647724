"""Timeline events as Perfetto's protobuf, a packet at a time."""

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


def write(rows: Iterator[tuple[Any, ...]], file: IO[bytes]) -> None:
    """Write rows of the recipe trace-events; a slice becomes its begin and its end."""
    builder = StreamingTraceProtoBuilder(file)
    for device, track, kind, start, duration, name, category, arrow, event in rows:
        if kind in ("process", "track"):
            _describe(builder, device, track, name)
        elif kind == "slice":
            begin = _event(builder, device, track, start, TrackEvent.TYPE_SLICE_BEGIN)
            begin.track_event.name = name
            begin.track_event.categories.append(category)
            for key, value in json.loads(event)["args"].items():
                note = begin.track_event.debug_annotations.add()
                note.name = key
                if isinstance(value, int):
                    note.int_value = value
                else:
                    note.string_value = str(value)
            builder.write_packet(begin)
            end = _event(builder, device, track, start + duration, TrackEvent.TYPE_SLICE_END)
            builder.write_packet(end)
        elif kind in ("arrow_start", "arrow_end"):
            point = _event(builder, device, track, start, TrackEvent.TYPE_INSTANT)
            point.track_event.name = name
            flows = "flow_ids" if kind == "arrow_start" else "terminating_flow_ids"
            getattr(point.track_event, flows).append(arrow)
            builder.write_packet(point)


def _uuid(device: int, track: int | None) -> int:
    return ((device + 1) << 32) + (track or 0)


def _describe(builder: Any, device: int, track: int | None, name: str) -> None:
    packet = builder.create_packet()
    described = packet.track_descriptor
    described.uuid = _uuid(device, track)
    described.name = name
    if track is None:
        described.child_ordering = TrackDescriptor.EXPLICIT
    else:
        described.parent_uuid = _uuid(device, None)
        described.sibling_order_rank = track
    builder.write_packet(packet)


def _event(builder: Any, device: int, track: int, at: int, kind: int) -> Any:
    packet = builder.create_packet()
    packet.timestamp = at
    packet.trusted_packet_sequence_id = _SEQUENCE
    packet.track_event.type = kind
    packet.track_event.track_uuid = _uuid(device, track)
    return packet
