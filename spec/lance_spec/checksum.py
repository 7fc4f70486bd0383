"""The two polynomials in use on LWP connections (LWP section 9, AMB-01).

The specification asks for CRC32C; the published server and clients compute IEEE CRC-32.
Which one a connection speaks is an axis of its dialect, never a hard-coded call.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import crc32c

Buffer: TypeAlias = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class Checksum:
    """A named 32-bit checksum; call it with bytes.

    Attributes:
        name: ``crc32c`` or ``ieee``.
        compute: the function; takes any buffer and returns an unsigned 32-bit integer.
    """

    name: str
    compute: Callable[[Buffer], int] = field(repr=False, compare=False)

    def __call__(self, data: Buffer) -> int:
        """Return the checksum of ``data`` as an unsigned 32-bit integer."""
        return self.compute(data)


CRC32C = Checksum("crc32c", crc32c.crc32c)
"""Castagnoli, as LWP section 9.1 asks."""

CRC32_IEEE = Checksum("ieee", zlib.crc32)
"""IEEE 802.3, as the published server and clients compute."""
