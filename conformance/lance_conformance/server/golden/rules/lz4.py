"""LZ4 blocks and their checksum, one byte after another."""

from collections.abc import Callable
from functools import lru_cache

MASK = 0xFFFFFFFF
ONE, TWO, THREE, FOUR, FIVE = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1
LONG = 15
"""A length of four bits that goes on in further bytes."""
Copied = Callable[[bytearray, int, int], bytes | None]
"""Copies so many bytes from so far back; `None` where that cannot be."""


def copied(out: bytearray, offset: int, count: int) -> bytes | None:
    """Copy bytes that are there; a copy of more than that repeats them."""
    if not 0 < offset <= len(out):
        return None
    piece = bytes(out[-offset:])
    return (piece * (count // offset + 1))[:count]


def expand(block: bytes, before: bytes, most: int, copied: Copied = copied) -> bytes | None:
    """The content of a block, or `None` when it is none; of too much only what is over ``most``.

    Args:
        block: Sequences of literals and copies; the last one has no copy.
        before: What copies may reach back to.
        most: The largest content.
        copied: How copies are made.
    """
    out = bytearray(before)
    at = 0
    while at < len(block):
        token, at = block[at], at + 1
        count, at = _length(block, at, token >> 4)
        if at + count > len(block):
            return None
        out += block[at : at + count]
        at += count
        if at == len(block):
            return bytes(out[len(before) :])
        offset = int.from_bytes(block[at : at + 2], "little")
        count, at = _length(block, at + 2, token & LONG)
        count = min(count + 4, most + len(before) - len(out))
        piece = copied(out, offset, count)
        if piece is None or at > len(block):
            return None
        out += piece
    return None


def _length(block: bytes, at: int, start: int) -> tuple[int, int]:
    """A length and where it ends; beyond the block where the block ends in it."""
    if start != LONG:
        return start, at
    while at < len(block):
        start, at = start + block[at], at + 1
        if block[at - 1] != 255:
            return start, at
    return start, len(block) + 1


@lru_cache(maxsize=256)
def xxh32(data: bytes) -> int:
    """XxHash of 32 bits with seed 0."""
    if len(data) >= LONG + 1:
        lanes, at = _lanes(data), len(data) & ~LONG
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
    lanes = [ONE + TWO & MASK, TWO, 0, -ONE & MASK]
    for start in range(0, len(data) & ~LONG, 16):
        for lane in range(4):
            at = start + 4 * lane
            word = int.from_bytes(data[at : at + 4], "little")
            lanes[lane] = _turned(lanes[lane] + word * TWO & MASK, 13) * ONE & MASK
    return lanes


def _turned(value: int, bits: int) -> int:
    return (value << bits | value >> 32 - bits) & MASK
