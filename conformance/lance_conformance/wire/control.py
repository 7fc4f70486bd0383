"""Requests that the kit sends, and answers that it reads (LWP sections 4 and 5)."""

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lance_conformance.wire.frame import Command, Flag, Frame
from lance_conformance.wire.tlv import records

END_OFFSET = 2**64 - 1
"""A Fetch from here is answered with the end of the log and no data (AMB-06)."""
TIMESTAMP = 1_706_918_400_000_000_000
"""The client timestamp of every batch whose case does not ask for another one."""

KEEPALIVE = Frame(flags=Flag.KEEPALIVE)
LIST_TOPICS = Frame(flags=Flag.CONTROL, batch_id=Command.LIST_TOPICS)

_FETCH = struct.Struct("<IQI")
_FETCHED = struct.Struct("<QII")
_FETCHED_EXTENDED = struct.Struct("<QQQ")


def control(command: int, payload: bytes = b"") -> Frame:
    """A control frame (section 5.1)."""
    return Frame(flags=Flag.CONTROL, batch_id=command, payload=payload)


def create_topic(name: str | bytes) -> Frame:
    """CreateTopic (section 5.3); ``bytes`` pass as they are."""
    raw = name.encode() if isinstance(name, str) else name
    return control(Command.CREATE_TOPIC, raw)


def create_topic_with_retention(name: str, max_age_secs: int, max_bytes: int) -> Frame:
    """CreateTopicWithRetention with a 16-bit name length (section 5.11, AMB-07)."""
    raw = name.encode()
    head = struct.pack("<H", len(raw)) + raw
    return control(
        Command.CREATE_TOPIC_WITH_RETENTION, head + struct.pack("<QQ", max_age_secs, max_bytes)
    )


def set_retention(topic_id: int, max_age_secs: int, max_bytes: int) -> Frame:
    """SetRetention (section 5.10)."""
    payload = struct.pack("<IQQ", topic_id, max_age_secs, max_bytes)
    return control(Command.SET_RETENTION, payload)


def get_topic(topic_id: int) -> Frame:
    """GetTopic (section 5.5)."""
    return control(Command.GET_TOPIC, struct.pack("<I", topic_id))


def delete_topic(topic_id: int) -> Frame:
    """DeleteTopic (section 5.6)."""
    return control(Command.DELETE_TOPIC, struct.pack("<I", topic_id))


def fetch(topic_id: int, start_offset: int, max_bytes: int) -> Frame:
    """Fetch (section 5.8)."""
    return control(Command.FETCH, _FETCH.pack(topic_id, start_offset, max_bytes))


def ingest(topic_id: int, batch_id: int, values: Sequence[bytes]) -> Frame:
    """Ingest of raw records (section 4.1).

    Args:
        topic_id: The topic to write to.
        batch_id: Not zero, unique on its connection.
        values: One record each.
    """
    return Frame(
        flags=Flag.BATCH_MODE,
        batch_id=batch_id,
        timestamp_ns=TIMESTAMP,
        record_count=len(values),
        topic_id=topic_id,
        payload=records(values),
    )


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a FetchResponse says (section 5.9, or 5.9.1 for the 24-byte form).

    Attributes:
        next_offset: Where the next Fetch starts.
        bytes_returned: The number of data bytes it announces.
        record_count: The number of records it announces; ``None`` in the 24-byte form.
        data: The data after the header.
    """

    next_offset: int
    bytes_returned: int
    record_count: int | None
    data: bytes


def read_fetched(payload: bytes, header: int) -> Fetched:
    """Read a FetchResponse payload.

    Args:
        payload: The payload of the control frame.
        header: 16 or 24 (AMB-05).

    Raises:
        ValueError: The payload is shorter than its header.
    """
    if len(payload) < header:
        raise ValueError(f"FetchResponse of {len(payload)} bytes, its header alone is {header}")
    data = payload[header:]
    if header == _FETCHED_EXTENDED.size:
        start, end, _high_water_mark = _FETCHED_EXTENDED.unpack_from(payload)
        return Fetched(end, end - start, None, data)
    next_offset, returned, count = _FETCHED.unpack_from(payload)
    return Fetched(next_offset, returned, count, data)


def read_offset(payload: bytes) -> int | None:
    """The offset a CatchingUp frame carries, or ``None`` when it is not 8 bytes (AMB-18)."""
    return int.from_bytes(payload, "little") if len(payload) == 8 else None


def read_json(payload: bytes) -> Mapping[str, Any] | None:
    """The JSON object in ``payload``, or ``None`` when it is anything else."""
    try:
        value = json.loads(payload)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
