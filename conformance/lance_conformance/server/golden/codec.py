"""The golden server's own idea of LWP bytes, written without a look at the kit's."""

import struct
import zlib
from functools import lru_cache
from typing import NamedTuple

LAYOUT = struct.Struct("<4sBBHI QQIIII")
SIZE = LAYOUT.size


BLOCK, LARGE = 1024, 65536
"""Sizes of the blocks of a payload, and of a large one."""


def castagnoli(data: bytes) -> int:
    """CRC32C: whole blocks by what is remembered of them, the rest one byte a step."""
    register = 0xFFFFFFFF
    size = BLOCK if len(data) < 16 * LARGE else LARGE
    whole = len(data) - len(data) % size
    far = _far(size) if whole else ()
    for start in range(0, whole, size):
        register = _moved(register, far) ^ _stepped(0, data[start : start + size])
    return _stepped(register, data[whole:]) ^ 0xFFFFFFFF


@lru_cache(maxsize=1024)
def _stepped(register: int, data: bytes) -> int:
    for byte in data:
        register = _TABLE[(register ^ byte) & 0xFF] ^ (register >> 8)
    return register


def _entry(value: int) -> int:
    for _ in range(8):
        value = (value >> 1) ^ 0x82F63B78 if value % 2 else value >> 1
    return value


_TABLE = tuple(_entry(value) for value in range(256))


Far = tuple[tuple[int, ...], ...]


def _moved(register: int, far: Far) -> int:
    """The register after some zeros."""
    a, b, c, d = register.to_bytes(4, "little")
    return far[0][a] ^ far[1][b] ^ far[2][c] ^ far[3][d]


@lru_cache
def _far(size: int) -> Far:
    """What so many zeros make of each value of each byte of the register.

    A CRC is linear: the register before a block and the block itself are worked out apart.
    """
    return tuple(_far_byte(place, size) for place in range(4))


def _far_byte(place: int, size: int) -> tuple[int, ...]:
    bits = [_behind(1 << (8 * place + bit), size) for bit in range(8)]
    found = [0] * 256
    for value in range(1, 256):
        lowest = (value & -value).bit_length() - 1
        found[value] = found[value & (value - 1)] ^ bits[lowest]
    return tuple(found)


def _behind(register: int, zeros: int) -> int:
    """The register after so many zeros, in whole blocks where there are several."""
    if zeros <= BLOCK:
        return _stepped(register, bytes(zeros))
    far = _far(BLOCK)
    for _ in range(zeros // BLOCK):
        register = _moved(register, far)
    return register


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
