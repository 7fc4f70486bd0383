"""The checksum of LZ4 frames."""

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
    lanes = [ONE + TWO & MASK, TWO, 0, -ONE & MASK]
    for start in range(0, len(data) & ~15, 16):
        for lane in range(4):
            at = start + 4 * lane
            word = int.from_bytes(data[at : at + 4], "little")
            lanes[lane] = _turned(lanes[lane] + word * TWO & MASK, 13) * ONE & MASK
    return lanes


def _turned(value: int, bits: int) -> int:
    return (value << bits | value >> 32 - bits) & MASK
