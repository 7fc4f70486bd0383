"""xxHash-32, the checksum inside LZ4 frames (AMB-20).

It is here to judge heads of frames, a few bytes long; the LZ4 library checks contents as it opens
them.
"""

import struct
from typing import Final

from lance_spec.checksum import Buffer

_P1: Final = 0x9E3779B1
_P2: Final = 0x85EBCA77
_P3: Final = 0xC2B2AE3D
_P4: Final = 0x27D4EB2F
_P5: Final = 0x165667B1
_MASK: Final = 0xFFFFFFFF
_STRIPE: Final = 16
_LANE: Final = 4


def xxh32(data: Buffer) -> int:
    """Return the xxHash-32 of some bytes, with seed 0."""
    raw = bytes(data)
    whole = len(raw) - len(raw) % _STRIPE
    value = _stripes(raw[:whole]) if whole else _P5
    value = (value + len(raw)) & _MASK
    lanes = whole + (len(raw) - whole) // _LANE * _LANE
    for (lane,) in struct.iter_unpack("<I", raw[whole:lanes]):
        value = _rotated(value + lane * _P3, 17) * _P4 & _MASK
    for byte in raw[lanes:]:
        value = _rotated(value + byte * _P5, 11) * _P1 & _MASK
    return _mixed(value)


def _stripes(raw: bytes) -> int:
    state = [(_P1 + _P2) & _MASK, _P2, 0, -_P1 & _MASK]
    for lanes in struct.iter_unpack("<4I", raw):
        state = [
            _rotated(each + lane * _P2, 13) * _P1 & _MASK
            for each, lane in zip(state, lanes, strict=True)
        ]
    turns = zip(state, (1, 7, 12, 18), strict=True)
    return sum(_rotated(each, turn) for each, turn in turns) & _MASK


def _mixed(value: int) -> int:
    value = (value ^ value >> 15) * _P2 & _MASK
    value = (value ^ value >> 13) * _P3 & _MASK
    return value ^ value >> 16


def _rotated(value: int, bits: int) -> int:
    value &= _MASK
    return (value << bits | value >> 32 - bits) & _MASK
