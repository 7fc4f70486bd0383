"""Frames as the curves send them."""

import itertools
import os

from lance_spec.dialect import SPECIFIED
from lance_spec.enums import Command, Flag
from lance_spec.frames import encode_control, encode_header
from lance_spec.limits import HEADER_SIZE
from lance_spec.messages.lwp import Fetch
from lance_spec.records import encode_records

ACK = HEADER_SIZE
"""Bytes of the answer to an Ingest frame."""
SMALL = encode_records([b"x" * 97] * 40)
"""A batch of 4 KiB."""
LARGE = encode_records([b"x" * 100] * 624)
"""A batch of 64 KiB."""

_numbers = itertools.count(int.from_bytes(os.urandom(3), "big") << 40 | 1)
"""Batch ids that no other run has: what a server knows already costs it less."""


def ingest(topic: int, payload: bytes, records: int) -> bytes:
    """Return a frame that stores a batch."""
    head = encode_header(
        SPECIFIED,
        Flag.BATCH_MODE,
        batch_id=next(_numbers),
        timestamp_ns=1,
        record_count=records,
        topic_id=topic,
        payload=payload,
    )
    return head + payload


def small(topic: int) -> bytes:
    """Return a frame that stores 40 records, 4 KiB."""
    return ingest(topic, SMALL, 40)


def large(topic: int) -> bytes:
    """Return a frame that stores 624 records, 64 KiB."""
    return ingest(topic, LARGE, 624)


def fetch(topic: int, offset: int, size: int) -> bytes:
    """Return a frame that asks for ``size`` bytes."""
    return encode_control(SPECIFIED, Command.FETCH, Fetch(topic, offset, size).encode())


def answer(size: int) -> int:
    """Return how many bytes the answer with ``size`` bytes of data has."""
    return HEADER_SIZE + 16 + size
