"""The golden server's own idea of LWP bytes, written without a look at the kit's."""

import importlib
import struct
import zlib
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

LAYOUT = struct.Struct("<4sBBHI QQIIII")
SIZE = LAYOUT.size


def _entry(value: int) -> int:
    for _ in range(8):
        value = (value >> 1) ^ 0x82F63B78 if value % 2 else value >> 1
    return value


_TABLE = tuple(_entry(value) for value in range(256))


def castagnoli_in_python(data: bytes) -> int:
    """CRC32C, one byte a step."""
    register = 0xFFFFFFFF
    for byte in data:
        register = _TABLE[(register ^ byte) & 0xFF] ^ (register >> 8)
    return register ^ 0xFFFFFFFF


def _castagnoli() -> Callable[[bytes], int]:
    """The package's where it is installed: the kit as one file is without it."""
    try:
        found: Callable[[bytes], int] = importlib.import_module("crc32c").crc32c
    except ImportError:
        return castagnoli_in_python
    return found


castagnoli = _castagnoli()
"""CRC32C."""


def ieee(data: bytes) -> int:
    """CRC-32 as Ethernet has it."""
    return zlib.crc32(data)


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
