"""LZ4 blocks, one byte after another."""

from collections.abc import Callable

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
