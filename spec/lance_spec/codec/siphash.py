"""SipHash, and where producers that use it, as Fluvio's do, put a record with a key (FLV-01)."""

from functools import lru_cache
from typing import Final

__all__ = ["fluvio_partition", "siphash24"]

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
    state = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
    padded = data + bytes(7 - len(data) % 8) + bytes([len(data) & 0xFF])
    for place in range(0, len(padded), 8):
        word = int.from_bytes(padded[place : place + 8], "little")
        a, b, c, d = state
        a, b, c, d = _round(*_round(a, b, c, d ^ word))
        state = (a ^ word, b, c, d)
    a, b, c, d = state
    c ^= 0xFF
    for _ in range(4):
        a, b, c, d = _round(a, b, c, d)
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
