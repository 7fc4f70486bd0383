"""The checksum of LZ4 frames."""

import struct
from functools import lru_cache

MASK = 0xFFFFFFFF
ONE, TWO, THREE, FOUR, FIVE = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1


@lru_cache(maxsize=256)
def xxh32(data: bytes) -> int:
    """XxHash of 32 bits with seed 0."""
    if len(data) >= 16:
        lanes, at = _lanes(data), len(data) & ~15
        value = sum(_turned(lane, n) for lane, n in zip(lanes, (1, 7, 12, 18), strict=True))
    else:
        value, at = FIVE, 0
    value = value + len(data) & MASK
    while at + 4 <= len(data):
        word = int.from_bytes(data[at : at + 4], "little")
        value, at = _turned(value + word * THREE & MASK, 17) * FOUR & MASK, at + 4
    for byte in data[at:]:
        value = _turned(value + byte * FIVE & MASK, 11) * ONE & MASK
    value = (value ^ value >> 15) * TWO & MASK
    value = (value ^ value >> 13) * THREE & MASK
    return value ^ value >> 16


def _lanes(data: bytes) -> list[int]:
    a, b, c, d = ONE + TWO & MASK, TWO, 0, -ONE & MASK  # plain names, for payloads are large
    for one, two, three, four in struct.iter_unpack("<4I", data[: len(data) & ~15]):
        a, b = a + one * TWO & MASK, b + two * TWO & MASK
        c, d = c + three * TWO & MASK, d + four * TWO & MASK
        a, b = (a << 13 | a >> 19) * ONE & MASK, (b << 13 | b >> 19) * ONE & MASK
        c, d = (c << 13 | c >> 19) * ONE & MASK, (d << 13 | d >> 19) * ONE & MASK
    return [a, b, c, d]


def _turned(value: int, bits: int) -> int:
    return (value << bits | value >> 32 - bits) & MASK
