"""The golden server's own idea of LWP bytes; the checksums, which vectors prove, are the kit's."""

import struct
from functools import lru_cache
from typing import NamedTuple

from lance_conformance.wire.crc import crc32_ieee, crc32c

LAYOUT = struct.Struct("<4sBBHI QQIIII")
SIZE = LAYOUT.size


def castagnoli(data: bytes) -> int:
    """CRC32C."""
    return crc32c(data)


def ieee(data: bytes) -> int:
    """CRC-32 as Ethernet has it."""
    return crc32_ieee(data)


class Wire(NamedTuple):
    """A header as it stands on the wire, and the payload after it."""

    magic: bytes
    version: int
    flags: int
    reserved: int
    header_crc: int
    batch_id: int
    timestamp: int
    records: int
    length: int
    payload_crc: int
    topic: int
    payload: bytes = b""


class Reply(NamedTuple):
    """A frame that the server is about to send."""

    flags: int
    batch_id: int = 0
    payload: bytes = b""
    timestamp: int = 0
    records: int = 0
    topic: int = 0


def parse(data: bytes) -> Wire:
    """The header at the beginning of ``data``."""
    return Wire(*LAYOUT.unpack_from(data))


def prefix(flags: int, magic: bytes = b"LANC", version: int = 1, reserved: int = 0) -> bytes:
    """Bytes 0-7 of a header."""
    return struct.pack("<4sBBH", magic, version, flags, reserved)


@lru_cache(maxsize=128)
def walk(data: bytes) -> tuple[list[int], bool]:
    """Where records start, with the end after the last; whether they fill ``data`` exactly.

    The list is remembered: nobody may change it.
    """
    ends = [0]
    while ends[-1] < len(data):
        if len(data) - ends[-1] < 5:
            return ends, False
        end = ends[-1] + 5 + int.from_bytes(data[ends[-1] + 1 : ends[-1] + 5], "little")
        if end > len(data):
            return ends, False
        ends.append(end)
    return ends, True


def begun(data: bytes) -> int:
    """How many records start in ``data``, the last one perhaps cut off."""
    ends, whole = walk(data)
    return len(ends) - 1 + (not whole and len(data) - ends[-1] >= 5)
