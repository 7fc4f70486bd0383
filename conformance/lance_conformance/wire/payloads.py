"""Payloads of control commands for a reader, field by field (LWP section 5)."""

from collections.abc import Iterator, Mapping, Sequence

from lance_conformance.dump import Row, hexdump
from lance_conformance.wire.frame import HEADER_SIZE, Command, Flag

Fields = Sequence[tuple[str, int]]
_TOPIC: Fields = (("topic_id", 4),)
_LIMITS: Fields = (("max_age_secs", 8), ("max_bytes", 8))
_CONSUMER_AT: Fields = (("consumer_id", 8), ("offset", 8))
_LAYOUTS: Mapping[int, Fields] = {
    Command.DELETE_TOPIC: _TOPIC,
    Command.GET_TOPIC: _TOPIC,
    Command.SET_RETENTION: (*_TOPIC, *_LIMITS),
    Command.CREATE_TOPIC_WITH_RETENTION: (("name_length", 2),),
    Command.FETCH: (*_TOPIC, ("start_offset", 8), ("max_bytes", 4)),
    Command.FETCH_RESPONSE: (("next_offset", 8), ("bytes_returned", 4), ("record_count", 4)),
    Command.CATCHING_UP: (("end_offset", 8),),
    Command.SUBSCRIBE: (*_TOPIC, ("start_offset", 8), ("max_batch_bytes", 4), ("consumer_id", 8)),
    Command.UNSUBSCRIBE: (*_TOPIC, ("consumer_id", 8)),
    Command.COMMIT_OFFSET: (*_TOPIC, *_CONSUMER_AT),
    Command.SUBSCRIBE_ACK: _CONSUMER_AT,
    Command.COMMIT_ACK: _CONSUMER_AT,
    Command.OFFSET_FOR_TIME: (*_TOPIC, ("time_ns", 8)),
    Command.OFFSET_FOR_TIME_RESPONSE: (("offset", 8),),
    Command.BATCH_TIMES: (*_TOPIC, ("start_offset", 8), ("end_offset", 8)),
    Command.BATCH_TIMES_RESPONSE: (("next_offset", 8), ("bytes_returned", 4)),
}


def payload_rows(frame: bytes, *, fault: bool) -> Iterator[Row]:
    """Annotate the bytes after a header.

    Args:
        frame: The frame, perhaps cut short.
        fault: The payload is wrong on purpose.
    """
    offset = HEADER_SIZE
    for name, size in _fields(frame):
        piece = frame[offset : offset + size]
        if len(piece) < size:
            break
        yield Row(offset, piece, name, str(int.from_bytes(piece, "little")), fault)
        offset += size
    yield from hexdump(frame[offset:], offset, fault=fault)


def _fields(frame: bytes) -> Fields:
    is_control = len(frame) > HEADER_SIZE and bool(frame[5] & Flag.CONTROL)
    command = int.from_bytes(frame[12:20], "little")
    return _LAYOUTS.get(command, ()) if is_control else ()
