"""SipHash, and what is made by it: the partition of a key (FLV-01), the number of a consumer."""

from functools import lru_cache
from typing import Final

__all__ = ["consumer_id", "fluvio_partition", "siphash24"]

_MASK: Final = 0xFFFFFFFFFFFFFFFF


@lru_cache(maxsize=65536)
def fluvio_partition(key: bytes, partitions: int) -> int:
    """Return where Fluvio's own producers put a key.

    The hash is SipHash-2-4 with a key of zeros, over the length of the key in 8 bytes, low byte
    first, and the key (`SiphashRoundRobinPartitioner` of the published client).

    Args:
        key: the record's key.
        partitions: how many partitions there are.
    """
    return siphash24(len(key).to_bytes(8, "little") + key) % partitions


def siphash24(data: bytes) -> int:
    """Return SipHash-2-4 of bytes with a key of zeros."""
    return _siphash(data, 2, 4)


def consumer_id(name: str) -> int:
    """Return the number that stands for a consumer's name where LWP has only numbers.

    The published Rust client makes it by SipHash-1-3 with a key of zeros, over the UTF-8 and a
    byte 0xFF; whoever does the same finds its commits.
    """
    return _siphash(name.encode() + b"\xff", 1, 3)


def _siphash(data: bytes, rounds: int, final_rounds: int) -> int:
    state = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
    padded = data + bytes(7 - len(data) % 8) + bytes([len(data) & 0xFF])
    for place in range(0, len(padded), 8):
        word = int.from_bytes(padded[place : place + 8], "little")
        a, b, c, d = state
        state = a, b, c, d ^ word
        for _ in range(rounds):
            state = _round(*state)
        a, b, c, d = state
        state = a ^ word, b, c, d
    a, b, c, d = state
    state = a, b, c ^ 0xFF, d
    for _ in range(final_rounds):
        state = _round(*state)
    a, b, c, d = state
    return a ^ b ^ c ^ d


def _round(a: int, b: int, c: int, d: int) -> tuple[int, int, int, int]:
    a = (a + b) & _MASK
    b = (b << 13 & _MASK | b >> 51) ^ a
    a = a << 32 & _MASK | a >> 32
    c = (c + d) & _MASK
    d = (d << 16 & _MASK | d >> 48) ^ c
    a = (a + d) & _MASK
    d = (d << 21 & _MASK | d >> 43) ^ a
    c = (c + b) & _MASK
    b = (b << 17 & _MASK | b >> 47) ^ c
    c = c << 32 & _MASK | c >> 32
    return a, b, c, d
