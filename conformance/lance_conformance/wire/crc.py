"""The two checksums that are spoken on LWP connections (LWP section 9, AMB-01).

CRC32C is computed here, eight bytes a step, so that the kit depends on nobody's idea of it. Where
the ``crc32c`` package is installed it is used instead; a test holds both to the same values.
"""

import importlib
import struct
import zlib
from collections.abc import Callable

Checksum = Callable[[bytes], int]

_REFLECTED_CASTAGNOLI = 0x82F63B78
_EIGHT_BYTES = struct.Struct("<II")


def _step(crc: int) -> int:
    return (crc >> 1) ^ (_REFLECTED_CASTAGNOLI if crc & 1 else 0)


def _first_table() -> list[int]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = _step(crc)
        table.append(crc)
    return table


def _tables() -> list[list[int]]:
    tables = [_first_table()]
    for _ in range(7):
        previous = tables[-1]
        tables.append([tables[0][crc & 0xFF] ^ (crc >> 8) for crc in previous])
    return tables


_T0, _T1, _T2, _T3, _T4, _T5, _T6, _T7 = _tables()


def crc32c_portable(data: bytes) -> int:
    """CRC32C (Castagnoli) of ``data`` by slicing-by-8, in Python alone (LWP section 9.1).

    Args:
        data: The bytes to check.
    """
    crc = 0xFFFFFFFF
    whole = len(data) & ~7
    for low, high in _EIGHT_BYTES.iter_unpack(data[:whole]):
        low ^= crc  # noqa: PLW2901 - folding the register into the word is the algorithm
        crc = (
            _T7[low & 0xFF]
            ^ _T6[low >> 8 & 0xFF]
            ^ _T5[low >> 16 & 0xFF]
            ^ _T4[low >> 24]
            ^ _T3[high & 0xFF]
            ^ _T2[high >> 8 & 0xFF]
            ^ _T1[high >> 16 & 0xFF]
            ^ _T0[high >> 24]
        )
    for byte in data[whole:]:
        crc = _T0[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def _accelerated() -> Checksum:
    try:
        module = importlib.import_module("crc32c")
    except ModuleNotFoundError:
        return crc32c_portable
    fast: Checksum = module.crc32c
    return fast


crc32c: Checksum = _accelerated()


def crc32_ieee(data: bytes) -> int:
    """CRC-32 with the IEEE polynomial, which the published LANCE programs use (AMB-01).

    Args:
        data: The bytes to check.
    """
    return zlib.crc32(data)
