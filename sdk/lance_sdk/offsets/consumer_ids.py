"""The number that stands for a consumer's name where only numbers fit.

LWP's CommitOffset and the published file names take a 64-bit consumer id. The published Rust
client makes it of the name by SipHash-1-3 with a key of zeros, over the UTF-8 and a byte 0xFF;
so does this package, and both find each other's commits.
"""

from typing import Final

__all__ = ["consumer_id"]

_MASK: Final = 2**64 - 1
_FINAL_ROUNDS: Final = 3


def consumer_id(name: str) -> int:
    """Return the id of a consumer's name, as the published Rust client computes it."""
    data = name.encode() + b"\xff"
    whole = len(data) - len(data) % 8
    state = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
    for start in range(0, whole, 8):
        state = _absorb(state, int.from_bytes(data[start : start + 8], "little"))
    state = _absorb(state, int.from_bytes(data[whole:], "little") | (len(data) & 0xFF) << 56)
    v0, v1, v2, v3 = state
    state = v0, v1, v2 ^ 0xFF, v3
    for _ in range(_FINAL_ROUNDS):
        state = _round(*state)
    v0, v1, v2, v3 = state
    return v0 ^ v1 ^ v2 ^ v3


def _absorb(state: tuple[int, int, int, int], word: int) -> tuple[int, int, int, int]:
    v0, v1, v2, v3 = state
    v0, v1, v2, v3 = _round(v0, v1, v2, v3 ^ word)
    return v0 ^ word, v1, v2, v3


def _round(v0: int, v1: int, v2: int, v3: int) -> tuple[int, int, int, int]:
    v0 = (v0 + v1) & _MASK
    v2 = (v2 + v3) & _MASK
    v1 = _rotate(v1, 13) ^ v0
    v3 = _rotate(v3, 16) ^ v2
    v0 = _rotate(v0, 32)
    v2 = (v2 + v1) & _MASK
    v0 = (v0 + v3) & _MASK
    v1 = _rotate(v1, 17) ^ v2
    v3 = _rotate(v3, 21) ^ v0
    return v0, v1, _rotate(v2, 32), v3


def _rotate(word: int, bits: int) -> int:
    return (word << bits | word >> (64 - bits)) & _MASK
