"""Requests of consumers and about the node, and the answers to them (LWP sections 5.12 to 5.14)."""

import struct
from typing import NamedTuple

from lance_conformance.wire.control import control
from lance_conformance.wire.frame import Command, Frame

_PAIR = struct.Struct("<QQ")
_TIMES = struct.Struct("<QI")

CLUSTER_STATUS = control(Command.GET_CLUSTER_STATUS)
"""GetClusterStatus (AMB-11)."""


def subscribe(topic_id: int, consumer: int, start: int = 0, max_bytes: int = 65536) -> Frame:
    """Subscribe (section 5.12).

    Args:
        topic_id: The topic.
        consumer: The consumer's id.
        start: The byte offset at which to begin.
        max_bytes: The most that one batch may bring.
    """
    payload = struct.pack("<IQIQ", topic_id, start, max_bytes, consumer)
    return control(Command.SUBSCRIBE, payload)


def unsubscribe(topic_id: int, consumer: int) -> Frame:
    """Unsubscribe (section 5.13)."""
    return control(Command.UNSUBSCRIBE, struct.pack("<IQ", topic_id, consumer))


def commit_offset(topic_id: int, consumer: int, offset: int) -> Frame:
    """CommitOffset (section 5.14)."""
    return control(Command.COMMIT_OFFSET, struct.pack("<IQQ", topic_id, consumer, offset))


def offset_for_time(topic_id: int, time_ns: int) -> Frame:
    """OffsetForTime, an extension (AMB-37).

    Args:
        topic_id: The topic.
        time_ns: Nanoseconds since the Unix epoch, by the clock of the server.
    """
    return control(Command.OFFSET_FOR_TIME, struct.pack("<IQ", topic_id, time_ns))


def batch_times(topic_id: int, start: int, end: int) -> Frame:
    """BatchTimes, an extension (AMB-61).

    Args:
        topic_id: The topic.
        start: The byte offset at which the range begins.
        end: The byte offset at which it ends.
    """
    return control(Command.BATCH_TIMES, struct.pack("<IQQ", topic_id, start, end))


class BatchTimes(NamedTuple):
    """What a BatchTimesResponse says.

    Attributes:
        next_offset: Up to which byte the range was told.
        times: The offset and the time of each batch.
    """

    next_offset: int
    times: tuple[tuple[int, int], ...]


def read_batch_times(payload: bytes) -> BatchTimes | None:
    """What a BatchTimesResponse says, `None` when its lengths do not fit."""
    if len(payload) < _TIMES.size:
        return None
    next_offset, size = _TIMES.unpack_from(payload)
    pairs = payload[_TIMES.size :]
    if len(pairs) != size or size % _PAIR.size:
        return None
    return BatchTimes(next_offset, tuple(_PAIR.iter_unpack(pairs)))


class ConsumerAt(NamedTuple):
    """What SubscribeAck and CommitAck say: a consumer, and how far it is."""

    consumer: int
    offset: int


def read_consumer_at(payload: bytes) -> ConsumerAt | None:
    """What a SubscribeAck or CommitAck says, `None` when it has not 16 bytes."""
    return ConsumerAt(*_PAIR.unpack(payload)) if len(payload) == _PAIR.size else None
